"""The recommended mechanism has the smallest error that is measured, over a grid of questions.

Every sound mechanism of a plan is drawn 300 times on a skewed population. Two things are tested: that the planned
standard error is the measured one, and that no other mechanism is measurably better than the recommended one. A
comparison is off by more than 5.9 standard errors with probability below 4e-9; there are some 250 of them, so a false
alarm has probability 1e-6 (and the seeds are fixed). Both tests catch a planted error. Mechanisms whose planned
standard error exceeds 1 are left out: they sample next to nobody, and their rare, huge errors do not show in 300 runs.
"""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from faircount.mechanisms.base import FrequencyMechanism
from faircount.planning.advice import TIE_FACTOR
from faircount.planning.option import Option
from faircount.planning.plan import Plan, compare_mechanisms

Floats = NDArray[np.float64]

RUNS = 300
SURE = 5.9

GRID = [
    (n, items, epsilon, delta, releases, share * (n // items) // 4)
    for n, items, epsilon, delta in (
        (60, 3, 1.0, 1e-5),
        (300, 12, 0.5, 1e-6),
        (300, 12, 4.0, 1e-6),
        (1000, 5, 1.0, 1e-9),
        (5000, 30, 0.2, 1e-6),
        (50_000, 8, 2.0, 1e-4),
    )
    for releases in (1, 3, 10)
    for share in (0, 3)
]


def population(users: int, items: int, floor: int) -> NDArray[np.int64]:
    """As skewed as a floor of OTHER holders allows: everybody else holds the first item."""
    held = np.full(items, floor + 1)
    held[0] += users - held.sum()
    return held


def squared_errors(
    mechanism: FrequencyMechanism, held: NDArray[np.int64], rng: np.random.Generator
) -> Floats:
    """Squared error per item, averaged over the items, of every run."""
    truth = held / held.sum()
    runs = [
        mechanism.estimate(mechanism.draw(held, rng), int(held.sum())) - truth for _ in range(RUNS)
    ]
    return np.asarray((np.array(runs) ** 2).mean(axis=1))


def differs(measured: Floats, planned: float) -> bool:
    """Whether a planned standard error is not the measured one."""
    error = measured.std(ddof=1) / math.sqrt(RUNS)
    return bool(abs(measured.mean() - planned**2) > SURE * error + 1e-3 * planned**2)


def beaten(best: Floats, other: Floats) -> bool:
    """Whether the other's error is measurably below the best one's, by more than counts as equal."""
    gap = best.mean() - TIE_FACTOR**2 * other.mean()
    return bool(
        gap
        > SURE * math.hypot(best.std(ddof=1), TIE_FACTOR**2 * other.std(ddof=1)) / math.sqrt(RUNS)
    )


def measured(made: Plan, seed: int) -> dict[str, Floats]:
    rng, asked = np.random.default_rng(seed), made.request
    held = population(asked.users, asked.items, asked.floor)
    return {o.name: squared_errors(o.mechanism, held, rng) for o in sound(made) if o.mechanism}


def sound(made: Plan) -> list[Option]:
    return [
        option for option in made.options if option.sound and (option.standard_error or 0.0) <= 1
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("users", "items", "epsilon", "delta", "releases", "floor"), GRID)
def test_the_recommended_mechanism_has_the_smallest_measured_error(
    users: int, items: int, epsilon: float, delta: float, releases: int, floor: int
) -> None:
    made = compare_mechanisms(users, items, epsilon, delta, floor=floor, releases=releases)
    found = measured(made, users + releases)
    assert made.recommended is not None
    for option in sound(made):
        assert not differs(found[option.name], option.standard_error or 0.0), option.name
        assert not beaten(found[made.recommended.name], found[option.name]), option.name


def test_another_recommendation_would_be_caught() -> None:
    """Decoys for a single release have twice the error of Laplace."""
    found = measured(compare_mechanisms(300, 12, 1.0, 1e-6), 1)
    assert beaten(found["decoys"], found["laplace"])
    assert not beaten(found["laplace"], found["decoys"])


def test_a_wrong_standard_error_would_be_caught() -> None:
    made = compare_mechanisms(1000, 12, 1.0, 1e-6, floor=60)
    found = measured(made, 2)
    for option in sound(made):
        assert differs(found[option.name], 1.25 * (option.standard_error or 0.0))


def test_the_grid_has_more_than_one_winner() -> None:
    winners = {
        compare_mechanisms(1000, 12, 1.0, 1e-6, releases=r).to_dict()["recommended"]
        for r in (1, 12)
    }
    assert winners == {"laplace", "decoys"}
