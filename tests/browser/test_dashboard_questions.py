"""A questionnaire on the dashboard: built by keyboard and mouse, answered by a crowd, and shown."""

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from faircount.demo.scenarios import answer_as_crowd

FILE = """
title = "Working here"
language = "en"
translation.de.title = "Arbeiten hier"
[[question]]
kind = "yes"
text = "Do you work at night?"
items = ["No", "Yes"]
translation.de = {text = "Arbeiten Sie nachts?", items = ["Nein", "Ja"]}
[[question]]
kind = "number"
text = "How many nights a month?"
low = 0
high = 20
only_if = {question = 1, items = ["Yes"]}
translation.de = {text = "Wie viele Nächte im Monat?"}
"""


def card(page: Page, number: int) -> Locator:
    """The fields of one of several questions."""
    return page.get_by_role("group", name=f"Question {number}", exact=True)


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def build_by_keyboard(page: Page) -> None:
    """Two questions, one of several and a number, without touching the mouse."""
    page.get_by_role("button", name="New survey").focus()
    press(page, "Enter")
    page.get_by_label("Question").focus()
    page.keyboard.type("Which site?")
    press(page, "Tab")
    page.keyboard.type("North\nSouth\nEast")
    # The answers' own summary comes first, then the button that adds a question.
    press(page, "Tab", "Tab")
    expect(page.get_by_role("button", name="Add a question")).to_be_focused()
    press(page, "Enter")
    expect(card(page, 2).get_by_label("Question", exact=True)).to_be_focused()
    press(page, "Shift+Tab")
    expect(card(page, 2).get_by_label("Kind")).to_be_focused()
    page.keyboard.type("Number in a range")
    press(page, "Tab")
    page.keyboard.type("How many years?")
    press(page, "Tab")
    page.keyboard.type("0")
    press(page, "Tab")
    page.keyboard.type("40")
    page.get_by_role("button", name="Up: move number 2").focus()
    press(page, "Enter")
    expect(card(page, 1).get_by_label("Largest number")).to_have_value("40")
    # The button stays under the finger; at the end of the list it is the other one.
    expect(page.get_by_role("button", name="Down: move number 1")).to_be_focused()
    press(page, "Enter")
    expect(card(page, 1).get_by_label("Possible answers")).to_have_value("North\nSouth\nEast")


def build_by_mouse(page: Page) -> None:
    """Two more: a table, and a scale that only some people are asked."""
    page.get_by_role("button", name="Add a question").click()
    card(page, 3).get_by_label("Kind").select_option("table")
    for label, text in {
        "Question for the rows": "Which team?",
        "Answers in the rows": "Kitchen\nGarden",
        "Question for the columns": "Which shift?",
        "Answers in the columns": "Day\nNight",
    }.items():
        card(page, 3).get_by_label(label).fill(text)
    page.get_by_role("button", name="Add a question").click()
    page.get_by_role("button", name="Add a question").click()
    page.get_by_role("button", name="Remove number 5").click()
    card(page, 4).get_by_label("Kind").select_option("scale")
    card(page, 4).get_by_label("Question", exact=True).fill("How do you like it?")
    card(page, 4).get_by_label("Possible answers").fill("badly\nfairly\nwell")
    card(page, 4).get_by_label("prefer not to say").check()
    card(page, 4).get_by_label("Who is asked").select_option(label="Only if: 1. Which site?")


def test_a_questionnaire_from_the_builder_to_the_charts(
    trial, owner, owner_page, look_at, tmp_path: Path
) -> None:
    page = owner_page()
    build_by_keyboard(page)
    build_by_mouse(page)
    # What is missing is said beside its question.
    refused = card(page, 4).get_by_text("Tick the answers to question 1")
    expect(refused).to_be_visible()
    card(page, 4).get_by_label("North").check()
    card(page, 4).get_by_label("South").check()
    expect(
        card(page, 1).get_by_text(re.compile("95.% error: ±.* percentage points"))
    ).to_be_visible()
    expect(card(page, 2).get_by_text(re.compile(r"95.% error: ±.* \(mean\)"))).to_be_visible()
    expect(card(page, 3).get_by_text(re.compile("Share of epsilon: .* \\(group"))).to_be_visible()
    expect(page.get_by_text("This covers all your answers together.")).to_be_visible()
    expect(page.get_by_text("About a single answer of yours")).to_be_visible()
    look_at(page, "dashboard-questions")
    page.set_viewport_size({"width": 1200, "height": 900})
    page.get_by_label("Title of the survey").fill("Working here")
    page.get_by_label("Number of people").fill("24")
    page.get_by_label("Epsilon: how").fill("40")
    page.get_by_label("Short name").fill("working")
    page.get_by_role("button", name="Create survey and invitations").click()
    expect(page.locator(".waits")).to_contain_text("The survey is ready.")
    expect(page.get_by_role("listitem").filter(has_text="How many years?")).to_be_visible()
    page.get_by_role("button", name="Open the survey").click()
    expect(page.locator(".waits")).to_contain_text("People can answer until")
    assert answer_as_crowd(owner.surveys.survey("working"), tmp_path / "crowd") == 24
    expect(page.get_by_text("24 of 24 people have answered")).to_be_visible()
    page.get_by_role("button", name="Close now").click()
    page.get_by_role("button", name="Yes, close it").click()
    expect(page.locator(".waits")).to_contain_text("waiting for the aggregator")
    trial.settle()
    for heading in ("1. Which site?", "2. How many years?", "3. Which team? / Which shift?"):
        expect(page.get_by_role("heading", name=heading)).to_be_visible()
    expect(page.get_by_text("each proven to be one sheet of possible answers")).to_be_visible()
    results = page.locator(".question-result")
    expect(results).to_have_count(4)
    # Three bars; a mean with its interval; four cells in the grid and beside it, and four margins.
    assert [results.nth(at).locator("svg.chart").count() for at in range(3)] == [3, 1, 12]
    expect(results.nth(1).get_by_role("row", name=re.compile("^mean"))).to_be_visible()
    grid = results.nth(2).locator("table.grid")
    expect(grid.get_by_role("columnheader")).to_have_text(["Day", "Night", "All"])
    expect(grid.get_by_role("rowheader")).to_have_text(["Kitchen", "Garden", "All"])
    for label in ("does not apply", "prefer not to say", "mean of those who answered"):
        expect(results.nth(3).get_by_role("row", name=re.compile(f"^{label}"))).to_be_visible()
    look_at(page, "dashboard-question-results")
    _check_the_numbers(page, owner)
    page.get_by_role("banner").get_by_label("Language").select_option("de")
    expect(results.nth(3).get_by_role("row", name=re.compile("^keine Angabe"))).to_be_visible()
    expect(page.locator("main [lang=en]:not(label)")).to_have_count(0)


def _check_the_numbers(page: Page, owner) -> None:
    """What is shown is what was published, and files hold every question."""
    site = owner.surveys.survey("working").result().questions[0]
    shown = page.locator(".question-result").nth(0).get_by_role("row", name=re.compile("^North"))
    expect(shown).to_contain_text(f"{100 * site.estimates[0].estimate:.1f}")
    exported = owner.surveys.file("working", "result.csv").decode()
    assert all(text in exported for text in ("Which site?", "How many years?", "Kitchen / Day"))


def test_a_file_fills_the_form_and_a_copy_does_too(owner, owner_page, tmp_path: Path) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    page.get_by_text("Load a questionnaire from a file").click()
    file = tmp_path / "nights.toml"
    file.write_text("title = ")
    page.get_by_label("TOML file").set_input_files(file)
    expect(page.get_by_text("nights.toml cannot be used.")).to_be_visible()
    file.write_text(FILE)
    page.get_by_label("TOML file").set_input_files(file)
    expect(page.get_by_text("Questions loaded from nights.toml: 2.")).to_be_visible()
    expect(page.get_by_label("Title of the survey")).to_have_value("Working here")
    expect(card(page, 2).get_by_label("Yes")).to_be_checked()
    expect(page.get_by_text("in these languages, too: de.")).to_be_visible()
    for label, text in {
        "Number of people": "8",
        "Epsilon: how": "40",
        "Short name": "nights",
    }.items():
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Create survey and invitations").click()
    expect(page.locator(".waits")).to_contain_text("The survey is ready.")
    page.get_by_role("button", name="Copy as a new survey").click()
    expect(page.get_by_label("Short name")).to_have_value("nights-2")
    expect(card(page, 2).get_by_label("Largest number")).to_have_value("20")
    expect(card(page, 2).get_by_label("Yes")).to_be_checked()
    page.get_by_role("button", name="Back").click()
    expect(page.get_by_role("listitem").filter(has_text="nights")).to_contain_text("2 questions")
    asked = owner.surveys.survey("nights").params.questionnaire
    assert asked.languages == ("en", "de")
    assert asked.in_language("de").questions[0].text == "Arbeiten Sie nachts?"


def test_one_question_looks_as_simple_as_ever(owner_page) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    expect(page.get_by_role("group", name=re.compile("^Question"))).to_have_count(0)
    for label in ("Kind", "prefer not to say", "Title of the survey", "Who is asked"):
        expect(page.get_by_label(label).and_(page.locator(":visible"))).to_have_count(0)
    page.get_by_text("Other kinds").click()
    page.get_by_label("Kind").select_option("number")
    page.get_by_label("Question", exact=True).fill("How many years?")
    page.get_by_label("Smallest number").fill("0")
    page.get_by_label("Largest number").fill("40")
    expect(page.get_by_text(re.compile(r"95.% error: ±.* \(mean\)"))).to_be_visible()
