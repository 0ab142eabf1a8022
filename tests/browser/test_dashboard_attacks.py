"""The dashboard against other pages and programs, hostile text, and readers of logs."""

import subprocess
from pathlib import Path

import httpx
from playwright.sync_api import expect
from quick_python import quick_python

KEY = "key-of-this-test"


def test_only_who_knows_the_key_and_the_host_is_served(owner) -> None:
    right, api = {"Authorization": f"Bearer {KEY}"}, f"{owner.address}/api/surveys"
    with httpx.Client() as client:
        assert client.get(api, headers=right).status_code == 200
        assert client.get(api).status_code == 403
        assert client.get(api, headers={"Authorization": "Bearer x"}).status_code == 403
        assert client.get(api, headers={**right, "Host": "evil.example"}).status_code == 403
        assert client.get(f"{owner.address}/", headers={"Host": "evil.example"}).status_code == 403
        for path in ("", "main.js", "language.js", "api/surveys", "api/surveys/none"):
            found = client.get(f"{owner.address}/{path}", headers=right)
            assert "default-src 'none'" in found.headers["content-security-policy"], path
        for body in (b"[]", b"{", b'"x"'):
            assert client.post(api, headers=right, content=body).status_code == 409


def test_nobody_else_is_asked_and_nothing_secret_is_in_an_address(
    owner, owner_page, visitor
) -> None:
    owner.creates("quiet")
    (invitation,) = owner.surveys.survey("quiet").invitees()[:1]
    context, urls, logged = visitor(), [], []
    context.on("request", lambda request: urls.append(request.url))
    context.on("console", lambda message: logged.append(message.text))
    page = context.new_page()
    page.goto(f"{owner.address}/#{KEY}")
    page.get_by_role("button", name="quiet").click()
    page.get_by_text("Show one invitation").click()
    page.get_by_label("Person").select_option("person 1")
    expect(page.get_by_text(invitation.code.grouped_text)).to_be_visible()
    assert all(url.startswith(owner.address) for url in urls)
    assert not any(KEY in url or invitation.code.text in url or "?" in url for url in urls[1:])
    assert logged == []
    assert page.evaluate("localStorage.length + sessionStorage.length") == 0
    assert context.cookies() == []


def test_the_policy_blocks_scripts_and_other_origins(owner_page, visitor, owner) -> None:
    page = owner_page()
    page.get_by_role("button", name="New survey").wait_for()
    for attack in (
        "document.body.innerHTML = '<b>x</b>'",
        "document.createElement('script').textContent = 'window.ran = 1'",
        "eval('1')",
    ):
        assert page.evaluate(TRIED % attack) in ("TypeError", "EvalError"), attack
    assert (
        page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')")
        == "blocked"
    )
    framed = visitor().new_page()
    framed.route(
        "http://other.example/",
        lambda route: route.fulfill(
            body=f"<iframe src={owner.address}></iframe>", content_type="text/html"
        ),
    )
    framed.goto("http://other.example/")
    assert framed.frames[1].evaluate("document.querySelector('main')") is None
    called = (
        "fetch('%s/api/surveys', {headers: {Authorization: 'Bearer %s'}})"
        ".then(() => 'read', () => 'blocked')"
    )
    assert (
        framed.evaluate(called % (owner.address, KEY)) == "blocked"
    )  # even with the key: another origin


TRIED = """() => new Promise((done) => setTimeout(() => {
  try { %s; done('ran'); } catch (problem) { done(problem.name); }
}))"""
"""In a task of the page's own: what a debugger evaluates is not under the policy."""


def test_words_of_others_are_only_words(owner, owner_page) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    owner.creates(
        "hostile",
        question=hostile,
        items=f"{hostile}\nb",
        people="\n".join([f"<b>{hostile}", *"abcdefg"]),
    )
    page = owner_page()
    expect(page.get_by_role("listitem").filter(has_text=hostile)).to_be_visible()
    page.get_by_role("button", name="hostile").click()
    expect(page.get_by_text(hostile)).to_be_visible()
    page.get_by_text("Show one invitation").click()
    page.get_by_label("Person").select_option(f"<b>{hostile}")
    expect(page.get_by_role("img")).to_have_accessible_name(
        f"QR code with the link of <b>{hostile}"
    )
    assert page.locator("main img, main b").count() == 0


def test_the_program_logs_neither_keys_nor_codes(owner, tmp_path: Path) -> None:
    command = [quick_python(), "-m", "faircount", "dashboard", str(tmp_path / "new"), "--port", "0"]
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen(
            [*command, "--servers", str(owner.surveys.servers)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert running.stdout is not None
        address, _, key = next(line.strip() for line in running.stdout if "http" in line).partition(
            "/#"
        )
        headers = {"Authorization": f"Bearer {key}"}
        httpx.get(f"{address}/api/surveys/none", headers=headers, timeout=30)
        httpx.get(f"{address}/api/surveys?key={key}", headers=headers, timeout=30)
        running.terminate()
        rest, _ = running.communicate(timeout=30)
    assert key not in rest + (tmp_path / "log").read_text()
