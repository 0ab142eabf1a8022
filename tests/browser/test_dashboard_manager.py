"""What a manager sees on the dashboard: plans in their terms, the result first, silence explained."""

import re
from datetime import UTC, datetime, timedelta

from in_process import rename_operator
from playwright.sync_api import Page, expect

from faircount.core.errors import UnreachableError
from faircount.owner.remote import BothServers

FIELDS = {
    "Question": "Which drink?",
    "Possible answers": "Tea\nCoffee",
    "Number of people": "60",
}


def unreachable(*_: object) -> dict[str, object]:
    values = {"server": "S2", "address": "http://nowhere"}
    raise UnreachableError("no answer").with_code("unreachable", **values)


def fill_form(page: Page, **more: str) -> None:
    page.get_by_role("button", name="New survey").click()
    for label, text in {**FIELDS, **more}.items():
        page.get_by_label(label).fill(text)


def test_the_error_is_stated_for_the_expected_response_rate(owner_page) -> None:
    page = owner_page()
    fill_form(page, **{"Expected response rate": "60"})
    expect(page.get_by_text("if 36 of 60 people do.")).to_be_visible()
    expect(page.get_by_text("If 36 of 60 people answer, as you expect")).to_be_visible()
    page.get_by_label("Minimum number of responses").fill("34")
    expect(page.get_by_text(re.compile("reached with a chance of 7[0-9]\u00a0%"))).to_be_visible()
    page.get_by_label("Minimum number of responses").fill("50")
    expect(page.get_by_text("You expect 36 answers, but at least 50 are needed.")).to_be_visible()
    expect(page.get_by_label("Create it anyway")).to_be_visible()
    page.get_by_label("Expected response rate").fill("101")
    expect(page.get_by_text("please enter a number above 0 and at most 100")).to_be_visible()


def test_a_closing_time_is_given_in_the_owners_zone(owner, owner_page) -> None:
    page = owner_page(timezone_id="Asia/Tokyo")
    fill_form(page, **{"Epsilon: how": "40", "Short name": "until"})
    note = page.locator(".time ~ .hint")
    expect(note).to_contain_text("Opened now, it closes on")
    expect(note).to_contain_text("Asia/Tokyo")
    tomorrow = datetime.now(tz=UTC) + timedelta(days=1)
    page.get_by_label("Closing date and time").fill(f"{tomorrow:%Y-%m-%d}T18:00")
    expect(page.get_by_label("Until")).to_be_checked()
    expect(note).to_contain_text("6:00 PM (time zone: Asia/Tokyo), whenever you open it.")
    page.get_by_role("button", name="Create survey and invitations").click()
    page.get_by_role("button", name="Open the survey").click()
    expect(page.locator(".waits")).to_contain_text("at 6:00 PM")
    closes = datetime.fromisoformat(owner.surveys.one("until")["status"]["closes_at"])
    assert (closes.hour, closes.minute) == (9, 0)  # in UTC


def test_a_duration_of_days_or_hours(owner, owner_page) -> None:
    page = owner_page()
    fill_form(page, **{"Epsilon: how": "40", "Short name": "hours", "For how long": "5"})
    page.get_by_label("Days or hours").select_option("hours")
    page.get_by_role("button", name="Create survey and invitations").click()
    page.get_by_role("button", name="Open the survey").wait_for()
    assert owner.surveys.survey("hours").params.phase_seconds == (5 * 3600,)
    # A copy begins with the same time.
    page.get_by_role("button", name="Copy as a new survey").click()
    expect(page.get_by_label("For how long")).to_have_value("5")
    expect(page.get_by_label("Days or hours")).to_have_value("hours")


def test_the_result_comes_first_and_technical_matter_on_request(trial, owner, owner_page) -> None:
    servers = (trial.pair.s1.server, trial.pair.s2.server)
    names = [server.operator.name for server in servers]
    for server in servers:
        rename_operator(server, "Acme")
    links = owner.creates("top")
    for server, name in zip(servers, names, strict=True):
        rename_operator(server, name)
    trial.answers(links[:5], "By bus")
    owner.ends("top")
    page = owner_page()
    page.get_by_role("button", name="top", exact=True).click()
    headings = page.get_by_role("heading", level=2)
    expect(headings.first).to_have_text("Result")
    expect(page.get_by_text("One operator ran both servers and could have read")).to_be_visible()
    key = page.get_by_text("The coordinator (S1) is run by")
    expect(key).to_be_hidden()
    page.get_by_text("Technical details: servers, keys, mechanism").click()
    expect(key).to_be_visible()
    exactly = page.get_by_text("nobody who runs both servers combines their shares")
    expect(exactly).to_be_hidden()
    page.get_by_text("Details of the guarantee").click()
    expect(exactly).to_be_visible()


def test_an_aggregator_that_is_away_is_told_once(trial, owner, owner_page, monkeypatch) -> None:
    links = owner.creates("silent")
    trial.answers(links[:5], "By bus")
    page = owner_page()
    monkeypatch.setattr(BothServers, "aggregator_status", unreachable)
    page.get_by_role("button", name="silent").click()
    waits = page.locator(".waits")
    expect(waits).to_contain_text("People can answer nevertheless: it is needed when")
    expect(waits).not_to_contain_text("does not tell its status")
    # While both servers count, mails would reach people who cannot answer any more.
    expect(page.get_by_role("heading", name="Mail")).to_be_visible()
    page.get_by_role("button", name="Close now").click()
    page.get_by_role("button", name="Yes, close it").click()
    expect(waits).to_contain_text("The coordinator has been waiting for the aggregator since")
    expect(waits).not_to_contain_text("cannot be reached")
    expect(page.get_by_role("heading", name="Mail")).to_be_hidden()
    trial.settle()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()


def test_a_result_that_was_read_once_needs_no_server(trial, owner, owner_page, monkeypatch) -> None:
    links = owner.creates("kept")
    trial.answers(links[:5], "By bus")
    owner.ends("kept")
    owner.surveys.one("kept")
    owner.surveys.result("kept")
    for call in ("status", "aggregator_status", "budget", "fetch_final_statement"):
        monkeypatch.setattr(BothServers, call, unreachable)
    page = owner_page()
    page.get_by_role("button", name="kept").click()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_empty()
    expect(page.get_by_text("Result published; 5 of 8 people had answered.")).to_be_visible()
