"""Messages of the `servers` topology, tags 16-20 and 23-31."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from faircount.protocol.wire.codec import (
    U8,
    U32,
    Hash,
    Id,
    Message,
    Party,
    VarBytes,
    encode,
    message,
)
from faircount.protocol.wire.digests import tagged_hash

SALT_BYTES = 16
"""Length of the salt in the commitment to share1: 128 bits, more than anybody can try."""


@message(16, Party.COORDINATOR)
class Report(Message):
    """A participant's whole response in one message.

    `salt` hides the share in its commitment. The aggregator never sees it. `device_key` verifies
    what the participant sends later (`survey.devices`).
    """

    survey: Id
    access: Hash
    public_key: Hash
    mac: Hash
    salt: Id
    share: VarBytes
    encrypted_share: VarBytes
    device_key: Hash


@dataclass(slots=True, unsafe_hash=True)
class ManifestEntry:
    """One report in the manifest. The commitment reveals nothing about share1 to the aggregator.

    Not frozen, because a frozen one takes four times as long to make; nobody changes it.
    """

    user: Id
    public_key: Hash
    mac: Hash
    commitment: Hash
    encrypted_share_hash: Hash


REPORTS_PER_PART = 4096
"""Entries of every part of a manifest but the last: the most reports that a step has in memory."""


@message(17, Party.AGGREGATOR)
class BatchManifest(Message):
    """The frozen batch, ascending by user id, or a part of a long one.

    Every part names the one before by its hash, so the hash of the last part fixes the whole
    manifest.
    """

    survey: Id
    digest: Hash
    entries: Sequence[ManifestEntry]
    # Of the part, from 0.
    number: U32 = 0
    # The hash of the part before; zeros in the first one.
    previous_hash: Hash = bytes(32)
    # 1 if another part follows.
    has_more: U8 = 0

    @property
    def size(self) -> int:
        """Entries of the manifest up to the end of this part."""
        return self.number * REPORTS_PER_PART + len(self.entries)


@message(20, Party.COORDINATOR)
class NextPartRequest(Message):
    """The aggregator asks for a part, by number, of the manifest or of the encrypted shares.

    `recorded` is the hash of the manifest part before it, or, once the manifest is complete, of the
    manifest itself.
    """

    survey: Id
    recorded: Hash
    number: U32


@message(26, Party.AGGREGATOR)
class RecordedPartRequest(Message):
    """A restored coordinator asks for a part of the manifest that the aggregator has recorded."""

    survey: Id
    number: U32


@message(27, Party.COORDINATOR)
class RecordedPart(Message):
    """The answer: the part of the manifest, as the coordinator had sent it."""

    survey: Id
    part: VarBytes


@message(24, Party.COORDINATOR)
class VerifiedPart(Message):
    """What the aggregator found about the reports of one part; sent where reports are proven.

    `decrypted` is a bitmap over the part: which encrypted shares it could decrypt. The verifier
    shares are its own, of those reports: with them the coordinator checks every proof again.
    """

    survey: Id
    manifest_hash: Hash
    number: U32
    decrypted: VarBytes
    verifier_shares: VarBytes


@message(18, Party.COORDINATOR)
class AcceptedReports(Message):
    """The accepted reports, fixed for good, as a bitmap over the manifest.

    With proofs, `verified` is a hash over all `VerifiedPart` messages (`hash_of_verified`), so that
    none of them can be exchanged afterwards.
    """

    survey: Id
    manifest_hash: Hash
    members: VarBytes
    root: Hash
    verified: Hash = bytes(32)


@message(19, Party.AGGREGATOR)
class AggregateShare(Message):
    """The coordinator's sum of share1 over the accepted reports, packed; with its noise, if any."""

    survey: Id
    accepted_hash: Hash
    total: VarBytes


@message(23, Party.AGGREGATOR)
class StoredVerification(Message):
    """What the aggregator records about the reports of one part; kept until the end, never sent.

    `shares_hash` is that of the message with its shares. `decrypted` and `members` are bitmaps over
    the part: which encrypted shares could be decrypted, and which reports are accepted. `total` is
    the sum of the aggregator's shares of the accepted reports, and `coins` are its shares of their
    coins.
    """

    shares_hash: Hash
    decrypted: VarBytes
    members: VarBytes
    verifier_shares: VarBytes
    total: VarBytes
    coins: VarBytes


@message(25, Party.COORDINATOR)
class PartReports(Message):
    """The coordinator's copy of the reports of one part, in its order; never sent.

    All shares have one length, and all encrypted shares have one, so they are simply joined.
    """

    shares: VarBytes
    encrypted_shares: VarBytes


def hash_of_verified(parts: Iterable[VerifiedPart]) -> bytes:
    """The hash by which the set of accepted reports names what was found about every part."""
    return tagged_hash(b"verified", *(sha256(encode(part)).digest() for part in parts))
