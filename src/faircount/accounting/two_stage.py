"""What S1 learns in two-stage sampling (TSS, TSS'): from the reported sets A_i alone, and together with the result.

An active user (probability p) draws a set of M of the N items in which its own item is `gamma` times likelier to be;
an inactive one draws uniformly. gamma = 1 is the paper's chi_U, gamma > 1 its chi_A. With alpha = M/N and
Z = alpha gamma + 1 - alpha, the set of a holder of item j is, against the uniform law, likelier by the factor

    L_in = 1 - p + p gamma/Z   if j is in it,        L_out = 1 - p + p/Z   if not,

so j is in it with probability alpha L_in, and then its bit is 1 with probability p1 = p gamma / (Z L_in).
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from faircount.accounting.composition import sampling_pair
from faircount.accounting.divergence import LossPair, binomial_window, delta_bound, hockey_stick
from faircount.accounting.exact import sampling_probability
from faircount.accounting.guarantee import Relation
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError
from faircount.core.search import last_real
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import integer, probability, real

LARGEST_GAMMA = 1e15
"""Beyond, floating point would not tell a set without the own item from an impossible one."""

_LARGEST_FLOOR = 10**6
_TAIL = 1e-25  # mass that a window may leave out; what is left out is added to delta
_ROWS = 256  # crowd sizes told apart; more of them are rounded down in steps, which only raises delta


@dataclass(frozen=True)
class _Reporting:
    """The factors of the module's docstring."""

    alpha: float
    inside: float
    outside: float
    bit: float

    @classmethod
    def of(cls, p: float, alpha: float, gamma: float) -> "_Reporting":
        p, gamma = probability("p", p), real("gamma", gamma)
        if not 1 <= gamma <= LARGEST_GAMMA:
            raise ParameterError(f"gamma must lie between 1 (uniform reporting) and {LARGEST_GAMMA:g}, not {gamma:g}")
        scale = alpha * gamma + 1 - alpha
        inside = 1 - p + p * gamma / scale
        return cls(alpha, inside, 1 - p + p / scale, min(1.0, p * gamma / (scale * inside)))

    @property
    def ratio(self) -> float:
        """ln(L_in / L_out)."""
        return math.log(self.inside / self.outside)


def s1_epsilon(p: float, alpha: float, gamma: float) -> float:
    """Pure epsilon against S1 from the reported sets alone, tight: ln(L_in / L_out). 0 for uniform reporting."""
    share = probability("alpha", alpha)
    return 0.0 if share == 1 else _Reporting.of(p, share, gamma).ratio


def s1_epsilon_paper(gamma: float) -> float:
    """The paper's value for the same, ln(gamma): an upper bound."""
    if real("gamma", gamma) < 1:
        raise ParameterError(f"gamma must be at least 1 (1 is uniform reporting), not {float(gamma):g}")
    return math.log(gamma)


def sets_delta(items: int, reported: int, p: float, gamma: float, epsilon: float) -> float:
    """delta, replace-one, against whoever learns a user's set A and nothing else of it; 0 for uniform reporting.

    It bounds what anybody can know of a user who indicated and then vanished: its bits are in no sum.
    """
    N, eps = integer("items", items, least=2), min(checked_epsilon(epsilon), 700.0)
    M = integer("reported", reported, least=1, most=N)
    law = _Reporting.of(p, M / N, gamma)
    one = M * (N - M) / (N * (N - 1))  # sets with the one item and without the other
    return max(0.0, one * (law.inside - math.exp(eps) * law.outside))


def s1_delta(
    items: int,
    reported: int,
    p: float,
    gamma: float,
    floor: int,
    epsilon: float,
    relation: Relation = Relation.REPLACE_ONE,
    lost: int = 0,
) -> float:
    """delta against S1 who knows every reported set AND reads the result; every item has `floor` other holders.

    S1 sees item j's crowd shrink to the K ~ Bin(floor, alpha L_in) other holders that report it, so (K, count) is one
    observed coordinate. Exact up to 256 plausible crowd sizes (floors of some hundreds); beyond, an upper bound that
    rounds crowds down. The user's own set holds both of its two items, one of them, or none.

    `lost` others may be missing from the sum, and S1 may have chosen them by their sets: K - lost hide the user, far
    fewer than Bin(floor - lost, alpha L_in). If its set holds both items each crowd loses all of them, which only
    raises delta: S1 has to share them out between the two.
    """
    N, k, eps = integer("items", items, least=2), integer("floor", floor), min(checked_epsilon(epsilon), 700.0)
    k = min(k, _LARGEST_FLOOR)  # a smaller crowd hides less, so this only raises delta
    M = integer("reported", reported, least=1, most=N)
    law = _Reporting.of(p, M / N, gamma)
    crowd = _crowd_pair(k, law, integer("lost", lost))
    replaced = Relation.of(relation) is Relation.REPLACE_ONE
    value = _replaced(N, M, law, crowd, eps) if replaced else _zeroed(law, crowd, eps)
    return delta_bound(value + 8 * _TAIL)


def _replaced(N: int, M: int, law: _Reporting, crowd: LossPair, eps: float) -> float:
    """The user holds item 1 or item 2: set with both (count 1 up, 2 down), with item 1 only, with item 2 only."""
    both = M * (M - 1) / (N * (N - 1))
    one = M / N - both
    value = both * law.inside * hockey_stick((crowd, crowd.swapped()), eps) if both else 0.0
    if one > 0 and M < N:
        value += one * law.inside * hockey_stick((crowd,), eps - law.ratio)
        value += one * law.outside * hockey_stick((crowd.swapped(),), eps + law.ratio)
    return value


def _zeroed(law: _Reporting, crowd: LossPair, eps: float) -> float:
    """The user holds item 1, or responds with zero and reports a uniform set; the larger of both directions."""
    shift, rest = math.log(law.inside), 1 - law.alpha
    seen = law.alpha * law.inside * hockey_stick((crowd,), eps - shift)
    missed = law.alpha * hockey_stick((crowd.swapped(),), eps + shift)
    return max(seen, missed + rest * max(0.0, 1 - math.exp(eps) * law.outside))


def _crowd_pair(k: int, law: _Reporting, lost: int) -> LossPair:
    """(K, count) with the user among those who report the item, all but `lost` of K others, and without the user."""
    first, log_crowd = binomial_window(k, min(1.0, law.alpha * law.inside))
    kept = _core(log_crowd)
    first, log_crowd = first + kept.start, log_crowd[kept]
    width = -(-log_crowd.size // _ROWS)
    with_user, without = [], []
    for start in range(0, log_crowd.size, width):
        weight = math.log(float(np.exp(log_crowd[start : start + width]).sum()))
        log_p, log_q = _count_laws(max(0, first + start - lost), law.bit)
        with_user.append(weight + log_p)
        without.append(weight + log_q)
    return LossPair(np.concatenate(with_user), np.concatenate(without))


def _count_laws(others: int, bit: float) -> tuple[Floats, Floats]:
    """Log laws of Bin(K + 1, p1) and Bin(K, p1)."""
    if bit == 1:
        return np.array([-np.inf, 0.0]), np.array([0.0, -np.inf])
    pair = sampling_pair(others, bit)
    kept = _core(np.maximum(pair.log_p, pair.log_q))
    return pair.log_p[kept], pair.log_q[kept]


def _core(log_mass: Floats) -> slice:
    """The part of a law that leaves out at most _TAIL on each side."""
    mass = np.exp(log_mass)
    low = int(np.searchsorted(np.cumsum(mass), _TAIL))
    return slice(low, mass.size - int(np.searchsorted(np.cumsum(mass[::-1]), _TAIL)))


@lru_cache(64)
def uniform_probability(
    items: int, reported: int, floor: int, lost: int, crowd: int, epsilon: float, delta: float
) -> float:
    """A p for uniform sets at which S1 (no participant: the whole floor hides a user) and the insiders meet a budget.

    S1 may leave out `lost` users; the insiders leave a `crowd` of the floor. Within 0.5% of the largest, on the safe
    side: S1's view is the slowest to account.
    """
    most = sampling_probability(crowd, epsilon, delta)

    def sound(p: float) -> bool:
        return s1_delta(items, reported, p, 1.0, floor, epsilon, Relation.REPLACE_ONE, lost) <= delta

    if sound(most):
        return most
    safe = most
    while not sound(safe):
        most, safe = safe, safe / 2
    return math.exp(last_real(lambda log_p: sound(math.exp(log_p)), math.log(safe), math.log(most), math.log(1.005)))
