"""Results as plain values: for JSON, for pandas and for a notebook."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from faircount.core.domain import shown
from faircount.core.errors import FaircountError

JSON_VERSION: dict[str, Any] = {"version": 1}
"""Begins every JSON object; the number grows when a key is removed or changes its meaning, not when one is added."""

HEAD = "text-align:left;padding:2px 10px"
CELL = "text-align:right;padding:2px 10px;font-variant-numeric:tabular-nums"


def plain(value: object) -> Any:
    """A label as JSON has it: numbers and truth values stay what they are, everything else is text."""
    single = value.item() if isinstance(value, np.generic) else value
    if isinstance(single, float):
        return single if math.isfinite(single) else str(single)
    return single if single is None or isinstance(single, str | bool | int) else str(value)


def frame(columns: Mapping[str, object], index: Sequence[object], named: str, about: Mapping[str, object]) -> Any:
    """A pandas DataFrame; `about` goes to its `attrs`."""
    try:
        import pandas as pd
    except ImportError:
        raise FaircountError("a data frame needs pandas: install pandas, or use to_dict()") from None
    made = pd.DataFrame(columns, index=pd.Index(list(index), name=named))
    made.attrs.update(about)
    return made


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """An HTML table, first column to the left; cells are HTML already."""
    top = "".join(f'<th style="{HEAD}">{text(each)}</th>' for each in heads)
    styles = (HEAD, *([CELL] * (len(heads) - 1)))
    lines = ("".join(f'<td style="{s}">{c}</td>' for s, c in zip(styles, row, strict=True)) for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(f'<tr>{each}</tr>' for each in lines)}</tbody></table>"


def paragraph(words: object, *, strong: bool = False) -> str:
    """A paragraph of plain text."""
    return f"<p><b>{text(words)}</b></p>" if strong else f"<p>{text(words)}</p>"


def text(words: object) -> str:
    """Text as it stands in a page: nothing in it is obeyed."""
    return html.escape(shown(words))


def bar(share: float) -> str:
    """A bar, so long that 1 fills its cell."""
    width = 160 * min(max(share, 0.0), 1.0)
    return f'<div style="background:#8fb8ad;height:0.8em;width:{width:.0f}px"></div>'
