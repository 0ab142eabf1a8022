"""A real Chromium (`make browser` finds or installs it), and both servers on loopback."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import uvicorn
from axe_playwright_python.sync_playwright import Axe
from in_process import Pair, in_process, rename_operator
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from trial_survey import fetch_survey_keys, register_parameters

from faircount.client.invitation_codes import Code
from faircount.client.participation import connect
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError
from faircount.dashboard.app import dashboard_app
from faircount.dashboard.surveys import Surveys
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import SERVERS, Invitation, SurveyParameters, propose
from faircount.protocol.survey.parameters import questionnaire_of
from faircount.protocol.wire.signing import SigningKey
from faircount.server.aggregator.app import aggregator_app
from faircount.server.coordinator.app import coordinator_app
from faircount.storage import states

ROOT = Path(__file__).parents[2]
ORIGIN = "http://localhost:9"  # nothing listens there: every request is answered by the test
POLICY = (
    "default-src 'none'; script-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
ITEMS = ["Aldmoor", "Brackwater", "Carrow"]
KEY = "key-of-this-test"
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],  # all rules run; what holds is not described node by node
}
# Only violations leave the page: all other results of one look are fifty kilobytes.
VIOLATIONS = """
async (rules) => (await axe.run(rules)).violations.map(
  ({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 120))])
"""
LOOKS = {"desktop": (1200, 900), "phone": (320, 640)}
SHOTS = os.environ.get("FAIRCOUNT_SCREENSHOTS")
"""A folder for pictures of every view; without it none are made."""


# The dashboard looks every three seconds whether something has changed. Tests wait for many of
# these looks, and what a look must not disturb is disturbed more often.
OFTEN = """
const wait = window.setTimeout;
window.setTimeout = (work, pause, ...rest) => wait(work, pause === 3000 ? 500 : pause, ...rest);
"""

expect.set_options(timeout=30_000)  # a busy machine is slow: only a failure waits that long


@pytest.fixture
def library_page(chromium: Browser) -> Iterator[Page]:
    """An empty page under a strict policy; its origin serves the files of this repository."""
    page = chromium.new_page()
    page.route("**/*", _from_disk)
    page.goto(ORIGIN)
    yield page
    page.close()


def _from_disk(route: Route) -> None:
    path = route.request.url.removeprefix(ORIGIN).lstrip("/")
    body = (ROOT / path).read_bytes() if path else b"<!doctype html><title>empty</title>"
    kind = "text/javascript" if path else "text/html"
    route.fulfill(body=body, headers={"content-type": kind, "content-security-policy": POLICY})


def proven(users: int) -> ServerLaplace:
    """The form that surveys of two servers have by default, with next to no noise."""
    return ServerLaplace(items=ITEMS, epsilon=50.0, users=users, dropouts=users // 2)


@dataclass
class Trial:
    """Both servers in a thread of their own; the methods are called from the test's thread."""

    loop: asyncio.AbstractEventLoop
    pair: Pair
    address: str = ""
    params: list[SurveyParameters] = field(default_factory=list)
    servers: list[tuple[uvicorn.Server, asyncio.Task[None]]] = field(default_factory=list)

    def serve(self, app: Any, port: int = 0) -> str:
        """The address of an application on loopback."""
        return self.does(self.start(app, port))

    async def start(self, app: Any, port: int = 0) -> str:
        config = uvicorn.Config(
            app,
            host="127.0.0.1",
            port=port,
            log_level="warning",
            lifespan="off",
            # A stream of events that a page has left open: nobody waits for its end.
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        self.servers.append((server, asyncio.create_task(server.serve())))
        while not server.started:
            await asyncio.sleep(0.01)
        return f"http://localhost:{server.servers[0].sockets[0].getsockname()[1]}"

    async def stop(self) -> None:
        # All at the same time: each waits a second for streams that pages have left open.
        for server, _ in self.servers:
            server.should_exit = True
        for _, serving in self.servers:
            await serving

    def does(self, action: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(action, self.loop).result(60)

    def create(self, users: int = 6, *, opened: bool = True, **terms: Any) -> list[str]:
        """Create a survey with proven reports, the default; returns the links of its invitations.

        Its noise is nothing but once in 10^9 surveys.
        """
        return self.does(self._create(users, opened, terms))

    async def _create(self, users: int, opened: bool, terms: dict[str, Any]) -> list[str]:
        mechanism = terms.pop("mechanism", None) or proven(users)
        entropy = SystemEntropy()
        words = {**WORDS, **terms}
        asked = questionnaire_of(mechanism, words.pop("question"))
        rename_operator(self.pair.s1.server, words["s1_operator"])
        rename_operator(self.pair.s2.server, words["s2_operator"])
        params = propose(
            mechanism,
            await fetch_survey_keys(self.pair.to_s1, self.pair.to_s2),
            survey=entropy.bytes(16),
            topology=SERVERS,
            questionnaire=asked,
            **words,
        )
        invitations = [Invitation.issue(params.digest, entropy) for _ in range(users)]
        self.params.append(params)
        await self.pair.to_s2.put(
            "/v1/populations/customers", json={"epsilon": 10_000.0, "delta": 0.5}
        )
        await register_parameters(self.pair.to_s1, self.pair.to_s2, params)
        access = b"".join(issued.access for issued in invitations)
        guests = b"".join(issued.user + issued.enrolment_mac_key for issued in invitations)
        (await self.pair.to_s1.put(f"{self.path}/invited/0", content=access)).raise_for_status()
        (await self.pair.to_s2.put(f"{self.path}/invited/0", content=guests)).raise_for_status()
        if opened:
            await self._open()
        return [Code(params.survey, invitation).link(self.address) for invitation in invitations]

    @property
    def path(self) -> str:
        return f"/v1/surveys/{self.params[-1].survey.hex()}"

    def open(self) -> None:
        self.does(self._open())

    async def _open(self) -> None:
        (await self.pair.to_s1.post(f"{self.path}/open", json={})).raise_for_status()

    def close(self) -> dict[str, Any]:
        """End the survey; its result in JSON."""
        return self.does(self._close())

    def settle(self) -> None:
        """The coordinator and the aggregator say to each other what is due."""
        self.does(self.pair.scheduler.run_once())

    async def _close(self) -> dict[str, Any]:
        (await self.pair.to_s1.post(f"{self.path}/close", json={})).raise_for_status()
        await self.pair.scheduler.run_once()
        return (await self.pair.to_s1.get(f"{self.path}/result")).json()

    def answers(self, links: Sequence[str], answer: object) -> None:
        """People with the Python client, who all give this answer, or these answers."""
        for link in links:
            with TemporaryDirectory() as folder:
                part = connect(link, state=Path(folder, "part"))
                part.answer(answer)
                part.server.close()

    def signing_key(self) -> SigningKey:
        """The coordinator's key of the newest survey."""
        return self.does(self._signing_key())

    async def _signing_key(self) -> SigningKey:
        async with self.pair.s1.server.database.read() as tx:
            row = await states.find(tx, self.params[-1].survey)
            return (await self.pair.s1.states.load(tx, row, found=())).state.key

    def status(self) -> dict[str, Any]:
        return self.does(self.pair.to_s1.get(f"{self.path}/status")).json()


WORDS = {
    "question": "Where do you live?",
    "owner": "Aldmoor Council",
    "purpose": "to plan the buses",
    "contact": "buses@example.org",
    "s1_operator": "Aldmoor Council",
    "s2_operator": "Count & Sons",
    "population": "customers",
    "phase_seconds": (3600,),
}


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """Both servers, for as many surveys as the tests like."""
    ready: list[Trial] = []
    told, done = threading.Event(), asyncio.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(tmp_path_factory.mktemp("trial"), ready, told, done))
    )
    thread.start()
    if not told.wait(60):
        raise FaircountError("the trial's servers do not start")
    yield ready[0]
    ready[0].loop.call_soon_threadsafe(done.set)
    thread.join(30)


async def _serve(
    folder: Path, ready: list[Trial], told: threading.Event, done: asyncio.Event
) -> None:
    async with in_process(folder) as pair:
        trial = Trial(asyncio.get_running_loop(), pair)
        trial.address = await trial.start(coordinator_app(pair.s1))
        ready.append(trial)
        told.set()
        await done.wait()
        await trial.stop()


@pytest.fixture
def visitor(chromium: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Makes browser contexts: one for each person, with storage of its own."""
    made: list[BrowserContext] = []

    def make(**settings: Any) -> BrowserContext:
        made.append(chromium.new_context(**{"locale": "en", **settings}))
        made[-1].set_default_timeout(15_000)
        return made[-1]

    yield make
    for context in made:
        context.close()


def _look_at(page: Page, name: str) -> None:
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)  # half a megabyte: once for all four looks at a page
    for width, size in LOOKS.items():
        page.set_viewport_size({"width": size[0], "height": size[1]})
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        ), name
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate(VIOLATIONS, RULES) == [], name
            if SHOTS:
                page.screenshot(path=Path(SHOTS, f"{name}-{width}-{scheme}.png"), full_page=True)


@pytest.fixture
def look_at() -> Callable[[Page, str], None]:
    """Checks with axe that a page is accessible and fits, on desktop and phone, light and dark."""
    return _look_at


@dataclass(frozen=True)
class Owner:
    """The owner of surveys: the folder, and the address of the dashboard without its key."""

    trial: Trial
    surveys: Surveys
    address: str

    def creates(self, name: str, **change: Any) -> list[str]:
        """A survey that is open; the links of its invitations.

        `question` and `items` are others of its only question.
        """
        asked = {
            **ASKED,
            "text": change.pop("question", ASKED["text"]),
            "items": change.pop("items", ASKED["items"]),
        }
        self.surveys.create({**FORM, "questions": [asked], "name": name, **change})
        self.surveys.request(name, "open", {})
        survey = self.surveys.survey(name)
        return [invitee.code.link(survey.owner.public_address) for invitee in survey.invitees()]

    def ends(self, name: str) -> None:
        """Close it, and let both servers count."""
        self.surveys.request(name, "close", {"phase": "submitting", "attempt": 0})
        self.trial.settle()


ASKED = {
    "kind": "one",
    "text": "How do you come to work?",
    "items": "By bicycle\nBy bus\nOn foot",
}
FORM = {
    "users": "8",
    "minimum": "50%",
    "epsilon": "40",
    "delta": "1e-6",
    "open_for": "72",
    "unit": "hours",
    "owner": "Aldmoor Council",
    "purpose": "to plan the buses",
}


@pytest.fixture(scope="session")
def owner(trial: Trial, tmp_path_factory: pytest.TempPathFactory) -> Owner:
    """An owner with a dashboard that runs."""
    folder = tmp_path_factory.mktemp("owner")
    addresses = trial.address, trial.serve(aggregator_app(trial.pair.s2))
    known = [
        {"address": at, "token": token}
        for at, token in zip(addresses, trial.pair.owner_tokens, strict=True)
    ]
    (folder / "servers.json").write_text(json.dumps(dict(zip(("s1", "s2"), known, strict=True))))
    surveys = Surveys(folder / "surveys", folder / "servers.json")
    with socket.create_server(("127.0.0.1", 0)) as found:
        host = f"127.0.0.1:{found.getsockname()[1]}"
    trial.serve(dashboard_app(surveys, KEY, host), int(host.rpartition(":")[2]))
    return Owner(trial, surveys, f"http://{host}")


@pytest.fixture
def owner_page(owner: Owner, visitor: Callable[..., BrowserContext]) -> Callable[..., Page]:
    """Opens the dashboard in a context of its own."""

    def opened(**settings: Any) -> Page:
        page = visitor(**{"viewport": {"width": 1200, "height": 900}, **settings}).new_page()
        page.add_init_script(OFTEN)
        page.goto(f"{owner.address}/#{KEY}")
        return page

    return opened
