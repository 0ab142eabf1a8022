"""The code in an invitation: what a person needs to take part, as text to print, paste, scan or put into a link.

    code  = base32 (RFC 4648, A-Z and 2-7, no padding) of
            1 byte  version, 1
            16      survey id
            32      params_digest: the hash of what the person is asked to take part in
            32      token: the secret of this invitation
            4       check: the first bytes of SHA-256("faircount/1/code" 0x00 | all before)
    link  = address of S1 | "/#" | code

85 bytes, 136 characters. A reader ignores spaces, dashes and case, and takes 0 for O, 1 for I and 8 for B. What stands
after # does not leave the person's device when a link is opened: no server sees a token.
"""

import base64
import binascii
import hmac
from dataclasses import dataclass
from urllib.parse import urlsplit

from faircount.core.errors import ParameterError
from faircount.protocol import Invitation
from faircount.protocol.wire.digests import labelled

VERSION = b"\x01"
CHECK = 4
SIZE = 1 + 16 + 32 + 32 + CHECK
GROUP = 8
"""Characters between two dashes where a code is printed."""

_FORGIVEN = str.maketrans("018", "OIB", " -\n\r\t\u00a0")


@dataclass(frozen=True, slots=True)
class Code:
    """What a code says: the survey, and the invitation to it. Its token does not print."""

    survey: bytes
    invitation: Invitation

    @property
    def text(self) -> str:
        """136 characters."""
        body = VERSION + self.survey + self.invitation.params + self.invitation.token
        return base64.b32encode(body + _check(body)).decode()

    @property
    def grouped(self) -> str:
        """The same with dashes, for paper."""
        text = self.text
        return "-".join(text[start : start + GROUP] for start in range(0, len(text), GROUP))

    def link(self, server: str) -> str:
        """A link to the page that S1 serves."""
        return f"{server.rstrip('/')}/#{self.text}"


def read_code(text: str) -> Code:
    """The code in a text as a person types or pastes it; what is not one, or has a mistake, is refused."""
    plain = text.upper().translate(_FORGIVEN)
    try:
        raw = base64.b32decode(plain)
    except (binascii.Error, ValueError):
        raise ParameterError(_NO_CODE) from None
    if len(raw) != SIZE or raw[:1] != VERSION:
        raise ParameterError(_NO_CODE)
    body = raw[:-CHECK]
    if not hmac.compare_digest(_check(body), raw[-CHECK:]):
        raise ParameterError("this code has a mistake in it: copy it again from the invitation")
    return Code(body[1:17], Invitation(token=body[49:81], params=body[17:49]))


def read_invitation(text: str, server: str | None = None) -> tuple[str, Code]:
    """S1's address and the code, from a link, or from a code with the address beside it."""
    given = text.strip()
    if "://" in given:
        address, _, fragment = given.partition("#")
        return server_address(server or address), read_code(fragment)
    if server is None:
        raise ParameterError("a code alone does not say where to send: give the link, or the server's address too")
    return server_address(server), read_code(given)


def server_address(text: str) -> str:
    """An address without a slash at its end; refused unless it is one of HTTP."""
    parts = urlsplit(text.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ParameterError(f"the address of a server looks like https://count.example.org, not {text!r:.80}")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _check(body: bytes) -> bytes:
    return labelled(b"code", body)[:CHECK]


_NO_CODE = "this is no invitation code: it has 136 letters and digits, or is a link that ends in #CODE"
