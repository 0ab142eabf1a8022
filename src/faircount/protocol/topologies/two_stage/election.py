"""The election of TSS and TSS': who holds which slot of which item, drawn by everybody from what S2 signed.

    S1     fixes the eligible users with the keys under which they report, by number; the m_j; the lists  -> S2
    S2     one key of each, as invitations vouch; first write wins; signs all with its committed value   -> S1, users
    all    for every item an order of the eligible users; the first m'_j hold its slots, the others stand by

The order of an item depends on S2's value and the roster alone, never on what anybody reports: helpers are independent
of the A_i. Whoever vanishes is followed, slot by slot, by the next of the item's order. So nobody ever holds two slots
of one item, and phi colluding users hold shares of at most phi of its phi + 1 or more slots, replacements included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import groupby, pairwise

import numpy as np

from faircount.core.arrays import Ints
from faircount.core.entropy import fill_from, key_stream
from faircount.mechanisms.two_stage import reports_sets
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_stage.messages import Election, Gone
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import labelled, members_of
from faircount.protocol.wire.messages import Reason, Rejected, Signed, rejected
from faircount.protocol.wire.signing import unwrap
from faircount.sharing.keys import Purpose, key_info

TAG = 16
"""Bytes of the tags by which an item's order is sorted."""


@dataclass(frozen=True)
class Slots:
    """Every slot in the order of a claim, by item and then slot: who holds it, and from which attempt on."""

    item: Ints
    slot: Ints
    holder: Ints
    granted: Ints

    def __len__(self) -> int:
        return len(self.item)

    def owed(self, items: Sequence[int], attempt: int) -> Ints:
        """Positions of the slots of these items that have a new holder in this attempt: their shares are due."""
        return np.flatnonzero((self.granted == attempt) & np.isin(self.item, items))

    def due(self, holder: int, formed: int, attempt: int) -> Ints:
        """Positions of the slots whose sums a holder owes in this attempt, the set being formed in an earlier one.

        A slot's sum is due in the first attempt in which both the set and its holder are the present ones.
        """
        return np.flatnonzero((self.holder == holder) & (np.maximum(self.granted, formed) == attempt))


@dataclass(frozen=True)
class Ballot:
    """An election as drawn. `orders[j]` has all eligible users in the order of item j, of whom slots[j] hold slots."""

    hash: bytes  # of what S2 signed
    eligible: tuple[int, ...]
    keys: tuple[bytes, ...] = field(repr=False)  # of the reporters, by number
    reporters: tuple[int, ...]  # m_j
    lists: tuple[bytes, ...] = field(repr=False)  # the salted root of each item's list
    slots: tuple[int, ...]  # m'_j
    orders: Ints = field(repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.hash)

    def after(self, gone: tuple[Gone, ...]) -> Slots | None:
        """Who holds what once these have vanished; None unless the list is canonical and somebody is left to step in.

        Attempt by attempt, item by item, slot by slot: the next of the item's order who has not vanished.
        """
        return _after(self, gone)

    def upto(self, gone: tuple[Gone, ...], attempt: int) -> Slots | None:
        """The same as it was in an earlier attempt."""
        return self.after(tuple(each for each in gone if each.attempt <= attempt))


def helpers(params: SurveyParameters, eligible: int, reporters: Sequence[int]) -> tuple[int, ...]:
    """m'_j = min(set size, max(phi + 1, m_j)) for every item; phi + 1 where the parameters say k = phi + 1."""
    return tuple(min(eligible, params.k or max(params.phi + 1, m)) for m in reporters)


@lru_cache(maxsize=8)
def orders(revealed: bytes, digest: bytes, items: int, eligible: tuple[int, ...]) -> Ints:
    """Row j: the eligible users in the order of item j, ascending by tag, and by place where tags are equal.

    The tag of place i is the i-th 16 bytes of the AES-256-CTR key stream under a key made from the revealed value, the
    roster's digest and j: a tag does not depend on who else is eligible.
    """
    places, tags = np.array(eligible, dtype=np.int64), np.empty((max(eligible) + 1, TAG), dtype=np.uint8)
    rows = np.empty((items, places.size), dtype=np.int64)
    for item in range(items):
        fill_from(key_stream(labelled(b"election", revealed, digest, item.to_bytes(4, "big"))), tags.reshape(-1))
        words = tags.view(">u8")[places]
        rows[item] = places[np.lexsort((words[:, 1], words[:, 0]))]
    rows.flags.writeable = False  # it is shared by everybody who asks
    return rows


@lru_cache(maxsize=8)
def draw(params: SurveyParameters, n: int, election: Election) -> Ballot:
    """The ballot of an election that `tally_problem` has nothing against."""
    eligible = members_of(election.eligible, n) or ()
    return Ballot(
        hash=sha256(encode(election)).digest(),
        eligible=eligible,
        keys=election.keys,
        reporters=election.reporters,
        lists=election.lists,
        slots=helpers(params, len(eligible), election.reporters),
        orders=orders(election.revealed, election.digest, params.N, eligible),
    )


def tally_problem(params: SurveyParameters, n: int, election: Election) -> Rejected | None:
    """What is wrong with an election's users and numbers; every eligible user reports exactly M items."""
    eligible, reporters = members_of(election.eligible, n), election.reporters
    if eligible is None or not len(reporters) == len(election.lists) == params.N:
        return rejected(Reason.MALFORMED, "an election names users of the roster, a number and a list for every item")
    if len(eligible) < params.minimum:
        return rejected(Reason.TOO_FEW, f"{len(eligible)} users indicated, {params.minimum} are needed")
    if len(election.keys) != len(eligible) or len(set(election.keys)) != len(eligible):
        return rejected(Reason.MALFORMED, "every eligible user has one key, and nobody else's")
    reported = reports_sets(params.mechanism).reported
    if max(reporters) > len(eligible) or sum(reporters) != reported * len(eligible):
        return rejected(Reason.MALFORMED, f"{len(eligible)} users who report {reported} items each do not fit")
    return None


@lru_cache(maxsize=8)
def verify_election(params: SurveyParameters, n: int, digest: bytes, signed: Signed) -> Ballot | Rejected:
    """The ballot that S2 signed for this roster, if it revealed what it had committed to.

    Cached, as `orders` and `draw` are, for surveys played in memory, where everybody checks the same one.
    """
    election = unwrap(params.keys.s2, Party.S2, signed)
    if not isinstance(election, Election) or election.survey != params.survey:
        return rejected(Reason.UNSIGNED, "S2 did not sign this election")
    if election.digest != digest:
        return rejected(Reason.WRONG_DIGEST, "the election was held for another roster")
    if sha256(election.revealed).digest() != params.keys.s2_commitment:
        return rejected(Reason.WRONG_DIGEST, "S2 revealed another value than it had committed to")
    return tally_problem(params, n, election) or draw(params, n, election)


@lru_cache(maxsize=32)
def _after(ballot: Ballot, gone: tuple[Gone, ...]) -> Slots | None:
    if not _canonical(ballot, gone):
        return None
    counts = np.array(ballot.slots, dtype=np.int64)
    item = np.repeat(np.arange(counts.size), counts)
    slot = np.arange(item.size) - np.repeat(np.cumsum(counts) - counts, counts)
    holder, granted = ballot.orders[item, slot], np.ones(item.size, dtype=np.int64)
    standby, vanished = list(ballot.slots), set[int]()
    for attempt, leaving in groupby(gone, key=lambda each: each.attempt):
        vanished |= {each.index for each in leaving}
        for at in np.flatnonzero(np.isin(holder, list(vanished))).tolist():
            j = int(item[at])
            standby[j] = _next(ballot, j, standby[j], vanished)
            if standby[j] > len(ballot.eligible):
                return None
            holder[at], granted[at] = ballot.orders[j, standby[j] - 1], attempt
    return Slots(item, slot, holder, granted)


def _next(ballot: Ballot, item: int, used: int, vanished: set[int]) -> int:
    """How much of an item's order is used up once the next who is still here steps in; too much if nobody is left."""
    while used < len(ballot.eligible) and int(ballot.orders[item, used]) in vanished:
        used += 1
    return used + 1


def _canonical(ballot: Ballot, gone: tuple[Gone, ...]) -> bool:
    """Ascending by attempt and place, nobody twice, only eligible users, from the second attempt on."""
    steps = [(each.attempt, each.index) for each in gone]
    places = {index for _, index in steps}
    known = places <= set(ballot.eligible) and len(places) == len(steps)
    return known and all(a < b for a, b in pairwise(steps)) and all(attempt >= 2 for attempt, _ in steps)


def share_info(params: SurveyParameters, ballot: Ballot, slots: Slots, at: int, number: int) -> bytes:
    """What binds the key of a share: the reporter's number, the holder, the election and the slot."""
    where = (int(each[at]).to_bytes(4, "big") for each in (slots.item, slots.slot))
    context = labelled(b"slot", ballot.hash, *where)
    return key_info(Purpose.TSS_SHARE, params.survey, 0, number, int(slots.holder[at]), context)
