"""The state of the coordinator (S1): all that it keeps of one survey.

It is a small value that never changes; what the coordinator keeps for every participant is in rows
(`roles.rows`). What only one topology needs is in `topology_state`, which that topology defines.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING

from faircount.core.errors import ProtocolError
from faircount.protocol.roles.rows import RowWrite, StepRows
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.parameters import NO_COMMITMENT, SurveyParameters
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.survey.server_secrets import check_secrets
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.crypto import CryptoSuite, StandardCrypto
from faircount.protocol.wire.digests import Levels, build_tree, roster_digest, roster_leaves
from faircount.protocol.wire.roster_messages import RosterEntry
from faircount.protocol.wire.signing import UNCHAINED, Link, SigningKey, Statement
from faircount.protocol.wire.stored import StoredState, TopologyState

if TYPE_CHECKING:
    from faircount.protocol.roles.coordinator.rules import CoordinatorRules

PhaseAttempt = tuple[Phase, int]
"""A time in which users act: the state and the attempt."""

Place = tuple[str, bytes]
"""A row of the coordinator: the name of its table, and its key as it is stored."""


def invitation_rows(access_values: Iterable[bytes]) -> Iterator[RowWrite]:
    """The rows of invited people: access values by the ids of their users."""
    return (RowWrite("invited", user_id(access), access) for access in access_values)


@dataclass(frozen=True)
class Coordinator(StoredState):
    """All that the coordinator keeps of one survey beside its rows."""

    stored_tag = "coordinator"
    params: SurveyParameters
    key: SigningKey
    crypto: CryptoSuite = field(default_factory=StandardCrypto)
    phase: Phase = Phase.ENROLLING
    committed: bytes = field(
        default=bytes(32), repr=False
    )  # the value behind the coordinator's commitment
    roster: tuple[RosterEntry, ...] = ()  # fixed when enrolment closes
    attempt: int = 0
    members: tuple[int, ...] = ()
    manifest: Message | None = None
    manifest_hash: bytes = bytes(32)
    confirmation: Statement | None = None
    reservation: Statement | None = None
    included: Statement | None = None  # The aggregator's word on whose shares count
    final: Statement | None = (
        None  # The aggregator's last word, or our own request to end the survey
    )
    # Of the statements of the aggregator that were heard: said to the aggregator with everything.
    newest: Link = UNCHAINED
    awaiting_sync: bool = False  # restored, and not yet told what stands
    topology_state: TopologyState | None = None  # what only this topology keeps
    noise_secret: bytes = field(
        default=b"", repr=False
    )  # where the coordinator's own noise comes from

    @classmethod
    def begin(
        cls,
        params: SurveyParameters,
        key: SigningKey,
        committed: bytes = bytes(32),
        crypto: CryptoSuite | None = None,
        order_key: bytes = b"",
        noise_secret: bytes = b"",
    ) -> "Coordinator":
        """The coordinator when the first user arrives; where there is no roster, enrolling and
        sealing are passed through.
        """
        first = params.topology.phases[0]
        state = (
            Phase.ENROLLING
            if first is Phase.ENROLLING
            else advance(Phase.ENROLLING, Phase.CONFIRMED, first)
        )
        if params.keys.s1_commitment not in (NO_COMMITMENT, sha256(committed).digest()):
            raise ProtocolError(
                "The coordinator does not hold the value that the parameters say it has committed "
                "to"
            )
        check_secrets(params, Party.COORDINATOR, committed, noise_secret)
        return cls(
            params,
            key,
            crypto or StandardCrypto(),
            state,
            committed,
            topology_state=params.topology.coordinator.initial_state(order_key),
            noise_secret=noise_secret,
        )

    @property
    def rules(self) -> "CoordinatorRules":
        """What the topology adds."""
        return self.params.topology.coordinator

    @property
    def n(self) -> int:
        """Users on the roster."""
        return len(self.roster)

    @property
    def phase_attempt(self) -> PhaseAttempt:
        """What a deadline is set for."""
        return self.phase, self.attempt

    @cached_property
    def levels(self) -> Levels:
        """The tree of the roster as the coordinator has it."""
        return build_tree(roster_leaves((each.user, each.public_key) for each in self.roster))

    @cached_property
    def digest(self) -> bytes:
        """The digest of the roster as the coordinator has it; without one, of the parameters."""
        if not self.roster:
            return self.params.digest
        return roster_digest(self.params.digest, self.n, self.levels[-1][0])


def is_person(rows: StepRows, user: bytes) -> bool:
    """Whether this is the id of an invited person, whose invitation was not exchanged."""
    # check: exchanged-invitation - an exchanged invitation would enrol a second time
    return bool(rows.invited.get(user))


def invited_user(rows: StepRows, access: bytes) -> bytes | None:
    """The id of the person whom this access value admits; None if it admits nobody."""
    user = user_id(access)
    # check: access-value - somebody who knows only a user id poses as the invited person
    return user if rows.invited.get(user) == access else None


Out = tuple[Message, ...]
Change = tuple[Coordinator, Out]
"""What a handler returns: the new state and the messages to send. What it wrote is in its rows."""
