"""Invitations: one token per participant, of which each server gets what it needs and no more.

    owner -> participant   token T, params_digest
    owner -> coordinator   SHA-256("s1" | T)             admits the participant, once
    owner -> aggregator    user id, HKDF(T, info "s2")   key of the MAC in an enrolment

A client shows the hash of its token to the coordinator, and never the token. Its enrolment has a
MAC over its public key, which the aggregator verifies, so that the coordinator can neither invent
participants nor replace their keys. The user id is derived from what the coordinator has: both
servers name a participant in the same way, and the aggregator cannot act as the participant towards
the coordinator. The owner could, who has the token: so the first message of a participant names a
key of the device (`survey.devices`), and the invitation alone does nothing from then on.
"""

import hmac
from dataclasses import dataclass, field
from hashlib import sha256

from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.protocol.wire.digests import tagged_hash
from faircount.sharing.keys import derive_key, is_canonical_key


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a participant receives from the owner: a secret token and the digest of the survey."""

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
        """The credential that the client shows to the coordinator, which stores it."""
        # A hash: the coordinator must not be able to compute the MAC key of the aggregator.
        return sha256(b"s1" + self.token).digest()

    @property
    def user(self) -> bytes:
        """The participant's id, 16 bytes."""
        return user_id(self.access)

    @property
    def enrolment_mac_key(self) -> bytes:
        """The key of the MAC in an enrolment, which the aggregator has as well."""
        return derive_key(self.token, bytes(32), b"s2")

    def authenticate_key(self, public_key: bytes, purpose: bytes = b"") -> bytes:
        """The MAC that says: this participant takes part in this survey with this public key.

        purpose: names further keys of the participant; empty for the key of the enrolment
        """
        return compute_entry_mac(self.enrolment_mac_key, self.params, public_key, purpose)


def user_id(access: bytes) -> bytes:
    """The id of the participant with this credential."""
    return tagged_hash(b"user", access)[:16]


def compute_entry_mac(
    enrolment_mac_key: bytes, params: bytes, public_key: bytes, purpose: bytes = b""
) -> bytes:
    """HMAC-SHA-256 over purpose, params_digest and public key."""
    # The digest of the parameters keeps a MAC from being used again in another survey.
    return hmac.digest(enrolment_mac_key, purpose + params + public_key, "sha256")


def verify_entry_mac(
    enrolment_mac_key: bytes | None,
    params: bytes,
    public_key: bytes,
    mac: bytes,
    purpose: bytes = b"",
) -> bool:
    """Whether the participant with this MAC key has authenticated this key for this purpose."""
    # A key that is not canonical would have a second encoding, and with it a second digest.
    if enrolment_mac_key is None or not is_canonical_key(public_key):
        return False
    expected = compute_entry_mac(enrolment_mac_key, params, public_key, purpose)
    # In constant time: the coordinator could otherwise guess a MAC byte by byte.
    return hmac.compare_digest(expected, mac)
