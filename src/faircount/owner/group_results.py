"""Results of several groups side by side, and which of them are exact enough to be shown."""

from dataclasses import dataclass
from typing import Any

from faircount.core import plain
from faircount.core.csv_cells import write_csv
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.questions import Questionnaire
from faircount.estimation.presentation import OUTSIDE_MARK
from faircount.estimation.question_estimates import QuestionEstimates, decimals_of
from faircount.estimation.sheet_estimates import is_outside
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.sheet_texts import sheet_words_of
from faircount.mechanisms.base import FrequencyMechanism, Mechanism
from faircount.mechanisms.sheets import SheetMechanism
from faircount.owner.combined_result import CombinedResult, combine_results
from faircount.planning.question_groups import half_width
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.wire.messages import Aborted

MAX_ERROR = 25.0
"""Percentage points: an interval twice as wide covers half of all possible values, and tells next
to nothing. Whether a group is shown follows from its error, never from a number of people."""

_COLUMNS = (
    *("invited", "counted", "number", "question", "answer", "measure"),
    *("estimate", "low", "high", "note"),
)

_WORDS = {
    "en": {
        "few": "too few to show",
        "reason": "{name}: with {counted} people counted, the error of question {number} is "
        "±{error:.0f} points, so nothing can be told about it",
        "none": "no result",
        "running": "not over yet",
    },
    "de": {
        "few": "zu wenige, um etwas zu zeigen",
        "reason": "{name}: Bei {counted} gezählten Personen beträgt der Fehler von Frage {number} "
        "±{error:.0f} Punkte, es lässt sich also nichts darüber sagen",
        "none": "kein Ergebnis",
        "running": "läuft noch",
    },
}


def error_of(mechanism: Mechanism, number: int, counted: int) -> float:
    """The 95% error of a question, from 0, in percentage points, with so many people counted."""
    # From the distribution of the noise, so that what is hidden tells nothing about the answers.
    if isinstance(mechanism, SheetMechanism):
        return half_width(mechanism, number, counted)
    if isinstance(mechanism, FrequencyMechanism):
        return 100 * mechanism.expected_errors(counted)[1]
    message = f"the error of {mechanism.name} is not known here"
    raise ParameterError(message).with_code("bad_call")


@dataclass(frozen=True, eq=False)
class GroupResult:
    """How the survey of one group ended.

    name: of the group
    invited: how many people are in it
    ending: its result, or why there is none; None while it is running
    """

    name: str
    invited: int
    ending: QuestionnaireResult | Aborted | None

    @property
    def result(self) -> QuestionnaireResult | None:
        """The result; None without one."""
        return self.ending if isinstance(self.ending, QuestionnaireResult) else None

    def error_of(self, number: int) -> float | None:
        """The 95% error of a question, from 0, in percentage points; None without a result.

        It follows from the noise and the number of people counted, and not from the answers.
        """
        result = self.result
        return None if result is None else error_of(result.mechanism, number, result.included)

    def is_shown(self, number: int) -> bool:
        """Whether a question, from 0, is exact enough in this group to tell anything."""
        error = self.error_of(number)
        # By the error and not by the estimate: whether a group is shown must not depend on its
        # answers.
        return error is not None and error <= MAX_ERROR


@dataclass(frozen=True, eq=False)
class GroupResults:
    """The results of all groups of a survey.

    column: what the groups are
    groups: in the order of the table of people
    language: of the texts
    """

    column: str
    groups: tuple[GroupResult, ...]
    language: str

    @property
    def is_complete(self) -> bool:
        """Whether every group has a result."""
        return all(group.result is not None for group in self.groups)

    def combine(self) -> CombinedResult:
        """The result of all groups together; refused unless every group has one."""
        found = {}
        for group in self.groups:
            # Without one of them the others are other people than those who were asked.
            if group.result is None:
                why = "is not over yet" if group.ending is None else "ended without a result"
                message = f"{self.column} {group.name} {why}, so there is no result of all together"
                raise RefusedError(message).with_code("part_missing", part=group.name)
            found[group.name] = group.result
        return combine_results(found, self.column)

    @property
    def questionnaire(self) -> Questionnaire | None:
        """What was asked; None while no group has a result."""
        for group in self.groups:
            if group.result is not None:
                return group.result.questionnaire
        return None

    @property
    def words(self) -> dict[str, str]:
        """The texts of this language."""
        return _WORDS.get(self.language, _WORDS["en"])

    def table(self, question: int, confidence: float = 0.95) -> list[tuple[str, list[str]]]:
        """Every estimate of a question, from 0, as its label and a text per group."""
        columns = [self._column(group, question, confidence) for group in self.groups]
        labels: list[str] = []
        for found in columns:
            # All groups have the same questions, but one that is not shown has no labels.
            labels += [label for label in found if label not in labels]
        rows = []
        # Where no group has numbers, one row says why.
        labels = labels or [""]
        for label in labels:
            # A group without numbers says why, once, in the first row.
            missing = [self._missing(group, question) for group in self.groups]
            cells = [
                found.get(label, text if label == labels[0] else "")
                for found, text in zip(columns, missing, strict=True)
            ]
            rows.append((label, cells))
        return rows

    def _column(self, group: GroupResult, question: int, confidence: float) -> dict[str, str]:
        if group.result is None or not group.is_shown(question):
            return {}
        words = sheet_words_of(group.result)
        found = group.result.estimates(confidence)[question]
        return {words.label(found, row): _span(words, found, row) for row in found.estimates}

    def _missing(self, group: GroupResult, question: int) -> str:
        """Why a group has no numbers of a question."""
        if group.ending is None:
            return self.words["running"]
        return self.words["none"] if group.result is None else self.words["few"]

    def reasons(self) -> list[str]:
        """What explains marks, missing results, and questions that are too inexact to be shown."""
        lines = self._explain_marks()
        for group in self.groups:
            if isinstance(group.ending, Aborted):
                lines.append(f"{group.name}: {self.words['none']}, {describe_abort(group.ending)}")
            if group.result is None:
                continue
            for number in range(len(group.result.questionnaire)):
                if not group.is_shown(number):
                    facts = {"name": group.name, "counted": group.result.included}
                    error = group.error_of(number)
                    lines.append(
                        self.words["reason"].format(number=number + 1, error=error, **facts)
                    )
        return lines

    def _explain_marks(self) -> list[str]:
        for group in self.groups:
            questions = () if group.result is None else group.result.questions
            for number, question in enumerate(questions):
                if group.result is not None and question.has_outside and group.is_shown(number):
                    return [sheet_words_of(group.result).general.outside_note]
        return []

    def to_dict(self, confidence: float = 0.95) -> dict[str, Any]:
        """Plain values for JSON; estimates that tell nothing are left out."""
        groups = []
        for group in self.groups:
            facts: dict[str, Any] = {"name": group.name, "invited": group.invited}
            if isinstance(group.ending, Aborted):
                facts["problem"] = describe_abort(group.ending)
            if group.result is not None:
                facts["counted"] = group.result.included
                facts["guarantee"] = group.result.guarantee.to_dict()
                facts["questions"] = [
                    self._describe(group, number, found)
                    for number, found in enumerate(group.result.estimates(confidence))
                ]
            groups.append(facts)
        return {
            **plain.JSON_VERSION,
            "column": self.column,
            "confidence": confidence,
            "groups": groups,
        }

    def to_csv(self, confidence: float = 0.95) -> bytes:
        """One row per group and estimate; a question that tells nothing has a row that says so."""
        rows: list[tuple[object, ...]] = []
        for group in self.groups:
            found = () if group.result is None else group.result.estimates(confidence)
            counted = None if group.result is None else group.result.included
            for number, question in enumerate(found):
                head = (group.name, group.invited, counted, question.number, question.text)
                if not group.is_shown(number):
                    rows.append((*head, "", "", None, None, None, self.words["few"]))
                    continue
                for row in question.estimates:
                    numbers = (row.estimate, row.low, row.high)
                    rows.append((*head, row.answer, row.measure, *numbers, ""))
            if not found:
                why = self._missing(group, 0)
                rows.append((group.name, group.invited, *([None] * 8), why))
        return write_csv((self.column, *_COLUMNS), rows)

    def _describe(
        self, group: GroupResult, number: int, found: QuestionEstimates
    ) -> dict[str, Any]:
        shown = group.is_shown(number)
        described = found.to_dict()
        if not shown:
            # The error stays, from which a reader sees why the numbers are missing.
            described["estimates"] = []
        return {**described, "half_width": group.error_of(number), "shown": shown}


def _span(words: Any, found: QuestionEstimates, row: Any) -> str:
    """An estimate with its interval."""
    digits = decimals_of(found, row)
    mark = OUTSIDE_MARK if is_outside(row) else ""
    return f"{words.value(row, row.estimate, digits)} ({words.range(row, digits)}){mark}"
