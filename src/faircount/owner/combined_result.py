"""The combined result of disjoint groups of people who were asked the same questions.

The headline counts every person the same (UWA): it is unbiased, and its intervals hold, whatever
the groups answer and however people came to be in one. Weights by variance (total, VWA, OWA) have a
smaller error, but only if the groups answer alike, so those estimates stand beside the headline
under this condition. A test informs about the condition and chooses nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from faircount.accounting.conditions import ConditionCode, condition_of
from faircount.accounting.guarantee import Guarantee
from faircount.analysis.groups import (
    IF_ALIKE,
    GroupCounts,
    GroupedHistogram,
    combine_groups,
    combine_guarantees,
)
from faircount.core.arrays import Floats, Ints
from faircount.core.errors import ParameterError
from faircount.core.questions.choices import ChoiceQuestion
from faircount.estimation.pooled_noise import PooledNoise
from faircount.estimation.question_counts import QuestionCounts
from faircount.estimation.question_estimates import QuestionEstimates
from faircount.estimation.record import SurveyRecord
from faircount.estimation.result import add_conditions
from faircount.estimation.sheet_frequencies import estimate_frequencies
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.validity import Validity
from faircount.mechanisms.base import FrequencyMechanism, Mechanism
from faircount.mechanisms.sheets import SheetNoise
from faircount.owner.exports import signed_privacy

IF_ALIKE_WAYS = ("total", "vwa", "owa")
"""Weights by variance, the recommended one first."""

CPA = "cpa"


@dataclass(frozen=True, eq=False, repr=False)
class CombinedResult(QuestionnaireResult):
    """Estimates among the people of all parts together, every person counting the same.

    parts:   the result of every level or survey, by its name, the strictest epsilon first
    column:  what the parts are: the column of levels, or "survey"
    """

    parts: Mapping[str, QuestionnaireResult] = field(default_factory=dict)
    column: str = ""

    @property
    def _results(self) -> tuple[QuestionnaireResult, ...]:
        return tuple(self.parts.values())

    @cached_property
    def noise(self) -> SheetNoise | None:
        """The added joint noise of all parts; None where a part counts one vote each."""
        noises = [result.noise for result in self._results]
        known = [noise for noise in noises if noise is not None]
        # All or nothing: the distribution of a sum of which one part is unknown is unknown.
        return PooledNoise(known) if len(known) == len(noises) else None

    @property
    def frequencies(self) -> None:
        """None: no single mechanism counted all votes."""
        return None

    @property
    def name(self) -> str:
        """Names of the mechanisms that ran."""
        return "+".join(dict.fromkeys(result.name for result in self._results))

    @property
    def requested(self) -> dict[str, float | None]:
        """The largest epsilon and delta of a part: nobody is in two of them."""
        promised = list(map(promise_of, self._results))
        return {
            # The largest and not the sum, since the parts are disjoint: nobody loses in two of
            # them.
            "epsilon": max(epsilon for epsilon, _ in promised),
            "delta": max(delta for _, delta in promised),
        }

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The weakest part's guarantee, which holds for everybody."""
        membership = condition_of(ConditionCode.PUBLIC_GROUPS_BY, column=self.column)
        # Tables of people name addresses: somebody with two of them would lose in both parts.
        disjoint = condition_of(ConditionCode.ONE_GROUP)
        # What holds for all people together is what the worst-protected of them have.
        weakest = combine_guarantees(list(map(guarantee_of, self._results)))
        # `combine_guarantees` says that the membership is public, but not by what.
        return (add_conditions(_without_membership(weakest), (membership, disjoint)),)

    def counts(self, number: int) -> GroupedHistogram | None:
        """The answers to a question, from 0, in all parts; None unless everybody gives one."""
        if not isinstance(self.questionnaire.questions[number], ChoiceQuestion):
            return None
        return self._counted[number]

    @cached_property
    def _counted(self) -> dict[int, GroupedHistogram]:
        found = {}
        for number, question in enumerate(self.questionnaire.questions):
            if isinstance(question, ChoiceQuestion):
                votes = {name: _votes(part, number) for name, part in self.parts.items()}
                found[number] = combine_groups(votes, "uwa")
        return found

    @cached_property
    def _weighted(self) -> dict[tuple[int, str], GroupedHistogram]:
        found = {}
        for number, counted in self._counted.items():
            for way in IF_ALIKE_WAYS:
                found[number, way] = counted.weigh(way)
        return found

    def if_alike(self, number: int) -> dict[str, GroupedHistogram]:
        """A question, from 0, with weights by variance, which assume that the parts are alike."""
        return {way: made for (place, way), made in self._weighted.items() if place == number}

    def error_of_one_level(self, number: int) -> float | None:
        """The standard error if everybody had been asked at the strictest epsilon (CPA).

        number: of the question, from 0
        """
        # Noise does not grow with the number of people: the same noise is divided by all of them.
        strictest = self._results[0]
        if strictest.noise is not None:
            return float(np.sqrt(strictest.noise.distribution(number).variance)) / self.included
        mechanism = strictest.mechanism
        if not isinstance(mechanism, FrequencyMechanism):
            return None
        return replace(mechanism, users=self.included).expected_errors(self.included)[0]

    def _estimate_votes(
        self, confidence: float, covers: str, simultaneous: bool
    ) -> QuestionEstimates:
        question = self._require_choice()
        counted = self._counted[0]
        rows, coverage = estimate_frequencies(counted, question, confidence, covers, simultaneous)
        return QuestionEstimates(1, question, rows, coverage, self.requested["epsilon"])

    def to_dict(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> dict[str, Any]:
        """Return plain values for JSON."""
        parts = []
        for name, part in self.parts.items():
            epsilon, delta = promise_of(part)
            parts.append(
                {
                    "name": name,
                    "survey": None if part.record is None else part.record.survey,
                    "invited": None if part.record is None else part.record.invited,
                    "counted": part.included,
                    "mechanism": part.name,
                    "topology": part.topology,
                    "epsilon": epsilon,
                    "delta": delta,
                    "guarantee": guarantee_of(part).to_dict(),
                }
            )
        numbers = range(len(self.questionnaire))
        return {
            **super().to_dict(confidence, covers=covers, simultaneous=simultaneous),
            "weighting": "uwa",
            "column": self.column,
            "parts": parts,
            "combined": [self._ways_to_dict(number, confidence, covers) for number in numbers],
        }

    def _ways_to_dict(self, number: int, confidence: float, covers: str) -> dict[str, Any]:
        """What stands beside the headline of one question."""
        found: dict[str, Any] = {
            "number": number + 1,
            "one_level_for_all": {
                "weighting": CPA,
                "epsilon": promise_of(self._results[0])[0],
                "standard_error": self.error_of_one_level(number),
            },
        }
        counted = self.counts(number)
        if counted is None:
            return found
        found["uwa"] = {
            "weights": dict(zip(self.parts, counted.weights.tolist(), strict=True)),
            "standard_error": mean_error(counted),
        }
        # Reported and not acted upon: a result whose weights a test chose would have no interval.
        found["homogeneity"] = {
            "p_value": counted.test.p_value,
            "rejected": counted.test.rejected,
            "words": counted.test.words,
        }
        found["if_alike"] = []
        for way, weighted in self.if_alike(number).items():
            plain = weighted.to_dict(confidence, covers=covers)
            found["if_alike"].append(
                {
                    "weighting": way,
                    "condition": IF_ALIKE,
                    "weights": dict(zip(self.parts, weighted.weights.tolist(), strict=True)),
                    "standard_error": mean_error(weighted),
                    "largest_vote": largest_vote(weighted),
                    "estimates": plain["estimates"],
                    "consistent": plain["consistent"],
                }
            )
        return found


def combine_results(parts: Mapping[str, QuestionnaireResult], column: str) -> CombinedResult:
    """Combine the results of disjoint people who were asked the same.

    parts: at least two results by their names
    column: what the parts are
    """
    if len(parts) < 2:
        message = "at least 2 results are needed to combine them"
        raise ParameterError(message).with_code("too_few_results")
    # By epsilon, so that the parts stand in the same order in every file and language.
    ordered = dict(sorted(parts.items(), key=lambda part: promise_of(part[1])[0]))
    results = list(ordered.values())
    asked = results[0].questionnaire
    if any(result.questionnaire != asked for result in results):
        message = "the surveys asked different questions, or offered different answers"
        raise ParameterError(message).with_code("different_questions")
    mechanism: Mechanism = results[0].mechanism
    return CombinedResult(
        asked,
        mechanism,
        _add_cells(results),
        sum(result.included for result in results),
        _merge_facts(results),
        (),
        (),
        ordered,
        column,
    )


def _add_cells(results: Sequence[QuestionnaireResult]) -> Ints | Floats:
    """The sums of disjoint people, which add up."""
    if all(result.noise is not None for result in results):
        return np.asarray(sum(result.cells for result in results))
    # Mechanisms may open the counts of two answers as one cell or as two. These sums are shown to
    # nobody: where one mechanism samples, the parts are estimated one by one.
    return np.asarray(sum(_votes(result, 0).aggregate for result in results))


def promise_of(part: QuestionnaireResult) -> tuple[float, float]:
    """Epsilon and delta that the people of a part were promised."""
    signed = signed_privacy(part)
    if signed:
        return signed["epsilon"], signed["delta"]
    return part.requested["epsilon"] or 0.0, part.requested["delta"] or 0.0


def guarantee_of(part: QuestionnaireResult) -> Guarantee:
    """What the people of a part have, at the epsilon that they were promised."""
    promised = promise_of(part)[0]
    # Sampling has no epsilon of its own; its result alone states it at an epsilon that all share.
    if part.requested["epsilon"] is None and promised > 0:
        return add_conditions(part.mechanism.guarantee(epsilon=promised), part.conditions)
    return part.guarantee


def _votes(part: QuestionnaireResult, number: int) -> GroupCounts:
    """The counts of one question in one part, whatever its mechanism."""
    return part.frequencies or QuestionCounts(part, number)


def _without_membership(guarantee: Guarantee) -> Guarantee:
    """The guarantee without the clause that groups are public, which is said more exactly."""
    condition = guarantee.condition
    if condition is None:
        return guarantee
    kept = [clause for clause in condition.clauses if clause.code != ConditionCode.PUBLIC_GROUPS]
    return replace(guarantee, condition=replace(condition, clauses=tuple(kept)) if kept else None)


def mean_error(histogram: GroupedHistogram) -> float:
    """The standard error of an average answer."""
    return float(np.sqrt(np.mean(histogram.standard_errors**2)))


def largest_vote(weighted: GroupedHistogram) -> float:
    """As how many votes the answer of one person counts at most, with these weights."""
    # A weight per person, where 1 is what everybody has in the headline.
    sizes = np.array([group.included for group in weighted.groups.values()])
    return float((weighted.weights * weighted.included / sizes).max())


def _merge_facts(results: Sequence[QuestionnaireResult]) -> dict[str, object]:
    """What is known about all surveys together."""
    facts: dict[str, object] = {
        "topology": "+".join(dict.fromkeys(str(result.topology) for result in results)),
        "simulation": any(result.simulation for result in results),
    }
    checked = [result.validity for result in results if result.validity is not None]
    if len(checked) == len(results):
        facts["validity"] = Validity(
            # One unproven part lets a malicious client change the sum as much as if all were.
            all(validity.proven for validity in checked),
            sum(validity.counted for validity in checked),
            sum(validity.refused for validity in checked),
            any(validity.coins for validity in checked),
            checked[0].questionnaire,
        )
    records = [result.record for result in results if result.record is not None]
    if len(records) == len(results):
        facts["record"] = _merge_records(records)
    return facts


def _merge_records(records: Sequence[SurveyRecord]) -> SurveyRecord:
    first = records[0]
    opened = [record.opened for record in records if record.opened]
    ended = [record.ended for record in records if record.ended]
    return replace(
        first,
        survey=", ".join(record.survey for record in records),
        name=", ".join(record.name for record in records),
        # From the first opening to the last end; times are ISO 8601 in UTC and sort as texts.
        opened=min(opened, default=None),
        ended=max(ended, default=None),
        invited=sum(record.invited for record in records),
        responded=sum(record.responded for record in records),
        counted=sum(record.counted for record in records),
        s1_operator=_one_name([record.s1_operator for record in records]),
        s2_operator=_one_name([record.s2_operator for record in records]),
        # If one part was a trial, its people were not protected from that operator.
        one_operator=any(record.one_operator for record in records),
    )


def _one_name(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))
