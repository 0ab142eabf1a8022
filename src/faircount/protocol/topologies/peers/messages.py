"""Messages that the topologies share in which users enrol before they answer, tags 32, 35, 38 and 39."""

from collections.abc import Sequence
from dataclasses import dataclass

from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, encode, message
from faircount.protocol.wire.messages import Signed


@message(32, Party.S1)
class Enrolment(Message):
    """A user joins the roster; `credential_hash` is of the 32 bytes that it will show from now on."""

    survey: Id
    access: Hash
    public_key: Hash
    mac: Hash
    credential_hash: Hash


@dataclass(frozen=True, slots=True)
class FromMember(Message):
    """What a user says from its place in the sealed roster; it shows the credential that it enrolled with."""

    survey: Id
    index: U32
    credential: Hash


ENROLMENT_BYTES = len(encode(Enrolment(bytes(16), bytes(32), bytes(32), bytes(32), bytes(32))))


@dataclass(frozen=True, slots=True)
class Peer:
    """One line of the roster as users see it."""

    user: Id
    public_key: Hash


@message(35, Party.USER)
class Roster(Message):
    """The roster and S2's signature on it; the user recomputes the digest from these very lines."""

    seal: Signed
    entries: Sequence[Peer]


@message(38, Party.S1)
class PeersIncluded(Message):
    """S2 has opened the seeds of a claim: those of `members`, a bitmap over the roster, open. Said once per claim.

    `root` is that of those whom a result over this set would count.
    """

    survey: Id
    claim_hash: Hash
    set_digest: Hash
    members: Blob
    root: Hash


@message(39, Party.S2)
class Total(Message):
    """S1's sum of the vectors that it holds, over the set that S2 named, packed. No other ever leaves S1."""

    survey: Id
    included_hash: Hash
    total: Blob


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair of users, i < j, whose shares for each other do not count."""

    i: U32
    j: U32
