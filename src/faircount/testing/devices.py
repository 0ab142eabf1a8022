"""Users' devices for the fault simulation: what each says on a visit and what it makes of the answer.

A device is a frozen value, its durable state: it is written before anything is sent, so a crash before the write is the
same as not having heard the answer, and a crash after it the same as a lost request. `waiting` holds the exact bodies
that S1 has not yet acknowledged. A topology is one `Client`; it is known once it stands in `CLIENTS`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from faircount.core.entropy import Entropy
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import SurveyParameters, Topology
from faircount.protocol.topologies.explicit import explicit
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import HelpCall, MaskCall, Neighbourhood
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import Call, Enrolment, Roster
from faircount.protocol.topologies.two_servers import servers
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import Assignment, SumCall
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.messages import Accepted, Inquiry, Reason, Rejected
from faircount.protocol.wire.sealing import Sealing


@dataclass(frozen=True)
class Device:
    """One user's durable state. `at` is the number of its invitation and the item it holds."""

    at: int
    invitation: Invitation
    state: Any = None
    waiting: tuple[Message, ...] = ()
    enrolment: Message | None = None
    heard: int = 0  # messages that the device refused: S1 showed it something that it must not believe


def goes_on(before: Device, after: Device) -> bool:
    """Whether a device that heard an answer may have more to say on this visit."""
    return after is not before and after.heard == before.heard


class Client(ABC):
    """The user's side of one topology."""

    topology: Topology

    def open(self, s1: Coordinator) -> Coordinator:
        """S1 as it stands when the first user arrives."""
        return s1

    @abstractmethod
    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """Draw what is drawn at the first visit; the result is written before anything is sent."""

    @abstractmethod
    def ask(self, device: Device) -> Message | None:
        """What the device says next, from its state alone; None if it has nothing to say."""

    @abstractmethod
    def hear(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """The device after an answer."""

    def counted(self, device: Device) -> dict[bytes, int | None]:
        """Under which name, and for which item, a result that includes this device counts it."""
        return {device.invitation.user: device.at}


class ServersClient(Client):
    """Answer and leave."""

    topology = Topology.SERVERS

    def open(self, s1: Coordinator) -> Coordinator:
        """There is no roster."""
        return servers.open_survey(s1)

    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """The whole answer."""
        made = servers.respond(params, blank.invitation, blank.at, entropy, sealing)
        return replace(blank, state=made, waiting=(made.body,))

    def ask(self, device: Device) -> Message | None:
        """The body until it is acknowledged."""
        return device.waiting[0] if device.waiting else None

    def hear(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """Any answer ends the visit for good."""
        return replace(device, waiting=())


class PeersClient(Client):
    """Enrol, believe the roster, draw, then do what S1 asks for on every visit: `calls` says how."""

    calls: Mapping[type[Message], Callable[[Any, Any, Entropy], tuple[Any, Any]]]

    def begin(self, params: SurveyParameters, blank: Device, sealing: Sealing, entropy: Entropy) -> Device:
        """Key and credential."""
        member = user.join(params, blank.invitation, entropy, sealing)
        return replace(blank, state=member, waiting=(member.enrolment,), enrolment=member.enrolment)

    def ask(self, device: Device) -> Message | None:
        """The body until it is acknowledged, then what there is to do."""
        if device.waiting:
            return device.waiting[0]
        member = self.member(device)
        return user.visit(member) if member.index >= 0 else Inquiry(member.params.survey, device.invitation.access)

    def hear(self, device: Device, asked: Message, answer: Message, entropy: Entropy) -> Device:
        """Go on with the answer."""
        if isinstance(answer, Accepted):
            return _without(device, asked)
        if isinstance(answer, Rejected):
            return self._refused(device, asked, answer)
        if isinstance(answer, (Roster, Neighbourhood)):
            return self._roster(device, answer, entropy)
        return self.called(device, answer, entropy)

    def _refused(self, device: Device, asked: Message, answer: Rejected) -> Device:
        """S1 forgot this user after a restore: enrol again with the same bytes; else the body is not wanted."""
        if isinstance(asked, Inquiry):  # not on the roster: it came too late
            return replace(device, heard=device.heard + 1)
        forgotten = answer.why is Reason.UNKNOWN and device.enrolment is not None
        if forgotten and not isinstance(asked, Enrolment):
            return replace(device, waiting=(device.enrolment, *device.waiting))  # type: ignore[arg-type]  # not None
        return _without(device, asked)

    def _roster(self, device: Device, answer: Any, entropy: Entropy) -> Device:
        """The first time response and shares are drawn, once; later S1 has not got what they were for: the same."""
        member = self.member(device)
        believed = self.believe(member, answer)
        if isinstance(believed, Rejected):
            return replace(device, heard=device.heard + 1)
        if member.index < 0:
            device = replace(device, state=self.drawn(device, believed, entropy))
        return replace(device, waiting=(self.first(device),))

    def member(self, device: Device) -> user.Member:
        """The enrolled user inside the device."""
        member: user.Member = device.state if isinstance(device.state, user.Member) else device.state.member
        return member

    def believe(self, member: user.Member, answer: Any) -> Any:
        """What the user makes of the roster that it is shown."""
        return user.believe(member, answer)

    @abstractmethod
    def drawn(self, device: Device, placed: Any, entropy: Entropy) -> Any:
        """The user with response and shares drawn."""

    @abstractmethod
    def first(self, device: Device) -> Message:
        """The body made of them."""

    def called(self, device: Device, answer: Message, entropy: Entropy) -> Device:
        """The device after a call of S1: a body for it, or a refusal."""
        answering = self.calls.get(type(answer))
        if answering is None or isinstance(device.state, user.Member):
            return device
        state, body = answering(device.state, answer, entropy)
        if isinstance(body, Rejected):
            return replace(device, heard=device.heard + 1)
        return replace(device, state=state, waiting=(body,))


class ExplicitClient(PeersClient):
    """`explicit`: a bundle of shares, then a sum for every attempt."""

    topology = Topology.EXPLICIT

    def __init__(self) -> None:
        self.calls = {Call: lambda *each: explicit.answer_call(*each)}

    def drawn(self, device: Device, placed: Any, entropy: Entropy) -> explicit.Sharer:
        """Vector and shares."""
        return explicit.share(placed, device.at, entropy)

    def first(self, device: Device) -> Message:
        """The bundle of shares."""
        return device.state.bundle  # type: ignore[no-any-return]


class MaskedClient(PeersClient):
    """`masked`: a shared mask key, a masked vector for every attempt, help with the keys of who vanished."""

    topology = Topology.MASKED

    def __init__(self) -> None:
        self.calls = {
            MaskCall: lambda *each: masked_user.answer_call(*each),
            HelpCall: lambda *each: masked_user.answer_help(*each),
        }

    def believe(self, member: user.Member, answer: Any) -> Any:
        """Place and neighbours."""
        return masked_user.believe(member, answer)

    def drawn(self, device: Device, placed: Any, entropy: Entropy) -> masked_user.Masker:
        """Vector and mask key."""
        return masked_user.share(placed, device.at, entropy)

    def first(self, device: Device) -> Message:
        """The shares of the mask key."""
        return device.state.bundle  # type: ignore[no-any-return]


class TwoStageClient(PeersClient):
    """TSS': an indicator, shares for the elected users, sums of the slots it was elected for."""

    topology = Topology.TWO_STAGE

    def __init__(self) -> None:
        self.calls = {
            Assignment: lambda *each: two_stage_user.report(*each),
            SumCall: lambda *each: two_stage_user.add_up(*each),
        }

    def drawn(self, device: Device, placed: Any, entropy: Entropy) -> two_stage_user.Participant:
        """Coin, set and bits."""
        return two_stage_user.indicate(placed, device.at, entropy)

    def first(self, device: Device) -> Message:
        """The set of items that it reports."""
        return device.state.indicator  # type: ignore[no-any-return]

    def counted(self, device: Device) -> dict[bytes, int | None]:
        """It is known by a key of its own, and counts only if its set contains its item."""
        if not isinstance(device.state, two_stage_user.Participant):
            return {}
        hit = device.state.bits.any() and device.at in device.state.items
        return {device.state.disguise.public: device.at if hit else None}


def _without(device: Device, body: Message) -> Device:
    return replace(device, waiting=tuple(each for each in device.waiting if each is not body))


CLIENTS: Mapping[Topology, Client] = {
    each.topology: each for each in (ServersClient(), ExplicitClient(), MaskedClient(), TwoStageClient())
}
"""The user's side of every topology that the simulation plays."""
