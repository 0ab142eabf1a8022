"""Figure 2: DPDS for 1,000 to 5,000 users."""

import numpy as np

from faircount.accounting.paper import theorem1_p
from faircount.experiments.studies.judging import (
    AGREES,
    ARITHMETIC,
    CANNOT,
    DIFFERS,
    RUNS,
    SURE,
    Verdict,
    everywhere,
    number,
)
from faircount.experiments.studies.squared_errors import noise_study
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, TITLES, Line, one, people, select
from faircount.mechanisms.sampling import DPDS
from faircount.sweep.sweep import Point

SIZES = tuple(range(1000, 5001, 1000))
EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0)


def points() -> list[Point]:
    """Every data set, size and epsilon; every user acts at one point, where everybody holds shares of everybody."""
    chosen: list[Point] = [
        {"data": data, "users": users, "epsilon": epsilon, "method": "dpds", "how": COUNTS}
        for data in DATA
        for users in SIZES
        for epsilon in EPSILONS
    ]
    acting: Point = {"data": "gowalla", "users": 2000, "epsilon": 0.2, "method": "dpds", "how": ACTING}
    return [*chosen, acting]


def mechanism(point: Point) -> DPDS:
    """DPDS with Theorem 1's p; its error is (1-p)/(p n)."""
    return DPDS(items=len(people(point)), users=int(point["users"]), p=theorem1_p(float(point["epsilon"])))


# What the paper's text says about the figure.

PLACE = "IV-B2"
PRINTED = {1000: "2.4e-3", 5000: "0.9e-3"}
"""Gowalla, epsilon = 0.2: "around" this."""


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Every number and claim of the text on Fig. 2."""
    return [*(_printed(lines, users) for users in PRINTED), _own_ratio(), _inverse(lines)]


def _printed(lines: list[Line], users: int) -> Verdict:
    line = one(lines, data="gowalla", users=users, epsilon=0.2, how=COUNTS)
    claim = f"Gowalla, epsilon = 0.2: MSE of around {PRINTED[users]} with {users} participants"
    ours = f"measured {line.mean:.3g} (95%: {line.low:.2g} to {line.high:.2g})"
    return number("fig2", PLACE, claim, PRINTED[users], {"summed over items": line.expected}, ours)


def _own_ratio() -> Verdict:
    few, many = (float(PRINTED[users]) for users in (1000, 5000))
    claim = "The two printed numbers agree with 'inversely proportional to the population size'"
    why = "five times the users should give a fifth of the error; the number for 1,000 users is the one that is off"
    ours = f"{few / many:.2f} times the error at a fifth of the users, where 5 is expected"
    printed, verdict = f"{PRINTED[1000]} / {PRINTED[5000]}", everywhere([4 < few / many < 6])
    return Verdict("fig2", PLACE, claim, printed, ours, verdict, ARITHMETIC, why)


def _inverse(lines: list[Line]) -> Verdict:
    slopes = {data: _slope(select(lines, data=data, how=COUNTS)) for data in DATA}
    told = ", ".join(f"{TITLES[data]} {slope:.2f} +- {error:.2f}" for data, (slope, error) in slopes.items())
    claim = (
        "There is an obvious accuracy improvement when the size of participants increases, and the statistical error "
        "is inversely proportional to it, on all three data sets"
    )
    why = "slope of log error over log n, with its standard error; -1 is inverse proportion, 0 no improvement at all"
    return Verdict("fig2", PLACE, claim, "exponent -1", told, _judge_slopes(list(slopes.values())), RUNS, why)


def _judge_slopes(slopes: list[tuple[float, float]]) -> str:
    """Differs when a slope is surely not -1; agrees when all are surely below 0 as well."""
    if any(abs(slope + 1) > SURE * error for slope, error in slopes):
        return DIFFERS
    return AGREES if all(slope < -SURE * error for slope, error in slopes) else CANNOT


def _slope(lines: list[Line]) -> tuple[float, float]:
    """Exponent of n in the measured errors, epsilon by epsilon at the same exponent, and its standard error."""
    top = bottom = 0.0
    for epsilon in EPSILONS:
        row = select(lines, epsilon=epsilon)
        x = np.log([float(line.point["users"]) for line in row])
        y = np.log([line.mean for line in row])
        weight = np.array([line.runs * (line.expected.mean / (line.expected.deviation or 1.0)) ** 2 for line in row])
        x = x - np.average(x, weights=weight)
        top += float((weight * x) @ y)
        bottom += float((weight * x) @ x)
    return top / bottom, bottom**-0.5


STUDY = noise_study(
    name="fig2",
    title="DPDS under different population sizes",
    paper="Fig. 2: mean squared error of DPDS for n = 1,000 .. 5,000 users and epsilon = 0.2 .. 1 on the three data "
    "sets.",
    ours="Squared error summed over the items. The theory is 1 / (n (e^epsilon - 1)) whatever the data.",
    points=points,
    mechanism=mechanism,
)
