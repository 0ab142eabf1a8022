"""The result of a survey with several questions: every file and page has a table for each."""

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import openpyxl
import pytest
from rich.console import Console

from faircount.cli.show_questions import show_questions
from faircount.core.entropy import SeededStream
from faircount.core.questions import (
    AnyOf,
    Branch,
    MostOf,
    Number,
    OneOf,
    Questionnaire,
    ScaleCounts,
    Table,
    YesNo,
)
from faircount.estimation.record import SurveyRecord
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.trend import trend_of
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.owner.exports import View, export_result
from faircount.protocol import SERVERS
from faircount.protocol.simulator import play

QUESTIONS = Questionnaire(
    (
        OneOf(text="Which <site>?", items=("=North", "South", "East"), skip=True),
        YesNo(text="Do you lead people?"),
        ScaleCounts(text="How content?", items=("not", "so so", "very"), only_if=Branch(1, (1,))),
        AnyOf(text="Which tools?", items=("phone", "car"), skip=True, only_if=Branch(1, (0,))),
        MostOf(text="Which two?", items=("a", "b", "c"), most=2),
        Number(text="Years here?", low=0, high=50),
        Table(text="Shift?", columns_text="Team?", rows=("early", "late"), columns=("x", "y")),
    ),
    "Working here",
)
RECORD = SurveyRecord(
    survey="ab" * 16,
    name="work",
    question="Working here",
    owner="A & B",
    opened="2026-11-03T08:00:00+00:00",
    ended="2026-11-06T09:30:00+00:00",
    invited=20,
    responded=12,
    counted=12,
    questions=len(QUESTIONS),
)


def sheet_of(place: int) -> tuple[Any, ...]:
    """The answers of one person; every third one leads people."""
    leads = place % 3 == 0
    return (
        place % 4,
        int(leads),
        place % 2 if leads else 3,
        None if leads or place % 5 == 0 else (place % 2,),
        (0, place % 2 + 1),
        10 + place % 12,
        place % 4,
    )


@pytest.fixture(scope="module")
def result() -> QuestionnaireResult:
    groups = split_epsilon(72.0, [[0, 2, 6], [1, 3, 4, 5]], [2.0, 1.0])
    mechanism = ServerSheets(questionnaire=QUESTIONS, groups=groups, epsilon=72.0)
    played = play(map(sheet_of, range(12)), mechanism, SERVERS, entropy=SeededStream(8))
    return replace(played, facts={**played.facts, "record": RECORD})


@pytest.fixture(scope="module")
def german(result: QuestionnaireResult) -> QuestionnaireResult:
    record = replace(RECORD, language="de")
    return replace(result, facts={**result.facts, "record": record})


def test_the_survey_gives_estimates_of_every_kind(result: QuestionnaireResult) -> None:
    # At this epsilon there is next to no noise, so the estimates are the answers.
    shares = {row.answer: row.estimate for row in result["Which <site>?"].estimates[:4]}
    assert shares == pytest.approx(
        {"=North": 0.25, "South": 0.25, "East": 0.25, "prefer not to say": 0.25}
    )
    content = {(row.answer, row.measure): row for row in result["How content?"].estimates}
    assert content["does not apply", "share"].estimate == pytest.approx(8 / 12)
    assert content["not", "share of those who answered"].estimate == pytest.approx(2 / 4)
    assert content["", "mean of those who answered"].estimate == pytest.approx(1.5)
    tools = {(row.answer, row.measure): row.estimate for row in result["Which tools?"].estimates}
    missing = sum(place % 3 == 0 or place % 5 == 0 for place in range(12))
    assert tools["no answer", "share"] == pytest.approx(missing / 12)
    years = result["Years here?"].estimates[0]
    assert years.estimate == pytest.approx(15.5, abs=0.5)
    assert years.low <= 15.5 <= years.high


def test_there_is_one_guarantee_and_a_loss_for_single_answers(result: QuestionnaireResult) -> None:
    assert result.guarantee.epsilon == 72.0
    assert result["Which two?"].epsilon == pytest.approx(24.0)
    assert result["Which two?"].group == 2
    page = export_result(result, "html").decode()
    assert "This holds for all answers of a person together." in page
    assert "A single answer loses at most: epsilon 48 (question 1, 3, 7); epsilon 24" in page


def test_dishonest_participants_are_bounded_for_every_kind(result: QuestionnaireResult) -> None:
    assert result.validity is not None
    words = str(result.validity)
    assert "one sheet with a possible answer to every question" in words
    assert "a count by at most one, the sum of question 6 by at most 50, and a share" in words
    assert "a dishonest participant may answer it anyway" in words
    assert result.validity.to_dict()["sums_per_liar"] == [{"question": 6, "sum": 50.0}]


def test_the_table_for_programs_has_a_row_per_estimate(result: QuestionnaireResult) -> None:
    rows = list(csv.DictReader(io.StringIO(export_result(result, "csv").decode())))
    assert len(rows) == sum(len(question.estimates) for question in result.questions)
    first = rows[0]
    assert (first["number"], first["question"], first["answer"]) == (
        "1",
        "Which <site>?",
        "'=North",
    )
    assert first["measure"] == "share"
    assert first["title"] == "Working here"
    assert {row["guarantee"] for row in rows} == {str(result.guarantee)}
    document = json.loads(export_result(result, "json"))
    assert [question["number"] for question in document["questions"]] == list(range(1, 8))
    assert document["record"]["questions"] == 7
    # Only a survey with one question has these.
    assert "estimates" not in document


@pytest.mark.parametrize("kind", ["xlsx", "html"])
def test_files_for_people_have_a_table_per_question(result: QuestionnaireResult, kind: str) -> None:
    data = export_result(result, kind)
    text = data.decode() if kind == "html" else "\n".join(sheet_texts(data))
    for question in result.questions:
        title = question.title.replace("<", "&lt;").replace(">", "&gt;")
        assert (title if kind == "html" else question.title) in text
    assert "7: Working here" in text
    assert "early / all" in text
    assert "mean of those who answered" in text


def sheet_texts(data: bytes) -> list[str]:
    texts = []
    for sheet in openpyxl.load_workbook(io.BytesIO(data)).worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                assert cell.data_type != "f", "a formula"
                texts.append(str(cell.value))
    return texts


def test_means_are_numbers_and_shares_are_percentages_in_a_sheet(
    result: QuestionnaireResult,
) -> None:
    book = openpyxl.load_workbook(io.BytesIO(export_result(result, "xlsx")))
    formats = {}
    for row in book.worksheets[0].iter_rows():
        formats[row[0].value] = row[1].number_format
    assert formats["mean"].startswith("0")
    assert "%" not in formats["mean"]
    assert formats["early / all"].endswith("%")


@pytest.mark.parametrize("kind", ["html", "xlsx"])
def test_files_for_people_are_in_german_too(german: QuestionnaireResult, kind: str) -> None:
    data = export_result(german, kind)
    text = data.decode() if kind == "html" else "\n".join(sheet_texts(data))
    for words in (
        "trifft nicht zu",
        "keine Angabe",
        "keine Antwort",
        "early / alle",
        "Mittelwert unter denen, die geantwortet haben",
        "Das gilt für alle Antworten einer Person zusammen",
        "Eine einzelne Antwort verliert höchstens: Epsilon 48 (Frage 1, 3, 7)",
        "die Summe von Frage 6 höchstens um 50",
    ):
        assert words in text
    # Words that only an English sentence has; the questions themselves are the owner's.
    plain = re.sub(r"How content\?|so so", "", text)
    assert not re.search(
        r"\b(the|of|with|people|against|whatever|mean|answered)\b(?! people\?)",
        plain.replace("Do you lead people?", ""),
    )


def test_the_terminal_shows_a_table_per_question(result: QuestionnaireResult) -> None:
    written = io.StringIO()
    show_questions(Console(file=written, width=100), result, 0.95, "population")
    text = " ".join(written.getvalue().split())
    for question in result.questions:
        assert question.title in text
    assert "12 people counted, 7 questions" in text
    assert "covers privacy noise and the draw of these users" in text
    assert "This holds for all answers of a person together." in text


def test_a_figure_has_a_chart_per_question(result: QuestionnaireResult) -> None:
    figure = result.plot()
    assert len(figure.axes) == 7
    assert figure.get_suptitle() == "Working here"
    assert "12 counted" in figure.get_supxlabel().replace("\n", " ")
    # What has no bar stands in the title of its chart.
    assert "mean of those who answered 1.5" in figure.axes[2].get_title(loc="left")
    for kind in ("png", "svg"):
        assert export_result(result, kind)


def test_a_population_has_wider_intervals_also_for_means(result: QuestionnaireResult) -> None:
    usual = result.estimates()
    drawn = result.estimates(covers="population")
    for question, other in zip(usual, drawn, strict=True):
        for row, wide in zip(question.estimates, other.estimates, strict=True):
            assert wide.low <= row.low <= row.high <= wide.high
            assert wide.estimate == row.estimate
    years = drawn[5].estimates[0]
    assert 0 < years.low < 15.5 < years.high < 50
    page = export_result(result, "html", View(covers="population")).decode()
    assert "the draw of these users" in page


def test_a_trend_compares_the_questions_that_both_surveys_have(
    result: QuestionnaireResult,
) -> None:
    shorter = Questionnaire(QUESTIONS.questions[:2])
    groups = split_epsilon(40.0, [[0, 1]])
    mechanism = ServerSheets(questionnaire=shorter, groups=groups, epsilon=40.0, users=12)
    earlier = QuestionnaireResult(shorter, mechanism, [6, 2, 2, 2, 9], 12)
    trend = trend_of([earlier, result], ["before", "after"])
    assert [question.title for question in trend.questions] == [
        "1. Which <site>?",
        "2. Do you lead people?",
    ]
    leading = trend.questions[1].changes[0].rows[1]
    assert leading.estimate == pytest.approx(4 / 12 - 9 / 12)
    assert leading.is_exact
    assert leading.is_clear
    assert trend_of([result, earlier], ["b", "a"]).left_out[0] == "3. How content?"
    assert {row["question"] for row in trend.rows()} == {"Which <site>?", "Do you lead people?"}
    assert "of those who answered" in str(trend)
    assert len(trend.plot().axes) == 2
