"""Says at the end how many products were compared: a test compares many."""

import sys


def pytest_terminal_summary(terminalreporter):
    reference = sys.modules.get("reference")
    if reference is not None and reference.CHECKED:
        terminalreporter.write_line(f"{reference.CHECKED} products compared with float64")
