"""How the dashboard looks and reads: axe, keyboard, languages, directions, screenshots."""

import os
from pathlib import Path

from playwright.sync_api import expect

SHOTS = os.environ.get("FAIRCOUNT_SCREENSHOTS")


def test_every_view_is_accessible(trial, owner, owner_page, look_at, tmp_path) -> None:
    links = owner.creates(
        "commute",
        users="40",
        epsilon="3",
        population="staff",
        budget_epsilon="10",
        budget_delta="1e-5",
    )
    page = owner_page()
    expect(page.get_by_role("listitem").filter(has_text="commute")).to_contain_text(
        "0 of 40 answered"
    )
    look_at(page, "dashboard-list")
    page.get_by_role("button", name="New survey").click()
    for label, text in {
        "Question": "Which drink?",
        "Possible answers": "Tea\nCoffee\nWater",
    }.items():
        page.get_by_label(label).fill(text)
    expect(page.get_by_text("95\u00a0% error: ±")).to_be_visible()
    look_at(page, "dashboard-form")
    page.get_by_role("button", name="Back").click()
    page.get_by_role("button", name="commute").click()
    trial.answers(links[:12], "By bus")
    expect(page.get_by_text("12 of 40 people have answered")).to_be_visible()
    page.get_by_text("Show one invitation").click()
    page.get_by_label("Person").select_option("person 03")
    page.get_by_role("img", name="QR code with the link of person 03").wait_for()
    look_at(page, "dashboard-running")
    trial.answers(links[12:30], "By bicycle")
    trial.answers(links[30:33], "On foot")
    owner.ends("commute")
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    look_at(page, "dashboard-result")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": 900, "height": 1000})
    page.evaluate("scrollTo(0, 0)")
    made = Path(SHOTS or tmp_path, "dashboard.png")
    page.screenshot(path=made)  # for the documentation
    assert made.stat().st_size > 10_000


def test_a_second_language_says_everything(owner, owner_page) -> None:
    links = owner.creates("sprache")
    owner.trial.answers(links[:4], "By bus")
    page = owner_page(locale="de-AT")
    page.get_by_role("button", name="sprache").click()
    expect(page.get_by_text("4 von 8 Personen haben geantwortet")).to_be_visible()
    expect(page.get_by_text("Antworten sind möglich bis")).to_be_visible()
    assert page.locator("html").get_attribute("lang") == "de"
    owner.ends("sprache")
    expect(page.get_by_text("höchstens zu 100\u00a0% sicher")).to_be_visible()
    page.get_by_text("Einzelheiten der Garantie").click()
    expect(
        page.get_by_text(
            "Bedingung: der Aggregator (S2) fügt sein Rauschen hinzu und hält es geheim"
        )
    ).to_be_visible()
    expect(page.locator("main [lang=en]:not(label)")).to_have_count(0)
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_text("they can be at most 100\u00a0% sure")).to_be_visible()
    expect(page.get_by_role("heading", level=1)).to_have_text("sprache")


def test_refusals_and_invitations_are_in_the_owners_language(owner, owner_page) -> None:
    page = owner_page(locale="de")
    page.get_by_role("button", name="Neue Umfrage").click()
    page.get_by_label("Frage", exact=True).fill("Warum?")
    page.get_by_label("Mögliche Antworten").fill("Darum")
    expect(page.get_by_text("Schreiben Sie mindestens zwei Antworten")).to_be_visible()
    page.get_by_label("Mögliche Antworten").fill("Darum\nSo")
    expect(
        page.get_by_text("Bedingung: der Koordinator (S1) oder der Aggregator (S2) fügt")
    ).to_be_visible()
    page.get_by_label("Delta: Wahr").fill("1")
    expect(
        page.get_by_text("mehr verraten wird: Bitte geben Sie eine Zahl über 0 und unter 1 ein.")
    ).to_be_visible()
    expect(page.locator("main [lang=en]:not(label)")).to_have_count(0)
    page.get_by_label("Epsilon: wie").fill(
        "0.0000001"
    )  # the planner's own words are English, and say so
    page.get_by_label("Delta: Wahr").fill("0.000001")
    expect(page.get_by_text("Kein Verfahren kann dieses Versprechen halten.")).to_be_visible()
    expect(page.locator("p[lang=en]")).to_contain_text("no mechanism keeps this promise in servers")
    for label, text in {
        "Epsilon: wie": "40",
        "Zahl der eingeladenen": "8",
        "Mindestzahl der": "4",
        "Kurzer": "gedruckt",
    }.items():
        page.get_by_label(label).fill(text)
    page.get_by_role("button", name="Umfrage und Einladungen anlegen").click()
    expect(page.get_by_text("Die Umfrage ist bereit.")).to_be_visible()
    printed = owner.surveys.file("gedruckt", "invitations.html").decode()
    assert "<html lang=de>" in printed
    assert "Scannen Sie den Code" in printed


def test_right_to_left_nothing_is_lost(owner, owner_page, look_at) -> None:
    links = owner.creates("rtl", question="איך אתם מגיעים לעבודה?")
    owner.trial.answers(links[:4], "By bus")
    owner.ends("rtl")
    page = owner_page(viewport={"width": 320, "height": 640})
    page.get_by_role("button", name="rtl").click()
    page.get_by_role("heading", name="Result").wait_for()
    page.evaluate("document.documentElement.dir = 'rtl'")
    look_at(page, "dashboard-right-to-left")
    assert (
        page.get_by_role("button", name="PNG", exact=True).bounding_box()["x"] > 160
    )  # where reading begins
    assert page.locator("p[dir=auto]").evaluate_all(
        "all => all.every((each) => getComputedStyle(each).textAlign === 'right')"
    )
    assert page.locator("svg.chart .zero").first.bounding_box()["x"] > 290  # bars too
    mark = page.locator(".minimum").bounding_box()["x"]
    assert abs(mark - (20 + 280 / 2)) < 5  # 4 of 8
