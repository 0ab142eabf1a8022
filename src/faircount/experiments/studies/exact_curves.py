"""What the figures become under exact accounting: curves that are computed, not simulated.

Every curve is a list of records for a CSV and for a picture. Privacy is against one participant who reads the result
unless it is said otherwise.
"""

import math
from collections.abc import Callable, Iterable

import numpy as np

from faircount.accounting import exact, paper, two_stage
from faircount.accounting.divergence import largest_within
from faircount.accounting.gaussian import analytic_sigma
from faircount.core.search import first_whole
from faircount.estimation import weighting
from faircount.experiments.studies.equal_privacy import DELTA, METHODS, mechanism
from faircount.experiments.studies.fig1 import EPSILONS, sampling_error
from faircount.experiments.studies.study import DATA, USERS, Value, holders
from faircount.experiments.studies.weighted_groups import GROUPS, SETTINGS

Record = dict[str, Value]


def having(records: list[Record], **wanted: object) -> list[Record]:
    """The records that have all the wanted values."""
    return [each for each in records if all(each[name] == value for name, value in wanted.items())]


HALF_WIDTH = 0.02
ITEM = 0.1
"""Users needed: for a 95% interval of +-2 points around the frequency of an item that one user in ten holds."""

ITEMS = 30
SHARE = 0.02
"""Users needed with DPDS: every item is known to be held by at least this share of the users."""

WIDE_EPSILONS = (*EPSILONS, 1.5, 2.0)
FLOORS = tuple(int(each) for each in np.unique(np.round(np.geomspace(2, 2000, 40))))
FLOOR_EPSILONS = (0.1, 0.5, 1.0, 2.0)
TAIL = 0.025
NORMAL = 1.959963984540054
"""97.5% quantile of the normal law."""


# Users needed for +-2 points.


def users_needed() -> list[Record]:
    """For every mechanism and epsilon the fewest users whose privacy noise stays within +-2 points 19 times in 20."""
    return [
        {"method": method, "epsilon": epsilon, "delta": DELTA, "users": _fewest(method, epsilon)}
        for epsilon in WIDE_EPSILONS
        for method in METHODS
    ]


def _fewest(method: str, epsilon: float) -> int:
    """By doubling, then bisection; the half width falls with the number of users but for the grid of whole counts."""
    low, high = 1, 64
    while half_width(method, epsilon, high) > HALF_WIDTH:
        low, high = high, 2 * high
    return first_whole(lambda users: half_width(method, epsilon, users) <= HALF_WIDTH, low + 1, high)


def half_width(method: str, epsilon: float, users: int) -> float:
    """Half width of a 95% interval: the noise's own quantile, or normal where the noise is a sum of many coins."""
    if method == "dpdg":
        return NORMAL * analytic_sigma(epsilon, DELTA) / math.sqrt(users * (users - 1))  # one insider's piece is known
    if method == "dpds":
        crowd = math.floor(SHARE * users) - 2  # without the user in question and one insider
        p = exact.sampling_probability(max(crowd, 0), epsilon, DELTA)
        return NORMAL * math.sqrt((1 - p) * ITEM / (p * users))
    channel = mechanism(method, (users, *(0,) * (ITEMS - 1)), epsilon).channel(users)
    if channel.noise is None:
        return NORMAL * math.sqrt(float(channel.variance(np.array([ITEM]), users)[0]))
    low, high = channel.noise.quantiles(TAIL)
    return max(channel.noise.mean - low, high - channel.noise.mean) / users


# The floor: what it allows, and what it buys at best.


def floor_effect() -> list[Record]:
    """Largest private p at every floor k, and the best case of DPDS (every item has k + 1 holders) against Laplace.

    Then n = N (k+1), and the ratio of the two summed errors, (1-p)/(p n) against N v / n^2, depends on k alone.
    """
    records: list[Record] = []
    for epsilon in FLOOR_EPSILONS:
        noise = laplace_variance(epsilon)
        for floor in FLOORS:
            p = exact.sampling_probability(floor - 1, epsilon, DELTA)
            ratio = (1 - p) / p * (floor + 1) / noise
            records.append({"epsilon": epsilon, "delta": DELTA, "floor": floor, "p": p, "error_ratio": ratio})
    return records


def laplace_variance(epsilon: float) -> float:
    """2a/(1-a)^2, a = e^(-epsilon/2), in squared counts."""
    a = math.exp(-epsilon / 2)
    return 2 * a / (1 - a) ** 2


# What the paper's p gives, where its floor is met and where it is not.


def floor_unmet() -> list[Record]:
    """Exact delta of DPDS with p = 1 - e^-epsilon beside Theorem 1's, for an outsider, on data as they are.

    "gowalla-12" is the literal reading of the paper: 12 cells, the rarest with 0.15% of the users. "assumed" is what
    somebody would compute who takes for granted that 1% of the users hold every item.
    """
    assumed = math.ceil(0.01 * USERS)
    cases = [(data, "met", min(holders(data)), len(holders(data))) for data in DATA]
    literal = holders("gowalla-12", USERS, 0.0)
    cases += [("gowalla-12", "assumed", assumed, len(literal)), ("gowalla-12", "real", min(literal), len(literal))]
    return [_privacy(*case, epsilon) for case in cases for epsilon in EPSILONS]


def _privacy(data: str, floor: str, smallest: int, items: int, epsilon: float) -> Record:
    theorem = paper.theorem1_delta(USERS, items, smallest, epsilon) if smallest else None
    p = paper.theorem1_p(epsilon)
    return {
        "data": data,
        "floor": floor,
        "smallest_count": smallest,
        "items": items,
        "epsilon": epsilon,
        "p": p,
        "theorem1_delta": "" if theorem is None else theorem,
        "exact_delta": exact.sampling_delta(max(smallest - 1, 0), p, epsilon),
    }


# Figure 3: at equal exact privacy against S1, who sees the sets and reads the result.

TWO_STAGE = {"dpds": None, "uniform": 0.0, "adaptive 0.5": 0.5, "adaptive 1": 1.0, "adaptive 2": 2.0}
TWO_STAGE_ITEMS, TWO_STAGE_REPORTED = 30, 12
TWO_STAGE_FLOORS = (10, 20, 33, 50, 75, 100, 150, 200, 300)
TWO_STAGE_EPSILON = 1.0


def two_stage_exact() -> list[Record]:
    """Per-user error (1-q)/q at the largest p that is exactly (1, 1e-5)-private against S1, over the floor.

    DPDS has no S1; it stands beside as what the same privacy buys without the second stage.
    """
    records: list[Record] = []
    for floor in TWO_STAGE_FLOORS:
        for name, budget in TWO_STAGE.items():
            p, seen = two_stage_probability(floor, budget, TWO_STAGE_EPSILON)
            base: Record = {"method": name, "floor": floor, "epsilon": TWO_STAGE_EPSILON, "delta": DELTA}
            records.append(base | {"p": p, "error_per_user": (1 - p * seen) / (p * seen)})
    return records


def two_stage_probability(floor: int, budget: float | None, epsilon: float) -> tuple[float, float]:
    """(largest private p, probability that an active user reports its own item); no budget means DPDS."""
    if budget is None:
        return exact.sampling_probability(floor, epsilon, DELTA), 1.0
    N, M, gamma = TWO_STAGE_ITEMS, TWO_STAGE_REPORTED, math.exp(budget)
    p = largest_within(lambda each: two_stage.s1_delta(N, M, each, gamma, floor, epsilon), DELTA)
    return p, M * gamma / (M * gamma + N - M)


# Figure 4 and Table II: groups at their own exact privacy.


PURE = ("laplace", "oue")
"""Mechanisms that need no delta."""


def groups_exact() -> list[Record]:
    """Weighted error on uniform data when every group is exactly (epsilon_g, 1e-5)-private, beside the paper's p.

    The paper's p comes with the exact delta of its worst group, in which the rarest item has a quarter of its holders.
    "one laplace survey" has no groups: all users at the smallest epsilon.
    """
    people, size = holders("uniform", USERS, 0.0), USERS // GROUPS
    rarest, items = min(people) // GROUPS, len(people)
    group = (*(rarest,) * (items - 1), size - rarest * (items - 1))
    records: list[Record] = []
    for setting, epsilons in SETTINGS.items():
        worst = max(exact.sampling_delta(rarest - 1, paper.theorem1_p(each), each) for each in epsilons)
        variances = [USERS * sampling_error(USERS, each) for each in epsilons]
        records.append(_grouped(setting, "dpds, the paper's p", variances, worst))
        for method in ("dpds", "decoys", "dpdg", "laplace", "oue"):
            channels = [mechanism(method, group, each).channel(size) for each in epsilons]
            variances = [weighting.group_variance(each, items, size) for each in channels]
            records.append(_grouped(setting, method, variances, 0.0 if method in PURE else DELTA))
        single = items * laplace_variance(min(epsilons)) / USERS**2
        records.append({"setting": setting, "method": "one laplace survey", "error": single, "worst_delta": 0.0})
    return records


def _grouped(setting: str, method: str, variances: Iterable[float], worst: float) -> Record:
    v, sizes = np.array(list(variances)), np.full(GROUPS, USERS // GROUPS)
    error = weighting.expected_error(weighting.vwa(sizes, v), sizes, v)
    return {"setting": setting, "method": method, "error": error, "worst_delta": worst}


CURVES: dict[str, Callable[[], list[Record]]] = {
    "fig2_exact": users_needed,
    "floor_effect": floor_effect,
    "floor_unmet": floor_unmet,
    "fig3_exact": two_stage_exact,
    "fig4_exact": groups_exact,
}
"""By the names of the CSV files and pictures."""
