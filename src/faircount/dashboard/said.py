"""What the program says, as values that the page puts into words of its own language, beside the English words."""

from typing import Any

from faircount.accounting.guarantee import OUTSIDER, PARTICIPANTS, S1, S2, Guarantee
from faircount.core.errors import FaircountError
from faircount.mechanisms.server_noise import ADDS, S1_AND_USERS, S2_AND_USERS

ALWAYS, OTHER = "always", "other"
_CONDITIONS = {
    None: ALWAYS,
    f"S1 {ADDS}": "s1_noise",
    f"S2 {ADDS}": "s2_noise",
    f"S1 or S2 {ADDS}": "either_noise",
}
_ADVERSARIES = {
    OUTSIDER.who: "reader",
    PARTICIPANTS: "participants",
    S1.who: "s1",
    S2.who: "s2",
    S1_AND_USERS.who: "s1_users",
    S2_AND_USERS.who: "s2_users",
}
CODES = {f"condition_{each}" for each in _CONDITIONS.values()} | {f"against_{each}" for each in _ADVERSARIES.values()}
"""Names of the sentences in which the page says a condition, and whom a guarantee is against."""


def said(problem: FaircountError) -> dict[str, Any]:
    """Why something was not done; without a code the page shows the English words, marked as such."""
    return {"words": str(problem), "code": problem.code, "values": dict(problem.values)}


def condition_code(condition: str | None) -> str:
    """On which condition a guarantee holds; `OTHER` where only the English words tell it."""
    return _CONDITIONS.get(condition, OTHER)


def guarantee_codes(guarantee: Guarantee) -> dict[str, Any]:
    """Whom a guarantee is against and on which condition; `OTHER` where only the English words tell it."""
    return {
        "against": _ADVERSARIES.get(guarantee.adversary.who, OTHER),
        "insiders": guarantee.adversary.insiders,
        "condition": condition_code(guarantee.condition),
    }
