"""Both pages as a screen reader reads them: the accessibility tree, and announcements."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

from playwright.sync_api import Page, expect

from faircount.core.questions import (
    Branch,
    MostOf,
    Number,
    OneOf,
    QuestionGroup,
    Questionnaire,
    Table,
    YesNo,
)
from faircount.mechanisms.server_sheets import ServerSheets

# What somebody can use, with the state that a reader must be told besides role and name.
STATES = {
    "button": None,
    "link": None,
    "textbox": None,
    "spinbutton": None,
    "radio": "checked",
    "checkbox": "checked",
    "combobox": "value",
    "DisclosureTriangle": "expanded",
    "progressbar": "value",
}
NAMED = {
    *STATES,
    "heading",
    "image",
    "img",
    "table",
    "region",
    "radiogroup",
    "group",
    "dialog",
    "form",
    "list",
}
"""Of these a reader says the name."""

MAY_BE_UNNAMED = {"group", "list", "form"}
"""Where a name is a help, and what is inside has names of its own."""


@dataclass(frozen=True)
class Spoken:
    """One stop on the way through the page."""

    role: str
    name: str
    states: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        said = [
            f"{name} {value}"
            for name, value in self.states.items()
            if name not in ("focusable", "editable")
        ]
        return ", ".join([self.role, self.name, *said])


def read(page: Page) -> list[Spoken]:
    """Everything that a screen reader comes by, in its order."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    by_id = {node["nodeId"]: node for node in nodes}
    return list(_walk(nodes[0], by_id))


def _walk(node: dict[str, Any], by_id: dict[str, dict[str, Any]]) -> Iterator[Spoken]:
    if not node.get("ignored"):
        states = {
            property_["name"]: property_["value"].get("value")
            for property_ in node.get("properties", ())
        }
        value = {"value": node["value"].get("value")} if "value" in node else {}
        yield Spoken(_text(node, "role"), _text(node, "name"), {**states, **value})
    for child in node.get("childIds", ()):
        if child in by_id:
            yield from _walk(by_id[child], by_id)


def _text(node: dict[str, Any], key: str) -> str:
    return str(node.get(key, {}).get("value", "")).strip()


def complaints(spoken: list[Spoken]) -> list[str]:
    """What a listener would miss: names, states, and headings in order."""
    found = [
        f"no name: {node}"
        for node in spoken
        if node.role in NAMED - MAY_BE_UNNAMED and not node.name
    ]
    for node in spoken:
        state = STATES.get(node.role)
        if state and node.states.get(state) is None:
            found.append(f"no {state}: {node}")
    levels = [int(node.states["level"]) for node in spoken if node.role == "heading"]
    if levels[:1] != [1] or levels.count(1) != 1:
        found.append(f"not one first heading: {levels}")
    found += [f"a heading of level {b} after {a}" for a, b in pairwise(levels) if b > a + 1]
    return found


LISTEN = """() => {
  const LIVE = "[role=status], [role=alert], [aria-live]";
  const known = new WeakSet(document.querySelectorAll(LIVE));
  const inside = (node) => [node, ...(node.querySelectorAll?.("*") ?? [])];
  const alertsIn = (node) => inside(node).filter((child) => child.role === "alert");
  const elementOf = (node) => (node.nodeType === 1 ? node : node.parentElement);
  window.announced = [];
  new MutationObserver((changes) => {
    const targets = changes.map(({ target }) => elementOf(target)?.closest(LIVE));
    const alerts = changes.flatMap(({ addedNodes }) => [...addedNodes].flatMap(alertsIn));
    const changed = new Set([...targets.filter((each) => known.has(each)), ...alerts]);
    changed.forEach((each) => window.announced.push(each.textContent.trim()));
    document.querySelectorAll(LIVE).forEach((each) => known.add(each));
  }).observe(document.body, { childList: true, characterData: true, subtree: true });
}"""


def listen(page: Page) -> None:
    """Record from now on every change in an existing live region, and every new alert.

    A status that appears together with its text is not recorded: screen readers are silent then.
    """
    page.evaluate(LISTEN)


def heard(page: Page, words: str) -> None:
    """Wait until this was announced."""
    page.wait_for_function("(words) => announced.some((each) => each.includes(words))", arg=words)


WIDE = {"viewport": {"width": 1200, "height": 900}}


def said(page: Page) -> str:
    """All of it in lines, after nothing is found that is missing."""
    spoken = read(page)
    assert complaints(spoken) == []
    return "\n".join(
        str(node) for node in spoken if node.role not in ("InlineTextBox", "none", "generic")
    )


def drawings_are_told(page: Page) -> None:
    """Screen readers skip charts; every number in one is text in the row above or beside it."""
    told = page.locator("svg.chart").evaluate_all(
        """all => all.map((each) => {
          const row = each.closest("tr")?.previousElementSibling ?? each.closest("li");
          return each.getAttribute("aria-hidden") === "true" && /\\d/.test(row.textContent);
        })"""
    )
    assert told
    assert all(told)


def test_the_page_from_the_question_to_the_result(trial, visitor) -> None:
    links = trial.create(6)
    trial.answers(links[1:5], "Brackwater")
    page = visitor(**WIDE).new_page()
    page.goto(links[0])
    page.get_by_role("radio", name="Aldmoor").check()
    words = said(page)
    assert re.search(r"radio, Aldmoor.*checked true", words)
    assert re.search(r"radio, Carrow.*checked false", words)
    assert "heading, How your answer is protected" in words
    listen(page)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").wait_for()
    assert "heading, Send this answer?" in said(page)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    heard(page, "Send this answer?")  # focus alone is not told by Orca, where the old one is gone
    page.get_by_role("button", name="Send").click()
    page.get_by_role("progressbar").wait_for()
    assert re.search(r"progressbar, .*5 of 6.*value", said(page))
    page.get_by_role("button", name="Was my answer counted?").click()
    heard(page, "There is no result yet.")
    page.get_by_role("button", name="Withdraw my answer").click()
    asked = [
        node for node in read(page) if node.role in ("dialog", "button")
    ]  # a question hides what is behind it
    assert [(node.role, bool(node.name)) for node in asked] == [
        ("dialog", True),
        ("button", True),
        ("button", True),
    ]
    page.get_by_role("button", name="No, keep it").click()
    trial.close()
    page.get_by_role("button", name="Was my answer counted?").click()
    heard(page, "Your answer was counted")
    words = said(page)
    assert re.search(r"rowheader, Brackwater", words)
    assert re.search(r"cell, 80\.0\u00a0%", words)
    drawings_are_told(page)


def test_a_questionnaire_from_the_form_to_the_result(trial, visitor) -> None:
    questions = (
        YesNo(text="Would you recommend us?"),
        OneOf(text="Why not?", items=("pay", "hours", "people"), only_if=Branch(0, (0,))),
        MostOf(text="What matters?", items=("pay", "hours", "people"), most=2),
        Number(text="Hours per week?", low=Fraction(0), high=Fraction(60), skip=True),
        Table(text="Shift?", columns_text="Team?", rows=("early", "late"), columns=("red", "blue")),
    )
    asked = Questionnaire(questions, "Work", "en")
    groups = (QuestionGroup.of(50.0, range(len(asked))),)
    links = trial.create(
        4,
        mechanism=ServerSheets(
            questionnaire=asked, groups=groups, epsilon=50.0, users=4, dropouts=2
        ),
    )
    for link in links[:2]:
        page = visitor(**WIDE).new_page()
        page.goto(link)
        answer_questionnaire(page)
    trial.close()
    page.get_by_role("button", name="Were my answers counted?").click()
    heard(page, "Your answers were counted")
    words = said(page)
    assert "heading, 4. Hours per week?" in words
    assert "rowheader, mean of those who answered" in words
    drawings_are_told(page)


def answer_questionnaire(page: Page) -> None:
    """Every question is a group with a name; what appears or is missing is announced."""
    page.get_by_role("group", name="1. Would you recommend us?").wait_for()
    listen(page)
    page.get_by_role("button", name="Continue").click()
    heard(page, "Please choose an answer first.")
    page.get_by_label("no", exact=True).check()
    heard(page, "Another question has appeared below.")
    words = said(page)
    for number, text in enumerate(("Would you", "Why not?", "What matters?", "Hours"), 1):
        assert re.search(f"(group|radiogroup), {number}. {re.escape(text)}", words)
    assert "textbox, 4. Hours per week?" in words
    assert "combobox, Shift?" in words
    page.get_by_role("radio", name="hours").check()
    page.get_by_role("checkbox", name="pay").check()
    heard(page, "1 of at most 2 chosen")
    page.get_by_role("textbox").fill("40")
    page.get_by_role("combobox", name="Shift?").select_option("late")
    page.get_by_role("combobox", name="Team?").select_option("red")
    page.get_by_role("button", name="Continue").click()
    heard(page, "Send these answers?")
    words = said(page)
    assert "2. Why not?" in words
    page.get_by_role("button", name="Send").click()
    heard(page, "Thank you! Your answers have arrived")
    said(page)


def test_a_refusal_is_announced(trial, visitor) -> None:
    page = visitor().new_page()
    page.goto(trial.address)
    page.get_by_role("textbox", name="Invitation code or link").fill("AAAA")
    listen(page)
    page.get_by_role("button", name="Open").click()
    page.get_by_role("alert").wait_for()
    heard(page, page.get_by_role("alert").inner_text())
    said(page)


def test_the_dashboard_from_the_form_to_the_result(trial, owner, owner_page) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").click()
    listen(page)
    page.get_by_label("Possible answers").fill("Tea")
    heard(page, "Write at least two answers")
    page.get_by_label("Possible answers").fill("Tea\nCoffee")
    heard(page, "95\u00a0% error: ±")
    drawings_are_told(page)
    assert re.search(r"textbox, Possible answers.*required True", said(page), re.IGNORECASE)
    page.get_by_role("button", name="Back").click()
    links = owner.creates("spoken")
    page.get_by_role("button", name="spoken").click()
    heard(page, "spoken")
    page.get_by_text("0 of 8 people have answered").wait_for()
    said(page)
    trial.answers(links[:4], "By bus")
    heard(page, "4 of 8 people have answered")
    page.get_by_text("Show one invitation").click()
    page.get_by_label("Person").select_option("person 3")
    heard(page, "It works once")
    assert re.search(r"image, QR code with the link of person 3", said(page))
    owner.ends("spoken")
    heard(page, "Result published4 of 8")
    page.get_by_role("heading", name="Result").wait_for()
    assert re.search(r"rowheader, By bus.*\n(?:.*\n)*?(?:grid)?cell, 100\.0\u00a0%", said(page))
    drawings_are_told(page)


SPOILED = {
    "document.querySelector('label[for=code]').remove()": "no name: textbox",
    "document.querySelector('main button').textContent = ''": "no name: button",
    "document.querySelector('h1').remove()": "not one first heading",
    "document.querySelector('main').append(document.createElement('h4'))": "no name: heading",
    "document.querySelector('main').append("
    "Object.assign(new Image(), { src: 'icon.svg' }))": "no name: image",
}


def test_what_is_missing_is_noticed(trial, visitor) -> None:
    page = visitor().new_page()
    for spoil, complaint in SPOILED.items():
        page.goto(trial.address)
        page.get_by_role("button", name="Open").wait_for()
        assert complaints(read(page)) == []
        page.evaluate(spoil)
        page.wait_for_timeout(50)
        assert complaint in " ".join(complaints(read(page)))


def test_a_status_that_comes_with_its_words_is_not_heard(trial, visitor) -> None:
    """The ear of these tests is no better than a screen reader's."""
    page = visitor().new_page()
    page.goto(trial.address)
    page.get_by_role("button", name="Open").wait_for()
    listen(page)
    page.evaluate("""() => {
      const made = Object.assign(document.createElement("p"), { role: "status" });
      document.querySelector("main").append(made);
      made.append("too early");
    }""")
    page.evaluate("document.querySelector('main [role=status]').replaceChildren('in time')")
    heard(page, "in time")
    assert page.evaluate("announced") == ["in time"]
