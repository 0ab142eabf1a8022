"""Survey keys: the secrets that a server makes for one survey before its parameters exist.

A server creates a signing key, a committed value and an encryption key pair on the owner's request,
stores them encrypted under a wrapping key, and gives the public halves to the owner, who puts them
into the survey's parameters. When the owner creates the survey with these parameters the secrets
move into the survey's state, once, and the wrapping key is destroyed.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256

from faircount.core.entropy import SystemEntropy
from faircount.protocol import SurveyParameters
from faircount.protocol.wire.crypto import KeyPair, StandardCrypto
from faircount.protocol.wire.signing import SigningKey
from faircount.server.common.problems import ProblemError, conflict
from faircount.server.common.tokens import Caller
from faircount.storage.database import Database, Transaction
from faircount.storage.keys import KeyFolder, wrapping_key_name

_SECRET = 32

MAX_UNUSED = 100
"""Survey keys of one owner that wait for their survey; the oldest make room for new ones."""


@dataclass(frozen=True)
class SurveyKeys:
    """A server's secrets for one survey; `repr` does not show them."""

    key: SigningKey
    value: bytes = field(repr=False)
    encryption_keys: KeyPair

    @classmethod
    def from_secrets(cls, secrets: bytes) -> "SurveyKeys":
        """Derive the keys from their three concatenated secrets."""
        signing = secrets[:_SECRET]
        value = secrets[_SECRET : 2 * _SECRET]
        box = secrets[2 * _SECRET :]
        return cls(SigningKey(signing), value, StandardCrypto().keypair_from(box))

    def public(self) -> dict[str, str]:
        """Return what the owner puts into the parameters, in hexadecimal."""
        # The value itself stays secret until the protocol reveals it.
        return {
            "signing_key": self.key.public.hex(),
            "commitment": sha256(self.value).digest().hex(),
            "encryption_key": self.encryption_keys.public.hex(),
        }


async def create(database: Database, keys: KeyFolder, caller: Caller) -> SurveyKeys:
    """Create survey keys for an owner and store them under a wrapping key of their own."""
    await _remove_oldest(database, keys, caller)
    secrets = SystemEntropy().bytes(3 * _SECRET)
    created = SurveyKeys.from_secrets(secrets)
    name = created.key.public
    # The wrapping key is on disk before the row: a row without its key could never be used.
    wrapping_key = keys.create(wrapping_key_name(name))
    encrypted = wrapping_key.encrypt(name, secrets)
    async with database.write() as tx:
        await tx.execute(
            "INSERT INTO survey_keys (id, owner, encrypted) VALUES (?, ?, ?)",
            name,
            caller.id,
            encrypted,
        )
    return created


async def _remove_oldest(database: Database, keys: KeyFolder, caller: Caller) -> None:
    """Remove the keys of this owner that were never named in parameters, but for the newest."""
    async with database.write() as tx:
        rows = await tx.fetch_all(
            "SELECT id FROM survey_keys WHERE owner = ? AND used_by IS NULL", caller.id
        )
        names = sorted((bytes(row["id"]) for row in rows), key=partial(_created_at, keys))
        # check: unused-keys - an owner fills the disk with keys that no survey ever names
        surplus = names[: max(0, len(names) - MAX_UNUSED + 1)]
        removed = []
        for name in surplus:
            # Not those that a survey has begun to use meanwhile.
            remove = "DELETE FROM survey_keys WHERE id = ? AND used_by IS NULL"
            if await tx.execute(remove, name):
                removed.append(name)
    # After the commit, as in `use`: a row without its key could never be used.
    for name in removed:
        await asyncio.to_thread(keys.destroy, wrapping_key_name(name))


def _created_at(keys: KeyFolder, name: bytes) -> float:
    return keys.created_at(wrapping_key_name(name))


async def use(
    tx: Transaction, keys: KeyFolder, caller: Caller, params: SurveyParameters, mine: bytes
) -> SurveyKeys:
    """Return the survey keys that these parameters name, and mark them as used by this survey.

    mine: this server's public signing key in the parameters
    """
    row = await tx.fetch_one_for_update(
        "SELECT owner, encrypted, used_by FROM survey_keys WHERE id = ?", mine
    )
    # Another owner's keys are treated like unknown ones.
    if (
        row is None
        # check: used-keys-own - a public key lets a stranger create a survey in the owner's place
        or bytes(row["owner"]) != caller.id
    ):
        raise ProblemError(
            409,
            "no-survey-keys",
            "these parameters name keys that this server has not made for you: request survey keys",
        )
    # check: survey-keys-once - signatures and the committed value of one survey would be valid in
    # another one
    if row["used_by"] is not None:
        raise conflict(
            "the keys in these parameters belong to another survey: request new survey keys"
        )
    wrapping_key = keys.get(wrapping_key_name(mine))
    found = SurveyKeys.from_secrets(wrapping_key.decrypt(mine, row["encrypted"]))
    # The caller destroys the wrapping key after the commit: if this transaction is rolled back, the
    # keys are still there to be used.
    await tx.execute(
        "UPDATE survey_keys SET encrypted = NULL, used_by = ? WHERE id = ?", params.survey, mine
    )
    return found
