"""Small surveys to break: n users with one item each, noise off: a count above 1 is a user counted twice."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.protocol import (
    MASKED,
    SERVERS,
    TWO_STAGE,
    ClientState,
    Message,
    Topology,
    aggregator_step,
    coordinator_step,
    decode,
    encode,
    end_phase,
    has_progressed,
)
from faircount.protocol.peers import member as members
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.messages import AggregateTotal
from faircount.protocol.simulator import SurveySetup, exchange_messages, set_up
from faircount.protocol.survey.devices import sign_for_device
from faircount.protocol.topologies.explicit.coordinator import current_set
from faircount.protocol.topologies.explicit.messages import PeerSum
from faircount.protocol.topologies.masked.masks import keys_digest
from faircount.protocol.topologies.masked.messages import MaskedSum
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.messages import AggregateShare
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import SlotComplaint, SlotSumRequest, SlotSums
from faircount.protocol.topologies.two_stage.relay import ballot_of, slots_of
from faircount.protocol.topologies.two_stage.sum_requests import SumScope
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, CryptoSuite, IdealCrypto
from faircount.protocol.wire.messages import OutcomeRequest, PollRequest, Published, Signed
from faircount.protocol.wire.signing import (
    UNCHAINED,
    ChainLink,
    SigningKey,
    compute_chain_link,
    sign,
    verify_statement,
)
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import packed_size


@dataclass
class Stage:
    """The parties of one survey, changed in place as the test goes on. User i stands at place i and holds item i."""

    setup: SurveySetup
    entropy: SeededStream
    people: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.params, self.client = self.setup.params, self.setup.params.topology.client
        self.s1, self.s2 = self.setup.s1, self.setup.s2
        self.invitations = sorted(self.setup.invitations, key=lambda invitation: invitation.user)

    def send_to_s1(self, message: Message) -> tuple[Message, ...]:
        self.s1, out = self.s1.make_step(coordinator_step, message)
        return out

    def send_to_s2(self, message: Message) -> tuple[Message, ...]:
        self.s2, out = self.s2.make_step(aggregator_step, message)
        return out

    def deadline(self) -> tuple[Message, ...]:
        self.s1, out = self.s1.make_step(end_phase)
        return out

    def settle(self, out: tuple[Message, ...]) -> None:
        self.s1, self.s2 = exchange_messages(self.s1, self.s2, out)

    def read_from_s2(self, signed: Any) -> Any:
        statement = verify_statement(
            self.params.keys.aggregator, Party.AGGREGATOR, getattr(signed, "signed", signed)
        )
        return None if statement is None else statement.message

    def counts(self) -> list[int]:
        final = self.s1.final.message
        assert isinstance(final, Published), final
        return list(final.counts)

    # users

    def device(self, i: int, **others: Any) -> ClientState:
        state = self.people[i] if i < len(self.people) else None
        return ClientState(self.invitations[i], (i % self.params.N,), state, **others)

    def begun(self) -> list[ClientState]:
        return [
            self.client.start(self.params, self.device(i), self.s2.crypto, self.entropy)
            for i in self.places
        ]

    @property
    def places(self) -> range:
        return range(len(self.invitations))

    def inquiry(self, i: int) -> Message:
        """The question of user i how the survey goes, signed by the device that answered."""
        return self.client.outcome_request(self.device(i))

    def withdrawal(self, i: int) -> Message:
        """The withdrawal of user i, signed by the device that answered."""
        return self.client.withdraw(self.device(i)).waiting[0]

    def signed_with(self, kind: Any, access: bytes) -> Message:
        """A message for this access value that a device of its own has signed."""
        return sign_for_device(kind, self.params, access, SigningKey(bytes(32)))

    def exchange(self, device: ClientState) -> ClientState:
        asked = self.client.next_message(device)
        return self.client.handle_response(device, asked, self.send_to_s1(asked)[0], self.entropy)

    def come(self, i: int) -> Any:
        """User i comes by and does all that there is to do; what the coordinator says to the last body, or to the visit."""
        device, before, heard = self.device(i), None, []
        while before is None or has_progressed(before, device):
            asked = self.client.next_message(device)
            if asked is None:
                break
            (answer, *_) = self.send_to_s1(asked)
            if not isinstance(asked, PollRequest) or not heard:
                heard.append(answer)
            before, device = (
                device,
                self.client.handle_response(device, asked, answer, self.entropy),
            )
        self.people[i] = device.state
        return heard[-1]

    def answer_all(self, skip: tuple[int, ...] = ()) -> None:
        """`servers`: everybody answers, and those not skipped send it."""
        begun = self.begun()
        self.people = [device.state for device in begun]
        for i in self.places:
            if i not in skip:
                self.exchange(begun[i])

    def enrol_all(self, skip: Any = ()) -> None:
        """Everybody who is not skipped enrols, the roster is sealed, and everybody draws its response."""
        self.invitations = [
            invitation for i, invitation in enumerate(self.invitations) if i not in skip
        ]
        begun = [self.exchange(device) for device in self.begun()]
        self.settle(self.deadline())
        self.people = [self.exchange(device).state for device in begun]

    def all_come(self, skip: Any = ()) -> None:
        for i in range(len(self.people)):
            if i not in skip:
                self.come(i)

    def share_all(self, skip: Any = ()) -> None:
        self.all_come(skip)
        self.settle(self.deadline())

    def visit(self, i: int) -> Any:
        (answer,) = self.send_to_s1(members.poll_request(self.people[i].member))
        return answer

    def sum_all(self, skip: Any = ()) -> tuple[Message, ...]:
        """Everybody of the set who is not skipped sends its sum; the deadline passes."""
        for i in self.s1.members:
            if i not in skip:
                self.come(i)
        return self.deadline()

    def spoil(self, i: int) -> None:
        """`explicit`: user i sends a seed that nobody can open."""
        wanted, member = current_set(self.s1), self.people[i].member
        garbage = bytes(packed_size(self.params.q, self.params.N)), bytes(ENCRYPTED_SEED_BYTES)
        made_for = wanted.attempt, wanted.set_digest
        self.send_to_s1(PeerSum(member.params.survey, i, member.credential, *made_for, *garbage))

    # what a server says that lies

    def by_s1(self, what: Message) -> Message:
        return sign(self.s1.key, Party.COORDINATOR, what)

    def by_s2(self, what: Message, chain_link: ChainLink = UNCHAINED) -> Signed:
        return sign(self.s2.key, Party.AGGREGATOR, what, chain_link)

    def instead(self, what: Message) -> Signed:
        """A word of the aggregator where its newest one stands."""
        before = compute_chain_link(self.s2.statements[-2].signed)
        return self.by_s2(what, ChainLink(before.number + 1, before.hash))

    def sums(self, out: tuple[Message, ...]) -> list[Any]:
        """The sums among what the coordinator sends."""
        said = [decode(message.payload) for message in out if isinstance(message, Signed)]
        return [
            message for message in said if isinstance(message, (AggregateTotal, AggregateShare))
        ]


@pytest.fixture
def stage() -> Callable[..., Stage]:
    """A survey of n users, noise off: user i holds item i."""

    def make(
        topology: Topology,
        n: int = 6,
        crypto: CryptoSuite | None = None,
        seed: int = 1,
        **terms: Any,
    ) -> Stage:
        entropy = SeededStream(seed)
        mechanism = DPDS(items=n, users=n, p=1.0)
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 3, "attempts": 3, **terms}
        return Stage(set_up(mechanism, topology, entropy, crypto, **agreed), entropy)

    return make


class BytesStage(Stage):
    """Messages travel as bytes."""

    def send_to_s1(self, message: Message) -> tuple[Message, ...]:
        return tuple(decode(encode(reply)) for reply in super().send_to_s1(decode(encode(message))))

    def send_to_s2(self, message: Message) -> tuple[Message, ...]:
        return tuple(decode(encode(reply)) for reply in super().send_to_s2(decode(encode(message))))


class ProvenStage(BytesStage):
    """A survey in `servers` whose reports are proven."""

    def sends(self, i: int, row: Any) -> None:
        """User i splits this row between the servers instead of a report."""
        mine, seed = self.s2.crypto.keypair(self.entropy), self.entropy.bytes(SEED_BYTES)
        terms = self.params, self.invitations[i], row, seed, mine, self.entropy, self.s2.crypto
        self.people[i] = servers_user.make_report(*terms)
        self.send_to_s1(self.people[i].report)


@pytest.fixture
def proven() -> Callable[..., ProvenStage]:
    """A proven survey of n users; unless told, each holds an item of its own and the noise is 0 but once in 10^8."""

    def make(n: int = 6, mechanism: Any = None, seed: int = 1, **terms: Any) -> ProvenStage:
        entropy, crypto = SeededStream(seed), terms.pop("crypto", None)
        runs = mechanism or ServerLaplace(items=n, users=n, epsilon=40.0)
        return ProvenStage(
            set_up(runs, SERVERS, entropy, crypto, **{"minimum": 3, **terms}), entropy
        )

    return make


class MaskedStage(BytesStage):
    """The parties of a masked survey."""

    def inquire(self, member: Member) -> Any:
        asked = sign_for_device(
            OutcomeRequest, member.params, member.enrolment.access, member.device
        )
        (near,) = self.send_to_s1(asked)
        return near

    def spoil(self, i: int) -> None:
        """User i sends a seed that nobody can open."""
        garbage, member = bytes(packed_size(self.params.q, self.params.N)), self.people[i].member
        near = [
            j
            for j in self.s1.topology_state.graph.neighbours_of(i)
            if j in self.s1.topology_state.members
        ]
        keys = keys_digest(self.people[i].mask.public, (self.people[j].mask.public for j in near))
        made_for = self.s1.attempt, self.s1.topology_state.set_digest, keys
        self.send_to_s1(
            MaskedSum(
                member.params.survey,
                i,
                member.credential,
                *made_for,
                garbage,
                bytes(ENCRYPTED_SEED_BYTES),
            )
        )

    def recover(self, skip: Any = ()) -> tuple[Message, ...]:
        """Those asked for key shares send them, unless skipped; the deadline passes."""
        self.all_come(skip)
        return self.deadline()


@pytest.fixture
def masked() -> Callable[..., MaskedStage]:
    """A masked survey, noise off, played until the roster is sealed, keys are shared, or key shares are asked for."""

    def make(
        until: str, n: int = 20, skip: Any = (), gone: Any = (3, 7), **terms: Any
    ) -> MaskedStage:
        entropy, crypto = SeededStream(terms.pop("seed", 1)), terms.pop("crypto", None)
        mechanism = terms.pop("mechanism", None)
        if mechanism is None:
            mechanism = DPDS(items=n, users=n, p=1.0)
            terms = {
                "epsilon": 1.0,
                "delta": 1.0,
                "minimum": 3,
                "attempts": 3,
                "k": 8,
                "t": 3,
                **terms,
            }
        made = MaskedStage(set_up(mechanism, MASKED, entropy, crypto, **terms), entropy)
        if until != "open":
            made.enrol_all(skip)
        if until in ("shared", "recovering"):
            made.share_all()
        if until == "recovering":
            made.settle(made.sum_all(gone))
        return made

    return make


class TwoStageStage(BytesStage):
    """A two-stage survey, noise off: user i holds item i, is active and reports it."""

    people: Any  # by place: some may be taken out

    def device(self, i: int, **others: Any) -> ClientState:
        state = self.people.get(i) if isinstance(self.people, dict) else None
        return ClientState(self.invitations[i], (i % self.params.N,), state, **others)

    def draw(self, sets: Any = None) -> None:
        """Everybody enrols and draws its response; with `sets`, these and the true bits."""
        self.enrol_all()
        self.people = dict(enumerate(self.people))
        for i, items in (sets or {}).items():
            bits = np.array([item == i for item in items], dtype=np.uint8)
            self.people[i] = two_stage_user.make_report(
                self.people[i].member, self.invitations[i], items, bits, self.entropy
            )

    def indicate(self, skip: Any = ()) -> None:
        self.settle(self.phase(skip))

    def act(self, i: int) -> Any:
        """What user i does when it comes by; what the coordinator says to that."""
        return self.come(i)

    def phase(self, skip: Any = ()) -> tuple[Message, ...]:
        """Everybody who is not skipped comes by; the deadline passes."""
        for i in list(self.people):
            if i not in skip:
                self.act(i)
        return self.deadline()

    def finish(self) -> None:
        """Phases in which everybody comes by, until the aggregator has spoken."""
        while self.s1.final is None:
            self.settle(self.phase())

    def holders(self) -> list[int]:
        return sorted(set(slots_of(self.s1, self.s1.attempt).holder.tolist()))

    def waiting_for(self, kind: type[Message]) -> list[int]:
        """Who would be given this to do."""
        return [i for i in self.people if isinstance(self.visit(i), kind)]

    def bad_sums(self) -> int:
        """An elected user sends a seed that nobody can open, everybody else is honest; then the claim."""
        i = self.waiting_for(SlotSumRequest)[0]
        self.send_sums(i, bytes(ENCRYPTED_SEED_BYTES))
        self.settle(self.phase())
        return i

    def complain(self, i: int, numbers: Any) -> Any:
        """An elected user says that shares from these reporters do not open; what the coordinator says to that."""
        who = i, self.people[i].member.credential
        return self.send_to_s1(
            SlotComplaint(self.params.survey, *who, self.s1.attempt, tuple(numbers))
        )[0]

    def send_sums(self, i: int, encrypted_share: bytes) -> None:
        """An elected user sends zeros as its sums, with this as the sealed seed."""
        call = self.visit(i)
        vector = bytes(packed_size(self.params.q, len(call.tasks)))
        made_for = call.attempt, SumScope.of(call).digest(ballot_of(self.s1))
        self.send_to_s1(
            SlotSums(
                self.params.survey,
                i,
                self.people[i].member.credential,
                *made_for,
                vector,
                encrypted_share,
            )
        )


@pytest.fixture
def two_stage() -> Callable[..., TwoStageStage]:
    """A two-stage survey played until it is `open`, responses are `drawn`, helpers `elected`, or bundles `shared`."""

    def make(
        until: str, mechanism: TSS | None = None, skip: Any = (), **terms: Any
    ) -> TwoStageStage:
        entropy, sets = SeededStream(terms.pop("seed", 1)), terms.pop("sets", None)
        runs = mechanism or TSSPrime(items=8, users=8, p=1.0, alpha=3 / 8, gamma=1e12, phi=1)
        crypto = terms.pop("crypto", None) or IdealCrypto()
        agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": 3, "attempts": 4, **terms}
        made = TwoStageStage(set_up(runs, TWO_STAGE, entropy, crypto, **agreed), entropy)
        if until != "open":
            made.draw(sets)
        if until in ("elected", "shared"):
            made.indicate(skip if until == "elected" else ())
        if until == "shared":
            made.phase(skip)
        return made

    return make
