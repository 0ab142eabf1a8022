"""Messages from S1 to S2 that are too long for one request: in parts of bounded size.

S1 names the message by its hash and says how many parts it has. S2 answers which of them it does not have, S1 brings
those, and names the message again. Every request is signed like any other one.
"""

from dataclasses import dataclass
from hashlib import sha256

from faircount.service.problems import ProblemError
from faircount.storage.database import Transaction
from faircount.storage.keys import RowKey

PART_BYTES = 1024 * 1024
"""Of every part but the last."""

MOST_PARTS = 1024
"""Of one message: 1 GiB, as long as any message can be."""

NAMED = "application/vnd.faircount.parts"
"""Content type of a body that names a message: its hash, and the number of parts in four bytes."""

MISSING = "faircount-missing"
"""Header with the numbers of the parts that S2 does not have."""


@dataclass(frozen=True, slots=True)
class LongMessage:
    """The name of a message in parts."""

    hash: bytes
    parts: int

    @classmethod
    def of(cls, body: bytes) -> "LongMessage":
        """The name of this message."""
        return cls(sha256(body).digest(), -(-len(body) // PART_BYTES))

    @classmethod
    def read(cls, body: bytes) -> "LongMessage":
        """The name in a body."""
        parts = int.from_bytes(body[32:], "big")
        if len(body) != 36 or not 0 < parts <= MOST_PARTS:
            raise ProblemError(400, "malformed", "a long message is named by its hash and the number of its parts")
        return cls(body[:32], parts)

    @property
    def body(self) -> bytes:
        """The name as it travels."""
        return self.hash + self.parts.to_bytes(4, "big")


def piece_of(body: bytes, part: int) -> bytes:
    """A part of a message."""
    return body[part * PART_BYTES : (part + 1) * PART_BYTES]


def _place(survey: bytes, message: bytes, part: int) -> bytes:
    return b"incoming" + survey + message + part.to_bytes(4, "big")


async def keep(tx: Transaction, key: RowKey, survey: bytes, message: bytes, part: int, data: bytes) -> None:
    """Write a part; one that is there already stays."""
    if not 0 <= part < MOST_PARTS:
        raise ProblemError(400, "malformed", f"parts are numbered from 0 to {MOST_PARTS - 1}")
    await tx.run(
        "INSERT INTO incoming (survey, message, part, sealed) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        survey, message, part, key.seal(_place(survey, message, part), data),
    )  # fmt: skip


async def put_together(tx: Transaction, key: RowKey, survey: bytes, named: LongMessage) -> bytes:
    """The message; while parts are missing, the problem says which. Parts of another message are thrown away."""
    found = await tx.all(
        "SELECT part, sealed FROM incoming WHERE survey = ? AND message = ? ORDER BY part", survey, named.hash
    )
    there = {int(each["part"]): bytes(each["sealed"]) for each in found}
    missing = [part for part in range(named.parts) if part not in there]
    if missing:
        said = ",".join(str(each) for each in missing)
        raise ProblemError(409, "missing-parts", "bring the missing parts first", headers={MISSING: said})
    body = b"".join(key.open(_place(survey, named.hash, part), there.pop(part)) for part in range(named.parts))
    if sha256(body).digest() != named.hash:
        raise ProblemError(400, "malformed", "these parts are not those of the message that was named")
    return body


async def forget(tx: Transaction, survey: bytes) -> None:
    """Throw all parts of a survey away."""
    await tx.run("DELETE FROM incoming WHERE survey = ?", survey)
