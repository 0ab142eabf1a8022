"""Messages of the `servers` topology, tags 16-31."""

from collections.abc import Sequence
from dataclasses import dataclass

from faircount.protocol.wire.codec import Blob, Hash, Id, Message, Party, message


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


@message(17, Party.S2)
class ServersClaim(Message):
    """`servers`: the frozen batch, ascending by user id."""

    survey: Id
    digest: Hash
    entries: Sequence[Submitter]


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
