"""Results as plain values for JSON and pandas, and as HTML for a notebook."""

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from faircount.core.domain import escape_controls
from faircount.core.errors import FaircountError

JSON_VERSION: dict[str, Any] = {"version": 1}
"""First entry of every JSON object.

The number grows when a key is removed or changes its meaning, not when one is added.
"""

_TEXT_STYLE = "text-align:left;padding:2px 10px"
_NUMBER_STYLE = "text-align:right;padding:2px 10px;font-variant-numeric:tabular-nums"


def json_value(value: object) -> Any:
    """Return a label as JSON can hold it: numbers and booleans stay, everything else is text."""
    single = value.item() if isinstance(value, np.generic) else value
    if isinstance(single, float) and not math.isfinite(single):
        # JSON has no NaN or infinity; Python's encoder would write them, and parsers refuse them.
        return str(single)
    if single is None or isinstance(single, str | bool | int | float):
        return single
    return str(value)


def data_frame(
    columns: Mapping[str, object],
    index: Sequence[object],
    index_name: str,
    attrs: Mapping[str, object],
) -> Any:
    """Make a pandas DataFrame; `attrs` become its `frame.attrs`."""
    try:
        import pandas as pd
    except ImportError:
        raise FaircountError(
            "a data frame needs pandas: install pandas, or use to_dict()"
        ) from None
    table = pd.DataFrame(columns, index=pd.Index(list(index), name=index_name))
    table.attrs.update(attrs)
    return table


def html_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Make an HTML table: the first column is text, the others are numbers; cells are HTML."""
    top = "".join(f'<th style="{_TEXT_STYLE}">{escape_html(heading)}</th>' for heading in headings)
    styles = [_TEXT_STYLE] + [_NUMBER_STYLE] * (len(headings) - 1)
    body = ""
    for row in rows:
        pairs = zip(styles, row, strict=True)
        cells = "".join(f'<td style="{style}">{cell}</td>' for style, cell in pairs)
        body += f"<tr>{cells}</tr>"
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def html_paragraph(text: object, *, strong: bool = False) -> str:
    """Make a paragraph of plain text."""
    escaped = escape_html(text)
    return f"<p><b>{escaped}</b></p>" if strong else f"<p>{escaped}</p>"


def escape_html(text: object) -> str:
    """Escape text so that neither markup nor control characters in it have any effect."""
    return html.escape(escape_controls(text))


def html_bar(share: float) -> str:
    """Make a bar whose length is proportional to a share; 1 fills its cell."""
    width = 160 * min(max(share, 0.0), 1.0)
    return f'<div style="background:#8fb8ad;height:0.8em;width:{width:.0f}px"></div>'


def format_confidence(confidence: float) -> str:
    """Return a confidence with all its digits: 99.9% must not read as 100%."""
    return f"{100 * confidence:.10g}%"
