"""Hidden privacy levels in a whole survey: created, answered, and read with commands."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from faircount.accounting.levels import Levels
from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.estimation.sheet_estimates import ALIKE_CONDITION
from faircount.owner.advice import SurveyRequirements, advise
from faircount.owner.combining import combine_surveys
from faircount.owner.questions import one_question
from faircount.owner.survey import Survey
from faircount.protocol import EXPLICIT

GIVEN = "strong=12,weak=36"
PEOPLE = 16


def run(*arguments: object, typed: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=typed)


def link_of(survey: Survey, number: int) -> str:
    return survey.invitees()[number].code.link(survey.owner.public_address)


def create(both_apps: Any, folder: Path, *more: object, levels: str = GIVEN) -> Result:
    return run(
        *("survey", "create", folder, "--servers", both_apps.servers_file, "--users", PEOPLE),
        *("--question", "Tea?", "--items", "yes,no,never", "--levels", levels, *more),
    )


def test_levels_are_chosen_and_nobody_learns_them(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "tea"
    made = create(both_apps, folder, "--population", "staff", "--budget", "72", "1e-5")
    assert made.exit_code == 0, made.output
    text = " ".join(made.stdout.split())
    assert "Mechanism: server-levels" in text
    assert "At the weakest one a single answer loses at most epsilon 36" in text
    assert "strong: at most 100 % sure which one you chose" in text
    survey = Survey.at(folder)
    assert (survey.params.mechanism.name, survey.params.epsilon) == ("server-levels", 36.0)
    assert run("survey", "invite", folder).exit_code == 0
    assert run("survey", "open", folder).exit_code == 0

    # One person with commands, who reads what the levels mean, and one with a question answered.
    shown = run("answer", link_of(survey, 0), "--show")
    assert "epsilon 12 (strong), 36 (weak), as you choose, which nobody learns" in " ".join(
        shown.stdout.split()
    )
    first = ("answer", link_of(survey, 0), "--state", tmp_path / "0.device")
    asked = run(*first, "--item", "yes", typed="2\ny\n")
    assert asked.exit_code == 0, asked.output
    text = " ".join(asked.stdout.split())
    assert "How well should your answer be hidden?" in text
    assert "50 % would be a guess" in text
    assert "Your level, which stays on this device: weak" in text
    # The same again is no other answer; another level is.
    assert run(*first, "--item", "yes", "--yes").exit_code == 0
    other = run(*first, "--item", "yes", "--level", "strong").output
    assert "already used with another privacy level" in " ".join(other.split())
    wrong = run("answer", link_of(survey, 1), "--item", "no", "--level", "none", "--yes")
    assert "choose one of the levels strong, weak" in wrong.output

    sizes = set()
    for number in range(1, PEOPLE):
        state = tmp_path / f"{number}.device"
        part = connect(link_of(survey, number), state=state)
        # The strongest is what somebody gets who does not choose.
        level = {0: None, 1: "strong", 2: "weak"}[number % 3]
        part.answer("yes" if number < 6 else "no", level=level)
        stored = part.file.load()
        assert stored.client.level == int(level == "weak")
        sizes.add(len(stored.client.state.report.share))
        with pytest.raises(AnswerError, match="another answer"):
            part.answer("never")
    assert len(sizes) == 1

    assert run("survey", "close", folder).exit_code == 0
    files = {kind: tmp_path / f"tea.{kind}" for kind in ("csv", "html", "xlsx")}
    done = run(
        *("survey", "result", folder, "--wait", "--csv", files["csv"], "--html", files["html"]),
        *("--xlsx", files["xlsx"]),
    )
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "If people who chose weaker protection answer like everybody:" in text
    assert "people were counted twice" in text
    assert "strong: epsilon 12 for the answer" in text
    said = json.loads(run("survey", "result", folder, "--json").stdout)
    # At these epsilons the counts of both tables are nearly exact: 6 of 16 said yes, and 6 people
    # chose the weak level, of whom the first, and those with numbers 2 and 5, said yes.
    assert said["estimates"][0]["estimate"] == pytest.approx(6 / 16, abs=0.1)
    assert said["levels"]["counted_again"]["estimate"] == pytest.approx(6, abs=2)
    assert said["guarantee"]["epsilon"] == 36
    # Somebody who is counted twice has more than one vote where some people are counted twice.
    votes = said["levels"]["votes_per_liar"]
    assert votes > 1
    assert said["validity"]["votes_per_liar_if_alike"] == votes
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert len([row for row in rows if ALIKE_CONDITION in row["measure"]]) == 3
    assert "If people who chose weaker protection" in files["html"].read_text()

    # The population has lost as much as its weakest level may lose.
    assert survey.servers.budget("staff")["spent"]["epsilon"] == 36
    label = json.loads(run("survey", "label", folder).stdout)
    assert [level["with_level"]["epsilon"] for level in label["levels"]] == [24.0, 36.0]
    with pytest.raises(RefusedError, match="hidden privacy levels"):
        combine_surveys([survey, survey])


def test_levels_that_cannot_be_hidden_are_refused(both_apps: Any, tmp_path: Path) -> None:
    for more, why in (
        (("--epsilon", 2), "leave --epsilon out"),
        (("--topology", "explicit"), "--level-column for public levels"),
        (("--mechanism", "laplace"), "run in servers with server-levels"),
        (("--group-column", "team"), "groups or in levels"),
    ):
        refused = create(both_apps, tmp_path / "refused", *more)
        assert refused.exit_code != 0
        assert why in " ".join(refused.output.split())
    assert not (tmp_path / "refused").exists()


def test_a_weak_level_is_warned_of(both_apps: Any, tmp_path: Path) -> None:
    made = create(both_apps, tmp_path / "warned", levels="strong=8,weak=40")
    assert made.exit_code == 0, made.output
    assert "learns epsilon 24, more than twice the 8 that they chose" in " ".join(
        made.stdout.split()
    )


def test_requirements_name_the_weakest_epsilon() -> None:
    form = one_question("Tea?", ("a", "b", "c"))
    levels = Levels.of({"strong": 1.0, "weak": 2.0})
    with pytest.raises(ParameterError, match="that of the weakest one"):
        SurveyRequirements(form, 500, 1.0, levels=levels)
    advice = advise(SurveyRequirements(form, 500, 2.0, levels=levels))
    plain = advise(SurveyRequirements(form, 500, 1.0))
    # Errors are those of one level for all at the strongest epsilon.
    assert advice.half_width_95 == pytest.approx(plain.half_width_95, abs=0.002)
    with pytest.raises(RefusedError, match="hidden privacy levels run in servers"):
        advise(SurveyRequirements(form, 500, 2.0, topology=EXPLICIT, levels=levels))
