"""The participant's page in a real browser, with real servers: use, and what can fail."""

import json
import os
import re
from fractions import Fraction

from playwright.sync_api import Page, expect

from faircount.core.questions import AnyOf, Number, OneOf, QuestionGroup, Questionnaire
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.server_sheets import ServerSheets

BROWSERS = int(os.environ.get("FAIRCOUNT_BROWSERS", "4"))
CLIENTS = int(os.environ.get("FAIRCOUNT_CLIENTS", "8"))
ITEMS = ["Aldmoor", "Brackwater", "Carrow"]
TITLES = {
    "asked": "Aldmoor Council asks",
    "sent": "Thank you! Your answer has arrived",
    "waiting": "Saved on this device, not sent yet",
    "counted": "Your answer was counted",
    "uncounted": "Your answer was not counted",
    "refusal": "You cannot answer here",
}


def sees(page: Page, stage: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(TITLES[stage])


def opened(context, link: str) -> Page:
    page = context.new_page()
    page.goto(link)
    return page


def choose(page: Page, item: str) -> None:
    page.get_by_role("radio", name=item).check()
    page.get_by_role("button", name="Continue").click()


def answer(context, link: str, item: str) -> Page:
    """Answer, and see that it has arrived."""
    page = opened(context, link)
    choose(page, item)
    page.get_by_role("button", name="Send").click()
    sees(page, "sent")
    return page


def refused(page: Page) -> str:
    """Why the page refuses, after it said that nothing was sent."""
    sees(page, "refusal")
    expect(page.get_by_text("Nothing was sent.")).to_be_visible()
    return page.get_by_role("alert").get_attribute("data-refusal")


def sent_bodies(page: Page) -> list[bytes]:
    """Collects what the page posts from now on."""
    bodies: list[bytes] = []
    page.on(
        "request",
        lambda request: (
            bodies.append(request.post_data_buffer) if request.method == "POST" else None
        ),
    )
    return bodies


SHEET = Questionnaire(
    (
        OneOf(text="Where do you live?", items=tuple(ITEMS)),
        AnyOf(text="When do you take the bus?", items=("morning", "noon", "evening")),
        Number(text="How many rides a week?", low=Fraction(0), high=Fraction(20)),
    )
)


def test_browsers_and_python_clients_together_give_the_right_sums(trial, visitor) -> None:
    """A sheet of three questions; the largest epsilon leaves no noise but once in 10^17 surveys."""
    people = BROWSERS + CLIENTS
    mechanism = ServerSheets(
        questionnaire=SHEET,
        groups=(QuestionGroup.of(50.0, range(3)),),
        epsilon=50.0,
        users=people + 2,
        dropouts=people,
    )
    links = trial.create(people + 2, mechanism=mechanism)  # two do not come
    homes = [at % 3 for at in range(people)]
    rides = [at % 7 for at in range(people)]
    contexts = [visitor() for _ in range(BROWSERS)]
    for at, (context, link) in enumerate(zip(contexts, links, strict=False)):
        page = opened(context, link)
        page.get_by_role("radio", name=ITEMS[homes[at]]).check()
        page.get_by_role("checkbox", name="noon").check()
        page.get_by_role("textbox", name=re.compile("rides")).fill(str(rides[at]))
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("button", name="Send").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(
            "Thank you! Your answers have arrived"
        )
        page.close()
    for at in range(BROWSERS, people):
        trial.answers([links[at]], [ITEMS[homes[at]], ["morning", "noon"], rides[at]])
    result = trial.close()
    assert result["included"] == people
    assert [told["counts"] for told in result["questions"]] == [
        [homes.count(at) for at in range(3)],
        [CLIENTS, people, 0],
        [sum(rides)],
    ]
    page = opened(contexts[0], links[0])
    expect(page.get_by_role("heading", level=1)).to_have_text("Your answers were counted")
    share = f"{100 * homes.count(2) / people:.1f}"
    expect(page.get_by_role("row", name=re.compile("Carrow"))).to_contain_text(f"{share} %")


# A malicious client: not a vote, with the best proof that the page's own prover finds for it.
LIE = """async (code) => {
  const from = (path) => import(`${location.origin}/${path}`);
  const { prove } = await from("client/proof.js");
  const { encodeReport } = await from("client/report.js");
  const { systemRandom } = await from("client/random.js");
  const part = await from("page/participation.js");
  const read = await (await from("client/code.js")).readCode(code);
  const params = await part.invitedParameters(`${location.origin}/`, read);
  const { layout } = params.drawn;
  const blind = Array.from(systemRandom(layout.degree), (byte) => byte % layout.q);
  const row = prove(layout, [50, layout.q - 49, 0], blind);
  const pair = await (await from("client/encryption.js")).generateKeyPair();
  const vector = row.map(BigInt);
  const seed = systemRandom(16);
  const made = await encodeReport(params, read.invitation, vector, seed, pair, systemRandom);
  const { id } = await part.storeReport(params, read.invitation, made);
  return (await part.visit(id)).stage;
}"""


def test_a_changed_page_that_votes_fifty_times_is_refused_and_the_others_count(
    trial, visitor
) -> None:
    links = trial.create(8)
    trial.answers(links[:4], "Carrow")
    answer(visitor(), links[4], "Aldmoor").close()
    context = visitor()
    page = opened(context, trial.address)
    assert (
        page.evaluate(LIE, links[5].partition("#")[2]) == "sent"
    )  # shares tell the coordinator nothing, a lie neither
    result = trial.close()
    assert result["questions"][0]["counts"] == [1, 0, 4]
    assert (result["included"], result["validity"]["refused"], result["validity"]["proven"]) == (
        5,
        1,
        True,
    )
    page = opened(context, links[5])
    sees(page, "uncounted")
    expect(
        page.get_by_text("Answers counted: 5, each proven to be exactly one vote. Rejected: 1.")
    ).to_be_visible()


def test_the_page_says_who_protects_and_that_the_vote_is_proven(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = opened(visitor(), link)
    expect(page.get_by_text("Count & Sons protects you from Aldmoor Council")).to_be_visible()
    expect(page.get_by_text("a proof that it is exactly one vote")).to_be_visible()
    expect(
        page.get_by_text("Whether they really add it cannot be checked from here.")
    ).to_be_visible()
    choose(page, "Carrow")
    expect(
        page.get_by_text("A proof that your answer is exactly one vote was added")
    ).to_be_visible()
    other = opened(visitor(locale="de"), link)
    expect(other.get_by_text("Count & Sons schützt Sie vor Aldmoor Council")).to_be_visible()
    expect(
        other.get_by_text("mit einem Beweis gesendet, dass sie genau eine Stimme ist")
    ).to_be_visible()
    (link, *_) = trial.create(s1_operator="Count & Sons")
    page = opened(visitor(), link)
    expect(
        page.get_by_text("It does not hold against Count & Sons, which runs both servers")
    ).to_be_visible()


def test_placed_coins_and_what_is_not_proven_in_words(trial, visitor) -> None:
    placed = PlacedCoins(items=ITEMS, users=200, epsilon=1.0, delta=1e-6, dropouts=20)
    (link, *_) = trial.create(200, mechanism=placed)
    page = opened(visitor(), link)
    expect(
        page.get_by_text("The number of random coins that hide your answer is large enough")
    ).to_be_visible()
    expect(page.get_by_text("even if up to 1 other participants")).to_be_visible()
    (link, *_) = trial.create(6, mechanism=Laplace(items=ITEMS, epsilon=50.0, users=6, dropouts=3))
    page = answer(visitor(), link, "Carrow")
    expect(page.get_by_text("proof")).to_have_count(0)


def test_a_closed_tab_comes_back_with_the_same_bytes(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = opened(context, link)
    first = sent_bodies(page)
    page.route("**/messages", lambda route: route.fulfill(status=503))
    choose(page, "Carrow")
    page.get_by_role("button", name="Send").click()
    sees(page, "waiting")
    address = page.url
    page.close()
    assert "#" not in address  # the token has left the address bar
    page = context.new_page()
    again = sent_bodies(page)
    page.goto(address)
    page.get_by_role("button", name="Show: Where do you live?").click()
    sees(page, "sent")
    assert again[0] == first[0]
    assert trial.status()["responses"] == 1
    link_again = context.new_page()  # the link, opened again, asks no second time
    once_more = sent_bodies(link_again)
    link_again.goto(link)
    sees(link_again, "sent")
    link_again.wait_for_function("() => document.querySelector('progress') !== null")
    assert (
        once_more[0] == first[0]
    )  # said again to the coordinator, which may have been restored without it
    assert trial.status()["responses"] == 1


def test_after_a_reload_the_answer_is_still_said_to_be_sent(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = answer(context, link, "Carrow")
    page.reload()
    sees(page, "sent")
    elsewhere = context.new_page()  # without the link: a list of what this device has answered
    elsewhere.goto(trial.address)
    answered = elsewhere.get_by_role("listitem").filter(has_text="Where do you live?")
    expect(answered).to_contain_text("Your answer has arrived")


def test_offline_the_answer_waits_and_goes_out_by_itself(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = opened(context, link)
    choose(page, "Aldmoor")
    context.set_offline(True)
    page.get_by_role("button", name="Send").click()
    sees(page, "waiting")
    assert trial.status()["responses"] == 0
    context.set_offline(False)
    sees(page, "sent")
    assert trial.status()["responses"] == 1


def test_a_slow_network_sends_once(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = opened(context, link)
    page.route("**/messages", lambda route: (page.wait_for_timeout(700), route.continue_()))
    choose(page, "Aldmoor")
    page.get_by_role("button", name="Send").dblclick()
    sees(page, "sent")
    assert trial.status()["responses"] == 1


def test_two_tabs_keep_one_draw(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    pages = [opened(context, link), opened(context, link)]
    bodies = [sent_bodies(page) for page in pages]
    for page, item in zip(pages, ("Aldmoor", "Carrow"), strict=True):
        choose(page, item)
    for page in pages:
        page.get_by_role("button", name="Send").click()
        sees(page, "sent")
    submissions = {body for sent in bodies for body in sent if body[1] == 16}
    assert len(submissions) == 1
    assert trial.status()["rejections"] == {}


def test_a_survey_that_is_not_open_yet_takes_the_answer_when_it_is(trial, visitor) -> None:
    (link, *_), context = trial.create(opened=False), visitor()
    page = opened(context, link)
    choose(page, "Aldmoor")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("The survey is not open yet.")).to_be_visible()
    trial.open()
    sees(page, "sent")


def test_an_invitation_used_elsewhere_is_told(trial, visitor) -> None:
    (link, *_) = trial.create()
    first = answer(visitor(), link, "Aldmoor")
    other = opened(visitor(), link)
    choose(other, "Carrow")
    expect(other.get_by_text("could have answered with it before you")).to_be_visible()
    other.get_by_role("button", name="Send").click()
    used = "Somebody else has answered with your invitation"
    expect(other.get_by_text(used)).to_be_visible()
    first.get_by_role("button", name="Was my answer counted?").click()
    expect(first.get_by_text("Another device has tried to use your invitation")).to_be_visible()


def test_the_receipt_proves_what_the_server_signed(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = answer(visitor(), link, "Brackwater")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Save receipt").click()
    text = saving.value.path().read_text(encoding="utf-8")
    receipt, params = json.loads(text), trial.params[-1]
    assert receipt["parameters"] == params.digest.hex()
    assert receipt["server_key"] == params.keys.coordinator.hex()
    assert len(receipt["written"]) == 1
    assert "Brackwater" not in text


def test_forgetting_leaves_nothing(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = answer(context, link, "Aldmoor")
    remove = page.get_by_role("button", name="Remove this survey from this device")
    remove.click()
    page.get_by_role("dialog").get_by_role("button", name="No, keep it").click()
    expect(page.get_by_role("button", name="Save receipt")).to_be_visible()
    remove.click()
    page.get_by_role("dialog").get_by_role("button", name="Yes, remove it").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your invitation")
    page.reload()
    expect(page.get_by_role("button", name="Open")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Show"))).to_have_count(0)


def test_somebody_who_comes_too_late_reads_the_result(trial, visitor) -> None:
    links = trial.create(4)
    trial.answers(links[:3], "Carrow")
    trial.close()
    page = opened(visitor(), links[3])
    expect(page.get_by_role("heading", level=1)).to_have_text("This survey is closed")
    expect(page.get_by_role("row", name=re.compile("Carrow"))).to_contain_text("100.0 %")


def test_a_pasted_code_in_any_form(trial, visitor) -> None:
    (link, *_) = trial.create()
    code = link.partition("#")[2]
    page = visitor().new_page()
    for text in ("-".join(code[at : at + 8] for at in range(0, 136, 8)), link, code.lower()):
        page.goto(trial.address)
        page.get_by_role("textbox", name="Invitation code or link").fill(text)
        page.get_by_role("button", name="Open").click()
        sees(page, "asked")


def test_a_code_with_a_mistake(trial, visitor) -> None:
    (link, *_) = trial.create()
    code = link.partition("#")[2]
    other = "A" if code[60] != "A" else "B"
    page = visitor().new_page()
    for spoiled, why in (
        (code[:-1], "code"),
        (f"7{code[1:]}", "code"),
        (code[:60] + other + code[61:], "mistyped"),
    ):
        page.goto(trial.address)
        page.goto(f"{trial.address}/#{spoiled}")
        expect(page.locator("[data-refusal]")).to_have_attribute("data-refusal", why)
        assert refused(page) == why


def test_noise_and_promise_in_words(trial, visitor) -> None:
    (link, *_) = trial.create(
        40, mechanism=Decoys(items=["a", "b"], users=40, epsilon=1.0, delta=1e-6)
    )
    page = opened(visitor(), link)
    expect(page.get_by_text("at most 73.2 % sure")).to_be_visible()
    expect(page.get_by_text("With a probability of at most 1 in 1,000,000")).to_be_visible()
    expect(page.get_by_text("hardly any protection")).to_have_count(0)
