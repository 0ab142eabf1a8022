"""Messages of TSS and TSS', tags 80-111.

Reporters appear under the number that the coordinator gave them, helpers under their place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from faircount.protocol.peers.messages import FromMember
from faircount.protocol.wire.codec import U32, Hash, Id, Message, Party, VarBytes, message
from faircount.protocol.wire.messages import Signed

# --- the election ---------------------------------------------------------------------------------


@message(80, Party.COORDINATOR)
class Indicator(FromMember):
    """The set A_i of items that a client reports, a bitmap (Alg. 3, line 9), and its reporting key.

    The key is fresh and does not identify the participant to helpers. `mac` is made with the
    invitation's key, for the aggregator.
    """

    items: VarBytes
    public_key: Hash
    mac: Hash


@dataclass(frozen=True, slots=True)
class ReporterKey:
    """The key under which the member at this place reports, with the MAC of its invitation."""

    place: U32
    public_key: Hash
    mac: Hash


# By hash first: the numbers of reporters depend on responses and are sent once.
@message(89, Party.AGGREGATOR)
class Announcement(Message):
    """The coordinator announces its one election request, by hash, and the reporters."""

    survey: Id
    request_hash: Hash
    entries: tuple[ReporterKey, ...]


@message(90, Party.COORDINATOR)
class AnnouncementReply(Message):
    """The aggregator has recorded which election request it will accept.

    The coordinator never sends another one: from the difference of two requests the aggregator
    could learn an A_i. `eligible` is a bitmap over the roster of the members whose
    reporting keys are authentic; `keys` are those keys by number.
    """

    survey: Id
    request_hash: Hash
    eligible: VarBytes
    keys: tuple[Hash, ...]


@message(81, Party.AGGREGATOR)
class ElectionRequest(Message):
    """The number m_j of reporters of every item, and the salted root of their list."""

    survey: Id
    digest: Hash
    reporters: tuple[U32, ...]
    lists: tuple[Hash, ...]


@message(82, Party.COORDINATOR)
class Election(Message):
    """The election, fixed for good, with the revealed value that selects the helpers."""

    survey: Id
    digest: Hash
    eligible: VarBytes
    keys: tuple[Hash, ...]
    reporters: tuple[U32, ...]
    lists: tuple[Hash, ...]
    revealed: Hash


# --- sharing --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VanishedHelper:
    """A helper who vanished: from this attempt on others hold its slots."""

    attempt: U32
    index: U32


@dataclass(frozen=True, slots=True)
class ListProof:
    """Proof that a reporter is on an item's list: its position, its salt, and the audit path."""

    position: U32
    salt: Hash
    path: Sequence[Hash]


@message(83, Party.CLIENT)
class Assignment(Message):
    """What a reporter needs to share its bits: the election, and whose slots others took over.

    The first one has a proof for each of its items that it is on the item's list.
    """

    survey: Id
    attempt: U32
    election: Signed
    gone: Sequence[VanishedHelper]
    proofs: Sequence[ListProof]


@message(84, Party.COORDINATOR)
class SlotBundle(FromMember):
    """A reporter's encrypted shares, under its reporting key.

    Attempt 1: one for every slot of every reported item, in that order. Later: one for every slot
    that was taken over since.
    """

    attempt: U32
    encrypted_shares: Sequence[VarBytes]


# --- sums -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlotTask:
    """One slot to sum: the item's whole list as a bitmap of numbers, with its salt, and the shares.

    There is one encrypted share from each listed reporter who is present.
    """

    item: U32
    slot: U32
    listed: VarBytes
    salt: Hash
    encrypted_shares: Sequence[VarBytes]


@message(85, Party.CLIENT)
class SlotSumRequest(Message):
    """The slots that a helper is to sum now, over the reporters in `members`, a bitmap of numbers.

    `formed` is the attempt from which on these reporters are the set.
    """

    survey: Id
    attempt: U32
    formed: U32
    election: Signed
    gone: Sequence[VanishedHelper]
    members: VarBytes
    tasks: Sequence[SlotTask]


@message(86, Party.COORDINATOR)
class SlotSums(FromMember):
    """A helper's sums, one element for each requested slot, masked; the seed is encrypted.

    `request_digest` is that of the request's scope: the coordinator rejects sums made for another
    set or other slots.
    """

    attempt: U32
    request_digest: Hash
    vector: VarBytes
    encrypted_share: VarBytes


# Numbers only: a complaint must not show what could be decrypted.
@message(87, Party.COORDINATOR)
class SlotComplaint(FromMember):
    """Shares from the reporters with these numbers cannot be decrypted."""

    attempt: U32
    numbers: Sequence[U32]


@message(88, Party.AGGREGATOR)
class TwoStageManifest(Message):
    """The accepted reporters by number, the vanished helpers, and the encrypted seeds, in order.

    Nothing here says which items the reporters report, or depends on a response.
    """

    survey: Id
    digest: Hash
    election: Hash
    attempt: U32
    formed: U32
    members: VarBytes
    gone: tuple[VanishedHelper, ...]
    set_digest: Hash
    encrypted_shares: tuple[VarBytes, ...]
