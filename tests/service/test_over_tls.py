"""Both servers over TLS with a certificate made here: a survey, limits, what a proxy says of its callers, metrics."""

import asyncio
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from in_process import server_in
from trial_survey import TrialSurvey, done, set_up, told

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import UnreachableError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Withdraw
from faircount.protocol.wire.signing import Link, sign
from faircount.service.calls import Patience, RemoteServer
from faircount.service.client import connect
from faircount.service.codes import Code
from faircount.service.coordinator import CoordinatorService
from faircount.service.processes import Process, free_port
from faircount.service.run import _trust
from faircount.service.s2_link import S2Link
from faircount.service.settings import CoordinatorSettings
from faircount.service.standing import Stage

BURST = 150
MOST = 1024
"""Pieces of a body that is far too long: more than all buffers on its way hold."""
ANSWERS = ["a", "b", "b", "c"]


def certificate(folder: Path) -> None:
    """A certificate for this machine that vouches for itself, and its key."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a trial")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(pem, plain, serialization.NoEncryption())
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(secret)
    (folder / "both.pem").write_bytes(made.public_bytes(pem) + secret)


@dataclass(frozen=True)
class Servers:
    """Both servers, their ports, and the folder with all they have."""

    folder: Path
    ports: dict[str, int]
    private: dict[str, int]

    def address(self, name: str) -> str:
        return f"https://127.0.0.1:{self.ports[name]}"

    @property
    def trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "certificate.pem")

    def client(self, name: str) -> httpx.AsyncClient:
        token = (self.folder / name / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(base_url=self.address(name), headers=headers, verify=self.trusted, timeout=60)

    def metrics(self, name: str) -> str:
        return httpx.get(f"http://127.0.0.1:{self.private[name]}/metrics").text


def settings_of(folder: Path, name: str, servers: Servers) -> Path:
    """The settings of one of them: S1 stands behind a proxy on this machine, S2 does not."""
    more = {
        "s1": f'aggregator = "{servers.address("s2")}"\naggregator_ca = "{folder}/certificate.pem"\n'
        f'client_certificate = "{folder}/both.pem"\ntrusted_proxies = "127.0.0.1"\n',
        "s2": "",
    }
    path = folder / f"{name}.toml"
    path.write_text(
        f'data = "{folder / name}"\nport = {servers.ports[name]}\nprivate_port = {servers.private[name]}\n'
        f'tls_certificate = "{folder}/certificate.pem"\ntls_key = "{folder}/key.pem"\n'
        f"requests_per_second = 0.001\nburst = {BURST}\n{more[name]}"
    )
    return path


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("tls")
    certificate(folder)
    found = Servers(folder, *({name: free_port() for name in ("s1", "s2")} for _ in range(2)))
    commands = {"s1": "coordinator", "s2": "aggregator"}
    running = {
        name: Process.start(
            ("faircount", role, "--settings", str(settings_of(folder, name, found))), folder / f"{name}.log"
        )
        for name, role in commands.items()
    }
    try:
        for name, process in running.items():
            process.wait_until(lambda at=found.private[name]: _ready(at), 120, name)  # type: ignore[misc]  # bound now
        yield found
    finally:
        for each in running.values():
            each.stop()


def _ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


async def opened(servers: Servers) -> TrialSurvey:
    async with servers.client("s1") as to_s1, servers.client("s2") as to_s2:
        mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=5, dropouts=1)  # noise with chance 1e-8
        survey = await set_up(to_s1, to_s2, mechanism, SERVERS, SystemEntropy())
        done(await to_s1.post(f"{survey.path}/open"))
    return survey


async def closed(servers: Servers, survey: TrialSurvey) -> dict[str, Any]:
    async with servers.client("s1") as to_s1:
        done(await to_s1.post(f"{survey.path}/close"))
        for _ in range(60):
            answer = await to_s1.get(f"{survey.path}/result")
            if answer.status_code == 200:
                break
            await asyncio.sleep(1)
        found: dict[str, Any] = done(answer).json()
        return found


@pytest.mark.slow
def test_a_survey_over_tls_from_people_to_s2(servers: Servers, tmp_path: Path) -> None:
    """S1 reaches S2 because it trusts the certificate; so do people, and without it they send nothing."""
    survey, believed = asyncio.run(opened(servers)), str(servers.folder / "certificate.pem")
    links = [Code(survey.params.survey, each).link(servers.address("s1")) for each in survey.invitations]
    wary = connect(
        links[0], connection=RemoteServer(servers.address("s1"), patience=Patience(tries=1)), state=tmp_path / "x"
    )
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        wary.answer("a")
    for number, (link, item) in enumerate(zip(links, ANSWERS, strict=False)):
        part = connect(link, certificates=believed, state=tmp_path / f"{number}.device")
        assert part.answer(item).stage is Stage.SENT
    result = asyncio.run(closed(servers, survey))
    assert (result["state"], result["included"]) == ("published", 4)
    assert [each["count"] for each in result["counts"]] == [1, 2, 1]


@pytest.mark.slow
def test_limits_count_the_people_behind_a_trusted_proxy_and_believe_nobody_else(servers: Servers) -> None:
    def answers(forwarded: list[str], come_from: str = "127.0.0.1") -> list[httpx.Response]:
        way = httpx.HTTPTransport(verify=servers.trusted, local_address=come_from)
        with httpx.Client(base_url=servers.address("s1"), transport=way, timeout=60) as client:
            return [client.get("/v1/none", headers={"X-Forwarded-For": each}) for each in forwarded]

    flood = answers(["203.0.113.7"] * (BURST + 1))
    assert [each.status_code for each in flood] == [404] * BURST + [429]
    refused = flood[-1]
    assert (refused.headers["content-type"], refused.headers["retry-after"]) == ("application/problem+json", "1")
    assert refused.json()["type"] == "urn:faircount:problem:too-many-requests"
    assert [each.status_code for each in answers(["203.0.113.8"])] == [404]  # another person comes through
    lies = answers([f"198.51.100.{number}" for number in range(BURST + 1)], come_from="127.0.0.2")
    assert lies[-1].status_code == 429  # who is no trusted proxy may say what it likes: all of these came from there
    assert 'faircount_requests_total{call="none",status="429"}' in servers.metrics("s1")


@pytest.mark.slow
def test_a_body_without_a_length_is_not_read_beyond_its_limit(servers: Servers) -> None:
    sent = list[int]()

    def endless() -> Iterator[bytes]:
        for number in range(MOST):
            sent.append(number)
            yield bytes(65536)

    headers = {"X-Forwarded-For": "203.0.113.9"}
    survey = asyncio.run(opened(servers))
    with httpx.Client(base_url=servers.address("s1"), verify=servers.trusted, timeout=60) as client:
        try:
            answer = client.post(f"{survey.path}/messages", content=endless(), headers=headers)
            assert answer.status_code == 413
        except httpx.TransportError:  # the server has closed the connection while we were still sending
            pass
    assert len(sent) < MOST


async def _refused_by_both(servers: Servers, survey: TrialSurvey) -> None:
    """S1 gets a message too early to be for it; S2 one that S1 signed, and that is none for S2."""
    stranger = Withdraw(survey.params.survey, bytes(32))
    async with servers.client("s1") as to_s1:
        await told(to_s1, survey, stranger)
    s1 = await server_in(servers.folder / "s1", f"sqlite:///{servers.folder}/s1/database.sqlite", "s1")
    state = await CoordinatorService.of(s1).to_say(survey.params.survey)
    assert state is not None
    await s1.database.close()
    async with servers.client("s2") as to_s2:
        await S2Link(to_s2).send(state.key, survey.params.survey, sign(state.key, Party.S1, stranger, Link()))


@pytest.mark.slow
def test_rejections_of_both_servers_are_counted_by_reason(servers: Servers) -> None:
    survey = asyncio.run(opened(servers))
    before = {name: _rejections(servers, name) for name in ("s1", "s2")}
    asyncio.run(_refused_by_both(servers, survey))
    rises = {
        name: {reason: count - before[name][reason] for reason, count in _rejections(servers, name).items()}
        for name in ("s1", "s2")
    }
    assert {reason: count for reason, count in rises["s1"].items() if count} == {"unknown": 1}
    assert {reason: count for reason, count in rises["s2"].items() if count} == {"malformed": 1}
    assert "faircount_clock_skew_seconds" in servers.metrics("s1")


def _rejections(servers: Servers, name: str) -> dict[str, float]:
    lines = [each for each in servers.metrics(name).splitlines() if each.startswith("faircount_rejections_total{")]
    return {each.split('"')[1]: float(each.rsplit(" ", 1)[1]) for each in lines}


def test_s1_shows_its_own_certificate_where_s2_asks_for_one(tmp_path: Path) -> None:
    """A proxy before S2 that admits only whom it knows."""
    certificate(tmp_path)
    paths = {name: str(tmp_path / f"{name}.pem") for name in ("certificate", "both")}
    known = CoordinatorSettings(aggregator_ca=paths["certificate"], client_certificate=paths["both"])
    asking = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=paths["certificate"])
    asking.load_cert_chain(paths["both"])
    asking.verify_mode = ssl.CERT_REQUIRED

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=asking)
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with httpx.AsyncClient(verify=_trust(known)) as client:
            assert (await client.get(address)).status_code == 204
        async with httpx.AsyncClient(verify=_trust(CoordinatorSettings(aggregator_ca=paths["certificate"]))) as client:
            with pytest.raises(httpx.TransportError):
                await client.get(address)
        server.close()

    asyncio.run(work())
