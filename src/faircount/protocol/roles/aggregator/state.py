"""The state of the aggregator (S2): all that it stores about one survey, apart from its rows.

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
from faircount.protocol.wire.signing import (
    UNCHAINED,
    ChainLink,
    SigningKey,
    Statement,
    compute_chain_link,
)
from faircount.protocol.wire.stored import StoredState, TopologyState


@dataclass(frozen=True, eq=False)
class Aggregator(ArrayValue, StoredState):
    """The aggregator's state of one survey.

    The ledger of the population is not stored with it: it is put in for one step
    (`aggregator_step_with`).
    """

    stored_tag = "aggregator"
    params: SurveyParameters
    key: SigningKey
    # Clients encrypt their shares for this key; its secret half is destroyed at the end.
    encryption_keys: KeyPair
    ledger: Ledger
    # Revealed once the roster or the manifest is fixed, and never before.
    committed_value: bytes = field(default=bytes(32), repr=False)
    crypto: CryptoSuite = field(default_factory=StandardCrypto)
    phase: Phase = Phase.ENROLLING
    roster: RosterProposal | None = None
    roster_digest: bytes = b""
    manifest: Message | None = None
    manifest_hash: bytes = bytes(32)
    # Whether anything that depends on answers may have arrived. From then on an abort is charged.
    has_answer_data: bool = False
    # Everything it has signed about the survey, each chained to the one before.
    statements: tuple[Statement, ...] = ()
    # What is combined with the coordinator's total: in `servers` the aggregator's aggregate share,
    # to be added; in the other topologies the masks, to be subtracted.
    partial_sum: Residues | None = field(default=None, repr=False)
    # The aggregator's noise is derived from this secret.
    noise_secret: bytes = field(default=b"", repr=False)
    topology_state: TopologyState | None = None

    @classmethod
    def begin(cls, *fields: Any, **named_fields: Any) -> "Aggregator":
        """The aggregator before the first message.

        Raises:
            ProtocolError: reports have proofs, and the committed value or the noise secret is
                missing
        """
        state = cls(*fields, **named_fields)
        check_secrets(state.params, Party.AGGREGATOR, state.committed_value, state.noise_secret)
        return state

    @property
    def digest(self) -> bytes:
        """The digest of the confirmed roster; without a roster (`servers`) of the parameters."""
        return self.roster_digest or self.params.digest

    def last(self, kind: type[Message]) -> Statement | None:
        """The newest statement whose content is of this kind."""
        for statement in reversed(self.statements):
            if isinstance(statement.message, kind):
                return statement
        return None

    @property
    def chain_end(self) -> ChainLink:
        """The chain link to the newest statement, to which the next one is chained."""
        if not self.statements:
            return UNCHAINED
        return compute_chain_link(self.statements[-1].signed)

    @property
    def newest_statements(self) -> tuple[Signed, ...]:
        """The newest statement as it is sent, or nothing if there is none."""
        return tuple(statement.signed for statement in self.statements[-1:])


Change = tuple[Aggregator, tuple[Message, ...]]
"""What a handler returns: the new state and the messages to send. What it wrote is in its rows."""


def mac_key_rows(mac_keys: Mapping[bytes, bytes]) -> Iterator[RowWrite]:
    """The rows of the invited participants: enrolment MAC keys by user id."""
    return (RowWrite("mac_keys", user, key) for user, key in mac_keys.items())


class AuthenticatedEntry(Protocol):
    """An entry of a roster or manifest: a user id and a public key under an enrolment MAC."""

    @property
    def user(self) -> bytes:
        """The participant's user id."""

    @property
    def public_key(self) -> bytes:
        """The key that the participant's client made for this survey."""

    @property
    def mac(self) -> bytes:
        """The enrolment MAC of the key, made with the key in the invitation."""
