"""The election of TSS and TSS': who holds which slot of which item.

    coordinator   fixes the eligible participants with their reporting keys, by number, the m_j
                  and the lists                                            -> aggregator
    aggregator    checks that the invitations authenticate the keys; accepts the first request
                  only; signs it with its committed value                  -> coordinator, clients
    everybody     derives for every item an order of the eligible participants: the first m'_j
                  hold its slots, the others wait to take over

The order of an item depends on the aggregator's value and the roster alone, never on what anybody
reports, so helpers are independent of the A_i. A helper that vanishes is followed, slot by slot, by
the next in the item's order. So nobody ever holds two slots of one item, and phi colluding
participants hold shares of at most phi of its phi + 1 or more slots, replacements included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, pairwise

import numpy as np

from faircount.core.arrays import Ints
from faircount.core.entropy import fill_from, key_stream
from faircount.mechanisms.two_stage import as_two_stage
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_stage.messages import Election, VanishedHelper
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import members_of, tagged_hash
from faircount.protocol.wire.messages import Reason, Rejection, Signed, reject
from faircount.protocol.wire.signing import verify_message
from faircount.sharing.keys import Purpose, key_info

TAG_BYTES = 16
"""Length of the tags by which an item's order is sorted."""


@dataclass(frozen=True)
class Slots:
    """Every slot in the order of a manifest, by item and then slot.

    `holder` says who holds it, `granted` from which attempt on.
    """

    item: Ints
    slot: Ints
    holder: Ints
    granted: Ints

    def __len__(self) -> int:
        return len(self.item)

    def find_owed(self, items: Sequence[int], attempt: int) -> Ints:
        """Positions of the slots of these items that get a holder in this attempt.

        Their shares are due from the reporters of the items.
        """
        return np.flatnonzero((self.granted == attempt) & np.isin(self.item, items))

    def due(self, holder: int, formed: int, attempt: int) -> Ints:
        """Positions of the slots whose sums a holder owes in this attempt.

        A sum is due in the first attempt in which both the slot's holder and the set of reporters,
        formed in attempt `formed`, are the present ones.
        """
        return np.flatnonzero(
            (self.holder == holder) & (np.maximum(self.granted, formed) == attempt)
        )


@dataclass(frozen=True)
class Ballot:
    """An election as derived from what the aggregator signed.

    Attributes:
        hash: of the signed election
        eligible: places of the participants who may hold slots
        keys: reporting keys, by number
        reporters: m_j, the number of reporters of each item
        lists: salted root of each item's list
        slots: m'_j, the number of slots of each item
        orders: row j has all eligible places in the order of item j; the first slots[j] hold slots
    """

    hash: bytes
    eligible: tuple[int, ...]
    keys: tuple[bytes, ...] = field(repr=False)
    reporters: tuple[int, ...]
    lists: tuple[bytes, ...] = field(repr=False)
    slots: tuple[int, ...]
    orders: Ints = field(repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.hash)

    def after(self, gone: tuple[VanishedHelper, ...]) -> Slots | None:
        """Who holds what once these helpers have vanished.

        Attempt by attempt, item by item, slot by slot, the next in the item's order who has not
        vanished takes over. None unless the list is canonical and somebody is left for each slot.
        """
        return _assign_slots(self, gone)

    def upto(self, gone: tuple[VanishedHelper, ...], attempt: int) -> Slots | None:
        """The same as it was in an earlier attempt."""
        return self.after(tuple(helper for helper in gone if helper.attempt <= attempt))


def helper_counts(
    params: SurveyParameters, eligible: int, reporters: Sequence[int]
) -> tuple[int, ...]:
    """m'_j = min(set size, max(phi + 1, m_j)) for every item; k where the parameters give it."""
    return tuple(min(eligible, params.k or max(params.phi + 1, m)) for m in reporters)


@lru_cache(maxsize=8)
def draw_orders(revealed: bytes, digest: bytes, items: int, eligible: tuple[int, ...]) -> Ints:
    """Row j: the eligible places in the order of item j, by tag, and by place where tags agree.

    The tag of place i is the i-th 16 bytes of the AES-256-CTR key stream under a key made from the
    revealed value, the roster's digest and j: a tag does not depend on who else is eligible.
    """
    places = np.array(eligible, dtype=np.int64)
    # One tag for every place up to the largest, so that a tag depends on its place alone.
    tags = np.empty((max(eligible) + 1, TAG_BYTES), dtype=np.uint8)
    orders = np.empty((items, places.size), dtype=np.int64)
    for item in range(items):
        key = tagged_hash(b"election", revealed, digest, item.to_bytes(4, "big"))
        fill_from(key_stream(key), tags.reshape(-1))
        # A tag is two big-endian halves. The sort is stable, and `places` ascend.
        halves = tags.view(">u8")[places]
        orders[item] = places[np.lexsort((halves[:, 1], halves[:, 0]))]
    # The cache shares the array between all callers.
    orders.flags.writeable = False
    return orders


@lru_cache(maxsize=8)
def draw_ballot(params: SurveyParameters, n: int, election: Election) -> Ballot:
    """The ballot of an election in which `tally_problem` finds no fault."""
    eligible = members_of(election.eligible, n) or ()
    return Ballot(
        hash=sha256(encode(election)).digest(),
        eligible=eligible,
        keys=election.keys,
        reporters=election.reporters,
        lists=election.lists,
        slots=helper_counts(params, len(eligible), election.reporters),
        orders=draw_orders(election.revealed, election.digest, params.N, eligible),
    )


def tally_problem(params: SurveyParameters, n: int, election: Election) -> Rejection | None:
    """What is wrong with an election; every participant reports the same number of items."""
    # The lengths come first: a ballot is indexed by place and by item.
    eligible = members_of(election.eligible, n)
    reporters = election.reporters
    if eligible is None or not len(reporters) == len(election.lists) == params.N:
        return reject(
            Reason.MALFORMED,
            "an election names participants of the roster, a number and a list for every item",
        )
    if len(eligible) < params.minimum:
        return reject(
            Reason.TOO_FEW, f"{len(eligible)} participants indicated, {params.minimum} are needed"
        )
    # A key that occurs twice would let one reporter answer under two numbers.
    if len(election.keys) != len(eligible) or len(set(election.keys)) != len(eligible):
        return reject(Reason.MALFORMED, "every eligible user has one key, and nobody else's")
    reported = as_two_stage(params.mechanism).reported_items
    # check: counts-fit - the coordinator makes up counts to steer who is elected
    if max(reporters) > len(eligible) or sum(reporters) != reported * len(eligible):
        return reject(
            Reason.MALFORMED,
            f"{len(eligible)} participants who report {reported} items each do not fit",
        )
    return None


@lru_cache(maxsize=8)
def verify_election(
    params: SurveyParameters, n: int, digest: bytes, signed: Signed
) -> Ballot | Rejection:
    """The ballot that the aggregator signed for this roster, if it opens the commitment.

    Cached, as `draw_orders` and `draw_ballot` are, for simulations, in which all clients check the
    same one.
    """
    election = verify_message(params.keys.aggregator, Party.AGGREGATOR, signed)
    if not isinstance(election, Election) or election.survey != params.survey:
        return reject(Reason.UNSIGNED, "The aggregator did not sign this election")
    if election.digest != digest:
        return reject(Reason.WRONG_DIGEST, "the election was held for another roster")
    # check: election-value - the aggregator picks the helpers by choosing its value late
    if sha256(election.revealed).digest() != params.keys.aggregator_commitment:
        return reject(
            Reason.WRONG_DIGEST, "The aggregator revealed another value than it had committed to"
        )
    return tally_problem(params, n, election) or draw_ballot(params, n, election)


@lru_cache(maxsize=32)
def _assign_slots(ballot: Ballot, gone: tuple[VanishedHelper, ...]) -> Slots | None:
    if not _is_canonical(ballot, gone):
        return None
    counts = np.array(ballot.slots, dtype=np.int64)
    item = np.repeat(np.arange(counts.size), counts)
    slot = np.arange(item.size) - np.repeat(np.cumsum(counts) - counts, counts)
    # Before anybody vanishes, the first in the order of an item hold its slots.
    holder = ballot.orders[item, slot]
    granted = np.ones(item.size, dtype=np.int64)
    # How far the order of each item is used up.
    used = list(ballot.slots)
    # Attempt by attempt, because who takes over depends on who had vanished until then.
    vanished = set[int]()
    for attempt, leaving in groupby(gone, key=lambda helper: helper.attempt):
        vanished |= {helper.index for helper in leaving}
        for position in np.flatnonzero(np.isin(holder, list(vanished))).tolist():
            j = int(item[position])
            used[j] = _use_next(ballot, j, used[j], vanished)
            # The order is used up: nobody is left to hold this slot.
            if used[j] > len(ballot.eligible):
                return None
            holder[position] = ballot.orders[j, used[j] - 1]
            granted[position] = attempt
    return Slots(item, slot, holder, granted)


def _use_next(ballot: Ballot, item: int, used: int, vanished: set[int]) -> int:
    """How far an item's order is used once the next user takes over; too far if nobody is left."""
    while used < len(ballot.eligible) and int(ballot.orders[item, used]) in vanished:
        used += 1
    return used + 1


def _is_canonical(ballot: Ballot, gone: tuple[VanishedHelper, ...]) -> bool:
    """Ascending by attempt and place, nobody twice, only eligible places, from attempt 2 on.

    Clients bind their keys to this list, so one history must have one form.
    """
    steps = [(helper.attempt, helper.index) for helper in gone]
    places = {helper.index for helper in gone}
    if not places <= set(ballot.eligible) or len(places) != len(steps):
        return False
    # In the first attempt nobody can have missed one yet.
    if any(helper.attempt < 2 for helper in gone):
        return False
    return all(first < second for first, second in pairwise(steps))


def share_info(
    params: SurveyParameters, ballot: Ballot, slots: Slots, position: int, number: int
) -> bytes:
    """Key info of a share: it binds the reporter's number, the holder, election and slot."""
    item = int(slots.item[position]).to_bytes(4, "big")
    slot = int(slots.slot[position]).to_bytes(4, "big")
    # A share that is encrypted for one slot cannot be used in another one.
    context = tagged_hash(b"slot", ballot.hash, item, slot)
    holder = int(slots.holder[position])
    return key_info(Purpose.TSS_SHARE, params.survey, 0, number, holder, context)
