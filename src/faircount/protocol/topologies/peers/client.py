"""What a user does in every topology in which users enrol before they answer."""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from faircount.core.entropy import Entropy
from faircount.protocol.roles.client import Client, Device, UserState
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.peers import member as members
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.peers.messages import Enrolment, Roster
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Inquiry, Reason, Rejected
from faircount.protocol.wire.sealing import Sealing

AnswerCall = Callable[[Any, Any, Entropy], tuple[Any, Any]]
"""(state, call of S1, entropy) -> (state, the body for it or a `Rejected`)."""


class PeersClient(Client):
    """Enrol, check the roster, draw, then do what S1 asks for on every visit: `calls` says how."""

    calls: ClassVar[Mapping[type[Message], AnswerCall]]
    shows_roster: ClassVar[type[Message]] = Roster

    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """Key and credential."""
        member = members.join(params, blank.invitation, entropy, sealing)
        return replace(blank, state=member, waiting=(member.enrolment,))

    def ask(self, device: Device) -> Message | None:
        """The body until it is acknowledged, then what there is to do, until it knows how the survey ended."""
        if device.waiting:
            return device.waiting[0]
        if device.withdrawn or device.outcome is not None:
            return None
        member = member_of(device)
        return members.visit(member) if member.index >= 0 else Inquiry(member.params.survey, device.invitation.access)

    def go_on(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """A refusal, the roster, or a call."""
        if isinstance(answer, Rejected):
            return self._refused(device, asked, answer)
        if isinstance(answer, self.shows_roster):
            return self._on_roster(device, answer, entropy)
        return self._on_call(device, answer, entropy)

    def _refused(self, device: Device, asked: Message, answer: Rejected) -> Device:
        """S1 forgot this user after a restore: enrol again with the same bytes; else the body is not wanted."""
        if isinstance(asked, Inquiry):  # not on the roster: it came too late
            return device.disbelieving()
        if answer.why is Reason.UNKNOWN and not isinstance(asked, Enrolment):
            return replace(device, waiting=(member_of(device).enrolment, *device.waiting))
        return device.without(asked)

    def _on_roster(self, device: Device, answer: Any, entropy: Entropy) -> Device:
        """The first time response and shares are drawn, once; later S1 has not got what they were for: the same."""
        member = member_of(device)
        placed = self.verify_roster(member, answer)
        if isinstance(placed, Rejected):
            return device.disbelieving()
        if member.index < 0:
            device = replace(device, state=self.drawn(device, placed, entropy))
        return replace(device, waiting=(self.first_body(device),))

    def _on_call(self, device: Device, answer: Message, entropy: Entropy) -> Device:
        """A body for a call of S1, or a refusal."""
        answer_call = self.calls.get(type(answer))
        if answer_call is None or isinstance(device.state, Member):
            return device
        state, body = answer_call(device.state, answer, entropy)
        if isinstance(body, Rejected):
            return device.disbelieving()
        return replace(device, state=state, waiting=(body,))

    def params(self, device: Device) -> SurveyParameters:
        """As they were when it enrolled."""
        return member_of(device).params

    def entry(self, device: Device) -> Entry:
        """Its line of the roster."""
        member = member_of(device)
        return member.user, member.keys.public

    def verify_roster(self, member: Member, answer: Any) -> Any:
        """The user with its place in the roster that it is shown, or why it does not believe it."""
        return members.verify_roster(member, answer)

    @abstractmethod
    def drawn(self, device: Device, placed: Any, entropy: Entropy) -> UserState:
        """The user with response and shares drawn."""

    @abstractmethod
    def first_body(self, device: Device) -> Message:
        """The body made of them."""


def member_of(device: Device) -> Member:
    """The enrolled user inside a device."""
    state: Any = device.state
    member: Member = state if isinstance(state, Member) else state.member
    return member
