"""The native module."""

from typing import Any

__version__: str

def matmul(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    bias: Any = None,
    row_scale: Any = None,
    col_scale: Any = None,
    activation: str | tuple[str, float] | None = None,
    gated: str | None = None,
    out: Any = None,
    out_dtype: Any = None,
    order: str | None = None,
    schedule: str | None = None,
    kernel: str | None = None,
    precision: str | None = None,
    batch_invariant: bool = False,
    stream: Any = None,
) -> Any: ...
def time_plan(a: Any, b: Any, out: Any, calls: int) -> float: ...
def bench(options: list[str]) -> str: ...
def order_figure(options: list[str]) -> str: ...
def traffic(options: list[str]) -> str: ...
