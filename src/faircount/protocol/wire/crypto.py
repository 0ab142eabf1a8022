"""Encryption and shared randomness between two parties, behind one small interface.

Two parties agree on a secret from one's private and the other's public key (X25519). From it, HKDF
derives a key for one purpose: `salt` is the digest of parameters or roster, and `info` names
purpose, survey, attempt, sender, receiver and context (`sharing.keys.key_info`). A key encrypts one
message or expands to one vector, so ciphertexts cannot be moved to another place in the protocol.
The role is that of HPKE in DAP; clients here also expand masks from the same secrets.

`StandardCrypto` is what runs: X25519, HKDF-SHA-256, AES-256-GCM with a random nonce in front,
AES-256-CTR as the expansion. `IdealCrypto` is the ideal functionality that a proof assumes: a
ciphertext is a handle that reveals its length and nothing else, only the same key decrypts it,
and expanded vectors are whatever a test chooses. Tests with it compare adversaries' views exactly.
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
from faircount.protocol.wire.digests import tagged_hash
from faircount.sharing.expand import expand, expand_rows
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import SEED_BYTES, agree, derive_key

NONCE = 12
OVERHEAD = NONCE + 16
"""Bytes that encryption adds: nonce and authentication tag."""

ENCRYPTED_SEED_BYTES = SEED_BYTES + OVERHEAD
"""Bytes of an encrypted share that holds a seed."""


@dataclass(frozen=True)
class KeyPair:
    """A party's key pair for key agreement; the secret is not printed."""

    secret: bytes = field(repr=False)
    public: bytes

    @cached_property
    def private(self) -> X25519PrivateKey:
        """The secret as an object of the library; making it costs as much as using it."""
        return X25519PrivateKey.from_private_bytes(self.secret)

    def without_secret(self) -> "KeyPair":
        """What a party keeps of a key that must decrypt nothing any more."""
        # Forward secrecy: what is stolen later decrypts no share that was sent during the survey.
        return KeyPair(b"", self.public)


class CryptoSuite(ABC):
    """What two parties do with each other's keys; `salt` and `info` bind every use."""

    def keypair(self, entropy: Entropy) -> KeyPair:
        """A fresh key pair."""
        return self.keypair_from(entropy.bytes(32))

    @abstractmethod
    def keypair_from(self, secret: bytes) -> KeyPair:
        """The key pair with this secret key."""

    @abstractmethod
    def agree(self, mine: KeyPair, theirs: bytes) -> bytes | None:
        """The secret of two parties, equal on both sides; None for an invalid public key."""

    @abstractmethod
    def encrypt(
        self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy
    ) -> bytes:
        """The ciphertext, `OVERHEAD` bytes longer than the plaintext.

        Secret, salt and info together may encrypt one plaintext, ever.
        """

    @abstractmethod
    def message_key(self, secret: bytes, salt: bytes, info: bytes) -> bytes:
        """The key of one ciphertext, 32 bytes: whoever receives it can decrypt nothing else."""

    @abstractmethod
    def decrypt_with_key(self, key: bytes, encrypted_share: bytes) -> bytes | None:
        """The plaintext under a message key; None if it was encrypted under another or altered."""

    def decrypt(
        self, secret: bytes, salt: bytes, info: bytes, encrypted_share: bytes
    ) -> bytes | None:
        """The plaintext; None if it was encrypted for another secret, salt or info, or altered."""
        return self.decrypt_with_key(self.message_key(secret, salt, info), encrypted_share)

    @abstractmethod
    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """A uniform vector over F_q, equal for everybody who has the secret, or the seed."""

    def expand_rows(
        self, secrets: Sequence[bytes], salt: bytes, infos: Sequence[bytes], q: int, count: int
    ) -> Residues:
        """`expand` for several secrets, one row each."""
        rows = [
            self.expand(secret, salt, info, q, count)
            for secret, info in zip(secrets, infos, strict=True)
        ]
        return np.array(rows, dtype=dtype_for(q)).reshape(len(rows), count)

    @abstractmethod
    def commit(self, salt: bytes, content: bytes) -> bytes:
        """A commitment of 32 bytes, which hides the content from everybody without the salt."""


@dataclass(frozen=True)
class StandardCrypto(CryptoSuite):
    """X25519, HKDF-SHA-256, AES-256-GCM and AES-256-CTR; test_vectors/README.md has the bytes."""

    def keypair_from(self, secret: bytes) -> KeyPair:
        """An X25519 key pair."""
        private = X25519PrivateKey.from_private_bytes(secret)
        pair = KeyPair(secret, private.public_key().public_bytes_raw())
        # Fill the cache of `KeyPair.private`, since the object exists already.
        pair.__dict__["private"] = private
        return pair

    def agree(self, mine: KeyPair, theirs: bytes) -> bytes | None:
        """X25519; keys that are not canonical or lead to a secret of zeros are refused."""
        # A public key of small order would make the shared secret known to everybody.
        try:
            return agree(mine.private, theirs)
        except ShareError:
            return None

    def encrypt(
        self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy
    ) -> bytes:
        """A random nonce, then AES-256-GCM."""
        # A key encrypts one message, so that 12 random bytes cannot repeat under a key.
        nonce = entropy.bytes(NONCE)
        # No associated data: the key is derived from salt and info, which binds them as well.
        return nonce + AESGCM(self.message_key(secret, salt, info)).encrypt(nonce, plaintext, None)

    def message_key(self, secret: bytes, salt: bytes, info: bytes) -> bytes:
        """HKDF-SHA-256."""
        return derive_key(secret, salt, info)

    def decrypt_with_key(self, key: bytes, encrypted_share: bytes) -> bytes | None:
        """The plaintext, if the authentication tag is right."""
        # Shorter ones have no complete tag; the library raises another error for some of them.
        if len(encrypted_share) < OVERHEAD:
            return None
        try:
            return AESGCM(key).decrypt(encrypted_share[:NONCE], encrypted_share[NONCE:], None)
        except InvalidTag:
            return None

    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """HKDF, then field elements from the AES-256-CTR key stream."""
        return expand(derive_key(secret, salt, info), q, count)

    def expand_rows(
        self, secrets: Sequence[bytes], salt: bytes, infos: Sequence[bytes], q: int, count: int
    ) -> Residues:
        """The same for several secrets, with the arithmetic on all rows at once."""
        keys = [derive_key(secret, salt, info) for secret, info in zip(secrets, infos, strict=True)]
        return expand_rows(keys, q, count)

    def commit(self, salt: bytes, content: bytes) -> bytes:
        """SHA-256 over the salt, 16 random bytes, and the content."""
        # Without the salt the aggregator could try all responses: there are few of them.
        return tagged_hash(b"commitment", salt, content)


Masks = Callable[[bytes, bytes, int, int], Residues]
"""(secret, info, q, count) -> vector: how a test chooses expanded vectors."""


class IdealCrypto(CryptoSuite):
    """The ideal functionality, for exact tests only.

    One object serves all parties of a test. Ciphertexts are opaque handles, and expanded vectors
    come from `masks` (by default from a hash). It raises if a key would encrypt a second, different
    plaintext: with the real suite that would reveal both.
    """

    def __init__(self, masks: Masks | None = None) -> None:
        self._masks = masks
        self._plaintexts: dict[bytes, bytes] = {}
        self._committed: dict[bytes, list[bytes]] = {}

    def keypair_from(self, secret: bytes) -> KeyPair:
        """A key pair whose public key is a hash: nothing is computed with it."""
        # The last byte is zero, so that the key passes as a canonical X25519 key.
        return KeyPair(secret, sha256(b"public" + secret).digest()[:31] + b"\0")

    def agree(self, mine: KeyPair, theirs: bytes) -> bytes:
        """A name for the two parties."""
        # Sorted, so that both parties compute the same name.
        return sha256(b"".join(sorted((mine.public, theirs)))).digest()

    def encrypt(
        self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy
    ) -> bytes:
        """A handle that depends on the key and on the length of the plaintext alone."""
        key = self.message_key(secret, salt, info)
        if self._plaintexts.setdefault(key, plaintext) != plaintext:
            raise ProtocolError(
                "a key was asked to encrypt a second message: a response was drawn twice"
            )
        return self.handle(key, plaintext)

    @staticmethod
    def handle(key: bytes, plaintext: bytes) -> bytes:
        """What stands for any plaintext of this length under a key."""
        # The length is visible, as it is with AES-GCM: a test must not assume that it is hidden.
        return shake_256(key).digest(OVERHEAD + len(plaintext))

    def message_key(self, secret: bytes, salt: bytes, info: bytes) -> bytes:
        """A name for one ciphertext."""
        return sha256(b"key" + secret + salt + info).digest()

    def decrypt_with_key(self, key: bytes, encrypted_share: bytes) -> bytes | None:
        """The plaintext that was encrypted under this key, if the handle is the right one."""
        plaintext = self._plaintexts.get(key)
        if plaintext is None or encrypted_share != self.handle(key, plaintext):
            return None
        return plaintext

    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """The vector that the test chose."""
        if self._masks is not None:
            return self._masks(secret, info, q, count)
        return expand(sha256(secret + salt + info).digest(), q, count)

    def commit(self, salt: bytes, content: bytes) -> bytes:
        """A handle that reveals nothing of the content, and differs for another content."""
        known = self._committed.setdefault(salt, [])
        if content not in known:
            known.append(content)
        return sha256(b"commitment" + salt + known.index(content).to_bytes(4, "big")).digest()

    def __deepcopy__(self, memo: object) -> "IdealCrypto":
        # A party that was restored from a backup lives in the same world as all others.
        return self
