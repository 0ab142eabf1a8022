"""The coordinator of TSS and TSS' as a relay: its topology state, and what it sends to clients.

    reporters   get an assignment: the election, and proofs that they are on the lists of their
                items
    helpers     get a sum request: the encrypted shares of the slots that they hold

Helpers know reporters by number and key only. The numbers follow an order that only the coordinator
can compute, from a secret key, so a restored coordinator computes the same order again. Which
reporter reports which item is fixed with the election, as a list of numbers for every item.
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
    ListProof,
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
from faircount.protocol.wire.digests import LABEL, bitmap, bits_of, members_of
from faircount.protocol.wire.packed_rows import unpack_rows
from faircount.protocol.wire.signing import Statement
from faircount.sharing.field import add, dtype_for


@dataclass(frozen=True)
class TwoStageState(PeersState):
    """The coordinator's topology state.

    `members` of the common state are the places of the reporters who are still in the set.
    """

    stored_tag = "two-stage-coordinator"
    # Once it is stored, the coordinator cannot change whom the election is about.
    announcement: Announcement | None = None
    # The aggregator has recorded the hash of the one election request that it will accept.
    announcement_reply: Statement | None = None
    election: Statement | None = None
    # The places of the eligible participants, by number.
    order: tuple[int, ...] = field(default=(), repr=False)
    # For each item a bitmap of the numbers that report it; empty if a restore has lost them.
    lists: tuple[bytes, ...] = field(default=(), repr=False)
    # The attempt in which the present set of reporters was formed.
    formed: int = 1
    gone: tuple[VanishedHelper, ...] = ()
    # The secret from which the reporters' numbers and the salts of the lists are derived.
    order_key: bytes = field(default=b"", repr=False)

    @cached_property
    def numbers(self) -> tuple[tuple[int, ...], ...]:
        """The numbers on each item's list."""
        return tuple(members_of(bits, len(self.order)) or () for bits in self.lists)

    @cached_property
    def items(self) -> dict[int, tuple[int, ...]]:
        """A_i, the items that a reporter reports, by place."""
        found: dict[int, list[int]] = {place: [] for place in self.order}
        for item, numbers in enumerate(self.numbers):
            for number in numbers:
                found[self.order[number]].append(item)
        return {place: tuple(items) for place, items in found.items()}


def two_stage_state(s: Coordinator) -> TwoStageState:
    """The coordinator's topology state."""
    return s.topology_state if isinstance(s.topology_state, TwoStageState) else TwoStageState(None)


# --- the election ---------------------------------------------------------------------------------


def assign_numbers(s: Coordinator, eligible: Sequence[int]) -> tuple[int, ...]:
    """Order the eligible places as only the coordinator can: a position is a reporter's number."""
    # Places are public. An order under a secret key keeps helpers from guessing who has a number.
    order_key = two_stage_state(s).order_key
    label = LABEL + b"/numbers\0" + s.params.survey

    def secret_tag(place: int) -> bytes:
        return hmac.digest(order_key, label + place.to_bytes(4, "big"), "sha256")

    return tuple(sorted(eligible, key=secret_tag))


def list_reporters(
    s: Coordinator, rows: StepRows, order: Sequence[int]
) -> tuple[bytes, ...] | None:
    """For each item a bitmap of the numbers that report it; None if an indicator is missing."""
    marks = np.zeros((s.params.N, len(order)), dtype=np.bool_)
    for number, place in enumerate(order):
        indicator = coordinator.intact_upload(s, rows, Indicator, 0, place)
        if indicator is None:
            return None
        items = members_of(indicator.items, s.params.N) or ()
        marks[list(items), number] = True
    return tuple(bits_of(row) for row in marks)


def make_election_request(s: Coordinator, lists: Sequence[bytes], size: int) -> ElectionRequest:
    """The numbers m_j and the salted roots of these lists of `size` reporters."""
    counts = list[int]()
    roots = list[bytes]()
    for item, bits in enumerate(lists):
        numbers = members_of(bits, size) or ()
        counts.append(len(numbers))
        roots.append(list_root(_salt(s, item), numbers))
    return ElectionRequest(s.params.survey, s.digest, tuple(counts), tuple(roots))


def _salt(s: Coordinator, item: int) -> bytes:
    return item_salt(two_stage_state(s).order_key, s.params.survey, item)


def election_statement(s: Coordinator) -> Statement:
    """The election as the aggregator signed it."""
    statement = two_stage_state(s).election
    if statement is None:
        raise ProtocolError("no election was held yet")
    return statement


def ballot_of(s: Coordinator) -> Ballot:
    """The election as it was drawn."""
    election = election_statement(s).message
    if not isinstance(election, Election):
        raise ProtocolError("no election was held yet")
    return draw_ballot(s.params, s.n, election)


def slots_of(s: Coordinator, attempt: int) -> Slots:
    """Who holds which slot in an attempt."""
    slots = ballot_of(s).upto(two_stage_state(s).gone, attempt)
    if slots is None:
        raise ProtocolError("nobody is left to hold some slot")
    return slots


# --- shares ---------------------------------------------------------------------------------------


def items_of(s: Coordinator, index: int) -> tuple[int, ...]:
    """A_i as it was fixed with the election; empty if the coordinator has lost it."""
    return two_stage_state(s).items.get(index, ())


def owed_shares(s: Coordinator, index: int, attempt: int) -> Ints:
    """Positions of the slots for which a reporter sends its shares in an attempt."""
    return slots_of(s, attempt).find_owed(items_of(s, index), attempt)


def make_assignment(s: Coordinator, index: int) -> Assignment:
    """What a reporter needs to share its bits.

    In the first attempt, with the proofs that it is on the lists of its items.
    """
    state = two_stage_state(s)
    number = state.order.index(index)
    proofs = list[ListProof]()
    if s.attempt == 1:
        for item in items_of(s, index):
            proofs.append(prove_listed(_salt(s, item), state.numbers[item], number))
    election = election_statement(s).signed
    return Assignment(s.params.survey, s.attempt, election, state.gone, tuple(proofs))


def present_reporters(s: Coordinator) -> list[tuple[int, int]]:
    """(number, place) of the reporters who are still in the set, ascending by number."""
    members = set(s.members)
    numbered = enumerate(two_stage_state(s).order)
    return [(number, place) for number, place in numbered if place in members]


# --- sums -----------------------------------------------------------------------------------------


def due_sums(s: Coordinator, index: int) -> Ints:
    """Positions of the slots whose sums a helper sends in this attempt."""
    return slots_of(s, s.attempt).due(index, two_stage_state(s).formed, s.attempt)


def current_scope(s: Coordinator) -> SumScope:
    """What the helpers sum up now: attempt, set of reporters, vanished helpers."""
    state = two_stage_state(s)
    members = bitmap((number for number, _ in present_reporters(s)), len(state.order))
    return SumScope(s.attempt, state.formed, state.gone, members)


def make_sum_request(s: Coordinator, rows: StepRows, index: int) -> SlotSumRequest | None:
    """The slots whose sums a helper owes, with the encrypted shares from all present reporters.

    None if the coordinator's storage has lost one of these shares: the deadline then removes its
    sender from the set.
    """
    slots = slots_of(s, s.attempt)
    due = due_sums(s, index)
    granted = slots.granted[due]
    # The shares of a slot are in the bundles of the attempt in which it got its holder.
    bundles = list[_BundleIndex]()
    for attempt in np.unique(granted).tolist():
        bundles.append(_index_bundle(slots_of(s, attempt), attempt, due[granted == attempt]))

    shares_of: dict[int, list[bytes]] = {position: [] for position in due.tolist()}
    due_items = set(slots.item[due].tolist())
    for _, place in present_reporters(s):
        items = items_of(s, place)
        # Reading a bundle is expensive, so reporters of other items are skipped.
        if due_items.isdisjoint(items):
            continue
        found = _find_shares(s, rows, place, items, bundles)
        if found is None:
            return None
        for position, encrypted_share in found:
            shares_of[position].append(encrypted_share)

    lists = two_stage_state(s).lists
    tasks = list[SlotTask]()
    for position, encrypted_shares in shares_of.items():
        item = int(slots.item[position])
        slot = int(slots.slot[position])
        tasks.append(SlotTask(item, slot, lists[item], _salt(s, item), tuple(encrypted_shares)))
    scope = current_scope(s)
    return SlotSumRequest(
        s.params.survey,
        scope.attempt,
        scope.formed,
        election_statement(s).signed,
        scope.gone,
        scope.members,
        tuple(tasks),
    )


@dataclass(frozen=True)
class _BundleIndex:
    """Where the due shares are in the bundles of one attempt.

    A bundle has the shares of all slots that got a holder in its attempt, item by item.

    Attributes:
        attempt: of the bundles
        sizes: for each item the number of slots that got a holder
        due: item -> (position of a due slot, its rank among those slots of the item)
    """

    attempt: int
    sizes: list[int]
    due: dict[int, list[tuple[int, int]]]


def _index_bundle(slots: Slots, attempt: int, due: Ints) -> _BundleIndex:
    """Index the bundles of an attempt, in which these slots got their holders."""
    granted = np.flatnonzero(slots.granted == attempt)
    sizes = np.bincount(slots.item[granted], minlength=int(slots.item[-1]) + 1)
    before = np.cumsum(sizes) - sizes
    ranks = dict[int, list[tuple[int, int]]]()
    for position in np.intersect1d(due, granted).tolist():
        item = int(slots.item[position])
        rank = int(np.searchsorted(granted, position) - before[item])
        ranks.setdefault(item, []).append((position, rank))
    return _BundleIndex(attempt, sizes.tolist(), ranks)


def _find_shares(
    s: Coordinator,
    rows: StepRows,
    place: int,
    items: Sequence[int],
    bundles: Sequence[_BundleIndex],
) -> list[tuple[int, bytes]] | None:
    """(position, encrypted share) of one reporter for the due slots; None if a bundle is lost.

    The share for a slot is in the bundle of the attempt in which its holder got it.
    """
    found = list[tuple[int, bytes]]()
    for bundle in bundles:
        sent = rows.uploads.get((SlotBundle.tag, bundle.attempt, place))
        encrypted_shares = () if sent is None else sent.encrypted_shares
        # A stored bundle of another size is damaged: its shares would go to the wrong slots.
        if len(encrypted_shares) != sum(bundle.sizes[item] for item in items):
            return None
        first = 0
        for item in items:
            for position, rank in bundle.due.get(item, ()):
                found.append((position, encrypted_shares[first + rank]))
            first += bundle.sizes[item]
    return found


# --- the manifest and the one sum -----------------------------------------------------------------


def current_helper_sums(s: Coordinator) -> list[HelperSums]:
    """The sums that every helper owes over the present set."""
    return list(sums_by_helper(ballot_of(s), slots_of(s, s.attempt), current_scope(s)))


def item_totals(s: Coordinator, rows: StepRows) -> Residues:
    """The masked sums of all slots, added up item by item."""
    q = s.params.q
    slots = slots_of(s, s.attempt)
    totals = np.zeros(s.params.N, dtype=dtype_for(q))
    for helper in current_helper_sums(s):
        vector = rows.uploads[SlotSums.tag, helper.digest, helper.holder].vector
        (sums,), _ = unpack_rows([vector], q, len(helper.due))
        # Nobody holds two slots of one item, so no index occurs twice here.
        items = slots.item[helper.due]
        totals[items] = add(totals[items], sums, q)
    return totals


def manifest_members(s: Coordinator, manifest: TwoStageManifest) -> tuple[int, ...]:
    """The places of the reporters in a manifest."""
    order = two_stage_state(s).order
    numbers = members_of(manifest.members, len(order)) or ()
    return tuple(sorted(order[number] for number in numbers))


def reporter_entries(s: Coordinator) -> tuple[Entry, ...]:
    """The present reporters as the result names them: by their keys alone."""
    if two_stage_state(s).election is None:
        return ()
    keys = ballot_of(s).keys
    return tuple((ANONYMOUS_ID, keys[number]) for number, _ in present_reporters(s))
