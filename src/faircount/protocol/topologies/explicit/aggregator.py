"""S2 in the `explicit` topology: a claim over a set, whose seeds open, and one sum if all of them do."""

from collections.abc import Mapping

from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.topologies.explicit.messages import PeersClaim
from faircount.protocol.topologies.peers import opening
from faircount.protocol.topologies.peers.messages import Total
from faircount.protocol.topologies.peers.peer_set import PeerSet, holds_together, peer_set
from faircount.protocol.topologies.peers.self_mask import Round
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Reason, Rejected, rejected


def on_claim(s: Aggregator, claim: PeersClaim) -> aggregator.Step:
    """Check digest, set, attempt, connectivity, minimum and budget, record the claim and open its seeds."""
    known = opening.repeated(s, claim)
    if known is not None:
        return known
    wanted = peer_set(s.digest, claim.attempt, opening.roster_size(s), claim.members, claim.removed)
    problem = _set_problem(s, claim, wanted)
    if problem is not None or wanted is None:
        return aggregator.refuse_claim(s, problem)
    step = opening.admitted(s, claim, len(wanted.members), wanted.members)
    return _included(s, claim, wanted, step) if step[0].claim == claim else step


def _set_problem(s: Aggregator, claim: PeersClaim, wanted: PeerSet | None) -> Rejected | None:
    """What is wrong with the set of a claim, budget and minimum aside."""
    if claim.digest != s.digest or s.roster is None:
        return rejected(Reason.WRONG_DIGEST, "the claim was made for another roster than the sealed one")
    if wanted is None or len(wanted.members) != len(claim.blobs):
        return rejected(Reason.MALFORMED, "a claim names members of the roster, and one sealed seed of each")
    if claim.set_digest != wanted.set_digest:
        return rejected(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    if not holds_together(wanted.members, wanted.removed, s.params.phi):
        return rejected(Reason.DISCONNECTED, "the set falls apart")
    return None


def _included(s: Aggregator, claim: PeersClaim, wanted: PeerSet, step: aggregator.Step) -> aggregator.Step:
    """Whose seeds open. Their shares cancel only if all do: else S2 waits for a further attempt without the others."""
    now = Round(s.params, s.digest, claim.attempt, claim.set_digest)
    seeds = opening.open_seeds(s, now, wanted.members, claim.blobs)
    held = opening.self_masks(s, now, seeds) if len(seeds) == len(wanted.members) else None
    return opening.say_included(s, step, claim.set_digest, tuple(seeds), held, opening.root_of(s, tuple(seeds)))


S2: Mapping[type[Message], aggregator.Handler] = {PeersClaim: on_claim, Total: opening.on_total}
