"""S1 in the `servers` topology: it keeps one share of everybody, claims once, and sends S2 one sum.

Where reports are proven, it answers one question about each, once S2's receipt has fixed them all, and judges S2's set.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from faircount.core.arrays import Residues
from faircount.mechanisms.verified import proves_reports
from faircount.protocol.roles import coordinate, coordinator
from faircount.protocol.roles.coordinate import conclude
from faircount.protocol.roles.coordinator import Coordinator, Rules, TopologyState
from faircount.protocol.survey.inclusion import inclusion
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.remaining_privacy import keeps
from faircount.protocol.survey.states import FINAL, State
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum, Submission, Submitter
from faircount.protocol.topologies.two_servers.reports import (
    Release,
    Values,
    answers_of_packed,
    form_of,
    holds,
    in_blocks,
    pack_answers,
    question_of,
    unpack_answers,
    vector_size,
)
from faircount.protocol.wire.codec import Message, Party, encode, packed
from faircount.protocol.wire.digests import members_of, merkle_root, roster_leaves
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
    held = ((user, s.bodies.intact(user)) for user in sorted(s.bodies.keys()))
    entries = packed(Submitter, (_line(s, user, body) for user, body in held if body is not None))
    if len(entries) < s.params.minimum:
        return coordinator.give_up(s, f"{len(entries)} users answered, {s.params.minimum} are needed")
    claim = ServersClaim(s.params.survey, s.params.digest, entries)
    after = coordinator.with_claim(s, claim, State.CLAIMED)
    return after, pending(after)


def _line(s: Coordinator, user: bytes, body: Submission) -> Submitter:
    commitment = s.sealing.commit(body.salt, body.share)
    return Submitter(user, body.public_key, body.mac, commitment, sha256(body.blob).digest())


def entries_of(claim: Message | None) -> Sequence[Submitter]:
    """The lines of a claim, ascending by user id; whoever goes through them reads bodies in the order of storage."""
    return claim.entries if isinstance(claim, ServersClaim) else ()


@dataclass(frozen=True)
class OneSum(TopologyState):
    """The one sum of this survey, recorded before it is sent: no other ever leaves."""

    stored_version = 1
    message: ShareSum


@dataclass(frozen=True)
class Answered(TopologyState):
    """S1's answers to the one question about each claimed report, packed, before they are sent."""

    stored_version = 1
    answers: bytes = field(repr=False)


def on_receipt(s: Coordinator, message: Receipt, statement: Statement) -> coordinator.Step:
    """All reports are fixed: S1 answers the question about them. A value that S2 did not commit to ends the survey."""
    known = s.state in FINAL or s.receipt is not None or s.claim is None or message.claim_hash != s.claim_hash
    if not known and s.params.proven and not holds(s.params, Party.S2, message.revealed):
        return coordinator.end_alone(s, "S2 revealed another value than the one that it had committed to")
    after, out = coordinate.on_receipt(s, message, statement)
    return (after if known else _with_answers(after)), out


def _with_answers(s: Coordinator) -> Coordinator:
    """With the answers, where there are proofs; without them where answers of users were lost in a restore.

    Whether the shares are those that were claimed is looked at before anything is sent (`complete`), not here again.
    """
    form = form_of(s.params.mechanism)
    if form is None:
        return s
    answers = answers_of_packed(question_of(s.params, form, _values(s)), (each.share for each in _until_lost(s)))
    none_lost = len(answers) == len(entries_of(s.claim))
    return replace(s, own=Answered(pack_answers(answers, form))) if none_lost else s


def _until_lost(s: Coordinator) -> Iterator[Submission]:
    """The claimed bodies in the claim's order, up to the first that is not here."""
    for each in entries_of(s.claim):
        body = s.bodies.get(each.user)
        if body is None:
            return
        yield body


def _values(s: Coordinator) -> Values:
    """v1 and v2: S2's is in the receipt."""
    receipt = None if s.receipt is None else s.receipt.says
    return s.committed, receipt.revealed if isinstance(receipt, Receipt) else bytes(32)


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then the blobs until the included set is known, then the one sum."""
    if s.claim is None:
        return ()
    if s.receipt is None:
        return (coordinator.to_s2(s, s.claim),)
    if isinstance(s.own, OneSum):
        return (coordinator.to_s2(s, s.own.message),)
    blobs = tuple(s.bodies[each.user].blob for each in entries_of(s.claim))
    answers = (s.committed, s.own.answers) if isinstance(s.own, Answered) else ()
    return (coordinator.to_s2(s, Batch(s.params.survey, s.claim_hash, blobs, *answers)),)


def included_entries(s: Coordinator) -> Iterator[Submitter]:
    """The claim's entries that S2 included."""
    stated = None if s.included is None else s.included.says
    return _named(s, stated) if isinstance(stated, Included) else iter(())


def _named(s: Coordinator, stated: Included) -> Iterator[Submitter]:
    """The claim's entries in a set."""
    entries = entries_of(s.claim)
    return (entries[i] for i in members_of(stated.members, len(entries)) or ())


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
    members, params = members_of(stated.members, len(entries_of(s.claim))), s.params
    if members is None:
        return "S2 named a set that is none of the claim"
    if len(members) < params.minimum or not keeps(params.mechanism, len(members), params.epsilon, params.delta):
        return f"S2 named {len(members)} users to add up, {params.minimum} are needed"
    root = merkle_root(roster_leaves((each.user, each.public_key) for each in _named(s, stated)))
    if stated.root != root:
        return "S2 named one set and signed the root of another"
    return None if _agrees(s, stated) else "S2 judged reports otherwise than the answers of both servers do"


def _agrees(s: Coordinator, stated: Included) -> bool:
    """Whether the set has exactly those reports, of all that opened, which both servers' answers show to be valid."""
    form, entries = form_of(s.params.mechanism), entries_of(s.claim)
    if form is None or not isinstance(s.own, Answered):
        return form is None or not complete(s)  # without the users' answers S1 adds up nothing anyway
    opened = members_of(stated.opened, len(entries))
    theirs = None if opened is None else unpack_answers(stated.answers, form, len(opened))
    mine = unpack_answers(s.own.answers, form, len(entries))
    if opened is None or theirs is None or mine is None:
        return False
    valid = question_of(s.params, form, _values(s)).accepts(mine[list(opened)], theirs)
    return members_of(stated.members, len(entries)) == tuple(at for at, fine in zip(opened, valid, strict=True) if fine)


def _with_sum(s: Coordinator, included: Statement) -> Coordinator:
    """With the one sum over the set; of proven reports, with coins placed and S1's noise added."""
    shares, params = (s.bodies[each.user].share for each in included_entries(s)), s.params
    total = _released(s, shares, included) if params.proven else sum_packed(shares, params.q, params.N)
    message = ShareSum(params.survey, sha256(included.signed.payload).digest(), pack(total, params.q))
    return replace(s, own=OneSum(message))


def _released(s: Coordinator, shares: Iterable[bytes], included: Statement) -> Residues:
    """S1's part of the one sum of proven reports."""
    mechanism, members = proves_reports(s.params.mechanism), getattr(included.says, "members", b"")
    q, bits = s.params.q, sum(mechanism.proven_bits)
    tally = mechanism.tally(first_elements(some, q, bits) for some in in_blocks(shares, bits))
    return Release(s.params, mechanism, _values(s), s.claim_hash, members).part(Party.S1, s.noise_secret, tally)


def sent_once(s: Coordinator) -> bytes:
    """The hash of the one sum; zeros before there is one."""
    return sha256(encode(s.own.message)).digest() if isinstance(s.own, OneSum) else bytes(32)


def on_published(s: Coordinator, message: Published, statement: Statement) -> coordinator.Step:
    """S2's result, if it is one over the set that S1 added up."""
    stated = None if s.included is None else s.included.says
    counted, claimed = sum(1 for _ in included_entries(s)), len(entries_of(s.claim))
    wanted = (counted, stated.root, claimed - counted) if isinstance(stated, Included) else None
    if message.claim_hash == s.claim_hash and wanted not in (None, (message.included, message.root, message.refused)):
        return s, (rejected(Reason.WRONG_DIGEST, "this result is over another set than S1 added up"),)
    return conclude(s, message, statement)


def adopt(s: Coordinator, claim: Message) -> Coordinator | None:
    """S2's claim instead of ours, with nothing said about it yet; after a receipt, another one ends the survey.

    S1 answers one claim. Were another one adopted after the sum was sent, S2 could ask for a second sum, and the
    difference of the two may be one person's vector.
    """
    if not isinstance(claim, ServersClaim) or claim.digest != s.params.digest:
        return None
    if s.claim == claim:
        return s
    if s.receipt is not None:
        return coordinator.end_alone(s, "S2 names another claim than the one that it gave a receipt for")[0]
    path = (State.CLAIMED,) if s.state is State.SUBMITTING else ()
    return coordinator.with_claim(s, claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether the sum is made, or every answer of the claim is here with the very bytes that were claimed."""
    held = ((each, s.bodies.get(each.user)) for each in entries_of(s.claim))
    return isinstance(s.own, OneSum) or all(
        body is not None and _line(s, each.user, body) == each for each, body in held
    )


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
    final, line = s.final.signed, _claimed_line(s, user)
    if s.state is State.ABORTED or line is None:
        return s, (Concluded(final),)
    entries = ((each.user, each.public_key) for each in included_entries(s))
    counted = inclusion(final, lambda: entries, (line.user, line.public_key))
    return s, (counted or Concluded(final),)


def _claimed_line(s: Coordinator, user: bytes) -> Submitter | None:
    """A user's line of the claim, which is ascending by user id."""
    entries = entries_of(s.claim)
    at = bisect_left(entries, user, key=lambda line: line.user)
    return entries[at] if at < len(entries) and entries[at].user == user else None


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
    s2={Receipt: on_receipt, Included: on_included, Published: on_published},
    deadlines={State.SUBMITTING: close},
    pending=pending,
    adopt=adopt,
    complete=complete,
    scrubbed=scrubbed,
    reads=reads,
    in_order=True,
    sent_once=sent_once,
)
