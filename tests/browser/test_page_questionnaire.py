"""A questionnaire on the participant's page: every kind of question, from the form to the result."""

import json
import re
from fractions import Fraction
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from faircount.core.questions import (
    AnyOf,
    Bands,
    Branch,
    MostOf,
    Number,
    OneOf,
    QuestionGroup,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.core.questions.translations import TranslatedQuestion, Translation
from faircount.mechanisms.server_sheets import ServerSheets

SITES = ("North", "South", "East")
QUESTIONS = (
    OneOf(text="Which site do you work at?", items=SITES, skip=True),
    YesNo(text="Would you recommend us?"),
    ScaleCounts(text="Why not?", items=("pay", "hours", "people"), only_if=Branch(1, (0,))),
    AnyOf(text="How do you come to work?", items=("bicycle", "bus", "car"), skip=True),
    MostOf(text="What matters most?", items=("pay", "hours", "people", "food"), most=2),
    ScaleMean(text="How tired are you?", items=("not at all", "a bit", "very"), skip=True),
    Number(text="Hours per week?", low=Fraction(0), high=Fraction(60), step=Fraction(1, 2)),
    Bands(text="How old are you?", edges=(Fraction(15), Fraction(30), Fraction(50), Fraction(80))),
    Table(text="Shift?", columns_text="Team?", rows=("early", "late"), columns=("red", "blue")),
)
GERMAN = Translation(
    "de",
    "Arbeit",
    (
        TranslatedQuestion(("An welchem Standort arbeiten Sie?",), ("Nord", "Süd", "Ost")),
        TranslatedQuestion(("Würden Sie uns empfehlen?",), ("nein", "ja")),
        TranslatedQuestion(("Warum nicht?",), ("Geld", "Zeiten", "Leute")),
        TranslatedQuestion(("Wie kommen Sie zur Arbeit?",), ("Fahrrad", "Bus", "Auto")),
        TranslatedQuestion(("Was ist am wichtigsten?",), ("Geld", "Zeiten", "Leute", "Essen")),
        TranslatedQuestion(("Wie müde sind Sie?",), ("gar nicht", "etwas", "sehr")),
        TranslatedQuestion(("Stunden pro Woche?",)),
        TranslatedQuestion(("Wie alt sind Sie?",)),
        TranslatedQuestion(("Schicht?", "Team?"), ("früh", "spät"), ("rot", "blau")),
    ),
)


def questionnaire(*translations: Translation) -> Questionnaire:
    return Questionnaire(QUESTIONS, "Working here", "en", translations)


def joint(asked: Questionnaire, users: int, epsilon: float = 50.0) -> ServerSheets:
    """Two groups; with the largest epsilon noise has a probability below 10^-13."""
    half = len(asked) // 2
    groups = [
        QuestionGroup.of(epsilon, numbers)
        for numbers in (range(half), range(half, len(asked)))
        if numbers
    ]
    total = epsilon * len(groups)
    return ServerSheets(
        questionnaire=asked, groups=tuple(groups), epsilon=total, users=users, dropouts=users - 2
    )


def create(trial: Any, asked: Questionnaire, users: int = 6, **terms: Any) -> list[str]:
    return trial.create(users, mechanism=joint(asked, users), **terms)


def opened(context: Any, link: str) -> Page:
    page = context.new_page()
    page.goto(link)
    return page


def group(page: Page, text: str) -> Locator:
    return page.get_by_role("group", name=re.compile(re.escape(text)))


def choose(page: Page, text: str, *labels: str) -> None:
    for label in labels:
        group(page, text).get_by_label(label, exact=True).check()


def fill_in(page: Page, *, recommend: str = "yes") -> None:
    """Answer every question of the English questionnaire."""
    choose(page, "Which site", "South")
    choose(page, "Would you recommend", recommend)
    if recommend == "no":
        choose(page, "Why not?", "hours")
    choose(page, "How do you come", "bicycle", "bus")
    choose(page, "What matters", "people")
    choose(page, "How tired", "a bit")
    page.get_by_role("textbox", name=re.compile("Hours per week")).fill("38.5")
    choose(page, "How old", "30 to below 50")
    page.get_by_role("combobox", name="Shift?").select_option("late")
    page.get_by_role("combobox", name="Team?").select_option("red")


def proceed(page: Page) -> None:
    page.get_by_role("button", name="Continue").click()


def sees(page: Page, title: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


ANSWERS = [
    ("1. Which site do you work at?", ["South"]),
    ("2. Would you recommend us?", ["no"]),
    ("3. Why not?", ["hours"]),
    ("4. How do you come to work?", ["bicycle", "bus"]),
    ("5. What matters most?", ["people"]),
    ("6. How tired are you?", ["a bit"]),
    ("7. Hours per week?", ["38.5"]),
    ("8. How old are you?", ["30 to below 50"]),
    ("9. Shift? / Team?", ["late", "red"]),
]


def listed(page: Page) -> list[tuple[str, list[str]]]:
    """The questions and answers that the page lists before they are sent."""
    found: list[tuple[str, list[str]]] = []
    for line in page.locator("dl.answers > *").all():
        if line.evaluate("line => line.tagName") == "DT":
            found.append((line.inner_text(), []))
        else:
            found[-1][1].append(line.inner_text())
    return found


def test_every_kind_of_question_from_the_form_to_the_result(trial, visitor, look_at) -> None:
    links = create(trial, questionnaire(GERMAN))
    context = visitor()
    page = opened(context, links[0])
    sees(page, "Aldmoor Council asks")
    expect(page.get_by_role("heading", name="Working here")).to_be_visible()
    expect(group(page, "Why not?")).to_be_hidden()
    look_at(page, "questionnaire-empty")
    fill_in(page, recommend="no")
    look_at(page, "questionnaire")
    proceed(page)
    sees(page, "Send these answers?")
    assert listed(page) == ANSWERS
    look_at(page, "questionnaire-confirm")
    page.get_by_role("button", name="Back").click()
    expect(group(page, "What matters").get_by_label("people")).to_be_checked()
    choose(page, "Would you recommend", "yes")
    proceed(page)
    assert listed(page)[2] == ("3. Why not?", ["does not apply"])
    page.get_by_role("button", name="Send").click()
    sees(page, "Thank you! Your answers have arrived")
    page.reload()
    sees(page, "Thank you! Your answers have arrived")
    other = opened(visitor(locale="de"), links[1])
    answer_in_german(other, look_at)
    assert trial.close()["included"] == 2
    page = opened(context, links[0])
    sees(page, "Your answers were counted")
    look_at(page, "questionnaire-result")
    for name, share in (
        ("South", "50.0\u00a0%"),
        ("prefer not to say", "50.0\u00a0%"),
        ("does not apply", "50.0\u00a0%"),
    ):
        expect(page.get_by_role("row", name=re.compile(name)).first).to_contain_text(share)
    hours = page.get_by_role("row", name=re.compile("^mean ")).filter(has_text="39.25")
    expect(hours).to_have_count(1)


def answer_in_german(page: Page, look_at: Any) -> None:
    """Skips where possible; a comma separates the fraction."""
    sees(page, "Aldmoor Council fragt")
    expect(page.get_by_role("heading", name="Arbeit", exact=True)).to_be_visible()
    choose(page, "An welchem Standort", "keine Angabe")
    choose(page, "Würden Sie uns", "nein")
    choose(page, "Warum nicht?", "Leute")
    choose(page, "Wie kommen Sie", "keine Angabe")
    choose(page, "Was ist am wichtigsten", "nichts davon")
    choose(page, "Wie müde", "keine Angabe")
    page.get_by_role("textbox", name=re.compile("Stunden")).fill("40,1")
    choose(page, "Wie alt", "50 bis 80")
    page.get_by_role("combobox", name="Schicht?").select_option("früh")
    page.get_by_role("combobox", name="Team?").select_option("blau")
    look_at(page, "questionnaire-german")
    page.get_by_role("button", name="Weiter").click()
    sees(page, "Diese Antworten senden?")
    assert listed(page)[6] == ("7. Stunden pro Woche?", ["40"])
    page.get_by_role("button", name="Absenden").click()
    sees(page, "Danke! Ihre Antworten sind angekommen")


def test_what_is_missing_is_told_at_the_question(trial, visitor) -> None:
    page = opened(visitor(), create(trial, questionnaire())[0])
    fill_in(page)
    group(page, "What matters").get_by_label("people").uncheck()
    page.get_by_role("textbox", name=re.compile("Hours")).fill("61")
    page.get_by_role("combobox", name="Team?").select_option("Please choose")
    proceed(page)
    alert = page.get_by_role("alert")
    expect(alert).to_have_count(1)
    expect(alert).to_contain_text("Please choose at least one")
    first = group(page, "What matters").get_by_label("pay")
    expect(first).to_be_focused()
    assert first.evaluate(
        "box => document.getElementById(box.getAttribute('aria-describedby')).textContent"
    )
    expect(page.get_by_text("Please enter a number from 0 to 60 first.")).to_be_visible()
    expect(page.get_by_text("Please choose an answer to both first.")).to_be_visible()
    first.check()
    expect(page.get_by_text("Please choose at least one")).to_be_hidden()
    page.get_by_role("textbox", name=re.compile("Hours")).fill("60")
    page.get_by_role("combobox", name="Team?").select_option("blue")
    proceed(page)
    sees(page, "Send these answers?")


def test_at_most_two_are_counted_while_they_are_chosen(trial, visitor) -> None:
    page = opened(visitor(), create(trial, questionnaire())[0])
    asked = group(page, "What matters")
    expect(asked).to_contain_text("Choose at most 2")
    expect(asked).to_contain_text("0 of at most 2 chosen")
    choose(page, "What matters", "pay", "food")
    expect(asked.get_by_role("status")).to_have_text(
        "2 of at most 2 chosen: remove one to choose another"
    )
    expect(asked.get_by_label("hours")).to_be_disabled()
    choose(page, "What matters", "none of these")
    expect(asked.get_by_label("pay")).not_to_be_checked()
    expect(asked.get_by_label("hours")).to_be_enabled()
    choose(page, "What matters", "hours")
    expect(asked.get_by_label("none of these")).not_to_be_checked()


def test_one_promise_for_all_answers_and_the_number_for_a_single_one(trial, visitor) -> None:
    asked = questionnaire()
    (link, *_) = trial.create(40, mechanism=joint(asked, 40, 0.5))
    page = opened(visitor(), link)
    # e / (1 + e), and e^0.5 / (1 + e^0.5), rounded up.
    expect(page.get_by_text("can be at most 73.2\u00a0% sure which one it is")).to_be_visible()
    expect(
        page.get_by_text("About a single answer of yours, this person can be at most 62.3")
    ).to_be_visible()
    expect(page.get_by_text("epsilon = 1 and delta")).to_be_visible()


def test_the_keyboard_is_enough(trial, visitor) -> None:
    short = Questionnaire(QUESTIONS[:2], "", "", ())
    page = opened(visitor(), create(trial, short)[0])
    page.get_by_role("radio", name="North").focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    sees(page, "Send these answers?")
    assert [lines for _, lines in listed(page)] == [["South"], ["no"]]


def test_a_language_that_the_page_does_not_speak_can_be_chosen_for_the_questions(
    trial, visitor
) -> None:
    french = Translation("fr", "", (TranslatedQuestion(("Du thé ?",), ("non", "oui")),))
    asked = Questionnaire((YesNo(text="Tea?"),), "", "en", (french,))
    page = opened(visitor(), create(trial, asked)[0])
    page.get_by_role("combobox", name="Language of the questions").select_option("français")
    expect(page.get_by_role("group", name="Du thé ?")).to_be_visible()
    assert page.get_by_role("group").locator("legend").get_attribute("lang") == "fr"
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    page = opened(visitor(locale="fr"), create(trial, asked)[0])
    expect(page.get_by_role("radio", name="oui")).to_be_visible()


def test_one_question_shows_no_words_of_a_questionnaire(trial, visitor, look_at) -> None:
    asked = Questionnaire((AnyOf(text="What do you drink?", items=("tea", "water", "milk")),))
    links = create(trial, asked)
    page = opened(visitor(), links[0])
    expect(page.get_by_role("group", name="What do you drink?")).to_be_visible()
    choose(page, "What do you drink?", "tea", "milk")
    proceed(page)
    sees(page, "Send this answer?")
    assert page.locator(".answer").all_inner_texts() == ["tea", "milk"]
    assert "questionnaire" not in page.locator("main").inner_text()
    page.get_by_role("button", name="Send").click()
    sees(page, "Thank you! Your answer has arrived")


@pytest.mark.parametrize(
    ("locale", "typed", "shown"),
    [
        ("en", "1,500", "1,500"),
        ("en", "1500.4", "1,500"),
        ("de", "1.500", "1.500"),
        ("de", "1500,4", "1.500"),
        ("de", "1500.4", "1.500"),
    ],
)
def test_numbers_are_read_as_they_are_written_in_the_language(
    trial, visitor, locale: str, typed: str, shown: str
) -> None:
    pay = Number(text="Euros?", low=Fraction(0), high=Fraction(9000), step=Fraction(100))
    page = opened(visitor(locale=locale), create(trial, Questionnaire((pay,)))[0])
    page.get_by_role("textbox", name="Euros?").fill(typed)
    page.locator("button.main").click()
    assert page.locator(".answer").all_inner_texts() == [shown]


def test_nothing_of_the_answers_is_stored(trial, visitor) -> None:
    """What waits on the device are shares and a proof: no answer, and no token."""
    page = opened(visitor(), create(trial, questionnaire())[0])
    fill_in(page)
    proceed(page)
    page.get_by_role("button", name="Send").click()
    sees(page, "Thank you! Your answers have arrived")
    record = page.evaluate(
        "async () => (await import('/page/store.js')).loadAll().then((all) => all[0])"
    )
    assert "sheet" not in record
    assert "38.5" not in json.dumps({**record, "published": ""})
