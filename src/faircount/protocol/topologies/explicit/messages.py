"""Messages of the `explicit` topology, tags 36 and 48-63."""

from dataclasses import dataclass

from faircount.protocol.topologies.peers.messages import Edge
from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message


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
