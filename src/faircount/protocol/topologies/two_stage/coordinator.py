"""S1 in the two-stage topology, phase by phase."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from hashlib import sha256

from faircount.mechanisms.two_stage import reports_sets
from faircount.protocol.roles import coordinate, coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.peers import roster
from faircount.protocol.topologies.two_stage.messages import (
    Announced,
    Announcement,
    Bundle,
    Election,
    ElectionRequest,
    Gone,
    Indicator,
    SlotComplaint,
    SlotSums,
    TwoStageClaim,
)
from faircount.protocol.topologies.two_stage.relay import (
    assignment,
    ballot_of,
    bare_call,
    call,
    claimed,
    counted_reporters,
    due_sums,
    items_of,
    owed_shares,
    reporter_entries,
    reporters,
    rounds,
    shuffled,
    slots_of,
)
from faircount.protocol.topologies.two_stage.user import call_digest
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Accepted, BadBlobs, Reason, Receipt, Visit, rejected
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import canonical_key
from faircount.sharing.packing import packed_size

# --- indicating and election --------------------------------------------------------------------------------------


def take_indicator(s: Coordinator, message: Indicator) -> coordinator.Step:
    """A user's A_i. After a restore, users of the election may say again what S1 forgot."""
    items = members_of(message.items, s.params.N)
    if items is None or len(items) != reports_sets(s.params.mechanism).reported:
        return s, (rejected(Reason.MALFORMED, "an indicator has as many items as the parameters say"),)
    known = rounds(s)
    asked = s.state is State.INDICATING and known.request is None
    forgotten = s.state is State.SHARING and message.index in known.order
    return coordinator.upload(s, message, made_for=0, open_=asked or forgotten)


def end_indicating(s: Coordinator) -> coordinator.Step:
    """Fix who may be elected and the m_j, and ask S2 to reveal. From here on S1 cannot change them."""
    if rounds(s).request is None:
        eligible = [j for j in range(s.n) if coordinator.holds(s, Indicator, 0, j)]
        if len(eligible) < s.params.minimum:
            return coordinator.give_up(s, f"{len(eligible)} users indicated, {s.params.minimum} are needed")
        counts = Counter(item for j in eligible for item in items_of(s, j))
        numbers = tuple(counts[item] for item in range(s.params.N))
        request = ElectionRequest(s.params.survey, s.digest, bitmap(eligible, s.n), numbers)
        s = replace(s, own=replace(rounds(s), request=request))
    return _announced(s)


def _announced(s: Coordinator) -> coordinator.Step:
    """Announce the request, or send it once S2 has recorded that. S2 never gets two: they would differ by an A_i."""
    known = rounds(s)
    said = None if known.announced is None else known.announced.says
    if known.request is not None and said is not None and said != _announces(s, known.request):
        return coordinator.give_up(s, "another election was announced before S1 was restored")
    return s, pending(s)


def _announces(s: Coordinator, request: ElectionRequest) -> Announced:
    return Announced(s.params.survey, sha256(encode(request)).digest())


def on_receipt(s: Coordinator, message: Receipt, statement: Statement) -> coordinator.Step:
    """Before there is a claim it is that of the election, which `Announced` follows; later that of the claim."""
    return (s, ()) if s.claim is None else coordinate.on_receipt(s, message, statement)


def on_announced(s: Coordinator, _: Announced, statement: Statement) -> coordinator.Step:
    """S2 will read one request: ours, or the one from before a restore."""
    if s.state is not State.INDICATING or rounds(s).announced is not None:
        return s, ()
    return _announced(replace(s, own=replace(rounds(s), announced=statement)))


def on_election(s: Coordinator, message: Election, statement: Statement) -> coordinator.Step:
    """The election is held, for what S1 asked or, after a restore, for what it had asked: reporters may share."""
    restored = isinstance(s.claim, TwoStageClaim)
    if rounds(s).election is not None or message.digest != s.digest or not (s.state is State.INDICATING or restored):
        return s, ()
    eligible = members_of(message.eligible, s.n) or ()
    s = replace(s, own=replace(rounds(s), election=statement, order=shuffled(s, eligible)))
    if isinstance(s.claim, TwoStageClaim):
        return replace(s, members=claimed(s, s.claim)), ()
    return replace(s, attempt=1, members=eligible, state=advance(s.state, State.SHARING)), ()


# --- sharing ------------------------------------------------------------------------------------------------------


def take_bundle(s: Coordinator, message: Bundle) -> coordinator.Step:
    """A reporter's shares: of all its slots, or of those taken over. One key for all of them, and nobody else's."""
    open_ = s.state is State.SHARING and message.attempt == s.attempt and _owes_shares(s, message.index)
    if open_ and not items_of(s, message.index):
        return s, (rejected(Reason.EARLY, "S1 was restored and lost this user's indicator: send it again first"),)
    if open_ and not _fits(s, message.blobs, owed_shares(s, message.index).size):
        return s, (rejected(Reason.MALFORMED, "one sealed share for each slot is needed"),)
    if open_ and not _key_fits(s, message):
        return s, (rejected(Reason.MALFORMED, "a reporter has one key, made for this, and nobody else's"),)
    after, out = coordinator.upload(s, message, made_for=message.attempt, open_=open_)
    if open_ and isinstance(out[0], Accepted):
        s.keys.put(message.public_key, s.roster[message.index].user)
    return after, out


def _fits(s: Coordinator, blobs: tuple[bytes, ...], count: int) -> bool:
    return len(blobs) == count and all(len(blob) == packed_size(s.params.q, 1) + OVERHEAD for blob in blobs)


def _key_fits(s: Coordinator, message: Bundle) -> bool:
    """A fresh key in the first attempt, the same in the later ones."""
    first = s.uploads.get((Bundle.tag, 1, message.index))
    if first is not None:
        return bool(first.public_key == message.public_key)
    return canonical_key(message.public_key) and message.public_key not in s.keys


def _owes_shares(s: Coordinator, index: int) -> bool:
    """Whether a reporter has shares to send in this attempt and has not sent them."""
    if index not in s.members or coordinator.holds(s, Bundle, s.attempt, index):
        return False
    return s.attempt == 1 or bool(owed_shares(s, index).size)


def end_sharing(s: Coordinator) -> coordinator.Step:
    """Who has not sent its shares leaves the set with all its items; the elected users are called."""
    late = {j for j in s.members if _owes_shares(s, j)}
    members = tuple(j for j in s.members if j not in late)
    if late and s.claim is not None:
        return coordinator.give_up(s, "a reporter vanished after the claim, and the set is final")
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, f"{len(members)} reporters are left, {s.params.minimum} are needed")
    known = replace(rounds(s), formed=s.attempt) if late else rounds(s)
    return replace(s, members=members, own=known, state=advance(s.state, State.SUBMITTING)), ()


# --- sums ---------------------------------------------------------------------------------------------------------


def take_sums(s: Coordinator, message: SlotSums) -> coordinator.Step:
    """An elected user's sums for the slots that it was called for, over the very set that S1 has now.

    After a restore S1 may form another set in the same attempt: sums over the former one would not open, and S2 could
    take the difference to the further claim.
    """
    open_ = _owes_sums(s, message.index) and message.call == call_digest(bare_call(s, s.attempt))
    if open_ and not _fits(s, message.blobs, due_sums(s, message.index).size):
        return s, (rejected(Reason.MALFORMED, "one sealed sum for each slot is needed"),)
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
    return not coordinator.holds(s, SlotSums, call_digest(bare_call(s, s.attempt)), index)


def end_sums(s: Coordinator) -> coordinator.Step:
    """Every slot has its sum: claim. Otherwise others take over, and reporters whose shares do not open leave."""
    spoiled = {j for j in s.members if not _vouched_for(s, j)}
    if spoiled and s.claim is not None:
        return coordinator.give_up(s, "what a reporter sent was damaged after the claim, and the set is final")
    if spoiled:  # nobody could be called: who is silent is not to blame
        return _next_attempt(s, (), spoiled)
    silent = {j for j in set(slots_of(s, s.attempt).holder.tolist()) if _owes_sums(s, j) or _spoiled(s, j)}
    heard = [coordinator.held(s, SlotComplaint, s.attempt, j) for j in ballot_of(s).eligible]
    order = rounds(s).order
    said = [(each.index, order[i]) for each in heard if each is not None for i in each.numbers]
    # once S2 has blobs no reporter may leave: then it is for another helper to try
    helpers, senders = blamed(said) if s.claim is None else ({helper for helper, _ in said}, set[int]())
    if silent or helpers or senders:
        return _next_attempt(s, silent | helpers, senders)
    after = _make_claim(s)
    return after, pending(after)


def _spoiled(s: Coordinator, holder: int) -> bool:
    """Whether sums from an earlier attempt that still count are no longer what S1 acknowledged."""
    slots, formed = slots_of(s, s.attempt), rounds(s).formed
    earlier = [attempt for attempt in range(formed, s.attempt) if slots.due(holder, formed, attempt).size]
    calls = [call_digest(bare_call(s, attempt)) for attempt in earlier]
    return not all(coordinator.holds(s, SlotSums, each, holder) for each in calls)


def _vouched_for(s: Coordinator, index: int) -> bool:
    """Whether S1 still has what a reporter's part in the sums rests on: its items, its key and its shares."""
    return coordinator.holds(s, Indicator, 0, index) and coordinator.holds(s, Bundle, 1, index)


def blamed(complaints: Iterable[tuple[int, int]]) -> tuple[set[int], set[int]]:
    """Who is left out so that no (helper, reporter) complaint remains: always whoever is part of most of them.

    One false complaint costs one reporter; who makes, or is the cause of, several is left out itself.
    """
    left, helpers, senders = set(complaints), set[int](), set[int]()
    while left:
        sides = Counter((1, sender) for _, sender in left) + Counter((0, helper) for helper, _ in left)
        side, worst = max(sides, key=lambda each: (sides[each], each[0], -each[1]))
        (senders if side else helpers).add(worst)
        left = {pair for pair in left if pair[side] != worst}
    return helpers, senders


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
    known = replace(rounds(s), gone=gone, formed=attempt if dropped else rounds(s).formed)
    state = advance(s.state, State.SHARING) if leaving else s.state
    return replace(s, attempt=attempt, members=members, own=known, state=state), ()


def answer_visit(s: Coordinator, message: Visit) -> coordinator.Step:
    """What there is to do for a user: indicate, share, add up."""
    return roster.to_do(s, message, lambda index: _next_task(s, index))


def _next_task(s: Coordinator, index: int) -> Message | None:
    indicated, elected = coordinator.holds(s, Indicator, 0, index), index in rounds(s).order
    if not indicated and (s.state is State.INDICATING or (s.state is State.SHARING and elected)):
        return roster.roster_message(s)
    if s.state is State.SHARING and _owes_shares(s, index):
        return assignment(s, index)
    if _owes_sums(s, index) and all(coordinator.holds(s, Indicator, 0, j) for j in s.members):
        return call(s, index)  # with a spoiled indicator shares would be lacking: the deadline drops its sender
    return None


# --- claim --------------------------------------------------------------------------------------------------------


def _make_claim(s: Coordinator) -> Coordinator:
    """Close writes and fix the batch: every slot's sum over the present reporters, by hash."""
    ballot, slots, known, senders = ballot_of(s), slots_of(s, s.attempt), rounds(s), reporters(s)
    numbers, hashes = [number for number, _ in senders], [b""] * len(slots)
    calls = [(attempt, call_digest(bare_call(s, attempt))) for attempt in range(known.formed, s.attempt + 1)]
    for holder in set(slots.holder.tolist()):
        for attempt, digest in calls:
            for i, at in enumerate(slots.due(holder, known.formed, attempt).tolist()):
                hashes[at] = sha256(s.uploads[SlotSums.tag, digest, holder].blobs[i]).digest()
    claim = TwoStageClaim(
        survey=s.params.survey,
        digest=s.digest,
        election=ballot.hash,
        formed=known.formed,
        members=bitmap(numbers, len(known.order)),
        keys=tuple(s.uploads[Bundle.tag, 1, place].public_key for _, place in senders),
        gone=known.gone,
        set_digest=ballot.set_digest(known.formed, numbers),
        blob_hashes=tuple(hashes),
    )
    return coordinator.with_claim(s, claim, State.CLAIMED)


def _held(s: Coordinator) -> list[bytes | None]:
    """The blobs of the claim, in its order; None for one that S1 does not have."""
    sums = [s.uploads[key] for key in s.uploads.keys() if key[0] == SlotSums.tag]  # noqa: SIM118 - it is no dict
    known = {sha256(blob).digest(): blob for each in sums for blob in each.blobs}
    return [known.get(wanted) for wanted in s.claim.blob_hashes] if isinstance(s.claim, TwoStageClaim) else [None]


def pending(s: Coordinator) -> coordinator.Out:
    """The announcement, then the request until there is an election; later the claim, then its blobs."""
    known = rounds(s)
    if s.state is State.INDICATING and known.request is not None:
        first = Announcement(s.params.survey, _announces(s, known.request).request_hash)
        return (coordinator.to_s2(s, known.request if known.announced is not None else first),)
    return coordinator.claim_or_batch(s, lambda: (blob for blob in _held(s) if blob is not None))


def complete(s: Coordinator) -> bool:
    """Whether every sum of the claim is here, with the very bytes that were claimed."""
    return None not in _held(s)


def on_bad_blobs(s: Coordinator, message: BadBlobs, _: Statement) -> coordinator.Step:
    """S2 could not open some sums and added none: others take over from those who sent them, over the same set."""
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash:
        return s, ()
    holders = slots_of(s, s.attempt).holder
    bad = {int(holders[at]) for at in message.positions if at < len(holders)}
    return _next_attempt(replace(s, receipt=None, state=advance(s.state, State.SUBMITTING)), bad, ())


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet."""
    if not isinstance(claim, TwoStageClaim) or claim.digest != s.digest:
        return None
    if s.claim == claim:
        return s
    path = (State.INDICATING, State.SHARING, State.SUBMITTING, State.CLAIMED)
    ahead = path[path.index(s.state) + 1 :] if s.state in path else ()
    known = replace(rounds(s), formed=claim.formed, gone=claim.gone)
    attempt = max([claim.formed, *(each.attempt for each in claim.gone)])
    s = coordinator.with_claim(replace(s, attempt=attempt, own=known), claim, *ahead)
    return s if known.election is None else replace(s, members=claimed(s, claim))


def request(s: Coordinator) -> Message | None:
    """What S1 asks S2 to grant: the claim, or before it the election."""
    return s.claim or rounds(s).request


S1 = Rules(
    users={
        **roster.USERS,
        Indicator: take_indicator,
        Bundle: take_bundle,
        SlotSums: take_sums,
        SlotComplaint: take_complaint,
        Visit: answer_visit,
    },
    s2={**roster.S2, Receipt: on_receipt, Announced: on_announced, Election: on_election, BadBlobs: on_bad_blobs},
    deadlines={
        State.ENROLLING: roster.close_roster,
        State.INDICATING: end_indicating,
        State.SHARING: end_sharing,
        State.SUBMITTING: end_sums,
    },
    pending=pending,
    adopt=adopt,
    complete=complete,
    request=request,
    answers=(Bundle,),
    included=counted_reporters,
    entries=reporter_entries,
)
