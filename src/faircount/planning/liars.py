"""Clients who follow the protocol, or who may lie: which of the two a plan supposes, and what the other would cost.

Somebody who changes its client can send any vector: where reports are not proven, one such client moves any count by
any amount. Where they are proven, it has one vote like everybody else.
"""

from collections.abc import Sequence

from faircount.planning.option import Option, percent


def best_of(options: Sequence[Option], proven: bool) -> Option | None:
    """The sound option with the smallest error among those whose reports are proven, or among the others."""
    fit = [each for each in options if each.sound and each.proven == proven]
    return min(fit, key=lambda each: each.standard_error or 0.0, default=None)


def otherwise(options: Sequence[Option], liars: bool) -> str:
    """What to run under the other supposition, and at which error and how many bytes, in a sentence."""
    head = "if clients follow the protocol" if liars else "if clients may lie"
    other, here = best_of(options, not liars), best_of(options, liars)
    if other is None:
        return f"{head}: nothing meets the budget" + ("" if liars else " with reports that are proven to be one vote")
    sent = f" and takes {other.cost.bytes_sent:,} bytes from a user" if other.cost else ""
    proven = "" if liars else ", whose reports are proven to be one vote,"
    advice = "" if liars else "; --liars (liars=True in Python) plans for it"
    error = percent(other.standard_error or 0.0) + _compared(other, here)
    return f"{head}: {other.name}{proven} has a standard error of {error}{sent}{advice}"


def _compared(other: Option, here: Option | None) -> str:
    if here is None or not here.standard_error or not other.standard_error:
        return ""
    share = other.standard_error / here.standard_error - 1
    return f" ({share:+.0%})"
