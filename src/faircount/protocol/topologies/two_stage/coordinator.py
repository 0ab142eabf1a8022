"""S1 in the two-stage topology once the election is held (`announcing` comes before): shares, sums, the one total."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from faircount.protocol.roles import coordinate, coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.peers import one_sum, roster
from faircount.protocol.topologies.peers.messages import PeersIncluded
from faircount.protocol.topologies.two_stage import announcing
from faircount.protocol.topologies.two_stage.blame import blamed
from faircount.protocol.topologies.two_stage.calls import Called
from faircount.protocol.topologies.two_stage.messages import (
    Announced,
    Bundle,
    Election,
    Gone,
    Indicator,
    SlotComplaint,
    SlotSums,
    TwoStageClaim,
)
from faircount.protocol.topologies.two_stage.relay import (
    assignment,
    ballot_of,
    call,
    called,
    claimed,
    counted_reporters,
    due_sums,
    item_totals,
    items_of,
    owed_shares,
    parts_now,
    reporter_entries,
    reporters,
    rounds,
    slots_of,
)
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.digests import merkle_root, roster_leaves
from faircount.protocol.wire.messages import Published, Reason, Receipt, Visit, rejected
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.roster_messages import BadEntries
from faircount.protocol.wire.sealing import OVERHEAD, SEALED_SEED
from faircount.protocol.wire.signing import Statement
from faircount.sharing.packing import packed_size

# --- sharing ------------------------------------------------------------------------------------------------------


def take_bundle(s: Coordinator, message: Bundle) -> coordinator.Step:
    """A reporter's shares: of all its slots, or of those taken over."""
    open_ = s.state is State.SHARING and message.attempt == s.attempt and _owes_shares(s, message.index)
    if open_ and not items_of(s, message.index):
        return s, (rejected(Reason.EARLY, "S1 was restored and lost indicators: they must be sent again first"),)
    if open_ and not _fits(s, message.blobs, owed_shares(s, message.index, s.attempt).size):
        return s, (rejected(Reason.MALFORMED, "one sealed share for each slot is needed"),)
    return coordinator.upload(s, message, made_for=message.attempt, open_=open_)


def _fits(s: Coordinator, blobs: Sequence[bytes], count: int) -> bool:
    return len(blobs) == count and all(len(blob) == packed_size(s.params.q, 1) + OVERHEAD for blob in blobs)


def _owes_shares(s: Coordinator, index: int) -> bool:
    """Whether a reporter has shares to send in this attempt and has not sent them."""
    if index not in s.members or coordinator.holds(s, Bundle, s.attempt, index):
        return False
    return s.attempt == 1 or bool(owed_shares(s, index, s.attempt).size)


def end_sharing(s: Coordinator) -> coordinator.Step:
    """Who has not sent its shares leaves the set with all its items; the elected users are called."""
    late = {j for j in s.members if _owes_shares(s, j)}
    members = tuple(j for j in s.members if j not in late)
    if not rounds(s).lists:
        return coordinator.give_up(s, "S1 was restored and lost who reports which item")
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} reporters are left, {s.params.minimum} are needed")
    if late:
        _forget_sums(s)
    known = replace(rounds(s), formed=s.attempt) if late else rounds(s)
    return replace(s, members=members, own=known, state=advance(s.state, State.SUBMITTING)), ()


# --- sums ---------------------------------------------------------------------------------------------------------


def take_sums(s: Coordinator, message: SlotSums) -> coordinator.Step:
    """An elected user's sums for the slots that it was called for, over the very set that S1 has now.

    After a restore S1 may form another set in the same attempt: the seed of sums over the former one would not open.
    """
    open_ = _owes_sums(s, message.index) and message.call == called(s).digest(ballot_of(s))
    size = due_sums(s, message.index).size if open_ else 0
    if open_ and not (is_vector(message.vector, s.params.q, size) and len(message.blob) == SEALED_SEED):
        return s, (rejected(Reason.MALFORMED, "one element for each slot, and a sealed seed, are needed"),)
    return coordinator.upload(s, message, made_for=message.call, open_=open_)


def take_complaint(s: Coordinator, message: SlotComplaint) -> coordinator.Step:
    """An elected user cannot open shares from some reporters."""
    open_ = message.attempt == s.attempt and _owes_sums(s, message.index)
    named = set(message.numbers)
    once = named and len(named) == len(message.numbers)
    if open_ and not (once and named <= {number for number, _ in reporters(s)}):
        return s, (rejected(Reason.MALFORMED, "a complaint names reporters of the set, each once"),)
    return coordinator.upload(s, message, made_for=message.attempt, open_=open_)


def _owes_sums(s: Coordinator, index: int) -> bool:
    """Whether an elected user is called in this attempt and was not heard of."""
    if s.state is not State.SUBMITTING:
        return False
    if not due_sums(s, index).size or coordinator.holds(s, SlotComplaint, s.attempt, index):
        return False
    return not coordinator.holds(s, SlotSums, called(s).digest(ballot_of(s)), index)


def end_sums(s: Coordinator) -> coordinator.Step:
    """Every slot has its sum: claim. Otherwise others take over, and reporters whose shares do not open leave."""
    spoiled = {j for j in s.members if not _vouched_for(s, j)}
    if spoiled:  # nobody could be called: who is silent is not to blame
        return _next_attempt(s, (), spoiled)
    heard = [(attempt, j) for attempt in range(1, s.attempt + 1) for j in ballot_of(s).eligible]
    complaints = [coordinator.held(s, SlotComplaint, *each) for each in heard]
    said = [(each.attempt, each.index, each.numbers) for each in complaints if each is not None]
    helpers, senders = blamed(said, s.attempt, s.params.phi)
    silent = {part.holder for part in parts_now(s) if not coordinator.holds(s, SlotSums, part.digest, part.holder)}
    complained = {index for attempt, index, _ in said if attempt == s.attempt}
    leaving, dropped = (silent - complained) | helpers, {rounds(s).order[i] for i in senders}
    if leaving or dropped:
        return _next_attempt(s, leaving, dropped & set(s.members))
    after = _make_claim(s)
    return after, pending(after)


def _vouched_for(s: Coordinator, index: int) -> bool:
    """Whether S1 still has all the shares that a reporter has sent: its part in the sums rests on them."""
    later = [attempt for attempt in range(2, s.attempt + 1) if owed_shares(s, index, attempt).size]
    return all(coordinator.holds(s, Bundle, attempt, index) for attempt in (1, *later))


def _next_attempt(s: Coordinator, leaving: Collection[int], dropped: Collection[int]) -> coordinator.Step:
    """Once more: without the reporters `dropped`, and with others in the places of the helpers `leaving`."""
    members, attempt = tuple(j for j in s.members if j not in dropped), s.attempt + 1
    gone = (*rounds(s).gone, *(Gone(attempt, j) for j in sorted(leaving)))
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} reporters are left, {s.params.minimum} are needed")
    if attempt > s.params.attempts:
        return coordinator.give_up(s, f"elected users were missing in each of {s.params.attempts} attempts")
    if ballot_of(s).after(gone) is None:
        return coordinator.give_up(s, "nobody is left who could take over a slot: elect phi + 1 helpers only")
    if not rounds(s).lists:
        return coordinator.give_up(s, "S1 was restored and lost who reports which item")
    _forget_sums(s, None if dropped else leaving)
    known = replace(rounds(s), gone=gone, formed=attempt if dropped else rounds(s).formed)
    state = advance(s.state, State.SHARING) if leaving else s.state
    return replace(s, attempt=attempt, members=members, own=known, state=state), ()


def _forget_sums(s: Coordinator, holders: Collection[int] | None = None) -> None:
    """Delete the sums of these helpers, or of all over a set that is no more: they are in no sum."""
    for part in parts_now(s):
        if holders is None or part.holder in holders:
            one_sum.forget_vectors(s, SlotSums, part.digest, (part.holder,))


def answer_visit(s: Coordinator, message: Visit) -> coordinator.Step:
    """What there is to do for a user: indicate, share, add up."""
    return roster.to_do(s, message, lambda index: _next_task(s, index))


def _next_task(s: Coordinator, index: int) -> Message | None:
    known, indicated = rounds(s), coordinator.holds(s, Indicator, 0, index)
    forgotten = s.state is State.SHARING and not known.lists and index in known.order
    if not indicated and (s.state is State.INDICATING or forgotten):
        return roster.roster_message(s)
    if s.state is State.SHARING and known.lists and _owes_shares(s, index):
        return assignment(s, index)
    return call(s, index) if _owes_sums(s, index) else None


# --- claim and sum ------------------------------------------------------------------------------------------------


def _make_claim(s: Coordinator) -> Coordinator:
    """Close writes and fix the claim: the present reporters, and the sealed seed of every helper's mask."""
    now, ballot = called(s), ballot_of(s)
    seeds = tuple(s.uploads[SlotSums.tag, part.digest, part.holder].blob for part in parts_now(s))
    about = now.attempt, now.formed, now.members, now.gone, now.digest(ballot)
    claim = TwoStageClaim(s.params.survey, s.digest, ballot.hash, *about, seeds)
    return coordinator.with_claim(s, claim, State.CLAIMED)


def on_receipt(s: Coordinator, message: Receipt, statement: Statement) -> coordinator.Step:
    """Before there is a claim it is that of the election, which `Announced` follows; later that of the claim."""
    return (s, ()) if s.claim is None else coordinate.on_receipt(s, message, statement)


def pending(s: Coordinator) -> coordinator.Out:
    """The announcement, then the request until there is an election; later the claim, then the one sum."""
    return announcing.asking(s) if s.state is State.INDICATING else one_sum.pending(s)


def complete(s: Coordinator) -> bool:
    """Whether the sum is made, or every helper's sums of the claim are here, with the very seeds that were claimed."""
    if not isinstance(s.claim, TwoStageClaim) or rounds(s).election is None:
        return False
    held = [coordinator.held(s, SlotSums, part.digest, part.holder) for part in parts_now(s)]
    return rounds(s).total is not None or (
        len(held) == len(s.claim.blobs)
        and all(each is not None and each.blob == seed for each, seed in zip(held, s.claim.blobs, strict=True))
    )


def on_included(s: Coordinator, message: PeersIncluded, statement: Statement) -> coordinator.Step:
    """All helpers' seeds open: the one sum is due. Otherwise others take over from those whose seeds do not."""
    holders = [] if s.claim is None else slots_of(s, s.attempt).holder.tolist()
    return one_sum.take_set(s, message, statement, holders, _go_on)


def _go_on(s: Coordinator, opened: tuple[int, ...]) -> coordinator.Step:
    closed = {part.holder for part in parts_now(s)} - set(opened)
    if closed:
        return _next_attempt(replace(s, state=advance(s.state, State.SUBMITTING)), closed, ())
    if not complete(s):
        return coordinator.give_up(s, "sums were damaged or lost after the claim")
    root = merkle_root(roster_leaves(reporter_entries(s)))
    return one_sum.hand_over_total(s, s.members, root, lambda: item_totals(s))


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet; once the sum is made, another one ends the survey."""
    if not isinstance(claim, TwoStageClaim) or claim.digest != s.digest:
        return None
    if not Called.by(claim).within(s.params.attempts):
        return None
    if s.claim == claim:
        return s
    known = rounds(s)
    if known.total is not None:
        return coordinator.end_alone(s, "S2 names another claim than the one that S1 has added up")[0]
    path = (State.INDICATING, State.SHARING, State.SUBMITTING, State.CLAIMED)
    ahead = path[path.index(s.state) + 1 :] if s.state in path else ()
    own = replace(known, formed=claim.formed, gone=claim.gone)
    s = coordinator.with_claim(replace(s, attempt=claim.attempt, own=own), claim, *ahead)
    return s if known.election is None else replace(s, members=claimed(s, claim))


S1 = Rules(
    users={
        **roster.USERS,
        Indicator: announcing.take_indicator,
        Bundle: take_bundle,
        SlotSums: take_sums,
        SlotComplaint: take_complaint,
        Visit: answer_visit,
    },
    s2={
        **roster.S2,
        BadEntries: announcing.on_bad_entries,
        Receipt: on_receipt,
        Announced: announcing.on_announced,
        Election: announcing.on_election,
        PeersIncluded: on_included,
        Published: one_sum.on_published,
    },
    deadlines={
        State.ENROLLING: roster.close_roster,
        State.INDICATING: announcing.end_indicating,
        State.SHARING: end_sharing,
        State.SUBMITTING: end_sums,
    },
    pending=pending,
    adopt=adopt,
    complete=complete,
    request=announcing.request,
    answers=(Bundle,),
    included=counted_reporters,
    entries=reporter_entries,
    scrubbed=one_sum.scrubbed,
    sent_once=one_sum.sent_once,
    spends=one_sum.nothing_spent,
)
