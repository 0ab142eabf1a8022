"""The files of one survey on its owner's machine. Whoever can read the folder can answer for people who have not yet.

parameters.json    as published: every reader hashes these bytes
owner.json         addresses of both servers, and the owner's tokens there (secret)
invitations.csv    one line per person with its code and link (secret)
invitations.html   the same to print, with QR codes (secret)
result.json        once there is one
"""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, RefusedError
from faircount.core.files import private_folder, read_file, write_durably
from faircount.protocol import SurveyParameters
from faircount.service.calls import Patience, RemoteServer
from faircount.service.codes import server_address
from faircount.service.owner.printed_words import ENGLISH

PUBLIC = 0o644
PATIENT = Patience(tries=9)
"""For commands: about half a minute until a server counts as away."""


@dataclass(frozen=True)
class Access:
    """How the owner reaches one server. `certificates` is a file to believe, where no public authority has signed."""

    address: str
    token: str = field(repr=False)
    certificates: str | None = None

    def server(self, name: str, patience: Patience = PATIENT) -> RemoteServer:
        """The server, to be called with the owner's token."""
        return RemoteServer(self.address, name=name, token=self.token, verify=self.certificates, patience=patience)


@dataclass(frozen=True)
class OwnerFile:
    """What the owner needs to act: both servers, and the address that people see where S1 is behind a proxy.

    `language` is that of the printed invitations.
    """

    s1: Access
    s2: Access
    public_address: str
    budget: tuple[float, float]
    language: str = ENGLISH

    def encode(self) -> bytes:
        """As JSON."""
        return json.dumps({"version": 1, **asdict(self)}, indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> "OwnerFile":
        """From JSON."""
        try:
            said: dict[str, Any] = json.loads(data)
            if said["version"] != 1:
                raise FaircountError("owner.json was written by another version of faircount: use that one")
            epsilon, delta = said["budget"]
            servers, language = (Access(**said["s1"]), Access(**said["s2"])), str(said.get("language", ENGLISH))
            return cls(*servers, said["public_address"], (epsilon, delta), language)
        except (ValueError, KeyError, TypeError):
            raise FaircountError("owner.json is damaged: restore it from a copy") from None


@dataclass(frozen=True)
class SurveyFolder:
    """The folder of a survey."""

    path: Path

    def create(self, params: SurveyParameters, owner: OwnerFile) -> None:
        """Write a new survey; a folder that holds one already is left alone."""
        private_folder(self.path)
        if self.parameters_file.exists():
            raise RefusedError(f"{self.path} holds a survey already: choose another folder").coded("survey_exists")
        write_durably(self.path / "owner.json", owner.encode())
        write_durably(self.parameters_file, params.published, PUBLIC)

    @property
    def parameters_file(self) -> Path:
        """The published parameters."""
        return self.path / "parameters.json"

    @property
    def invitations_file(self) -> Path:
        """The table of invitations."""
        return self.path / "invitations.csv"

    @property
    def printable_file(self) -> Path:
        """The invitations to print."""
        return self.path / "invitations.html"

    @property
    def result_file(self) -> Path:
        """The result."""
        return self.path / "result.json"

    def parameters(self) -> SurveyParameters:
        """The survey's parameters."""
        return SurveyParameters.parse(read_file(self.parameters_file, _NO_SURVEY))

    def owner(self) -> OwnerFile:
        """What the owner needs to act."""
        return OwnerFile.decode(read_file(self.path / "owner.json", _NO_SURVEY))


_NO_SURVEY = "make a survey there first, with faircount survey create"


def read_servers(path: Path) -> tuple[Access, Access]:
    """Address and token of both servers, from a file that the owner keeps, or `faircount serve` wrote."""
    data = read_file(path, "write address and token of both servers into it, or start a trial with faircount serve")
    try:
        said: dict[str, Any] = json.loads(data)
        s1, s2 = (Access(**said[name]) for name in ("s1", "s2"))
    except (ValueError, KeyError, TypeError):
        raise FaircountError(f'{path} must be JSON: {{"s1": {{"address": ..., "token": ...}}, "s2": ...}}') from None
    return replace(s1, address=server_address(s1.address)), replace(s2, address=server_address(s2.address))
