"""The coordinator in every topology with a roster: of all answers, it sends one total.

    masked vectors and encrypted seeds   <- clients
    manifest with the seeds              -> aggregator
    AcceptedMembers                      <- aggregator: whose seeds it could decrypt
    AggregateTotal                       -> aggregator: the sum of these members' vectors

The vectors are under masks that the coordinator does not know. Whatever the aggregator asks for,
nothing that depends on answers leaves the coordinator except one total, over one set of at least
the minimum. The total is recorded before it is sent, so that a restart sends the same one. If the
aggregator names a member that is not in the manifest, or two sets for one manifest, the coordinator
ends the survey by itself: the difference of two sums could be one participant's answer.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from faircount.core.arrays import Residues
from faircount.protocol.peers.messages import AcceptedMembers, AggregateTotal
from faircount.protocol.peers.roster import RosterCoordinator
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import (
    NOT_OF_BATCH,
    OTHER_ROOT,
    TWO_SETS,
    aggregator_contradiction,
    too_few_readable,
)
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.survey.remaining_privacy import keeps_promise
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import entry_leaves, members_of, merkle_root
from faircount.protocol.wire.messages import Published, Reason, reject
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import TopologyState
from faircount.sharing.packing import pack


@dataclass(frozen=True)
class PeersState(TopologyState):
    """What the coordinator stores for these topologies; one that needs more subclasses it."""

    stored_tag = "peers-coordinator"
    total: AggregateTotal | None  # the only total of this survey, recorded before it is sent


def peers_state(s: Coordinator) -> PeersState:
    """The topology state; empty before there is one."""
    return s.topology_state if isinstance(s.topology_state, PeersState) else PeersState(None)


class PeersCoordinator(RosterCoordinator):
    """The coordinator of one total: one set per manifest, recorded before anything is sent."""

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """The aggregator's statement of the accepted members."""
        return {**super().aggregator_handlers(), AcceptedMembers: self.on_accepted}

    @abstractmethod
    def manifest_places(self, s: Coordinator) -> Sequence[int]:
        """The places of the members that the manifest names; empty before there is one."""

    @abstractmethod
    def continue_with(
        self, s: Coordinator, rows: StepRows, places: tuple[int, ...]
    ) -> coordinator.Change:
        """Go on with the accepted members: record the total, or begin a further attempt."""

    def on_accepted(
        self, s: Coordinator, rows: StepRows, stated: AcceptedMembers, statement: Statement
    ) -> coordinator.Change:
        """Check the accepted members of the current manifest, and go on with them."""
        if (
            s.final is not None
            # check: peers-set-before-reservation - a sum would be made before the budget is charged
            or s.reservation is None
            or stated.manifest_hash != s.manifest_hash
        ):
            return s, ()
        # check: peers-second-set - the sums over two sets differ by one report
        if s.accepted is not None:
            if s.accepted.message == stated:
                return s, ()
            return coordinator.abort_without_aggregator(s, rows, aggregator_contradiction(TWO_SETS))
        if s.phase is not Phase.COUNTING:
            return s, ()
        places = members_of(stated.members, s.n)
        if (
            places is None
            # check: peers-set-of-manifest - the aggregator adds users of its own to the set
            or not set(places) <= set(self.manifest_places(s))
            # check: peers-set-attempt - the aggregator answers for the set of another attempt
            or stated.set_digest != getattr(s.manifest, "set_digest", b"")
        ):
            return coordinator.abort_without_aggregator(
                s, rows, aggregator_contradiction(NOT_OF_BATCH)
            )
        return self.continue_with(replace(s, accepted=statement), rows, places)

    def unanswered_messages(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The total once it is recorded; before, a manifest without accepted members."""
        total = peers_state(s).total
        if total is not None:
            return (coordinator.to_aggregator(s, total),)
        if s.manifest is not None and s.phase is Phase.COUNTING and s.accepted is None:
            return (coordinator.to_aggregator(s, s.manifest),)
        return ()

    def aggregate_share_hash(self, s: Coordinator) -> bytes:
        """The hash of the total; zeros before there is one."""
        total = peers_state(s).total
        return bytes(32) if total is None else sha256(encode(total)).digest()

    def on_published(
        self, s: Coordinator, rows: StepRows, message: Published, statement: Statement
    ) -> coordinator.Change:
        """Store the aggregator's result, if it counts the members that the coordinator summed."""
        stated = None if s.accepted is None else s.accepted.message
        # A result for another manifest is not compared: the coordinator may have been restored, and
        # asks the aggregator for its manifest first.
        is_same_manifest = (
            isinstance(stated, AcceptedMembers)
            and message.manifest_hash == stated.manifest_hash == s.manifest_hash
        )
        # check: peers-result-set - the aggregator publishes a result over another set
        if is_same_manifest and isinstance(stated, AcceptedMembers) and message.root != stated.root:
            problem = "this result counts another set than the coordinator summed"
            return s, (reject(Reason.WRONG_DIGEST, problem),)
        return super().on_published(s, rows, message, statement)

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """Delete the total and what clients sent: the survey is over."""
        # check: peers-sum-deleted - whoever seizes the coordinator would find sum and vectors
        if isinstance(s.topology_state, PeersState):
            s = replace(s, topology_state=replace(s.topology_state, total=None))
        rows.scrub("uploads")
        return s

    def charges_abort(self, s: Coordinator) -> bool:
        """No: the aggregator knows by itself whether the coordinator may have sent its total.

        Before that an abort costs nothing.
        """
        return False


# --- the total ------------------------------------------------------------------------------------


def has_enough_members(s: Coordinator, places: Sequence[int]) -> bool:
    """Whether a sum over these members keeps the minimum and the promised privacy."""
    params = s.params
    # check: peers-minimum - a sum over few users is nearly one report
    return len(places) >= params.minimum and keeps_promise(
        params.mechanism, len(places), params.epsilon, params.delta, tuple(places)
    )


def inclusion_root(s: Coordinator, places: Sequence[int]) -> bytes:
    """Merkle root of the members at these places."""
    members = (s.roster[place] for place in places)
    return merkle_root(entry_leaves((member.user, member.public_key) for member in members))


def record_sum(
    s: Coordinator, rows: StepRows, places: Sequence[int], vectors: Sequence[bytes]
) -> coordinator.Change:
    """Record the sum of these members' vectors as the total, as `record_total` does."""

    def sum_vectors() -> Residues:
        return sum_packed(vectors, s.params.q, s.params.N)

    return record_total(s, rows, places, inclusion_root(s, places), sum_vectors)


def record_total(
    s: Coordinator,
    rows: StepRows,
    places: Sequence[int],
    root: bytes,
    compute: Callable[[], Residues],
) -> coordinator.Change:
    """Record the total over these members, unless they are too few or not the accepted ones.

    `root` is the root of the inclusion tree of the members. `compute` makes the total, and is
    called after the checks.
    """
    stated = None if s.accepted is None else s.accepted.message
    if not isinstance(stated, AcceptedMembers):
        return s, ()
    if not has_enough_members(s, places):
        return coordinator.request_abort(s, too_few_readable(len(places), s.params.minimum))
    # check: peers-set-root - inclusion would be proven for another set than was added up
    if stated.root != root:
        return coordinator.abort_without_aggregator(s, rows, aggregator_contradiction(OTHER_ROOT))
    return with_total(s, compute()), ()


def with_total(s: Coordinator, total: Residues) -> Coordinator:
    """The state with its total, which replaces no earlier one."""
    state = peers_state(s)
    if state.total is not None or s.accepted is None:
        return s
    accepted_hash = sha256(s.accepted.signed.payload).digest()
    message = AggregateTotal(s.params.survey, accepted_hash, pack(total, s.params.q))
    phase = advance(s.phase, Phase.AGGREGATED)
    return replace(s, topology_state=replace(state, total=message), phase=phase)


def delete_vectors(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: bytes, places: Sequence[int]
) -> None:
    """Delete vectors that can be in no total any more; their hashes stay, to recognize repeats."""
    for place in places:
        # check: peers-vectors-deleted - a vector left out of the sum could be unmasked later
        rows.uploads.scrub((kind.tag, made_for, place))
