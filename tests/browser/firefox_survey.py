"""A survey in a real Firefox with real servers, outside `make test`: `make firefox`.

The file is not named test_..., so that pytest collects it only on request. The test clicks as a
person does: Firefox finds what to click by role and name, like a screen reader.
"""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from faircount.core.errors import FaircountError

PIPE = Path(__file__).with_name("firefox_pipe.mjs")
PEOPLE, CLIENTS = 3, 5
ITEMS = ["Aldmoor", "Brackwater", "Carrow"]
SECONDS = 30
"""How long the page may take to show something: only a failure waits that long."""


@dataclass(frozen=True)
class Firefox:
    """Firefox, told through a pipe."""

    pipe: subprocess.Popen[str]

    def tell(self, method: str, **params: Any) -> dict[str, Any]:
        """One command of WebDriver BiDi, and its result."""
        assert self.pipe.stdin is not None
        assert self.pipe.stdout is not None
        print(json.dumps({"method": method, "params": params}), file=self.pipe.stdin, flush=True)
        said = json.loads(self.pipe.stdout.readline() or '{"error": "Firefox has ended"}')
        if "error" in said:
            raise FaircountError(f"Firefox refuses {method}: {said['error']}")
        return said["result"]

    def person(self) -> "Person":
        """Somebody with storage of their own."""
        return Person(self, self.tell("browser.createUserContext")["userContext"])


@dataclass(frozen=True)
class Person:
    """A person at a Firefox of their own: what was stored for others is not there."""

    firefox: Firefox
    storage: str

    def visits(self, address: str) -> "Tab":
        """A new tab at this address."""
        made = self.firefox.tell("browsingContext.create", type="tab", userContext=self.storage)
        tab = Tab(self.firefox, made["context"])
        tab.goes_to(address)
        return tab

    def is_offline(self, yes: bool) -> None:
        """Cut the network of all tabs of this person, or give it back."""
        conditions = {"type": "offline"} if yes else None
        self.firefox.tell(
            "emulation.setNetworkConditions",
            networkConditions=conditions,
            userContexts=[self.storage],
        )


@dataclass(frozen=True)
class Tab:
    """One tab."""

    firefox: Firefox
    context: str

    def goes_to(self, address: str) -> None:
        self.firefox.tell(
            "browsingContext.navigate", context=self.context, url=address, wait="complete"
        )

    def closes(self) -> None:
        self.firefox.tell("browsingContext.close", context=self.context)

    def says(self, expression: str) -> str:
        """The value of an expression on the page, which is a text."""
        target = {"context": self.context}
        said = self.firefox.tell(
            "script.evaluate", expression=expression, target=target, awaitPromise=True
        )
        return str(said["result"]["value"])

    def sees(self, title: str) -> None:
        """Wait until this is the heading of the page."""
        wait_for(lambda: self.says("document.querySelector('h1').textContent"), title)

    def clicks(self, role: str, name: str) -> None:
        """Click on what assistive technology knows by this role and name, once it is there."""
        at = self._found(role, name)
        self._calls("(each) => each.scrollIntoView({ block: 'center' })", at)
        moves = {
            "type": "pointerMove",
            "x": 0,
            "y": 0,
            "origin": {"type": "element", "element": at},
        }
        press = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        mouse = {"type": "pointer", "id": "mouse", "actions": [moves, *press]}
        self.firefox.tell("input.performActions", context=self.context, actions=[mouse])

    def _found(self, role: str, name: str) -> dict[str, str]:
        wanted = {"type": "accessibility", "value": {"role": role, "name": name}}
        for _ in range(SECONDS * 10):
            nodes = self.firefox.tell(
                "browsingContext.locateNodes", context=self.context, locator=wanted
            )["nodes"]
            if nodes:
                return {"sharedId": nodes[0]["sharedId"]}
            time.sleep(0.1)
        raise FaircountError(f"the page has no {role} called {name}")

    def _calls(self, function: str, node: dict[str, str]) -> None:
        target = {"context": self.context}
        self.firefox.tell(
            "script.callFunction",
            functionDeclaration=function,
            arguments=[node],
            target=target,
            awaitPromise=True,
        )


def wait_for(look: Any, wanted: str) -> None:
    """Look again until the text is this one."""
    seen = ""
    for _ in range(SECONDS * 10):
        if (seen := look()) == wanted:
            return
        time.sleep(0.1)
    assert seen == wanted


@pytest.fixture
def firefox() -> Iterator[Firefox]:
    """A Firefox that ends with the test."""
    command = ["node", "--experimental-websocket", str(PIPE)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as pipe:
        made = Firefox(pipe)
        made.tell("session.new", capabilities={})
        yield made
        assert pipe.stdin is not None
        pipe.stdin.close()
        pipe.wait(60)


def answers(tab: Tab, item: str) -> None:
    """Choose, look at what will leave the device, send."""
    tab.sees("Aldmoor Council asks")
    tab.clicks("radio", item)
    tab.clicks("button", "Continue")
    tab.sees("Send this answer?")
    tab.clicks("button", "Send")


def test_a_survey_in_firefox_gives_the_right_sum(trial, firefox: Firefox) -> None:
    links = trial.create(PEOPLE + CLIENTS + 2)  # two do not come
    people = [firefox.person() for _ in range(PEOPLE)]
    for person, link, item in zip(people, links, ITEMS, strict=False):
        tab = person.visits(link)
        answers(tab, item)
        tab.sees("Thank you! Your answer has arrived")
        tab.closes()
    trial.answers(links[PEOPLE : PEOPLE + CLIENTS], "Carrow")
    result = trial.close()
    assert result["included"] == PEOPLE + CLIENTS
    assert result["questions"][0]["counts"] == [1, 1, 1 + CLIENTS]
    tab = people[1].visits(links[1])
    tab.sees("Your answer was counted")
    rows = tab.says(
        "[...document.querySelectorAll('tbody tr')].map((each) => each.textContent).join('|')"
    )
    assert re.search(r"Carrow\s*75\.0\s%", rows)
    stranger = firefox.person().visits(links[-1])
    stranger.sees("This survey is closed")


def test_a_tab_closed_before_its_answer_was_sent_comes_back_with_it(
    trial, firefox: Firefox
) -> None:
    (link, *_), person = trial.create(), firefox.person()
    tab = person.visits(link)
    tab.sees("Aldmoor Council asks")
    person.is_offline(True)
    answers(tab, "Brackwater")
    tab.sees("Saved on this device, not sent yet")
    address = tab.says("location.href")
    assert "#" not in address  # the token has left the address bar
    assert trial.status()["responses"] == 0
    tab.closes()
    person.is_offline(False)
    tab = person.visits(address)
    tab.clicks("button", "Show: Where do you live?")
    tab.sees("Thank you! Your answer has arrived")
    assert trial.status()["responses"] == 1
    tab.clicks("button", "Was my answer counted?")
    wait_for(
        lambda: tab.says("document.querySelector('p[role=status]').textContent"),
        "There is no result yet.",
    )
