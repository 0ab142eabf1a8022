"""Both servers over TLS: a survey, rate limits, callers behind a proxy, and metrics.

The certificate is made for the test and signed by itself.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from certificates import write_certificate
from in_process import server_in
from quick_python import quick_processes
from trial_survey import TrialSurvey, require_success, send_message, set_up

from faircount.client.calls import RemoteServer, RetryPolicy
from faircount.client.invitation_codes import Code
from faircount.client.participation import connect
from faircount.client.participation_status import Stage
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import UnreachableError
from faircount.demo.processes import Process, free_port
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Withdrawal
from faircount.protocol.wire.signing import ChainLink, sign
from faircount.server.common.settings import CoordinatorSettings
from faircount.server.coordinator.aggregator_connection import AggregatorConnection
from faircount.server.coordinator.service import CoordinatorService
from faircount.server.run import _tls_context

BURST = 150

# Pieces of a body that is far too long: more than all buffers on the way can hold.
MAX_PIECES = 1024

ANSWERS = ["a", "b", "b", "c"]


@dataclass(frozen=True)
class Servers:
    """Both servers, their ports, and the folder with their files."""

    folder: Path
    ports: dict[str, int]
    private: dict[str, int]

    def address(self, name: str) -> str:
        return f"https://127.0.0.1:{self.ports[name]}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.folder / "certificate.pem")

    def client(self, name: str) -> httpx.AsyncClient:
        token = (self.folder / name / "owner-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.AsyncClient(
            base_url=self.address(name), headers=headers, verify=self.trust, timeout=60
        )

    def metrics(self, name: str) -> str:
        return httpx.get(f"http://127.0.0.1:{self.private[name]}/metrics").text


def write_settings(folder: Path, name: str, servers: Servers) -> Path:
    """The settings of one server. The coordinator is behind a proxy on this machine."""
    lines = [
        f'data = "{folder / name}"',
        f"port = {servers.ports[name]}",
        f"private_port = {servers.private[name]}",
        f'tls_certificate = "{folder}/certificate.pem"',
        f'tls_key = "{folder}/key.pem"',
        "requests_per_second = 0.001",
        f"burst = {BURST}",
    ]
    if name == "s1":
        lines += [
            f'aggregator = "{servers.address("s2")}"',
            f'aggregator_ca = "{folder}/certificate.pem"',
            f'client_certificate = "{folder}/both.pem"',
            'trusted_proxies = "127.0.0.1"',
        ]
    path = folder / f"{name}.toml"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    folder = tmp_path_factory.mktemp("tls")
    write_certificate(folder)
    ports = {"s1": free_port(), "s2": free_port()}
    private = {"s1": free_port(), "s2": free_port()}
    servers = Servers(folder, ports, private)
    running = []
    try:
        for name, role in (("s1", "coordinator"), ("s2", "aggregator")):
            settings = write_settings(folder, name, servers)
            arguments = ("faircount", role, "--settings", str(settings))
            with quick_processes():
                running.append(Process.start(arguments, folder / f"{name}.log"))
        for process, port in zip(running, private.values(), strict=True):
            process.wait_until(partial(is_ready, port), 120, "a server")
        yield servers
    finally:
        for process in running:
            process.stop()


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").status_code == 200
    except httpx.TransportError:
        return False


async def open_survey(servers: Servers) -> TrialSurvey:
    async with servers.client("s1") as to_s1, servers.client("s2") as to_s2:
        # The noise is 0 except with probability 1e-8.
        mechanism = Laplace(items=["a", "b", "c"], epsilon=20.0, users=5, dropouts=1)
        survey = await set_up(to_s1, to_s2, mechanism, SERVERS, SystemEntropy())
        require_success(await to_s1.post(f"{survey.path}/open"))
    return survey


async def close_survey(servers: Servers, survey: TrialSurvey) -> dict[str, Any]:
    """Close a survey and wait for its result."""
    async with servers.client("s1") as to_s1:
        require_success(await to_s1.post(f"{survey.path}/close"))
        for _ in range(60):
            answer = await to_s1.get(f"{survey.path}/result")
            if answer.status_code == 200:
                break
            await asyncio.sleep(1)
        result: dict[str, Any] = require_success(answer).json()
        return result


@pytest.mark.slow
def test_a_survey_over_tls_from_participants_to_the_aggregator(
    servers: Servers, tmp_path: Path
) -> None:
    """The coordinator and participants trust the certificate; without it, nothing is sent."""
    survey = asyncio.run(open_survey(servers))
    address = servers.address("s1")
    codes = [Code(survey.params.survey, invitation) for invitation in survey.invitations]
    without_trust = RemoteServer(address, retry=RetryPolicy(attempts=1))
    wary = connect(codes[0].link(address), connection=without_trust, state=tmp_path / "x")
    with pytest.raises(UnreachableError, match="certificate verify failed"):
        wary.answer("a")
    certificates = str(servers.folder / "certificate.pem")
    for number, item in enumerate(ANSWERS):
        state = tmp_path / f"{number}.device"
        link = codes[number].link(address)
        participation = connect(link, certificates=certificates, state=state)
        assert participation.answer(item).stage is Stage.SENT
    result = asyncio.run(close_survey(servers, survey))
    assert (result["phase"], result["included"]) == ("published", 4)
    assert [item["count"] for item in result["counts"]] == [1, 2, 1]


@pytest.mark.slow
def test_rate_limits_believe_a_trusted_proxy_and_nobody_else(servers: Servers) -> None:
    def send(forwarded_for: list[str], sender: str = "127.0.0.1") -> list[httpx.Response]:
        transport = httpx.HTTPTransport(verify=servers.trust, local_address=sender)
        address = servers.address("s1")
        with httpx.Client(base_url=address, transport=transport, timeout=60) as client:
            return [
                client.get("/v1/none", headers={"X-Forwarded-For": caller})
                for caller in forwarded_for
            ]

    flood = send(["203.0.113.7"] * (BURST + 1))
    assert [answer.status_code for answer in flood] == [404] * BURST + [429]
    limited = flood[-1]
    assert limited.headers["content-type"] == "application/problem+json"
    assert limited.headers["retry-after"] == "1"
    assert limited.json()["type"] == "urn:faircount:problem:too-many-requests"
    # Another participant behind the proxy is not affected.
    assert send(["203.0.113.8"])[0].status_code == 404
    # Whoever is no trusted proxy cannot escape the limit with made-up addresses.
    made_up = [f"198.51.100.{number}" for number in range(BURST + 1)]
    assert send(made_up, sender="127.0.0.2")[-1].status_code == 429
    assert 'faircount_requests_total{call="none",status="429"}' in servers.metrics("s1")


@pytest.mark.slow
def test_a_body_without_a_length_is_not_read_beyond_its_limit(servers: Servers) -> None:
    sent = list[int]()

    def endless() -> Iterator[bytes]:
        for number in range(MAX_PIECES):
            sent.append(number)
            yield bytes(65536)

    headers = {"X-Forwarded-For": "203.0.113.9"}
    survey = asyncio.run(open_survey(servers))
    with httpx.Client(base_url=servers.address("s1"), verify=servers.trust, timeout=60) as client:
        try:
            answer = client.post(f"{survey.path}/messages", content=endless(), headers=headers)
            assert answer.status_code == 413
        except httpx.TransportError:
            # The server has closed the connection while we were still sending.
            pass
    assert len(sent) < MAX_PIECES


async def get_rejected_by_both(servers: Servers, survey: TrialSurvey) -> None:
    """Send a withdrawal that the coordinator does not know, and that no aggregator accepts."""
    stranger = Withdrawal(survey.params.survey, bytes(32), bytes(32), bytes(64))
    async with servers.client("s1") as to_s1:
        await send_message(to_s1, survey, stranger)
    # The aggregator reads only what the coordinator signed, so its key is borrowed.
    url = f"sqlite:///{servers.folder}/s1/database.sqlite"
    s1 = await server_in(servers.folder / "s1", url, "s1")
    state = await CoordinatorService.of(s1).pending_messages(survey.params.survey)
    assert state is not None
    await s1.database.close()
    signed = sign(state.key, Party.COORDINATOR, stranger, ChainLink())
    async with servers.client("s2") as to_s2:
        await AggregatorConnection(to_s2).send(
            state.key, survey.params.survey, signed, survey.params.n_max
        )


@pytest.mark.slow
def test_rejections_of_both_servers_are_counted_by_reason(servers: Servers) -> None:
    survey = asyncio.run(open_survey(servers))
    s1_before = count_rejections(servers, "s1")
    s2_before = count_rejections(servers, "s2")
    asyncio.run(get_rejected_by_both(servers, survey))
    assert count_rejections(servers, "s1") - s1_before == Counter({"unknown": 1})
    assert count_rejections(servers, "s2") - s2_before == Counter({"malformed": 1})
    assert "faircount_clock_skew_seconds" in servers.metrics("s1")


def count_rejections(servers: Servers, name: str) -> Counter[str]:
    """The metric of rejections, by reason."""
    counts = Counter[str]()
    for line in servers.metrics(name).splitlines():
        if line.startswith("faircount_rejections_total{"):
            reason = line.split('"')[1]
            counts[reason] = int(float(line.rsplit(" ", 1)[1]))
    return counts


def test_the_coordinator_shows_its_own_certificate(tmp_path: Path) -> None:
    """A proxy in front of the aggregator may admit only callers whose certificate it knows."""
    write_certificate(tmp_path)
    certificate = str(tmp_path / "certificate.pem")
    both = str(tmp_path / "both.pem")
    asking = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=certificate)
    asking.load_cert_chain(both)
    asking.verify_mode = ssl.CERT_REQUIRED
    with_own = CoordinatorSettings(aggregator_ca=certificate, client_certificate=both)
    without_own = CoordinatorSettings(aggregator_ca=certificate)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    async def work() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=asking)
        address = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with httpx.AsyncClient(verify=_tls_context(with_own)) as client:
            assert (await client.get(address)).status_code == 204
        async with httpx.AsyncClient(verify=_tls_context(without_own)) as client:
            with pytest.raises(httpx.TransportError):
                await client.get(address)
        server.close()

    asyncio.run(work())
