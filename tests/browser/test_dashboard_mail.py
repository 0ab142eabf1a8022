"""Mails from the dashboard: shown first, sent once, and only to those who should get one."""

import json
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Page, expect
from smtp_sink import Sink, smtp_sink

from faircount.client.participation import connect
from faircount.core.errors import UnreachableError
from faircount.owner.mail_server import MailServer, MailSettings
from faircount.owner.remote import BothServers

KEY = "key-of-this-test"
PEOPLE = [f"p{number}@example.org" for number in range(1, 9)]
SENDER = "People team <people@example.org>"
SECRET = " ".join(("correct", "horse"))


@pytest.fixture
def sink(owner) -> Iterator[Sink]:
    """A mail server that the dashboard is configured for."""
    with smtp_sink() as started:
        started.account = ("people", SECRET)
        server = MailServer("127.0.0.1", started.port, "none", "people", SECRET)
        object.__setattr__(owner.surveys, "mail_settings", MailSettings(SENDER, server, 60_000.0))
        yield started
        object.__setattr__(owner.surveys, "mail_settings", MailSettings())


def open_survey(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()
    page.get_by_role("heading", name="Mail", exact=True).wait_for()


def confirm(page: Page, name: str, yes: str) -> None:
    page.get_by_role("button", name=name).click()
    page.get_by_role("button", name=yes, exact=True).click()


def test_invitations_and_reminders_go_to_the_right_people_once(
    owner, owner_page, sink, look_at
) -> None:
    links = owner.creates("mailed", people="\n".join(PEOPLE))
    page = owner_page()
    open_survey(page, "mailed")
    page.get_by_role("button", name="Look at the mails first").click()
    expect(page.get_by_text("8 mails are in")).to_be_visible()
    expect(page.get_by_text(links[0])).to_be_visible()
    assert sink.mails == []
    look_at(page, "dashboard-mail")
    confirm(page, "Send invitations", "No")
    confirm(page, "Send invitations", "Yes, send invitations")
    expect(page.get_by_text("Sent: 8")).to_be_visible()
    assert sink.recipients == PEOPLE
    assert sink.logins[0] == ("people", SECRET)
    expect(page.get_by_text("invitations: 8, reminders: 0")).to_be_visible()
    owner.trial.answers(links[:3], "By bus")
    confirm(page, "Remind those who have not answered", "Yes, remind them")
    expect(page.get_by_text("Sent: 5")).to_be_visible()
    assert sink.recipients[8:] == PEOPLE[3:]
    confirm(page, "Remind those who have not answered", "Yes, remind them")
    expect(page.get_by_text("The last reminder is less than a day old.")).to_be_visible()
    page.get_by_role("button", name="Remind them again now").click()
    expect(page.get_by_text("invitations: 8, reminders: 10")).to_be_visible()
    confirm(page, "Send invitations", "Yes, send invitations")
    expect(page.get_by_text("Sent: 0")).to_be_visible()
    assert len(sink.mails) == 18


def test_whoever_has_withdrawn_is_neither_counted_nor_reminded(
    owner, owner_page, sink, tmp_path
) -> None:
    links = owner.creates("taken-back", people="\n".join(PEOPLE))
    owner.trial.answers(links[:2], "By bus")
    participation = connect(links[2], state=tmp_path / "device")
    participation.answer("By bus")
    participation.withdraw()
    participation.server.close()
    page = owner_page()
    open_survey(page, "taken-back")
    expect(page.get_by_text("Withdrawn and not counted: 1.")).to_be_visible()
    page.get_by_role("button", name="Remind those who have not answered").click()
    expect(page.get_by_role("dialog")).to_contain_text("5 people have not answered yet.")
    page.get_by_role("button", name="Yes, remind them", exact=True).click()
    expect(page.get_by_text("Sent: 5")).to_be_visible()
    assert sink.recipients == PEOPLE[3:]


def test_an_open_survey_whose_coordinator_is_away_is_not_called_unopened(
    owner, owner_page, sink, monkeypatch
) -> None:
    owner.creates("unheard", people="\n".join(PEOPLE))
    page = owner_page()
    open_survey(page, "unheard")
    expect(page.get_by_role("button", name="Send invitations")).to_be_enabled()
    monkeypatch.setattr(BothServers, "status", unreachable)
    expect(page.get_by_text("No mails can be sent while the coordinator")).to_be_visible()
    expect(page.get_by_role("button", name="Send invitations")).to_be_disabled()
    expect(page.get_by_text("Open the survey before you send mails")).to_have_count(0)
    # The reason is told once, in the alert, with the program's own words behind it.
    expect(page.get_by_text("does not respond right now")).to_have_count(0)
    page.get_by_text("Details for the operators").click()
    expect(page.get_by_text("away for a moment")).to_be_visible()


def unreachable(*_: object) -> dict[str, object]:
    raise UnreachableError("away for a moment").with_code("unreachable", server="S1")


def test_what_the_mail_server_refuses_is_told_and_a_lost_mail_is_not_sent_twice_silently(
    owner, owner_page, sink
) -> None:
    owner.creates("bounced", people="\n".join(PEOPLE))
    sink.replies = {PEOPLE[1]: 550, PEOPLE[2]: 450}
    sink.vanishes_after = {PEOPLE[3]}
    page = owner_page()
    open_survey(page, "bounced")
    confirm(page, "Send invitations", "Yes, send invitations")
    expect(page.get_by_text("Sending stopped after 1 mails.")).to_be_visible()
    sink.vanishes_after = set()
    confirm(page, "Send invitations", "Yes, send invitations")
    expect(page.get_by_text(f"refused the address of: {PEOPLE[1]}")).to_be_visible()
    expect(page.get_by_text(f"send again later: {PEOPLE[2]}")).to_be_visible()
    expect(page.get_by_text(f"may have got theirs: {PEOPLE[3]}")).to_be_visible()
    assert sink.recipients.count(PEOPLE[3]) == 1
    page.get_by_role("button", name="Send to them again").click()
    expect(page.get_by_text("Sent: 1")).to_be_visible()
    assert sink.recipients.count(PEOPLE[3]) == 2


def test_sending_can_be_stopped_and_goes_on_later(owner, owner_page, sink) -> None:
    owner.creates("patient", people="\n".join(PEOPLE))
    server = owner.surveys.mail_settings.server
    object.__setattr__(owner.surveys, "mail_settings", MailSettings(SENDER, server, 1.0))
    page = owner_page()
    open_survey(page, "patient")
    confirm(page, "Send invitations", "Yes, send invitations")
    expect(page.get_by_role("progressbar", name="Sending: 1 of 8")).to_be_visible()
    page.get_by_role("button", name="Stop sending").click()
    expect(page.get_by_text("Sent before it stopped: 1 of 8.")).to_be_visible()
    object.__setattr__(owner.surveys, "mail_settings", MailSettings(SENDER, server, 60_000.0))
    confirm(page, "Send invitations", "Yes, send invitations")
    expect(page.get_by_text("Sent: 7")).to_be_visible()
    assert sink.recipients == PEOPLE


def test_the_password_is_never_on_the_page(owner, sink) -> None:
    owner.creates("discreet", people="\n".join(PEOPLE))
    headers = {"Authorization": f"Bearer {KEY}"}
    path = f"{owner.address}/api/surveys/discreet/mail"
    with httpx.Client(headers=headers) as client:
        shown = client.get(path).text
        preview = client.post(path, content=json.dumps({"action": "preview"})).text
    assert '"host":"127.0.0.1"' in shown
    assert SECRET not in shown + preview + repr(owner.surveys)


def test_without_a_mail_server_or_addresses_the_page_says_what_to_do(owner, owner_page) -> None:
    owner.creates("numbered")
    owner.creates("unsent", people="\n".join(PEOPLE))
    page = owner_page()
    open_survey(page, "numbered")
    expect(page.get_by_text("These people have no e-mail addresses.")).to_be_visible()
    page.get_by_role("button", name="Your surveys").click()
    open_survey(page, "unsent")
    expect(page.get_by_text("name your mail server in FAIRCOUNT_SMTP_HOST")).to_be_visible()
    expect(page.get_by_role("button", name="Send invitations")).to_be_disabled()
    page.get_by_role("button", name="Look at the mails first").click()
    expect(page.get_by_text("Mails need a sender such as name@example.org.")).to_be_visible()
    page.get_by_label("Sender").fill(SENDER)
    page.get_by_role("button", name="Look at the mails first").click()
    expect(page.get_by_text("8 mails are in")).to_be_visible()
