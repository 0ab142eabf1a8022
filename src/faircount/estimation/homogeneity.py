"""A test whether groups are alike, from what was published anyway, so that it costs no privacy.

Null hypothesis: all users of all groups are drawn from one distribution. Sampled counts are then a
table with independent rows and columns (Pearson's test). With noise and with local mechanisms the
estimates vary for two reasons, the noise and which users happen to be in a group: the statistic
uses the covariance of both, and its null distribution is simulated. The noise variance alone would
call alike groups different most of the time.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats, Ints
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import MAX_USERS, check_numbers
from faircount.estimation.consistency import project_to_simplex
from faircount.estimation.weighting import combine, group_variance, total_variance
from faircount.mechanisms.count_distribution import Channel

DRAWS = 999
"""Simulated tables of the null hypothesis: p-values are multiples of 1/1000."""

SIGNIFICANCE = 0.05
"""Groups are said to differ at this p-value or below."""

DENSE = 5.0
"""Smallest expected count with which Pearson's chi-squared approximation is used.

With a smaller one in the table the null distribution is simulated.
"""


@dataclass(frozen=True, slots=True)
class HomogeneityTest:
    """Outcome of a test whether groups are alike."""

    statistic: float
    p_value: float
    rejected: bool
    method: str
    words: str


def homogeneity(
    sums: ArrayLike,
    channels: Sequence[Channel],
    sizes: ArrayLike,
    *,
    rng: np.random.Generator | None = None,
) -> HomogeneityTest:
    """Test groups (rows of `sums`: decoded sums per item) with their channels and sizes.

    `rng` draws the null distribution where it must be simulated: with noise, with local mechanisms
    and with sparse sampled counts.
    """
    table, users = _check_groups(sums, channels, sizes)
    if all(channel.noise is None and not channel.miss for channel in channels):
        counts = np.rint(table).astype(np.int64)
        statistic, p_value, method = _test_sampled_counts(counts, rng)
    else:
        statistic, p_value, method = _test_estimates(table, channels, users, _require(rng))
    rejected = p_value <= SIGNIFICANCE
    if rejected:
        words = (
            f"The groups differ by more than chance (p = {p_value:.3g}): "
            "weights by variance would favour the answers of some groups."
        )
    else:
        words = (
            f"No difference between the groups was found (p = {p_value:.3g}). "
            "This does not prove that they are alike: "
            "with this much noise only large differences show."
        )
    return HomogeneityTest(statistic, p_value, rejected, method, words)


def _test_sampled_counts(table: Ints, rng: np.random.Generator | None) -> tuple[float, float, str]:
    """Run Pearson's chi-squared test and return statistic, p-value and method."""
    # Items and groups without any count say nothing, and their expected counts of 0 would be
    # divided by.
    table = table[np.ix_(table.sum(axis=1) > 0, table.sum(axis=0) > 0)]
    if min(table.shape, default=0) < 2:
        return 0.0, 1.0, "nothing to compare: fewer than two groups or items have sampled users"
    rows = table.sum(axis=1)
    columns = table.sum(axis=0)
    expected = np.outer(rows, columns) / table.sum()
    statistic = float(_chi_squared(table, expected))
    if expected.min() >= DENSE:
        from scipy.special import chdtrc

        freedom = (rows.size - 1) * (columns.size - 1)
        method = f"Pearson chi-squared, {freedom} degrees of freedom"
        return statistic, float(chdtrc(freedom, statistic)), method
    from scipy.stats import random_table

    drawn = random_table(rows, columns).rvs(DRAWS, random_state=_require(rng))
    method = (
        f"Pearson chi-squared, counts below {DENSE:g} expected: "
        f"null distribution from {DRAWS} random tables, same margins"
    )
    return statistic, _monte_carlo_p(_chi_squared(drawn, expected), statistic), method


def _chi_squared(tables: NDArray[np.generic], expected: Floats) -> Floats:
    deviations = np.asarray(tables, dtype=np.float64) - expected
    return np.asarray((deviations**2 / expected).sum(axis=(-2, -1)))


def _test_estimates(
    table: Floats, channels: Sequence[Channel], users: Ints, rng: np.random.Generator
) -> tuple[float, float, str]:
    """Compare a quadratic form in the groups' deviations with its simulated null distribution."""
    pooled = _pool(table, channels, users)
    statistic = float(_quadratic_form(table, channels, users))
    drawn = []
    for channel, n in zip(channels, users.tolist(), strict=True):
        drawn.append(_draw_releases(pooled, channel, n, rng))
    null = _quadratic_form(np.stack(drawn, axis=1), channels, users)
    method = (
        "quadratic form with sampling and noise covariance, "
        f"null distribution from {DRAWS} simulated releases"
    )
    return statistic, _monte_carlo_p(null, statistic), method


def _pool(sums: Floats, channels: Sequence[Channel], users: Ints) -> Floats:
    """Return consistent frequencies of all groups together, along the last axis."""
    items = sums.shape[-1]
    variances = []
    for channel, n in zip(channels, users.tolist(), strict=True):
        variances.append(group_variance(channel, items, n))
    # Groups are weighted by how precise they are. Weights are defined for positive variances, and
    # a channel that adds nothing random has none.
    weights = total_variance(users, np.maximum(variances, 1e-12), 1.0)
    estimates = np.moveaxis(_estimates(sums, channels, users), -2, 0)
    return project_to_simplex(combine(estimates, weights))


def _estimates(sums: Floats, channels: Sequence[Channel], users: Ints) -> Floats:
    rows = []
    for g, (channel, n) in enumerate(zip(channels, users.tolist(), strict=True)):
        rows.append(channel.estimate(sums[..., g, :], n))
    return np.stack(rows, axis=-2)


def _quadratic_form(sums: Floats, channels: Sequence[Channel], users: Ints) -> Floats:
    """Return sum_g y_g' C_g^-1 y_g.

    y_g is the deviation of group g from the pooled frequencies, C_g the covariance of its estimate.
    """
    # An item that nobody seems to hold may have a holder, so no frequency is taken for 0.
    psi = np.maximum(_pool(sums, channels, users), 0.5 / users.sum())
    # Deviations are centred: that frequencies sum to one is known, so the sum of the noise says
    # nothing about the groups.
    deviations = _estimates(sums, channels, users) - psi[..., None, :]
    deviations = deviations - deviations.mean(axis=-1, keepdims=True)
    forms = []
    for g, (channel, n) in enumerate(zip(channels, users.tolist(), strict=True)):
        forms.append(_inverse_form(deviations[..., g, :], psi, channel, n))
    return np.asarray(sum(forms))


def _inverse_form(y: Floats, psi: Floats, channel: Channel, n: int) -> Floats:
    """Return y' C^-1 y, where C is the covariance of the estimates of n users."""
    if is_paired(channel, psi.shape[-1]):
        # Two items with one draw x and -x: y is (d, -d), and d has a variance of its own.
        return np.asarray(
            y[..., 0] ** 2 / (psi.prod(axis=-1) / n + channel.variance(psi, n)[..., 0])
        )
    if channel.noise is None and not channel.independent:
        # GRR: reports are multinomial with r = miss + (hit - miss) psi, so
        # C = (diag(r) - r r') / (n gain^2), whose inverse on centred y is diagonal.
        gain = channel.hit - channel.miss
        return np.asarray((y**2 * n * gain**2 / (channel.miss + gain * psi)).sum(axis=-1))
    # Independent items: C = diag(psi / n + noise) - psi psi' / n, inverted by Sherman-Morrison. The
    # denominator goes to 0 with the noise, hence its lower limit.
    diagonal = psi / n + channel.variance(psi, n) * _spread(channel, psi.shape[-1])
    straight = (y**2 / diagonal).sum(axis=-1)
    slope = (psi * y / diagonal).sum(axis=-1)
    denominator = np.maximum(n - (psi**2 / diagonal).sum(axis=-1), 1e-9 * n)
    return np.asarray(straight + slope**2 / denominator)


def _draw_releases(psi: Floats, channel: Channel, n: int, rng: np.random.Generator) -> Floats:
    """Simulate DRAWS releases of a group whose users follow psi."""
    if is_paired(channel, psi.size):
        return _draw_paired(psi, channel, n, rng)
    if channel.noise is None and not channel.independent:
        reports = channel.miss + (channel.hit - channel.miss) * psi
        return rng.multinomial(n, reports / reports.sum(), size=DRAWS).astype(np.float64)
    holders = rng.multinomial(n, psi, size=DRAWS)
    counts = rng.binomial(holders, channel.hit) + rng.binomial(n - holders, channel.miss)
    sums = counts.astype(np.float64)
    if channel.noise is None:
        return sums
    distribution = channel.noise
    noise = rng.choice(
        distribution.values, p=distribution.pmf / distribution.pmf.sum(), size=sums.shape
    )
    return np.asarray(sums + noise * math.sqrt(_spread(channel, psi.size)))


def _spread(channel: Channel, items: int) -> float:
    """Return by how much the variance of noise that adds up to zero is raised here.

    Deviations are centred before they are compared. Independent noise with N / (N - 1) times the
    variance has the same covariance after that as noise that adds up to zero over N items.
    """
    adds_up = channel.noise is not None and not channel.independent
    return items / (items - 1) if adds_up else 1.0


def is_paired(channel: Channel, items: int) -> bool:
    """Whether one draw was added to one of two items and subtracted from the other."""
    return channel.noise is not None and not channel.independent and items == 2


def _draw_paired(psi: Floats, channel: Channel, n: int, rng: np.random.Generator) -> Floats:
    """Simulate the same for two items with one draw."""
    first = rng.binomial(n, psi[0], size=DRAWS).astype(np.float64)
    if channel.noise is not None:
        first = first + channel.noise.draw((DRAWS,), rng)
    return np.stack([first, n - first], axis=-1)


def _monte_carlo_p(null: Floats, statistic: float) -> float:
    """Return the share of draws at or above the statistic.

    The observed release counts as one of the draws, so that the p-value is never too small.
    """
    # Draws that equal the statistic may differ from it in their last bits.
    return float((1 + (null >= statistic * (1 - 1e-12)).sum()) / (1 + null.size))


def _require(rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise ParameterError(
            "the null distribution must be simulated here: give rng=numpy.random.default_rng(seed)"
        )
    return rng


def _check_groups(
    sums: ArrayLike, channels: Sequence[Channel], sizes: ArrayLike
) -> tuple[Floats, Ints]:
    table = check_numbers("sums", sums)
    users = _check_sizes(sizes)
    if table.ndim != 2 or table.shape[0] != users.size or len(channels) != users.size:
        raise ParameterError("give one row of sums, one channel and one size per group")
    if users.size < 2 or table.shape[1] < 2:
        raise ParameterError("at least 2 groups and 2 items are needed to compare groups")
    if not np.all(np.isfinite(table)):
        raise AnswerError("sums must be finite numbers")
    for row, channel, size in zip(table, channels, users, strict=True):
        if channel.noise is not None:
            continue
        if row.min() < 0 or row.max() > size or np.any(row != np.rint(row)):
            raise AnswerError(
                "sums without noise must be whole numbers from 0 to the users of their group"
            )
    return table, users


def _check_sizes(sizes: ArrayLike) -> Ints:
    given = check_numbers("sizes", sizes, ParameterError)
    is_whole = given.ndim == 1 and bool(np.all(given == np.floor(given)))
    if not is_whole or np.any(given < 1) or np.any(given > MAX_USERS):
        raise ParameterError("sizes must be whole numbers of users, at least 1, one per group")
    return given.astype(np.int64)
