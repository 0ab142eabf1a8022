"""The page against dishonest servers, mail scanners, hostile text and scripts."""

import json
from collections.abc import Callable
from dataclasses import replace

from in_process import rename_operator
from playwright.sync_api import Page, Route, expect

from faircount.client.invitation_codes import read_code
from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, Message, SurveyParameters, decode, encode
from faircount.protocol.simulator import set_up
from faircount.protocol.survey.operators import Operator, format_fingerprint
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import (
    Acknowledgement,
    FinalStatement,
    InclusionProof,
    OutcomeRequest,
    Reason,
)
from faircount.protocol.wire.signing import SigningKey

MECHANISM = Laplace(items=["a", "b"], epsilon=1.0, users=10)
SENT = "Thank you! Your answer has arrived"


def opened(context, link: str) -> Page:
    page = context.new_page()
    page.goto(link)
    return page


def title(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def send(page: Page, item: str = "Carrow") -> None:
    page.get_by_role("radio", name=item).check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").click()


def refused(page: Page) -> str:
    title(page, "You cannot answer here")
    return page.get_by_role("alert").get_attribute("data-refusal")


def other_parameters(published: bytes) -> dict[str, bytes]:
    """What a lying coordinator might show instead."""
    plain = json.loads(published)

    def changed(**change) -> bytes:
        return json.dumps(
            {**plain, **change}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
        ).encode()

    own = set_up(MECHANISM, SERVERS, SystemEntropy()).params.published
    return {
        "another question": changed(question="Where do you hide?"),
        "a key of its own": changed(
            keys={**plain["keys"], "encryption_key": json.loads(own)["keys"]["encryption_key"]}
        ),
        "another survey": own,
        "less noise": changed(settings={**plain["settings"], "epsilon": str(60 << 128)}),
    }


def test_other_parameters_than_those_of_the_invitation(trial, visitor) -> None:
    (link, *_) = trial.create()
    context, methods = visitor(), []
    context.on("request", lambda request: methods.append(request.method))
    for lie, body in other_parameters(trial.params[-1].published).items():
        page = context.new_page()
        page.route("**/params", lambda route, _, body=body: route.fulfill(body=body))
        page.goto(link)
        assert refused(page) == "digest", lie
        page.close()
    assert set(methods) == {"GET"}


OTHER_KEY = Operator("Aldmoor Council", SigningKey(b"\7" * 32))


def false_signatures(true: dict[str, str], params: SurveyParameters) -> dict[str, object]:
    """What a coordinator might show whose operators have not signed this survey."""
    renamed = Operator("Acme marketing", OTHER_KEY.key)
    return {
        "no answer": None,
        "no signatures": {},
        "one signature": {**true, "s2": None},
        "the other server's": {"s1": true["s2"], "s2": true["s1"]},
        "another key": {**true, "s1": OTHER_KEY.sign(params, Party.COORDINATOR).hex()},
        "another name": {**true, "s2": renamed.sign(params, Party.AGGREGATOR).hex()},
    }


def test_a_survey_that_the_operators_have_not_signed(trial, visitor) -> None:
    """The attack: an owner names two organizations, and neither of them runs a server."""
    (link, *_) = trial.create()
    context, methods = visitor(), []
    context.on("request", lambda request: methods.append(request.method))
    true = trial.does(trial.pair.to_s1.get(f"{trial.path}/operators")).json()
    for lie, shown in false_signatures(true, trial.params[-1]).items():
        page = context.new_page()
        body = json.dumps(shown)
        page.route("**/operators", lambda route, _, body=body: route.fulfill(body=body))
        page.goto(link)
        assert refused(page) == "operators", lie
        page.close()
    assert set(methods) == {"GET"}
    german = visitor(locale="de").new_page()
    german.route("**/operators", lambda route: route.fulfill(status=404))
    german.goto(link)
    expect(german.get_by_role("alert")).to_contain_text("nicht bestätigt, wer sie betreibt")


def test_names_and_fingerprints_of_the_operators_are_shown(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = opened(visitor(), link)
    section = page.locator("section", has=page.get_by_role("heading", name="Who runs the servers"))
    keys = trial.params[-1].keys
    for name, key in (
        ("Aldmoor Council", keys.s1_operator_key),
        ("Count & Sons", keys.s2_operator_key),
    ):
        expect(section).to_contain_text(f"{name}{format_fingerprint(key)}")
    expect(section).to_contain_text("Anybody can state any name.")


def test_an_acknowledgement_that_nobody_signed_is_not_believed(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = opened(context, link)

    def forge(route: Route) -> None:
        answer = decode(route.fetch().body())
        assert isinstance(answer, Acknowledgement)
        route.fulfill(body=encode(replace(answer, signature=bytes(64))))

    page.route("**/messages", forge)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("could not prove")
    title(page, "Saved on this device, not sent yet")
    page.unroute_all()
    title(page, SENT)


def test_a_result_or_proof_that_is_false_is_not_believed(trial, visitor) -> None:
    links = trial.create(4)
    trial.answers(links[:3], "Aldmoor")
    page = opened(visitor(), links[3])
    send(page)
    title(page, SENT)
    trial.close()
    for times, spoil in enumerate((_other_result, _nothing_signed), 1):
        _spoil_answers(page, spoil)
        page.get_by_role("button", name="Was my answer counted?").click()
        expect(page.get_by_role("alert")).to_contain_text(
            f"could not prove (number of times: {times})"
        )
        expect(page.get_by_role("table")).to_have_count(0)
        page.unroute_all()
    _spoil_answers(page, _other_path)
    page.get_by_role("button", name="Was my answer counted?").click()
    title(page, "Your answer was not counted")


def _spoil_answers(page: Page, spoil: Callable[[Message], Message]) -> None:
    page.route(
        "**/messages", lambda route: route.fulfill(body=encode(spoil(decode(route.fetch().body()))))
    )


def _other_result(answer: InclusionProof) -> InclusionProof:
    signed = answer.published
    payload = bytearray(signed.payload)
    payload[130] ^= 1
    return replace(answer, published=replace(signed, payload=bytes(payload)))


def _nothing_signed(answer: InclusionProof) -> FinalStatement:
    return FinalStatement(replace(answer.published, signature=bytes(64)))


def _other_path(answer: InclusionProof) -> InclusionProof:
    return replace(answer, path=(bytes(32), *answer.path[1:]))


def test_a_mail_scanner_that_follows_the_link_changes_nothing(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = visitor().new_page()
    requests = []
    page.on("request", lambda request: requests.append(request.method))
    page.goto(link)
    page.get_by_role("button", name="Continue").click()  # some even submit forms
    expect(page.get_by_role("alert")).to_have_text("Please choose an answer first.")
    page.evaluate("document.querySelector('form').requestSubmit()")
    assert set(requests) == {"GET"}
    assert trial.status()["responses"] == 0


def test_nobody_else_is_asked_and_nothing_secret_is_in_an_address(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    urls, bodies, logged = [], [], []
    context.on(
        "request",
        lambda request: (urls.append(request.url), bodies.append(request.post_data_buffer or b"")),
    )
    context.on("console", lambda message: logged.append(message.text))
    page = opened(context, link)
    send(page, "Brackwater")
    title(page, SENT)
    token = read_code(link.partition("#")[2]).invitation.token
    assert all(url.startswith(trial.address) for url in urls)
    secret = (token, token.hex().encode(), b"Brackwater", link.partition("#")[2].encode())
    assert not any(value in body for value in secret for body in bodies)
    assert not any("#" in url or "?" in url or link[-20:] in url for url in urls[1:])
    assert logged == []


def test_the_device_keeps_neither_answer_nor_token(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    page = opened(context, link)
    send(page, "Brackwater")
    title(page, SENT)
    kept = page.evaluate(DUMP)
    invitation = read_code(link.partition("#")[2]).invitation
    assert kept["extractable"] == [False]
    assert invitation.access.hex() in kept["opened"]
    assert invitation.token.hex() not in kept["opened"]
    for text in ("stage", invitation.access.hex()):
        assert text not in kept["stored"]  # encrypted
    plain = json.loads(kept["opened"])[0]
    names = "access acknowledgements device id notices publicKey published report server stage"
    assert sorted(plain) == [*names.split(), "unverified", "user"]
    assert kept["elsewhere"] == 0
    assert context.cookies() == []


DUMP = """async () => {
  const store = await import('/page/store.js');
  const open = indexedDB.open('faircount', 1);
  const base = await new Promise((done) => (open.onsuccess = () => done(open.result)));
  const asked = base.transaction('participations').objectStore('participations').getAll();
  const rows = await new Promise((done) => (asked.onsuccess = () => done(asked.result)));
  base.close();
  return {
    extractable: rows.map((row) => row.key.extractable),
    stored: rows.map((row) => new TextDecoder('latin1').decode(row.box)).join(),
    opened: JSON.stringify(await store.loadAll()),
    elsewhere: localStorage.length + sessionStorage.length,
  };
}"""


def test_the_policy_blocks_scripts_and_other_origins(trial, visitor) -> None:
    page = opened(visitor(), trial.address)
    page.get_by_role("button", name="Open").wait_for()
    for attack in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.createElement('script').textContent = 'window.ran = 1'",
        "document.createElement('script').src = '/page/main.js'",
        "trustedTypes.createPolicy('mine', {createHTML: (text) => text})",
        "eval('1')",
    ):
        assert page.evaluate(TRIED % attack) in ("TypeError", "EvalError"), attack
    assert (
        page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')")
        == "blocked"
    )
    assert page.evaluate(BLOCKED_IMAGE) == "img-src"
    framed = visitor().new_page()
    framed.route(
        "http://other.example/",
        lambda route: route.fulfill(
            body=f"<iframe src={trial.address}></iframe>", content_type="text/html"
        ),
    )
    framed.goto("http://other.example/")
    assert framed.frames[1].evaluate("document.querySelector('main')") is None


TRIED = """() => new Promise((done) => setTimeout(() => {
  try { %s; done('ran'); } catch (problem) { done(problem.name); }
}))"""
"""In a task of the page's own: what a debugger evaluates is not under the policy."""

BLOCKED_IMAGE = """() => new Promise((done) => {
  document.addEventListener('securitypolicyviolation', (event) => done(event.effectiveDirective));
  document.body.append(Object.assign(document.createElement('img'), {src: 'http://127.0.0.1:9/x.png'}));
})"""


def test_words_of_the_owner_are_only_words(trial, visitor) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    (link, *_) = trial.create(question=hostile, owner=f"<b>{hostile}</b>")
    page = opened(visitor(), link)
    title(page, f"<b>{hostile}</b> asks")
    expect(page.get_by_role("group").first).to_contain_text(hostile)
    assert page.locator("main img").count() == 0


def test_one_organization_for_both_servers_is_a_warning(trial, visitor) -> None:
    (link, *_) = trial.create(s1_operator="Aldmoor Council", s2_operator="ALDMOOR council.")
    page = opened(visitor(), link)
    expect(page.get_by_text("Both servers are run by Aldmoor Council, with nobody")).to_have_class(
        "warning"
    )


def test_one_key_for_both_servers_is_one_organization(trial, visitor) -> None:
    """Two names that look like two organizations, signed with one key."""
    own = trial.pair.s2.server.operator
    rename_operator(trial.pair.s2.server, own.name, trial.pair.s1.server.operator.key)
    (link, *_) = trial.create()
    rename_operator(trial.pair.s2.server, own.name, own.key)
    page = opened(visitor(), link)
    expect(page.get_by_text("Both servers are run by Aldmoor Council, with nobody")).to_have_class(
        "warning"
    )


def test_a_browser_without_the_needed_keys_is_told(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    context.add_init_script(
        "crypto.subtle.generateKey = () => Promise.reject(new Error('unknown'))"
    )
    assert refused(opened(context, link)) == "browser"


def test_a_browser_that_keeps_nothing_is_told(trial, visitor) -> None:
    (link, *_), context = trial.create(), visitor()
    context.add_init_script("indexedDB.open = () => { throw new Error('blocked') }")
    assert refused(opened(context, link)) == "storage"


def test_an_address_without_protection_is_told(trial, visitor) -> None:
    (link, *_) = trial.create()
    page = opened(visitor(), link.replace("localhost", "unprotected.example"))
    assert refused(page) == "insecure"


def test_an_invitation_that_was_taken_over_after_a_restore_is_told(trial, visitor) -> None:
    """The coordinator lost the report, and somebody else answered before this device came back."""
    (link, *_) = trial.create()
    page = opened(visitor(), link)
    send(page)
    title(page, SENT)

    def reject_as_used(route: Route) -> None:
        if not isinstance(decode(route.request.post_data_buffer), OutcomeRequest):
            return route.continue_()
        problem = {"reason": int(Reason.INVITATION_USED), "detail": ""}
        return route.fulfill(status=409, body=json.dumps(problem))

    page.route("**/messages", reject_as_used)
    page.get_by_role("button", name="Was my answer counted?").click()
    expect(page.get_by_text("Somebody else has answered with your invitation")).to_be_visible()
