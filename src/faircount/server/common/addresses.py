"""Addresses of callers: how they are counted, and which of them are trusted proxies."""

from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

from faircount.core.errors import ParameterError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SITE = 64
"""Bits of an IPv6 address that are counted: whoever has one address there has 2^64 of them."""

WIDEST_IPV4 = 8
WIDEST_IPV6 = 32


def parse_address(text: str) -> Address | None:
    """Parse an address; one of IPv4 inside IPv6 becomes that of IPv4, other texts None."""
    try:
        # What follows % is the zone of a link-local address: one caller could write many.
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return address if mapped is None else mapped


def is_this_machine(host: str) -> bool:
    """Whether a host name or address means the machine itself, which no network reaches."""
    address = parse_address(host)
    return host == "localhost" if address is None else address.is_loopback


@lru_cache(maxsize=4096)
def counted_as(text: str) -> str:
    """Return under which name the limits count an address."""
    address = parse_address(text)
    if isinstance(address, IPv6Address):
        # Counted by site: otherwise one caller has as many allowances as addresses.
        return str(ip_network((address, SITE), strict=False))
    return text if address is None else str(address)


def parse_proxies(text: str) -> tuple[Network, ...]:
    """Parse addresses and networks of trusted proxies, separated by commas."""
    parts = [part.strip() for part in text.split(",")]
    return tuple(_parse_proxy(part) for part in parts if part)


def _parse_proxy(part: str) -> Network:
    try:
        network = ip_network(part)
    except ValueError:
        raise ParameterError(
            f"trusted_proxies: {part!r} is no address: name the address of each proxy, or its "
            "network, such as 10.0.0.0/24"
        ) from None
    widest = WIDEST_IPV4 if network.version == 4 else WIDEST_IPV6
    # check: every-proxy - whoever is trusted chooses the address that the rate limit counts
    if network.prefixlen < widest:
        raise ParameterError(
            f"trusted_proxies: {part} is nearly everybody, and whoever is trusted can pass the "
            "rate limits: name the address of each proxy"
        )
    return network


def is_proxy(text: str, proxies: tuple[Network, ...]) -> bool:
    """Whether an address belongs to a trusted proxy."""
    address = parse_address(text)
    return address is not None and any(address in network for network in proxies)


def original_address(peer: str, forwarded_for: str, proxies: tuple[Network, ...]) -> str:
    """Return the address of the caller behind the trusted proxies.

    Every proxy appends the address that it saw, so the list is read from its end: the first
    address there that is no trusted proxy is the caller. What stands before it was sent by the
    caller, who can write anything.
    """
    # A header from anybody else is not even read: everybody can send one.
    if not is_proxy(peer, proxies):
        return peer
    address = peer
    for entry in reversed(forwarded_for.split(",")):
        hop = _without_port(entry.strip())
        # Garbage ends the list: what stands before it is not what a trusted proxy wrote.
        if parse_address(hop) is None:
            return address
        address = hop
        # check: right-most-hop - a spoofed first entry would pass the rate limit
        if not is_proxy(hop, proxies):
            return address
    return address


def _without_port(entry: str) -> str:
    """Some proxies write 192.0.2.1:1234 and [2001:db8::1]:1234."""
    if entry.startswith("["):
        return entry[1:].partition("]")[0]
    return entry.partition(":")[0] if entry.count(":") == 1 else entry
