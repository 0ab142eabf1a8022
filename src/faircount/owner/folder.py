"""The files of one survey on its owner's machine.

parameters.json    the published parameters: every reader hashes these bytes
people.json        the people to invite, where the owner listed them (secret)
owner.json         addresses of both servers and the owner's tokens for them (secret)
invitations.csv    one line per participant with their code and link (secret)
invitations.html   the same to print, with QR codes (secret)
mail.journal       which mails were sent to whom
status.json        what the coordinator last said about the survey (the dashboard writes it)
statement.bin      what the aggregator signed when the survey ended
record.json        when the survey was open, and how many people were invited
result.json        the result, once there is one

Whoever can read the folder can answer in the place of participants who have not answered yet.
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from faircount.client.calls import RemoteServer, RetryPolicy
from faircount.client.invitation_codes import server_address
from faircount.core.errors import FaircountError, RefusedError
from faircount.core.files import make_private_folder, read_file, write_durably
from faircount.owner.invitation_texts import ENGLISH
from faircount.owner.people import People
from faircount.protocol import SurveyParameters

# Parameters and result are public; only the owner may read the other files.
PUBLIC = 0o644

# For commands: somebody waits, so a server counts as unreachable after a few seconds.
COMMAND_RETRY = RetryPolicy(attempts=5)

# How error messages call the servers.
SERVER_NAMES = {"S1": "The coordinator", "S2": "The aggregator"}


@dataclass(frozen=True)
class Access:
    """How the owner reaches one server.

    address: where the server is
    token: the owner's token there
    certificates: file of certificates to trust, for a server with its own certificate authority
    """

    address: str
    token: str = field(repr=False)
    certificates: str | None = None

    def server(self, party: str, retry: RetryPolicy = COMMAND_RETRY) -> RemoteServer:
        """A connection with the owner's token; `party` is S1 or S2."""
        return RemoteServer(
            self.address,
            name=SERVER_NAMES[party],
            label=party,
            token=self.token,
            verify=self.certificates,
            retry=retry,
        )


@dataclass(frozen=True)
class OwnerFile:
    """All that the owner needs to manage a survey.

    s1: access to the coordinator
    s2: access to the aggregator
    public_address: the coordinator as participants see it, which may be behind a proxy
    budget: epsilon and delta of the population
    language: the language of invitations, mails and results
    page: the participant's page, if another place than the coordinator serves it
    closes_at: the closing time that the owner gave, as ISO 8601; empty where a duration counts
    """

    s1: Access
    s2: Access
    public_address: str
    budget: tuple[float, float]
    language: str = ENGLISH
    page: str = ""
    closes_at: str = ""

    @property
    def link_address(self) -> str:
        """Where the links of invitations lead."""
        return self.page or self.public_address

    def encode(self) -> bytes:
        """As JSON."""
        # With the owner's tokens, so the file is private.
        return json.dumps({"version": 1, **asdict(self)}, indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> "OwnerFile":
        """From JSON."""
        try:
            content: dict[str, Any] = json.loads(data)
            if content["version"] != 1:
                message = "owner.json was written by another version of faircount: use that one"
                raise FaircountError(message).with_code("other_version", file="owner.json")
            # Unpacked, so that a list of another length counts as damaged.
            epsilon, delta = content["budget"]
            return cls(
                s1=Access(**content["s1"]),
                s2=Access(**content["s2"]),
                public_address=content["public_address"],
                budget=(epsilon, delta),
                language=str(content.get("language", ENGLISH)),
                page=str(content.get("page", "")),
                closes_at=str(content.get("closes_at", "")),
            )
        except (ValueError, KeyError, TypeError):
            message = "owner.json is damaged: restore it from a copy"
            raise FaircountError(message).with_code("file_damaged", file="owner.json") from None


@dataclass(frozen=True)
class SurveyFolder:
    """The folder of a survey."""

    path: Path

    def create(
        self, params: SurveyParameters, owner: OwnerFile, people: People | None = None
    ) -> None:
        """Write a new survey; a folder that holds one already is not changed."""
        make_private_folder(self.path)
        self.check_is_free()
        # An earlier attempt in this folder may have left a list of other people.
        self.people_file.unlink(missing_ok=True)
        if people is not None:
            write_durably(self.people_file, people.encode())
        # The parameters come last: a folder with them is complete, whenever the program stops.
        write_durably(self.path / "owner.json", owner.encode())
        write_durably(self.parameters_file, params.published, PUBLIC)

    def check_is_free(self) -> None:
        """Refuse to overwrite a survey: its invitations may be on their way."""
        if self.parameters_file.exists():
            message = f"{self.path} already contains a survey: choose another folder"
            raise RefusedError(message).with_code("survey_exists")

    @property
    def parameters_file(self) -> Path:
        """The published parameters."""
        return self.path / "parameters.json"

    @property
    def groups_file(self) -> Path:
        """Which groups there are, if the folder holds the surveys of several."""
        return self.path / "groups.json"

    @property
    def people_file(self) -> Path:
        """The people to invite, where the owner listed them."""
        return self.path / "people.json"

    @property
    def invitations_file(self) -> Path:
        """The table of invitations."""
        return self.path / "invitations.csv"

    @property
    def printable_file(self) -> Path:
        """The invitations to print."""
        return self.path / "invitations.html"

    @property
    def reminders_file(self) -> Path:
        """The table of people who have not answered."""
        return self.path / "reminders.csv"

    @property
    def mail_journal(self) -> Path:
        """Which mails were sent to whom."""
        return self.path / "mail.journal"

    @property
    def status_file(self) -> Path:
        """What the coordinator last said about the survey, and when."""
        return self.path / "status.json"

    @property
    def statement_file(self) -> Path:
        """What the aggregator signed when the survey ended."""
        return self.path / "statement.bin"

    @property
    def record_file(self) -> Path:
        """When the survey was open, according to the coordinator."""
        return self.path / "record.json"

    @property
    def result_file(self) -> Path:
        """The result."""
        return self.path / "result.json"

    def parameters(self) -> SurveyParameters:
        """The survey's parameters."""
        return SurveyParameters.parse(read_file(self.parameters_file, _NO_SURVEY))

    def people(self) -> People | None:
        """The people whom the owner listed when the survey was created."""
        if not self.people_file.exists():
            return None
        return People.decode(read_file(self.people_file, _NO_SURVEY))

    def replace_access(self, s1: Access, s2: Access) -> None:
        """Use other addresses and tokens of the servers from now on."""
        # Budget, language and addresses in invitations stay: people have the links already.
        changed = replace(self.owner(), s1=s1, s2=s2)
        write_durably(self.path / "owner.json", changed.encode())

    def owner(self) -> OwnerFile:
        """All that the owner needs to manage the survey."""
        if self.groups_file.exists():
            message = f"{self.path} holds the surveys of several groups: give the folder of one"
            raise RefusedError(message).with_code("several_groups")
        return OwnerFile.decode(read_file(self.path / "owner.json", _NO_SURVEY))


_NO_SURVEY = "make a survey there first, with faircount survey create"


def read_servers(path: Path) -> tuple[Access, Access]:
    """Access to the coordinator and the aggregator, from the owner's servers.json."""
    data = read_file(
        path,
        "write address and token of both servers into it, or start a trial with faircount serve",
    )
    try:
        content: dict[str, Any] = json.loads(data)
        s1 = Access(**content["s1"])
        s2 = Access(**content["s2"])
        # An empty token would be sent, and refused by a server that cannot know what was meant.
        for text in (s1.address, s1.token, s2.address, s2.token):
            if not isinstance(text, str) or not text.strip():
                raise ValueError("empty")
    except (ValueError, KeyError, TypeError):
        message = f'{path} must be JSON: {{"s1": {{"address": ..., "token": ...}}, "s2": ...}}'
        raise FaircountError(message).with_code("servers_file", file=str(path)) from None
    s1 = replace(s1, address=server_address(s1.address))
    s2 = replace(s2, address=server_address(s2.address))
    return s1, s2
