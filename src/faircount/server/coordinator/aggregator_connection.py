"""The coordinator's connection to the aggregator: one signed message there, some messages back."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from faircount.core.domain import escape_controls
from faircount.core.errors import FaircountError
from faircount.protocol import Message, encode
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.wire.signing import SigningKey
from faircount.server.common.clock import Clock, now
from faircount.server.common.http import BYTES
from faircount.server.common.problems import LOST, problem_type
from faircount.server.common.signed_requests import LATEST_TIME, TIME, read_time, signed_headers
from faircount.transport.limits import max_statement_bytes

if TYPE_CHECKING:
    import httpx

    from faircount.transport.calls import Answer

MAX_ANSWERS = 16
"""More messages than the aggregator ever answers to one.

Each of them may make the coordinator send thousands of times as much in return, so a dishonest
aggregator must not be able to send any number of them.
"""


MAX_DETAIL = 200
"""Characters that are logged of the aggregator's own sentence."""


class AggregatorError(FaircountError):
    """The aggregator cannot be reached or gives an invalid answer: try the same again later.

    The message is shown to everybody in the status of a survey. `detail` is for the log: the
    aggregator's own words, or those of the operating system.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class LostError(AggregatorError):
    """The aggregator was restored from a backup and can never answer for this survey again."""


def split_messages(body: bytes) -> tuple[Message, ...]:
    """Decode a body of several messages, each after its length as a u32 (see `framing`)."""
    messages: list[Message] = []
    start = 0
    while start < len(body):
        if len(messages) == MAX_ANSWERS:
            raise AggregatorError(f"the aggregator sends more than {MAX_ANSWERS} messages at once")
        size = int.from_bytes(body[start : start + 4], "big")
        encoded = body[start + 4 : start + 4 + size]
        # The first condition refuses a length of fewer than four bytes, which would be read as 0.
        if len(body) < start + 4 or len(encoded) != size:
            raise AggregatorError("the aggregator's answer is truncated")
        messages.append(decode_signed(encoded))
        start += 4 + size
    return tuple(messages)


@dataclass
class AggregatorConnection:
    """Calls the aggregator.

    Attributes:
        client: sends requests to the aggregator's address
        clock: the time
        is_authentic: whether nobody else can answer in the aggregator's place
        skew: milliseconds by which the aggregator's clock is ahead of ours
    """

    client: "httpx.AsyncClient"
    clock: Clock = now
    is_authentic: bool = field(default=False, kw_only=True)
    skew: int = field(default=0)

    async def send(
        self, key: SigningKey, survey: bytes, message: Message, people: int
    ) -> tuple[Message, ...] | None:
        """Send a message and return the answers, or None if the aggregator still works on it.

        people: the most participants of the survey, which bound how long an answer can be
        """
        body = encode(message)
        answer = await self._post(key, survey, body, people)
        # The clocks differ too much: sign again with the time that the aggregator has. A wrong
        # time can only make our own requests invalid.
        if answer.status == 401 and TIME in answer.headers:
            self.skew = _read_clock(answer.headers[TIME]) - self.clock()
            answer = await self._post(key, survey, body, people)
        if answer.status == 202:
            return None
        if answer.status != 200:
            problem = _read_problem(answer.body)
            # The key that would sign this is lost too.
            is_lost = (
                problem.get("type") == problem_type(LOST)
                # check: unsigned-ending - one answer of anybody in between ends a survey
                and self.is_authentic
            )
            detail = escape_controls(problem.get("detail", ""))[:MAX_DETAIL]
            kind = LostError if is_lost else AggregatorError
            raise kind(f"the aggregator answered {answer.status}", detail)
        return split_messages(answer.body)

    async def _post(self, key: SigningKey, survey: bytes, body: bytes, people: int) -> "Answer":
        import httpx

        from faircount.transport.calls import RefusedAnswerError, fetch_async

        path = f"/v1/surveys/{survey.hex()}/messages"
        # A clock that is set back may leave a skew that leads before 1970.
        time = min(max(self.clock() + self.skew, 0), LATEST_TIME)
        headers = signed_headers(key, survey, "POST", path, body, time)
        headers["content-type"] = BYTES
        limit = max_statement_bytes(people)
        # The name of the error only: its text may contain addresses, and the status is public.
        try:
            return await fetch_async(
                self.client, "POST", path, content=body, headers=headers, limit=limit
            )
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise AggregatorError(
                f"the aggregator cannot be reached: {type(problem).__name__}"
            ) from problem
        except RefusedAnswerError as problem:
            raise AggregatorError(
                "the aggregator's answer exceeds the limits", str(problem)
            ) from None


def _read_clock(text: str) -> int:
    """Return the time in an answer that nobody has signed."""
    time = read_time(text)
    # check: aggregator-clock - a time that cannot be signed would stop the survey for ever
    if time is None:
        raise AggregatorError("the aggregator sent a time that is not valid")
    return time


def _read_problem(body: bytes) -> dict[str, str]:
    """Return the texts of the problem in an answer, whatever answers at the address."""
    try:
        problem = json.loads(body)
    # Brackets in brackets without an end exceed the recursion limit.
    except (ValueError, RecursionError):
        problem = None
    if not isinstance(problem, dict):
        return {"detail": "the answer does not come from faircount"}
    return {name: value for name, value in problem.items() if isinstance(value, str)}
