"""Messages shared by the topologies in which participants enrol first, tags 32, 35, 38 and 39."""

from collections.abc import Sequence
from dataclasses import dataclass

from faircount.protocol.wire.codec import (
    U32,
    Hash,
    Id,
    Message,
    Party,
    VarBytes,
    encode,
    message,
    message_fields,
)
from faircount.protocol.wire.messages import Signed


@message(32, Party.COORDINATOR)
class Enrolment(Message):
    """A participant joins the roster with a fresh key.

    `mac` is made with the invitation's key, for the aggregator. `credential_hash` is the hash of
    the 32 bytes with which the client authenticates once it is on the roster, and `device_key`
    verifies what it sends with its invitation (`survey.devices`).
    """

    survey: Id
    access: Hash
    public_key: Hash
    mac: Hash
    credential_hash: Hash
    device_key: Hash


@message_fields
class FromMember(Message):
    """A message from a place in the confirmed roster, with the credential of the enrolment."""

    survey: Id
    index: U32
    credential: Hash


# From a real encoding, so that plans state what is sent.
ENROLMENT_BYTES = len(encode(Enrolment(bytes(16), *(bytes(32),) * 5)))


@dataclass(frozen=True, slots=True)
class PeerKey:
    """One entry of the roster as clients see it."""

    user: Id
    public_key: Hash


@message(35, Party.CLIENT)
class Roster(Message):
    """The roster and its confirmation; clients recompute the signed digest from the entries."""

    confirmation: Signed
    entries: Sequence[PeerKey]


@message(38, Party.COORDINATOR)
class AcceptedMembers(Message):
    """The members of a manifest whose seeds the aggregator could decrypt, sent once per manifest.

    `members` is a bitmap over the roster. `root` is the root of the inclusion tree that a result
    over these members would publish.
    """

    survey: Id
    manifest_hash: Hash
    set_digest: Hash
    members: VarBytes
    root: Hash


@message(39, Party.AGGREGATOR)
class AggregateTotal(Message):
    """The coordinator's sum of the masked vectors over the accepted members, packed.

    No other sum ever leaves the coordinator.
    """

    survey: Id
    accepted_hash: Hash
    total: VarBytes


@dataclass(frozen=True, slots=True)
class RemovedPair:
    """Two members, i < j, whose shares for each other are left out."""

    i: U32
    j: U32
