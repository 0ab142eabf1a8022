"""The coordinator as the relay of TSS and TSS': what it keeps beside the common state, and what it
hands out to users.

Reporters are known to helpers by number and key only. The numbers follow an order that the
coordinator alone can compute, and that a restored coordinator computes again; who reports which
item is fixed with the election, as a list of numbers for every item.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from faircount.core.arrays import Ints, Residues
from faircount.core.errors import ProtocolError
from faircount.protocol.peers.one_sum import PeersState
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.topologies.two_stage.election import Ballot, Slots, draw_ballot
from faircount.protocol.topologies.two_stage.lists import item_salt, list_root, prove_listed
from faircount.protocol.topologies.two_stage.messages import (
    Announcement,
    Assignment,
    Election,
    ElectionRequest,
    Indicator,
    SlotBundle,
    SlotSumRequest,
    SlotSums,
    SlotTask,
    TwoStageManifest,
    VanishedHelper,
)
from faircount.protocol.topologies.two_stage.sum_requests import (
    HelperSums,
    SumScope,
    sums_by_helper,
)
from faircount.protocol.topologies.two_stage.user import ANONYMOUS_ID
from faircount.protocol.wire.digests import LABEL, bitmap, members_of
from faircount.protocol.wire.packed_rows import unpack_rows
from faircount.protocol.wire.signing import Statement
from faircount.sharing.field import add, dtype_for


@dataclass(frozen=True)
class TwoStageState(PeersState):
    """The coordinator's own part of the state; `members` of the common part are the places of
    the present reporters.
    """

    stored_tag = "two-stage-coordinator"
    announcement: Announcement | None = (
        None  # from here on the coordinator cannot change whom an election is about
    )
    announced: Statement | None = None  # The aggregator will read the request with this hash
    election: Statement | None = None
    order: tuple[int, ...] = field(default=(), repr=False)  # the eligible users by number
    lists: tuple[bytes, ...] = field(
        default=(), repr=False
    )  # who reports each item, bitmaps; none: the coordinator lost them
    formed: int = 1  # the attempt from which the present reporters are the set
    gone: tuple[VanishedHelper, ...] = ()
    order_key: bytes = field(
        default=b"", repr=False
    )  # of reporters' numbers and of the lists' salts

    @cached_property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """The numbers on each item's list."""
        return tuple(members_of(bits, len(self.order)) or () for bits in self.lists)

    @cached_property
    def items(self) -> dict[int, tuple[int, ...]]:
        """A_i by place."""
        found: dict[int, list[int]] = {place: [] for place in self.order}
        for item, numbers in enumerate(self.numbers):
            for number in numbers:
                found[self.order[number]].append(item)
        return {place: tuple(items) for place, items in found.items()}


def rounds(s: Coordinator) -> TwoStageState:
    """The coordinator's own part of the state."""
    return s.topology_state if isinstance(s.topology_state, TwoStageState) else TwoStageState(None)


# --- the election
# -------------------------------------------------------------------------------------------------


def shuffled(s: Coordinator, eligible: Sequence[int]) -> tuple[int, ...]:
    """The eligible users in an order that only the coordinator knows: the place in it is a
    reporter's number.
    """
    label = LABEL + b"/numbers\0" + s.params.survey
    return tuple(
        sorted(
            eligible,
            key=lambda i: hmac.digest(rounds(s).order_key, label + i.to_bytes(4, "big"), "sha256"),
        )
    )


def lists_of(s: Coordinator, rows: StepRows, order: Sequence[int]) -> tuple[bytes, ...] | None:
    """Who of these users, by number, reports each item; None if the coordinator lacks what one
    of them indicated.
    """
    held = [coordinator.intact_upload(s, rows, Indicator, 0, place) for place in order]
    if not all(held):
        return None
    sets = [members_of(each.items, s.params.N) or () for each in held if each is not None]
    return tuple(
        bitmap((i for i, each in enumerate(sets) if j in each), len(order))
        for j in range(s.params.N)
    )


def request_for(s: Coordinator, lists: Sequence[bytes], size: int) -> ElectionRequest:
    """The numbers m_j and the salted roots of these lists of `size` reporters."""
    numbers = [members_of(bits, size) or () for bits in lists]
    roots = (list_root(_salt(s, item), each) for item, each in enumerate(numbers))
    return ElectionRequest(
        s.params.survey, s.digest, tuple(len(each) for each in numbers), tuple(roots)
    )


def _salt(s: Coordinator, item: int) -> bytes:
    return item_salt(rounds(s).order_key, s.params.survey, item)


def election_of(s: Coordinator) -> Statement:
    """What the aggregator signed."""
    held = rounds(s).election
    if held is None:
        raise ProtocolError("no election was held yet")
    return held


def ballot_of(s: Coordinator) -> Ballot:
    """The election as drawn."""
    held = election_of(s).message
    if not isinstance(held, Election):
        raise ProtocolError("no election was held yet")
    return draw_ballot(s.params, s.n, held)


def slots_of(s: Coordinator, attempt: int) -> Slots:
    """Who holds the slots in this attempt."""
    found = ballot_of(s).upto(rounds(s).gone, attempt)
    if found is None:
        raise ProtocolError("nobody is left to hold some slot")
    return found


# --- shares
# --------------------------------------------------------------------------------------------------


def items_of(s: Coordinator, index: int) -> tuple[int, ...]:
    """A_i as it was fixed with the election; empty where the coordinator does not have it."""
    return rounds(s).items.get(index, ())


def owed_shares(s: Coordinator, index: int, attempt: int) -> Ints:
    """The slots for which a user is to send its shares in an attempt, or was, as positions."""
    return slots_of(s, attempt).owed(items_of(s, index), attempt)


def assignment(s: Coordinator, index: int) -> Assignment:
    """What a reporter needs to share; with the first one the proof that it is on its items'
    lists.
    """
    known = rounds(s)
    number = known.order.index(index)
    items = items_of(s, index) if s.attempt == 1 else ()
    proofs = tuple(prove_listed(_salt(s, j), known.numbers[j], number) for j in items)
    return Assignment(s.params.survey, s.attempt, election_of(s).signed, known.gone, proofs)


def reporters(s: Coordinator) -> list[tuple[int, int]]:
    """(number, place) of the present reporters, ascending by number."""
    inside = set(s.members)
    return [(number, place) for number, place in enumerate(rounds(s).order) if place in inside]


# --- sums
# --------------------------------------------------------------------------------------------------


def due_sums(s: Coordinator, index: int) -> Ints:
    """The slots of which a user is to send sums in this attempt, or was, as positions."""
    return slots_of(s, s.attempt).due(index, rounds(s).formed, s.attempt)


def called(s: Coordinator) -> SumScope:
    """What elected users are called for now."""
    known = rounds(s)
    return SumScope(
        s.attempt, known.formed, known.gone, bitmap((i for i, _ in reporters(s)), len(known.order))
    )


def call(s: Coordinator, rows: StepRows, index: int) -> SlotSumRequest | None:
    """The slots of which an elected user owes sums, with the shares from the present reporters.

    None where the coordinator's storage has lost one of them: the deadline drops its sender.
    """
    slots, due, known, now = slots_of(s, s.attempt), due_sums(s, index), rounds(s), called(s)
    when = slots.granted[due]
    shelves = [
        _shelf(slots_of(s, granted), granted, due[when == granted])
        for granted in np.unique(when).tolist()
    ]
    wanted, parcels = set(slots.item[due].tolist()), {at: list[bytes]() for at in due.tolist()}
    for _, place in reporters(s):
        items = items_of(s, place)
        if not wanted.isdisjoint(items):
            found = _shares(s, rows, place, items, shelves)
            if found is None:
                return None
            for at, encrypted_share in found:
                parcels[at].append(encrypted_share)
    tasks = []
    for at, encrypted_shares in parcels.items():
        item = int(slots.item[at])
        tasks.append(
            SlotTask(
                item,
                int(slots.slot[at]),
                known.lists[item],
                _salt(s, item),
                tuple(encrypted_shares),
            )
        )
    about = now.attempt, now.formed, election_of(s).signed, now.gone, now.members
    return SlotSumRequest(s.params.survey, *about, tuple(tasks))


@dataclass(frozen=True)
class _Shelf:
    """Where to find shares in the bundles of one attempt: per item the number of slots that got a
    holder then.
    """

    attempt: int
    sizes: list[int]
    wanted: dict[
        int, list[tuple[int, int]]
    ]  # item -> (position of a wanted slot, its rank among those of the item)


def _shelf(then: Slots, attempt: int, due: Ints) -> _Shelf:
    fresh, wanted = np.flatnonzero(then.granted == attempt), dict[int, list[tuple[int, int]]]()
    sizes = np.bincount(then.item[fresh], minlength=int(then.item[-1]) + 1)
    before = np.cumsum(sizes) - sizes
    for at in np.intersect1d(due, fresh).tolist():
        item = int(then.item[at])
        wanted.setdefault(item, []).append((at, int(np.searchsorted(fresh, at) - before[item])))
    return _Shelf(attempt, sizes.tolist(), wanted)


def _shares(
    s: Coordinator, rows: StepRows, place: int, items: Sequence[int], shelves: Sequence[_Shelf]
) -> list[tuple[int, bytes]] | None:
    """A reporter's sealed shares for the wanted slots: each is in the bundle of the attempt when
    its holder got it.
    """
    found = []
    for shelf in shelves:
        sent, offset = rows.uploads.get((SlotBundle.tag, shelf.attempt, place)), 0
        encrypted_shares = () if sent is None else sent.encrypted_shares
        if len(encrypted_shares) != sum(shelf.sizes[item] for item in items):
            return None
        for item in items:
            found += [
                (at, encrypted_shares[offset + rank]) for at, rank in shelf.wanted.get(item, ())
            ]
            offset += shelf.sizes[item]
    return found


# --- the claim and the one sum
# ------------------------------------------------------------------------------------


def parts_now(s: Coordinator) -> list[HelperSums]:
    """Every helper's part of a claim over the present set."""
    return list(sums_by_helper(ballot_of(s), slots_of(s, s.attempt), called(s)))


def item_totals(s: Coordinator, rows: StepRows) -> Residues:
    """The masked sums of all slots, added up item by item; nobody holds two slots of one item."""
    q, slots = s.params.q, slots_of(s, s.attempt)
    totals = np.zeros(s.params.N, dtype=dtype_for(q))
    for part in parts_now(s):
        vector = rows.uploads[SlotSums.tag, part.digest, part.holder].vector
        (sums,), _ = unpack_rows([vector], q, len(part.due))
        items = slots.item[part.due]
        totals[items] = add(totals[items], sums, q)
    return totals


def claimed(s: Coordinator, manifest: TwoStageManifest) -> tuple[int, ...]:
    """The places of a claim's reporters."""
    numbers = members_of(manifest.members, len(rounds(s).order)) or ()
    return tuple(sorted(rounds(s).order[number] for number in numbers))


def reporter_entries(s: Coordinator) -> tuple[Entry, ...]:
    """A result names reporters by their keys alone."""
    if rounds(s).election is None:
        return ()
    keys = ballot_of(s).keys
    return tuple((ANONYMOUS_ID, keys[number]) for number, _ in reporters(s))
