"""Tells `torch.compile` that `tilewise.matmul` stands for its operator.

Dynamo cannot look into a function of a C extension. It takes a long time to import, so that
nothing here imports it: this waits until the program does.
"""

import importlib.util
import sys
from importlib.abc import MetaPathFinder

from . import _tilewise

_DYNAMO = "torch._dynamo"


def register() -> None:
    """Replaces `tilewise.matmul` within compiled functions."""
    import torch

    from . import _torch

    torch.compiler.substitute_in_graph(_tilewise.matmul, skip_signature_check=True)(_torch.matmul)


class _AfterDynamo(MetaPathFinder):
    """Finds nothing itself: calls `register` when the import of Dynamo is done."""

    def find_spec(self, name, path=None, target=None):
        if name != _DYNAMO:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module):
                execute(module)
                register()

            spec.loader.exec_module = exec_module
        return spec


def install() -> None:
    """Registers now if Dynamo is imported, else when it is."""
    if _DYNAMO in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _AfterDynamo())
