"""Figure 2: DPDS for 1,000 to 5,000 users."""

from itertools import product

import numpy as np

from faircount.accounting.paper import theorem1_p
from faircount.mechanisms.sampling import DPDS
from faircount.reproduction.studies.judging import (
    AGREES,
    ARITHMETIC,
    DIFFERS,
    RUNS,
    SURE,
    UNDECIDED,
    Verdict,
    judge_all,
    judge_number,
)
from faircount.reproduction.studies.squared_errors import make_noise_study
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    TITLES,
    Line,
    add_user_level,
    counts_at,
    find_line,
    select,
)
from faircount.reproduction.sweep.sweep import Point

# The grid of the paper.
SIZES = tuple(range(1000, 5001, 1000))
EPSILONS = (0.2, 0.4, 0.6, 0.8, 1.0)


def points() -> list[Point]:
    """All data sets, sizes and epsilons; one point at user level."""
    chosen: list[Point] = [
        {"data": data, "users": users, "epsilon": epsilon, "method": "dpds", "how": COUNT_LEVEL}
        for data, users, epsilon in product(DATA, SIZES, EPSILONS)
    ]
    return add_user_level(chosen, _is_simulated)


def _is_simulated(point: Point) -> bool:
    # 2,000 users exchange 4 million shares of every item: enough to show, still seconds to run.
    return (point["data"], point["users"], point["epsilon"]) == ("gowalla", 2000, 0.2)


def mechanism(point: Point) -> DPDS:
    """DPDS with the p of Theorem 1; its error is (1-p)/(p n)."""
    p = theorem1_p(float(point["epsilon"]))
    return DPDS(items=len(counts_at(point)), users=int(point["users"]), p=p)


# What the text says about the figure (Section IV-B2).

PLACE = "IV-B2"

# Gowalla, epsilon = 0.2: "around" this error, by the number of users.
PRINTED = {1000: "2.4e-3", 5000: "0.9e-3"}


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge every number and claim of the text on Figure 2."""
    numbers = [_judge_printed(lines, users) for users in PRINTED]
    return [*numbers, _judge_own_ratio(), _judge_slope(lines)]


def _judge_printed(lines: list[Line], users: int) -> Verdict:
    line = find_line(lines, data="gowalla", users=users, epsilon=0.2, how=COUNT_LEVEL)
    claim = f"Gowalla, epsilon = 0.2: MSE of around {PRINTED[users]} with {users} participants"
    ours = f"measured {line.mean:.3g} (95%: {line.low:.2g} to {line.high:.2g})"
    theory = {"summed over items": line.expected}
    return judge_number("fig2", PLACE, claim, PRINTED[users], theory, ours)


def _judge_own_ratio() -> Verdict:
    ratio = float(PRINTED[1000]) / float(PRINTED[5000])
    return Verdict(
        "fig2",
        PLACE,
        "The two printed numbers agree with 'inversely proportional to the population size'",
        f"{PRINTED[1000]} / {PRINTED[5000]}",
        f"{ratio:.2f} times the error for a fifth of the users, where 5 is expected",
        # Both numbers are printed with two digits and average 20 runs: 20% is a generous margin.
        judge_all([4 < ratio < 6]),
        ARITHMETIC,
        "five times the users should give a fifth of the error; the number for 1,000 users is the "
        "one that is off",
    )


def _judge_slope(lines: list[Line]) -> Verdict:
    slopes = []
    listed = []
    for data in DATA:
        slope, error = _fit_slope(select(lines, data=data, how=COUNT_LEVEL))
        slopes.append((slope, error))
        listed.append(f"{TITLES[data]} {slope:.2f} +- {error:.2f}")
    return Verdict(
        "fig2",
        PLACE,
        "There is an obvious accuracy improvement when the size of participants increases, and the "
        "statistical error is inversely proportional to it, on all three data sets",
        "exponent -1",
        ", ".join(listed),
        _judge_slopes(slopes),
        RUNS,
        "slope of log error over log n, with its standard error; -1 is inverse proportion, 0 no "
        "improvement at all",
    )


def _judge_slopes(slopes: list[tuple[float, float]]) -> str:
    """Differs when a slope is certainly not -1; agrees when all are certainly below 0 as well."""
    if any(abs(slope + 1) > SURE * error for slope, error in slopes):
        return DIFFERS
    return AGREES if all(slope < -SURE * error for slope, error in slopes) else UNDECIDED


def _fit_slope(lines: list[Line]) -> tuple[float, float]:
    """Exponent of n in the measured errors, common to all epsilons, and its standard error.

    A weighted regression of log error on log n, with an intercept for every epsilon.
    """
    numerator = 0.0
    denominator = 0.0
    for epsilon in EPSILONS:
        row = select(lines, epsilon=epsilon)
        x = np.log([float(line.point["users"]) for line in row])
        y = np.log([line.mean for line in row])
        # By the delta method the variance of a log average is (deviation / mean)^2 / runs.
        weight = np.array(list(map(_log_precision, row)))
        x = x - np.average(x, weights=weight)
        numerator += float((weight * x) @ y)
        denominator += float((weight * x) @ x)
    return numerator / denominator, denominator**-0.5


def _log_precision(line: Line) -> float:
    deviation = line.expected.deviation or 1.0
    return line.runs * (line.expected.mean / deviation) ** 2


STUDY = make_noise_study(
    name="fig2",
    title="DPDS under different population sizes",
    paper="Figure 2: mean squared error of DPDS for n = 1,000 .. 5,000 users and epsilon = 0.2 .. "
    "1 on the three data sets.",
    ours="Squared error summed over the items. The theory is 1 / (n (e^epsilon - 1)) whatever the "
    "data.",
    points=points,
    mechanism=mechanism,
)
