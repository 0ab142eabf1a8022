"""Messages of the `explicit` topology, tags 36 and 48-63."""

from collections.abc import Sequence

from faircount.protocol.topologies.peers.messages import Edge, FromMember
from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message


@message(36, Party.S2)
class PeersClaim(Message):
    """One attempt's set, and the sealed seeds of its members' masks in roster order."""

    survey: Id
    digest: Hash
    attempt: U32
    members: Blob
    removed: tuple[Edge, ...]
    set_digest: Hash
    blobs: tuple[Blob, ...]


@message(48, Party.S1)
class ShareBundle(FromMember):
    """`explicit`: a user's sealed shares for all others, in roster order without itself."""

    blobs: Sequence[Blob]


@message(49, Party.USER)
class Call(Message):
    """`explicit`: the set of an attempt, and the shares for this user from the set's other members, in roster order."""

    survey: Id
    attempt: U32
    members: Blob
    removed: Sequence[Edge]
    blobs: Sequence[Blob]


@message(50, Party.S1)
class SumUpload(FromMember):
    """A user's sum over one attempt's set under a mask of its own, and the mask's seed, sealed to S2.

    S1 takes none that was made for another set.
    """

    attempt: U32
    set_digest: Hash
    vector: Blob
    blob: Blob


@message(51, Party.S1)
class Complaint(FromMember):
    """Shares from these users do not open: the pairs are to be left out. Heard in the first attempt only."""

    attempt: U32
    senders: Sequence[U32]
