"""Messages about the roster that S1 makes and S2 seals, tags 33, 34 and 37."""

from dataclasses import dataclass

from faircount.protocol.wire.codec import U32, Hash, Id, Message, Party, message


@dataclass(frozen=True, slots=True)
class Enrolled:
    """One line of the roster, with the seal of its invitation."""

    user: Id
    public_key: Hash
    mac: Hash


@message(33, Party.S2)
class SealRequest(Message):
    """S1's roster, ascending by user id, to be sealed once."""

    survey: Id
    params: Hash
    entries: tuple[Enrolled, ...]


@message(34, Party.S1)
class Seal(Message):
    """The one roster of this survey, and the value that S2 had committed to."""

    survey: Id
    digest: Hash
    n: U32
    root: Hash
    revealed: Hash


@message(37, Party.S1)
class BadEntries(Message):
    """Roster entries that no invitation vouches for, as positions in the request: nothing was sealed."""

    survey: Id
    request_hash: Hash
    positions: tuple[U32, ...]
