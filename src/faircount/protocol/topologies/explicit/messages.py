"""Messages of the `explicit` topology, tags 36 and 48-63."""

from collections.abc import Sequence

from faircount.protocol.peers.messages import FromMember, RemovedPair
from faircount.protocol.wire.codec import U32, Hash, Id, Message, Party, VarBytes, message


@message(36, Party.AGGREGATOR)
class ExplicitManifest(Message):
    """The set of one attempt, and the encrypted seeds of its members' masks, in roster order."""

    survey: Id
    digest: Hash
    attempt: U32
    members: VarBytes
    removed: tuple[RemovedPair, ...]
    set_digest: Hash
    encrypted_shares: tuple[VarBytes, ...]


@message(48, Party.COORDINATOR)
class ShareBundle(FromMember):
    """A client's encrypted shares for all others, in roster order without itself."""

    encrypted_shares: Sequence[VarBytes]


@message(49, Party.CLIENT)
class SumRequest(Message):
    """The set of an attempt, and the encrypted shares from its other members, in roster order."""

    survey: Id
    attempt: U32
    members: VarBytes
    removed: Sequence[RemovedPair]
    encrypted_shares: Sequence[VarBytes]


@message(50, Party.COORDINATOR)
class PeerSum(FromMember):
    """A client's masked sum over the set of an attempt, and the seed, encrypted to the aggregator.

    The coordinator rejects a sum over another set: its shares would not cancel.
    """

    attempt: U32
    set_digest: Hash
    vector: VarBytes
    encrypted_share: VarBytes


@message(51, Party.COORDINATOR)
class Complaint(FromMember):
    """Shares from these members cannot be decrypted. Accepted in the first attempt only."""

    attempt: U32
    senders: Sequence[U32]
