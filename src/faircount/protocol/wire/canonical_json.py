"""One encoding for published values: JSON that has exactly one form, so that hashing its bytes hashes its meaning.

Allowed: objects with distinct text keys, lists, text, true, false, null and whole numbers up to 2^53 - 1 in size. Keys
are sorted, nothing is indented, text is UTF-8 with the escapes of JSON.stringify. Larger whole numbers are decimal
text; a real number is the decimal text of its value times 2^128, which is exact for every float of at least 2^-75.
"""

import json
import re
from fractions import Fraction
from typing import Any

from faircount.core.errors import MalformedError

LARGEST = (1 << 53) - 1
"""The largest whole number that every JSON reader keeps exactly."""

UNIT = 1 << 128
"""Real numbers are whole multiples of 1 / UNIT."""

MOST_BYTES = 1 << 20
_DEEPEST = 8
_DECIMAL = re.compile("0|-?[1-9][0-9]{0,399}")


def encode(value: Any) -> bytes:
    """The canonical bytes of a value; anything outside the allowed kinds is refused."""
    _check(value, 0)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise MalformedError("text with unpaired surrogates has no UTF-8 form: correct the text") from None


def decode(data: bytes) -> Any:
    """The value whose canonical bytes these are; any other bytes are refused."""
    if len(data) > MOST_BYTES:
        raise MalformedError(f"published values have at most {MOST_BYTES} bytes")
    try:
        value = json.loads(
            data, object_pairs_hook=_object, parse_float=_no_fraction, parse_constant=_no_fraction, parse_int=_whole
        )
    except (UnicodeDecodeError, RecursionError, json.JSONDecodeError):
        raise MalformedError("these bytes are not JSON in UTF-8") from None
    if encode(value) != data:
        raise MalformedError("these bytes are not in canonical form: sort keys, leave out spaces, escape minimally")
    return value


def scaled(value: float) -> str:
    """A real number as published: its value times 2^128, in decimal."""
    units = Fraction(value) * UNIT
    if units.denominator != 1:
        raise MalformedError(f"{value!r} is not a multiple of 2^-128: choose a number of at least 2^-75 or zero")
    return str(units.numerator)


def scaled_up(value: float) -> str:
    """A real number rounded up to what can be published: for bounds that must not be understated."""
    return str(-(-Fraction(value) * UNIT // 1))


def unscaled(text: object) -> float:
    """The real number behind published text; it must be a float exactly or lie within rounding of one."""
    try:
        return float(Fraction(big(text), UNIT))
    except OverflowError:
        raise MalformedError("a real number is larger than floating point can hold") from None


def big(text: object) -> int:
    """A whole number from canonical decimal text: no sign but minus, no leading zeros."""
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise MalformedError("a large or real number must be decimal text without leading zeros")
    return int(text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    whole = dict(pairs)
    if len(whole) != len(pairs):
        raise MalformedError("an object names the same key twice")
    return whole


def _no_fraction(text: str) -> Any:
    raise MalformedError(f"{text[:20]} is not allowed: real numbers are written as decimal text times 2^128")


def _whole(text: str) -> int:
    if len(text) > 17:
        raise MalformedError("whole numbers above 2^53 - 1 are written as decimal text")
    return int(text)


def _check(value: Any, depth: int) -> None:
    if depth > _DEEPEST:
        raise MalformedError(f"published values are nested at most {_DEEPEST} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise MalformedError("keys must be text")
            _check(inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check(inner, depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST:
            raise MalformedError("whole numbers above 2^53 - 1 are written as decimal text")
    elif value is not None and not isinstance(value, (str, bool)):
        raise MalformedError(f"a {type(value).__name__} cannot be published: use text, whole numbers, lists or objects")
