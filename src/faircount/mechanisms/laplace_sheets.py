"""Discrete Laplace noise of the users on the cells of a questionnaire.

    user      cells_of       what the answers add to every cell
              draw_noise     plus the user's piece of the noise, drawn for every cell by itself
    revealed  the cells of all people with all pieces of the noise

This is `laplace.py` for sheets: any h users together add the whole noise of every cell, so no user
knows it, and those who collude or drop out are allowed for. Noise for all cells at once, as both
servers draw it (`server_sheets.py`), cannot be divided among users: nobody must know its radius. So
every cell has noise of its own, and epsilon is split over the questions (`split_noise.py`).

Reports carry no proofs: a user who does not follow the protocol can change any sum by any number.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses, compose, laplace_shift
from faircount.accounting.divergence import LossPair
from faircount.accounting.exact import laplace_shift_loss
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError
from faircount.core.questions import (
    BlockKind,
    OneOf,
    QuestionGroup,
    Questionnaire,
    Sheet,
    YesNo,
)
from faircount.core.validation import check_epsilon, check_integer, check_positive
from faircount.mechanisms.base import set_fields
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.exact_draws import DrawTable
from faircount.mechanisms.laplace import SMALLEST_EPSILON, laplace_bound, laplace_table
from faircount.mechanisms.secret_shared import (
    AUDITED_USERS,
    OVERFLOW_PROBABILITY,
    NoiseOfUsers,
)
from faircount.mechanisms.sheets import SheetMechanism, extreme_sheets
from faircount.mechanisms.split_noise import SplitNoise, step_loss
from faircount.mechanisms.survey_log import SurveyLog
from faircount.mechanisms.worst_pair import Marginal, WorstPair
from faircount.sharing.field import from_signed, sum_rows, to_signed

# Smallest loss per step of a cell: the table of a smaller one would have more rows than the next.
_SMALLEST_LOSS = SMALLEST_EPSILON / 2

_LONGEST_TABLE = 377_000

# Rows of all tables together: a device computes all of them before anybody answers.
_MAX_ROWS = 1_000_000

# Rows of a table for a loss of 1 per step, on both sides of 0.
_ROWS_PER_STEP = 189

# Rounding error of a sum of pure losses.
_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True, kw_only=True)
class LaplaceSheets(SheetMechanism, NoiseOfUsers):
    """Every user adds discrete Laplace noise to all cells: pure epsilon for all answers together.

    A question has a group of its own, with its share of epsilon.
    """

    name: ClassVar[str] = "laplace-sheets"

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, epsilon=check_positive("epsilon", self.epsilon), groups=tuple(self.groups))
        self.questionnaire.check_size()
        self.questionnaire.check_groups(self.groups, Fraction(self.epsilon))
        # check: split-groups - two questions of a group would both spend its share of epsilon
        if any(len(group.questions) != 1 for group in self.groups):
            raise ParameterError(
                f"{self.name} has noise for every question by itself: a group holds one question"
            )
        self._check_losses()

    def _check_losses(self) -> None:
        """Refuse a share of epsilon for which the table of the noise would be too long."""
        for number, question in enumerate(self.questionnaire.questions):
            share = self.group_of(number).epsilon
            needed = question.moves * max(block.reach for block in question.blocks)
            if step_loss(question, share) >= _SMALLEST_LOSS:
                continue
            least = needed * _SMALLEST_LOSS
            advice = "allow a larger epsilon or ask fewer questions"
            if question.blocks[0].kind is BlockKind.NUMBER:
                advice = f"choose a larger step, {advice}"
            raise ParameterError(
                f"question {number + 1} ({question.size}) has the share {float(share):.3g} of "
                f"epsilon, and participants' noise needs at least {least:.3g} for it: one person "
                f"can move its cells by {needed:,} together, and the table from which a device "
                f"draws would have more than {_LONGEST_TABLE:,} rows; {advice}"
            )
        rows = sum(_ROWS_PER_STEP / loss for loss in set(self._losses))
        if rows > _MAX_ROWS:
            raise ParameterError(
                f"the tables from which a device draws its noise would have {rows:,.0f} rows, and "
                f"{_MAX_ROWS:,} are possible: allow a larger epsilon, ask fewer questions, or "
                "want the same error (target) of questions of one kind, which share a table then"
            )

    @classmethod
    def example(cls, users: int, items: int) -> "LaplaceSheets":
        """Return a small instance on which the tests of the interface run."""
        labels = tuple(str(item) for item in range(items))
        questions = (OneOf(text="Which one?", items=labels), YesNo(text="Sure?"))
        groups = (QuestionGroup.of(1.5, [0]), QuestionGroup.of(0.5, [1]))
        return cls(questionnaire=Questionnaire(questions), groups=groups, epsilon=2.0, users=users)

    # --- noise

    @cached_property
    def _losses(self) -> tuple[float, ...]:
        """What a change by one loses in every cell."""
        whole = SplitNoise(self.questionnaire, self.groups)
        return tuple(whole.loss(number, place) for number, place, _ in self.layout)

    @cached_property
    def _tables(self) -> dict[float, tuple[DrawTable, float]]:
        """Loss -> the table of one user's noise, and its distance from the ideal distribution.

        Cells with the same loss share a table.
        """
        return {loss: laplace_table(2 * loss, self.h) for loss in dict.fromkeys(self._losses)}

    @property
    def noise_tables(self) -> str:
        """All tables, as published parameters hash them, in the order of the cells."""
        lines = []
        for number, (table, _) in enumerate(self._tables.values()):
            lines.append(f"table {number}\n")
            rows = zip(table.values, table.cumulative, strict=True)
            lines += [f"{value} {cumulative}\n" for value, cumulative in rows]
        return "".join(lines)

    def draw_noise(self, users: int, entropy: Entropy) -> Ints:
        """Draw the pieces of so many users, a row each, cell by cell."""
        # check: noise-of-cells - a cell without noise, or with that of another one, shows its count
        drawn = [self._tables[loss][0].draw(users, entropy) for loss in self._losses]
        return np.stack(drawn, axis=1)

    def noise_in(self, included: int) -> SplitNoise:
        """Return the noise in a sum of so many users: every h of them add the whole noise."""
        # More than h users add more noise than the guarantee needs; the estimates must know it.
        multiple = self.check_included(included) / self.h
        return SplitNoise(self.questionnaire, self.groups, multiple)

    # --- responses and sums

    def respond(self, answers: Iterable[Sheet], entropy: Entropy) -> Residues:
        """Return one row of residues per user, for sheets of canonical answers."""
        # Many users of an audit have the same answers, which are turned into cells once.
        known: dict[Sheet, Ints] = {}
        rows = []
        for sheet in answers:
            if sheet not in known:
                known[sheet] = self.cells_of(sheet)
            rows.append(known[sheet])
        # Fewer people would add less noise than was counted on, without anybody noticing.
        if len(rows) != self.n:
            raise AnswerError(f"give the sheets of {self.n} users")
        noisy = np.array(rows) + self.draw_noise(self.n, entropy)
        return from_signed(noisy, self.modulus)

    def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> Residues:
        """Compute the response of one user, as its client does."""
        check_integer("user", user, most=self.n - 1)
        noisy = self.cells_of(sheet) + self.draw_noise(1, entropy)[0]
        return from_signed(noisy, self.modulus)

    def _bound(self, cell: int, entries: int = 1) -> int:
        """Return a bound of all users' noise in cells like this one, for 2^-60 in all of them."""
        tail = OVERFLOW_PROBABILITY / self.N
        return laplace_bound(2 * self._losses[cell], entries * self.n / self.h, tail)

    @cached_property
    def reaches(self) -> tuple[int, ...]:
        """A bound of the noise in every cell, which it leaves once in 2^60 surveys."""
        bounds: dict[float, int] = {}
        for cell, loss in enumerate(self._losses):
            if loss not in bounds:
                bounds[loss] = self._bound(cell)
        return tuple(bounds[loss] for loss in self._losses)

    def decode(self, total: Residues, included: int) -> Ints:
        """Return the cells, or raise if honest sheets and noise cannot lead to them."""
        users = self.check_included(included)
        cells = self.decode_cells(total, users)
        for number, where in enumerate(self.questionnaire.cell_slices):
            block = self.questionnaire.questions[number].blocks[0]
            if block.kind is not BlockKind.ONE:
                continue
            # Wider than the range of one cell, and still a spoiled count often leaves it.
            if abs(int(cells[where].sum()) - users) > self._bound(where.start, block.cells):
                raise CorruptSumError(
                    f"the counts of question {number + 1} are too far from the {users} users"
                )
        return cells

    def draw(self, population: Any, rng: np.random.Generator) -> Ints:
        """Sample noisy cells for the cells of all who take part. For simulations only."""
        # A two-sided geometric distribution is a difference of two negative binomial ones, divided
        # among users.
        size = self.n / self.h
        stop = -np.expm1(-np.array(self._losses))
        noise = rng.negative_binomial(size, stop) - rng.negative_binomial(size, stop)
        return np.asarray(np.asarray(population, dtype=np.int64) + noise)

    def estimate(self, aggregate: Any, included: int) -> Floats:
        """Return the cells per user: shares, and mean numbers of steps."""
        noise = self.noise_in(included)
        fitted: list[float] = []
        for number, where in enumerate(self.questionnaire.cell_slices):
            fitted += noise.fit(number, np.asarray(aggregate)[where].tolist(), included)
        return np.array(fitted) / included

    def variance(self, truth: Any, included: int | None = None) -> Floats:
        """Return the variance of every cell of `estimate`; it does not depend on the answers."""
        count = self.n if included is None else included
        noise = self.noise_in(count)
        spreads = [noise.distribution(number, place).variance for number, place, _ in self.layout]
        return np.array(spreads) / count**2

    # --- privacy

    @cached_property
    def _moved(self) -> tuple[int, ...]:
        """Cells that one person moves who gives other answers to all questions, at worst."""
        moved: list[int] = []
        for question, where in zip(
            self.questionnaire.questions, self.questionnaire.cell_slices, strict=True
        ):
            moved += range(where.start, where.start + question.moves)
        return tuple(moved)

    def _pure_loss(self, cell: int, unknown: int) -> float:
        """Return what the largest change of a cell loses if so many users' noise is unknown."""
        reach = self.layout[cell][2].reach
        return laplace_shift_loss(self._losses[cell], min(1.0, unknown / self.h), reach)

    def pure_epsilon(self, unknown: int) -> float:
        """Return the pure epsilon of all answers together if so many users' noise is unknown."""
        if unknown >= self.h:
            # Every loss was rounded down, so they add up to no more than was promised.
            return self.epsilon
        return math.fsum(self._pure_loss(cell, unknown) for cell in self._moved) * _ROUND_UP

    def _table_delta(self, unknown: int) -> float:
        """Return what the finite tables add to delta at any epsilon.

        Every moved cell adds (1 + e^c) d, as in `LaplaceNoise`, where c is what its largest change
        loses, and d the distance of all unknown draws from the ideal distribution.
        """
        parts = []
        for cell in self._moved:
            # The exponent is capped where exp would overflow; the caller caps delta at 1.
            growth = 1 + math.exp(min(self._pure_loss(cell, unknown), 700.0))
            parts.append(growth * unknown * self._tables[self._losses[cell]][1])
        return math.fsum(parts)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return delta: exact up to the tables if exactly h users' noise is unknown, else a bound.

        In the zero-out relation it is a bound: no cell moves that does not move in replace-one.
        """
        return self.delta_with_draws(epsilon, self.unknown_users(adversary))

    def delta_with_draws(self, epsilon: float, unknown: int) -> float:
        """Return delta when the noise of so many users is unknown to the adversary."""
        if unknown < 1:
            return 1.0
        ideal = 0.0
        if check_epsilon(epsilon) < self.pure_epsilon(unknown):
            ideal = compose([self._pairs(unknown)], epsilon=epsilon)
        return min(1.0, ideal + self._table_delta(unknown))

    def _pairs(self, unknown: int) -> tuple[LossPair, ...]:
        """What every moved cell loses, or a randomized response that bounds it."""
        if unknown >= self.h:
            return tuple(
                laplace_shift(self._losses[cell], self.layout[cell][2].reach)
                for cell in self._moved
            )
        return tuple(laplace_shift(self._pure_loss(cell, unknown), 1) for cell in self._moved)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the losses of all cells that move; None if too little noise is unknown."""
        unknown = self.unknown_users(adversary)
        if unknown < self.h:
            return None
        return Losses(self._pairs(unknown), self._table_delta(unknown))

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the guarantee of the noise that was contributed, at an epsilon of its own."""
        unknown = self.count_honest(included)
        remaining = self.pure_epsilon(unknown)
        delta = self.delta_with_draws(remaining, unknown)
        return Guarantee(remaining, delta, Relation.REPLACE_ONE, self.default_adversary)

    # --- audit

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return data sets in which the last user gives other answers to all questions.

        The distributions of two cells are known exactly. Whether all cells together tell more than
        they should is what the audit learns from its runs.
        """
        against = adversary or self.default_adversary
        users = self.users or AUDITED_USERS + self.insiders + self.dropouts
        small = replace(self, users=users)
        first, second = extreme_sheets(self.questionnaire)
        others = [first] * (users - 1)
        noise = SplitNoise(self.questionnaire, self.groups, (users - against.insiders) / small.h)
        marginals = []
        before = small.cells_of(first)
        after = small.cells_of(second)
        for cell in np.flatnonzero(before != after)[:2].tolist():
            channel = Channel(1.0, noise=noise.raw_distribution(*self.layout[cell][:2]))
            known = int(before[cell]) * (users - 1 - against.insiders)
            marginals.append(
                Marginal.for_added_noise(
                    channel, known + int(before[cell]), known + int(after[cell])
                )
            )
        return WorstPair(
            small,
            _as_array([*others, first]),
            _as_array([*others, second]),
            tuple(marginals),
            small,
            against,
        )

    @cached_property
    def _order(self) -> list[int]:
        """All cells, those first of which an audit knows the distribution."""
        first, second = map(self.cells_of, extreme_sheets(self.questionnaire))
        moved = np.flatnonzero(first != second).tolist()
        return [*moved, *(cell for cell in range(self.N) if cell not in set(moved))]

    def for_batch(self, copies: int) -> Self:
        """Return the mechanism for more users: the noise of a user depends on epsilon and h."""
        return self._with_same_noise(copies)

    def adversary_view(
        self, responses: Residues, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return the sums of all cells without what insiders sent, then that."""
        rows = responses.reshape(answers.size, copies * self.N)
        sums = self._signed_cells(rows, copies)
        known = self._signed_cells(rows[: adversary.insiders], copies)
        return self.view_of_sums(sums, known, adversary)

    def _signed_cells(self, rows: Residues, copies: int) -> Ints:
        cells = to_signed(sum_rows(rows, self.modulus), self.modulus, self.min_sum)
        return cells.reshape(copies, self.N)[:, self._order]

    def audited_sums(self, cells: NDArray[Any]) -> Ints:
        """Return all cells, in the order of the view."""
        return np.asarray(cells, dtype=np.int64)[self._order]

    def survey_view(
        self, sums: Ints, log: SurveyLog, answers: NDArray[Any], adversary: Adversary
    ) -> Ints:
        """Return the published cells without what insiders sent, then that."""
        sent = np.array(log.responses)[: adversary.insiders]
        known = self._signed_cells(sent, 1)
        view: Ints = self.view_of_sums(sums[None], known, adversary)[0]
        return view


def _as_array(sheets: Sequence[Sheet]) -> NDArray[np.object_]:
    """Return sheets as an array with one entry per user."""
    array = np.empty(len(sheets), dtype=np.object_)
    array[:] = list(sheets)
    return array
