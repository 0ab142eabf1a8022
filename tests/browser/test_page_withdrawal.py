"""Withdrawing on the page: in time, too late, and with a server that lost the withdrawal."""

from hashlib import sha256

import httpx
from playwright.sync_api import Page, Route, expect

from faircount.client.invitation_codes import read_code
from faircount.core.entropy import SystemEntropy
from faircount.protocol import SERVERS, ClientState, encode
from faircount.protocol.survey.acknowledgement import sign_together, unsigned_acknowledgement
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import Withdrawal

TITLES = {
    "sent": "Thank you! Your answer has arrived",
    "counted": "Your answer was counted",
    "withdrawn": "Your answer is withdrawn",
}


def sees(page: Page, stage: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLES[stage])


def answer(context, link: str, item: str) -> Page:
    page = context.new_page()
    page.goto(link)
    page.get_by_role("radio", name=item).check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").click()
    sees(page, "sent")
    return page


def test_withdrawn_in_time_and_too_late(trial, visitor) -> None:
    links = trial.create(6)
    trial.answers(links[:3], "Carrow")
    page = answer(visitor(), links[3], "Aldmoor")
    page.get_by_role("button", name="Withdraw my answer").click()
    page.get_by_role("button", name="No, keep it").click()
    sees(page, "sent")
    page.get_by_role("button", name="Withdraw my answer").click()
    page.get_by_role("button", name="Yes, withdraw it").click()
    sees(page, "withdrawn")
    expect(page.get_by_text("This device keeps your withdrawal")).to_be_visible()
    late = answer(visitor(), links[4], "Carrow")
    result = trial.close()
    assert result["questions"][0]["counts"] == [0, 0, 4]
    late.get_by_role("button", name="Withdraw my answer").click()
    late.get_by_role("button", name="Yes, withdraw it").click()
    sees(late, "counted")


def test_an_owner_who_has_the_link_takes_no_answer_back(trial, visitor) -> None:
    links = trial.create(6)
    trial.answers(links[1:4], "Carrow")
    page = answer(visitor(), links[0], "Aldmoor")
    code = read_code(links[0].partition("#")[2])
    blank = ClientState(code.invitation, (2,))
    owned = SERVERS.client.start(trial.params[-1], blank, StandardCrypto(), SystemEntropy())
    for message in (SERVERS.client.withdraw(owned).waiting[0], owned.waiting[0]):
        url = f"{trial.address}{trial.path}/messages"
        refused = httpx.post(url, content=encode(message)).json()
        assert refused["title"] == "invitation used"
    page.get_by_role("button", name="Was my answer counted?").click()
    expect(page.get_by_text("Another device has tried to use your invitation")).to_be_visible()
    assert trial.close()["questions"][0]["counts"] == [1, 0, 3]


def withdraw_at_a_server_that_forgets(trial, page: Page) -> None:
    """The coordinator acknowledges the withdrawal and is then restored from an older backup."""

    def sign_and_forget(route: Route) -> None:
        body = route.request.post_data_buffer
        if not isinstance(parse(body), Withdrawal):
            return route.continue_()
        accepted = unsigned_acknowledgement(trial.params[-1].survey, sha256(body).digest())
        return route.fulfill(body=encode(*sign_together(trial.signing_key(), [accepted])))

    page.route("**/messages", sign_and_forget)
    page.get_by_role("button", name="Withdraw my answer").click()
    page.get_by_role("button", name="Yes, withdraw it").click()
    sees(page, "withdrawn")
    page.close()


def test_a_withdrawal_that_a_restored_server_forgot_is_said_again(trial, visitor) -> None:
    links, context = trial.create(6), visitor()
    trial.answers(links[1:5], "Carrow")
    withdraw_at_a_server_that_forgets(trial, answer(context, links[0], "Aldmoor"))
    page = context.new_page()
    with page.expect_response("**/messages"):
        page.goto(links[0])
    sees(page, "withdrawn")
    assert trial.close()["questions"][0]["counts"] == [0, 0, 4]
    page.reload()
    sees(page, "withdrawn")


def test_an_answer_that_was_counted_after_a_signed_withdrawal_is_told(trial, visitor) -> None:
    links, context = trial.create(6), visitor()
    trial.answers(links[1:5], "Carrow")
    withdraw_at_a_server_that_forgets(trial, answer(context, links[0], "Aldmoor"))
    assert trial.close()["included"] == 5
    page = context.new_page()
    page.goto(links[0])
    sees(page, "counted")
    expect(page.get_by_text("because the server lost your withdrawal")).to_be_visible()
    expect(page.get_by_role("button", name="Save receipt")).to_be_visible()
