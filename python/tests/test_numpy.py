"""NumPy arrays, on the CPU device."""

import numpy as np
import pytest

import tilewise

RNG = np.random.default_rng(7)


def uniform(*shape, dtype=np.float32):
    return RNG.uniform(-1, 1, shape).astype(dtype)


def check(found, wanted, depth):
    assert found.shape == wanted.shape
    eps = 2.0**-7 if found.dtype.name == "bfloat16" else np.finfo(found.dtype).eps
    np.testing.assert_allclose(
        found.astype(np.float64), wanted, rtol=eps, atol=1e-6 + depth * 2.0**-20
    )


def product(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (64, 48, 100), (33, 1, 65), (1, 70, 3)])
@pytest.mark.parametrize("turned", ["", "a", "b", "ab"])
def test_layouts(dtype, shape, turned):
    m, n, k = shape
    a = uniform(k, m, dtype=dtype).T if "a" in turned else uniform(m, k, dtype=dtype)
    b = uniform(n, k, dtype=dtype).T if "b" in turned else uniform(k, n, dtype=dtype)
    found = tilewise.matmul(a, b)
    assert found.dtype == dtype
    check(found, product(a, b), k)
    wide = tilewise.matmul(a, b, out_dtype="float32")
    assert wide.dtype == np.float32
    check(wide, product(a, b), k)


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = uniform(20, 30).astype(ml_dtypes.bfloat16), uniform(30, 10).astype(ml_dtypes.bfloat16)
    found = tilewise.matmul(a, b)
    assert found.dtype == ml_dtypes.bfloat16
    check(found, product(a, b), 30)
    check(tilewise.matmul(a, b, out_dtype=np.float16), product(a, b), 30)


def test_slices_and_steps():
    whole = uniform(90, 120)
    a, b = whole[3:50:2, 5:65:3], whole[10:50:2, 1:100:4]
    check(tilewise.matmul(a, b), product(a, b), a.shape[1])
    repeated = np.broadcast_to(whole[0, :20], (13, 20))
    check(tilewise.matmul(repeated, b), product(repeated, b), 20)


def test_batches():
    a, b, shared = uniform(4, 9, 11), uniform(4, 11, 6), uniform(11, 6)
    check(tilewise.matmul(a, b), product(a, b), 11)
    check(tilewise.matmul(a, shared), product(a, shared), 11)
    check(tilewise.matmul(a[0], b), product(a[0], b), 11)
    turned = uniform(9, 4, 11).transpose(1, 0, 2)
    check(tilewise.matmul(turned, shared), product(turned, shared), 11)
    check(tilewise.matmul(turned[:1], b), product(turned[:1], b), 11)
    check(tilewise.matmul(a[::2], b[1::2]), product(a[::2], b[1::2]), 11)


def test_the_epilogue():
    a, b, c = uniform(12, 20), uniform(20, 8), uniform(12, 8)
    row, col, bias = uniform(12), uniform(8), uniform(8)
    z = 0.5 * row[:, None] * col * product(a, b) + 2.0 * c + bias
    found = tilewise.matmul(
        a, b, c=c, alpha=0.5, beta=2.0, bias=bias, row_scale=row, col_scale=col, activation="silu"
    )
    check(found, z / (1 + np.exp(-z)), 20)
    tall = uniform(12, 1)
    check(tilewise.matmul(a, b, bias=tall), product(a, b) + tall, 20)
    gate, up = np.split(product(a, b) + bias, 2, axis=1)
    check(
        tilewise.matmul(a, b, bias=bias, activation="relu", gated="halves"),
        np.maximum(gate, 0) * up,
        20,
    )


def test_beta_zero_reads_no_source():
    a, b = uniform(5, 6), uniform(6, 7)
    nothing = np.full((5, 7), np.nan, dtype=np.float32)
    check(tilewise.matmul(a, b, c=nothing, beta=0.0), product(a, b), 6)


def test_out_and_in_place():
    a, b, buffer = uniform(8, 9), uniform(9, 10), uniform(20, 30)
    before, out = buffer.copy(), buffer[2:18:2, 3:23:2]
    assert tilewise.matmul(a, b, c=out, beta=0.25, out=out) is out
    wanted = before.astype(np.float64)
    wanted[2:18:2, 3:23:2] = product(a, b) + 0.25 * before[2:18:2, 3:23:2]
    check(buffer, wanted, 9)


@pytest.mark.parametrize("shape", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty(shape):
    m, n, k = shape
    a, b = np.ones((m, k), np.float32), np.ones((k, n), np.float32)
    np.testing.assert_array_equal(tilewise.matmul(a, b), np.zeros((m, n)))
    bias = uniform(n)
    np.testing.assert_array_equal(tilewise.matmul(a, b, bias=bias), np.broadcast_to(bias, (m, n)))
    batches = tilewise.matmul(np.ones((0, 2, 3), np.float32), np.ones((3, 4), np.float32))
    assert batches.shape == (0, 2, 4)


X, Y = np.ones((3, 4), np.float32), np.ones((4, 5), np.float32)
READ_ONLY = np.ones((3, 5), np.float32)
READ_ONLY.flags.writeable = False


@pytest.mark.parametrize(
    "error, message, arguments, options",
    [
        (ValueError, r"a is \[3, 4\] and b is \[3, 4\]", (X, X), {}),
        (ValueError, "a has 1 dimension", (X[0], Y), {}),
        (ValueError, "b has 4 dimensions", (X, Y[None, None]), {}),
        (ValueError, "a has 2 batches and b has 3", (np.stack([X] * 2), np.stack([Y] * 3)), {}),
        (TypeError, "b has the dtype float16; accepted: float32", (X, Y.astype("f2")), {}),
        (TypeError, "a has the dtype float64; accepted: float16", (X.astype("f8"), Y), {}),
        (TypeError, "a is not in this machine's byte order", (X.astype(">f4"), Y), {}),
        (TypeError, "a is list; accepted", ([[1.0]], Y), {}),
        (ValueError, r"a has the strides \[-4, 1\]", (X[::-1], Y), {}),
        (ValueError, r"c is \[3, 4\]; accepted: \[3, 5\]", (X, Y), {"c": X}),
        (TypeError, "c has the dtype float16", (X, Y), {"c": np.ones((3, 5), "f2")}),
        (ValueError, "beta is 0.5 and there is no c", (X, Y), {"beta": 0.5}),
        (ValueError, r"bias is \[4\]; accepted: \[5\], \[1, 5\], \[3, 1\]", (X, Y), {"bias": X[0]}),
        (ValueError, "bias has the stride 2", (X, Y), {"bias": np.ones(10, "f4")[::2]}),
        (ValueError, r"row_scale is \[5\]", (X, Y), {"row_scale": Y[0]}),
        (TypeError, "col_scale has the dtype float16", (X, Y), {"col_scale": np.ones(5, "f2")}),
        (
            ValueError,
            "activation is 'tanh'; accepted: None, 'relu'",
            (X, Y),
            {"activation": "tanh"},
        ),
        (TypeError, "activation is 3; accepted", (X, Y), {"activation": 3}),
        (ValueError, "gated is 'thirds'", (X, Y), {"gated": "thirds"}),
        (ValueError, "b has 5 columns; accepted with gated", (X, Y), {"gated": "halves"}),
        (
            ValueError,
            "beta",
            (X, np.ones((4, 6), "f4")),
            {"gated": "halves", "c": np.ones((3, 3), "f4")},
        ),
        (ValueError, r"out is \[3, 4\]", (X, Y), {"out": np.ones((3, 4), "f4")}),
        (ValueError, "out is a read-only ndarray", (X, Y), {"out": READ_ONLY}),
        (
            ValueError,
            "share an address",
            (X, Y),
            {"out": np.lib.stride_tricks.as_strided(np.ones(5, "f4"), (3, 5), (0, 4))},
        ),
        (
            TypeError,
            "out is float32 and out_dtype float16",
            (X, Y),
            {"out": np.ones((3, 5), "f4"), "out_dtype": "float16"},
        ),
        (TypeError, "out_dtype has the dtype int8", (X, Y), {"out_dtype": "int8"}),
        (ValueError, "order: ", (X, Y), {"order": "diagonal"}),
        (ValueError, "schedule: ", (X, Y), {"schedule": "later"}),
        (ValueError, "kernel: ", (X, Y), {"kernel": "fastest"}),
        (ValueError, "cannot be forced on the CPU", (X, Y), {"kernel": "naive"}),
        (ValueError, "precision is 'fp8'", (X, Y), {"precision": "fp8"}),
        (TypeError, "unexpected keyword", (X, Y), {"gamma": 1}),
    ],
)
def test_errors_name_the_argument(error, message, arguments, options):
    with pytest.raises(error, match=message):
        tilewise.matmul(*arguments, **options)


def test_out_must_not_overlap_what_is_read():
    buffer = uniform(8, 24)
    a, b = buffer[:, :8], buffer[:, 8:16]
    apart = buffer[:, 16:]
    wanted = product(a, b)
    check(tilewise.matmul(a, b, out=apart), wanted, 8)
    for out in (a, buffer[:, 4:12], buffer[:, 8:16]):
        with pytest.raises(ValueError, match="out overlaps [ab] in memory"):
            tilewise.matmul(a, b, out=out)
    c = buffer[:, 15:23]
    with pytest.raises(ValueError, match="out overlaps [bc] in memory"):
        tilewise.matmul(a, b, c=c, out=apart)
    rows = uniform(16, 8)
    check(tilewise.matmul(rows[0::2], b, out=rows[1::2]), product(rows[0::2], b), 8)


def test_orders_and_schedules_are_accepted_on_the_cpu():
    check(tilewise.matmul(X, Y, order="grouped:8", schedule="persistent"), product(X, Y), 4)


def test_batch_invariant_rows_are_the_same_in_every_product():
    a, b = uniform(70, 300), uniform(300, 33)
    whole = tilewise.matmul(a, b, batch_invariant=True)
    check(whole, product(a, b), 300)
    for first, last in ((0, 1), (5, 21), (69, 70)):
        part = tilewise.matmul(a[first:last], b, batch_invariant=True)
        assert part.tobytes() == whole[first:last].tobytes()
