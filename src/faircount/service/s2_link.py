"""S1's way to S2: one signed message there, some messages back, each after a u32 length."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faircount.core.errors import FaircountError
from faircount.protocol import Message, decode, encode
from faircount.protocol.wire.signing import SigningKey
from faircount.service.clock import Clock, now
from faircount.service.signed_requests import TIME, signed_headers

if TYPE_CHECKING:
    import httpx


class LinkError(FaircountError):
    """S2 cannot be reached, or has not answered as S2 does: the same is tried again later."""


def joined(messages: tuple[Message, ...]) -> bytes:
    """Messages in one body."""
    encoded = [encode(each) for each in messages]
    return b"".join(len(each).to_bytes(4, "big") + each for each in encoded)


def split(body: bytes) -> tuple[Message, ...]:
    """The messages of a body; refused if it is not made of them."""
    found, at = list[Message](), 0
    while at < len(body):
        size = int.from_bytes(body[at : at + 4], "big")
        part = body[at + 4 : at + 4 + size]
        if len(body) < at + 4 or len(part) != size:
            raise LinkError("S2's answer is cut short")
        found.append(decode(part))
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
        body = encode(message)
        answer = await self._post(key, survey, body)
        if answer.status_code == 401 and TIME in answer.headers:
            self.skew = int(answer.headers[TIME]) - self.clock()
            answer = await self._post(key, survey, body)
        if answer.status_code == 202:
            return None
        if answer.status_code != 200:
            raise LinkError(f"S2 answered {answer.status_code}: {_words(answer)}")
        return split(answer.content)

    async def _post(self, key: SigningKey, survey: bytes, body: bytes) -> "httpx.Response":
        import httpx

        path = f"/v1/surveys/{survey.hex()}/messages"
        headers = signed_headers(key, survey, "POST", path, body, self.clock() + self.skew)
        try:
            return await self.client.post(path, content=body, headers=headers)
        except httpx.HTTPError as problem:
            raise LinkError(f"S2 cannot be reached: {type(problem).__name__}") from problem


def _words(answer: "httpx.Response") -> str:
    """What S2 says about it, in a few words that may be logged."""
    try:
        return str(answer.json()["detail"])[:200]
    except (ValueError, KeyError, TypeError):
        return "not as faircount answers"
