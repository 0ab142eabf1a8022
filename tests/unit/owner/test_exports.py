"""A result as files to keep: survey, people and guarantee are in each of them."""

import csv
import io
import json
import re
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from rich.console import Console

from faircount.accounting.conditions import ONE_OPERATOR
from faircount.accounting.guarantee import attacker_certainty
from faircount.cli.show_questions import show_questions
from faircount.core.errors import FaircountError, ParameterError
from faircount.core.questions import OneOf, Questionnaire
from faircount.estimation.presentation import decimals_for, describe_sum
from faircount.estimation.question_estimates import decimals_of
from faircount.estimation.record import SurveyRecord
from faircount.estimation.result import Result
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.laplace import Laplace
from faircount.owner.exports import View, check_file, export_result, save_result
from faircount.protocol import SERVERS
from faircount.protocol.simulator import play

QUESTION = "Tea or <coffee>?"
RECORD = SurveyRecord(
    survey="ab" * 16,
    name="drinks",
    question=QUESTION,
    owner="A & B",
    opened="2026-11-03T08:00:00+00:00",
    ended="2026-11-06T09:30:00+00:00",
    invited=20,
    responded=13,
    counted=12,
)
DATES = ("3 November 2026, 08:00 UTC", "6 November 2026, 09:30 UTC")
PEOPLE = "20 invited, 13 responded (65%), 12 counted"


@pytest.fixture(scope="module")
def played() -> QuestionnaireResult:
    mechanism = Laplace(items=("tea", "=coffee()"), users=12, epsilon=2.0)
    questionnaire = Questionnaire((OneOf(text=QUESTION, items=("tea", "=coffee()")),))
    answers = [at % 2 for at in range(12)]
    return play(answers, mechanism, SERVERS, questionnaire=questionnaire)


@pytest.fixture(scope="module")
def result(played: QuestionnaireResult) -> QuestionnaireResult:
    return replace(played, facts={**played.facts, "record": RECORD})


def cells(data: bytes) -> list[object]:
    """Every cell of every sheet of a workbook."""
    found: list[object] = []
    for sheet in openpyxl.load_workbook(io.BytesIO(data)).worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type != "f", "a formula"
                found.append(cell.value)
    return found


def text_of(data: bytes, kind: str) -> str:
    """What somebody can read in a file."""
    if kind == "png":
        return png_texts(data)["Description"]
    if kind == "svg":
        # Text is drawn as shapes; what a screen reader finds stands in the description.
        found = re.search(r"<dc:description>(.*?)</dc:description>", data.decode(), re.DOTALL)
        assert found is not None
        return unescape(found[1])
    if kind == "xlsx":
        return "\n".join(map(str, cells(data)))
    if kind == "json":
        return str(json.loads(data))
    return unescape(data.decode())


def unescape(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@pytest.mark.parametrize("kind", ["csv", "json", "xlsx", "html", "png", "svg"])
def test_every_file_names_survey_question_dates_people_and_guarantee(
    result: QuestionnaireResult, kind: str
) -> None:
    text = text_of(export_result(result, kind), kind)
    for words in ("ab" * 16, QUESTION, str(result.guarantee)):
        assert words in text
    if kind in ("csv", "json"):
        for value in (RECORD.opened, RECORD.ended, "20", "13", "12"):
            assert str(value) in text
    else:
        for words in (*DATES, PEOPLE):
            assert words in text


def test_text_and_notebook_name_them_too(result: QuestionnaireResult) -> None:
    for text in (str(result), unescape(result._repr_html_())):
        for words in ("ab" * 16, QUESTION, *DATES, PEOPLE, str(result.guarantee)):
            assert words in text
    assert result.to_frame().attrs["record"]["question"] == QUESTION
    figure = result.plot()
    (axes,) = figure.axes
    assert figure.get_suptitle() == QUESTION
    assert PEOPLE in figure.get_supxlabel().replace("\n", " ")
    assert axes.get_xlabel().startswith("share of 12 people counted, with 95% intervals")
    rows = result.questions[0].estimates
    for row, label in zip(rows, axes.texts, strict=True):
        assert label.get_text() == f"{row.estimate:.1%} ({row.low:.1%} to {row.high:.1%})"


ALONE = {
    "en": "ne operator, ACME, ran both servers and could have read every answer: this was a trial",
    "de": "in Betreiber, ACME, hat beide Server betrieben und hätte jede Antwort lesen können: "
    "Das war ein Probelauf",
}


def run_by_one(
    result: QuestionnaireResult, language: str, name: str = "ACME"
) -> QuestionnaireResult:
    operators = {"s1_operator": name, "s2_operator": name, "one_operator": True}
    record = replace(RECORD, language=language, **operators)
    return replace(result, facts={**result.facts, "record": record}, conditions=(ONE_OPERATOR,))


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("kind", ["xlsx", "html", "png", "svg"])
def test_every_file_says_that_one_operator_ran_both_servers(
    result: QuestionnaireResult, kind: str, language: str
) -> None:
    text = text_of(export_result(run_by_one(result, language), kind), kind)
    assert ALONE[language] in text
    condition = {"en": "nobody who runs both servers", "de": "niemand, der beide Server betreibt"}
    assert condition[language] in text
    assert ALONE[language] not in text_of(export_result(result, kind), kind)


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_command_line_and_the_slide_say_that_one_operator_ran_both_servers(
    result: QuestionnaireResult, language: str
) -> None:
    alone = run_by_one(result, language)
    written = io.StringIO()
    show_questions(Console(file=written, width=100), alone, 0.95, "users")
    assert ALONE[language] in " ".join(written.getvalue().split())
    assert ALONE[language] in " ".join(alone.plot().get_supxlabel().split())


def test_programs_and_notebooks_learn_that_one_operator_ran_both_servers(
    result: QuestionnaireResult,
) -> None:
    alone = run_by_one(result, "en")
    assert json.loads(export_result(alone, "json"))["record"]["one_operator"] is True
    for row in csv.DictReader(io.StringIO(export_result(alone, "csv").decode())):
        assert (row["s1_operator"], row["one_operator"]) == ("ACME", "True")
        assert "nobody who runs both servers combines their shares" in row["guarantee"]
    for text in (str(alone), alone._repr_html_()):
        assert ALONE["en"] in text
    # Without names nobody can tell, which is not the same as two operators.
    unnamed = run_by_one(result, "en", name="")
    assert "nobody is named, so one operator may have run both servers" in str(unnamed)


def test_the_page_says_what_the_guarantee_means_for_one_person(result: QuestionnaireResult) -> None:
    real = replace(result, facts={**result.facts, "simulation": False})
    sure = attacker_certainty(real.guarantee.epsilon)
    page = export_result(real, "html").decode()
    assert f"they can be at most {sure:.1f}% sure which one it is." in page
    german = replace(real, facts={**real.facts, "record": replace(RECORD, language="de")})
    comma = f"{sure:.1f}".replace(".", ",")
    page = export_result(german, "html").decode()
    assert f"höchstens zu {comma}\u00a0% sicher sein, welche es ist." in page
    # A simulation protects nobody.
    seeded = replace(result, facts={**result.facts, "simulation": True})
    page = export_result(seeded, "html").decode()
    assert "sure which one it is" not in page


def test_estimates_that_do_not_sum_to_100_percent_are_explained_where_they_are_shown(
    result: QuestionnaireResult,
) -> None:
    uneven = replace(result, cells=result.cells + 1)
    words = describe_sum(uneven.questions[0])
    assert words is not None
    total = f"{uneven.questions[0].unusual_sum:.1%}"
    assert words.startswith(
        f"The estimates sum to {total}, because each of them is randomized by itself"
    )
    assert words in str(uneven)
    assert words in uneven._repr_html_()
    assert words in export_result(uneven, "html").decode()
    assert words in text_of(export_result(uneven, "xlsx"), "xlsx")
    assert json.loads(export_result(uneven, "json"))["about_estimates"] == words
    assert total in uneven.plot().axes[0].get_xlabel()
    assert "consistent share" in uneven.plot(consistent=True).axes[0].get_xlabel()
    even = replace(result, cells=result.cells * 0 + [4, 8])
    assert describe_sum(even.questions[0]) is None
    assert "sum to" not in str(even)


def test_the_guarantee_is_in_every_row_and_no_cell_is_a_formula(
    result: QuestionnaireResult,
) -> None:
    low = replace(result, cells=result.cells * 0 + [-3, 9])
    rows = list(csv.DictReader(io.StringIO(export_result(low, "csv").decode())))
    assert [row["answer"] for row in rows] == ["tea", "'=coffee()"]
    assert {row["guarantee"] for row in rows} == {str(result.guarantee)}
    assert {float(row["promised_epsilon"]) for row in rows} == {2.0}
    assert float(rows[0]["estimate"]) == -0.25
    for row in rows:
        assert not any(cell.startswith(("=", "+", "-", "@", "\t")) for cell in row.values())
    assert "=coffee()" in cells(export_result(low, "xlsx"))


def test_control_characters_do_not_stop_a_spreadsheet(result: QuestionnaireResult) -> None:
    """A vertical tab comes out of a word processor, and XML has none."""
    record = replace(RECORD, question="Tea\x0bor\x00 coffee?")
    noted = replace(result, facts={**result.facts, "record": record})
    assert r"Tea\x0bor\x00 coffee?" in cells(export_result(noted, "xlsx"))


def test_a_page_stands_alone(result: QuestionnaireResult) -> None:
    page = export_result(result, "html").decode()
    assert "<coffee>" not in page
    assert not re.search(r"<script|<link|<img|https?://|@import|url\(", page)
    assert "default-src 'none'" in page


def test_intervals_cover_what_was_asked(result: QuestionnaireResult) -> None:
    narrow = json.loads(export_result(result, "json", View(0.5)))
    wide = json.loads(export_result(result, "json", View(covers="population")))
    usual = json.loads(export_result(result, "json"))
    widths = [
        document["estimates"][0]["high"] - document["estimates"][0]["low"]
        for document in (narrow, usual, wide)
    ]
    assert widths == sorted(widths)
    assert len(set(widths)) == 3
    assert wide["covers"] == "population"
    assert (
        "the draw of these users"
        in export_result(result, "html", View(covers="population")).decode()
    )


def test_a_result_without_a_survey_has_files_too(played: QuestionnaireResult) -> None:
    for kind in ("csv", "json", "xlsx", "html", "png", "svg"):
        assert str(played.guarantee) in text_of(export_result(played, kind), kind)


def png_texts(data: bytes) -> dict[str, str]:
    """What is written in a PNG beside the picture, checked sums included."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    found: dict[str, str] = {}
    at = 8
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        kind = data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + size : at + 12 + size])
        if kind == b"tEXt":
            name, _, text = body.partition(b"\0")
            found[name.decode()] = text.decode("latin1")
        at += 12 + size
    return found


@pytest.fixture(scope="module")
def narrow() -> QuestionnaireResult:
    """So many people that one decimal place would hide every interval."""
    users = 1_000_000
    items = ("tea", "coffee", "milk")
    mechanism = Laplace(items=items, users=users, epsilon=1.0)
    found = Result(mechanism, np.array([125_000, 375_000, 500_000]), users, {"record": RECORD})
    assert decimals_for(found.interval()) == 4
    return QuestionnaireResult.of_frequencies(found, OneOf(text=QUESTION, items=items))


@pytest.mark.parametrize("language", ["en", "de"])
@pytest.mark.parametrize("kind", ["result", "narrow"])
def test_all_percentages_of_a_table_have_the_same_number_of_decimals(
    kind: str, language: str, request: pytest.FixtureRequest
) -> None:
    found: QuestionnaireResult = request.getfixturevalue(kind)
    shown = replace(found, facts={**found.facts, "record": replace(RECORD, language=language)})
    written = io.StringIO()
    show_questions(Console(file=written, width=120), shown, 0.95, "users")
    table = written.getvalue().partition("95")[2].partition("\n\n")[0]
    page = export_result(shown, "html").decode().partition("<tbody>")[2].partition("</tbody>")[0]
    cells_of_page = " ".join(re.findall(r"<td class=number>(.*?)</td>", page))
    (axes,) = shown.plot().axes
    labels = " ".join(label.get_text() for label in axes.texts)
    (question,) = shown.questions
    wanted = decimals_of(question, question.estimates[0])
    for text in (table, cells_of_page, labels, _notebook(shown)):
        decimals = _decimals(text.replace(",", "."))
        assert decimals == {wanted}, text
    ticks = " ".join(label.get_text() for label in axes.get_xticklabels())
    assert len(_decimals(ticks.replace(",", "."))) == 1
    sheet = openpyxl.load_workbook(io.BytesIO(export_result(shown, "xlsx"))).worksheets[0]
    formats = [cell.number_format for row in sheet.iter_rows(min_col=2) for cell in row]
    assert set(formats) - {"General"} == {"0." + "0" * wanted + "%"}


def _notebook(result: QuestionnaireResult) -> str:
    """The table of a notebook, which is always English."""
    return result._repr_html_().partition("<tbody>")[2].partition("</tbody>")[0]


def _decimals(text: str) -> set[int]:
    """How many decimal places the percentages of a text have."""
    numbers = re.findall(r"-?\d+(?:\.(\d+))?\s?%", text.replace("\u00a0", " "))
    assert numbers
    return {len(places) for places in numbers}


def test_other_files_are_refused(
    result: QuestionnaireResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ParameterError, match="a result can be saved as"):
        save_result(result, tmp_path / "result.exe")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FaircountError, match=r"pip install 'faircount\[xlsx\]'"):
        check_file(tmp_path / "result.xlsx")


@pytest.fixture(scope="module")
def german(result: QuestionnaireResult) -> QuestionnaireResult:
    record = replace(RECORD, language="de")
    return replace(result, facts={**result.facts, "record": record})


@pytest.mark.parametrize("kind", ["html", "xlsx", "png", "svg"])
def test_files_for_people_are_in_the_language_of_the_survey(
    german: QuestionnaireResult, kind: str
) -> None:
    text = text_of(export_result(german, kind), kind)
    for words in (
        "vom 3. November 2026, 08:00 UTC bis 6. November 2026, 09:30 UTC",
        "20 eingeladen, 13 haben geantwortet (65\u00a0%), 12 gezählt",
        "Differential-Privacy bei einer anderen Antwort einer Person",
    ):
        assert words in text
    # Words that only an English sentence has.
    assert not re.search(r"\b(the|of|with|answers?|people|against|whatever)\b", text)


def test_a_german_page_is_marked_as_german_and_writes_numbers_with_a_comma(
    german: QuestionnaireResult,
) -> None:
    page = export_result(german, "html").decode()
    assert '<html lang="de">' in page
    assert "<th class=number>95-%-Intervall</th>" in page
    assert re.search(r"<td class=number>-?\d+,\d\u00a0%</td>", page)


def test_the_command_line_speaks_the_language_of_the_survey(german: QuestionnaireResult) -> None:
    written = io.StringIO()
    show_questions(Console(file=written, width=100), german, 0.95, "users")
    text = " ".join(written.getvalue().split())
    for words in ("Frage Tea or", "95-%-Intervall", "Intervalle: 95 % für jede Antwort; exakt"):
        assert words in text.replace("\u00a0", " ")
    assert not re.search(r"\b(the|of|with|people|against|whatever)\b", text)


def test_tables_for_programs_are_the_same_in_every_language(
    german: QuestionnaireResult, result: QuestionnaireResult
) -> None:
    assert export_result(german, "csv") == export_result(result, "csv")
    assert json.loads(export_result(german, "json"))["in_words"] == str(result.guarantee)
