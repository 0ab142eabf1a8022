"""A user of TSS and TSS': it reports the items of its set A_i, and may be elected to add up the shares of others.

    indicate       coin, A_i and bits drawn once; A_i, and the key under which it reports                 -> S1
    report         m'_j shares of each reported bit, each sealed to the holder of its slot                -> S1, relayed
                   a slot taken over by another user: the same share again, sealed to that one
    add_up         the shares of its slots, over one set of reporters; the sums under a mask of its own   -> S1
                   the seed of that mask, sealed to S2                                                  -> S1, relayed

The sealed shares carry a number that S1 gave and a key made for this survey only: helpers do not learn whose they are.
A reporter shares only if it is on the list of each of its items, a helper adds up all who are listed and present
(`lists`): so S1 cannot choose whose bits are in a sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.values import ArrayValue
from faircount.mechanisms.two_stage import reports_sets
from faircount.protocol.roles.client import Device, UserState, state_of
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.topologies.peers.client import PeersClient
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.peers.self_mask import Round, hidden
from faircount.protocol.topologies.two_stage.calls import Called
from faircount.protocol.topologies.two_stage.election import Ballot, Slots, share_info, verify_election
from faircount.protocol.topologies.two_stage.lists import is_listed, list_root
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
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Reason, Rejected, Signed, rejected
from faircount.protocol.wire.packed_rows import pack_rows, unpack_rows
from faircount.protocol.wire.sealing import OVERHEAD, KeyPair
from faircount.sharing.additive import split
from faircount.sharing.field import dtype_for, sum_rows

NOBODY = bytes(16)
"""Instead of a user id in the published tree: reporters are known by their keys."""

REPORTING = b"report"
"""In front of what an invitation seals for a key under which its holder reports."""


@dataclass(frozen=True, eq=False)
class Participant(ArrayValue, UserState):
    """A user who has drawn its response. All of it is kept before anything is sent; lost state is a dropout."""

    stored_version = 2
    member: Member
    items: tuple[int, ...] = field(repr=False)  # A_i
    bits: Residues = field(repr=False)  # of those items
    reporting_key: KeyPair = field(repr=False)  # under which it reports
    indicator: Indicator = field(repr=False)
    election: bytes = b""  # hash of the one that it took part in
    gone: tuple[Gone, ...] = ()
    shares: Residues | None = field(default=None, repr=False)  # of every slot of every item reported, in order
    bundles: tuple[Bundle, ...] = field(default=(), repr=False)
    summed: tuple[Called, ...] = field(default=(), repr=False)  # what it was called for
    bodies: tuple[SlotSums | SlotComplaint, ...] = field(default=(), repr=False)


def indicate(member: Member, invitation: Invitation, answer: int, entropy: Entropy) -> Participant:
    """Draw coin, set and bits, once; `answer` is a position in the item list (Alg. 3, lines 2 to 9)."""
    if member.index < 0:
        raise ProtocolError("verify the roster of a two-stage survey before indicating")
    drawn = reports_sets(member.params.mechanism).respond_as(member.index, answer, entropy)
    items = tuple(np.flatnonzero(drawn.indicators[0]).tolist())
    return prepare(member, invitation, items, drawn.bits[0, list(items)], entropy)


def prepare(
    member: Member, invitation: Invitation, items: tuple[int, ...], bits: Residues, entropy: Entropy
) -> Participant:
    """With set and bits drawn before; `entropy` is for the key under which it reports."""
    own, marks = member.sealing.keypair(entropy), bitmap(items, member.params.N)
    sealed = own.public, invitation.seal(own.public, REPORTING)
    body = Indicator(member.params.survey, member.index, member.credential, marks, *sealed)
    return Participant(member, items, bits, own, body)


def _elected(user: Participant, signed: Signed, gone: Sequence[Gone]) -> Ballot | Rejected:
    """The one election of this survey, with this user in it and nobody's slots moved who was not said to be gone."""
    member = user.member
    ballot = verify_election(member.params, member.n, member.digest, signed)
    if isinstance(ballot, Rejected):
        return ballot
    if user.election not in (b"", ballot.hash):
        return rejected(Reason.CONFLICT, "two elections in one survey: do not go on")
    if member.index not in ballot.eligible or user.reporting_key.public not in ballot.keys:
        return rejected(Reason.WRONG_DIGEST, "this election does not count this user under its key")
    if len(gone) > len(ballot.eligible):
        return rejected(Reason.MALFORMED, "more have vanished than were elected")
    shorter = min(len(gone), len(user.gone))
    if gone[:shorter] != user.gone[:shorter]:
        return rejected(Reason.CONFLICT, "two lists of who has vanished: do not go on")
    return ballot


def _longer(one: tuple[Gone, ...], other: tuple[Gone, ...]) -> tuple[Gone, ...]:
    return one if len(one) > len(other) else other


# --- reporting ----------------------------------------------------------------------------------------------------


def report(user: Participant, call: Assignment, entropy: Entropy) -> tuple[Participant, Bundle | Rejected]:
    """The sealed shares that an attempt needs (Alg. 3, lines 15 to 18). Asked again: the same bytes."""
    ballot = _elected(user, call.election, call.gone)
    if isinstance(ballot, Rejected):
        return user, ballot
    gone = tuple(call.gone)
    slots = ballot.after(gone)
    problem = _report_problem(user, call, slots) or _list_problem(user, call, ballot)
    known = next((each for each in user.bundles if each.attempt == call.attempt), None)
    if problem is not None or slots is None or known is not None:
        return user, problem or known or rejected(Reason.MALFORMED, "nobody is left to hold some slot")
    if user.shares is None:
        user = replace(user, election=ballot.hash, shares=_split(user, ballot, entropy))
    body = _bundle(user, ballot, slots, call.attempt, entropy)
    return replace(user, gone=_longer(user.gone, gone), bundles=(*user.bundles, body)), body


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


def _list_problem(user: Participant, call: Assignment, ballot: Ballot) -> Rejected | None:
    """Before it shares for the first time: is it on the list of each of its items? Else it would be alone in a sum."""
    if user.shares is not None:
        return None
    number = ballot.keys.index(user.reporting_key.public)
    sizes = [(ballot.reporters[j], ballot.lists[j]) for j in user.items]
    if len(call.proofs) != len(sizes) or not all(
        is_listed(proof, number, *each) for proof, each in zip(call.proofs, sizes, strict=True)
    ):
        return rejected(Reason.WRONG_DIGEST, "this user is not on the list of each of its items: do not go on")
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
    blobs, number = [], ballot.keys.index(user.reporting_key.public)
    for at, plain in zip(owed.tolist(), packed, strict=True):
        secret, info = secrets[int(slots.holder[at])], share_info(member.params, ballot, slots, at, number)
        # no key with this holder: it will complain
        sealed = member.sealing.seal(secret, member.digest, info, plain, entropy) if secret else None
        blobs.append(sealed or bytes(len(plain) + OVERHEAD))
    return Bundle(member.params.survey, member.index, member.credential, attempt, tuple(blobs))


# --- helping ------------------------------------------------------------------------------------------------------


def add_up(
    user: Participant, call: SumCall, entropy: Entropy
) -> tuple[Participant, SlotSums | SlotComplaint | Rejected]:
    """Each slot's sum (Alg. 3, line 20), or a complaint about shares that do not open. Asked again: the same."""
    ballot = _elected(user, call.election, call.gone)
    if isinstance(ballot, Rejected):
        return user, ballot
    called = Called.by(call)
    known = next((i for i, each in enumerate(user.summed) if each.attempt == call.attempt), None)
    if known is not None:
        same = user.summed[known] == called
        return user, user.bodies[known] if same else rejected(Reason.CONFLICT, "two calls in one attempt: do not go on")
    slots, numbers = ballot.after(called.gone), members_of(call.members, len(ballot.eligible))
    problem = _call_problem(user, call, ballot, slots, numbers)
    if problem is not None or slots is None or numbers is None:
        return user, problem or rejected(Reason.MALFORMED, "this call is not about slots and reporters of the election")
    body = _sums(user, call, ballot, slots, numbers, entropy)
    gone, summed = _longer(user.gone, called.gone), (*user.summed, called)
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
    if not wanted or len(call.tasks) != len(wanted) or [(each.item, each.slot) for each in call.tasks] != wanted:
        return rejected(Reason.MALFORMED, "these are not the slots that this user holds")
    if not all(_is_whole(each, ballot, numbers) for each in call.tasks):
        return rejected(Reason.WRONG_DIGEST, "these are not the shares of all who report an item and are present")
    return None


def _shrinks(last: Called, call: SumCall, size: int) -> bool:
    before, after = members_of(last.members, size) or (), members_of(call.members, size) or ()
    same_set = (before == after) == (last.formed == call.formed)
    return call.attempt > last.attempt and same_set and set(after) <= set(before)


def _is_whole(task: Task, ballot: Ballot, present: Sequence[int]) -> bool:
    """Whether the list is the one that was fixed before the election, with a share from everybody present on it."""
    listed = members_of(task.listed, len(ballot.eligible))
    if listed is None or len(listed) != ballot.reporters[task.item]:
        return False
    whole = list_root(task.salt, listed) == ballot.lists[task.item]
    return whole and len(task.parcels) == len(_senders(task, ballot, present))


def _senders(task: Task, ballot: Ballot, present: Sequence[int]) -> list[int]:
    """The numbers of those whose shares come with a task, ascending."""
    return sorted({*(members_of(task.listed, len(ballot.eligible)) or ())} & {*present})


def _sums(
    user: Participant, call: SumCall, ballot: Ballot, slots: Slots, present: Sequence[int], entropy: Entropy
) -> SlotSums | SlotComplaint:
    member, params = user.member, user.member.params
    due, closed = slots.due(member.index, call.formed, call.attempt), set[int]()
    totals, secrets = np.zeros(len(due), dtype=dtype_for(params.q)), dict[int, bytes]()
    for i, (task, at) in enumerate(zip(call.tasks, due.tolist(), strict=True)):
        senders = _senders(task, ballot, present)
        secrets |= {j: member.sealing.agree(member.keys, ballot.keys[j]) or b"" for j in senders if j not in secrets}
        pairs = zip(senders, task.parcels, strict=True)
        plain = [_opened(user, share_info(params, ballot, slots, at, j), secrets[j], blob) for j, blob in pairs]
        rows, fine = unpack_rows(plain, params.q, 1)
        closed |= {j for j, good in zip(senders, fine, strict=True) if not good}
        totals[i] = sum_rows(rows, params.q)[0]
    if closed:
        return SlotComplaint(params.survey, member.index, member.credential, call.attempt, tuple(sorted(closed)))
    return _under_mask(user, call, ballot, totals, entropy)


def _under_mask(user: Participant, call: SumCall, ballot: Ballot, totals: Residues, entropy: Entropy) -> SlotSums:
    member, digest = user.member, Called.by(call).digest(ballot)
    now = Round(member.params, member.digest, call.attempt, digest)
    made_for = call.attempt, digest
    return SlotSums(call.survey, member.index, member.credential, *made_for, *hidden(member, now, totals, entropy))


def _opened(user: Participant, info: bytes, secret: bytes, blob: bytes) -> bytes:
    return (user.member.sealing.open(secret, user.member.digest, info, blob) or b"") if secret else b""


class TwoStageClient(PeersClient):
    """An indicator, shares for the elected users, sums of the slots that it was elected for."""

    calls = {Assignment: report, SumCall: add_up}  # noqa: RUF012 - a table, never changed

    def drawn(self, device: Device, placed: Member, entropy: Entropy) -> Participant:
        """Coin, set and bits."""
        return indicate(placed, device.invitation, device.answer, entropy)

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
