"""Privacy of hidden levels by complete enumeration of tiny surveys, and what planted holes cost.

One person of known others has any answer and any level. The distribution of both tables is computed from the
integer tables that a server draws from, so it is the distribution of what is drawn. The largest loss between
any two (answer, level) must be what is stated, and every planted hole must exceed it.
"""

import itertools
import math
from functools import lru_cache

import numpy as np
import pytest

from faircount.accounting.levels import ALWAYS, Levels
from faircount.core.questions import OneOf, Questionnaire, YesNo
from faircount.mechanisms.exact_draws import ONE
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels
from faircount.protocol.topologies.two_servers.proofs import (
    ReportLayout,
    prove,
    query_at,
    query_point,
)
from faircount.sharing.field import dtype_for

ITEMS = 3
# Beyond this value a cell has a probability below 10^-10, and the tables are finite anyway.
REACH = 14


def make_mechanism(epsilons=(1.5, 3.0, 5.0)) -> ServerLevels:
    levels = Levels.of({str(number): value for number, value in enumerate(epsilons)})
    question = OneOf(text="Which?", items=tuple("abc"))
    return ServerLevels(
        questionnaire=Questionnaire((question,)),
        groups=split_epsilon(levels.base, [[0]]),
        epsilon=levels.most,
        levels=levels,
        users=4,
    )


POINTS = [
    point for point in itertools.product(range(-REACH, REACH + 1), repeat=3) if sum(point) == 0
]


def base_distribution(mechanism: ServerLevels) -> dict[tuple[int, ...], float]:
    """Probability of every noise of the first table, from its table of radii."""
    (noise,) = mechanism.noises
    (ball,) = noise.balls
    sizes = ball.sizes(noise.table.largest)
    weights = noise.table.weights
    heights = np.cumsum([w / ONE / size for w, size in zip(weights, sizes, strict=True)][::-1])
    by_radius = heights[::-1]
    return {point: float(by_radius[ball.radius_of(point)]) for point in POINTS}


def cell_pmf(mechanism: ServerLevels) -> dict[int, float]:
    """Probability of every noise of a cell of the second table, from its table of radii."""
    (noise,) = mechanism.second_noises
    radii = [weight / ONE for weight in noise.table.weights]
    heights = np.cumsum([w / (2 * radius + 1) for radius, w in enumerate(radii)][::-1])[::-1]
    return {value: float(heights[abs(value)]) for value in range(-REACH - 1, REACH + 2)}


@lru_cache(maxsize=1)
def blocks() -> tuple[ServerLevels, dict, dict]:
    mechanism = make_mechanism()
    return mechanism, base_distribution(mechanism), cell_pmf(mechanism)


def largest_loss(distribution, other) -> float:
    """Largest loss over all outcomes that are not at the edge of what is enumerated."""
    return max(
        abs(math.log(distribution[at] / other[at]))
        for at in distribution
        if distribution[at] and other.get(at)
    )


def first_table(answer: int) -> dict[tuple[int, ...], float]:
    """The distribution of the first table without the known others, well inside its range."""
    _, base, _ = blocks()
    seen = {}
    for point in POINTS:
        if max(map(abs, point)) < REACH - 1:
            moved = tuple(value - int(item == answer) for item, value in enumerate(point))
            # The counts add up to one person, so one cell is one more than the noise.
            shifted = (moved[0] + 1, *moved[1:])
            if shifted in base:
                seen[point] = base[shifted]
    return seen


def second_table(answer: int, p: float) -> dict[tuple[int, ...], float]:
    _, _, cell = blocks()
    distribution = {}
    for point in itertools.product(range(-5, 6), repeat=ITEMS):
        outside = math.prod(cell[value] for value in point)
        inside = math.prod(cell[value - int(item == answer)] for item, value in enumerate(point))
        distribution[point] = (1 - p) * outside + p * inside
    return distribution


STATES = list(itertools.product(range(ITEMS), range(3)))


def test_every_answer_and_level_stays_within_what_is_stated() -> None:
    mechanism, _, _ = blocks()
    levels = mechanism.levels
    seconds = {
        (answer, level): second_table(answer, levels.probability(level)) for answer, level in STATES
    }
    firsts = [first_table(answer) for answer in range(ITEMS)]
    for (answer, level), (other, other_level) in itertools.combinations(STATES, 2):
        loss = largest_loss(seconds[answer, level], seconds[other, other_level])
        # Both tables have independent noise, so their losses add up, and both can be largest.
        loss += largest_loss(firsts[answer], firsts[other]) if answer != other else 0.0
        assert loss <= levels.most + 1e-9
        if level == other_level:
            assert loss == pytest.approx(levels.answer_loss(level), abs=1e-9)
        elif answer == other:
            assert loss == pytest.approx(levels.level_loss(level, other_level), abs=1e-9)
        else:
            joint = max(levels.joint_loss(level), levels.joint_loss(other_level))
            assert loss <= joint + 1e-9
            if other_level == 2:
                assert loss == pytest.approx(levels.joint_loss(level), abs=1e-9)
        for who in (level, other_level):
            stated = levels.stated_losses(who)[int(level != other_level)]
            assert who != level or level != other_level or loss <= stated + 1e-9


def test_planted_zero_sum_noise_in_the_second_table_betrays_the_level() -> None:
    """The cells would add up to the number of those inside: somebody's level is seen for sure."""
    _, base, _ = blocks()
    inside = {(noise[0] + 1, *noise[1:]) for noise in base}
    outside = set(base)
    assert not inside & outside


def test_planted_equal_noise_in_both_tables_betrays_the_answer() -> None:
    """Published cells differ by exactly those outside, of whom everybody but one is known."""
    _, base, _ = blocks()
    differences = set()
    for noise in itertools.islice(base, 50):
        first = (noise[0], noise[1] + 1, noise[2])
        differences.add(tuple(one - two for one, two in zip(first, noise, strict=True)))
    assert differences == {(0, 1, 0)}


@pytest.mark.parametrize("level", [1])
def test_a_coin_tossed_twice_costs_more_than_its_level(level) -> None:
    """A device that draws again on a retry is inside more often than its level allows."""
    levels = make_mechanism().levels
    p = levels.probability(level)
    twice = 1 - (1 - p) ** 2
    half = levels.half
    loss = (
        levels.base + math.log1p(twice * math.expm1(half)) - math.log1p(twice * math.expm1(-half))
    )
    assert loss > 1.1 * levels.stated_losses(level)[0]
    assert levels.coins[level] < int(twice * ALWAYS)


def test_a_charge_of_the_base_would_hide_what_the_weakest_level_loses() -> None:
    mechanism, _, _ = blocks()
    levels = mechanism.levels
    lost = largest_loss(first_table(0), first_table(1))
    assert lost == pytest.approx(levels.base, abs=1e-9)
    lost += largest_loss(second_table(0, 1.0), second_table(1, 1.0))
    assert lost == pytest.approx(mechanism.epsilon, abs=1e-9)
    assert mechanism.least_promise == levels[-1].epsilon


@pytest.mark.parametrize(
    ("questions", "q"),
    [
        ((YesNo(text="Yes?"),), 5),
        ((YesNo(text="Yes?"), YesNo(text="Sure?")), 11),
        ((OneOf(text="Which?", items=("a", "b", "c")),), 7),
    ],
)
def test_verifier_shares_have_one_distribution_for_all_answers_and_levels(questions, q) -> None:
    """All blinds of a small field, through the real proof and query.

    A server sees its own share of a report, which is uniform, and the other server's verifier
    share. Together they tell the verifier value of the whole report and nothing else. Its distribution over
    all blinds is the same for every answer, inside or outside: so neither server learns anything
    about answer or level before the result is opened.
    """
    levels = Levels.of({"strong": 1.0, "weak": 2.0})
    mechanism = ServerLevels(
        questionnaire=Questionnaire(questions),
        groups=split_epsilon(1.0, [range(len(questions))]),
        epsilon=2.0,
        levels=levels,
        users=3,
    )
    layout = ReportLayout(q, mechanism.answer_bits, 0, mechanism.constraints, 2)
    query = query_at(layout, query_point(layout, b"q" * 32))
    distributions = set()
    sizes = [range(len(question.answers)) for question in questions]
    for sheet in itertools.product(*sizes):
        for is_inside in (False, True):
            bits = mechanism.place_sheet(sheet, is_inside=is_inside).astype(dtype_for(q))
            seen = []
            for blind in itertools.product(range(q), repeat=layout.degree):
                report = prove(layout, bits, np.array(blind, dtype=dtype_for(q)))
                seen.append(tuple(query.verifier_shares(report[None])[0].tolist()))
            distributions.add(tuple(sorted(seen)))
    assert len(distributions) == 1
