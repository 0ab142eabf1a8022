"""Our own special functions against mpmath, to their last digits."""

import math

import mpmath as mp
import numpy as np
import pytest

from faircount.core.special import erfcx, log_factorial, log_sum_exp

mp.mp.dps = 40


@pytest.mark.parametrize(("low", "high"), [(-4, 0), (0, 2), (2, 2.1), (2.1, 30), (30, 1e6)])
def test_erfcx_is_good_to_its_last_digits(low: float, high: float) -> None:
    for x in np.random.default_rng(7).uniform(low, high, 50).tolist():
        truth = mp.exp(mp.mpf(x) ** 2) * mp.erfc(mp.mpf(x))
        # Accounting adds 2e-15 for this error and that of the argument.
        assert abs(mp.mpf(erfcx(x)) / truth - 1) < 1.5e-15


def test_erfcx_far_out_is_its_asymptote() -> None:
    assert erfcx(1e200) == pytest.approx(1 / (math.sqrt(math.pi) * 1e200))


def test_log_factorials_of_a_table() -> None:
    numbers = np.array([[0, 1, 2], [170, 171, 10**6]])
    truth = [[float(mp.loggamma(n + 1)) for n in row] for row in numbers.tolist()]
    np.testing.assert_allclose(log_factorial(numbers), truth, rtol=1e-15)
    assert log_factorial(5) == pytest.approx(math.log(120))


def test_log_sum_exp_neither_overflows_nor_loses_the_small() -> None:
    assert log_sum_exp([1000.0, 1000.0]) == pytest.approx(1000 + math.log(2))
    assert log_sum_exp([-2000.0, -2001.0]) == pytest.approx(-2000 + math.log1p(math.exp(-1)))
    assert log_sum_exp([0.0, -math.inf]) == 0
    assert log_sum_exp([]) == log_sum_exp([-math.inf]) == -math.inf
