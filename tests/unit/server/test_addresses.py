"""Rate limits behind a proxy: whom a server believes about the address of a caller."""

import asyncio
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from faircount.core.errors import ParameterError
from faircount.server.common.addresses import counted_as, original_address, parse_proxies
from faircount.server.common.http import without_redirects
from faircount.server.common.metrics import Metrics
from faircount.server.common.middleware import RequestLimit, RequestMiddleware
from faircount.server.common.settings import AggregatorSettings, CoordinatorSettings

PROXY = "10.0.0.1"
PROXIES = parse_proxies(f"{PROXY}, 10.1.0.0/16, ::1")


@pytest.mark.parametrize("trusted", ["*", "0.0.0.0/0", "::/0", "1.2.3.4,*", "proxy.example", "0/0"])
def test_nobody_can_trust_everybody(trusted: str) -> None:
    for kind in (CoordinatorSettings, AggregatorSettings):
        with pytest.raises(ParameterError, match="trusted_proxies"):
            kind(trusted_proxies=trusted)


def test_a_setting_names_addresses_and_networks() -> None:
    found = CoordinatorSettings(trusted_proxies="127.0.0.1, 172.31.61.0/24,")
    assert [str(network) for network in found.proxies] == ["127.0.0.1/32", "172.31.61.0/24"]
    assert CoordinatorSettings().proxies == ()


@pytest.mark.parametrize(
    ("peer", "header", "caller"),
    [
        (PROXY, "203.0.113.7", "203.0.113.7"),
        (PROXY, "198.51.100.1, 203.0.113.7", "203.0.113.7"),
        (PROXY, "198.51.100.1, 203.0.113.7, 10.1.2.3", "203.0.113.7"),
        (PROXY, "203.0.113.7:4711", "203.0.113.7"),
        ("::1", "[2001:db8::7]:4711", "2001:db8::7"),
        ("::ffff:10.0.0.1", "203.0.113.7", "203.0.113.7"),
        # A proxy that says nothing usable is the caller.
        (PROXY, "", PROXY),
        (PROXY, "203.0.113.7, unknown", PROXY),
        (PROXY, "10.1.0.5", "10.1.0.5"),
        # Whoever is no proxy is not believed.
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
    ],
)
def test_the_caller_is_the_right_most_hop_that_is_not_trusted(
    peer: str, header: str, caller: str
) -> None:
    assert original_address(peer, header, PROXIES) == caller


def test_a_site_of_ipv6_is_one_caller() -> None:
    assert counted_as("2001:db8::1") == counted_as("2001:db8::ffff") != counted_as("2001:db8:1::1")
    assert counted_as("::ffff:192.0.2.1") == "192.0.2.1"
    assert counted_as("a socket") == "a socket"


def send(headers: list[dict[str, str]], peer: str = PROXY, **scope: Any) -> list[httpx.Response]:
    """The answers of a server that lets every address make three requests."""
    app = without_redirects(Starlette(routes=[Route("/here", lambda _: PlainTextResponse("here"))]))
    limited = RequestMiddleware(app, Metrics.create(), RequestLimit(1e-9, 3), PROXIES)
    transport = httpx.ASGITransport(limited, client=(peer, 1))

    async def work() -> list[httpx.Response]:
        base = scope.get("base_url", "http://s1")
        async with httpx.AsyncClient(transport=transport, base_url=base) as client:
            return [await client.get(scope.get("path", "/here"), headers=some) for some in headers]

    return asyncio.run(work())


def test_a_spoofed_first_entry_does_not_pass_the_rate_limit() -> None:
    spoofed = [{"X-Forwarded-For": f"198.51.100.{n}, 203.0.113.7"} for n in range(5)]
    assert [answer.status_code for answer in send(spoofed)] == [200] * 3 + [429] * 2


def test_addresses_of_one_ipv6_site_do_not_pass_the_rate_limit() -> None:
    site = [{"X-Forwarded-For": f"2001:db8::{n}"} for n in range(5)]
    assert [answer.status_code for answer in send(site)] == [200] * 3 + [429] * 2


def test_over_tls_browsers_are_told_to_stay_there() -> None:
    name = "strict-transport-security"
    (direct,) = send([{}], base_url="https://s1")
    (proxied,) = send([{"X-Forwarded-Proto": "https"}])
    assert direct.headers[name] == proxied.headers[name] == "max-age=31536000"
    (plain,) = send([{}])
    (made_up,) = send([{"X-Forwarded-Proto": "https"}], peer="203.0.113.9")
    assert name not in plain.headers
    assert name not in made_up.headers


def test_no_answer_names_the_host_of_the_request() -> None:
    (answer,) = send([{"Host": "evil.example"}], path="/here/")
    assert answer.status_code == 404
    assert "evil.example" not in str(answer.headers) + answer.text
