"""The state of the aggregator (S2): all that it keeps of one survey.

What only one topology needs is in `topology_state`, which that topology defines.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from faircount.core.arrays import ArrayValue, Residues
from faircount.protocol.roles.rows import RowWrite
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.server_secrets import check_secrets
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.crypto import CryptoSuite, KeyPair, StandardCrypto
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.roster_messages import RosterProposal
from faircount.protocol.wire.signing import UNCHAINED, Link, SigningKey, Statement, compute_link
from faircount.protocol.wire.stored import StoredState, TopologyState


@dataclass(frozen=True, eq=False)
class Aggregator(ArrayValue, StoredState):
    """All that the aggregator keeps of one survey beside its rows; and, lent for one step, the
    ledger of its population (`aggregate_with`).
    """

    stored_tag = "aggregator"
    params: SurveyParameters
    key: SigningKey
    encryption_keys: KeyPair
    ledger: Ledger
    committed: bytes = field(
        default=bytes(32), repr=False
    )  # revealed once roster or claim are fixed
    crypto: CryptoSuite = field(default_factory=StandardCrypto)
    phase: Phase = Phase.ENROLLING
    roster: RosterProposal | None = None
    roster_digest: bytes = b""  # the roster's digest
    manifest: Message | None = None
    manifest_hash: bytes = bytes(32)
    handed_over: bool = (
        False  # whether the aggregator may have been sent something that depends on answers
    )
    statements: tuple[Statement, ...] = ()
    partial_sum: Residues | None = field(default=None, repr=False)  # what was added so far
    noise_secret: bytes = field(
        default=b"", repr=False
    )  # where the aggregator's own noise comes from
    topology_state: TopologyState | None = None  # what only this topology keeps

    @classmethod
    def begin(cls, *given: Any, **named: Any) -> "Aggregator":
        """The aggregator before the first message; refused where reports are proven and it lacks
        a value or a secret of its own.
        """
        s2 = cls(*given, **named)
        check_secrets(s2.params, Party.AGGREGATOR, s2.committed, s2.noise_secret)
        return s2

    @property
    def digest(self) -> bytes:
        """The sealed digest; without a roster (`servers`) that of the parameters."""
        return self.roster_digest or self.params.digest

    def last(self, kind: type[Message]) -> Statement | None:
        """The newest statement of a kind."""
        return next(
            (each for each in reversed(self.statements) if isinstance(each.message, kind)), None
        )

    @property
    def newest(self) -> Link:
        """The end of the chain of its statements."""
        return compute_link(self.statements[-1].signed) if self.statements else UNCHAINED

    @property
    def newest_statements(self) -> tuple[Signed, ...]:
        """The newest statement, if there is one, as it is sent."""
        return tuple(each.signed for each in self.statements[-1:])


Change = tuple[Aggregator, tuple[Message, ...]]
"""What a handler returns: the new state and the messages to send. What it wrote is in its rows."""


def mac_key_rows(mac_keys: Mapping[bytes, bytes]) -> Iterator[RowWrite]:
    """The rows of invited people: enrolment MAC keys by user id."""
    return (RowWrite("mac_keys", user, key) for user, key in mac_keys.items())


class Entry(Protocol):
    """A line that names a user with its key, and carries the seal of its invitation."""

    @property
    def user(self) -> bytes:
        """Id of the person."""

    @property
    def public_key(self) -> bytes:
        """The key that the person made for this survey."""

    @property
    def mac(self) -> bytes:
        """The invitation's seal on the key."""
