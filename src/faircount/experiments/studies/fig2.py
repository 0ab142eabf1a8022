"""Figure 2: DPDS for 1,000 to 5,000 users."""

from itertools import pairwise

import numpy as np

from faircount.accounting.paper import theorem1_p
from faircount.core.arrays import Floats
from faircount.experiments.studies.judging import Verdict, everywhere, number, share
from faircount.experiments.studies.squared_errors import expected_error, squared_errors
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, Expected, Line, Study, held, one, select
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
    """DPDS with Theorem 1's p."""
    users = int(point["users"])
    return DPDS(items=len(_held(point)), users=users, p=theorem1_p(float(point["epsilon"])))


def _held(point: Point) -> tuple[int, ...]:
    return held(str(point["data"]), int(point["users"]))


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Squared errors of the runs at one point."""
    return {"noise": squared_errors(mechanism(point), _held(point), runs, str(point["how"]), rng)}


def theory(point: Point) -> dict[str, Expected]:
    """(1-p)/(p n)."""
    return {"noise": expected_error(mechanism(point), _held(point))}


# What the paper's text says about the figure.

PLACE = "IV-B2"
PRINTED = {1000: "2.4e-3", 5000: "0.9e-3"}
"""Gowalla, epsilon = 0.2: "around" this."""


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Every number and claim of the text on Fig. 2."""
    return [*(_printed(lines, users) for users in PRINTED), _own_ratio(), _improves(lines), _inverse(lines)]


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
    return Verdict(
        "fig2", PLACE, claim, f"{PRINTED[1000]} / {PRINTED[5000]}", ours, everywhere([4 < few / many < 6]), why
    )


def _improves(lines: list[Line]) -> Verdict:
    theory, measured = [], []
    for data in DATA:
        for epsilon in EPSILONS:
            row = sorted(
                select(lines, data=data, epsilon=epsilon, how=COUNTS), key=lambda line: int(line.point["users"])
            )
            pairs = list(pairwise(row))
            theory += [left.expected.mean > right.expected.mean for left, right in pairs]
            measured += [left.mean > right.mean for left, right in pairs]
    claim = "There is an obvious accuracy improvement when the size of participants increases over all data sets"
    ours = f"theory in {share(theory)} steps of 1,000 users, measured in {share(measured)}"
    return Verdict("fig2", PLACE, claim, "", ours, everywhere(theory), "single measured steps may go up by chance")


def _inverse(lines: list[Line]) -> Verdict:
    slopes = {data: _slope(select(lines, data=data, how=COUNTS)) for data in DATA}
    told = ", ".join(f"{data} {slope:.2f} +- {error:.2f}" for data, (slope, error) in slopes.items())
    exact = [
        abs(line.expected.mean * int(line.point["users"]) * np.expm1(float(line.point["epsilon"])) - 1)
        for line in lines
    ]
    claim = "The statistical error is inversely proportional to the population size, on all three data sets"
    why = (
        "theory: exactly (1-p)/(p n). Measured: slope of log error over log n, with its standard error; -1 is expected"
    )
    return Verdict("fig2", PLACE, claim, "exponent -1", told, everywhere([each < 1e-9 for each in exact]), why)


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


STUDY = Study(
    name="fig2",
    title="DPDS under different population sizes",
    paper="Fig. 2: mean squared error of DPDS for n = 1,000 .. 5,000 users and epsilon = 0.2 .. 1 on the three data "
    "sets.",
    ours="Squared error summed over the items. The theory is 1 / (n (e^epsilon - 1)) whatever the data.",
    points=points,
    task=task,
    theory=theory,
    items=lambda point: len(_held(point)),
)
