"""Why answers are not on the list, for the analyst alone: how many fail in which way, never what they are."""

import datetime
from collections.abc import Callable, Sequence

from faircount.core.domain import Domain

LOOKS_MISSING = ("na", "n/a", "#n/a", "nan", "nat", "null", "none", "nil", "-", "--", "?", "missing", "unknown")
"""Texts that are answers to us, and often meant as none."""


def hints(cells: Sequence[object], domain: Domain, text_of: Callable[[object], str]) -> str:
    """One sentence for every likely reason, with the number of answers that it may explain."""
    items = [text_of(each) for each in domain.labels]
    folded, numbers = {each.casefold() for each in items}, {_number(each) for each in items} - {None}
    texts = [text_of(each) for each in cells]
    found = {
        "differ from an item only in upper and lower case": sum(each.casefold() in folded for each in texts),
        "are the same number as an item, written in another way, as 20.0 is not 20": sum(
            _number(each) in numbers for each in texts
        ),
        "look like no answer, as NA or null do: --missing-spellings NA,null makes these two missing": sum(
            each.casefold() in LOOKS_MISSING for each in texts
        ),
        "are dates, and the items are text: write both in the same way, as 2024-12-31": _dates(cells, domain),
    }
    return "".join(f"{count:,} of them {words}. " for words, count in found.items() if count)


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None


def _dates(cells: Sequence[object], domain: Domain) -> int:
    if any(isinstance(each, datetime.date) for each in domain.labels):
        return 0
    return sum(isinstance(each, datetime.date) for each in cells)
