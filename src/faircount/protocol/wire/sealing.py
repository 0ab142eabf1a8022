"""Sealed blobs and shared random vectors between two parties, behind one small interface.

`RealSealing` is section 5: X25519, HKDF-SHA-256, AES-256-GCM with a random nonce in front, AES-256-CTR expansion.
`IdealSealing` is what a proof would assume: a blob is a handle that says nothing but its length, opened by whoever
holds the same key and info, and expanded vectors are whatever a test chooses. A key seals one plaintext, ever: the
ideal one checks it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256, shake_256

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ProtocolError, ShareError
from faircount.protocol.wire.digests import labelled
from faircount.sharing.expand import expand, expand_rows
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import SEED_BYTES, agree, derive_key

NONCE = 12
OVERHEAD = NONCE + 16
"""Bytes by which a blob is longer than what is in it."""
SEALED_SEED = SEED_BYTES + OVERHEAD
"""Bytes of the blob that holds a seed."""


@dataclass(frozen=True)
class KeyPair:
    """A party's key for sealing; the secret does not print."""

    secret: bytes = field(repr=False)
    public: bytes

    @cached_property
    def private(self) -> X25519PrivateKey:
        """The secret as the library wants it; making it costs as much as using it."""
        return X25519PrivateKey.from_private_bytes(self.secret)

    def destroyed(self) -> "KeyPair":
        """What is left of a key that must open nothing any more."""
        return KeyPair(b"", self.public)


class Sealing(ABC):
    """What two parties can do with each other's keys. `salt` and `info` bind every use (sharing.keys.key_info)."""

    def keypair(self, entropy: Entropy) -> KeyPair:
        """A fresh key."""
        return self.keypair_of(entropy.bytes(32))

    @abstractmethod
    def keypair_of(self, secret: bytes) -> KeyPair:
        """The key with this secret half."""

    @abstractmethod
    def agree(self, mine: KeyPair, theirs: bytes) -> bytes | None:
        """The secret of the pair, equal on both sides; None for a public key that must be refused."""

    @abstractmethod
    def seal(self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy) -> bytes:
        """A blob, `OVERHEAD` bytes longer than the plaintext."""

    @abstractmethod
    def message_key(self, secret: bytes, salt: bytes, info: bytes) -> bytes:
        """The key of one blob, 32 bytes: whoever is given it can open that blob, and nothing else."""

    @abstractmethod
    def open_with(self, key: bytes, blob: bytes) -> bytes | None:
        """The plaintext; None unless the blob was sealed under this message key and not changed."""

    def open(self, secret: bytes, salt: bytes, info: bytes, blob: bytes) -> bytes | None:
        """The plaintext; None unless the blob was sealed with the same secret, salt and info and not changed."""
        return self.open_with(self.message_key(secret, salt, info), blob)

    @abstractmethod
    def stretch(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """A uniform vector over F_q, the same for everybody who holds the secret (of a pair, or a seed)."""

    def stretch_rows(
        self, secrets: Sequence[bytes], salt: bytes, infos: Sequence[bytes], q: int, count: int
    ) -> Residues:
        """`stretch` of many secrets, one row each."""
        rows = [self.stretch(secret, salt, info, q, count) for secret, info in zip(secrets, infos, strict=True)]
        return np.array(rows, dtype=dtype_for(q)).reshape(len(rows), count)

    @abstractmethod
    def commit(self, salt: bytes, content: bytes) -> bytes:
        """A commitment to the content, 32 bytes, that says nothing about it without the salt."""


@dataclass(frozen=True)
class RealSealing(Sealing):
    """Section 5, byte for byte."""

    def keypair_of(self, secret: bytes) -> KeyPair:
        """An X25519 key."""
        private = X25519PrivateKey.from_private_bytes(secret)
        pair = KeyPair(secret, private.public_key().public_bytes_raw())
        pair.__dict__["private"] = private  # it was made just now: keep it
        return pair

    def agree(self, mine: KeyPair, theirs: bytes) -> bytes | None:
        """X25519; a key that is not canonical or gives zeros is refused."""
        try:
            return agree(mine.private, theirs)
        except ShareError:
            return None

    def seal(self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy) -> bytes:
        """12 random bytes, then AES-256-GCM without associated data: the key binds the info."""
        nonce = entropy.bytes(NONCE)
        return nonce + AESGCM(self.message_key(secret, salt, info)).encrypt(nonce, plaintext, None)

    def message_key(self, secret: bytes, salt: bytes, info: bytes) -> bytes:
        """HKDF."""
        return derive_key(secret, salt, info)

    def open_with(self, key: bytes, blob: bytes) -> bytes | None:
        """The plaintext, or None."""
        if len(blob) < OVERHEAD:
            return None
        try:
            return AESGCM(key).decrypt(blob[:NONCE], blob[NONCE:], None)
        except InvalidTag:
            return None

    def stretch(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """HKDF, then the AES-256-CTR key stream as elements."""
        return expand(derive_key(secret, salt, info), q, count)

    def stretch_rows(
        self, secrets: Sequence[bytes], salt: bytes, infos: Sequence[bytes], q: int, count: int
    ) -> Residues:
        """The same, with the arithmetic on all rows at once."""
        keys = [derive_key(secret, salt, info) for secret, info in zip(secrets, infos, strict=True)]
        return expand_rows(keys, q, count)

    def commit(self, salt: bytes, content: bytes) -> bytes:
        """SHA-256 over 16 random bytes and the content."""
        return labelled(b"commitment", salt, content)


Masks = Callable[[bytes, bytes, int, int], Residues]
"""(secret, info, q, count) -> vector: how an ideal expansion is filled."""


class IdealSealing(Sealing):
    """For exact tests only: blobs are opaque handles, expanded vectors come from `masks` (default: a hash).

    One object is the whole world's sealing. It raises if a key is ever asked to seal a second, different plaintext.
    """

    def __init__(self, masks: Masks | None = None) -> None:
        self._masks = masks
        self._sealed: dict[bytes, bytes] = {}
        self._committed: dict[bytes, list[bytes]] = {}

    def keypair_of(self, secret: bytes) -> KeyPair:
        """A key whose public half is a hash: nothing is computed with it."""
        return KeyPair(secret, sha256(b"public" + secret).digest()[:31] + b"\0")

    def agree(self, mine: KeyPair, theirs: bytes) -> bytes:
        """The name of the pair."""
        return sha256(b"".join(sorted((mine.public, theirs)))).digest()

    def seal(self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy) -> bytes:
        """A handle that depends on who seals what for whom, never on the plaintext but for its length."""
        key = self.message_key(secret, salt, info)
        if self._sealed.setdefault(key, plaintext) != plaintext:
            raise ProtocolError("a key was asked to seal a second message: a response was drawn twice")
        return self.handle(key, plaintext)

    @staticmethod
    def handle(key: bytes, plaintext: bytes) -> bytes:
        """What stands for a plaintext of this length under a key."""
        return shake_256(key).digest(OVERHEAD + len(plaintext))

    def message_key(self, secret: bytes, salt: bytes, info: bytes) -> bytes:
        """The name of the blob."""
        return sha256(b"key" + secret + salt + info).digest()

    def open_with(self, key: bytes, blob: bytes) -> bytes | None:
        """What was sealed under the same key, if the handle is the right one."""
        plaintext = self._sealed.get(key)
        return plaintext if plaintext is not None and blob == self.handle(key, plaintext) else None

    def stretch(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """The test's own vector."""
        if self._masks is not None:
            return self._masks(secret, info, q, count)
        return expand(sha256(secret + salt + info).digest(), q, count)

    def commit(self, salt: bytes, content: bytes) -> bytes:
        """A handle that says nothing of the content, but is another one for another content under the same salt."""
        known = self._committed.setdefault(salt, [])
        if content not in known:
            known.append(content)
        return sha256(b"commitment" + salt + known.index(content).to_bytes(4, "big")).digest()

    def __deepcopy__(self, memo: object) -> "IdealSealing":
        return self  # one world, also for a party that was restored from a backup
