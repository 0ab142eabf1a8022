"""Who runs the servers: each operator signs every survey with a long-term key of its own.

The owner writes the parameters, names of the operators included. So that an owner cannot name
somebody else, each server signs the digest of the parameters with the key of its organization, over

    "faircount/1/operator" 0x00 | u32 role | survey id | digest | u32 length | name in UTF-8

and clients check both signatures before anything is sent. The signature shows that whoever holds
the key runs this server in this survey. That the key belongs to the organization of this name shows
only the place where the organization publishes its fingerprint.
"""

import unicodedata
from dataclasses import dataclass

from faircount.core.domain import escape_controls
from faircount.core.errors import RefusedError
from faircount.protocol.survey.parameters import NO_KEY, SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import LABEL, tagged_hash
from faircount.protocol.wire.signing import SigningKey, verify

SIGNATURE_BYTES = 64
FINGERPRINT_BYTES = 16
"""Finding another key with the same fingerprint takes 2^128 attempts."""

ROLES = (Party.COORDINATOR, Party.AGGREGATOR)


@dataclass(frozen=True)
class Operator:
    """The organization that runs a server: its name and its long-term key."""

    name: str
    key: SigningKey

    def runs(self, params: SurveyParameters, role: Party) -> bool:
        """Whether the parameters name this operator, with this key, for a role."""
        return operator_of(params, role) == (self.name, self.key.public)

    def sign(self, params: SurveyParameters, role: Party) -> bytes:
        """Sign that this operator runs a server of the survey with these parameters."""
        return self.key.sign(_signed_bytes(params, role))


def operator_of(params: SurveyParameters, role: Party) -> tuple[str, bytes]:
    """Name and public key of the operator whom the parameters name for a role."""
    if role is Party.COORDINATOR:
        return params.s1_operator, params.keys.s1_operator_key
    return params.s2_operator, params.keys.s2_operator_key


def is_signed_by_operator(params: SurveyParameters, role: Party, signature: bytes) -> bool:
    """Whether the operator whom the parameters name has signed them for this role."""
    _, key = operator_of(params, role)
    # check: operator-named - anybody can sign under a key of zeros, which has a small order
    if key == NO_KEY:
        return False
    return verify(key, signature, _signed_bytes(params, role))


def check_operators(params: SurveyParameters, signatures: tuple[bytes, bytes]) -> None:
    """Refuse a survey that the operators of both servers have not signed."""
    servers = {Party.COORDINATOR: "coordinator", Party.AGGREGATOR: "aggregator"}
    for role, signature in zip(ROLES, signatures, strict=True):
        # check: operator-signature - an owner names an organization that runs no server
        if not is_signed_by_operator(params, role, signature):
            name, _ = operator_of(params, role)
            who = f"that {escape_controls(name)} runs it" if name else "who runs it"
            raise RefusedError(
                f"the {servers[role]} has not signed {who} in this survey: do not answer, ask "
                "the person who invited you"
            ).with_code("operator_unsigned")


def _signed_bytes(params: SurveyParameters, role: Party) -> bytes:
    name = operator_of(params, role)[0].encode()
    parts = [LABEL + b"/operator\0", role.to_bytes(4, "big"), params.survey, params.digest]
    return b"".join((*parts, len(name).to_bytes(4, "big"), name))


def format_fingerprint(key: bytes) -> str:
    """The fingerprint of an operator's key for people to compare: eight groups of four digits."""
    digits = tagged_hash(b"operator-key", key)[:FINGERPRINT_BYTES].hex()
    return " ".join(digits[start : start + 4] for start in range(0, len(digits), 4))


def normalize_operator(name: str) -> str:
    """A name without what does not tell organizations apart: case, spaces and punctuation."""
    plain = unicodedata.normalize("NFKC", name).lower()
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] in "LMN")


def has_one_operator(params: SurveyParameters) -> bool:
    """Whether one organization runs both servers, as far as names and keys tell.

    Two servers without names count as one operator's: nothing separates the shares then.
    """
    first = params.keys.s1_operator_key
    # check: one-operator-key - one organization shows two names for one key
    has_one_key = first != NO_KEY and first == params.keys.s2_operator_key
    names = {normalize_operator(params.s1_operator), normalize_operator(params.s2_operator)}
    return has_one_key or len(names) == 1
