"""A table in, a private histogram out."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import faircount as fc
from faircount.accounting.conditions import ROWS_ARE_PEOPLE
from faircount.analysis.groups import GroupedHistogram
from faircount.analysis.histogram import Histogram, histogram
from faircount.analysis.run_settings import RunSettings
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, FaircountError, ParameterError, RefusedError
from faircount.estimation.result import Result

CITIES = ["Aldmoor", "Brackwater, Lower", "Çarrow", "東京"]
COUNTS = [300, 200, 100, 0]
TABLE = {"city": np.random.default_rng(1).permutation(np.repeat(CITIES, COUNTS)).tolist()}
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}


def run_histogram(table: Any = TABLE, **known: Any) -> Histogram:
    if table is TABLE and not known:
        return usual_histogram()
    return play_histogram(table, **known)


@cache
def usual_histogram() -> Histogram:
    """Many tests look at it, and a survey of 600 people takes a while."""
    return play_histogram(TABLE)


def play_histogram(table: Any, **known: Any) -> Histogram:
    result = histogram(
        table, "city", **({"domain": CITIES, "entropy": SeededStream(5), **BUDGET} | known)
    )
    assert isinstance(result, Histogram)
    return result


@pytest.mark.parametrize(
    "mechanism", ["auto", "laplace", "decoys", "dpdg", "oue", "grr", "dpds", "tss-prime", "dpcs"]
)
def test_every_mechanism_runs_and_keeps_its_budget(mechanism: str) -> None:
    floor = 50 if mechanism in ("dpds", "tss-prime", "dpcs") else 0
    result = run_histogram(mechanism=mechanism, floor=floor)
    assert isinstance(result, Result)
    assert result.mechanism.name == ("laplace" if mechanism == "auto" else mechanism)
    assert result.guarantee.epsilon <= 1.0
    assert result.guarantee.delta <= 1e-6
    assert (result.guarantee.condition == ROWS_ARE_PEOPLE) == (floor == 0)
    truth = np.array(COUNTS) / 600
    spread = np.sqrt(result.mechanism.variance(truth, 600))
    assert np.all(np.abs(result.estimates - truth) <= 6 * spread + 1e-12)
    assert result.items == tuple(CITIES)


def test_the_result_is_that_of_a_run_with_the_same_randomness() -> None:
    mechanism = fc.Laplace(items=CITIES, epsilon=1.0)
    direct = fc.run(TABLE["city"], mechanism, entropy=SeededStream(5))
    np.testing.assert_array_equal(run_histogram(mechanism="laplace").estimates, direct.estimates)


def test_files_and_frames_give_the_same(tmp_path: Path) -> None:
    frame = pd.DataFrame(TABLE)
    frame.to_csv(tmp_path / "a.csv", index=False)
    pq.write_table(pa.table(TABLE), tmp_path / "a.parquet")
    wanted = run_histogram().to_dict()
    for table in (frame, pa.table(TABLE), tmp_path / "a.csv", str(tmp_path / "a.parquet")):
        assert run_histogram(table).to_dict() == wanted


def test_an_item_that_nobody_has_is_near_zero() -> None:
    result = run_histogram()
    assert abs(result.estimates[3]) < 0.05
    assert result.interval().low[3] == 0


def test_json_has_the_promised_keys() -> None:
    said = json.loads(json.dumps(run_histogram().to_dict()))
    assert {"mechanism", "n", "estimates", "guarantee", "notes"} <= set(said)
    assert set(said["estimates"][0]) == {"item", "estimate", "low", "high"}
    assert {"epsilon", "delta", "relation", "condition"} <= set(said["guarantee"])
    assert said["n"] == 600


def test_randomness_is_the_operating_systems_unless_told_otherwise() -> None:
    first = run_histogram(entropy=None).estimates
    second = run_histogram(entropy=None).estimates
    assert not np.array_equal(first, second)


def test_conditions_of_the_rows_join_those_of_the_mechanism() -> None:
    result = run_histogram(
        {"city": [*TABLE["city"], "", "Elsewhere"]},
        missing="drop",
        outside="drop",
        mechanism="dpds",
        floor=50,
    )
    assert result.included == 600
    said = str(result.guarantee.condition)
    assert said is not None
    assert said.startswith("every item has at least 50 holders")
    assert said.endswith(
        "it is public who has no answer and it is public who has an answer outside the list and "
        f"{ROWS_ARE_PEOPLE}"
    )
    assert str(run_histogram(domain=None, domain_from_data=True).guarantee.condition) == (
        f"the list of items is public (it was taken from the answers) and {ROWS_ARE_PEOPLE}"
    )


def test_users_with_several_rows_count_once() -> None:
    table = {"city": TABLE["city"] * 3, "who": list(range(600)) * 3}
    assert run_histogram(table, user="who").included == 600
    assert run_histogram(table).included == 1800


def test_columns_may_have_numbers_for_names() -> None:
    """pandas names columns 0, 1, ... where a file has no header."""
    frame = pd.DataFrame({0: range(600), 1: TABLE["city"], 2: ["1", "2"] * 300})
    known: dict[str, Any] = {"domain": CITIES, "entropy": SeededStream(5)}
    result = histogram(frame, 1, user=0, epsilon=1.0, **known)
    assert result.included == 600
    grouped = histogram(frame, 1, groups=2, public_groups=True, **known)
    assert isinstance(grouped, GroupedHistogram)
    assert "(column '2')" in str(grouped.guarantee.condition)
    with pytest.raises(AnswerError, match=r"no column '1'; it has 0, 1, 2"):
        histogram(frame, "1", epsilon=1.0, **known)


@pytest.mark.parametrize("argument", ["column", "user", "groups"])
def test_a_column_in_place_of_its_name_is_refused(argument: str) -> None:
    frame = pd.DataFrame(TABLE)
    known = {"column": "city", "domain": CITIES, "epsilon": 1.0, argument: frame["city"]}
    with pytest.raises(ParameterError, match=f"{argument} must be the name of a column"):
        histogram(frame, **known)


def test_a_path_may_be_the_list_of_items(tmp_path: Path) -> None:
    path = tmp_path / "cities.txt"
    path.write_text("\n".join(CITIES), encoding="utf-8")
    assert run_histogram(domain=str(path)).items == tuple(CITIES)


def test_exploded_rows_are_not_taken_for_people() -> None:
    """After `explode` every tick of a choose-all question counted as another user."""
    ticks = [["Aldmoor", "Çarrow"], ["Aldmoor"]] * 300
    exploded = pd.DataFrame({"city": ticks, "who": range(600)}).explode("city")
    for table in (exploded, exploded["city"]):
        with pytest.raises(AnswerError, match=r"as after explode\(\).*user="):
            histogram(table, "city", domain=CITIES, epsilon=1.0)
    with pytest.raises(AnswerError, match="300 of 600 users have several rows with different"):
        run_histogram(exploded, user="who")
    assert run_histogram(exploded.reset_index(drop=True)).included == 900


@pytest.mark.parametrize(
    ("known", "error", "words"),
    [
        ({"domain": None}, RefusedError, "no list of items .*a column's categories"),
        ({"domain": CITIES[:2]}, AnswerError, "100 of 600 users have an answer outside"),
        ({"epsilon": None}, ParameterError, "give epsilon"),
        ({"epsilon": {"a": 1.0}}, ParameterError, "need groups"),
        ({"epsilon": 0.0}, ParameterError, "above 0"),
        ({"mechanism": "magic"}, ParameterError, "mechanism must be auto or one of laplace"),
        ({"mechanism": "tss"}, RefusedError, "use tss-prime"),
        ({"mechanism": "dpds"}, RefusedError, "needs a floor"),
        ({"colluding": 1.0}, ParameterError, "share of the users"),
        ({"weights": "vwa"}, ParameterError, "name their column with --groups"),
        ({"weights": "best"}, ParameterError, "weights must be one of total"),
    ],
    ids=str,
)
def test_what_cannot_be_done_is_refused_in_words(
    known: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        run_histogram(**known)


def test_one_row_is_too_few_and_two_are_a_result() -> None:
    with pytest.raises(FaircountError, match="1 user is too few"):
        run_histogram({"city": ["Aldmoor"]})
    assert run_histogram({"city": ["Aldmoor", "Çarrow"]}, anyway=True).included == 2


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "grr"])
def test_an_error_that_swamps_the_answers_stops_the_run(mechanism: str) -> None:
    """It was run all the same, with a note below the table."""
    few = {"city": TABLE["city"][:8]}
    with pytest.raises(RefusedError, match=r"do not run this.*--anyway.*anyway=True"):
        run_histogram(few, mechanism=mechanism)
    result = run_histogram(few, mechanism=mechanism, anyway=True)
    assert any("do not run this" in note for note in result.notes)
    assert not run_histogram().notes


def test_nothing_serves_a_budget_of_next_to_nothing() -> None:
    with pytest.raises(RefusedError, match="no mechanism meets the budget"):
        RunSettings(1e-7, 1e-12).plan(np.zeros(800, dtype=np.int64), 12)


def test_seeded_results_say_that_they_are_no_release() -> None:
    assert str(run_histogram()).startswith("SIMULATION, not a release")
    assert run_histogram().to_dict()["simulation"] is True
    release = run_histogram(entropy=None)
    assert "SIMULATION" not in str(release)
    assert "simulation" not in release.to_dict()


def test_an_epsilon_that_protects_nobody_is_noted() -> None:
    result = run_histogram(epsilon=20.0, mechanism="laplace")
    assert result.notes[0].startswith("an epsilon of 20 protects next to nothing")
    assert f"note: {result.notes[0]}" in str(result)


def test_items_that_seem_to_be_below_the_floor_are_noted() -> None:
    """600 users, of whom nobody holds the last item; the condition stays in the guarantee."""
    result = run_histogram(mechanism="dpds", floor=50)
    words = "needs at least 50 holders of every item, which seems not to hold for 東京:"
    assert [words in note for note in result.notes] == [True]
    assert result.to_dict()["notes"] == list(result.notes)
    table = {"city": TABLE["city"] + ["東京"] * 100}
    assert run_histogram(table, mechanism="dpds", floor=50).notes == ()


def test_insiders_follow_from_the_share_of_colluding_users() -> None:
    assert run_histogram().guarantee.adversary.insiders == 1
    assert run_histogram(colluding=0.1).guarantee.adversary.insiders == 60


def test_progress_ends_with_everybody() -> None:
    calls: list[tuple[int, int]] = []
    run_histogram(progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (600, 600)
    table = {**TABLE, "level": ["1", "2"] * 300}
    group_calls: list[tuple[int, int]] = []
    grouped: dict[str, Any] = {"domain": CITIES, "groups": "level", "public_groups": True}
    histogram(
        table, "city", **grouped, progress=lambda done, total: group_calls.append((done, total))
    )
    assert group_calls[-1] == (600, 600)
    assert group_calls == sorted(group_calls)


def test_mixed_types_are_read_as_text() -> None:
    mixed = {"x": [1, "1", 2.0, "2", "two", 2]}
    result = histogram(mixed, "x", domain=[1, 2, "two"], mechanism="grr", anyway=True, **BUDGET)
    assert isinstance(result, Histogram)
    assert result.included == 6
    assert result.items == (1, 2, "two")


@pytest.mark.slow
def test_a_million_rows(tmp_path: Path) -> None:
    """Finishes, and with noise this small the estimates are the truth to four digits."""
    answers = np.random.default_rng(3).integers(12, size=10**6)
    path = tmp_path / "big.csv"
    path.write_text("id,item\n" + "\n".join(f"{i},{x}" for i, x in enumerate(answers)) + "\n")
    result = histogram(path, "item", user="id", domain=12, entropy=SeededStream(3), **BUDGET)
    assert result.included == 10**6
    np.testing.assert_allclose(result.estimates, np.bincount(answers) / 10**6, atol=1e-4)


def test_rows_are_people_only_where_a_column_says_so() -> None:
    """A person with ten rows was protected ten times less than the guarantee said."""
    rows = {"city": TABLE["city"], "who": [i // 2 for i in range(600)]}
    assert run_histogram(rows).guarantee.condition == ROWS_ARE_PEOPLE
    assert f"provided that {ROWS_ARE_PEOPLE}" in str(run_histogram(rows))
    with pytest.raises(AnswerError, match="300 users have several rows with different answers"):
        run_histogram(rows, user="who")
    by_person = run_histogram(rows, user="who", repeated="first")
    assert by_person.guarantee.condition is None
    assert by_person.included == 300


def test_every_result_says_that_running_again_spends_again() -> None:
    release = run_histogram(entropy=None)
    assert "spends privacy again" in str(release)
    assert "spends privacy again" in release.to_dict()["again"]
    assert "spends privacy again" in str(fc.run(np.linspace(-1, 1, 50), fc.Duchi(epsilon=1.0)))


def test_people_without_an_answer_do_not_vanish_with_their_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("answer\n" + "A\n" * 400 + "\n" * 50 + "B\n" * 400 + "\n\n")
    with pytest.raises(AnswerError, match="50 of 850 users have no answer"):
        histogram(path, "answer", domain=["A", "B"], **BUDGET)
    result = histogram(
        path, "answer", domain=["A", "B", "none"], missing="other", other="none", **BUDGET
    )
    assert result.included == 850


@pytest.mark.parametrize(
    "arguments", [(pd.DataFrame(TABLE), "city"), (pd.Series(TABLE["city"], name="city"),)]
)
def test_the_answers_do_not_tell_people_apart(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ParameterError, match="'city' cannot be the answers and the people"):
        histogram(*arguments, user="city", domain=CITIES, **BUDGET)
