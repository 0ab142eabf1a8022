"""Messages that the topologies share in which users enrol before they answer, tags 32 and 35."""

from dataclasses import dataclass

from faircount.protocol.wire.codec import U32, Hash, Id, Message, Party, encode, message
from faircount.protocol.wire.messages import Signed


@message(32, Party.S1)
@dataclass(frozen=True, slots=True)
class Enrolment(Message):
    """A user joins the roster; `credential_hash` is of the 32 bytes that it will show from now on."""

    survey: Id
    access: Hash
    public_key: Hash
    mac: Hash
    credential_hash: Hash


ENROLMENT_BYTES = len(encode(Enrolment(bytes(16), bytes(32), bytes(32), bytes(32), bytes(32))))


@dataclass(frozen=True, slots=True)
class Peer:
    """One line of the roster as users see it."""

    user: Id
    public_key: Hash


@message(35, Party.USER)
@dataclass(frozen=True, slots=True)
class Roster(Message):
    """The roster and S2's signature on it; the user recomputes the digest from these very lines."""

    seal: Signed
    entries: tuple[Peer, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """A pair of users, i < j, whose shares for each other do not count."""

    i: U32
    j: U32
