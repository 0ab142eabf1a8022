"""A guarantee in words and as plain values: rounded up, with what it supposes, and void where it does not hold."""

import json
import math
import random
from dataclasses import replace

import pytest

import faircount as fc
from faircount.accounting import exact, two_stage
from faircount.accounting.composition import compose_parallel, sum_epsilons
from faircount.accounting.conditions import ENGLISH, ConditionCode, floor_condition
from faircount.accounting.guarantee import (
    COLLECTOR,
    GENERATOR_ASSUMPTION,
    OUTSIDER,
    S1,
    S2,
    Adversary,
    AdversaryCode,
    Guarantee,
    Relation,
    Void,
    check_adversary,
    format_delta,
    format_rounded_up,
    insiders,
)
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError, RefusedError

SOUND = Guarantee(1.0, 1e-6, Relation.REPLACE_ONE, OUTSIDER)
CITIES = ["Aldmoor", "Brackwater", "Carrow"]
ANSWERS = ["Aldmoor"] * 60 + ["Brackwater"] * 30 + ["Carrow"] * 10


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        (0.0, "0"),
        (7.1e-34, "below 1e-30"),
        (5e-324, "below 1e-30"),
        (1e-30, "1e-30"),
        (1.2341e-6, "1.24e-06"),
        (1.0, "1"),
    ],
)
def test_a_delta_is_rounded_up_and_has_no_digits_that_nobody_knows(delta: float, said: str) -> None:
    assert format_delta(delta) == said


def test_a_delta_below_the_generators_own_assumption_states_it() -> None:
    tiny = replace(SOUND, delta=7.1e-34)
    for words in (str(tiny), tiny.sentence):
        assert "below 1e-30" in words
        assert "e-34" not in words
        assert f"assuming that {GENERATOR_ASSUMPTION}" in words
    for words in (str(SOUND), SOUND.sentence):
        assert "assuming" not in words
    assert tiny.to_dict()["assumption"] == SOUND.to_dict()["assumption"] == GENERATOR_ASSUMPTION
    assert tiny.to_dict()["delta"] == 7.1e-34


def test_the_sentence_rounds_epsilon_and_delta_up() -> None:
    words = replace(SOUND, epsilon=1.00001, delta=1.201e-6).sentence
    assert "epsilon 1.001" in words
    assert "1.3e-06" in words


@pytest.mark.parametrize(
    "mechanism", [fc.Laplace(items=CITIES, epsilon=1.0), fc.GRR(items=CITIES, epsilon=1.0)]
)
def test_the_guarantee_of_a_seeded_run_says_that_it_does_not_hold(
    mechanism: fc.Laplace | fc.GRR,
) -> None:
    seeded, real = fc.run(ANSWERS, mechanism, entropy=SeededStream(1)), fc.run(ANSWERS, mechanism)
    assert seeded.guarantee.void is Void.SEEDED
    assert str(seeded.guarantee).startswith("does not hold, because the randomness was seeded")
    assert seeded.guarantee.sentence.startswith("does not hold, because the randomness was seeded")
    assert all(guarantee.void is Void.SEEDED for guarantee in seeded.guarantees)
    said = json.loads(json.dumps(seeded.to_dict()))["guarantee"]
    assert (said["holds"], said["void"]) == (False, Void.SEEDED.sentence)
    assert real.guarantee.void is None
    assert real.guarantee.to_dict()["holds"] is True
    assert seeded.guarantee == replace(real.guarantee, void=Void.SEEDED)


def test_the_guarantee_of_a_seeded_mean_says_that_it_does_not_hold() -> None:
    assert (
        fc.run([0.5, -0.5, 0.1], fc.Duchi(epsilon=1.0), entropy=SeededStream(1)).guarantee.void
        is Void.SEEDED
    )
    assert fc.run([0.5, -0.5, 0.1], fc.Duchi(epsilon=1.0)).guarantee.void is None


@pytest.mark.parametrize("combine", [compose_parallel, sum_epsilons])
def test_one_void_guarantee_leaves_none_of_all_together(combine) -> None:  # type: ignore[no-untyped-def]
    assert combine([SOUND, SOUND]).void is None
    assert combine([SOUND, replace(SOUND, void=Void.SEEDED)]).void is Void.SEEDED


def test_consistent_frequencies_say_that_they_are_biased() -> None:
    result = fc.run(ANSWERS, fc.Laplace(items=CITIES, epsilon=1.0))
    assert "biased" in result.to_dict()["about_consistent"]
    assert "biased" in result.to_frame().attrs["about_consistent"]


@pytest.mark.parametrize("relation", ["replace_one", "", None, 3])
def test_a_misspelt_relation_does_not_pass_for_the_weaker_one(relation: str) -> None:
    for claim in (
        lambda: exact.sampling_delta(20, 0.5, 0.5, relation),  # type: ignore[arg-type]
        lambda: exact.decoys_delta(20, 0.5, relation),  # type: ignore[arg-type]
        lambda: exact.laplace_delta(1.0, 0.9, 0.5, relation),  # type: ignore[arg-type]
        lambda: two_stage.coordinator_delta(5, 2, 0.5, 2.0, 20, 0.5, relation),  # type: ignore[arg-type]
        lambda: Guarantee(1.0, 0.1, relation, OUTSIDER),  # type: ignore[arg-type]
    ):
        with pytest.raises(ParameterError, match="relation"):
            claim()
    assert exact.sampling_delta(20, 0.5, 0.5, "replace-one") == exact.sampling_delta(20, 0.5, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [-1, 2.5, True, None, "3"])
def test_adversaries_have_whole_numbers_of_insiders(count: object) -> None:
    with pytest.raises(ParameterError):
        Adversary("participants", count)  # type: ignore[arg-type] # that is the point
    with pytest.raises(ParameterError):
        insiders(count)  # type: ignore[arg-type] # that is the point


def test_only_adversaries_whose_view_is_known_are_spoken_of() -> None:
    for adversary in (OUTSIDER, S1, S2, COLLECTOR, insiders(3)):
        assert check_adversary(adversary) == adversary
    for made_up in (Adversary(S1.code, 2), Adversary(AdversaryCode.GROUP_INSIDERS)):
        with pytest.raises(RefusedError, match="not known"):
            check_adversary(made_up)
    with pytest.raises(ParameterError):
        check_adversary("S1")
    with pytest.raises(ParameterError, match="one of reader, participants"):
        Adversary("somebody")  # type: ignore[arg-type] # that is the point


def test_a_condition_is_a_value_and_no_sentence() -> None:
    with pytest.raises(ParameterError, match="must be a Condition"):
        Guarantee(1.0, 0.1, Relation.REPLACE_ONE, OUTSIDER, "it rains")  # type: ignore[arg-type] # that is the point


def test_codes_and_values_say_what_the_sentence_says() -> None:
    floor = floor_condition(23, insiders=2, dropouts=5)
    stated = Guarantee(1.0, 0.1, Relation.REPLACE_ONE, insiders(2), floor, Void.SEEDED)
    values = {"floor": 23, "insiders": 2, "dropouts": 5, "left_out": 0}
    condition = [{"code": "floor", "values": values}]
    assert stated.codes == {
        "against": "participants",
        "insiders": 2,
        "condition": condition,
        "void": "seeded",
    }
    assert stated.to_dict()["condition"] == (
        "every item has at least 23 holders besides the participant in question "
        "(of whom 2 may collude and 5 may drop out)"
    )
    sound = SOUND.codes
    assert (sound["against"], sound["condition"], sound["void"]) == ("reader", [], None)


@pytest.mark.parametrize("code", ConditionCode)
def test_every_condition_has_an_english_sentence(code) -> None:
    assert ENGLISH[code]


def test_an_adversary_is_anybody_and_not_somebody_who_was_caught() -> None:
    assert str(insiders(1)) == "any single participant who reads the result"
    assert str(insiders(3)) == "any 3 participants who pool what they know and read the result"
    assert str(Adversary(AdversaryCode.S1, 1)) == (
        "the coordinator (S1), who reads the result, together with any single participant"
    )


def test_a_guarantee_that_does_not_hold_is_still_a_sentence() -> None:
    simulated = Guarantee(1.0, 0.0, Relation.REPLACE_ONE, insiders(1), None, Void.SEEDED)
    assert simulated.sentence == (
        "does not hold, because the randomness was seeded, so that anybody can repeat it; "
        "otherwise, against any single participant who reads the result, the odds between two "
        "possible answers of a user would change by at most a factor of 2.72 (epsilon 1), whatever "
        "the answers are."
    )
    assert "otherwise it would be (1, 0)-DP" in str(simulated)


def test_what_is_printed_holds_as_well() -> None:
    printed = str(Guarantee(1.00049, 1.2349e-5, Relation.REPLACE_ONE, OUTSIDER))
    assert printed.startswith("(1.001, 1.24e-05)-DP")
    assert str(Guarantee(0.1, 1e-5, Relation.REPLACE_ONE, OUTSIDER)).startswith("(0.1, 1e-05)-DP")
    draw = random.Random(2)  # noqa: S311 - repeatable on purpose
    for _ in range(200):
        value = draw.random() * 10 ** draw.uniform(-300, 2)
        assert value <= float(format_rounded_up(value, 3)) <= value * 1.01
    assert format_rounded_up(0.0, 3) == "0"


def test_bad_guarantees_are_refused_as_parameters() -> None:
    for delta in (-1, 1.5, math.nan):
        with pytest.raises(ParameterError):
            Guarantee(1.0, delta, Relation.REPLACE_ONE, OUTSIDER)
    with pytest.raises(ParameterError):
        Guarantee(1.0, 0.1, Relation.REPLACE_ONE, "S1")  # type: ignore[arg-type] # that is the point
