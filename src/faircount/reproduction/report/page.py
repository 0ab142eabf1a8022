"""The HTML of the report: one page that needs nothing but itself.

Pictures are inside the page; it has no script, and loads no font or style sheet. Enlarging a
picture and the cards of narrow screens are done in CSS.
"""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from faircount.reproduction.studies.judging import AGREES, DIFFERS, UNDECIDED, Verdict
from faircount.reproduction.studies.study import Value

# Fonts are those of the machine: a web font would make the page depend on a server.
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
th, td {
  text-align: left; padding: .3rem .5rem; border-bottom: 1px solid #ddd; vertical-align: top;
}
th { background: #f3f3f3; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
caption { text-align: left; font-size: .85rem; color: #444; padding-bottom: .3rem; }
.badge {
  font-size: .75rem; font-weight: bold; padding: .1rem .45rem; border-radius: .7rem;
  white-space: nowrap;
}
.agrees, .passed { background: #d5efe6; color: #00543d; }
.differs { background: #fbe0cf; color: #7a3300; }
.failed { background: #b00020; color: #fff; }
.undecided { background: #e8e8e8; color: #333; }
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
  .cards tr {
    border: 1px solid #ccc; border-radius: .4rem; margin: .6rem 0; padding: .3rem .5rem;
  }
  .cards td {
    border: 0; padding: .15rem 0; font-size: .9rem; text-align: left; white-space: normal;
  }
  .cards td:empty { display: none; }
  .cards td::before {
    content: attr(data-head) ": "; font: bold .78rem Arial, sans-serif; color: #555;
  }
}
@media print {
  body { max-width: none; font-size: 11px; }
  h2 { break-before: page; }
  figure, tr { break-inside: avoid; }
}
"""

# Names that are written out in the texts, and the letters that the page shows for them.
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
# Whole names only: "alphabet" keeps its letters.
_LETTER = re.compile(r"(?<![A-Za-z])(" + "|".join(_LETTERS) + r")(?![A-Za-z])")
# 1e-07 becomes 1e-7.
_EXPONENT = re.compile(r"(\de)([+-])0+(\d)")

_CLASSES = {AGREES: "agrees", DIFFERS: "differs", UNDECIDED: "undecided"}


def render_page(title: str, parts: Iterable[str]) -> str:
    """The whole document."""
    body = "\n".join(parts)
    heading = escape(title)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{heading}</title>\n<style>{CSS}</style>\n</head>\n"
        f"<body>\n<h1>{heading}</h1>\n{body}\n</body>\n</html>\n"
    )


def typeset(text: str) -> str:
    """Text escaped for HTML, with Greek letters, plus-minus signs and short exponents."""
    greek = _LETTER.sub(lambda match: _LETTERS[match[1]], text).replace("+-", "±")
    return escape(_EXPONENT.sub(r"\1\2\3", greek))


def render_heading(text: str, anchor: str, level: int = 2) -> str:
    """A heading that can be linked to."""
    return f'<h{level} id="{escape(anchor)}">{typeset(text)}</h{level}>'


def render_paragraph(text: str, lead: str = "") -> str:
    """A paragraph; `lead` is its bold beginning."""
    start = f"<strong>{typeset(lead)}</strong> " if lead else ""
    return f"<p>{start}{typeset(text)}</p>"


def render_links(targets: Mapping[str, str]) -> str:
    """A line of links within the page, from anchors to their texts."""
    links = [f'<a href="#{escape(anchor)}">{escape(text)}</a>' for anchor, text in targets.items()]
    return f"<nav>{' '.join(links)}</nav>"


def render_figure(path: Path, caption: str, description: str) -> str:
    """A PNG inside the page: a click enlarges it, and a link beside it makes it small again."""
    data = base64.b64encode(path.read_bytes()).decode()
    anchor = f"large-{path.stem}"
    image = f'<img alt="{typeset(description)}" src="data:image/png;base64,{data}">'
    # The link targets the figure itself, which the style sheet then shows at full size.
    link = f'<a class="zoom" href="#{anchor}" title="make it larger">{image}</a>'
    back = f'<a class="fit" href="#{escape(path.stem)}">back to the width of the page</a>'
    below = f"<figcaption>{typeset(caption)} Click or tap to enlarge. {back}</figcaption>"
    return f'<figure id="{anchor}"><div class="pan">{link}</div>{below}</figure>'


def render_banner(text: str, *, passed: bool) -> str:
    """A line at the top that cannot be overlooked."""
    kind = "passed" if passed else "failed"
    return f'<p class="banner {kind}"><strong>{typeset(text)}</strong></p>'


def render_edition(parts: Iterable[str]) -> str:
    """A part that is not in the paper, set apart."""
    return f'<div class="edition">{"".join(parts)}</div>'


def render_badge(verdict: str) -> str:
    """A verdict as a coloured word."""
    return f'<span class="badge {_CLASSES[verdict]}">{escape(verdict)}</span>'


def render_tally(counts: Mapping[str, int]) -> str:
    """How many claims have each verdict."""
    badges = [f"{render_badge(name)} {count}" for name, count in counts.items()]
    return f"<p>{' '.join(badges)}</p>"


def render_verdicts(verdicts: Sequence[Verdict], caption: str) -> str:
    """A table with one row for every claim."""
    headings = ("where", "the paper says", "printed", "here", "verdict", "decided by", "why")
    rows = []
    for verdict in verdicts:
        texts = (
            escape(verdict.place),
            typeset(verdict.claim),
            typeset(verdict.printed),
            typeset(verdict.ours),
            render_badge(verdict.verdict),
            escape(verdict.decided_by),
            typeset(verdict.why),
        )
        rows.append(map(_render_cell, texts, headings))
    return _render_rows(headings, rows, caption, "cards")


def render_table(
    records: Sequence[Mapping[str, Value]],
    columns: Mapping[str, str],
    caption: str,
    *,
    cards: bool = False,
) -> str:
    """A table of records with the named columns and their headings.

    Numbers are shown to four digits. On a narrow screen the table scrolls sideways, or with `cards`
    every row becomes a small card.
    """
    rows = []
    for record in records:
        cells = []
        for name, heading in columns.items():
            cells.append(_render_value(record.get(name, ""), heading))
        rows.append(cells)
    return _render_rows(columns.values(), rows, caption, "cards" if cards else "scroll")


def _render_rows(
    headings: Iterable[str], rows: Iterable[Iterable[str]], caption: str, kind: str
) -> str:
    head = "".join(f'<th scope="col">{escape(heading)}</th>' for heading in headings)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<div class="{kind}"><table><caption>{typeset(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _render_cell(content: str, heading: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    # Cards have no heading row; the style sheet repeats the heading in front of every value.
    return f'<td{style} data-head="{escape(heading)}">{content}</td>'


def _render_value(value: Value, heading: str) -> str:
    if isinstance(value, str):
        return _render_cell(typeset(value), heading)
    # Beyond 10^12 all digits of a whole number would be more than anybody reads.
    if float(value).is_integer() and abs(value) < 1e12:
        return _render_cell(f"{value:,.0f}", heading, "number")
    return _render_cell(typeset(f"{value:.4g}"), heading, "number")
