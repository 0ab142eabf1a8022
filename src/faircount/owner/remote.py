"""The owner's calls to both servers.

The owner splits the secrets of the invitations: the coordinator gets the access values that admit a
participant, the aggregator the enrolment MAC keys that bind a report to a participant, and neither
gets a token. So no server alone can answer in a participant's place.

Every call may be repeated, because the same bytes change nothing. A command that was interrupted is
simply run again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from faircount.client.calls import BYTES, RemoteServer, RetryPolicy
from faircount.core.errors import ParameterError, RefusedError, RemoteError
from faircount.owner.folder import COMMAND_RETRY, OwnerFile
from faircount.owner.server_replies import (
    AGGREGATOR_KEYS,
    AGGREGATOR_STATUS,
    BUDGET,
    COORDINATOR_KEYS,
    COORDINATOR_STATUS,
    PLACES,
    RESERVATIONS,
    read_answer,
)
from faircount.protocol import Invitation, Keys, SurveyParameters
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Signed
from faircount.protocol.wire.signing import Statement, verify_statement
from faircount.transport.limits import LIST_ANSWER, MESSAGE_ANSWER

USER_ID_BYTES = 16

# Entries in one call: far below the largest request that a server accepts.
INVITATIONS_PER_CALL = 5000


@dataclass(frozen=True, slots=True)
class SurveyKeys:
    """The keys that both servers made for one survey, and who runs them as they say."""

    keys: Keys
    s1_operator: str
    s2_operator: str


@dataclass(frozen=True)
class BothServers:
    """Connections of an owner to the coordinator (s1) and the aggregator (s2)."""

    s1: RemoteServer
    s2: RemoteServer

    @classmethod
    def of(cls, owner: OwnerFile, retry: RetryPolicy = COMMAND_RETRY) -> "BothServers":
        """Connect with the owner's tokens."""
        return cls(owner.s1.server("S1", retry), owner.s2.server("S2", retry))

    def survey_keys(self) -> SurveyKeys:
        """Ask both servers for fresh keys and commitments, for one survey."""
        try:
            return self._survey_keys()
        except RemoteError:
            # A server that refuses the token, or has other keys, may be the other one.
            self.check_roles()
            raise

    def check_roles(self) -> None:
        """Refuse one server in both roles, and two servers whose roles are interchanged."""
        if self.s1.address == self.s2.address:
            message = f"{self.s1.address} is the address of both servers: give that of each"
            raise ParameterError(message).with_code("one_address")
        if _is_coordinator(self.s2) and not _is_coordinator(self.s1):
            message = (
                f"coordinator and aggregator are interchanged: {self.s1.address} is the "
                f"aggregator and {self.s2.address} the coordinator. Interchange s1 and s2 in the "
                "file of both servers"
            )
            raise ParameterError(message).with_code("servers_interchanged")

    def _survey_keys(self) -> SurveyKeys:
        reply = self.s1.call("POST", "/v1/survey-keys", json_body={})
        first = read_answer(reply, COORDINATOR_KEYS)
        reply = self.s2.call("POST", "/v1/survey-keys", json_body={})
        second = read_answer(reply, AGGREGATOR_KEYS)
        keys = Keys(
            coordinator=bytes.fromhex(first["signing_key"]),
            aggregator=bytes.fromhex(second["signing_key"]),
            encryption_key=bytes.fromhex(second["encryption_key"]),
            coordinator_commitment=bytes.fromhex(first["commitment"]),
            aggregator_commitment=bytes.fromhex(second["commitment"]),
            s1_operator_key=bytes.fromhex(first["operator_key"]),
            s2_operator_key=bytes.fromhex(second["operator_key"]),
        )
        return SurveyKeys(keys, first["operator"], second["operator"])

    def set_up(self, params: SurveyParameters, budget: tuple[float, float]) -> None:
        """Register a survey at both servers, and the population's budget at the aggregator."""
        epsilon, delta = budget
        total = {"epsilon": epsilon, "delta": delta}
        # The aggregator first: it must know the budget before anybody can send a report.
        self.s2.call("PUT", _population_path(params.population), json_body=total)
        reply = self.s2.call("PUT", path_of(params), params.published)
        signature = bytes.fromhex(read_answer(reply, AGGREGATOR_STATUS)["operator_signature"])
        self.s1.call("PUT", path_of(params), params.published)
        # Participants never call the aggregator: the coordinator shows them its signature.
        self.s1.call("PUT", f"{path_of(params)}/operators", signature)

    def register_invitations(
        self, params: SurveyParameters, invitations: Sequence[Invitation]
    ) -> None:
        """Register MAC keys at the aggregator and access values at the coordinator."""
        # Both lists are sorted: from the owner's order, which may be by name, a server could guess
        # who is who.
        guests = sorted(
            invitation.user + invitation.enrolment_mac_key for invitation in invitations
        )
        for number, part in _split_into_parts(guests):
            self.s2.call("PUT", f"{path_of(params)}/invited/{number}", part)
        access_values = sorted(invitation.access for invitation in invitations)
        for number, part in _split_into_parts(access_values):
            self.s1.call("PUT", f"{path_of(params)}/invited/{number}", part)

    def replace_invitation(
        self, params: SurveyParameters, old: Invitation, new: Invitation, part: int
    ) -> None:
        """Admit a new invitation instead of an unused one."""
        # The aggregator first: it admits nobody by itself, so if the coordinator then refuses,
        # nothing has changed.
        self.s2.call("PUT", f"{path_of(params)}/invited/{part}", new.user + new.enrolment_mac_key)
        self.s1.call("POST", f"{path_of(params)}/reissue", old.access + new.access)

    def users_who_answered(self, params: SurveyParameters) -> frozenset[bytes]:
        """User ids of the invitations that were used."""
        data = self.s1.call("GET", f"{path_of(params)}/answered", limit=LIST_ANSWER).body
        starts = range(0, len(data), USER_ID_BYTES)
        return frozenset(data[start : start + USER_ID_BYTES] for start in starts)

    def status(self, params: SurveyParameters) -> dict[str, Any]:
        """The status of the survey at the coordinator."""
        reply = self.s1.call("GET", f"{path_of(params)}/status")
        return read_answer(reply, COORDINATOR_STATUS)

    def aggregator_status(self, params: SurveyParameters) -> dict[str, Any]:
        """The status of the survey at the aggregator."""
        reply = self.s2.call("GET", f"{path_of(params)}/status")
        return read_answer(reply, AGGREGATOR_STATUS)

    def request(self, params: SurveyParameters, action: str, **values: Any) -> dict[str, Any]:
        """Ask the coordinator to open, close, extend or abort the survey; its status after that."""
        reply = self.s1.call("POST", f"{path_of(params)}/{action}", json_body=values)
        return read_answer(reply, COORDINATOR_STATUS)

    def budget(self, population: str) -> dict[str, Any]:
        """The aggregator's ledger of a population: what every survey has spent."""
        reply = self.s2.call("GET", _population_path(population), limit=LIST_ANSWER)
        return read_answer(reply, BUDGET)

    def accepted_places(self, params: SurveyParameters) -> list[int]:
        """Places in the roster of the accepted reports, according to the coordinator.

        Needed if not all users draw the same amount of noise.
        """
        reply = self.s1.call("GET", f"{path_of(params)}/result", limit=LIST_ANSWER)
        return list(read_answer(reply, PLACES)["places"])

    def reservations(self, params: SurveyParameters) -> list[str]:
        """The aggregator's signed reservations of the population's budget, in base64.

        The coordinator keeps them, so an aggregator that was restored cannot forget what was spent.
        """
        name = quote(params.population, safe="")
        path = f"/v1/reservations?population={name}"
        reply = self.s1.call("GET", path, limit=LIST_ANSWER)
        return list(read_answer(reply, RESERVATIONS)["reservations"])

    def hand_over(
        self, params: SurveyParameters, coordinator: str | None, aggregator: str | None
    ) -> None:
        """Give a survey to other owners: their id at each server, or None for no change there."""
        for server, receiver in ((self.s1, coordinator), (self.s2, aggregator)):
            if receiver is not None:
                server.call("POST", f"{path_of(params)}/owner", json_body={"to": receiver})

    def delete(self, params: SurveyParameters) -> None:
        """Delete a survey that is over at both servers."""
        # The aggregator first: if this stops half-way, the coordinator can still tell participants
        # how the survey ended.
        self.s2.call("DELETE", path_of(params))
        self.s1.call("DELETE", path_of(params))

    def final_statement(self, params: SurveyParameters) -> Statement:
        """The aggregator's signed statement about the end of the survey."""
        return verify_final_statement(params, self.fetch_final_statement(params))

    def fetch_final_statement(self, params: SurveyParameters) -> bytes:
        """The bytes of that statement, as the coordinator relays them."""
        path = f"{path_of(params)}/result"
        return self.s1.call("GET", path, accept=BYTES, limit=MESSAGE_ANSWER).body


def verify_final_statement(params: SurveyParameters, data: bytes) -> Statement:
    """The statement in these bytes; refused unless the aggregator signed it for this survey.

    The signature makes it trustworthy, whoever relays or keeps it.
    """
    signed = decode_signed(data)
    statement = None
    if isinstance(signed, Signed):
        statement = verify_statement(params.keys.aggregator, Party.AGGREGATOR, signed)
    if (
        # check: owner-result-signed - the coordinator makes up a result
        statement is None
        # check: owner-result-survey - the coordinator shows the result of another survey
        or getattr(statement.message, "survey", None) != params.survey
    ):
        raise RefusedError(
            "The coordinator shows a result that the aggregator has not signed for this survey: do "
            "not use it, ask both operators"
        ).with_code("unsigned_result")
    return statement


def _is_coordinator(server: RemoteServer) -> bool:
    """Whether a server has a call that only coordinators have; every token will do."""
    try:
        server.call("GET", "/v1/reservations?population=", limit=LIST_ANSWER)
    except RemoteError as problem:
        return problem.status != HTTPStatus.NOT_FOUND
    return True


def path_of(params: SurveyParameters) -> str:
    """The path of a survey at either server."""
    return f"/v1/surveys/{params.survey.hex()}"


def _population_path(population: str) -> str:
    # An owner may name a population with slashes or spaces; it stays one part of the path.
    return f"/v1/populations/{quote(population, safe='')}"


def _split_into_parts(entries: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    """Numbered parts of a list, one for each call."""
    for number, start in enumerate(range(0, len(entries), INVITATIONS_PER_CALL)):
        yield number, b"".join(entries[start : start + INVITATIONS_PER_CALL])
