"""Hidden levels: coins and losses against known answers, and against complete enumeration."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from faircount.accounting.composition import compose, randomized_response
from faircount.accounting.levels import (
    ALWAYS,
    Level,
    Levels,
    coin_for,
    second_table_pairs,
    vote_pair,
)
from faircount.core.errors import ParameterError
from faircount.mechanisms.joint_noise.balls import ZeroSumBall
from faircount.mechanisms.joint_noise.losses import informed_share

UNIT = 1 << 128
REACH = 40


def levels_of(*epsilons: float) -> Levels:
    return Levels.of({f"level {number}": epsilon for number, epsilon in enumerate(epsilons)})


@pytest.mark.parametrize(
    ("epsilons", "coin", "digits"),
    [
        ((0.25, 0.5, 1.0), 0.331603979, 9),
        ((0.1, 0.4, 1.0), 0.330847322, 9),
        ((0.1, 0.7, 1.0), 0.669152678, 9),
        ((0.5, 1.0, 4.0), 0.106055330, 9),
        ((0.5, 2.0, 4.0), 0.4117, 4),
        ((0.5, 1.0, 2.0), 0.3265, 4),
    ],
)
def test_known_coins(epsilons, coin, digits) -> None:
    levels = levels_of(*epsilons)
    assert levels.coins[0] == 0
    assert levels.coins[-1] == ALWAYS
    assert round(levels.probability(1), digits) == coin


@pytest.mark.parametrize(("base", "most"), [(0.1, 1.0), (0.5, 4.0), (0.25, 0.3), (1.0, 30.0)])
def test_half_way_is_a_fair_coin_rounded_down(base, most) -> None:
    levels = Levels(
        (
            Level.of("a", base),
            Level("b", (Fraction(base) + Fraction(most)) / 2),
            Level.of("c", most),
        )
    )
    assert levels.coins[1] in (ALWAYS // 2, ALWAYS // 2 - 1)


@pytest.mark.parametrize(
    ("epsilons", "together"),
    [
        ((0.25, 0.5, 1.0), (0.625, 0.765524, 1.0)),
        ((0.1, 0.4, 1.0), (0.55, 0.722292, 1.0)),
        ((0.5, 2.0, 4.0), (2.25, 3.33, 4.0)),
    ],
)
def test_known_losses_of_answer_and_level(epsilons, together) -> None:
    levels = levels_of(*epsilons)
    for number, (epsilon, both) in enumerate(zip(epsilons, together, strict=True)):
        assert levels.answer_loss(number) == pytest.approx(epsilon, rel=1e-12)
        assert levels.joint_loss(number) == pytest.approx(both, abs=5e-3 if both == 3.33 else 1e-6)
        answer, stated = levels.stated_losses(number)
        assert answer == epsilon
        assert levels.joint_loss(number) <= stated <= epsilons[-1]
    # Who changes from one end to the other shows a vote, and no more.
    assert levels.level_loss(0, 2) == pytest.approx(levels.half)
    assert levels.level_loss(1, 1) == 0


@pytest.mark.parametrize("epsilons", [(0.1, 0.4, 1.0), (0.5, 1.0, 4.0), (1.0, 1.01, 1.02)])
def test_a_coin_is_never_rounded_up(epsilons) -> None:
    """The exact coin, with 80 digits, lies less than one unit above the integer."""
    from decimal import Decimal, localcontext

    levels = levels_of(*epsilons)
    with localcontext(prec=80):
        base, middle, most = (Decimal(epsilon) for epsilon in epsilons)
        u = (-(most - base) / 2).exp()
        w = (-(middle - base)).exp()
        exact = (1 - w) * u / ((1 - u) * (w + u)) * UNIT
        assert 0 <= exact - levels.coins[1] < 2
    assert coin_for(levels.scaled_half, levels.scaled_half) <= ALWAYS // 2


def distributions(halves, votes, p: float) -> np.ndarray:
    """The distribution of the second table, all cells of all questions, up to what lies far outside."""
    axis = np.arange(-REACH, REACH + 1)

    def cell(half: float, vote: int) -> np.ndarray:
        distribution = np.exp(-half * np.abs(axis - vote))
        return distribution / np.exp(-half * np.abs(np.arange(-400, 401))).sum()

    def table(answers) -> np.ndarray:
        whole = np.ones(1)
        for half, answer in zip(halves, answers, strict=True):
            for item in range(2):
                whole = np.multiply.outer(whole, cell(half, int(item == answer)))
        return whole[0]

    nobody = (None,) * len(halves)
    return (1 - p) * table(nobody) + p * table(votes)


@pytest.mark.parametrize("p", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("q", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("half", [0.25, 1.0])
def test_every_outcome_of_one_question_stays_within_the_formulas(p, q, half) -> None:
    """Any answer and level against any other: the largest loss is the stated one, and attained."""
    gain = lambda share: math.log1p(share * math.expm1(half))  # noqa: E731
    fall = lambda share: half if share == 1 else -math.log1p(share * math.expm1(-half))  # noqa: E731
    mine = distributions((half,), (0,), p)[1:-1, 1:-1]
    other_answer = np.abs(np.log(mine) - np.log(distributions((half,), (1,), q)[1:-1, 1:-1])).max()
    assert other_answer == pytest.approx(max(gain(p) + fall(q), gain(q) + fall(p)), abs=1e-12)
    same_answer = np.abs(np.log(mine) - np.log(distributions((half,), (0,), q)[1:-1, 1:-1])).max()
    expected = max(abs(gain(p) - gain(q)), abs(fall(p) - fall(q)))
    assert same_answer == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("p", [0.3, 1.0])
def test_votes_of_several_questions_cost_what_their_sum_costs(p, monkeypatch) -> None:
    monkeypatch.setattr(f"{__name__}.REACH", 6)
    halves = (0.3, 0.5)
    loss = np.log(distributions(halves, (0, 0), p)) - np.log(distributions(halves, (1, 1), p))
    inner = loss[1:-1, 1:-1, 1:-1, 1:-1]
    levels = Levels((Level.of("a", 1.0), Level.of("b", 1.0 + 2 * sum(halves))))
    half = levels.half
    assert inner.max() == pytest.approx(
        math.log1p(p * math.expm1(half)) - math.log1p(p * math.expm1(-half)), abs=1e-9
    )


def test_pairs_give_the_known_deltas() -> None:
    """e1 = 0.5, eL = 1.5, a fair coin, three items."""
    base = randomized_response(0.5, informed_share((ZeroSumBall(3),), UNIT // 2))
    pairs = [base, *second_table_pairs((UNIT // 2,), 0.5)]
    assert compose([pairs], epsilon=0.4) == pytest.approx(0.089078, abs=1e-6)
    assert compose([pairs], epsilon=0.8) == pytest.approx(0.023889, abs=1e-6)


@pytest.mark.parametrize("halves", [(0.5,), (0.2, 0.3), (0.1, 0.1, 0.3)])
def test_the_weakest_level_dominates_all_others(halves) -> None:
    scaled = [int(half * UNIT) for half in halves]
    weakest = second_table_pairs(scaled, 1.0)
    # The same two distributions, written as one pair of all votes and as a pair per question.
    pair = vote_pair(scaled, 1.0)
    for epsilon in (0.1, 0.4, 0.8):
        most = compose([weakest], epsilon=epsilon)
        assert compose([(pair, pair.swap())], epsilon=epsilon) == pytest.approx(most, abs=1e-9)
        for p, q in itertools.product((0.0, 0.3, 0.7, 1.0), repeat=2):
            mixed = (vote_pair(scaled, p), vote_pair(scaled, q).swap())
            assert compose([mixed], epsilon=epsilon) <= most + 1e-9


def test_many_questions_count_as_one_that_costs_as_much() -> None:
    scaled = [UNIT // 10 + (1 << number) for number in range(14)]
    pair = vote_pair(scaled, 0.5)
    assert pair.log_p.size == 2
    losses = pair.log_p - pair.log_q
    assert losses.max() == pytest.approx(math.log1p(0.5 * math.expm1(1.4)))


@pytest.mark.parametrize(
    ("epsilons", "why"),
    [
        ({"only": 1.0}, "2 or 3"),
        ({"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4}, "2 or 3"),
        ({"a": 1.0, "b": 1.0}, "ascending"),
        ({"normal": 0.5, "very strong": 1.0}, "names of weaker and weaker levels"),
        ({"ours": 0.25, "normal": 0.5, "strong": 1.0}, "names of weaker and weaker levels"),
        ({"": 0.5, "b": 1.0}, "level"),
    ],
)
def test_levels_that_mean_nothing_are_refused(epsilons, why) -> None:
    with pytest.raises(ParameterError, match=why):
        Levels.of(epsilons)


def test_losses_of_absurd_levels_are_stated_too() -> None:
    """20 questions may offer them, and a participant reads what they mean before answering."""
    levels = levels_of(10.0, 810.0, 1610.0)
    stated = [levels.stated_losses(number) for number in range(3)]
    assert stated[0] == (10.0, pytest.approx(810.0))
    # Its coin is rounded down, to never: that protects better than was stated.
    assert stated[1] == (810.0, pytest.approx(810.0))
    assert stated[2] == (1610.0, 1610.0)


def test_levels_are_named_once_and_in_order() -> None:
    with pytest.raises(ParameterError, match="a name of its own"):
        Levels((Level.of("a", 0.5), Level.of("a", 1.0)))
    with pytest.raises(ParameterError, match="ascending"):
        Levels((Level.of("a", 1.0), Level.of("b", 0.5)))
    assert Levels.of({"weak": 1.0, "strong": 0.5}).names == ("strong", "weak")
    assert levels_of(0.5, 1.0).position_of("level 1") == 1
    with pytest.raises(ParameterError, match="choose one of the levels level 0, level 1"):
        levels_of(0.5, 1.0).position_of("level 2")
    with pytest.raises(ParameterError, match="choose one of the levels"):
        levels_of(0.5, 1.0).check_position(2)
