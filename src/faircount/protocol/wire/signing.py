"""Ed25519 signatures: statements of the servers, and requests from S1 to S2.

A statement is signed over "faircount/1/statement" 0x00 | u32 signer | u32 number | 32-byte hash | message bytes; number
and hash are its place in the chain of S2's statements (`Signed`). A request is signed over
"faircount/1/s1-s2" 0x00 | method | path | SHA-256(body) | u64 milliseconds | 16-byte nonce | key id, variable fields
after a u32 length. Safety rests on first-write-wins: a statement replayed says nothing new.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from faircount.core.entropy import Entropy
from faircount.core.errors import MalformedError
from faircount.protocol.wire.codec import Message, Party, encode, parse
from faircount.protocol.wire.digests import LABEL
from faircount.protocol.wire.messages import Signed


@dataclass(frozen=True)
class SigningKey:
    """An Ed25519 key; its secret does not print."""

    secret: bytes = field(repr=False)

    @classmethod
    def generate(cls, entropy: Entropy) -> "SigningKey":
        """A fresh key."""
        return cls(entropy.bytes(32))

    @cached_property
    def _private(self) -> Ed25519PrivateKey:
        return Ed25519PrivateKey.from_private_bytes(self.secret)

    @cached_property
    def public(self) -> bytes:
        """The 32 bytes that others verify with."""
        return self._private.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """The signature, 64 bytes; the same for the same data."""
        return self._private.sign(data)


SHORT = 1 << 12
"""Bytes of what is signed up to which a verdict is remembered: everybody is shown the same seal and the same result."""


def verify(public: bytes, signature: bytes, data: bytes) -> bool:
    """Whether the signature is this key's on this data."""
    return (_verify_short if len(data) <= SHORT else _verify)(public, signature, data)


def _verify(public: bytes, signature: bytes, data: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


_verify_short = lru_cache(maxsize=256)(_verify)


@dataclass(frozen=True, slots=True)
class Link:
    """A place in the chain of S2's statements: a number, and the hash of a statement."""

    number: int = 0
    hash: bytes = bytes(32)


UNCHAINED = Link()
"""Of what stands in no chain, and of S1 before it has heard a statement."""


def link_to(signed: Signed) -> Link:
    """The place that a statement takes: what S1 gives when it has heard it."""
    return Link(signed.number, sha256(_signed_bytes(signed)).digest())


def chained(statements: Sequence[Signed]) -> bool:
    """Whether these are the statements of a chain from its beginning, in order."""
    before = UNCHAINED
    for each in statements:
        if each.number != before.number + 1 or each.previous != before.hash:
            return False
        before = link_to(each)
    return True


def sign(key: SigningKey, by: Party, what: Message, link: Link = UNCHAINED) -> Signed:
    """A message as a signed statement; `link` is what it says of the chain."""
    unsigned = Signed(int(by), encode(what), bytes(64), link.number, link.hash)
    return replace(unsigned, signature=key.sign(_signed_bytes(unsigned)))


@dataclass(frozen=True, slots=True)
class Statement:
    """A signed message that was made or verified once: the envelope, and what it says."""

    signed: Signed
    says: Message


def make_statement(key: SigningKey, by: Party, what: Message, link: Link = UNCHAINED) -> Statement:
    """A message as a signed statement, with the message beside it."""
    return Statement(sign(key, by, what, link), what)


def verified(public: bytes, by: Party, signed: Signed) -> Statement | None:
    """The statement, if this party signed it; None otherwise."""
    if signed.by != by or not verify(public, signed.signature, _signed_bytes(signed)):
        return None
    try:
        return Statement(signed, parse(signed.payload))
    except MalformedError:
        return None


def unwrap(public: bytes, by: Party, signed: Signed) -> Message | None:
    """The message inside, if this party signed it; None otherwise."""
    found = verified(public, by, signed)
    return None if found is None else found.says


def _signed_bytes(what: Signed) -> bytes:
    place = what.by.to_bytes(4, "big") + what.number.to_bytes(4, "big") + what.previous
    return LABEL + b"/statement\0" + place + what.payload


def request_bytes(method: str, path: str, body: bytes, milliseconds: int, nonce: bytes, key_id: str) -> bytes:
    """What S1 signs for a request to S2; window and nonces are the service's to check."""
    parts = [LABEL + b"/s1-s2\0"]
    parts += [_prefixed(method.encode()), _prefixed(path.encode()), sha256(body).digest()]
    parts += [milliseconds.to_bytes(8, "big"), nonce, _prefixed(key_id.encode())]
    if len(nonce) != 16:
        raise MalformedError("a nonce has 16 bytes")
    return b"".join(parts)


def _prefixed(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part
