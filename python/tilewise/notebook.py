"""The benchmark, the picture of a tile order, and the model of L2, for a notebook."""

import json
import sys
import warnings
from typing import Any

from . import _tilewise


def _options(options: dict[str, Any]) -> list[str]:
    """The keyword arguments as options of the program: `no_peers=True` is `--no-peers`."""
    words = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not None and value is not False:
            values = value if isinstance(value, (list, tuple)) else [value]
            words.append(f"{flag}={','.join(str(one) for one in values)}")
    return words


def bench(**options: Any) -> list[dict[str, Any]]:
    """The rows of `cargo xtask bench`, one dictionary for each candidate and regime.

    The options are those of the program, with underscores: ``bench(shapes=["4096x4096x4096"],
    dtypes="bf16", orders=["row", "grouped:8"], no_peers=True)``. `tilewise-bench bench --help`
    lists them.

    Without a GPU, a warning says so. The rows then are those of the model for an H200 (their
    `status` is "modelled", and they have no times) and those of the CPU device.

    Raises ValueError for options that the program refuses.
    """
    # The environment that has Triton and cuBLASLt, if any has, is most likely this one.
    options.setdefault("python", sys.executable)
    found = json.loads(_tilewise.bench(_options(options)))
    if found["no_gpu"]:
        warnings.warn(
            f"no GPU was measured: {found['no_gpu']}; the rows are of the model and of the CPU",
            stacklevel=2,
        )
    return found["rows"]


class Figure(str):
    """An SVG, which a notebook shows as a picture."""

    def _repr_svg_(self) -> str:
        return str(self)


def order_figure(**options: Any) -> Figure:
    """The tiles of C in the order in which they run, coloured by wave, as SVG.

    The options are those of `cargo xtask order`: ``order_figure(shape=4096, tile="128x256",
    order="grouped:8", gpu="h200")``.

    Raises ValueError for options that the program refuses.
    """
    return Figure(_tilewise.order_figure(_options(options)))


def traffic(**options: Any) -> dict[str, Any]:
    """What the model of L2 says of a tile order: hit rate, bytes from L2 and DRAM, a bound on
    the time. The options are those of `order_figure`, and `dtype`.

    Raises ValueError for options that the program refuses.
    """
    return json.loads(_tilewise.traffic(_options(options)))
