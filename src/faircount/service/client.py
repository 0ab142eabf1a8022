"""A person's part in a survey over the network: answer, come back, stay, see whether it was counted, withdraw.

    part = connect("https://count.example.org/#CODE")
    part.parameters.question, part.items     what is asked, checked against the hash in the code
    part.answer("Aldmoor")                   drawn once, on the disk, then sent
    part.stay()                              until the survey is over: some ways of counting need several visits
    part.standing()                          sent, counted, not counted, withdrawn, ...

Every state is on the disk before what follows from it is sent, so a device may be killed at any time: it goes on with
the same bytes.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import AnswerError, MalformedError, ProtocolError, RefusedError, RemoteError
from faircount.protocol import Client, Device, Message, SurveyParameters, encode, goes_on
from faircount.protocol.roles.limits import decode_answer
from faircount.protocol.wire.messages import Reason, Rejected, Wait, rejected
from faircount.protocol.wire.sealing import RealSealing
from faircount.service.calls import RemoteServer
from faircount.service.codes import Code, read_invitation
from faircount.service.device_file import DeviceFile, Kept, parameters_of, usual_file
from faircount.service.standing import Standing, standing_of, took_back

MOST_EXCHANGES = 12
"""More than a device has to say in one visit, and an end for one that is refused every time."""

SECONDS_BETWEEN_VISITS = 5.0


def connect(
    invitation: str,
    *,
    server: str | None = None,
    state: str | Path | None = None,
    certificates: str | None = None,
    connection: RemoteServer | None = None,
) -> "Participation":
    """A person's part in the survey to which this link, or code, invites; nothing is sent yet.

    invitation: the link from the invitation, or the code alone
    server: the address of the survey's server, where only the code is given
    state: the file that holds this part; by default one in the user's own data folder
    certificates: file with the certificates to believe, for a server that uses its own authority
    connection: how to call the server, for programs that take part many times at once
    """
    address, code = read_invitation(invitation, server)
    kept = usual_file(code) if state is None else DeviceFile(Path(state))
    return Participation(
        code, connection or RemoteServer(address, name="the survey's server", verify=certificates), kept
    )


@dataclass(frozen=True)
class Participation:
    """One person's part in one survey. Its state is in the file; this only knows where, and whom to ask.

    code: what the invitation says
    server: where to ask
    file: where the state is kept
    """

    code: Code = field(repr=False)
    server: RemoteServer
    file: DeviceFile

    @cached_property
    def parameters(self) -> SurveyParameters:
        """What the person is asked to take part in: those of the device, or fetched and checked against the code."""
        kept = self._kept()
        return self._fetched() if kept is None else kept.parameters

    @property
    def items(self) -> tuple[object, ...]:
        """The answers that can be given."""
        return self.parameters.mechanism.domain.labels

    def answer(self, item: object) -> Standing:
        """Answer, and say all that there is to say now. The same answer again goes on where it stopped."""
        position = self._position(item)
        with self.file.alone():
            return self._visited(self._first(position) if self._kept() is None else self._again(position))

    def visit(self) -> Standing:
        """Say all that there is to say now, and hear how things stand."""
        with self.file.alone():
            return self._visited(self._begun())

    def stay(
        self,
        seconds: float | None = None,
        *,
        pause: float = SECONDS_BETWEEN_VISITS,
        sleep: Callable[[float], None] = time.sleep,
        told: Callable[[Standing], None] = lambda standing: None,
    ) -> Standing:
        """Visit until the survey is over for this person, or so many seconds have passed."""
        end = None if seconds is None else time.monotonic() + seconds
        with self.file.alone():
            while True:
                standing = self._visited(self._begun())
                told(standing)
                if standing.over or (end is not None and time.monotonic() + pause > end):
                    return standing
                sleep(pause)

    def withdraw(self) -> Standing:
        """Take the answer back, for good; S1 says whether it was in time."""
        with self.file.alone():
            device = self._begun()
            if not device.withdrawn:
                device = self._client.withdraw(device)
                self._write(device)
            return self._visited(device)

    def standing(self) -> Standing:
        """Where this part stands as far as the device knows; nothing is sent."""
        kept = self._kept()
        return standing_of(None if kept is None else kept.device)

    def receipt(self) -> dict[str, Any]:
        """What S1 signed: proof, for anybody who has the parameters, that it has written what this device sent."""
        device = self._begun()
        signed = [
            {"hash": each.body_hash.hex(), "acknowledgement": encode(each).hex()} for each in device.acknowledgements
        ]
        return {
            "survey": self.code.survey.hex(),
            "parameters": self.code.invitation.params.hex(),
            "server_key": self.parameters.keys.s1.hex(),
            "written": signed,
            "result": None if device.outcome is None else encode(device.outcome.signed).hex(),
            "counted": device.counted,
        }

    # --- what is behind it

    @property
    def _client(self) -> Client:
        return self.parameters.topology.client

    def _fetched(self) -> SurveyParameters:
        found = parameters_of(self.server.call("GET", f"{self._path}/params").body)
        if found.digest != self.code.invitation.params or found.survey != self.code.survey:
            raise RefusedError(
                "the server shows other parameters than those of your invitation: do not answer, ask the inviting owner"
            )
        return found

    @property
    def _path(self) -> str:
        return f"/v1/surveys/{self.code.survey.hex()}"

    def _position(self, item: object) -> int:
        labels = self.items
        if item not in labels:
            item = next((each for each in labels if str(each) == str(item)), item)
        try:
            return labels.index(item)
        except ValueError:
            raise AnswerError(f"the answer must be one of the {len(labels)} items that the survey offers") from None

    def _first(self, position: int) -> Device:
        """The device with everything drawn that is drawn at first, on the disk."""
        blank = Device(self.code.invitation, position)
        device = self._client.begin(self.parameters, blank, RealSealing(), SystemEntropy())
        self._write(device)
        return device

    def _again(self, position: int) -> Device:
        device = self._begun()
        if device.answer != position:
            raise AnswerError(
                "this invitation was answered already, and the first answer stands: it can be withdrawn until the "
                "survey closes, not changed"
            )
        return device

    def _kept(self) -> Kept | None:
        found = self.file.load()
        if found is not None and found.device.invitation != self.code.invitation:
            raise RefusedError(f"{self.file.path} belongs to another invitation: give this one a file of its own")
        return found

    def _begun(self) -> Device:
        kept = self._kept()
        if kept is None:
            raise ProtocolError(f"nothing was answered from {self.file.path} yet: answer first")
        return kept.device

    def _write(self, device: Device) -> None:
        self.file.save(Kept(self.server.address, self.parameters.published, device))

    def _visited(self, device: Device) -> Standing:
        """The standing after a visit: what is to be said is said, then how it ended is asked."""
        answer: Message | None = None
        told = False
        for _ in range(MOST_EXCHANGES):
            asked = self._client.ask(device)
            asks_end = asked is None and device.outcome is None and not took_back(device)
            question = self._client.inquire(device) if asks_end else asked
            if question is None:
                break
            answer, told = self._tell(question), told or not asks_end
            if isinstance(answer, Wait) and not told:
                self._say_again(device)
            if isinstance(answer, Wait) or _comes_too_early(answer):
                break
            after = self._client.hear(device, question, answer, SystemEntropy())
            if after != device:
                self._write(after)
            more = goes_on(device, after) and not (asks_end and after == device)
            device = after
            if not more:
                break
        return standing_of(device, answer)

    def _say_again(self, device: Device) -> None:
        """The same bytes once more: they change nothing, unless S1 has lost them in a restore."""
        body = self._client.said_before(device)
        if body is not None:
            self._tell(body)

    def _tell(self, message: Message) -> Message:
        """S1's answer; what it refuses with a reason of the protocol is an answer too."""
        try:
            found = decode_answer(self.server.call("POST", f"{self._path}/messages", encode(message)).body)
        except RemoteError as problem:
            if problem.reason in set(Reason):
                return rejected(Reason(problem.reason), str(problem))
            raise
        if isinstance(found, Rejected):
            raise MalformedError("the server's answer cannot be read: is this the address of a faircount server?")
        return found


def _comes_too_early(answer: Message) -> bool:
    return isinstance(answer, Rejected) and answer.why is Reason.EARLY
