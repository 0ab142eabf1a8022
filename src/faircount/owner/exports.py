"""A result as files to keep: CSV, JSON, XLSX, PNG, SVG, and a page that stands alone.

Every file names the survey, its question and dates, how many people were invited, responded and
were counted, and the guarantee. Files for people are in the language of the survey. CSV and JSON
are for programs: their names and numbers are the same in every language.
"""

import io
import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.core.csv_cells import write_csv
from faircount.core.domain import escape_controls
from faircount.core.errors import FaircountError, ParameterError
from faircount.core.figures import check_figure
from faircount.core.files import write_durably
from faircount.estimation.level_texts import level_words
from faircount.estimation.question_estimates import QuestionEstimates, decimals_of
from faircount.estimation.result_texts import words_of
from faircount.estimation.sheet_drawing import save_questions
from faircount.estimation.sheet_estimates import Estimate, is_share
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.sheet_texts import SheetWords, sheet_words_of
from faircount.owner.folder import PUBLIC
from faircount.owner.result_page import result_page
from faircount.protocol.wire.canonical_json import parse_real
from faircount.protocol.wire.messages import Published

FIGURES = ("png", "svg", "pdf")
KINDS = ("csv", "json", "xlsx", "html", *FIGURES)
QUESTION = ("number", "question")
COLUMNS = ("answer", "measure", "estimate", "low", "high", "consistent")
RECORD = (
    *("survey", "title", "opened", "ended", "invited", "responded", "counted"),
    *("s1_operator", "s2_operator", "one_operator"),
)
# Control characters that XML does not have; tab and line ends may stay.
_UNWRITABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

PRIVACY = ("guarantee", "promised_epsilon", "promised_delta")


@dataclass(frozen=True)
class View:
    """How a result is shown.

    confidence: confidence of the intervals
    covers: "users", or "population" to include the draw of those who responded
    consistent: figures show the consistent frequencies
    """

    confidence: float = 0.95
    covers: str = "users"
    consistent: bool = False


DEFAULT = View()


def plain_result(result: QuestionnaireResult, view: View = DEFAULT) -> dict[str, Any]:
    """Estimates and consistent ones, with the promised and the achieved privacy.

    The privacy is the one that the aggregator signed.
    """
    document = result.to_dict(view.confidence, covers=view.covers)
    if result.record is not None:
        document["survey"] = result.record.survey
        document["invited"] = result.record.invited
    guarantee = {"in_words": str(result.guarantee), "codes": result.guarantee.codes}
    return {**document, "promised": signed_privacy(result), **guarantee}


def signed_privacy(result: QuestionnaireResult) -> dict[str, float]:
    """The promised and the achieved privacy, as the aggregator signed them."""
    published = result.facts.get("published")
    # A result that was computed without servers, or of several surveys, has no signed statement.
    if not isinstance(published, Published):
        return {}
    names = ("epsilon", "delta", "realized_epsilon", "realized_delta")
    return {name: parse_real(getattr(published, name).decode()) for name in names}


def check_file(path: Path) -> str:
    """The kind of a file by its suffix; refused if it cannot be written on this machine."""
    kind = path.suffix.lower().removeprefix(".")
    if kind not in KINDS:
        names = ", ".join(KINDS)
        message = f"a result can be saved as {names}, not as {path.name}"
        raise ParameterError(message).with_code("unknown_file", names=names)
    if kind in FIGURES:
        check_figure(path)
    if kind == "xlsx":
        _openpyxl()
    return kind


def save_result(result: QuestionnaireResult, path: Path, view: View = DEFAULT) -> None:
    """Write a result into a file, in the format of its suffix."""
    write_durably(path, export_result(result, check_file(path), view), PUBLIC)


def export_result(result: QuestionnaireResult, kind: str, view: View = DEFAULT) -> bytes:
    """The content of a file of this kind."""
    if kind == "csv":
        return _csv_table(plain_result(result, view))
    if kind == "json":
        # JSON has no NaN: a file with one would break the programs that read it.
        document = plain_result(result, view)
        return json.dumps(document, indent=2, allow_nan=False).encode() + b"\n"
    if kind == "xlsx":
        return _workbook(result, view)
    if kind == "html":
        return result_page(result, view.confidence, view.covers)
    # Through a file: what describes a figure is written into it after it was drawn.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"result.{kind}")
        check_file(path)
        save_questions(result, path, view.confidence, view.covers, consistent=view.consistent)
        return path.read_bytes()


def _csv_table(plain: dict[str, Any]) -> bytes:
    """One row per estimate of every question."""
    record = {**plain.get("record", {}), "title": plain["title"]}
    promised = plain["promised"]
    # Survey and guarantee are in every row, so that they survive when somebody copies rows.
    survey = [record.get(name) for name in RECORD]
    privacy = (plain["in_words"], promised.get("epsilon"), promised.get("delta"))
    rows = []
    for question in plain["questions"]:
        # The measure of a weighted estimate names its condition, also in a copied row.
        for row in [*question["estimates"], *question.get("if_alike", [])]:
            values = [row[name] for name in COLUMNS]
            rows.append((question["number"], question["text"], *values, *survey, *privacy))
    return write_csv((*QUESTION, *COLUMNS, *RECORD, *PRIVACY), rows)


def facts_about(result: QuestionnaireResult, view: View = DEFAULT) -> list[tuple[str, str]]:
    """Everything that belongs to the numbers, as labels and texts."""
    words = words_of(result)
    facts = list(words.record_lines(result.record)) if result.record is not None else []
    found = result.estimates(view.confidence, covers=view.covers)
    facts.append((words.intervals, words.interval_text(view.confidence, found[0].coverage)))
    facts += [(words.sum, note) for note in filter(None, map(words.sum_note, found))]
    facts.append((words.guarantee, words.claim(result.guarantee)))
    facts.append((words.in_words, words.sentence(result.guarantee)))
    facts += [("", f"{line}.") for line in sheet_words_of(result).privacy_lines(result)]
    levels = level_words(words.language)
    facts += [(levels.title, f"{line}.") for line in levels.lines(result, view.confidence)]
    if result.validity is not None:
        facts.append((words.reports, words.statement(result)))
    facts.append((words.running_again, words.repetition))
    return facts


def _workbook(result: QuestionnaireResult, view: View) -> bytes:
    """A spreadsheet with a table per question on one sheet and everything about it on another."""
    book = _openpyxl().Workbook()
    sheet = book.active
    words = sheet_words_of(result)
    sheet.title = words.general.result
    found = result.estimates(view.confidence, covers=view.covers)
    # The question stands above the numbers too, for whoever copies only this sheet.
    if result.record is not None:
        _add_lines(sheet, [result.record.question, words.general.dates(result.record), ""])
    for question in found:
        if len(found) > 1:
            _add_lines(sheet, [question.title])
        _add_row(sheet, words.general.columns)
        _add_estimates(sheet, question, question.estimates, words)
        if question.alike:
            _add_lines(sheet, [f"{level_words(words.general.language).condition}:"])
            _add_estimates(sheet, question, question.alike, words)
        if question is not found[-1]:
            _add_lines(sheet, [""])
    _set_widths(sheet, (30, 12, 12, 12, 12))
    about = book.create_sheet(words.general.about)
    for fact in facts_about(result, view):
        _add_row(about, fact)
    _set_widths(about, (14, 110))
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _add_estimates(
    sheet: Any, question: QuestionEstimates, shown: Sequence[Estimate], words: SheetWords
) -> None:
    """Write estimates of a question, one per row."""
    for row in shown:
        numbers = (row.estimate, row.low, row.high, row.consistent)
        form = _number_format(row, decimals_of(question, row))
        _add_row(sheet, (words.label(question, row), *numbers), form)


def _number_format(row: Estimate, decimals: int) -> str:
    """How a spreadsheet shows an estimate: a share in percent, a mean as a number."""
    # As a number with a format, and not as a text: whoever copies it can go on computing.
    places = f"0.{'0' * decimals}" if decimals else "0"
    return f"{places}%" if is_share(row) else places


def _add_row(sheet: Any, values: Sequence[object], number_format: str = "General") -> None:
    """Write values below what a sheet has so far."""
    number = _next_row(sheet)
    for column, value in enumerate(values, start=1):
        _write_cell(sheet.cell(number, column), value, number_format)


def _add_lines(sheet: Any, lines: Sequence[str]) -> None:
    """Write texts below what a sheet has so far; they run over the columns beside them."""
    for text in lines:
        cell = sheet.cell(_next_row(sheet), 1)
        _write_cell(cell, text, "General")
        cell.alignment = _openpyxl().styles.Alignment(wrap_text=False)


def _next_row(sheet: Any) -> int:
    # A new sheet says that it has one row, which is empty.
    return 1 if sheet.cell(1, 1).value is None else sheet.max_row + 1


def _set_widths(sheet: Any, widths: Sequence[int]) -> None:
    for number, width in enumerate(widths):
        sheet.column_dimensions["ABCDE"[number]].width = width


def _write_cell(cell: Any, value: object, number_format: str) -> None:
    if isinstance(value, str):
        # A vertical tab out of a word processor, for example, cannot stand in a spreadsheet.
        value = _UNWRITABLE.sub(lambda found: escape_controls(found[0]), value)
    cell.value = value
    if isinstance(value, str):
        # check: formula-sheet - the library takes a text that begins with = for a formula
        cell.data_type = "s"
        cell.alignment = _openpyxl().styles.Alignment(wrap_text=True, vertical="top")
    else:
        cell.number_format = number_format


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        # Optional, since a server never writes one.
        message = "a spreadsheet needs openpyxl: pip install 'faircount[xlsx]', or save it as CSV"
        raise FaircountError(message).with_code("no_xlsx") from None
    return openpyxl
