"""Messages of TSS and TSS', tags 80-111. Reporters appear by the number that S1 gave them, helpers by their place."""

from collections.abc import Sequence
from dataclasses import dataclass

from faircount.protocol.topologies.peers.messages import FromMember
from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message
from faircount.protocol.wire.messages import Signed

# --- the election -------------------------------------------------------------------------------------------------


@message(80, Party.S1)
class Indicator(FromMember):
    """The set A_i of items that a user reports, as a bitmap over the items (Alg. 3, line 9), and the key for it.

    The key is made for this survey and says nothing about the user; `mac` is the invitation's seal on it, for S2.
    """

    items: Blob
    public_key: Hash
    mac: Hash


@dataclass(frozen=True, slots=True)
class ReporterKey:
    """The key under which the user at this place of the roster reports, with the seal of its invitation."""

    place: U32
    public_key: Hash
    mac: Hash


@message(89, Party.S2)
class Announcement(Message):
    """S1 is about to ask for an election, with the request of this hash and no other, of these users, by number."""

    survey: Id
    request_hash: Hash
    entries: tuple[ReporterKey, ...]


@message(90, Party.S1)
class Announced(Message):
    """S2 has recorded which request it will read. Another one never leaves S1: the difference would tell an A_i.

    `eligible` is a bitmap over the roster: invitations vouch for one key of each of these users; `keys` by number.
    """

    survey: Id
    request_hash: Hash
    eligible: Blob
    keys: tuple[Hash, ...]


@message(81, Party.S2)
class ElectionRequest(Message):
    """The number m_j of reporters of every item, and the salted root of the list of their numbers."""

    survey: Id
    digest: Hash
    reporters: tuple[U32, ...]
    lists: tuple[Hash, ...]


@message(82, Party.S1)
class Election(Message):
    """All of it, fixed for good, and the value that S2 had committed to: from it everybody draws the helpers."""

    survey: Id
    digest: Hash
    eligible: Blob
    keys: tuple[Hash, ...]
    reporters: tuple[U32, ...]
    lists: tuple[Hash, ...]
    revealed: Hash


# --- sharing ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Gone:
    """An elected user who vanished: from this attempt on others hold its slots."""

    attempt: U32
    index: U32


@dataclass(frozen=True, slots=True)
class Listed:
    """That a reporter's number is on an item's list: at which place, with which salt, and the hashes beside its way."""

    place: U32
    salt: Hash
    path: Sequence[Hash]


@message(83, Party.USER)
class Assignment(Message):
    """What a reporter needs to share: the election, and whose slots others have taken over.

    With the first one comes the proof that it is on the list of each of its items, in their order.
    """

    survey: Id
    attempt: U32
    election: Signed
    gone: Sequence[Gone]
    proofs: Sequence[Listed]


@message(84, Party.S1)
class Bundle(FromMember):
    """A reporter's sealed shares, under the key that it indicated with.

    Attempt 1: one for every slot of every item reported, in that order. Later: for the slots taken over since.
    """

    attempt: U32
    blobs: Sequence[Blob]


# --- sums ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Task:
    """One slot: the item's whole list, a bitmap of numbers, and its salt; a sealed share from each who is present."""

    item: U32
    slot: U32
    listed: Blob
    salt: Hash
    parcels: Sequence[Blob]


@message(85, Party.USER)
class SumCall(Message):
    """The slots of which an elected user is to send sums now, over the reporters in `members`, a bitmap of numbers."""

    survey: Id
    attempt: U32
    formed: U32  # the attempt from which these reporters are the set
    election: Signed
    gone: Sequence[Gone]
    members: Blob
    tasks: Sequence[Task]


@message(86, Party.S1)
class SlotSums(FromMember):
    """An elected user's sums, one element for each slot it was called for, under a mask of its own; the seed sealed.

    `call` is the digest of what it was called for: S1 takes no sums that were made for another set or other slots.
    """

    attempt: U32
    call: Hash
    vector: Blob
    blob: Blob


@message(87, Party.S1)
class SlotComplaint(FromMember):
    """Shares from the reporters with these numbers do not open."""

    attempt: U32
    numbers: Sequence[U32]


@message(88, Party.S2)
class TwoStageClaim(Message):
    """The included reporters by number, who stands in for whom, and the sealed seeds of the helpers' masks, in order.

    Nothing here says which items the reporters report, or depends on an answer.
    """

    survey: Id
    digest: Hash
    election: Hash
    attempt: U32
    formed: U32
    members: Blob
    gone: tuple[Gone, ...]
    set_digest: Hash
    blobs: tuple[Blob, ...]
