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
figure a.zoom { display: block; cursor: zoom-in; }
figure .fit { display: none; font-size: .85rem; }
figure:target .pan { overflow: auto; max-height: 95vh; border: 1px solid #ccc; }
figure:target img { width: 1600px; max-width: none; }
figure:target a.zoom { cursor: default; width: 1600px; }
figure:target .fit { display: inline; }
.pan { overflow-x: auto; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .82rem; width: 100%; margin: .8rem 0; }
th, td { text-align: left; padding: .3rem .5rem; border-bottom: 1px solid #ddd; vertical-align: top; }
th { background: #f3f3f3; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
caption { text-align: left; font-size: .85rem; color: #444; padding-bottom: .3rem; }
.badge { font-size: .75rem; font-weight: bold; padding: .1rem .45rem; border-radius: .7rem; white-space: nowrap; }
.agrees, .passed { background: #d5efe6; color: #00543d; }
.differs { background: #fbe0cf; color: #7a3300; }
.failed { background: #b00020; color: #fff; }
.cannot { background: #e8e8e8; color: #333; }
.banner { padding: .7rem 1rem; border-radius: .4rem; }
nav a { margin-right: 1rem; white-space: nowrap; line-height: 1.9; }
.edition { border-left: 4px solid #E69F00; padding-left: 1rem; }
@media (max-width: 42rem) {
  body { margin: 1rem auto; padding: 0 .7rem; overflow-wrap: break-word; }
  h1 { font-size: 1.35rem; }
  .edition { padding-left: .6rem; }
  figure img { width: 46rem; max-width: none; }
  .cards table, .cards tbody, .cards tr, .cards td, .cards caption { display: block; }
  .cards thead { display: none; }
  .cards tr { border: 1px solid #ccc; border-radius: .4rem; margin: .6rem 0; padding: .3rem .5rem; }
  .cards td { border: 0; padding: .15rem 0; font-size: .9rem; text-align: left; white-space: normal; }
  .cards td:empty { display: none; }
  .cards td::before { content: attr(data-head) ": "; font: bold .78rem Arial, sans-serif; color: #555; }
}
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
    """A PNG put into the page; a click makes it large, a link beside it small again, both without a script."""
    data, anchor = base64.b64encode(path.read_bytes()).decode(), f"large-{path.stem}"
    image = f'<img alt="{typeset(description)}" src="data:image/png;base64,{data}">'
    zoom = f'<div class="pan"><a class="zoom" href="#{anchor}" title="make it larger">{image}</a></div>'
    back = f'<a class="fit" href="#{escape(path.stem)}">back to the width of the page</a>'
    below = f"<figcaption>{typeset(caption)} Click or tap to enlarge. {back}</figcaption>"
    return f'<figure id="{anchor}">{zoom}{below}</figure>'


def banner(text: str, *, passed: bool) -> str:
    """A line that cannot be overlooked."""
    return f'<p class="banner {"passed" if passed else "failed"}"><strong>{typeset(text)}</strong></p>'


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
    heads = ("where", "the paper says", "printed", "here", "verdict", "decided by", "why")
    rows = [
        [
            escape(verdict.place),
            typeset(verdict.claim),
            typeset(verdict.printed),
            typeset(verdict.ours),
            badge(verdict.verdict),
            escape(verdict.decided_by),
            typeset(verdict.why),
        ]
        for verdict in judged
    ]
    cells = [[_td(text, head) for text, head in zip(row, heads, strict=True)] for row in rows]
    return _table(heads, cells, caption, "cards")


def table(
    records: Sequence[Mapping[str, Value]], columns: Mapping[str, str], caption: str, *, cards: bool = False
) -> str:
    """Records with the named columns and their headings; numbers are shown to four digits.

    On a narrow screen the table is moved sideways, or with `cards` every row becomes a small card of its own.
    """
    cells = [[_cell(record.get(name, ""), head) for name, head in columns.items()] for record in records]
    return _table(columns.values(), cells, caption, "cards" if cards else "scroll")


def _table(headings: Iterable[str], rows: Iterable[Iterable[str]], caption: str, kind: str) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="{kind}"><table><caption>{typeset(caption)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _td(content: str, heading: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<td{style} data-head="{escape(heading)}">{content}</td>'


def _cell(value: Value, heading: str) -> str:
    if isinstance(value, str):
        return _td(typeset(value), heading)
    whole = float(value).is_integer() and abs(value) < 1e12
    return _td(f"{value:,.0f}" if whole else typeset(f"{value:.4g}"), heading, "number")
