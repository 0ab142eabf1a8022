"""Are the groups alike? A test on what was published anyway, so it costs no privacy.

Null hypothesis: all users of all groups are drawn from one distribution. Sampled counts are then a table with
independent rows and columns (Pearson). For noise and local mechanisms the estimates vary for two reasons, the noise and
which users happen to be in a group: the statistic uses the covariance of both, and its null law is simulated. The noise
variance alone would call alike groups different most of the time.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats, Ints
from faircount.core.errors import AnswerError, ParameterError
from faircount.core.validation import MOST_USERS, fraction, numbers
from faircount.estimation.consistency import consistent
from faircount.estimation.weighting import combine, group_variance, total_variance
from faircount.mechanisms.count_law import Channel

DRAWS = 999
"""Simulated tables of the null hypothesis: p-values are multiples of 1/1000."""

DENSE = 5.0
"""Pearson's chi-squared approximation is used when every expected count is at least this; else it is simulated."""


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
    significance: float = 0.05,
    rng: np.random.Generator | None = None,
) -> HomogeneityTest:
    """Test groups (rows of `sums`: opened sums per item) with their channels and numbers of users.

    `rng` draws the null law where it must be simulated: noise and local mechanisms, and sparse sampled counts.
    """
    table, users = _checked(sums, channels, sizes)
    if all(each.noise is None and not each.miss for each in channels):
        statistic, p_value, method = _pearson(np.rint(table).astype(np.int64), rng)
    else:
        statistic, p_value, method = _simulated(table, channels, users, _needed(rng))
    return _verdict(statistic, p_value, method, fraction("significance", significance))


def _verdict(statistic: float, p_value: float, method: str, significance: float) -> HomogeneityTest:
    if p_value <= significance:
        words = (
            f"The groups differ by more than chance (p = {p_value:.3g}): weights by variance would favour the answers "
            "of some groups."
        )
    else:
        words = (
            f"No difference between the groups was found (p = {p_value:.3g}). This does not prove that they are alike: "
            "with this much noise only large differences show."
        )
    return HomogeneityTest(statistic, p_value, p_value <= significance, method, words)


def _pearson(table: Ints, rng: np.random.Generator | None) -> tuple[float, float, str]:
    """Chi-squared of the sampled counts; items and groups without any count are left out."""
    table = table[np.ix_(table.sum(axis=1) > 0, table.sum(axis=0) > 0)]
    if min(table.shape, default=0) < 2:
        return 0.0, 1.0, "nothing to compare: fewer than two groups or items have sampled users"
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    expected = np.outer(rows, columns) / table.sum()
    statistic = _chi_squared(table, expected)
    if expected.min() >= DENSE:
        from scipy.special import chdtrc

        freedom = (rows.size - 1) * (columns.size - 1)
        return float(statistic), float(chdtrc(freedom, statistic)), f"Pearson chi-squared, {freedom} degrees of freedom"
    from scipy.stats import random_table

    null = _chi_squared(random_table(rows, columns).rvs(DRAWS, random_state=_needed(rng)), expected)
    method = f"Pearson chi-squared, counts below {DENSE:g} expected: null law from {DRAWS} random tables, same margins"
    return float(statistic), _share(null, float(statistic)), method


def _chi_squared(tables: NDArray[np.generic], expected: Floats) -> Floats:
    return np.asarray(((np.asarray(tables, dtype=np.float64) - expected) ** 2 / expected).sum(axis=(-2, -1)))


def _simulated(
    table: Floats, channels: Sequence[Channel], users: Ints, rng: np.random.Generator
) -> tuple[float, float, str]:
    """Quadratic form in the groups' deviations, and its law when all groups follow the pooled estimate."""
    pooled = _pooled(table, channels, users)
    statistic = float(_quadratic(table, channels, users))
    drawn = [_draw(pooled, each, int(n), rng) for each, n in zip(channels, users, strict=True)]
    null = _quadratic(np.stack(drawn, axis=1), channels, users)
    method = f"quadratic form with sampling and noise covariance, null law from {DRAWS} simulated releases"
    return statistic, _share(null, statistic), method


def _pooled(sums: Floats, channels: Sequence[Channel], users: Ints) -> Floats:
    """Consistent frequencies of all groups together (last axis), weighted by how much each group knows."""
    items = sums.shape[-1]
    variances = [group_variance(each, items, int(n)) for each, n in zip(channels, users, strict=True)]
    return consistent(combine(np.moveaxis(_estimates(sums, channels, users), -2, 0), _weights(users, variances)))


def _weights(users: Ints, variances: Sequence[float]) -> Floats:
    return total_variance(users, np.maximum(variances, 1e-12), 1.0)


def _estimates(sums: Floats, channels: Sequence[Channel], users: Ints) -> Floats:
    parts = [each.estimate(sums[..., g, :], int(n)) for g, (each, n) in enumerate(zip(channels, users, strict=True))]
    return np.stack(parts, axis=-2)


def _quadratic(sums: Floats, channels: Sequence[Channel], users: Ints) -> Floats:
    """sum_g y_g' C_g^-1 y_g, y_g the deviation of group g from the pooled frequencies, C_g its estimate's covariance.

    Deviations are centred: that frequencies sum to one is known, so the sum of the noise says nothing about groups.
    """
    psi = np.maximum(
        _pooled(sums, channels, users), 0.5 / users.sum()
    )  # an item nobody seems to hold may have a holder
    away = _estimates(sums, channels, users) - psi[..., None, :]
    away = away - away.mean(axis=-1, keepdims=True)
    parts = [
        _inverse_form(away[..., g, :], psi, each, int(n))
        for g, (each, n) in enumerate(zip(channels, users, strict=True))
    ]
    return np.asarray(sum(parts))


def _inverse_form(y: Floats, psi: Floats, channel: Channel, n: int) -> Floats:
    """y' C^-1 y by Sherman-Morrison.

    Independent items: C = diag(psi / n + noise) - psi psi' / n. Otherwise (GRR) reports are multinomial with r = miss +
    (hit - miss) psi: C = (diag(r) - r r') / (n gain^2), whose inverse on centred y is diagonal.
    """
    if not channel.independent:
        gain = channel.hit - channel.miss
        return np.asarray((y**2 * n * gain**2 / (channel.miss + gain * psi)).sum(axis=-1))
    diagonal = psi / n + channel.variance(psi, n)
    straight, slope = (y**2 / diagonal).sum(axis=-1), (psi * y / diagonal).sum(axis=-1)
    room = np.maximum(n - (psi**2 / diagonal).sum(axis=-1), 1e-9 * n)
    return np.asarray(straight + slope**2 / room)


def _draw(psi: Floats, channel: Channel, n: int, rng: np.random.Generator) -> Floats:
    """DRAWS releases of a group whose users follow psi."""
    if not channel.independent:
        reports = channel.miss + (channel.hit - channel.miss) * psi
        return rng.multinomial(n, reports / reports.sum(), size=DRAWS).astype(np.float64)
    holders = rng.multinomial(n, psi, size=DRAWS)
    opened = (rng.binomial(holders, channel.hit) + rng.binomial(n - holders, channel.miss)).astype(np.float64)
    if channel.noise is None:
        return opened
    law = channel.noise
    return np.asarray(opened + rng.choice(law.values, p=law.pmf / law.pmf.sum(), size=opened.shape))


def _share(null: Floats, statistic: float) -> float:
    """Monte Carlo p-value that counts the observed release among the draws, so that it is never too small."""
    return float((1 + (null >= statistic * (1 - 1e-12)).sum()) / (1 + null.size))


def _needed(rng: np.random.Generator | None) -> np.random.Generator:
    if rng is None:
        raise ParameterError("the null law must be simulated here: give rng=numpy.random.default_rng(seed)")
    return rng


def _checked(sums: ArrayLike, channels: Sequence[Channel], sizes: ArrayLike) -> tuple[Floats, Ints]:
    table, given = numbers("sums", sums), numbers("sizes", sizes, ParameterError)
    if given.ndim != 1 or np.any(given != np.floor(given)) or np.any(given < 1) or np.any(given > MOST_USERS):
        raise ParameterError("sizes must be whole numbers of users, at least 1, one per group")
    users = given.astype(np.int64)
    if table.ndim != 2 or table.shape[0] != users.size or len(channels) != users.size:
        raise ParameterError("give one row of sums, one channel and one size per group")
    if users.size < 2 or table.shape[1] < 2:
        raise ParameterError("at least 2 groups and 2 items are needed to compare groups")
    if not np.all(np.isfinite(table)):
        raise AnswerError("sums must be finite numbers")
    for row, channel, size in zip(table, channels, users, strict=True):
        if channel.noise is None and (row.min() < 0 or row.max() > size or np.any(row != np.rint(row))):
            raise AnswerError("sums without noise must be whole numbers from 0 to the users of their group")
    return table, users
