"""The exact privacy of what the mechanisms publish: delta for epsilon, and parameters for a budget.

Neighbouring data sets differ in one user's item (replace-one: one count goes up, another one down),
or in one user's response being the zero vector (zero-out: one count changes). Nothing here is a
theorem's bound: every delta is the hockey-stick divergence of the two output distributions, rounded
up by about one part in 10^11.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from faircount.accounting.divergence import (
    LossPair,
    binomial_window,
    delta_bound,
    hockey_stick,
    largest_within,
)
from faircount.accounting.guarantee import Relation
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.search import smallest_integer
from faircount.core.validation import (
    check_epsilon,
    check_fraction,
    check_integer,
    check_positive,
    check_probability,
)

REPLACE_ONE = Relation.REPLACE_ONE

ENUMERATED_USERS = 400
"""Up to this many users all pairs of neighbours with two items are enumerated.

Beyond, the bound for any number of items is used.
"""

# A larger floor, or a larger number of coins, is taken for this one, which only raises delta.
_LARGEST_FLOOR = 10**9
_LARGEST_DECOYS = 10**8

# e^epsilon overflows beyond; a delta at a larger epsilon is bounded by that at this one.
_LARGEST_EXPONENT = 700.0

# Within these bounds the ratio e^(-epsilon/2) of the Laplace distribution is neither 1 nor 0 in
# doubles.
_LEAST_LAPLACE_EPSILON = 1e-4
_LARGEST_LAPLACE_EPSILON = 1000.0

# Divided by epsilon: the error of twice the logarithm of the ratio of neighbouring Laplace
# probabilities.
_RATIO_ERROR = 2e-14


# Sampling (DPCS, DPDS): item j is counted Bin(Pi_j, p) times. With U of k + 1 holders NOT sampled,
# the likelihood ratio of k + 1 holders against k is (k + 1)(1 - p) / U, so every divergence below
# is an expectation over such U.


def _missed_distribution(holders: int, p: float) -> tuple[Floats, Floats]:
    """Return (values, probabilities) of the number of holders not sampled, ascending."""
    first, log_pmf = binomial_window(holders, p)
    values = holders - np.arange(first, first + log_pmf.size, dtype=np.float64)
    return values[::-1], np.exp(log_pmf)[::-1]


def _expected_excess(values: Floats, pmf: Floats) -> Callable[[Floats], Floats]:
    """Return the function t -> E[max(0, V - t)] for a V on consecutive integers."""
    # E[max(0, V - t)] is the sum of P(V >= v) over integers v above t, and a rest up to the first
    # of them: sums of tails, which are positive, instead of differences.
    tail = np.append(np.cumsum(pmf[::-1])[::-1], 0.0)
    beyond = np.append(np.cumsum(tail[::-1])[::-1][1:], 0.0)
    low = values[0]
    size = values.size

    def expected_excess(t: Floats) -> Floats:
        index = np.clip(np.floor(t) + 1 - low, 0, size).astype(np.int64)
        return np.asarray(beyond[index] + np.maximum(low + index - t, 0.0) * tail[index])

    return expected_excess


def _replace_one_delta(others: int, others_too: int, p: float, epsilon: float) -> float:
    """Return delta of the pair of counts of holders (a + 1, b) -> (a, b + 1).

    It is E[max(0, V/(b+1) - e^epsilon U/(a+1))] / (1 - p), with U and V the holders of the two
    items who are not sampled.
    """
    u, weights = _missed_distribution(others + 1, p)
    expected_excess = _expected_excess(*_missed_distribution(others_too + 1, p))
    # The factor stays finite, because infinity times no user is no number. An infinite product is
    # right: nothing exceeds it.
    factor = math.exp(epsilon) * ((others_too + 1) / (others + 1))
    with np.errstate(over="ignore"):
        t = factor * u
    return float((weights * expected_excess(t)).sum()) / ((others_too + 1) * (1 - p))


def _zero_out_delta(others: int, p: float, epsilon: float) -> float:
    """Return delta of k + 1 holders against k, the larger of both directions."""
    u, weights = _missed_distribution(others + 1, p)
    mean = (others + 1) * (1 - p)
    factor = math.exp(epsilon)
    # With p near 1 the mean is tiny, and the product may be infinite, which leaves 0 as it should.
    with np.errstate(over="ignore"):
        with_user = float((weights * np.maximum(0.0, 1 - factor * u / mean)).sum())
    without_user = float((weights * np.maximum(0.0, u / mean - factor)).sum())
    return max(with_user, without_user)


def sampling_delta(floor: int, p: float, epsilon: float, relation: Relation = REPLACE_ONE) -> float:
    """Return delta of sampled counts when every item has at least `floor` OTHER holders.

    Exact for N >= 3 items and n >= N floor + 1 users, where it is attained; an upper bound for two
    items. Floor 0 gives p: whoever is the only holder of an item is exposed whenever sampled.
    """
    k = min(check_integer("floor", floor), _LARGEST_FLOOR)
    p = check_probability("p", p)
    eps = min(check_epsilon(epsilon), _LARGEST_EXPONENT)
    is_replace_one = Relation.of(relation) is REPLACE_ONE
    if k == 0 or p == 1:
        return p
    if is_replace_one:
        return delta_bound(_replace_one_delta(k, k, p, eps))
    return delta_bound(_zero_out_delta(k, p, eps))


def sampling_delta_two_items(users: int, floor: int, p: float, epsilon: float) -> float:
    """Return the replace-one delta for N = 2 items, whose counts add up to `users`.

    Exact (the largest over all pairs of neighbours with this floor) up to 400 users; beyond, the
    upper bound `sampling_delta`, which is several times larger where the floor is far below half of
    the users.
    """
    n = check_integer("users", users, least=1)
    k = check_integer("floor", floor)
    if n < 2 * k + 1:
        raise RefusedError(
            f"{n} users cannot give each of 2 items {k} other holders: "
            f"lower the floor to at most {(n - 1) // 2}"
        )
    p = check_probability("p", p)
    eps = min(check_epsilon(epsilon), _LARGEST_EXPONENT)
    if n > ENUMERATED_USERS or k == 0 or p == 1:
        return sampling_delta(k, p, eps)
    return delta_bound(_replace_one_delta(*worst_two_items(n, k, p, eps), p, eps))


def worst_two_items(users: int, floor: int, p: float, epsilon: float) -> tuple[int, int]:
    """Return the other holders (a, b) of two items, a + b = users - 1, with the largest delta."""
    eps = min(epsilon, _LARGEST_EXPONENT)
    worst = max(
        range(floor, users - floor),
        key=lambda a: _replace_one_delta(a, users - 1 - a, p, eps),
    )
    return worst, users - 1 - worst


def sampling_probability(floor: int, epsilon: float, delta: float) -> float:
    """Return the largest (epsilon, delta)-private sampling probability, rounded down."""
    limit = check_fraction("delta", delta)
    return largest_within(lambda p: sampling_delta(floor, p, epsilon), limit)


@lru_cache(maxsize=64)
def sampling_floor(p: float, epsilon: float, delta: float) -> int:
    """Return the smallest floor (other holders of every item) with which p is private enough."""
    limit = check_fraction("delta", delta)
    floor = smallest_integer(lambda k: sampling_delta(k, p, epsilon) <= limit, _LARGEST_FLOOR)
    if floor is None:
        raise RefusedError(
            f"no floor makes p = {p:g} ({epsilon:g}, {delta:g})-private: sample with a smaller p"
        )
    return floor


# Noise added to every item: neighbours shift the noise distribution.


def shift_pair(log_pmf: Floats, shift: int = 1) -> LossPair:
    """Return a noise distribution moved up by `shift` support steps, against itself."""
    pad = np.full(check_integer("shift", shift, least=1), -np.inf)
    return LossPair(np.concatenate((pad, log_pmf)), np.concatenate((log_pmf, pad)))


def shift_delta(
    log_pmf: Floats, epsilon: float, shift: int = 1, relation: Relation = REPLACE_ONE
) -> float:
    """Return the exact delta when a count with this additive noise moves by `shift` support steps.

    Replace-one: one count up and another one down, both with this noise. Zero-out: one count, in
    the worse direction.
    """
    if shift >= log_pmf.size:  # the two distributions have no outcome in common
        return 1.0
    up = shift_pair(log_pmf, shift)
    eps = check_epsilon(epsilon)
    if Relation.of(relation) is REPLACE_ONE:
        return hockey_stick((up, up.swap()), eps)
    return max(hockey_stick((up,), eps), hockey_stick((up.swap(),), eps))


def decoys_delta(coins: int, epsilon: float, relation: Relation = REPLACE_ONE) -> float:
    """Return the exact delta of counts hidden by Bin(coins, 1/2) noise, whatever the data."""
    count = min(check_integer("coins", coins), _LARGEST_DECOYS)
    eps = check_epsilon(epsilon)
    if count == 0:
        return 1.0
    return shift_delta(binomial_window(count, 0.5)[1], eps, 1, relation)


@lru_cache(maxsize=64)
def decoys_needed(epsilon: float, delta: float) -> int:
    """Return the smallest number D0 of fair coins per item that is (epsilon, delta)-private."""
    limit = check_fraction("delta", delta)
    # The search may rely on monotony: adding a coin is post-processing of both distributions, so
    # delta falls with the number of coins.
    needed = smallest_integer(lambda coins: decoys_delta(coins, epsilon) <= limit, _LARGEST_DECOYS)
    if needed is None:
        raise RefusedError(
            f"no number of coins up to {_LARGEST_DECOYS} is ({epsilon:g}, {delta:g})-private"
        )
    return needed


# Distributed discrete Laplace: the sum of NB(r) - NB(r), r = (users whose noise counts) / h, with
# the ratio a = e^(-epsilon/2).

LAPLACE_TAIL = 1e-100
"""Probability outside the support of `laplace_log_pmf`, at most."""


def _laplace_reach(a: float, r: float) -> int:
    """Return an L with P(|Z| > L) <= LAPLACE_TAIL."""
    # Chernoff's bound at the best of a grid of exponents. The moment generating function is finite
    # for a < w < 1/a, and a^-0.999 is almost there.
    w = a ** -np.linspace(0.001, 0.999, 999)
    log_moment = r * (2 * math.log1p(-a) - np.log1p(-a * w) - np.log1p(-a / w))
    return math.ceil(float(((log_moment - math.log(LAPLACE_TAIL / 2)) / np.log(w)).min())) + 1


def _laplace_ratios(a: float, r: float, reach: int) -> list[float]:
    """Return g[z+1]/g[z] for z = 0..reach-1.

    The generating function ((1-a)^2 / ((1-aw)(1-a/w)))^r gives the recurrence
    a(z+1-r) g[z+1] = (1+a^2) z g[z] - a(z-1+r) g[z-1].
    """
    # Miller's algorithm: backwards, because forwards the recurrence is unstable. The starting value
    # is a guess, whose error shrinks by a^2 a step; after `ahead` steps nothing of it is left.
    ahead = math.ceil(20 / -math.log(a)) + 20
    middle = 1 + a * a
    ratio = a
    ratios = []
    for z in range(reach + ahead, 0, -1):
        ratio = a * (z - 1 + r) / (middle * z - a * (z + 1 - r) * ratio)
        if z <= reach:
            ratios.append(ratio)
    return ratios[::-1]


@lru_cache(maxsize=32)
def _laplace_half(a: float, r: float) -> Floats:
    """Return log probabilities at 0..L; the distribution is symmetric."""
    ratios = _laplace_ratios(a, r, _laplace_reach(a, r))
    half = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    # The probabilities are normalized to 1: twice those above 0, and that of 0, whose logarithm is
    # still 0. The largest is taken out first so that nothing overflows.
    largest = half.max()
    total = 2 * float(np.exp(half[1:] - largest).sum()) + math.exp(-largest)
    half -= math.log(total) + largest
    half.setflags(write=False)  # the cache hands out this very array
    return half


def laplace_log_pmf(a: float, r: float) -> Floats:
    """Return log probabilities of NB(r) - NB(r) with ratio a on -L..L.

    At most 1e-100 lies outside. r = 1 is the discrete Laplace distribution a^|z| (1-a)/(1+a).
    """
    half = _laplace_half(check_fraction("a", a), check_positive("r", r))
    return np.concatenate((half[:0:-1], half))


def laplace_epsilon(epsilon: float, share: float) -> float:
    """Return the pure epsilon left when only a fraction `share` of the noise hides a user.

    The noise was planned for `epsilon`; the rest of it is known to the adversary or missing.
    """
    eps = check_positive("epsilon", epsilon)
    r = check_positive("share", share)
    if not _LEAST_LAPLACE_EPSILON <= eps <= _LARGEST_LAPLACE_EPSILON:
        raise ParameterError(
            f"epsilon must lie between {_LEAST_LAPLACE_EPSILON:g} and "
            f"{_LARGEST_LAPLACE_EPSILON:g} here"
        )
    if r >= 1:
        # The ratio of neighbouring probabilities falls to a = e^(-epsilon/2) from above, so more
        # noise than planned leaves epsilon as it is.
        return eps
    # For r < 1 the ratio is smallest at 0, which gives 2 ln(P_r(0)/P_r(1)), rounded up.
    ratio = _laplace_ratios(math.exp(-eps / 2), r, 1)[0]
    return -2 * math.log(ratio) * (1 + 1e-13) + _RATIO_ERROR / eps


@lru_cache(maxsize=1024)
def laplace_shift_loss(loss: float, share: float, steps: int) -> float:
    """Return the pure loss of a number that moves by so many steps, with a share of its noise.

    The whole noise loses `loss` per step. A fraction of it loses most in the middle, where its
    distribution falls fastest: ln(P_r(0) / P_r(steps)), rounded up.
    """
    step = check_positive("loss", loss)
    r = check_positive("share", share)
    if r >= 1:
        return step * steps
    ratios = _laplace_ratios(math.exp(-step), r, steps)
    fallen = -math.fsum(map(math.log, ratios))
    return fallen * (1 + 1e-13) + steps * _RATIO_ERROR / step


def laplace_delta(
    epsilon0: float, share: float, epsilon: float, relation: Relation = REPLACE_ONE
) -> float:
    """Return the exact delta at `epsilon` of Laplace noise planned for `epsilon0`.

    Only a fraction `share` of the noise hides the user.
    """
    eps = check_epsilon(epsilon)
    coordinates = 2 if Relation.of(relation) is REPLACE_ONE else 1
    epsilon0 = check_positive("epsilon", epsilon0)
    share = check_positive("share", share)
    if eps >= laplace_epsilon(epsilon0, share) * coordinates / 2:
        return 0.0
    a = math.exp(-epsilon0 / 2)
    if share == 1:
        # A moved count is randomized response with epsilon0 / 2, twice under replace-one: a closed
        # form.
        return delta_bound((1 + a) ** -coordinates * -math.expm1(eps - coordinates * epsilon0 / 2))
    # What lies outside the table is missing from both distributions: once for P, e^eps times for Q.
    cut = coordinates * (1 + math.exp(eps)) * LAPLACE_TAIL
    lowered = max(0.0, eps - _RATIO_ERROR / epsilon0)
    return min(1.0, shift_delta(laplace_log_pmf(a, share), lowered, 1, relation) + cut)
