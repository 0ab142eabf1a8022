"""Guarantees of given parameters.

The numbers of the errata, composition, and the paper's bounds beside them.
"""

import math
from typing import Any

import pytest

from faircount.accounting import exact
from faircount.accounting.composition import (
    compose_randomized_response,
    laplace_epsilon_for_releases,
)
from faircount.accounting.divergence import epsilon_for
from faircount.core.errors import FaircountError, ParameterError
from faircount.mechanisms.local_frequency import GRR
from faircount.planning import paper_statements as statement
from faircount.planning.privacy_report import privacy

ERRATA = [
    (1000, 30, 23, 0.1, None, 6.7e-17, 7.4e-3),
    (1000, 30, 23, 0.5, None, 9.2e-24, 2.5e-3),
    (1000, 30, 23, 1.0, None, 1.4e-23, 2.5e-3),
    (5000, 30, 150, 1.0, 0.9246, 3.0e-15, 3.1e-3),
    (1000, 5, 100, 0.5, None, 3.6e-6, 5.2e-7),
    (1000, 5, 100, 1.0, None, 3.9e-6, 6.0e-8),
]


@pytest.mark.parametrize(("users", "items", "floor", "epsilon", "p", "printed", "delta"), ERRATA)
def test_theorems_stand_beside_the_exact_delta(
    users: int,
    items: int,
    floor: int,
    epsilon: float,
    p: float | None,
    printed: float,
    delta: float,
) -> None:
    rate = -math.expm1(-epsilon) if p is None else p
    said = statement.sampling(rate, floor, epsilon=epsilon, users=users, items=items).to_dict()
    theorem = "theorem1_delta" if p is None else "theorem2_delta"
    other = "theorem2_delta" if p is None else "theorem1_delta"
    assert said["paper"][theorem] == pytest.approx(printed, rel=0.05)
    assert said["paper"][other] is None
    assert said["delta"] == pytest.approx(delta, rel=0.05)
    assert said["delta_zero_out"] < said["delta"]
    assert said["relation"] == "replace-one"


def test_theorems_are_silent_without_users_and_items_and_over_releases() -> None:
    for made in (
        statement.sampling(0.2, 30, epsilon=0.3),
        statement.sampling(0.2, 30, epsilon=0.3, users=2000, items=30, releases=2),
    ):
        assert made.paper == {"theorem1_delta": None, "theorem2_delta": None}


def test_the_p_of_theorem_1_may_be_rounded_but_not_larger() -> None:
    assert (
        statement.sampling(0.394, 23, epsilon=0.5, users=1000, items=30).paper["theorem1_delta"]
        is not None
    )
    assert (
        statement.sampling(0.45, 23, epsilon=0.5, users=1000, items=30).paper["theorem1_delta"]
        is None
    )


def test_insiders_and_dropouts_are_taken_off_the_floor() -> None:
    """k = 100, p = 0.5, epsilon 0.5: 1.66e-5, 3.4e-5, 7.0e-4, 0.5 for 0, 10, 50, 100 insiders."""
    for t, delta in ((0, 1.66e-5), (10, 3.4e-5), (50, 7.0e-4), (100, 0.5)):
        assert statement.sampling(0.5, 100, epsilon=0.5, insiders=t).delta == pytest.approx(
            delta, rel=0.01
        )
        assert statement.sampling(0.5, 100, epsilon=0.5, dropouts=t).delta == pytest.approx(
            delta, rel=0.01
        )
    one = statement.sampling(0.5, 100, epsilon=0.5)
    assert one.more["delta_one_more_insider"] == exact.sampling_delta(99, 0.5, 0.5)


def test_a_delta_is_solved_for_epsilon_and_back() -> None:
    made = statement.sampling(0.2, 30, delta=1e-6)
    assert made.epsilon == epsilon_for(lambda epsilon: exact.sampling_delta(30, 0.2, epsilon), 1e-6)
    assert made.delta == pytest.approx(1e-6)
    again = statement.sampling(0.2, 30, epsilon=made.epsilon)
    assert again.delta == made.delta


def test_two_releases_compose_between_one_and_the_sum() -> None:
    one = statement.sampling(0.2, 30, epsilon=0.5)
    two = statement.sampling(0.2, 30, epsilon=1.0, releases=2)
    assert two.delta is not None
    assert one.delta is not None
    assert statement.sampling(0.2, 30, epsilon=1.0).delta < two.delta < 2 * one.delta
    solved = statement.sampling(0.2, 30, delta=1e-5, releases=2)
    assert solved.delta == pytest.approx(1e-5, rel=1e-3)


def test_floor_zero_exposes_with_probability_p() -> None:
    assert statement.sampling(0.2, 0, epsilon=3.0).delta == 0.2
    assert statement.sampling(0.2, 0, epsilon=3.0, releases=2).delta == pytest.approx(1 - 0.8**2)
    assert statement.sampling(1.0, 5, epsilon=3.0, releases=2).delta == 1.0


def test_decoys_are_literal() -> None:
    made = statement.decoys(115, epsilon=1.0)
    assert made.delta == exact.decoys_delta(115, 1.0)
    assert 9e-6 < made.delta <= 1e-5 < exact.decoys_delta(114, 1.0)
    assert statement.decoys(80, delta=1e-5).epsilon == epsilon_for(
        lambda epsilon: exact.decoys_delta(80, epsilon), 1e-5
    )
    twelve = statement.decoys(1714, epsilon=1.0, releases=12).delta
    assert twelve is not None
    assert 9.9e-7 < twelve <= 1e-6
    assert made.condition is None


def test_laplace_is_pure_up_to_its_table_and_composes_as_randomized_response() -> None:
    one = statement.laplace(1.0, users=5000)
    assert one.epsilon == 1.0
    assert one.delta is not None
    assert 0 < one.delta < 2**-100
    epsilon = laplace_epsilon_for_releases(1.0, 1e-6, 12)
    assert statement.laplace(epsilon, releases=12, delta=1e-6).epsilon == pytest.approx(
        1.0, abs=1e-6
    )
    three = statement.laplace(0.5, releases=3)
    assert three.epsilon == 1.5
    assert three.delta is not None
    assert three.delta < 1e-30
    softer = statement.laplace(1.0, delta=1e-3)
    assert softer.epsilon is not None
    assert compose_randomized_response(0.5, 2, epsilon=softer.epsilon) == pytest.approx(
        1e-3, rel=1e-6
    )
    with pytest.raises(ParameterError, match="noise tables"):
        statement.laplace(1.0, delta=1e-40)


def test_two_stage_sampling_says_what_each_adversary_learns() -> None:
    """N = 30, M = 12, k = 100, p = 0.5, epsilon 0.5.

    The coordinator 3.9e-4 (uniform), 7.3e-3 (gamma 2); DPDS 1.66e-5.
    """
    for gamma, delta in ((1.0, 3.9e-4), (2.0, 7.3e-3), (math.e, 2.2e-2)):
        made = statement.two_stage(0.5, 0.4, gamma=gamma, floor=100, items=30, epsilon=0.5)
        assert made.more["s1_delta"] == pytest.approx(delta, rel=0.03)
        assert made.delta == made.more["s1_delta"]
        assert made.more["s2_delta"] == pytest.approx(1.66e-5, rel=0.01)
        assert made.more["reader_delta"] < made.more["s2_delta"]
        z = 0.4 * gamma + 0.6
        tight = math.log((0.5 + 0.5 * gamma / z) / (0.5 + 0.5 / z))
        assert made.more["s1_epsilon"] == pytest.approx(tight, abs=1e-12)
        assert made.more["s1_epsilon_paper"] == pytest.approx(math.log(gamma))


def test_two_stage_sampling_without_epsilon_or_items_says_what_it_can() -> None:
    bare = statement.two_stage(0.5, 0.4, gamma=2.0).to_dict()
    assert bare["epsilon"] is None
    assert bare["s1_epsilon"] > 0
    half = statement.two_stage(0.5, 0.4, floor=100, epsilon=0.5)
    assert half.more["s1_delta"] is None
    assert half.delta == half.more["s2_delta"]
    twice = statement.two_stage(0.5, 0.4, floor=100, items=30, epsilon=1.0, releases=2)
    assert twice.delta == pytest.approx(2 * 3.942e-4, rel=1e-3)


def test_an_alpha_typed_with_four_digits_is_a_whole_number_of_items() -> None:
    typed = statement.two_stage(0.5, 0.3333, items=12, floor=100, epsilon=0.5)
    exactly = statement.two_stage(0.5, 4 / 12, items=12, floor=100, epsilon=0.5)
    assert typed == exactly
    with pytest.raises(ParameterError, match=r"4/12 = 0.3333"):
        statement.two_stage(0.5, 0.34, items=12)


def test_gaussian_noise_beside_the_papers_sigma() -> None:
    made = statement.gaussian_noise(math.sqrt(27.8), epsilon=1.0)
    assert made.delta == pytest.approx(1e-5, rel=0.05)
    assert statement.gaussian_noise(math.sqrt(27.8), delta=1e-5).epsilon == pytest.approx(
        1.0, rel=0.01
    )
    assert (
        statement.gaussian_noise(10.0, epsilon=1.0, releases=4).delta
        == statement.gaussian_noise(5.0, epsilon=1.0).delta
    )
    classical = statement.dpdg(200, 1.0, 1e-5).paper["classical_sigma"]
    assert classical == pytest.approx(math.sqrt(46.9), rel=0.01)


def test_the_papers_share_of_gaussian_noise_protects_next_to_nothing() -> None:
    made = statement.dpdg(800, 1.0, 1e-6)
    assert made.delta is not None
    assert made.delta <= 1e-6
    printed = made.paper["printed_share_delta"]
    assert printed is not None
    assert printed > 0.99
    twelve = statement.dpdg(800, 0.3, 1e-6, releases=12)
    assert twelve.epsilon is not None
    assert 0.3 < twelve.epsilon < 3.6


@pytest.mark.parametrize("name", sorted(statement.LOCAL))
def test_local_mechanisms_are_pure(name: str) -> None:
    one = statement.local(name, 1.0)
    assert (one.epsilon, one.delta, one.delta_zero_out) == (1.0, 0.0, None)
    three = statement.local(name, 1.0, releases=3)
    assert (three.epsilon, three.delta) == (3.0, 0.0)
    softer = statement.local(name, 0.1, releases=20, delta=1e-6)
    assert softer.epsilon is not None
    assert softer.epsilon < 2.0


@pytest.mark.parametrize(
    ("name", "items"), [("grr", 1000), ("grr", 3), ("oue", 1000), ("duchi", 2), ("pm", 2)]
)
@pytest.mark.parametrize("delta", [0.02, 1e-6])
def test_a_local_report_and_the_library_agree_at_a_delta(
    name: str, items: int, delta: float
) -> None:
    """One of 1000 items is reported truthfully 2 times in 100 at epsilon 3.

    (0, 0.02) holds, and both say so.
    """
    about = {"items": items} if name in ("grr", "oue") else {}
    said = statement.local(name, 3.0, delta=delta, **about)
    assert (
        said.epsilon == statement.LOCAL[name](epsilon=3.0, **about).guarantee(delta=delta).epsilon
    )
    assert (said.epsilon == 0) == (items == 1000 and name == "grr" and delta == 0.02)
    two = statement.local(name, 1.5, releases=2, delta=delta, **about)
    assert two.delta is not None
    assert two.delta <= delta


def test_exactly_one_of_epsilon_and_delta_is_given() -> None:
    for both in ({}, {"epsilon": 1.0, "delta": 1e-6}):
        with pytest.raises(FaircountError, match="give epsilon"):
            statement.sampling(0.2, 30, **both)
        with pytest.raises(ParameterError, match="give epsilon or delta"):
            statement.decoys(30, **both)
        with pytest.raises(ParameterError, match="give epsilon or delta"):
            statement.decoys(30, releases=2, **both)


def test_a_large_delta_is_cautioned_about() -> None:
    assert statement.sampling(0.3, 0, epsilon=1.0).to_dict()["notes"]
    assert statement.decoys(115, epsilon=1.0).to_dict()["notes"] == []


def test_a_delta_is_the_same_number_wherever_it_is_printed() -> None:
    """0.002509 in the sentence stood beside 0.0025086 in the note."""
    made = statement.sampling(0.3934, 23, epsilon=0.5)
    assert "except with probability 0.002509 (delta)" in str(made)
    assert made.notes[0].startswith("a delta of 0.002509 is large")


def test_two_items_of_laplace_have_one_draw_and_an_exact_total() -> None:
    pair = privacy("laplace", epsilon=0.1, items=2, releases=12, delta=1e-6)
    more = privacy("laplace", epsilon=0.1, releases=12, delta=1e-6)
    assert compose_randomized_response(0.1, 12, epsilon=pair.epsilon) <= 1e-6
    assert compose_randomized_response(0.1, 12, epsilon=pair.epsilon * 0.999) > 1e-6
    # One draw for all of epsilon composes a little worse than two for half of it.
    assert more.epsilon < pair.epsilon < 1.2
    assert pair.delta_zero_out == 1.0
    assert more.delta_zero_out < 1e-6
    assert more.epsilon == privacy("laplace", epsilon=0.1, items=9, releases=12, delta=1e-6).epsilon


def test_an_exact_total_says_what_zero_out_loses() -> None:
    assert "missing answer is seen" in privacy("laplace", epsilon=1.0, items=2).notes[0]
    assert privacy("laplace", epsilon=1.0, items=3).notes == ()


@pytest.mark.parametrize(
    ("more", "is_bound"),
    [
        ({}, False),
        ({"insiders": 1}, True),
        ({"dropouts": 1}, True),
        ({"users": 900, "items": 12}, False),
        ({"users": 300, "items": 2}, False),
        ({"users": 900, "items": 2}, True),
        ({"users": 300, "items": 2, "releases": 2}, True),
    ],
    ids=str,
)
def test_a_bound_on_the_delta_of_sampling_is_called_one(
    more: dict[str, Any], is_bound: bool
) -> None:
    made = privacy("dpds", p=0.3, floor=60, epsilon=0.2, **more)
    assert made.is_bound == is_bound
    assert made.to_dict()["delta_is_bound"] == is_bound
    assert any("upper bound" in note for note in made.notes) == is_bound


def test_a_statement_prints_its_sentence() -> None:
    shown = str(privacy("dpds", p=0.2, floor=30, epsilon=0.3))
    assert shown.startswith("dpds: against")
    assert "except with probability 0.0006512 (delta)" in shown
    assert str(privacy("laplace", epsilon=1.0, releases=2)).startswith("2 releases of")
    # Without epsilon and delta there is no guarantee to put into a sentence.
    assert str(privacy("tss", p=0.2, alpha=0.5)).startswith("Statement(")


def test_unknown_parameters_are_named_even_where_others_are_missing() -> None:
    with pytest.raises(ParameterError, match=r"has no eps \(use epsilon\) and needs p, floor"):
        privacy("dpds", eps=1)
    with pytest.raises(ParameterError, match=r"server-laplace has no eps \(use epsilon\)"):
        privacy("server-laplace", eps=1)


def test_a_mechanism_object_is_refused_with_what_to_pass() -> None:
    with pytest.raises(ParameterError, match=r"name of a mechanism, as in fc\.privacy"):
        privacy(GRR(items=3, epsilon=1.0))  # type: ignore[arg-type]
