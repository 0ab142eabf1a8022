"""Several questions about the same people, and the groups that share a noise radius."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions.blocks import Block, Constraint, Weights, shift_weights, weighted_sum
from faircount.core.questions.choices import ChoiceQuestion, Table
from faircount.core.questions.question import Answer, Question, check_text
from faircount.core.questions.translations import (
    Translation,
    check_language,
    check_positions,
    check_translation,
    reword,
)

Sheet = tuple[Answer, ...]
"""One person's canonical answers, one per question."""

MAX_BITS = 2600
"""Bits of a sheet: the proof of a longer one would take seconds in a browser."""

MAX_QUESTIONS = 100
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
        # Down: shares that were rounded up could add up to more than epsilon.
        scaled = int(Fraction(epsilon) * (1 << EPSILON_BITS))
        return cls(Fraction(scaled, 1 << EPSILON_BITS), tuple(questions))

    @property
    def scaled_epsilon(self) -> int:
        """Epsilon in units of 2^-128."""
        return int(self.epsilon * (1 << EPSILON_BITS))


@dataclass(frozen=True)
class Questionnaire:
    """Questions in the order in which they are asked; a sheet is one person's answers to all.

    questions:    at most 100
    title:        what the questions are about
    language:     in which the texts are written, as in "en"; empty if it is not stated
    translations: the same texts in other languages
    """

    questions: tuple[Question, ...]
    title: str = ""
    language: str = ""
    translations: tuple[Translation, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= MAX_QUESTIONS:
            raise ParameterError(f"a questionnaire has 1 to {MAX_QUESTIONS} questions")
        if self.title != "":
            check_text("title", self.title)
        if self.language != "":
            check_language(self.language)
        for number, question in enumerate(self.questions):
            self._check_branch(number, question)
        languages = [self.language]
        for translation in self.translations:
            check_translation(translation, self.questions)
            languages.append(translation.language)
        check_positions(self.questions, self.translations)
        if self.translations and not self.language:
            raise ParameterError("say in which language the questions are, as in language = 'en'")
        # The language of the original counts: a second text in it could contradict the first.
        if sorted(set(languages)) != sorted(languages):
            raise ParameterError("every language of a questionnaire must be named once")

    def _check_branch(self, number: int, question: Question) -> None:
        """Refuse a question that depends on answers which nobody can have given before."""
        branch = question.only_if
        if branch is None:
            return
        name = f"only_if of question {number + 1}"
        # Checked here and not by the form, since parameters come from strangers, too. Only
        # backwards, so that `is_asked` ends.
        if not 0 <= branch.question < number:
            raise ParameterError(f"{name} must name an earlier question")
        earlier = self.questions[branch.question]
        if not isinstance(earlier, ChoiceQuestion) or isinstance(earlier, Table):
            raise ParameterError(f"{name} must name a question with exactly one answer")
        choices = range(len(earlier.choices))
        if not branch.items or any(item not in choices for item in branch.items):
            raise ParameterError(f"{name} must name answers of question {branch.question + 1}")
        if list(branch.items) != sorted(set(branch.items)):
            raise ParameterError(f"{name} must name every answer once, in their order")
        # Such a condition excludes nobody, but adds "does not apply", a cell with noise that is
        # always 0.
        if len(branch.items) == len(choices) and not earlier.may_be_missing:
            raise ParameterError(f"{name} names all answers: leave it out to ask everybody")

    def check_size(self) -> None:
        """Refuse a sheet that is too long for its proof, or for the tables of its noise."""
        if self.bits > MAX_BITS:
            raise ParameterError(
                f"the questions have {self.bits:,} bits together, and {MAX_BITS:,} are possible: "
                "ask less, or offer fewer answers"
            )

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def text(self) -> str:
        """What the survey is called in one line: its title, or its first question."""
        return self.title or self.questions[0].text

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages in which it can be read, that of the original first; empty if unknown."""
        translated = [translation.language for translation in self.translations]
        return (self.language, *translated) if self.language else ()

    def in_language(self, language: str) -> "Questionnaire":
        """Return the questions with the texts of a translation; positions stay the same."""
        if language == self.language:
            return self
        for translation in self.translations:
            if translation.language == language:
                pairs = zip(self.questions, translation.questions, strict=True)
                questions = tuple(reword(question, texts) for question, texts in pairs)
                # Without the other translations: this one is for reading, its digest is never used.
                return Questionnaire(questions, translation.title, language)
        offered = ", ".join(self.languages) or "no language that it names"
        raise ParameterError(f"the questions can be read in {offered}, not in {language!r:.20}")

    @cached_property
    def bits(self) -> int:
        """Number of bits of a sheet."""
        return sum(question.bits for question in self.questions)

    @cached_property
    def cells(self) -> int:
        """Number of cells."""
        return sum(question.cells for question in self.questions)

    @cached_property
    def bit_offsets(self) -> tuple[int, ...]:
        """Where the bits of every question begin."""
        return _offsets([question.bits for question in self.questions])

    @cached_property
    def cell_slices(self) -> tuple[slice, ...]:
        """Which of the cells belong to every question."""
        sizes = [question.cells for question in self.questions]
        starts = _offsets(sizes)
        return tuple(slice(start, start + size) for start, size in zip(starts, sizes, strict=True))

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints, on the bits of the sheet."""
        found = []
        for question, offset in zip(self.questions, self.bit_offsets, strict=True):
            if question.constraint is not None:
                found.append(question.constraint.shift(offset))
        return tuple(found)

    @cached_property
    def cell_weights(self) -> tuple[Weights, ...]:
        """All cells, as weighted sums of the bits of the sheet."""
        found: list[Weights] = []
        for question, offset in zip(self.questions, self.bit_offsets, strict=True):
            found += [shift_weights(weights, offset) for weights in question.cell_weights]
        return tuple(found)

    def check_modulus(self, modulus: int) -> None:
        """Refuse a field in which a false report could satisfy a constraint."""
        for constraint in self.constraints:
            constraint.check_modulus(modulus)

    def check_sheet(self, sheet: Sequence[object]) -> Sheet:
        """Return the canonical answers of a sheet: one per question, in their order."""
        # A text is a sequence as well, of its characters.
        if isinstance(sheet, str) or len(sheet) != len(self):
            raise AnswerError(f"a sheet has {len(self)} answers, one per question")
        answers: list[Answer] = []
        for number, (question, answer) in enumerate(zip(self.questions, sheet, strict=True)):
            try:
                answers.append(question.check_answer(answer))
            except AnswerError as problem:
                raise AnswerError(f"question {number + 1}: {problem}") from None
        return tuple(answers)

    def encode(self, sheet: Sequence[object]) -> tuple[int, ...]:
        """Return the bits of a sheet: one answer per question, in their order."""
        bits: list[int] = []
        for question, answer in zip(self.questions, self.check_sheet(sheet), strict=True):
            bits += question.encode(answer)
        return tuple(bits)

    def is_asked(self, number: int, sheet: Sequence[Answer]) -> bool:
        """Whether a person with these answers to the questions before is asked this one."""
        branch = self.questions[number].only_if
        if branch is None:
            return True
        # Who was not asked the earlier question has no answer to it that could matter here.
        return self.is_asked(branch.question, sheet) and sheet[branch.question] in branch.items

    def cells_from_bits(self, bits: Sequence[int]) -> tuple[int, ...]:
        """Return the cells of a sheet's bits."""
        return tuple(weighted_sum(weights, bits) for weights in self.cell_weights)

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
        # check: question-groups - a question in no group is published without noise
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
