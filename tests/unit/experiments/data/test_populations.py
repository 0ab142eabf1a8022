"""The typed-in counts are the facts they claim to be, and groups are drawn from them as described."""

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
from faircount.experiments.data import populations
from faircount.experiments.data import published_counts as counts
from faircount.experiments.data.populations import MAKERS, Population, population, sample

SHARED = Path(os.environ.get("FAIRCOUNT_DATA", Path(__file__).parents[5] / "shared" / "data"))
FALSE_ALARM = 1e-6


def column(name, key):
    with (SHARED / name).open() as file:
        return [int(row[key]) for row in csv.DictReader(file)]


def published():
    """(typed in, what it must be): sums known from the sources, and every number where the tables are at hand."""
    facts = [
        (sum(counts.GOWALLA_12), 8600),
        (sum(counts.GOWALLA_25), 8600),
        (sum(counts.WAGES.values()), 5584),
    ]
    facts.append((counts.WAGE_ZERO + sum(counts.WAGES.values()), 99762))
    if SHARED.is_dir():
        facts.append((list(counts.GOWALLA_12), column("gowalla_counts_12.csv", "users")))
        facts.append((list(counts.GOWALLA_25), column("gowalla_counts_25.csv", "users")))
        wages = zip(column("census_wage_hist100.csv", "bin"), column("census_wage_hist100.csv", "count"), strict=True)
        facts.append(({0: counts.WAGE_ZERO} | counts.WAGES, dict(wages)))
    return facts


@pytest.mark.parametrize(("typed", "source"), published())
def test_counts_are_those_of_the_source(typed, source):
    assert typed == source


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
    people = population(name)
    assert people.name == name
    assert len(people.labels) == len(set(people.labels)) == items
    assert people.users == users
    assert people.frequencies.sum() == pytest.approx(1, abs=1e-12)
    assert people.frequencies.min() == pytest.approx(rarest, abs=1e-9)
    assert people.source
    assert people.limits


def test_every_name_is_a_population():
    assert tuple(MAKERS) == ("gowalla", "gowalla-12", "gowalla-25", "census", "census-full", "uniform", "normal")
    assert [population(name).name for name in MAKERS] == list(MAKERS)


def test_views_say_what_they_leave_out():
    assert population("gowalla").limits.endswith(
        "only the 9 cells with at least 1% of the users, who are 98.85% of them"
    )
    assert "99,762 of 299,285" in population("census").limits
    assert "wages of exactly 0 left out" in population("census").limits
    assert population("gowalla-12").labels[0] == "30..35N 100..95W"
    assert population("gowalla-25").labels[-1] == "42..45N 84..80W"


def test_wages_are_merged_as_described():
    people = population("census")
    assert people.labels[:2] == ("below 400", "400..499")
    assert people.labels[-2:] == ("2000..2099", "2100 and more")
    assert people.counts[:2] == (6 + 63 + 28, 538)
    assert people.counts[-1] == sum(held for interval, held in counts.WAGES.items() if interval >= 21)


def test_normal_is_the_standard_normal_with_its_tails():
    edges = [-math.inf, *populations.NORMAL_EDGES[1:-1], math.inf]
    np.testing.assert_allclose(population("normal").frequencies, np.diff(norm.cdf(edges)), atol=2e-9)


def test_a_sample_of_everybody_is_everybody():
    """So records are drawn without replacement."""
    people = population("gowalla")
    np.testing.assert_array_equal(sample(people, people.users, np.random.default_rng(1)), people.counts)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("users", [1, 1000, 10**8])
def test_a_sample_has_the_right_size(name, users):
    drawn = sample(population(name), users, np.random.default_rng(2))
    assert drawn.dtype == np.int64
    assert drawn.sum() == users
    assert drawn.shape == (len(population(name).labels),)


def test_same_generator_same_sample():
    draws = [sample(population("census"), 1000, np.random.default_rng(3), floor=20) for _ in range(2)]
    np.testing.assert_array_equal(*draws)


def worst_deviation(people, frequencies, users, times, seed):
    """Largest |z| of the items' total counts over `times` groups, for the frequencies claimed."""
    rng = np.random.default_rng(seed)
    total = sum(sample(people, users, rng) for _ in range(times))
    left = 1.0 if people.distribution else (people.users - users) / (people.users - 1)
    spread = np.sqrt(times * users * frequencies * (1 - frequencies) * left)
    return np.abs((total - times * users * frequencies) / spread).max()


@pytest.mark.parametrize("name", ["gowalla", "census", "uniform", "normal"])
def test_samples_have_the_population_s_frequencies(name):
    people = population(name)
    limit = norm.isf(FALSE_ALARM / (2 * len(people.labels) * 4))  # four populations, every item
    assert worst_deviation(people, people.frequencies, 1000, 500, seed=4) < limit
    wrong = people.frequencies.copy()
    most, least = wrong.argmax(), wrong.argmin()
    moved = 0.1 * wrong[most]  # a tenth of the commonest item's holders, under another name, must be seen
    wrong[[most, least]] += [-moved, moved]
    assert worst_deviation(people, wrong, 1000, 500, seed=4) > limit


@settings(deadline=None, max_examples=150)
@given(
    held=st.lists(st.integers(0, 60), min_size=2, max_size=8).filter(lambda each: sum(each) > 0),
    distribution=st.booleans(),
    data=st.data(),
)
def test_a_floor_changes_as_few_answers_as_possible(held, distribution, data):
    people = Population("made", tuple(map(str, range(len(held)))), tuple(held), "test", "test", distribution)
    users = data.draw(st.integers(1, 100))
    floor = data.draw(st.integers(0, users // len(held)))
    seed = data.draw(st.integers(0, 2**32))
    plain, raised = (sample(people, users, np.random.default_rng(seed), floor=each) for each in (0, floor))
    assert raised.sum() == users
    assert raised.min() >= floor
    np.testing.assert_array_equal(raised[plain < floor], floor)
    assert np.all(raised[plain >= floor] <= plain[plain >= floor])


def test_users_who_change_their_answer_are_picked_at_random():
    """100 and 300 spare holders, 40 to move: hypergeometric, so 10 from the first on average."""
    rng = np.random.default_rng(5)
    moved = np.array([100 - populations._raised(np.array([100, 300, 0]), 40, rng)[0] for _ in range(4000)])
    spare, first, moves = 60 + 260, 60, 40
    share = first / spare
    spread = math.sqrt(moves * share * (1 - share) * (spare - moves) / (spare - 1) / moved.size)
    limit = norm.isf(FALSE_ALARM / 2)
    assert abs(moved.mean() - moves * share) < limit * spread
    assert abs(moved.mean() - moves * 0.25) > limit * spread  # picking among all holders instead would be caught


def test_what_cannot_be_drawn_is_refused():
    rng = np.random.default_rng(6)
    with pytest.raises(ParameterError, match="choose one of gowalla"):
        population("gowala")
    with pytest.raises(ParameterError, match="at most 33"):
        sample(population("uniform"), 1000, rng, floor=34)
    with pytest.raises(ParameterError, match="users"):
        sample(population("uniform"), 0, rng)
    with pytest.raises(ParameterError, match="floor"):
        sample(population("uniform"), 10, rng, floor=-1)
    with pytest.raises(ParameterError, match="999999999"):
        sample(population("census-full"), 10**10, rng, floor=10)
    with pytest.raises(ParameterError, match="same, non-zero length"):
        Population("made", ("a",), (1, 2), "test", "test")
