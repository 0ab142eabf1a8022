"""Invitations: a token per person, of which each server holds what it needs and no more.

    owner -> user   T, params_digest
    owner -> S1     SHA-256("s1" | T)           admits the person once; the user shows it, never T
    owner -> S2     (user id, HKDF(T, "s2"))    checks the seal of every entry: S1 cannot invent or alter one

The user id is derived from what S1 holds, so that both servers name a person alike and S2 cannot act for it at S1.
"""

import hmac
from dataclasses import dataclass, field
from hashlib import sha256

from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.protocol.wire.digests import labelled
from faircount.sharing.keys import canonical_key, derive_key


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a person receives from the owner: a secret token and the digest of what it is asked to take part in."""

    token: bytes = field(repr=False)
    params: bytes

    def __post_init__(self) -> None:
        if len(self.token) != 32 or len(self.params) != 32:
            raise ParameterError("an invitation has a token and a digest of 32 bytes each")

    @classmethod
    def issue(cls, params: bytes, entropy: Entropy) -> "Invitation":
        """A fresh invitation."""
        return cls(entropy.bytes(32), params)

    @property
    def access(self) -> bytes:
        """What the user shows to S1, and S1 stores."""
        return sha256(b"s1" + self.token).digest()

    @property
    def user(self) -> bytes:
        """The person's id, 16 bytes."""
        return user_id(self.access)

    @property
    def sealing_key(self) -> bytes:
        """What S2 gets: the key of the HMAC in an enrolment."""
        return derive_key(self.token, bytes(32), b"s2")

    def seal(self, public_key: bytes, purpose: bytes = b"") -> bytes:
        """HMAC over params_digest and public key: this person enrols with this key in this survey.

        Another key of the person is sealed with its purpose in front.
        """
        return entry_mac(self.sealing_key, self.params, public_key, purpose)


def user_id(access: bytes) -> bytes:
    """The id of the person whose access this is."""
    return labelled(b"user", access)[:16]


def entry_mac(sealing_key: bytes, params: bytes, public_key: bytes, purpose: bytes = b"") -> bytes:
    """HMAC-SHA-256 over purpose, params_digest and public key."""
    return hmac.digest(sealing_key, purpose + params + public_key, "sha256")


def entry_holds(sealing_key: bytes | None, params: bytes, public_key: bytes, mac: bytes, purpose: bytes = b"") -> bool:
    """Whether S2 may believe that a person has made this key for this purpose."""
    if sealing_key is None or not canonical_key(public_key):
        return False
    return hmac.compare_digest(entry_mac(sealing_key, params, public_key, purpose), mac)
