"""The aggregator in the `explicit` topology: all seeds must decrypt.

The shares of a set cancel only over the whole set. So if a single seed of a manifest cannot be
decrypted, the aggregator names the others as accepted, does not get ready for a total, and waits
for the manifest of a further attempt among them.
"""

from collections.abc import Mapping

from faircount.protocol.peers import unmasking
from faircount.protocol.peers.peer_set import PeerSet, is_robustly_connected, parse_peer_set
from faircount.protocol.peers.self_mask import AttemptContext
from faircount.protocol.peers.unmasking import PeersAggregator
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.topologies.explicit.messages import ExplicitManifest
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Reason, Rejection, reject


class ExplicitAggregator(PeersAggregator):
    """The aggregator of `explicit`."""

    def handlers(self) -> Mapping[type[Message], aggregator.Handler]:
        """The manifest of an attempt."""
        return {**super().handlers(), ExplicitManifest: self.on_manifest}

    def on_manifest(
        self, s: Aggregator, rows: StepRows, manifest: ExplicitManifest
    ) -> aggregator.Change:
        """Check and record the manifest, reserve the budget, and decrypt the seeds."""
        answer = unmasking.answer_known_manifest(s, manifest)
        if answer is not None:
            return answer
        wanted = parse_peer_set(
            s.digest, manifest.attempt, unmasking.roster_size(s), manifest.members, manifest.removed
        )
        problem = _manifest_problem(s, manifest, wanted)
        if problem is not None or wanted is None:
            return aggregator.refuse_manifest(s, problem)
        recorded = unmasking.record_attempt(s, rows, manifest, len(wanted.members), wanted.members)
        if recorded[0].manifest != manifest:
            return recorded
        return _accept_members(s, manifest, wanted, recorded)


def _manifest_problem(
    s: Aggregator, manifest: ExplicitManifest, wanted: PeerSet | None
) -> Rejection | None:
    """What is wrong with a manifest, apart from attempt, minimum and budget."""
    if manifest.digest != s.digest or s.roster is None:
        return reject(
            Reason.WRONG_DIGEST, "the manifest was made for another roster than the confirmed one"
        )
    if wanted is None or len(wanted.members) != len(manifest.encrypted_shares):
        return reject(
            Reason.MALFORMED, "a manifest names members of the roster, and a seed of each of them"
        )
    if manifest.set_digest != wanted.set_digest:
        return reject(Reason.WRONG_DIGEST, "the set's digest is not that of the set")
    # phi colluding members could otherwise cut the others apart and read the sum of a part.
    if not is_robustly_connected(wanted.members, wanted.removed, s.params.phi):
        return reject(
            Reason.DISCONNECTED, "the set is not connected without the colluding participants"
        )
    return None


def _accept_members(
    s: Aggregator, manifest: ExplicitManifest, wanted: PeerSet, recorded: aggregator.Change
) -> aggregator.Change:
    """Accept the members whose seeds can be decrypted; ready for the total if these are all."""
    context = AttemptContext(s.params, s.digest, manifest.attempt, manifest.set_digest)
    seeds = unmasking.decrypt_seeds(s, context, wanted.members, manifest.encrypted_shares)
    accepted = tuple(seeds)
    # Without a partial sum the aggregator refuses a total, and still takes a later manifest.
    partial_sum = None
    if len(accepted) == len(wanted.members):
        partial_sum = unmasking.sum_self_masks(s, context, seeds)
    root = unmasking.inclusion_root(s, accepted)
    return unmasking.state_accepted(s, recorded, manifest.set_digest, accepted, partial_sum, root)
