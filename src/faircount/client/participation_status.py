"""The status of a participation, as a stage for programs and as a sentence for the participant."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from faircount.core.domain import escape_controls
from faircount.protocol import ClientState, Message, encode
from faircount.protocol.survey.devices import Notice
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.wire.messages import Aborted, Published, Reason, Rejection


class Stage(StrEnum):
    """The stages of a participation, in the order in which a participant reaches them."""

    NOT_ANSWERED = "not answered"
    WAITING = "waiting"  # saved on this device, not acknowledged by the server
    SENT = "sent"  # acknowledged; the survey goes on
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    COUNTED = "counted"
    NOT_COUNTED = "not counted"
    NO_RESULT = "no result"


@dataclass(frozen=True, slots=True)
class ParticipationStatus:
    """The status of one participation.

    stage: not answered, waiting, sent, refused, withdrawn, counted, not counted, or no result
    description: what that means for the participant, in a sentence or two
    notices: what else happened with the invitation: other device, reissue refused
    """

    stage: Stage
    description: str
    notices: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether the participation is complete, so that there is no reason to come back."""
        return self.stage not in (Stage.NOT_ANSWERED, Stage.WAITING, Stage.SENT)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "stage": str(self.stage),
            "description": self.description,
            "over": self.is_over,
            "notices": list(self.notices),
        }

    def __str__(self) -> str:
        return self.description


DESCRIPTIONS = {
    Stage.NOT_ANSWERED: "You have not answered on this device yet.",
    Stage.WAITING: "Your answer is saved on this device, but the server does not have it yet: come "
    "back later.",
    Stage.SENT: "The server has acknowledged your answer. The survey is still running.",
    Stage.REFUSED: "The server did not accept your answer.",
    Stage.WITHDRAWN: "Your answer is withdrawn and will not be counted.",
    Stage.COUNTED: "The result is published and counts your answer: this device has checked the "
    "proof.",
    Stage.NOT_COUNTED: "The result is published and does not count your answer.",
    Stage.NO_RESULT: "The survey ended without a result.",
}

NOTICES = {
    Notice.OTHER_DEVICE: "Another device has tried to use your invitation and was refused. If that "
    "was not you, tell the survey's contact: whoever made the invitations has a copy of yours.",
    Notice.REISSUE_REFUSED: "The owner of the survey has tried to replace your invitation and was "
    "refused, because you have answered with it.",
}


def status_of(client: ClientState | None, reply: Message | None = None) -> ParticipationStatus:
    """The status of a client; `reply` is the coordinator's latest, which may be a rejection."""
    stage = _stage_of(client)
    description = DESCRIPTIONS[stage]
    if isinstance(reply, Rejection):
        if reply.why is Reason.EARLY and stage is not Stage.WAITING:
            description = "It is too early: come back later."
        # Control characters of a dishonest server could rewrite the text on a terminal.
        detail = escape_controls(reply.detail.decode(errors="replace"))
        description += f" {detail[:1].upper()}{detail[1:]}."
    elif stage is Stage.NO_RESULT and client is not None and client.outcome is not None:
        ending = client.outcome.message
        if isinstance(ending, Aborted):
            description += f" The reason: {describe_abort(ending)}."
    notices = Notice(0 if client is None else client.notices)
    for notice in notices:
        description += f" {NOTICES[notice]}"
    return ParticipationStatus(stage, description, tuple(_name_of(notice) for notice in notices))


def _name_of(notice: Notice) -> str:
    return str(notice.name).lower().replace("_", " ")


def _stage_of(client: ClientState | None) -> Stage:
    if client is None or client.state is None:
        return Stage.NOT_ANSWERED
    if client.outcome is not None:
        # Verified when it arrived, with the aggregator's signature: nothing here is the
        # coordinator's word alone.
        if not isinstance(client.outcome.message, Published):
            return Stage.NO_RESULT
        return Stage.COUNTED if client.counted else Stage.NOT_COUNTED
    if client.waiting:
        return Stage.WAITING
    if is_withdrawal_acknowledged(client):
        return Stage.WITHDRAWN
    return Stage.SENT if client.acknowledgements else Stage.REFUSED


def is_withdrawal_acknowledged(client: ClientState) -> bool:
    """Whether the coordinator has signed that it stored the withdrawal."""
    if client.withdrawal is None:
        return False
    # Compared by hash: the coordinator has signed these bytes and no others, so it cannot pass an
    # older acknowledgement off as this one.
    wanted = sha256(encode(client.withdrawal)).digest()
    return any(
        acknowledgement.message_hash == wanted for acknowledgement in client.acknowledgements
    )
