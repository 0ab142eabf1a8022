"""How the page looks and reads: axe, keyboard, languages, narrow screens, both directions; screenshots for people."""

import os
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from faircount.mechanisms.laplace import Laplace

RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
SHOTS = os.environ.get("FAIRCOUNT_SCREENSHOTS")
"""A folder for pictures of every view; without it none are made."""


def checked(page: Page, name: str) -> None:
    """No rule of axe is broken, nothing is wider than the screen; and a picture, if wanted."""
    found = Axe().run(page, options=RULES).response["violations"]
    assert [(each["id"], [node["html"][:120] for node in each["nodes"]]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), name
    if SHOTS:
        page.screenshot(path=Path(SHOTS, f"{name}.png"), full_page=True)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("desktop", {"color_scheme": "light"}),
        ("phone", {"color_scheme": "dark", "viewport": {"width": 320, "height": 640}}),
    ],
)
def test_every_view_is_accessible(trial, visitor, name, settings) -> None:
    mechanism = Laplace(
        items=["Aldmoor", "Brackwater", "Carrow, at the end of a very long valley"], epsilon=3.0, users=6
    )
    links = trial.create(6, mechanism=mechanism)
    trial.answers(links[1:], "Brackwater")
    page = visitor(**settings).new_page()
    page.goto(trial.address)
    page.get_by_role("button", name="Open").wait_for()
    checked(page, f"{name}-entry")
    page.goto(links[0])
    page.get_by_role("radio", name="Aldmoor").check()
    checked(page, f"{name}-question")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").wait_for()
    checked(page, f"{name}-confirmation")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Thank you")
    page.get_by_role("progressbar").wait_for()
    checked(page, f"{name}-sent")
    page.get_by_role("button", name="Take my answer back").click()
    checked(page, f"{name}-withdraw")
    page.get_by_role("button", name="No, keep it").click()
    trial.close()
    page.get_by_role("button", name="Was I counted?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("You were counted")
    checked(page, f"{name}-result")
    page.goto(f"{trial.address}/#AAAA")
    page.get_by_role("alert").wait_for()
    checked(page, f"{name}-refusal")


def test_the_picture_of_the_readme_can_be_made(trial, visitor, tmp_path) -> None:
    cities = ["Aldmoor", "Brackwater", "Carrow", "Dunholm"]
    (link, *_) = trial.create(300, mechanism=Laplace(items=cities, epsilon=1.0, users=300))
    page = visitor(viewport={"width": 760, "height": 860}).new_page()
    page.goto(link)
    page.get_by_role("radio", name="Brackwater").check()
    expect(page.get_by_text("at most 73.2 % sure")).to_be_visible()
    made = Path(SHOTS or tmp_path, "readme.png")
    page.screenshot(path=made)
    assert made.stat().st_size > 10_000


def test_the_keyboard_is_enough(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = visitor().new_page()
    page.goto(link)
    page.get_by_role("radio", name="Aldmoor").wait_for()
    for key in ("Tab", "Space", "ArrowDown", "Tab", "Enter"):
        page.keyboard.press(key)
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.locator(".answer")).to_have_text("Brackwater")
    page.get_by_role("button", name="Send").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Thank you")


def test_a_second_language_says_everything(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = visitor(locale="de-AT").new_page()
    page.goto(link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Aldmoor Council fragt")
    expect(page.get_by_text("höchstens zu 100 % sicher")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "de"
    page.get_by_role("radio", name="Carrow").check()
    page.get_by_role("combobox", name="Sprache").select_option("en")
    expect(page.get_by_role("heading", level=1)).to_have_text("Aldmoor Council asks")
    expect(page.get_by_role("radio", name="Carrow")).to_be_checked()
    same_names = page.evaluate(
        """() => import('/page/strings.js').then(({LANGUAGES}) => {
          const gaps = (text) => (text.match(/\\{\\w+\\}/g) ?? []).sort();
          const shape = (all) => JSON.stringify(Object.entries(all).map(([name, text]) => [name, gaps(text)]));
          const [first, ...others] = Object.values(LANGUAGES).map(shape);
          return others.length > 0 && others.every((other) => other === first);
        })"""
    )
    assert same_names


def test_no_sentence_is_missing_or_idle() -> None:
    folder = Path(__file__).parents[2] / "src" / "faircount" / "web" / "page"
    strings = (folder / "strings.js").read_text(encoding="utf-8").partition("const de")[0]
    defined = set(re.findall(r"^  (\w+):", strings, re.MULTILINE)) - {"language", "direction"}
    code = "".join(each.read_text(encoding="utf-8") for each in folder.glob("*.js") if each.name != "strings.js")
    stages = ("waiting", "sent", "refused", "leaving", "withdrawn", "counted", "uncounted", "ended")
    made = {f"{stage}{part}" for stage in stages for part in ("Title", "Words")}
    used = set(re.findall(r'"(\w+)"', code)) | made
    assert {name for name in defined if name not in used and not name.startswith("refusal_")} == set()
    codes = "".join(each.read_text(encoding="utf-8") for each in folder.parent.glob("*/*.js"))
    thrown = set(re.findall(r'(?:Refusal\(|, )"(\w+)", ["`]', codes)) & {name[8:] for name in defined}
    assert thrown >= {"digest", "promise", "derived", "malformed", "code", "mistyped", "browser", "insecure", "storage"}


def test_right_to_left_nothing_is_lost(trial, visitor) -> None:
    hebrew = "איפה אתם גרים?"
    (link, *_) = trial.create(question=hebrew)
    page = visitor(viewport={"width": 320, "height": 640}).new_page()
    page.goto(link)
    page.get_by_role("radio", name="Aldmoor").check()
    page.evaluate("document.documentElement.dir = 'rtl'")
    checked(page, "right-to-left")
    box = page.get_by_role("radio", name="Aldmoor").bounding_box()
    assert box["x"] > 160  # the button stands at the right, where reading begins
    assert page.locator("legend").evaluate("each => getComputedStyle(each).direction") == "rtl"
