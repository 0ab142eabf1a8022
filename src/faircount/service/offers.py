"""Offers: a server makes fresh keys and a committed value for one survey, before its parameters exist.

The owner writes the public halves into the parameters. Whoever comes with parameters that name an offer of this server
makes it a survey, once; the secret halves then live in the survey's state, and the offer's own copy is destroyed.
"""

from dataclasses import dataclass, field
from hashlib import sha256

from faircount.core.entropy import SystemEntropy
from faircount.protocol import SurveyParameters
from faircount.protocol.wire.sealing import KeyPair, RealSealing
from faircount.protocol.wire.signing import SigningKey
from faircount.service.problems import ProblemError, conflict
from faircount.service.tokens import Caller
from faircount.storage.database import Transaction
from faircount.storage.keys import KeyFolder, offer_key

_SECRET = 32


@dataclass(frozen=True)
class Offer:
    """What a server holds for a survey to come; its secrets do not print."""

    key: SigningKey
    value: bytes = field(repr=False)
    box: KeyPair

    @classmethod
    def of(cls, secret: bytes) -> "Offer":
        """From the three secrets, one after the other."""
        key, value, box = (secret[at : at + _SECRET] for at in range(0, 3 * _SECRET, _SECRET))
        return cls(SigningKey(key), value, RealSealing().keypair_of(box))

    def public(self) -> dict[str, str]:
        """What the owner writes into the parameters, in hexadecimal."""
        return {
            "signing_key": self.key.public.hex(),
            "commitment": sha256(self.value).digest().hex(),
            "box_key": self.box.public.hex(),
        }


async def make(tx: Transaction, keys: KeyFolder, caller: Caller) -> Offer:
    """A fresh offer, written under a key of its own."""
    secret = SystemEntropy().bytes(3 * _SECRET)
    offer = Offer.of(secret)
    name = offer.key.public
    sealed = keys.create(offer_key(name)).seal(name, secret)
    await tx.run("INSERT INTO offers (id, owner, sealed) VALUES (?, ?, ?)", name, caller.id, sealed)
    return offer


async def take(tx: Transaction, keys: KeyFolder, caller: Caller, params: SurveyParameters, mine: bytes) -> Offer:
    """The offer that these parameters name, for this survey alone; `mine` is this server's signing key in them."""
    found = await tx.held("SELECT owner, sealed, used_by FROM offers WHERE id = ?", mine)
    if found is None or bytes(found["owner"]) != caller.id:
        raise ProblemError(409, "no-offer", "these parameters name keys that this server has not offered to you")
    if found["used_by"] is not None:
        raise conflict("the keys in these parameters belong to another survey: ask for a new offer")
    offer = Offer.of(keys.get(offer_key(mine)).open(mine, found["sealed"]))
    await tx.run("UPDATE offers SET sealed = NULL, used_by = ? WHERE id = ?", params.survey, mine)
    return offer
