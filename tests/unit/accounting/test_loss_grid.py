"""Distributions of losses on a grid, against dp_accounting's composition and sums over all outcomes."""

import math

import numpy as np
import pytest
from dp_accounting.pld.pld_pmf import DensePLDPmf

from faircount.accounting.loss_grid import TRUNCATED, GriddedLosses, fast_length
from faircount.core.errors import ParameterError

STEP = 0.01


def bell(size: int, infinite: float, seed: int = 3) -> GriddedLosses:
    """A distribution with thin tails, as coins have them."""
    shape = np.exp(-0.5 * np.linspace(-6, 6, size) ** 2)
    uneven = shape * np.random.default_rng(seed).uniform(0.5, 1.5, size)
    return GriddedLosses(STEP, -size // 2, uneven / uneven.sum() * (1 - infinite), infinite)


def theirs(distribution: GriddedLosses) -> DensePLDPmf:
    return DensePLDPmf(
        distribution.step, distribution.first, distribution.mass, distribution.infinite, True
    )


@pytest.mark.parametrize("count", [2, 3, 24, 1000])
@pytest.mark.parametrize("infinite", [0.0, 1e-9])
def test_powers_are_those_of_dp_accounting(count: int, infinite: float) -> None:
    distribution = bell(301, infinite)
    ours = distribution.power(count)
    other = theirs(distribution).self_compose(count, TRUNCATED)
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        expected = other.get_delta_for_epsilon(epsilon)
        assert ours.delta(epsilon) == pytest.approx(expected, rel=1e-9, abs=count * 1e-15)


def test_a_sum_of_two_is_that_of_dp_accounting() -> None:
    left = bell(301, 1e-9)
    right = bell(40, 1e-4, seed=4)
    expected = theirs(left).compose(theirs(right)).get_delta_for_epsilon(0.3)
    assert left.compose(right).delta(0.3) == pytest.approx(expected, rel=1e-12)


def test_what_is_cut_off_counts_as_revealed() -> None:
    distribution = bell(301, 0.0)
    cut = distribution.power(50)
    whole = distribution
    for _ in range(49):
        whole = whole.compose(distribution)
    assert cut.mass.size < whole.mass.size / 4
    for epsilon in (0.0, 1.0, 5.0, 20.0):
        # Accounting adds 1e-15 to delta per composed loss, for rounding errors of the FFT.
        assert cut.delta(epsilon) >= whole.delta(epsilon) - 50e-15
    assert cut.delta(500.0) >= TRUNCATED


def test_certain_losses_stay_certain() -> None:
    revealed = GriddedLosses(STEP, 0, np.zeros(1), 1 - 1e-16)
    assert revealed.power(5).delta(3.0) == pytest.approx(1.0)
    single = GriddedLosses(STEP, 7, np.ones(1), 0.0)
    assert single.power(4).delta(0.0) == pytest.approx(-math.expm1(-28 * STEP))


def test_losses_on_different_grids_are_refused() -> None:
    with pytest.raises(ParameterError, match="different grids"):
        bell(10, 0.0).compose(GriddedLosses(2 * STEP, 0, np.ones(1), 0.0))


def test_fast_lengths_have_small_factors_and_are_the_next_ones() -> None:
    def is_smooth(n: int) -> bool:
        for factor in (2, 3, 5):
            while n % factor == 0:
                n //= factor
        return n == 1

    smooth = [n for n in range(1, 5000) if is_smooth(n)]
    for least in range(1, 4000):
        assert fast_length(least) == next(n for n in smooth if n >= least)
