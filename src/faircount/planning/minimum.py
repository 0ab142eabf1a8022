"""The minimum number of responses, the response rate and the target error as people write them."""

import math
import re
from fractions import Fraction

from faircount.core.errors import ParameterError

FEWEST = 2
"""A result over one person would be that person's answer with noise."""

_NUMBER = re.compile("[0-9]{1,10}")
_SHARE = re.compile(r"[01](?:\.[0-9]{1,8})?|\.[0-9]{1,8}")
_RATE = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")


def parse_minimum(text: str, users: int) -> int:
    """The minimum number of responses that an owner writes: a number, or a rate such as 40%."""
    given = text.strip()
    rate = _RATE.fullmatch(given)
    if rate is not None:
        # Rounded up: at least this rate responds. As a fraction, 30% of 10 is 3 and not 4.
        minimum = math.ceil(Fraction(rate[1]) * users / 100)
    elif _NUMBER.fullmatch(given):
        minimum = int(given)
    else:
        message = f"the minimum number of responses is a number or a rate such as 40%, not {text!r}"
        raise ParameterError(message).with_code("minimum_form")
    return check_minimum(minimum, users)


def parse_response_rate(given: float | str) -> float:
    """The expected response rate: a share such as 0.6, or a rate such as 60%."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    rate = _RATE.fullmatch(text)
    if rate is not None and 0 < Fraction(rate[1]) <= 100:
        return float(Fraction(rate[1]) / 100)
    # Never "60": whoever writes that may mean people, so the message asks for the sign.
    if _SHARE.fullmatch(text) and 0 < float(text) <= 1:
        return float(text)
    message = (
        "the expected response rate is a rate such as 60%, or a share such as 0.6, above 0 and at "
        f"most 100%, not {given!r:.40}"
    )
    raise ParameterError(message).with_code("response_rate_form")


def parse_target_error(given: float | str) -> float:
    """The wanted 95% half-width: a fraction such as 0.02, or 2%."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    rate = _RATE.fullmatch(text)
    if rate is not None:
        return float(Fraction(rate[1]) / 100)
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"the target error is a rate such as 2%, or a fraction such as 0.02, not {given!r:.40}"
        ) from None


def check_minimum(minimum: int, users: int) -> int:
    """The minimum number of responses; refused if so many people cannot respond."""
    if not FEWEST <= minimum <= users:
        message = (
            f"the minimum number of responses must be {FEWEST} to {users:,}, the number of people "
            f"invited, not {minimum:,}"
        )
        raise ParameterError(message).with_code("minimum_range", fewest=FEWEST, invited=users)
    return minimum
