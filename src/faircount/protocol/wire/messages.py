"""What the parties say to each other: frozen values, one class each, bytes by `codec`.

Tags: 0-15 common (here), 16-31 `servers`, 32-47 roster and claims of peers, 48-63 `explicit`, 64-79 `masked`,
80-111 two-stage; `wire` knows them all. Everything between S1 and S2 travels inside `Signed`. A message that cannot be
used is answered with `Rejected`, a value.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from faircount.core.errors import MalformedError
from faircount.protocol.wire.codec import I64, U8, U32, Blob, Hash, Id, Message, Party, Signature, message, parse


class Reason(IntEnum):
    """Why a message was not used. A service maps each to one problem and one status."""

    MALFORMED = 1  # not the canonical bytes of a message, or not one for this party
    CONFLICT = 2  # something else was written here before; the first write stands
    UNKNOWN = 3  # no invitation, credential or survey of that kind
    UNSIGNED = 4  # the signature or the invitation's seal is not the right one
    LATE = 5  # the phase is over
    EARLY = 6  # the phase has not begun
    FULL = 7  # n_max users are already here
    WRONG_DIGEST = 8  # made for other parameters, another roster or another set
    TOO_FEW = 9  # below the minimum set
    TOO_MANY_ATTEMPTS = 10
    DISCONNECTED = 11  # the set falls apart without the removed edges or phi users
    WRONG_BLOBS = 12  # blobs are not those of the claim
    CLOSED = 13  # the survey was aborted, or its population is closed


@message(0, Party.USER)
class Rejected(Message):
    """A bad message from outside, as a value to count and to answer with. `detail` is for people."""

    reason: U8
    detail: Blob = field(default=b"", compare=False)

    @property
    def why(self) -> Reason:
        """The reason by name; a number that nobody has given out means that the message is none of ours."""
        return Reason(self.reason) if self.reason in set(Reason) else Reason.MALFORMED

    def __str__(self) -> str:
        return f"rejected: {self.why.name.lower().replace('_', ' ')}: {self.detail.decode(errors='replace')}"


def rejected(reason: Reason, detail: str = "") -> Rejected:
    """A `Rejected` with words that say what to do."""
    return Rejected(int(reason), detail.encode())


@message(1, Party.USER)
class Accepted(Message):
    """S1's acknowledgement: it has written the body with this hash; saying it again changes nothing.

    One signature of S1 may cover several bodies: it is on the root of a tree over their hashes, to which `path` leads.
    """

    survey: Id
    body_hash: Hash
    index: U32
    size: U32
    path: Sequence[Hash]
    signature: Signature


@message(2, Party.S2)
class Signed(Message):
    """A message under the Ed25519 signature of S1 or S2, with its place in the chain of S2's statements.

    S2 numbers its statements from 1, and `previous` is the hash of the one before. S1 gives number and hash of the
    newest that it has heard. What stands in no chain has 0 and zeros.
    """

    by: U32
    payload: Blob
    signature: Signature
    number: U32 = 0
    previous: Hash = bytes(32)


def addressee(what: Message) -> Party:
    """Who reads a message; what a server signed is for the other one."""
    if isinstance(what, Signed):
        return Party.S2 if what.by == Party.S1 else Party.S1
    return what.to


@message(3, Party.S1)
class Receipt(Message):
    """S2 has recorded this claim for good, and reserved this much of the population's budget for it."""

    survey: Id
    claim_hash: Hash
    epsilon: Blob  # decimal, times 2^128
    delta: Blob
    population: Blob
    number: U32  # of this reservation among all of the population, from 1
    ledger_version: U32
    head: Hash  # chains this reservation to the one before
    revealed: Hash = bytes(32)  # the value behind S2's commitment, where reports are proven


@message(4, Party.S2)
class Batch(Message):
    """The blobs of a receipted claim, in its order; those of one of its parts, if it has several.

    Where reports are proven, with the value behind S1's commitment and S1's answers to the question about each.
    """

    survey: Id
    claim_hash: Hash
    blobs: Sequence[Blob]
    revealed: Hash = bytes(32)
    answers: Blob = b""  # packed, all of an entry before those of the next
    number: U32 = 0  # of the part, from 0


@dataclass(frozen=True, slots=True)
class Against:
    """What holds against one adversary: S1, S2, a number of colluding users, or 0 for a reader of the result."""

    who: U32
    epsilon: Blob
    delta: Blob


@message(6, Party.S1)
class Published(Message):
    """The result: opened counts of the included users with what was promised and what holds, rounded up."""

    survey: Id
    digest: Hash
    claim_hash: Hash
    root: Hash  # Merkle root of the included (index, user id, public key)
    included: U32
    counts: tuple[I64, ...]
    epsilon: Blob
    delta: Blob
    realized_epsilon: Blob
    realized_delta: Blob
    against: tuple[Against, ...] = ()  # where parties see different things, what holds against each
    refused: U32 = 0  # claimed reports that are not counted: they did not open, or are not valid


@message(7, Party.S1)
class Aborted(Message):
    """The survey ended without a result; `spent` is 1 if the budget is charged all the same."""

    survey: Id
    reason: Blob
    spent: U8


@message(8, Party.S2)
class SyncRequest(Message):
    """S1, restored from a backup, asks for everything that S2 signed about a survey."""

    survey: Id


@message(9, Party.S1)
class SyncState(Message):
    """S2's answer: the roster it sealed and the claim that stands, as S1 sent them, and what it signed, in order.

    Of a claim in parts `claim` is the last one, and `earlier` has the others.
    """

    survey: Id
    roster: Blob
    claim: Blob
    statements: tuple[Signed, ...]
    earlier: tuple[Blob, ...] = ()


@message(10, Party.S1)
class Visit(Message):
    """An enrolled user asks what there is for it to do."""

    survey: Id
    index: U32
    credential: Hash


@message(12, Party.S1)
class Inquiry(Message):
    """An invited person asks where things stand: the roster, or whether its answer was counted."""

    survey: Id
    access: Hash


@message(14, Party.S1)
class Withdraw(Message):
    """An invited person takes its answer back, or will give none; final. Possible until S1 has claimed the batch."""

    survey: Id
    access: Hash


@message(13, Party.S1)
class Refused(Message):
    """S2, signed: this request of S1 cannot be granted, and why."""

    survey: Id
    request_hash: Hash
    reason: U8
    detail: Blob = field(default=b"", compare=False)


@message(11, Party.USER)
class Wait(Message):
    """Nothing to do now: come back later. `state` is where the survey stands."""

    survey: Id
    state: Blob


@message(21, Party.USER)
class Inclusion(Message):
    """The result, and the Merkle path from the user's entry to its root."""

    published: Signed
    index: U32
    size: U32
    path: Sequence[Hash]


@message(22, Party.USER)
class Concluded(Message):
    """S2's last word, for a person whom it does not count."""

    statement: Signed


def decode(data: bytes) -> Message:
    """The message behind these bytes from outside, or a `Rejected`."""
    try:
        return parse(data)
    except MalformedError as problem:
        return rejected(Reason.MALFORMED, str(problem))
