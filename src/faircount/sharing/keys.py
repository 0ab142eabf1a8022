"""Keys between two parties (protocol, section 5): X25519, then HKDF-SHA-256 bound to one purpose.

Every key is bound to the survey, the attempt, both parties and a context, so that no byte stream serves twice. All
inputs and outputs are bytes; nothing here keeps a secret or puts one into a message.
"""

import struct
from enum import IntEnum
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from faircount.core.errors import ParameterError, ShareError
from faircount.core.validation import integer

S1_INDEX = 0xFFFFFFFE
"""The coordinator as `sender` or `receiver`; users are numbered from 0."""
S2_INDEX = 0xFFFFFFFF
"""The aggregator as `sender` or `receiver`."""

KEY_BYTES = 32
SURVEY_BYTES = 16
SEED_BYTES = 16
"""A seed from which a share or a mask is made, sealed to S2.

It is as hard to guess as X25519, under which it travels, is to break: 2^128 tries, each for one user alone, because the
key that is made of a seed is bound to survey and user (`key_info`).
"""

_LABEL = b"faircount/1\x00"
_INFO = struct.Struct(">12sB16sIII32s")
_U32 = 0xFFFFFFFF
_SHA256 = SHA256()
_FIELD_PRIME = 2**255 - 19
_LOW_ORDER = frozenset(
    (
        0,
        1,
        _FIELD_PRIME - 1,
        0xB8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
        0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
    )
)
"""Points with which everybody agrees on zeros, as numbers (RFC 7748, section 6.1)."""


class Purpose(IntEnum):
    """What a key is for; two purposes never share one, and a number is never given again."""

    MASK = 1
    EXPLICIT_SHARE = 2
    SEED = 3
    SERVERS = 4
    TSS_SHARE = 5
    KEY_RECOVERY = 7
    SEED_EXPANSION = 8


def key_info(purpose: Purpose, survey: bytes, attempt: int, sender: int, receiver: int, context: bytes) -> bytes:
    """The string that binds a key to its use: 73 bytes, integers big endian.

    A mask belongs to a pair, so its sender is the smaller index.
    """
    if purpose == Purpose.MASK and sender >= receiver:
        raise ParameterError("a mask is keyed by its pair: give the smaller index as sender, the larger as receiver")
    kind = purpose if type(purpose) is Purpose else integer("purpose", purpose, least=1, most=len(Purpose))
    for name, value in (("attempt", attempt), ("sender", sender), ("receiver", receiver)):
        if type(value) is not int or not 0 <= value <= _U32:  # every key needs an info: say only what is wrong
            integer(name, value, most=_U32)
    _exactly("survey id", survey, SURVEY_BYTES)
    _exactly("context", context, KEY_BYTES)
    return _INFO.pack(_LABEL, kind, survey, attempt, sender, receiver, context)


def agree(own: X25519PrivateKey, public: bytes) -> bytes:
    """The secret that the holder of a private key shares with the owner of a public one; both ends get the same."""
    other = _loaded(public)
    try:
        return own.exchange(other)
    except ValueError:  # the library refuses a shared secret of zeros
        raise ShareError("this public key gives a shared secret of zeros: its owner must make a new one") from None


@lru_cache(maxsize=1 << 12)
def _loaded(public: bytes) -> X25519PublicKey:
    """A public key, checked, as the library wants it; kept, since a user's neighbours all load the same one."""
    return X25519PublicKey.from_public_bytes(canonical_public_key(public))


def derive_key(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """The 32-byte key for one use of a secret: HKDF, whose output of one block is two HMACs (RFC 5869).

    `salt` is the digest of the roster (`servers`: of the parameters), `info` comes from `key_info`.
    """
    extract = _salted(salt).copy()
    extract.update(secret)
    expand = HMAC(extract.finalize(), _SHA256)
    expand.update(info + b"\1")
    return expand.finalize()


@lru_cache(maxsize=64)
def _salted(salt: bytes) -> HMAC:
    """HMAC under a salt, which is public and the same for all keys of a survey; without one, zeros."""
    return HMAC(salt or bytes(KEY_BYTES), _SHA256)


def public_key(private: bytes) -> bytes:
    """The public key that belongs to a private one."""
    return (
        X25519PrivateKey.from_private_bytes(_exactly("private key", private, KEY_BYTES)).public_key().public_bytes_raw()
    )


def canonical_key(public: bytes) -> bool:
    """Whether this is the one encoding of a usable public key: 32 bytes, little endian, below 2^255 - 19.

    A point of low order is none: every secret agreed with it is zero, and a mask made of it no mask.
    """
    number = int.from_bytes(public, "little")
    return len(public) == KEY_BYTES and number < _FIELD_PRIME and number not in _LOW_ORDER


def canonical_public_key(public: bytes) -> bytes:
    """The key itself, if it is the one encoding of its point."""
    if not canonical_key(_exactly("public key", public, KEY_BYTES)):
        raise ShareError("a public key must be canonical and of no low order: its owner must make a new one")
    return public


def _exactly(name: str, value: bytes, size: int) -> bytes:
    if not isinstance(value, bytes) or len(value) != size:
        raise ShareError(f"{name} must be exactly {size} bytes")
    return value
