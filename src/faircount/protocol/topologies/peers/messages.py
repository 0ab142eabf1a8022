"""Messages of the peer topologies: roster and claims, tags 32-47, and `explicit`, tags 48-63."""

from dataclasses import dataclass

from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message
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


@dataclass(frozen=True, slots=True)
class Enrolled:
    """One line of the roster, with the seal of its invitation."""

    user: Id
    public_key: Hash
    mac: Hash


@message(33, Party.S2)
@dataclass(frozen=True, slots=True)
class SealRequest(Message):
    """S1's roster, ascending by user id, to be sealed once."""

    survey: Id
    params: Hash
    entries: tuple[Enrolled, ...]


@message(34, Party.S1)
@dataclass(frozen=True, slots=True)
class Seal(Message):
    """The one roster of this survey, and the value that S2 had committed to."""

    survey: Id
    digest: Hash
    n: U32
    root: Hash
    revealed: Hash


@message(37, Party.S1)
@dataclass(frozen=True, slots=True)
class BadEntries(Message):
    """Roster entries that no invitation vouches for, as positions in the request: nothing was sealed."""

    survey: Id
    request_hash: Hash
    positions: tuple[U32, ...]


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


@message(36, Party.S2)
@dataclass(frozen=True, slots=True)
class PeersClaim(Message):
    """One attempt's set, and the hashes of its blobs in roster order."""

    survey: Id
    digest: Hash
    attempt: U32
    members: Blob
    removed: tuple[Edge, ...]
    set_digest: Hash
    blob_hashes: tuple[Hash, ...]


@message(48, Party.S1)
@dataclass(frozen=True, slots=True)
class ShareBundle(Message):
    """`explicit`: a user's sealed shares for all others, in roster order without itself."""

    survey: Id
    index: U32
    credential: Hash
    blobs: tuple[Blob, ...]


@message(49, Party.USER)
@dataclass(frozen=True, slots=True)
class Call(Message):
    """`explicit`: the set of an attempt, and the shares for this user from the set's other members, in roster order."""

    survey: Id
    attempt: U32
    members: Blob
    removed: tuple[Edge, ...]
    blobs: tuple[Blob, ...]


@message(50, Party.S1)
@dataclass(frozen=True, slots=True)
class SumUpload(Message):
    """A user's sum over one attempt's set, sealed to S2 under the set's digest. S1 takes none made for another set."""

    survey: Id
    index: U32
    credential: Hash
    attempt: U32
    set_digest: Hash
    blob: Blob


@message(51, Party.S1)
@dataclass(frozen=True, slots=True)
class Complaint(Message):
    """Shares from these users do not open: the pairs are to be left out of the next attempt."""

    survey: Id
    index: U32
    credential: Hash
    attempt: U32
    senders: tuple[U32, ...]
