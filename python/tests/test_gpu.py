"""Tensors of PyTorch on a GPU: all that `torch_suite.py` has, and what only a GPU has.

    pytest python/tests/test_gpu.py

It needs PyTorch with CUDA. Without a GPU every test is skipped. The driver compiles a kernel for
each epilogue, which takes most of the time: with pytest-xdist, `-n 12` shares the tests out.
"""

import itertools
import random
import shutil
import threading

import pytest

torch = pytest.importorskip("torch")

from reference import check, expected, uniform
from torch_suite import DTYPES, TorchSuite

import tilewise

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


class TestOnTheGpu(TorchSuite):
    device = "cuda"
    shapes = (
        *TorchSuite.shapes,
        (128, 128, 128),
        (256, 384, 512),
        (1, 4096, 1024),
        (16, 1000, 777),
        (300, 520, 1040),
    )
    random_cases = 100

    def test_compile_with_graphs(self):
        def layer(x, w, bias):
            return tilewise.matmul(x, w.t(), bias=bias, activation="silu")

        w, bias = self.uniform(96, 128), self.uniform(96)
        compiled = torch.compile(layer, fullgraph=True, backend="cudagraphs")
        for seed in range(4):
            x = self.uniform(64, 128, seed=seed)
            torch.testing.assert_close(compiled(x, w, bias).clone(), layer(x, w, bias))

    def test_compile_with_inductor(self):
        if not any(map(shutil.which, ("cc", "gcc", "clang"))):
            pytest.skip("inductor needs a C compiler")

        def layer(x, w, bias):
            return tilewise.matmul(torch.sin(x), w.t(), bias=bias, activation="silu") * 2

        x, w, bias = self.uniform(64, 128), self.uniform(96, 128), self.uniform(96)
        for mode in ("default", "reduce-overhead"):
            compiled = torch.compile(layer, fullgraph=True, mode=mode)
            for _ in range(3):
                torch.testing.assert_close(compiled(x, w, bias).clone(), layer(x, w, bias))

    def test_large_products_of_every_type(self):
        for dtype, out_dtype in itertools.product(DTYPES, DTYPES):
            for m, n, k in ((1024, 1536, 2048), (2000, 1111, 1024), (64, 8192, 4096)):
                x = self.uniform(m, k, dtype=dtype)
                w = self.uniform(n, k, dtype=dtype, seed=1)
                bias = self.uniform(n, dtype=out_dtype, seed=2)
                options = {"bias": bias, "activation": "gelu", "out_dtype": out_dtype}
                check(tilewise.matmul(x, w.t(), **options), expected(x, w.t(), **options), k, 2.0)
                c = self.uniform(m, n, dtype=out_dtype, seed=3)
                options = {"c": c, "beta": 0.5, "alpha": 2.0, "out_dtype": out_dtype}
                check(tilewise.matmul(x, w.t(), **options), expected(x, w.t(), **options), k, 2.0)

    def test_forced_choices(self):
        a, b = (
            self.uniform(512, 256, dtype=torch.float16),
            self.uniform(256, 384, dtype=torch.float16),
        )
        bias = self.uniform(384, dtype=torch.float16)
        for kernel in ("naive", "tiled", "tensor_core", "hopper"):
            for order in ("row", "col", "grouped:4", "morton", "hilbert"):
                options = {"bias": bias, "activation": "silu", "kernel": kernel, "order": order}
                schedules = ("grid1d", "persistent") if kernel == "hopper" else ("grid1d",)
                for schedule in schedules:
                    found = tilewise.matmul(a, b, schedule=schedule, **options)
                    check(found, expected(a, b, **options), 256, 2.0)
        with pytest.raises(ValueError, match="kernel: .*fastest"):
            tilewise.matmul(a, b, kernel="fastest")

    def test_tf32(self):
        a, b = self.uniform(512, 256), self.uniform(256, 384)
        found = tilewise.matmul(a, b, precision="tf32").double()
        wanted = expected(a, b)
        error = (found - wanted).norm() / wanted.norm()
        assert 1e-6 < error < 1e-3

    # Streams and graphs ----------------------------------------------------------------------

    def test_two_streams(self):
        """Each stream fills its operands, multiplies and reads, without waiting for the other."""
        streams = [torch.cuda.Stream() for _ in range(2)]
        operands = [
            (self.uniform(700, 900, seed=i), self.uniform(900, 500, seed=i + 9)) for i in range(2)
        ]
        wanted = [expected(a, b) for a, b in operands]
        torch.cuda.synchronize()
        found = [[], []]
        for _ in range(30):
            for index, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    a, b = (operand.clone() for operand in operands[index])
                    found[index].append(tilewise.matmul(a, b))
        torch.cuda.synchronize()
        for results, right in zip(found, wanted):
            for result in results:
                check(result, right, 900)

    def test_a_plan_with_a_workspace_on_two_streams(self):
        """Operands that TMA cannot read are packed into memory of the plan, which both use."""
        streams = [torch.cuda.Stream() for _ in range(2)]
        dtype = torch.float16
        operands = [
            (
                self.uniform(1023, 1001, dtype=dtype, seed=i),
                self.uniform(1001, 1023, dtype=dtype, seed=i + 9),
            )
            for i in range(2)
        ]
        wanted = [expected(a, b) for a, b in operands]
        torch.cuda.synchronize()
        found = [[], []]
        for _ in range(30):
            for index, stream in enumerate(streams):
                with torch.cuda.stream(stream):
                    found[index].append(tilewise.matmul(*operands[index]))
        torch.cuda.synchronize()
        for results, right in zip(found, wanted):
            for result in results:
                check(result, right, 1001)

    def test_the_work_is_on_the_current_stream(self):
        a, b = self.uniform(256, 256), self.uniform(256, 256)
        tilewise.matmul(a, b)
        torch.cuda.synchronize()
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(200_000_000)
            tilewise.matmul(a, b)
            done = torch.cuda.Event()
            done.record()
        assert not done.query()
        # Another stream is not held up.
        other = torch.cuda.Stream()
        result = tilewise.matmul(a, b, out=torch.empty_like(a), stream=other)
        other.synchronize()
        assert not done.query()
        check(result, expected(a, b), 256)
        stream.synchronize()

    def test_threads(self):
        operands = [
            (self.uniform(65 + i, 130, seed=i), self.uniform(130, 70, seed=i + 50))
            for i in range(4)
        ]
        failures = []

        def work(index):
            a, b = operands[index]
            wanted = expected(a, b)
            try:
                with torch.cuda.stream(torch.cuda.Stream()):
                    torch.cuda.current_stream().wait_stream(torch.cuda.default_stream())
                    for _ in range(100):
                        check(tilewise.matmul(a, b), wanted, 130)
            except BaseException as error:
                failures.append(error)

        torch.cuda.synchronize()
        threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures[0]

    @pytest.mark.parametrize(
        "shape", [(128, 128, 128), (1000, 520, 333), (16, 4096, 4096), (0, 8, 8)]
    )
    def test_graphs(self, shape):
        m, n, k = shape
        for dtype in DTYPES:
            a, b = self.uniform(m, k, dtype=dtype), self.uniform(k, n, dtype=dtype)
            bias, c = self.uniform(n, dtype=dtype), self.uniform(m, n, dtype=dtype)
            options = {"bias": bias, "c": c, "activation": "relu"}
            warm = torch.cuda.Stream()
            with torch.cuda.stream(warm):
                warm.wait_stream(torch.cuda.default_stream())
                # Plans are made before the capture, which forbids what making them takes.
                y = tilewise.matmul(a, b, **options)
                tilewise.matmul(y.t(), y, out_dtype=torch.float32)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = tilewise.matmul(a, b, **options)
                z = tilewise.matmul(y.t(), y, out_dtype=torch.float32)
            # What runs between capture and replay must not disturb the graph's plans.
            for extent in range(1, 70):
                tilewise.matmul(self.uniform(extent, 40), self.uniform(40, extent))
            for seed in range(3):
                a.copy_(self.uniform(m, k, dtype=dtype, seed=seed + 20))
                graph.replay()
                torch.cuda.synchronize()
                check(y, expected(a, b, **options), k, 2.0)
                check(z, expected(y.t(), y), m, 1 + float(y.abs().max() if y.numel() else 0) ** 2)

    # Memory ----------------------------------------------------------------------------------

    def test_nothing_is_copied_and_nothing_is_kept(self):
        a = self.uniform(2048, 1024, dtype=torch.bfloat16)
        w = self.uniform(512, 1024, dtype=torch.bfloat16)
        tilewise.matmul(a, w.t())
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        y = tilewise.matmul(a, w.t())
        assert torch.cuda.max_memory_allocated() == before + y.numel() * y.element_size()
        del y
        assert torch.cuda.memory_allocated() == before

    def test_addresses_of_any_alignment(self):
        draw = random.Random(3)
        for _ in range(200):
            dtype = draw.choice(DTYPES)
            m, n, k = (draw.choice((8, 64, 136, 256)) for _ in range(3))
            parts = []
            for rows, cols in ((m, k), (k, n), (m, n)):
                offset = draw.choice((0, 1, 2, 4, 8))
                flat = uniform((rows * cols + offset,), dtype, "cuda", self.generator(offset))
                parts.append(flat[offset:].view(rows, cols))
            a, b, out = parts
            wanted = expected(a, b)
            check(tilewise.matmul(a, b, out=out), wanted, k)

    def test_cuda_array_interface(self):
        class Exporter:
            def __init__(self, tensor, stream=None):
                self.tensor = tensor
                self.stream = stream

            @property
            def __cuda_array_interface__(self):
                interface = dict(self.tensor.__cuda_array_interface__)
                interface["stream"] = self.stream
                return interface

        if torch.cuda.device_count() > 1:
            with pytest.raises(ValueError, match="does not say which of"):
                tilewise.matmul(Exporter(self.uniform(2, 2)), self.uniform(2, 2))
            return
        for dtype in (torch.float16, torch.float32):
            a = self.uniform(30, 20, dtype=dtype)
            b = self.uniform(40, 20, dtype=dtype).t()
            out = torch.empty(30, 40, dtype=dtype, device="cuda")
            torch.cuda.synchronize()
            tilewise.matmul(Exporter(a), Exporter(b), out=Exporter(out))
            torch.cuda.synchronize()
            check(out, expected(a, b), 20)
        with pytest.raises(ValueError, match="belong to the streams"):
            tilewise.matmul(Exporter(a, 1), Exporter(b, 2), out=Exporter(out))

    # Devices ---------------------------------------------------------------------------------

    def test_devices_are_not_mixed(self):
        a, b = self.uniform(3, 4), self.uniform(4, 5)
        with pytest.raises(ValueError, match="b is on the CPU; accepted: GPU 0, where a is"):
            tilewise.matmul(a, b.cpu())
        with pytest.raises(ValueError, match="bias is on GPU 0; accepted: the CPU, where a is"):
            tilewise.matmul(a.cpu(), b.cpu(), bias=self.uniform(5))
        with pytest.raises(ValueError, match="out is on the CPU; accepted: GPU 0"):
            tilewise.matmul(a, b, out=torch.empty(3, 5))

    def test_another_gpu_than_the_current_one(self):
        if torch.cuda.device_count() < 2:
            pytest.skip("one GPU")
        a, b = self.uniform(64, 128).to("cuda:1"), self.uniform(128, 96).to("cuda:1")
        assert torch.cuda.current_device() == 0
        found = tilewise.matmul(a, b)
        assert torch.cuda.current_device() == 0
        assert found.device == a.device
        check(found, expected(a, b), 128)
        with pytest.raises(ValueError, match="b is on GPU 0; accepted: GPU 1"):
            tilewise.matmul(a, b.to("cuda:0"))
