"""The paper's theorems beside the exact delta: the errata table of the documentation."""

import math

import pytest

from faircount.accounting import exact, paper

# n, N, floor, epsilon, delta by Theorem 1, exact delta with the same number as the floor
FIRST = [
    (1000, 30, 23, 0.1, 6.7e-17, 7.4e-3),
    (1000, 30, 23, 0.5, 9.2e-24, 2.5e-3),
    (1000, 30, 23, 1.0, 1.4e-23, 2.5e-3),
    (1000, 5, 100, 0.5, 3.6e-6, 5.2e-7),
    (1000, 5, 100, 1.0, 3.9e-6, 6.0e-8),
]


def two_digits(value: float | None) -> float:
    assert value is not None
    return float(f"{value:.1e}")


@pytest.mark.parametrize(("n", "N", "floor", "eps", "printed", "true"), FIRST)
def test_theorem_1(n: int, N: int, floor: int, eps: float, printed: float, true: float) -> None:
    p = paper.theorem1_p(eps)
    assert p == pytest.approx(1 - math.exp(-eps))
    assert two_digits(paper.theorem1_delta(n, N, floor, eps)) == printed
    assert two_digits(exact.sampling_delta(floor, p, eps)) == true
    assert exact.sampling_delta(floor - 1, p, eps) > exact.sampling_delta(floor, p, eps)


def test_theorem_2() -> None:
    p = paper.theorem2_p(1.0, 1.585)
    assert p == pytest.approx(0.9246, abs=5e-5)
    assert two_digits(paper.theorem2_delta(5000, 30, 150, 1.0, 1.585)) == 3.0e-15
    assert two_digits(exact.sampling_delta(150, p, 1.0)) == 3.1e-3


def test_one_event_already_breaks_the_first_row() -> None:
    p = paper.theorem1_p(0.1)
    least = {
        n: math.fsum(math.comb(n, x) * p**x * (1 - p) ** (n - x) for x in range(5, n + 1))
        for n in (23, 24)
    }
    gap = least[24] - math.exp(0.1) * least[23]
    assert gap == pytest.approx(3.9e-3, abs=5e-5)
    stated = paper.theorem1_delta(1000, 30, 23, 0.1)
    assert stated is not None
    assert gap > 1e13 * stated


@pytest.mark.parametrize(("N", "floor", "eps"), [(30, 23, 0.1), (5, 100, 0.5), (4, 9, 2.0)])
def test_the_delta_of_theorem_1_satisfies_its_inequality_with_equality(
    N: int, floor: int, eps: float
) -> None:
    delta = paper.theorem1_delta(1000, N, floor, eps)
    assert delta is not None
    right = max((2 * math.pi / delta) ** (2 / (N + 1)), (1 / delta) ** (2 / N))
    right /= 2 * math.pi * (math.exp(-eps) - math.exp(-2 * eps))
    assert floor == pytest.approx(right, rel=1e-12)


def test_the_delta_of_theorem_2_satisfies_its_inequality_with_equality() -> None:
    n, N, floor, eps, z = 5000, 30, 150, 1.0, 1.0
    delta = paper.theorem2_delta(n, N, floor, eps, z)
    assert delta is not None
    half = math.exp(-eps / 2)
    right = max(
        (2 * math.pi / delta) ** (2 / (N + 1)) / (1 + half) ** 2, (4 * math.pi / delta) ** (2 / N)
    )
    assert floor == pytest.approx(
        math.exp(z + eps) / (2 * math.pi * (1 - half) ** 2) * right, rel=1e-12
    )


def test_the_largest_z() -> None:
    z = paper.theorem2_z(5000, 30, 150, 1.0)
    assert z == pytest.approx(math.log(1 + (5000 - 29 * 150) * (1 - math.exp(-0.5))))
    assert paper.theorem2_delta(5000, 30, 150, 1.0, 5.6) is None
    assert paper.theorem2_z(100, 30, 10, 1.0) is None


def test_premises_that_cannot_be_met_give_no_bound() -> None:
    assert (
        paper.theorem1_delta(1000, 30, 34, 1.0) is None
    )  # 30 items with 34 holders each need 1020 users
    assert paper.theorem1_delta(1000, 30, 1, 0.1) is None  # no delta below 1
    assert paper.theorem1_delta(1000, 30, 0, 0.1) is None
    assert paper.theorem2_delta(1000, 5, 100, 1.0, -1.0) is None


def test_a_delta_that_is_no_float_is_none() -> None:
    """It ended in an OverflowError, at p near 1 as well as here."""
    assert paper.theorem1_delta(1000, 3, 5, 400.0) is None
