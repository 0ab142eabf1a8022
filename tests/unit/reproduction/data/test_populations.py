"""The built-in counts are those of their sources, and groups are drawn from them as described."""

import csv
import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from faircount.core.errors import ParameterError
from faircount.reproduction.data import populations
from faircount.reproduction.data import published_counts as published
from faircount.reproduction.data.populations import (
    BUILT_IN,
    Population,
    get_population,
    sample_counts,
)

# Tables of the public data, which are not part of the repository.
SHARED = Path(os.environ.get("FAIRCOUNT_DATA", Path(__file__).parents[5] / "shared" / "data"))
# How often a statistical test fails although the code is right.
FALSE_ALARM = 1e-6


def read_column(name, key):
    with (SHARED / name).open() as file:
        return [int(row[key]) for row in csv.DictReader(file)]


def list_facts():
    """Pairs of a built-in number and what it must be: sums, and all counts where available."""
    wages = sum(published.WAGES.values())
    facts = [
        (sum(published.GOWALLA_12), 8600),
        (sum(published.GOWALLA_25), 8600),
        (wages, 5584),
        (published.WAGE_ZERO + wages, 99762),
    ]
    if SHARED.is_dir():
        facts.append((list(published.GOWALLA_12), read_column("gowalla_counts_12.csv", "users")))
        facts.append((list(published.GOWALLA_25), read_column("gowalla_counts_25.csv", "users")))
        intervals = read_column("census_wage_hist100.csv", "bin")
        counts = read_column("census_wage_hist100.csv", "count")
        expected = dict(zip(intervals, counts, strict=True))
        facts.append(({0: published.WAGE_ZERO} | published.WAGES, expected))
    return facts


@pytest.mark.parametrize(("built_in", "source"), list_facts())
def test_counts_are_those_of_the_source(built_in, source):
    assert built_in == source


@pytest.mark.parametrize(
    ("name", "items", "users", "rarest"),
    [
        ("gowalla", 9, 8501, 167 / 8501),
        ("gowalla-12", 12, 8600, 13 / 8600),
        ("gowalla-25", 25, 8600, 1 / 8600),
        ("census", 19, 5584, 70 / 5584),
        ("census-full", 100, 99762, 0),
        ("uniform", 30, 30, 1 / 30),
        ("normal", 30, 1_000_000_002, norm.cdf(-2.6) - norm.cdf(-2.8)),
    ],
)
def test_populations(name, items, users, rarest):
    population = get_population(name)
    assert population.name == name
    assert len(population.labels) == items
    assert len(set(population.labels)) == items
    assert population.users == users
    assert population.frequencies.sum() == pytest.approx(1, abs=1e-12)
    assert population.frequencies.min() == pytest.approx(rarest, abs=1e-9)
    assert population.source
    assert population.limits


def test_the_built_in_populations_are_these():
    assert list(BUILT_IN) == [
        "gowalla",
        "gowalla-12",
        "gowalla-25",
        "census",
        "census-full",
        "uniform",
        "normal",
    ]


def test_views_say_what_they_leave_out():
    limits = get_population("gowalla").limits
    assert limits.endswith("only the 9 cells with at least 1% of the users, who are 98.85% of them")
    assert "99,762 of 299,285" in get_population("census").limits
    assert "wages of exactly 0 left out" in get_population("census").limits
    assert get_population("gowalla-12").labels[0] == "30..35N 100..95W"
    assert get_population("gowalla-25").labels[-1] == "42..45N 84..80W"


def test_wages_are_merged_as_described():
    population = get_population("census")
    assert population.labels[:2] == ("below 400", "400..499")
    assert population.labels[-2:] == ("2000..2099", "2100 and more")
    assert population.counts[:2] == (6 + 63 + 28, 538)
    highest = [count for interval, count in published.WAGES.items() if interval >= 21]
    assert population.counts[-1] == sum(highest)


def test_normal_is_the_standard_normal_with_its_tails():
    # The outermost intervals reach to infinity.
    edges = [-math.inf, *populations.NORMAL_EDGES[1:-1], math.inf]
    frequencies = get_population("normal").frequencies
    np.testing.assert_allclose(frequencies, np.diff(norm.cdf(edges)), atol=2e-9)


def test_a_sample_of_everybody_is_everybody():
    """So records are drawn without replacement."""
    population = get_population("gowalla")
    drawn = sample_counts(population, population.users, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn, population.counts)


@pytest.mark.parametrize("name", BUILT_IN)
# The largest group has more users than any data set has records.
@pytest.mark.parametrize("users", [1, 1000, 10**8])
def test_a_sample_has_the_right_size(name, users):
    population = get_population(name)
    drawn = sample_counts(population, users, np.random.default_rng(2))
    assert drawn.dtype == np.int64
    assert drawn.sum() == users
    assert drawn.shape == (len(population.labels),)


def test_same_generator_same_sample():
    census = get_population("census")
    first = sample_counts(census, 1000, np.random.default_rng(3), floor=20)
    second = sample_counts(census, 1000, np.random.default_rng(3), floor=20)
    np.testing.assert_array_equal(first, second)


def worst_deviation(population, frequencies, users, times, seed):
    """Largest |z| of the items' total counts over `times` groups, for the claimed frequencies."""
    rng = np.random.default_rng(seed)
    total = sum(sample_counts(population, users, rng) for _ in range(times))
    variance = times * users * frequencies * (1 - frequencies)
    if not population.distribution:
        # The correction for draws without replacement.
        variance = variance * (population.users - users) / (population.users - 1)
    return np.abs((total - times * users * frequencies) / np.sqrt(variance)).max()


@pytest.mark.parametrize("name", ["gowalla", "census", "uniform", "normal"])
def test_samples_have_the_frequencies_of_the_population(name):
    population = get_population(name)
    # The false-alarm rate is for every item of the four populations.
    limit = norm.isf(FALSE_ALARM / (2 * len(population.labels) * 4))
    assert worst_deviation(population, population.frequencies, 1000, 500, seed=4) < limit
    # A tenth of the commonest item's users under another item must be noticed.
    wrong = population.frequencies.copy()
    moved = 0.1 * wrong.max()
    wrong[[wrong.argmax(), wrong.argmin()]] += [-moved, moved]
    assert worst_deviation(population, wrong, 1000, 500, seed=4) > limit


@settings(deadline=None, max_examples=150)
@given(
    counts=st.lists(st.integers(0, 60), min_size=2, max_size=8).filter(any),
    distribution=st.booleans(),
    data=st.data(),
)
def test_a_floor_changes_as_few_answers_as_possible(counts, distribution, data):
    labels = tuple(map(str, range(len(counts))))
    population = Population("made", labels, tuple(counts), "test", "test", distribution)
    users = data.draw(st.integers(1, 100))
    floor = data.draw(st.integers(0, users // len(counts)))
    seed = data.draw(st.integers(0, 2**32))
    plain = sample_counts(population, users, np.random.default_rng(seed))
    raised = sample_counts(population, users, np.random.default_rng(seed), floor=floor)
    assert raised.sum() == users
    assert raised.min() >= floor
    # An item below the floor is raised to it and no further; the others only lose users.
    np.testing.assert_array_equal(raised[plain < floor], floor)
    assert np.all(raised[plain >= floor] <= plain[plain >= floor])


def test_users_who_change_their_answer_are_picked_at_random():
    """60 and 260 users can be spared, and 40 must move: hypergeometric."""
    rng = np.random.default_rng(5)
    before = np.array([100, 300, 0])
    moved = np.array([100 - populations._raise_to_floor(before, 40, rng)[0] for _ in range(4000)])
    spare = 60 + 260
    share = 60 / spare
    spread = math.sqrt(40 * share * (1 - share) * (spare - 40) / (spare - 1) / moved.size)
    limit = norm.isf(FALSE_ALARM / 2)
    assert abs(moved.mean() - 40 * share) < limit * spread
    # Picking among all 400 users, also below the floor, would be noticed.
    assert abs(moved.mean() - 40 * 0.25) > limit * spread


def test_what_cannot_be_drawn_is_refused():
    rng = np.random.default_rng(6)
    uniform = get_population("uniform")
    with pytest.raises(ParameterError, match="choose one of gowalla"):
        get_population("gowala")
    with pytest.raises(ParameterError, match="at most 33"):
        sample_counts(uniform, 1000, rng, floor=34)
    with pytest.raises(ParameterError, match="users"):
        sample_counts(uniform, 0, rng)
    with pytest.raises(ParameterError, match="floor"):
        sample_counts(uniform, 10, rng, floor=-1)
    with pytest.raises(ParameterError, match="999999999"):
        sample_counts(get_population("census-full"), 10**10, rng, floor=10)
    with pytest.raises(ParameterError, match="same, non-zero length"):
        Population("made", ("a",), (1, 2), "test", "test")
