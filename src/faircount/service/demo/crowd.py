"""A process that plays many people's devices, each with its own file; it may be killed at any time and started again.

    python -m faircount.service.demo.crowd FILE

In every phase each device visits once. After every round one line of JSON says which phase all of them have seen.
"""

import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ProtocolError, UnreachableError
from faircount.protocol import Device
from faircount.protocol.survey.states import FINAL
from faircount.protocol.topologies.two_servers.reports import form_of
from faircount.protocol.topologies.two_servers.user import prepare
from faircount.protocol.wire.sealing import RealSealing
from faircount.service.calls import Patience, RemoteServer, Reply
from faircount.service.client import Participation, connect
from faircount.service.device_file import Kept
from faircount.sharing.keys import SEED_BYTES

PAUSE = 0.1
"""Seconds between two rounds."""


@dataclass(frozen=True)
class Person:
    """One person: its invitation, its answer, and when it vanishes for good.

    visits: how often it comes before it vanishes; None if it stays
    unsent: it vanishes in its first visit, after its device has written its state and before anything is sent
    lies: its device was changed, and sends fifty votes for one item and minus forty-nine for another
    """

    link: str = field(repr=False)
    item: str = field(repr=False)
    visits: int | None = None
    unsent: bool = False
    lies: bool = False


@dataclass(frozen=True)
class CrowdPlan:
    """What a crowd plays: its survey at S1, where its devices are kept, and the people."""

    address: str
    survey: str
    folder: str
    people: tuple[Person, ...]

    def write(self, path: Path) -> None:
        """As JSON, for the process to read."""
        path.write_text(json.dumps(asdict(self)))
        path.chmod(0o600)

    @classmethod
    def read(cls, path: Path) -> "CrowdPlan":
        """From JSON."""
        said = json.loads(path.read_text())
        people = tuple(Person(**each) for each in said.pop("people"))
        return cls(people=people, **said)


class Unplugged(RemoteServer):
    """A connection over which nothing is sent: its device has everything on disk, and nobody hears of it."""

    def call(self, method: str, path: str, content: bytes | None = None, **given: Any) -> Reply:
        """Read what can be read; send nothing."""
        if method != "GET":
            raise UnreachableError("this device was switched off before it could send")
        return super().call(method, path, content, **given)


class Crowd:
    """All devices of a process."""

    def __init__(self, plan: CrowdPlan) -> None:
        patience = Patience(tries=30, first=0.1, longest=1.0)
        self.server = RemoteServer(plan.address, name="S1", patience=patience)
        self._off, self._status = Unplugged(plan.address, name="S1"), f"/v1/surveys/{plan.survey}/status"
        self.people, self.folder = plan.people, Path(plan.folder)
        self.parts = [self._part(each, self.folder / f"{number}.device") for number, each in enumerate(plan.people)]
        self.visits = Counter[int]()
        self.seen: list[Any] = []

    def _part(self, person: Person, path: Path) -> Participation:
        return connect(person.link, state=path, connection=self._off if person.unsent else self.server)

    def round(self) -> dict[str, Any]:
        """Every device visits once in every phase; what phase they have all seen."""
        now = self.server.call("GET", self._status).json()
        phase = [now["state"], now["attempt"]]
        for number, person in enumerate(self.people if phase != self.seen else ()):
            if not self._gone(number, person):
                self._visit(number, person)
        self.seen = phase
        return {"phase": phase, "over": now["state"] in FINAL}

    def _gone(self, number: int, person: Person) -> bool:
        """Whether a person has vanished, also if this process was killed and started again since."""
        gone = self.folder / f"{number}.gone"
        if person.visits is not None and self.visits[number] >= person.visits:
            gone.touch()
        return gone.exists()

    def _visit(self, number: int, person: Person) -> None:
        self.visits[number] += 1
        part = self.parts[number]
        if person.lies and part.file.load() is None:
            lie(part, person.item)
        try:
            if not part.standing().over:
                part.answer(person.item)
        except UnreachableError:
            if not person.unsent:
                raise

    def ended(self) -> dict[str, Any]:
        """How it ended for everybody: stages, and the places of those who saw that they were counted."""
        stages = [str(part.standing().stage) for part in self.parts]
        counted = [number for number, each in enumerate(stages) if each == "counted"]
        return {"stages": dict(Counter(stages)), "counted": counted}


def lie(part: Participation, item: str) -> None:
    """Write a device that will send what is no vote, with the best proof that there is for it."""
    from faircount.testing.invalid_reports import INVALID

    params, invitation, entropy, crypto = part.parameters, part.code.invitation, SystemEntropy(), RealSealing()
    form = form_of(params.mechanism)
    if form is None:
        raise ProtocolError("where reports are not proven, a lie is not noticed: choose another mechanism")
    row = INVALID["fifty votes and minus forty-nine"](form, entropy)
    made = prepare(params, invitation, row, entropy.bytes(SEED_BYTES), crypto.keypair(entropy), entropy, crypto)
    position = [str(each) for each in part.items].index(item)
    device = Device(invitation, position, state=made, waiting=(made.body,))
    part.file.save(Kept(part.server.address, params.published, device))


def main(path: str) -> None:
    """Rounds until the survey is over."""
    crowd = Crowd(CrowdPlan.read(Path(path)))
    while not (said := crowd.round())["over"]:
        _print(said)
        time.sleep(PAUSE)
    _print({**said, **crowd.ended()})


def _print(said: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
