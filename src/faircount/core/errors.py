"""Everything faircount raises, in one tree.

    FaircountError
    +-- InputError (also a ValueError)   what the caller gave cannot be used
    |   +-- ParameterError               a parameter is outside its range
    |   +-- AnswerError                  an answer, count or table does not fit the question
    |   +-- ShareError                   field elements, shares or packed bytes are malformed
    +-- RefusedError                     the privacy claim asked for cannot be made
    +-- CorruptSumError                  an opened sum lies outside its possible range
    +-- ContradictionError               what was measured contradicts the theory beside it
    +-- UnreachableError                 a server does not answer now: the same again later is safe
    +-- RemoteError                      a server answered that it will not do what was asked
    +-- StorageError                     a database, a key or a file cannot be used now: nothing was changed
    |   +-- SchemaError                  a database has a schema or a role that this program does not know
    |   +-- DiskFullError                there is no room left on a disk
    +-- ProtocolError                    a party of a survey was used in a way the protocol does not allow
        +-- IllegalTransitionError       the survey is not in a state from which this step exists
        +-- StaleLedgerError             a ledger was changed by somebody else meanwhile: do the step again
        +-- MalformedError (also InputError)  bytes are not the one canonical encoding of anything

A bad message from another party is not raised: the roles answer it with the value `protocol.messages.Rejected`.
Each message says what was wrong and what to do; none contains an answer, a share or a key. Where a page may say it in
another language, an error is `coded`: a word for programs, and the values that belong into the sentence.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Self


class FaircountError(Exception):
    """Base of every error that faircount raises on purpose. `code` is empty where only its English words tell it."""

    code: str = ""
    values: Mapping[str, str | int | float] = MappingProxyType({})

    def coded(self, code: str, **values: str | int | float) -> Self:
        """The same error, which a page can put into a sentence of its own."""
        self.code, self.values = code, values
        return self


class InputError(FaircountError, ValueError):
    """What the caller gave cannot be used."""


class ParameterError(InputError):
    """A parameter is outside its range."""


class AnswerError(InputError):
    """An answer, a count or a table does not fit the question."""


class ShareError(InputError):
    """Field elements, shares or packed bytes are malformed."""


class RefusedError(FaircountError):
    """The privacy claim asked for cannot be made: nothing was computed or released."""


class CorruptSumError(FaircountError):
    """An opened sum lies outside the range that honest responses can reach."""


class ContradictionError(FaircountError):
    """Measured runs contradict the theory that they are compared with: one of the two is wrong."""


class UnreachableError(FaircountError):
    """A server does not answer now; nothing is lost, and the same may be asked again later."""


class RemoteError(FaircountError):
    """A server answered that it will not do what was asked. `status` is that of HTTP, `reason` the protocol's or 0."""

    def __init__(self, message: str, status: int = 0, reason: int = 0) -> None:
        super().__init__(message)
        self.status, self.reason = status, reason


class StorageError(FaircountError):
    """A database, a key or a file cannot be used now; nothing was changed, and the same may be tried again."""


class SchemaError(StorageError):
    """A database has a schema, or belongs to a role, that this program does not know; it was not touched."""


class DiskFullError(StorageError):
    """There is no room left on a disk; nothing was changed, and the same may be tried again once there is."""


class ProtocolError(FaircountError):
    """A party of a survey was used in a way that the protocol does not allow; its state is unchanged."""


class IllegalTransitionError(ProtocolError):
    """The survey is not in a state from which this step exists; nothing happened."""


class StaleLedgerError(ProtocolError):
    """Somebody else has changed the ledger meanwhile: read it again and do the step again."""


class MalformedError(ProtocolError, InputError):
    """Bytes are not the one canonical encoding of anything."""
