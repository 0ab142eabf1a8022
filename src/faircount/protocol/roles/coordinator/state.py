"""The state of the coordinator (S1): all that it stores about one survey, apart from its rows.

The state is a small frozen value. What the coordinator stores for every participant is in rows
(`roles.rows`), and what only one topology needs is in `topology_state`, which that topology
defines.
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
from faircount.protocol.wire.digests import Levels, build_tree, entry_leaves, roster_digest
from faircount.protocol.wire.roster_messages import RosterEntry
from faircount.protocol.wire.signing import UNCHAINED, ChainLink, SigningKey, Statement
from faircount.protocol.wire.stored import StoredState, TopologyState

if TYPE_CHECKING:
    from faircount.protocol.roles.coordinator.rules import CoordinatorRules

PhaseAttempt = tuple[Phase, int]
"""A phase with the number of its attempt: what a deadline is set for."""

RowAddress = tuple[str, bytes]
"""A row of the coordinator: the name of its table, and its key as it is stored."""


def invitation_rows(access_values: Iterable[bytes]) -> Iterator[RowWrite]:
    """The rows of the invited participants: access values by user id."""
    return (RowWrite("invited", user_id(access), access) for access in access_values)


@dataclass(frozen=True)
class Coordinator(StoredState):
    """The coordinator's state of one survey."""

    stored_tag = "coordinator"
    params: SurveyParameters
    key: SigningKey
    crypto: CryptoSuite = field(default_factory=StandardCrypto)
    phase: Phase = Phase.ENROLLING
    # The value behind the coordinator's commitment; revealed once the manifest is reserved.
    committed_value: bytes = field(default=bytes(32), repr=False)
    # Fixed when enrolment closes.
    roster: tuple[RosterEntry, ...] = ()
    attempt: int = 0
    members: tuple[int, ...] = ()
    manifest: Message | None = None
    manifest_hash: bytes = bytes(32)
    confirmation: Statement | None = None
    reservation: Statement | None = None
    # The aggregator's statement of the accepted reports.
    accepted: Statement | None = None
    # The aggregator's final statement, or the coordinator's request to abort.
    final: Statement | None = None
    # The newest statement received from the aggregator. Every request carries this chain link, so
    # that an aggregator that was rolled back notices it.
    chain_end: ChainLink = UNCHAINED
    # Whether the coordinator was restored and has not resynchronized yet.
    awaiting_sync: bool = False
    topology_state: TopologyState | None = None
    # The coordinator's noise is derived from this secret.
    noise_secret: bytes = field(default=b"", repr=False)

    @classmethod
    def begin(
        cls,
        params: SurveyParameters,
        key: SigningKey,
        committed_value: bytes = bytes(32),
        crypto: CryptoSuite | None = None,
        order_key: bytes = b"",
        noise_secret: bytes = b"",
    ) -> "Coordinator":
        """The coordinator before the first participant arrives.

        Raises:
            ProtocolError: the parameters commit to another value, or reports have proofs and the
                noise secret is missing
        """
        if params.keys.coordinator_commitment not in (
            NO_COMMITMENT,
            sha256(committed_value).digest(),
        ):
            raise ProtocolError(
                "the coordinator does not hold the value that the parameters say it has committed "
                "to: create the survey again with its current survey keys"
            )
        check_secrets(params, Party.COORDINATOR, committed_value, noise_secret)
        phase = Phase.ENROLLING
        first = params.topology.phases[0]
        if first is not Phase.ENROLLING:
            # There is no roster: enrolment and its confirmation are passed at once.
            phase = advance(phase, Phase.CONFIRMED, first)
        return cls(
            params,
            key,
            crypto or StandardCrypto(),
            phase,
            committed_value,
            topology_state=params.topology.coordinator.initial_state(order_key),
            noise_secret=noise_secret,
        )

    @property
    def rules(self) -> "CoordinatorRules":
        """What the topology adds."""
        return self.params.topology.coordinator

    @property
    def n(self) -> int:
        """Number of participants on the roster."""
        return len(self.roster)

    @property
    def phase_attempt(self) -> PhaseAttempt:
        """The current phase and attempt, for which a deadline is set."""
        return self.phase, self.attempt

    @cached_property
    def roster_tree(self) -> Levels:
        """The Merkle tree of the roster."""
        return build_tree(entry_leaves((entry.user, entry.public_key) for entry in self.roster))

    @cached_property
    def digest(self) -> bytes:
        """The digest of the roster; without one, of the parameters."""
        if not self.roster:
            return self.params.digest
        return roster_digest(self.params.digest, self.n, self.roster_tree[-1][0])


def is_invited(rows: StepRows, user: bytes) -> bool:
    """Whether this is the id of an invited participant whose invitation was not exchanged."""
    # check: exchanged-invitation - an exchanged invitation would enrol a second time
    return bool(rows.invited.get(user))


def invited_user(rows: StepRows, access: bytes) -> bytes | None:
    """The user id of the participant whom this access value admits; None if it admits nobody."""
    user = user_id(access)
    # check: access-value - somebody who knows only a user id poses as the invited person
    if rows.invited.get(user) == access:
        return user
    return None


Out = tuple[Message, ...]
"""Messages to send, to participants or to the aggregator."""

Change = tuple[Coordinator, Out]
"""What a handler returns: the new state and the messages to send. What it wrote is in its rows."""
