"""`faircount audit` and its exit code."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import faircount as fc
from faircount.cli.audit import MECHANISMS

Call = Callable[..., Any]
FAST = "--runs 1000 --simulate-seed 1"

EXAMPLES = {
    "dpcs": "--p 0.5 --floor 20 --epsilon 0.5",
    "dpds": "--p 0.4 --floor 23 --epsilon 0.5",
    "tss": "--p 0.6 --alpha 0.5 --gamma 2 --items 4 --floor 20 --epsilon 0.5",
    "tss-prime": "--p 0.6 --alpha 0.5 --items 4 --floor 20 --epsilon 0.5",
    "decoys": "--epsilon 1 --delta 1e-3",
    "dpdg": "--epsilon 1 --delta 1e-3",
    "server-coins": "--epsilon 1 --delta 1e-3",
    "placed-coins": "--epsilon 1 --delta 1e-3",
    "laplace-sheets": "--epsilon 1 --questionnaire two.toml",
}

TWO = '[[question]]\nkind = "yes"\ntext = "a"\n\n[[question]]\nkind = "yes"\ntext = "b"'


@pytest.mark.parametrize("name", MECHANISMS)
def test_sound_claims_are_not_refuted(
    call: Call, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Confidence 0.999 and a fixed seed."""
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text(TWO)
    done = call(f"audit {name} {EXAMPLES.get(name, '--epsilon 1')} {FAST} --json")
    said = json.loads(done.stdout)
    assert done.exit_code == 0
    assert said["refuted"] is False
    assert said["mechanism"] == name
    assert said["lower_bound"] <= said["claim"]["epsilon"]


def test_a_claim_that_is_too_good_is_refuted_with_code_1(call: Call) -> None:
    done = call("audit laplace --epsilon 2 --claim-epsilon 0.5 --runs 4000 --simulate-seed 1")
    assert done.exit_code == 1
    assert "REFUTED" in done.stdout
    said = json.loads(
        call(
            "audit decoys --decoys 5 --epsilon 0.5 --delta 1e-6 --runs 4000 --simulate-seed 1 "
            "--json"
        ).stdout
    )
    assert said["refuted"] is True
    assert said["claim"] == {"epsilon": 0.5, "delta": 1e-6}


def test_the_noise_of_sheets_is_audited_with_questions_of_a_file(
    call: Call, tmp_path: Path
) -> None:
    form = tmp_path / "two.toml"
    form.write_text(TWO)
    line = f"audit laplace-sheets --questionnaire {form} --epsilon 4 --runs 2000 --simulate-seed 1"
    assert call(f"{line} --claim-epsilon 1").exit_code == 1
    for wrong in ("--epsilon 1", f"--questionnaire {form}", f"{line[21:]} --p 0.5"):
        refused = call(f"audit laplace-sheets {wrong}")
        assert "needs --questionnaire and --epsilon" in refused.stderr


def test_people_are_told_what_would_be_refuted(call: Call) -> None:
    shown = " ".join(call(f"audit laplace --epsilon 1 {FAST}").stdout.split())
    assert "not refuted" in shown
    assert "would refute a claim of epsilon" in shown
    assert "with probability 95%" in shown
    few = call("audit laplace --epsilon 0.01 --runs 100 --simulate-seed 1").stdout
    assert "make more runs" in few
    said = json.loads(call(f"audit laplace --epsilon 1 {FAST} --json").stdout)
    assert 0 < said["refutable"]["epsilon"] < 1
    assert said["refutable"]["probability"] == 0.95


def test_people_are_told_who_was_played(call: Call) -> None:
    line = "audit server-coins --epsilon 1 --delta 1e-3 --runs 1000 --simulate-seed 1"
    shown = " ".join(call(line).stdout.split())
    for words in (
        "the coordinator (S1)",
        "the aggregator (S2)",
        "a reader of the published result",
    ):
        assert f"against {words}" in shown
    said = json.loads(call(f"{line} --json").stdout)
    assert said["adversary"].startswith("the coordinator (S1)")
    assert [entry["codes"] for entry in said["adversaries"]] == [
        ["s1_participants"],
        ["s2_participants"],
        ["reader"],
    ]
    # Built for this delta: the mechanism's own guarantee is tested, also at other epsilons.
    tested = said["adversaries"][0]["tested"]
    assert len(tested) > 1
    assert tested[0]["epsilon"] == 1.0
    assert tested[0]["delta"] <= 1e-3
    # A claim of one's own is tested alone.
    alone = json.loads(call(f"{line} --claim-delta 0.01 --json").stdout)
    assert [len(entry["tested"]) for entry in alone["adversaries"]] == [1, 1, 1]


def test_a_refuted_audit_says_how_many_runs_it_took(call: Call) -> None:
    shown = " ".join(
        call(
            "audit laplace --epsilon 3 --claim-epsilon 0.5 --runs 20000 --simulate-seed 1"
        ).stdout.split()
    )
    assert "REFUTED" in shown
    assert "runs 2,000 of 20,000 planned" in shown


def test_a_claim_of_delta_zero_is_a_claim(call: Call) -> None:
    """Decoys are never pure: with delta 0 the claim is refuted, with their own delta it is not."""
    line = "audit decoys --decoys 6 --epsilon 1 --delta 0.9 --runs 4000 --simulate-seed 1 --json"
    assert json.loads(call(line).stdout)["refuted"] is False
    said = json.loads(call(f"{line} --claim-delta 0").stdout)
    assert said["claim"] == {"epsilon": 1.0, "delta": 0.0}
    assert said["refuted"] is True


def test_whole_surveys_on_the_command_line(call: Call) -> None:
    line = (
        "audit laplace --epsilon 1 --users 3 --runs 100 --through servers --simulate-seed 1 --json"
    )
    said = json.loads(call(line).stdout)
    assert (said["through"], said["refuted"], said["runs"]) == ("servers", False, 100)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dpds --p 0.4", "audit dpds needs --epsilon"),
        ("tss --p 0.4 --epsilon 1", "audit tss needs --alpha"),
        ("decoys --decoys 20", "audit decoys needs --epsilon and --delta"),
        ("laplace --epsilon 1 --runs 5", "runs must be at least 100"),
        ("laplace --epsilon -1", "epsilon must be above 0"),
        (
            "laplace --epsilon 1 --p 0.4",
            "audit of laplace has no p; it takes items, users, insiders, epsilon, delta,",
        ),
        (
            "dpds --p 0.4 --floor 9 --epsilon 1 --decoys 3 --alpha 0.5",
            "audit of dpds has no decoys, alpha; it takes",
        ),
        ("grr --epsilon 1 --floor 0", "audit of grr has no floor"),
        ("pm --epsilon 1 --items 3", "audit of pm has no items"),
        ("laplace --epsilon 1 --users 100000", "4,000,000,000 responses: leave --users out"),
        ("dpds --p 0.4 --epsilon 1 --floor 100000", "8,000,040,000 responses: make fewer --runs"),
    ],
)
def test_wrong_use_is_one_sentence_and_code_2(call: Call, line: str, words: str) -> None:
    done = call(f"audit {line}")
    assert done.exit_code == 2
    assert words in done.stderr


def test_the_command_claims_what_python_claims(call: Call) -> None:
    said = json.loads(
        call(
            "audit oue --epsilon 1 --claim-epsilon 0.5 --runs 2000 --simulate-seed 1 --json"
        ).stdout
    )
    made = fc.OUE(items=3, epsilon=1.0)
    report = fc.audit(made, epsilon=0.5, runs=2000, entropy=fc.SeededStream(1))
    assert said["claim"] == {"epsilon": 0.5, "delta": 0.0}
    assert said == report.to_dict()
