"""Figure 1: DPDS against DPDG over epsilon and several delta, 1,000 users of each data set.

DPDG runs with the paper's classical sigma and the correct pieces of noise (variance G^2 sigma^2 / n
for every user) and also, marked as such, with the pieces as printed, whose sum has a variance that
is n times too small.
"""

import math
from dataclasses import dataclass
from itertools import pairwise, product

from faircount.accounting import exact
from faircount.accounting.gaussian import analytic_sigma, classical_sigma
from faircount.accounting.paper import theorem1_delta, theorem1_p
from faircount.core.search import last_float
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.secret_shared import SharedMechanism
from faircount.reproduction.data.populations import get_population
from faircount.reproduction.studies.judging import (
    THEORY,
    Verdict,
    format_count,
    judge_all,
    judge_number,
    judge_readings,
    rescale,
)
from faircount.reproduction.studies.squared_errors import make_noise_study
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    TITLES,
    USERS,
    Line,
    Value,
    add_user_level,
    counts_at,
    find_line,
    sampled_counts,
)
from faircount.reproduction.sweep.sweep import Point

# The grid of the paper. It names 1e-7 and 0.5 among its deltas; the others lie between.
EPSILONS = tuple(round(0.1 * step, 1) for step in range(1, 11))
DELTAS = (1e-7, 1e-5, 1e-3, 0.1, 0.5)
PRINTED_DELTAS = (1e-7, 0.5)

SAMPLING = "dpds"
GAUSSIAN = "dpdg"
AS_PRINTED = "dpdg as printed"


def points() -> list[Point]:
    """All epsilons, methods and data sets; DPDG at every delta; three points at user level."""
    methods: list[dict[str, str | float]] = [{"method": SAMPLING}]
    methods += [{"method": GAUSSIAN, "delta": delta} for delta in DELTAS]
    methods += [{"method": AS_PRINTED, "delta": delta} for delta in PRINTED_DELTAS]
    # The data sets are innermost, because the distribution of DPDG's noise serves all three.
    chosen: list[Point] = [
        {"data": data, "users": USERS, "epsilon": epsilon, "how": COUNT_LEVEL, **method}
        for epsilon, method, data in product(EPSILONS, methods, DATA)
    ]
    return add_user_level(chosen, _is_simulated)


def _is_simulated(point: Point) -> bool:
    # In the middle of the figure, at the strongest delta.
    place = (point["data"], point["epsilon"])
    return place == ("gowalla", 0.5) and point.get("delta", 1e-7) == 1e-7


def mechanism(point: Point) -> SharedMechanism:
    """DPDS with the p of Theorem 1, or DPDG with the paper's sigma."""
    users = int(point["users"])
    items = len(counts_at(point))
    if point["method"] == SAMPLING:
        return DPDS(items=items, users=users, p=theorem1_p(float(point["epsilon"])))
    # The paper's comparison has no colluding insiders.
    return DPDG(
        items=items,
        users=users,
        epsilon=float(point["epsilon"]),
        delta=float(point["delta"]),
        calibration="classical",
        share="printed" if point["method"] == AS_PRINTED else "corrected",
        insiders=0,
    )


def sampling_error(users: int, epsilon: float) -> float:
    """(1-p)/(p n) with the paper's p: 1 / (n (e^epsilon - 1))."""
    return 1 / (users * math.expm1(epsilon))


def gaussian_error(users: int, items: int, epsilon: float, delta: float) -> float:
    """N V_G = N 4 ln(1.25/delta) / (n epsilon)^2: the continuous Gaussian, the paper's sigma."""
    return items * 2 * (classical_sigma(epsilon, delta) / users) ** 2


# What the text says about the figure (Section IV-B1).

PLACE = "IV-B1"

# Views of Gowalla that "cells of 5 x 5" may mean: the cells with at least 1% of the users, all of
# 5 by 5 degrees, and a grid of 5 by 5.
CELL_READINGS = ("gowalla", "gowalla-12", "gowalla-25")

# "over 90%" at delta = 1e-7, and "better when epsilon < 0.6" at delta = 0.5.
STRONG_DELTA = 1e-7
CLAIMED_GAIN = 0.9
WEAK_DELTA = 0.5
CLAIMED_CROSSING = 0.6

# 0.6 is printed with one digit, so a crossing from 0.55 on agrees with it.
CROSSING_TOLERANCE = 0.05


def cell_counts() -> dict[str, int]:
    """How many cells each reading has, by a name for it."""
    numbers = [len(get_population(name).counts) for name in CELL_READINGS]
    return {f"{number} cells": number for number in numbers}


def crossing_epsilon(items: int, delta: float, users: int = USERS) -> float:
    """The epsilon below which DPDS has the smaller error.

    It solves 1/(e^eps - 1) = N 4 ln(1.25/delta) / (n eps^2).
    """

    def is_better(epsilon: float) -> bool:
        return sampling_error(users, epsilon) < gaussian_error(users, items, epsilon, delta)

    # (e^x - 1) / x^2, on which the comparison depends, decreases up to x = 1.5936.
    return last_float(is_better, 1e-9, 1.5936, 1e-9)


def items_for_crossing(epsilon: float, delta: float, users: int = USERS) -> float:
    """How many items would put the crossing at this epsilon."""
    return sampling_error(users, epsilon) / gaussian_error(users, 1, epsilon, delta)


def gain(items: int, epsilon: float, delta: float) -> float:
    """By how much DPDS reduces the error of DPDG."""
    return 1 - sampling_error(USERS, epsilon) / gaussian_error(USERS, items, epsilon, delta)


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge every number and claim of the text on Figure 1."""
    return [
        _judge_small_error(lines),
        _judge_gain(lines),
        _judge_crossing(),
        *_judge_other_data(),
        _judge_same_privacy(),
        _judge_small_budget(),
        _judge_theorem1(),
    ]


def _judge_small_error(lines: list[Line]) -> Verdict:
    line = find_line(lines, data="gowalla", epsilon=0.1, method=SAMPLING, how=COUNT_LEVEL)
    # The paper does not say whether it sums over the items: both readings are tried.
    theory = {
        "summed over items": line.expected,
        "per item": rescale(line.expected, 1 / line.items),
    }
    claim = "DPDS has an MSE of around 0.01 when epsilon = 0.1 on Gowalla"
    ours = f"measured {line.mean:.3g} summed, {line.mean / line.items:.3g} per item"
    return judge_number("fig1", PLACE, claim, "0.01", theory, ours)


def _judge_gain(lines: list[Line]) -> Verdict:
    here: dict[str, Value] = {"data": "gowalla", "epsilon": 0.1, "how": COUNT_LEVEL}
    sampled = find_line(lines, method=SAMPLING, **here).mean
    noisy = find_line(lines, method=GAUSSIAN, delta=STRONG_DELTA, **here).mean
    gains = {name: gain(items, 0.1, STRONG_DELTA) for name, items in cell_counts().items()}
    listed = ", ".join(f"{name} {value:.1%}" for name, value in gains.items())
    cells = len(sampled_counts("gowalla"))
    one_item = gaussian_error(USERS, 1, 0.1, STRONG_DELTA)
    # The gain is above 90% when N times the error of one item is ten times the error of DPDS.
    least = math.ceil(sampling_error(USERS, 0.1) / (1 - CLAIMED_GAIN) / one_item)
    return Verdict(
        "fig1",
        PLACE,
        "That is an improvement of over 90% on the Gaussian mechanism when delta = 1e-7 (Gowalla, "
        "epsilon = 0.1)",
        "over 90%",
        f"measured {1 - sampled / noisy:.1%} with {cells} cells; theory: {listed}",
        judge_readings({name: value > CLAIMED_GAIN for name, value in gains.items()}),
        THEORY,
        f"with both errors summed over the items, over 90% needs at least {least} items; the paper "
        "does not print how many it had",
    )


def _judge_crossing() -> Verdict:
    crossings = {name: crossing_epsilon(items, WEAK_DELTA) for name, items in cell_counts().items()}
    needed = math.ceil(items_for_crossing(CLAIMED_CROSSING, WEAK_DELTA))
    return Verdict(
        "fig1",
        PLACE,
        "DPDS even performs better than the Gaussian mechanism with delta = 0.5 when epsilon < 0.6 "
        "(Gowalla)",
        "epsilon < 0.6",
        _list_crossings(crossings),
        judge_readings({name: _reaches_claim(value) for name, value in crossings.items()}),
        THEORY,
        f"like for like, a crossing at 0.6 needs {needed} items; no reading of the paper's cells "
        "has so many",
    )


def _reaches_claim(crossing: float) -> bool:
    return crossing >= CLAIMED_CROSSING - CROSSING_TOLERANCE


def _list_crossings(crossings: dict[str, float]) -> str:
    listed = ", ".join(f"{value:.3f} ({name})" for name, value in crossings.items())
    return f"better below epsilon = {listed}"


def _judge_other_data() -> list[Verdict]:
    items = {TITLES[data]: len(sampled_counts(data)) for data in DATA[1:]}
    gains = {name: gain(number, 0.1, STRONG_DELTA) for name, number in items.items()}
    crossings = {name: crossing_epsilon(number, WEAK_DELTA) for name, number in items.items()}
    claim = "Similar results can be found over Census-Income and Synthetic"
    return [
        Verdict(
            "fig1",
            PLACE,
            f"{claim}: over 90% better at epsilon = 0.1, delta = 1e-7",
            "over 90%",
            ", ".join(f"{name} {value:.1%}" for name, value in gains.items()),
            judge_all([value > CLAIMED_GAIN for value in gains.values()]),
            THEORY,
            f"summed over {' and '.join(map(str, items.values()))} items",
        ),
        Verdict(
            "fig1",
            PLACE,
            f"{claim}: better than delta = 0.5 when epsilon < 0.6",
            "epsilon < 0.6",
            _list_crossings(crossings),
            judge_all(list(map(_reaches_claim, crossings.values()))),
            THEORY,
            "as on Gowalla",
        ),
    ]


@dataclass(frozen=True, slots=True)
class PrivacyLevel:
    """The delta of DPDS with the paper's p against an outsider: by Theorem 1, and exactly."""

    data: str
    epsilon: float
    theorem1: float
    exact: float


def privacy_levels() -> list[PrivacyLevel]:
    """The privacy of DPDS at every point of the figure."""
    levels = []
    for data in DATA:
        counts = sampled_counts(data)
        smallest = min(counts)
        for epsilon in EPSILONS:
            # Where Theorem 1 gives no delta below 1, it promises nothing.
            theorem = theorem1_delta(USERS, len(counts), smallest, epsilon) or 1.0
            real = exact.sampling_delta(smallest - 1, theorem1_p(epsilon), epsilon)
            levels.append(PrivacyLevel(data, epsilon, theorem, real))
    return levels


def _judge_same_privacy() -> Verdict:
    by_theorem = []
    by_exact = []
    for level in privacy_levels():
        items = len(sampled_counts(level.data))
        sampled = sampling_error(USERS, level.epsilon)
        noisy = gaussian_error(USERS, items, level.epsilon, level.theorem1)
        exact_noisy = items * (analytic_sigma(level.epsilon, level.exact) / USERS) ** 2
        by_theorem.append(sampled < noisy)
        by_exact.append(sampled < exact_noisy)
    return Verdict(
        "fig1",
        PLACE,
        "DPDS performs much better than DPDG for the same privacy level over all three data sets",
        "at all points",
        f"at the delta of Theorem 1 at {format_count(by_theorem)} points; at the exact delta of "
        f"DPDS at {format_count(by_exact)}",
        judge_all([*by_theorem, *by_exact]),
        THEORY,
        "DPDG with the paper's sigma at the delta that Theorem 1 states for DPDS, and with the "
        "exact Gaussian at the delta that DPDS really has; errors summed over the items",
    )


def _judge_small_budget() -> Verdict:
    items = len(sampled_counts("gowalla"))
    ratios = [1 / (1 - gain(items, epsilon, STRONG_DELTA)) for epsilon in EPSILONS]
    return Verdict(
        "fig1",
        PLACE,
        "It achieves much higher accuracy when the privacy budget is small (than DPDG with the "
        "same delta)",
        "",
        f"the error of DPDG is {ratios[0]:.1f} times that of DPDS at epsilon = 0.1, "
        f"{ratios[-1]:.1f} times at 1 (delta = 1e-7)",
        judge_all([left > right for left, right in pairwise(ratios)]),
        THEORY,
        "the ratio falls with epsilon; for the paper's calibrations",
    )


def _judge_theorem1() -> Verdict:
    levels = privacy_levels()
    holds = [level.theorem1 >= level.exact for level in levels]
    deltas = [level.exact for level in levels]
    worst = max(level.exact / level.theorem1 for level in levels)
    return Verdict(
        "fig1",
        PLACE,
        "With p = 1 - e^-epsilon DPDS is (epsilon, delta)-private for the delta that satisfies "
        "Eq. (bound)",
        "delta by Theorem 1",
        f"the bound holds at {format_count(holds)} points; exact delta {min(deltas):.1g} to "
        f"{max(deltas):.1g}, at worst {worst:.0e} times the bound",
        judge_all(holds),
        THEORY,
        "Theorem 1 is false as stated: its delta has exponent N/2 although two counts differ "
        "(docs/explanation/errata.md)",
    )


STUDY = make_noise_study(
    name="fig1",
    title="DPDS against DPDG for various epsilon and delta",
    paper="Figure 1: mean squared error over epsilon = 0.1 .. 1 for DPDS and for DPDG at several "
    "delta, n = 1,000, on Gowalla, Census-Income and synthetic data; average of 20 runs.",
    ours="The figure sums the squared error over the items for both methods. The paper's text does "
    "so for DPDS, but its formula for DPDG is that of a single item. DPDG is shown with the "
    "correct pieces of noise (solid lines). With the pieces as printed (dashed lines) its noise is "
    "n times too small, and it protects almost nothing.",
    points=points,
    mechanism=mechanism,
)
