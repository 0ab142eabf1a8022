"""The budget of a population over time: what each survey has taken, one after the other."""

from typing import Any

RELEASED = "released"


def steps_of(budget: dict[str, Any], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A budget as S2 keeps it, with what was spent before and after each survey.

    `known` has, by survey id, what the owner knows besides: its name, and when it was opened.
    """
    spent, steps = 0.0, []
    for each in budget["surveys"]:
        before = spent
        spent += 0.0 if each["status"] == RELEASED else each["epsilon"]
        steps.append({**each, "before": before, "after": spent, **known.get(each["survey"], {})})
    return {**budget, "surveys": steps, "together": budget["spent"]["epsilon"] < spent * (1 - 1e-9)}
