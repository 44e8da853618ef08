"""Tensors of PyTorch on the CPU device. Skipped where PyTorch is not installed."""

import sys

import pytest

torch = pytest.importorskip("torch")

from torch_suite import TorchSuite

import tilewise


class TestOnTheCpu(TorchSuite):
    device = "cpu"


def test_torch_is_not_imported():
    import subprocess

    program = "import sys, tilewise; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_devices_are_not_mixed():
    if torch.cuda.is_available():
        pytest.skip("test_gpu.py mixes devices")
    meta = torch.empty(3, 4, device="meta")
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        tilewise.matmul(meta, torch.ones(4, 5))
