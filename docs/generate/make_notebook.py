"""Writes docs/tutorials/first-histogram.ipynb, the page docs/tutorials/first-histogram.md as a
notebook, every cell run. `--check` fails if it is out of date.
"""

import json
from typing import Any

from cells import Output, between, execute, sources
from page import DOCS, write

ABOUT = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def notebook(page: str) -> dict[str, Any]:
    """The page in the format of Jupyter, version 4.5."""
    words, code = between(page), sources(page)
    cells: list[dict[str, Any]] = []
    for place, (source, output) in enumerate(zip(code, execute(code), strict=True), start=1):
        cells += [_words(words[place - 1])] if words[place - 1] else []
        cells.append(_code(source, output, place))
    cells += [_words(words[-1])] if words[-1] else []
    numbered = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells)]
    return {"cells": numbered, "metadata": ABOUT, "nbformat": 4, "nbformat_minor": 5}


def _words(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text.splitlines(keepends=True)}


def _code(source: str, output: Output, place: int) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "execution_count": place,
        "metadata": {},
        "outputs": outputs(output, place),
    }
    return {**cell, "source": source.rstrip("\n").splitlines(keepends=True)}


def outputs(output: Output, place: int) -> list[dict[str, Any]]:
    """What a cell shows, as Jupyter stores it."""
    found: list[dict[str, Any]] = []
    if output.printed:
        found.append(
            {
                "name": "stdout",
                "output_type": "stream",
                "text": output.printed.splitlines(keepends=True),
            }
        )
    if output.value:
        data = {"text/plain": output.value.splitlines(keepends=True)}
        data |= {"text/html": output.html.splitlines(keepends=True)} if output.html else {}
        found.append(
            {
                "data": data,
                "execution_count": place,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return found


if __name__ == "__main__":
    page = (DOCS / "tutorials" / "first-histogram.md").read_text(encoding="utf-8")
    write(
        "tutorials/first-histogram.ipynb",
        json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n",
    )
