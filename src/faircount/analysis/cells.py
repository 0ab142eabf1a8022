"""How the cells of a table are compared with the items of a survey.

Cells are compared as text: surrounding blanks are ignored, Unicode is brought into composed form,
and upper and lower case differ. `explain_mismatches` helps an analyst whose cells do not match. It
says how many cells fail in which way and never repeats one: they are somebody's answers.
"""

import datetime
import unicodedata
from collections.abc import Sequence

from faircount.core.domain import Domain

# Texts that count as answers here, although whoever wrote them often meant no answer.
MISSING_LOOKALIKES = {
    "na", "n/a", "#n/a", "nan", "nat", "null", "none", "nil", "-", "--", "?", "missing", "unknown",
}  # fmt: skip

TRUTH_VALUES = frozenset({"true", "false"})


def text_of(value: object) -> str:
    """The text by which a value is compared; 20.0 reads as 20, so that floats match integers."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value.strip())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def explain_mismatches(cells: Sequence[object], domain: Domain) -> str:
    """One sentence for every likely reason why these cells match no item."""
    folded: set[str] = set()
    numbers: set[float] = set()
    dates_expected = False
    for item in domain.labels:
        folded.add(text_of(item).casefold())
        number = _parse_number(text_of(item))
        if number is not None:
            numbers.add(number)
        dates_expected = dates_expected or isinstance(item, datetime.date)

    other_case = same_number = lookalikes = dates = truths = 0
    for cell in cells:
        text = text_of(cell)
        # A cell may count for several reasons: each is a hint, not a diagnosis.
        other_case += text.casefold() in folded
        same_number += _parse_number(text) in numbers
        lookalikes += text.casefold() in MISSING_LOOKALIKES
        dates += isinstance(cell, datetime.date) and not dates_expected
        truths += text.casefold() in TRUTH_VALUES and TRUTH_VALUES.isdisjoint(folded)

    counts = {
        "differ from an item only in upper and lower case": other_case,
        "are the same number as an item, written in another way, as 20.0 and 20": same_number,
        "look like a missing answer; --missing-spellings NA,null treats NA and null as one": (
            lookalikes
        ),
        "are dates, but the items are text: write both in the same way, as 2024-12-31": dates,
        "are true or false, but the items are not: write them like the items; in pandas, "
        "df[column].map({True: 'yes', False: 'no'})": truths,
    }
    reasons = [f"{count:,} of them {reason}. " for reason, count in counts.items() if count]
    return "".join(reasons) + domain.numbering


def _parse_number(text: str) -> float | None:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return None
