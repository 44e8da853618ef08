"""`tilewise.Linear`: a linear layer of PyTorch in one launch."""

from typing import Any

import torch
from torch import Tensor

from . import _torch
from ._tilewise import matmul


class Linear(torch.nn.Linear):
    """act(x · weightᵀ + bias), with bias and activation fused into the product.

    As `torch.nn.Linear`, whose weight (out_features, in_features), bias and initialisation it
    has; `x` is (..., in_features). `activation` is that of `tilewise.matmul`. With `gated`, the
    rows of the weight are gates and ups ("halves" or "interleaved"), and the output has
    out_features / 2 columns. With `batch_invariant`, the bits of a row of the output do not depend
    on the other rows, nor on how many there are.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        activation: _torch.Activation = None,
        gated: str | None = None,
        batch_invariant: bool = False,
    ) -> None:
        super().__init__(in_features, out_features, bias, device, dtype)
        if gated is not None and out_features % 2:
            raise ValueError(f"out_features is {out_features}; accepted with gated: even numbers")
        self.activation = activation
        self.gated = gated
        self.batch_invariant = batch_invariant

    @classmethod
    def from_linear(
        cls,
        linear: torch.nn.Linear,
        *,
        activation: _torch.Activation = None,
        gated: str | None = None,
        batch_invariant: bool = False,
    ) -> "Linear":
        """A layer with the parameters of `linear`, which both then share."""
        layer = cls(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            "meta",
            linear.weight.dtype,
            activation=activation,
            gated=gated,
            batch_invariant=batch_invariant,
        )
        layer.weight, layer.bias = linear.weight, linear.bias
        return layer

    def forward(self, x: Tensor) -> Tensor:
        batched = x if x.dim() in (2, 3) else x.reshape(-1, x.shape[-1])
        y = matmul(
            batched,
            self.weight.t(),
            bias=self.bias,
            activation=self.activation,
            gated=self.gated,
            batch_invariant=self.batch_invariant,
        )
        return y if batched is x else y.reshape(*x.shape[:-1], y.shape[-1])

    def extra_repr(self) -> str:
        return (
            f"{super().extra_repr()}, activation={self.activation!r}, gated={self.gated!r}, "
            f"batch_invariant={self.batch_invariant!r}"
        )
