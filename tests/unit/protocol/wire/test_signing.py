"""Signatures of statements and requests."""

from hashlib import sha256

import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import MalformedError
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Signed, SyncRequest
from faircount.protocol.wire.signing import SHORT, SigningKey, request_bytes, sign, unwrap, verify


def test_statements_are_bound_to_their_signer() -> None:
    key, other = SigningKey.generate(SeededStream(1)), SigningKey.generate(SeededStream(2))
    signed = sign(key, Party.S1, SyncRequest(bytes(16)))
    assert unwrap(key.public, Party.S1, signed) == SyncRequest(bytes(16))
    assert unwrap(other.public, Party.S1, signed) is None
    assert unwrap(key.public, Party.S2, signed) is None
    assert unwrap(key.public, Party.S2, Signed(Party.S2, signed.payload, signed.signature)) is None
    assert unwrap(key.public, Party.S1, Signed(Party.S1, b"junk", key.sign(b"junk"))) is None
    assert sign(key, Party.S1, SyncRequest(bytes(16))) == signed


@pytest.mark.parametrize("size", [0, SHORT, SHORT + 1])
def test_a_verdict_that_is_remembered_is_that_of_the_same_bytes_alone(size: int) -> None:
    key, other, data = SigningKey.generate(SeededStream(1)), SigningKey.generate(SeededStream(2)), bytes(size)
    signature = key.sign(data)
    for _ in range(2):
        assert verify(key.public, signature, data)
        assert not verify(other.public, signature, data)
        assert not verify(key.public, other.sign(data), data)
        assert not verify(key.public, signature, data + b"\1")


def test_requests_are_bound_to_every_field() -> None:
    base = ("POST", "/claims", b"body", 5, bytes(16), "k1")
    key = SigningKey.generate(SeededStream(1))
    signature = key.sign(request_bytes(*base))
    assert verify(key.public, signature, request_bytes(*base))
    for at, other in enumerate(("GET", "/claim", b"bod", 6, b"\1" * 16, "k2")):
        changed = (*base[:at], other, *base[at + 1 :])
        assert not verify(key.public, signature, request_bytes(*changed))
    assert not verify(b"short", signature, request_bytes(*base))
    with pytest.raises(MalformedError):
        request_bytes("POST", "/", b"", 0, b"", "k")


def test_known_request_bytes() -> None:
    got = request_bytes("POST", "/a", b"", 258, bytes(range(16)), "k")
    want = b"faircount/1/s1-s2\0" + b"\0\0\0\4POST" + b"\0\0\0\2/a" + sha256(b"").digest()
    assert got == want + b"\0\0\0\0\0\0\1\2" + bytes(range(16)) + b"\0\0\0\1k"
