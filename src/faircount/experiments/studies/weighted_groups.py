"""Weighted aggregation of four groups with their own epsilon, as in Figures 4 and 5 and Table II.

The users are split into groups anew in every run. An estimate is compared with two things: what its own groups hold,
weighted the same way ("noise": privacy noise alone, what the paper's Table II has), and the frequencies of all users
("population": what an analyst wants, and what weights away from the groups' sizes make worse).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.estimation import weighting
from faircount.experiments.studies.error_law import covariance, cumulants, law
from faircount.experiments.studies.squared_errors import blend, estimates
from faircount.experiments.studies.study import Expected
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_law import Channel

SETTINGS: Mapping[str, tuple[float, ...]] = {
    "s1": (0.1, 0.4, 0.7, 1.0),
    "s2": (0.1, 0.1, 0.8, 1.0),
    "s3": (0.1, 0.1, 0.1, 1.0),
    "s4": (0.1, 0.8, 0.7, 1.0),
}
GROUPS = 4
METHODS = ("owa", "vwa", "uwa", "total")
"""Weights on the same group estimates: optimized, by noise variance, by size, by total variance (beyond the paper)."""

CPA = "cpa"
NOISE, POPULATION = "noise", "population"

Maker = Callable[[float], FrequencyMechanism]
"""The mechanism of a group from its epsilon."""


def split(holders: tuple[int, ...], rng: np.random.Generator, runs: int) -> Ints:
    """Counts (groups, runs, items) of a random split of the users into groups of equal size, for every run."""
    whole = np.array(holders, dtype=np.int64)
    size = int(whole.sum()) // GROUPS
    parts = np.empty((GROUPS, runs, whole.size), dtype=np.int64)
    for turn in range(runs):
        left = whole.copy()
        for group in range(GROUPS - 1):
            parts[group, turn] = rng.multivariate_hypergeometric(left, size, method="marginals")
            left -= parts[group, turn]
        parts[-1, turn] = left
    return parts


def weights(method: str, variances: Floats, spread: float, size: int) -> Floats:
    """W_g of equally large groups by the name of the method."""
    sizes = np.full(GROUPS, size)
    if method == "owa":
        return weighting.owa(sizes, variances)
    if method == "vwa":
        return weighting.vwa(sizes, variances)
    if method == "total":
        return weighting.total_variance(sizes, variances, spread)
    return weighting.uwa(sizes)


def spread_of(holders: tuple[int, ...]) -> float:
    """sigma^2 = 1 - sum psi^2 of these users, as the variance of a draw without replacement (factor n / (n-1))."""
    counts = np.array(holders, dtype=np.float64)
    n = counts.sum()
    return float((1 - ((counts / n) ** 2).sum()) * n / (n - 1))


def group_variances(make: Maker, epsilons: tuple[float, ...], items: int, size: int) -> Floats:
    """V_g of every group."""
    bound = [make(epsilon).bind(size) for epsilon in epsilons]
    return np.array([weighting.group_variance(each.channel(size), items, size) for each in bound])


def errors(
    make: Maker,
    holders: tuple[int, ...],
    epsilons: tuple[float, ...],
    methods: tuple[str, ...],
    runs: int,
    how: str,
    rng: np.random.Generator,
) -> dict[str, Floats]:
    """Squared errors, summed over the items, of every method against both truths; CPA is run on its own coins."""
    groups = split(holders, rng, runs)
    size = sum(holders) // GROUPS
    variances, spread = group_variances(make, epsilons, len(holders), size), spread_of(holders)
    found = np.array([estimates(make(eps), part, how, rng) for eps, part in zip(epsilons, groups, strict=True)])
    measured: dict[str, Floats] = {}
    for method in methods:
        if method != CPA:
            measured |= _compared(method, found, groups / size, weights(method, variances, spread, size))
    if CPA in methods:
        strict = np.array([estimates(make(min(epsilons)), part, how, rng) for part in groups])
        measured |= _compared(CPA, strict, groups / size, np.full(GROUPS, 1 / GROUPS))
    return measured


def _compared(method: str, found: Floats, truth: Floats, w: Floats) -> dict[str, Floats]:
    """Against the same weighting of the groups' own frequencies, and against the frequencies of all."""
    estimate = blend(found, w)
    targets = {NOISE: blend(truth, w), POPULATION: truth.mean(axis=0)}
    return {f"{method}|{name}": ((estimate - target) ** 2).sum(axis=1) for name, target in targets.items()}


def expected(
    make: Maker, holders: tuple[int, ...], epsilons: tuple[float, ...], methods: tuple[str, ...]
) -> dict[str, Expected]:
    """Theory of `errors`."""
    size, spread, theory = sum(holders) // GROUPS, spread_of(holders), {}
    for method in methods:
        budgets = (min(epsilons),) * GROUPS if method == CPA else epsilons
        channels = [make(epsilon).bind(size).channel(size) for epsilon in budgets]
        w = weights(method, group_variances(make, budgets, len(holders), size), spread, size)
        for against in (NOISE, POPULATION):
            theory[f"{method}|{against}"] = _law(channels, holders, w, against)
    return theory


def _law(channels: Sequence[Channel], holders: tuple[int, ...], w: Floats, against: str) -> Expected:
    """Law of the squared error from run to run: of the coins, and of the split into groups.

    Against the population the weighted groups' own deviation from all users is a second error, independent of the coins
    but for the spread of rare items.
    """
    counts, size = np.array(holders, dtype=np.float64), sum(holders) // GROUPS
    each_group = counts / GROUPS
    weighed = list(zip(channels, w, strict=True))
    noise = reduce(add, (cumulants(channel, each_group, size).scaled(weight) for channel, weight in weighed))
    spread = np.sum([weight**2 * covariance(channel, each_group, size) for channel, weight in weighed], axis=0)
    if against == POPULATION:
        spread = spread + float(((w - 1 / GROUPS) ** 2).sum()) / size * _split_covariance(counts)
    return law(noise, spread, _moved(channels, counts, w))


def _split_covariance(counts: Floats) -> Floats:
    """Of a user's answer, drawn without replacement; divided by a group's size, that of the group's frequencies."""
    n = counts.sum()
    return np.asarray((np.diag(counts / n) - np.outer(counts / n, counts / n)) * n / (n - 1))


def _moved(channels: Sequence[Channel], counts: Floats, w: Floats) -> float:
    """Variance of the errors' second cumulants, summed: they are linear in the groups' counts, which chance decides."""
    n, size = counts.sum(), int(counts.sum()) // GROUPS
    of_one, of_none = (
        np.array([cumulants(each, np.full(1, number), size).second[0] for each in channels]) for number in (1.0, 0.0)
    )
    slope = w**2 * (of_one - of_none)
    return float((counts * (n - counts) / (n - 1) * (np.mean(slope**2) - np.mean(slope) ** 2)).sum())
