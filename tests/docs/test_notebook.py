"""The notebook's code cells run, and show what the notebook holds; the page is the same session."""

import json
from pathlib import Path

import cells
import make_notebook
import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOK = json.loads((DOCS / "tutorials" / "first-histogram.ipynb").read_text(encoding="utf-8"))


def test_the_notebook_runs_and_shows_what_it_holds() -> None:
    code = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 8
    made = cells.execute(["".join(cell["source"]) for cell in code])
    for place, (cell, output) in enumerate(zip(code, made, strict=True), start=1):
        assert cell["outputs"] == make_notebook.outputs(output, place)


def test_the_notebook_shows_a_table_with_bars_and_the_promise() -> None:
    shown = [
        out["data"]
        for cell in NOTEBOOK["cells"]
        for out in cell.get("outputs", [])
        if "data" in out
    ]
    tables = ["".join(data["text/html"]) for data in shown if "text/html" in data]
    assert any("Privacy:" in table and "background:" in table for table in tables)


def test_cells_share_one_session_and_an_error_stops_it() -> None:
    first, second = cells.execute(["a = 6\nprint('x')", "a * 7"])
    assert (first.text, second.text) == ("x\n", "42\n")
    with pytest.raises(ZeroDivisionError):
        cells.execute(["1 / 0"])


def test_a_difference_is_noticed() -> None:
    page = "Words.\n\n```python\n1 + 1\n```\n\n```text\n3\n```\n\nMore.\n"
    assert cells.render(page) == page.replace("3", "2")
    assert cells.between(page) == ["Words.", "More."]
