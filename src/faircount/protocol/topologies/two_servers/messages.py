"""Messages of the `servers` topology, tags 16-31."""

from collections.abc import Sequence
from dataclasses import dataclass

from faircount.protocol.wire.codec import U8, U32, Blob, Hash, Id, Message, Party, message


@message(16, Party.S1)
class Submission(Message):
    """`servers`: a user's whole visit in one body. `salt` hides the share in its commitment; S2 never sees it."""

    survey: Id
    access: Hash
    public_key: Hash
    mac: Hash
    salt: Id
    share: Blob
    blob: Blob


@dataclass(frozen=True, slots=True)
class Submitter:
    """`servers`: one line of the claim. It commits to the share without telling S2 anything about it."""

    user: Id
    public_key: Hash
    mac: Hash
    commitment: Hash
    blob_hash: Hash


LINES = 4096
"""Of every part of a claim but its last: so many users are in memory at a time, however many there are."""


@message(17, Party.S2)
class ServersClaim(Message):
    """`servers`: the frozen batch, ascending by user id, or a part of a long one.

    Every part names the one before by its hash, so that the hash of the last one is that of the whole claim.
    """

    survey: Id
    digest: Hash
    entries: Sequence[Submitter]
    number: U32 = 0  # of the part, from 0
    before: Hash = bytes(32)
    more: U8 = 0  # 1 if another part follows

    @property
    def size(self) -> int:
        """Lines of the claim up to the end of this part."""
        return self.number * LINES + len(self.entries)


@message(20, Party.S1)
class Next(Message):
    """`servers`: S2 has all parts of a claim, or of its blobs, before the one with this number, which it waits for."""

    survey: Id
    recorded: Hash  # the part of the claim before that one; of blobs, the claim
    number: U32


@message(18, Party.S1)
class Included(Message):
    """`servers`: the write-once set whose share1 S1 adds up, as a bitmap over the claim.

    Where reports are proven, also which of them opened, and S2's answers about those: S1 judges them again.
    """

    survey: Id
    claim_hash: Hash
    members: Blob
    root: Hash
    opened: Blob = b""
    answers: Blob = b""


@message(19, Party.S2)
class ShareSum(Message):
    """`servers`: S1's one sum of share1 over the included set, packed; with its noise, where servers make noise."""

    survey: Id
    included_hash: Hash
    total: Blob


@message(23, Party.S2)
class Judged(Message):
    """`servers`: what S2 writes down of the blobs of one part, for itself: who opened, who counts, answers and coins.

    It is kept until the survey is over, and never sent.
    """

    opened: Blob  # a bitmap over the part
    members: Blob
    answers: Blob
    coins: Blob
