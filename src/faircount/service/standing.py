"""Where a person's part in a survey stands, in one word and in a sentence."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any

from faircount.core.domain import shown
from faircount.protocol import Device, Message, encode
from faircount.protocol.wire.messages import Aborted, Published, Reason, Rejected, Withdraw


class Stage(StrEnum):
    """In the order in which a person meets them."""

    NOT_ANSWERED = "not answered"
    WAITING = "waiting"  # on this device; not acknowledged by the server
    SENT = "sent"  # acknowledged; the survey goes on
    REFUSED = "refused"
    WITHDRAWN = "withdrawn"
    COUNTED = "counted"
    NOT_COUNTED = "not counted"
    NO_RESULT = "no result"


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a person's part in a survey stands.

    stage: not answered, waiting, sent, refused, withdrawn, counted, not counted, or no result
    words: what that means for the person
    """

    stage: Stage
    words: str

    @property
    def over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.stage not in (Stage.NOT_ANSWERED, Stage.WAITING, Stage.SENT)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"stage": str(self.stage), "words": self.words, "over": self.over}

    def __str__(self) -> str:
        return self.words


WORDS = {
    Stage.NOT_ANSWERED: "Nothing was answered on this device yet.",
    Stage.WAITING: "Your answer is kept on this device and not yet with the server: come back later.",
    Stage.SENT: "The server has acknowledged what you sent. The survey goes on.",
    Stage.REFUSED: "The server did not take this answer.",
    Stage.WITHDRAWN: "Your answer is withdrawn: it will not be counted.",
    Stage.COUNTED: "The result is published and counts your answer: this device has checked the proof.",
    Stage.NOT_COUNTED: "The result is published and does not count your answer.",
    Stage.NO_RESULT: "The survey ended without a result.",
}


def standing_of(device: Device | None, answer: Message | None = None) -> Standing:
    """Where a device stands; `answer` is the last that it heard, for the words of a refusal."""
    stage = _stage(device)
    words = WORDS[stage]
    if isinstance(answer, Rejected):
        words = f"{_refusal(stage, answer)} {_said(answer)}"
    elif stage is Stage.NO_RESULT and device is not None and device.outcome is not None:
        ended = device.outcome.says
        words += f" {shown(ended.reason.decode(errors='replace'))}." if isinstance(ended, Aborted) else ""
    return Standing(stage, words)


def _stage(device: Device | None) -> Stage:
    if device is None or device.state is None:
        return Stage.NOT_ANSWERED
    if device.outcome is not None:
        if not isinstance(device.outcome.says, Published):
            return Stage.NO_RESULT
        return Stage.COUNTED if device.counted else Stage.NOT_COUNTED
    if device.waiting:
        return Stage.WAITING
    if took_back(device):
        return Stage.WITHDRAWN
    return Stage.SENT if device.acknowledgements else Stage.REFUSED


def took_back(device: Device) -> bool:
    """Whether S1 has acknowledged that the answer is withdrawn."""
    return any(
        each.body_hash == sha256(encode(Withdraw(each.survey, device.invitation.access))).digest()
        for each in device.acknowledgements
    )


def _refusal(stage: Stage, answer: Rejected) -> str:
    """What a refusal means; its own words follow."""
    if answer.why is Reason.EARLY:
        return "It is too early: come back later."
    return WORDS[stage]


def _said(answer: Rejected) -> str:
    words = shown(answer.detail.decode(errors="replace"))
    return f"{words[:1].upper()}{words[1:]}."
