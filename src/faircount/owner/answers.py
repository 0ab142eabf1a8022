"""The shapes of what the servers answer to an owner, checked before anything is made of it.

The owner does not believe a server. An answer without a field, or with a time or a number that
means nothing, is refused in one sentence here, instead of failing somewhere in a command or on the
dashboard. The values themselves are passed on as they came.
"""

from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from faircount.client.calls import Reply
from faircount.core.errors import RemoteError
from faircount.protocol.survey.phases import Phase

S = TypeVar("S", bound=msgspec.Struct)

Count = Annotated[int, Meta(ge=0, lt=1 << 53)]
Time = Annotated[datetime, Meta(tz=True)] | None
Word = Annotated[str, Meta(max_length=1000)]
Amount = Annotated[float, Meta(ge=0, lt=1e300)]
Hash = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class CoordinatorStatus(msgspec.Struct):
    """The status of a survey at the coordinator."""

    state: Phase
    attempt: Count
    users: Count
    people: Count
    minimum: Count
    opened_at: Time
    since: Time
    closes_at: Time
    waits_for: Word
    next: Word
    tries_again_at: Time
    problem: Word
    rejections: dict[Word, Count]


class AggregatorStatus(msgspec.Struct):
    """The status of a survey at the aggregator."""

    state: Phase
    people: Count
    rejections: dict[Word, Count]


class CoordinatorKeys(msgspec.Struct):
    """Fresh keys of the coordinator for one survey."""

    signing_key: Hash
    commitment: Hash
    operator: Word


class AggregatorKeys(CoordinatorKeys):
    """Fresh keys of the aggregator for one survey."""

    box_key: Hash


class Spent(msgspec.Struct):
    """What is spent of a budget."""

    epsilon: Amount
    delta: Amount


class Charge(Spent):
    """What one survey has spent."""

    survey: Word
    status: Word


class Budget(msgspec.Struct):
    """The budget of a population."""

    population: Word
    epsilon: Amount
    delta: Amount
    adaptive: bool
    closed: bool
    spent: Spent
    surveys: list[Charge]


class Reservations(msgspec.Struct):
    """The aggregator's signed reservations, in base64."""

    reservations: list[str]


class Places(msgspec.Struct):
    """Places in the roster of the accepted reports, a part of the result."""

    places: list[Count]


def read_answer(reply: Reply, shape: type[S]) -> S:
    """Return what a server answered; refused if it has another shape."""
    return _convert(reply.json(), shape)


def plain_answer(reply: Reply, shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the answer as it came, with fields that the shape does not name."""
    values: dict[str, Any] = reply.json()
    _convert(values, shape)
    return values


def _convert(values: object, shape: type[S]) -> S:
    try:
        return msgspec.convert(values, shape)
    except (msgspec.ValidationError, OverflowError) as problem:
        message = f"the server's answer makes no sense ({problem}): is this a faircount server?"
        raise RemoteError(message).with_code("not_faircount") from None
