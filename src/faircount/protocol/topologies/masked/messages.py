"""Messages of the `masked` topology, tags 64-79."""

from dataclasses import dataclass

from faircount.protocol.topologies.peers.messages import Peer
from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message
from faircount.protocol.wire.messages import Signed


@message(64, Party.USER)
@dataclass(frozen=True, slots=True)
class Neighbourhood(Message):
    """A user's place, its own line of the roster and its neighbours' in roster order, and the hashes beside them.

    The user recomputes from these the root that S2 signed; which places they must be it knows from the seal.
    """

    seal: Signed
    index: U32
    lines: tuple[Peer, ...]
    hashes: tuple[Hash, ...]


@message(65, Party.S1)
@dataclass(frozen=True, slots=True)
class KeyBundle(Message):
    """A user's public mask key, and for each neighbour in roster order a sealed share of its secret half."""

    survey: Id
    index: U32
    credential: Hash
    mask_key: Hash
    blobs: tuple[Blob, ...]


@message(66, Party.USER)
@dataclass(frozen=True, slots=True)
class MaskCall(Message):
    """The set of an attempt; of each neighbour in it, in roster order, the mask key and the share for this user."""

    survey: Id
    attempt: U32
    members: Blob
    mask_keys: tuple[Hash, ...]
    blobs: tuple[Blob, ...]


@message(67, Party.S1)
@dataclass(frozen=True, slots=True)
class MaskedSum(Message):
    """A user's masked vector, sealed to S2. S1 takes none that was made for another set or with other mask keys.

    `lacking` are the neighbours in the set whose key share the user could not open.
    """

    survey: Id
    index: U32
    credential: Hash
    attempt: U32
    set_digest: Hash
    keys_digest: Hash
    blob: Blob
    lacking: tuple[U32, ...]


@message(68, Party.S2)
@dataclass(frozen=True, slots=True)
class MaskedClaim(Message):
    """The set with its mask keys, who of it is included, and the hashes of their blobs, all in roster order.

    Who is in the set and not included is dropped: its masks are to be recovered, its vector never leaves S1.
    """

    survey: Id
    digest: Hash
    attempt: U32
    members: Blob
    included: Blob
    set_digest: Hash
    mask_keys: tuple[Hash, ...]
    blob_hashes: tuple[Hash, ...]


@message(69, Party.S1)
@dataclass(frozen=True, slots=True)
class Recovery(Message):
    """S2 has opened all blobs of the claim and asks for the others' key shares. It says so once in a survey."""

    survey: Id
    claim_hash: Hash
    set_digest: Hash
    included: Blob


@message(70, Party.USER)
@dataclass(frozen=True, slots=True)
class HelpCall(Message):
    """S2's statement, for a user who holds key shares of dropped neighbours."""

    statement: Signed


@message(71, Party.S1)
@dataclass(frozen=True, slots=True)
class Help(Message):
    """A user's key shares of its dropped neighbours in roster order, sealed to S2; zeros for one that it lacks."""

    survey: Id
    index: U32
    credential: Hash
    blob: Blob


@message(72, Party.S2)
@dataclass(frozen=True, slots=True)
class HelpBatch(Message):
    """Everybody's help for a claim, in roster order."""

    survey: Id
    claim_hash: Hash
    helpers: Blob
    blobs: tuple[Blob, ...]
