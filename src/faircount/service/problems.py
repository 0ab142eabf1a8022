"""What a server will not do, as HTTP says it: a status and a problem in JSON (RFC 9457). The one place that maps it.

A refused message carries the number of the protocol's `Reason`; a client makes a `Rejected` of it again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from faircount.core.errors import (
    DiskFullError,
    FaircountError,
    InputError,
    ProtocolError,
    RefusedError,
    SchemaError,
    StaleLedgerError,
    StorageError,
)
from faircount.protocol.wire.messages import Reason, Rejected

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5
"""After how long what comes too early, or fails for now, may be tried again."""

STATUS: Mapping[Reason, int] = {
    Reason.MALFORMED: 400,
    Reason.UNSIGNED: 401,
    Reason.UNKNOWN: 404,
    Reason.CONFLICT: 409,
    Reason.WRONG_DIGEST: 409,
    Reason.WRONG_BLOBS: 409,
    Reason.LATE: 410,
    Reason.CLOSED: 410,
    Reason.EARLY: 425,
}
"""Of every reason that has a status of its own; the others are 422."""


LOST = "lost"
"""The kind of S2's answer about a survey that it cannot read any more, and never will."""


def name_of(kind: str) -> str:
    """A kind of problem as it stands in an answer."""
    return f"urn:faircount:problem:{kind}"


@dataclass
class ProblemError(FaircountError):
    """A request is not answered as asked. `kind` is a word for programs, `detail` is for people."""

    status: int
    kind: str
    detail: str
    reason: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail

    def body(self) -> dict[str, Any]:
        """The problem as JSON."""
        plain = {
            "type": name_of(self.kind),
            "title": self.kind.replace("-", " "),
            "status": self.status,
            "detail": self.detail,
        }
        return {**plain, "reason": self.reason} if self.reason else plain


def of_rejected(message: Rejected) -> ProblemError:
    """The problem of a message that was not used."""
    why = message.why
    retry = {"Retry-After": str(RETRY_SECONDS)} if why is Reason.EARLY else {}
    kind = why.name.lower().replace("_", "-")
    return ProblemError(STATUS.get(why, 422), kind, message.detail.decode(errors="replace"), int(why), retry)


def of_error(error: FaircountError) -> ProblemError:
    """The problem of an error of ours."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, SchemaError):
        return ProblemError(500, "wrong-database", str(error))
    later = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, DiskFullError):
        detail = "the server has no room left to write: nothing was changed, send the same again later"
        return ProblemError(507, "disk-full", detail, headers=later)
    if isinstance(error, StorageError | StaleLedgerError):
        return ProblemError(503, "not-now", "the server cannot write now: send the same again later", headers=later)
    if isinstance(error, InputError):
        return ProblemError(400, "malformed", str(error))
    if isinstance(error, RefusedError | ProtocolError):
        return ProblemError(409, "refused", str(error))
    return ProblemError(500, "internal", "the server made a mistake; nothing was changed")


def unknown(what: str) -> ProblemError:
    """There is nothing of this name, or nothing that this caller may see."""
    return ProblemError(404, "unknown", f"there is no such {what} here")


def conflict(detail: str) -> ProblemError:
    """Something else stands already."""
    return ProblemError(409, "conflict", detail)
