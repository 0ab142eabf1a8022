"""The aggregator in every topology with a roster: it opens the seeds of a claim, says whose open,
and takes the coordinator's one sum.

    manifest with encrypted seeds -> reservation and `AcceptedMembers`
    -> whatever the topology needs to be ready -> `AggregateTotal` -> result

Seeds say nothing about answers, so the aggregator may be given those of several attempts; it
takes one sum, over the set that it named last, and no further claim once it is ready for that
sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from faircount.core.arrays import Residues
from faircount.core.errors import ShareError
from faircount.protocol.peers.messages import AcceptedMembers, AggregateTotal
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator, AggregatorRules
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Reason, Rejection, Reservation, reject
from faircount.protocol.wire.packed_rows import batched, sum_batches
from faircount.sharing.field import check_residues, subtract
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import unpack

AT_ONCE = 1000
"""Masks that are made together, in one table."""


def roster_size(s: Aggregator) -> int:
    """Users on the sealed roster."""
    return 0 if s.roster is None else len(s.roster.entries)


def entry(s: Aggregator, index: int) -> tuple[bytes, bytes]:
    """(user id, public key) at a place of the sealed roster."""
    line = s.roster.entries[index] if s.roster is not None else None
    return (b"", b"") if line is None else (line.user, line.public_key)


def opened(s: Aggregator, j: int, info: bytes, encrypted_share: bytes) -> bytes:
    """What user j sealed to the aggregator; nothing if it does not open."""
    secret = s.crypto.agree(s.encryption_keys, entry(s, j)[1])
    return (s.crypto.decrypt(secret, s.digest, info, encrypted_share) or b"") if secret else b""


def root_of(s: Aggregator, members: Sequence[int]) -> bytes:
    """Merkle root of the included users."""
    return merkle_root(roster_leaves(entry(s, j) for j in members))


class PeersAggregator(AggregatorRules):
    """The aggregator of one sum under masks."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The one sum; a topology adds its claim."""
        return {**super().handlers(), AggregateTotal: self.on_total}

    def on_total(self, s: Aggregator, rows: StepRows, message: AggregateTotal) -> aggregator.Change:
        """The coordinator's one sum: the result, or an abort if it cannot be one.

        Another sum later changes nothing.
        """
        if s.phase in FINAL:
            return s, s.newest_statements
        total = read_total(s, message)
        if isinstance(total, Rejection):
            return s, (total,)
        places, after = included(s), replace(s, phase=advance(s.phase, Phase.AGGREGATED))
        return aggregator.publish(after, rows, total, len(places), places, root_of(s, places))


# --- claims
# --------------------------------------------------------------------------------------------------


def repeated(s: Aggregator, manifest: Any) -> aggregator.Change | None:
    """The answer to a claim that needs no check; None for the first one, and for one of a later
    attempt.

    Once the aggregator is ready the coordinator may have sent its sum, even if it has forgotten
    that: another claim would lead to a second one.
    """
    reservation, before = s.last(Reservation), s.manifest
    if s.phase in FINAL:
        return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"), *s.newest_statements)
    if before is None or reservation is None:
        return None
    if before == manifest:
        return s, tuple(each.signed for each in s.statements[s.statements.index(reservation) :])
    if (
        manifest.attempt > getattr(before, "attempt", 0)
        # check: peers-manifest-when-ready - another manifest now leads to a second sum
        and s.partial_sum is None
    ):
        return None
    return s, (reject(Reason.CONFLICT, "another claim stands"), reservation.signed)


def admitted(
    s: Aggregator, rows: StepRows, manifest: Any, included: int, places: Sequence[int] | None
) -> aggregator.Change:
    """Record a claim of this attempt and reserve the budget, or say why not: then its state is not
    `CLAIMED` anew.
    """
    if not 1 <= manifest.attempt <= s.params.attempts:
        why = reject(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
        return aggregator.refuse_manifest(s, why)
    path = () if s.phase is Phase.SUBMITTING else (Phase.SUBMITTING,)
    return aggregator.admit(s, rows, manifest, included, places, path)


def open_seeds(
    s: Aggregator, now: AttemptContext, places: Sequence[int], encrypted_shares: Sequence[bytes]
) -> dict[int, bytes]:
    """The seeds that open, by place."""
    found = {
        j: opened(s, j, now.seed_info(j), encrypted_share)
        for j, encrypted_share in zip(places, encrypted_shares, strict=True)
    }
    return {j: seed for j, seed in found.items() if len(seed) == SEED_BYTES}


def self_masks(s: Aggregator, now: AttemptContext, seeds: Mapping[int, bytes]) -> Residues:
    """The sum of the masks that these users have put over their vectors."""
    q, count = s.params.q, s.params.N
    masks = (
        s.crypto.expand_rows(
            [seeds[j] for j in some], now.digest, [now.mask_info(j) for j in some], q, count
        )
        for some in batched(seeds, AT_ONCE)
    )
    return sum_batches(masks, q, count)


def say_included(
    s: Aggregator,
    step: aggregator.Change,
    set_digest: bytes,
    places: Sequence[int],
    held: Residues | None,
    root: bytes,
) -> aggregator.Change:
    """After the receipt: whose seeds open. `held` is what the aggregator will take off the
    coordinator's sum, once it can.
    """
    after, out = step
    stated = AcceptedMembers(
        s.params.survey, after.manifest_hash, set_digest, bitmap(places, roster_size(s)), root
    )
    said, more = aggregator.say(
        replace(after, partial_sum=held, handed_over=s.handed_over or held is not None), stated
    )
    return said, (*out, *more)


# --- the one sum
# --------------------------------------------------------------------------------------------------


def included(s: Aggregator) -> tuple[int, ...]:
    """The set that the aggregator named last, as places of the roster."""
    stated = s.last(AcceptedMembers)
    says = None if stated is None else stated.message
    return (
        (members_of(says.members, roster_size(s)) or ())
        if isinstance(says, AcceptedMembers)
        else ()
    )


def read_total(s: Aggregator, message: AggregateTotal) -> Residues | Rejection:
    """The sum over the set that the aggregator named last, its masks taken off; or why the
    aggregator cannot use it.
    """
    stated = s.last(AcceptedMembers)
    if stated is None or s.partial_sum is None:
        return reject(Reason.EARLY, "The aggregator is not ready for the sum")
    # check: peers-share-of-set - the coordinator sends a sum over another set
    if message.accepted_hash != sha256(stated.signed.payload).digest():
        return reject(Reason.WRONG_DIGEST, "the sum was made over another set")
    try:
        return subtract(
            check_residues(unpack(message.total, s.params.q, s.params.N), s.params.q),
            s.partial_sum,
            s.params.q,
        )
    except ShareError:
        return reject(Reason.MALFORMED, "the sum is not a packed vector")
