"""How the page looks and reads: axe, keyboard, languages, directions, screenshots."""

import os
from pathlib import Path

from playwright.sync_api import expect

from faircount.mechanisms.server_noise import ServerLaplace

SHOTS = os.environ.get("FAIRCOUNT_SCREENSHOTS")


def test_every_view_is_accessible(trial, visitor, look_at) -> None:
    mechanism = ServerLaplace(
        items=["Aldmoor", "Brackwater", "Carrow, at the end of a very long valley"],
        epsilon=3.0,
        users=6,
    )
    links = trial.create(6, mechanism=mechanism)
    trial.answers(links[1:], "Brackwater")
    page = visitor().new_page()
    page.goto(trial.address)
    page.get_by_role("button", name="Open").wait_for()
    look_at(page, "page-entry")
    page.goto(links[0])
    page.get_by_role("radio", name="Aldmoor").check()
    look_at(page, "page-question")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").wait_for()
    look_at(page, "page-confirmation")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Thank you")
    page.get_by_role("progressbar").wait_for()
    look_at(page, "page-sent")
    page.get_by_role("button", name="Withdraw my answer").click()
    look_at(page, "page-withdraw")
    page.get_by_role("button", name="No, keep it").click()
    trial.close()
    page.get_by_role("button", name="Was my answer counted?").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your answer was counted")
    look_at(page, "page-result")
    page.goto(f"{trial.address}/#AAAA")
    page.get_by_role("alert").wait_for()
    look_at(page, "page-refusal")


def test_the_picture_of_the_readme_can_be_made(trial, visitor, tmp_path) -> None:
    cities = ["Aldmoor", "Brackwater", "Carrow", "Dunholm"]
    (link, *_) = trial.create(300, mechanism=ServerLaplace(items=cities, epsilon=1.0, users=300))
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


def test_right_to_left_nothing_is_lost(trial, visitor, look_at) -> None:
    hebrew = "איפה אתם גרים?"
    (link, *_) = trial.create(question=hebrew)
    page = visitor(viewport={"width": 320, "height": 640}).new_page()
    page.goto(link)
    page.get_by_role("radio", name="Aldmoor").check()
    page.evaluate("document.documentElement.dir = 'rtl'")
    look_at(page, "page-right-to-left")
    box = page.get_by_role("radio", name="Aldmoor").bounding_box()
    assert box["x"] > 160  # the button stands at the right, where reading begins
    assert page.locator("legend").evaluate("each => getComputedStyle(each).direction") == "rtl"
