"""How a restored coordinator resynchronizes: it verifies the history that the aggregator sends it.

The coordinator continues from this history only if all of it fits together:

    statements   signed by the aggregator for this survey; each chained to the one before
    roster       the one that was confirmed: invited participants, ascending, no repeats
    manifest     the one that the newest reservation names; its earlier parts, if it has any, were
                 asked for one by one (`CoordinatorRules.fetch_manifest`)

A dishonest aggregator can still leave out its newest statements, or show a manifest that the
coordinator never made. What to do then depends on the topology (`CoordinatorRules.adopt_manifest`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import TypeVar

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import entry_leaves, merkle_root, roster_digest
from faircount.protocol.wire.messages import Aborted, Published, Reservation, SyncState, decode
from faircount.protocol.wire.roster_messages import RosterConfirmation, RosterEntry, RosterProposal
from faircount.protocol.wire.signing import (
    UNCHAINED,
    ChainLink,
    Statement,
    compute_chain_link,
    is_chain,
    verify_statement,
)

M = TypeVar("M", bound=Message)


def max_statements(params: SurveyParameters) -> int:
    """More than the aggregator signs: a roster, an election, an end, and three per attempt."""
    return 8 + 3 * params.attempts


@dataclass(frozen=True, slots=True)
class AggregatorHistory:
    """What the aggregator has signed, in order, with the roster and manifest it refers to."""

    statements: tuple[Statement, ...]
    roster: tuple[RosterEntry, ...]
    # The last part of a manifest in parts.
    manifest: Message | None

    def chain_link(self, number: int) -> ChainLink:
        """The chain link to the statement with this number, counted from 1."""
        if 0 < number <= len(self.statements):
            return compute_chain_link(self.statements[number - 1].signed)
        return UNCHAINED

    @property
    def is_over(self) -> bool:
        """Whether the aggregator has signed its final statement."""
        return bool(_contents(self.statements, Published) or _contents(self.statements, Aborted))


def _contents(statements: Sequence[Statement], kind: type[M]) -> list[M]:
    """The contents of this kind, in the order in which they were signed."""
    contents = list[M]()
    for statement in statements:
        if isinstance(statement.message, kind):
            contents.append(statement.message)
    return contents


def verify_sync(
    params: SurveyParameters, is_invited: Callable[[bytes], bool], message: SyncState
) -> AggregatorHistory | None:
    """The history that the aggregator sent; None if it does not fit together.

    Args:
        params: the survey
        is_invited: whether a user id belongs to an invited participant
        message: what the aggregator sent
    """
    statements = _verify_statements(params, message)
    if statements is None:
        return None
    roster = _verify_roster(params, is_invited, message.roster, statements)
    if roster is None:
        return None

    reservations = _contents(statements, Reservation)
    reserved_hash = None
    if reservations:
        reserved_hash = reservations[-1].manifest_hash
    manifest = None
    manifest_hash = None
    if message.manifest:
        manifest = decode(message.manifest)
        manifest_hash = sha256(encode(manifest)).digest()
    # In two-stage the newest reservation may be that of the election, before any manifest.
    before_manifest = manifest is None and not params.topology.reveals_with_roster

    # check: manifest-has-reservation - the aggregator shows a manifest that it never granted
    if manifest_hash == reserved_hash or before_manifest:
        return AggregatorHistory(statements, roster, manifest)
    return None


def _verify_statements(
    params: SurveyParameters, message: SyncState
) -> tuple[Statement, ...] | None:
    """The statements, if they are the beginning of the aggregator's chain for this survey."""
    # Bounded before signatures are verified: a long list would keep the coordinator busy.
    if (
        len(message.statements) > max_statements(params)
        # check: statements-chained - the aggregator leaves out or reorders what it has signed
        or not is_chain(message.statements)
    ):
        return None
    statements = []
    for signed in message.statements:
        statement = verify_statement(params.keys.aggregator, Party.AGGREGATOR, signed)
        if statement is None or getattr(statement.message, "survey", None) != params.survey:
            return None
        # A history inside a history could be nested without end.
        if isinstance(statement.message, SyncState):
            return None
        statements.append(statement)
    return tuple(statements)


def _verify_roster(
    params: SurveyParameters,
    is_invited: Callable[[bytes], bool],
    sent: bytes,
    statements: Sequence[Statement],
) -> tuple[RosterEntry, ...] | None:
    """The roster that the aggregator sent, empty if none was confirmed; None if it is not that."""
    confirmations = _contents(statements, RosterConfirmation)
    if not confirmations:
        return None if sent else ()
    proposal = decode(sent)
    if not isinstance(proposal, RosterProposal) or proposal.params != params.digest:
        return None
    # A roster is confirmed once: with two of them a participant could be counted in two sums.
    if len(confirmations) > 1:
        return None
    confirmation = confirmations[0]

    entries = proposal.entries
    size = len(entries)
    users = [entry.user for entry in entries]
    keys = {entry.public_key for entry in entries}
    if not params.minimum <= size <= params.n_max or len(keys) != size:
        return None
    # Ascending ids name nobody twice; ids that nobody was invited under would be the aggregator's.
    if any(first >= second for first, second in pairwise(users)):
        return None
    if not all(map(is_invited, users)):
        return None

    # The aggregator signed only size, root and digest: the entries must lead to them.
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))
    expected = (size, root, roster_digest(params.digest, size, root))
    if (confirmation.n, confirmation.root, confirmation.digest) != expected:
        return None
    return entries
