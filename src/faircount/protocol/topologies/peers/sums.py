"""What the peer topologies share once users have sent sealed sums: S1's claim over a set, S2's check and opening."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.peers.messages import PeersClaim, SumUpload
from faircount.protocol.topologies.peers.peer_set import PeerSet, holds_together, peer_set
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import merkle_root, roster_leaves
from faircount.protocol.wire.messages import BadBlobs, Batch, Reason, Rejected, rejected
from faircount.protocol.wire.packed_rows import sum_packed, unpack_rows
from faircount.sharing.keys import S2_INDEX, Purpose, key_info


def sum_info(params: SurveyParameters, wanted: PeerSet, sender: int) -> bytes:
    """What binds the key of a sealed sum: sender, attempt and set."""
    return key_info(Purpose.SUM, params.survey, wanted.attempt, sender, S2_INDEX, wanted.set_digest)


# --- S1 -----------------------------------------------------------------------------------------------------------


def current_set(s: Coordinator) -> PeerSet:
    """The set of the current attempt."""
    return PeerSet(s.digest, s.attempt, s.n, s.members, s.removed)


def make_claim(s: Coordinator) -> Coordinator:
    """Close writes and fix the batch of the current attempt: every member's sum, by hash."""
    wanted = current_set(s)
    hashes = tuple(sha256(s.uploads[SumUpload.tag, wanted.set_digest, j].blob).digest() for j in s.members)
    claim = PeersClaim(
        s.params.survey, wanted.digest, wanted.attempt, wanted.bits, wanted.edges, wanted.set_digest, hashes
    )
    return coordinator.with_claim(s, claim, State.CLAIMED)


def last_word(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then its blobs."""
    digest = current_set(s).set_digest
    return coordinator.claim_or_batch(s, lambda: (s.uploads[SumUpload.tag, digest, j].blob for j in s.members))


def adopt(s: Coordinator, claim: Message) -> Coordinator:
    """S2's claim instead of ours, with nothing said about it yet."""
    if not isinstance(claim, PeersClaim) or s.claim == claim:
        return s
    wanted = peer_set(s.digest, claim.attempt, s.n, claim.members, claim.removed)
    if wanted is None:
        return s
    path = {State.SHARING: (State.SUBMITTING, State.CLAIMED), State.SUBMITTING: (State.CLAIMED,)}.get(s.state, ())
    s = replace(s, attempt=wanted.attempt, members=wanted.members, removed=wanted.removed)
    return coordinator.with_claim(s, claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether every sum of the claim is here, with the very bytes that were claimed."""
    if not isinstance(s.claim, PeersClaim):
        return False
    held = [s.uploads.get((SumUpload.tag, s.claim.set_digest, j)) for j in s.members]
    return all(
        each is not None and sha256(each.blob).digest() == wanted
        for each, wanted in zip(held, s.claim.blob_hashes, strict=True)
    )


# --- S2 -----------------------------------------------------------------------------------------------------------


def claimed_set(s: Aggregator, claim: Message | None) -> PeerSet | None:
    """The set that a claim names, if it names one of the sealed roster in the canonical way."""
    if not isinstance(claim, PeersClaim) or s.roster is None:
        return None
    return peer_set(s.digest, claim.attempt, len(s.roster.entries), claim.members, claim.removed)


def on_claim(s: Aggregator, claim: PeersClaim) -> aggregator.Step:
    """Check digest, set, attempt, connectivity, minimum and budget, and record the claim for good."""
    known = aggregator.repeated(s, claim)
    if known is not None:
        return known
    wanted = claimed_set(s, claim)
    problem = _set_problem(s, claim, wanted)
    if problem is not None or wanted is None:
        return aggregator.refuse_claim(s, problem)
    users = [entry(s, j)[0] for j in wanted.members]
    path = () if s.state is State.SUBMITTING else (State.SUBMITTING,)
    return aggregator.admit(s, claim, users, wanted.members, path)


def _set_problem(s: Aggregator, claim: PeersClaim, wanted: PeerSet | None) -> Rejected | None:
    """What is wrong with the set of a claim, budget and minimum aside."""
    if claim.digest != s.digest or s.roster is None:
        return rejected(Reason.WRONG_DIGEST, "the claim was made for another roster than the sealed one")
    if wanted is None or len(wanted.members) != len(claim.blob_hashes):
        return rejected(Reason.MALFORMED, "a claim names members of the roster, and one blob of each")
    if claim.set_digest != wanted.set_digest:
        return rejected(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    if not 1 <= claim.attempt <= s.params.attempts:
        return rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {s.params.attempts}")
    if not holds_together(wanted.members, wanted.removed, s.params.phi):
        return rejected(Reason.DISCONNECTED, "the set falls apart")
    before = claimed_set(s, s.claim)
    if before is not None and not (claim.attempt > before.attempt and wanted.members == without_bad(s, before.members)):
        return rejected(Reason.CONFLICT, "a further claim is a later attempt over the first set without the bad blobs")
    return None


def without_bad(s: Aggregator, places: Sequence[int]) -> tuple[int, ...]:
    """The places of a first claim without those whose blobs did not open: the one set that a further claim may name.

    Were anybody else left out, S2 would have a sum with and one without that user.
    """
    return tuple(j for j in places if entry(s, j)[0] not in s.bad)


def entry(s: Aggregator, index: int) -> tuple[bytes, bytes]:
    """(user id, public key) at a place of the sealed roster."""
    line = s.roster.entries[index] if s.roster is not None else None
    return (b"", b"") if line is None else (line.user, line.public_key)


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob before adding any. Some do not open: add nothing, name them, admit one further claim."""
    wanted, bad = claimed_set(s, s.claim), s.last(BadBlobs)
    if bad is not None and s.state is State.SUBMITTING and batch.claim_hash == s.claim_hash:
        return s, (bad,)
    if s.state in FINAL:
        return s, s.statements[-1:]
    hashes = s.claim.blob_hashes if isinstance(s.claim, PeersClaim) else ()
    problem = aggregator.batch_problem(s, batch, hashes)
    if problem is not None or wanted is None:
        return s, (problem or rejected(Reason.EARLY, "claim a batch before sending it"),)
    s = replace(s, handed_over=True)
    infos = (sum_info(s.params, wanted, j) for j in wanted.members)
    sums, closed = open_sums(s, wanted.members, infos, batch.blobs)
    if closed:
        return aggregator.refuse_blobs(s, closed, [entry(s, j)[0] for j in wanted.members])
    opened = replace(s, state=advance(s.state, State.OPENED))
    total = sum_packed(sums, s.params.q, s.params.N)
    return aggregator.publish(opened, total, len(wanted.members), wanted.members, root_of(s, wanted.members))


def open_sums(
    s: Aggregator, places: Sequence[int], infos: Iterable[bytes], blobs: Sequence[bytes]
) -> tuple[list[bytes], tuple[int, ...]]:
    """The packed sums, and the positions of blobs that do not open or hold no vector."""
    plain = [opened(s, j, info, blob) for j, info, blob in zip(places, infos, blobs, strict=True)]
    _, fine = unpack_rows(plain, s.params.q, s.params.N)
    return plain, tuple(i for i, each in enumerate(fine) if not each)


def opened(s: Aggregator, j: int, info: bytes, blob: bytes) -> bytes:
    """What user j sealed to S2; nothing if it does not open."""
    secret = s.sealing.agree(s.box, entry(s, j)[1])
    return (s.sealing.open(secret, s.digest, info, blob) or b"") if secret else b""


def root_of(s: Aggregator, members: Sequence[int]) -> bytes:
    """Merkle root of the included users."""
    return merkle_root(roster_leaves(entry(s, j) for j in members))


S2: dict[type[Message], aggregator.Handler] = {PeersClaim: on_claim, Batch: on_batch}
