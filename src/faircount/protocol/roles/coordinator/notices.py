"""What the coordinator tells the device that answered: what else happened with its invitation.

Notices are flags in one row per user. They are added to what the device gets when it asks how the
survey goes, and are not signed: a coordinator that works together with the owner can hide them.
"""

from dataclasses import replace

from faircount.protocol.roles.coordinator.state import Coordinator, Out
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.devices import Notice
from faircount.protocol.survey.invitations import user_id
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import (
    FinalStatement,
    InclusionProof,
    NotReady,
    OutcomeRequest,
    PollRequest,
    Reason,
    Rejection,
)


def note(rows: StepRows, user: bytes, notice: Notice) -> None:
    """Write down that something happened with a user's invitation."""
    known = notices_for(rows, user)
    # The same again writes nothing: an owner who repeats it costs no disk write.
    if notice not in known:
        rows.notices.overwrite(user, bytes((known | notice,)))


def notices_for(rows: StepRows, user: bytes) -> Notice:
    """What happened with a user's invitation since a device has answered with it."""
    stored = rows.notices.get(user)
    return Notice(stored[0]) if stored else Notice(0)


def note_other_device(s: Coordinator, rows: StepRows, message: Message, out: Out) -> None:
    """Write down that another device has shown an invitation, if that is why it was rejected."""
    is_used = any(
        isinstance(reply, Rejection) and reply.why is Reason.INVITATION_USED for reply in out
    )
    # A survey that is over does not change any more.
    if is_used and s.final is None:
        note(rows, user_id(getattr(message, "access", b"")), Notice.OTHER_DEVICE)


def add_notices(s: Coordinator, rows: StepRows, message: Message, out: Out) -> Out:
    """The replies to a device that asks how the survey goes, with the notices for its user."""
    user = _asking_user(s, message)
    if user is None:
        return out
    notices = notices_for(rows, user)
    if not notices:
        return out
    return tuple(
        replace(reply, notices=int(notices))
        if isinstance(reply, NotReady | InclusionProof | FinalStatement)
        else reply
        for reply in out
    )


def _asking_user(s: Coordinator, message: Message) -> bytes | None:
    """Who asks; the handler of the message has authenticated the device, or rejected it."""
    if isinstance(message, OutcomeRequest):
        return user_id(message.access)
    if isinstance(message, PollRequest) and message.index < s.n:
        return s.roster[message.index].user
    return None
