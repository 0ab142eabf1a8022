"""Intervals of weighted sums, by enumerating every sum of every group: nothing is simulated."""

from itertools import product

import numpy as np
import pytest
from exact_coverage_of_groups import GroupCoverage, is_even, splits_of
from scipy.stats import binom

from faircount.core.errors import ParameterError
from faircount.estimation.intervals import interval
from faircount.estimation.weighted_distribution import WeightedGroup, WeightedSum
from faircount.estimation.weighted_intervals import weighted_interval
from faircount.estimation.weighting import uwa, vwa
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution


def laplace(epsilon: float) -> Channel:
    edge = int(30 / epsilon)
    pmf = np.exp(-epsilon / 2 * np.abs(np.arange(-edge, edge + 1)))
    return Channel(1.0, noise=NoiseDistribution(-edge, pmf / pmf.sum()))


def decoys(coins: int, p: float = 1.0) -> Channel:
    return Channel(p, noise=NoiseDistribution(0, binom.pmf(np.arange(coins + 1), coins, 0.5)))


def gaussian(variance: float) -> Channel:
    edge = int(6 * variance**0.5 * 2)
    pmf = np.exp(-((np.arange(-edge, edge + 1) / 2) ** 2) / (2 * variance))
    return Channel(1.0, noise=NoiseDistribution(-edge, pmf / pmf.sum(), 2))


CASES: dict[str, tuple[tuple[Channel, ...], tuple[int, ...]]] = {
    "dpds, levels 0.5 and 0.6": ((Channel(0.393), Channel(0.451)), (12, 14)),
    "dpds, levels 0.1 and 2": ((Channel(0.095), Channel(0.865)), (12, 14)),
    "dpds, a tiny group": ((Channel(0.5), Channel(0.9)), (2, 25)),
    "dpds, the tiny group knows more": ((Channel(0.9), Channel(0.5)), (1, 25)),
    "two users": ((Channel(0.5), Channel(0.7)), (1, 1)),
    "tss, three groups": ((Channel(0.3), Channel(0.5), Channel(0.8)), (4, 5, 6)),
    "oue": ((Channel(0.5, 0.3), Channel(0.5, 0.1)), (10, 15)),
    "grr": (
        (Channel(0.5, 0.2, independent=False), Channel(0.9, 0.05, independent=False)),
        (10, 15),
    ),
    "laplace": ((laplace(4.0), laplace(7.0)), (9, 8)),
    "decoys": ((decoys(20), decoys(9)), (10, 8)),
    "decoys with sampling": ((decoys(12, 0.5), decoys(9)), (8, 8)),
    "dpdg": ((gaussian(1.0), gaussian(0.4)), (9, 7)),
    "laplace and dpds": ((laplace(3.0), Channel(0.5)), (9, 8)),
}


def parts_of(name: str, weights: str) -> tuple[WeightedGroup, ...]:
    channels, sizes = CASES[name]
    own = [c.hit * (1 - c.hit) + 2 * c.miss * (1 - c.miss) for c in channels]
    noise = [
        3 * c.noise.variance / n if c.noise else 0.0 for c, n in zip(channels, sizes, strict=True)
    ]
    spread = [(o + v) / (c.hit - c.miss) ** 2 for o, v, c in zip(own, noise, channels, strict=True)]
    chosen = uwa(sizes) if weights == "uwa" else vwa(sizes, spread)
    return tuple(
        WeightedGroup(w, c, n) for w, c, n in zip(chosen.tolist(), channels, sizes, strict=True)
    )


@pytest.mark.parametrize("name", CASES)
def test_weighted_by_size_it_holds_for_every_division(name: str) -> None:
    parts = parts_of(name, "uwa")
    found = GroupCoverage(parts, splits_of(parts))
    assert min(found.given(split).coverage for split in found.splits) >= 0.95
    assert found.made.method.endswith("privacy noise only")


@pytest.mark.parametrize("name", CASES)
def test_with_other_weights_it_holds_for_groups_that_are_alike(name: str) -> None:
    """For random divisions of any number of holders, and for all that are as even as possible."""
    parts = parts_of(name, "vwa")
    found = GroupCoverage(parts, splits_of(parts))
    assert min(found.random(holders).coverage for holders in range(found.users + 1)) >= 0.95
    assert (
        min(found.given(split).coverage for split in found.splits if is_even(parts, split)) >= 0.95
    )


def test_the_example_of_a_rare_item() -> None:
    """12 of 400 users in each of two groups.

    Coverage was 0.55 when the variance was taken at an estimate near 0.
    """
    parts = tuple(
        WeightedGroup(w, Channel(p), 400)
        for w, p in ((0.46, 1 - np.exp(-0.5)), (0.54, 1 - np.exp(-0.6)))
    )
    sums = np.array(list(product(range(13), repeat=2))).T
    chance = np.outer(*(binom.pmf(np.arange(13), 12, part.channel.hit) for part in parts)).ravel()
    made = weighted_interval(sums, parts)
    assert chance @ made.contains(0.03) >= 0.95
    assert np.all(made.width > 0)
    oracle = 2 * 1.96 * WeightedSum(parts).variance(24) ** 0.5
    assert chance @ made.width <= 1.15 * oracle
    estimates = sum(
        part.weight * part.channel.estimate(row, 400) for part, row in zip(parts, sums, strict=True)
    )
    at_estimate = np.array(
        [1.96 * WeightedSum(parts).variance(800 * estimate) ** 0.5 for estimate in estimates]
    )
    assert (
        chance @ (np.abs(estimates - 0.03) <= at_estimate) < 0.95
    )  # planted: the variance at the estimate itself


@pytest.mark.parametrize("name", ["dpds, levels 0.1 and 2", "oue", "laplace", "two users"])
@pytest.mark.parametrize("weights", ["uwa", "vwa"])
def test_a_population_is_covered(name: str, weights: str) -> None:
    """Alike groups for both weights; for `uwa` also groups that hold different items."""
    parts = parts_of(name, weights)
    found = GroupCoverage(parts, splits_of(parts), covers="population")
    sizes = np.array([part.users for part in parts])
    for theta in (0.02, 0.2, 0.5, 0.97):
        shares = [np.full(len(parts), theta)]
        if weights == "uwa":
            first = min(1.0, theta * sizes.sum() / sizes[0])
            shares.append(np.array([first, (theta * sizes.sum() - first * sizes[0]) / sizes[1]]))
        for share in shares:
            chances = {
                split: float(np.prod(binom.pmf(split, sizes, share))) for split in found.splits
            }
            assert found.over(chances, theta).coverage >= 0.95, (theta, share)


@pytest.mark.slow
def test_a_population_is_covered_whose_members_choose_their_group_by_their_answer() -> None:
    """Every holder and 2% of the others take the strict level: coverage was 0.912.

    The number of users in it is then random, and tells something about the holders.
    """
    users = 60
    theta = 0.25
    in_strict = theta + 0.02 * (1 - theta)
    covered = 0.0
    for size in range(1, users):
        chance = binom.pmf(size, users, in_strict)
        if chance < 1e-4:
            continue
        parts = (
            WeightedGroup(size / users, Channel(0.4), size),
            WeightedGroup(1 - size / users, Channel(0.9), users - size),
        )
        sums = np.arange(size + 1)
        distribution = binom.pmf(sums, size, 0.4 * theta / in_strict)
        made = weighted_interval(np.stack([sums, 0 * sums]), parts, covers="population")
        covered += chance * (distribution @ made.contains(theta))
    assert covered >= 0.95


def test_one_group_is_nearly_the_survey_alone() -> None:
    """Sums of two groups of one kind add up to one survey of all users with an exact interval."""
    channel = Channel(0.4)
    parts = tuple(WeightedGroup(n / 900, channel, n) for n in (300, 600))
    sums = np.array([[0, 3, 40, 110], [1, 9, 90, 235]])
    together, alone = weighted_interval(sums, parts), interval(sums.sum(axis=0), channel, 900)
    assert np.all(together.low <= alone.low + 1e-12)
    assert np.all(together.width <= alone.width * 1.1 + 2.5 / 900)


def test_all_items_at_once() -> None:
    """Sidak where nothing links the items, else Bonferroni: as single intervals of that confidence."""
    by_size, weighted = (
        parts_of("dpds, levels 0.5 and 0.6", weights) for weights in ("uwa", "vwa")
    )
    sums = np.array([[5, 1, 0], [4, 2, 0]])
    for parts, confidence, word in (
        (by_size, 0.95 ** (1 / 3), "Sidak"),
        (weighted, 1 - 0.05 / 3, "Bonferroni"),
    ):
        made = weighted_interval(sums, parts, simultaneous=True)
        single = weighted_interval(sums, parts, confidence=confidence)
        np.testing.assert_array_equal(made.low, single.low)
        np.testing.assert_array_equal(made.high, single.high)
        assert f"{word} over 3 items" in made.method
        assert made.confidence == 0.95
    grr = weighted_interval(sums, parts_of("grr", "uwa"), simultaneous=True)
    assert "Bonferroni" in grr.method


def test_where_no_count_is_plausible_the_nearest_end_is_named() -> None:
    parts = tuple(WeightedGroup(0.5, laplace(4.0), 20) for _ in range(2))
    made = weighted_interval(np.array([[-6, 26], [-7, 27]]), parts)
    np.testing.assert_array_equal(made.low, [0, 1])
    np.testing.assert_array_equal(made.high, [0, 1])


def test_many_users_are_no_problem() -> None:
    parts = tuple(WeightedGroup(w, Channel(p), 5_000_000) for w, p in ((0.3, 0.2), (0.7, 0.6)))
    made = weighted_interval(np.array([[80_000], [240_000]]), parts)
    half = 1.96 * WeightedSum(parts).variance(800_000) ** 0.5
    assert "approximate" in made.method
    np.testing.assert_allclose(
        [made.low[0], made.high[0]], [0.08 - half, 0.08 + half], atol=0.05 * half
    )


def test_wrong_use_is_refused() -> None:
    parts = parts_of("oue", "uwa")
    for sums in ([[1, 2]], [1, 2], [[], []], [[np.nan], [1]]):
        with pytest.raises(ParameterError):
            weighted_interval(sums, parts)
    with pytest.raises(ParameterError, match="covers"):
        weighted_interval([[1], [2]], parts, covers="everyone")
    with pytest.raises(ParameterError, match="sum to 1"):
        weighted_interval([[1], [2]], [WeightedGroup(0.4, Channel(0.5), 3)] * 2)
