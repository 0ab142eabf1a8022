"""Hidden privacy levels on the dashboard: a survey is created, and its result read."""

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from faircount.client.participation import connect
from faircount.dashboard import form as forms

ASKED = {"kind": "one", "text": "What do you drink?", "items": "tea\ncoffee\nwater"}
LEVELS = {
    "protection": "levels",
    "level_name_1": "very strong",
    "level_epsilon_1": "0.25",
    "level_name_2": "strong",
    "level_epsilon_2": "0.5",
    "level_name_3": "normal",
    "level_epsilon_3": "1",
}
FORM = {
    "questions": [ASKED],
    "users": "400",
    "delta": "1e-6",
    "open_for": "3",
    "unit": "days",
    "epsilon": "9",
    **LEVELS,
}


def refusal(**change: Any) -> tuple[str, dict[str, Any]]:
    problem = forms.advice({**FORM, **change})["problem"]
    return problem["code"], problem["values"]


def test_advice_on_levels_is_about_the_strongest() -> None:
    advice = forms.advice(FORM)
    assert (advice["mechanism"], advice["epsilon"]) == ("server-levels", 1.0)
    alone = forms.advice({**FORM, "protection": "one", "epsilon": "0.25"})
    assert advice["half_width_95"] == pytest.approx(alone["half_width_95"])
    assert [level["name"] for level in advice["levels"]] == ["very strong", "strong", "normal"]
    assert [level["answer"] for level in advice["levels"]] == [0.25, 0.5, 1.0]
    assert advice["levels"][0]["both"] == pytest.approx(0.625)
    assert advice["costly"]  # the weakest has four times the strongest
    assert not forms.advice({**FORM, "level_epsilon_1": "0.4"})["costly"]


def test_levels_that_cannot_be_are_refused_in_words_of_the_page() -> None:
    assert refusal(level_name_2="", level_name_3="") == ("number_of_levels", {"most": 3})
    assert refusal(level_epsilon_2="much") == ("level_epsilon", {"number": 2})
    assert refusal(level_epsilon_2="inf") == ("level_epsilon", {"number": 2})
    assert refusal(level_name_2="normal") == ("level_twice", {"level": "normal"})
    assert refusal(level_epsilon_2="2")[0] == "levels_not_ascending"
    several = {"kind": "any", "text": "Which?", "items": "a\nb"}
    assert refusal(questions=[ASKED, several]) == ("level_kinds", {"question": 2})
    two = forms.advice({**FORM, "level_name_3": ""})
    assert two["epsilon"] == 0.5


def chosen(page: Page) -> None:
    """Open the form with a question of one answer, and let everybody choose."""
    page.get_by_role("button", name="New survey").click()
    page.get_by_label("Question", exact=True).fill("What do you drink?")
    page.get_by_label("Possible answers").fill("tea\ncoffee\nwater")
    page.get_by_label(re.compile("each person chooses")).check()


def test_an_owner_offers_levels_and_reads_both_tables(owner, owner_page, look_at, tmp_path) -> None:
    page = owner_page()
    chosen(page)
    expect(page.locator("#epsilon")).to_be_hidden()
    advice = page.locator("section.advice")
    expect(advice).to_contain_text("everybody is counted once, at the strongest level")
    expect(advice).not_to_contain_text("more than three times the epsilon")
    page.get_by_label("Epsilon of level 1").fill("0.25")
    expect(advice).to_contain_text("can become 65.2 % sure, instead of 56.3 %.")
    expect(advice).to_contain_text("very strong: at most 56.3 % sure which one you chose")
    look_at(page, "dashboard-levels-form")
    page.set_viewport_size({"width": 1200, "height": 900})
    # Next to no noise, so that all numbers are known; two levels, the second name in HTML.
    page.get_by_label("Name of level 1").fill("all")
    page.get_by_label("Epsilon of level 1").fill("40")
    page.get_by_label("Name of level 2").fill("<b>more</b>")
    page.get_by_label("Epsilon of level 2").fill("80")
    page.get_by_label("Name of level 3").fill("")
    page.get_by_label("Number of people").fill("8")
    page.get_by_label("Minimum number of responses").fill("4")
    page.get_by_label("Short name").fill("levels")
    page.get_by_role("button", name="Create survey and invitations").click()
    page.get_by_role("button", name="Open the survey").click()
    expect(page.get_by_role("main")).to_contain_text("<b>more</b>: at most 100 % sure")
    survey = owner.surveys.survey("levels")
    links = [invitee.code.link(survey.owner.public_address) for invitee in survey.invitees()]
    more = "<b>more</b>"
    given = [("tea", more), ("tea", "all"), ("water", more), ("tea", more)]
    for link, (answer, level) in zip(links, given, strict=False):
        answered(link, tmp_path, answer, level)
    owner.ends("levels")
    page.reload()
    page.get_by_role("button", name=re.compile("levels")).click()
    result = page.locator("section", has=page.get_by_role("heading", name="Result", exact=True))
    expect(result).to_contain_text("About 3 of 4 people were counted a second time")
    first, second = result.locator("table").all()[:2]
    expect(first.locator("tbody tr").first).to_contain_text("75.0 %")
    expect(second.locator("caption")).to_have_text(
        "If people who chose weaker protection answer like everybody"
    )
    # A copy of the survey offers the same levels.
    copied = {**owner.surveys.form("levels"), "name": "again", "epsilon": "1"}
    wanted = forms.requirements_of(copied)
    assert wanted.levels == survey.params.mechanism.levels


def answered(link: str, folder: Path, answer: str, level: str) -> None:
    part = connect(link, state=folder / link[-8:])
    part.answer(answer, level=level)
    part.server.close()
