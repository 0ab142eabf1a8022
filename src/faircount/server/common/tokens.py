"""Tokens of owners and operators: 32 random bytes, of which a server stores only the hash.

An owner can act on surveys and populations created with the same token and on nothing else. An
operator acts on the server itself.
"""

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from starlette.requests import Request

from faircount.core.entropy import SystemEntropy
from faircount.server.common.clock import Clock
from faircount.server.common.problems import ProblemError
from faircount.storage.database import Database, Transaction

LONGEST = 200
"""Tokens of more characters are refused unread."""


class Scope(StrEnum):
    """What a token permits."""

    OWNER = "owner"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller, identified by the hash of the token."""

    id: bytes


def fresh_token() -> str:
    """Create a token for its holder; the server stores only its hash."""
    return urlsafe_b64encode(SystemEntropy().bytes(32)).decode().rstrip("=")


def token_hash(token: str) -> bytes:
    """Return what a server stores of a token."""
    # No salt and no slow hash: 256 random bits cannot be guessed.
    return sha256(b"faircount token\0" + token.encode()).digest()


async def add_token(
    tx: Transaction, token: str, scope: Scope, expires_at: int | None = None
) -> None:
    """Accept a token from now on; a known token keeps its scope."""
    await tx.execute(
        "INSERT INTO tokens (hash, scope, expires_at) VALUES (?, ?, ?) "
        "ON CONFLICT (hash) DO NOTHING",
        token_hash(token),
        str(scope),
        expires_at,
    )


@dataclass(frozen=True)
class Authenticator:
    """Identifies callers by their bearer tokens."""

    database: Database
    clock: Clock

    async def require(self, request: Request, scope: Scope) -> Caller:
        """Return the caller, who must have an unexpired token of this scope."""
        # The scheme is case-insensitive (RFC 9110).
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not 0 < len(token) <= LONGEST:
            raise _unauthorized("this call needs a token: Authorization: Bearer TOKEN")
        expected = token_hash(token.strip())
        async with self.database.read() as tx:
            row = await tx.fetch_one(
                "SELECT hash, scope, expires_at FROM tokens WHERE hash = ?", expected
            )
        # Compared in constant time, although an attacker could only time hashes, not tokens.
        if row is None or not hmac.compare_digest(bytes(row["hash"]), expected):
            raise _unauthorized("this token is not known here: ask the operator for one")
        if row["expires_at"] is not None and row["expires_at"] <= self.clock():
            raise _unauthorized("this token has expired: ask the operator for another one")
        # 403 and not 401: the token is valid, so asking for another one would not help.
        if row["scope"] != scope:
            raise ProblemError(
                403,
                "forbidden",
                f"this call is for the {scope}: this token belongs to another role",
            )
        return Caller(expected)


def _unauthorized(detail: str) -> ProblemError:
    return ProblemError(401, "no-token", detail, headers={"WWW-Authenticate": "Bearer"})
