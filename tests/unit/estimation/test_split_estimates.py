"""Estimates from independent noise in all cells: how often intervals cover, over all noise."""

import math
from itertools import product

import numpy as np
import pytest

from faircount.core.questions import (
    AnyOf,
    Bands,
    Number,
    OneOf,
    Question,
    QuestionGroup,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.estimation.pooled_noise import PooledNoise
from faircount.estimation.sheet_estimates import estimate_question
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon
from faircount.mechanisms.split_noise import SplitNoise

USERS = 20
ERROR = 0.1

# Question, epsilon, the true cells, and how much noise of a cell is enumerated.
CASES: dict[str, tuple[Question, float, tuple[int, ...], int]] = {
    "yes": (YesNo(text="q"), 1.0, (7,), 10),
    "one": (OneOf(text="q", items=("1", "2", "3")), 4.0, (11, 6, 3), 3),
    "rare": (OneOf(text="q", items=("1", "2", "3")), 4.0, (20, 0, 0), 3),
    "scale": (ScaleCounts(text="q", items=("1", "2", "3")), 4.0, (2, 4, 14), 3),
    "skip": (ScaleCounts(text="q", items=("1", "2"), skip=True), 4.0, (5, 9, 6), 3),
    "any": (AnyOf(text="q", items=("1", "2"), skip=True), 6.0, (9, 2, 5), 3),
    "number": (Number(text="q", low=0, high=4), 3.0, (31,), 12),
    "mean": (ScaleMean(text="q", items=("1", "2", "3"), skip=True), 6.0, (14, 15), 5),
    "bands": (Bands(text="q", edges=(0, 1, 2, 3)), 4.0, (11, 6, 3), 3),
    "table": (
        Table(text="q", columns_text="r", rows=("1", "2"), columns=("1", "2")),
        6.0,
        (9, 1, 4, 6),
        2,
    ),
}


def noise_of(question: Question, epsilon: float) -> SplitNoise:
    return SplitNoise(Questionnaire((question,)), (QuestionGroup.of(epsilon, [0]),), 1.0)


@pytest.mark.parametrize(
    ("name", "covers"),
    # The draw of people makes all intervals wider: those of means are made here.
    [*((name, "users") for name in CASES), ("scale", "population")],
)
def test_intervals_cover_at_their_level(name, covers) -> None:
    """All noise up to the window; beyond it counts as a miss. The truth is what people answered."""
    question, epsilon, truth, window = CASES[name]
    noise = noise_of(question, epsilon)
    exact = estimate_question(question, 0, np.array(truth), noise, USERS, ERROR)
    distributions = []
    for place, block in enumerate(question.blocks):
        distribution = noise.raw_distribution(0, place)
        distributions += [
            {int(v): float(p) for v, p in zip(distribution.values, distribution.pmf, strict=True)}
        ] * block.cells
    covered = [0.0] * len(exact)
    seen = 0.0
    for drawn in product(range(-window, window + 1), repeat=len(truth)):
        chance = math.prod(
            distribution[value] for distribution, value in zip(distributions, drawn, strict=True)
        )
        # Left out, and so counted as a miss.
        if chance < 1e-6:
            continue
        seen += chance
        cells = np.array(truth) + np.array(drawn)
        rows = estimate_question(question, 0, cells, noise, USERS, ERROR, covers)
        for place, (row, true) in enumerate(zip(rows, exact, strict=True)):
            # A median lies in a band: all numbers of it are as true.
            middle = true.estimate
            covered[place] += chance * (row.low - 1e-9 <= middle <= row.high + 1e-9)
    assert seen > 0.99
    assert min(covered) >= 1 - ERROR
    # No interval is so wide that it says nothing.
    assert all(row.high - row.low < span(question) for row in exact if row.measure != "median")


def span(question: Question) -> float:
    return getattr(question, "largest", 2) if not isinstance(question, OneOf) else 2.0


def test_a_mean_has_an_exact_interval_from_the_distribution_of_its_sum() -> None:
    """It is narrower than from the thresholds that joint noise uses, and covers as it says."""
    question = ScaleCounts(text="q", items=tuple("12345"))
    noise = noise_of(question, 1.0)
    cells = np.array([40, 60, 100, 60, 40])
    mean = estimate_question(question, 0, cells, noise, 300, 0.05)[-1]
    distribution = noise.distribution_of_scores(0, [-4, -2, 0, 2, 4])
    assert distribution is not None
    low, high = distribution.quantiles(0.025)
    assert (mean.low, mean.high) == pytest.approx((3 + low / 600, 3 + high / 600), abs=1 / 600)
    assert mean.standard_error == pytest.approx(math.sqrt(distribution.variance) / 600)
    raw = noise.raw_distribution(0).variance
    assert mean.standard_error == pytest.approx(math.sqrt(10 * raw) / 300)


def test_shares_of_fitted_counts_add_up_to_one() -> None:
    question, epsilon, truth, _ = CASES["one"]
    noise = noise_of(question, epsilon)
    rows = estimate_question(question, 0, np.add(truth, (5, 1, -2)), noise, USERS, ERROR)
    assert sum(row.estimate for row in rows) == pytest.approx(1.0)
    assert rows[0].estimate == pytest.approx((16 - 4 / 3) / USERS)


def test_pooled_noise_adds_up_fitted_and_joint_parts() -> None:
    """One survey with participants' noise and one with joint noise, of the same questions."""
    question, epsilon, truth, _ = CASES["one"]
    split = noise_of(question, epsilon)
    form = Questionnaire((question,))
    joint = JointNoise(questionnaire=form, groups=split_epsilon(1.0, [[0]]), epsilon=1.0)
    pooled = PooledNoise([split, joint])
    assert pooled.distribution(0).variance == pytest.approx(
        split.distribution(0).variance + joint.distribution(0).variance
    )
    assert pooled.distribution(0).scale == 3
    fitted = pooled.fit(0, (truth[0] + 3, *truth[1:]), USERS)
    assert fitted == pytest.approx((truth[0] + 2, truth[1] - 1, truth[2] - 1))
    assert pooled.distribution_of_scores(0, [-1, 0, 1]) is None
    both = PooledNoise([split, split])
    distribution = both.distribution_of_scores(0, [-1, 0, 1])
    assert distribution is not None
    assert distribution.variance == pytest.approx(4 * split.raw_distribution(0).variance)
    weights = np.array([-1.0, 0.0, 1.0])
    assert both.contrast_variance(0, weights) == pytest.approx(distribution.variance)
