"""The aggregator in every topology with a roster: it decrypts seeds and unmasks one total.

    manifest with encrypted seeds  -> reservation, and AcceptedMembers: whose seeds it decrypted
    what else the topology needs   -> the partial sum: all masks that the total will carry
    AggregateTotal                 -> the total minus the partial sum, published as the result

A seed says nothing about an answer, so the aggregator may decrypt the seeds of several attempts.
But it unmasks one total only, over the members that it accepted last. Once it has the partial sum
it takes no further manifest: the coordinator may have sent its total already, and a total over
another set would differ from the first one by single answers.
"""

from collections.abc import Iterator, Mapping, Sequence
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
from faircount.protocol.wire.digests import bitmap, entry_leaves, members_of, merkle_root
from faircount.protocol.wire.messages import Reason, Rejection, Reservation, reject
from faircount.protocol.wire.packed_rows import split_into_batches, sum_batches
from faircount.sharing.field import check_residues, subtract
from faircount.sharing.keys import SEED_BYTES
from faircount.sharing.packing import unpack

MASKS_AT_ONCE = 1000
"""How many masks are expanded into one table: more would not be faster, and take more memory."""


# --- the confirmed roster -------------------------------------------------------------------------


def roster_size(s: Aggregator) -> int:
    """Number of members on the confirmed roster; 0 before there is one."""
    return 0 if s.roster is None else len(s.roster.entries)


def entry(s: Aggregator, index: int) -> tuple[bytes, bytes]:
    """(user id, public key) at a place of the confirmed roster."""
    if s.roster is None:
        return b"", b""
    found = s.roster.entries[index]
    return found.user, found.public_key


def inclusion_root(s: Aggregator, places: Sequence[int]) -> bytes:
    """Merkle root of the members at these places."""
    return merkle_root(entry_leaves(entry(s, place) for place in places))


def decrypt_from_member(s: Aggregator, place: int, info: bytes, encrypted_share: bytes) -> bytes:
    """What a member encrypted to the aggregator; empty if it cannot be decrypted."""
    _, public_key = entry(s, place)
    secret = s.crypto.agree(s.encryption_keys, public_key)
    # A key of low order gives no secret: whatever came with it counts as unreadable.
    if not secret:
        return b""
    return s.crypto.decrypt(secret, s.digest, info, encrypted_share) or b""


class PeersAggregator(AggregatorRules):
    """The aggregator of one total under masks."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The total; a topology adds its manifest."""
        return {**super().handlers(), AggregateTotal: self.on_total}

    def on_total(self, s: Aggregator, rows: StepRows, message: AggregateTotal) -> aggregator.Change:
        """Publish the result, or abort if the total does not give one.

        A total that arrives later changes nothing, and gets the final statement again.
        """
        if s.phase in FINAL:
            return s, s.newest_statements
        counts = unmask_total(s, message)
        if isinstance(counts, Rejection):
            return s, (counts,)
        places = accepted_places(s)
        after = replace(s, phase=advance(s.phase, Phase.AGGREGATED))
        return aggregator.publish(
            after, rows, counts, len(places), places, inclusion_root(s, places)
        )


# --- manifests ------------------------------------------------------------------------------------


def answer_known_manifest(s: Aggregator, manifest: Any) -> aggregator.Change | None:
    """The answer to a manifest that must not be recorded; None if it may be.

    It may be recorded if it is the first one, or one of a later attempt.
    """
    if s.phase in FINAL:
        return s, (reject(Reason.CLOSED, f"the survey is {s.phase}"), *s.newest_statements)
    reservation = s.last(Reservation)
    recorded = s.manifest
    if recorded is None or reservation is None:
        return None
    if recorded == manifest:
        # The coordinator repeats itself: it gets everything signed since this manifest again.
        since = s.statements[s.statements.index(reservation) :]
        return s, tuple(statement.signed for statement in since)
    # Once there is a partial sum the coordinator may have sent its total, even if it was restored
    # and does not know it any more.
    if (
        manifest.attempt > getattr(recorded, "attempt", 0)
        # check: peers-manifest-when-ready - another manifest now leads to a second sum
        and s.partial_sum is None
    ):
        return None
    return s, (reject(Reason.CONFLICT, "another manifest is recorded"), reservation.signed)


def record_attempt(
    s: Aggregator, rows: StepRows, manifest: Any, members: int, places: Sequence[int] | None
) -> aggregator.Change:
    """Record the manifest of an attempt and reserve the budget, or refuse it.

    A refused manifest is not the `manifest` of the returned state. `members` is how many the
    manifest names, and `places` which ones, where they are named by their places.
    """
    if not 1 <= manifest.attempt <= s.params.attempts:
        problem = reject(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
        return aggregator.refuse_manifest(s, problem)
    # A further attempt goes back through SUBMITTING.
    path = () if s.phase is Phase.SUBMITTING else (Phase.SUBMITTING,)
    return aggregator.record_manifest(s, rows, manifest, members, places, path)


def decrypt_seeds(
    s: Aggregator, context: AttemptContext, places: Sequence[int], encrypted: Sequence[bytes]
) -> dict[int, bytes]:
    """The seeds that can be decrypted, by place."""
    seeds = {}
    for place, encrypted_seed in zip(places, encrypted, strict=True):
        seed = decrypt_from_member(s, place, context.seed_info(place), encrypted_seed)
        if len(seed) == SEED_BYTES:
            seeds[place] = seed
    return seeds


def sum_self_masks(s: Aggregator, context: AttemptContext, seeds: Mapping[int, bytes]) -> Residues:
    """The sum of the masks that these members put over their own vectors."""
    q = s.params.q
    count = s.params.N

    def expand_batches() -> Iterator[Residues]:
        for places in split_into_batches(seeds, MASKS_AT_ONCE):
            some_seeds = [seeds[place] for place in places]
            infos = [context.mask_info(place) for place in places]
            yield s.crypto.expand_rows(some_seeds, context.digest, infos, q, count)

    return sum_batches(expand_batches(), q, count)


def state_accepted(
    s: Aggregator,
    recorded: aggregator.Change,
    set_digest: bytes,
    places: Sequence[int],
    partial_sum: Residues | None,
    root: bytes,
) -> aggregator.Change:
    """Sign, after the reservation, whose seeds could be decrypted.

    `recorded` is the step that recorded the manifest. `partial_sum` is what the aggregator will
    subtract from the total, or None if it cannot know that yet.
    """
    after, out = recorded
    stated = AcceptedMembers(
        s.params.survey, after.manifest_hash, set_digest, bitmap(places, roster_size(s)), root
    )
    # With the partial sum the total may arrive, so from here on an abort is charged.
    has_answer_data = s.has_answer_data or partial_sum is not None
    after = replace(after, partial_sum=partial_sum, has_answer_data=has_answer_data)
    after, statements = aggregator.sign_statement(after, stated)
    return after, (*out, *statements)


# --- the total ------------------------------------------------------------------------------------


def accepted_places(s: Aggregator) -> tuple[int, ...]:
    """The members that the aggregator accepted last, as places of the roster."""
    statement = s.last(AcceptedMembers)
    if statement is None or not isinstance(statement.message, AcceptedMembers):
        return ()
    return members_of(statement.message.members, roster_size(s)) or ()


def unmask_total(s: Aggregator, message: AggregateTotal) -> Residues | Rejection:
    """The total without its masks, or why the aggregator cannot use it."""
    stated = s.last(AcceptedMembers)
    if stated is None or s.partial_sum is None:
        return reject(Reason.EARLY, "The aggregator is not ready for the total")
    # check: peers-share-of-set - the coordinator sends a sum over another set
    if message.accepted_hash != sha256(stated.signed.payload).digest():
        return reject(Reason.WRONG_DIGEST, "the total is a sum over another set")
    q = s.params.q
    try:
        total = check_residues(unpack(message.total, q, s.params.N), q)
    except ShareError:
        return reject(Reason.MALFORMED, "the total is not a packed vector")
    return subtract(total, s.partial_sum, q)
