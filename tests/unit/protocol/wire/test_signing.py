"""Signatures of statements and requests."""

from hashlib import sha256

import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import MalformedError
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Signed, SyncRequest
from faircount.protocol.wire.signing import (
    SHORT,
    SigningKey,
    request_bytes,
    sign,
    verify,
    verify_message,
)


def test_statements_are_bound_to_their_signer() -> None:
    key, other = SigningKey.generate(SeededStream(1)), SigningKey.generate(SeededStream(2))
    signed = sign(key, Party.COORDINATOR, SyncRequest(bytes(16)))
    assert verify_message(key.public, Party.COORDINATOR, signed) == SyncRequest(bytes(16))
    assert verify_message(other.public, Party.COORDINATOR, signed) is None
    assert verify_message(key.public, Party.AGGREGATOR, signed) is None
    assert (
        verify_message(
            key.public, Party.AGGREGATOR, Signed(Party.AGGREGATOR, signed.payload, signed.signature)
        )
        is None
    )
    assert (
        verify_message(
            key.public, Party.COORDINATOR, Signed(Party.COORDINATOR, b"junk", key.sign(b"junk"))
        )
        is None
    )
    assert sign(key, Party.COORDINATOR, SyncRequest(bytes(16))) == signed


@pytest.mark.parametrize("size", [0, SHORT, SHORT + 1])
def test_a_verdict_that_is_remembered_is_that_of_the_same_bytes_alone(size: int) -> None:
    key, other, data = (
        SigningKey.generate(SeededStream(1)),
        SigningKey.generate(SeededStream(2)),
        bytes(size),
    )
    signature = key.sign(data)
    for _ in range(2):
        assert verify(key.public, signature, data)
        assert not verify(other.public, signature, data)
        assert not verify(key.public, other.sign(data), data)
        assert not verify(key.public, signature, data + b"\1")


def test_requests_are_bound_to_every_field() -> None:
    base = ("POST", "/messages", sha256(b"body").digest(), 5, bytes(16), "k1")
    key = SigningKey.generate(SeededStream(1))
    signature = key.sign(request_bytes(*base))
    assert verify(key.public, signature, request_bytes(*base))
    for at, other in enumerate(("GET", "/message", sha256(b"bod").digest(), 6, b"\1" * 16, "k2")):
        changed = (*base[:at], other, *base[at + 1 :])
        assert not verify(key.public, signature, request_bytes(*changed))
    assert not verify(b"short", signature, request_bytes(*base))
    with pytest.raises(MalformedError, match="nonce"):
        request_bytes("POST", "/", bytes(32), 0, b"", "k")
    with pytest.raises(MalformedError, match="hash of a body"):
        request_bytes("POST", "/", b"", 0, bytes(16), "k")


def test_known_request_bytes() -> None:
    got = request_bytes("POST", "/a", sha256(b"").digest(), 258, bytes(range(16)), "k")
    want = b"faircount/1/s1-s2\0" + b"\0\0\0\4POST" + b"\0\0\0\2/a" + sha256(b"").digest()
    assert got == want + b"\0\0\0\0\0\0\1\2" + bytes(range(16)) + b"\0\0\0\1k"
