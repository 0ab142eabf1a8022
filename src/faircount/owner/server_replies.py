"""The shapes of what the servers answer to an owner, checked before anything is made of it.

The owner does not believe a server. An answer without a field, or with a time or a number that
means nothing, is refused in one sentence here, instead of failing somewhere in a command or on the
dashboard. The values themselves are passed on as they came, also those that no shape names.
"""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from faircount.client.calls import Reply
from faircount.core.errors import RemoteError
from faircount.protocol.survey.phases import Phase

Fits = Callable[[object], bool]
Shape = Mapping[str, Fits]

# Larger integers are not exact in JavaScript, where the dashboard shows them; larger amounts
# overflow when they are added. No honest server comes near any of these.
MAX_COUNT = 1 << 53
MAX_AMOUNT = 1e300
MAX_TEXT = 1000
# One spelling: keys are compared as texts in the parameters.
KEY = re.compile("[0-9a-f]{64}")
SIGNATURE = re.compile("[0-9a-f]{128}")


def _is_count(value: object) -> bool:
    # Not isinstance, because True and False are integers for Python.
    return type(value) is int and 0 <= value < MAX_COUNT


def _is_amount(value: object) -> bool:
    # A comparison with NaN is false.
    return type(value) in (int, float) and 0 <= value < MAX_AMOUNT  # type: ignore[operator]


def _is_text(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_TEXT


def _is_key(value: object) -> bool:
    return isinstance(value, str) and KEY.fullmatch(value) is not None


def _is_signature(value: object) -> bool:
    return isinstance(value, str) and SIGNATURE.fullmatch(value) is not None


def _is_phase(value: object) -> bool:
    # A phase that we do not know would be shown, and waited for, without an end.
    return isinstance(value, str) and value in set(Phase)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_time(value: object) -> bool:
    """Whether this is a time with its zone, or None."""
    return value is None or _is_known_time(value)


def _is_known_time(value: object) -> bool:
    """Whether this is a time with its zone."""
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        return False
    try:
        # Without a zone it would be read as the owner's local time.
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _is_table(value: object) -> bool:
    """Whether this is a table of counts by name."""
    if not isinstance(value, dict):
        return False
    return all(_is_text(name) and _is_count(count) for name, count in value.items())


def _list_of(fits: Fits) -> Fits:
    return lambda value: isinstance(value, list) and all(fits(entry) for entry in value)


def _object(shape: Shape) -> Fits:
    return lambda value: isinstance(value, dict) and _misfit(value, shape) is None


COORDINATOR_STATUS: Shape = {
    "phase": _is_phase,
    "attempt": _is_count,
    "responses": _is_count,
    "withdrawn": _is_count,
    "invited": _is_count,
    "minimum": _is_count,
    "opened_at": _is_time,
    "since": _is_known_time,
    "closes_at": _is_time,
    "held_since": _is_time,
    "waits_for": _is_text,
    "next": _is_text,
    "waiting_since": _is_time,
    "tries_again_at": _is_time,
    "problem": _is_text,
    "rejections": _is_table,
}
AGGREGATOR_STATUS: Shape = {
    "phase": _is_phase,
    "invited": _is_count,
    "rejections": _is_table,
    "operator_signature": _is_signature,
}
COORDINATOR_KEYS: Shape = {
    "signing_key": _is_key,
    "commitment": _is_key,
    "operator": _is_text,
    "operator_key": _is_key,
}
AGGREGATOR_KEYS: Shape = {**COORDINATOR_KEYS, "encryption_key": _is_key}

_SPENT: Shape = {"epsilon": _is_amount, "delta": _is_amount}
_CHARGE: Shape = {**_SPENT, "survey": _is_text, "status": _is_text}
BUDGET: Shape = {
    "population": _is_text,
    "epsilon": _is_amount,
    "delta": _is_amount,
    "adaptive": _is_flag,
    "closed": _is_flag,
    "spent": _object(_SPENT),
    "surveys": _list_of(_object(_CHARGE)),
}
RESERVATIONS: Shape = {"reservations": _list_of(lambda value: isinstance(value, str))}
PLACES: Shape = {"places": _list_of(_is_count)}


def read_answer(reply: Reply, shape: Shape) -> dict[str, Any]:
    """Return what a server answered; refused if it has another shape."""
    values = reply.json()
    misfit = _misfit(values, shape) if isinstance(values, dict) else "not an object"
    if misfit is not None:
        message = f"the server's answer makes no sense ({misfit}): is this a faircount server?"
        raise RemoteError(message).with_code("not_faircount")
    # Fields that no shape names are passed on unchecked: nothing here relies on them.
    return dict(values)


def _misfit(values: Mapping[str, object], shape: Shape) -> str | None:
    """Return the name of a field that is missing, or has a value that it cannot have."""
    for name, fits in shape.items():
        if name not in values or not fits(values[name]):
            return name
    return None
