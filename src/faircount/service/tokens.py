"""Tokens of owners and operators: 32 random bytes, of which a server keeps the hash.

An owner acts on what was made with its own token and on nothing else; an operator acts on its server.
"""

import hmac
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256

from starlette.requests import Request

from faircount.core.entropy import SystemEntropy
from faircount.service.clock import Clock
from faircount.service.problems import ProblemError
from faircount.storage.database import Database, Transaction

LONGEST = 200
"""Characters of a token that are looked at."""


class Scope(StrEnum):
    """What a token is for."""

    OWNER = "owner"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a token belongs to: the token's hash stands for its holder."""

    id: bytes
    scope: Scope


def fresh_token() -> str:
    """A token to give to its holder; the server keeps only its hash."""
    return urlsafe_b64encode(SystemEntropy().bytes(32)).decode().rstrip("=")


def token_hash(token: str) -> bytes:
    """What a server keeps of a token."""
    return sha256(b"faircount token\0" + token.encode()).digest()


async def add_token(tx: Transaction, token: str, scope: Scope, label: str = "", expires_at: int | None = None) -> None:
    """Admit a token from now on; one that is known already keeps its scope."""
    await tx.run(
        "INSERT INTO tokens (hash, scope, label, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING",
        token_hash(token), str(scope), label, expires_at,
    )  # fmt: skip


@dataclass(frozen=True)
class Doorkeeper:
    """Tells who calls."""

    database: Database
    clock: Clock

    async def admit(self, request: Request, scope: Scope) -> Caller:
        """The caller, who must have a token of this scope that has not expired."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not 0 < len(token) <= LONGEST:
            raise _refused("this call needs a token: Authorization: Bearer TOKEN")
        wanted = token_hash(token.strip())
        async with self.database.read() as tx:
            found = await tx.one("SELECT hash, scope, expires_at FROM tokens WHERE hash = ?", wanted)
        if found is None or not hmac.compare_digest(bytes(found["hash"]), wanted):
            raise _refused("this token is not known here: ask the operator for one")
        if found["expires_at"] is not None and found["expires_at"] <= self.clock():
            raise _refused("this token has expired: ask the operator for another one")
        if found["scope"] != scope:
            raise ProblemError(403, "forbidden", f"this call is for the {scope}: this token belongs to another role")
        return Caller(wanted, scope)


def _refused(detail: str) -> ProblemError:
    return ProblemError(401, "no-token", detail, headers={"WWW-Authenticate": "Bearer"})
