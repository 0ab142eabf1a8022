"""S1 as the relay of TSS and TSS': what it keeps beside the common state, and what it hands out to users.

Reporters are known to helpers by number and key only. The numbers follow an order that S1 alone can compute, and that a
restored S1 computes again.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from faircount.core.arrays import Ints
from faircount.core.errors import ProtocolError
from faircount.protocol.roles.coordinator import Coordinator, TopologyState
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.topologies.two_stage.election import Ballot, Slots, draw
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Bundle,
    Election,
    ElectionRequest,
    Gone,
    Indicator,
    Parcel,
    Sender,
    SumCall,
    Task,
    TwoStageClaim,
)
from faircount.protocol.topologies.two_stage.user import NOBODY
from faircount.protocol.wire.digests import LABEL, bitmap, members_of
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.signing import Statement


@dataclass(frozen=True)
class TwoStageState(TopologyState):
    """S1's own part of the state; `members` of the common part are the places of the present reporters."""

    stored_version = 1
    request: ElectionRequest | None = None
    announced: Statement | None = None  # S2 will read the request with this hash
    election: Statement | None = None
    order: tuple[int, ...] = field(default=(), repr=False)  # the eligible users by number
    formed: int = 1  # the attempt from which the present reporters are the set
    gone: tuple[Gone, ...] = ()


def rounds(s: Coordinator) -> TwoStageState:
    """S1's own part of the state."""
    return s.own if isinstance(s.own, TwoStageState) else TwoStageState()


def election_of(s: Coordinator) -> Signed:
    """What S2 signed."""
    held = rounds(s).election
    if held is None:
        raise ProtocolError("no election was held yet")
    return held.signed


def ballot_of(s: Coordinator) -> Ballot:
    """The election as drawn."""
    held = rounds(s).election
    if held is None or not isinstance(held.says, Election):
        raise ProtocolError("no election was held yet")
    return draw(s.params, s.n, held.says)


def slots_of(s: Coordinator, attempt: int) -> Slots:
    """Who holds the slots in this attempt."""
    found = ballot_of(s).upto(rounds(s).gone, attempt)
    if found is None:
        raise ProtocolError("nobody is left to hold some slot")
    return found


def shuffled(s: Coordinator, eligible: Sequence[int]) -> tuple[int, ...]:
    """The eligible users in an order that only S1 knows: the place in it is a reporter's number."""
    label = LABEL + b"/numbers\0" + s.params.survey
    return tuple(sorted(eligible, key=lambda i: hmac.digest(s.order_key, label + i.to_bytes(4, "big"), "sha256")))


def items_of(s: Coordinator, index: int) -> tuple[int, ...]:
    """A_i; empty where S1 does not have it."""
    sent = s.uploads.get((Indicator.tag, 0, index))
    return () if sent is None else members_of(sent.items, s.params.N) or ()


def owed_shares(s: Coordinator, index: int) -> Ints:
    """The slots for which a user is to send its shares in this attempt, or was, as positions."""
    return slots_of(s, s.attempt).owed(items_of(s, index), s.attempt)


def due_sums(s: Coordinator, index: int) -> Ints:
    """The slots of which a user is to send sums in this attempt, or was, as positions."""
    return slots_of(s, s.attempt).due(index, rounds(s).formed, s.attempt)


def reporters(s: Coordinator) -> list[tuple[int, int]]:
    """(number, place) of the present reporters, ascending by number."""
    inside = set(s.members)
    return [(number, place) for number, place in enumerate(rounds(s).order) if place in inside]


def claimed(s: Coordinator, claim: TwoStageClaim) -> tuple[int, ...]:
    """The places of a claim's reporters."""
    numbers = members_of(claim.members, len(rounds(s).order)) or ()
    return tuple(sorted(rounds(s).order[number] for number in numbers))


def assignment(s: Coordinator, index: int) -> Assignment:
    """What a reporter needs to share."""
    known = rounds(s)
    return Assignment(s.params.survey, s.attempt, election_of(s), known.order.index(index), known.gone)


def call(s: Coordinator, index: int) -> SumCall:
    """The slots of which an elected user owes sums, with the shares from the present reporters."""
    slots, due = slots_of(s, s.attempt), due_sums(s, index)
    shelves = [_shelf(slots_of(s, granted), granted, due) for granted in np.unique(slots.granted[due]).tolist()]
    wanted, parcels = set(slots.item[due].tolist()), {at: list[Parcel]() for at in due.tolist()}
    senders, present = [], reporters(s)
    for number, place in present:
        items = items_of(s, place)
        if not wanted.isdisjoint(items):
            senders.append(Sender(number, s.uploads[Bundle.tag, 1, place].public_key))
            for at, blob in _shares(s, place, items, shelves):
                parcels[at].append(Parcel(number, blob))
    tasks = (Task(int(slots.item[at]), int(slots.slot[at]), tuple(found)) for at, found in parcels.items())
    return replace(bare_call(s, s.attempt), senders=tuple(senders), tasks=tuple(tasks))


def bare_call(s: Coordinator, attempt: int) -> SumCall:
    """What all elected users are called for in an attempt since the set was formed, without anybody's shares."""
    known = rounds(s)
    bits = bitmap((number for number, _ in reporters(s)), len(known.order))
    gone = tuple(each for each in known.gone if each.attempt <= attempt)
    return SumCall(s.params.survey, attempt, known.formed, election_of(s), gone, bits, (), ())


@dataclass(frozen=True)
class _Shelf:
    """Where to find shares in the bundles of one attempt: per item the number of slots that got a holder then."""

    attempt: int
    sizes: list[int]
    wanted: dict[int, list[tuple[int, int]]]  # item -> (position of a wanted slot, its rank among those of the item)


def _shelf(then: Slots, attempt: int, due: Ints) -> _Shelf:
    fresh, wanted = np.flatnonzero(then.granted == attempt), dict[int, list[tuple[int, int]]]()
    sizes = np.bincount(then.item[fresh], minlength=int(then.item[-1]) + 1)
    before = np.cumsum(sizes) - sizes
    for at in np.intersect1d(due, fresh).tolist():
        item = int(then.item[at])
        wanted.setdefault(item, []).append((at, int(np.searchsorted(fresh, at) - before[item])))
    return _Shelf(attempt, sizes.tolist(), wanted)


def _shares(s: Coordinator, place: int, items: Sequence[int], shelves: Sequence[_Shelf]) -> list[tuple[int, bytes]]:
    """A reporter's sealed shares for the wanted slots: each is in the bundle of the attempt when its holder got it.

    Where S1's storage has spoiled the indicator some may be lacking: the deadline drops that reporter.
    """
    found = []
    for shelf in shelves:
        sent, offset = s.uploads.get((Bundle.tag, shelf.attempt, place)), 0
        blobs = () if sent is None else sent.blobs
        for item in items:
            wanted = shelf.wanted.get(item, ())
            found += [(at, blobs[offset + rank]) for at, rank in wanted if offset + rank < len(blobs)]
            offset += shelf.sizes[item]
    return found


def counted_reporters(s: Coordinator) -> tuple[int, ...]:
    """The places of the reporters that the result counts, by number."""
    return tuple(place for _, place in reporters(s))


def reporter_entries(s: Coordinator) -> tuple[Entry, ...]:
    """A result names reporters by their keys alone."""
    return tuple((NOBODY, key) for key in s.claim.keys) if isinstance(s.claim, TwoStageClaim) else ()
