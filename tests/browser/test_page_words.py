"""What a person reads on the page before and after answering: shown, not told."""

import json
import re

import numpy as np
from playwright.sync_api import Page, expect

from faircount.client.invitation_codes import Code
from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import Invitation, decode
from faircount.protocol.wire.canonical_json import format_real
from faircount.protocol.wire.digests import params_digest

CITIES = ["Aldmoor", "Brackwater", "Carrow"]


def opened(context, link: str) -> Page:
    page = context.new_page()
    page.goto(link)
    return page


def test_who_asks_why_who_counts_what_is_promised_and_what_is_not_covered(trial, visitor) -> None:
    (link, *_) = trial.create(
        60, mechanism=Laplace(items=CITIES, epsilon=1.0, users=60, dropouts=10, insiders=3)
    )
    page = opened(visitor(), link)
    expect(page.get_by_role("heading", level=1)).to_have_text("Aldmoor Council asks")
    for words in (
        "Why: to plan the buses",
        "Two organizations count the answers together: Aldmoor Council and Count & Sons.",
        "A result is published only if at least 50 of them are counted.",
        "Up to 60 people are invited.",
        "Questions? buses@example.org",
        "at most 73.2\u00a0% sure",
        "each of the two organizations, even if up to 3 other participants",
        "If both organizations worked together, they could read your answer.",
        "a hash that it shows itself proves nothing.",
        "Anybody can state any name.",
        "Aldmoor Council sees that you take part and when",
    ):
        expect(page.get_by_text(words)).to_be_visible()
    answers = page.get_by_role("group", name="Where do you live?").get_by_role("radio")
    assert answers.evaluate_all(
        "all => all.map((each) => [each.tagName, each.type, each.checked])"
    ) == [["INPUT", "radio", False]] * len(CITIES)


def test_the_bytes_beside_the_answer_are_those_that_leave_and_not_before_it_is_confirmed(
    trial, visitor
) -> None:
    (link, *_) = trial.create()
    page = opened(visitor(), link)
    bodies: list[bytes] = []
    page.on(
        "request",
        lambda request: (
            bodies.append(request.post_data_buffer) if request.method == "POST" else None
        ),
    )
    page.get_by_role("radio", name="Carrow").check()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".answer")).to_have_text("Carrow")
    shown = [bytes.fromhex(text) for text in page.locator(".bytes").all_inner_texts()]
    assert bodies == []
    assert trial.status()["responses"] == 0
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Thank you")
    sent = decode(bodies[0])
    assert shown == [sent.share, sent.encrypted_share]


def test_each_time_the_bytes_are_others(trial, visitor) -> None:
    """The same answer twice: noise and shares are drawn anew, so the bytes reveal nothing."""
    (link, *_) = trial.create()
    page = opened(visitor(), link)
    seen = []
    for _ in range(2):
        page.get_by_role("radio", name="Carrow").check()
        page.get_by_role("button", name="Continue").click()
        seen.append(page.locator(".bytes").last.inner_text())
        page.get_by_role("button", name="Back").click()
    assert seen[0] != seen[1]


def test_parameters_whose_promise_does_not_follow_are_refused_visibly(trial, visitor) -> None:
    """The owner itself has signed on to them: the digest is that of the invitation."""
    trial.create(20, mechanism=Laplace(items=CITIES, epsilon=1.0, users=20))
    params = trial.params[-1]
    plain = json.loads(params.published)
    plain["epsilon"] = format_real(0.999)
    published = json.dumps(
        plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()
    code = Code(params.survey, Invitation.issue(params_digest(published), SystemEntropy()))
    page = visitor().new_page()
    page.route("**/params", lambda route: route.fulfill(body=published))
    page.goto(code.link(trial.address))
    expect(page.get_by_role("heading", level=1)).to_have_text("You cannot answer here")
    expect(page.get_by_role("alert")).to_have_attribute("data-refusal", "promise")
    expect(page.get_by_text("Nothing was sent.")).to_be_visible()
    expect(page.get_by_role("radio")).to_have_count(0)


def test_a_browser_that_lacks_a_part_of_the_language_is_told(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    context.add_init_script("delete String.prototype.isWellFormed")
    page = opened(context, link)
    expect(page.get_by_role("alert")).to_have_attribute("data-refusal", "browser")
    expect(page.get_by_role("alert")).to_contain_text("Chrome and Edge from version 137")


def test_without_javascript_nothing_can_be_answered_and_the_page_says_so(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = opened(visitor(java_script_enabled=False), link)
    expect(page.get_by_text("this browser is too old or does not run JavaScript")).to_be_visible()
    expect(page.locator("form, input, button")).to_have_count(0)


def test_progress_and_a_result_with_error_bars(trial, visitor) -> None:
    links = trial.create(8, mechanism=Laplace(items=CITIES, epsilon=3.0, users=8, dropouts=2))
    trial.answers(links[1:7], "Brackwater")
    page = opened(visitor(), links[0])
    page.get_by_role("radio", name="Brackwater").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("progressbar", name="7 of 8 people have answered.")).to_have_attribute(
        "value", "7"
    )
    trial.close()
    page.get_by_role("button", name="Was my answer counted?").click()
    expect(page.get_by_role("heading", name="Result")).to_be_visible()
    told = [
        [float(number) for number in re.findall(NUMBER, text)]
        for text in page.locator(ROW).all_inner_texts()
    ]
    drawn = page.locator("tr.drawing").evaluate_all(DRAWN)
    least, most = min(0.0, *(row[0] for row in told)), max(max(row) for row in told)
    for (estimate, low, high), (end, first, last) in zip(told, drawn, strict=True):
        wanted = [100 * (value - least) / (most - least) for value in (estimate, low, high)]
        assert np.allclose([end, first, last], wanted, atol=0.3)  # told to a tenth of a percent


ROW = "tbody tr:not(.drawing)"
NUMBER = r"-?\d+(?:\.\d+)?"
DRAWN = """rows => rows.map((row) => {
  const [bar, line] = [row.querySelector('.bar'), row.querySelector('.range')];
  const [x, width] = [bar.x.baseVal.value, bar.width.baseVal.value];
  const zero = row.querySelector('.zero').x1.baseVal.value;
  return [x < zero ? x : x + width, line.x1.baseVal.value, line.x2.baseVal.value];
})"""
"""Where each bar ends that begins at zero, and where the line over its interval begins and ends."""


def test_why_a_survey_ended_is_said_in_the_readers_language(trial, visitor) -> None:
    for reason, words in (
        ("", "Wer die Umfrage macht, hat sie beendet."),
        ("abgesagt: Hochwasser", "abgesagt: Hochwasser"),
    ):
        (link, *_) = trial.create()
        page = visitor(locale="de").new_page()
        page.goto(link)
        page.get_by_role("radio", name="Carrow").check()
        page.get_by_role("button", name="Weiter").click()
        page.get_by_role("button", name="Senden").click()
        page.get_by_role("progressbar").wait_for()
        trial.does(
            trial.pair.to_s1.post(f"{trial.path}/abort", json={"reason": reason})
        ).raise_for_status()
        trial.settle()
        page.get_by_role("button", name="Wurde meine Antwort gezählt?").click()
        expect(page.get_by_text("Der Grund:")).to_be_visible()
        expect(page.get_by_text(words, exact=True)).to_be_visible()
        expect(page.locator("main [lang=en]")).to_have_count(0)
