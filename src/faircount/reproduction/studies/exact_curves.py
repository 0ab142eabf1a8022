"""What the figures become under exact accounting: curves that are computed, not simulated.

Every curve is a list of records for a CSV file and a picture. The adversary is one participant who
reads the result, unless a curve says otherwise.
"""

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from faircount.accounting import exact, paper, two_stage
from faircount.accounting.divergence import largest_within
from faircount.accounting.gaussian import analytic_sigma
from faircount.core.search import first_integer
from faircount.estimation import weighting
from faircount.reproduction.studies.equal_privacy import DELTA, METHODS, make_mechanism
from faircount.reproduction.studies.fig1 import EPSILONS, sampling_error
from faircount.reproduction.studies.study import DATA, FLOOR_SHARE, USERS, Value, sampled_counts
from faircount.reproduction.studies.weighted_groups import GROUPS, SETTINGS

Record = dict[str, Value]


def select_records(records: list[Record], **wanted: object) -> list[Record]:
    """The records that have all the wanted values."""
    return [record for record in records if wanted.items() <= record.items()]


WIDE_EPSILONS = (*EPSILONS, 1.5, 2.0)
FLOORS = tuple(map(int, np.unique(np.round(np.geomspace(2, 2000, 40)))))
FLOOR_EPSILONS = (0.1, 0.5, 1.0, 2.0)

# The 97.5% quantile of the normal distribution, for 95% intervals.
NORMAL_QUANTILE = 1.959963984540054
TAIL = 0.025


# Figure 2: users needed for an interval of +-2 percentage points.

# The interval is for an item that one user in ten chooses.
HALF_WIDTH = 0.02
ITEM_FREQUENCY = 0.1
ITEMS = 30

# For DPDS it is assumed that at least this share of the users is known to choose every item.
KNOWN_SHARE = 0.02


def compute_users_needed() -> list[Record]:
    """The fewest users whose privacy noise stays within +-2 points in 19 of 20 cases."""
    records: list[Record] = []
    for epsilon in WIDE_EPSILONS:
        for method in METHODS:
            users = _find_fewest_users(method, epsilon)
            records.append({"method": method, "epsilon": epsilon, "delta": DELTA, "users": users})
    return records


def _find_fewest_users(method: str, epsilon: float) -> int:
    # By doubling, then by bisection. The half width decreases with the number of users, apart from
    # the effect of whole counts.
    low = 1
    high = 64
    while half_width(method, epsilon, high) > HALF_WIDTH:
        low = high
        high *= 2
    return first_integer(
        lambda users: half_width(method, epsilon, users) <= HALF_WIDTH, low + 1, high
    )


def half_width(method: str, epsilon: float, users: int) -> float:
    """Half width of a 95% interval: exact for noise, and normal for sums of many coins."""
    if method == "dpdg":
        # One insider knows its own piece of the noise, so users - 1 pieces must protect.
        return NORMAL_QUANTILE * analytic_sigma(epsilon, DELTA) / math.sqrt(users * (users - 1))
    if method == "dpds":
        # Without the user in question and one insider.
        others = max(math.floor(KNOWN_SHARE * users) - 2, 0)
        p = exact.sampling_probability(others, epsilon, DELTA)
        return NORMAL_QUANTILE * math.sqrt((1 - p) * ITEM_FREQUENCY / (p * users))
    # The noise of the other mechanisms does not depend on the counts: any will do.
    counts = (users, *(0,) * (ITEMS - 1))
    channel = make_mechanism(method, counts, epsilon).channel(users)
    if channel.noise is None:
        variance = float(channel.variance(np.array([ITEM_FREQUENCY]), users)[0])
        return NORMAL_QUANTILE * math.sqrt(variance)
    low, high = channel.noise.quantiles(TAIL)
    return max(channel.noise.mean - low, high - channel.noise.mean) / users


# The floor: what it allows, and what it is worth at best.


def compute_floor_effect() -> list[Record]:
    """The largest private p at every floor k, and the error of DPDS over that of Laplace.

    It is the best case of DPDS: every item has k + 1 holders. Then n = N (k+1), and the ratio of
    the two summed errors, (1-p)/(p n) against N v / n^2, depends on k alone.
    """
    records: list[Record] = []
    for epsilon in FLOOR_EPSILONS:
        noise = laplace_variance(epsilon)
        for floor in FLOORS:
            # One of the k holders is the insider.
            p = exact.sampling_probability(floor - 1, epsilon, DELTA)
            ratio = (1 - p) / p * (floor + 1) / noise
            records.append(
                {"epsilon": epsilon, "delta": DELTA, "floor": floor, "p": p, "error_ratio": ratio}
            )
    return records


def laplace_variance(epsilon: float) -> float:
    """2a/(1-a)^2, a = e^(-epsilon/2), in squared counts."""
    a = math.exp(-epsilon / 2)
    return 2 * a / (1 - a) ** 2


# Figure 1: the privacy of the paper's p, where its floor is met and where it is not.


def compute_floor_unmet() -> list[Record]:
    """Exact delta of DPDS with p = 1 - e^-epsilon beside that of Theorem 1, for an outsider.

    "gowalla-12" is the literal reading of the paper: 12 cells, the rarest with 0.15% of the users.
    "assumed" is what follows for somebody who takes for granted that 1% of the users choose every
    item.
    """
    cases = []
    for data in DATA:
        counts = sampled_counts(data)
        cases.append((data, "met", min(counts), len(counts)))
    literal = sampled_counts("gowalla-12", USERS, 0.0)
    cases.append(("gowalla-12", "assumed", math.ceil(FLOOR_SHARE * USERS), len(literal)))
    cases.append(("gowalla-12", "real", min(literal), len(literal)))
    return [_describe_privacy(*case, epsilon) for case, epsilon in product(cases, EPSILONS)]


def _describe_privacy(data: str, floor: str, smallest: int, items: int, epsilon: float) -> Record:
    p = paper.theorem1_p(epsilon)
    theorem = paper.theorem1_delta(USERS, items, smallest, epsilon) if smallest else None
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


# Figure 3: two-stage sampling at equal exact privacy against S1, who sees the sets and the result.

# epsilon* by method; DPDS has no second stage.
TWO_STAGE = {
    "dpds": None,
    "uniform": 0.0,
    "adaptive 0.5": 0.5,
    "adaptive 1": 1.0,
    "adaptive 2": 2.0,
}
TWO_STAGE_ITEMS = 30
TWO_STAGE_REPORTED = 12
TWO_STAGE_FLOORS = (10, 20, 33, 50, 75, 100, 150, 200, 300)
TWO_STAGE_EPSILON = 1.0


def compute_two_stage() -> list[Record]:
    """Error per user, (1-q)/q, at the largest p that is (1, 1e-5)-private against S1.

    DPDS, which has no S1, shows what the same privacy costs without the second stage.
    """
    records: list[Record] = []
    for floor in TWO_STAGE_FLOORS:
        for name, budget in TWO_STAGE.items():
            p, p_chi = two_stage_probability(floor, budget, TWO_STAGE_EPSILON)
            q = p * p_chi
            records.append(
                {
                    "method": name,
                    "floor": floor,
                    "epsilon": TWO_STAGE_EPSILON,
                    "delta": DELTA,
                    "p": p,
                    "error_per_user": (1 - q) / q,
                }
            )
    return records


def two_stage_probability(floor: int, budget: float | None, epsilon: float) -> tuple[float, float]:
    """The largest private p, and p_chi: how likely a sampled user reports its own item."""
    if budget is None:
        return exact.sampling_probability(floor, epsilon, DELTA), 1.0
    N = TWO_STAGE_ITEMS
    M = TWO_STAGE_REPORTED
    gamma = math.exp(budget)
    p = largest_within(lambda p: two_stage.coordinator_delta(N, M, p, gamma, floor, epsilon), DELTA)
    return p, M * gamma / (M * gamma + N - M)


# Figure 4 and Table II: groups at their own exact privacy.

# Mechanisms that need no delta.
PURE = ("laplace", "oue")


def compute_groups() -> list[Record]:
    """Weighted error on uniform data when every group is exactly (epsilon_g, 1e-5)-private.

    The paper's p comes with the exact delta of its worst group, in which the rarest item has a
    quarter of its holders. "one laplace survey" has no groups: all users at the smallest epsilon.
    """
    counts = sampled_counts("uniform", USERS, 0.0)
    items = len(counts)
    size = USERS // GROUPS
    rarest = min(counts) // GROUPS
    # The last item gets what the others leave: the mechanisms need only the sum and the minimum.
    group = (*(rarest,) * (items - 1), size - rarest * (items - 1))
    records: list[Record] = []
    for setting, epsilons in SETTINGS.items():
        worst = max(
            exact.sampling_delta(rarest - 1, paper.theorem1_p(epsilon), epsilon)
            for epsilon in epsilons
        )
        variances = [USERS * sampling_error(USERS, epsilon) for epsilon in epsilons]
        records.append(_describe_groups(setting, "dpds, the paper's p", variances, worst))
        for method in ("dpds", "decoys", "dpdg", "laplace", "oue"):
            variances = []
            for epsilon in epsilons:
                channel = make_mechanism(method, group, epsilon).channel(size)
                variances.append(weighting.group_variance(channel, items, size))
            delta = 0.0 if method in PURE else DELTA
            records.append(_describe_groups(setting, method, variances, delta))
        single = items * laplace_variance(min(epsilons)) / USERS**2
        records.append(
            {
                "setting": setting,
                "method": "one laplace survey",
                "error": single,
                "worst_delta": 0.0,
            }
        )
    return records


def _describe_groups(
    setting: str, method: str, variances: Sequence[float], worst_delta: float
) -> Record:
    v = np.array(variances)
    sizes = np.full(GROUPS, USERS // GROUPS)
    error = weighting.expected_error(weighting.vwa(sizes, v), sizes, v)
    return {"setting": setting, "method": method, "error": error, "worst_delta": worst_delta}


# By the names of the CSV files and pictures.
CURVES: dict[str, Callable[[], list[Record]]] = {
    "fig2_exact": compute_users_needed,
    "floor_effect": compute_floor_effect,
    "floor_unmet": compute_floor_unmet,
    "fig3_exact": compute_two_stage,
    "fig4_exact": compute_groups,
}
