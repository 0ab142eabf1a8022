"""Refused requests as HTTP describes them: a status and a problem in JSON (RFC 9457).

This is the only place that maps errors to statuses. The problem of a rejected message carries the
number of the protocol's `Reason`, from which a client builds the `Rejection` again. A problem that
an owner meets on the dashboard, and whose kind does not name the cause, has a code as well
(`with_code`), from which the dashboard makes a sentence in the owner's language.
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
from faircount.protocol.wire.messages import Reason, Rejection

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5
"""After how long a caller may try again if a request is early or the server is in trouble."""

STATUS: Mapping[Reason, int] = {
    Reason.MALFORMED: 400,
    Reason.UNSIGNED: 401,
    Reason.UNKNOWN: 404,
    Reason.CONFLICT: 409,
    Reason.WRONG_DIGEST: 409,
    Reason.WRONG_SHARES: 409,
    Reason.INVITATION_USED: 409,
    Reason.LATE: 410,
    Reason.CLOSED: 410,
    Reason.INVITATION_REPLACED: 410,
    Reason.EARLY: 425,
}
"""The HTTP status of a rejection; reasons that are not listed are 422."""

LOST = "lost"
"""The kind of problem with which the aggregator says that it can never read a survey again."""


def problem_type(kind: str) -> str:
    """Return the URI of a kind of problem, the `type` of RFC 9457."""
    return f"urn:faircount:problem:{kind}"


@dataclass
class ProblemError(FaircountError):
    """A request is refused. `kind` is a word for programs, `detail` a sentence for people."""

    status: int
    kind: str
    detail: str
    reason: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.detail

    def body(self) -> dict[str, Any]:
        """Return the problem as it is sent, in JSON."""
        plain: dict[str, Any] = {
            "type": problem_type(self.kind),
            "title": self.kind.replace("-", " "),
            "status": self.status,
            "detail": self.detail,
        }
        if self.reason:
            plain["reason"] = self.reason
        # A kind such as "conflict" has many causes: the code says which one it is.
        if self.code:
            plain["code"] = self.code
            plain["values"] = dict(self.values)
        return plain


def problem_of_rejection(rejection: Rejection) -> ProblemError:
    """Return the problem of a rejected message."""
    why = rejection.why
    return ProblemError(
        status=STATUS.get(why, 422),
        kind=why.name.lower().replace("_", "-"),
        detail=rejection.detail.decode(errors="replace"),
        reason=int(why),
        headers={"Retry-After": str(RETRY_SECONDS)} if why is Reason.EARLY else {},
    )


def problem_of_error(error: FaircountError) -> ProblemError:
    """Return the problem of any error of faircount."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, SchemaError):
        return ProblemError(500, "wrong-database", str(error))
    # Errors of the storage are not quoted: they are about this machine, not about the request.
    later = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, DiskFullError):
        detail = "the server's disk is full: nothing was changed, send the same request again later"
        return ProblemError(507, "disk-full", detail, headers=later)
    if isinstance(error, StorageError | StaleLedgerError):
        detail = "the server cannot write now: send the same request again later"
        return ProblemError(503, "not-now", detail, headers=later)
    # What follows is about the request itself, so its text helps the caller.
    if isinstance(error, InputError):
        return ProblemError(400, "malformed", str(error))
    if isinstance(error, RefusedError | ProtocolError):
        return ProblemError(409, "refused", str(error))
    # Anything else is a bug here, whose text may contain secrets.
    return ProblemError(
        500, "internal", "an internal error: nothing was changed, and the operator finds it logged"
    )


def not_found(what: str) -> ProblemError:
    """Return the problem that something does not exist, or is not this caller's to see."""
    return ProblemError(404, "unknown", f"there is no such {what} here")


def conflict(detail: str) -> ProblemError:
    """Return the problem that a request contradicts what the server has stored."""
    return ProblemError(409, "conflict", detail)
