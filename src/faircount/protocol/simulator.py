"""A whole survey in memory, played by the real roles: the specification of the protocol, and the
oracle of its tests.

    set up -> in every phase each client connects and sends what it has to send
    -> the coordinator's deadline passes -> the servers exchange messages

`play` does this for answers that all arrive. Whoever wants to lose, delay or change something
uses the same pieces: `set_up`, `visits`, `converse`, `result_of`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, TypeVar

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ProtocolError
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.protocol.roles.aggregator import Aggregator, aggregate, mac_key_rows
from faircount.protocol.roles.client import Client, ClientState, has_progressed
from faircount.protocol.roles.coordinator import (
    Coordinator,
    coordinate,
    coordinate_many,
    end_phase,
    invitation_rows,
)
from faircount.protocol.roles.limits import MAX_SERVER_MESSAGES
from faircount.protocol.roles.rows import MemoryRows, Step, StepRows
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import (
    Keys,
    SurveyParameters,
    minimum_after_dropouts,
    propose,
)
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.survey.release import decode_release
from faircount.protocol.survey.topology import Topology
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.crypto import CryptoSuite, StandardCrypto
from faircount.protocol.wire.messages import Aborted, Published, addressee
from faircount.protocol.wire.packed_rows import batched
from faircount.protocol.wire.signing import SigningKey

S = TypeVar("S", Coordinator, Aggregator)

Progress = Callable[[int], None]
"""Is told the number of users done."""

Meter = Callable[[int, Message, Message], None]
"""Is told what a user said to the coordinator and what it heard."""

MOST_EXCHANGES = 12
"""More than a device has to say in one visit, and an end for one that is refused every time."""

TOGETHER = 64
"""Devices that come by at once where all do: the coordinator writes what they say together, as a
service does.
"""


@dataclass(frozen=True)
class InMemory(Generic[S]):
    """A server whose rows are in memory: its state, and the rows that its steps write into."""

    state: S
    rows: MemoryRows

    def do(
        self, role: Callable[..., Step[S]], *given: Any
    ) -> tuple["InMemory[S]", tuple[Message, ...]]:
        """Let a role make a step and write it; the messages are to be sent then."""
        step = role(self.state, *given, reader=self.rows)
        return self.after(step), step.messages

    def after(self, step: Step[S]) -> "InMemory[S]":
        """The server once a step is written."""
        self.rows.apply(step)
        return self if step.state is self.state else InMemory(step.state, self.rows)

    def copy(self) -> "InMemory[S]":
        """A backup that later steps do not reach."""
        return InMemory(self.state, self.rows.copy())

    @property
    def view(self) -> StepRows:
        """The rows as the next step will see them."""
        return StepRows(self.rows)

    def __getattr__(self, name: str) -> Any:
        """Whatever the state has: tests look at a server as a whole."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.state, name)

    def changed(self, **fields: Any) -> "InMemory[S]":
        """The same with other values in its state; the rows are shared."""
        return InMemory(replace(self.state, **fields), self.rows)


@dataclass(frozen=True)
class SurveySetup:
    """A survey about to begin: its parameters, one invitation per person, and both servers."""

    params: SurveyParameters
    invitations: tuple[Invitation, ...]
    s1: InMemory[Coordinator]
    s2: InMemory[Aggregator]


def set_up(
    mechanism: FrequencyMechanism,
    topology: Topology,
    entropy: Entropy,
    crypto: CryptoSuite | None = None,
    **terms: Any,
) -> SurveySetup:
    """Keys, parameters and invitations for a mechanism bound to n_max users; `terms` go to
    `propose`.
    """
    crypto = StandardCrypto() if crypto is None else crypto
    first, second, box = (
        SigningKey.generate(entropy),
        SigningKey.generate(entropy),
        crypto.keypair(entropy),
    )
    values = entropy.bytes(32), entropy.bytes(32)
    keys = Keys(
        first.public, second.public, box.public, *(sha256(each).digest() for each in values)
    )
    params = propose(mechanism, keys, survey=entropy.bytes(16), topology=topology, **terms)
    invitations = tuple(Invitation.issue(params.digest, entropy) for _ in range(params.n_max))
    order_key = entropy.bytes(32) if topology.needs_order_key else b""
    secrets = (entropy.bytes(32), entropy.bytes(32)) if params.proven else (b"", b"")
    s1 = Coordinator.begin(params, first, values[0], crypto, order_key, secrets[0])
    ledger = Ledger(params.population, params.epsilon, params.delta)
    mac_keys = {each.user: each.enrolment_mac_key for each in invitations}
    s2 = Aggregator.begin(params, second, box, ledger, values[1], crypto, noise_secret=secrets[1])
    people = invitation_rows(invitation.access for invitation in invitations)
    return SurveySetup(
        params,
        invitations,
        InMemory(s1, MemoryRows(people)),
        InMemory(s2, MemoryRows(mac_key_rows(mac_keys))),
    )


def converse(
    s1: InMemory[Coordinator], s2: InMemory[Aggregator], out: Sequence[Message]
) -> tuple[InMemory[Coordinator], InMemory[Aggregator]]:
    """Carry messages between the servers until neither has anything to say."""
    waiting, left = list(out), MAX_SERVER_MESSAGES
    while waiting:
        if (left := left - 1) < 0:
            raise ProtocolError(
                f"The coordinator and the aggregator exchanged {MAX_SERVER_MESSAGES} messages "
                "without coming to an end"
            )
        message = waiting.pop(0)
        if addressee(message) is Party.AGGREGATOR:
            s2, answers = s2.do(aggregate, message)
        else:
            s1, answers = s1.do(coordinate, message)
        waiting += answers
    return s1, s2


def visits(
    s1: InMemory[Coordinator],
    client: Client,
    held: list[ClientState],
    users: Sequence[int],
    entropy: Entropy,
    meter: Meter | None = None,
) -> InMemory[Coordinator]:
    """These devices come by and do all that there is to do; one signature acknowledges what they
    say at once.
    """
    for _ in range(MOST_EXCHANGES):
        asked = [
            (user, message)
            for user in users
            if (message := client.next_message(held[user])) is not None
        ]
        step, answers = coordinate_many(s1.state, [message for _, message in asked], s1.rows)
        s1 = s1.after(step)
        users = []
        for (user, message), out in zip(asked, answers, strict=True):
            before, answer = held[user], out[0] if out else None
            if answer is not None:
                held[user] = client.handle_response(before, message, answer, entropy)
                if meter is not None:
                    meter(user, message, answer)
            if has_progressed(before, held[user]):
                users.append(user)
        if not users:
            break
    return s1


def run_phases(
    survey: SurveySetup,
    devices: Iterable[ClientState],
    entropy: Entropy,
    present: Callable[[int], bool] = lambda user: True,
    progress: Progress | None = None,
    meter: Meter | None = None,
    together: int = 1,
) -> InMemory[Coordinator]:
    """The coordinator at the end of a survey in which those who are `present`, asked once a phase,
    do all that they are asked to.

    So many of them come `together`.
    """
    s1, s2, client, held = survey.s1, survey.s2, survey.params.topology.client, list(devices)
    phases, done = len(survey.params.topology.phases), 0
    while s1.state.phase not in FINAL:
        for group in batched(range(len(held)), together):
            here = [user for user in group if present(user)]
            for user in here:
                if not held[user].state:
                    held[user] = client.start(survey.params, held[user], s2.state.crypto, entropy)
            s1 = visits(s1, client, held, here, entropy, meter)
            if progress is not None:
                progress(min(len(held), (done := done + len(group)) // phases))
        s1, out = s1.do(end_phase)
        s1, s2 = converse(s1, s2, out)
    if progress is not None:
        progress(len(held))
    return s1


def play(
    positions: Iterable[int],
    mechanism: FrequencyMechanism,
    topology: Topology,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Result:
    """A survey in which everybody answers, from invitation to result; one position in the item
    list per user.
    """
    source, held = (
        SystemEntropy() if entropy is None else entropy,
        [int(each) for each in positions],
    )
    bound = mechanism.bind(len(held))
    terms = {
        "minimum": minimum_after_dropouts(bound),
        **terms,
    }  # nobody vanishes: no room is left for it
    survey = set_up(bound, topology, source, **terms)
    devices = (
        ClientState(invitation, item)
        for invitation, item in zip(survey.invitations, held, strict=True)
    )
    ended = run_phases(survey, devices, source, progress=progress, together=TOGETHER)
    return result_of(ended.state)


def result_of(s1: Coordinator) -> Result:
    """What the aggregator signed, as estimates with intervals; refused if the survey was
    aborted.
    """
    final = None if s1.final is None or s1.final.signed.by != Party.AGGREGATOR else s1.final.message
    if not isinstance(final, Published):
        words = (
            describe_abort(final)
            if isinstance(final, Aborted)
            else "The aggregator has not published"
        )
        raise ProtocolError(f"this survey has no result: {words}")
    return decode_release(s1.params, final, s1.rules.included_places(s1))
