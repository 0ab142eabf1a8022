"""Messages of the `masked` topology, tags 64-79."""

from collections.abc import Sequence

from faircount.protocol.peers.messages import FromMember, PeerKey
from faircount.protocol.wire.codec import U32, Hash, Id, Message, Party, VarBytes, message
from faircount.protocol.wire.messages import Signed


@message(64, Party.CLIENT)
class Neighbourhood(Message):
    """A client's place, its roster entry and its neighbours', and the hashes beside them.

    From these, in roster order, the client recomputes the root that the aggregator signed. Which
    places they must be follows from the confirmation.
    """

    confirmation: Signed
    index: U32
    entries: Sequence[PeerKey]
    hashes: Sequence[Hash]


# Sent before the vector: a client that vanishes later can then be unmasked by its neighbours.
@message(65, Party.COORDINATOR)
class KeyBundle(FromMember):
    """A client's public mask key, and for each neighbour an encrypted share of the secret key."""

    mask_key: Hash
    encrypted_shares: Sequence[VarBytes]


@message(66, Party.CLIENT)
class MaskedSumRequest(Message):
    """The set of an attempt, and each neighbour's mask key and key share for this client."""

    survey: Id
    attempt: U32
    members: VarBytes
    mask_keys: Sequence[Hash]
    encrypted_shares: Sequence[VarBytes]


@message(67, Party.COORDINATOR)
class MaskedSum(FromMember):
    """A client's vector under pairwise masks and its own, and the encrypted seed of its own.

    The coordinator rejects one made for another set or with other mask keys, the client's own
    included: the masks would not cancel.
    """

    attempt: U32
    set_digest: Hash
    keys_digest: Hash
    vector: VarBytes
    encrypted_share: VarBytes


@message(68, Party.AGGREGATOR)
class MaskedManifest(Message):
    """The set with its mask keys, the members that sent a sum, and their encrypted seeds.

    A member of the set whose seed is missing or cannot be decrypted is dropped: its pairwise masks
    must be recovered. Everything is in roster order.
    """

    survey: Id
    digest: Hash
    attempt: U32
    members: VarBytes
    senders: VarBytes
    set_digest: Hash
    mask_keys: tuple[Hash, ...]
    encrypted_shares: tuple[VarBytes, ...]


@message(70, Party.CLIENT)
class UnmaskRequest(Message):
    """The aggregator's statement of the accepted members, for a neighbour of dropped ones."""

    statement: Signed


# Message keys and not the shares: whoever relays them cannot exchange a share for another one.
@message(71, Party.COORDINATOR)
class UnmaskShares(FromMember):
    """Message keys of the key shares that dropped neighbours dealt, encrypted to the aggregator.

    The coordinator has the encrypted key shares from their dealers. So a client can withhold a key
    share, but cannot change it.
    """

    set_digest: Hash
    encrypted_share: VarBytes


@message(72, Party.AGGREGATOR)
class UnmaskBatch(Message):
    """All unmask shares for a manifest, in roster order, and the encrypted key shares they open."""

    survey: Id
    manifest_hash: Hash
    helpers: VarBytes
    encrypted_shares: tuple[VarBytes, ...]
    shares: tuple[VarBytes, ...]


@message(73, Party.COORDINATOR)
class ReadyForTotal(Message):
    """The aggregator has recovered the keys of all dropped members, and asks for the one total."""

    survey: Id
    manifest_hash: Hash


# Without it a client with wrong key shares would end the survey by vanishing.
@message(74, Party.COORDINATOR)
class Unrecoverable(Message):
    """The keys of these dropped members, a bitmap over the roster, are lost: try once more."""

    survey: Id
    manifest_hash: Hash
    members: VarBytes
