"""Figure 1: DPDS against DPDG over epsilon and several delta, 1,000 users of each data set.

DPDG is run with the paper's classical sigma and the correct pieces (variance G^2 sigma^2 / n per user), and, marked,
with the pieces as printed, whose sum has a variance n times too small.
"""

import math
from itertools import pairwise

from faircount.accounting import exact
from faircount.accounting.gaussian import analytic_sigma, classical_sigma
from faircount.accounting.paper import theorem1_delta, theorem1_p
from faircount.core.search import last_real
from faircount.experiments.data.populations import population
from faircount.experiments.studies.judging import (
    AGREES,
    DIFFERS,
    THEORY,
    Verdict,
    everywhere,
    number,
    readings,
    scaled,
    share,
)
from faircount.experiments.studies.squared_errors import noise_study
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, TITLES, USERS, Line, holders, one, people
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.secret_shared import SharedMechanism
from faircount.sweep.sweep import Point

EPSILONS = tuple(round(0.1 * step, 1) for step in range(1, 11))
DELTAS = (1e-7, 1e-5, 1e-3, 0.1, 0.5)
PRINTED_DELTAS = (1e-7, 0.5)

SAMPLING, GAUSSIAN, AS_PRINTED = "dpds", "dpdg", "dpdg as printed"


def points() -> list[Point]:
    """Every epsilon and data set; DPDG at every delta; three points at which every user acts.

    The data sets come last, because the law of DPDG's noise is made once for all three.
    """
    methods: list[dict[str, str | float]] = [{"method": SAMPLING}]
    methods += [{"method": GAUSSIAN, "delta": delta} for delta in DELTAS]
    methods += [{"method": AS_PRINTED, "delta": delta} for delta in PRINTED_DELTAS]
    chosen: list[Point] = [
        {"data": data, "users": USERS, "epsilon": epsilon, "how": COUNTS, **method}
        for epsilon in EPSILONS
        for method in methods
        for data in DATA
    ]
    return chosen + [{**each, "how": ACTING} for each in chosen if _acts(each)]


def _acts(point: Point) -> bool:
    place = (point["data"], point["epsilon"])
    return place == ("gowalla", 0.5) and point.get("delta", 1e-7) == 1e-7


def mechanism(point: Point) -> SharedMechanism:
    """DPDS with Theorem 1's p, or DPDG with the paper's sigma; nobody is an insider in the paper's comparison."""
    users, items = int(point["users"]), len(people(point))
    if point["method"] == SAMPLING:
        return DPDS(items=items, users=users, p=theorem1_p(float(point["epsilon"])))
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
    """N V_G = N 4 ln(1.25/delta) / (n epsilon)^2: the continuous Gaussian with the paper's sigma."""
    return items * 2 * (classical_sigma(epsilon, delta) / users) ** 2


# What the paper's text says about the figure.

PLACE = "IV-B1"
CELL_READINGS = ("gowalla", "gowalla-12", "gowalla-25")
"""Readings of "cells of 5 x 5": those with at least 1% of the users, 5 by 5 degrees, a grid of 5 by 5."""

WEAK_DELTA, STRONG_DELTA, CLAIMED_CROSSING, CLAIMED_GAIN = 0.5, 1e-7, 0.6, 0.9


def cells() -> dict[str, int]:
    """How many cells each reading has, by words."""
    numbers = [len(population(name).counts) for name in CELL_READINGS]
    return {f"{number} cells": number for number in numbers}


def crossing(items: int, delta: float, users: int = USERS) -> float:
    """The epsilon below which DPDS has the smaller error: 1/(e^eps - 1) = N 4 ln(1.25/delta) / (n eps^2)."""

    def better(epsilon: float) -> bool:
        return sampling_error(users, epsilon) < gaussian_error(users, items, epsilon, delta)

    return last_real(better, 1e-9, 1.5936, 1e-9)  # (e^x - 1) / x^2 falls up to there


def items_for_crossing(epsilon: float, delta: float, users: int = USERS) -> float:
    """How many items would put the crossing at this epsilon."""
    return sampling_error(users, epsilon) / gaussian_error(users, 1, epsilon, delta)


def gain(items: int, epsilon: float, delta: float) -> float:
    """By how much of DPDG's error DPDS is better."""
    return 1 - sampling_error(USERS, epsilon) / gaussian_error(USERS, items, epsilon, delta)


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Every number and claim of the text on Fig. 1."""
    return [
        _small_error(lines),
        _over_ninety(lines),
        _crossing(),
        *_similar(),
        _same_level(),
        _small_budget(),
        _promised_delta(),
    ]


def _small_error(lines: list[Line]) -> Verdict:
    line = one(lines, data="gowalla", epsilon=0.1, method=SAMPLING, how=COUNTS)
    theory = {"summed over items": line.expected, "per item": scaled(line.expected, 1 / line.items)}
    claim = "DPDS has an MSE of around 0.01 when epsilon = 0.1 on Gowalla"
    ours = f"measured {line.mean:.3g} summed, {line.mean / line.items:.3g} per item"
    return number("fig1", PLACE, claim, "0.01", theory, ours)


def _over_ninety(lines: list[Line]) -> Verdict:
    gains = {name: gain(items, 0.1, STRONG_DELTA) for name, items in cells().items()}
    base = one(lines, data="gowalla", epsilon=0.1, method=SAMPLING, how=COUNTS).mean
    other = one(lines, data="gowalla", epsilon=0.1, method=GAUSSIAN, delta=STRONG_DELTA, how=COUNTS).mean
    told = ", ".join(f"{name} {each:.1%}" for name, each in gains.items())
    claim = "That is an improvement of over 90% on the Gaussian mechanism when delta = 1e-7 (Gowalla, epsilon = 0.1)"
    ours = f"measured {1 - base / other:.1%} with {len(holders('gowalla'))} cells; theory: {told}"
    least = math.ceil(sampling_error(USERS, 0.1) / (1 - CLAIMED_GAIN) / gaussian_error(USERS, 1, 0.1, STRONG_DELTA))
    why = (
        f"both errors summed over the items, over 90% needs at least {least} items; the paper does not print how "
        "many it had"
    )
    verdict = readings({name: found > CLAIMED_GAIN for name, found in gains.items()})
    return Verdict("fig1", PLACE, claim, "over 90%", ours, verdict, THEORY, why)


def _crossing() -> Verdict:
    found = {name: crossing(items, WEAK_DELTA) for name, items in cells().items()}
    claim = "DPDS even performs better than the Gaussian mechanism with delta = 0.5 when epsilon < 0.6 (Gowalla)"
    ours = "better below epsilon = " + ", ".join(f"{each:.3f} ({name})" for name, each in found.items())
    needed = math.ceil(items_for_crossing(CLAIMED_CROSSING, WEAK_DELTA))
    why = f"like for like, a crossing at 0.6 needs {needed} items; no reading of the paper's cells has so many"
    holds = {name: each >= CLAIMED_CROSSING - 0.05 for name, each in found.items()}
    return Verdict("fig1", PLACE, claim, "epsilon < 0.6", ours, readings(holds), THEORY, why)


def _similar() -> list[Verdict]:
    others = {TITLES[data]: len(holders(data)) for data in DATA[1:]}
    gains = {name: gain(items, 0.1, STRONG_DELTA) for name, items in others.items()}
    found = {name: crossing(items, WEAK_DELTA) for name, items in others.items()}
    claim = "Similar results can be found over Census-Income and Synthetic"
    return [
        Verdict(
            "fig1",
            PLACE,
            f"{claim}: over 90% better at epsilon = 0.1, delta = 1e-7",
            "over 90%",
            ", ".join(f"{name} {each:.1%}" for name, each in gains.items()),
            everywhere([each > CLAIMED_GAIN for each in gains.values()]),
            THEORY,
            f"summed over {' and '.join(str(items) for items in others.values())} items",
        ),
        Verdict(
            "fig1",
            PLACE,
            f"{claim}: better than delta = 0.5 when epsilon < 0.6",
            "epsilon < 0.6",
            "better below epsilon = " + ", ".join(f"{each:.3f} ({name})" for name, each in found.items()),
            everywhere([each >= CLAIMED_CROSSING - 0.05 for each in found.values()]),
            THEORY,
            "as on Gowalla",
        ),
    ]


def levels() -> list[tuple[str, float, float, float]]:
    """(data, epsilon, delta by Theorem 1, exact delta) of DPDS with the paper's p, against an outsider."""
    found = []
    for data in DATA:
        people = holders(data)
        for epsilon in EPSILONS:
            theorem = theorem1_delta(USERS, len(people), min(people), epsilon) or 1.0
            found.append((data, epsilon, theorem, exact.sampling_delta(min(people) - 1, theorem1_p(epsilon), epsilon)))
    return found


def _same_level() -> Verdict:
    paper, exactly = [], []
    for data, epsilon, theorem, real in levels():
        items, sampled = len(holders(data)), sampling_error(USERS, epsilon)
        paper.append(sampled < gaussian_error(USERS, items, epsilon, theorem))
        exactly.append(sampled < items * (analytic_sigma(epsilon, real) / USERS) ** 2)
    ours = f"at Theorem 1's delta at {share(paper)} points; at the exact delta of DPDS at {share(exactly)}"
    why = (
        "DPDG with the paper's sigma at the delta that Theorem 1 states for DPDS, and with the exact Gaussian at "
        "the delta that DPDS really has; errors summed over the items"
    )
    claim = "DPDS performs much better than DPDG for the same privacy level over all three data sets"
    return Verdict("fig1", PLACE, claim, "at all points", ours, everywhere([*paper, *exactly]), THEORY, why)


def _small_budget() -> Verdict:
    ratios = [1 / (1 - gain(len(holders("gowalla")), epsilon, STRONG_DELTA)) for epsilon in EPSILONS]
    falls = [left > right for left, right in pairwise(ratios)]
    claim = "It achieves much higher accuracy when the privacy budget is small (than DPDG with the same delta)"
    ours = (
        f"DPDG's error is {ratios[0]:.1f} times that of DPDS at epsilon = 0.1, {ratios[-1]:.1f} times at 1 (delta = "
        "1e-7)"
    )
    why = "the ratio falls with epsilon; for the paper's calibrations"
    return Verdict("fig1", PLACE, claim, "", ours, everywhere(falls), THEORY, why)


def _promised_delta() -> Verdict:
    privacy = levels()
    held_up = [theorem >= real for _, _, theorem, real in privacy]
    worst = max(privacy, key=lambda each: each[3] / each[2])
    ours = f"the bound holds at {share(held_up)} points; exact delta {min(each[3] for each in privacy):.1g} to "
    ours += f"{max(each[3] for each in privacy):.1g}, at worst {worst[3] / worst[2]:.0e} times the bound"
    claim = "With p = 1 - e^-epsilon DPDS is (epsilon, delta)-private for the delta that satisfies Eq. (bound)"
    why = "Theorem 1 is false as stated: its delta has exponent N/2 although two counts differ (docs/errata.md)"
    return Verdict("fig1", PLACE, claim, "delta by Theorem 1", ours, AGREES if all(held_up) else DIFFERS, THEORY, why)


STUDY = noise_study(
    name="fig1",
    title="DPDS against DPDG for various epsilon and delta",
    paper="Fig. 1: mean squared error against epsilon = 0.1 .. 1 for DPDS and for DPDG at several delta, n = 1,000, "
    "on Gowalla, Census-Income and synthetic data; average of 20 runs.",
    ours="The figure sums the squared error over the items for both methods; the paper's text compares DPDS so, but "
    "its formula for DPDG is that of a single item. DPDG is shown with the correct pieces of noise (solid); with "
    "the pieces as printed (dashed), its noise is n times too small, and it protects next to nothing.",
    points=points,
    mechanism=mechanism,
)
