"""The paper's Theorems 1 and 2 for DPCS and DPDS, as printed. They are false as stated: the exact delta belongs beside.

Both suppose at least beta n holders of every item and give delta an exponent of N/2, although only two of the N
counts differ between neighbours. `floor` is the paper's beta n throughout. A holder then has beta n - 1 others beside
it, so the theorems speak of the class of `exact.sampling_delta` with floor beta n - 1; the errata table sets the same
number in both, which favours the paper.
"""

import math

from faircount.core.validation import integer, positive, real


def theorem1_p(epsilon: float) -> float:
    """The sampling probability of Theorem 1: 1 - e^-epsilon."""
    return -math.expm1(-positive("epsilon", epsilon))


def theorem1_delta(users: int, items: int, floor: int, epsilon: float) -> float | None:
    """The smallest delta that satisfies Eq. (bound) with beta n = floor; None where no delta below 1 does."""
    _, N, holders = _counts(users, items, floor)
    eps = positive("epsilon", epsilon)
    if holders * N > users:
        return None
    spread = 2 * math.pi * holders * (math.exp(-eps) - math.exp(-2 * eps))
    return _smallest((2 * math.pi, spread, N + 1), (1.0, spread, N))


def theorem2_p(epsilon: float, z: float) -> float:
    """The sampling probability of Theorem 2: 1 - e^(-z-epsilon)."""
    return -math.expm1(-real("z", z) - positive("epsilon", epsilon))


def theorem2_z(users: int, items: int, floor: int, epsilon: float) -> float | None:
    """The largest z that Theorem 2 permits, ln(1 + n (1 - beta (N-1)) (1 - e^(-epsilon/2))); None where none is."""
    n, N, holders = _counts(users, items, floor)
    room = (n - holders * (N - 1)) * -math.expm1(-positive("epsilon", epsilon) / 2)
    return math.log1p(room) if room > 0 and holders * N <= n else None


def theorem2_delta(users: int, items: int, floor: int, epsilon: float, z: float) -> float | None:
    """The smallest delta that Theorem 2 states for beta n = floor and this z; None where its premises fail."""
    _, N, holders = _counts(users, items, floor)
    eps, shift, most = positive("epsilon", epsilon), real("z", z), theorem2_z(users, items, floor, epsilon)
    if most is None or not 0 < shift <= most * (1 + 1e-12):
        return None
    half = math.exp(-eps / 2)
    spread = 2 * math.pi * holders * (1 - half) ** 2 * math.exp(-shift - eps)
    return _smallest((2 * math.pi, spread * (1 + half) ** 2, N + 1), (4 * math.pi, spread, N))


def _counts(users: int, items: int, floor: int) -> tuple[int, int, int]:
    return integer("users", users, least=1), integer("items", items, least=2), integer("floor", floor)


def _smallest(*conditions: tuple[float, float, int]) -> float | None:
    """The smallest delta < 1 with spread >= (constant / delta)^(2 / power) for every condition."""
    if any(spread <= 0 for _, spread, _ in conditions):
        return None
    delta = max(constant * math.exp(-power / 2 * math.log(spread)) for constant, spread, power in conditions)
    return delta if delta < 1 else None
