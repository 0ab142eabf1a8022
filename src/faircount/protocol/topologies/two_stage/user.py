"""A user of TSS and TSS': it reports the items of its set A_i, and may be elected to add up the shares of others.

    indicate       coin, A_i and bits drawn once; A_i                                                      -> S1
    report         m'_j shares of each reported bit, each sealed to the holder of its slot                -> S1, relayed
                   a slot taken over by another user: the same share again, sealed to that one
    add_up         the shares of its slots, over one set of reporters; each slot's sum sealed to S2       -> S1, relayed

The sealed shares carry a number that S1 gave and a key made for this survey only: helpers do not learn whose they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import pairwise

import numpy as np

from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.values import ArrayValue
from faircount.mechanisms.two_stage import reports_sets
from faircount.protocol.roles.client import Device, UserState, state_of
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.topologies.peers.client import PeersClient
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.two_stage.election import Ballot, Slots, share_info, sum_info, verify_election
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Bundle,
    Gone,
    Indicator,
    SlotComplaint,
    SlotSums,
    SumCall,
    Task,
)
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Reason, Rejected, Signed, rejected
from faircount.protocol.wire.packed_rows import pack_rows, unpack_rows
from faircount.protocol.wire.sealing import OVERHEAD, KeyPair
from faircount.sharing.additive import split
from faircount.sharing.field import sum_rows
from faircount.sharing.packing import pack

NOBODY = bytes(16)
"""Instead of a user id in the published tree: reporters are known by their keys."""


@dataclass(frozen=True, eq=False)
class Participant(ArrayValue, UserState):
    """A user who has drawn its response. All of it is kept before anything is sent; lost state is a dropout."""

    stored_version = 1
    member: Member
    items: tuple[int, ...] = field(repr=False)  # A_i
    bits: Residues = field(repr=False)  # of those items
    reporting_key: KeyPair = field(repr=False)  # under which it reports
    indicator: Indicator = field(repr=False)
    election: bytes = b""  # hash of the one that it took part in
    number: int = -1
    gone: tuple[Gone, ...] = ()
    shares: Residues | None = field(default=None, repr=False)  # of every slot of every item reported, in order
    bundles: tuple[Bundle, ...] = field(default=(), repr=False)
    summed: tuple[SumCall, ...] = field(default=(), repr=False)  # what it was called for, without the parcels
    bodies: tuple[SlotSums | SlotComplaint, ...] = field(default=(), repr=False)


def indicate(member: Member, answer: int, entropy: Entropy) -> Participant:
    """Draw coin, set and bits, once; `answer` is a position in the item list (Alg. 3, lines 2 to 9)."""
    if member.index < 0:
        raise ProtocolError("verify the roster of a two-stage survey before indicating")
    drawn = reports_sets(member.params.mechanism).respond_as(member.index, answer, entropy)
    items = tuple(np.flatnonzero(drawn.indicators[0]).tolist())
    return prepare(member, items, drawn.bits[0, list(items)], entropy)


def prepare(member: Member, items: tuple[int, ...], bits: Residues, entropy: Entropy) -> Participant:
    """With set and bits drawn before; `entropy` is for the key under which it reports."""
    body = Indicator(member.params.survey, member.index, member.credential, bitmap(items, member.params.N))
    return Participant(member, items, bits, member.sealing.keypair(entropy), body)


def _elected(user: Participant, signed: Signed, gone: tuple[Gone, ...]) -> Ballot | Rejected:
    """The one election of this survey, with this user in it and nobody's slots moved who was not said to be gone."""
    member = user.member
    ballot = verify_election(member.params, member.n, member.digest, signed)
    if isinstance(ballot, Rejected):
        return ballot
    if user.election not in (b"", ballot.hash):
        return rejected(Reason.CONFLICT, "two elections in one survey: do not go on")
    if member.index not in ballot.eligible or not all(ballot.reporters[j] for j in user.items):
        return rejected(Reason.WRONG_DIGEST, "this election does not count this user's items")
    shorter = min(len(gone), len(user.gone))
    if gone[:shorter] != user.gone[:shorter]:
        return rejected(Reason.CONFLICT, "two lists of who has vanished: do not go on")
    return ballot


def _numbered(user: Participant, ballot: Ballot, number: int) -> Rejected | None:
    if user.number not in (-1, number) or number >= len(ballot.eligible):
        return rejected(Reason.CONFLICT, "a reporter has one number, below that of the eligible users")
    return None


def _longer(one: tuple[Gone, ...], other: tuple[Gone, ...]) -> tuple[Gone, ...]:
    return one if len(one) > len(other) else other


# --- reporting ----------------------------------------------------------------------------------------------------


def report(user: Participant, call: Assignment, entropy: Entropy) -> tuple[Participant, Bundle | Rejected]:
    """The sealed shares that an attempt needs (Alg. 3, lines 15 to 18). Asked again: the same bytes."""
    ballot = _elected(user, call.election, call.gone)
    if isinstance(ballot, Rejected):
        return user, ballot
    slots = ballot.after(call.gone)
    problem = _numbered(user, ballot, call.number) or _report_problem(user, call, slots)
    known = next((each for each in user.bundles if each.attempt == call.attempt), None)
    if problem is not None or slots is None or known is not None:
        return user, problem or known or rejected(Reason.MALFORMED, "nobody is left to hold some slot")
    if user.shares is None:
        user = replace(user, election=ballot.hash, number=call.number, shares=_split(user, ballot, entropy))
    body = _bundle(user, ballot, slots, call.attempt, entropy)
    return replace(user, gone=_longer(user.gone, call.gone), bundles=(*user.bundles, body)), body


def _report_problem(user: Participant, call: Assignment, slots: Slots | None) -> Rejected | None:
    if slots is None or any(each.attempt > call.attempt for each in call.gone):
        return rejected(Reason.MALFORMED, "this is no list of elected users who vanished")
    if not 1 <= call.attempt <= user.member.params.attempts:
        return rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {user.member.params.attempts}")
    if call.attempt > 1 and user.shares is None:
        return rejected(Reason.LATE, "this user did not share in the first attempt, so it is not in the set")
    if not slots.owed(user.items, call.attempt).size:
        return rejected(Reason.MALFORMED, "no slot of this user's items has a new holder")
    return None


def _split(user: Participant, ballot: Ballot, entropy: Entropy) -> Residues:
    """m'_j shares of each bit, drawn once."""
    q = user.member.params.q
    return np.concatenate(
        [split(bit, ballot.slots[j], q, entropy) for j, bit in zip(user.items, user.bits, strict=True)]
    )


def _bundle(user: Participant, ballot: Ballot, slots: Slots, attempt: int, entropy: Entropy) -> Bundle:
    member, owed = user.member, slots.owed(user.items, attempt)
    every = np.flatnonzero(np.isin(slots.item, user.items))  # the order of the shares
    if user.shares is None:
        raise ProtocolError("shares are drawn before they are sealed")
    packed = pack_rows(user.shares[np.searchsorted(every, owed)][:, None], member.params.q)
    secrets = {
        i: member.sealing.agree(user.reporting_key, member.roster[i].public_key)
        for i in set(slots.holder[owed].tolist())
    }
    blobs = []
    for at, plain in zip(owed.tolist(), packed, strict=True):
        secret, info = secrets[int(slots.holder[at])], share_info(member.params, ballot, slots, at, user.number)
        # no key with this holder: it will complain
        sealed = member.sealing.seal(secret, member.digest, info, plain, entropy) if secret else None
        blobs.append(sealed or bytes(len(plain) + OVERHEAD))
    return Bundle(
        member.params.survey, member.index, member.credential, attempt, user.reporting_key.public, tuple(blobs)
    )


# --- helping ------------------------------------------------------------------------------------------------------


def call_digest(call: SumCall) -> bytes:
    """Digest of what a call is about: attempt, election, slots and set; not of the shares that come with it."""
    return sha256(encode(replace(call, senders=(), tasks=()))).digest()


def add_up(
    user: Participant, call: SumCall, entropy: Entropy
) -> tuple[Participant, SlotSums | SlotComplaint | Rejected]:
    """Each slot's sum (Alg. 3, line 20), or a complaint about shares that do not open. Asked again: the same."""
    ballot = _elected(user, call.election, call.gone)
    if isinstance(ballot, Rejected):
        return user, ballot
    bare = replace(call, senders=(), tasks=())
    known = next((i for i, each in enumerate(user.summed) if each.attempt == call.attempt), None)
    if known is not None:
        same = user.summed[known] == bare
        return user, user.bodies[known] if same else rejected(Reason.CONFLICT, "two calls in one attempt: do not go on")
    slots, numbers = ballot.after(call.gone), members_of(call.members, len(ballot.eligible))
    problem = _call_problem(user, call, ballot, slots, numbers)
    if problem is not None or slots is None or numbers is None:
        return user, problem or rejected(Reason.MALFORMED, "this call is not about slots and reporters of the election")
    due = slots.due(user.member.index, call.formed, call.attempt)
    body = _sums(user, call, ballot, slots, due, ballot.set_digest(call.formed, numbers), entropy)
    gone, summed = _longer(user.gone, call.gone), (*user.summed, bare)
    return replace(user, election=ballot.hash, gone=gone, summed=summed, bodies=(*user.bodies, body)), body


def _call_problem(
    user: Participant, call: SumCall, ballot: Ballot, slots: Slots | None, numbers: tuple[int, ...] | None
) -> Rejected | None:
    params = user.member.params
    if slots is None or numbers is None or any(each.attempt > call.attempt for each in call.gone):
        return rejected(Reason.MALFORMED, "this call is not about slots and reporters of the election")
    if not 1 <= call.formed <= call.attempt <= params.attempts:
        return rejected(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {params.attempts}")
    if len(numbers) < params.minimum:
        return rejected(Reason.TOO_FEW, f"a sum over {len(numbers)} reporters: {params.minimum} are needed")
    if user.summed and not _shrinks(user.summed[-1], call, len(ballot.eligible)):
        return rejected(Reason.CONFLICT, "sets only shrink from one attempt to the next")
    wanted = [
        (int(slots.item[at]), int(slots.slot[at])) for at in slots.due(user.member.index, call.formed, call.attempt)
    ]
    if not wanted or [(each.item, each.slot) for each in call.tasks] != wanted:
        return rejected(Reason.MALFORMED, "these are not the slots that this user holds")
    keys = [each.number for each in call.senders]
    if not _ascending(keys) or not all(_parcels_fit(each, ballot, numbers, keys) for each in call.tasks):
        return rejected(Reason.MALFORMED, "shares come from reporters of the set, each once, ascending")
    return None


def _shrinks(last: SumCall, call: SumCall, size: int) -> bool:
    before, after = members_of(last.members, size) or (), members_of(call.members, size) or ()
    same_set = (before == after) == (last.formed == call.formed)
    return call.attempt > last.attempt and same_set and set(after) <= set(before)


def _parcels_fit(task: Task, ballot: Ballot, numbers: Sequence[int], keys: Sequence[int]) -> bool:
    senders = [each.number for each in task.parcels]
    return _ascending(senders) and len(senders) <= ballot.reporters[task.item] and set(senders) <= {*numbers} & {*keys}


def _ascending(numbers: Sequence[int]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


def _sums(
    user: Participant, call: SumCall, ballot: Ballot, slots: Slots, due: Ints, digest: bytes, entropy: Entropy
) -> SlotSums | SlotComplaint:
    member, params = user.member, user.member.params
    secrets = {each.number: member.sealing.agree(member.keys, each.public_key) for each in call.senders}
    totals, closed = [], set[int]()
    for task, at in zip(call.tasks, due.tolist(), strict=True):
        plain = [
            _opened(user, ballot, slots, at, each.number, secrets[each.number], each.blob) for each in task.parcels
        ]
        rows, fine = unpack_rows(plain, params.q, 1)
        closed |= {each.number for each, good in zip(task.parcels, fine, strict=True) if not good}
        totals.append(sum_rows(rows, params.q))
    if closed:
        return SlotComplaint(params.survey, member.index, member.credential, call.attempt, tuple(sorted(closed)))
    secret = member.sealing.agree(member.keys, params.keys.box)
    if secret is None:
        raise ProtocolError("S2's key cannot be used: do not go on, ask the owner")
    blobs = []
    for at, total in zip(due.tolist(), totals, strict=True):
        info = sum_info(params, digest, call.formed, slots, at)
        blobs.append(member.sealing.seal(secret, member.digest, info, pack(total, params.q), entropy))
    made_for = call.attempt, call_digest(call)
    return SlotSums(params.survey, member.index, member.credential, *made_for, tuple(blobs))


def _opened(
    user: Participant, ballot: Ballot, slots: Slots, at: int, number: int, secret: bytes | None, blob: bytes
) -> bytes:
    info = share_info(user.member.params, ballot, slots, at, number)
    return (user.member.sealing.open(secret, user.member.digest, info, blob) or b"") if secret else b""


class TwoStageClient(PeersClient):
    """An indicator, shares for the elected users, sums of the slots that it was elected for."""

    calls = {Assignment: report, SumCall: add_up}  # noqa: RUF012 - a table, never changed

    def drawn(self, device: Device, placed: Member, entropy: Entropy) -> Participant:
        """Coin, set and bits."""
        return indicate(placed, device.answer, entropy)

    def first_body(self, device: Device) -> Message:
        """The set of items that it reports."""
        participant: Participant = state_of(device, Participant)
        return participant.indicator

    def entry(self, device: Device) -> Entry:
        """Reporters are known by the key made for it, and by nothing else."""
        state = device.state
        return NOBODY, state.reporting_key.public if isinstance(state, Participant) else bytes(32)

    def counted_as(self, device: Device) -> dict[bytes, int | None]:
        """It is known by a key of its own, and counts only if its set contains its item."""
        state = device.state
        if not isinstance(state, Participant):
            return {}
        hit = state.bits.any() and device.answer in state.items
        return {state.reporting_key.public: device.answer if hit else None}
