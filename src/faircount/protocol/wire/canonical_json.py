"""Canonical JSON for published values: one encoding per value, so that a hash binds the meaning.

Allowed are objects with distinct text keys, lists, text, true, false, null, and whole numbers up to
2^53 - 1 in magnitude. Keys are sorted, nothing is indented, text is UTF-8 with the escapes of
JSON.stringify. Larger whole numbers are decimal text. A real number is the decimal text of its
value times 2^128, which is exact for every float of at least 2^-75.
"""

import json
import re
from fractions import Fraction
from typing import Any

from faircount.core.errors import MalformedError

LARGEST = (1 << 53) - 1
"""The largest whole number that every JSON reader keeps exactly: JavaScript has doubles only."""

UNIT = 1 << 128
"""Real numbers are whole multiples of 1 / UNIT."""

MAX_BYTES = 1 << 20
_MAX_DEPTH = 8
_DECIMAL = re.compile("0|-?[1-9][0-9]{0,399}")


def encode(value: Any) -> bytes:
    """The canonical bytes of a value; values of other types are refused."""
    _check(value, 0)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise MalformedError(
            "text with unpaired surrogates has no UTF-8 form: correct the text"
        ) from None


def decode(data: bytes) -> Any:
    """The value whose canonical bytes these are; any other bytes are refused."""
    # Checked first: anybody can send such bytes.
    if len(data) > MAX_BYTES:
        raise MalformedError(f"published values have at most {MAX_BYTES} bytes")
    try:
        value = json.loads(
            data,
            object_pairs_hook=_parse_object,
            parse_float=_refuse_number,
            parse_constant=_refuse_number,
            parse_int=_parse_small,
        )
    except (UnicodeDecodeError, RecursionError, json.JSONDecodeError):
        raise MalformedError("these bytes are not JSON in UTF-8") from None
    # Encoding again is the whole check of order, spaces and escapes.
    if encode(value) != data:
        raise MalformedError(
            "these bytes are not in canonical form: sort keys, leave out spaces, escape minimally"
        )
    return value


def format_real(value: float) -> str:
    """A real number as it is published: its value times 2^128, in decimal; exact."""
    # Fractions are exact: both ends must get the same text from the same float.
    units = Fraction(value) * UNIT
    if units.denominator != 1:
        raise MalformedError(
            f"{value!r} is not a multiple of 2^-128: choose a number of at least 2^-75 or zero"
        )
    return str(units.numerator)


def format_upper_bound(value: float) -> str:
    """A real number rounded up to one that can be published, for bounds such as delta."""
    # Rounding to the nearest would claim more privacy than there is.
    return str(-(-Fraction(value) * UNIT // 1))


def parse_real(text: object) -> float:
    """The float nearest to a published real number."""
    try:
        return float(Fraction(parse_integer(text), UNIT))
    except OverflowError:
        raise MalformedError("a real number is larger than floating point can hold") from None


def parse_integer(text: object) -> int:
    """A whole number from canonical decimal text: no plus sign and no leading zeros."""
    # At most 400 digits: the time to convert decimal text grows with the square of its length.
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text):
        raise MalformedError("a large or real number must be decimal text without leading zeros")
    return int(text)


def _parse_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    # Readers differ on which of two equal keys counts: refuse both.
    if len(members) != len(pairs):
        raise MalformedError("an object names the same key twice")
    return members


def _refuse_number(text: str) -> Any:
    raise MalformedError(
        f"{text[:20]} is not allowed: real numbers are written as decimal text times 2^128"
    )


def _parse_small(text: str) -> int:
    # Decided by length, since converting a very long number is slow; `_check` compares the value.
    if len(text) > 17:
        raise MalformedError("whole numbers above 2^53 - 1 are written as decimal text")
    return int(text)


def _check(value: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise MalformedError(f"published values are nested at most {_MAX_DEPTH} deep")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise MalformedError("keys must be text")
            _check(inner, depth + 1)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _check(inner, depth + 1)
    # True and False are integers in Python; JSON has them as values of their own.
    elif isinstance(value, int) and not isinstance(value, bool):
        if abs(value) > LARGEST:
            raise MalformedError("whole numbers above 2^53 - 1 are written as decimal text")
    elif value is not None and not isinstance(value, (str, bool)):
        raise MalformedError(
            f"a {type(value).__name__} cannot be published: "
            "use text, whole numbers, lists or objects"
        )
