"""The benchmark, the figure and the model, and the notebook that uses them."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

import tilewise


def test_rows_without_a_gpu_say_so():
    with pytest.warns(UserWarning, match="no GPU was measured"):
        rows = tilewise.bench(shapes=["96x64x32"], device="cpu", smoke=True, no_peers=True)
    modelled = [row for row in rows if row["status"] == "modelled"]
    timed = [row for row in rows if row["status"] == "timed"]
    assert {row["order"] for row in modelled} >= {"row"}
    assert all(row["median_ms"] is None for row in modelled)
    assert timed and all(row["median_ms"] > 0 for row in timed)
    assert {(row["m"], row["n"], row["k"]) for row in rows} == {(96, 64, 32)}


def test_the_figure_is_an_svg_with_a_square_for_each_tile():
    figure = tilewise.order_figure(shape=1024, tile="128x256", order="grouped:2")
    root = ElementTree.fromstring(figure._repr_svg_())
    name = "{http://www.w3.org/2000/svg}rect"
    tiles = [rect for rect in root.iter(name) if rect.get("class").startswith("tile")]
    assert len(tiles) == 8 * 4


def test_grouped_order_reads_less_from_dram_than_row_major():
    row, grouped = (tilewise.traffic(shape=8192, order=order) for order in ("row", "grouped:8"))
    assert grouped["dram_read_bytes"] < row["dram_read_bytes"]
    assert grouped["order"] == "grouped:8" and row["gpu"] == "h200"


@pytest.mark.parametrize("function", [tilewise.bench, tilewise.order_figure, tilewise.traffic])
def test_what_the_program_refuses_is_an_error(function):
    with pytest.raises(ValueError, match="--order|order"):
        function(order="diagonal")
    with pytest.raises(ValueError, match="accepted by"):
        function(json=True if function is not tilewise.bench else "rows.json")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(Path(__file__).parents[2] / "docs/notebook.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    pictures = [output for output in outputs if "image/svg+xml" in output.get("data", ())]
    assert len(pictures) == 2
    text = "".join(output.get("text", "") for output in outputs)
    assert "GB from DRAM" in text and "timed" in text
