"""Messages of the `masked` topology, tags 64-79."""

from collections.abc import Sequence

from faircount.protocol.topologies.peers.messages import FromMember, Peer
from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message
from faircount.protocol.wire.messages import Signed


@message(64, Party.USER)
class Neighbourhood(Message):
    """A user's place, its own line of the roster and its neighbours' in roster order, and the hashes beside them.

    The user recomputes from these the root that S2 signed; which places they must be it knows from the seal.
    """

    seal: Signed
    index: U32
    lines: Sequence[Peer]
    hashes: Sequence[Hash]


@message(65, Party.S1)
class KeyBundle(FromMember):
    """A user's public mask key, and for each neighbour in roster order a sealed share of its secret half."""

    mask_key: Hash
    blobs: Sequence[Blob]


@message(66, Party.USER)
class MaskCall(Message):
    """The set of an attempt; of each neighbour in it, in roster order, the mask key and the share for this user."""

    survey: Id
    attempt: U32
    members: Blob
    mask_keys: Sequence[Hash]
    blobs: Sequence[Blob]


@message(67, Party.S1)
class MaskedSum(FromMember):
    """A user's vector under the masks of its pairs and one of its own, and the seed of its own, sealed to S2.

    S1 takes none that was made for another set or with other mask keys, its own among them: masks would not cancel.
    """

    attempt: U32
    set_digest: Hash
    keys_digest: Hash
    vector: Blob
    blob: Blob


@message(68, Party.S2)
class MaskedClaim(Message):
    """The set with its mask keys, who of it has sent, and the sealed seeds of those, all in roster order.

    Who is in the set and not among those whose seeds open is dropped: its masks are to be recovered.
    """

    survey: Id
    digest: Hash
    attempt: U32
    members: Blob
    included: Blob
    set_digest: Hash
    mask_keys: tuple[Hash, ...]
    blobs: tuple[Blob, ...]


@message(70, Party.USER)
class HelpCall(Message):
    """S2's statement whose seeds open, for a user who holds key shares of dropped neighbours."""

    statement: Signed


@message(71, Party.S1)
class Help(FromMember):
    """The message keys of the key shares that a user was dealt by its dropped neighbours, in roster order.

    Sealed to S2. The shares themselves S1 has from the dealers: a helper can lose one, and cannot change it.
    """

    set_digest: Hash
    blob: Blob


@message(72, Party.S2)
class HelpBatch(Message):
    """Everybody's help for a claim in roster order, and helper by helper the sealed shares that it is about."""

    survey: Id
    claim_hash: Hash
    helpers: Blob
    blobs: tuple[Blob, ...]
    shares: tuple[Blob, ...]


@message(73, Party.S1)
class Ready(Message):
    """S2 has put together the keys of all dropped users: it can use S1's one sum."""

    survey: Id
    claim_hash: Hash


@message(74, Party.S1)
class Unrecoverable(Message):
    """The keys of these dropped users, a bitmap over the roster, are lost: a further attempt is needed."""

    survey: Id
    claim_hash: Hash
    members: Blob
