"""The client: a state machine with durable state that may vanish, and come back, at any time.

A client's state is a frozen value, `ClientState`. Whoever runs a client (the command line, a page,
a simulation) repeats four steps:

    message = topology.client.next_message(state)       from the state alone; None: nothing to send
    response = send it to the coordinator
    state = topology.client.handle_response(state, message, response, entropy)
    store the state, and only then send the next message

Because the state is stored before anything is sent, a crash before the write is the same as a lost
response, and a crash after it the same as a lost request: the client sends the same bytes again.
Everything random is drawn once and kept in the state. Drawing a second time would let the servers
see two noisy versions of one response.

Each topology implements `Client`, which holds no state of its own.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError
from faircount.core.questions import Sheet
from faircount.protocol.survey.acknowledgement import verify_acknowledgement
from faircount.protocol.survey.devices import ALL_NOTICES, sign_for_device
from faircount.protocol.survey.inclusion import Entry, verify_inclusion
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.crypto import CryptoSuite
from faircount.protocol.wire.messages import (
    Aborted,
    Acknowledgement,
    FinalStatement,
    InclusionProof,
    NotReady,
    OutcomeRequest,
    Published,
    Withdrawal,
)
from faircount.protocol.wire.signing import SigningKey, Statement, verify_statement
from faircount.protocol.wire.stored import StoredState


class TopologyClientState(StoredState):
    """What a client has drawn and received in one topology; each topology subclasses it."""


@dataclass(frozen=True)
class ClientState(StoredState):
    """One participant's durable state.

    Attributes:
        invitation: what entitles the participant to respond
        sheet: the participant's answers, one per question; never sent
        state: what the topology keeps; None before the first visit
        waiting: messages that the coordinator has not acknowledged yet, byte for byte
        acknowledgements: the coordinator's signatures for those that it has stored
        failed_checks: number of responses from the coordinator that failed a check
        outcome: how the survey ended, as the aggregator signed it
        counted: whether the published result includes this participant
        withdrawal: the message with which the participant has withdrawn the response
        notices: what else happened with the invitation, as flags (`Notice`)
        level: the privacy level that the participant chose, 0 for the strongest; never sent
    """

    stored_tag = "client"
    invitation: Invitation
    sheet: Sheet = field(repr=False)
    state: TopologyClientState | None = None
    waiting: tuple[Message, ...] = ()
    acknowledgements: tuple[Acknowledgement, ...] = ()
    failed_checks: int = 0
    outcome: Statement | None = None
    counted: bool = False
    withdrawal: Withdrawal | None = None
    notices: int = 0
    level: int = field(default=0, repr=False)

    @property
    def withdrawn(self) -> bool:
        """Whether the participant has withdrawn the response."""
        return self.withdrawal is not None

    def without_waiting(self, message: Message) -> "ClientState":
        """Return the state in which a message no longer waits to be sent."""
        return replace(self, waiting=self._waiting_besides(message))

    def _waiting_besides(self, message: Message) -> tuple[Message, ...]:
        return tuple(other for other in self.waiting if other != message)

    def with_acknowledgement(
        self, params: SurveyParameters, message: Message, acknowledgement: Acknowledgement
    ) -> "ClientState":
        """Return the state after the coordinator signed that it stored a message.

        An acknowledgement of something else leaves the message waiting: it would be a receipt for
        a report that the coordinator can still deny.
        """
        if not verify_acknowledgement(params, acknowledgement, message):
            return self.with_refused_response()
        return replace(
            self,
            waiting=self._waiting_besides(message),
            acknowledgements=(*self.acknowledgements, acknowledgement),
        )

    def with_outcome(
        self, params: SurveyParameters, response: InclusionProof | FinalStatement, entry: Entry
    ) -> "ClientState":
        """Return the state after the client learned how the survey ended.

        Args:
            params: the survey
            response: the aggregator's statement, as the coordinator relays it
            entry: user id and key under which a result would include this client
        """
        signed = response.published if isinstance(response, InclusionProof) else response.statement
        # The coordinator relays the statement, so only the aggregator's signature counts.
        statement = verify_statement(params.keys.aggregator, Party.AGGREGATOR, signed)
        if statement is None or not isinstance(statement.message, Published | Aborted):
            return self.with_refused_response()
        if (
            statement.message.survey != params.survey
            # check: one-result - the aggregator signs two outcomes, or was rolled back
            or self.outcome not in (None, statement)
        ):
            return self.with_refused_response()
        counted = isinstance(response, InclusionProof) and verify_inclusion(
            params, response, *entry
        )
        return replace(self, waiting=(), outcome=statement, counted=counted)

    def with_notices(self, notices: int) -> "ClientState":
        """Return the state with what the coordinator told about the invitation."""
        # Notices are never taken back: a restored coordinator may have forgotten some. Flags of a
        # newer or dishonest coordinator that nobody here knows are left out.
        known = self.notices | notices & ALL_NOTICES
        return self if known == self.notices else replace(self, notices=known)

    def with_refused_response(self) -> "ClientState":
        """Return the state after a response that failed a check; only the count changes."""
        return replace(self, failed_checks=self.failed_checks + 1)


def has_progressed(before: ClientState, after: ClientState) -> bool:
    """Whether a response moved the client on, so that it may have another message on this visit."""
    # A refused response must not lead to another request at once: a dishonest coordinator could
    # keep the client in that loop for ever.
    return after is not before and after.failed_checks == before.failed_checks


class Client(ABC):
    """The client's side of one topology."""

    @abstractmethod
    def params(self, client: ClientState) -> SurveyParameters:
        """The survey in which a started client takes part."""

    @abstractmethod
    def entry(self, client: ClientState) -> Entry:
        """User id and key under which a result would include this client."""

    @abstractmethod
    def device(self, client: ClientState) -> SigningKey:
        """The key that a started client has drawn to prove that it is the one that answered."""

    def outcome_request(self, client: ClientState) -> Message:
        """The request for the survey's outcome and, once published, the inclusion proof."""
        params = self.params(client)
        access = client.invitation.access
        return sign_for_device(OutcomeRequest, params, access, self.device(client))

    def withdraw(self, client: ClientState) -> ClientState:
        """Withdraw the response for good. The coordinator decides whether this was in time."""
        params = self.params(client)
        access = client.invitation.access
        withdrawal = sign_for_device(Withdrawal, params, access, self.device(client))
        # Whatever else was waiting must not be sent after the withdrawal.
        return replace(client, waiting=(withdrawal,), withdrawal=withdrawal)

    def message_to_resend(self, client: ClientState) -> Message | None:
        """An acknowledged message to send again on a later visit.

        A coordinator that was restored from a backup may have lost it. None where the coordinator
        asks by itself for what it lacks.
        """
        return None

    @abstractmethod
    def start(
        self, params: SurveyParameters, blank: ClientState, crypto: CryptoSuite, entropy: Entropy
    ) -> ClientState:
        """Draw what the first visit needs. Store the result before sending anything."""

    @abstractmethod
    def next_message(self, client: ClientState) -> Message | None:
        """The message to send next, from the state alone; None if there is none."""

    def handle_response(
        self, client: ClientState, request: Message, response: Message, entropy: Entropy
    ) -> ClientState:
        """Return the state after the coordinator's response to a request."""
        client = client.with_notices(getattr(response, "notices", 0))
        if isinstance(response, NotReady):
            return client
        if isinstance(response, Acknowledgement):
            return client.with_acknowledgement(self.params(client), request, response)
        if isinstance(response, (InclusionProof, FinalStatement)):
            return client.with_outcome(self.params(client), response, self.entry(client))
        return self.handle_topology_response(client, request, response, entropy)

    @abstractmethod
    def handle_topology_response(
        self, client: ClientState, request: Message, response: Message, entropy: Entropy
    ) -> ClientState:
        """Return the state after a rejection, or after a message of this topology."""

    def counted_as(self, client: ClientState) -> dict[bytes, Sheet | None]:
        """Under which id, and with which answers, a result that includes this client counts it."""
        return {client.invitation.user: client.sheet}


def require_state(client: ClientState, kind: type[Any]) -> Any:
    """The topology's state of a client that has reached this stage.

    Raises:
        ProtocolError: it has not; the caller sent a message out of turn
    """
    if not isinstance(client.state, kind):
        raise ProtocolError(
            f"the client has not reached this stage: its state has no {kind.__name__}"
        )
    return client.state
