"""Composition: how the privacy losses of several releases to the same users add up.

Losses of independent coordinates add, so the distribution of the total loss is a convolution
(privacy loss distributions; `loss_grid`). A loss is put on a grid by splitting its probability
between the two neighbouring grid points such that both P and Q keep their mass ("connect the dots",
Doroshenko et al. 2022): merging the two parts gives the original outcome back, so the gridded pair
is never more private, and its excess is of second order.

Valid for a series whose parameters do not depend on earlier results; otherwise use `sum_epsilons`.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache, reduce

import numpy as np

from faircount.accounting.conditions import MEMBERSHIP, ConditionCode, joint_condition
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
from faircount.accounting.loss_grid import GriddedLosses
from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.search import smallest_within
from faircount.core.validation import (
    check_epsilon,
    check_fraction,
    check_integer,
    check_positive,
    check_probability,
    check_real,
)

STEP = 1e-4
"""Distance of the grid points of the privacy losses."""

# Most points of that grid: where losses are very large it is coarser, which only raises delta.
_CELLS = 2 * 10**5

# Outcomes that P has with less than this in total are counted as fully revealing.
_HIDDEN = 1e-20

# Rounding error of a convolution by FFT, added to delta per composed coordinate.
_FFT_ERROR = 1e-15

# The losses of this many randomized responses are enumerated. Where a response may be uninformed,
# the distribution of their leads is computed by a loop in Python, and fewer are allowed.
_MAX_RESPONSES = 10**7
_MAX_PARTLY_INFORMED = 10**5

_MAX_RELEASES = 10**4
_LARGEST_FLOOR = 10**7


@dataclass(frozen=True)
class Losses:
    """What one release tells about one user, at worst.

    pairs:       independent coordinates of the release
    table_delta: what the pairs leave out, because noise comes from finite tables or tails are cut
                 off; added to delta at any total epsilon
    """

    pairs: tuple[LossPair, ...]
    table_delta: float = 0.0


def grid_step(epsilons: Iterable[float]) -> float:
    """Return the distance of the grid points for releases of these epsilons."""
    return max(STEP, math.fsum(epsilons) / _CELLS)


def compose(
    releases: Sequence[Sequence[LossPair]],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    step: float = STEP,
) -> float:
    """Return the delta at `epsilon`, or the epsilon at `delta`, of all releases together.

    It is rounded up. A release is the list of its independent coordinates (replace-one: two).
    """
    return _evaluate(delta_curve(releases, step=step), epsilon, delta)


def delta_curve(
    releases: Sequence[Sequence[LossPair]], *, step: float = STEP
) -> Callable[[float], float]:
    """Return epsilon -> delta of all releases together, rounded up."""
    # Equal coordinates are counted and composed at once, by repeated squaring.
    pairs: Counter[LossPair] = Counter()
    for release in releases:
        pairs.update(release)
    # Neighbours have no order, so the worse direction counts: all coordinates as given, or all of
    # them swapped.
    swapped = Counter({pair.swap(): count for pair, count in pairs.items()})
    directions = [pairs] if pairs == swapped else [pairs, swapped]
    curves = [_delta_curve(direction, check_positive("step", step)) for direction in directions]

    def delta_at(eps: float) -> float:
        return max(curve(eps) for curve in curves)

    return delta_at


def _evaluate(
    delta_at: Callable[[float], float], epsilon: float | None, delta: float | None
) -> float:
    """Return the delta at `epsilon` or the epsilon at `delta`, whichever is not given."""
    if (epsilon is None) == (delta is None):
        raise ParameterError("give epsilon or delta, one of them: the other one is computed")
    if delta is None:
        return delta_at(check_epsilon(epsilon))
    return epsilon_for(delta_at, delta)


def _delta_curve(pairs: Counter[LossPair], step: float) -> Callable[[float], float]:
    """Return epsilon -> delta of the product of all pairs, with their multiplicities."""
    if not pairs:
        return lambda _: 0.0
    powers = []
    for pair, count in pairs.items():
        power = _gridded_losses(pair, step)
        if count > 1:
            power = power.power(count)
        powers.append(power)
    total = reduce(lambda left, right: left.compose(right), powers)
    error = _FFT_ERROR * sum(pairs.values())

    def delta_at(eps: float) -> float:
        return min(1.0, delta_bound(total.delta(eps)) + error)

    return delta_at


def _gridded_losses(pair: LossPair, step: float) -> GriddedLosses:
    """Return the privacy loss of P against Q on the grid."""
    mass, loss = pair.losses()
    order = np.argsort(loss)
    mass = mass[order]
    loss = loss[order]

    # The largest losses, together less likely than _HIDDEN, are counted as infinite.
    is_kept = np.cumsum(mass[::-1])[::-1] > _HIDDEN
    is_kept &= np.isfinite(loss)
    infinite_mass = float(mass[~is_kept].sum())
    mass = mass[is_kept]
    loss = loss[is_kept]
    if mass.size == 0:
        # Everything is revealed. Slightly less than 1, because a power takes log(1 - infinite).
        return GriddedLosses(step, 0, np.zeros(1), 1 - 1e-16)

    # The smallest losses, together less likely than _HIDDEN, are raised to the next one: this
    # keeps the grid short and only raises delta.
    least = loss[np.searchsorted(np.cumsum(mass), _HIDDEN)]
    loss = np.maximum(loss, least)

    # Connect the dots: a share of the mass goes to the upper grid point, such that the mass of Q,
    # e^-loss times that of P, is kept as well. Written with expm1, because a loss may lie so close
    # to its grid point that the difference of two exponentials would have no digits.
    cell = np.floor(loss / step)
    share = np.expm1(loss - cell * step) / math.expm1(step) * np.exp((cell + 1) * step - loss)
    upper = mass * np.clip(share, 0.0, 1.0)
    index = (cell - cell.min()).astype(np.int64)
    size = index.max() + 2
    probabilities = np.zeros(size)
    probabilities += np.bincount(index, mass - upper, size)
    probabilities += np.bincount(index + 1, upper, size)
    return GriddedLosses(step, int(cell.min()), probabilities, infinite_mass)


def compose_randomized_response(
    response_epsilon: float,
    count: int,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    informed: float = 1.0,
) -> float:
    """Return the exact delta at `epsilon`, or epsilon at `delta`, of randomized responses.

    There are `count` independent ones of `response_epsilon`. A Laplace release for epsilon_0 is two
    of them with epsilon_0 / 2 under replace-one, one under zero-out. A response is `informed` with
    this probability; otherwise it is equally likely for both answers, as most reports of GRR are.
    """
    loss = check_positive("response_epsilon", response_epsilon)
    times = check_integer("count", count, least=1, most=_MAX_RESPONSES)
    share = check_probability("informed", informed)
    if share == 1:
        log_mass = log_binomial(times, 1 / (1 + math.exp(-loss)))
        losses = loss * (2 * np.arange(times + 1) - times)
    else:
        log_mass = _log_lead(loss, share, times)
        losses = loss * np.arange(log_mass.size)
    # From the largest possible loss on, delta is exactly 0. That comparison is made in fractions:
    # in doubles, count times epsilon may come out on the wrong side of the total.
    largest_loss = Fraction(loss) * times
    error = 4e-16 * loss * times  # of the largest loss in floating point

    def delta_at(eps: float) -> float:
        if Fraction(eps) >= largest_loss:
            return 0.0
        gaps = np.minimum(eps - error - losses, 0.0)  # a loss below epsilon gains nothing
        return delta_bound(float((np.exp(log_mass) * -np.expm1(gaps)).sum()))

    return _evaluate(delta_at, epsilon, delta)


def _log_lead(loss: float, informed: float, count: int) -> Floats:
    """Return log probabilities that the true answer leads the other one by 0..count responses.

    They are the coefficients p_k of (a + b x + c x^2)^n, with k = n - lead, which satisfy
    a (k+1) p_(k+1) = b (n-k) p_k + c (2n-k+1) p_(k-1).
    """
    n = check_integer("count", count, most=_MAX_PARTLY_INFORMED)
    other = math.exp(-loss)  # c / a
    silent = (1 - informed) / informed * (1 + math.exp(-loss))  # b / a
    # All terms are positive, so nothing cancels. The recurrence is carried on as the ratio of
    # neighbours: the coefficients themselves would underflow.
    ratio = math.inf
    ratios = []
    for k in range(n):
        ratio = (silent * (n - k) + other * (2 * n - k + 1) / ratio) / (k + 1)
        ratios.append(ratio)
    first = n * (math.log(informed) - math.log1p(other))
    return (first + np.concatenate(([0.0], np.cumsum(np.log(ratios)))))[::-1]


@lru_cache(64)
def laplace_epsilon_for_releases(
    epsilon: float, delta: float, releases: int, draws: int = 2, informed: float = 1.0
) -> float:
    """Return the largest epsilon of a Laplace release when `releases` of them share a budget.

    Together they are (epsilon, delta)-private. delta = 0 gives epsilon / releases. In a release
    `draws` independent draws hide a replaced answer, each a randomized response of its share of
    epsilon that is `informed` with this probability.
    """
    total = check_positive("epsilon", epsilon)
    count = check_integer("releases", releases, least=1, most=_MAX_RESPONSES // 2)
    if delta == 0:
        return total / count
    limit = check_fraction("delta", delta)

    def delta_of(release_epsilon: float) -> float:
        return compose_randomized_response(
            release_epsilon / draws, draws * count, epsilon=total, informed=informed
        )

    return largest_within(delta_of, limit, 2 * total + 2)


@lru_cache(64)
def decoys_for_releases(epsilon: float, delta: float, releases: int) -> int:
    """Return the smallest number of fair coins per item with which all releases are private.

    All `releases` together are (epsilon, delta)-private.
    """
    count = check_integer("releases", releases, least=1, most=_MAX_RELEASES)
    # A replaced answer moves two counts.
    return coins_for_moves(epsilon, delta, 2 * count)


@lru_cache(64)
def coins_for_moves(epsilon: float, delta: float, moves: int) -> int:
    """Return the smallest number of fair coins per count that hides so many moved counts.

    Each of them goes up or down by one, and all together are (epsilon, delta)-private.
    """
    count = check_integer("moves", moves, least=1, most=2 * _MAX_RELEASES)
    limit = check_fraction("delta", delta)
    epsilon = check_positive("epsilon", epsilon)
    single = decoys_needed(epsilon, limit)
    if count == 2:
        return single
    if limit < 2 * _FFT_ERROR * count:
        raise RefusedError(
            f"delta = {limit:g} is too small to account for {count // 2} releases together: "
            f"ask for {2 * _FFT_ERROR * count:g} or more"
        )

    @cache
    def delta_of(coins: float) -> float:
        # The noise is symmetric, so a count that goes up has the same loss as one that goes down.
        pair = shift_pair(binomial_window(math.ceil(coins), 0.5)[1])
        return _delta_curve(Counter({pair: count}), STEP)(epsilon)

    # Variances add up almost exactly, so the result usually lies just below half of `single` times
    # `count`. An evaluation takes long, and this bracket saves most of them.
    low = float(single - 1) if count > 2 else 0.0
    high = float(math.ceil(single * count / 2))
    while delta_of(high) > limit:
        low = high
        high = 2 * high
    near = 0.9 * high
    if delta_of(near) <= limit:
        high = near
    else:
        low = near
    return math.ceil(smallest_within(delta_of, limit, low, high, 0.25 / high))


@lru_cache(64)
def sampling_probability_for_releases(
    floor: int, epsilon: float, delta: float, releases: int
) -> float:
    """Return the largest sampling probability with which all releases together are private.

    The floor holds in every release. Replace-one; rounded down (the coarser grid costs about 1e-5
    of p).
    """
    k = check_integer("floor", floor)
    count = check_integer("releases", releases, least=1, most=_MAX_RELEASES)
    k = min(k, _LARGEST_FLOOR)  # a smaller crowd hides less, so this only lowers p
    limit = check_fraction("delta", delta)
    eps = check_epsilon(epsilon)
    if k == 0:
        # A user is exposed unless missed every time: 1 - (1 - p)^count <= delta. The last factor
        # rounds down.
        return -math.expm1(math.log1p(-limit) / count) * (1 - 1e-15)

    def delta_of(rarity: float) -> float:
        pair = sampling_pair(k, math.exp(-rarity))
        return _delta_curve(Counter({pair: count, pair.swap(): count}), 5 * STEP)(eps)

    # Splitting the budget evenly is safe, and spending all of it in one release is the most that
    # any series can do: the result lies between.
    least = sampling_probability(k, eps / count, limit / count)
    most = sampling_probability(k, eps, limit)
    if count == 1:
        return most
    return math.exp(-smallest_within(delta_of, limit, -math.log(most), -math.log(least), 1e-9))


def sampling_pair(floor: int, p: float) -> LossPair:
    """Return one sampled count with floor + 1 holders against floor.

    A replace-one release is this pair and its swap.
    """
    first, log_p = binomial_window(floor + 1, p)
    missed = floor + 1 - np.arange(first, first + log_p.size, dtype=np.float64)
    if p == 1:
        # Both counts are certain, and they differ.
        return LossPair(np.array([0.0, -np.inf]), np.array([-np.inf, 0.0]))
    # All floor + 1 of them sampled is impossible with `floor` holders: a logarithm of 0.
    with np.errstate(divide="ignore"):
        return LossPair(log_p, log_p + np.log(missed / ((floor + 1) * (1 - p))))


def randomized_response(epsilon: float, informed: float = 1.0) -> LossPair:
    """Return the truth or its opposite with odds e^epsilon against each other.

    With probability 1 - `informed` the response says nothing at all.
    """
    likely = math.log(informed) - math.log1p(math.exp(-epsilon))
    uninformed = 1 - informed
    log_uninformed = math.log(uninformed) if uninformed > 0 else -math.inf
    log_p = np.array([likely, likely - epsilon, log_uninformed])
    return LossPair(log_p, log_p[[1, 0, 2]])


def laplace_shift(loss: float, steps: int) -> LossPair:
    """Return a number with discrete Laplace noise of ratio e^-loss that moves by so many steps.

    Values up to 0 have one likelihood ratio, and so have those from `steps` on: each are one
    outcome. With one step there are only these, and the pair is a randomized response.
    """
    step = check_positive("loss", loss)
    reach = check_integer("steps", steps, least=1)
    edge = -math.log1p(math.exp(-step))
    inner = math.log(-math.expm1(-step)) + edge - step * np.arange(1, reach)
    log_p = np.concatenate(([edge], inner, [edge - step * reach]))
    return LossPair(log_p, log_p[::-1].copy())


def dominating_pair(epsilon: float, delta: float) -> LossPair:
    """Return the pair that dominates every (epsilon, delta) mechanism (Kairouz et al. 2015)."""
    loss = check_epsilon(epsilon)
    if loss > LARGEST_EPSILON:
        raise RefusedError(
            f"an epsilon of {loss:g} is not composed: "
            f"beyond {LARGEST_EPSILON:g} epsilons only add up"
        )
    # In logarithms: 1 - delta - (1 - delta) / (1 + e^-epsilon) has no digit left from an epsilon of
    # 36 on. A delta of 0 or 1 leaves outcomes that never happen.
    with np.errstate(divide="ignore"):
        rest = np.log1p(-check_real("delta", delta))
        likely = rest - math.log1p(math.exp(-loss))
        log_p = np.array([np.log(delta), likely, likely - loss, -np.inf])
    return LossPair(log_p, log_p[::-1].copy())


def sum_epsilons(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee of releases whose parameters may depend on earlier results.

    They go to the same users: epsilons and deltas add up.
    """
    epsilon = sum(guarantee.epsilon for guarantee in guarantees)
    delta = min(1.0, sum(guarantee.delta for guarantee in guarantees))
    return replace(_combine_claims(guarantees), epsilon=epsilon, delta=delta)


def adds_up_to(numbers: Iterable[float], limit: float) -> bool:
    """Whether these numbers, as the decimals that they are written as, sum to at most `limit`."""
    # Ten times 0.1 is 1, although the floats add up to more. A tolerance would allow more than was
    # promised: an epsilon of 1 at a limit just below 1.
    total = sum(Fraction(repr(float(number))) for number in numbers)
    return total <= Fraction(repr(float(limit)))


def compose_parallel(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the guarantee of releases to disjoint groups with public, fixed membership.

    Nobody is in two groups, so the weakest guarantee counts.
    """
    combined = _combine_claims(guarantees)
    groups = ConditionCode.PUBLIC_GROUPS, ConditionCode.PUBLIC_GROUPS_BY
    says_so = combined.condition is not None and combined.condition.has(*groups)
    if len(guarantees) > 1 and not says_so:
        combined = replace(combined, condition=joint_condition((combined.condition, MEMBERSHIP)))
    epsilon = max(guarantee.epsilon for guarantee in guarantees)
    delta = max(guarantee.delta for guarantee in guarantees)
    return replace(combined, epsilon=epsilon, delta=delta)


def _combine_claims(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return the first guarantee under the conditions of all; one void guarantee voids all."""
    if not guarantees:
        raise ParameterError("give at least one guarantee")
    relations = {guarantee.relation for guarantee in guarantees}
    adversaries = {guarantee.adversary for guarantee in guarantees}
    if len(relations) > 1 or len(adversaries) > 1:
        raise ParameterError(
            "guarantees combine only for one relation and one adversary: state them alike first"
        )
    condition = joint_condition(guarantee.condition for guarantee in guarantees)
    void = next((guarantee.void for guarantee in guarantees if guarantee.void is not None), None)
    return replace(guarantees[0], condition=condition, void=void)
