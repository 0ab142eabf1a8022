"""Coins on all cells of a questionnaire, as an alternative to joint noise for many questions.

Joint noise is pure epsilon-private, and its error grows with the sum of all dimensions in a group.
Coins need a delta, and their error grows like the square root of the number of cells that one
person can move: from some number of questions on they are better. There is no mechanism that flips
them for several questions; the planner says so, because it is advice to ask fewer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from faircount.accounting.composition import coins_for_moves
from faircount.core.questions import BlockKind, Question
from faircount.core.questions.sums import SumQuestion
from faircount.mechanisms.count_distribution import Z95

DELTA = 1e-6
"""The delta of the comparison."""

# The normal quantile of an interval that covers 97.5%: two of them make a ratio.
_Z975 = 2.241402727604945

# Fewer coins per server than this could be compared with joint noise at no useful epsilon.
_LARGEST_EPSILON = 20.0


@dataclass(frozen=True)
class SheetCoins:
    """What coins of both servers on all cells would be like.

    moves:       cells that one person can move together
    coins:       number of fair coins of each server on every cell
    half_widths: 95% half-widths of the questions, in percent of their range
    """

    moves: int
    coins: int
    half_widths: tuple[float, ...]


def plan_coins(
    questions: Sequence[Question], users: int, epsilon: float, draws: int
) -> SheetCoins | None:
    """Return the coins that keep epsilon at delta 1e-6, and their errors; None for a large epsilon.

    A sum with the largest number R has R^2 times as many coins as a count, so that it loses as much
    when it moves by R: up to the rounding of a normal distribution, which a comparison need not
    resolve.
    """
    if epsilon > _LARGEST_EPSILON:
        return None
    moves = sum(question.moves for question in questions)
    coins = coins_for_moves(epsilon, DELTA, moves)
    # A fair coin has the variance 1/4.
    deviation = math.sqrt(draws * coins / 4)
    widths = tuple(_half_width(question, deviation) * 100 / users for question in questions)
    return SheetCoins(moves, coins, widths)


def _half_width(question: Question, deviation: float) -> float:
    """Return the half-width of the worst cell in counts, or in ranges of a number."""
    if isinstance(question, SumQuestion) and question.may_be_missing:
        # A ratio of two sums, each of which has half of the error.
        return 2 * _Z975 * deviation
    if question.blocks[0].kind is BlockKind.ONE:
        # The counts are fitted to the known number of people.
        return Z95 * deviation * math.sqrt(1 - 1 / question.cells)
    return Z95 * deviation
