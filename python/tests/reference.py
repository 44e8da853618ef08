"""Products in float64 by PyTorch's own operators, and the error that a product may have."""

import torch

ACTIVATIONS = (None, "relu", "leaky_relu", ("leaky_relu", 0.2), "gelu", "gelu_tanh", "silu")
GATES = (None, "halves", "interleaved")

# Products compared so far.
CHECKED = 0


def activate(z, activation):
    functional = torch.nn.functional
    match activation:
        case None:
            return z
        case "relu":
            return functional.relu(z)
        case "leaky_relu":
            return functional.leaky_relu(z, 0.01)
        case ("leaky_relu", slope):
            return functional.leaky_relu(z, slope)
        case "gelu":
            return functional.gelu(z)
        case "gelu_tanh":
            return functional.gelu(z, approximate="tanh")
        case "silu":
            return functional.silu(z)
    raise AssertionError(activation)


def expected(
    a,
    b,
    *,
    c=None,
    alpha=1.0,
    beta=None,
    bias=None,
    row_scale=None,
    col_scale=None,
    activation=None,
    gated=None,
    **_,
):
    """What `tilewise.matmul` of the same arguments should be, in float64."""
    z = alpha * torch.matmul(a.double(), b.double())
    if row_scale is not None:
        z = z * row_scale.double().reshape(-1, 1)
    if col_scale is not None:
        z = z * col_scale.double().reshape(1, -1)
    if c is not None and beta != 0.0:
        z = z + (1.0 if beta is None else beta) * c.double()
    if bias is not None:
        z = z + bias.double()
    if gated is None:
        return activate(z, activation)
    half = z.shape[-1] // 2
    gate, up = (z[..., :half], z[..., half:]) if gated == "halves" else (z[..., 0::2], z[..., 1::2])
    return activate(gate, activation) * up


def check(found, wanted, depth, scale=1.0):
    """Fails unless `found` is `wanted` rounded once, but for the error of a sum of `depth`
    products of numbers up to 1, which `scale` multiplies."""
    global CHECKED
    CHECKED += 1
    assert found.shape == wanted.shape, f"{tuple(found.shape)}, expected {tuple(wanted.shape)}"
    eps = torch.finfo(found.dtype).eps
    torch.testing.assert_close(
        found.double(), wanted, rtol=eps, atol=scale * (1e-6 + depth * 2.0**-20), equal_nan=True
    )


def uniform(shape, dtype, device, generator):
    """Random numbers in [-1, 1)."""
    return (torch.rand(shape, generator=generator, device=device) * 2 - 1).to(dtype)
