"""Ed25519 signatures: on the statements of both servers, and on the coordinator's requests.

A statement is a message that a server signs (`messages.Signed`), over

    "faircount/1/statement" 0x00 | u32 signer | u32 number | 32-byte hash | message

The aggregator's statements about a survey form a chain: it numbers them from 1, and each has the
hash of the one before. The coordinator repeats number and hash of the newest statement that it has
received. So each server notices when the other was restored from a backup and has forgotten, or
contradicts, what was signed. Replaying a statement achieves nothing: the first write stands.

A request from the coordinator to the aggregator is signed over

    "faircount/1/s1-s2" 0x00 | method | path | SHA-256(body) | u64 milliseconds | nonce | key id

with method, path and key id each after a u32 length, and a nonce of 16 bytes.
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
    """An Ed25519 key; its secret is not printed."""

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
        """The 32 bytes with which others verify."""
        return self._private.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """The signature, 64 bytes; deterministic."""
        return self._private.sign(data)


SHORT = 1 << 12
"""Most bytes of signed data whose verification is cached.

Every client of a survey is shown the same roster confirmation and the same result.
"""


def verify(public: bytes, signature: bytes, data: bytes) -> bool:
    """Whether this key made the signature on this data."""
    # Safe to cache: the outcome depends on nothing but these three values.
    if len(data) <= SHORT:
        return _verify_cached(public, signature, data)
    return _verify(public, signature, data)


def _verify(public: bytes, signature: bytes, data: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    # ValueError: the public key is not 32 bytes.
    except (InvalidSignature, ValueError):
        return False
    return True


_verify_cached = lru_cache(maxsize=256)(_verify)


@dataclass(frozen=True, slots=True)
class ChainLink:
    """A reference to a statement of the chain: its number and its hash."""

    number: int = 0
    hash: bytes = bytes(32)


UNCHAINED = ChainLink()
"""Where the chain begins; also for messages that belong to no chain."""


def compute_chain_link(signed: Signed) -> ChainLink:
    """The reference to a statement, which the next one and the coordinator's requests carry."""
    return ChainLink(signed.number, sha256(_signed_bytes(signed)).digest())


def is_chain(statements: Sequence[Signed]) -> bool:
    """Whether these are the first statements of a chain, in order and without a gap."""
    before = UNCHAINED
    for statement in statements:
        if statement.number != before.number + 1 or statement.previous != before.hash:
            return False
        before = compute_chain_link(statement)
    return True


def sign(key: SigningKey, by: Party, content: Message, chain_link: ChainLink = UNCHAINED) -> Signed:
    """The message with a signature.

    `chain_link` is its number and the hash of the statement before.
    """
    # The signature field itself is not part of what is signed.
    unsigned = Signed(int(by), encode(content), bytes(64), chain_link.number, chain_link.hash)
    return replace(unsigned, signature=key.sign(_signed_bytes(unsigned)))


@dataclass(frozen=True, slots=True)
class Statement:
    """A signed message that was made or verified here, and its decoded content."""

    signed: Signed
    message: Message


def make_statement(
    key: SigningKey, by: Party, content: Message, chain_link: ChainLink = UNCHAINED
) -> Statement:
    """Sign a message, and keep it decoded beside the signature."""
    return Statement(sign(key, by, content, chain_link), content)


def verify_statement(public: bytes, by: Party, signed: Signed) -> Statement | None:
    """The statement, if this party signed it; otherwise None."""
    # check: signature-first - a server would decode a large payload that nobody signed
    if signed.by != by or not verify(public, signed.signature, _signed_bytes(signed)):
        return None
    try:
        return Statement(signed, parse(signed.payload))
    except MalformedError:
        return None


def verify_message(public: bytes, by: Party, signed: Signed) -> Message | None:
    """The message of a statement, if this party signed it; otherwise None."""
    statement = verify_statement(public, by, signed)
    return None if statement is None else statement.message


def _signed_bytes(statement: Signed) -> bytes:
    # The position in the chain is signed too: otherwise a server could renumber the other's words.
    position = (
        statement.by.to_bytes(4, "big") + statement.number.to_bytes(4, "big") + statement.previous
    )
    return LABEL + b"/statement\0" + position + statement.payload


def request_bytes(
    method: str, path: str, body_hash: bytes, milliseconds: int, nonce: bytes, key_id: str
) -> bytes:
    """What the coordinator signs for a request to the aggregator.

    It covers the hash of the body instead of the body, so that the aggregator can verify the
    signature before it reads the body. The server checks time window and nonce.
    """
    if len(body_hash) != 32:
        raise MalformedError("the hash of a body has 32 bytes")
    if len(nonce) != 16:
        raise MalformedError("a nonce has 16 bytes")
    # Time and nonce refuse replays, method and path refuse the same body for another request.
    parts = [LABEL + b"/s1-s2\0"]
    parts += [_with_length(method.encode()), _with_length(path.encode()), body_hash]
    parts += [milliseconds.to_bytes(8, "big"), nonce, _with_length(key_id.encode())]
    return b"".join(parts)


def _with_length(part: bytes) -> bytes:
    return len(part).to_bytes(4, "big") + part
