"""One HTML page that needs nothing but itself: pictures are inside, no script, no font or style from elsewhere."""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from faircount.experiments.studies.judging import AGREES, CANNOT, DIFFERS, Verdict
from faircount.experiments.studies.study import Value

CSS = """
:root { color-scheme: light; }
body {
  font: 16px/1.5 Georgia, 'Times New Roman', serif; color: #1a1a1a;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
h1, h2, h3, th, .badge, figcaption, nav { font-family: 'Helvetica Neue', Arial, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; }
h2 { font-size: 1.3rem; margin-top: 3rem; border-bottom: 2px solid #0072B2; }
h3 { font-size: 1.05rem; margin-top: 2rem; }
figure { margin: 1.5rem 0; }
figure img { width: 100%; height: auto; }
figcaption { font-size: .85rem; color: #444; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; width: 100%; margin: .8rem 0; }
th, td { text-align: left; padding: .3rem .5rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th { background: #f3f3f3; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
caption { text-align: left; font-size: .85rem; color: #444; padding-bottom: .3rem; }
.badge { font-size: .75rem; font-weight: bold; padding: .1rem .45rem; border-radius: .7rem; white-space: nowrap; }
.agrees { background: #d5efe6; color: #00543d; }
.differs { background: #fbe0cf; color: #7a3300; }
.cannot { background: #e8e8e8; color: #333; }
nav a { margin-right: 1rem; white-space: nowrap; }
.edition { border-left: 4px solid #E69F00; padding-left: 1rem; }
@media print {
  body { max-width: none; font-size: 11px; }
  h2 { break-before: page; }
  figure, tr { break-inside: avoid; }
}
"""

_LETTERS = {
    "epsilon": "ε",
    "delta": "δ",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "sigma": "σ",
    "p_chi": "p_χ",
    "psi_i": "ψ_i",
    "psihat_i": "ψ̂_i",
}
_WORD = re.compile(r"(?<![A-Za-z])(" + "|".join(_LETTERS) + r")(?![A-Za-z])")

_CLASS = {AGREES: "agrees", DIFFERS: "differs", CANNOT: "cannot"}


def page(title: str, parts: Iterable[str]) -> str:
    """The whole document."""
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def typeset(text: str) -> str:
    """Escaped for HTML, with Greek letters for their names and a proper plus-minus; exponents lose leading zeros."""
    greek = _WORD.sub(lambda found: _LETTERS[found[1]], text).replace("+-", "±")
    return escape(re.sub(r"(\de)([+-])0+(\d)", r"\1\2\3", greek))


def heading(text: str, anchor: str, level: int = 2) -> str:
    """A heading that can be linked to."""
    return f'<h{level} id="{escape(anchor)}">{typeset(text)}</h{level}>'


def paragraph(text: str, lead: str = "") -> str:
    """A paragraph, with a bold beginning if there is one."""
    start = f"<strong>{typeset(lead)}</strong> " if lead else ""
    return f"<p>{start}{typeset(text)}</p>"


def links(targets: Mapping[str, str]) -> str:
    """A line of links within the page: anchor to words."""
    items = " ".join(f'<a href="#{escape(anchor)}">{escape(words)}</a>' for anchor, words in targets.items())
    return f"<nav>{items}</nav>"


def figure(path: Path, caption: str, description: str) -> str:
    """A PNG put into the page."""
    data = base64.b64encode(path.read_bytes()).decode()
    image = f'<img alt="{typeset(description)}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}<figcaption>{typeset(caption)}</figcaption></figure>"


def edition(parts: Iterable[str]) -> str:
    """A part that is not in the paper, set apart."""
    return f'<div class="edition">{"".join(parts)}</div>'


def badge(verdict: str) -> str:
    """A verdict as a coloured word."""
    return f'<span class="badge {_CLASS[verdict]}">{escape(verdict)}</span>'


def tally_line(counts: Mapping[str, int]) -> str:
    """How many of each verdict."""
    return "<p>" + " ".join(f"{badge(name)} {count}" for name, count in counts.items()) + "</p>"


def verdict_table(judged: Sequence[Verdict], caption: str) -> str:
    """One row per claim."""
    rows = "".join(
        f"<tr><td>{escape(each.place)}</td><td>{typeset(each.claim)}</td><td>{typeset(each.printed)}</td><td>{typeset(each.ours)}</td><td>{badge(each.verdict)}</td><td>{typeset(each.why)}</td></tr>"
        for each in judged
    )
    return _table(("where", "the paper says", "printed", "here", "verdict", "why"), rows, caption)


def table(records: Sequence[Mapping[str, Value]], columns: Mapping[str, str], caption: str) -> str:
    """Records with the named columns and their headings; numbers are shown to four digits."""
    rows = "".join(f"<tr>{''.join(_cell(record.get(name, '')) for name in columns)}</tr>" for record in records)
    return _table(columns.values(), rows, caption)


def _table(headings: Iterable[str], rows: str, caption: str) -> str:
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in headings)
    return (
        f'<div class="scroll"><table><caption>{typeset(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _cell(value: Value) -> str:
    if isinstance(value, str):
        return f"<td>{typeset(value)}</td>"
    whole = float(value).is_integer() and abs(value) < 1e12
    return f'<td class="number">{value:,.0f}</td>' if whole else f'<td class="number">{typeset(f"{value:.4g}")}</td>'
