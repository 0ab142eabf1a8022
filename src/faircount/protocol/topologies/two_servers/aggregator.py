"""S2 in the `servers` topology: it opens the seeds of one batch, fixes whom to count, and adds S1's one sum."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

from faircount.core.arrays import Residues
from faircount.core.errors import ShareError
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.two_servers.coordinator import entries_of
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum, Submitter
from faircount.protocol.topologies.two_servers.user import SEED, expanded, seal_info
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Batch, Reason, rejected
from faircount.protocol.wire.packed_rows import sum_vectors
from faircount.sharing.field import add, check
from faircount.sharing.packing import unpack


def on_claim(s: Aggregator, claim: ServersClaim) -> aggregator.Step:
    """Check the frozen list and record it; entries that no invitation vouches for are left out of the set later."""
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    users = [each.user for each in claim.entries]
    if claim.digest != s.params.digest:
        return s, (rejected(Reason.WRONG_DIGEST, "the claim was made for other parameters"),)
    if any(a >= b for a, b in pairwise(users)):
        return s, (rejected(Reason.MALFORMED, "a claim is ascending by user id, each once"),)
    if len({each.public_key for each in claim.entries}) != len(users):
        return s, (rejected(Reason.MALFORMED, "two users have the same public key"),)
    vouched = [each.user for each in claim.entries if aggregator.believed(s, each)]
    return aggregator.admit(s, claim, vouched, None, (State.SEALED, State.SUBMITTING))


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob, fix the set of those that open, and only then add. Done again, it gives the same."""
    entries, stored = entries_of(s.claim), s.last(Included)
    if s.state in FINAL or (stored is not None and batch.claim_hash == s.claim_hash):
        return s, ((stored.signed,) if stored is not None and s.state is State.OPENED else s.last_words)
    problem = aggregator.batch_problem(s, batch, [each.blob_hash for each in entries])
    if problem is not None:
        return s, (problem,)
    seeds = [_open(s, each, blob) for each, blob in zip(entries, batch.blobs, strict=True)]
    members = [i for i, seed in enumerate(seeds) if seed is not None]
    if not aggregator.still_private(s, len(members)):
        return aggregator.abort(replace(s, handed_over=True), "too few blobs open", spent=True)
    lines = [(entries[i].user, entries[i].public_key) for i in members]
    stated = Included(s.params.survey, s.claim_hash, bitmap(members, len(entries)), merkle_root(roster_leaves(lines)))
    held = _sum_expanded(s, [(entries[i], seeds[i] or b"") for i in members])
    return aggregator.say(s, stated, held=held, handed_over=True, state=advance(s.state, State.OPENED))


def _open(s: Aggregator, each: Submitter, blob: bytes) -> bytes | None:
    if not aggregator.believed(s, each):
        return None
    secret = s.sealing.agree(s.box, each.public_key)
    info = seal_info(s.params, each.user, each.public_key, each.commitment)
    seed = None if secret is None else s.sealing.open(secret, s.params.digest, info, blob)
    return seed if seed is not None and len(seed) == SEED else None


def _sum_expanded(s: Aggregator, seeds: Sequence[tuple[Submitter, bytes]]) -> Residues:
    masks = (expanded(s.sealing, s.params, each.user, each.public_key, seed) for each, seed in seeds)
    return sum_vectors(masks, s.params.q, s.params.N)


def on_sum(s: Aggregator, message: ShareSum) -> aggregator.Step:
    """S1's one sum: the result, or an abort if it cannot be one. Another sum later changes nothing."""
    stated = s.last(Included)
    if s.state in FINAL:
        return s, s.last_words
    if stated is None or s.held is None:
        return s, (rejected(Reason.EARLY, "send the blobs first"),)
    if message.included_hash != sha256(stated.signed.payload).digest():
        return s, (rejected(Reason.WRONG_DIGEST, "the sum was made over another set"),)
    try:
        shares = unpack(message.total, s.params.q, s.params.N)
    except ShareError:
        return s, (rejected(Reason.MALFORMED, "the sum is not a packed vector"),)
    included = stated.says
    members = members_of(included.members, len(entries_of(s.claim))) if isinstance(included, Included) else None
    root = included.root if isinstance(included, Included) else bytes(32)
    total = add(check(shares, s.params.q), s.held, s.params.q)
    return aggregator.publish(s, total, len(members or ()), None, root)


S2: Mapping[type[Message], aggregator.Handler] = {ServersClaim: on_claim, Batch: on_batch, ShareSum: on_sum}
