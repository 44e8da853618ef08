"""The operator `torch.ops.tilewise.matmul`: its kernel, its shapes and its gradients.

`tilewise.matmul` comes here only where PyTorch must know of the call: when a gradient is
recorded, within `torch.compile`, and for subclasses of `torch.Tensor`.
"""

from typing import Any

import torch
from torch import Tensor

from . import _tilewise

Activation = str | tuple[str, float] | None

# PyTorch's slope of leaky ReLU.
_SLOPE = 0.01

# The forced kernel is `entry_point` here: TorchInductor has a parameter `kernel` of its own.
torch.library.define(
    "tilewise::matmul",
    "(Tensor a, Tensor b, Tensor? c=None, float alpha=1.0, float? beta=None, Tensor? bias=None, "
    "Tensor? row_scale=None, Tensor? col_scale=None, str? activation=None, float slope=0.01, "
    "str? gated=None, ScalarType? out_dtype=None, str? order=None, str? schedule=None, "
    "str? entry_point=None, str? precision=None, bool batch_invariant=False) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)


@torch.library.impl("tilewise::matmul", ("cpu", "cuda"))
def _kernel(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    bias: Tensor | None = None,
    row_scale: Tensor | None = None,
    col_scale: Tensor | None = None,
    activation: str | None = None,
    slope: float = _SLOPE,
    gated: str | None = None,
    out_dtype: torch.dtype | None = None,
    order: str | None = None,
    schedule: str | None = None,
    entry_point: str | None = None,
    precision: str | None = None,
    batch_invariant: bool = False,
) -> Tensor:
    return _tilewise.matmul(
        a,
        b,
        c=c,
        alpha=alpha,
        beta=beta,
        bias=bias,
        row_scale=row_scale,
        col_scale=col_scale,
        activation=(activation, slope) if activation == "leaky_relu" else activation,
        gated=gated,
        out_dtype=out_dtype,
        order=order,
        schedule=schedule,
        kernel=entry_point,
        precision=precision,
        batch_invariant=batch_invariant,
    )


@torch.library.register_fake("tilewise::matmul")
def _fake(a, b, c=None, *options, **named):
    out_dtype = options[8] if len(options) > 8 else named.get("out_dtype")
    gated = options[7] if len(options) > 7 else named.get("gated")
    torch._check(a.dim() in (2, 3) and b.dim() in (2, 3), lambda: "a and b must be of rank 2 or 3")
    torch._check(
        a.shape[-1] == b.shape[-2],
        lambda: (
            f"a is {list(a.shape)} and b is {list(b.shape)}; accepted: as many columns of a "
            "as rows of b"
        ),
    )
    columns = b.shape[-1] if gated is None else b.shape[-1] // 2
    batches = [tensor.shape[0] for tensor in (a, b) if tensor.dim() == 3]
    if len(batches) == 2 and batches[0] == 1:
        batches = batches[1:]
    return a.new_empty((*batches[:1], a.shape[-2], columns), dtype=out_dtype or a.dtype)


def matmul(
    a: Tensor,
    b: Tensor,
    *,
    c: Tensor | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    bias: Tensor | None = None,
    row_scale: Tensor | None = None,
    col_scale: Tensor | None = None,
    activation: Activation = None,
    gated: str | None = None,
    out: Tensor | None = None,
    out_dtype: None | str | torch.dtype = None,
    order: str | None = None,
    schedule: str | None = None,
    kernel: str | None = None,
    precision: str | None = None,
    batch_invariant: bool = False,
    stream: Any = None,
) -> Tensor:
    """`tilewise.matmul` by the operator.

    Where a gradient is recorded, an activation whose derivative needs its argument is not
    fused: the argument is the product's result, which the gradient keeps, and PyTorch applies
    the activation and differentiates it.
    """
    if stream is not None:
        raise ValueError("stream is given; accepted for gradients and torch.compile: None")
    if out is not None:
        raise RuntimeError("out is given; accepted for gradients and torch.compile: None")
    slope = _SLOPE
    if isinstance(activation, (tuple, list)):
        activation, slope = activation
    if isinstance(out_dtype, str):
        out_dtype = getattr(torch, out_dtype)
    operands = (a, b, c, bias, row_scale, col_scale)
    unfused = (
        torch.is_grad_enabled()
        and any(operand is not None and operand.requires_grad for operand in operands)
        and not _is_known_from_result(activation, slope, gated)
    )
    result = torch.ops.tilewise.matmul(
        a,
        b,
        c,
        alpha,
        beta,
        bias,
        row_scale,
        col_scale,
        None if unfused else activation,
        slope,
        None if unfused else gated,
        out_dtype,
        order,
        schedule,
        kernel,
        precision,
        batch_invariant,
    )
    return _activate(result, activation, slope, gated) if unfused else result


def _is_known_from_result(activation: str | None, slope: float, gated: str | None) -> bool:
    """Whether the derivative of the activation follows from the sign of its result."""
    if gated is not None:
        return False
    return activation in (None, "relu") or (activation == "leaky_relu" and slope >= 0.0)


def _activate(z: Tensor, activation: str | None, slope: float, gated: str | None) -> Tensor:
    """The activation by PyTorch's own operators."""
    up = None
    if gated == "halves":
        z, up = z.chunk(2, dim=-1)
    elif gated == "interleaved":
        z, up = z[..., 0::2], z[..., 1::2]
    functional = torch.nn.functional
    if activation == "relu":
        z = functional.relu(z)
    elif activation == "leaky_relu":
        z = functional.leaky_relu(z, slope)
    elif activation == "gelu":
        z = functional.gelu(z)
    elif activation == "gelu_tanh":
        z = functional.gelu(z, approximate="tanh")
    elif activation == "silu":
        z = functional.silu(z)
    elif activation is not None:
        raise ValueError(
            f"activation is {activation!r}; accepted: None, 'relu', 'leaky_relu', "
            "('leaky_relu', slope), 'gelu', 'gelu_tanh', 'silu'"
        )
    return z if up is None else z * up


# The defaults of all arguments but a and b.
_DEFAULTS = (None, 1.0, *[None] * 5, _SLOPE, *[None] * 6, False)


def _setup_context(ctx, inputs, output) -> None:
    # The dispatcher drops trailing arguments that have their defaults.
    inputs = (*inputs, *_DEFAULTS[len(inputs) - 2 :])
    a, b, _, alpha, beta, bias, row_scale, col_scale, activation, slope, gated, *rest = inputs
    if not _is_known_from_result(activation, slope, gated):
        raise NotImplementedError(
            "torch.ops.tilewise.matmul has gradients for activation None, 'relu' and 'leaky_relu' "
            "without gated; tilewise.matmul has them for all"
        )
    ctx.save_for_backward(a, b, row_scale, col_scale, None if activation is None else output)
    ctx.alpha, ctx.slope = alpha, slope if activation == "leaky_relu" else 0.0
    ctx.beta = 1.0 if beta is None else beta
    ctx.bias = None if bias is None else (bias.shape, bias.dtype)
    ctx.row_scale_shape = None if row_scale is None else row_scale.shape
    ctx.col_scale_shape = None if col_scale is None else col_scale.shape
    ctx.arithmetic = {"precision": rest[-2], "batch_invariant": rest[-1]}


def _backward(ctx, grad: Tensor):
    a, b, row_scale, col_scale, output = ctx.saved_tensors
    # The gradient of what the activation is applied to.
    dz = grad if output is None else torch.where(output > 0, grad, grad * ctx.slope)
    row = None if row_scale is None else row_scale.reshape(-1, 1)
    col = None if col_scale is None else col_scale.reshape(1, -1)
    count = len(ctx.needs_input_grad)
    wants = (*ctx.needs_input_grad, *[False] * 8)[:8]
    wants_a, wants_b, wants_c, _, _, wants_bias, wants_row, wants_col = wants

    grads: list[Tensor | None] = [None] * 8
    if wants_a or wants_b:
        # The gradient of alpha · (a @ b).
        scaled = dz
        for scale in (row, col):
            scaled = scaled if scale is None else scaled * scale
        scaled = scaled.to(a.dtype)
        if wants_a:
            grads[0] = _product(ctx, scaled, b.mT, a)
        if wants_b:
            grads[1] = _product(ctx, a.mT, scaled, b)
    if wants_c:
        grads[2] = dz * ctx.beta
    if wants_bias:
        grads[5] = _sum_to(dz, *ctx.bias)
    if wants_row or wants_col:
        product = ctx.alpha * _op(a, b, out_dtype=torch.float32, **ctx.arithmetic) * dz
        if wants_row:
            along_row = product if col is None else product * col
            grads[6] = _sum_columns(along_row).reshape(ctx.row_scale_shape)
        if wants_col:
            along_col = product if row is None else product * row
            grads[7] = _sum_rows(along_col).reshape(ctx.col_scale_shape)
    return tuple((*grads, *[None] * count)[:count])


def _op(a: Tensor, b: Tensor, **options) -> Tensor:
    return torch.ops.tilewise.matmul(a, b, **options)


def _product(ctx, a: Tensor, b: Tensor, like: Tensor) -> Tensor:
    """alpha · (a @ b), summed over the batches that share `like`."""
    options = {"alpha": ctx.alpha, **ctx.arithmetic}
    if max(a.dim(), b.dim()) == 2:
        return _op(a, b, **options)
    batches = max(tensor.shape[0] for tensor in (a, b) if tensor.dim() == 3)
    if like.dim() == 3 and like.shape[0] == batches:
        return _op(a, b, **options)
    # One of the two forward operands was shared. The batches side by side are one long sum,
    # which is accumulated in f32.
    length = batches * a.shape[-1]
    a = a.transpose(0, 1).reshape(a.shape[1], length)
    return _op(a, b.reshape(length, b.shape[-1]), **options).reshape(like.shape)


def _sum_rows(dz: Tensor) -> Tensor:
    return dz.sum(tuple(range(dz.dim() - 1)), dtype=torch.float32)


def _sum_columns(dz: Tensor) -> Tensor:
    return dz.sum((0, -1) if dz.dim() == 3 else -1, dtype=torch.float32)


def _sum_to(dz: Tensor, shape: torch.Size, dtype: torch.dtype) -> Tensor:
    """The sum over what a bias of `shape` is repeated along."""
    per_row = len(shape) == 2 and shape[1] == 1 and dz.shape[-1] != 1
    summed = _sum_columns(dz) if per_row else _sum_rows(dz)
    return summed.reshape(shape).to(dtype)


torch.library.register_autograd("tilewise::matmul", _backward, setup_context=_setup_context)
