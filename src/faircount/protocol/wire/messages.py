"""The messages that all topologies share: dataclasses, encoded by `codec`.

Tags: 0-15 and 21-22 are here, 16-20 and 23-31 belong to `servers`, 32-47 to rosters and manifests
of the peer topologies, 48-63 to `explicit`, 64-79 to `masked`, 80-111 to `two-stage`.

Everything between coordinator (S1) and aggregator (S2) travels inside `Signed`. A message that
cannot be used is answered with a `Rejection`, which is an ordinary value: input from outside raises
no exceptions in the protocol.

Docstrings name the counterpart in DAP, the IETF protocol for distributed aggregation, where there
is one. DAP's leader is our coordinator, its helper our aggregator; its collector is partly the
owner, who asks for the result but does not compute it from both aggregate shares.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from faircount.core.errors import MalformedError
from faircount.protocol.wire.codec import (
    I64,
    U8,
    U32,
    Hash,
    Id,
    Message,
    Party,
    Signature,
    VarBytes,
    message,
    parse,
)


class Reason(IntEnum):
    """Why a message was rejected; servers map each reason to one HTTP status and problem type."""

    MALFORMED = 1  # not the canonical bytes of a message, or not one for this party
    CONFLICT = 2  # something else was written here before; the first write stands
    UNKNOWN = 3  # no such invitation, credential or survey
    UNSIGNED = 4  # the signature, or the MAC of an enrolment, is wrong
    LATE = 5  # the phase is over
    EARLY = 6  # the phase has not begun
    FULL = 7  # n_max participants have enrolled already
    WRONG_DIGEST = 8  # made for other parameters, another roster or another set
    TOO_FEW = 9  # below the minimum number of responses
    TOO_MANY_ATTEMPTS = 10
    DISCONNECTED = 11  # the graph of masks falls apart without removed edges or phi participants
    WRONG_SHARES = 12  # encrypted shares are not those of the manifest
    CLOSED = 13  # the survey was aborted, or its population is closed
    INVITATION_USED = 14  # another device has answered, or withdrawn, with this invitation
    INVITATION_REPLACED = 15  # the owner has exchanged this invitation for another one


@message(0, Party.CLIENT)
class Rejection(Message):
    """The answer to a message that cannot be used; unsigned. `detail` is for people.

    DAP: a problem document (RFC 9457).
    """

    reason: U8
    detail: VarBytes = field(default=b"", compare=False)

    @property
    def why(self) -> Reason:
        """The reason by name; a number without a name counts as MALFORMED."""
        # A newer or a dishonest server may send other numbers; showing an answer must not fail.
        return Reason(self.reason) if self.reason in set(Reason) else Reason.MALFORMED

    def __str__(self) -> str:
        reason = self.why.name.lower().replace("_", " ")
        return f"rejected: {reason}: {self.detail.decode(errors='replace')}"


def reject(reason: Reason, detail: str = "") -> Rejection:
    """A `Rejection`; the detail says what to do."""
    return Rejection(int(reason), detail.encode())


@message(1, Party.CLIENT)
class Acknowledgement(Message):
    """The coordinator's signature that it has stored the message with this hash.

    One signature can cover several messages that were written together: it is on the root of a
    Merkle tree over their hashes, to which `path` leads. Asking again gives the same statement.
    DAP acknowledges an upload with the HTTP status alone.
    """

    survey: Id
    message_hash: Hash
    index: U32
    size: U32
    path: Sequence[Hash]
    signature: Signature


@message(2, Party.AGGREGATOR)
class Signed(Message):
    """A message with the Ed25519 signature of a server (`signing`).

    Statements of the aggregator are numbered from 1, and `previous` is the hash of the one before.
    The coordinator gives number and hash of the newest statement that it has received. Outside of
    a chain both are zero. DAP authenticates its servers per HTTP request instead.
    """

    by: U32
    payload: VarBytes
    signature: Signature
    number: U32 = 0
    previous: Hash = bytes(32)


def addressee(outgoing: Message) -> Party:
    """Who receives a message; what one server signed is for the other."""
    # `Signed` is the one class that travels in both directions.
    if isinstance(outgoing, Signed):
        return Party.AGGREGATOR if outgoing.by == Party.COORDINATOR else Party.COORDINATOR
    return outgoing.to


@message(3, Party.COORDINATOR)
class Reservation(Message):
    """The aggregator has recorded this manifest for good, and reserved privacy budget for it.

    It is sent before any encrypted share is: budget is charged first, data are decrypted later. DAP
    has no counterpart, since it keeps no budget.
    """

    survey: Id
    manifest_hash: Hash
    epsilon: VarBytes  # decimal, times 2^128
    delta: VarBytes
    population: VarBytes
    number: U32  # of this reservation among all of the population, from 1
    ledger_version: U32
    head: Hash  # hash that chains this reservation to the one before
    revealed: Hash = bytes(32)  # with validity proofs, the value behind the aggregator's commitment


# After the reservation: nothing that depends on answers leaves the coordinator before it.
@message(4, Party.AGGREGATOR)
class PartShares(Message):
    """The encrypted shares of a reserved manifest in its order, or those of one of its parts.

    With validity proofs, also the value behind the coordinator's commitment and the coordinator's
    verifier shares. DAP: AggregationJobInitReq.
    """

    survey: Id
    manifest_hash: Hash
    encrypted_shares: Sequence[VarBytes]
    revealed: Hash = bytes(32)
    verifier_shares: VarBytes = b""  # packed, all of one entry before the next
    number: U32 = 0  # of the part, from 0


@dataclass(frozen=True, slots=True)
class AdversaryGuarantee:
    """What holds against one adversary.

    `adversary` is the address of a server, a number of colluding participants, or 0 for a reader
    of the result.
    """

    adversary: U32
    epsilon: VarBytes
    delta: VarBytes


@message(6, Party.COORDINATOR)
class Published(Message):
    """The result: counts over the accepted reports, the promised guarantee and the remaining one.

    Epsilon and delta are decimal, times 2^128, and rounded up. DAP: CollectionJobResp, whose
    two aggregate shares the collector adds up; here the aggregator publishes the sum.
    """

    survey: Id
    digest: Hash
    manifest_hash: Hash
    root: Hash  # Merkle root of the accepted (index, user id, public key)
    included: U32
    counts: tuple[I64, ...]
    epsilon: VarBytes
    delta: VarBytes
    realized_epsilon: VarBytes
    realized_delta: VarBytes
    against: tuple[AdversaryGuarantee, ...] = ()  # where adversaries see different things
    rejected: U32 = 0  # reports of the manifest that do not count: not decryptable or not valid


@message(7, Party.COORDINATOR)
class Aborted(Message):
    """The survey ended without a result; `spent` is 1 if the budget is charged nevertheless.

    The reason is a code with numbers (`survey.endings`), and a detail for people where those are
    not enough. `by` is the server that found the reason: what the coordinator reports remains its
    claim, although the aggregator signs the end.
    """

    survey: Id
    code: U8
    numbers: tuple[U32, ...]
    detail: VarBytes
    by: U32
    spent: U8


# For a coordinator that may have forgotten something, as after a restore.
@message(8, Party.AGGREGATOR)
class SyncRequest(Message):
    """The coordinator, restored from a backup, asks for all that the aggregator has signed."""

    survey: Id


@message(9, Party.COORDINATOR)
class SyncState(Message):
    """The answer to a `SyncRequest`: roster and manifest as received, and all statements in order.

    Of a manifest in parts, `manifest` is the last part. The coordinator asks for the others.
    """

    survey: Id
    roster: VarBytes
    manifest: VarBytes
    statements: tuple[Signed, ...]


@message(10, Party.COORDINATOR)
class PollRequest(Message):
    """An enrolled client asks whether there is anything to do."""

    survey: Id
    index: U32
    credential: Hash


@message(12, Party.COORDINATOR)
class OutcomeRequest(Message):
    """An invited participant asks for the roster, or whether their response was counted.

    Signed with the key of the device that answered (`survey.devices`).
    """

    survey: Id
    access: Hash
    device_key: Hash
    signature: Signature


@message(14, Party.COORDINATOR)
class Withdrawal(Message):
    """An invited participant withdraws their response, or will give none; final.

    Possible until the coordinator has fixed the batch manifest. Signed with the key of the device
    that answered: an owner has the invitation, too, and must not be able to take answers back.
    """

    survey: Id
    access: Hash
    device_key: Hash
    signature: Signature


# Signed, unlike a `Rejection`: the coordinator ends a survey because of it.
@message(13, Party.COORDINATOR)
class Refusal(Message):
    """The aggregator's signed rejection of one request of the coordinator."""

    survey: Id
    request_hash: Hash
    reason: U8
    detail: VarBytes = field(default=b"", compare=False)


# No error: the client keeps its state and comes back.
@message(11, Party.CLIENT)
class NotReady(Message):
    """Nothing to do now: ask again later. `phase` is the phase of the survey.

    `notices` are what else happened with the invitation (`survey.devices.Notice`). DAP: a response
    without a body that asks to retry later.
    """

    survey: Id
    phase: VarBytes
    notices: U8 = 0


@message(21, Party.CLIENT)
class InclusionProof(Message):
    """The result, and the Merkle path from the participant's entry to its root."""

    published: Signed
    index: U32
    size: U32
    path: Sequence[Hash]
    notices: U8 = 0


@message(22, Party.CLIENT)
class FinalStatement(Message):
    """The aggregator's final statement, for a participant whom it does not count."""

    statement: Signed
    notices: U8 = 0


def decode(data: bytes) -> Message:
    """The message that bytes from outside encode, or a `Rejection`."""
    # A value instead of an exception: servers count and answer bad input like any other.
    try:
        return parse(data)
    except MalformedError as problem:
        return reject(Reason.MALFORMED, str(problem))
