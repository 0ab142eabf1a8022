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
from faircount.protocol.survey.acknowledgement import acknowledges
from faircount.protocol.survey.inclusion import Entry, counts_in
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.messages import Aborted, Accepted, Concluded, Inclusion, Inquiry, Published, Withdraw
from faircount.protocol.wire.sealing import Sealing
from faircount.protocol.wire.signing import Statement, verified
from faircount.protocol.wire.stored import StoredState


class UserState(StoredState):
    """What a device has drawn and heard in one topology; each topology subclasses it."""


@dataclass(frozen=True)
class Device(StoredState):
    """One user's durable state. `answer` is the position of its item in the item list.

    `waiting` holds the exact bodies that S1 has not yet acknowledged, `acknowledgements` what S1 signed for the others;
    `refused` counts answers of S1 that the device did not believe. `outcome` is how the survey ended, as S2 signed it,
    and `counted` whether the result counts this device.
    """

    stored_version = 2
    invitation: Invitation
    answer: int
    state: UserState | None = None
    waiting: tuple[Message, ...] = ()
    acknowledgements: tuple[Accepted, ...] = ()
    refused: int = 0
    outcome: Statement | None = None
    counted: bool = False
    withdrawn: bool = False

    def without(self, body: Message) -> "Device":
        """The device when one of its bodies needs to be sent no more."""
        return replace(self, waiting=self._left(body))

    def acknowledged(self, params: SurveyParameters, body: Message, answer: Accepted) -> "Device":
        """The device when S1 has signed that it wrote a body; a signature that is none changes nothing."""
        if not acknowledges(params, answer, body):
            return self.disbelieving()
        return replace(self, waiting=self._left(body), acknowledgements=(*self.acknowledgements, answer))

    def _left(self, body: Message) -> tuple[Message, ...]:
        return tuple(each for each in self.waiting if each != body)

    def concluded(self, params: SurveyParameters, answer: Inclusion | Concluded, entry: Entry) -> "Device":
        """The device when it was told how the survey ended; `entry` is the user id and key that a result names."""
        signed = answer.published if isinstance(answer, Inclusion) else answer.statement
        statement = verified(params.keys.s2, Party.S2, signed)
        if statement is None or not isinstance(statement.says, Published | Aborted):
            return self.disbelieving()
        if statement.says.survey != params.survey or self.outcome not in (None, statement):
            return self.disbelieving()  # two results of one survey are proof that S2 was rolled back or lies
        counted = isinstance(answer, Inclusion) and counts_in(params, answer, *entry)
        return replace(self, waiting=(), outcome=statement, counted=counted)

    def disbelieving(self) -> "Device":
        """The device after an answer that it must not believe."""
        return replace(self, refused=self.refused + 1)


def goes_on(before: Device, after: Device) -> bool:
    """Whether a device that heard an answer may have more to say on this visit."""
    return after is not before and after.refused == before.refused


class Client(ABC):
    """The user's side of one topology."""

    @abstractmethod
    def params(self, device: Device) -> SurveyParameters:
        """The survey in which a device that has begun takes part."""

    @abstractmethod
    def entry(self, device: Device) -> Entry:
        """How a result would name this device."""

    def inquire(self, device: Device) -> Message:
        """The question how the survey ended, and whether this device was counted."""
        return Inquiry(self.params(device).survey, device.invitation.access)

    def withdraw(self, device: Device) -> Device:
        """The device that takes its answer back, for good. S1 says whether it was in time."""
        taken_back = Withdraw(self.params(device).survey, device.invitation.access)
        return replace(device, waiting=(taken_back,), withdrawn=True)

    def said_before(self, device: Device) -> Message | None:
        """What S1 has acknowledged, to be said once more on a later visit: a restored S1 may have lost it."""
        return None

    @abstractmethod
    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """Draw what is drawn at the first visit; the result is written before anything is sent."""

    @abstractmethod
    def ask(self, device: Device) -> Message | None:
        """What the device says next, from its state alone; None if it has nothing to say."""

    def hear(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """The device after an answer."""
        if isinstance(answer, Accepted):
            return device.acknowledged(self.params(device), asked, answer)
        if isinstance(answer, (Inclusion, Concluded)):
            return device.concluded(self.params(device), answer, self.entry(device))
        return self.go_on(device, asked, answer, entropy)

    @abstractmethod
    def go_on(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """The device after an answer that is neither an acknowledgement nor the end: a refusal, or something to do."""

    def counted_as(self, device: Device) -> dict[bytes, int | None]:
        """Under which name, and for which item, a result that includes this device counts it."""
        return {device.invitation.user: device.answer}


def state_of(device: Device, kind: type[Any]) -> Any:
    """The device's state, which a client only asks for once it has begun."""
    if not isinstance(device.state, kind):
        raise ProtocolError(f"the device has not come so far: it holds no {kind.__name__}")
    return device.state
