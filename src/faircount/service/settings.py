"""Settings of the servers: from a file (TOML), from the environment, from the command line; the last one wins.

The environment's name of a setting is FAIRCOUNT_COORDINATOR_ or FAIRCOUNT_AGGREGATOR_ and the setting in capitals.
docs/settings.md lists them all.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta

from faircount.core.errors import ParameterError
from faircount.core.files import read_file

MOST_EXTENSION = 366 * 24 * 3600
"""Seconds by which a phase can be extended at once."""


def _said(words: str) -> Meta:
    return Meta(description=words)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that both servers have."""

    role: ClassVar[str]
    usual_port: ClassVar[int]

    data: Annotated[str, _said("Folder of this server: database, keys and anchor, unless they are set.")] = ""
    database: Annotated[str, _said("sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME.")] = ""
    keys: Annotated[str, _said("Folder of the keys of rows: never in a backup of the database.")] = ""
    anchor: Annotated[str, _said("Folder of what no restore may take back: on another disk or machine.")] = ""
    operator: Annotated[str, _said("Who runs this server: people read it before they answer.")] = ""
    host: Annotated[str, _said("Address on which it listens.")] = "127.0.0.1"
    port: Annotated[int, _said("Port on which it listens; 0 for the usual one.")] = 0
    private_host: Annotated[str, _said("Address of health, readiness and metrics: keep it private.")] = "127.0.0.1"
    private_port: Annotated[int, _said("Port of these; 0 for 1000 more than the port, -1 for none.")] = 0
    tls_certificate: Annotated[str, _said("File with the certificate chain: HTTPS without a proxy.")] = ""
    tls_key: Annotated[str, _said("File with the private key of the certificate.")] = ""
    trusted_proxies: Annotated[str, _said("Addresses of proxies whose X-Forwarded-For is believed, with commas.")] = ""
    requests_per_second: Annotated[float, _said("Requests that one address may make in the long run.")] = 500.0
    burst: Annotated[int, _said("Requests that one address may make at once.")] = 2000
    log_level: Annotated[str, _said("debug, info, warning or error.")] = "info"

    def __post_init__(self) -> None:
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ParameterError("tls_certificate and tls_key are set together")
        if not (0 <= self.port <= 65535 and -1 <= self.private_port <= 65535):
            raise ParameterError("a port is a number from 0 to 65535")
        if self.requests_per_second <= 0 or self.burst < 1:
            raise ParameterError("requests_per_second and burst must be positive")
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ParameterError("log_level is debug, info, warning or error")

    @property
    def folder(self) -> Path:
        """The folder of this server."""
        return Path(self.data or f"faircount-{self.role}").absolute()

    @property
    def database_url(self) -> str:
        """Where the database is."""
        return self.database or f"sqlite:///{self.folder / 'database.sqlite'}"

    @property
    def key_folder(self) -> Path:
        """Where the keys are."""
        return Path(self.keys) if self.keys else self.folder / "keys"

    @property
    def anchor_folder(self) -> Path:
        """Where the anchor is."""
        return Path(self.anchor) if self.anchor else self.folder / "anchor"

    @property
    def public_port(self) -> int:
        """Where it listens."""
        return self.port or self.usual_port

    @property
    def metrics_port(self) -> int | None:
        """Where health, readiness and metrics are; None for nowhere."""
        return None if self.private_port < 0 else self.private_port or self.public_port + 1000


class CoordinatorSettings(ServerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of S1."""

    role = "coordinator"
    usual_port = 8461
    aggregator: Annotated[str, _said("Address of S2.")] = "http://127.0.0.1:8462"
    aggregator_ca: Annotated[str, _said("File with the certificate that vouches for S2, if no public one does.")] = ""
    allowed_origins: Annotated[str, _said("Origins of other pages from which people may answer, with commas.")] = ""
    client_certificate: Annotated[str, _said("File with certificate and key that S1 shows to S2's proxy.")] = ""

    @property
    def origins(self) -> tuple[str, ...]:
        """Other pages' origins: scheme, host and port each, without a path."""
        found = tuple(each.strip() for each in self.allowed_origins.split(",") if each.strip())
        if bad := [each for each in found if not re.fullmatch(r"https?://[^/*\s]+", each)]:
            raise ParameterError(f"an origin looks like https://www.example.org, not {bad[0]!r:.80}")
        return found


class AggregatorSettings(ServerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of S2."""

    role = "aggregator"
    usual_port = 8462
    processes: Annotated[int, _said("Processes that open large batches, one part of a batch each.")] = 1
    scheduler: Annotated[str, _said("Dask scheduler whose workers do that instead: they see all that S2 sees.")] = ""


S = TypeVar("S", bound=ServerSettings)


def read_settings(
    kind: type[S], file: Path | None, given: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> S:
    """The settings of a server; what is given on the command line wins over the environment, and that over the file."""
    values = _from_file(file) | _from_environment(kind, os.environ if environment is None else environment)
    values |= {name: value for name, value in given.items() if value is not None}
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as problem:
        raise ParameterError(f"settings of the {kind.role}: {problem}") from None


def _from_file(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(read_file(file, "give the file with the settings").decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise ParameterError(f"{file} is not TOML: {problem}") from None


def _from_environment(kind: type[ServerSettings], environment: Mapping[str, str]) -> dict[str, Any]:
    names = {environment_name(kind, each): each for each in kind.__struct_fields__}
    return {names[name]: value for name, value in environment.items() if name in names}


def environment_name(kind: type[ServerSettings], setting: str) -> str:
    """What a setting is called in the environment."""
    return f"FAIRCOUNT_{kind.role.upper()}_{setting.upper()}"
