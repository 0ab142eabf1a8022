"""The test of homogeneity: exact algebra, and size and power by simulation.

Simulated tests state their false-alarm rate.
"""

import numpy as np
import pytest
from scipy.stats import binom, chi2, chi2_contingency, multinomial

from faircount.core.errors import AnswerError, ParameterError
from faircount.estimation import homogeneity as module
from faircount.estimation.consistency import project_to_simplex
from faircount.estimation.homogeneity import homogeneity
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution

ITEMS, USERS = 12, 250
UNIFORM = np.full(ITEMS, 1 / ITEMS)
SKEWED = 1 / np.arange(1, ITEMS + 1) / (1 / np.arange(1, ITEMS + 1)).sum()


def geometric(epsilon):
    pmf = np.exp(-epsilon / 2 * np.abs(np.arange(-400, 401)))
    return Channel(1.0, noise=NoiseDistribution(-400, pmf / pmf.sum()))


def coins(number):
    return Channel(1.0, noise=NoiseDistribution(0, binom.pmf(np.arange(number + 1), number, 0.5)))


def normal(variance, scale=4):
    grid = np.arange(-600, 601)
    pmf = np.exp(-((grid / scale) ** 2) / variance / 2)
    return Channel(1.0, noise=NoiseDistribution(-600, pmf / pmf.sum(), scale))


GRR = Channel(np.e**3 / (np.e**3 + ITEMS - 1), 1 / (np.e**3 + ITEMS - 1), independent=False)
GROUPS = {
    "sparse sampling": [Channel(1 - np.exp(-epsilon)) for epsilon in (0.1, 0.4, 0.7, 1.0)],
    "dense sampling": [Channel(0.6), Channel(0.9)],
    "laplace": [geometric(1), geometric(2)],
    "decoys": [coins(115), coins(36), coins(115)],
    "gaussian": [normal(8), normal(28)],
    "local": [Channel(0.5, 1 / (np.e**3 + 1)), GRR],
}


def release(channel, psi, rng):
    """A group's revealed sums, drawn user by user in effect and without the code under test."""
    held = rng.multinomial(USERS, psi)
    if not channel.independent:
        told = rng.binomial(held, channel.hit - channel.miss)
        return told + rng.multinomial(USERS - told.sum(), UNIFORM)
    sums = rng.binomial(held, channel.hit) + rng.binomial(USERS - held, channel.miss)
    if channel.noise is None:
        return sums
    return sums + rng.choice(channel.noise.values, p=channel.noise.pmf, size=ITEMS)


def rejections(channels, truths, runs, rng):
    count = 0
    for _ in range(runs):
        table = [release(channel, psi, rng) for channel, psi in zip(channels, truths, strict=True)]
        count += homogeneity(table, channels, [USERS] * len(channels), rng=rng).rejected
    return count


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch):
    monkeypatch.setattr(module, "DRAWS", 199)  # p-values in steps of 1/200: 5% is still hit exactly


@pytest.mark.parametrize("name", GROUPS)
def test_size(name):
    """Alike groups are rejected in 5% of the cases at most; false alarm 1e-6."""
    channels, runs = GROUPS[name], 300
    found = rejections(channels, [SKEWED] * len(channels), runs, np.random.default_rng(21))
    assert found <= binom.isf(1e-6, runs, 0.05)
    assert found > 0


@pytest.mark.parametrize(
    ("name", "least"),
    [("dense sampling", 0.9), ("laplace", 0.9), ("decoys", 0.9), ("gaussian", 0.9)],
)
def test_power(name, least):
    """One skewed group among uniform ones is found nearly always, in 40 runs."""
    channels = GROUPS[name]
    truths = [SKEWED] + [UNIFORM] * (len(channels) - 1)
    assert rejections(channels, truths, 40, np.random.default_rng(22)) >= least * 40


PAIR = Channel(1.0, noise=geometric(2).noise, independent=False)


def paired_release(share, rng):
    """Two items with one draw, added to the first and subtracted from the second."""
    first = rng.binomial(USERS, share) + rng.choice(PAIR.noise.values, p=PAIR.noise.pmf)
    return [first, USERS - first]


@pytest.mark.parametrize(("shares", "least", "most"), [((0.3, 0.3), 1, 36), ((0.3, 0.5), 280, 300)])
def test_two_items_that_share_a_draw(shares, least, most):
    """300 runs: alike groups are rejected in 5% of them (above 36 with 1e-6), others nearly always.

    The homogeneity test of multinomial reports, without the noise, would find too many.
    """
    rng, found = np.random.default_rng(25), 0
    for _ in range(300):
        table = [paired_release(share, rng) for share in shares]
        found += homogeneity(table, [PAIR, PAIR], [USERS, USERS], rng=rng).rejected
    assert least <= found <= most


@pytest.mark.parametrize("name", ["sparse sampling", "dense sampling", "laplace", "decoys"])
def test_noise_variance_alone_rejects_alike_groups(name):
    """Why the sampling of users belongs into the covariance: without it 5% becomes 37% and more."""
    channels, rng, runs, wrong = GROUPS[name], np.random.default_rng(23), 200, 0
    for _ in range(runs):
        table = [release(channel, SKEWED, rng) for channel in channels]
        estimates = np.array(
            [channel.estimate(sums, USERS) for channel, sums in zip(channels, table, strict=True)]
        )
        psi = np.maximum(project_to_simplex(estimates.mean(axis=0)), 1e-4)
        weight = np.array([1 / channel.variance(psi, USERS) for channel in channels])
        pooled = (weight * estimates).sum(axis=0) / weight.sum(axis=0)
        statistic = (weight * (estimates - pooled) ** 2).sum()
        wrong += chi2.sf(statistic, (len(channels) - 1) * ITEMS) < 0.05
    assert wrong > 0.37 * runs


def test_dense_counts_are_pearsons_test():
    table = np.array([[30, 40, 50], [35, 20, 60], [50, 60, 70]])
    expected = chi2_contingency(table)
    found = homogeneity(table, [Channel(0.5)] * 3, [300] * 3)
    assert (found.statistic, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert "4 degrees of freedom" in found.method


def test_sparse_counts_are_an_exact_test(monkeypatch):
    """Tables with the margins of [[3, 0], [1, 4]] are hypergeometric.

    It has probability 4/56, and so has its mirror image.
    """
    monkeypatch.setattr(module, "DRAWS", 20_000)
    found = homogeneity(
        [[3, 0, 0], [1, 4, 0]], [Channel(0.5)] * 2, [10, 10], rng=np.random.default_rng(1)
    )
    assert found.p_value == pytest.approx(8 / 56, abs=5 * np.sqrt(0.14 * 0.86 / 20_000))
    assert "same margins" in found.method


def test_nothing_sampled_is_nothing_found():
    found = homogeneity([[0, 0], [3, 4]], [Channel(0.1)] * 2, [10, 10])
    assert (found.p_value, found.rejected) == (1.0, False)


@pytest.mark.parametrize("channel", [geometric(1), Channel(0.5, 0.2), Channel(0.7)])
def test_quadratic_form_is_the_inverse_covariance(channel):
    rng, n = np.random.default_rng(3), 80
    psi = rng.dirichlet(np.ones(5))
    y = rng.normal(size=5)
    covariance = (np.diag(psi) - np.outer(psi, psi)) / n + np.diag(channel.variance(psi, n))
    found = module._inverse_form(y, psi, channel, n)
    assert found == pytest.approx(y @ np.linalg.inv(covariance) @ y)


def test_quadratic_form_of_dependent_reports():
    """GRR: a generalized inverse of the multinomial covariance, on deviations that sum to zero."""
    rng, n, channel = np.random.default_rng(4), 80, Channel(0.5, 0.125, independent=False)
    psi, y = rng.dirichlet(np.ones(5)), rng.normal(size=5)
    y -= y.mean()
    reports = 0.125 + 0.375 * psi
    covariance = multinomial.cov(n, reports) / (n * 0.375) ** 2
    found = module._inverse_form(y, psi, channel, n)
    assert found == pytest.approx(y @ np.linalg.pinv(covariance) @ y)


def test_groups_that_are_far_apart_are_rejected():
    test = homogeneity([[100, 0], [0, 100]], [Channel(0.5)] * 2, [200, 300])
    assert test.rejected
    assert "differ by more than chance" in test.words


def test_not_rejecting_claims_nothing():
    test = homogeneity([[50, 50], [49, 51]], [Channel(0.5)] * 2, [200, 200])
    assert not test.rejected
    assert "does not prove" in test.words


def test_the_same_seed_gives_the_same_answer():
    table = [[20, 30, 25], [25, 25, 40]]
    first, second = (
        homogeneity(table, [geometric(1)] * 2, [75, 90], rng=np.random.default_rng(5))
        for _ in range(2)
    )
    assert first == second


def test_nonsense_is_refused():
    with pytest.raises(ParameterError, match="rng"):
        homogeneity([[1, 2], [3, 4]], [geometric(1)] * 2, [10, 10])
    with pytest.raises(ParameterError, match="rng"):
        homogeneity([[1, 2], [3, 1]], [Channel(0.5)] * 2, [10, 10])
    with pytest.raises(ParameterError, match="per group"):
        homogeneity([[1, 2], [3, 4]], [Channel(0.5)], [10, 10])
    with pytest.raises(ParameterError, match="at least 2"):
        homogeneity([[1, 2]], [Channel(0.5)], [10])
    with pytest.raises(AnswerError):
        homogeneity([[1, np.nan], [3, 4]], [Channel(0.5)] * 2, [10, 10])


def test_groups_of_sampled_counts_that_cannot_be_are_refused() -> None:
    for sums in ([[-5, 6], [4, 3]], [[50, 6], [4, 3]], [[0.5, 6], [4, 3]]):
        with pytest.raises(AnswerError, match="without noise"):
            homogeneity(sums, [Channel(0.5)] * 2, [20, 20], rng=np.random.default_rng(1))
