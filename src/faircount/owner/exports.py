"""A result as files to keep: CSV, JSON, XLSX, PNG, SVG, and a page that stands alone.

Every file names the survey, its question and dates, how many people were invited, responded and
were counted, and the guarantee. Files for people are in the language of the survey. CSV and JSON
are for programs: their names and numbers are the same in every language.
"""

import io
import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.core.csv_cells import write_csv
from faircount.core.errors import FaircountError, ParameterError
from faircount.core.figures import check_figure
from faircount.core.files import write_durably
from faircount.estimation.drawing import save_frequencies
from faircount.estimation.presentation import decimals_for
from faircount.estimation.result import Result
from faircount.estimation.result_texts import words_of
from faircount.owner.folder import PUBLIC
from faircount.owner.result_page import result_page
from faircount.protocol.wire.canonical_json import parse_real
from faircount.protocol.wire.messages import Published

FIGURES = ("png", "svg", "pdf")
KINDS = ("csv", "json", "xlsx", "html", *FIGURES)
COLUMNS = ("item", "estimate", "low", "high", "consistent")
RECORD = (
    *("survey", "question", "opened", "ended", "invited", "responded", "counted"),
    *("s1_operator", "s2_operator", "one_operator"),
)
PRIVACY = ("guarantee", "promised_epsilon", "promised_delta")


@dataclass(frozen=True)
class View:
    """How a result is shown.

    level: confidence of the intervals
    covers: "users", or "population" to include the draw of those who responded
    consistent: figures show the consistent frequencies
    """

    level: float = 0.95
    covers: str = "users"
    consistent: bool = False


DEFAULT = View()


def plain_result(result: Result, view: View = DEFAULT) -> dict[str, Any]:
    """Estimates and consistent ones, with the promised and the achieved privacy.

    The privacy is the one that the aggregator signed.
    """
    document = result.to_dict(view.level, covers=view.covers)
    if result.record is not None:
        document["survey"] = result.record.survey
        document["invited"] = result.record.invited
    guarantee = {"in_words": str(result.guarantee), "codes": result.guarantee.codes}
    return {**document, "promised": _signed_privacy(result), **guarantee}


def _signed_privacy(result: Result) -> dict[str, float]:
    published = result.facts["published"]
    # A result that was computed without servers has no signed statement.
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


def save_result(result: Result, path: Path, view: View = DEFAULT) -> None:
    """Write a result into a file, in the format of its suffix."""
    write_durably(path, export_result(result, check_file(path), view), PUBLIC)


def export_result(result: Result, kind: str, view: View = DEFAULT) -> bytes:
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
        return result_page(result, view.level, view.covers)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"result.{kind}")
        check_file(path)
        save_frequencies(result, path, view.level, view.covers, consistent=view.consistent)
        return path.read_bytes()


def _csv_table(plain: dict[str, Any]) -> bytes:
    record = plain.get("record", {})
    promised = plain["promised"]
    # Survey and guarantee are in every row, so that they survive when somebody copies rows.
    survey = [record.get(name) for name in RECORD]
    privacy = (plain["in_words"], promised.get("epsilon"), promised.get("delta"))
    rows = []
    for row, consistent in zip(plain["estimates"], plain["consistent"], strict=True):
        numbers = (row["estimate"], row["low"], row["high"], consistent)
        rows.append((row["item"], *numbers, *survey, *privacy))
    return write_csv((*COLUMNS, *RECORD, *PRIVACY), rows)


def facts_about(result: Result, view: View = DEFAULT) -> list[tuple[str, str]]:
    """Everything that belongs to the numbers, as labels and texts."""
    words = words_of(result)
    facts = list(words.record_lines(result.record)) if result.record is not None else []
    bounds = result.interval(view.level, covers=view.covers)
    facts.append((words.intervals, words.interval_text(view.level, bounds)))
    sum_note = words.sum_note(result)
    if sum_note is not None:
        facts.append((words.sum, sum_note))
    facts.append((words.guarantee, words.claim(result.guarantee)))
    facts.append((words.in_words, words.sentence(result.guarantee)))
    if result.validity is not None:
        facts.append((words.reports, words.statement(result)))
    facts.append((words.running_again, words.repetition))
    return facts


def _workbook(result: Result, view: View) -> bytes:
    """A spreadsheet with the table on one sheet and everything about it on another."""
    book = _openpyxl().Workbook()
    sheet = book.active
    words = words_of(result)
    sheet.title = words.result
    bounds = result.interval(view.level, covers=view.covers)
    table: list[tuple[object, ...]] = [words.columns]
    for place, item in enumerate(result.items):
        numbers = (result.estimates, bounds.low, bounds.high, result.consistent)
        table.append((str(item), *(float(values[place]) for values in numbers)))
    _fill_sheet(sheet, table, widths=(30, 12, 12, 12, 12), decimals=decimals_for(bounds))
    about = book.create_sheet(words.about)
    _fill_sheet(about, facts_about(result, view), widths=(14, 110))
    # The question stands above the numbers too, for whoever copies only this sheet.
    if result.record is not None:
        _add_above(sheet, [result.record.question, words.dates(result.record)])
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _fill_sheet(sheet: Any, rows: list[Any], widths: tuple[int, ...], decimals: int = 1) -> None:
    for row, values in enumerate(rows, start=1):
        for column, value in enumerate(values, start=1):
            _write_cell(sheet.cell(row, column), value, decimals)
    for number, width in enumerate(widths):
        sheet.column_dimensions["ABCDE"[number]].width = width


def _write_cell(cell: Any, value: object, decimals: int = 1) -> None:
    cell.value = value
    if isinstance(value, str):
        # check: formula-sheet - the library takes a text that begins with = for a formula
        cell.data_type = "s"
        cell.alignment = _openpyxl().styles.Alignment(wrap_text=True, vertical="top")
    else:
        cell.number_format = f"0.{'0' * decimals}%"


def _add_above(sheet: Any, lines: list[str]) -> None:
    sheet.insert_rows(1, len(lines) + 1)
    for row, text in enumerate(lines, start=1):
        _write_cell(sheet.cell(row, 1), text)
        sheet.cell(row, 1).alignment = _openpyxl().styles.Alignment(wrap_text=False)


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        message = "a spreadsheet needs openpyxl: pip install 'faircount[xlsx]', or save it as CSV"
        raise FaircountError(message).with_code("no_xlsx") from None
    return openpyxl
