"""What the coordinator (S1) does in every topology, as functions of its state and its rows.

A topology builds its handlers from these functions:

    admit_participant, store_first_message   a participant enrols, or reports in `servers`
    recognize_device                         the device that answered sends another message
    upload                                   a participant of the roster sends another message
    withdraw                                 a participant deletes the report before the manifest
    with_manifest                            the batch is fixed
    request_abort                            ask the aggregator to end the survey
    abort_without_aggregator                 end it at once: the aggregator is dishonest or gone

The state does not record what was sent. `unanswered_messages` computes from state and rows what the
aggregator may have missed, so that after a crash the same messages are sent again.
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
from faircount.protocol.survey.devices import DeviceMessage, is_signed_by_device
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.survey.invitations import user_id
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

HASH = 32
"""Bytes of a withdrawal's hash in its row; the key of the device follows."""

_WITHDRAWN = "this participant has withdrawn from the survey, which is final"
_USED = (
    "somebody else has answered with your invitation, unless you did so on another device. The "
    "first answer counts, and only the device that sent it can withdraw it. If it was not you, ask "
    "the survey's contact: whoever made the invitations could have used yours"
)
_REPLACED = (
    "the owner of the survey has replaced your invitation by another one. If you have not asked "
    "for that, somebody else may answer in your place: ask the survey's contact"
)


def unanswered_messages(s: Coordinator, rows: StepRows) -> Out:
    """The messages that the aggregator has not answered yet, in the current state."""
    if s.final is not None:
        # A request to abort waits for the final statement; a final statement needs no answer.
        return (s.final.signed,) if s.final.signed.by == Party.COORDINATOR else ()
    if s.awaiting_sync:
        return (to_aggregator(s, SyncRequest(s.params.survey)),)
    if s.phase is Phase.ENROLLING:
        return (to_aggregator(s, roster_proposal(s)),) if s.roster else ()
    if s.phase is Phase.COUNTING and s.reservation is not None and not s.rules.is_complete(s, rows):
        _, out = request_abort(s, Ending(EndCode.REPORTS_LOST))
        return out
    return s.rules.unanswered_messages(s, rows)


def unanswered_request_hashes(s: Coordinator, rows: StepRows) -> list[bytes]:
    """Hashes of the current messages to the aggregator, by which its refusals name them."""
    return [
        sha256(message.payload).digest()
        for message in unanswered_messages(s, rows)
        if isinstance(message, Signed)
    ]


def to_aggregator(s: Coordinator, content: Message) -> Signed:
    """A signed message with a chain link to the newest statement received from the aggregator."""
    return sign(s.key, Party.COORDINATOR, content, s.chain_end)


def with_manifest(s: Coordinator, manifest: Message, *path: Phase) -> Coordinator:
    """The state with its batch fixed, before the aggregator has answered anything about it."""
    return replace(
        s,
        manifest=manifest,
        manifest_hash=sha256(encode(manifest)).digest(),
        reservation=None,
        accepted=None,
        phase=advance(s.phase, *path),
    )


def withdraw(s: Coordinator, rows: StepRows, message: Withdrawal) -> Change:
    """Withdraw a participant's response for good, if the manifest is not fixed yet.

    The report is deleted, and later uploads of this participant are rejected. A participant of a
    confirmed roster then counts as one who dropped out.
    """
    user = recognize_device(s, rows, message)
    if isinstance(user, Rejection):
        return s, (user,)
    # A repeated withdrawal is acknowledged at any time, with the same hash.
    if user not in rows.withdrawn:
        # check: withdrawal-before-sync - a restored coordinator confirms what is too late
        if s.awaiting_sync:
            why = "the coordinator was restored and is not up to date yet: ask again later"
            return s, (reject(Reason.EARLY, why),)
        # check: late-withdrawal - it would be confirmed, and the report still counted
        if s.manifest is not None or s.final is not None:
            return s, (reject(Reason.LATE, "the batch is fixed: it is too late to withdraw"),)
        # Whoever withdraws before anything has arrived is the first device, too.
        rows.withdrawn.put(user, sha256(encode(message)).digest() + message.device_key)
        # An enrolment on the roster stays: its credential hash still tells this participant from
        # others.
        if not s.roster:
            # check: withdrawn-report-deleted - whoever seizes the coordinator would find the report
            rows.first_messages.scrub(user)
    return s, (unsigned_acknowledgement(s.params.survey, rows.withdrawn[user][:HASH]),)


def has_withdrawn(s: Coordinator, rows: StepRows, index: int) -> bool:
    """Whether the participant at this position of the roster has withdrawn."""
    return index < s.n and s.roster[index].user in rows.withdrawn


def _is_on_roster(s: Coordinator, user: bytes) -> bool:
    return any(entry.user == user for entry in s.roster)


def recognize_device(s: Coordinator, rows: StepRows, message: DeviceMessage) -> bytes | Rejection:
    """The user id of the participant whose device has signed this message, or why it has not.

    If no first message was stored, any device may ask or withdraw with the invitation.
    """
    user = _first_device_user(s, rows, message)
    # check: device-signature - whoever has seen the public key of a device speaks for it
    if not isinstance(user, Rejection) and not is_signed_by_device(s.params, message):
        return reject(Reason.UNSIGNED, "the key of the device has not signed this message")
    return user


def _first_device_user(s: Coordinator, rows: StepRows, message: Any) -> bytes | Rejection:
    """The user id of an invitation that no other device has used."""
    access = message.access
    user = invited_user(rows, access)
    if user is None:
        # The row of an exchanged invitation stays, without its access value.
        if rows.invited.get(user_id(access)) is not None:
            return reject(Reason.INVITATION_REPLACED, _REPLACED)
        return reject(Reason.UNKNOWN, "no such invitation for this survey")
    # check: answering-device - the owner has every invitation, and takes chosen answers back
    if _first_device(s, rows, user) not in (None, message.device_key):
        return reject(Reason.INVITATION_USED, _USED)
    return user


def _first_device(s: Coordinator, rows: StepRows, user: bytes) -> bytes | None:
    """The key of the device that was the first to use an invitation, if any was."""
    known = rows.first_messages.kept_after_scrub(user)
    if known is None and (withdrawn := rows.withdrawn.get(user)) is not None:
        known = withdrawn[HASH:]
    # check: roster-device - a restored coordinator takes the owner's word for somebody enrolled
    if known is None and s.roster:
        known = next((entry.device_key for entry in s.roster if entry.user == user), None)
    return known


def admit_participant(s: Coordinator, rows: StepRows, message: Any) -> bytes | Rejection:
    """The user id of an invited participant's enrolment or report, or why nobody is admitted."""
    user = _first_device_user(s, rows, message)
    if isinstance(user, Rejection):
        return user
    # check: report-after-withdrawal - a replayed report would undo the withdrawal
    if user in rows.withdrawn and not _is_on_roster(s, user):
        return reject(Reason.CLOSED, _WITHDRAWN)
    if not is_canonical_key(message.public_key):
        return reject(Reason.MALFORMED, "a public key is canonical: make a new one")
    is_full = len(rows.first_messages) >= s.params.n_max and user not in rows.first_messages
    # check: participants-admitted - the sum of more people than were planned for may wrap around
    # After a restore, participants of the confirmed roster enrol again: they always have a place.
    if is_full and not _is_on_roster(s, user):
        return reject(Reason.FULL, f"the survey has its {s.params.n_max} participants")
    return user


def store_first_message(
    s: Coordinator, rows: StepRows, user: bytes, message: Any, *, phase_is_open: bool
) -> Change:
    """Store a participant's enrolment or report, once; the same bytes again are acknowledged.

    phase_is_open: whether the phase takes new participants
    """
    if not (phase_is_open and s.final is None) and user not in rows.first_messages:
        return s, (reject(Reason.LATE, "the survey takes no more participants"),)
    # After the end only hashes are left: what was deleted must not be stored again.
    if s.phase in FINAL:
        is_accepted = rows.first_messages.accepts(user, message)
    else:
        is_accepted = rows.first_messages.put(user, message, kept=message.device_key)
    if not is_accepted:
        why = "this invitation was used with other bytes; the first ones count"
        return s, (reject(Reason.CONFLICT, why),)
    return s, (unsigned_acknowledgement(s.params.survey, rows.first_messages.hash_of(user)),)


def roster_proposal(s: Coordinator) -> RosterProposal:
    """The roster that the aggregator is asked to confirm."""
    return RosterProposal(s.params.survey, s.params.digest, s.roster)


def credential_problem(
    s: Coordinator, rows: StepRows, index: int, credential: bytes
) -> Rejection | None:
    """Why this is not the participant at this position of the roster; None if it is."""
    if index < s.n:
        enrolment = rows.first_messages.get(s.roster[index].user)
        shown = sha256(credential).digest()
        if (
            enrolment is not None
            # check: user-credential - a client uploads in the name of another user of the roster
            and hmac.compare_digest(shown, enrolment.credential_hash)
        ):
            return None
    return reject(Reason.UNKNOWN, "no participant of the roster has this credential")


def upload(
    s: Coordinator, rows: StepRows, message: Any, *, made_for: int | bytes, phase_is_open: bool
) -> Change:
    """Store an authenticated participant's message, once.

    The same bytes again are acknowledged at any time, even late.

    made_for: the attempt or digest that the message belongs to, part of its key
    phase_is_open: whether the phase takes new messages
    """
    problem = credential_problem(s, rows, message.index, message.credential)
    if problem is not None:
        return s, (problem,)
    # check: upload-after-withdrawal - a replayed upload would undo the withdrawal
    if has_withdrawn(s, rows, message.index):
        return s, (reject(Reason.CLOSED, _WITHDRAWN),)
    key = (message.tag, made_for, message.index)
    is_open = phase_is_open and s.final is None
    if key not in rows.uploads and not is_open:
        return s, (reject(Reason.LATE, "this phase takes no new messages"),)
    # Damaged bytes are repaired only while the phase is open: later, others may have received them.
    accept = rows.uploads.put if is_open else rows.uploads.accepts
    if not accept(key, message):
        why = "another message was sent before; the first one counts"
        return s, (reject(Reason.CONFLICT, why),)
    return s, (unsigned_acknowledgement(s.params.survey, rows.uploads.hash_of(key)),)


def intact_upload(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: int | bytes, index: int
) -> Any | None:
    """A participant's message as it was acknowledged.

    None if there is none, if its bytes were damaged, or if its sender has withdrawn.
    """
    # check: withdrawn-upload-ignored - what was sent before a withdrawal would still be counted
    if kind in s.rules.answer_messages and has_withdrawn(s, rows, index):
        return None
    return rows.uploads.intact((kind.tag, made_for, index))


def has_upload(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: int | bytes, index: int
) -> bool:
    """Whether there is an intact message of this participant; if not, the client is asked again."""
    return intact_upload(s, rows, kind, made_for, index) is not None


def request_abort(s: Coordinator, ending: Ending) -> Change:
    """Ask the aggregator to abort the survey.

    The survey is over when the aggregator has signed its final statement. That may be a result: a
    restored coordinator may not know that it was published.
    """
    spent = s.rules.charges_abort(s)
    aborted = make_aborted(s.params.survey, ending, Party.COORDINATOR, spent=spent)
    request = make_statement(s.key, Party.COORDINATOR, aborted, s.chain_end)
    return replace(s, final=request), (request.signed,)


def abort_without_aggregator(s: Coordinator, rows: StepRows, ending: Ending) -> Change:
    """Abort the survey at once, and tell the aggregator.

    For an aggregator that has contradicted itself, has lost the survey, or has asked for something
    that the coordinator must not send.
    """
    requested, out = request_abort(s, ending)
    aborted = replace(requested, phase=advance(s.phase, Phase.ABORTED))
    return s.rules.scrub(aborted, rows), out
