"""Figure 3: two-stage sampling, uniform (chi_U) against adaptive (chi_A), over the sampling probability p.

alpha = 0.4 of N items is not always a whole number, so the nearest M of N is reported: 4 of 9, 8 of 19, 12 of 30 with
the built-in data.
"""

import math
from itertools import pairwise

from faircount.experiments.studies.judging import RUNS, Pair, Verdict, ordered
from faircount.experiments.studies.squared_errors import noise_study
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, USERS, Line, one, people
from faircount.mechanisms.two_stage import TSS
from faircount.sweep.sweep import Point

ALPHA = 0.4
PROBABILITIES = tuple(round(0.1 * step, 1) for step in range(1, 10))
BUDGETS = (0.5, 1.0, 2.0)
"""epsilon* = ln(gamma), the paper's budget against S1; 0 is uniform sampling. The paper does not print its values."""

UNIFORM, ADAPTIVE = "uniform", "adaptive"


def points() -> list[Point]:
    """Every data set, p and epsilon*; every user acts, helpers and all, at two points."""
    chosen: list[Point] = [
        {"data": data, "users": USERS, "p": p, "how": COUNTS, "method": method, "epsilon_star": budget}
        for data in DATA
        for p in PROBABILITIES
        for method, budget in ((UNIFORM, 0.0), *((ADAPTIVE, budget) for budget in BUDGETS))
    ]
    return chosen + [{**each, "how": ACTING} for each in chosen if _acts(each)]


def _acts(point: Point) -> bool:
    return (point["data"], point["p"]) == ("gowalla", 0.5) and point["epsilon_star"] in (0.0, 1.0)


def reported(items: int) -> int:
    """M, the whole number of items nearest to alpha N."""
    return round(ALPHA * items)


def mechanism(point: Point) -> TSS:
    """TSS with M of N items and gamma = e^epsilon*; its error is (1-q)/(q n), q = p p_chi."""
    items = len(people(point))
    return TSS(
        items=items,
        users=int(point["users"]),
        p=float(point["p"]),
        alpha=reported(items) / items,
        gamma=math.exp(float(point["epsilon_star"])),
    )


# What the paper's text says about the figure.

PLACE = "IV-B3"


WHY = (
    "at the same p, as in the figure: (1-q)/(q n) with q = p p_chi, and p_chi grows with epsilon*. At equal exact "
    "privacy against S1, who also reads the result, p must shrink as epsilon* grows: see the second edition"
)


def verdicts(lines: list[Line]) -> list[Verdict]:
    """Both claims of the text on Fig. 3; it prints no numbers."""
    return [
        _ordered(
            lines,
            "Adaptive sampling achieves a smaller MSE compared to uniform sampling under all settings",
            [(0.0, budget) for budget in BUDGETS],
        ),
        _ordered(
            lines,
            "A larger epsilon* gives adaptive sampling a more accurate estimate",
            list(pairwise(BUDGETS)),
        ),
    ]


def _ordered(lines: list[Line], claim: str, steps: list[tuple[float, float]]) -> Verdict:
    """Whether the error falls from the first to the second epsilon* of every step, for all data sets and p."""
    clusters = [
        [_pair(lines, step, data=data, p=p) for step in steps] for data in DATA for p in PROBABILITIES
    ]  # the steps of one cluster share their lines
    verdict, ours = ordered(clusters)
    return Verdict("fig3", PLACE, claim, "", ours, verdict, RUNS, WHY)


def _pair(lines: list[Line], step: tuple[float, float], **place: str | float) -> Pair:
    worse, better = (one(lines, epsilon_star=budget, how=COUNTS, **place) for budget in step)
    return worse, better


STUDY = noise_study(
    name="fig3",
    title="Two-stage sampling: uniform against adaptive",
    paper="Fig. 3: mean squared error of uniform (US) and adaptive (AS) two-stage sampling with alpha = 0.4, over "
    "the sampling probability p, on the three data sets.",
    ours="alpha N is rounded to whole items, such as 4 of 9 (0.44), 8 of 19 (0.42), 12 of 30 (0.40). The paper's "
    "values of epsilon* are not in its text; 0.5, 1 and 2 are shown. Squared error summed over the items.",
    points=points,
    mechanism=mechanism,
)
