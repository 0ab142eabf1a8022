"""Files of a combined result: the headline as of any survey, and beside it what belongs to it."""

import json
from pathlib import Path

from faircount.analysis.groups import IF_ALIKE
from faircount.core.csv_cells import write_csv
from faircount.core.files import write_durably
from faircount.core.plain import escape_html
from faircount.owner.combined_result import CombinedResult, promise_of
from faircount.owner.combined_texts import CombinedWords, Table
from faircount.owner.exports import View, check_file, export_result
from faircount.owner.folder import PUBLIC
from faircount.owner.result_page import result_page

_COLUMNS = (
    *("weights", "condition", "part", "counted", "epsilon", "number", "question"),
    *("answer", "measure", "estimate", "low", "high", "consistent"),
)
ALL = "all"


def save_combined(
    result: CombinedResult, path: Path, view: View, *, are_levels: bool = True
) -> None:
    """Write a combined result into a file, in the format of its suffix."""
    kind = check_file(path)
    if kind == "csv":
        data = combined_csv(result, view)
    elif kind == "json":
        document = result.to_dict(view.confidence, covers=view.covers)
        data = json.dumps(document, indent=2, allow_nan=False).encode() + b"\n"
    elif kind == "html":
        data = combined_page(result, view, CombinedWords(result, are_levels))
    else:
        data = export_result(result, kind, view)
    write_durably(path, data, PUBLIC)


def combined_csv(result: CombinedResult, view: View) -> bytes:
    """One row per estimate: of all together in every way, and of every part by itself."""
    rows: list[tuple[object, ...]] = []
    head = (ALL, result.included, result.requested["epsilon"])
    found = result.estimates(view.confidence, covers=view.covers)
    for number, question in enumerate(found):
        asked = (question.number, question.text)
        for row in question.estimates:
            numbers = (row.estimate, row.low, row.high, row.consistent)
            rows.append(("uwa", "", *head, *asked, row.answer, row.measure, *numbers))
        for way, weighted in result.if_alike(number).items():
            bounds = weighted.interval(view.confidence, covers=view.covers)
            columns = (weighted.estimates, bounds.low, bounds.high, weighted.consistent)
            lists = [column.tolist() for column in columns]
            for item, *numbers_of_item in zip(weighted.items, *lists, strict=True):
                # Every row says its condition, so that it survives when somebody copies rows.
                rows.append((way, IF_ALIKE, *head, *asked, item, "share", *numbers_of_item))
    for name, part in result.parts.items():
        head = (name, part.included, promise_of(part)[0])
        for question in part.estimates(view.confidence, covers=view.covers):
            for row in question.estimates:
                numbers = (row.estimate, row.low, row.high, row.consistent)
                asked = (question.number, question.text)
                rows.append(("", "", *head, *asked, row.answer, row.measure, *numbers))
    return write_csv(_COLUMNS, rows)


def combined_page(result: CombinedResult, view: View, words: CombinedWords) -> bytes:
    """The page of the headline, with a section about the parts and the weighted estimates."""
    # The unconditional estimate stands above on the page; this says which of the two to quote.
    sections = [f"<p>{escape_html(words.text('headline'))}</p>"]
    for number in range(len(result.questionnaire)):
        if len(result.questionnaire) > 1:
            sections.append(f"<h2>{escape_html(words.text('question', number=number + 1))}</h2>")
        sections += _weighted_section(number, view, words)
    sections.append(f"<h2>{escape_html(words.text('parts_heading'))}</h2>")
    sections.append(_table(words.parts()))
    sections.append(f"<p>{escape_html(words.text('public'))}</p>")
    return result_page(result, view.confidence, view.covers, sections)


def _weighted_section(number: int, view: View, words: CombinedWords) -> list[str]:
    """The weighted estimate of a question with its condition, and all ways side by side."""
    parts = []
    weighted = words.weighted_table(number, view)
    if weighted is not None:
        parts.append(f"<h2>{escape_html(words.text('if_alike'))}</h2>")
        parts.append(_table(weighted))
        parts.append(f"<p class=soft>{escape_html(words.text('ways'))}</p>")
        parts.append(_table(words.ways(number)))
    lines = words.sentences(number)
    return parts + [f"<p class=soft>{escape_html(line)}</p>" for line in lines]


def _table(table: Table) -> str:
    headings, rows = table
    cells = "".join(
        f"<th{_kind(place)}>{escape_html(heading)}</th>" for place, heading in enumerate(headings)
    )
    body = ""
    for row in rows:
        texts = [f"<td{_kind(place)}>{escape_html(text)}</td>" for place, text in enumerate(row)]
        body += f"<tr>{''.join(texts)}</tr>"
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"


def _kind(place: int) -> str:
    return " class=number" if place else ""
