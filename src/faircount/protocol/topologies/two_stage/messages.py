"""Messages of TSS and TSS', tags 80-111. Reporters appear by the number that S1 gave them, helpers by their place."""

from dataclasses import dataclass

from faircount.protocol.wire.codec import U32, Blob, Hash, Id, Message, Party, message
from faircount.protocol.wire.messages import Signed


@message(80, Party.S1)
@dataclass(frozen=True, slots=True)
class Indicator(Message):
    """The set A_i of items that a user reports, as a bitmap over the items (Alg. 3, line 9)."""

    survey: Id
    index: U32
    credential: Hash
    items: Blob


@message(81, Party.S2)
@dataclass(frozen=True, slots=True)
class ElectionRequest(Message):
    """S1 has fixed who may be elected, a bitmap over the roster, and the number m_j of reporters of every item."""

    survey: Id
    digest: Hash
    eligible: Blob
    reporters: tuple[U32, ...]


@message(82, Party.S1)
@dataclass(frozen=True, slots=True)
class Election(Message):
    """The same, fixed for good, and the value that S2 had committed to: from it everybody draws the helpers."""

    survey: Id
    digest: Hash
    eligible: Blob
    reporters: tuple[U32, ...]
    revealed: Hash


@dataclass(frozen=True, slots=True)
class Gone:
    """An elected user who vanished: from this attempt on others hold its slots."""

    attempt: U32
    index: U32


@message(83, Party.USER)
@dataclass(frozen=True, slots=True)
class Assignment(Message):
    """What a reporter needs to share: the election, its number, and whose slots others have taken over."""

    survey: Id
    attempt: U32
    election: Signed
    number: U32
    gone: tuple[Gone, ...]


@message(84, Party.S1)
@dataclass(frozen=True, slots=True)
class Bundle(Message):
    """A reporter's sealed shares, under a key of its own that says nothing about it.

    Attempt 1: one for every slot of every item reported, in that order. Later: for the slots taken over since.
    """

    survey: Id
    index: U32
    credential: Hash
    attempt: U32
    public_key: Hash
    blobs: tuple[Blob, ...]


@dataclass(frozen=True, slots=True)
class Sender:
    """The key of a reporter, by number."""

    number: U32
    public_key: Hash


@dataclass(frozen=True, slots=True)
class Parcel:
    """A sealed share from the reporter with this number."""

    number: U32
    blob: Blob


@dataclass(frozen=True, slots=True)
class Task:
    """One slot, and the shares for it from the reporters of its item, ascending by number."""

    item: U32
    slot: U32
    parcels: tuple[Parcel, ...]


@message(85, Party.USER)
@dataclass(frozen=True, slots=True)
class SumCall(Message):
    """The slots of which an elected user is to send sums now, over the reporters in `members`, a bitmap of numbers."""

    survey: Id
    attempt: U32
    formed: U32  # the attempt from which these reporters are the set
    election: Signed
    gone: tuple[Gone, ...]
    members: Blob
    senders: tuple[Sender, ...]
    tasks: tuple[Task, ...]


@message(86, Party.S1)
@dataclass(frozen=True, slots=True)
class SlotSums(Message):
    """An elected user's sums, one blob for each slot it was called for, sealed to S2 under the set's digest.

    `call` is `call_digest` of what it was called for: S1 takes no sums that were made for another set or other slots.
    """

    survey: Id
    index: U32
    credential: Hash
    attempt: U32
    call: Hash
    blobs: tuple[Blob, ...]


@message(87, Party.S1)
@dataclass(frozen=True, slots=True)
class SlotComplaint(Message):
    """Shares from the reporters with these numbers do not open."""

    survey: Id
    index: U32
    credential: Hash
    attempt: U32
    numbers: tuple[U32, ...]


@message(89, Party.S2)
@dataclass(frozen=True, slots=True)
class Announcement(Message):
    """S1 is about to ask for an election, with the request of this hash and no other."""

    survey: Id
    request_hash: Hash


@message(90, Party.S1)
@dataclass(frozen=True, slots=True)
class Announced(Message):
    """S2 has recorded which request it will read. Another one never leaves S1: the difference would tell an A_i."""

    survey: Id
    request_hash: Hash


@message(88, Party.S2)
@dataclass(frozen=True, slots=True)
class TwoStageClaim(Message):
    """The included reporters by number and key, who stands in for whom, and the hash of every slot's sum, in order.

    Nothing here says who the reporters are, which items they report, or how many were lost since the election.
    """

    survey: Id
    digest: Hash
    election: Hash
    formed: U32
    members: Blob
    keys: tuple[Hash, ...]
    gone: tuple[Gone, ...]
    set_digest: Hash
    blob_hashes: tuple[Hash, ...]
