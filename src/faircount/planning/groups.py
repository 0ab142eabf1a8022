"""Plan groups of users that have their own epsilon (Section III-B of the paper).

Every group is planned on its own, and their results are then combined in every way. The best
weights are known before the survey, because the noise of each group is. How the answers spread is
not known; the largest possible spread, that of equally frequent items, is assumed. Recommended is
what holds whatever the groups answer: weights by size (uwa), or one survey of everybody (cpa).
Weights by variance are named beside it, with their condition.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from faircount.core import plain
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation import weighting
from faircount.planning.option import Option, format_percent
from faircount.planning.plan import Plan, plan
from faircount.planning.request import TABLE

WHY = {
    "uwa": "every user counts the same, whatever the groups answer",
    "cpa": "one survey of everybody has so much less noise that it wins at the smallest epsilon",
}
"""The ways that are unbiased whatever the groups answer, and what speaks for each."""

# Columns of a plan for groups as a data frame.
FRAME_COLUMNS = ("users", "epsilon", "mechanism", "half_width_95", "standard_error", "weight")

# Half-width of a 95% interval in standard errors of a normal distribution.
NORMAL_95 = 1.96

_LEAST_VARIANCE = 1e-12  # keeps the weights finite where a group has no noise


@dataclass(frozen=True)
class Combined:
    """One way of combining the groups; errors are per item, as shares of all users.

    noise_error: error of the privacy noise alone, which the paper's Table II shows
    """

    weights: tuple[float, ...]
    standard_error: float
    noise_error: float


@dataclass(frozen=True)
class GroupsPlan:
    """A plan for each group, and the error of all of them together under each set of weights.

    equal_epsilon: at which one survey of everybody has the error of the best weights by variance,
                   without assuming that the groups answer alike; None where it was not found
    """

    plans: Mapping[str, Plan]
    combined: Mapping[str, Combined]
    equal_epsilon: float | None = None

    @property
    def best(self) -> str:
        """Name of the way with the smallest error that assumes nothing about the groups."""
        return best_way(self.combined)

    @property
    def best_if_alike(self) -> str:
        """Name of the weights with the smallest error, if the groups answer alike."""
        return best_way(self.combined, if_alike=True)

    @property
    def _noise_95(self) -> float:
        """The smallest 95% error of all ways, privacy noise alone."""
        return NORMAL_95 * min(way.noise_error for way in self.combined.values())

    @property
    def _average_frequency(self) -> float:
        return 1 / next(iter(self.plans.values())).request.items

    @property
    def worthwhile(self) -> bool:
        """Whether that error stays below the average frequency 1/N."""
        # Judged by the noise, because the spread of the answers is only an assumption.
        return self._noise_95 < self._average_frequency

    @property
    def verdict(self) -> str:
        """One sentence: which weights, and why; or that nothing should be run."""
        if not self.worthwhile:
            return (
                "do not run this: even together the groups have a 95% error of "
                f"{format_percent(self._noise_95, '±')}, more than an average item's "
                f"{format_percent(self._average_frequency)}; ask more users, offer fewer items or "
                "allow larger epsilons"
            )
        return describe_ways(self.combined, self.equal_epsilon)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the groups' own questions."""
        found = []
        for name, group in self.plans.items():
            found += [f"group {name}: {note}" for note in group.notes]
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        ways = {}
        for name, way in self.combined.items():
            ways[name] = {**asdict(way), "weights": list(way.weights)}
        groups = []
        for name, group in self.plans.items():
            groups.append({"group": name, "epsilon": group.request.epsilon, **group.to_dict()})
        return {
            **plain.JSON_VERSION,
            "best": self.best,
            "best_if_alike": self.best_if_alike,
            "verdict": self.verdict,
            "worthwhile": self.worthwhile,
            "combined": ways,
            "equal_epsilon": self.equal_epsilon,
            "groups": groups,
            "notes": list(self.notes),
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per group with its weight in the best way.

        Its `attrs` hold verdict and best weights.
        """
        columns = dict(zip(FRAME_COLUMNS, map(list, zip(*self._rows(), strict=True)), strict=True))
        facts = {"verdict": self.verdict, "best": self.best}
        return plain.data_frame(columns, list(self.plans), "group", facts)

    def _rows(self) -> list[tuple[Any, ...]]:
        """Users, epsilon, mechanism, its errors, and the weight in the best way."""
        weights: tuple[float | None, ...] = self.combined[self.best].weights
        if len(weights) < len(self.plans):  # one survey of everybody has no weights of groups
            weights = (None,) * len(self.plans)
        rows = []
        for (name, group), weight in zip(self.plans.items(), weights, strict=True):
            best = _best_of(name, group)
            errors = group.forecast or best
            size = (group.request.users, group.request.epsilon)
            rows.append((*size, best.name, errors.half_width_95, errors.standard_error, weight))
        return rows

    def __repr__(self) -> str:
        return f"<GroupsPlan: {self.verdict}>"

    def _repr_html_(self) -> str:
        rows = []
        for name, row in zip(self.plans, self._rows(), strict=True):
            users, epsilon, mechanism, half, error, _ = row
            errors = [format_percent(half, "±"), format_percent(error)]
            rows.append([plain.escape_html(name), f"{users:,}", f"{epsilon:g}", mechanism, *errors])
        headings = ["group", "users", "epsilon", "mechanism", "95% error", "standard error"]
        html = plain.html_paragraph(self.verdict, strong=True) + plain.html_table(headings, rows)
        for note in self.notes:
            html += plain.html_paragraph(f"Note: {note}")
        return html


def best_way(combined: Mapping[str, Combined], *, if_alike: bool = False) -> str:
    """Name of the way with the smallest error, of those that need the condition or of the others.

    if_alike: of the weights that assume that the groups answer alike
    """
    # Never across both: a smaller error under a condition must not beat one without.
    names = [name for name in combined if (name not in WHY) == if_alike]
    return min(names, key=lambda name: combined[name].standard_error)


def describe_ways(combined: Mapping[str, Combined], equal_epsilon: float | None) -> str:
    """Which way to take and why, and what is to be gained under the condition."""
    best = best_way(combined)
    error = combined[best].standard_error
    text = f"combine with {best}: standard error {format_percent(error)}; {WHY[best]}"
    if best == "cpa":
        text += (
            ", where the groups by size (uwa) have "
            f"{format_percent(combined['uwa'].standard_error)}: one level for all is better "
            "unless the groups answer alike"
        )
    beside = best_way(combined, if_alike=True)
    smaller = combined[beside].standard_error
    if smaller >= error:
        return text
    text += f"; only if the groups answer alike, {beside} has {format_percent(smaller)}"
    if equal_epsilon is not None:
        text += f", and so has one level of {equal_epsilon:.2g} for all without this condition"
    return text


def plan_groups(
    groups: Mapping[str, tuple[int, float]],
    items: int,
    delta: float,
    *,
    purpose: str = TABLE,
    **options: Any,
) -> GroupsPlan:
    """Plan groups that are given as name -> (users, epsilon).

    All groups have the same delta, and `purpose` and `options` are those of the `plan` of each.
    """
    # One group has nothing to be weighted against.
    if len(groups) < 2:
        raise ParameterError("at least 2 groups are needed: for one group use plan without groups")

    def plan_one(users: int, epsilon: float) -> Plan:
        return plan(users, items, epsilon, delta, purpose=purpose, **options)

    plans = {name: plan_one(users, epsilon) for name, (users, epsilon) in groups.items()}
    expected = [_expect(name, group) for name, group in plans.items()]
    sizes = [size for size, _ in expected]
    combined = combine_errors(sizes, [error for _, error in expected], items)

    # The alternative is one survey of everybody, which must keep to the strictest epsilon.
    everybody = sum(users for users, _ in groups.values())
    strictest = min(epsilon for _, epsilon in groups.values())

    def error_of_one_level(epsilon: float) -> float | None:
        pooled = plan_one(everybody, epsilon)
        return None if pooled.recommended is None else _expect("", pooled)[1]

    error = error_of_one_level(strictest)
    if error is None:
        return GroupsPlan(plans, combined)
    combined["cpa"] = Combined((1.0,), error, error)
    smallest = combined[best_way(combined, if_alike=True)].standard_error
    return GroupsPlan(plans, combined, find_epsilon(smallest, strictest, error_of_one_level))


def find_epsilon(
    wanted: float, start: float, error_at: Callable[[float], float | None]
) -> float | None:
    """The epsilon, from `start` on, at which one survey has this error, to about 1%."""
    epsilon = start
    for _ in range(8):
        error = error_at(epsilon)
        if not error or wanted <= 0:
            return None
        if abs(error / wanted - 1) < 0.01:
            return epsilon
        # The error of added noise falls like 1 / epsilon, so that one step is nearly enough.
        epsilon *= error / wanted
    return None


def _best_of(name: str, group: Plan) -> Option:
    if group.recommended is None:
        raise RefusedError(
            f"group {name}: no mechanism meets the budget; leave it out or merge it with another "
            "group"
        )
    return group.recommended


def _expect(name: str, group: Plan) -> tuple[int, float]:
    """How many people of a group will be counted, and its standard error."""
    best = _best_of(name, group)
    # A survey is not run as the option says, but with proofs and a minimum of its own.
    if group.forecast is not None:
        return group.forecast.responses, group.forecast.standard_error
    return group.request.staying, best.standard_error or 0.0


def combine_errors(
    sizes: Sequence[int], errors: Sequence[float], items: int
) -> dict[str, Combined]:
    """The errors of all groups together under each set of weights.

    sizes, errors: how many people of each group are counted, and its standard error
    """
    # V_g of the paper: n_g times the sum over items of the estimate's variance.
    pairs = zip(sizes, errors, strict=True)
    variances = [max(size * items * error**2, _LEAST_VARIANCE) for size, error in pairs]
    # Equally frequent items have the largest possible spread.
    spread = 1 - 1 / items

    def error(weights: Floats, against: str) -> float:
        total = weighting.expected_error(weights, sizes, variances, spread, against=against)
        return math.sqrt(total / items)

    ways = {
        "uwa": weighting.uwa(sizes),
        "vwa": weighting.vwa(sizes, variances),
        "owa": weighting.owa(sizes, variances),
        "total": weighting.total_variance(sizes, variances, spread),
    }
    combined = {}
    for name, weights in ways.items():
        combined[name] = Combined(
            tuple(np.asarray(weights).tolist()),
            error(weights, "population"),
            error(weights, "noise"),
        )
    return combined
