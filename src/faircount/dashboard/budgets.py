"""The privacy budget of a population over time: what each survey spent, one after the other."""

from typing import Any

CANCELLED = "cancelled"
ROUNDING = 1e-9
"""Sums of epsilons differ by less than this share only because of floating point."""


def steps_of(budget: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The aggregator's budget, with the total before and after each survey.

    `known` has by survey id what the owner knows in addition: the name, and when it was opened.
    `together` is true where composition costs less than the sum of the surveys.
    """
    spent = 0.0
    steps = []
    for charge in budget["surveys"]:
        before = spent
        # A cancelled reservation was given back: the survey ended before anything was revealed.
        if charge["status"] != CANCELLED:
            spent += charge["epsilon"]
        facts = known.get(charge["survey"], {})
        steps.append({**charge, "before": before, "after": spent, **facts})
    together = budget["spent"]["epsilon"] < spent * (1 - ROUNDING)
    return {**budget, "surveys": steps, "together": together}
