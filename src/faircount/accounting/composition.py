"""Several releases to the same users: how their privacy losses add up.

Losses of independent coordinates add, so the law of the total loss is a convolution (privacy loss distributions,
carried out by dp_accounting). Each loss is put on a grid by splitting its probability between the two neighbouring
grid points such that both P and Q keep their mass ("connect the dots", Doroshenko et al. 2022): merging the two
parts gives the original outcome back, so the gridded pair is never more private, and its excess is of second order.

Valid for a series whose parameters do not depend on earlier results; otherwise use `sum_epsilons`.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, reduce
from typing import Any

import numpy as np

from faircount.accounting.divergence import (
    LARGEST_EPSILON,
    LossPair,
    binomial_window,
    delta_bound,
    epsilon_for,
    largest_within,
    log_binomial,
)
from faircount.accounting.exact import decoys_needed, sampling_probability, shift_pair
from faircount.accounting.guarantee import Guarantee
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.search import smallest_within
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import fraction, integer, positive, probability, real

STEP = 1e-4
"""Grid of the privacy losses."""

_CELLS = 2 * 10**5  # of that grid: where losses are very large it is coarser, which only raises delta
_HIDDEN = 1e-20  # outcomes that P has with less than this in total are counted as fully revealing
_TRUNCATED = 1e-15  # the same for the tails of a repeated composition (dp_accounting adds it to delta)
_FFT_ERROR = 1e-15  # per composed coordinate, added to delta
_MOST_RESPONSES = 10**7  # randomized responses whose losses are enumerated
_MOST_PARTLY_INFORMED = 10**5  # the same where a response may say nothing: their leads are found one by one
_MOST_RELEASES = 10**4
_LARGEST_FLOOR = 10**7


@dataclass(frozen=True)
class Losses:
    """What one release tells about one user, at worst: independent coordinates, and how far off they are.

    `distance` is the total variation distance of either law from the one that is really drawn: it costs
    (1 + e^epsilon) times that, at any total epsilon.
    """

    pairs: tuple[LossPair, ...]
    distance: float = 0.0


def grid_step(epsilons: Iterable[float]) -> float:
    """The grid for releases of these epsilons."""
    return max(STEP, math.fsum(epsilons) / _CELLS)


def compose(
    releases: Sequence[Sequence[LossPair]],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    step: float = STEP,
) -> float:
    """The delta at `epsilon`, or the epsilon at `delta`, of all releases together, rounded up.

    Each release is the list of its independent coordinates (replace-one: two); equal ones are composed at once. The
    worse of both directions counts: all coordinates as given, or all swapped.
    """
    pairs = Counter(pair for release in releases for pair in release)
    swapped = Counter({pair.swapped(): count for pair, count in pairs.items()})
    directions = [pairs] if pairs == swapped else [pairs, swapped]
    curves = [_delta_curve(each, positive("step", step)) for each in directions]
    return _answer(lambda eps: max(curve(eps) for curve in curves), epsilon, delta)


def _answer(delta_at: Callable[[float], float], epsilon: float | None, delta: float | None) -> float:
    if (epsilon is None) == (delta is None):
        raise ParameterError("give epsilon or delta, one of them: the other one is computed")
    return delta_at(checked_epsilon(epsilon)) if delta is None else epsilon_for(delta_at, delta)


def _delta_curve(pairs: Counter[LossPair], step: float) -> Callable[[float], float]:
    """epsilon -> delta of the product of the pairs, each taken `count` times."""
    if not pairs:
        return lambda _: 0.0
    parts = [_distribution(pair, step) for pair in pairs]
    powers = [
        part.self_compose(count, _TRUNCATED) if count > 1 else part
        for part, count in zip(parts, pairs.values(), strict=True)
    ]
    whole = reduce(lambda left, right: left.compose(right), powers)
    error = _FFT_ERROR * sum(pairs.values())
    return lambda eps: min(1.0, delta_bound(float(whole.get_delta_for_epsilon(eps))) + error)


def _distribution(pair: LossPair, step: float) -> Any:
    """The privacy loss of P against Q on the grid, as dp_accounting's dense mass function."""
    from dp_accounting.pld.pld_pmf import DensePLDPmf

    mass, loss = pair.losses()
    order = np.argsort(loss)
    mass, loss = mass[order], loss[order]
    seen = np.cumsum(mass[::-1])[::-1] > _HIDDEN
    seen &= np.isfinite(loss)
    revealed, mass, loss = float(mass[~seen].sum()), mass[seen], loss[seen]
    if mass.size == 0:
        return DensePLDPmf(step, 0, np.zeros(1), 1 - 1e-16, True)  # its self-composition cannot take 1
    least = loss[np.searchsorted(np.cumsum(mass), _HIDDEN)]  # far below: raised to here, which only raises delta
    loss = np.maximum(loss, least)
    cell = np.floor(loss / step)
    upper = mass * np.clip(np.expm1(loss - cell * step) / math.expm1(step) * np.exp((cell + 1) * step - loss), 0.0, 1.0)
    index = (cell - cell.min()).astype(np.int64)
    probabilities = np.bincount(index, mass - upper, index.max() + 2) + np.bincount(index + 1, upper, index.max() + 2)
    return DensePLDPmf(step, int(cell.min()), probabilities, revealed, True)


def compose_randomized_response(
    each: float, count: int, *, epsilon: float | None = None, delta: float | None = None, informed: float = 1.0
) -> float:
    """`count` independent randomized responses of `each` epsilon: the exact delta at `epsilon`, or epsilon at `delta`.

    A Laplace release for epsilon_0 is two of them with epsilon_0 / 2 under replace-one, one under zero-out. A response
    is `informed` with this probability; otherwise it is equally likely for both answers, as most reports of GRR are.
    """
    loss, times = positive("each", each), integer("count", count, least=1, most=_MOST_RESPONSES)
    share = probability("informed", informed)
    log_mass = log_binomial(times, 1 / (1 + math.exp(-loss))) if share == 1 else _log_lead(loss, share, times)
    losses = loss * (np.arange(log_mass.size) if share < 1 else 2 * np.arange(times + 1) - times)
    most, error = Fraction(loss) * times, 4e-16 * loss * times  # of the largest loss in floating point

    def delta_at(eps: float) -> float:
        if Fraction(eps) >= most:
            return 0.0
        gaps = np.minimum(eps - error - losses, 0.0)  # a loss below epsilon gains nothing
        return delta_bound(float((np.exp(log_mass) * -np.expm1(gaps)).sum()))

    return _answer(delta_at, epsilon, delta)


def _log_lead(loss: float, informed: float, count: int) -> Floats:
    """Log probabilities that responses for the true answer lead by 0..count over those for the other one.

    Coefficients p_k of (a + b x + c x^2)^n, k = n - lead: a (k+1) p_(k+1) = b (n-k) p_k + c (2n-k+1) p_(k-1), whose
    terms are positive, so that nothing cancels; carried on as ratios of neighbours, which do not underflow.
    """
    n = integer("count", count, most=_MOST_PARTLY_INFORMED)
    other, silent = math.exp(-loss), (1 - informed) / informed * (1 + math.exp(-loss))  # c / a and b / a
    ratios, ratio = [], math.inf
    for k in range(n):
        ratio = (silent * (n - k) + other * (2 * n - k + 1) / ratio) / (k + 1)
        ratios.append(ratio)
    first = n * (math.log(informed) - math.log1p(other))
    return (first + np.concatenate(([0.0], np.cumsum(np.log(ratios)))))[::-1]


@lru_cache(64)
def laplace_epsilon_for_releases(epsilon: float, delta: float, releases: int) -> float:
    """The largest epsilon of each of `releases` Laplace releases that together are (epsilon, delta)-private.

    delta = 0 gives epsilon / releases.
    """
    total, count = positive("epsilon", epsilon), integer("releases", releases, least=1, most=_MOST_RESPONSES // 2)
    if delta == 0:
        return total / count
    limit = fraction("delta", delta)
    return largest_within(
        lambda each: compose_randomized_response(each / 2, 2 * count, epsilon=total), limit, 2 * total + 2
    )


@lru_cache(64)
def decoys_for_releases(epsilon: float, delta: float, releases: int, step: float = STEP) -> int:
    """The smallest number of fair coins per item so that `releases` releases together are (epsilon, delta)-private."""
    count, limit = integer("releases", releases, least=1, most=_MOST_RELEASES), fraction("delta", delta)
    epsilon = positive("epsilon", epsilon)
    single = decoys_needed(epsilon, limit)
    if count == 1:
        return single

    @cache
    def delta_of(coins: float) -> float:  # the noise is symmetric, so up and down have the same loss
        pair = shift_pair(binomial_window(math.ceil(coins), 0.5)[1])
        return _delta_curve(Counter({pair: 2 * count}), step)(epsilon)

    low, high = float(single - 1), float(single * count)  # variances add up almost exactly: just below `high` is usual
    if limit < 4 * _FFT_ERROR * count:
        raise RefusedError(
            f"delta = {limit:g} is too small to account for {count} releases together: "
            f"ask for {4 * _FFT_ERROR * count:g} or more"
        )
    while delta_of(high) > limit:
        low, high = high, 2 * high
    near = 0.9 * high
    low, high = (low, near) if delta_of(near) <= limit else (near, high)
    return math.ceil(smallest_within(delta_of, limit, low, high, 0.25 / high))


@lru_cache(64)
def sampling_probability_for_releases(
    floor: int, epsilon: float, delta: float, releases: int, step: float = 5 * STEP
) -> float:
    """The largest sampling probability with which `releases` releases together are (epsilon, delta)-private.

    The floor holds in every release. Replace-one; rounded down (the coarser grid costs about 1e-5 of p).
    """
    k, count = integer("floor", floor), integer("releases", releases, least=1, most=_MOST_RELEASES)
    k = min(k, _LARGEST_FLOOR)  # a smaller crowd hides less, so this only lowers p
    limit, eps = fraction("delta", delta), checked_epsilon(epsilon)
    if k == 0:  # exposed unless missed every time; the factor rounds down
        return -math.expm1(math.log1p(-limit) / count) * (1 - 1e-15)

    def delta_of(rarity: float) -> float:
        pair = sampling_pair(k, math.exp(-rarity))
        return _delta_curve(Counter({pair: count, pair.swapped(): count}), step)(eps)

    least, most = sampling_probability(k, eps / count, limit / count), sampling_probability(k, eps, limit)
    if count == 1:
        return most
    return math.exp(-smallest_within(delta_of, limit, -math.log(most), -math.log(least), 1e-9))


def sampling_pair(floor: int, p: float) -> LossPair:
    """One sampled count with floor + 1 holders against floor; a replace-one release is this pair and its swap."""
    first, log_p = binomial_window(floor + 1, p)
    missing = floor + 1 - np.arange(first, first + log_p.size, dtype=np.float64)
    with np.errstate(divide="ignore"):  # all of them sampled is impossible for `floor` holders
        return LossPair(log_p, log_p + np.log(missing / ((floor + 1) * (1 - p))))


def randomized_response(epsilon: float, informed: float = 1.0) -> LossPair:
    """The truth or its opposite with odds e^epsilon, and with probability 1 - `informed` nothing at all."""
    likely, rest = math.log(informed) - math.log1p(math.exp(-epsilon)), 1 - informed
    log_p = np.array([likely, likely - epsilon, math.log(rest) if rest > 0 else -math.inf])
    return LossPair(log_p, log_p[[1, 0, 2]])


def dominating_pair(epsilon: float, delta: float) -> LossPair:
    """The pair that dominates every (epsilon, delta) mechanism (Kairouz, Oh and Viswanath 2015).

    In logarithms: 1 - delta - (1 - delta) / (1 + e^-epsilon) has no digit left from an epsilon of 36 on.
    """
    loss = checked_epsilon(epsilon)
    if loss > LARGEST_EPSILON:
        raise RefusedError(f"an epsilon of {loss:g} is not composed: beyond {LARGEST_EPSILON:g} epsilons only add up")
    with np.errstate(divide="ignore"):  # a delta of 0 or 1 leaves outcomes that never happen
        rest = np.log1p(-real("delta", delta))
        likely = rest - math.log1p(math.exp(-loss))
        log_p = np.array([np.log(delta), likely, likely - loss, -np.inf])
    return LossPair(log_p, log_p[::-1].copy())


def sum_epsilons(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Releases to the same users whose parameters may depend on earlier results: epsilons and deltas add up."""
    delta = min(1.0, sum(each.delta for each in guarantees))
    return replace(_alike(guarantees), epsilon=sum(each.epsilon for each in guarantees), delta=delta)


MEMBERSHIP = "it is public which group a user is in"


def parallel(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Releases to disjoint groups with public, fixed membership: nobody is in two, so the weakest one counts."""
    alike = _alike(guarantees)
    if len(guarantees) > 1 and MEMBERSHIP not in (alike.condition or ""):
        public = MEMBERSHIP if alike.condition is None else f"{alike.condition} and {MEMBERSHIP}"
        alike = replace(alike, condition=public)
    epsilon = max(each.epsilon for each in guarantees)
    return replace(alike, epsilon=epsilon, delta=max(each.delta for each in guarantees))


def _alike(guarantees: Sequence[Guarantee]) -> Guarantee:
    """The first one under all conditions, for one relation and adversary; one that does not hold leaves none of all."""
    if not guarantees:
        raise ParameterError("give at least one guarantee")
    if len({each.relation for each in guarantees}) > 1 or len({each.adversary for each in guarantees}) > 1:
        raise ParameterError("guarantees combine only for one relation and one adversary: state them alike first")
    conditions = dict.fromkeys(each.condition for each in guarantees if each.condition is not None)
    void = next((each.void for each in guarantees if each.void is not None), None)
    return replace(guarantees[0], condition=" and ".join(conditions) or None, void=void)
