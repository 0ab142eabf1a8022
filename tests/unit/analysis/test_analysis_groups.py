"""Groups with their own privacy level, put together."""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from faircount.accounting.conditions import MEMBERSHIP, ROWS_ARE_PEOPLE
from faircount.analysis.groups import GroupedHistogram, combine_groups, split_by_level
from faircount.analysis.histogram import Histogram, histogram
from faircount.core.arrays import Floats
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, FaircountError, ParameterError, RefusedError
from faircount.estimation import weighting

ITEMS = ["a", "b", "c", "d"]
# Every ten rows have the same answers, so all groups answer alike, and the test of homogeneity sees
# no difference by chance.
BLOCKS = range(90)
TABLE = {
    "answer": ["a", "a", "a", "a", "b", "b", "b", "c", "c", "d"] * len(BLOCKS),
    "level": np.repeat(["0.5", "1", "1", "2", "2", "2"] * (len(BLOCKS) // 6), 10).tolist(),
    "name": np.repeat(["strict", "open", "open"] * (len(BLOCKS) // 3), 10).tolist(),
}


KNOWN: dict[str, Any] = {"domain": ITEMS, "public_groups": True}


def run_groups(table: Any = TABLE, groups: str = "level", **known: Any) -> GroupedHistogram:
    if table is TABLE and groups == "level" and known.keys() <= {"weights"}:
        return usual_groups(**known)
    return play_groups(table, groups, **known)


@cache
def usual_groups(**known: Any) -> GroupedHistogram:
    """Many tests look at these, and a survey of 900 people takes a while."""
    return play_groups(TABLE, "level", **known)


def play_groups(table: Any, groups: str, **known: Any) -> GroupedHistogram:
    result = histogram(
        table, "answer", **(KNOWN | {"groups": groups, "entropy": SeededStream(6)} | known)
    )
    assert isinstance(result, GroupedHistogram)
    return result


def test_levels_are_epsilons_smallest_first() -> None:
    found = split_by_level(["2", 0.5, "0.5", 1, " 2"], None)
    assert {name: (epsilon, rows.tolist()) for name, (epsilon, rows) in found.items()} == {
        "0.5": (0.5, [1, 2]),
        "1": (1.0, [3]),
        "2": (2.0, [0, 4]),
    }


def test_levels_may_have_names() -> None:
    found = split_by_level(["open", "strict"], {"open": 2, "strict": 0.5, "unused": 1.0})
    assert [(name, epsilon) for name, (epsilon, _) in found.items()] == [
        ("strict", 0.5),
        ("open", 2.0),
    ]


@pytest.mark.parametrize(
    ("cells", "epsilons", "error", "words"),
    [
        (["1", ""], None, AnswerError, "no privacy level"),
        (["1", "1"], None, AnswerError, "same privacy level"),
        (["1", "open"], None, ParameterError, "'open' is not a positive number"),
        (["1", "-2"], None, ParameterError, "'-2' is not a positive number"),
        (["a", "b"], {"a": 1.0}, ParameterError, "'b' has no epsilon"),
        (["a", "b"], {"a": 1.0, "b": 0.0}, ParameterError, "above 0"),
    ],
)
def test_bad_levels_are_refused(
    cells: list[str], epsilons: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        split_by_level(cells, epsilons)


def test_each_group_has_its_own_epsilon_and_the_weakest_is_stated() -> None:
    result = run_groups()
    assert [round(group.guarantee.epsilon, 9) for group in result.groups.values()] == [
        0.5,
        1.0,
        2.0,
    ]
    assert result.guarantee.epsilon == 2.0
    assert str(result.guarantee.condition) == f"{ROWS_ARE_PEOPLE} and {MEMBERSHIP} (column 'level')"
    assert result.included == 900


def weigh_by_hand(result: GroupedHistogram) -> Floats:
    weighted = zip(result.weights, result.groups.values(), strict=True)
    return np.sum([weight * group.estimates for weight, group in weighted], axis=0)


def test_the_headline_counts_every_user_the_same_whatever_weights_are_asked_for() -> None:
    sizes = [150, 300, 450]
    headline = run_groups(weights="uwa")
    assert headline.if_alike is None
    for weights in ("total", "vwa", "owa"):
        result = run_groups(weights=weights)
        assert result.weighting == "uwa"
        np.testing.assert_allclose(result.weights, weighting.uwa(sizes))
        np.testing.assert_array_equal(result.estimates, headline.estimates)
        assert result.interval() == headline.interval()
        assert result.consistent.sum() == pytest.approx(1)
    np.testing.assert_allclose(headline.estimates, weigh_by_hand(headline))


def test_the_weighted_estimate_stands_beside_under_its_condition() -> None:
    for weights in ("total", "vwa", "owa"):
        result = run_groups(weights=weights)
        beside = result.if_alike
        assert beside is not None
        assert beside.weighting == weights
        np.testing.assert_allclose(beside.estimates, weigh_by_hand(beside))
        # The loosest level has the least noise, so it counts for more than its size.
        assert beside.weights[-1] > result.weights[-1]
        assert "if the groups are alike" in beside.interval().method
        assert "if the groups answer alike" in str(result)
        assert "If the groups answer alike" in result._repr_html_()


def test_owa_solves_the_problem_whose_solution_is_vwa() -> None:
    solved = run_groups(weights="owa").if_alike
    closed = run_groups(weights="vwa").if_alike
    assert solved is not None
    assert closed is not None
    np.testing.assert_allclose(solved.weights, closed.weights, atol=1e-6)


def test_the_test_informs_and_never_chooses() -> None:
    table = {"answer": ["a"] * 290 + ["b"] * 310, "level": ["1"] * 300 + ["2"] * 300}
    result = run_groups(table)
    assert result.test.rejected
    assert any("differ by more than chance" in note for note in result.notes)
    assert result.weights.tolist() == [0.5, 0.5]
    np.testing.assert_allclose(result.estimates[:2], [0.5, 0.5], atol=0.05)
    assert result.if_alike is not None
    assert result.if_alike.weighting == "total"


def test_errors_of_the_headline_are_those_of_each_group_at_its_own_answers() -> None:
    """All holders of "a" are in the group that is sampled less, where each is noisier."""
    table = {
        "answer": ["a"] * 299 + ["b"] + ["b"] * 299 + ["a"],
        "level": ["1"] * 300 + ["2"] * 300,
    }
    result = run_groups(table, mechanism="dpds", floor=100, delta=0.01, domain=["a", "b"])
    own = np.array([group.standard_errors for group in result.groups.values()])
    np.testing.assert_allclose(result.standard_errors, np.sqrt((own**2).sum(axis=0)) / 2)
    assert result.standard_errors[0] > 1.2 * result.standard_errors[1]


def test_cpa_is_one_survey_of_everybody_at_the_smallest_epsilon() -> None:
    given: dict[str, Any] = {**KNOWN, "entropy": SeededStream(6)}
    result = histogram(TABLE, "answer", groups="level", weights="cpa", **given)
    assert isinstance(result, Histogram)
    assert result.included == 900
    assert result.guarantee.epsilon == 0.5
    assert "everybody has the smallest epsilon of all groups" in result.notes[0]
    assert "it is public which group" in str(result.guarantee.condition)


def test_results_of_groups_cannot_be_made_into_one_survey_afterwards() -> None:
    with pytest.raises(ParameterError, match="cpa is one survey of everybody"):
        combine_groups(run_groups().groups, "cpa")


def test_each_group_has_its_promise() -> None:
    result = run_groups()
    epsilons = [entry["guarantee"]["epsilon"] for entry in result.to_dict()["groups"]]
    assert epsilons == [0.5, 1.0, 2.0]
    for level in ("0.5", "1", "2"):
        assert f"privacy of group {level}: epsilon {level}, delta below 1e-30" in str(result)
        assert f"Privacy of group {level}: epsilon {level}" in result._repr_html_()


def test_json_is_that_of_a_result_with_groups_beside() -> None:
    said = json.loads(json.dumps(run_groups().to_dict()))
    plain = histogram(TABLE, "answer", domain=ITEMS, epsilon=1.0)
    assert isinstance(plain, Histogram)
    assert set(plain.to_dict()) <= set(said)
    assert {"weighting", "homogeneity", "groups", "if_alike"} <= set(said)
    assert said["weighting"] == "uwa"
    beside = said["if_alike"]
    assert beside["condition"] == "if the groups answer alike"
    assert beside["weighting"] == "total"
    assert sum(beside["weights"]) == pytest.approx(1)
    assert [row["item"] for row in beside["estimates"]] == ITEMS
    assert json.loads(json.dumps(run_groups(weights="uwa").to_dict()))["if_alike"] is None
    assert sum(group["users"] for group in said["groups"]) == 900


def test_named_levels_and_a_mechanism() -> None:
    result = run_groups(groups="name", epsilon={"strict": 0.5, "open": 2.0}, mechanism="decoys")
    assert list(result.groups) == ["strict", "open"]
    assert {group.mechanism.name for group in result.groups.values()} == {"decoys"}
    assert result.to_dict()["mechanism"] == "decoys"


def test_insiders_that_differ_between_groups_are_said_in_words() -> None:
    adversary = run_groups(colluding=0.02).guarantee.adversary
    assert "insiders of each group" in str(adversary)


def test_an_interval_of_one_noisy_group_is_that_of_its_own_noise() -> None:
    """With all the weight on one group, the width is that of its noise and not of a normal one."""
    result = run_groups()
    wide = GroupedHistogram(result.groups, np.array([1.0, 0.0, 0.0]), "uwa", result.test)
    group = next(iter(result.groups.values()))
    alone = group.mechanism.channel(group.included).noise
    assert alone is not None
    distribution = alone.quantiles(0.025)[1] / group.included
    half = (wide.interval().high - wide.estimates)[0]
    extra = np.sqrt(distribution**2 + (1.96**2) * (1 / group.included - 1 / 900) * 0.25)
    assert distribution * 0.95 <= half <= extra * 1.1


def test_simultaneous_intervals_are_wider() -> None:
    result = run_groups()
    single = result.interval()
    simultaneous = result.interval(simultaneous=True)
    assert np.all(simultaneous.width >= single.width)
    assert "Bonferroni" in simultaneous.method
    assert result.if_alike is not None
    assert "Bonferroni" in result.if_alike.interval(simultaneous=True).method


def test_sampled_groups_have_no_noise_distribution_and_still_intervals() -> None:
    result = run_groups(mechanism="dpds", floor=20)
    assert result.to_dict()["mechanism"] == "dpds"
    assert np.all(result.interval().width > 0)
    assert result.guarantee.condition is not None
    assert str(result.guarantee.condition).startswith("every item has at least 20 holders")


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        ({"epsilon": 1.0}, ParameterError, "each level has its own epsilon"),
        ({"weights": "best"}, ParameterError, "weights must be one of total, vwa, owa, uwa, cpa"),
        ({"groups": "nothing"}, AnswerError, "no column 'nothing'"),
    ],
    ids=str,
)
def test_wrong_use_is_refused(known: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        run_groups(**known)


def test_a_group_of_one_is_refused() -> None:
    with pytest.raises(FaircountError, match=r"privacy level '1': 1 user is too few.*merge it"):
        run_groups({"answer": ["a", "b", "c"], "level": ["1", "2", "2"]}, anyway=True)


def test_putting_together_needs_no_table() -> None:
    parts = run_groups().groups
    note = combine_groups(parts, "vwa").notes[-1]
    assert note.startswith("No difference between the groups was found")


def test_what_speaks_against_a_group_is_noted_with_its_name() -> None:
    result = run_groups(groups="name", epsilon={"strict": 1.0, "open": 20.0}, mechanism="laplace")
    assert result.notes[0].startswith(
        "privacy level 'open': an epsilon of 20 protects next to nothing"
    )
    assert sum("protects next to nothing" in note for note in result.notes) == 1


def test_a_seeded_result_prints_as_a_simulation() -> None:
    assert str(run_groups()).startswith("SIMULATION, not a release")
    assert run_groups().to_dict()["simulation"] is True
    release = run_groups(entropy=None)
    assert str(release).startswith("laplace: 900 users, 4 items")
    assert "simulation" not in release.to_dict()


def test_the_answers_are_no_groups() -> None:
    """Their sizes were printed, exactly, beside an epsilon of 1."""
    for column in ("answer", "copy"):
        with pytest.raises(RefusedError, match="published exactly"):
            run_groups(
                {**TABLE, "copy": TABLE["answer"]}, groups=column, epsilon=dict.fromkeys(ITEMS, 1.0)
            )


def test_a_column_that_determines_the_answer_is_refused() -> None:
    finer = [f"{answer}{i % 2}" for i, answer in enumerate(TABLE["answer"])]
    with pytest.raises(RefusedError, match="all users have the same answer"):
        run_groups(
            {**TABLE, "finer": finer}, groups="finer", epsilon=dict.fromkeys(set(finer), 1.0)
        )


def test_groups_are_public_by_declaration_only() -> None:
    with pytest.raises(RefusedError, match="--public-groups"):
        run_groups(public_groups=False)
    said = run_groups(groups="name", epsilon={"strict": 1.0, "open": 2.0}).to_dict()
    assert (
        "it is public which group a participant is in (column 'name')"
        in said["guarantee"]["condition"]
    )


def test_groups_whose_error_swamps_the_answers_run_only_when_told_to() -> None:
    few = {key: values[:12] for key, values in TABLE.items()}
    with pytest.raises(RefusedError, match=r"do not run this.*--anyway"):
        run_groups(few, groups="name", epsilon={"strict": 0.5, "open": 0.5})
    result = run_groups(few, groups="name", epsilon={"strict": 0.5, "open": 0.5}, anyway=True)
    assert any(note.startswith("do not run this") for note in result.notes)
