"""What tensors of PyTorch must do on every device. `test_torch.py` and `test_gpu.py` run it."""

import itertools
import random

import pytest
import torch
from reference import ACTIVATIONS, GATES, activate, check, expected, uniform

import tilewise

DTYPES = (torch.float16, torch.bfloat16, torch.float32)

# Random cases come in chunks, each a test, which processes can share out.
CHUNKS = range(8)


class TorchSuite:
    """Tests of `tilewise.matmul` on `device`."""

    device: str
    # (M, N, K), the last of them odd in everything.
    shapes = ((1, 1, 1), (16, 24, 8), (64, 40, 72), (33, 65, 17))
    # In each of the chunks.
    random_cases = 8

    def generator(self, seed):
        return torch.Generator(self.device).manual_seed(seed)

    def uniform(self, *shape, dtype=torch.float32, seed=0):
        return uniform(shape, dtype, self.device, self.generator(seed))

    # Layouts ---------------------------------------------------------------------------------

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("out_dtype", DTYPES)
    def test_layouts(self, dtype, out_dtype):
        for (m, n, k), turned in itertools.product(
            self.shapes, itertools.product((0, 1), repeat=3)
        ):
            a = (
                self.uniform(k, m, dtype=dtype).t()
                if turned[0]
                else self.uniform(m, k, dtype=dtype)
            )
            b = (
                self.uniform(n, k, dtype=dtype, seed=1).t()
                if turned[1]
                else self.uniform(k, n, dtype=dtype, seed=1)
            )
            wanted = expected(a, b)
            found = tilewise.matmul(a, b, out_dtype=out_dtype)
            assert found.dtype == out_dtype and found.is_contiguous()
            check(found, wanted, k)
            shape = (n, m) if turned[2] else (m, n)
            out = torch.full(shape, torch.nan, dtype=out_dtype, device=self.device)
            out = out.t() if turned[2] else out
            assert tilewise.matmul(a, b, out=out) is out
            check(out, wanted, k)

    @pytest.mark.parametrize("chunk", CHUNKS)
    def test_slices_with_strides(self, chunk):
        draw = random.Random(100 + chunk)
        for case in range(self.random_cases):
            dtype, out_dtype = draw.choice(DTYPES), draw.choice(DTYPES)
            m, n, k = (draw.choice((1, 2, 7, 8, 31, 64, 100)) for _ in range(3))
            a = self.slice_of(draw, m, k, dtype, seed=case)
            b = self.slice_of(draw, k, n, dtype, seed=case + 1000)
            check(tilewise.matmul(a, b, out_dtype=out_dtype), expected(a, b), k)
            whole, out = self.window(draw, m, n, out_dtype)
            before = whole.clone()
            tilewise.matmul(a, b, out=out)
            check(out, expected(a, b), k)
            out.fill_(0)
            before_out = before.as_strided(out.shape, out.stride(), out.storage_offset())
            before_out.fill_(0)
            assert torch.equal(whole, before), "memory outside of out was written"

    def slice_of(self, draw, rows, cols, dtype, seed):
        """A view of random strides and offset: sliced, stepped, turned or repeated."""
        if draw.random() < 0.15:
            repeated = self.uniform(1, cols, dtype=dtype, seed=seed)
            return repeated.expand(rows, cols)
        steps = draw.choice((1, 1, 1, 2, 3)), draw.choice((1, 1, 1, 2))
        offsets = draw.choice((0, 0, 1, 8)), draw.choice((0, 0, 1, 8))
        turned = draw.random() < 0.5
        extents = [offsets[0] + rows * steps[0], offsets[1] + cols * steps[1] + draw.choice((0, 3))]
        shape = extents[::-1] if turned else extents
        whole = self.uniform(*shape, dtype=dtype, seed=seed)
        whole = whole.t() if turned else whole
        view = whole[offsets[0] :: steps[0], offsets[1] :: steps[1]]
        return view[:rows, :cols]

    def window(self, draw, rows, cols, dtype):
        """A buffer, and a part of it to write to."""
        step = draw.choice((1, 1, 2))
        whole = self.uniform(rows * step + 5, cols * step + 7, dtype=dtype, seed=rows * 131 + cols)
        view = whole[2 : 2 + rows * step : step, 3 : 3 + cols * step : step]
        return (whole, view)

    def test_batches(self):
        for dtype in DTYPES:
            for batches, m, n, k in ((3, 16, 8, 32), (5, 33, 20, 7), (1, 4, 4, 4), (2, 64, 64, 64)):
                a = self.uniform(batches, m, k, dtype=dtype)
                b = self.uniform(batches, k, n, dtype=dtype)
                shared_a, shared_b = (
                    self.uniform(m, k, dtype=dtype),
                    self.uniform(n, k, dtype=dtype).t(),
                )
                turned = self.uniform(m, batches, k, dtype=dtype).transpose(0, 1)
                inner = self.uniform(batches, k, m, dtype=dtype).mT
                for x, y in (
                    (a, b),
                    (a, shared_b),
                    (shared_a, b),
                    (turned, b),
                    (turned, shared_b),
                    (inner, b),
                    (a[:1], b),
                    (a, b[:1]),
                    (a[::2], b[::2]),
                    (shared_a.expand(batches, m, k), b),
                ):
                    check(tilewise.matmul(x, y), expected(x, y), k)
                out = torch.zeros(m, batches, n, dtype=dtype, device=self.device)
                tilewise.matmul(a, b, out=out.transpose(0, 1))
                check(out.transpose(0, 1), expected(a, b), k)

    @pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
    def test_empty(self, shape):
        m, n, k = shape
        a, b, bias = self.uniform(m, k), self.uniform(k, n), self.uniform(n)
        assert torch.equal(tilewise.matmul(a, b), torch.zeros(m, n, device=self.device))
        assert torch.equal(tilewise.matmul(a, b, bias=bias), bias.expand(m, n))
        for x, y in ((a.expand(0, m, k), b), (a.expand(2, m, k), b), (a, b.expand(2, k, n))):
            assert torch.equal(tilewise.matmul(x, y), torch.matmul(x, y))

    # Epilogues -------------------------------------------------------------------------------

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("gated", GATES)
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_activations(self, activation, gated, dtype):
        for m, n, k in self.shapes:
            n += n % 2
            a, b = self.uniform(m, k, dtype=dtype), self.uniform(k, n, dtype=dtype, seed=1)
            bias = self.uniform(n, dtype=dtype, seed=2)
            options = {"bias": bias, "activation": activation, "gated": gated}
            found = tilewise.matmul(a, b, **options)
            check(found, expected(a, b, **options), k, scale=2.0 + k / 2)

    @pytest.mark.parametrize("chunk", CHUNKS)
    def test_random_epilogues(self, chunk):
        draw = random.Random(200 + chunk)
        for case in range(self.random_cases):
            self.random_epilogue(draw, case)

    def random_epilogue(self, draw, case):
        dtype, out_dtype = draw.choice(DTYPES), draw.choice(DTYPES)
        m, n, k = (draw.choice((1, 8, 30, 64, 96, 130)) for _ in range(3))
        gated = draw.choice((None, None, *GATES))
        n += n % 2
        batches = draw.choice(((), (), (3,)))
        turn = [draw.random() < 0.5 for _ in range(3)]
        a = self.uniform(*batches, *((k, m) if turn[0] else (m, k)), dtype=dtype, seed=case)
        b = self.uniform(*((n, k) if turn[1] else (k, n)), dtype=dtype, seed=case + 1)
        a, b = a.mT if turn[0] else a, b.mT if turn[1] else b
        options = {
            "alpha": draw.choice((1.0, 0.5, -2.0)),
            "activation": draw.choice(ACTIVATIONS),
            "gated": gated,
            "out_dtype": out_dtype,
        }
        if draw.random() < 0.5:
            shape = draw.choice(((n,), (1, n), (m, 1)))
            options["bias"] = self.uniform(*shape, dtype=out_dtype, seed=case + 2)
        if draw.random() < 0.3:
            options["row_scale"] = self.uniform(m, seed=case + 3)
        if draw.random() < 0.3:
            options["col_scale"] = self.uniform(n, seed=case + 4)
        in_place = False
        if gated is None and draw.random() < 0.6:
            shape = (*batches, *((n, m) if turn[2] else (m, n)))
            c = self.uniform(*shape, dtype=out_dtype, seed=case + 5)
            options["c"] = c.mT if turn[2] else c
            options["beta"] = draw.choice((None, 0.0, 1.0, -0.5))
            in_place = draw.random() < 0.5
        wanted = expected(a, b, **options)
        if in_place:
            options["out"] = options["c"]
        check(tilewise.matmul(a, b, **options), wanted, k, scale=4.0 + k / 2)

    def test_beta_zero_reads_no_source(self):
        a, b = self.uniform(9, 8), self.uniform(8, 16)
        nothing = torch.full((9, 16), torch.nan, device=self.device)
        check(tilewise.matmul(a, b, c=nothing, beta=0.0), expected(a, b), 8)

    # Errors ----------------------------------------------------------------------------------

    def test_errors_name_the_argument(self):
        x, y = self.uniform(3, 4), self.uniform(4, 5)
        for error, message, arguments, options in (
            (ValueError, r"a is \[3, 4\] and b is \[3, 4\]", (x, x), {}),
            (ValueError, "a has 1 dimension", (x[0], y), {}),
            (TypeError, "b has the dtype float16; accepted: float32", (x, y.half()), {}),
            (TypeError, "a has the dtype float64", (x.double(), y), {}),
            (TypeError, "a has the dtype int64", (x.long(), y), {}),
            (TypeError, "c has the dtype float16", (x, y), {"c": self.uniform(3, 5).half()}),
            (ValueError, r"bias is \[4\]", (x, y), {"bias": x[0]}),
            (TypeError, "row_scale has the dtype float16", (x, y), {"row_scale": x[:, 0].half()}),
            (ValueError, "out overlaps a", (x, x.t()), {"out": x[:, :3]}),
            (ValueError, "share an address", (x, y), {"out": self.uniform(1).expand(3, 5)}),
            (ValueError, "precision Tf32", (x.half(), y.half()), {"precision": "tf32"}),
        ):
            with pytest.raises(error, match=message):
                tilewise.matmul(*arguments, **options)

    def test_a_lazily_negated_view_is_refused(self):
        z = torch.view_as_complex(self.uniform(6, 6, 2)).conj().imag
        assert z.is_neg()
        with pytest.raises(ValueError, match="a is a lazily negated view"):
            tilewise.matmul(z, z)
        check(tilewise.matmul(z.resolve_neg(), z.resolve_neg()), expected(z, z), 6)

    # PyTorch ---------------------------------------------------------------------------------

    def test_gradcheck(self):
        """Numerical derivatives in float32, by steps that its precision allows."""
        m, n, k = 5, 6, 4

        def leaf(*shape, seed):
            return self.uniform(*shape, seed=seed).requires_grad_()

        a, b, c = leaf(m, k, seed=1), leaf(k, n, seed=2), leaf(m, n, seed=3)
        bias, row, col = leaf(n, seed=4), leaf(m, seed=5), leaf(n, seed=6)
        batch = leaf(3, m, k, seed=7)
        for function, inputs in (
            (tilewise.matmul, (a, b)),
            (lambda a, b: tilewise.matmul(a, b, alpha=-0.5), (batch, b)),
            (lambda a, b: tilewise.matmul(a.mT, b.mT), (b, a)),
            (lambda a, b, c: tilewise.matmul(a, b, c=c, beta=0.5), (a, b, c)),
            (lambda a, b, s: tilewise.matmul(a, b, bias=s, activation="gelu"), (a, b, bias)),
            (
                lambda a, b, s: tilewise.matmul(a, b, bias=s[:, None], activation="silu"),
                (a, b, row),
            ),
            (lambda a, b, r, s: tilewise.matmul(a, b, row_scale=r, col_scale=s), (a, b, row, col)),
            (lambda a, b: tilewise.matmul(a, b, activation="gelu_tanh", gated="halves"), (a, b)),
            (lambda a, b: tilewise.matmul(a, b, gated="interleaved"), (a, b)),
        ):
            assert torch.autograd.gradcheck(
                function, inputs, eps=1e-2, atol=2e-3, rtol=2e-2, nondet_tol=1e-6
            )
        assert torch.autograd.gradgradcheck(
            tilewise.matmul, (a, b), eps=1e-2, atol=2e-3, rtol=2e-2, nondet_tol=1e-6
        )

    @pytest.mark.parametrize("activation", ACTIVATIONS)
    @pytest.mark.parametrize("gated", GATES)
    def test_gradients_are_those_of_torch(self, activation, gated):
        for batches_a, batches_b in (((), ()), ((3,), ()), ((), (3,)), ((3,), (3,)), ((1,), (3,))):
            leaves = {
                "a": self.uniform(*batches_a, 8, 12, seed=1),
                "b": self.uniform(*batches_b, 12, 10, seed=2),
                "bias": self.uniform(10, seed=3),
                "row_scale": self.uniform(8, seed=4),
                "col_scale": self.uniform(10, seed=5),
            }
            if gated is None:
                batches = max(batches_a, batches_b)
                leaves["c"] = self.uniform(*batches, 8, 10, seed=6)
            ours = {name: leaf.clone().requires_grad_() for name, leaf in leaves.items()}
            theirs = {name: leaf.double().requires_grad_() for name, leaf in leaves.items()}
            options = {"alpha": 0.7, "activation": activation, "gated": gated}
            found = tilewise.matmul(**ours, **options)
            wanted = expected(**theirs, **options)
            check(found, wanted, 12, scale=8.0)
            weights = self.uniform(*wanted.shape, seed=7)
            (found * weights).sum().backward()
            (wanted * weights).sum().backward()
            for name in leaves:
                torch.testing.assert_close(
                    ours[name].grad.double(),
                    theirs[name].grad,
                    rtol=1e-4,
                    atol=1e-4,
                    msg=lambda text, name=name: f"{name}: {text}",
                )

    def test_gradients_of_16_bit_types_and_in_f32(self):
        for dtype in (torch.float16, torch.bfloat16):
            a, b = self.uniform(24, 32, dtype=dtype), self.uniform(32, 16, dtype=dtype, seed=1)
            for out_dtype in (dtype, torch.float32):
                x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
                tilewise.matmul(x, y, out_dtype=out_dtype).float().pow(2).sum().backward()
                assert x.grad.dtype == dtype and y.grad.dtype == dtype
                z = a.double().requires_grad_(), b.double().requires_grad_()
                torch.matmul(*z).pow(2).sum().backward()
                eps = torch.finfo(dtype).eps
                for ours, theirs in zip((x, y), z):
                    torch.testing.assert_close(
                        ours.grad.double(), theirs.grad, rtol=8 * eps, atol=64 * eps
                    )

    def test_out_and_gradients(self):
        a, b = self.uniform(3, 4).requires_grad_(), self.uniform(4, 5)
        out = torch.empty(3, 5, device=self.device)
        with pytest.raises(RuntimeError, match="out is given"):
            tilewise.matmul(a, b, out=out)
        parameter = torch.nn.Parameter(torch.zeros(3, 5, device=self.device))
        with pytest.raises(RuntimeError, match="out is given"):
            tilewise.matmul(a.detach(), b, out=parameter)
        with torch.no_grad():
            tilewise.matmul(a, b, out=out)
            tilewise.matmul(a, b, out=parameter)
        assert torch.equal(parameter.detach(), out)
        # A gradient that needs the former values of out fails.
        leaf = torch.ones(3, 5, device=self.device, requires_grad=True)
        square = leaf * out
        tilewise.matmul(a.detach(), b, out=out)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            square.sum().backward()
        with torch.inference_mode():
            x = self.uniform(3, 4)
            check(
                tilewise.matmul(x, b, out=torch.empty(3, 5, device=self.device)), expected(x, b), 4
            )

    def test_the_operator_passes_opcheck(self):
        a, b, bias = self.uniform(6, 8), self.uniform(8, 10), self.uniform(10)
        leaf = self.uniform(6, 8).requires_grad_()
        operator = torch.ops.tilewise.matmul.default
        for arguments, options in (
            ((a, b), {}),
            ((a, b), {"bias": bias, "activation": "gelu"}),
            ((a.expand(2, 6, 8), b), {"gated": "halves", "out_dtype": torch.float16}),
            ((leaf, b), {"bias": bias, "activation": "relu"}),
        ):
            torch.library.opcheck(operator, arguments, options)

    def test_transforms_of_torch_func(self):
        a, b = self.uniform(6, 8), self.uniform(8, 10)
        mapped = torch.func.vmap(lambda row: tilewise.matmul(row[None], b)[0])(a)
        torch.testing.assert_close(mapped, tilewise.matmul(a, b))

    def test_subclasses_and_parameters(self):
        weight = torch.nn.Parameter(self.uniform(8, 10))
        a = self.uniform(6, 8)
        with torch.no_grad():
            check(tilewise.matmul(a, weight), expected(a, weight), 8)
        found = tilewise.matmul(a, weight)
        assert found.requires_grad
        mode = torch._subclasses.FakeTensorMode()
        fakes = [mode.from_tensor(tensor) for tensor in (a, weight.detach())]
        with mode:
            fake = tilewise.matmul(*fakes)
            assert fake.shape == (6, 10) and fake.device == a.device

    def compile_options(self):
        return {"fullgraph": True, "backend": "aot_eager"}

    def test_compile(self):
        def layer(x, w, bias):
            y = tilewise.matmul(x, w.t(), bias=bias, activation="gelu")
            return tilewise.matmul(y, w, activation="relu") + 1

        x, w, bias = self.uniform(6, 8), self.uniform(10, 8), self.uniform(10)
        compiled = torch.compile(layer, **self.compile_options())
        torch.testing.assert_close(compiled(x, w, bias), layer(x, w, bias))
        torch.testing.assert_close(compiled(x[:3], w, bias), layer(x[:3], w, bias))
        ours, theirs = w.clone().requires_grad_(), w.clone().requires_grad_()
        compiled(x, ours, bias).sum().backward()
        layer(x, theirs, bias).sum().backward()
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("activation", [None, "gelu", ("leaky_relu", 0.2)])
    def test_linear(self, activation):
        layer = tilewise.Linear(12, 20, activation=activation, device=self.device)
        plain = torch.nn.Linear(12, 20, device=self.device)
        plain.load_state_dict(layer.state_dict())
        shared = tilewise.Linear.from_linear(plain, activation=activation)
        assert shared.weight is plain.weight
        for shape in ((7, 12), (2, 7, 12), (2, 3, 7, 12), (12,)):
            x = self.uniform(*shape)
            wanted = activate(plain(x), activation)
            torch.testing.assert_close(layer(x), wanted, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(shared(x), wanted, rtol=1e-4, atol=1e-5)
            with torch.no_grad():
                torch.testing.assert_close(layer(x), wanted, rtol=1e-4, atol=1e-5)
        assert f"activation={activation!r}" in repr(layer)

    def test_gated_linear(self):
        layer = tilewise.Linear(
            12, 20, bias=False, activation="silu", gated="halves", device=self.device
        )
        x = self.uniform(7, 12)
        gate, up = (x @ layer.weight.t()).chunk(2, dim=-1)
        wanted = torch.nn.functional.silu(gate) * up
        torch.testing.assert_close(layer(x), wanted, rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match="out_features is 21"):
            tilewise.Linear(12, 21, gated="halves")

    def test_batch_invariant_linear(self):
        layer = tilewise.Linear(300, 40, batch_invariant=True, device=self.device)
        x = self.uniform(70, 300)
        with torch.no_grad():
            whole = layer(x)
            for rows in (x[3:4], x[3:20], x[3:19].reshape(2, 8, 300)):
                part = layer(rows).reshape(-1, 40)
                assert torch.equal(part, whole[3 : 3 + part.shape[0]])
        recorded = layer(x[3:20])
        assert recorded.requires_grad and torch.equal(recorded, whole[3:20])
        recorded.sum().backward()
        torch.testing.assert_close(layer.bias.grad, torch.full_like(layer.bias, 17.0))
        assert "batch_invariant=True" in repr(layer)

    def test_objects_with_dlpack(self):
        class Exporter:
            def __init__(self, tensor):
                self.tensor = tensor

            def __dlpack__(self, stream=None):
                return self.tensor.__dlpack__(stream=stream) if stream else self.tensor.__dlpack__()

            def __dlpack_device__(self):
                return self.tensor.__dlpack_device__()

        for dtype in DTYPES:
            a, b = (
                self.uniform(6, 8, dtype=dtype),
                self.uniform(8, 10, dtype=dtype).t().contiguous().t(),
            )
            out = torch.empty(6, 10, dtype=dtype, device=self.device)
            tilewise.matmul(Exporter(a), Exporter(b), out=out)
            check(out, expected(a, b), 8)
            with pytest.raises(ValueError, match="out is needed"):
                tilewise.matmul(Exporter(a), b)
