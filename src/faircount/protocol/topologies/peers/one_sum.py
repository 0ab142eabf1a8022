"""S1 in every topology with a roster: it holds vectors under masks, accepts one set per claim, hands over ONE sum.

Whatever S2 says, nothing that depends on answers leaves S1 but one sum over one set of at least the minimum, recorded
before it is sent. A set that is none of the claim, or a second one for it, ends the survey.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from faircount.core.arrays import Residues
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinate import conclude
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.remaining_privacy import keeps
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.peers.messages import PeersIncluded, Total
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import members_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import Published, Reason, rejected
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import TopologyState
from faircount.sharing.packing import pack


@dataclass(frozen=True)
class PeersState(TopologyState):
    """What S1 keeps beside the common state; a topology that needs more subclasses it."""

    stored_version = 1
    total: Total | None  # the one sum of this survey, recorded before it is sent


def peers_state(s: Coordinator) -> PeersState:
    """S1's own part of the state."""
    return s.own if isinstance(s.own, PeersState) else PeersState(None)


GoOn = Callable[[Coordinator, tuple[int, ...]], coordinator.Step]
"""What a topology does once S2 has named a set that S1 accepts."""


def take_set(
    s: Coordinator, stated: PeersIncluded, statement: Statement, claimed: Sequence[int], go_on: GoOn
) -> coordinator.Step:
    """S2's word on whose seeds open, for the claim that stands; `claimed` are the users that it names."""
    if s.receipt is None or s.final is not None or stated.claim_hash != s.claim_hash:
        return s, ()
    if s.included is not None:
        return (s, ()) if s.included.says == stated else coordinator.end_alone(s, "S2 named two sets for one claim")
    if s.state is not State.CLAIMED:
        return s, ()
    places = members_of(stated.members, s.n)
    if places is None or not set(places) <= set(claimed) or stated.set_digest != getattr(s.claim, "set_digest", b""):
        return coordinator.end_alone(s, "S2 named a set that is none of the claim")
    return go_on(replace(s, included=statement), places)


def enough(s: Coordinator, places: Sequence[int]) -> bool:
    """Whether a sum over these users keeps minimum and promise."""
    params = s.params
    return len(places) >= params.minimum and keeps(
        params.mechanism, len(places), params.epsilon, params.delta, tuple(places)
    )


def root_of(s: Coordinator, places: Sequence[int]) -> bytes:
    """Merkle root of users of the roster."""
    return merkle_root(roster_leaves((s.roster[j].user, s.roster[j].public_key) for j in places))


def hand_over(s: Coordinator, places: Sequence[int], vectors: Sequence[bytes]) -> coordinator.Step:
    """Record the one sum, over vectors of these users, unless they are too few or not those that S2 signed for."""
    return hand_over_total(s, places, root_of(s, places), lambda: sum_packed(vectors, s.params.q, s.params.N))


def hand_over_total(
    s: Coordinator, places: Sequence[int], root: bytes, total: Callable[[], Residues]
) -> coordinator.Step:
    """The same where a result counts these users, who are named by this root, and S1 adds up in a way of its own."""
    stated = None if s.included is None else s.included.says
    if not isinstance(stated, PeersIncluded) or s.included is None:
        return s, ()
    if not enough(s, places):
        return coordinator.give_up(s, f"{len(places)} users can be added up, {s.params.minimum} are needed")
    if stated.root != root:
        return coordinator.end_alone(s, "S2 named one set and signed the root of another")
    return recorded(s, total()), ()


def recorded(s: Coordinator, total: Residues) -> Coordinator:
    """S1 with its one sum made; if there is one already, that stands."""
    own = peers_state(s)
    if own.total is not None or s.included is None:
        return s
    made = Total(s.params.survey, sha256(s.included.signed.payload).digest(), pack(total, s.params.q))
    return replace(s, own=replace(own, total=made), state=advance(s.state, State.OPENED))


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until S2 has named a set, then the one sum once it is made."""
    total = peers_state(s).total
    if total is not None:
        return (coordinator.to_s2(s, total),)
    waits = s.claim is not None and s.state is State.CLAIMED and s.included is None
    return (coordinator.to_s2(s, s.claim),) if waits and s.claim is not None else ()


def sent_once(s: Coordinator) -> bytes:
    """The hash of the one sum; zeros before there is one."""
    total = peers_state(s).total
    return bytes(32) if total is None else sha256(encode(total)).digest()


def on_published(s: Coordinator, message: Published, statement: Statement) -> coordinator.Step:
    """S2's result, if it is one over the set that S1 added up."""
    stated = None if s.included is None else s.included.says
    same_claim = isinstance(stated, PeersIncluded) and message.claim_hash == stated.claim_hash == s.claim_hash
    if same_claim and isinstance(stated, PeersIncluded) and message.root != stated.root:
        return s, (rejected(Reason.WRONG_DIGEST, "this result is over another set than S1 added up"),)
    return conclude(s, message, statement)


def forget_vectors(s: Coordinator, kind: type[Message], made_for: bytes, places: Sequence[int]) -> None:
    """Delete vectors that are in no sum any more; their hashes stay."""
    for j in places:
        s.uploads.scrub((kind.tag, made_for, j))


def scrubbed(s: Coordinator) -> Coordinator:
    """S1 when the survey is over: what users sent goes, and its sum."""
    own = replace(s.own, total=None) if isinstance(s.own, PeersState) else s.own
    return replace(s, uploads=s.uploads.scrubbed(), own=own)


def nothing_spent(_: Coordinator) -> bool:
    """S2 itself knows whether S1 may have sent its sum: before that an abort costs nothing."""
    return False
