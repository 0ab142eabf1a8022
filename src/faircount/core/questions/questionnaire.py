"""Several questions about the same people, and the groups that share a noise radius."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import Block, Constraint, Weights, shift_weights, weighted_sum
from faircount.core.questions.kinds import Question

MOST_BITS = 2600
"""Bits of a sheet: the proof of a longer one would take seconds in a browser."""

MOST_QUESTIONS = 100
"""Every question has at most one constraint, so this bounds the constraints as well."""

EPSILON_BITS = 128
"""Shares of epsilon are whole multiples of 2^-128, so that all programs compute with the same."""


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Questions that share one random radius, and their share of epsilon.

    epsilon:   a multiple of 2^-128
    questions: their numbers, from 0
    """

    epsilon: Fraction
    questions: tuple[int, ...]

    @classmethod
    def of(cls, epsilon: float | Fraction, questions: Sequence[int]) -> "QuestionGroup":
        """Return the group with an epsilon that is rounded down to a multiple of 2^-128."""
        scaled = int(Fraction(epsilon) * (1 << EPSILON_BITS))
        return cls(Fraction(scaled, 1 << EPSILON_BITS), tuple(questions))

    @property
    def scaled_epsilon(self) -> int:
        """Epsilon in units of 2^-128."""
        return int(self.epsilon * (1 << EPSILON_BITS))


@dataclass(frozen=True)
class Questionnaire:
    """Questions in the order in which they are asked; a sheet is one person's answers to all.

    questions: at most 100, with at most 2,600 bits together
    title:     what the questions are about
    """

    questions: tuple[Question, ...]
    title: str = ""

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= MOST_QUESTIONS:
            raise ParameterError(f"a questionnaire has 1 to {MOST_QUESTIONS} questions")
        if self.bits > MOST_BITS:
            raise ParameterError(
                f"the questions have {self.bits:,} bits together, and {MOST_BITS:,} are possible: "
                "ask less, or offer fewer answers"
            )

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def bits(self) -> int:
        """Number of bits of a sheet."""
        return sum(question.bits for question in self.questions)

    @property
    def cells(self) -> int:
        """Number of opened cells."""
        return sum(question.cells for question in self.questions)

    @cached_property
    def bit_offsets(self) -> tuple[int, ...]:
        """Where the bits of every question begin."""
        return _offsets([question.bits for question in self.questions])

    @cached_property
    def cell_slices(self) -> tuple[slice, ...]:
        """Which of the opened cells belong to every question."""
        sizes = [question.cells for question in self.questions]
        starts = _offsets(sizes)
        return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, on the bits of the sheet."""
        found = []
        for question, offset in zip(self.questions, self.bit_offsets, strict=True):
            if question.constraint is not None:
                found.append(question.constraint.shift(offset))
        return tuple(found)

    @property
    def openings(self) -> tuple[Weights, ...]:
        """All opened cells, as weighted sums of the bits of the sheet."""
        found: list[Weights] = []
        for question, offset in zip(self.questions, self.bit_offsets, strict=True):
            found += [shift_weights(weights, offset) for weights in question.openings]
        return tuple(found)

    def check_modulus(self, modulus: int) -> None:
        """Refuse a field in which a false report could satisfy a constraint."""
        for constraint in self.constraints:
            constraint.check_modulus(modulus)

    def encode(self, sheet: Sequence[object]) -> tuple[int, ...]:
        """Return the bits of a sheet: one answer per question, in their order."""
        if len(sheet) != len(self):
            raise AnswerError(f"a sheet has {len(self)} answers, one per question")
        bits: list[int] = []
        for number, (question, answer) in enumerate(zip(self.questions, sheet, strict=True)):
            try:
                bits += question.encode(answer)
            except AnswerError as problem:
                raise AnswerError(f"question {number + 1}: {problem}") from None
        return tuple(bits)

    def open(self, bits: Sequence[int]) -> tuple[int, ...]:
        """Return the cells of a sheet's bits."""
        return tuple(weighted_sum(weights, bits) for weights in self.openings)

    def is_valid(self, bits: Sequence[int]) -> bool:
        """Whether bits satisfy all constraints."""
        return all(constraint.is_met(bits) for constraint in self.constraints)

    def blocks_of(self, group: QuestionGroup) -> tuple[Block, ...]:
        """Return the blocks of the questions in a group, in the order of the group."""
        found: list[Block] = []
        for number in group.questions:
            found += self.questions[number].blocks
        return tuple(found)

    def check_groups(self, groups: Sequence[QuestionGroup], epsilon: Fraction) -> None:
        """Refuse groups that leave a question out, name one twice or spend more than epsilon."""
        named: list[int] = []
        for group in groups:
            named += group.questions
        # check: question-groups - a question in no group is opened without noise
        # One in two groups would pay for noise twice, while its cells get one of them.
        if sorted(named) != list(range(len(self))):
            raise ParameterError("every question must be in exactly one group")
        if any(not group.questions or group.epsilon <= 0 for group in groups):
            raise ParameterError("every group needs questions and an epsilon above 0")
        # check: group-epsilon - the shares of the groups spend more than what is promised
        if sum(group.epsilon for group in groups) > epsilon:
            raise ParameterError("the shares of the groups add up to more than epsilon")


def _offsets(sizes: Sequence[int]) -> tuple[int, ...]:
    starts = [0]
    for size in sizes[:-1]:
        starts.append(starts[-1] + size)
    return tuple(starts)
