"""S1 in the `servers` topology: it keeps one share of everybody, claims once, and sends S2 one sum."""

from dataclasses import replace
from hashlib import sha256

from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator, Rules
from faircount.protocol.survey.inclusion import inclusion
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.survey.states import FINAL, State
from faircount.protocol.topologies.two_servers.messages import Included, ServersClaim, ShareSum, Submission, Submitter
from faircount.protocol.topologies.two_servers.user import SEED
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.digests import members_of
from faircount.protocol.wire.messages import Batch, Concluded, Inquiry, Reason, Rejected, Wait, rejected
from faircount.protocol.wire.packed_rows import is_vector, sum_packed
from faircount.protocol.wire.sealing import OVERHEAD
from faircount.protocol.wire.signing import Statement
from faircount.sharing.packing import pack


def take(s: Coordinator, message: Submission) -> coordinator.Step:
    """A user's one body, checked at the door: a share that is no vector would spoil everybody's sum."""
    user = coordinator.admit_person(s, message.access, message.public_key)
    if isinstance(user, Rejected):
        return s, (user,)
    if len(message.blob) != SEED + OVERHEAD or not is_vector(message.share, s.params.q, s.params.N):
        return s, (rejected(Reason.MALFORMED, "the share or the blob does not have the form of this survey"),)
    return coordinator.write_body(s, user, message, open_=s.state is State.SUBMITTING)


def close(s: Coordinator) -> coordinator.Step:
    """Close writes and fix the batch: sorted users with the hashes of what they sent. Blobs stay here."""
    held = [(user, s.bodies.intact(user)) for user in sorted(s.bodies.keys())]
    entries = tuple(_line(s, user, body) for user, body in held if body is not None)
    if len(entries) < s.params.minimum:
        return coordinator.give_up(s, f"{len(entries)} users answered, {s.params.minimum} are needed")
    claim = ServersClaim(s.params.survey, s.params.digest, entries)
    after = coordinator.with_claim(s, claim, State.CLAIMED)
    return after, pending(after)


def _line(s: Coordinator, user: bytes, body: Submission) -> Submitter:
    commitment = s.sealing.commit(body.salt, body.share)
    return Submitter(user, body.public_key, body.mac, commitment, sha256(body.blob).digest())


def entries_of(claim: Message | None) -> tuple[Submitter, ...]:
    """The lines of a claim."""
    return claim.entries if isinstance(claim, ServersClaim) else ()


def pending(s: Coordinator) -> coordinator.Out:
    """The claim until there is a receipt, then the blobs until the included set is known, then the one sum."""
    if s.claim is None:
        return ()
    if s.receipt is None:
        return (coordinator.to_s2(s, s.claim),)
    if s.included is None:
        blobs = tuple(s.bodies[each.user].blob for each in entries_of(s.claim))
        return (coordinator.to_s2(s, Batch(s.params.survey, s.claim_hash, blobs)),)
    return (coordinator.to_s2(s, _share_sum(s, s.included)),)


def _share_sum(s: Coordinator, included: Statement) -> ShareSum:
    shares = [s.bodies[each.user].share for each in included_entries(s)]
    total = sum_packed(shares, s.params.q, s.params.N)
    return ShareSum(s.params.survey, sha256(included.signed.payload).digest(), pack(total, s.params.q))


def included_entries(s: Coordinator) -> list[Submitter]:
    """The claim's entries that S2 included."""
    stated, entries = None if s.included is None else s.included.says, entries_of(s.claim)
    members = members_of(stated.members, len(entries)) if isinstance(stated, Included) else None
    return [entries[i] for i in members or ()]


def on_included(s: Coordinator, message: Included, statement: Statement) -> coordinator.Step:
    """The set is fixed: the one sum is due. A second, different set is never answered."""
    if s.state is not State.CLAIMED or message.claim_hash != s.claim_hash or s.included is not None:
        return s, ()
    return replace(s, included=statement), ()


def adopt(s: Coordinator, claim: Message) -> Coordinator:
    """S2's claim instead of ours, with nothing said about it yet."""
    if not isinstance(claim, ServersClaim) or s.claim == claim:
        return s
    path = (State.CLAIMED,) if s.state is State.SUBMITTING else ()
    return coordinator.with_claim(s, claim, *path)


def complete(s: Coordinator) -> bool:
    """Whether every answer of the claim is here, with the very bytes that were claimed."""
    return all(
        each.user in s.bodies and _line(s, each.user, s.bodies[each.user]) == each for each in entries_of(s.claim)
    )


def inquire(s: Coordinator, message: Inquiry) -> coordinator.Step:
    """How the survey ended, and whether it counts this person, with proof."""
    if message.access not in s.invited:
        return s, (rejected(Reason.UNKNOWN, "no such invitation for this survey"),)
    if s.state not in FINAL or s.final is None or s.final.signed.by != Party.S2:
        return s, (Wait(s.params.survey, s.state.encode()),)
    if s.state is State.PUBLISHED and s.included is None:  # a restored S1 knows the result, and not yet whom it counts
        return s, (Wait(s.params.survey, s.state.encode()),)
    final, body = s.final.signed, s.bodies.get(user_id(message.access))
    if s.state is State.ABORTED or body is None:
        return s, (Concluded(final),)
    entries = ((each.user, each.public_key) for each in included_entries(s))
    counted = inclusion(final, lambda: entries, (user_id(message.access), body.public_key))
    return s, (counted or Concluded(final),)


S1 = Rules(
    users={Submission: take, Inquiry: inquire},
    s2={Included: on_included},
    deadlines={State.SUBMITTING: close},
    pending=pending,
    adopt=adopt,
    complete=complete,
)
