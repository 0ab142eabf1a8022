"""Groups of users with their own epsilon (Section III-B): each planned on its own, then put together in every way.

Which weights are best is known before the survey, because the noise of each group is. What is not known is how the
answers spread; the largest possible spread, that of equally frequent items, is assumed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from faircount.core import plain
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation import weighting
from faircount.planning.option import Option, percent
from faircount.planning.plan import Plan, plan

WHY = {
    "total": "weights by total variance trade noise against how well a group speaks for everybody",
    "vwa": "weights by noise variance are best where noise is nearly all of the error",
    "uwa": "every user counts alike, and the noise differs too little between the groups to do otherwise",
    "cpa": "one survey of everybody has so much less noise that it wins even at the smallest epsilon",
}

FRAME = ("users", "epsilon", "mechanism", "half_width_95", "standard_error", "weight")
"""Columns of a plan for groups as a data frame."""


@dataclass(frozen=True)
class Combined:
    """One way of putting the groups together; errors are per item, as fractions of all users."""

    weights: tuple[float, ...]
    standard_error: float
    noise_error: float  # of the privacy noise alone: what the paper's Table II shows


@dataclass(frozen=True)
class GroupsPlan:
    """A plan for each group, and the error of all of them together under each set of weights."""

    plans: Mapping[str, Plan]
    combined: Mapping[str, Combined]

    @property
    def best(self) -> str:
        """Name of the way with the smallest error against the frequencies of all users."""
        return min(self.combined, key=lambda name: self.combined[name].standard_error)

    @property
    def _noise_95(self) -> float:
        """The 95% error of the best way, privacy noise alone."""
        return 1.96 * min(each.noise_error for each in self.combined.values())

    @property
    def _average(self) -> float:
        return 1 / next(iter(self.plans.values())).question.items

    @property
    def worthwhile(self) -> bool:
        """Whether that error stays below the average frequency 1/N."""
        return self._noise_95 < self._average

    @property
    def verdict(self) -> str:
        """One sentence: which weights, and why; or that nothing should be run."""
        if not self.worthwhile:
            error, average = percent(self._noise_95, "±"), percent(self._average)
            return (
                f"do not run this: even together the groups have a 95% error of {error}, more than an average item's "
                f"{average}; ask more users, offer fewer items or allow larger epsilons"
            )
        error = percent(self.combined[self.best].standard_error)
        caution = "" if self.best in ("uwa", "cpa") else "; only if the groups are alike, otherwise use uwa"
        return f"combine with {self.best}: standard error {error}; {WHY[self.best]}{caution}"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the groups' own questions."""
        return tuple(f"group {name}: {each}" for name, made in self.plans.items() for each in made.notes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        ways = {
            name: {"weights": list(w.weights), "standard_error": w.standard_error, "noise_error": w.noise_error}
            for name, w in self.combined.items()
        }
        groups = [
            {"group": name, "epsilon": each.question.epsilon, **each.to_dict()} for name, each in self.plans.items()
        ]
        return {
            **plain.JSON_VERSION,
            "best": self.best,
            "verdict": self.verdict,
            "worthwhile": self.worthwhile,
            "combined": ways,
            "groups": groups,
            "notes": list(self.notes),
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per group with its weight in the best way; its `attrs` hold the rest."""
        rows = self._rows()
        columns = {key: [row[at] for row in rows] for at, key in enumerate(FRAME)}
        return plain.frame(columns, list(self.plans), "group", {"verdict": self.verdict, "best": self.best})

    def _rows(self) -> list[tuple[Any, ...]]:
        """Users, epsilon, mechanism, its errors, and the weight in the best way."""
        weights = self.combined[self.best].weights
        shares = weights if len(weights) == len(self.plans) else (None,) * len(self.plans)  # one survey of everybody
        best = [(made.question, _best(name, made)) for name, made in self.plans.items()]
        return [
            (asked.users, asked.epsilon, each.name, each.half_width_95, each.standard_error, share)
            for (asked, each), share in zip(best, shares, strict=True)
        ]

    def __repr__(self) -> str:
        return f"<GroupsPlan: {self.verdict}>"

    def _repr_html_(self) -> str:
        rows = [
            [plain.text(name), f"{users:,}", f"{epsilon:g}", mechanism, percent(half, "±"), percent(error)]
            for name, (users, epsilon, mechanism, half, error, _) in zip(self.plans, self._rows(), strict=True)
        ]
        table = plain.table(["group", "users", "epsilon", "mechanism", "95% error", "standard error"], rows)
        words = (f"Note: {each}" for each in self.notes)
        return plain.paragraph(self.verdict, strong=True) + table + "".join(map(plain.paragraph, words))


def plan_groups(groups: Mapping[str, tuple[int, float]], items: int, delta: float, **known: Any) -> GroupsPlan:
    """Plan for groups given as name -> (users, epsilon); delta is common, `known` goes to `plan` for each of them."""
    if len(groups) < 2:
        raise ParameterError("at least 2 groups are needed: for one group use plan without groups")
    plans = {name: plan(users, items, epsilon, delta, **known) for name, (users, epsilon) in groups.items()}
    best = [_best(name, each) for name, each in plans.items()]
    sizes = [each.question.staying for each in plans.values()]
    everybody = plan(
        sum(users for users, _ in groups.values()), items, min(e for _, e in groups.values()), delta, **known
    )
    return GroupsPlan(plans, _ways(sizes, best, items) | _pooled(everybody))


def _best(name: str, made: Plan) -> Option:
    if made.recommended is None:
        raise RefusedError(f"group {name}: no mechanism meets the budget; leave it out or merge it with another group")
    return made.recommended


def _ways(sizes: list[int], best: list[Option], items: int) -> dict[str, Combined]:
    """V_g = n_g times the sum over items of the estimate's variance."""
    variances = [n * items * (each.standard_error or 0.0) ** 2 for n, each in zip(sizes, best, strict=True)]
    spread = 1 - 1 / items
    ways = {
        "uwa": weighting.uwa(sizes),
        "vwa": weighting.vwa(sizes, variances),
        "total": weighting.total_variance(sizes, variances, spread),
    }

    def error(w: np.ndarray[Any, np.dtype[np.float64]], against: str) -> float:
        return math.sqrt(weighting.expected_error(w, sizes, variances, spread, against=against) / items)

    return {name: Combined(tuple(w.tolist()), error(w, "population"), error(w, "noise")) for name, w in ways.items()}


def _pooled(everybody: Plan) -> dict[str, Combined]:
    """Everybody in one survey at the smallest epsilon, so a single weight."""
    if everybody.recommended is None:
        return {}
    error = everybody.recommended.standard_error or 0.0
    return {"cpa": Combined((1.0,), error, error)}
