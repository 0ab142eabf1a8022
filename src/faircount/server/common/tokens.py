"""Tokens of owners and operators: 32 random bytes, of which a server stores only the hash.

An owner can act on its own surveys and populations and on nothing else. They belong to the holder
of the token, so they stay when the token is replaced by a new one. An operator acts on the server
itself.

A revoked token is marked in the database, which all workers read at every call, and in the anchor:
a database that is restored from a backup does not accept it again.
"""

import asyncio
import hmac
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from starlette.requests import Request

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError
from faircount.protocol.roles.anchor import UNSET, Anchor
from faircount.server.common.clock import Clock, now
from faircount.server.common.problems import ProblemError
from faircount.storage.database import Database, Record, Transaction

LONGEST = 200
"""Tokens of more characters are refused unread."""
LONGEST_NAME = 100
"""Characters of a token's name, at most."""
HOLDER_BYTES = 8
AUTHENTICATED = "faircount.authenticated"
"""Under this name a request keeps how to look at its token again."""
_REVOKED = b"\1" * 32
"""What the anchor says about a revoked token."""


class Scope(StrEnum):
    """What a token permits."""

    OWNER = "owner"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller: the holder of the token."""

    id: bytes


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """What a server tells about a token; the token itself is never told again.

    Attributes:
        id: the holder, in hexadecimal
        name: for people: whose token it is
        surveys: how many surveys the holder has here
        populations: how many budgets
    """

    id: str
    name: str
    scope: Scope
    created_at: int
    expires_at: int | None
    revoked_at: int | None
    surveys: int = 0
    populations: int = 0


def fresh_token() -> str:
    """Create a token for its holder; the server stores only its hash."""
    return urlsafe_b64encode(SystemEntropy().bytes(32)).decode().rstrip("=")


def token_hash(token: str) -> bytes:
    """Return what a server stores of a token."""
    # No salt and no slow hash: 256 random bits cannot be guessed.
    return sha256(b"faircount token\0" + token.encode()).digest()


async def add_token(
    tx: Transaction,
    token: str,
    scope: Scope,
    expires_at: int | None = None,
    *,
    name: str = "",
    holder: bytes | None = None,
) -> None:
    """Accept a token from now on; a known token keeps its scope and its holder.

    holder: whose surveys and budgets it opens; a new holder's unless given
    """
    await tx.execute(
        "INSERT INTO tokens (hash, holder, scope, name, created_at, expires_at) "
        "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING",
        token_hash(token),
        holder or SystemEntropy().bytes(HOLDER_BYTES),
        str(scope),
        name[:LONGEST_NAME],
        now(),
        expires_at,
    )


async def list_tokens(tx: Transaction) -> list[TokenInfo]:
    """Return all tokens, the oldest first."""
    rows = await tx.fetch_all(
        "SELECT holder, scope, name, created_at, expires_at, revoked_at FROM tokens "
        "ORDER BY created_at, holder"
    )
    surveys = _count_by_owner(await tx.fetch_all("SELECT owner FROM surveys"))
    populations = _count_by_owner(await tx.fetch_all("SELECT owner FROM populations"))
    return [
        TokenInfo(
            bytes(row["holder"]).hex(),
            row["name"],
            Scope(row["scope"]),
            row["created_at"],
            row["expires_at"],
            row["revoked_at"],
            surveys[bytes(row["holder"])],
            populations[bytes(row["holder"])],
        )
        for row in rows
    ]


def _count_by_owner(rows: Sequence[Record]) -> Counter[bytes]:
    return Counter(bytes(row["owner"]) for row in rows)


async def revoke_tokens(tx: Transaction, anchor: Anchor, holder: str) -> TokenInfo:
    """Refuse the tokens of a holder from now on; return what is known about the newest of them."""
    # One change of a holder's tokens at a time: of two that replace a token at once, the second
    # would not see the token that the first one makes, and both would stay valid.
    # check: tokens-one-by-one - a token that was replaced at the same moment stays valid
    await tx.lock(b"tokens/" + holder.encode())
    found = [token for token in await list_tokens(tx) if token.id == holder]
    if not found:
        raise RefusedError(f"there is no token {holder} here: faircount token list shows all")
    rows = await tx.fetch_all(
        "SELECT hash FROM tokens WHERE holder = ? AND revoked_at IS NULL", bytes.fromhex(holder)
    )
    for row in rows:
        # The anchor first: a token that is in a backup as well must not come back with it.
        # check: revoked-in-anchor - a restored backup accepts a revoked token again
        anchor.advance(_revocation_name(bytes(row["hash"])), UNSET, _REVOKED)
    await tx.execute(
        "UPDATE tokens SET revoked_at = ? WHERE holder = ? AND revoked_at IS NULL",
        now(),
        bytes.fromhex(holder),
    )
    return found[-1]


async def rotate_token(
    tx: Transaction, anchor: Anchor, holder: str, expires_at: int | None = None
) -> str:
    """Return a new token of a holder; the old ones are refused from now on."""
    known = await revoke_tokens(tx, anchor, holder)
    # Old hashes are of no use to anybody, and the list stays short.
    await tx.execute("DELETE FROM tokens WHERE holder = ?", bytes.fromhex(holder))
    token = fresh_token()
    await add_token(
        tx, token, known.scope, expires_at, name=known.name, holder=bytes.fromhex(holder)
    )
    return token


async def is_owner(tx: Transaction, holder: bytes) -> bool:
    """Whether an owner has this id and a token that was not revoked."""
    row = await tx.fetch_one(
        "SELECT hash FROM tokens WHERE holder = ? AND scope = ? AND revoked_at IS NULL",
        holder,
        str(Scope.OWNER),
    )
    return row is not None


def _revocation_name(hashed: bytes) -> bytes:
    return b"revoked/" + hashed


@dataclass(frozen=True)
class Authenticator:
    """Identifies callers by their bearer tokens."""

    database: Database
    clock: Clock
    anchor: Anchor

    async def require(self, request: Request, scope: Scope) -> Caller:
        """Return the caller, who must have an unexpired token of this scope."""
        # The scheme is case-insensitive (RFC 9110).
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not 0 < len(token) <= LONGEST:
            raise _unauthorized_error("this call needs a token: Authorization: Bearer TOKEN")
        expected = token_hash(token.strip())
        caller = await self._find_caller(expected, scope)
        # Whoever reads the body asks once more when it is complete: a call may take a minute.
        request.scope[AUTHENTICATED] = lambda: self._find_caller(expected, scope)
        return caller

    async def _find_caller(self, expected: bytes, scope: Scope) -> Caller:
        """Return the holder of the token with this hash, if the token is valid now."""
        # Read at every call and never cached: a revoked token is refused at once, by all workers.
        async with self.database.read() as tx:
            row = await tx.fetch_one(
                "SELECT hash, holder, scope, expires_at, revoked_at FROM tokens WHERE hash = ?",
                expected,
            )
        # Compared in constant time, although an attacker could only time hashes, not tokens.
        if row is None or not hmac.compare_digest(bytes(row["hash"]), expected):
            raise _unauthorized_error("this token is not known here: ask the operator for one")
        # check: token-expires - whoever finds an old token uses it
        if row["expires_at"] is not None and row["expires_at"] <= self.clock():
            raise _unauthorized_error("this token has expired: ask the operator for another one")
        if await self._is_revoked(row):
            raise _unauthorized_error("this token was revoked: ask the operator for another one")
        # 403 and not 401: the token is valid, so asking for another one would not help.
        # check: token-scope - an owner acts as the operator of the server
        if row["scope"] != scope:
            raise ProblemError(
                403,
                "forbidden",
                f"this call is for the {scope}: this token belongs to another role",
            )
        return Caller(bytes(row["holder"]))

    async def _is_revoked(self, row: Record) -> bool:
        # check: revoked-token - whoever found a lost token goes on using it
        if row["revoked_at"] is not None:
            return True
        name = _revocation_name(bytes(row["hash"]))
        return await asyncio.to_thread(self.anchor.current_value, name) != UNSET


def _unauthorized_error(detail: str) -> ProblemError:
    return ProblemError(401, "no-token", detail, headers={"WWW-Authenticate": "Bearer"})
