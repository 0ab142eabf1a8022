"""Runs the ```python blocks of a page as the cells of one session: each finds what the earlier ones
made.

What a cell prints, and the value of its last expression, goes into the ```text block right after
it.
"""

import ast
import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Output:
    """What a cell printed, and its value as text and HTML; empty where there is none."""

    printed: str = ""
    value: str = ""
    html: str = ""

    @property
    def text(self) -> str:
        """As a terminal shows it."""
        return self.printed + (f"{self.value}\n" if self.value else "")


def execute(sources: list[str]) -> list[Output]:
    """Run the cells in order in an empty folder; an error stops it, unless the cell shows the error
    itself.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        return [_run(source, names) for source in sources]


def _run(source: str, names: dict[str, Any]) -> Output:
    tree, printed = ast.parse(source), io.StringIO()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102 - our own pages
        value = None
        if last:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    quiet = value is None or source.rstrip().endswith(";")
    html = getattr(value, "_repr_html_", None)
    return (
        Output(printed.getvalue())
        if quiet
        else Output(printed.getvalue(), repr(value), html() if html else "")
    )


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def sources(page: str) -> list[str]:
    """The cells of a page."""
    return [block.group(1) for block in BLOCK.finditer(page)]


def render(page: str) -> str:
    """The page with all output made again."""
    outputs = iter(execute(sources(page)))

    def shown(block: re.Match[str]) -> str:
        text = next(outputs).text
        lines = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
        return f"```python\n{block.group(1)}```\n" + (f"\n```text\n{lines}\n```\n" if lines else "")

    return BLOCK.sub(shown, page)


def between(page: str) -> list[str]:
    """The words before each cell, and those after the last."""
    parts, end = [], 0
    for block in BLOCK.finditer(page):
        parts.append(page[end : block.start()].strip())
        end = block.end()
    return [*parts, page[end:].strip()]
