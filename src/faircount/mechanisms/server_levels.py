"""Hidden privacy levels: proven sheets that are counted once, or twice if a coin says so.

    user      report_bits      for every question one of (inside, answer) and (outside, answer)
    servers   tally            two tables: answers of everybody, and answers of those inside
              noise_from       noise for both tables, each from a stream of its own
    revealed  both tables of all people with the noise of both servers

The first table is that of `server_sheets.py` with the epsilon of the strongest level, e1. In the
second every cell has its own noise: the counts do not add up to a known number, because that would
be how many are inside. All reports look alike, so nobody learns anybody's level; what the tables
tell of answer and level is in `accounting.levels`. The promise is the epsilon of the weakest level.

A report is inside for all questions, or for none, and its proof shows that. So a valid report is
one that an honest device can make, and the number of people inside is the same for all questions.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses, compose
from faircount.accounting.guarantee import COLLECTOR, Adversary, Relation
from faircount.accounting.levels import (
    COIN_BITS,
    LevelGuarantee,
    Levels,
    second_table_pairs,
)
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import ParameterError
from faircount.core.questions import Constraint, OneOf, QuestionGroup, Questionnaire, Sheet, YesNo
from faircount.core.questions.blocks import Weights
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.questionnaire import MAX_BITS
from faircount.core.validation import check_epsilon, check_integer
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.joint_noise.balls import CubeBall
from faircount.mechanisms.joint_noise.distributions import cell_distribution
from faircount.mechanisms.joint_noise.mechanism import GroupNoise, split_epsilon
from faircount.mechanisms.server_noise import AGGREGATORS, is_server
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.mechanisms.worst_pair import Marginal, WorstPair

KINDS = (OneOf.kind, YesNo.kind)
"""Questions with exactly one answer: with others, answer and level together would cost eL."""

SECOND_NOISE = b"noise-second"
"""Label of the stream of the second table: from that of the first, y1 - y2 would be exact."""

_CELL = (CubeBall(1),)


@dataclass(frozen=True, kw_only=True)
class ServerLevels(ServerSheets):
    """Everybody chooses a level, and nobody learns it: pure epsilon of the weakest for all.

    groups: of the first table; their epsilons add up to at most that of the strongest level
    """

    name: ClassVar[str] = "server-levels"
    parameter_docs: ClassVar[dict[str, str]] = {
        "groups": "which questions share a radius, and their shares of the strongest epsilon",
        "epsilon": "privacy loss of the weakest level: the most that anybody can lose",
        "levels": "the levels that people can choose, the strongest first",
    }
    noise_tags: ClassVar[tuple[bytes, ...]] = (*ServerSheets.noise_tags, SECOND_NOISE)

    levels: Levels

    def __post_init__(self) -> None:
        # check: promised-level - a promise below the weakest level would be broken for some
        if Fraction(self.epsilon) != self.levels[-1].epsilon:
            raise ParameterError("the promised epsilon must be that of the weakest level")
        _ = self.choices  # refuses all other kinds
        # check: base-epsilon - groups that spend more break the promise of the strongest level
        self.questionnaire.check_groups(self.groups, self.levels[0].epsilon)
        if self.answer_bits > MAX_BITS:
            raise ParameterError(
                f"with levels the questions have {self.answer_bits:,} bits together, and "
                f"{MAX_BITS:,} are possible: ask less, or offer fewer answers"
            )
        super().__post_init__()
        for noise in self.second_noises:
            # Refuses an epsilon that leaves no useful table, and computes it before anybody waits.
            _ = noise.table

    @classmethod
    def example(cls, users: int, items: int) -> "ServerLevels":
        """Return a small instance on which the tests of the interface run."""
        labels = tuple(str(item) for item in range(items))
        questions = (OneOf(text="Which one?", items=labels), YesNo(text="Sure?"))
        return cls(
            questionnaire=Questionnaire(questions),
            groups=split_epsilon(0.5, [range(len(questions))]),
            epsilon=2.0,
            levels=Levels.of({"strong": 0.5, "middle": 1.0, "weak": 2.0}),
            users=users,
        )

    # --- reports ----------------------------------------------------------------------------------

    @cached_property
    def choices(self) -> tuple[ChoiceQuestion, ...]:
        """The questions, to each of which exactly one answer is given."""
        return check_choices(self.questionnaire)

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """How many answers every question has; two answers also have two bits here."""
        return tuple(len(question.answers) for question in self.choices)

    @property
    def answer_bits(self) -> int:
        """Two bits per answer: inside and outside."""
        return 2 * sum(self._sizes)

    @cached_property
    def bit_starts(self) -> tuple[tuple[int, int], ...]:
        """Where the bits of every question begin: those inside, and those outside."""
        starts = []
        start = 0
        for size in self._sizes:
            starts.append((start, start + size))
            start += 2 * size
        return tuple(starts)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """One answer to every question, inside or outside, and everywhere on the same side."""
        pairs = list(zip(self.bit_starts, self._sizes, strict=True))
        found = []
        for (inside, _), size in pairs:
            found.append(_adds_up_to_one(range(inside, inside + 2 * size)))
        first = self.bit_starts[0][0]
        count = self._sizes[0]
        for (_, outside), size in pairs[1:]:
            # Inside at the first question or outside at this one, and never both.
            bits = [*range(first, first + count), *range(outside, outside + size)]
            # check: one-side - who is inside for some questions only spoils the number inside
            found.append(_adds_up_to_one(bits))
        return tuple(found)

    def report_bits(self, sheet: Sheet, entropy: Entropy, level: int = 0) -> Ints:
        """Return the bits of a sheet; whether they are inside is drawn here, once."""
        coin = self.levels.coins[self.levels.check_position(level)]
        # Drawn at every level, so that no draw, and no number of bytes, tells the level.
        drawn = int.from_bytes(entropy.bytes(COIN_BITS // 8), "big")
        return self.place_sheet(sheet, is_inside=drawn < coin)

    def place_sheet(self, sheet: Sheet, *, is_inside: bool) -> Ints:
        """Return the bits of a sheet inside or outside."""
        answers = self.questionnaire.check_sheet(sheet)
        bits = np.zeros(self.answer_bits, dtype=np.int64)
        for answer, starts in zip(answers, self.bit_starts, strict=True):
            assert isinstance(answer, int)  # noqa: S101 - the kinds were checked
            bits[starts[0 if is_inside else 1] + answer] = 1
        return bits

    # --- cells ------------------------------------------------------------------------------------

    @property
    def base_cells(self) -> int:
        """Number of cells of the first table."""
        return self.questionnaire.cells

    @property
    def N(self) -> int:  # noqa: N802 - the paper's name
        """Number of cells of both tables."""
        return self.base_cells + sum(self._sizes)

    @cached_property
    def second_slices(self) -> tuple[slice, ...]:
        """Which of all cells are those of every question in the second table."""
        found = []
        start = self.base_cells
        for size in self._sizes:
            found.append(slice(start, start + size))
            start += size
        return tuple(found)

    @property
    def cell_weights(self) -> tuple[Weights, ...]:
        """All cells as sums of bits: the first table of all questions, then the second."""
        first: list[Weights] = []
        second: list[Weights] = []
        for (inside, outside), size in zip(self.bit_starts, self._sizes, strict=True):
            # Of two answers the first table counts only the second one.
            counted = range(1, 2) if size == 2 else range(size)
            first += [((inside + at, 1), (outside + at, 1)) for at in counted]
            second += [((inside + at, 1),) for at in range(size)]
        return (*first, *second)

    def cells_of(self, sheet: Sheet, level: int = 0) -> Ints:
        """Return what a sheet adds to both tables; levels between the ends are drawn, not known."""
        coins = self.levels.coins
        is_inside = coins[self.levels.check_position(level)] == coins[-1]
        bits = self.place_sheet(sheet, is_inside=is_inside)
        return np.array([sum(bits[bit] for bit, _ in weights) for weights in self.cell_weights])

    # --- noise ------------------------------------------------------------------------------------

    @cached_property
    def scaled_halves(self) -> tuple[int, ...]:
        """h_k in units of 2^-128: what a vote in the second table costs in every question.

        The share of a question is that in the first table, where a group shares its epsilon. They
        are rounded down and add up to at most h.
        """
        whole = sum(group.scaled_epsilon for group in self.groups)
        halves = []
        for number in range(len(self.questionnaire)):
            group = self.group_of(number)
            share = whole * len(group.questions)
            halves.append(self.levels.scaled_half * group.scaled_epsilon // share)
        return tuple(halves)

    @cached_property
    def second_noises(self) -> tuple[GroupNoise, ...]:
        """The noise of a cell of the second table, for every question.

        A radius with the distribution e^(-h r) (2 r + 1), and a uniform number up to it on either
        side, give the distribution e^(-h |z|).
        """
        scale = 1 << COIN_BITS
        return tuple(
            GroupNoise(QuestionGroup(Fraction(half, scale), (number,)), _CELL, half)
            for number, half in enumerate(self.scaled_halves)
        )

    def noise_from(self, streams: Sequence[Entropy]) -> Ints:
        """Draw one server's noise for both tables, each from its own stream."""
        first, second = streams
        noise = [int(value) for value in self.base_noise(first)]
        for drawn_by, size in zip(self.second_noises, self._sizes, strict=True):
            # check: own-cell-noise - noise that adds up to 0 tells exactly how many are inside
            noise += [drawn_by.draw(second)[0][0] for _ in range(size)]
        return np.array(noise, dtype=np.int64)

    def base_noise(self, entropy: Entropy) -> Ints:
        """Draw one server's noise for the first table."""
        return self._noise_of_one.draw_noise(entropy)

    def server_noise(self, entropy: Entropy) -> Ints:
        """Draw from one stream, one table after the other. For simulations only."""
        return self.noise_from((entropy, entropy))

    @cached_property
    def reaches(self) -> tuple[int, ...]:
        """The largest noise of both servers in every cell of both tables: a hard bound."""
        reaches = list(self._joint_reaches())
        for noise, size in zip(self.second_noises, self._sizes, strict=True):
            reaches += [2 * noise.table.largest] * size
        return tuple(reaches)

    @cached_property
    def tops(self) -> tuple[int, ...]:
        """A sheet adds at most 1 to any cell: its bits inside and outside are never both set."""
        return (1,) * self.N

    @property
    def noise_tables(self) -> str:
        """The tables of all groups, then those of the second table, one per question."""
        lines = [super().noise_tables]
        for number, noise in enumerate(self.second_noises):
            lines.append(f"second {number}\n")
            rows = enumerate(noise.table.cumulative)
            lines += [f"{radius} {cumulative}\n" for radius, cumulative in rows]
        return "".join(lines)

    def second_distribution(self, question: int, terms: int = 1) -> NoiseDistribution:
        """Return the distribution of both servers' noise in a sum of cells of the second table."""
        return cell_distribution(_CELL, 0, self.scaled_halves[question], 2 * terms)

    def draw(self, population: Any, rng: np.random.Generator) -> Ints:
        """Sample noisy cells of both tables. For simulations only."""
        stream = SeededStream(int(rng.integers(1 << 62)))
        noise = self.server_noise(stream) + self.server_noise(stream)
        return np.asarray(population, dtype=np.int64) + noise

    def variance(self, truth: Any, included: int | None = None) -> Floats:
        """Return the variance of every cell of `estimate`; it does not depend on the answers."""
        users = self.n if included is None else check_integer("included", included, least=1)
        second: list[float] = []
        for number, size in enumerate(self._sizes):
            second += [self.second_distribution(number).variance] * size
        return np.concatenate([super().variance(truth, users), np.array(second) / users**2])

    # --- privacy ----------------------------------------------------------------------------------

    @property
    def least_promise(self) -> Fraction:
        """The epsilon of the weakest level: nobody may be promised less than that."""
        return self.levels[-1].epsilon

    def answer_epsilon(self, question: int) -> float:
        """Return what a single answer to a question loses at most, at the weakest level."""
        half = Fraction(self.scaled_halves[question], 1 << COIN_BITS)
        return float(self.group_of(question).epsilon + 2 * half)

    @property
    def table_delta(self) -> float:
        """What the finite tables add to delta at any epsilon.

        A replaced answer moves two cells of the second table per question.
        """
        second = sum(2 * noise.table_delta for noise in self.second_noises)
        return self._noise_of_one.table_delta + second

    def losses_at(self, level: int, adversary: Adversary) -> Losses | None:
        """Return what a changed answer of a person of this level loses, from one server's noise."""
        base = self._noise_of_one.losses(adversary)
        if base is None:
            return None
        pairs = second_table_pairs(self.scaled_halves, self.levels.probability(level))
        return Losses((*base.pairs, *pairs), self.table_delta)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return the losses of the weakest level, which bound those of everybody."""
        # check: weakest-losses - a ledger that is charged less lets others lose too much
        return self.losses_at(len(self.levels) - 1, adversary)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return an upper bound of delta for the weakest level, from the noise of one server."""
        if adversary == COLLECTOR or relation is not Relation.REPLACE_ONE:
            return 1.0
        losses = self.losses(adversary)
        ideal = 0.0
        # check: weakest-epsilon - with less than its epsilon the weakest level is not covered
        if Fraction(check_epsilon(epsilon)) < self.levels[-1].epsilon and losses is not None:
            ideal = compose([losses.pairs], epsilon=epsilon)
        return min(1.0, ideal + self.table_delta)

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return two sheets of a person of the weakest level that differ in every answer."""
        last = len(self.levels) - 1
        sheets = [(answer,) * len(self.questionnaire) for answer in range(2)]
        return self.pair_of((sheets[0], last), (sheets[1], last), adversary)

    def pair_of(
        self, first: tuple[Sheet, int], second: tuple[Sheet, int], adversary: Adversary | None
    ) -> WorstPair:
        """Return the pair of two states of one person, each a sheet and a level of either end.

        The distributions of a cell of each table are known exactly. Whether the cells together tell
        more than they should is what an audit learns from its runs.
        """
        against = self.default_adversary if adversary is None else adversary
        small = replace(self, users=1, dropouts=0)
        states = [small.cells_of(*state) for state in (first, second)]
        draws = 1 if is_server(against) else 2
        distributions = [
            cell_distribution(self.noises[0].balls, 0, self.noises[0].scaled, draws),
            cell_distribution(_CELL, 0, self.scaled_halves[0], draws),
        ]
        marginals = []
        for distribution, cell in zip(distributions, (0, self.base_cells), strict=True):
            channel = Channel(1.0, noise=distribution)
            one, other = (int(state[cell]) for state in states)
            marginals.append(Marginal.for_added_noise(channel, one, other))
        before, after = (state[None] for state in states)
        return WorstPair(small, before, after, tuple(marginals), small, against)

    def adversary_view(
        self, responses: Residues, answers: NDArray[Any], copies: int, adversary: Adversary
    ) -> Ints:
        """Return a cell of each table, all others, and what a server knows: its own noise."""
        cells = self._signed_sums(responses)
        known = self._signed_sums(responses[self.n + int(adversary in AGGREGATORS)][None])
        if is_server(adversary):
            cells = cells - known
        order = [
            0,
            self.base_cells,
            *range(1, self.base_cells),
            *range(self.base_cells + 1, self.N),
        ]
        view = cells[order]
        return np.concatenate([view, known] if is_server(adversary) else [view])[None]

    def level_guarantees(self, adversary: Adversary | None = None) -> tuple[LevelGuarantee, ...]:
        """Return what is guaranteed to the people of every level, the strongest first."""
        against = self.default_adversary if adversary is None else adversary
        return self.levels.guarantees(self.guarantee(epsilon=self.epsilon, adversary=against))


def check_choices(questionnaire: Questionnaire) -> tuple[ChoiceQuestion, ...]:
    """Return the questions, or raise unless exactly one answer is given to each."""
    found = []
    for number, question in enumerate(questionnaire.questions, 1):
        # check: level-kinds - with several answers, answer and level would cost more than stated
        if question.kind not in KINDS or not isinstance(question, ChoiceQuestion):
            raise ParameterError(
                f"question {number} is of the kind {question.size!r}: with hidden levels, ask "
                "questions with one of several answers or yes/no, or ask it in another survey"
            )
        found.append(question)
    return tuple(found)


def _adds_up_to_one(bits: Iterable[int]) -> Constraint:
    return Constraint(tuple((bit, 1) for bit in bits), 1)
