"""What the coordinator (S1) learns in two-stage sampling (TSS, TSS').

It knows the reported sets A_i, alone or together with the published result. An active user
(probability p) draws a set of M of the N items in which its own item is `gamma` times likelier to
be; an inactive one draws uniformly. gamma = 1 is the paper's chi_U, gamma > 1 its chi_A. With
alpha = M/N and Z = alpha gamma + 1 - alpha, the set of a holder of item j is, against the uniform
distribution, likelier by the factor

    L_in = 1 - p + p gamma/Z   if j is in it,        L_out = 1 - p + p/Z   if not,

so j is in it with probability alpha L_in, and then its bit is 1 with probability
p1 = p gamma / (Z L_in).
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
from faircount.core.search import last_float
from faircount.core.validation import check_epsilon, check_integer, check_probability, check_real

LARGEST_GAMMA = 1e15
"""Beyond, doubles would not tell a set without the user's own item from an impossible one."""

# A larger floor is taken for this one: a smaller crowd hides less, so this only raises delta.
_LARGEST_FLOOR = 10**6

# Mass that a window may leave out; what is left out is added to delta.
_TAIL = 1e-25

# Crowd sizes that are told apart. More of them are rounded down in steps, which only raises delta.
_ROWS = 256

# e^epsilon overflows beyond; a delta at a larger epsilon is bounded by that at this one.
_LARGEST_EXPONENT = 700.0


@dataclass(frozen=True)
class SetDistribution:
    """The factors of the module's docstring: alpha, L_in, L_out and p1."""

    alpha: float
    inside: float
    outside: float
    bit: float

    @classmethod
    def of(cls, p: float, alpha: float, gamma: float) -> "SetDistribution":
        """Return the factors for these parameters of a mechanism."""
        p = check_probability("p", p)
        gamma = check_real("gamma", gamma)
        if not 1 <= gamma <= LARGEST_GAMMA:
            raise ParameterError(
                f"gamma must lie between 1 (uniform reporting) and {LARGEST_GAMMA:g}, not {gamma:g}"
            )
        scale = alpha * gamma + 1 - alpha
        inside = 1 - p + p * gamma / scale
        return cls(alpha, inside, 1 - p + p / scale, min(1.0, p * gamma / (scale * inside)))

    @property
    def log_ratio(self) -> float:
        """ln(L_in / L_out)."""
        return math.log(self.inside / self.outside)


def coordinator_epsilon(p: float, alpha: float, gamma: float) -> float:
    """Return the pure epsilon against the coordinator from the reported sets alone.

    It is ln(L_in / L_out), which is tight; 0 for uniform reporting.
    """
    share = check_probability("alpha", alpha)
    if share == 1:
        return 0.0
    return SetDistribution.of(p, share, gamma).log_ratio


def coordinator_epsilon_paper(gamma: float) -> float:
    """Return the paper's value for the same, ln(gamma): an upper bound."""
    if check_real("gamma", gamma) < 1:
        raise ParameterError(
            f"gamma must be at least 1 (1 is uniform reporting), not {float(gamma):g}"
        )
    return math.log(gamma)


def sets_delta(items: int, reported: int, p: float, gamma: float, epsilon: float) -> float:
    """Return the replace-one delta against whoever learns a user's set A and nothing else of it.

    0 for uniform reporting. It bounds what anybody can know of a user who reported a set and then
    dropped out: its bits are in no sum.
    """
    N = check_integer("items", items, least=2)
    eps = min(check_epsilon(epsilon), _LARGEST_EXPONENT)
    M = check_integer("reported", reported, least=1, most=N)
    distribution = SetDistribution.of(p, M / N, gamma)
    only_one = M * (N - M) / (N * (N - 1))  # sets with the one item and without the other
    return max(0.0, only_one * (distribution.inside - math.exp(eps) * distribution.outside))


def coordinator_delta(
    items: int,
    reported: int,
    p: float,
    gamma: float,
    floor: int,
    epsilon: float,
    relation: Relation = Relation.REPLACE_ONE,
    lost: int = 0,
) -> float:
    """Return delta against a coordinator who knows every reported set AND reads the result.

    Every item has `floor` other holders. The coordinator sees item j's crowd shrink to the
    K ~ Bin(floor, alpha L_in) other holders that report it, so (K, count) is one observed
    coordinate. Exact up to 256 plausible crowd sizes (floors of some hundreds); beyond, an upper
    bound that rounds crowds down. The user's own set holds both of its two items, one of them, or
    none.

    `lost` others may be missing from the sum, and the coordinator may have chosen them by their
    sets: K - lost hide the user, far fewer than Bin(floor - lost, alpha L_in). If its set holds
    both items, either crowd loses all of them, which only raises delta: the coordinator has to
    share them out between the two.
    """
    N = check_integer("items", items, least=2)
    k = min(check_integer("floor", floor), _LARGEST_FLOOR)
    eps = min(check_epsilon(epsilon), _LARGEST_EXPONENT)
    M = check_integer("reported", reported, least=1, most=N)
    distribution = SetDistribution.of(p, M / N, gamma)
    crowd = _crowd_pair(k, distribution, check_integer("lost", lost))
    if Relation.of(relation) is Relation.REPLACE_ONE:
        value = _replace_one_delta(N, M, distribution, crowd, eps)
    else:
        value = _zero_out_delta(distribution, crowd, eps)
    # At most eight tails of P were cut: two of a crowd's distribution and two of a count's, for up
    # to two items. What is missing from Q only raises delta.
    return delta_bound(value + 8 * _TAIL)


def _replace_one_delta(
    N: int, M: int, distribution: SetDistribution, crowd: LossPair, eps: float
) -> float:
    """Return delta when the user holds item 1 or item 2."""
    both = M * (M - 1) / (N * (N - 1))
    only_one = M / N - both
    value = 0.0
    if both:
        # A set with both items: count 1 goes up and count 2 down.
        value = both * distribution.inside * hockey_stick((crowd, crowd.swap()), eps)
    if only_one > 0 and M < N:
        # A set with item 1 only, or with item 2 only: the set itself favours one of the two, and
        # only the count of the item that is in it tells more.
        value += (
            only_one * distribution.inside * hockey_stick((crowd,), eps - distribution.log_ratio)
        )
        value += (
            only_one
            * distribution.outside
            * hockey_stick((crowd.swap(),), eps + distribution.log_ratio)
        )
    return value


def _zero_out_delta(distribution: SetDistribution, crowd: LossPair, eps: float) -> float:
    """Return delta when the user holds item 1, or responds with zero and reports a uniform set."""
    shift = math.log(distribution.inside)
    with_user = distribution.alpha * distribution.inside * hockey_stick((crowd,), eps - shift)
    without_user = distribution.alpha * hockey_stick((crowd.swap(),), eps + shift)
    # A set without the item is likelier without the user, and no count tells more about it.
    without_user += (1 - distribution.alpha) * max(0.0, 1 - math.exp(eps) * distribution.outside)
    return max(with_user, without_user)


def _crowd_pair(k: int, distribution: SetDistribution, lost: int) -> LossPair:
    """Return the distributions of (K, count) with and without a user whose set holds the item.

    All but `lost` of the K others who report it are counted.
    """
    first, log_crowd = binomial_window(k, min(1.0, distribution.alpha * distribution.inside))
    core = _core(log_crowd)
    first += core.start
    log_crowd = log_crowd[core]
    width = -(-log_crowd.size // _ROWS)
    with_user = []
    without_user = []
    for start in range(0, log_crowd.size, width):
        weight = math.log(float(np.exp(log_crowd[start : start + width]).sum()))
        log_p, log_q = _count_distributions(max(0, first + start - lost), distribution.bit)
        with_user.append(weight + log_p)
        without_user.append(weight + log_q)
    return LossPair(np.concatenate(with_user), np.concatenate(without_user))


def _count_distributions(others: int, bit: float) -> tuple[Floats, Floats]:
    """Return log probabilities of Bin(K + 1, p1) and Bin(K, p1)."""
    if bit == 1:
        return np.array([-np.inf, 0.0]), np.array([0.0, -np.inf])
    pair = sampling_pair(others, bit)
    core = _core(np.maximum(pair.log_p, pair.log_q))
    return pair.log_p[core], pair.log_q[core]


def _core(log_mass: Floats) -> slice:
    """Return the part of a distribution that leaves out at most _TAIL on either side."""
    mass = np.exp(log_mass)
    low = int(np.searchsorted(np.cumsum(mass), _TAIL))
    return slice(low, mass.size - int(np.searchsorted(np.cumsum(mass[::-1]), _TAIL)))


@lru_cache(64)
def uniform_probability(
    items: int, reported: int, floor: int, lost: int, crowd: int, epsilon: float, delta: float
) -> float:
    """Return a p for uniform sets with which coordinator and insiders both stay within a budget.

    The coordinator is no participant, so that the whole floor hides a user from it, but it may
    leave out `lost` users; the insiders leave a `crowd` of the floor. Within 0.5% of the largest
    such p, on the safe side: the coordinator's view is the slowest to account for.
    """
    most = sampling_probability(crowd, epsilon, delta)

    def is_private(p: float) -> bool:
        found = coordinator_delta(
            items, reported, p, 1.0, floor, epsilon, Relation.REPLACE_ONE, lost
        )
        return found <= delta

    if is_private(most):
        return most
    safe = most
    while not is_private(safe):
        most = safe
        safe = safe / 2
    log_p = last_float(
        lambda log_p: is_private(math.exp(log_p)), math.log(safe), math.log(most), math.log(1.005)
    )
    return math.exp(log_p)
