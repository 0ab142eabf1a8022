"""`faircount privacy`."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faircount.accounting import exact
from faircount.accounting.exact import decoys_delta
from faircount.cli.privacy import MECHANISMS
from faircount.planning.paper_statements import MAKERS

Call = Callable[..., Any]

EXAMPLES = {
    "dpds": "--p 0.2 --floor 30 --epsilon 0.3",
    "dpcs": "--p 0.2 --floor 30 --delta 1e-6",
    "tss": "--p 0.5 --alpha 0.4 --gamma 2 --floor 100",
    "tss-prime": "--p 0.5 --alpha 0.4 --floor 100 --items 30 --epsilon 0.5",
    "decoys": "--decoys 80 --epsilon 0.8",
    "laplace": "--epsilon 1",
    "laplace-sheets": "--questionnaire two.toml --epsilon 1",
    "server-joint": "--epsilon 1",
    "server-laplace": "--epsilon 1",
    "server-coins": "--epsilon 1 --delta 1e-6",
    "placed-coins": "--epsilon 1 --delta 1e-6 --insiders 5",
    "gaussian": "--sigma 6 --epsilon 1",
    "dpdg": "--users 200 --epsilon 1 --delta 1e-5",
    "grr": "--epsilon 1 --items 12",
    "oue": "--epsilon 1",
    "duchi": "--epsilon 1",
    "pm": "--epsilon 1",
}


def test_the_command_knows_every_mechanism() -> None:
    assert set(MAKERS) < set(MECHANISMS) == set(EXAMPLES)


def test_noise_of_servers_names_the_server_that_it_relies_on(call: Call) -> None:
    said = json.loads(call("privacy server-coins --epsilon 1 --delta 1e-6 --json").stdout)
    assert said["condition"] == "the aggregator (S2) adds its noise and keeps it secret"
    assert said["adversary"].startswith(
        "the coordinator (S1), who reads the result, together with any number of "
    )
    assert said["delta"] == decoys_delta(148, 1.0)  # what is spent, not what was asked for
    placed = json.loads(
        call("privacy placed-coins --epsilon 1 --delta 1e-6 --insiders 100 --json").stdout
    )
    assert (placed["condition"], placed["delta"]) == (None, decoys_delta(148, 1.0))
    sharper = json.loads(call("privacy server-laplace --epsilon 1 --delta 1e-3 --json").stdout)
    assert 0.9 < sharper["epsilon"] < 1


@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("releases", [1, 2])
def test_every_mechanism_answers_in_words_and_in_json(
    call: Call, name: str, releases: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text('[[question]]\nkind = "yes"\ntext = "a"')
    line = f"privacy {name} {EXAMPLES[name]} --releases {releases}"
    said = json.loads(call(f"{line} --json").stdout)
    assert said["mechanism"] == name
    assert {"epsilon", "delta", "delta_zero_out", "relation", "paper"} <= set(said)
    assert said["releases"] == releases
    shown = call(line)
    assert shown.exit_code == 0
    assert name == "tss" or "the odds between two possible answers" in " ".join(
        shown.stdout.split()
    )


def test_the_issues_own_example(call: Call) -> None:
    said = json.loads(call("privacy dpds --p 0.2 --floor 30 --epsilon 0.3 --json").stdout)
    assert said["delta"] == exact.sampling_delta(30, 0.2, 0.3)
    assert said["paper"] == {"theorem1_delta": None, "theorem2_delta": None}


def test_a_bound_of_the_paper_that_fails_is_told(call: Call) -> None:
    p = -math.expm1(-0.5)
    line = f"privacy dpds --p {p} --floor 23 --epsilon 0.5 --users 1000 --items 30"
    assert json.loads(call(f"{line} --json").stdout)["paper"]["theorem1_delta"] == pytest.approx(
        9.2e-24, rel=0.01
    )
    assert "does not hold here" in call(line).stdout
    few = "privacy dpds --p 0.39 --floor 100 --epsilon 0.5 --users 1000 --items 5"
    assert "does not hold here" not in call(few).stdout


def test_a_bound_is_printed_as_a_bound(call: Call) -> None:
    """A theorem below a bound of ours may hold all the same, so nothing is said about it."""
    line = "privacy dpds --p 0.3934 --floor 23 --epsilon 0.5 --users 1000 --items 30"
    assert "delta, at most" not in call(line).stdout
    shown = call(f"{line} --insiders 5").stdout
    assert "delta, at most" in shown
    assert "Note: delta is an upper bound" in shown
    assert "does not hold here" not in shown


def test_what_zero_out_loses_by_an_exact_total_is_said(call: Call) -> None:
    shown = " ".join(call("privacy laplace --epsilon 1 --items 2").stdout.split())
    assert "delta, zero-out 1 " in shown
    assert "under zero-out a missing answer is seen for certain" in shown
    assert "missing answer" not in call("privacy laplace --epsilon 1 --items 3").stdout


def test_s1_is_stated_with_alpha_alone(call: Call) -> None:
    said = json.loads(call(f"privacy tss {EXAMPLES['tss']} --json").stdout)
    assert said["s1_epsilon"] == pytest.approx(0.34831, abs=1e-5)
    assert said["s1_epsilon_paper"] == pytest.approx(math.log(2))
    assert "give --items" in call(f"privacy tss {EXAMPLES['tss']}").stdout


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dpds --p 0.2 --epsilon 1", "privacy of dpds needs floor"),
        ("laplace --epsilon 1 --p 0.2", "privacy of laplace has no p"),
        ("dpds --p 0.2 --floor 30", "give epsilon"),
        ("dpds --p 0.2 --floor 30 --epsilon 1 --delta 1e-6", "give epsilon or delta"),
        ("dpds --p 2 --floor 30 --epsilon 1", "p must lie in"),
        ("dpds --p 0.2 --floor 40 --epsilon 1 --users 100 --items 3", "users cannot give"),
        ("tss --p 0.5 --alpha 0.33 --items 10 --epsilon 1", "whole number of items"),
        ("decoys --decoys 5 --delta 1e-9", "no epsilon reaches"),
        ("decoys --decoys 5 --epsilon 1 --releases 0", "releases must be at least 1"),
    ],
)
def test_wrong_use_is_one_sentence_and_code_2(call: Call, line: str, words: str) -> None:
    done = call(f"privacy {line}")
    assert done.exit_code == 2
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
