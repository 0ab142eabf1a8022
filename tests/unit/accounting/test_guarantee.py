"""A guarantee in words and as plain values: rounded up, with what it supposes, and void where it does not hold."""

import json
from dataclasses import replace

import pytest

import faircount as fc
from faircount.accounting.composition import parallel, sum_epsilons
from faircount.accounting.guarantee import (
    GENERATOR,
    OUTSIDER,
    SEEDED,
    Guarantee,
    Relation,
    delta_in_words,
)
from faircount.cli.show import promise
from faircount.core.entropy import SeededStream

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
    assert delta_in_words(delta) == said


def test_a_delta_below_the_generators_own_assumption_states_it() -> None:
    tiny = replace(SOUND, delta=7.1e-34)
    for words in (str(tiny), promise(tiny)):
        assert "below 1e-30" in words
        assert "e-34" not in words
        assert f"supposing that {GENERATOR}" in words
    for words in (str(SOUND), promise(SOUND)):
        assert "supposing" not in words
    assert tiny.to_dict()["supposes"] == SOUND.to_dict()["supposes"] == GENERATOR
    assert tiny.to_dict()["delta"] == 7.1e-34


def test_the_sentence_rounds_epsilon_and_delta_up() -> None:
    words = promise(replace(SOUND, epsilon=1.00001, delta=1.201e-6))
    assert "epsilon 1.001" in words
    assert "1.3e-06" in words


@pytest.mark.parametrize("mechanism", [fc.Laplace(items=CITIES, epsilon=1.0), fc.GRR(items=CITIES, epsilon=1.0)])
def test_the_guarantee_of_a_seeded_run_says_that_it_does_not_hold(mechanism: fc.Laplace | fc.GRR) -> None:
    seeded, real = fc.run(ANSWERS, mechanism, entropy=SeededStream(1)), fc.run(ANSWERS, mechanism)
    assert seeded.guarantee.void == SEEDED
    assert str(seeded.guarantee).startswith("does not hold, because the randomness was seeded")
    assert promise(seeded.guarantee).startswith("does not hold, because the randomness was seeded")
    assert all(each.void == SEEDED for each in seeded.guarantees)
    said = json.loads(json.dumps(seeded.to_dict()))["guarantee"]
    assert (said["holds"], said["void"]) == (False, SEEDED)
    assert real.guarantee.void is None
    assert real.guarantee.to_dict()["holds"] is True
    assert seeded.guarantee == replace(real.guarantee, void=SEEDED)


def test_the_guarantee_of_a_seeded_mean_says_that_it_does_not_hold() -> None:
    assert fc.run([0.5, -0.5, 0.1], fc.Duchi(epsilon=1.0), entropy=SeededStream(1)).guarantee.void == SEEDED
    assert fc.run([0.5, -0.5, 0.1], fc.Duchi(epsilon=1.0)).guarantee.void is None


@pytest.mark.parametrize("combine", [parallel, sum_epsilons])
def test_one_void_guarantee_leaves_none_of_all_together(combine) -> None:  # type: ignore[no-untyped-def]
    assert combine([SOUND, SOUND]).void is None
    assert combine([SOUND, replace(SOUND, void=SEEDED)]).void == SEEDED


def test_consistent_frequencies_say_that_they_are_biased() -> None:
    result = fc.run(ANSWERS, fc.Laplace(items=CITIES, epsilon=1.0))
    assert "biased" in result.to_dict()["about_consistent"]
    assert "biased" in result.to_frame().attrs["about_consistent"]
