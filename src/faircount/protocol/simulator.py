"""A whole survey in memory, run with the real roles: the executable specification.

    set up keys, parameters and invitations
    in every phase:
        clients connect and send what they have to send
        the deadline passes, and the coordinator ends the phase
        the servers exchange messages until both wait

`play` does this for a survey in which everybody responds. Tests compare other runs with it. To
lose, delay or change messages, use its parts: `set_up`, `visit`, `exchange_messages`, `result_of`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, TypeVar

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ProtocolError
from faircount.core.questions import Sheet
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.base import Mechanism
from faircount.protocol.roles.aggregator import Aggregator, aggregator_step, mac_key_rows
from faircount.protocol.roles.client import Client, ClientState, has_progressed
from faircount.protocol.roles.coordinator import (
    Coordinator,
    coordinator_step,
    coordinator_step_for_many,
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
from faircount.protocol.wire.packed_rows import split_into_batches
from faircount.protocol.wire.signing import SigningKey

S = TypeVar("S", Coordinator, Aggregator)

Progress = Callable[[int], None]
"""Called with the number of participants who are done."""

Meter = Callable[[int, Message, Message], None]
"""Called with a participant's number, a request of the client, and the coordinator's response."""

MAX_EXCHANGES = 12
"""More requests than a client has on one visit: bounds the loop for one that is always refused."""

CLIENTS_PER_GROUP = 64
"""Clients that connect at the same time in `play`.

The coordinator writes their messages together, as the service does.
"""


@dataclass(frozen=True)
class InMemory(Generic[S]):
    """A server in memory: its state, and the rows that its steps write."""

    state: S
    rows: MemoryRows

    def make_step(
        self, role: Callable[..., Step[S]], *arguments: Any
    ) -> tuple["InMemory[S]", tuple[Message, ...]]:
        """Make a step and write it; return the server after it, and the messages to send."""
        step = role(self.state, *arguments, reader=self.rows)
        return self.write_step(step), step.messages

    def write_step(self, step: Step[S]) -> "InMemory[S]":
        """Write a step, and return the server after it."""
        self.rows.apply(step)
        return self if step.state is self.state else InMemory(step.state, self.rows)

    def copy(self) -> "InMemory[S]":
        """A backup, which later steps do not change."""
        return InMemory(self.state, self.rows.copy())

    @property
    def view(self) -> StepRows:
        """The rows as the next step will see them."""
        return StepRows(self.rows)

    def __getattr__(self, name: str) -> Any:
        # Tests read fields of the state as if they were fields of the server.
        # Copying and pickling look for methods that the state would answer with its own.
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.state, name)

    def replace_fields(self, **fields: Any) -> "InMemory[S]":
        """The server with other values in its state; the rows are shared."""
        return InMemory(replace(self.state, **fields), self.rows)


@dataclass(frozen=True)
class SurveySetup:
    """A survey before its first message: parameters, invitations, coordinator and aggregator."""

    params: SurveyParameters
    invitations: tuple[Invitation, ...]
    s1: InMemory[Coordinator]
    s2: InMemory[Aggregator]


def set_up(
    mechanism: Mechanism,
    topology: Topology,
    entropy: Entropy,
    crypto: CryptoSuite | None = None,
    **terms: Any,
) -> SurveySetup:
    """Make the keys, parameters and invitations of a survey.

    Args:
        mechanism: a mechanism that is bound to the number of invited participants
        topology: how shares travel
        entropy: where all randomness comes from
        crypto: the cryptography; the standard suite unless given
        terms: further arguments of `propose`
    """
    crypto = crypto or StandardCrypto()
    coordinator_key = SigningKey.generate(entropy)
    aggregator_key = SigningKey.generate(entropy)
    encryption_keys = crypto.keypair(entropy)
    # Drawn before the parameters, which contain the commitments to both values.
    coordinator_value = entropy.bytes(32)
    aggregator_value = entropy.bytes(32)
    keys = Keys(
        coordinator_key.public,
        aggregator_key.public,
        encryption_keys.public,
        sha256(coordinator_value).digest(),
        sha256(aggregator_value).digest(),
        # A simulated server lives for one survey, so its operator needs no other key.
        s1_operator_key=coordinator_key.public,
        s2_operator_key=aggregator_key.public,
    )
    params = propose(mechanism, keys, survey=entropy.bytes(16), topology=topology, **terms)
    invitations = tuple(Invitation.issue(params.digest, entropy) for _ in range(params.n_max))

    order_key = entropy.bytes(32) if topology.needs_order_key else b""
    # Where reports have proofs the servers add the noise, from a secret each.
    coordinator_noise = entropy.bytes(32) if params.proven else b""
    aggregator_noise = entropy.bytes(32) if params.proven else b""
    coordinator = Coordinator.begin(
        params, coordinator_key, coordinator_value, crypto, order_key, coordinator_noise
    )
    # The population has exactly the budget of this survey.
    aggregator = Aggregator.begin(
        params,
        aggregator_key,
        encryption_keys,
        Ledger(params.population, params.epsilon, params.delta),
        aggregator_value,
        crypto,
        noise_secret=aggregator_noise,
    )
    # The coordinator knows access values, the aggregator MAC keys; the invitation has both.
    invited = invitation_rows(invitation.access for invitation in invitations)
    mac_keys = {invitation.user: invitation.enrolment_mac_key for invitation in invitations}
    return SurveySetup(
        params,
        invitations,
        InMemory(coordinator, MemoryRows(invited)),
        InMemory(aggregator, MemoryRows(mac_key_rows(mac_keys))),
    )


def exchange_messages(
    s1: InMemory[Coordinator], s2: InMemory[Aggregator], out: Sequence[Message]
) -> tuple[InMemory[Coordinator], InMemory[Aggregator]]:
    """Deliver messages between the servers until neither has anything left to send.

    Raises:
        ProtocolError: they do not stop
    """
    waiting = list(out)
    delivered = 0
    while waiting:
        if delivered == MAX_SERVER_MESSAGES:
            raise ProtocolError(
                f"the coordinator and the aggregator exchanged {MAX_SERVER_MESSAGES} messages "
                "without coming to an end"
            )
        delivered += 1
        message = waiting.pop(0)
        # In order of sending. The outbox of the service differs in shares of parts only: it sends
        # several at a time (`parts_to_send`) instead of waiting until the aggregator asks.
        if addressee(message) is Party.AGGREGATOR:
            s2, replies = s2.make_step(aggregator_step, message)
        else:
            s1, replies = s1.make_step(coordinator_step, message)
        waiting += replies
    return s1, s2


def visit(
    s1: InMemory[Coordinator],
    client: Client,
    states: list[ClientState],
    users: Sequence[int],
    entropy: Entropy,
    meter: Meter | None = None,
) -> InMemory[Coordinator]:
    """Let clients connect at the same time and send all that they have to send.

    Args:
        s1: the coordinator
        client: the client's side of the topology
        states: the states of all clients, changed in place
        users: which of them connect
        entropy: where the clients' randomness comes from
        meter: called for every exchange
    """
    # A loop with an end: a mistake in a client fails a test instead of hanging it.
    for _ in range(MAX_EXCHANGES):
        requests = dict[int, Message]()
        for user in users:
            request = client.next_message(states[user])
            if request is not None:
                requests[user] = request
        # One step, and one signature that acknowledges everything in it.
        step, replies = coordinator_step_for_many(s1.state, requests.values(), s1.rows)
        s1 = s1.write_step(step)
        users = []
        for (user, request), out in zip(requests.items(), replies, strict=True):
            before = states[user]
            # Without a reply the client is where it was, and asks again on its next visit.
            if out:
                states[user] = client.handle_response(before, request, out[0], entropy)
                if meter is not None:
                    meter(user, request, out[0])
            if has_progressed(before, states[user]):
                users.append(user)
        if not users:
            break
    return s1


def run_phases(
    survey: SurveySetup,
    clients: Iterable[ClientState],
    entropy: Entropy,
    present: Callable[[int], bool] = lambda user: True,
    progress: Progress | None = None,
    meter: Meter | None = None,
    together: int = 1,
) -> InMemory[Coordinator]:
    """Run a survey to its end, and return the coordinator.

    Args:
        survey: the survey
        clients: the states of its clients
        entropy: where the clients' randomness comes from
        present: whether a participant connects, asked once in every phase
        progress: called with the number of participants who are done
        meter: called for every exchange of a client
        together: how many clients connect at the same time
    """
    s1 = survey.s1
    s2 = survey.s2
    client = survey.params.topology.client
    states = list(clients)
    phases = len(survey.params.topology.phases)
    visits = 0
    while s1.state.phase not in FINAL:
        for group in split_into_batches(range(len(states)), together):
            # Asked anew in every phase: a participant may miss one and be back in the next.
            here = [user for user in group if present(user)]
            for user in here:
                # A client draws its randomness once, on its first visit.
                if not states[user].state:
                    crypto = s2.state.crypto
                    states[user] = client.start(survey.params, states[user], crypto, entropy)
            s1 = visit(s1, client, states, here, entropy, meter)
            visits += len(group)
            if progress is not None:
                # A further attempt repeats phases: never more than everybody.
                progress(min(len(states), visits // phases))
        # The deadline passes for all at once; there is no clock in the protocol.
        s1, out = s1.make_step(end_phase)
        s1, s2 = exchange_messages(s1, s2, out)
    if progress is not None:
        progress(len(states))
    return s1


def play(
    answers: Iterable[int | Sheet],
    mechanism: Mechanism,
    topology: Topology,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    levels: Iterable[int] | None = None,
    **terms: Any,
) -> QuestionnaireResult:
    """Run a survey in which everybody responds, from the invitations to the result.

    Args:
        answers: for every participant a sheet, or the position of the answer to one question
        mechanism: the mechanism, not bound to a number of participants yet
        topology: how shares travel
        entropy: where all randomness comes from; the operating system unless given
        progress: called with the number of participants who are done
        levels: the privacy level of every participant, where the survey offers levels
        terms: further arguments of `propose`

    Raises:
        ProtocolError: the survey was aborted
    """
    source = entropy or SystemEntropy()
    sheets: list[Sheet] = [
        answer if isinstance(answer, tuple) else (int(answer),) for answer in answers
    ]
    bound = mechanism.bind(len(sheets))
    # Nobody drops out, so the dropout allowance is all the slack that the minimum needs.
    terms = {"minimum": minimum_after_dropouts(bound), **terms}
    survey = set_up(bound, topology, source, **terms)
    chosen = [0] * len(sheets) if levels is None else list(levels)
    clients = [
        ClientState(invitation, sheet, level=level)
        for invitation, sheet, level in zip(survey.invitations, sheets, chosen, strict=True)
    ]
    end = run_phases(survey, clients, source, progress=progress, together=CLIENTS_PER_GROUP)
    return result_of(end.state)


def result_of(s1: Coordinator) -> QuestionnaireResult:
    """The result that the aggregator signed, as estimates with intervals.

    Raises:
        ProtocolError: the survey was aborted, or is not over
    """
    final = None
    # The coordinator's own request to abort is no final statement.
    if s1.final is not None and s1.final.signed.by == Party.AGGREGATOR:
        final = s1.final.message
    if isinstance(final, Published):
        return decode_release(s1.params, final, s1.rules.included_places(s1))
    why = "the aggregator has not published"
    if isinstance(final, Aborted):
        why = describe_abort(final)
    raise ProtocolError(f"this survey has no result: {why}")
