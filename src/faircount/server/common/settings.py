"""Settings of the servers, from a TOML file, the environment and the command line.

The command line wins over the environment, and the environment over the file. In the environment a
setting has the prefix FAIRCOUNT_COORDINATOR_ or FAIRCOUNT_AGGREGATOR_ and its name in capitals.
docs/settings.md lists all settings; it is made from the descriptions below.
"""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from faircount.core.errors import ParameterError
from faircount.core.files import read_file
from faircount.server.common.addresses import Network, is_this_machine, parse_proxies

MAX_EXTENSION = 366 * 24 * 3600
"""Seconds by which one call can extend a phase."""

LONGEST_OPERATOR = 200
"""Characters of an operator's name."""


def _describe(description: str) -> Meta:
    return Meta(description=description)


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings that both servers have."""

    role: ClassVar[str]
    default_port: ClassVar[int]

    data: Annotated[
        str,
        _describe(
            "The folder of this server. It holds the database, the keys and the anchor unless "
            "these are set separately."
        ),
    ] = ""
    database: Annotated[
        str,
        _describe(
            "The address of the database: sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME."
        ),
    ] = ""
    keys: Annotated[
        str,
        _describe(
            "The folder of the encryption keys of database rows. Never back it up together with "
            "the database."
        ),
    ] = ""
    anchor: Annotated[
        str,
        _describe(
            "The folder of the values that a restore must not roll back. Put it on another disk "
            "or machine."
        ),
    ] = ""
    operator: Annotated[
        str,
        _describe(
            "Who runs this server: the name of your organization. The server signs every survey "
            "with it, and participants read it before they respond."
        ),
    ] = ""
    host: Annotated[str, _describe("The address on which the server listens.")] = "127.0.0.1"
    port: Annotated[
        int, _describe("The port on which the server listens; 0 means the default port.")
    ] = 0
    private_host: Annotated[
        str,
        _describe("The address for health, readiness and metrics. Do not make it public."),
    ] = "127.0.0.1"
    private_port: Annotated[
        int,
        _describe(
            "The port for health, readiness and metrics; 0 means the server's port plus 1000, "
            "-1 turns them off."
        ),
    ] = 0
    tls_certificate: Annotated[
        str,
        _describe("A file with the certificate chain, to serve HTTPS without a proxy."),
    ] = ""
    tls_key: Annotated[str, _describe("A file with the private key of the certificate.")] = ""
    trusted_proxies: Annotated[
        str,
        _describe(
            "The addresses or networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto "
            "headers are trusted, separated by commas."
        ),
    ] = ""
    requests_per_second: Annotated[
        float, _describe("How many requests per second one address may make on average.")
    ] = 500.0
    burst: Annotated[int, _describe("How many requests one address may make at once.")] = 2000
    connections_per_address: Annotated[
        int,
        _describe(
            "How many connections one address may have open, trusted proxies excepted; never more "
            "than half of all that the limit of open files allows."
        ),
    ] = 200
    log_level: Annotated[
        str, _describe("The lowest level that is logged: debug, info, warning or error.")
    ] = "info"

    def __post_init__(self) -> None:
        # The name is part of every survey's parameters, whose size is bounded.
        if len(self.operator) > LONGEST_OPERATOR:
            raise ParameterError(f"operator: a name has at most {LONGEST_OPERATOR} characters")
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise ParameterError("set tls_certificate and tls_key together, or neither of them")
        if not (0 <= self.port <= 65535 and -1 <= self.private_port <= 65535):
            raise ParameterError("a port is a number from 0 to 65535")
        if self.requests_per_second <= 0 or self.burst < 1:
            raise ParameterError("requests_per_second and burst must be positive")
        # 0 would shut out everybody, and no limit is not offered: one caller could then hold all
        # connections that the system allows.
        if self.connections_per_address < 1:
            raise ParameterError("connections_per_address must be positive")
        # Parsed at the start, so that a typing error stops the server instead of the rate limits.
        parse_proxies(self.trusted_proxies)
        if self.log_level not in ("debug", "info", "warning", "error"):
            raise ParameterError("log_level is debug, info, warning or error")

    @property
    def proxies(self) -> tuple[Network, ...]:
        """The trusted proxies."""
        return parse_proxies(self.trusted_proxies)

    @property
    def folder(self) -> Path:
        """The folder of this server."""
        return Path(self.data or f"faircount-{self.role}").absolute()

    @property
    def database_url(self) -> str:
        """The address of the database."""
        return self.database or f"sqlite:///{self.folder / 'database.sqlite'}"

    @property
    def lock_path(self) -> Path:
        """What a running server locks: the file of its database, or its folder."""
        # The database itself is locked, however its folder was given: two servers on one SQLite
        # file would each believe that they are alone.
        if self.database_url.startswith("sqlite:///"):
            return Path(self.database_url.removeprefix("sqlite:///"))
        return self.folder / "server"

    @property
    def has_workers(self) -> bool:
        """Whether several processes may serve one database, as they may with PostgreSQL."""
        return not self.database_url.startswith("sqlite:///")

    @property
    def key_folder(self) -> Path:
        """The folder of the row keys."""
        return Path(self.keys) if self.keys else self.folder / "keys"

    @property
    def anchor_folder(self) -> Path:
        """The folder of the anchor."""
        return Path(self.anchor) if self.anchor else self.folder / "anchor"

    @property
    def public_port(self) -> int:
        """The port on which the server listens."""
        return self.port or self.default_port

    @property
    def metrics_port(self) -> int | None:
        """The port for health, readiness and metrics, or None if they are turned off."""
        if self.private_port < 0:
            return None
        return self.private_port or self.public_port + 1000


class CoordinatorSettings(ServerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the coordinator."""

    role = "coordinator"
    default_port = 8461
    aggregator: Annotated[str, _describe("The address of the aggregator.")] = (
        "http://127.0.0.1:8462"
    )
    aggregator_ca: Annotated[
        str,
        _describe(
            "A file with the CA certificate of the aggregator, if it is not signed by a public "
            "certificate authority."
        ),
    ] = ""
    plain_http: Annotated[
        bool,
        _describe(
            "Whether the coordinator may call an aggregator on another machine without TLS. "
            "Whoever is between the two can read and hold back their messages; an ending without "
            "a signature is not believed then."
        ),
    ] = False
    allowed_origins: Annotated[
        str,
        _describe(
            "The origins of other web pages from which participants may respond, separated by "
            "commas."
        ),
    ] = ""
    client_certificate: Annotated[
        str,
        _describe(
            "A file with the certificate and key by which the coordinator identifies itself to "
            "the aggregator's proxy."
        ),
    ] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        # check: plain-http - whoever is between the servers reads who takes part
        if not self.is_aggregator_authentic and not self.plain_http:
            raise ParameterError(
                f"aggregator: {self.aggregator} is on another machine and without TLS: give an "
                "address that begins with https://, or set plain_http"
            )

    @property
    def is_aggregator_authentic(self) -> bool:
        """Whether nobody else can answer in the aggregator's place: TLS, or this machine."""
        try:
            address = urlsplit(self.aggregator)
        except ValueError:
            return False
        # Plain HTTP on loopback passes no network; on any other address somebody may answer in
        # between, and an unsigned ending is then not believed.
        return address.scheme == "https" or is_this_machine(address.hostname or "")

    @property
    def origins(self) -> tuple[str, ...]:
        """The origins of other pages: scheme, host and port, without a path."""
        stripped = (origin.strip() for origin in self.allowed_origins.split(","))
        origins = tuple(origin for origin in stripped if origin)
        for origin in origins:
            # No wildcard: it would let the scripts of every page on the web respond.
            if not re.fullmatch(r"https?://[^/*\s]+", origin):
                raise ParameterError(
                    f"an origin looks like https://www.example.org, not {origin!r:.80}"
                )
        return origins


class AggregatorSettings(ServerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the aggregator."""

    role = "aggregator"
    default_port = 8462
    page_for: Annotated[
        str,
        _describe(
            "The public address of the coordinator. If it is set, this server serves the "
            "participant's page too, which the coordinator then cannot change; the coordinator "
            "must allow this server's origin."
        ),
    ] = ""
    processes: Annotated[
        int,
        _describe(
            "How many processes decrypt large batches; each works on one part at a time. 0: as "
            "many as the machine has cores."
        ),
    ] = 0
    scheduler: Annotated[
        str,
        _describe(
            "The address of a Dask scheduler whose workers decrypt large batches instead. They "
            "see everything that the aggregator sees."
        ),
    ] = ""


S = TypeVar("S", bound=ServerSettings)


def read_settings(
    kind: type[S],
    file: Path | None,
    given: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
) -> S:
    """Read the settings of a server.

    given: options of the command line; None means that an option was not given
    environment: instead of the environment of this process
    """
    variables = os.environ if environment is None else environment
    # In ascending order of precedence.
    values = _from_file(file)
    values |= _from_environment(kind, variables)
    values |= {name: value for name, value in given.items() if value is not None}
    # Not strict, because all values in the environment are strings.
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
    # Others that begin alike are left alone: a machine may run both roles, and compose files set
    # variables of their own.
    names = {environment_name(kind, setting): setting for setting in kind.__struct_fields__}
    return {names[name]: value for name, value in environment.items() if name in names}


def environment_name(kind: type[ServerSettings], setting: str) -> str:
    """Return the name of a setting in the environment."""
    return f"FAIRCOUNT_{kind.role.upper()}_{setting.upper()}"
