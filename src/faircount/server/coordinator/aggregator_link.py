"""The coordinator's connection to the aggregator: one signed message there, some messages back."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faircount.core.errors import FaircountError
from faircount.protocol import Message, encode
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.wire.signing import SigningKey
from faircount.server.common.clock import Clock, now
from faircount.server.common.http import BYTES
from faircount.server.common.problems import LOST, problem_type
from faircount.server.common.signed_requests import TIME, signed_headers

if TYPE_CHECKING:
    import httpx


MAX_ANSWERS = 16
"""More messages than the aggregator ever answers to one.

Each of them may make the coordinator send thousands of times as much in return, so a dishonest
aggregator must not be able to send any number of them.
"""


class LinkError(FaircountError):
    """The aggregator cannot be reached or gives an invalid answer: try the same again later."""


class LostError(LinkError):
    """The aggregator was restored from a backup and can never answer for this survey again."""


def split_messages(body: bytes) -> tuple[Message, ...]:
    """Decode a body of several messages, each after its length as a u32 (see `framing`)."""
    messages: list[Message] = []
    start = 0
    while start < len(body):
        if len(messages) == MAX_ANSWERS:
            raise LinkError(f"the aggregator sends more than {MAX_ANSWERS} messages at once")
        size = int.from_bytes(body[start : start + 4], "big")
        encoded = body[start + 4 : start + 4 + size]
        # The first condition refuses a length of fewer than four bytes, which would be read as 0.
        if len(body) < start + 4 or len(encoded) != size:
            raise LinkError("the aggregator's answer is truncated")
        messages.append(decode_signed(encoded))
        start += 4 + size
    return tuple(messages)


@dataclass
class AggregatorLink:
    """Calls the aggregator.

    skew: milliseconds by which the aggregator's clock is ahead of ours
    """

    client: "httpx.AsyncClient"
    clock: Clock = now
    skew: int = field(default=0)

    async def send(
        self, key: SigningKey, survey: bytes, message: Message
    ) -> tuple[Message, ...] | None:
        """Send a message and return the answers, or None if the aggregator still works on it."""
        body = encode(message)
        response = await self._post(key, survey, body)
        # The clocks differ too much: sign again with the time that the aggregator has. A wrong
        # time can only make our own requests invalid.
        if response.status_code == 401 and TIME in response.headers:
            self.skew = int(response.headers[TIME]) - self.clock()
            response = await self._post(key, survey, body)
        if response.status_code == 202:
            return None
        if response.status_code != 200:
            is_lost = _problem_field(response, "type") == problem_type(LOST)
            detail = _problem_field(response, "detail")[:200]
            kind = LostError if is_lost else LinkError
            raise kind(f"the aggregator answered {response.status_code}: {detail}")
        return split_messages(response.content)

    async def _post(self, key: SigningKey, survey: bytes, body: bytes) -> "httpx.Response":
        import httpx

        path = f"/v1/surveys/{survey.hex()}/messages"
        headers = signed_headers(key, survey, "POST", path, body, self.clock() + self.skew)
        headers["content-type"] = BYTES
        # The name of the error only: its text may contain addresses, and the status is public.
        try:
            return await self.client.post(path, content=body, headers=headers)
        except httpx.HTTPError as problem:
            raise LinkError(
                f"the aggregator cannot be reached: {type(problem).__name__}"
            ) from problem


def _problem_field(response: "httpx.Response", name: str) -> str:
    """Return a field of the problem in a response, whatever answers at the address."""
    try:
        return str(response.json()[name])
    except (ValueError, KeyError, TypeError):
        return "not an answer of faircount"
