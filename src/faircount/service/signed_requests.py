"""Requests from S1 to S2: signed with S1's key of the survey, each valid once and for a few minutes.

S2 refuses a time that is too far from its own and says what time it has; S1 then counts from that. So two clocks that
disagree cost one more request and nothing else. What makes the protocol safe is that the first write wins, not this.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import MalformedError
from faircount.protocol import SurveyParameters
from faircount.protocol.wire.signing import SigningKey, request_bytes, verify
from faircount.service.long_messages import NAMED
from faircount.service.problems import ProblemError
from faircount.storage.database import Transaction

WINDOW = 300_000
"""Milliseconds by which a request's time may differ from S2's."""

SIGNATURE, TIME, NONCE = "faircount-signature", "faircount-time", "faircount-nonce"
"""Headers: Ed25519 in base64; milliseconds since 1970; 16 random bytes in hexadecimal."""


def signed_headers(key: SigningKey, survey: bytes, method: str, path: str, body: bytes, time: int) -> dict[str, str]:
    """The headers of a request about a survey; the survey's id names the key."""
    nonce = SystemEntropy().bytes(16)
    signature = key.sign(request_bytes(method, path, body, time, nonce, survey.hex()))
    return {SIGNATURE: b64encode(signature).decode(), TIME: str(time), NONCE: nonce.hex()}


@dataclass(frozen=True)
class SignedRequest:
    """A request as it arrived."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    @property
    def names_parts(self) -> bool:
        """Whether its body names a message that came in parts."""
        return self.headers.get("content-type") == NAMED

    def checked_nonce(self, params: SurveyParameters, now: int) -> bytes:
        """The nonce of a request that S1 signed lately; anything else is refused."""
        try:
            time, nonce = int(self.headers.get(TIME, "")), bytes.fromhex(self.headers.get(NONCE, ""))
            signature = b64decode(self.headers.get(SIGNATURE, ""), validate=True)
            said = request_bytes(self.method, self.path, self.body, time, nonce, params.survey.hex())
        except (ValueError, OverflowError, Base64Error, MalformedError):
            raise _unsigned("this call is for S1, with its signature, time and nonce in the headers") from None
        if not verify(params.keys.s1, signature, said):
            raise _unsigned("the signature is not that of the S1 in the parameters")
        if abs(time - now) > WINDOW:
            detail = f"S2's clock says {now}: sign with that time"
            raise ProblemError(401, "wrong-time", detail, headers={TIME: str(now)})
        return nonce


async def use_once(tx: Transaction, nonce: bytes, now: int) -> None:
    """Refuse a request that was here before; nonces are kept as long as their request would be valid."""
    await tx.run("DELETE FROM nonces WHERE expires_at < ?", now)
    fresh = await tx.run(
        "INSERT INTO nonces (nonce, expires_at) VALUES (?, ?) ON CONFLICT (nonce) DO NOTHING", nonce, now + 2 * WINDOW
    )
    if not fresh:
        raise _unsigned("this very request was here before: sign it again, with another nonce")


def _unsigned(detail: str) -> ProblemError:
    return ProblemError(401, "unsigned", detail)
