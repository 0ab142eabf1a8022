"""The client of TSS and TSS': it reports the items of its set A_i, and may be elected as a helper.

    indicate   coin, A_i and bits, drawn once; sends A_i and its reporting key  -> coordinator
    share      m'_j shares of each reported bit, each encrypted to the holder of its slot
                                                                       -> coordinator, relayed
               for a slot that another user took over: the same share, encrypted to that one
    sum        the shares of its slots, over one set of reporters, under a fresh mask
                                                                       -> coordinator
               the seed of that mask, encrypted to the aggregator      -> coordinator, relayed

The encrypted shares carry a number from the coordinator and a key made for this survey only, so
helpers do not learn whose they are. A reporter shares only if it is on the list of each of its
items, and a helper sums all who are listed and present (`lists`): the coordinator cannot choose
whose bits are in a sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from faircount.core.arrays import ArrayValue, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.questions import Sheet
from faircount.mechanisms.two_stage import as_two_stage
from faircount.protocol.peers.client import PeersClient
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.self_mask import AttemptContext, mask_vector
from faircount.protocol.roles.client import ClientState, TopologyClientState, require_state
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.topologies.two_stage.election import (
    Ballot,
    Slots,
    share_info,
    verify_election,
)
from faircount.protocol.topologies.two_stage.lists import is_listed, list_root
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Indicator,
    SlotBundle,
    SlotComplaint,
    SlotSumRequest,
    SlotSums,
    SlotTask,
    VanishedHelper,
)
from faircount.protocol.topologies.two_stage.sum_requests import SumScope
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import OVERHEAD, KeyPair
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Reason, Rejection, Signed, reject
from faircount.protocol.wire.packed_rows import pack_rows, unpack_rows
from faircount.sharing.additive import split
from faircount.sharing.field import dtype_for, sum_rows

ANONYMOUS_ID = bytes(16)
"""In place of a user id in the published tree: reporters are known by their keys."""

REPORTING_LABEL = b"report"
"""Label of the MAC over a reporting key: without it an enrolment's MAC could be used again."""


@dataclass(frozen=True, eq=False)
class Participant(ArrayValue, TopologyClientState):
    """A client that has drawn its response. Stored before anything is sent; lost, it is a dropout.

    Attributes:
        member: the member as it enrolled
        items: A_i, the items that it reports
        bits: one for each of those items
        reporting_key: the key under which it reports
        indicator: the message that announces A_i
        election: hash of the one election that it takes part in
        gone: the longest list of vanished helpers that it has accepted
        shares: of every slot of every reported item, in that order
        bundles: its encrypted shares, one bundle for each attempt
        summed: scopes of the requests that it has answered as a helper
        first_messages: its answers to them
    """

    stored_tag = "two-stage-client"
    member: Member
    items: tuple[int, ...] = field(repr=False)
    bits: Residues = field(repr=False)
    reporting_key: KeyPair = field(repr=False)
    indicator: Indicator = field(repr=False)
    election: bytes = b""
    gone: tuple[VanishedHelper, ...] = ()
    shares: Residues | None = field(default=None, repr=False)
    bundles: tuple[SlotBundle, ...] = field(default=(), repr=False)
    summed: tuple[SumScope, ...] = field(default=(), repr=False)
    first_messages: tuple[SlotSums | SlotComplaint, ...] = field(default=(), repr=False)


def indicate(member: Member, invitation: Invitation, sheet: Sheet, entropy: Entropy) -> Participant:
    """Draw coin, set and bits, once (Algorithm 3, lines 2 to 9).

    `sheet` has the participant's answers, one per question.
    """
    if member.index < 0:
        raise ProtocolError("verify the roster of a two-stage survey before indicating")
    # Everything random about the response is drawn here, once, and stored before A_i is sent.
    drawn = as_two_stage(member.params.mechanism).respond_as(member.index, sheet, entropy)
    items = tuple(np.flatnonzero(drawn.indicators[0]).tolist())
    return make_report(member, invitation, items, drawn.bits[0, list(items)], entropy)


def make_report(
    member: Member, invitation: Invitation, items: tuple[int, ...], bits: Residues, entropy: Entropy
) -> Participant:
    """The same with set and bits drawn before; `entropy` is for the reporting key."""
    reporting_key = member.crypto.keypair(entropy)
    indicator = Indicator(
        member.params.survey,
        member.index,
        member.credential,
        bitmap(items, member.params.N),
        reporting_key.public,
        invitation.authenticate_key(reporting_key.public, REPORTING_LABEL),
    )
    return Participant(member, items, bits, reporting_key, indicator)


def _verify_ballot(
    user: Participant, signed: Signed, gone: Sequence[VanishedHelper]
) -> Ballot | Rejection:
    """The one election of this survey, if it includes this client and the same vanished helpers."""
    member = user.member
    ballot = verify_election(member.params, member.n, member.digest, signed)
    if isinstance(ballot, Rejection):
        return ballot
    # check: one-election - two elections give two sets of helpers, and two sums to compare
    if user.election not in (b"", ballot.hash):
        return reject(Reason.CONFLICT, "two elections in one survey: do not go on")
    if member.index not in ballot.eligible or user.reporting_key.public not in ballot.keys:
        return reject(Reason.WRONG_DIGEST, "this election does not count this user under its key")
    # check: vanished-length - the coordinator sends a list without end
    if len(gone) > len(ballot.eligible):
        return reject(Reason.MALFORMED, "more have vanished than were elected")
    shorter = min(len(gone), len(user.gone))
    # check: vanished-list-grows - two lists hand one slot to two successors
    if gone[:shorter] != user.gone[:shorter]:
        return reject(Reason.CONFLICT, "two lists of who has vanished: do not go on")
    return ballot


def _longer(
    one: tuple[VanishedHelper, ...], other: tuple[VanishedHelper, ...]
) -> tuple[VanishedHelper, ...]:
    return one if len(one) > len(other) else other


# --- reporting ------------------------------------------------------------------------------------


def send_shares(
    user: Participant, request: Assignment, entropy: Entropy
) -> tuple[Participant, SlotBundle | Rejection]:
    """The encrypted shares that an attempt needs (Algorithm 3, lines 15 to 18).

    The same request again gets the same bytes.
    """
    ballot = _verify_ballot(user, request.election, request.gone)
    if isinstance(ballot, Rejection):
        return user, ballot
    gone = tuple(request.gone)
    slots = ballot.after(gone)
    problem = (
        _assignment_problem(user, request, slots)
        # check: reporter-on-lists - left off the lists, a reporter's share stands alone
        or _list_problem(user, request, ballot)
    )
    known = next((sent for sent in user.bundles if sent.attempt == request.attempt), None)
    if problem is not None or slots is None or known is not None:
        return user, problem or known or reject(
            Reason.MALFORMED, "nobody is left to hold some slot"
        )
    # Drawn once: a successor gets the same share, so that all slots still add up to the bit.
    if user.shares is None:
        user = replace(user, election=ballot.hash, shares=_split(user, ballot, entropy))
    bundle = _encrypt_shares(user, ballot, slots, request.attempt, entropy)
    return replace(user, gone=_longer(user.gone, gone), bundles=(*user.bundles, bundle)), bundle


def _assignment_problem(
    user: Participant, request: Assignment, slots: Slots | None
) -> Rejection | None:
    if slots is None or any(helper.attempt > request.attempt for helper in request.gone):
        return reject(Reason.MALFORMED, "this is no list of helpers who vanished")
    if not 1 <= request.attempt <= user.member.params.attempts:
        return reject(
            Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {user.member.params.attempts}"
        )
    # Shares that are first drawn for a successor would not add up with those of other slots.
    if request.attempt > 1 and user.shares is None:
        return reject(
            Reason.LATE, "this user did not share in the first attempt, so it is not in the set"
        )
    if not slots.find_owed(user.items, request.attempt).size:
        return reject(Reason.MALFORMED, "no slot of this user's items has a new holder")
    return None


def _list_problem(user: Participant, request: Assignment, ballot: Ballot) -> Rejection | None:
    """Before it shares for the first time: is it on the list of each of its items?

    A reporter that is on no list would be alone in a sum.
    """
    if user.shares is not None:
        return None
    # The client finds its number by its key, and does not rely on the coordinator for it.
    number = ballot.keys.index(user.reporting_key.public)
    if len(request.proofs) == len(user.items) and all(
        is_listed(proof, number, ballot.reporters[j], ballot.lists[j])
        for j, proof in zip(user.items, request.proofs, strict=True)
    ):
        return None
    return reject(
        Reason.WRONG_DIGEST, "this user is not on the list of each of its items: do not go on"
    )


def _split(user: Participant, ballot: Ballot, entropy: Entropy) -> Residues:
    """m'_j shares of each bit, drawn once."""
    q = user.member.params.q
    shares = [
        split(bit, ballot.slots[j], q, entropy)
        for j, bit in zip(user.items, user.bits, strict=True)
    ]
    return np.concatenate(shares)


def _encrypt_shares(
    user: Participant, ballot: Ballot, slots: Slots, attempt: int, entropy: Entropy
) -> SlotBundle:
    member = user.member
    crypto = member.crypto
    if user.shares is None:
        raise ProtocolError("shares are drawn before they are encrypted")
    owed = slots.find_owed(user.items, attempt)
    # Shares are stored for all slots of the reported items, in the order of the slots.
    stored = np.flatnonzero(np.isin(slots.item, user.items))
    packed = pack_rows(user.shares[np.searchsorted(stored, owed)][:, None], member.params.q)
    secrets = {
        holder: crypto.agree(user.reporting_key, member.roster[holder].public_key)
        for holder in set(slots.holder[owed].tolist())
    }
    number = ballot.keys.index(user.reporting_key.public)
    encrypted_shares = []
    for position, plaintext in zip(owed.tolist(), packed, strict=True):
        secret = secrets[int(slots.holder[position])]
        if secret:
            info = share_info(member.params, ballot, slots, position, number)
            encrypted = crypto.encrypt(secret, member.digest, info, plaintext, entropy)
        else:
            # The holder's key is unusable: it cannot decrypt, and will complain.
            encrypted = bytes(len(plaintext) + OVERHEAD)
        encrypted_shares.append(encrypted)
    return SlotBundle(
        member.params.survey, member.index, member.credential, attempt, tuple(encrypted_shares)
    )


# --- helping --------------------------------------------------------------------------------------


def answer_sum_request(
    user: Participant, request: SlotSumRequest, entropy: Entropy
) -> tuple[Participant, SlotSums | SlotComplaint | Rejection]:
    """The sum of each slot (Algorithm 3, line 20), or a complaint about shares.

    The same request again gets the same message.
    """
    ballot = _verify_ballot(user, request.election, request.gone)
    if isinstance(ballot, Rejection):
        return user, ballot
    scope = SumScope.of(request)
    attempts = [answered.attempt for answered in user.summed]
    if request.attempt in attempts:
        known = attempts.index(request.attempt)
        # check: one-call-per-attempt - two sums of one attempt differ by one share
        same = user.summed[known] == scope
        return user, user.first_messages[known] if same else reject(
            Reason.CONFLICT, "two sum requests in one attempt: do not go on"
        )
    slots = ballot.after(scope.gone)
    numbers = members_of(request.members, len(ballot.eligible))
    if slots is None or numbers is None:
        return user, reject(
            Reason.MALFORMED, "this request is not about slots and reporters of the election"
        )
    problem = _request_problem(user, request, ballot, slots, numbers)
    if problem is not None:
        return user, problem
    message = _sum_or_complaint(user, request, ballot, slots, numbers, entropy)
    after = replace(
        user,
        election=ballot.hash,
        gone=_longer(user.gone, scope.gone),
        summed=(*user.summed, scope),
        first_messages=(*user.first_messages, message),
    )
    return after, message


def _request_problem(
    user: Participant,
    request: SlotSumRequest,
    ballot: Ballot,
    slots: Slots,
    numbers: tuple[int, ...],
) -> Rejection | None:
    params = user.member.params
    if any(helper.attempt > request.attempt for helper in request.gone):
        return reject(
            Reason.MALFORMED, "this request is not about slots and reporters of the election"
        )
    if not 1 <= request.formed <= request.attempt <= params.attempts:
        return reject(Reason.TOO_MANY_ATTEMPTS, f"attempts run from 1 to {params.attempts}")
    # check: helper-minimum - a sum over few reporters is nearly one share
    if len(numbers) < params.minimum:
        return reject(
            Reason.TOO_FEW, f"a sum over {len(numbers)} reporters: {params.minimum} are needed"
        )
    # check: set-shrinks - a set that grows again differs by chosen reporters
    if user.summed and not _shrinks(user.summed[-1], request, len(ballot.eligible)):
        return reject(Reason.CONFLICT, "sets only shrink from one attempt to the next")
    due = slots.due(user.member.index, request.formed, request.attempt)
    if not _are_due(request, slots, due):
        return reject(Reason.MALFORMED, "these are not the slots that this user holds")
    if not all(_is_complete(task, ballot, numbers) for task in request.tasks):
        return reject(
            Reason.WRONG_DIGEST,
            "these are not the shares of all who report an item and are present",
        )
    return None


def _are_due(request: SlotSumRequest, slots: Slots, due: Ints) -> bool:
    """Whether the request is about exactly the slots whose sums the helper owes."""
    # The tasks are still packed, so they are counted before they are built.
    if not due.size or len(request.tasks) != due.size:
        return False
    wanted = list(zip(slots.item[due].tolist(), slots.slot[due].tolist(), strict=True))
    return [(task.item, task.slot) for task in request.tasks] == wanted


def _shrinks(last: SumScope, request: SlotSumRequest, size: int) -> bool:
    before = members_of(last.members, size) or ()
    after = members_of(request.members, size) or ()
    # A new set has a new attempt in which it was formed, and the same set keeps its own.
    fits = (before == after) == (last.formed == request.formed)
    return request.attempt > last.attempt and fits and set(after) <= set(before)


def _is_complete(task: SlotTask, ballot: Ballot, present: Sequence[int]) -> bool:
    """Whether the list was fixed before the election, and all present on it have a share."""
    listed = members_of(task.listed, len(ballot.eligible))
    if (
        listed is None
        # check: list-length - with reporters left off the list the others stand out
        or len(listed) != ballot.reporters[task.item]
    ):
        return False
    # check: list-committed - the coordinator makes up the list after the election
    whole = list_root(task.salt, listed) == ballot.lists[task.item]
    return (
        whole
        # check: all-shares-present - a sum with shares left out isolates one reporter
        and len(task.encrypted_shares) == len(_senders(task, ballot, present))
    )


def _senders(task: SlotTask, ballot: Ballot, present: Sequence[int]) -> list[int]:
    """The numbers of those whose shares come with a task, ascending."""
    return sorted(
        {*(members_of(task.listed, len(ballot.eligible)) or ())}
        # check: shares-of-set - shares of reporters outside the set would get into the sum
        & {*present}
    )


def _sum_or_complaint(
    user: Participant,
    request: SlotSumRequest,
    ballot: Ballot,
    slots: Slots,
    present: Sequence[int],
    entropy: Entropy,
) -> SlotSums | SlotComplaint:
    member = user.member
    params = member.params
    due = slots.due(member.index, request.formed, request.attempt)
    totals = np.zeros(len(due), dtype=dtype_for(params.q))
    secrets = dict[int, bytes]()
    failed = set[int]()
    for i, (task, position) in enumerate(zip(request.tasks, due.tolist(), strict=True)):
        senders = _senders(task, ballot, present)
        plaintexts = []
        for number, encrypted_share in zip(senders, task.encrypted_shares, strict=True):
            if number not in secrets:
                secrets[number] = member.crypto.agree(member.keys, ballot.keys[number]) or b""
            info = share_info(params, ballot, slots, position, number)
            plaintexts.append(_decrypt(member, secrets[number], info, encrypted_share))
        rows, is_valid = unpack_rows(plaintexts, params.q, 1)
        failed.update(number for number, valid in zip(senders, is_valid, strict=True) if not valid)
        totals[i] = sum_rows(rows, params.q)[0]
    # All or nothing: sums of some slots, beside a complaint, would be over different sets.
    if failed:
        return SlotComplaint(
            params.survey, member.index, member.credential, request.attempt, tuple(sorted(failed))
        )
    # The mask is bound to the scope: sums of two sets cannot be unmasked with one seed.
    digest = SumScope.of(request).digest(ballot)
    context = AttemptContext(params, member.digest, request.attempt, digest)
    vector, encrypted_seed = mask_vector(member, context, totals, entropy)
    return SlotSums(
        request.survey,
        member.index,
        member.credential,
        request.attempt,
        digest,
        vector,
        encrypted_seed,
    )


def _decrypt(member: Member, secret: bytes, info: bytes, encrypted_share: bytes) -> bytes:
    """The packed share; empty, which is no share, if it cannot be decrypted."""
    if not secret:
        return b""
    return member.crypto.decrypt(secret, member.digest, info, encrypted_share) or b""


class TwoStageClient(PeersClient):
    """An indicator, shares for the helpers, sums of the slots that it was elected for."""

    handlers = {  # noqa: RUF012 - a table, never changed
        Assignment: send_shares,
        SlotSumRequest: answer_sum_request,
    }

    def draw_response(self, client: ClientState, placed: Member, entropy: Entropy) -> Participant:
        """Draw coin, set and bits."""
        return indicate(placed, client.invitation, client.sheet, entropy)

    def first_message(self, client: ClientState) -> Message:
        """The set of items that it reports."""
        participant: Participant = require_state(client, Participant)
        return participant.indicator

    def entry(self, client: ClientState) -> Entry:
        """Reporters are published under their reporting key, without a user id."""
        if isinstance(client.state, Participant):
            return ANONYMOUS_ID, client.state.reporting_key.public
        return ANONYMOUS_ID, bytes(32)

    def counted_as(self, client: ClientState) -> dict[bytes, Sheet | None]:
        """The reporting key; the item only if the client's set contains it."""
        state = client.state
        if not isinstance(state, Participant):
            return {}
        hit = state.bits.any() and client.sheet[0] in state.items
        return {state.reporting_key.public: client.sheet if hit else None}
