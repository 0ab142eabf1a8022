"""`faircount plan`."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faircount.cli.plan import COLUMNS
from faircount.cli.show import WIDTH
from faircount.planning.plan import plan

Call = Callable[..., Any]
ASK = "plan --for table --users 800 --items 12 --epsilon 1 --delta 1e-6"
SURVEY = "plan --users 800 --items 12 --epsilon 1"


def test_json_is_the_plan_and_nothing_else(call: Call) -> None:
    done = call(f"{ASK} --floor 40 --target-error 0.02 --json")
    assert done.exit_code == 0
    assert done.stderr == ""
    asked = {"purpose": "table", "floor": 40, "target_error": 0.02}
    wanted = plan(800, 12, 1.0, 1e-6, **asked).to_dict()
    assert json.loads(done.stdout) == json.loads(json.dumps(wanted))


def test_a_target_error_may_be_given_in_percent(call: Call) -> None:
    assert call(f"{ASK} --target-error 2%").stdout == call(f"{ASK} --target-error 0.02").stdout
    assert "not 2: write 0.02 for 2%" in call(f"{ASK} --target-error 2").stderr
    assert "a rate such as 2%" in call(f"{ASK} --target-error small").stderr
    made = plan(800, 12, 1.0, purpose="table", target_error="2%")
    assert made.request.target_error == 0.02


def test_a_survey_counts_those_to_invite_and_says_how_many_respond(call: Call) -> None:
    line = "plan --users 100 --items 12 --epsilon 1 --target-error 2% --all"
    shown = " ".join(call(line).stdout.split())
    assert "the fewest people to invite who reach the target error, if 95% respond" in shown
    assert "invited people, of whom" in shown
    assert "to invite" not in call(f"{line} --for table").stdout


def test_nobody_reads_the_promise_of_a_survey_that_should_not_be_run(call: Call) -> None:
    refused = call("plan --users 20 --items 12 --epsilon 0.1")
    assert refused.exit_code == 3
    assert "Participants will read" not in refused.stdout
    assert "Participants will read" in call(SURVEY).stdout


def test_people_see_every_mechanism_and_one_recommendation(call: Call) -> None:
    shown = call(f"{ASK} --floor 40 --target-error 0.02 --all").stdout
    for name in ("laplace", "decoys", "dpdg", "dpds", "tss-prime", "tss", "dpcs", "oue", "grr"):
        assert f"\n{name} " in shown or f"  {name} " in shown
    assert "Recommendation: run laplace" in shown
    assert "Safe against 1 insider" in shown
    assert "users for ±2%" in shown
    said = " ".join(shown.split())
    assert "every item has at least 40 holders besides the participant in question" in said
    assert max(map(len, shown.splitlines())) <= WIDTH


def test_who_plans_for_dropouts_reads_which_topologies_end(call: Call) -> None:
    shown = " ".join(call(f"{SURVEY} --minimum 70% --all").stdout.split())
    assert "if each visit is missed with probability 0.05 and 560 of 800 users must stay" in shown
    assert "explicit below 0.01%: will fail" in shown
    assert "servers above 99.99%: one visit" in shown
    assert "Chance to complete" not in call(f"{SURVEY} --all").stdout
    rare = call("plan --users 20 --items 3 --epsilon 1 --minimum 50% --loss 0.001 --json")
    ends = {way["topology"]: way["chance"] for way in json.loads(rare.stdout)["topologies"]}
    assert ends["explicit"] > 0.99
    assert ends["two-stage"] is None


def test_a_survey_that_will_not_end_is_not_recommended(call: Call) -> None:
    line = f"{SURVEY} --loss 0.2 --minimum"
    shown = " ".join(call(f"{line} 90%").stdout.split())
    assert (
        "Verdict: do not run this: if each visit is missed with probability 0.2, fewer than 99% of "
        "the surveys complete" in shown
    )
    assert "plan with --minimum 608 (minimum=608 in Python)." in shown
    said = json.loads(call(f"{line} 90% --json").stdout)
    assert said["worthwhile"] is False
    assert "--minimum 608" in said["verdict"]
    assert "Recommendation: run this survey" in call(f"{line} 608").stdout
    assert "leave minimum and loss out" in call(f"{ASK} --loss 0.2").stderr


def test_an_epsilon_that_protects_nobody_is_told(call: Call) -> None:
    shown = " ".join(call(f"{ASK.replace('--epsilon 1', '--epsilon 1000')} --all").stdout.split())
    assert "Note: an epsilon of 1000 protects next to nothing" in shown
    assert "±0% below 0.0001%" in shown
    assert "standard error below 0.0001% is less than a thousandth of that of" in shown
    assert "Note:" not in call(ASK).stdout


def test_a_loss_that_is_no_probability_is_refused(call: Call) -> None:
    assert "probability that a user misses a visit" in call(f"{SURVEY} --loss 1.5").stderr


def test_what_cannot_be_used_is_shown_on_demand_and_names_the_floor(call: Call) -> None:
    shown = call(f"{ASK} --all").stdout
    assert "Cannot meet the budget" in shown
    assert "needs a floor of 80 holders per item" in shown
    short = call(ASK).stdout
    assert "--all compares all mechanisms" in short
    assert "dpds" not in short


def test_the_recommendation_comes_first_and_every_column_is_explained(call: Call) -> None:
    shown = call(f"{SURVEY} --target-error 0.02 --honest-clients --all").stdout
    table = shown.index("\nmechanism ")
    assert shown.index("Recommendation: run this survey") < table
    heads = re.split(r"  +", shown[table:].splitlines()[1].strip())
    assert [head.split(" for ")[0] for head in heads] == list(COLUMNS)
    lines = shown[table:].splitlines()
    for name, words in {**COLUMNS, "users": "the fewest people to invite who reach"}.items():
        assert (
            sum(re.match(f"  {name} +{re.escape(words)}", line) is not None for line in lines) == 1
        ), name
    assert "\n  users " not in call(f"{ASK} --all").stdout
    assert "\nmechanism " not in call(ASK).stdout


def test_servers_have_a_line_of_their_own_where_they_differ(call: Call) -> None:
    """Decoys flip 149 coins in all in masked, but one per user in servers, so errors differ."""
    lines = [line.split() for line in call(f"{SURVEY} --all").stdout.splitlines()]
    at = next(place for place, words in enumerate(lines) if words[:1] == ["decoys"])
    assert lines[at] == ["decoys", "masked", "±1.7%", "0.85%", "6,179", "4", "D=189", "q=991"]
    assert lines[at + 1] == ["decoys", "servers", "±3.4%", "1.7%", "239", "1", "D=800", "q=1601"]


def test_a_table_has_no_columns_of_what_participants_send(call: Call) -> None:
    lines = [line.split() for line in call(f"{ASK} --all").stdout.splitlines()]
    assert [words for words in lines if words[:1] == ["decoys"]] == [
        ["decoys", "±1.4%", "0.73%", "D=149", "q=953"]
    ]
    assert ["mechanism", "95%", "error", "std.", "error", "parameters"] in lines


def test_those_who_are_invited_need_not_all_answer(call: Call) -> None:
    line = "plan --users 2000 --response-rate 0.4 --items 12 --epsilon 1"
    assert "of those who answer if 800 do, and to ±1.40% if 500 do" in " ".join(
        call(line).stdout.split()
    )
    shown = call(f"{line} --for table").stdout
    assert shown.startswith("800 users who answer, of 2,000 invited, 12 items")
    assert shown.splitlines()[1:] == call(ASK).stdout.splitlines()[1:]


def test_a_hopeless_plan_says_do_not_run_this(call: Call) -> None:
    done = call(
        "plan --users 50 --items 300 --epsilon 0.3 --delta 1e-6 --minimum 90% --colluding 0.1 --all"
    )
    assert "Verdict: do not run this" in done.stdout
    assert done.exit_code == 3
    assert call("plan --users 50 --items 300 --epsilon 0.3 --delta 1e-6 --json").exit_code == 3
    assert "5 insiders" in done.stdout
    assert "5 may not respond" in done.stdout


@pytest.mark.parametrize("name", ["plan.png", "plan.svg"])
def test_a_plot_is_drawn(call: Call, tmp_path: Path, name: str) -> None:
    done = call(f"{ASK} --floor 40 --target-error 0.02 --plot {name}")
    assert done.exit_code == 0
    assert f"Written to {name}" in done.stdout
    assert (tmp_path / name).read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_a_plot_of_another_kind_is_refused(call: Call) -> None:
    assert "not plan.docx" in call(f"{ASK} --plot plan.docx").stderr
    assert "cannot be written" in call(f"{ASK} --plot nowhere/plan.png").stderr


def test_groups_are_planned_and_put_together(call: Call, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text(
        "group,users,epsilon\nstrict,250,0.1\nmedium,500,0.5\nopen,250,2\n"
    )
    line = "plan --for table --items 12 --delta 1e-6 --groups-file groups.csv"
    shown = call(line).stdout
    assert "Recommendation: combine with cpa" in shown
    assert "only if the groups answer alike, total has" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= WIDTH
    said = json.loads(call(f"{line} --json").stdout)
    assert said["best"] == "cpa"
    assert said["best_if_alike"] == "total"
    assert [group["recommended"] for group in said["groups"]] == ["laplace"] * 3


def test_public_levels_of_a_survey_are_planned_with_proofs(call: Call, tmp_path: Path) -> None:
    (tmp_path / "levels.csv").write_text(
        "group,users,epsilon\nvery strong,250,0.1\nstrong,250,0.4\nnormal,250,0.7\nweak,250,1\n"
    )
    line = "plan --items 10 --groups-file levels.csv"
    said = json.loads(call(f"{line} --json").stdout)
    assert [group["recommended"] for group in said["groups"]] == ["server-joint"] * 4
    combined = {name: way["standard_error"] for name, way in said["combined"].items()}
    # Noise of the servers does not shrink with a group, so that four of them have more of it.
    assert said["best"] == "cpa"
    assert combined["cpa"] < combined["uwa"]
    assert combined["total"] < combined["cpa"] / 2
    # What the weights gain, in terms of one level for all: the error is checked there.
    one = plan(1000, 10, said["equal_epsilon"]).forecast
    assert one is not None
    assert one.standard_error == pytest.approx(combined["total"], rel=0.011)
    shown = " ".join(call(line).stdout.split())
    assert "one level for all is better unless the groups answer alike" in shown
    assert f"one level of {said['equal_epsilon']:.2g} for all without this condition" in shown


def test_groups_may_be_invited_too(call: Call, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("group,users,epsilon\nstrict,500,0.5\nopen,1001,2\n")
    line = "plan --for table --items 4 --response-rate 0.5 --groups-file groups.csv --json"
    said = json.loads(call(line).stdout)["groups"]
    assert [(group["invited"], group["users"]) for group in said] == [(500, 250), (1001, 500)]


def test_hopeless_groups_are_not_recommended(call: Call, tmp_path: Path) -> None:
    """`run` refuses them; the plan recommended weights for them."""
    (tmp_path / "groups.csv").write_text("group,users,epsilon\nstrict,20,0.1\nopen,20,0.2\n")
    done = call("plan --items 50 --delta 1e-6 --groups-file groups.csv")
    assert done.exit_code == 3
    assert "Verdict: do not run this: even together the groups" in done.stdout
    assert (
        json.loads(call("plan --items 50 --delta 1e-6 --groups-file groups.csv --json").stdout)[
            "worthwhile"
        ]
        is False
    )


def test_groups_whose_epsilon_protects_nobody_are_told(call: Call, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("group,users,epsilon\nstrict,250,1\nopen,250,20\n")
    line = "plan --items 12 --delta 1e-6 --groups-file groups.csv"
    assert "Note: group open: an epsilon of 20 protects next to nothing" in call(line).stdout
    assert len(json.loads(call(f"{line} --json").stdout)["notes"]) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("group,users,epsilon\na,250,0.1\n", "at least 2 groups"),
        ("group,users,epsilon\na,250,0.1\na,10,1\n", "lists a group twice"),
        ("group,users,epsilon\na,many,0.1\nb,10,1\n", "whole numbers"),
        ("group,users\na,250\n", "no column 'epsilon'"),
        ("", "is empty"),
    ],
)
def test_bad_files_of_groups(call: Call, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "groups.csv").write_text(text)
    done = call("plan --items 12 --delta 1e-6 --groups-file groups.csv")
    assert done.exit_code == 2
    assert words in done.stderr


def test_users_come_from_one_place(call: Call, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("group,users,epsilon\na,250,0.1\nb,10,1\n")
    assert "leave --users, --epsilon out" in call(f"{ASK} --groups-file groups.csv").stderr
    line = "plan --items 12 --delta 1e-6 --groups-file groups.csv"
    assert (
        "leave --loss, --target-error out" in call(f"{line} --loss 0.2 --target-error 0.1").stderr
    )
    refused = call("plan --items 12 --delta 1e-6").stderr
    assert "give --users, how many people you invite; --epsilon, the privacy loss" in refused


def test_everything_that_is_missing_is_asked_for_at_once(call: Call, tmp_path: Path) -> None:
    """Without --users and --epsilon one had to ask three times."""
    refused = call("plan").stderr
    for name in ("--users", "--items", "--epsilon"):
        assert f"{name}, " in refused
    only_items = call("plan --users 100 --epsilon 1").stderr
    assert "give --items, how many answers" in only_items
    assert "--epsilon, " not in only_items
    (tmp_path / "groups.csv").write_text("group,users,epsilon\na,100,1\nb,100,2\n")
    assert "give --items" in call("plan --groups-file groups.csv").stderr


def test_words_and_parameters_of_the_table_are_explained(call: Call) -> None:
    shown = " ".join(call(f"{SURVEY} --all").stdout.split())
    for meaning in (
        "D fair coins per item: of all users together, or of each server",
        "q counts are added modulo this prime",
        "floor minimum number of other people known to choose each answer (its holders)",
        "one vote a report that adds 1 to one item",
    ):
        assert meaning in shown
    assert "p probability with which a user is counted" not in shown


def test_a_terminal_shows_that_something_is_done(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # a terminal, to whoever asks
    done = call(f"{ASK} --json")
    assert "every mechanism at the same privacy" in done.stderr
    assert json.loads(done.stdout)["recommended"] == "laplace"
