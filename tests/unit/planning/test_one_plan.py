"""`plan` and `survey create` say the same about the same survey, and so does the page."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scipy.stats import binom

import faircount as fc
from faircount.cli import main
from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.advice import SurveyRequirements, advise
from faircount.owner.questions import one_question
from faircount.planning.minimum import parse_minimum
from faircount.planning.promise import (
    attacker_certainty,
    is_weak_epsilon,
    promise_to_participants,
)
from faircount.planning.request import privacy_warnings

PAGE = Path(__file__).parents[3] / "src" / "faircount" / "web" / "page"
GRID = [
    (users, items, epsilon, minimum)
    for users, items in ((12, 2), (60, 5), (800, 12), (5000, 30))
    for epsilon, minimum in ((0.5, None), (1.0, "60%"), (2.0, None), (1.0, "10"))
]


@pytest.mark.parametrize(("users", "items", "epsilon", "minimum"), GRID)
def test_plan_and_advice_agree(users: int, items: int, epsilon: float, minimum: str | None) -> None:
    labels = tuple(f"answer {number}" for number in range(items))
    needed = None if minimum is None else parse_minimum(minimum, users)
    advice = advise(
        SurveyRequirements(one_question("Which?", labels), users, epsilon, minimum=needed)
    )
    made = fc.plan(users, items, epsilon, minimum=minimum)
    assert made.forecast is not None
    assert made.forecast.to_dict() == advice.to_dict()
    assert made.forecast.description == advice.description
    assert made.forecast.is_informative == advice.is_informative
    assert made.recommended is not None
    assert made.recommended.name == advice.mechanism.name
    # What the owner is told to do agrees, too: `create` refuses what `plan` advises against.
    if made.worthwhile:
        assert advice.is_informative


@pytest.mark.parametrize(
    "more", [(), ("--minimum", "40%"), ("--epsilon", "0.7"), ("--response-rate", "60%")]
)
def test_both_commands_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    def create(path: Path, requirements: SurveyRequirements, *_: Any, **__: Any) -> None:
        raise RefusedError(advise(requirements).description)

    monkeypatch.setattr("faircount.owner.creation.create", create)
    servers = tmp_path / "servers.json"
    access = {"address": "http://127.0.0.1:1", "token": "t"}
    servers.write_text(json.dumps({"s1": access, "s2": access}))
    numbers = ("--users", "300", *more)
    if "--epsilon" not in more:
        numbers += ("--epsilon", "1")
    asked = ("--question", "Which city?", "--items", "Aldmoor,Brackwater,Carrow")
    created = CliRunner().invoke(
        main, ["survey", "create", str(tmp_path / "s"), "--servers", str(servers), *asked, *numbers]
    )
    planned = CliRunner().invoke(main, ["plan", "--items", "3", *numbers])
    assert planned.exit_code == 0, planned.stderr
    told = " ".join(created.stderr.split())
    shown = " ".join(planned.stdout.split())
    made = json.loads(CliRunner().invoke(main, ["plan", "--items", "3", *numbers, "--json"]).stdout)
    least = f"The minimum number of responses is {made['minimum']} of 300 invited people"
    assert least in told
    assert least in shown
    for part in (told, shown):
        assert f"of those who answer if {made['responses']} do" in part
        assert f"Mechanism: {made['mechanism']}, topology: servers." in part


def test_a_table_is_another_purpose() -> None:
    table = fc.plan(800, 12, 1.0, purpose="table")
    assert (table.recommended.name, table.forecast) == ("laplace", None)  # type: ignore[union-attr]
    with pytest.raises(ParameterError, match='a plan is for a "survey" or a "table"'):
        fc.plan(800, 12, 1.0, purpose="run")
    with pytest.raises(ParameterError, match="the rows of a table are all there"):
        fc.plan(800, 12, 1.0, purpose="table", minimum=3)


def test_a_response_rate_below_the_minimum_is_advised_against() -> None:
    made = fc.plan(800, 12, 1.0, response_rate=0.2)
    assert not made.worthwhile
    assert "160 people are expected to respond, fewer than the minimum" in made.verdict
    assert fc.plan(800, 12, 1.0, response_rate=0.3).forecast.responses == 240  # type: ignore[union-attr]


def test_a_minimum_and_a_response_rate_go_together() -> None:
    made = fc.plan(800, 12, 1.0, response_rate="60%", minimum="50%")
    expected = made.forecast
    assert expected is not None
    assert (expected.responses, expected.minimum) == (480, 400)
    # As without a minimum: the servers add the noise, so only the responses matter.
    alone = fc.plan(800, 12, 1.0, response_rate=0.6).forecast
    assert alone is not None
    assert expected.half_width_95 == alone.half_width_95
    assert expected.half_width_95 < expected.half_width_95_at_minimum
    exactly = float(1 - binom.cdf(399, 800, 0.6))
    assert expected.chance_of_minimum == pytest.approx(exactly)


@pytest.mark.parametrize(
    ("rate", "minimum", "words"),
    [
        ("60%", None, "the minimum is reached almost certainly."),
        ("26%", None, "with a chance of 69%. Set a lower minimum, or invite more people."),
        ("30%", "110", "with a chance of 87%. Set a lower"),
        ("28%", None, "with a chance of 92%. Set a lower"),
        ("100%", "100%", "the minimum is reached almost certainly."),
    ],
)
def test_the_chance_to_reach_the_minimum_is_said(
    rate: str, minimum: str | None, words: str
) -> None:
    made = fc.plan(400, 5, 1.0, response_rate=rate, minimum=minimum)
    assert made.forecast is not None
    assert words in made.forecast.description
    assert f"If {rate} of the invited respond" in made.forecast.description
    needed = None if minimum is None else parse_minimum(minimum, 400)
    requirements = SurveyRequirements(
        one_question("Which?", "abcde"),
        400,
        1.0,
        minimum=needed,
        response_rate=float(rate[:-1]) / 100,
    )
    assert advise(requirements).description == made.forecast.description
    assert advise(requirements).to_dict() == made.forecast.to_dict()


def test_users_who_make_the_noise_make_enough_for_the_minimum() -> None:
    made = fc.plan(400, 5, 1.0, response_rate="70%", minimum="60%", malicious_clients=False)
    assert made.forecast is not None
    assert not made.forecast.mechanism.servers_add_noise
    assert (made.forecast.minimum, made.forecast.responses) == (240, 280)


@pytest.mark.parametrize("rate", ["60", "0", "0%", "101%", "1.1", "most", "", "-3%", "."])
def test_a_response_rate_that_is_none_is_refused(rate: str) -> None:
    with pytest.raises(ParameterError, match=r"such as 60%, or a share such as 0\.6"):
        fc.plan(800, 12, 1.0, response_rate=rate)
    done = CliRunner().invoke(main, f"plan --users 9 --items 2 --epsilon 1 --response-rate={rate}")
    assert done.exit_code == 2
    assert "such as 60%" in done.stderr


# --- what participants will read --------------------------------------------------------------


def on_the_page(epsilon: float, delta: float) -> dict[str, Any]:
    """The sentences that the page would show, and its certainty."""
    script = f"""
import {{ readFileSync }} from "node:fs";
import {{ LANGUAGES }} from "{(PAGE / "strings.js").as_uri()}";
import {{ attackerCertainty }} from "{(PAGE / "certainty.js").as_uri()}";
const words = LANGUAGES.en;
const certainty = attackerCertainty({epsilon});
const view = readFileSync("{PAGE / "certainty.js"}", "utf8");
const weakAbove = Number(/WEAK_CERTAINTY = ([\\d.]+)/.exec(view)[1]);
console.log(JSON.stringify({{ certainty, weak: certainty > weakAbove,
  sentences: [words.promise, words.promiseWeak, words.promiseDelta] }}));
"""
    command = ["node", "--input-type=module", "-e", script]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    shown: dict[str, Any] = json.loads(done.stdout)
    return shown


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.9, 2.95, 3.0, 10.0, 60.0])
def test_owners_read_what_participants_will_read(epsilon: float) -> None:
    page = on_the_page(epsilon, 1e-6)
    assert attacker_certainty(epsilon) == page["certainty"]
    assert is_weak_epsilon(epsilon) == page["weak"] == bool(privacy_warnings(epsilon))
    first, weak, delta = page["sentences"]
    wanted = [first.replace("{sure}", f"{page['certainty']:g}")]
    if page["weak"]:
        wanted.append(weak)
    wanted.append(delta.replace("{delta}", "1,000,000"))
    assert promise_to_participants(epsilon, 1e-6) == " ".join(wanted)


def test_a_delta_is_not_understated() -> None:
    assert "at most 1 in 3,330," in promise_to_participants(1.0, 3e-4)
    assert "1 in" not in promise_to_participants(1.0, 1e-13)
