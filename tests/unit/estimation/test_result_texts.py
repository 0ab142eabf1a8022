"""The words of a result: complete in every language, and the same facts in each."""

from dataclasses import replace

import pytest

from faircount.accounting.conditions import ENGLISH as CONDITIONS
from faircount.accounting.conditions import ConditionCode, condition_of, floor_condition
from faircount.accounting.guarantee import Adversary, AdversaryCode, Guarantee, Relation, Void
from faircount.estimation.english_texts import ResultWords
from faircount.estimation.german_texts import GermanWords
from faircount.estimation.result_texts import LANGUAGES
from faircount.estimation.validity import Validity
from faircount.mechanisms.laplace import Laplace
from faircount.owner.invitation_texts import LANGUAGES as INVITATIONS
from faircount.protocol import SERVERS
from faircount.protocol.simulator import play

GERMAN = GermanWords()
PROMISE = Guarantee(1.5, 1e-6, Relation.REPLACE_ONE, Adversary(AdversaryCode.READER))


def test_results_speak_the_languages_of_invitations() -> None:
    assert LANGUAGES == INVITATIONS


def test_every_english_word_has_a_german_one() -> None:
    names = [name for name in vars(ResultWords) if not name.startswith("_")]
    shared = {"short_sum_note"}  # made of a text that is translated
    missing = [name for name in names if name not in vars(GermanWords) and name not in shared]
    assert missing == []
    texts = [name for name in names if isinstance(getattr(GERMAN, name), str)]
    assert [name for name in texts if getattr(GERMAN, name) == getattr(ResultWords(), name)] == []


@pytest.mark.parametrize("code", AdversaryCode)
@pytest.mark.parametrize("insiders", [0, 1, 7])
def test_every_adversary_is_named(code: AdversaryCode, insiders: int) -> None:
    claim = GERMAN.claim(replace(PROMISE, adversary=Adversary(code, insiders)))
    assert "(1,5; 1e-06)" in claim
    assert ("7" in claim) == (insiders == 7)


@pytest.mark.parametrize("code", ConditionCode)
def test_every_condition_is_stated(code: ConditionCode) -> None:
    condition = condition_of(code, column="Plan", text="etwas gilt")
    if code is ConditionCode.FLOOR:
        condition = floor_condition(20, 2, 3)
    for text in (GERMAN.claim, GERMAN.sentence):
        stated = text(replace(PROMISE, condition=condition))
        assert "unter der Bedingung: " in stated
        assert CONDITIONS[code].format_map({"text": "?", "column": "?", "floor": 0}) not in stated


def test_a_floor_names_only_those_whom_it_does_not_count_on() -> None:
    floor = "jede Antwort wird von mindestens 20 anderen Personen gewählt"
    assert GERMAN.condition(floor_condition(20)) == floor
    assert GERMAN.condition(floor_condition(20, 2)) == (
        f"{floor} (von denen bis zu 2 zusammenarbeiten dürfen)"
    )
    assert GERMAN.condition(floor_condition(20, 2, 3, left_out=True)) == (
        f"{floor} (von denen bis zu 2 zusammenarbeiten und bis zu 3 ausfallen oder vom Koordinator "
        "(S1) ausgelassen werden dürfen)"
    )


def test_a_simulation_guarantees_nothing_in_german_too() -> None:
    assert GERMAN.sentence(replace(PROMISE, void=Void.SEEDED)).startswith("gilt nicht, weil")
    assert "Faktor 4,48 (Epsilon 1,5)" in GERMAN.sentence(PROMISE)


def test_numbers_are_written_as_germans_do() -> None:
    assert GERMAN.percent(0.12345) == "12,3\u00a0%"
    assert GERMAN.percent(-0.0001) == "0,0\u00a0%"
    assert GERMAN.range(0.1, 0.25) == "10,0\u00a0% bis 25,0\u00a0%"
    assert GERMAN.number(12_345) == "12.345"


def test_what_is_known_of_the_reports_is_said() -> None:
    played = play([0, 1] * 6, Laplace(items=("a", "b"), users=12, epsilon=2.0), SERVERS)
    unproven = replace(played, facts={**played.facts, "validity": Validity(False, 12, 1)})
    proven = replace(played, facts={**played.facts, "validity": Validity(True, 12, 1, coins=True)})
    assert "12 Berichte gezählt, 1 abgewiesen. Es ist nicht bewiesen" in GERMAN.statement(unproven)
    assert "höchstens um 1/12" in GERMAN.statement(proven)
    assert "Münzen" in GERMAN.statement(proven)
    assert GERMAN.statement(replace(played, facts={})).startswith("Annahme: ")
