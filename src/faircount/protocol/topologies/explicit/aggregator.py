"""The aggregator in the `explicit` topology: a claim over a set, whose seeds open, and one sum
if all of them do.
"""

from collections.abc import Mapping

from faircount.protocol.peers import opening
from faircount.protocol.peers.opening import PeersAggregator
from faircount.protocol.peers.peer_set import PeerSet, is_robustly_connected, parse_peer_set
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.topologies.explicit.messages import ExplicitManifest
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Reason, Rejection, reject


class ExplicitAggregator(PeersAggregator):
    """The aggregator of `explicit`."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The claim of an attempt."""
        return {**super().handlers(), ExplicitManifest: self.on_claim}

    def on_claim(
        self, s: Aggregator, rows: StepRows, manifest: ExplicitManifest
    ) -> aggregator.Change:
        """Check digest, set, attempt, connectivity, minimum and budget, record the claim and open
        its seeds.
        """
        known = opening.repeated(s, manifest)
        if known is not None:
            return known
        wanted = parse_peer_set(
            s.digest, manifest.attempt, opening.roster_size(s), manifest.members, manifest.removed
        )
        problem = _set_problem(s, manifest, wanted)
        if problem is not None or wanted is None:
            return aggregator.refuse_manifest(s, problem)
        step = opening.admitted(s, rows, manifest, len(wanted.members), wanted.members)
        return _included(s, manifest, wanted, step) if step[0].manifest == manifest else step


def _set_problem(
    s: Aggregator, manifest: ExplicitManifest, wanted: PeerSet | None
) -> Rejection | None:
    """What is wrong with the set of a claim, budget and minimum aside."""
    if manifest.digest != s.digest or s.roster is None:
        return reject(
            Reason.WRONG_DIGEST, "the claim was made for another roster than the sealed one"
        )
    if wanted is None or len(wanted.members) != len(manifest.encrypted_shares):
        return reject(
            Reason.MALFORMED, "a claim names members of the roster, and one sealed seed of each"
        )
    if manifest.set_digest != wanted.set_digest:
        return reject(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    if not is_robustly_connected(wanted.members, wanted.removed, s.params.phi):
        return reject(Reason.DISCONNECTED, "the set falls apart")
    return None


def _included(
    s: Aggregator, manifest: ExplicitManifest, wanted: PeerSet, step: aggregator.Change
) -> aggregator.Change:
    """Whose seeds open.

    Their shares cancel only if all do: else the aggregator waits for a further attempt without
    the others.
    """
    now = AttemptContext(s.params, s.digest, manifest.attempt, manifest.set_digest)
    seeds = opening.open_seeds(s, now, wanted.members, manifest.encrypted_shares)
    held = opening.self_masks(s, now, seeds) if len(seeds) == len(wanted.members) else None
    return opening.say_included(
        s, step, manifest.set_digest, tuple(seeds), held, opening.root_of(s, tuple(seeds))
    )
