"""Label and forecast of a survey with several questions."""

import json
from pathlib import Path
from typing import Any

import pytest

from faircount.core.questions.form import make_form
from faircount.owner.advice import SurveyRequirements, advise
from faircount.owner.label import make_label
from faircount.owner.label_texts import label_words
from faircount.owner.survey import Survey
from faircount.planning.forecast import forecast_sheet
from faircount.protocol import SERVERS

QUESTIONS = """
title = "Working <here>"
language = "en"

[translation.de]
title = "Arbeiten hier"

[[question]]
kind = "one"
text = "Which site?"
items = ["North", "South", "East"]
group = "places"
translation.de = {text = "Welcher Standort?", items = ["Nord", "Süd", "Ost"]}

[[question]]
kind = "number"
text = "Years?"
low = 0
high = 50
group = "times"
translation.de = {text = "Jahre?"}
"""


@pytest.fixture
def survey(both_apps: Any, tmp_path: Path) -> Survey:
    path = tmp_path / "staff.toml"
    path.write_text(QUESTIONS)
    return Survey.create(
        tmp_path / "survey",
        servers=both_apps.servers_file,
        questionnaire=path,
        users=300,
        epsilon=2.0,
        owner="A & B",
        anyway=True,
    )


def test_the_label_lists_all_questions_under_one_promise(survey: Survey) -> None:
    label = make_label(survey)
    content = json.loads(label.to_json())
    assert content["survey"]["question"] == "Working <here>"
    assert [question["kind"] for question in content["survey"]["questions"]] == ["one", "number"]
    assert "items" not in content["survey"]
    assert content["promise"]["epsilon"] == 2.0
    spent = [(group["questions"], group["epsilon"]) for group in content["single_answer"]]
    assert [numbers for numbers, _ in spent] == [[1], [2]]
    assert 1.99 < sum(epsilon for _, epsilon in spent) <= 2.0
    assert content["unit_of_privacy"]["contribution"].endswith("answers to all 2 questions")
    assert "other answers to all questions" in content["unit_of_privacy"]["neighbours_in_words"]
    assert content["release"]["what"].startswith("estimated shares and means of every question")


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ("Working &lt;here&gt;", "Which site?", "Years?")),
        ("de", ("Arbeiten hier", "Welcher Standort?", "Jahre?")),
    ],
)
def test_participants_read_the_questions_in_their_language(
    survey: Survey, language: str, texts: tuple[str, ...]
) -> None:
    page = make_label(survey).to_html(language).decode()
    words = label_words(language)
    for text in (*texts, words.single, words.unit_text_several, words.proofs_several):
        assert text in page
    assert words.published_text_several.format(questions=2, minimum=75, users=300) in page
    assert words.unit_text not in page
    assert "{" not in page.partition("</style>")[2]


@pytest.mark.parametrize(
    "questions",
    [
        [{"kind": "one", "text": "q", "items": ["a", "b", "c", "d", "e"]}],
        [{"kind": "yes", "text": "q"}],
        [{"kind": "yes", "text": "q"}, {"kind": "any", "text": "r", "items": ["a", "b", "c"]}],
    ],
    ids=["one of five", "yes", "two questions"],
)
def test_creating_a_survey_forecasts_what_the_plan_says(questions: list[dict[str, Any]]) -> None:
    form = make_form(questions)
    created = advise(SurveyRequirements(form, 300, 1.0))
    planned = forecast_sheet(form, users=300, epsilon=1.0, topology=SERVERS)
    assert created.mechanism.name == planned.mechanism.name == "server-joint"
    assert (created.responses, created.minimum) == (planned.responses, planned.minimum)
    for name in ("half_width_95", "half_width_95_at_minimum", "standard_error"):
        assert getattr(created, name) == pytest.approx(getattr(planned, name), rel=1e-12)
    if len(questions) > 1:
        assert created.sheet is not None
        assert planned.sheet is not None
        assert created.sheet.lines == planned.sheet.lines
