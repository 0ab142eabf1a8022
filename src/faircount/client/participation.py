"""A participation in a survey over the network.

    participation = connect("https://count.example.org/#CODE")
    participation.questionnaire              what is asked, checked against the hash in the code
    participation.answer("Aldmoor")          choose, save, then send
    participation.answer({"Which site?": "North", "Years here?": 4})    several questions
    participation.stay()                     until it is over: some topologies need several visits
    participation.status()                   sent, counted, not counted, withdrawn, ...

Theory of operation: the client is a state machine of the protocol (`protocol.roles.client`), and
this module moves it between a file and the coordinator. One visit repeats three steps: take the
next message from the state, send it, save the state that follows from the reply. A report is drawn
once and saved before it is sent, so a client that is killed at any time continues with the same
bytes, and the coordinator stores them once.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from faircount.accounting.levels import Levels
from faircount.client.answers import read_sheet
from faircount.client.calls import RemoteServer
from faircount.client.invitation_codes import Code, read_invitation
from faircount.client.participation_status import (
    ParticipationStatus,
    is_withdrawal_acknowledged,
    status_of,
)
from faircount.client.state_file import (
    StateFile,
    StoredParticipation,
    default_state_file,
    parse_parameters,
)
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import (
    AnswerError,
    MalformedError,
    ProtocolError,
    RefusedError,
    RemoteError,
)
from faircount.core.questions import Questionnaire, Sheet
from faircount.protocol import (
    Client,
    ClientState,
    Message,
    SurveyParameters,
    encode,
    has_progressed,
)
from faircount.protocol.roles.limits import decode_response
from faircount.protocol.survey.operators import check_operators
from faircount.protocol.survey.parameters import answers_of
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import NotReady, Reason, Rejection, reject
from faircount.transport.limits import MESSAGE_ANSWER, PARAMETERS_ANSWER

# More than an honest survey needs in one visit; ends a visit to a server that rejects every time.
MAX_EXCHANGES = 12

SECONDS_BETWEEN_VISITS = 5.0


def connect(
    invitation: str,
    *,
    server: str | None = None,
    state: str | Path | None = None,
    certificates: str | None = None,
    connection: RemoteServer | None = None,
) -> "Participation":
    """Prepare to take part in the survey of an invitation; nothing is sent yet.

    invitation: the link from the invitation, or the code alone
    server: address of the survey's server, if only the code is given
    state: file that stores this participation; by default one in the user's data folder
    certificates: file of certificates to trust, for a server with its own certificate authority
    connection: an open connection to the server, for programs that take part many times
    returns: the participation, with which to answer, come back, withdraw and check

    >>> part = fc.connect(link)  # the link from an invitation; nothing is sent yet
    >>> part.answer("Carrow")  # doctest: +SKIP
    """
    address, code = read_invitation(invitation, server)
    file = default_state_file(code) if state is None else StateFile(Path(state))
    if connection is None:
        connection = RemoteServer(address, name="the survey's server", verify=certificates)
    return Participation(code, connection, file)


@dataclass(frozen=True)
class Participation:
    """One person's participation in one survey. Its state is in the file, not in this object.

    code: the invitation code
    server: the connection to the coordinator
    file: the file with the state
    """

    code: Code = field(repr=False)
    server: RemoteServer
    file: StateFile

    @cached_property
    def parameters(self) -> SurveyParameters:
        """The survey: from the file, or fetched and checked against the invitation."""
        # What the participant agreed to stays valid, whatever the server shows today.
        stored = self._load()
        return self._fetch_parameters() if stored is None else stored.parameters

    @property
    def questionnaire(self) -> Questionnaire:
        """What is asked."""
        return self.parameters.questionnaire

    @property
    def items(self) -> tuple[str, ...]:
        """The possible answers, if the survey has one question with exactly one answer."""
        return tuple(str(label) for label in answers_of(self.questionnaire).labels)

    @property
    def levels(self) -> Levels | None:
        """The privacy levels to choose from, the strongest first; None if there are none."""
        levels: Levels | None = getattr(self.parameters.mechanism, "levels", None)
        return levels

    def answer(self, answers: object, *, level: str | None = None) -> ParticipationStatus:
        """Answer, and send what can be sent now. Repeating the same answers continues the visit.

        answers: for one question its item; for several a dictionary by text or number, or a list in
            their order. Several items are a list, numbers are numbers, None is "prefer not to say",
            and questions that are not asked may be left out.
        level: the name of a privacy level, where the survey offers levels; the strongest unless
            given. It never leaves this device
        """
        return self.submit(read_sheet(self.questionnaire, answers), self.find_level(level))

    def find_level(self, name: str | None) -> int | None:
        """The position of a privacy level by its name; 0 is the strongest."""
        if name is None:
            return None
        if self.levels is None:
            raise AnswerError("this survey offers no privacy levels: answer without one")
        return self.levels.position_of(name)

    def submit(self, answers: Sheet, level: int | None = None) -> ParticipationStatus:
        """Do the same with canonical answers, one per question, such as `read_sheet` returns.

        level: the position of a privacy level; by default 0, the strongest
        """
        sheet = self.questionnaire.check_sheet(answers)
        with self.file.lock():
            is_new = self._load() is None
            client = self._begin(sheet, level or 0) if is_new else self._load_client()
            # check: one-level - a coin tossed again for another level tells more than one toss
            is_other = client.sheet != sheet or level not in (None, client.level)
            if is_other and client.withdrawn:
                raise AnswerError(
                    "you withdrew the answer that this invitation was used for: the invitation "
                    "cannot be used again"
                )
            if is_other:
                # A second report about the same person would cost privacy a second time.
                what = "for another answer"
                if client.sheet == sheet:
                    what = "with another privacy level"
                raise AnswerError(
                    f"this invitation was already used {what}, which cannot be changed: "
                    "it can only be withdrawn until the survey closes"
                )
            return self._visit(client)

    def visit(self) -> ParticipationStatus:
        """Return to the survey: send what is pending, and ask how the survey goes."""
        with self.file.lock():
            return self._visit(self._load_client())

    def stay(
        self,
        seconds: float | None = None,
        *,
        pause: float = SECONDS_BETWEEN_VISITS,
        sleep: Callable[[float], None] = time.sleep,
        on_visit: Callable[[ParticipationStatus], None] = lambda status: None,
    ) -> ParticipationStatus:
        """Visit until the participation is over, or so many seconds have passed.

        pause: seconds between two visits
        sleep: how to wait
        on_visit: called with the status after every visit
        """
        end = None if seconds is None else time.monotonic() + seconds
        # Locked between the visits, too: another program could send in between.
        with self.file.lock():
            while True:
                status = self._visit(self._load_client())
                on_visit(status)
                if status.is_over or (end is not None and time.monotonic() + pause > end):
                    return status
                sleep(pause)

    def withdraw(self) -> ParticipationStatus:
        """Withdraw the answer for good. The status tells whether that was in time."""
        with self.file.lock():
            client = self._load_client()
            if not client.withdrawn:
                client = self._client.withdraw(client)
                # Saved first: a client killed now still withdraws on its next visit.
                self._save(client)
            return self._visit(client)

    def status(self) -> ParticipationStatus:
        """The status as far as this device knows it; nothing is sent."""
        stored = self._load()
        return status_of(None if stored is None else stored.client)

    def receipt(self) -> dict[str, Any]:
        """The coordinator's signatures that it stored the report.

        Anybody who has the survey's parameters can check them.
        """
        client = self._load_client()
        acknowledgements = [
            {
                "hash": acknowledgement.message_hash.hex(),
                "acknowledgement": encode(acknowledgement).hex(),
            }
            for acknowledgement in client.acknowledgements
        ]
        return {
            "survey": self.code.survey.hex(),
            "parameters": self.code.invitation.params.hex(),
            "server_key": self.parameters.keys.coordinator.hex(),
            "written": acknowledgements,
            "result": None if client.outcome is None else encode(client.outcome.signed).hex(),
            "counted": client.counted,
        }

    @property
    def _client(self) -> Client:
        return self.parameters.topology.client

    @property
    def _path(self) -> str:
        return f"/v1/surveys/{self.code.survey.hex()}"

    def _fetch_parameters(self) -> SurveyParameters:
        reply = self.server.call("GET", f"{self._path}/params", limit=PARAMETERS_ANSWER)
        parameters = parse_parameters(reply.body)
        # A dishonest server could show a different question, keys of its own, or less noise.
        if (
            parameters.digest != self.code.invitation.params
            or parameters.survey != self.code.survey
        ):
            raise RefusedError(
                "the server shows other parameters than those of your invitation: do not answer, "
                "ask the person who invited you"
            )
        check_operators(parameters, self._fetch_signatures())
        return parameters

    def _fetch_signatures(self) -> tuple[bytes, bytes]:
        """The signatures of the operators of both servers; empty where one is missing."""
        try:
            signed = self.server.call("GET", f"{self._path}/operators").json()
            return bytes.fromhex(signed["s1"] or ""), bytes.fromhex(signed["s2"] or "")
        except (RemoteError, ValueError, KeyError, TypeError):
            # A server that shows no signatures is one that has none.
            return b"", b""

    def _begin(self, sheet: Sheet, level: int) -> ClientState:
        """Draw the report and save it; only then may it be sent."""
        # Drawn once, also the coin of a level: two reports of one person with fresh noise, or with
        # a fresh coin, would reveal more than one.
        blank = ClientState(self.code.invitation, sheet, level=level)
        client = self._client.start(self.parameters, blank, StandardCrypto(), SystemEntropy())
        self._save(client)
        return client

    def _load(self) -> StoredParticipation | None:
        stored = self.file.load()
        if stored is not None and stored.client.invitation != self.code.invitation:
            raise RefusedError(
                f"{self.file.path} belongs to another invitation: give this one a file of its own"
            )
        return stored

    def _load_client(self) -> ClientState:
        stored = self._load()
        if stored is None:
            raise ProtocolError(f"{self.file.path} holds no answer yet: answer the survey first")
        return stored.client

    def _save(self, client: ClientState) -> None:
        published = self.parameters.published
        self.file.save(StoredParticipation(self.server.address, published, client))

    def _visit(self, client: ClientState) -> ParticipationStatus:
        """Send all pending messages, then ask for the outcome; the status after that."""
        reply: Message | None = None
        has_sent_report = False
        for _ in range(MAX_EXCHANGES):
            message = self._client.next_message(client)
            asks_for_outcome = message is None
            if message is None:
                if client.outcome is not None or is_withdrawal_acknowledged(client):
                    break
                message = self._client.outcome_request(client)
            reply = self._send(message)
            has_sent_report = has_sent_report or not asks_for_outcome
            # There is no result yet. A coordinator restored from a backup may lack our report.
            if isinstance(reply, NotReady) and not has_sent_report:
                self._resend_report(client)
            if _is_too_early(reply):
                break
            following = self._client.handle_response(client, message, reply, SystemEntropy())
            # Saved before the next message is sent, which may depend on this reply.
            if following != client:
                self._save(following)
            # A server that repeats itself must not keep the client busy.
            may_continue = has_progressed(client, following) and not isinstance(reply, NotReady)
            if asks_for_outcome and following == client:
                may_continue = False
            client = following
            if not may_continue:
                break
        return status_of(client, reply)

    def _resend_report(self, client: ClientState) -> None:
        """Send the report once more.

        That changes nothing, unless the coordinator was restored from a backup and has lost it.
        """
        report = self._client.message_to_resend(client)
        if report is not None:
            self._send(report)

    def _send(self, message: Message) -> Message:
        """The coordinator's reply; a rejection with a reason of the protocol is a reply too."""
        try:
            path = f"{self._path}/messages"
            body = self.server.call("POST", path, encode(message), limit=MESSAGE_ANSWER).body
        except RemoteError as problem:
            if problem.reason in set(Reason):
                return reject(Reason(problem.reason), str(problem))
            raise
        reply = decode_response(body)
        # Rejections come as problems with an error status; here it stands for unreadable bytes.
        if isinstance(reply, Rejection):
            raise MalformedError(
                "the server's answer cannot be read: is this the address of a faircount server?"
            )
        return reply


def _is_too_early(reply: Message) -> bool:
    return isinstance(reply, Rejection) and reply.why is Reason.EARLY
