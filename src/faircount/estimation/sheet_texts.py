"""Words about the questions of a result, in the languages of the pages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from faircount.accounting.guarantee import format_rounded_up
from faircount.core.questions import Table
from faircount.core.questions.question import NO_ANSWER_LABEL, NOT_APPLICABLE_LABEL, SKIP_LABEL
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion
from faircount.estimation.english_texts import ResultWords
from faircount.estimation.question_estimates import QuestionEstimates
from faircount.estimation.result_texts import words_of
from faircount.estimation.sheet_estimates import (
    ALL_LABEL,
    ANSWERED_LABEL,
    IF_ALIKE,
    MEAN,
    MEDIAN,
    OF_ANSWERED,
    SHARE,
    Estimate,
    is_share,
)
from faircount.estimation.sheet_result import TOGETHER, QuestionnaireResult


@dataclass(frozen=True)
class SheetWords:
    """What one language says about questions.

    general:    the words that all results have
    decimal:    sign between the digits of a number
    measures:   what is estimated
    labels:     answers that are not written by the owner
    questions, question, items: how many there are of them
    people, users: how many were counted, in a survey and in a table
    together:   follows a guarantee that is for several questions
    single, group: what a single answer loses, and in which questions
    """

    general: ResultWords
    decimal: str
    measures: Mapping[str, str]
    labels: Mapping[str, str]
    questions: str
    question: str
    items: str
    people: str
    users: str
    together: str
    single: str
    group: str

    def percent(self, share: float, digits: int) -> str:
        """A share as a percentage."""
        return self.general.percent(share, digits)

    def value(self, row: Estimate, value: float, digits: int) -> str:
        """A share in percent, or a mean as a number."""
        if is_share(row):
            return self.percent(value, digits)
        return f"{value:z.{digits}f}".replace(".", self.decimal)

    def range(self, row: Estimate, digits: int) -> str:
        """The interval of an estimate."""
        if is_share(row):
            return self.general.range(row.low, row.high, digits)
        low, high = (self.value(row, end, digits) for end in (row.low, row.high))
        return f"{low} {self.labels['to']} {high}"

    def label(self, question: QuestionEstimates, row: Estimate) -> str:
        """The answer and, if it is not simply a share, what is estimated about it."""
        answer = self.answer(question, row)
        # The condition of a weighted estimate stands above all of them.
        if row.measure in (SHARE, IF_ALIKE):
            return answer
        measure = self.measures[row.measure]
        return f"{answer} ({measure})" if answer else measure

    def answer(self, question: QuestionEstimates, row: Estimate) -> str:
        """The answer; those that no owner wrote are in this language."""
        # Words of ours are told from words of the owner by their place, since an owner may use the
        # same.
        asked = question.question
        own = row.answer
        if isinstance(asked, Table) and own not in asked.answers:
            # A margin: one side is the word for all.
            first = own.removeprefix(f"{ALL_LABEL} / ")
            if first != own:
                return f"{self.labels[ALL_LABEL]} / {first}"
            return f"{own.removesuffix(ALL_LABEL)}{self.labels[ALL_LABEL]}"
        if isinstance(asked, SumQuestion) and own == ANSWERED_LABEL:
            return self.labels[ANSWERED_LABEL]
        # An item may be called "no answer", so that row is known by its place.
        is_missing = own in (SKIP_LABEL, NOT_APPLICABLE_LABEL)
        if isinstance(asked, SeveralItems) and asked.may_be_missing:
            is_missing = row is question.estimates[len(asked.items)]
        return self.labels[own] if is_missing else own

    def heading(self, result: QuestionnaireResult) -> str:
        """What a result is about, in a line."""
        count = self.general.number(result.included)
        if result.record is None:
            # Of a table: there is one mechanism for several questions, so it need not be named.
            return f"{self.users.format(count=count)}, {self.size(result)}"
        return f"{result.name}, {self.people.format(count=count)}, {self.size(result)}"

    def size(self, result: QuestionnaireResult) -> str:
        """How many questions there are or, of a single choice, how many items."""
        (first, *others) = result.questions
        if others:
            return self.questions.format(count=len(result.questions))
        return self.items.format(count=len(first.shares)) if first.shares else self.question

    def privacy_lines(self, result: QuestionnaireResult) -> list[str]:
        """For whom and for what the guarantee is, where there are several questions."""
        if len(result.questions) < 2:
            return []
        # Dictionaries keep their order: groups are named in the order of their first questions.
        groups: dict[int, tuple[float | None, list[int]]] = {}
        for question in result.questions:
            groups.setdefault(question.group, (question.epsilon, []))[1].append(question.number)
        lines = [self.together]
        if len(groups) > 1:
            parts = (self._describe_group(*group) for group in groups.values())
            lines.append(f"{self.single}: {'; '.join(parts)}")
        return lines

    def _describe_group(self, epsilon: float | None, numbers: Iterable[int]) -> str:
        # Rounded up: a loss must not look smaller than it is.
        loss = format_rounded_up(epsilon or 0.0, 4).replace(".", self.decimal)
        return self.group.format(epsilon=loss, questions=", ".join(map(str, numbers)))


_ENGLISH = {
    "measures": {
        MEAN: "mean",
        MEDIAN: "median",
        MEAN + OF_ANSWERED: f"mean{OF_ANSWERED}",
        SHARE + OF_ANSWERED: f"share{OF_ANSWERED}",
    },
    "labels": {
        SKIP_LABEL: SKIP_LABEL,
        NOT_APPLICABLE_LABEL: NOT_APPLICABLE_LABEL,
        ANSWERED_LABEL: ANSWERED_LABEL,
        ALL_LABEL: ALL_LABEL,
        NO_ANSWER_LABEL: NO_ANSWER_LABEL,
        "to": "to",
    },
    "decimal": ".",
    "questions": "{count} questions",
    "question": "1 question",
    "items": "{count} items",
    "people": "{count} people counted",
    "users": "{count} users",
    "together": f"This holds {TOGETHER}",
    "single": "A single answer loses at most",
    "group": "epsilon {epsilon} (question {questions})",
}

_GERMAN = {
    "measures": {
        MEAN: "Mittelwert",
        MEDIAN: "Median",
        MEAN + OF_ANSWERED: "Mittelwert unter denen, die geantwortet haben",
        SHARE + OF_ANSWERED: "Anteil unter denen, die geantwortet haben",
    },
    "labels": {
        SKIP_LABEL: "keine Angabe",
        NOT_APPLICABLE_LABEL: "trifft nicht zu",
        ANSWERED_LABEL: "beantwortet",
        ALL_LABEL: "alle",
        NO_ANSWER_LABEL: "keine Antwort",
        "to": "bis",
    },
    "decimal": ",",
    "questions": "{count} Fragen",
    "question": "1 Frage",
    "items": "{count} Antworten",
    "people": "{count} Personen gezählt",
    "users": "{count} Personen",
    "together": "Das gilt für alle Antworten einer Person zusammen",
    "single": "Eine einzelne Antwort verliert höchstens",
    "group": "Epsilon {epsilon} (Frage {questions})",
}

_LANGUAGES: Mapping[str, Mapping[str, object]] = {"en": _ENGLISH, "de": _GERMAN}


def sheet_words_of(result: object) -> SheetWords:
    """The words of a result, in the language of its survey."""
    general = words_of(result)
    return SheetWords(general=general, **_LANGUAGES[general.language])  # type: ignore[arg-type]
