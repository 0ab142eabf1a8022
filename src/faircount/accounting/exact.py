"""The exact privacy of what the mechanisms publish: a delta for every epsilon, and the parameters for a wanted pair.

Neighbouring data sets differ in one user's item (replace-one: one count goes up, another one down), or in one user's
response being the zero vector (zero-out: one count changes). Nothing here is a theorem's bound: each delta is the
hockey-stick divergence of the two output laws, rounded up by about one part in 10^11.
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
from faircount.core.search import smallest_whole
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import fraction, integer, positive, probability

REPLACE_ONE = Relation.REPLACE_ONE

ENUMERATED_USERS = 400
"""Up to this many users, two items are enumerated pair by pair; beyond, the bound for any number of items is used."""

_LARGEST_FLOOR = 10**9  # a larger floor is taken for this one, which only raises delta; likewise for coins
_LARGEST_DECOYS = 10**8
_LAPLACE_EPSILONS = 1e-4, 1000.0  # what floating point can carry: between, the ratio e^(-epsilon/2) is neither 1 nor 0
_RATIO_ERROR = 2e-14  # divided by epsilon: error of twice the logarithm of neighbouring Laplace probabilities' ratio


# Sampling (DPCS, DPDS): item j is counted Bin(Pi_j, p) times. With U of k + 1 holders NOT sampled, the likelihood ratio
# of k + 1 holders against k is (k + 1)(1 - p) / U, so every divergence below is an expectation over such U.


def _unsampled(holders: int, p: float) -> tuple[Floats, Floats]:
    """(values, probabilities) of the number of holders that are not sampled, ascending."""
    first, log_pmf = binomial_window(holders, p)
    values = holders - np.arange(first, first + log_pmf.size, dtype=np.float64)
    return values[::-1], np.exp(log_pmf)[::-1]


def _excess(values: Floats, pmf: Floats) -> Callable[[Floats], Floats]:
    """t -> E[max(0, V - t)] for V on consecutive integers, as a sum of tails."""
    tail = np.append(np.cumsum(pmf[::-1])[::-1], 0.0)
    beyond = np.append(np.cumsum(tail[::-1])[::-1][1:], 0.0)
    low, size = values[0], values.size

    def expected(t: Floats) -> Floats:
        index = np.clip(np.floor(t) + 1 - low, 0, size).astype(np.int64)
        return np.asarray(beyond[index] + np.maximum(low + index - t, 0.0) * tail[index])

    return expected


def _replaced(others: int, others_too: int, p: float, epsilon: float) -> float:
    """delta of the pair (a + 1, b) -> (a, b + 1): E[max(0, V/(b+1) - e^epsilon U/(a+1))] / (1 - p)."""
    u, weights = _unsampled(others + 1, p)
    expected = _excess(*_unsampled(others_too + 1, p))
    t = math.exp(epsilon) * (others_too + 1) / (others + 1) * u
    return float((weights * expected(t)).sum()) / ((others_too + 1) * (1 - p))


def _zeroed(others: int, p: float, epsilon: float) -> float:
    """delta of k + 1 holders against k, the larger of both directions."""
    u, weights = _unsampled(others + 1, p)
    mean, factor = (others + 1) * (1 - p), math.exp(epsilon)
    seen = float((weights * np.maximum(0.0, 1 - factor * u / mean)).sum())
    missed = float((weights * np.maximum(0.0, u / mean - factor)).sum())
    return max(seen, missed)


def sampling_delta(floor: int, p: float, epsilon: float, relation: Relation = REPLACE_ONE) -> float:
    """Exact delta of publishing sampled counts when every item has at least `floor` OTHER holders (section 2).

    Attained for N >= 3 items and n >= N floor + 1 users; an upper bound for two items. Floor 0 gives p: whoever is
    alone with an item is exposed whenever sampled.
    """
    k, p, eps = min(integer("floor", floor), _LARGEST_FLOOR), probability("p", p), checked_epsilon(epsilon)
    replaced = Relation.of(relation) is REPLACE_ONE
    if k == 0 or p == 1:
        return p
    eps = min(eps, 700.0)
    return delta_bound(_replaced(k, k, p, eps) if replaced else _zeroed(k, p, eps))


def sampling_delta_two_items(users: int, floor: int, p: float, epsilon: float) -> float:
    """Replace-one delta for N = 2 items, whose counts add up to `users`.

    Exact (the largest over all pairs of neighbours with this floor) up to 400 users; beyond, the upper bound
    `sampling_delta`, which is several times larger where the floor is far below half of the users.
    """
    n, k = integer("users", users, least=1), integer("floor", floor)
    if n < 2 * k + 1:
        raise RefusedError(
            f"{n} users cannot give each of 2 items {k} other holders: lower the floor to at most {(n - 1) // 2}"
        )
    p, eps = probability("p", p), min(checked_epsilon(epsilon), 700.0)
    if n > ENUMERATED_USERS or k == 0 or p == 1:
        return sampling_delta(k, p, eps)
    return delta_bound(_replaced(*worst_two_items(n, k, p, eps), p, eps))


def worst_two_items(users: int, floor: int, p: float, epsilon: float) -> tuple[int, int]:
    """The crowds (a, b), a + b = users - 1, whose pair (a + 1, b) -> (a, b + 1) has the largest delta for two items."""
    worst = max(range(floor, users - floor), key=lambda a: _replaced(a, users - 1 - a, p, min(epsilon, 700.0)))
    return worst, users - 1 - worst


def sampling_probability(floor: int, epsilon: float, delta: float) -> float:
    """The largest sampling probability that is (epsilon, delta)-private with this floor, rounded down."""
    return largest_within(lambda p: sampling_delta(floor, p, epsilon), fraction("delta", delta))


@lru_cache(maxsize=64)
def sampling_floor(p: float, epsilon: float, delta: float) -> int:
    """The smallest floor (other holders of every item) that makes sampling with p (epsilon, delta)-private."""
    limit = fraction("delta", delta)
    floor = smallest_whole(lambda k: sampling_delta(k, p, epsilon) <= limit, _LARGEST_FLOOR)
    if floor is None:
        raise RefusedError(f"no floor makes p = {p:g} ({epsilon:g}, {delta:g})-private: sample with a smaller p")
    return floor


# Noise added to every item: a shift of the noise law.


def shift_pair(log_pmf: Floats, shift: int = 1) -> LossPair:
    """A noise law moved up by `shift` support steps, against the law itself."""
    pad = np.full(integer("shift", shift, least=1), -np.inf)
    return LossPair(np.concatenate((pad, log_pmf)), np.concatenate((log_pmf, pad)))


def shift_delta(log_pmf: Floats, epsilon: float, shift: int = 1, relation: Relation = REPLACE_ONE) -> float:
    """Exact delta when a count with this additive noise moves by `shift` support steps.

    Replace-one: one count up and another one down, both with this noise. Zero-out: one count, the worse direction.
    """
    if shift >= log_pmf.size:  # the two laws have no outcome in common
        return 1.0
    up, eps = shift_pair(log_pmf, shift), checked_epsilon(epsilon)
    if Relation.of(relation) is REPLACE_ONE:
        return hockey_stick((up, up.swapped()), eps)
    return max(hockey_stick((up,), eps), hockey_stick((up.swapped(),), eps))


def decoys_delta(coins: int, epsilon: float, relation: Relation = REPLACE_ONE) -> float:
    """Exact delta of counts hidden by `coins` fair coins each, Bin(coins, 1/2), whatever the data (section 4)."""
    count, eps = min(integer("coins", coins), _LARGEST_DECOYS), checked_epsilon(epsilon)
    return 1.0 if count == 0 else shift_delta(binomial_window(count, 0.5)[1], eps, 1, relation)


@lru_cache(maxsize=64)
def decoys_needed(epsilon: float, delta: float) -> int:
    """The smallest number D0 of fair coins per item that is (epsilon, delta)-private.

    More coins never hurt: adding one is post-processing of both laws, so delta falls with D0.
    """
    limit = fraction("delta", delta)
    needed = smallest_whole(lambda coins: decoys_delta(coins, epsilon) <= limit, _LARGEST_DECOYS)
    if needed is None:
        raise RefusedError(f"no number of coins up to {_LARGEST_DECOYS} is ({epsilon:g}, {delta:g})-private")
    return needed


# Distributed discrete Laplace: the sum of NB(r) - NB(r), r = (users whose noise counts) / h, ratio a = e^(-epsilon/2).

LAPLACE_TAIL = 1e-100
"""Probability outside the support of `laplace_log_pmf`, at most."""


def _laplace_reach(a: float, r: float) -> int:
    """L with P(|Z| > L) <= LAPLACE_TAIL, by Chernoff's bound at the best of a grid of exponents."""
    w = a ** -np.linspace(0.001, 0.999, 999)
    log_moment = r * (2 * math.log1p(-a) - np.log1p(-a * w) - np.log1p(-a / w))
    return math.ceil(float(((log_moment - math.log(LAPLACE_TAIL / 2)) / np.log(w)).min())) + 1


def _laplace_ratios(a: float, r: float, reach: int) -> list[float]:
    """g[z+1]/g[z] for z = 0..reach-1 by Miller's backward recurrence; forward the recurrence is unstable.

    The generating function ((1-a)^2 / ((1-aw)(1-a/w)))^r gives a(z+1-r) g[z+1] = (1+a^2) z g[z] - a(z-1+r) g[z-1].
    """
    ahead = math.ceil(20 / -math.log(a)) + 20  # an error shrinks by a^2 a step, so these forget the starting value
    ratio, ratios, middle = a, [], 1 + a * a
    for z in range(reach + ahead, 0, -1):
        ratio = a * (z - 1 + r) / (middle * z - a * (z + 1 - r) * ratio)
        if z <= reach:
            ratios.append(ratio)
    return ratios[::-1]


@lru_cache(maxsize=32)
def _laplace_half(a: float, r: float) -> Floats:
    ratios = _laplace_ratios(a, r, _laplace_reach(a, r))
    half = np.concatenate(([0.0], np.cumsum(np.log(ratios))))
    half -= math.log(2 * float(np.exp(half[1:] - half.max()).sum()) + math.exp(-half.max())) + half.max()
    half.setflags(write=False)
    return half


def laplace_log_pmf(a: float, r: float) -> Floats:
    """Log probabilities of NB(r) - NB(r) with ratio a on -L..L; at most 1e-100 lies outside.

    r = 1 is the discrete Laplace law a^|z| (1-a)/(1+a).
    """
    half = _laplace_half(fraction("a", a), positive("r", r))
    return np.concatenate((half[:0:-1], half))


def laplace_epsilon(epsilon: float, share: float) -> float:
    """Pure epsilon that is left when a fraction `share` of the noise meant for `epsilon` is unknown to the adversary.

    2 ln(P_r(0)/P_r(1)) for r = share < 1: there the ratio of neighbouring probabilities is smallest at 0. For r >= 1
    the ratio falls to a = e^(-epsilon/2) from above, so more noise than planned leaves epsilon as it is.
    """
    eps, r = positive("epsilon", epsilon), positive("share", share)
    if not _LAPLACE_EPSILONS[0] <= eps <= _LAPLACE_EPSILONS[1]:
        raise ParameterError(f"epsilon must lie between {_LAPLACE_EPSILONS[0]:g} and {_LAPLACE_EPSILONS[1]:g} here")
    if r >= 1:
        return eps
    return -2 * math.log(_laplace_ratios(math.exp(-eps / 2), r, 1)[0]) * (1 + 1e-13) + _RATIO_ERROR / eps


def laplace_delta(epsilon0: float, share: float, epsilon: float, relation: Relation = REPLACE_ONE) -> float:
    """Exact delta at `epsilon` of the Laplace mechanism planned for `epsilon0` with a fraction `share` of its noise.

    With share 1 a moved count is randomized response with epsilon0 / 2, twice under replace-one: a closed form.
    """
    eps, coordinates = checked_epsilon(epsilon), 2 if Relation.of(relation) is REPLACE_ONE else 1
    epsilon0, share = positive("epsilon", epsilon0), positive("share", share)
    if eps >= laplace_epsilon(epsilon0, share) * coordinates / 2:
        return 0.0
    a = math.exp(-epsilon0 / 2)
    if share == 1:
        return delta_bound((1 + a) ** -coordinates * -math.expm1(eps - coordinates * epsilon0 / 2))
    cut = coordinates * (1 + math.exp(eps)) * LAPLACE_TAIL
    lowered = max(0.0, eps - _RATIO_ERROR / epsilon0)
    return min(1.0, shift_delta(laplace_log_pmf(a, share), lowered, 1, relation) + cut)
