"""Keys between two parties (protocol, section 5): X25519, then HKDF-SHA-256 bound to one purpose.

Every key is bound to the survey, the attempt, both parties and a context, so that no key stream is
used twice. All inputs and outputs are bytes; nothing here stores a secret or puts one into an
error message.
"""

import struct
from enum import IntEnum
from functools import lru_cache

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.hmac import HMAC

from faircount.core.errors import ParameterError, ShareError
from faircount.core.validation import check_integer

S2_INDEX = 0xFFFFFFFF
"""The aggregator as `sender` or `receiver`; users are numbered from 0."""

KEY_BYTES = 32
SURVEY_BYTES = 16
SEED_BYTES = 16
"""Length of a seed for a share or a mask, which travels encrypted for the aggregator.

It is as hard to guess as the X25519 key agreement that protects it is to break: 2^128 tries, and
each try is for one user alone, because the key derived from a seed is bound to survey and user
(`key_info`).
"""

_LABEL = b"faircount/1\x00"
_INFO = struct.Struct(">12sB16sIII32s")
_U32 = 0xFFFFFFFF
_SHA256 = SHA256()
_FIELD_PRIME = 2**255 - 19

# Public keys of low order, as numbers: with one of them the shared secret is zero, whatever the
# private key (RFC 7748, section 6.1).
_LOW_ORDER = frozenset(
    (
        0,
        1,
        _FIELD_PRIME - 1,
        0xB8495F16056286FDB1329CEB8D09DA6AC49FF1FAE35616AEB8413B7C7AEBE0,
        0x57119FD0DD4E22D8868E1C58C45C44045BEF839C55B1D0B1248C50A3BC959C5F,
    )
)


class Purpose(IntEnum):
    """What a key is for; two purposes never share a key, and no number is reused."""

    MASK = 1
    EXPLICIT_SHARE = 2
    SEED = 3
    SERVERS = 4
    TSS_SHARE = 5
    KEY_RECOVERY = 7
    SEED_EXPANSION = 8


def key_info(
    purpose: Purpose, survey: bytes, attempt: int, sender: int, receiver: int, context: bytes
) -> bytes:
    """Return the string that binds a key to its use: 73 bytes, integers big endian."""
    # A mask belongs to a pair of users, who must derive the same key: the smaller index is first.
    if purpose == Purpose.MASK and sender >= receiver:
        raise ParameterError(
            "a mask is keyed by its pair: give the smaller index as sender, the larger as receiver"
        )
    number: int = purpose
    if type(purpose) is not Purpose:
        number = check_integer("purpose", purpose, least=1, most=len(Purpose))
    for name, value in (("attempt", attempt), ("sender", sender), ("receiver", receiver)):
        # Every key needs an info, so the full check runs only where it will raise an error.
        if type(value) is not int or not 0 <= value <= _U32:
            check_integer(name, value, most=_U32)
    _check_size("survey id", survey, SURVEY_BYTES)
    _check_size("context", context, KEY_BYTES)
    return _INFO.pack(_LABEL, number, survey, attempt, sender, receiver, context)


def agree(own: X25519PrivateKey, public: bytes) -> bytes:
    """Return the secret that a private key shares with another party's public key."""
    other = _load_public_key(public)
    try:
        return own.exchange(other)
    except ValueError:  # the library refuses a shared secret of zeros
        raise ShareError(
            "this public key gives a shared secret of zeros: its owner must make a new one"
        ) from None


# In a masked survey the same public key is loaded once by every neighbour of its owner; the cache
# saves a simulation of many clients in one process from checking it each time.
@lru_cache(maxsize=1 << 12)
def _load_public_key(public: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(check_public_key(public))


def derive_key(secret: bytes, salt: bytes, info: bytes) -> bytes:
    """Derive the 32-byte key for one use of a secret: HKDF (RFC 5869).

    `salt` is the digest of the roster (`servers`: of the parameters), `info` comes from `key_info`.
    """
    # Written out because the extraction under a salt can be prepared once for all keys of a
    # survey. An output of one hash block takes a single round of expansion, with the counter 1.
    extract = _hmac_under(salt).copy()
    extract.update(secret)
    expand = HMAC(extract.finalize(), _SHA256)
    expand.update(info + b"\1")
    return expand.finalize()


@lru_cache(maxsize=64)
def _hmac_under(salt: bytes) -> HMAC:
    """Return an HMAC keyed by a salt, which is public; an empty salt stands for zeros."""
    return HMAC(salt or bytes(KEY_BYTES), _SHA256)


def public_key(private: bytes) -> bytes:
    """Return the public key that belongs to a private one."""
    checked = _check_size("private key", private, KEY_BYTES)
    return X25519PrivateKey.from_private_bytes(checked).public_key().public_bytes_raw()


def is_canonical_key(public: bytes) -> bool:
    """Return whether this is the one encoding of a usable public key.

    It has 32 bytes, little endian, below 2^255 - 19, and is not a point of low order: every secret
    agreed with such a point is zero, and a mask made of it hides nothing.
    """
    number = int.from_bytes(public, "little")
    return (
        len(public) == KEY_BYTES
        and number < _FIELD_PRIME
        # check: low-order-key - every secret agreed with a key of low order is zero
        and number not in _LOW_ORDER
    )


def check_public_key(public: bytes) -> bytes:
    """Return the key, which must be the one encoding of a usable point."""
    if not is_canonical_key(_check_size("public key", public, KEY_BYTES)):
        raise ShareError(
            "a public key must be canonical and of no low order: its owner must make a new one"
        )
    return public


def _check_size(name: str, value: bytes, size: int) -> bytes:
    if not isinstance(value, bytes) or len(value) != size:
        raise ShareError(f"{name} must be exactly {size} bytes")
    return value
