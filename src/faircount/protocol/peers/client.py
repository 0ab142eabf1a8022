"""The client in every topology in which participants enrol before they respond.

    enrol           draw keys and credential, send the enrolment
    verify          check the roster that the aggregator confirmed, and find the own place in it
    draw            response and shares, once; send the topology's first message
    poll            ask the coordinator what to do, and answer its requests, until the survey ends

A subclass says how response and shares are drawn, and which function answers which request.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from faircount.core.entropy import Entropy
from faircount.protocol.peers import member as members
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.messages import Enrolment, Roster
from faircount.protocol.roles.client import Client, ClientState, TopologyClientState
from faircount.protocol.survey.inclusion import Entry
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import CryptoSuite
from faircount.protocol.wire.messages import OutcomeRequest, Reason, Rejection
from faircount.protocol.wire.signing import SigningKey

RequestHandler = Callable[[Any, Any, Entropy], tuple[Any, Any]]
"""(state, request, entropy) -> (state, the message to send for it, or a `Rejection`)."""


class PeersClient(Client):
    """Enrol, verify the roster, draw, then answer the coordinator's requests with `handlers`."""

    handlers: ClassVar[Mapping[type[Message], RequestHandler]]
    roster_kind: ClassVar[type[Message]] = Roster

    def start(
        self, params: SurveyParameters, blank: ClientState, crypto: CryptoSuite, entropy: Entropy
    ) -> ClientState:
        """Draw keys and credential."""
        member = members.enrol(params, blank.invitation, entropy, crypto)
        return replace(blank, state=member, waiting=(member.enrolment,))

    def next_message(self, client: ClientState) -> Message | None:
        """An unacknowledged message first; then a poll, until the client knows the outcome."""
        if client.waiting:
            return client.waiting[0]
        if client.withdrawn or client.outcome is not None:
            return None
        member = member_of(client)
        if member.index >= 0:
            return members.poll_request(member)
        # Without a place in the roster the client shows its invitation.
        return self.outcome_request(client)

    def handle_topology_response(
        self, client: ClientState, request: Message, response: Message, entropy: Entropy
    ) -> ClientState:
        """Handle a rejection, the roster, or a request."""
        if isinstance(response, Rejection):
            return self._handle_rejection(client, request, response)
        if isinstance(response, self.roster_kind):
            return self._handle_roster(client, response, entropy)
        return self._handle_request(client, response, entropy)

    def _handle_rejection(
        self, client: ClientState, request: Message, rejection: Rejection
    ) -> ClientState:
        if isinstance(request, OutcomeRequest):
            # Not on the roster: the client came too late.
            return client.with_refused_response()
        if rejection.why is Reason.UNKNOWN and not isinstance(request, Enrolment):
            # The coordinator was restored and forgot this client: enrol again, with the same bytes.
            return replace(client, waiting=(member_of(client).enrolment, *client.waiting))
        return client.without_waiting(request)

    def _handle_roster(self, client: ClientState, roster: Any, entropy: Entropy) -> ClientState:
        member = member_of(client)
        placed = self.verify_roster(member, roster)
        if isinstance(placed, Rejection):
            return client.with_refused_response()
        # Response and shares are drawn for the first roster only. If it is shown again, the
        # coordinator has lost the message made of them, and gets the same bytes.
        if member.index < 0:
            client = replace(client, state=self.draw_response(client, placed, entropy))
        return replace(client, waiting=(self.first_message(client),))

    def _handle_request(
        self, client: ClientState, request: Message, entropy: Entropy
    ) -> ClientState:
        handler = self.handlers.get(type(request))
        # Before the roster is verified there is nothing that a request could be about.
        if handler is None or isinstance(client.state, Member):
            return client
        state, message = handler(client.state, request, entropy)
        if isinstance(message, Rejection):
            return client.with_refused_response()
        return replace(client, state=state, waiting=(message,))

    def params(self, client: ClientState) -> SurveyParameters:
        """The parameters that the client enrolled with."""
        return member_of(client).params

    def entry(self, client: ClientState) -> Entry:
        """The client's entry of the roster."""
        member = member_of(client)
        return member.user, member.keys.public

    def device(self, client: ClientState) -> SigningKey:
        """The key that was drawn with the enrolment."""
        return member_of(client).device

    def verify_roster(self, member: Member, roster: Any) -> Any:
        """The member with its place in the roster, or a `Rejection` that says what is wrong."""
        return members.verify_roster(member, roster)

    @abstractmethod
    def draw_response(
        self, client: ClientState, placed: Any, entropy: Entropy
    ) -> TopologyClientState:
        """Draw response and shares."""

    @abstractmethod
    def first_message(self, client: ClientState) -> Message:
        """The message made of response and shares."""


def member_of(client: ClientState) -> Member:
    """The enrolled member in a client's state."""
    state: Any = client.state
    member: Member = state if isinstance(state, Member) else state.member
    return member
