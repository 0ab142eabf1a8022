"""Weighted aggregation of four groups with their own epsilon, for Figures 4 and 5 and Table II.

The users are split into groups anew in every run. An estimate is compared with two truths: the same
weighting of the frequencies in its own groups ("noise": the privacy noise alone, as in the paper's
Table II), and the frequencies of all users ("population": what an analyst wants, and what gets
worse when the weights depart from the groups' sizes).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.estimation import weighting
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_distribution import Channel
from faircount.reproduction.studies.error_distribution import (
    error_covariance,
    error_cumulants,
    squared_error_distribution,
)
from faircount.reproduction.studies.squared_errors import combine_groups, draw_estimates
from faircount.reproduction.studies.study import Expected

# The epsilons of the four groups in the privacy settings of Section IV-B4.
SETTINGS: Mapping[str, tuple[float, ...]] = {
    "s1": (0.1, 0.4, 0.7, 1.0),
    "s2": (0.1, 0.1, 0.8, 1.0),
    "s3": (0.1, 0.1, 0.1, 1.0),
    "s4": (0.1, 0.8, 0.7, 1.0),
}
GROUPS = 4

# Weights for the same group estimates: numerically optimized, by noise variance, by size, and by
# total variance, which is not in the paper.
METHODS = ("owa", "vwa", "uwa", "total")

# Not a weighting: all users in one survey at the smallest epsilon.
CPA = "cpa"

NOISE = "noise"
POPULATION = "population"

# The mechanism of a group from its epsilon.
Maker = Callable[[float], FrequencyMechanism]


def split_users(user_counts: tuple[int, ...], rng: np.random.Generator, runs: int) -> Ints:
    """Counts (groups, runs, items) of random splits of the users into groups of equal size."""
    whole = np.array(user_counts, dtype=np.int64)
    size = int(whole.sum()) // GROUPS
    counts = np.empty((GROUPS, runs, whole.size), dtype=np.int64)
    for turn in range(runs):
        remaining = whole.copy()
        for group in range(GROUPS - 1):
            drawn = rng.multivariate_hypergeometric(remaining, size, method="marginals")
            counts[group, turn] = drawn
            remaining -= drawn
        counts[-1, turn] = remaining
    return counts


def compute_weights(method: str, variances: Floats, answer_variance: float, size: int) -> Floats:
    """The weights W_g of groups of equal size, by the name of the method."""
    sizes = np.full(GROUPS, size)
    if method == "owa":
        return weighting.owa(sizes, variances)
    if method == "vwa":
        return weighting.vwa(sizes, variances)
    if method == "total":
        return weighting.total_variance(sizes, variances, answer_variance)
    return weighting.uwa(sizes)


def compute_answer_variance(user_counts: tuple[int, ...]) -> float:
    """sigma^2 = 1 - sum psi^2 of these users' answers, for draws without replacement."""
    counts = np.array(user_counts, dtype=np.float64)
    n = counts.sum()
    # The factor n / (n-1) makes it the variance of one draw out of a finite group.
    return float((1 - ((counts / n) ** 2).sum()) * n / (n - 1))


def compute_group_variances(
    make: Maker, epsilons: tuple[float, ...], items: int, size: int
) -> Floats:
    """The noise variance V_g of every group."""
    variances = []
    for epsilon in epsilons:
        channel = make(epsilon).bind(size).channel(size)
        variances.append(weighting.group_variance(channel, items, size))
    return np.array(variances)


def measure_errors(
    make: Maker,
    user_counts: tuple[int, ...],
    epsilons: tuple[float, ...],
    methods: tuple[str, ...],
    runs: int,
    how: str,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Squared errors, summed over the items, of every method against both truths."""
    groups = split_users(user_counts, rng, runs)
    size = sum(user_counts) // GROUPS
    truth = groups / size
    variances = compute_group_variances(make, epsilons, len(user_counts), size)
    answer_variance = compute_answer_variance(user_counts)

    # One estimate of every group serves all weightings: they differ in nothing but the weights.
    estimates = []
    for epsilon, counts in zip(epsilons, groups, strict=True):
        estimates.append(draw_estimates(make(epsilon), counts, how, rng))
    errors: dict[str, Floats] = {}
    for method in methods:
        if method != CPA:
            weights = compute_weights(method, variances, answer_variance, size)
            errors |= _compare(method, np.array(estimates), truth, weights)

    # CPA has noise of its own. It is drawn last, so that the other methods do not depend on it.
    if CPA in methods:
        strictest = make(min(epsilons))
        private = np.array([draw_estimates(strictest, counts, how, rng) for counts in groups])
        errors |= _compare(CPA, private, truth, np.full(GROUPS, 1 / GROUPS))
    return errors


def _compare(method: str, estimates: Floats, truth: Floats, weights: Floats) -> dict[str, Floats]:
    """Squared errors against the groups' own frequencies, and against those of all users."""
    combined = combine_groups(estimates, weights)
    own_error = combined - combine_groups(truth, weights)
    population_error = combined - truth.mean(axis=0)
    return {
        f"{method}|{NOISE}": (own_error**2).sum(axis=1),
        f"{method}|{POPULATION}": (population_error**2).sum(axis=1),
    }


def expected_errors(
    make: Maker,
    user_counts: tuple[int, ...],
    epsilons: tuple[float, ...],
    methods: tuple[str, ...],
) -> dict[str, Expected]:
    """The theory of `measure_errors`."""
    size = sum(user_counts) // GROUPS
    answer_variance = compute_answer_variance(user_counts)
    theory = {}
    for method in methods:
        budgets = (min(epsilons),) * GROUPS if method == CPA else epsilons
        channels = [make(epsilon).bind(size).channel(size) for epsilon in budgets]
        variances = compute_group_variances(make, budgets, len(user_counts), size)
        weights = compute_weights(method, variances, answer_variance, size)
        for against in (NOISE, POPULATION):
            theory[f"{method}|{against}"] = _error_distribution(
                channels, user_counts, weights, against
            )
    return theory


def _error_distribution(
    channels: Sequence[Channel], user_counts: tuple[int, ...], weights: Floats, against: str
) -> Expected:
    """Distribution of the squared error between runs: of the noise, and of the split into groups.

    Against the population, the deviation of the weighted groups from all users is a second error.
    It is independent of the noise, but for the small influence of the counts on the noise variance.
    """
    counts = np.array(user_counts, dtype=np.float64)
    size = sum(user_counts) // GROUPS
    average_group = counts / GROUPS
    cumulants = []
    covariances = []
    for channel, weight in zip(channels, weights, strict=True):
        cumulants.append(error_cumulants(channel, average_group, size).scale_by(weight))
        covariances.append(weight**2 * error_covariance(channel, average_group, size))
    noise = reduce(add, cumulants)
    covariance = np.sum(covariances, axis=0)
    if against == POPULATION:
        distance = float(((weights - 1 / GROUPS) ** 2).sum())
        covariance = covariance + distance / size * _answer_covariance(counts)
    return squared_error_distribution(noise, covariance, _variance_of_k2(channels, counts, weights))


def _answer_covariance(counts: Floats) -> Floats:
    """Covariance of an answer drawn without replacement; a group's is this over its size."""
    n = counts.sum()
    share = counts / n
    return np.asarray((np.diag(share) - np.outer(share, share)) * n / (n - 1))


def _variance_of_k2(channels: Sequence[Channel], counts: Floats, weights: Floats) -> float:
    """Summed variance of the errors' second cumulants over random splits.

    They are linear in the counts of the groups, which are random.
    """
    n = counts.sum()
    size = int(counts.sum()) // GROUPS
    slopes = []
    for channel in channels:
        with_one = error_cumulants(channel, np.full(1, 1.0), size).second[0]
        with_none = error_cumulants(channel, np.full(1, 0.0), size).second[0]
        slopes.append(with_one - with_none)
    slope = weights**2 * np.array(slopes)
    spread = np.mean(slope**2) - np.mean(slope) ** 2
    return float((counts * (n - counts) / (n - 1) * spread).sum())
