"""GEMM for NVIDIA GPUs in pure Rust, kernels included, for PyTorch, NumPy and DLPack.

matmul(a, b, ...)     act(alpha · row_scale · col_scale · (a @ b) + beta · c + bias), in one launch
Linear                a torch.nn.Module with bias and activation fused
bench(...)            the rows of `cargo xtask bench`
order_figure(...)     the picture of a tile order
traffic(...)          what the model of L2 says of a tile order
"""

import sys
from typing import TYPE_CHECKING, Any

from . import _compile
from ._tilewise import __version__, matmul
from .notebook import bench, order_figure, traffic

if TYPE_CHECKING:
    from .linear import Linear

__all__ = ["Linear", "__version__", "bench", "matmul", "order_figure", "traffic"]

_compile.install()
# Defines torch.ops.tilewise.matmul. PyTorch itself is imported by the program, or not at all.
if "torch" in sys.modules:
    from . import _torch as _torch


def __getattr__(name: str) -> Any:
    if name == "Linear":
        from .linear import Linear

        return Linear
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
