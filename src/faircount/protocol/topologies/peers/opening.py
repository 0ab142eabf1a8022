"""S2 in every topology with a roster: it opens the seeds of a claim, says whose open, and takes S1's one sum.

    claim with sealed seeds -> receipt, `PeersIncluded` -> [what the topology needs to be ready] -> `Total` -> result

Seeds say nothing about answers, so S2 may be given those of several attempts; it takes one sum, over the set that it
named last, and no further claim once it is ready for that sum.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

from faircount.core.arrays import Residues
from faircount.core.errors import ShareError
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.peers.messages import PeersIncluded, Total
from faircount.protocol.topologies.peers.self_mask import Round
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Reason, Receipt, Rejected, rejected
from faircount.protocol.wire.packed_rows import in_parts, sum_parts
from faircount.sharing.field import check, subtract
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


def opened(s: Aggregator, j: int, info: bytes, blob: bytes) -> bytes:
    """What user j sealed to S2; nothing if it does not open."""
    secret = s.sealing.agree(s.box, entry(s, j)[1])
    return (s.sealing.open(secret, s.digest, info, blob) or b"") if secret else b""


def root_of(s: Aggregator, members: Sequence[int]) -> bytes:
    """Merkle root of the included users."""
    return merkle_root(roster_leaves(entry(s, j) for j in members))


# --- claims -------------------------------------------------------------------------------------------------------


def repeated(s: Aggregator, claim: Any) -> aggregator.Step | None:
    """The answer to a claim that needs no check; None for the first one, and for one of a later attempt.

    Once S2 is ready S1 may have sent its sum, even if it has forgotten that: another claim would lead to a second one.
    """
    receipt, before = s.last(Receipt), s.claim
    if s.state in FINAL:
        return s, (rejected(Reason.CLOSED, f"the survey is {s.state}"), *s.last_words)
    if before is None or receipt is None:
        return None
    if before == claim:
        return s, tuple(each.signed for each in s.statements[s.statements.index(receipt) :])
    if s.held is None and claim.attempt > getattr(before, "attempt", 0):
        return None
    return s, (rejected(Reason.CONFLICT, "another claim stands"), receipt.signed)


def admitted(s: Aggregator, claim: Any, included: int, places: Sequence[int] | None) -> aggregator.Step:
    """Record a claim of this attempt and reserve the budget, or say why not: then its state is not `CLAIMED` anew."""
    if not 1 <= claim.attempt <= s.params.attempts:
        why = rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
        return aggregator.refuse_claim(s, why)
    path = () if s.state is State.SUBMITTING else (State.SUBMITTING,)
    return aggregator.admit(s, claim, included, places, path)


def open_seeds(s: Aggregator, now: Round, places: Sequence[int], blobs: Sequence[bytes]) -> dict[int, bytes]:
    """The seeds that open, by place."""
    found = {j: opened(s, j, now.seed_info(j), blob) for j, blob in zip(places, blobs, strict=True)}
    return {j: seed for j, seed in found.items() if len(seed) == SEED_BYTES}


def self_masks(s: Aggregator, now: Round, seeds: Mapping[int, bytes]) -> Residues:
    """The sum of the masks that these users have put over their vectors."""
    q, count = s.params.q, s.params.N
    masks = (
        s.sealing.stretch_rows([seeds[j] for j in some], now.digest, [now.mask_info(j) for j in some], q, count)
        for some in in_parts(seeds, AT_ONCE)
    )
    return sum_parts(masks, q, count)


def say_included(
    s: Aggregator, step: aggregator.Step, set_digest: bytes, places: Sequence[int], held: Residues | None, root: bytes
) -> aggregator.Step:
    """After the receipt: whose seeds open. `held` is what S2 will take off S1's sum, once it can."""
    after, out = step
    stated = PeersIncluded(s.params.survey, after.claim_hash, set_digest, bitmap(places, roster_size(s)), root)
    said, more = aggregator.say(replace(after, held=held, handed_over=s.handed_over or held is not None), stated)
    return said, (*out, *more)


# --- the one sum --------------------------------------------------------------------------------------------------


def included(s: Aggregator) -> tuple[int, ...]:
    """The set that S2 named last, as places of the roster."""
    stated = s.last(PeersIncluded)
    says = None if stated is None else stated.says
    return (members_of(says.members, roster_size(s)) or ()) if isinstance(says, PeersIncluded) else ()


def read_total(s: Aggregator, message: Total) -> Residues | Rejected:
    """The sum over the set that S2 named last, its masks taken off; or why S2 cannot use it."""
    stated = s.last(PeersIncluded)
    if stated is None or s.held is None:
        return rejected(Reason.EARLY, "S2 is not ready for the sum")
    if message.included_hash != sha256(stated.signed.payload).digest():
        return rejected(Reason.WRONG_DIGEST, "the sum was made over another set")
    try:
        return subtract(check(unpack(message.total, s.params.q, s.params.N), s.params.q), s.held, s.params.q)
    except ShareError:
        return rejected(Reason.MALFORMED, "the sum is not a packed vector")


def on_total(s: Aggregator, message: Total) -> aggregator.Step:
    """S1's one sum: the result, or an abort if it cannot be one. Another sum later changes nothing."""
    if s.state in FINAL:
        return s, s.last_words
    total = read_total(s, message)
    if isinstance(total, Rejected):
        return s, (total,)
    places, after = included(s), replace(s, state=advance(s.state, State.OPENED))
    return aggregator.publish(after, total, len(places), places, root_of(s, places))
