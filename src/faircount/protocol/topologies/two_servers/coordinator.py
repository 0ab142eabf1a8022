"""S1 in the `servers` topology: it keeps one share of everybody, claims once, and sends S2 one sum.

Claim and blobs go to S2 in parts, each when S2 asks for it, so that a few thousand users are in memory at a time. Where
reports are proven, S1 answers one question about each, once S2's receipt has fixed them all, and judges S2's set.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from hashlib import sha256

import numpy as np

from faircount.core.arrays import Ints, Marks, Residues
from faircount.core.errors import ProtocolError
from faircount.protocol.roles import coordinate, coordinator
from faircount.protocol.roles.coordinate import conclude
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.roles.write_once import part_key
from faircount.protocol.survey.inclusion import Entry, inclusion
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.remaining_privacy import keeps
from faircount.protocol.survey.states import FINAL, State
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.claims import (
    chain_of,
    claimed_size,
    entries_of,
    in_chain,
    part_of,
    parts_of,
)
from faircount.protocol.topologies.two_servers.messages import (
    Included,
    Next,
    ServersClaim,
    ShareSum,
    Submission,
    Submitter,
)
from faircount.protocol.topologies.two_servers.reports import (
    Release,
    Values,
    answers_of_packed,
    form_of,
    holds,
    in_blocks,
    pack_answers,
    packed_answers,
    question_of,
    unpack_answers,
    vector_size,
)
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.digests import marks_of, merkle_root, roster_leaves
from faircount.protocol.wire.messages import (
    Batch,
    Concluded,
    Inquiry,
    Published,
    Reason,
    Receipt,
    Rejected,
    Wait,
    Withdraw,
    rejected,
)
from faircount.protocol.wire.packed_rows import first_elements, is_vector, sum_packed
from faircount.protocol.wire.sealing import SEALED_SEED
from faircount.protocol.wire.signing import Statement
from faircount.protocol.wire.stored import TopologyState
from faircount.sharing.packing import pack


def take(s: Coordinator, message: Submission) -> coordinator.Step:
    """A user's one body, checked at the door: a share that is no vector would spoil everybody's sum."""
    user = coordinator.admit_person(s, message.access, message.public_key)
    if isinstance(user, Rejected):
        return s, (user,)
    size = vector_size(s.params.mechanism)
    if len(message.blob) != SEALED_SEED or not is_vector(message.share, s.params.q, size):
        return s, (rejected(Reason.MALFORMED, "the share or the blob does not have the form of this survey"),)
    return coordinator.write_body(s, user, message, open_=s.state is State.SUBMITTING)


def close(s: Coordinator) -> coordinator.Step:
    """Close writes and fix the batch: sorted users with the hashes of what they sent. Blobs stay here."""
    held = ((user, s.bodies.intact(user)) for user in s.bodies.ascending())
    lines = (_line(s, user, body) for user, body in held if body is not None)
    earlier = list[bytes]()
    for part in in_chain(s.params, lines):
        if part.number:
            earlier.append(part.before)
        if part.more:
            s.kept.exchange(part_key(part.number), part)
    if part.size < s.params.minimum:
        return coordinator.give_up(s, f"{part.size} users answered, {s.params.minimum} are needed")
    after = coordinator.with_claim(s, part, State.CLAIMED, earlier=earlier)
    return after, pending(after)


def _line(s: Coordinator, user: bytes, body: Submission) -> Submitter:
    commitment = s.sealing.commit(body.salt, body.share)
    return Submitter(user, body.public_key, body.mac, commitment, sha256(body.blob).digest())


@dataclass(frozen=True)
class OneSum(TopologyState):
    """The one sum of this survey, recorded before it is sent: no other ever leaves."""

    stored_version = 1
    message: ShareSum


@dataclass(frozen=True)
class Answered(TopologyState):
    """S1's answers to the one question about each claimed report, packed part by part, before they are sent."""

    stored_version = 2
    answers: tuple[bytes, ...] = field(repr=False)


def on_receipt(s: Coordinator, message: Receipt, statement: Statement) -> coordinator.Step:
    """All reports are fixed: S1 answers the question about them. A value that S2 did not commit to ends the survey."""
    no_news = s.state in FINAL or s.receipt is not None or s.claim is None or message.claim_hash != s.claim_hash
    if not no_news and s.params.proven and not holds(s.params, Party.S2, message.revealed):
        return coordinator.end_alone(s, "S2 revealed another value than the one that it had committed to")
    after, out = coordinate.on_receipt(s, message, statement)
    return (after if no_news else _with_answers(after)), out


def _with_answers(s: Coordinator) -> Coordinator:
    """With the answers, where there are proofs; without them where answers of users were lost in a restore.

    Whether the shares are those that were claimed is looked at before anything is sent (`complete`), not here again.
    """
    form = form_of(s.params.mechanism)
    if form is None:
        return s
    asked, answers = question_of(s.params, form, _values(s)), list[bytes]()
    for part in parts_of(s):
        shares = [body.share for each in part.entries if (body := s.bodies.get(each.user)) is not None]
        if len(shares) < len(part.entries):
            return s
        answers.append(pack_answers(answers_of_packed(asked, shares), form))
    return replace(s, own=Answered(tuple(answers)))


def _values(s: Coordinator) -> Values:
    """v1 and v2: S2's is in the receipt."""
    receipt = None if s.receipt is None else s.receipt.says
    return s.committed, receipt.revealed if isinstance(receipt, Receipt) else bytes(32)


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then the blobs until the included set is known, then the one sum.

    Claim and blobs begin with the first part, and S2 says which one comes next (`on_next`).
    """
    if s.claim is None:
        return ()
    if s.receipt is None:
        return (coordinator.to_s2(s, part_of(s, 0)),)
    return (coordinator.to_s2(s, s.own.message if isinstance(s.own, OneSum) else _batch(s, 0)),)


def on_next(s: Coordinator, message: Next, _: Statement) -> coordinator.Step:
    """The part of the claim, or of its blobs, that S2 waits for; nothing for an S2 that has other parts than S1."""
    number = message.number
    over = s.state is not State.CLAIMED or s.included is not None or s.final is not None
    if over or not 0 < number <= len(s.earlier):
        return s, ()
    if s.receipt is None:
        known = message.recorded == s.earlier[number - 1]
        return s, ((coordinator.to_s2(s, part_of(s, number)),) if known else ())
    if message.recorded != s.claim_hash:
        return s, ()
    if not _intact(s, part_of(s, number).entries):
        return coordinator.give_up(s, "a blob of the claimed batch was damaged or lost")
    return s, (coordinator.to_s2(s, _batch(s, number)),)


def _batch(s: Coordinator, number: int) -> Batch:
    """The blobs of a part of the claim, with S1's answers about its reports where they are proven."""
    blobs = tuple(s.bodies[each.user].blob for each in part_of(s, number).entries)
    answers = (s.committed, s.own.answers[number]) if isinstance(s.own, Answered) else (bytes(32), b"")
    return Batch(s.params.survey, s.claim_hash, blobs, *answers, number)


def _lines_at(s: Coordinator, places: Ints) -> Iterator[Submitter]:
    """The lines of the claim at these places, ascending; a part of it is in memory at a time."""
    numbers = places // messages.LINES
    for number in np.unique(numbers).tolist():
        entries = part_of(s, number).entries
        yield from (entries[at] for at in (places[numbers == number] % messages.LINES).tolist())


def _members(s: Coordinator, stated: Included) -> Marks | None:
    """Who of the claim is in a set; None if it is none of the claim."""
    return marks_of(stated.members, claimed_size(s))


def included_entries(s: Coordinator) -> Iterator[Submitter]:
    """The claim's entries that S2 included."""
    stated = None if s.included is None else s.included.says
    return _named(s, stated) if isinstance(stated, Included) else iter(())


def _named(s: Coordinator, stated: Included) -> Iterator[Submitter]:
    """The claim's entries in a set."""
    members = _members(s, stated)
    return iter(()) if members is None else _lines_at(s, np.flatnonzero(members))


def on_included(s: Coordinator, message: Included, statement: Statement) -> coordinator.Step:
    """The set is fixed: the one sum is due. A set that is none, or a second one, ends the survey without a sum."""
    if s.state is not State.CLAIMED or s.receipt is None or message.claim_hash != s.claim_hash:
        return s, ()
    if s.included is not None:
        return (s, ()) if s.included.says == message else coordinator.end_alone(s, "S2 named two sets to add up")
    problem = _set_problem(s, message)
    if problem is not None:
        return coordinator.end_alone(s, problem)
    after = replace(s, included=statement)
    return (_with_sum(after, statement) if complete(s) else after), ()


def _set_problem(s: Coordinator, stated: Included) -> str | None:
    """Why S1 adds up nothing over this set: a sum over a few people, or one person, is what S2 must not have."""
    marks, params = _members(s, stated), s.params
    if marks is None:
        return "S2 named a set that is none of the claim"
    members = int(marks.sum())
    if members < params.minimum or not keeps(params.mechanism, members, params.epsilon, params.delta):
        return f"S2 named {members} users to add up, {params.minimum} are needed"
    root = merkle_root(roster_leaves((each.user, each.public_key) for each in _named(s, stated)))
    if stated.root != root:
        return "S2 named one set and signed the root of another"
    return None if _agrees(s, stated) else "S2 judged reports otherwise than the answers of both servers do"


def _agrees(s: Coordinator, stated: Included) -> bool:
    """Whether the set has exactly those reports, of all that opened, which both servers' answers show to be valid."""
    form = form_of(s.params.mechanism)
    if form is None or not isinstance(s.own, Answered):
        return form is None or not complete(s)  # without the users' answers S1 adds up nothing anyway
    opened, members = marks_of(stated.opened, claimed_size(s)), _members(s, stated)
    if opened is None or members is None or (members & ~opened).any():
        return False
    asked, theirs = question_of(s.params, form, _values(s)), stated.answers
    for number, mine in enumerate(s.own.answers):
        part = slice(number * messages.LINES, (number + 1) * messages.LINES)
        some = opened[part]
        count = int(some.sum())
        size = packed_answers(form, count)
        told, known = unpack_answers(theirs[:size], form, count), unpack_answers(mine, form, len(some))
        if told is None or known is None or (asked.accepts(known[some], told) != members[part][some]).any():
            return False
        theirs = theirs[size:]
    return not theirs


def _with_sum(s: Coordinator, included: Statement) -> Coordinator:
    """With the one sum over the set; of proven reports, with coins placed and S1's noise added."""
    shares, params = (s.bodies[each.user].share for each in included_entries(s)), s.params
    total = _released(s, shares, included) if params.proven else sum_packed(shares, params.q, params.N)
    message = ShareSum(params.survey, sha256(included.signed.payload).digest(), pack(total, params.q))
    return replace(s, own=OneSum(message))


def _released(s: Coordinator, shares: Iterable[bytes], included: Statement) -> Residues:
    """S1's part of the one sum of proven reports."""
    release = Release.of(s.params, _values(s), s.claim_hash, getattr(included.says, "members", b""))
    q, bits = s.params.q, sum(release.mechanism.proven_bits)
    tally = release.mechanism.tally(first_elements(some, q, bits) for some in in_blocks(shares, bits))
    return release.part(Party.S1, s.noise_secret, tally)


def sent_once(s: Coordinator) -> bytes:
    """The hash of the one sum; zeros before there is one."""
    return sha256(encode(s.own.message)).digest() if isinstance(s.own, OneSum) else bytes(32)


def on_published(s: Coordinator, message: Published, statement: Statement) -> coordinator.Step:
    """S2's result, if it is one over the set that S1 added up."""
    stated = None if s.included is None else s.included.says
    marks = _members(s, stated) if isinstance(stated, Included) else None
    counted = 0 if marks is None else int(marks.sum())
    wanted = (counted, stated.root, claimed_size(s) - counted) if isinstance(stated, Included) else None
    if message.claim_hash == s.claim_hash and wanted not in (None, (message.included, message.root, message.refused)):
        return s, (rejected(Reason.WRONG_DIGEST, "this result is over another set than S1 added up"),)
    return conclude(s, message, statement)


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet; after a receipt, another one ends the survey.

    S1 answers one claim. Were another one adopted after the sum was sent, S2 could ask for a second sum, and the
    difference of the two may be one person's vector.
    """
    earlier = chain_of(s.kept, claim) if isinstance(claim, ServersClaim) else None
    if not isinstance(claim, ServersClaim) or claim.digest != s.params.digest or earlier is None:
        return None
    if s.claim == claim:
        return s
    if s.receipt is not None:
        return coordinator.end_alone(s, "S2 names another claim than the one that it gave a receipt for")[0]
    path = (State.CLAIMED,) if s.state is State.SUBMITTING else ()
    return coordinator.with_claim(s, claim, *path, earlier=earlier)


def complete(s: Coordinator) -> bool:
    """Whether the sum is made, or every answer of the claim is here with the very bytes that were claimed."""
    return isinstance(s.own, OneSum) or _intact(s, entries_of(s))


def _intact(s: Coordinator, lines: Iterable[Submitter]) -> bool:
    held = ((each, s.bodies.get(each.user)) for each in lines)
    return all(body is not None and _line(s, each.user, body) == each for each, body in held)


def scrubbed(s: Coordinator) -> Coordinator:
    """S1 when the survey is over: shares, blobs and the secret of its noise go, hashes of what users sent stay."""
    return replace(s, bodies=s.bodies.scrubbed(), own=None, noise_secret=b"")


def inquire(s: Coordinator, message: Inquiry) -> coordinator.Step:
    """How the survey ended, and whether it counts this person, with proof."""
    user = coordinator.invited_user(s, message.access)
    if user is None:
        return s, (rejected(Reason.UNKNOWN, "no such invitation for this survey"),)
    if s.state not in FINAL or s.final is None or s.final.signed.by != Party.S2:
        return s, (Wait(s.params.survey, s.state.encode()),)
    if s.state is State.PUBLISHED and s.included is None:  # a restored S1 knows the result, and not yet whom it counts
        return s, (Wait(s.params.survey, s.state.encode()),)
    place = None if s.state is State.ABORTED else _place_of(s, user)
    return s, (Concluded(s.final.signed) if place is None else _counted_at(s, place),)


def _place_of(s: Coordinator, user: bytes) -> int | None:
    """A user's place in the claim, which is ascending by user id."""
    number = bisect_right(range(len(s.earlier)), user, key=lambda at: part_of(s, at + 1).entries[0].user)
    entries = part_of(s, number).entries if isinstance(s.claim, ServersClaim) else ()
    at = bisect_left(entries, user, key=lambda line: line.user)
    return number * messages.LINES + at if at < len(entries) and entries[at].user == user else None


def _counted_at(s: Coordinator, place: int) -> Message:
    """The result for the user at this place of the claim, with proof that it counts it, if it does."""
    if s.final is None or s.included is None or not isinstance(s.included.says, Included):
        raise ProtocolError("nobody is counted before there is a result")
    final, members = s.final.signed, _members(s, s.included.says)
    if members is None or not members[place]:
        return Concluded(final)
    counted = np.flatnonzero(members)

    def entries(some: range) -> Iterator[Entry]:
        return ((each.user, each.public_key) for each in _lines_at(s, counted[some.start : some.stop]))

    return inclusion(final, entries, len(counted), int(members[:place].sum()))


def reads(message: Message) -> tuple[coordinator.Place, ...] | None:
    """A user's message concerns the rows of that user alone, so a service need not read the others."""
    if not isinstance(message, Submission | Withdraw | Inquiry):
        return None
    user = user_id(message.access)
    if isinstance(message, Inquiry):
        return (("invited", user),)
    mine = (("invited", user), ("bodies", user), ("withdrawn", user))
    return (*mine, ("keys", message.public_key)) if isinstance(message, Submission) else mine


S1 = Rules(
    users={Submission: take, Inquiry: inquire},
    s2={Next: on_next, Receipt: on_receipt, Included: on_included, Published: on_published},
    deadlines={State.SUBMITTING: close},
    pending=pending,
    adopt=adopt,
    complete=complete,
    scrubbed=scrubbed,
    reads=reads,
    in_order=True,
    sent_once=sent_once,
)
