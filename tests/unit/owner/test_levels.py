"""Public privacy levels: one survey for each level, and one combined result."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import faircount as fc
from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.combining import combine_surveys
from faircount.owner.levels import check_levels, describe_level, split_by_level
from faircount.owner.people import People
from faircount.owner.survey import Survey

LEVELS = {"strong": 4.0, "weak": 9.0}
SIZES = {"strong": 12, "weak": 24}
GIVEN = "strong=4,weak=9"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def write_people(path: Path, sizes: dict[str, int], column: str = "tier") -> Path:
    lines = [f"mail,{column}"]
    # The weakest first: the order of levels does not come from the table.
    for name, count in reversed(sizes.items()):
        lines += [f"{name}{number}@example.org,{name}" for number in range(count)]
    path.write_text("\n".join(lines))
    return path


def answer_all(survey: Survey, folder: Path, yes: int) -> None:
    for number, invitee in enumerate(survey.invitees()):
        link = invitee.code.link(survey.owner.public_address)
        part = connect(link, state=folder / f"{invitee.user}.device")
        part.answer("yes" if number < yes else "no")


def create_command(both_apps: Any, folder: Path, people: Path, *more: object) -> Result:
    return run(
        *("survey", "create", folder, "--servers", both_apps.servers_file, "--people", people),
        *("--question", "Tea?", "--items", "yes,no,never"),
        *more,
    )


def test_levels_are_asked_and_combined_with_commands(both_apps: Any, tmp_path: Path) -> None:
    folder = tmp_path / "tea"
    people = write_people(tmp_path / "people.csv", SIZES)
    made = create_command(
        both_apps, folder, people, "--level-column", "tier", "--levels", GIVEN, "--purpose", "tea."
    )
    assert made.exit_code == 0, made.output
    text = " ".join(made.stdout.split())
    assert "All levels together have an error of ±" in text
    assert "levels are public: you know who is in which" in text
    strong, weak = (Survey.at(folder / name) for name in LEVELS)
    assert (strong.params.epsilon, strong.params.n_max) == (4.0, 12)
    assert (weak.params.epsilon, weak.params.n_max) == (9.0, 24)
    # Participants read who knows their level, and what it means.
    assert strong.params.purpose.startswith(
        "tea. Your privacy level is strong, like that of 12 people"
    )
    assert "Whoever invited you knows that, and so does anybody who sees" in strong.params.purpose
    assert "in strong at most 98.3 %, in weak at most 100.0 %" in strong.params.purpose
    assert run("survey", "invite", folder).exit_code == 0
    assert run("survey", "open", folder).exit_code == 0
    answer_all(strong, tmp_path, 9)
    answer_all(weak, tmp_path, 6)
    assert "tier: strong (public level, epsilon 4)" in run("survey", "status", folder).stdout
    labelled = run("survey", "label", folder / "strong")
    assert labelled.exit_code == 0, labelled.output
    early = run("survey", "result", folder, "--html", tmp_path / "early.html")
    assert early.exit_code != 0
    assert not (tmp_path / "early.html").exists()
    assert run("survey", "close", folder).exit_code == 0
    files = {kind: tmp_path / f"tea.{kind}" for kind in ("csv", "html", "svg", "xlsx")}
    done = run(
        *("survey", "result", folder, "--wait", "--csv", files["csv"], "--html", files["html"]),
        *("--plot", files["svg"], "--xlsx", files["xlsx"]),
    )
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "36 people counted" in text
    assert "Every person counts the same (uwa). This holds whatever the levels answer." in text
    assert "it is right only if the levels answer alike" in text
    assert "One survey of everybody at epsilon 4 would have had a standard error of" in text
    assert "It is public who is in which of the levels" in text
    assert all(path.stat().st_size > 500 for path in files.values())
    page = files["html"].read_text()
    assert "it is right only if the levels answer alike" in page
    rows = list(csv.DictReader(io.StringIO(files["csv"].read_text())))
    assert {(row["weights"], row["part"]) for row in rows} == {
        *((way, "all") for way in ("uwa", "total", "vwa", "owa")),
        *(("", name) for name in LEVELS),
    }
    assert all(row["condition"] for row in rows if row["weights"] in ("total", "vwa", "owa"))
    said = json.loads(run("survey", "result", folder, "--json").stdout)
    # With so little noise the counts are nearly exact: 15 of 36 said yes, in either file.
    assert said["estimates"][0]["estimate"] == pytest.approx(15 / 36, abs=0.15)
    assert [part["counted"] for part in said["parts"]] == [12, 24]
    assert said["guarantee"]["epsilon"] == pytest.approx(9.0)
    assert "(column 'tier')" in said["guarantee"]["condition"]
    assert "nobody takes part in two of the groups" in said["guarantee"]["condition"]
    combined = said["combined"][0]
    assert combined["uwa"]["weights"] == pytest.approx({"strong": 1 / 3, "weak": 2 / 3})
    assert combined["if_alike"][0]["weights"]["weak"] > 2 / 3
    assert combined["homogeneity"]["p_value"] <= 1
    assert combined["one_level_for_all"]["epsilon"] == 4.0


def test_the_headline_counts_every_person_once(both_apps: Any, tmp_path: Path) -> None:
    """Also of questions of which only sums are opened, and whatever the sizes are."""
    people = write_people(tmp_path / "people.csv", {"strong": 11, "weak": 15})
    form: list[dict[str, Any]] = [
        {"kind": "yes", "text": "Tea?"},
        {"kind": "any", "text": "With what?", "items": ["milk", "sugar"]},
        {"kind": "number", "text": "How many cups?", "low": 0, "high": 10, "step": 1},
    ]
    levels = {"strong": 40.0, "weak": 80.0}
    made = fc.GroupedSurvey.create(
        tmp_path / "tea",
        "tier",
        levels=levels,
        people=people,
        questionnaire=form,
        servers=both_apps.servers_file,
        anyway=True,
        language="de",
    )
    assert "Ihre Schutzstufe ist stark" in made.groups[0].survey.params.purpose
    made.invite()
    made.open()
    for group, cups in zip(made.groups, (2, 6), strict=True):
        for number, invitee in enumerate(group.survey.invitees()):
            link = invitee.code.link(group.survey.owner.public_address)
            part = connect(link, state=tmp_path / f"{invitee.user}.device")
            part.answer(["yes" if number < 5 else "no", ["milk"], cups])
    made.close()
    result = made.combined_result(wait=True)
    tea, extras, cups_drunk = result.questions
    assert result.included == 26
    # An epsilon of 40 leaves no noise of counts: 10 of 26 said yes. 11 drink 2 cups and 15 drink 6;
    # a sum of numbers up to 10 keeps some noise, but far less than the levels differ.
    assert tea.estimates[1].estimate == pytest.approx(10 / 26)
    assert [row.estimate for row in extras.estimates][:2] == pytest.approx([1.0, 0.0])
    assert cups_drunk.estimates[0].estimate == pytest.approx((11 * 2 + 15 * 6) / 26, abs=1)
    assert set(result.if_alike(0)) == {"total", "vwa", "owa"}
    assert result.if_alike(1) == {}
    assert result.counts(2) is None
    assert "Stufen" in _shown(made.path)


def _shown(folder: Path) -> str:
    done = run("survey", "result", folder)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ("strong=4", "give 2 to 8 levels, not 1"),
        ("strong=4,weak=4", "from the strongest to the weakest"),
        ("weak=9,strong=4", "from the strongest to the weakest"),
        ("strong=4,weak=x", "not of the form level=epsilon"),
        ("strong=4,strong=9", "names the level 'strong' twice"),
        ("strong=0,weak=9", "must be above 0"),
        ("strong=4,wek=9", "24 people have the tier 'weak', which is no level"),
        ("strong=4,weak=9,none=10", "nobody has the tier 'none'"),
        ("strong=4,weak=nan", "must be"),
    ],
)
def test_bad_levels_are_refused_and_nothing_is_written(
    both_apps: Any, tmp_path: Path, levels: str, words: str
) -> None:
    people = write_people(tmp_path / "people.csv", SIZES)
    done = create_command(
        both_apps, tmp_path / "tea", people, "--level-column", "tier", "--levels", levels
    )
    assert done.exit_code == 2, done.output
    assert words in " ".join(done.stderr.split())
    assert not (tmp_path / "tea").exists()


def test_levels_that_cannot_run_are_refused_before_anything_is_written(
    both_apps: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "tea"
    people = write_people(tmp_path / "people.csv", {"strong": 40, "weak": 3})
    given = ("--level-column", "tier", "--levels", "strong=1,weak=9", "--minimum", 20)
    small = create_command(both_apps, folder, people, *given)
    assert "level 'weak', 3 people: " in " ".join(small.stderr.split())
    assert not folder.exists()
    hopeless = create_command(
        both_apps, folder, people, "--level-column", "tier", "--levels", "strong=0.1,weak=0.2"
    )
    assert "even all levels together have a 95% error of ±" in " ".join(hopeless.stderr.split())
    assert not folder.exists()
    for given, words in (
        (("--level-column", "tier"), "say what the levels are with --levels"),
        (("--level-column", "tier", "--levels", GIVEN, "--epsilon", 1), "leave --epsilon out"),
        (("--level-column", "tier", "--levels", GIVEN, "--group-column", "tier"), "in groups or"),
        (("--level-column", "tier", "--levels", GIVEN, "--users", 9), "leave --users out"),
        (("--level-column", "site", "--levels", GIVEN), "no column 'site'"),
    ):
        done = create_command(both_apps, folder, people, *given)
        assert done.exit_code == 2
        assert words in " ".join(done.stderr.split())
        assert not folder.exists()


@pytest.mark.slow
def test_levels_without_all_results_are_shown_and_not_combined(
    both_apps: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "tea"
    people = write_people(tmp_path / "people.csv", {"strong": 5, "weak": 6})
    given = ("--level-column", "tier", "--levels", "strong=20,weak=40", "--minimum", 3, "--json")
    made = json.loads(create_command(both_apps, folder, people, *given).stdout)
    assert [level["epsilon"] for level in made["levels"]] == [20, 40]
    assert len(made["half_widths"]) == len(made["half_widths_of_one_level"]) == 1
    grouped = fc.GroupedSurvey.at(folder)
    assert grouped.levels == {"strong": 20, "weak": 40}
    grouped.invite()
    grouped.open()
    strong, weak = (group.survey for group in grouped.groups)
    finish(strong, tmp_path, 2)
    weak.abort("not now")
    weak.latest_ending(wait=True)
    done = run("survey", "result", folder)
    assert done.exit_code == 4
    assert "Not every level has a result, so they are not combined." in done.stdout
    with pytest.raises(RefusedError, match="tier weak ended without a result"):
        grouped.combined_result()
    page = run("survey", "result", folder, "--html", tmp_path / "x.html")
    assert "tier weak ended without a result" in page.stderr
    assert not (tmp_path / "x.html").exists()


def test_people_are_told_in_both_languages_what_a_level_means() -> None:
    levels = check_levels({"very strong": 0.1, "weak": 1.0})
    english = describe_level("en", "weak", 1250, levels)
    assert "Your privacy level is weak, like that of 1,250 people in all." in english
    # What anybody can become sure of: e^epsilon / (1 + e^epsilon), rounded up.
    assert math.exp(0.1) / (1 + math.exp(0.1)) < 0.525
    assert "in very strong at most 52.5 %, in weak at most 73.2 %" in english
    german = describe_level("de", "weak", 1250, levels)
    assert "Ihre Schutzstufe ist weak, wie die von insgesamt 1.250 Personen." in german
    # The usual names are said in the language of the survey, as on the page.
    assert "in sehr stark höchstens 52,5\u00a0%, in weak höchstens 73,2\u00a0%" in german


def test_a_level_of_one_person_is_refused() -> None:
    people = People(("a", "b", "c"), ("mail", "tier"), (("a", "x"), ("b", "x"), ("c", "y")))
    with pytest.raises(RefusedError, match="the level 'y' has one person"):
        split_by_level(people, "tier", {"x": 1.0, "y": 2.0})
    with pytest.raises(ParameterError, match="visible characters"):
        check_levels({"a\x1b[2J": 1.0, "b": 2.0})


def make_survey(both_apps: Any, folder: Path, names: list[str] | None, **more: Any) -> Survey:
    terms: dict[str, Any] = {"question": "Tea?", "items": ["yes", "no", "never"], **more}
    users = {} if names is None else {"people": names}
    survey = Survey.create(
        folder, servers=both_apps.servers_file, epsilon=40.0, anyway=True, **users, **terms
    )
    survey.invite()
    survey.open()
    return survey


def finish(survey: Survey, folder: Path, yes: int) -> Survey:
    answer_all(survey, folder, yes)
    survey.close()
    survey.result(wait=True)
    return survey


def test_finished_surveys_of_different_people_are_combined(both_apps: Any, tmp_path: Path) -> None:
    north = make_survey(both_apps, tmp_path / "north", [f"n{i}@x" for i in range(10)])
    south = make_survey(both_apps, tmp_path / "south", [f"s{i}@x" for i in range(15)])
    with pytest.raises(RefusedError, match="north is not over yet"):
        combine_surveys([north, south])
    finish(north, tmp_path, 10)
    finish(south, tmp_path, 0)
    result = combine_surveys([north, south])
    assert result.included == 25
    np.testing.assert_allclose([row.estimate for row in result[1].shares], [0.4, 0.6, 0.0])
    done = run("survey", "combine", north.folder.path, south.folder.path)
    assert done.exit_code == 0, done.output
    assert "This holds whatever the surveys answer." in " ".join(done.stdout.split())
    # Everybody in one survey says yes, nobody in the other: no test overlooks that.
    assert "the surveys differ by more than chance" in " ".join(done.stdout.split())
    with pytest.raises(RefusedError, match="are the same survey"):
        combine_surveys([north, north])
    other = make_survey(both_apps, tmp_path / "other", ["o@x", "N3@x", *"abcd"])
    with pytest.raises(RefusedError, match="'n3@x' is invited in north and in other"):
        combine_surveys([north, other])
    longer = make_survey(both_apps, tmp_path / "longer", list("pqrstu"), items=["yes", "no"])
    with pytest.raises(RefusedError, match="longer asks other questions than north"):
        combine_surveys([north, longer])
    twice = [make_survey(both_apps, tmp_path / name, None, users=10) for name in ("a", "b")]
    for survey in twice:
        finish(survey, tmp_path, 3)
    with pytest.raises(RefusedError, match="a, b: the folder does not say who was invited"):
        combine_surveys(twice)
    assert combine_surveys(twice, disjoint=True).included == 20
    again = [
        make_survey(
            both_apps, tmp_path / name, None, users=10, population="we", budget=(90.0, 1e-5)
        )
        for name in ("c", "d")
    ]
    with pytest.raises(RefusedError, match="ask the same population"):
        combine_surveys(again, disjoint=True)
    again[0].abort("no")
    again[0].latest_ending(wait=True)
    with pytest.raises(RefusedError, match="c ended without a result"):
        combine_surveys([twice[0], again[0]], disjoint=True)
