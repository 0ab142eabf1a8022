"""Figure 3: two-stage sampling, uniform (chi_U) against adaptive (chi_A), over the probability p.

alpha = 0.4 of N items is not always a whole number, so the nearest M of N items are reported: 4 of
9, 8 of 19 and 12 of 30 with the built-in data.
"""

import math
from itertools import pairwise, product

from faircount.mechanisms.two_stage import TSS
from faircount.reproduction.studies.judging import RUNS, Pair, Verdict, judge_order
from faircount.reproduction.studies.squared_errors import make_noise_study
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    USERS,
    Line,
    Value,
    add_user_level,
    counts_at,
    find_line,
)
from faircount.reproduction.sweep.sweep import Point

ALPHA = 0.4
PROBABILITIES = tuple(round(0.1 * step, 1) for step in range(1, 10))

# epsilon* = ln(gamma), the paper's budget against S1. The paper does not print its values.
BUDGETS = (0.5, 1.0, 2.0)

UNIFORM = "uniform"
ADAPTIVE = "adaptive"


def points() -> list[Point]:
    """All data sets, p and epsilon*; two points at user level, with helpers."""
    # Uniform sampling is adaptive sampling with epsilon* = 0.
    methods = [(UNIFORM, 0.0), *((ADAPTIVE, budget) for budget in BUDGETS)]
    chosen: list[Point] = [
        {
            "data": data,
            "users": USERS,
            "p": p,
            "how": COUNT_LEVEL,
            "method": method,
            "epsilon_star": budget,
        }
        for data, p, (method, budget) in product(DATA, PROBABILITIES, methods)
    ]
    return add_user_level(chosen, _is_simulated)


def _is_simulated(point: Point) -> bool:
    # Uniform and one adaptive sampling in the middle of the figure.
    place = (point["data"], point["p"])
    return place == ("gowalla", 0.5) and point["epsilon_star"] in (0.0, 1.0)


def reported_items(items: int) -> int:
    """M, the whole number of items nearest to alpha N."""
    return round(ALPHA * items)


def mechanism(point: Point) -> TSS:
    """TSS with M of N items and gamma = e^epsilon*; its error is (1-q)/(q n), q = p p_chi."""
    items = len(counts_at(point))
    return TSS(
        items=items,
        users=int(point["users"]),
        p=float(point["p"]),
        alpha=reported_items(items) / items,
        gamma=math.exp(float(point["epsilon_star"])),
    )


# What the text says about the figure (Section IV-B3). It prints no numbers.

PLACE = "IV-B3"
WHY = (
    "at the same p, as in the figure: (1-q)/(q n) with q = p p_chi, and p_chi grows with epsilon*. "
    "At equal exact privacy against S1, who also reads the result, p must shrink as epsilon* "
    "grows: see the second edition"
)


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge both claims of the text on Figure 3."""
    return [
        _judge_steps(
            lines,
            "Adaptive sampling achieves a smaller MSE compared to uniform sampling under all "
            "settings",
            [(0.0, budget) for budget in BUDGETS],
        ),
        _judge_steps(
            lines,
            "A larger epsilon* gives adaptive sampling a more accurate estimate",
            list(pairwise(BUDGETS)),
        ),
    ]


def _judge_steps(lines: list[Line], claim: str, steps: list[tuple[float, float]]) -> Verdict:
    """Judge whether the error falls from the first to the second epsilon* of every step."""
    clusters: list[list[Pair]] = []
    for data, p in product(DATA, PROBABILITIES):
        # The steps at one place share lines, so they form one cluster.
        here: dict[str, Value] = {"data": data, "p": p, "how": COUNT_LEVEL}
        cluster = []
        for smaller, larger in steps:
            worse = find_line(lines, epsilon_star=smaller, **here)
            better = find_line(lines, epsilon_star=larger, **here)
            cluster.append((worse, better))
        clusters.append(cluster)
    verdict, ours = judge_order(clusters)
    return Verdict("fig3", PLACE, claim, "", ours, verdict, RUNS, WHY)


STUDY = make_noise_study(
    name="fig3",
    title="Two-stage sampling: uniform against adaptive",
    paper="Figure 3: mean squared error of uniform (US) and adaptive (AS) two-stage sampling with "
    "alpha = 0.4, over the sampling probability p, on the three data sets.",
    ours="alpha N is rounded to whole items, such as 4 of 9 (0.44), 8 of 19 (0.42), 12 of 30 "
    "(0.40). The paper's text does not contain its values of epsilon*; 0.5, 1 and 2 are shown. "
    "Squared error summed over the items.",
    points=points,
    mechanism=mechanism,
)
