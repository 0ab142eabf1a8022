"""Gaussian noise against mpmath, and sums of discrete pieces against exact convolution."""

import math
import random

import mpmath
import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faircount.accounting import exact, gaussian
from faircount.core.errors import ParameterError


def true_delta(sigma: float, eps: float, sensitivity: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        s, e, d = mpmath.mpf(sigma), mpmath.mpf(eps), mpmath.mpf(sensitivity)
        return mpmath.ncdf(d / (2 * s) - e * s / d) - mpmath.exp(e) * mpmath.ncdf(
            -d / (2 * s) - e * s / d
        )


@pytest.mark.parametrize(
    ("sigma", "eps", "sensitivity"),
    [
        (5, 1, math.sqrt(2)),
        (70, 0.5, 1),
        (1, 30, 1),
        (0.1, 3, 1),
        (1000, 1e-4, 2),
        (0.05, 600, 1.5),
        (2, 0, 1),
    ],
)
def test_analytic_delta_is_right_in_every_regime(
    sigma: float, eps: float, sensitivity: float
) -> None:
    ratio = mpmath.mpf(gaussian.analytic_delta(sigma, eps, sensitivity)) / true_delta(
        sigma, eps, sensitivity
    )
    assert 1 <= float(ratio) < 1 + 1e-9


def test_variances_of_the_mathematics_page() -> None:
    analytic = [gaussian.analytic_sigma(eps, 1e-5) ** 2 for eps in (0.5, 1, 2)]
    classical = [2 * gaussian.classical_sigma(eps, 1e-5) ** 2 for eps in (0.5, 1, 2)]
    assert analytic == pytest.approx([98.9, 27.8, 8.0], abs=0.05)
    assert classical == pytest.approx([187.8, 46.9, 11.7], abs=0.05)


@given(st.floats(0.01, 8), st.sampled_from([0.1, 1e-3, 1e-6, 1e-12]), st.floats(0.1, 5))
@settings(max_examples=60, deadline=None)
def test_analytic_sigma_is_sound_and_tight(eps: float, delta: float, sensitivity: float) -> None:
    sigma = gaussian.analytic_sigma(eps, delta, sensitivity)
    assert gaussian.analytic_delta(sigma, eps, sensitivity) <= delta
    assert gaussian.analytic_delta(sigma * (1 - 1e-7), eps, sensitivity) > delta
    if eps < 1:
        assert sigma <= sensitivity * gaussian.classical_sigma(eps, delta) * (1 + 1e-9)


def test_parameters_are_checked() -> None:
    with pytest.raises(ParameterError):
        gaussian.classical_sigma(1.0, 0.0)
    with pytest.raises(ParameterError):
        gaussian.analytic_delta(0.0, 1.0)


def exact_sum(pmf: np.ndarray, terms: int) -> list[mpmath.mpf]:
    piece = [mpmath.mpf(float(probability)) for probability in pmf]
    distribution = [mpmath.mpf(1)]
    for _ in range(terms):
        after = [mpmath.mpf(0)] * (len(distribution) + len(piece) - 1)
        for i, left in enumerate(distribution):
            for j, right in enumerate(piece):
                after[i + j] += left * right
        distribution = after
    return distribution


@pytest.mark.parametrize("terms", [1, 2, 7, 40])
@pytest.mark.parametrize(
    "half", [[1.0, 2.0, 0.5, 0.01], [0.99, 1e-3, 0.0, 1e-9], [0.1, 1.0, 3.0, 3.0]]
)
def test_a_sum_is_the_convolution_to_its_last_tail(half: list[float], terms: int) -> None:
    pmf = np.array(half[:0:-1] + half)
    pmf /= pmf.sum()
    with np.errstate(divide="ignore"):
        ours = gaussian.discrete_sum_log_pmf(np.log(pmf), terms)
    truth = exact_sum(pmf, terms)
    middle, reach = len(truth) // 2, ours.size // 2
    for s in range(reach + 1):
        if truth[middle + s] > 1e-30:
            assert ours[reach + s] == pytest.approx(float(mpmath.log(truth[middle + s])), abs=1e-9)
            assert ours[reach - s] == ours[reach + s]
    assert 2 * mpmath.fsum(truth[middle + reach + 1 :]) <= gaussian.SUM_TAIL


@pytest.mark.parametrize("terms", [1, 3, 100, 1000])
def test_laplace_pieces_add_up_to_laplace(terms: int) -> None:
    a = math.exp(-0.5)
    ours = gaussian.discrete_sum_log_pmf(exact.laplace_log_pmf(a, 1 / terms), terms)
    z = np.abs(np.arange(ours.size) - ours.size // 2)
    np.testing.assert_allclose(ours, z * math.log(a) + math.log((1 - a) / (1 + a)), atol=1e-9)


def test_fine_gaussian_pieces_have_the_analytic_delta() -> None:
    scale, users, eps = 64, 500, 1.0
    sigma = gaussian.analytic_sigma(eps, 1e-5)
    piece = sigma * scale / math.sqrt(users)
    x = np.arange(-math.ceil(12 * piece), math.ceil(12 * piece) + 1)
    weights = np.exp(-(x**2) / (2 * piece**2))
    total = gaussian.discrete_sum_log_pmf(np.log(weights / weights.sum()), users)
    assert exact.shift_delta(total, eps, shift=scale) == pytest.approx(1e-5, rel=1e-3)


def test_a_piece_must_be_symmetric_and_fine() -> None:
    for weights in ([0.5, 0.3, 0.2], [0.5, 0.5], [0.5, 0.0, 0.0, 0.0, 0.5]):
        with np.errstate(divide="ignore"), pytest.raises(ParameterError, match="symmetric"):
            gaussian.discrete_sum_log_pmf(np.log(np.array(weights)), 3)
    assert gaussian.discrete_sum_log_pmf(np.zeros(1), 5).tolist() == [0.0]


mp.mp.dps = 50


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float) -> mp.mpf:
    ratio, eps = mp.mpf(sigma) / mp.mpf(sensitivity), mp.mpf(epsilon)
    return mp.ncdf(-eps * ratio + 1 / (2 * ratio)) - mp.exp(eps) * mp.ncdf(
        -eps * ratio - 1 / (2 * ratio)
    )


def test_analytic_gaussian_is_never_too_small() -> None:
    draw = random.Random(1)  # noqa: S311 - repeatable on purpose
    for _ in range(400):
        epsilon = draw.choice([0, 1e-8, 1e-4, 0.01, 0.5, 1, 5, 30])
        sigma = 10 ** draw.uniform(-4, 9)
        true = gaussian_delta(sigma, epsilon, 1.0)
        if true > mp.mpf(10) ** -200:
            assert gaussian.analytic_delta(sigma, epsilon, 1.0) >= true * (1 - mp.mpf(10) ** -12)
