"""The privacy label: every number is computed again, and one that does not hold is refused."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from in_process import rename_operator

import faircount
from faircount.accounting.conditions import floor_condition
from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.errors import RefusedError
from faircount.estimation.result import Result
from faircount.owner import label as labels
from faircount.owner.label import make_label
from faircount.owner.label_page import label_page
from faircount.owner.label_texts import RISKS, UNPROVEN, label_words
from faircount.owner.remote import BothServers
from faircount.owner.survey import Survey
from faircount.protocol.survey.operators import format_fingerprint
from faircount.protocol.wire.canonical_json import format_real

PEOPLE = 12


def make_survey(both_apps: Any, **more: Any) -> Survey:
    terms: dict[str, Any] = {
        "question": "Tea or <coffee>?",
        "items": ["tea", "coffee"],
        "users": PEOPLE,
        "epsilon": 8.0,
        "minimum": "50%",
        "owner": "A & B",
        "s1_operator": "One",
        "s2_operator": "Two",
        "population": "staff: all",
        "budget": (20.0, 1e-5),
        "anyway": True,
    }
    folder = both_apps.folder / "survey"
    return Survey.create(folder, servers=both_apps.servers_file, **{**terms, **more})


def publish(survey: Survey, folder: Path) -> Result:
    survey.invite()
    survey.open()
    for place, invitee in enumerate(survey.invitees()[:9]):
        link = invitee.code.link(survey.owner.public_address)
        connect(link, state=folder / f"{place}.device").answer("tea")
    survey.close()
    return survey.result(wait=True)


def test_a_label_before_and_after_the_survey(both_apps: Any, tmp_path: Path) -> None:
    survey = make_survey(both_apps)
    before = make_label(survey).content
    assert before["promise"] == {"epsilon": 8.0, "delta": 1e-6}
    assert before["budget"]["left"]["epsilon"] == 20.0
    assert before["release"]["published"] is False
    assert before["software"]["version"] == faircount.__version__
    fingerprint = format_fingerprint(survey.params.keys.s2_operator_key)
    second = {"role": "aggregator", "operator": "Two", "fingerprint": fingerprint}
    assert before["model"]["servers"][1] == second
    assert before["computed"]["responses"] == survey.params.minimum == 6
    assert before["computed"]["guarantees"][0]["epsilon"] <= 8.0
    assert before["registry"]["year"] is None
    result = publish(survey, tmp_path)
    after = make_label(survey).content
    assert after["budget"]["spent"]["epsilon"] == pytest.approx(8.0)
    assert after["budget"]["left"]["epsilon"] == pytest.approx(12.0)
    assert after["budget"]["surveys"] == 1
    assert after["release"]["counted"] == 9
    assert after["release"]["guarantee"] == result.guarantee.to_dict()
    assert after["registry"]["year"] == int(str(after["release"]["ended"])[:4])
    assert set(after["nist_sp_800_226"]) >= {
        "privacy_parameters",
        "unit_of_privacy",
        "threat_model",
    }


def test_yaml_and_json_say_the_same(both_apps: Any) -> None:
    label = make_label(
        make_survey(both_apps, purpose='a "quoted": text\nin two lines – ok\x85\u2028\x7f')
    )
    assert json.loads(label.to_json()) == yaml.safe_load(label.to_yaml()) == label.content
    assert isinstance(yaml.safe_load(label.to_yaml())["promise"]["delta"], float)


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_page_says_what_participants_want_to_know(both_apps: Any, language: str) -> None:
    survey = make_survey(both_apps, language=language)
    page = make_label(survey).to_html().decode()
    words = label_words(language)
    assert f'<html lang="{language}">' in page
    assert "Tea or &lt;coffee&gt;?" in page
    assert "A &amp; B" in page
    assert "One" in page
    assert format_fingerprint(survey.params.keys.s1_operator_key) in page
    assert survey.params.digest.hex() in page
    for name in RISKS:
        assert words.risks[name] in page.replace("&#x27;", "'")
    assert words.risks[UNPROVEN] not in page
    assert words.any_insiders in page
    assert "{" not in page.partition("</style>")[2]
    assert "<script" not in page
    other = label_words("de" if language == "en" else "en")
    assert other.protection not in page


def test_one_operator_and_missing_proofs_are_said(both_apps: Any) -> None:
    rename_operator(both_apps.pair.s2.server, "one")
    survey = make_survey(both_apps, s2_operator="one", mechanism="laplace", population="")
    page = make_label(survey).to_html().decode()
    assert "could read your answer: this is a trial" in page
    assert label_words("en").risks[UNPROVEN] in page
    assert "a budget of its own, epsilon 20" in page
    assert make_label(survey).content["budget"]["population"] is None


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_guarantee_says_that_one_operator_runs_both_servers(
    both_apps: Any, tmp_path: Path, language: str
) -> None:
    rename_operator(both_apps.pair.s2.server, "One")
    survey = make_survey(both_apps, s2_operator="One", language=language)
    condition = "nobody who runs both servers combines their shares"
    label = make_label(survey)
    assert label.content["model"]["name"].endswith("one operator runs both servers (a trial)")
    for guarantee in label.content["computed"]["guarantees"]:
        assert guarantee["condition"].endswith(f"and {condition}")
    shown = {"en": condition, "de": "; niemand, der beide Server betreibt"}[language]
    assert shown in label.to_html().decode()
    result = publish(survey, tmp_path)
    assert f"and {condition}" in str(result.guarantee)
    assert result.record is not None
    assert result.record.one_operator
    assert make_label(survey).content["release"]["guarantee"]["condition"].endswith(condition)


def test_the_page_states_every_condition_in_its_language(both_apps: Any) -> None:
    content = make_label(make_survey(both_apps)).content
    page = label_page(content, floor_condition(20, 2), "de").decode()
    assert "Das gilt unter einer Bedingung: Jede Antwort wird von mindestens 20 anderen" in page
    assert "Das gilt unter" not in label_page(content, None, "de").decode()


def test_a_guarantee_with_two_operators_needs_no_such_condition(
    both_apps: Any, tmp_path: Path
) -> None:
    survey = make_survey(both_apps)
    assert "runs both" not in make_label(survey).to_json().decode()
    result = publish(survey, tmp_path)
    assert "runs both" not in str(result)
    assert "One ran the coordinator (S1), Two the aggregator (S2)" in str(result)


@pytest.mark.parametrize(
    ("mechanism", "covered", "adversary"),
    [
        ("auto", "any number", "with any number of participants"),
        ("laplace", 1, "any single participant who reads the result"),
    ],
)
def test_the_label_covers_as_many_participants_as_the_guarantee(
    both_apps: Any, mechanism: str, covered: int | str, adversary: str
) -> None:
    label = make_label(make_survey(both_apps, mechanism=mechanism))
    assert label.content["model"]["colluding_participants_covered"] == covered
    assert adversary in label.content["computed"]["guarantees"][0]["adversary"]
    words = label_words("en")
    told = words.any_insiders if covered == "any number" else words.insiders
    assert told.format(insiders=covered) in label.to_html().decode()


def test_numbers_that_do_not_hold_get_no_label(
    both_apps: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = make_survey(both_apps)
    publish(survey, tmp_path)
    told = survey.servers.budget(survey.params.population)
    with monkeypatch.context() as lying:
        less = {**told, "spent": {"epsilon": 0.5, "delta": 0.0}}
        lying.setattr(BothServers, "budget", lambda *_: less)
        with pytest.raises(RefusedError, match=r"says that epsilon 0\.5 is spent"):
            make_label(survey)
    with monkeypatch.context() as lying:
        lying.setattr(labels, "keeps_promise", lambda *_: False)
        with pytest.raises(RefusedError, match="does not hold with 6 responses"):
            make_label(survey)
    result = survey.result()
    better = replace(result.facts["published"], realized_epsilon=format_real(1.0).encode())  # type: ignore[type-var]
    forged = replace(result, facts={**result.facts, "published": better})
    with monkeypatch.context() as lying:
        lying.setattr(Survey, "result", lambda _: forged)
        with pytest.raises(RefusedError, match="signed epsilon 1 for this result"):
            make_label(survey)


def test_the_command_writes_all_forms(both_apps: Any, tmp_path: Path) -> None:
    survey = make_survey(both_apps)

    def run(*arguments: object) -> Any:
        given = ["survey", "label", str(survey.folder.path), *map(str, arguments)]
        return CliRunner().invoke(main, given, catch_exceptions=False)

    printed = json.loads(run().stdout)
    assert printed["kind"] == "faircount privacy label"
    page = tmp_path / "label.html"
    files = ("--html", page, "--yaml", tmp_path / "label.yaml", "--out", tmp_path / "label.json")
    done = run(*files, "--language", "de")
    assert done.exit_code == 0, done.stderr
    assert f"Written to {page}" in done.stdout
    assert "Datenschutz-Steckbrief" in page.read_text(encoding="utf-8")
    assert json.loads((tmp_path / "label.json").read_text()) == printed
