"""The coordinator in every topology with a roster: it holds vectors under masks, accepts one set
per claim, hands over ONE sum.

Whatever the aggregator says, nothing that depends on answers leaves the coordinator but one sum
over one set of at least the minimum, recorded before it is sent. A set that is none of the
claim, or a second one for it, ends the survey.
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
from faircount.protocol.wire.digests import members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Published, Reason, reject
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import TopologyState
from faircount.sharing.packing import pack


@dataclass(frozen=True)
class PeersState(TopologyState):
    """What the coordinator keeps beside the common state; a topology that needs more subclasses
    it.
    """

    stored_tag = "peers-coordinator"
    total: AggregateTotal | None  # the one sum of this survey, recorded before it is sent


def peers_state(s: Coordinator) -> PeersState:
    """The coordinator's own part of the state."""
    return s.topology_state if isinstance(s.topology_state, PeersState) else PeersState(None)


class PeersCoordinator(RosterCoordinator):
    """The coordinator of one sum: it accepts one set per claim, and records what it hands over
    before it is sent.
    """

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """The aggregator's word on whose seeds open."""
        return {**super().aggregator_handlers(), AcceptedMembers: self.on_included}

    @abstractmethod
    def claimed_places(self, s: Coordinator) -> Sequence[int]:
        """The places of the users that the claim names; empty before there is one."""

    @abstractmethod
    def go_on(self, s: Coordinator, rows: StepRows, places: tuple[int, ...]) -> coordinator.Change:
        """What happens once the aggregator has named a set that the coordinator accepts: the one
        sum, or a further attempt.
        """

    def on_included(
        self, s: Coordinator, rows: StepRows, stated: AcceptedMembers, statement: Statement
    ) -> coordinator.Change:
        """The aggregator's word on whose seeds open, for the claim that stands."""
        if (
            s.final is not None
            # check: peers-set-before-receipt - nothing is added up before the budget is charged
            or s.reservation is None
            or stated.manifest_hash != s.manifest_hash
        ):
            return s, ()
        # check: peers-second-set - the sums over two sets differ by one report
        if s.included is not None:
            if s.included.message == stated:
                return s, ()
            return coordinator.end_alone(s, rows, aggregator_contradiction(TWO_SETS))
        if s.phase is not Phase.COUNTING:
            return s, ()
        places = members_of(stated.members, s.n)
        if (
            places is None
            # check: peers-set-of-manifest - the aggregator adds users of its own to the set
            or not set(places) <= set(self.claimed_places(s))
            # check: peers-set-attempt - the aggregator answers for the set of another attempt
            or stated.set_digest != getattr(s.manifest, "set_digest", b"")
        ):
            return coordinator.end_alone(s, rows, aggregator_contradiction(NOT_OF_BATCH))
        return self.go_on(replace(s, included=statement), rows, places)

    def pending(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The claim until the aggregator has named a set, then the one sum once it is made."""
        total = peers_state(s).total
        if total is not None:
            return (coordinator.to_aggregator(s, total),)
        waits = s.manifest is not None and s.phase is Phase.COUNTING and s.included is None
        return (
            (coordinator.to_aggregator(s, s.manifest),) if waits and s.manifest is not None else ()
        )

    def sent_once(self, s: Coordinator) -> bytes:
        """The hash of the one sum; zeros before there is one."""
        total = peers_state(s).total
        return bytes(32) if total is None else sha256(encode(total)).digest()

    def on_published(
        self, s: Coordinator, rows: StepRows, message: Published, statement: Statement
    ) -> coordinator.Change:
        """The aggregator's result, if it is one over the set that the coordinator added up."""
        stated = None if s.included is None else s.included.message
        same_claim = (
            isinstance(stated, AcceptedMembers)
            and message.manifest_hash == stated.manifest_hash == s.manifest_hash
        )
        # check: peers-result-set - the aggregator publishes a result over another set
        if same_claim and isinstance(stated, AcceptedMembers) and message.root != stated.root:
            return s, (
                reject(
                    Reason.WRONG_DIGEST,
                    "this result is over another set than the coordinator added up",
                ),
            )
        return super().on_published(s, rows, message, statement)

    def scrub(self, s: Coordinator, rows: StepRows) -> Coordinator:
        """The coordinator when the survey is over: what users sent goes, and its sum."""
        # check: peers-sum-deleted - nothing is left for whoever seizes the coordinator
        own = (
            replace(s.topology_state, total=None)
            if isinstance(s.topology_state, PeersState)
            else s.topology_state
        )
        rows.scrub("uploads")
        return replace(s, topology_state=own)

    def charges_abort(self, s: Coordinator) -> bool:
        """The aggregator itself knows whether the coordinator may have sent its sum: before that
        an abort costs nothing.
        """
        return False


def enough(s: Coordinator, places: Sequence[int]) -> bool:
    """Whether a sum over these users keeps minimum and promise."""
    params = s.params
    # check: peers-minimum - a sum over few users is nearly one report
    return len(places) >= params.minimum and keeps_promise(
        params.mechanism, len(places), params.epsilon, params.delta, tuple(places)
    )


def root_of(s: Coordinator, places: Sequence[int]) -> bytes:
    """Merkle root of users of the roster."""
    return merkle_root(roster_leaves((s.roster[j].user, s.roster[j].public_key) for j in places))


def hand_over(
    s: Coordinator, rows: StepRows, places: Sequence[int], vectors: Sequence[bytes]
) -> coordinator.Change:
    """Record the one sum, over vectors of these users, unless they are too few or not those that
    the aggregator signed for.
    """
    return hand_over_total(
        s, rows, places, root_of(s, places), lambda: sum_packed(vectors, s.params.q, s.params.N)
    )


def hand_over_total(
    s: Coordinator,
    rows: StepRows,
    places: Sequence[int],
    root: bytes,
    total: Callable[[], Residues],
) -> coordinator.Change:
    """The same where a result counts these users, who are named by this root, and the
    coordinator adds up in a way of its own.
    """
    stated = None if s.included is None else s.included.message
    if not isinstance(stated, AcceptedMembers) or s.included is None:
        return s, ()
    if not enough(s, places):
        return coordinator.give_up(s, too_few_readable(len(places), s.params.minimum))
    # check: peers-set-root - inclusion would be proven for another set than was added up
    if stated.root != root:
        return coordinator.end_alone(s, rows, aggregator_contradiction(OTHER_ROOT))
    return recorded(s, total()), ()


def recorded(s: Coordinator, total: Residues) -> Coordinator:
    """The coordinator with its one sum made; if there is one already, that stands."""
    own = peers_state(s)
    if own.total is not None or s.included is None:
        return s
    made = AggregateTotal(
        s.params.survey, sha256(s.included.signed.payload).digest(), pack(total, s.params.q)
    )
    return replace(
        s, topology_state=replace(own, total=made), phase=advance(s.phase, Phase.AGGREGATED)
    )


def forget_vectors(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: bytes, places: Sequence[int]
) -> None:
    """Delete vectors that are in no sum any more; their hashes stay."""
    for j in places:
        # check: peers-vectors-deleted - a vector left out of the sum could be unmasked later
        rows.uploads.scrub((kind.tag, made_for, j))
