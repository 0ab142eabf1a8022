"""S2 in the `explicit` topology: one claim over a set, one batch of sums, one result."""

from collections.abc import Mapping
from dataclasses import replace

from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.explicit.messages import PeersClaim
from faircount.protocol.topologies.explicit.user import sum_info
from faircount.protocol.topologies.peers.opening import entry, open_sums, root_of, without_bad
from faircount.protocol.topologies.peers.peer_set import PeerSet, holds_together, peer_set
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import BadBlobs, Batch, Reason, Rejected, rejected
from faircount.protocol.wire.packed_rows import sum_packed


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


def on_batch(s: Aggregator, batch: Batch) -> aggregator.Step:
    """Open every blob before adding any. Some do not open: add nothing, name them, admit one further claim."""
    wanted, bad = claimed_set(s, s.claim), s.last(BadBlobs)
    if bad is not None and s.state is State.SUBMITTING and batch.claim_hash == s.claim_hash:
        return s, (bad.signed,)
    if s.state in FINAL:
        return s, s.last_words
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


S2: Mapping[type[Message], aggregator.Handler] = {PeersClaim: on_claim, Batch: on_batch}
