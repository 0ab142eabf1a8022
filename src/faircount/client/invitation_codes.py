"""Invitation codes: all that a participant needs, as text to print, paste, scan or put into a link.

    code  = base32 (RFC 4648, A-Z and 2-7, no padding) of
            1 byte  version, 1
            16      survey id
            32      params_digest: hash of the survey's parameters
            32      token: the secret of this invitation
            4       checksum: first bytes of SHA-256("faircount/1/code" 0x00 | all before)
    link  = address of the coordinator | "/#" | code

A code has 85 bytes, which are 136 characters. Readers ignore spaces, dashes and case, and take 0
for O, 1 for I and 8 for B. The checksum detects typing errors; it is not a MAC. Browsers do not
send the part of a link after #, so no server sees a token when a participant opens the link.
"""

import base64
import binascii
import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit

from faircount.core.errors import ParameterError
from faircount.protocol import Invitation
from faircount.protocol.wire.digests import tagged_hash

VERSION = b"\x01"
CHECKSUM_BYTES = 4
SIZE = 1 + 16 + 32 + 32 + CHECKSUM_BYTES
GROUP_CHARACTERS = 8  # between two dashes of a printed code

# Base32 has no 0, 1 and 8, so people who type them mean the letters that look like them.
_CORRECTIONS = str.maketrans("018", "OIB", " -\n\r\t\u00a0")


@dataclass(frozen=True, slots=True)
class Code:
    """The content of a code: a survey and an invitation to it. `repr` leaves the token out."""

    survey: bytes
    invitation: Invitation

    @property
    def text(self) -> str:
        """The code as 136 characters."""
        body = VERSION + self.survey + self.invitation.params + self.invitation.token
        return base64.b32encode(body + _checksum(body)).decode()

    @property
    def grouped_text(self) -> str:
        """The code with dashes, for paper."""
        text = self.text
        starts = range(0, len(text), GROUP_CHARACTERS)
        return "-".join(text[start : start + GROUP_CHARACTERS] for start in starts)

    def link(self, server: str) -> str:
        """A link to the survey page of the coordinator."""
        return f"{server.rstrip('/')}/#{self.text}"


def read_code(text: str) -> Code:
    """Read a code that a person typed or pasted; anything else is refused."""
    plain = text.upper().translate(_CORRECTIONS)
    try:
        raw = base64.b32decode(plain)
    except (binascii.Error, ValueError):
        raise ParameterError(_NO_CODE) from None
    # A code of a later version may have another layout, so it is not guessed at.
    if len(raw) != SIZE or raw[:1] != VERSION:
        raise ParameterError(_NO_CODE)
    body = raw[:-CHECKSUM_BYTES]
    # A mistyped code must not reach a server: it would look like an attempt to guess a token.
    if not hmac.compare_digest(_checksum(body), raw[-CHECKSUM_BYTES:]):
        raise ParameterError("this code has a typing error: copy it again from the invitation")
    return Code(body[1:17], Invitation(token=body[49:81], params=body[17:49]))


def read_invitation(text: str, server: str | None = None) -> tuple[str, Code]:
    """The coordinator's address and the code, from a link, or from a code and `server`."""
    text = text.strip()
    if "://" in text:
        address, _, fragment = text.partition("#")
        return server_address(server or address), read_code(fragment)
    # First of all: whoever pasted something else needs no address.
    code = read_code(text)
    if server is None:
        raise ParameterError(
            "a code alone does not name the server: give the link, or the server's address too"
        )
    return server_address(server), code


def server_address(text: str) -> str:
    """An HTTP address without a slash at its end; anything else is refused."""
    parts = urlsplit(text.strip())
    # Paths are appended to the address, which would end up inside a query or a fragment.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ParameterError(
            f"the address of a server looks like https://count.example.org, not {text!r:.80}"
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _checksum(body: bytes) -> bytes:
    return tagged_hash(b"code", body)[:CHECKSUM_BYTES]


_NO_CODE = "this is no invitation code: a code has 136 letters and digits, and a link ends in #CODE"
