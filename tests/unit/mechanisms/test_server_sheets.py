"""Joint noise of both servers: what is opened, refused and guaranteed, and whole surveys of sheets."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import faircount as fc
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError
from faircount.core.questions import (
    AnyOf,
    Bands,
    Branch,
    MostOf,
    Number,
    OneOf,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.demo.invalid_reports import INVALID
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_joint import MAX_ITEMS, ServerJoint
from faircount.mechanisms.server_noise import S1_AND_USERS, S2_AND_USERS, ServerLaplace
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol import EXPLICIT, MASKED, SERVERS
from faircount.protocol.simulator import play, set_up
from faircount.protocol.survey.parameters import Keys, SurveyParameters, propose
from faircount.sharing.field import from_signed

QUESTIONS = (
    OneOf(text="Which site?", items=("North", "South", "East"), skip=True),
    YesNo(text="Would you recommend us?"),
    AnyOf(text="What do you use?", items=("a", "b", "c"), skip=True),
    MostOf(text="What matters most?", items=("a", "b", "c", "d"), most=2),
    ScaleCounts(text="How satisfied?", items=("low", "middle", "high")),
    ScaleMean(text="How tired?", items=("low", "middle", "high"), only_if=Branch(1, (1,))),
    Number(text="Years?", low=Fraction(0), high=Fraction(50), skip=True),
    Bands(text="Age?", edges=(Fraction(0), Fraction(30), Fraction(99)), only_if=Branch(0, (0,))),
    Table(text="Site?", columns_text="Shift?", rows=("N", "S"), columns=("early", "late")),
)


KEYS = Keys(b"\1" * 32, b"\2" * 32, b"\3" * 32, b"\4" * 32, b"\5" * 32)


def make_mechanism(questions=QUESTIONS, epsilon=1.0, groups=None, **fields) -> ServerSheets:
    numbers = [range(len(questions))] if groups is None else groups
    return ServerSheets(
        questionnaire=Questionnaire(questions),
        groups=split_epsilon(epsilon, numbers),
        epsilon=epsilon,
        **fields,
    )


def make_sheets(count: int, seed: int) -> list[tuple[object, ...]]:
    draw = np.random.default_rng(seed)
    some = ((), (0,), (0, 2), None)
    sheets = []
    for _ in range(count):
        site = int(draw.integers(4))
        advises = int(draw.integers(2))
        sheets.append(
            (
                site,
                advises,
                some[draw.integers(4)],
                some[draw.integers(3)],
                int(draw.integers(3)),
                int(draw.integers(3)) if advises else None,
                (None, 0, 17, 50)[draw.integers(4)],
                int(draw.integers(2)) if site == 0 else 2,
                int(draw.integers(4)),
            )
        )
    return sheets


@pytest.mark.parametrize(
    "groups", [[range(9)], [[at] for at in range(9)], [[6], [0, 2, 4, 8], [1, 3, 5, 7]]]
)
def test_a_survey_without_noise_counts_every_kind_exactly(groups) -> None:
    """At epsilon 40 for each of the groups all noise is 0, except with probability 10^-14."""
    mechanism = make_mechanism(epsilon=40.0 * len(groups), groups=groups)
    sheets = make_sheets(40, seed=len(groups))
    result = play(sheets, mechanism, SERVERS, entropy=SeededStream(1))
    assert result.cells.tolist() == sum(map(mechanism.cells_of, sheets)).tolist()
    assert result.included == 40


def test_a_survey_with_noise_keeps_the_totals() -> None:
    result = play(make_sheets(30, seed=4), make_mechanism(), SERVERS, entropy=SeededStream(2))
    for question, where in zip(QUESTIONS, Questionnaire(QUESTIONS).cell_slices, strict=True):
        if question.blocks[0].kind == "one":
            assert result.cells[where].sum() == 30
    assert result.guarantee.epsilon == 1.0
    assert result.guarantee.delta < 1e-20


def test_published_parameters_give_the_same_mechanism() -> None:
    mechanism = make_mechanism(groups=[[0, 3, 6], [1, 2, 4, 5, 7, 8]], users=50, spare_bits=3)
    params = set_up(mechanism, SERVERS, SeededStream(1)).params
    assert SurveyParameters.parse(params.published) == params
    assert params.mechanism.modulus > 8 * 50 * 50


def test_both_servers_draw_the_whole_noise_for_all_cells() -> None:
    mechanism = make_mechanism(users=5)
    one = mechanism.server_noise(SeededStream(1))
    assert one.shape == (mechanism.N,)
    spread = [
        mechanism.noise_in(5).distribution(number).variance for number in range(len(QUESTIONS))
    ]
    alone = [
        mechanism._noise_of_one.distribution(number).variance for number in range(len(QUESTIONS))
    ]
    assert spread == pytest.approx([2 * variance for variance in alone])


def test_noise_never_leaves_the_field() -> None:
    """The largest noise of both servers together, in every cell, with nobody or everybody in it."""
    mechanism = make_mechanism(users=20)
    most = np.array(mechanism.reaches)
    tops = 20 * np.array(mechanism.tops)
    for cells in (-most, tops + most):
        residues = from_signed(cells, mechanism.modulus)
        signed = residues.astype(np.int64)
        signed[signed > mechanism.modulus + mechanism.min_sum - 1] -= mechanism.modulus
        assert signed.tolist() == cells.tolist()


@pytest.mark.parametrize("side", [-1, 1])
def test_a_cell_outside_its_range_is_corrupt(side) -> None:
    """Yes/no has no total that would show it; the number's cell is wider and shows less."""
    mechanism = make_mechanism((YesNo(text="a"), Number(text="b", low=0, high=9)), users=20)
    reach = mechanism.reaches[0]
    edge = -reach if side < 0 else 20 + reach
    fine = from_signed(np.array([edge, 5]), mechanism.modulus)
    assert mechanism.decode(fine, 20).tolist() == [edge, 5]
    spoiled = from_signed(np.array([edge + side, 5]), mechanism.modulus)
    with pytest.raises(CorruptSumError, match="outside its range"):
        mechanism.decode(spoiled, 20)


def test_totals_that_do_not_fit_the_people_are_corrupt() -> None:
    mechanism = make_mechanism((OneOf(text="a", items=("x", "y", "z")),), users=20)
    fine = from_signed(np.array([25, -9, 4]), mechanism.modulus)
    assert mechanism.decode(fine, 20).tolist() == [25, -9, 4]
    for included, counts in ((19, [25, -9, 4]), (20, [25, -9, 5])):
        with pytest.raises(CorruptSumError, match="do not add up"):
            mechanism.decode(from_signed(np.array(counts), mechanism.modulus), included)


def test_the_guarantee_counts_on_one_server() -> None:
    mechanism = make_mechanism(users=20)
    assert mechanism.adversaries == (S1_AND_USERS, S2_AND_USERS, OUTSIDER)
    deltas = [mechanism.delta_at(1.0, who, Relation.REPLACE_ONE) for who in mechanism.adversaries]
    assert max(deltas) == min(deltas) < 1e-20
    assert mechanism.delta_at(1.0, COLLECTOR, Relation.REPLACE_ONE) == 1
    # An exact total betrays a missing sheet.
    assert mechanism.delta_at(1.0, OUTSIDER, Relation.ZERO_OUT) == 1
    assert mechanism.remaining_guarantee(7).epsilon == 1.0


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED])
def test_topologies_without_proofs_refuse_sheets(topology) -> None:
    with pytest.raises(ParameterError, match="servers"):
        set_up(make_mechanism(users=20), topology, SeededStream(1))


@pytest.mark.parametrize(
    "mechanism",
    [
        fc.Laplace(items=3, users=20, epsilon=1.0),
        fc.DPDS(items=3, users=20, p=0.5),
        fc.PlacedCoins(items=3, users=20, coins=9, epsilon=1.0),
    ],
    ids=lambda made: made.name,
)
def test_mechanisms_for_one_question_say_that_they_cannot_count_several(mechanism) -> None:
    with pytest.raises(ParameterError, match="server-joint"):
        set_up(
            mechanism,
            SERVERS,
            SeededStream(1),
            epsilon=5.0,
            questionnaire=Questionnaire((YesNo(text="a"), YesNo(text="b"))),
        )


def test_sheets_of_another_length_or_kind_are_refused() -> None:
    mechanism = make_mechanism(users=5)
    good = make_sheets(1, seed=1)[0]
    for bad in (good[:-1], (*good, 0), (9, *good[1:]), ((0,), *good[1:])):
        with pytest.raises(AnswerError):
            mechanism.report_bits(bad, SeededStream(1))


def test_false_sheets_are_not_counted() -> None:
    """Every forgery of `INVALID`, sent by one of the people in a survey of three questions."""
    from simulation.faults import Kind, Op, step
    from simulation.parties import Simulation

    for how in range(len(INVALID)):
        simulation = Simulation(SERVERS, users=6, seed=0)
        for kind in (Kind.INVALID, Kind.ROUND, Kind.DEADLINE, Kind.EXCHANGE):
            step(simulation, Op(kind, who=1, how=how))
        assert simulation.monitor.problems == []


# --- one question on a table


@pytest.mark.parametrize("items", [2, 3, 5, 12, 100])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_one_question_has_a_smaller_error_than_independent_noise(items, epsilon) -> None:
    joint = ServerJoint(items=items, users=800, epsilon=epsilon)
    independent = ServerLaplace(items=items, users=800, epsilon=epsilon)
    assert joint.expected_errors(800)[0] <= independent.expected_errors(800)[0]
    # Joint noise is whole counts, and fitted counts are fractions: half a count may be lost.
    assert joint.expected_errors(800)[1] <= independent.expected_errors(800)[1] + 0.5 / 800


@pytest.mark.parametrize("items", [2, 4])
def test_the_noise_of_one_question_adds_up_to_zero(items) -> None:
    mechanism = ServerJoint(items=items, users=10, epsilon=0.5)
    draws = np.array([mechanism.server_noise(SeededStream(seed)) for seed in range(2000)])
    assert not draws.sum(axis=1).any()
    # Six standard errors of a variance: about one false alarm in 10^8.
    distribution = mechanism.single_server_channel.noise
    assert distribution is not None
    fourth = float((distribution.pmf * distribution.values**4).sum())
    slack = 6 * np.sqrt((fourth - distribution.variance**2) / len(draws))
    assert np.abs(draws.var(axis=0) - distribution.variance).max() < slack


def test_a_survey_of_one_question_asks_it_as_a_questionnaire() -> None:
    params = set_up(
        ServerJoint(items=["a", "b"], users=10, epsilon=1.0),
        SERVERS,
        SeededStream(1),
        question="Which?",
    ).params
    assert isinstance(params.mechanism, ServerSheets)
    assert params.questionnaire.text == "Which?"
    # Two answers are one bit and one cell.
    assert (params.mechanism.answer_bits, params.N) == (1, 1)


def test_counts_of_one_question_that_do_not_fit_are_corrupt() -> None:
    mechanism = ServerJoint(items=3, users=20, epsilon=1.0)
    with pytest.raises(CorruptSumError, match="do not add up"):
        mechanism.decode(from_signed(np.array([25, -9, 5]), mechanism.modulus), 20)
    beyond = mechanism._reach + 21
    with pytest.raises(CorruptSumError, match="outside its range"):
        mechanism.decode(from_signed(np.array([beyond, 20 - beyond, 0]), mechanism.modulus), 20)


def test_long_lists_are_left_to_independent_noise() -> None:
    with pytest.raises(ParameterError, match="server-laplace"):
        ServerJoint(items=MAX_ITEMS + 1, users=10, epsilon=1.0)
    with pytest.raises(ParameterError, match="at least 2"):
        replace(ServerJoint(items=2, users=10, epsilon=1.0), items=1)


def test_a_promise_below_what_the_groups_spend_is_refused() -> None:
    """Even with a delta for which it would hold: the page refuses it, and so must everybody."""
    mechanism = make_mechanism(groups=[[0, 1, 2, 3], [4, 5, 6, 7, 8]], users=20)
    assert mechanism.guarantee(epsilon=0.9).delta < 0.1
    with pytest.raises(RefusedError, match="spend epsilon 1 together: promise that much"):
        propose(mechanism, KEYS, survey=bytes(16), topology=SERVERS, epsilon=0.9)
    # The refusal inside a search for the minimum has its own words.
    with pytest.raises(RefusedError, match="does not give"):
        replace(
            propose(mechanism, KEYS, survey=bytes(16), topology=SERVERS), epsilon=0.9, delta=0.1
        )
    kept = propose(mechanism, KEYS, survey=bytes(16), topology=SERVERS, epsilon=1.1)
    assert kept.epsilon == 1.1
