"""A process that plays the clients of many participants, each with its own state file.

    python -m faircount.demo.crowd FILE

It works in rounds: it asks the coordinator for the phase of the survey, and if the phase is new,
every client visits once. After a round it prints one line of JSON with the phase that all of them
have visited. The process may be killed at any time and started again: clients continue from their
files, and a participant who has left stays away, because a marker file says so.
"""

import json
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from faircount.client.calls import RemoteServer, Reply, RetryPolicy
from faircount.client.participation import Participation, connect
from faircount.client.state_file import StoredParticipation
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import ProtocolError, UnreachableError
from faircount.protocol import ClientState
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.topologies.two_servers.reports import report_layout_of
from faircount.protocol.topologies.two_servers.user import make_report
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.sharing.keys import SEED_BYTES

SECONDS_BETWEEN_ROUNDS = 0.1


@dataclass(frozen=True)
class Person:
    """A simulated participant.

    link: the invitation
    sheet: the answers, one per question
    visits: after how many visits the person leaves for good; None if they stay
    never_sends: the device is switched off after it saved its state and before it sends anything
    lie: what kind of invalid report the client sends (see `invalid_reports`); empty for none
    """

    link: str = field(repr=False)
    sheet: tuple[Any, ...] = field(repr=False)
    visits: int | None = None
    never_sends: bool = False
    lie: str = ""


@dataclass(frozen=True)
class CrowdPlan:
    """What a crowd plays.

    address: the coordinator
    survey: the survey's id, in hexadecimal
    folder: where the clients keep their state
    people: the simulated participants
    """

    address: str
    survey: str
    folder: str
    people: tuple[Person, ...]

    def write(self, path: Path) -> None:
        """As JSON, which the process reads."""
        path.write_text(json.dumps(asdict(self)))
        # The invitations are secret.
        path.chmod(0o600)

    @classmethod
    def read(cls, path: Path) -> "CrowdPlan":
        """From JSON."""
        content = json.loads(path.read_text())
        people = tuple(Person(**person) for person in content.pop("people"))
        return cls(people=people, **content)


class ReadOnlyServer(RemoteServer):
    """A connection over which nothing is sent, as if the device were switched off before."""

    def call(self, method: str, path: str, content: bytes | None = None, **options: Any) -> Reply:
        """Read from the server; refuse to send."""
        if method != "GET":
            raise UnreachableError("this device was switched off before it could send")
        return super().call(method, path, content, **options)


class Crowd:
    """All clients of a process."""

    def __init__(self, plan: CrowdPlan) -> None:
        # Patient, because the demonstration kills and restarts the coordinator.
        retry = RetryPolicy(attempts=30, first_pause=0.1, longest_pause=1.0, patience=60.0)
        self.server = RemoteServer(plan.address, name="The coordinator", retry=retry)
        self._offline = ReadOnlyServer(plan.address, name="The coordinator")
        self._status_path = f"/v1/surveys/{plan.survey}/status"
        self.people = plan.people
        self.folder = Path(plan.folder)
        self.participations = []
        for number, person in enumerate(plan.people):
            self.participations.append(self._connect(person, self.folder / f"{number}.device"))
        self.visits = Counter[int]()
        self.visited_phase: list[Any] = []

    def _connect(self, person: Person, path: Path) -> Participation:
        server = self._offline if person.never_sends else self.server
        return connect(person.link, state=path, connection=server)

    def play_round(self) -> dict[str, Any]:
        """Let every client visit once in a new phase; the phase that all have visited."""
        status = self.server.call("GET", self._status_path).json()
        phase = [status["phase"], status["attempt"]]
        # A process that was started again visits once more, which changes nothing at the server.
        if phase != self.visited_phase:
            for number, person in enumerate(self.people):
                if not self._has_left(number, person):
                    self._visit(number, person)
        self.visited_phase = phase
        return {"phase": phase, "over": status["phase"] in FINAL}

    def _has_left(self, number: int, person: Person) -> bool:
        # A file remembers it, because this process may be killed and started again.
        marker = self.folder / f"{number}.gone"
        if person.visits is not None and self.visits[number] >= person.visits:
            marker.touch()
        return marker.exists()

    def _visit(self, number: int, person: Person) -> None:
        self.visits[number] += 1
        participation = self.participations[number]
        # Saved before the first visit: an honest client then sends it as if it were its own.
        if person.lie and participation.file.load() is None:
            save_invalid_report(participation, person)
        try:
            if not participation.status().is_over:
                participation.submit(person.sheet)
        except UnreachableError:
            # Expected of a device that is switched off; for all others the server is away.
            if not person.never_sends:
                raise

    def summarize(self) -> dict[str, Any]:
        """How many clients ended in each stage, and the numbers of those that were counted."""
        stages = [str(participation.status().stage) for participation in self.participations]
        counted = [number for number, stage in enumerate(stages) if stage == "counted"]
        return {"stages": dict(Counter(stages)), "counted": counted}


def save_invalid_report(participation: Participation, person: Person) -> None:
    """Save a client state whose report is no sheet, with the best proof that exists for it."""
    # Here, because only this demonstration needs it.
    from faircount.demo.invalid_reports import invalid_kinds

    params = participation.parameters
    invitation = participation.code.invitation
    entropy = SystemEntropy()
    crypto = StandardCrypto()
    layout = report_layout_of(params.mechanism)
    # The demonstration would show a wrong result.
    if layout is None:
        raise ProtocolError(
            "without proofs an invalid report goes unnoticed: choose a mechanism with proofs"
        )
    row = invalid_kinds(layout)[person.lie](layout, entropy)
    seed = entropy.bytes(SEED_BYTES)
    keys = crypto.keypair(entropy)
    state = make_report(params, invitation, row, seed, keys, entropy, crypto)
    pretended = participation.questionnaire.check_sheet(person.sheet)
    client = ClientState(invitation, pretended, state=state, waiting=(state.report,))
    address = participation.server.address
    participation.file.save(StoredParticipation(address, params.published, client))


def main(path: str) -> None:
    """Play rounds until the survey is over, then print how it ended."""
    crowd = Crowd(CrowdPlan.read(Path(path)))
    progress = crowd.play_round()
    while not progress["over"]:
        _print(progress)
        time.sleep(SECONDS_BETWEEN_ROUNDS)
        progress = crowd.play_round()
    _print({**progress, **crowd.summarize()})


def _print(progress: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(progress) + "\n")
    # At once: the reader of the pipe decides by these lines when to close a phase.
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
