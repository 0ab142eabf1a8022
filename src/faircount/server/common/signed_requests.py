"""Signed requests from the coordinator to the aggregator.

The coordinator signs every request with its key of the survey. A request is valid once, and for a
few minutes. If its time is too far from the aggregator's clock the aggregator refuses it and says
what time it has; the coordinator signs again with that time. So two clocks that disagree cost one
more request and nothing else. The safety of the protocol does not depend on this: there the first
write wins.

The signature covers the hash of the body, which is in a header (RFC 9530), so that the aggregator
can check it before it reads the body: nobody but the coordinator can make it keep a long body in
memory.
"""

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import MalformedError
from faircount.protocol import SurveyParameters
from faircount.protocol.wire.signing import SigningKey, request_bytes, verify
from faircount.server.common.problems import ProblemError
from faircount.storage.database import Transaction

WINDOW = 300_000
"""Milliseconds by which the time of a request may differ from the aggregator's clock."""

LATEST_TIME = 253_402_300_799_999
"""The last millisecond of the year 9999: no clock shows more."""

SIGNATURE = "faircount-signature"
"""Header: Ed25519 signature, in base64."""
TIME = "faircount-time"
"""Header: milliseconds since 1970."""
NONCE = "faircount-nonce"
"""Header: 16 random bytes, in hexadecimal."""
DIGEST = "content-digest"
"""Header: SHA-256 of the body, as in RFC 9530."""


def signed_headers(
    key: SigningKey, survey: bytes, method: str, path: str, body: bytes, time: int
) -> dict[str, str]:
    """Return the headers of a request about a survey, whose id names the key."""
    nonce = SystemEntropy().bytes(16)
    body_hash = sha256(body).digest()
    signature = key.sign(request_bytes(method, path, body_hash, time, nonce, survey.hex()))
    return {
        SIGNATURE: b64encode(signature).decode(),
        TIME: str(time),
        NONCE: nonce.hex(),
        DIGEST: content_digest(body),
    }


def content_digest(body: bytes) -> str:
    """Return the value of the header with the hash of a body."""
    return f"sha-256=:{b64encode(sha256(body).digest()).decode()}:"


def read_time(text: str) -> int | None:
    """Return the milliseconds in a header, or None if no clock shows them."""
    # `int` would take signs, underscores, digits of other scripts, and numbers of any length.
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(LATEST_TIME)):
        return None
    time = int(text)
    return time if time <= LATEST_TIME else None


@dataclass(frozen=True)
class SignedRequest:
    """A request whose body has not been read yet."""

    method: str
    path: str
    headers: Mapping[str, str]

    def checked_nonce(self, params: SurveyParameters, now: int) -> bytes:
        """Check signature and time of the request, and return its nonce."""
        try:
            time = read_time(self.headers.get(TIME, ""))
            nonce = bytes.fromhex(self.headers.get(NONCE, ""))
            signature = b64decode(self.headers.get(SIGNATURE, ""), validate=True)
            digest = self.headers.get(DIGEST, "").removeprefix("sha-256=:").removesuffix(":")
            body_hash = b64decode(digest, validate=True)
            if time is None:
                raise ValueError("no time")
            # Method, path and survey are signed too: a request cannot be replayed elsewhere.
            signed_bytes = request_bytes(
                self.method, self.path, body_hash, time, nonce, params.survey.hex()
            )
        except (ValueError, OverflowError, Base64Error, MalformedError):
            raise _unsigned_error(
                "this call is for the coordinator: the headers need its signature, time and nonce"
            ) from None
        # check: request-signature - anybody could call in the coordinator's name
        if not verify(params.keys.coordinator, signature, signed_bytes):
            raise _unsigned_error("the signature is not that of the coordinator in the parameters")
        # After the signature, so that only the coordinator learns the aggregator's clock.
        if abs(time - now) > WINDOW:
            detail = f"the aggregator's clock shows {now}: sign with that time"
            raise ProblemError(401, "wrong-time", detail, headers={TIME: str(now)})
        return nonce

    def check_body(self, body: bytes) -> None:
        """Refuse a body other than the one whose hash the coordinator signed."""
        # The signature covers only the header: without this check any body could follow it.
        if self.headers.get(DIGEST) != content_digest(body):
            raise _unsigned_error("the body is not the one that was signed")


async def use_once(tx: Transaction, nonce: bytes, now: int) -> None:
    """Refuse a request that was received before."""
    # A nonce is stored until its request would be refused as too old: a signature may be WINDOW
    # ahead of this clock, and stays valid until WINDOW behind it.
    await tx.execute("DELETE FROM nonces WHERE expires_at < ?", now)
    inserted = await tx.execute(
        "INSERT INTO nonces (nonce, expires_at) VALUES (?, ?) ON CONFLICT (nonce) DO NOTHING",
        nonce,
        now + 2 * WINDOW,
    )
    # check: request-nonce - a recorded request would be carried out again
    if not inserted:
        raise _unsigned_error("this request was received before: sign it again, with another nonce")


def _unsigned_error(detail: str) -> ProblemError:
    return ProblemError(401, "unsigned", detail)
