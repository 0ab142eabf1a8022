"""The paper's Theorems 1 and 2 for DPCS and DPDS, as printed.

They are false as stated, so the exact delta is shown beside them wherever they appear. Both assume
at least beta n holders of every item and give delta an exponent of N/2, although only two of the N
counts differ between neighbours. `floor` is the paper's beta n throughout. A holder then has
beta n - 1 others beside it, so the theorems speak of the class of `exact.sampling_delta` with floor
beta n - 1; the errata table sets the same number in both, which favours the paper.
"""

import math

from faircount.core.validation import check_integer, check_positive, check_real

# The exponential of a larger number is no float any more.
_LARGEST_EXPONENT = 700.0


def theorem1_p(epsilon: float) -> float:
    """Return the sampling probability of Theorem 1: 1 - e^-epsilon."""
    return -math.expm1(-check_positive("epsilon", epsilon))


def theorem1_delta(users: int, items: int, floor: int, epsilon: float) -> float | None:
    """Return the smallest delta that satisfies Eq. (bound) with beta n = floor.

    None where no delta below 1 does.
    """
    _, N, holders = _check_sizes(users, items, floor)
    eps = check_positive("epsilon", epsilon)
    if holders * N > users:
        return None
    spread = 2 * math.pi * holders * (math.exp(-eps) - math.exp(-2 * eps))
    return _smallest_delta((2 * math.pi, spread, N + 1), (1.0, spread, N))


def theorem2_p(epsilon: float, z: float) -> float:
    """Return the sampling probability of Theorem 2: 1 - e^(-z-epsilon)."""
    return -math.expm1(-check_real("z", z) - check_positive("epsilon", epsilon))


def theorem2_z(users: int, items: int, floor: int, epsilon: float) -> float | None:
    """Return the largest z that Theorem 2 permits, or None where it permits none.

    It is ln(1 + n (1 - beta (N-1)) (1 - e^(-epsilon/2))).
    """
    n, N, holders = _check_sizes(users, items, floor)
    excess = (n - holders * (N - 1)) * -math.expm1(-check_positive("epsilon", epsilon) / 2)
    if excess <= 0 or holders * N > n:
        return None
    return math.log1p(excess)


def theorem2_delta(users: int, items: int, floor: int, epsilon: float, z: float) -> float | None:
    """Return the smallest delta that Theorem 2 states for beta n = floor and this z.

    None where the premises of the theorem fail.
    """
    _, N, holders = _check_sizes(users, items, floor)
    eps = check_positive("epsilon", epsilon)
    shift = check_real("z", z)
    most = theorem2_z(users, items, floor, epsilon)
    # The margin lets through the largest z itself, rounded.
    if most is None or not 0 < shift <= most * (1 + 1e-12):
        return None
    half = math.exp(-eps / 2)
    spread = 2 * math.pi * holders * (1 - half) ** 2 * math.exp(-shift - eps)
    return _smallest_delta((2 * math.pi, spread * (1 + half) ** 2, N + 1), (4 * math.pi, spread, N))


def _check_sizes(users: int, items: int, floor: int) -> tuple[int, int, int]:
    return (
        check_integer("users", users, least=1),
        check_integer("items", items, least=2),
        check_integer("floor", floor),
    )


def _smallest_delta(*conditions: tuple[float, float, int]) -> float | None:
    """Return the smallest delta < 1 that satisfies all conditions (constant, spread, power).

    A condition is spread >= (constant / delta)^(2 / power).
    """
    delta = 0.0
    for constant, spread, power in conditions:
        if spread <= 0:
            return None
        # Through the logarithm: spread to the power N/2 itself would overflow. A delta that is no
        # float any more is above 1 in any case.
        exponent = min(-power / 2 * math.log(spread), _LARGEST_EXPONENT)
        delta = max(delta, constant * math.exp(exponent))
    return delta if delta < 1 else None
