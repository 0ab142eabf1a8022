"""What the coordinator (S1) does in every topology, as functions of its state and its rows.

A topology builds its own handlers from these: take an upload, fix the manifest, give up.
`messages_now` repeats what the aggregator may not have heard after a crash, from state and rows
alone, so that nothing needs to be remembered about what was sent.
"""

import hmac
from dataclasses import replace
from hashlib import sha256
from typing import Any

from faircount.protocol.roles.coordinator.state import (
    Change,
    Coordinator,
    Out,
    invited_user,
)
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.acknowledgement import unsigned_acknowledgement
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.survey.phases import FINAL, Phase, advance
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.messages import (
    Reason,
    Rejection,
    Signed,
    SyncRequest,
    Withdrawal,
    reject,
)
from faircount.protocol.wire.roster_messages import RosterProposal
from faircount.protocol.wire.signing import make_statement, sign
from faircount.sharing.keys import is_canonical_key


def messages_now(s: Coordinator, rows: StepRows) -> Out:
    """What the coordinator last had to say to the aggregator, again: after a crash, or when no
    answer came.
    """
    if s.final is not None:
        return (s.final.signed,) if s.final.signed.by == Party.COORDINATOR else ()
    if s.awaiting_sync:
        return (to_aggregator(s, SyncRequest(s.params.survey)),)
    if s.phase is Phase.ENROLLING:
        return (to_aggregator(s, roster_proposal(s)),) if s.roster else ()
    if s.phase is Phase.COUNTING and s.reservation is not None and not s.rules.is_complete(s, rows):
        return give_up(s, Ending(EndCode.REPORTS_LOST))[1]
    return s.rules.pending(s, rows)


def request_hashes_now(s: Coordinator, rows: StepRows) -> list[bytes]:
    """Hashes of what the coordinator says to the aggregator now."""
    return [
        sha256(message.payload).digest()
        for message in messages_now(s, rows)
        if isinstance(message, Signed)
    ]


def to_aggregator(s: Coordinator, what: Message) -> Signed:
    """A message under the coordinator's signature, with the newest statement of the aggregator
    that it has heard.
    """
    return sign(s.key, Party.COORDINATOR, what, s.newest)


def with_manifest(s: Coordinator, manifest: Message, *path: Phase) -> Coordinator:
    """The state with its batch fixed, and nothing said about it yet."""
    return replace(
        s,
        manifest=manifest,
        manifest_hash=sha256(encode(manifest)).digest(),
        reservation=None,
        included=None,
        phase=advance(s.phase, *path),
    )


def withdraw(s: Coordinator, rows: StepRows, message: Withdrawal) -> Change:
    """A person takes its answer back before the claim, for good: its body is deleted, its later
    uploads are refused.

    On a sealed roster it is a user who vanished. A restored coordinator first asks the
    aggregator whether there is a claim.
    """
    user = invited_user(rows, message.access)
    if user is None:
        return s, (reject(Reason.UNKNOWN, "no such invitation for this survey"),)
    if user not in rows.withdrawn:
        # check: withdrawal-before-sync - a restored coordinator confirms what is too late
        if s.awaiting_sync:
            why = "The coordinator was restored and does not know yet what stands: ask again later"
            return s, (reject(Reason.EARLY, why),)
        # check: late-withdrawal - it would be confirmed, and the report still counted
        if s.manifest is not None or s.final is not None:
            return s, (reject(Reason.LATE, "the batch is fixed: it is too late to withdraw"),)
        rows.withdrawn.put(user, sha256(encode(message)).digest())
        # A line of the roster stays, so that its user can still be told from others.
        if not s.roster:
            # check: withdrawn-report-deleted - nothing is left for whoever seizes the coordinator
            rows.first_messages.scrub(user)
    return s, (unsigned_acknowledgement(s.params.survey, rows.withdrawn[user]),)


def has_withdrawn(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether the user at this place of the roster has withdrawn."""
    return index < s.n and s.roster[index].user in rows.withdrawn


_WITHDRAWN = "this person has withdrawn from the survey, which is final"


def admit_person(
    s: Coordinator, rows: StepRows, access: bytes, public_key: bytes
) -> bytes | Rejection:
    """The user id of an invited person with a key of its own, or why it is not admitted."""
    user = invited_user(rows, access)
    if user is None:
        return reject(Reason.UNKNOWN, "no such invitation for this survey")
    # check: report-after-withdrawal - a replayed report would undo the withdrawal
    if user in rows.withdrawn and all(line.user != user for line in s.roster):
        return reject(Reason.CLOSED, _WITHDRAWN)
    if not is_canonical_key(public_key) or not rows.keys.fits(public_key, user):
        return reject(
            Reason.MALFORMED, "a public key is canonical and belongs to one user: make a new one"
        )
    full = len(rows.first_messages) >= s.params.n_max and user not in rows.first_messages
    if full and all(
        line.user != user for line in s.roster
    ):  # whom the aggregator has sealed may always come back
        return reject(Reason.FULL, f"the survey has its {s.params.n_max} users")
    return user


def write_body(s: Coordinator, rows: StepRows, user: bytes, body: Any, *, open_: bool) -> Change:
    """First write of a user's enrolment or submission; the same again is accepted at any time."""
    if user not in rows.first_messages and not (open_ and s.final is None):
        return s, (reject(Reason.LATE, "the survey takes no more users"),)
    # Only hashes are left when the survey is over: what was deleted is not taken in again.
    take = rows.first_messages.fits if s.phase in FINAL else rows.first_messages.put
    if not take(user, body):
        return s, (
            reject(Reason.CONFLICT, "this invitation was used with other bytes; the first stand"),
        )
    rows.keys.put(body.public_key, user)
    return s, (unsigned_acknowledgement(s.params.survey, rows.first_messages.hash_of(user)),)


def roster_proposal(s: Coordinator) -> RosterProposal:
    """What the aggregator is asked to seal."""
    return RosterProposal(s.params.survey, s.params.digest, s.roster)


def credential_problem(
    s: Coordinator, rows: StepRows, index: int, credential: bytes
) -> Rejection | None:
    """Why this is not the user at this place of the roster; None if it is."""
    if index < s.n:
        body = rows.first_messages.get(s.roster[index].user)
        shown = sha256(credential).digest()
        if (
            body is not None
            # check: user-credential - a client uploads in the name of another user of the roster
            and hmac.compare_digest(shown, body.credential_hash)
        ):
            return None
    return reject(Reason.UNKNOWN, "no user of the roster has this credential")


def upload(
    s: Coordinator, rows: StepRows, message: Any, *, made_for: int | bytes, open_: bool
) -> Change:
    """First write of an authenticated user's message; the same again is accepted at any time, even
    late.

    Spoiled bytes are mended only while the phase is open: later, others may have been given them.
    """
    problem = credential_problem(s, rows, message.index, message.credential)
    if problem is not None:
        return s, (problem,)
    # check: upload-after-withdrawal - a replayed upload would undo the withdrawal
    if has_withdrawn(s, rows, message.index):
        return s, (reject(Reason.CLOSED, _WITHDRAWN),)
    key = (message.tag, made_for, message.index)
    write = open_ and s.final is None
    if key not in rows.uploads and not write:
        return s, (reject(Reason.LATE, "this phase is not open for you"),)
    if not (rows.uploads.put if write else rows.uploads.fits)(key, message):
        return s, (reject(Reason.CONFLICT, "something else was sent before; the first stands"),)
    return s, (unsigned_acknowledgement(s.params.survey, rows.uploads.hash_of(key)),)


def intact_upload(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: int | bytes, index: int
) -> Any | None:
    """This user's message as acknowledged; None if there is none, it was spoiled, or its sender
    took it back.
    """
    # check: withdrawn-upload-ignored - what was sent before a withdrawal would still be counted
    if kind in s.rules.answer_messages and has_withdrawn(s, rows, index):
        return None
    return rows.uploads.intact((kind.tag, made_for, index))


def has_upload(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: int | bytes, index: int
) -> bool:
    """Whether the coordinator has this user's message as acknowledged; if not, the user is asked
    again while there is time.
    """
    return intact_upload(s, rows, kind, made_for, index) is not None


def give_up(s: Coordinator, ending: Ending) -> Change:
    """Ask the aggregator to end the survey.

    It is over when the aggregator says so: a restored coordinator may not know that there is a
    result.
    """
    wish = make_aborted(s.params.survey, ending, Party.COORDINATOR, spent=s.rules.charges_abort(s))
    last = make_statement(s.key, Party.COORDINATOR, wish, s.newest)
    return replace(s, final=last), (last.signed,)


def end_alone(s: Coordinator, rows: StepRows, ending: Ending) -> Change:
    """End the survey whatever the aggregator says about it: it has contradicted itself, or asked
    for what the coordinator must not give.
    """
    wished, out = give_up(s, ending)
    return s.rules.scrub(replace(wished, phase=advance(s.phase, Phase.ABORTED)), rows), out
