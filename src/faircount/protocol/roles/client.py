"""The user's side: a device with durable state that comes by, says one thing after another, and may vanish at any time.

A device is a frozen value. It is written before anything is sent, so a crash before the write is the same as not having
heard the answer, and a crash after it the same as a lost request. A topology has one `Client`, which says how a device
begins, what it says next, and what it makes of an answer.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.sealing import Sealing


class UserState:
    """What a device has drawn and heard in one topology; each topology subclasses it."""


@dataclass(frozen=True)
class Device:
    """One user's durable state. `answer` is the position of its item in the item list.

    `waiting` holds the exact bodies that S1 has not yet acknowledged; `refused` counts answers of S1 that the device
    did not believe.
    """

    invitation: Invitation
    answer: int
    state: UserState | None = None
    waiting: tuple[Message, ...] = ()
    refused: int = 0

    def acknowledged(self, body: Message) -> "Device":
        """The device when one of its bodies needs to be sent no more."""
        return replace(self, waiting=tuple(each for each in self.waiting if each is not body))

    def disbelieving(self) -> "Device":
        """The device after an answer that it must not believe."""
        return replace(self, refused=self.refused + 1)


def goes_on(before: Device, after: Device) -> bool:
    """Whether a device that heard an answer may have more to say on this visit."""
    return after is not before and after.refused == before.refused


class Client(ABC):
    """The user's side of one topology."""

    @abstractmethod
    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """Draw what is drawn at the first visit; the result is written before anything is sent."""

    @abstractmethod
    def ask(self, device: Device) -> Message | None:
        """What the device says next, from its state alone; None if it has nothing to say."""

    @abstractmethod
    def hear(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """The device after an answer."""

    def counted_as(self, device: Device) -> dict[bytes, int | None]:
        """Under which name, and for which item, a result that includes this device counts it."""
        return {device.invitation.user: device.answer}


def state_of(device: Device, kind: type[Any]) -> Any:
    """The device's state, which a client only asks for once it has begun."""
    if not isinstance(device.state, kind):
        raise ProtocolError(f"the device has not come so far: it holds no {kind.__name__}")
    return device.state
