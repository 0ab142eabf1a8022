"""Everything faircount raises, in one tree.

    FaircountError
    +-- InputError (also ValueError)  the caller's input cannot be used
    |   +-- ParameterError            a parameter is outside its range
    |   +-- AnswerError               an answer, count or table does not fit the question
    |   +-- ShareError                field elements, shares or packed bytes are malformed
    +-- RefusedError                  the requested privacy claim cannot be made
    +-- CorruptSumError               a decoded sum lies outside its possible range
    +-- ContradictionError            a measurement contradicts the theory it is compared with
    +-- UnreachableError              a server does not answer now: retrying later is safe
    +-- RemoteError                   a server answered that it rejects the request
    +-- StorageError                  a database, key or file cannot be used; nothing was changed
    |   +-- SchemaError               the schema or role of a database is unknown to this program
    |   +-- DiskFullError             a disk is full
    +-- ProtocolError                 a party of a survey was used against the protocol
        +-- IllegalTransitionError    the step does not exist in the survey's present phase
        +-- StaleLedgerError          somebody else changed a ledger meanwhile: repeat the step
        +-- MalformedError (also InputError)  bytes are no canonical encoding

A bad message from another party is not raised: the roles answer it with the value
`protocol.messages.Rejected`. An error message says what was wrong and what to do, and never
contains an answer, a share or a key. Where a web page translates an error, `with_code` gives it a
code for programs and the values that belong into the sentence.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self


class FaircountError(Exception):
    """Base of every error that faircount raises on purpose.

    `code` is empty where the error has only its English message.

    >>> try:
    ...     fc.Laplace(items=3, epsilon=-1.0)
    ... except fc.FaircountError:
    ...     print("refused")
    refused
    """

    code: str = ""
    values: Mapping[str, str | int | float] = MappingProxyType({})

    def with_code(self, code: str, **values: str | int | float) -> Self:
        """Attach a code and values, from which a page can make a sentence in its own language."""
        # The message stays in English, for logs and the command line.
        self.code = code
        self.values = values
        return self


class InputError(FaircountError, ValueError):
    """The caller's input cannot be used."""


class ParameterError(InputError):
    """A parameter is outside its range."""


class AnswerError(InputError):
    """An answer, a count or a table does not fit the question."""


class ShareError(InputError):
    """Field elements, shares or packed bytes are malformed."""


class RefusedError(FaircountError):
    """The requested privacy claim cannot be made: nothing was computed or released."""


class CorruptSumError(FaircountError):
    """A decoded sum lies outside the range that honest reports can reach."""


class ContradictionError(FaircountError):
    """Measured runs contradict the theory that they are compared with: one of the two is wrong."""


class UnreachableError(FaircountError):
    """A server does not answer now; nothing is lost, and the request may be repeated later."""


class RemoteError(FaircountError):
    """A server answered that it rejects the request.

    `status` is the HTTP status, `reason` the protocol's reason code, or 0 without one.
    """

    def __init__(self, message: str, status: int = 0, reason: int = 0) -> None:
        super().__init__(message)
        # Numbers besides the sentence, since callers decide by them and not by words.
        self.status = status
        self.reason = reason


class StorageError(FaircountError):
    """A database, a key or a file cannot be used now; nothing was changed, so a retry is safe."""


class SchemaError(StorageError):
    """A database has a schema, or belongs to a role, unknown to this program; it is untouched."""


class DiskFullError(StorageError):
    """A disk is full; nothing was changed, so a retry is safe once there is space."""


class ProtocolError(FaircountError):
    """A party of a survey was used in a way that the protocol forbids; its state is unchanged."""


class IllegalTransitionError(ProtocolError):
    """The step does not exist in the survey's present phase; nothing happened."""


class StaleLedgerError(ProtocolError):
    """Somebody else has changed the ledger meanwhile: read it again and repeat the step."""


class MalformedError(ProtocolError, InputError):
    """Bytes are not the one canonical encoding of anything."""
