"""S1's way to S2: one signed message there, some messages back, each after a u32 length."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faircount.core.errors import FaircountError
from faircount.protocol import Message, encode
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.wire.signing import SigningKey
from faircount.service.clock import Clock, now
from faircount.service.long_messages import MISSING, NAMED, PART_BYTES, LongMessage, piece_of
from faircount.service.problems import LOST, name_of
from faircount.service.signed_requests import TIME, signed_headers
from faircount.service.web import BYTES

if TYPE_CHECKING:
    import httpx


MOST_ANSWERS = 16
"""More than S2 has to say to one message: S1 may send thousands of times as much in return for each."""


class LinkError(FaircountError):
    """S2 cannot be reached, or has not answered as S2 does: the same is tried again later."""


class LostError(LinkError):
    """S2 was restored and will never say anything about this survey again."""


def joined(messages: tuple[Message, ...]) -> bytes:
    """Messages in one body."""
    encoded = [encode(each) for each in messages]
    return b"".join(len(each).to_bytes(4, "big") + each for each in encoded)


def split(body: bytes) -> tuple[Message, ...]:
    """The messages of a body; refused if it is not made of them."""
    found, at = list[Message](), 0
    while at < len(body):
        if len(found) == MOST_ANSWERS:
            raise LinkError(f"S2 says more than {MOST_ANSWERS} things at once")
        size = int.from_bytes(body[at : at + 4], "big")
        part = body[at + 4 : at + 4 + size]
        if len(body) < at + 4 or len(part) != size:
            raise LinkError("S2's answer is cut short")
        found.append(decode_signed(part))
        at += 4 + size
    return tuple(found)


@dataclass
class S2Link:
    """Calls of S2."""

    client: "httpx.AsyncClient"
    clock: Clock = now
    skew: int = field(default=0)  # milliseconds by which S2's clock is ahead of ours

    async def send(self, key: SigningKey, survey: bytes, message: Message) -> tuple[Message, ...] | None:
        """S2's answers to a message; None if it is still at work on it."""
        body, path = encode(message), f"/v1/surveys/{survey.hex()}/messages"
        caller = _Caller(self, key, survey)
        answer = await (caller.in_parts(path, body) if len(body) > PART_BYTES else caller.call("POST", path, body))
        if answer.status_code == 202:
            return None
        if answer.status_code != 200:
            kind = LostError if _said(answer, "type") == name_of(LOST) else LinkError
            raise kind(f"S2 answered {answer.status_code}: {_said(answer, 'detail')[:200]}")
        return split(answer.content)


@dataclass(frozen=True)
class _Caller:
    """Signed calls about one survey."""

    link: S2Link
    key: SigningKey
    survey: bytes

    async def call(self, method: str, path: str, body: bytes, kind: str = BYTES) -> "httpx.Response":
        """One call; again with S2's time if S2 has another one."""
        answer = await self._signed(method, path, body, kind)
        if answer.status_code == 401 and TIME in answer.headers:
            self.link.skew = int(answer.headers[TIME]) - self.link.clock()
            answer = await self._signed(method, path, body, kind)
        return answer

    async def _signed(self, method: str, path: str, body: bytes, kind: str) -> "httpx.Response":
        import httpx

        time = self.link.clock() + self.link.skew
        headers = signed_headers(self.key, self.survey, method, path, body, time) | {"content-type": kind}
        try:
            return await self.link.client.request(method, path, content=body, headers=headers)
        except httpx.HTTPError as problem:
            raise LinkError(f"S2 cannot be reached: {type(problem).__name__}") from problem

    async def in_parts(self, path: str, body: bytes) -> "httpx.Response":
        """Name a long message, bring what S2 does not have of it, and name it again."""
        named = LongMessage.of(body)
        answer = await self.call("POST", path, named.body, NAMED)
        if MISSING not in answer.headers:
            return answer
        for part in (int(each) for each in answer.headers[MISSING].split(",")):
            brought = await self.call("PUT", f"{path}/{named.hash.hex()}/{part}", piece_of(body, part))
            if brought.status_code != 204:
                return brought
        return await self.call("POST", path, named.body, NAMED)


def _said(answer: "httpx.Response", what: str) -> str:
    """What S2 says about a problem."""
    try:
        return str(answer.json()[what])
    except (ValueError, KeyError, TypeError):
        return "not as faircount answers"
