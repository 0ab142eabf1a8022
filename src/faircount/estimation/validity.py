"""What is known about the reports behind a result: proven to be one vote each, or unchecked."""

import math
from dataclasses import dataclass
from typing import Any

from faircount.core.questions import Questionnaire
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.sums import SumQuestion

FAILURE_BITS = 40
"""Where reports are proven, an invalid one is counted with probability 2^-40 at most.

This holds for the whole survey, not for a single report.
"""

ASSUMPTIONS = {
    False: (
        "clients follow the protocol; no report is proven to be one vote, "
        "so a malicious one may count for many"
    ),
    True: "clients may be malicious; only reports that are proven to be one vote are counted",
}
"""What a plan or a result assumes about the clients, by whether reports are proven."""


ROWS_ASSUMPTION = "every row of the table holds what that person answered"


# Numbers and not sentences: the page and the dashboard say the same in other languages.
@dataclass(frozen=True, slots=True)
class Validity:
    """How much dishonest participants can have changed a result.

    proven:  whether every counted report was proven to be one vote
    counted: reports in the sums
    refused: reports that arrived and are not counted: they could not be decrypted or, where reports
             are proven, are not valid
    coins:   whether clients also made the noise, of coins that they could not choose
    questionnaire: what was asked; None for one question with exactly one answer
    alike_votes: with hidden levels, how many votes one report can have in the estimates that
             assume that people are alike; None where there are none
    """

    proven: bool
    counted: int
    refused: int
    coins: bool = False
    questionnaire: Questionnaire | None = None
    alike_votes: float | None = None

    @property
    def is_one_vote(self) -> bool:
        """Whether a report is one vote for one of several answers, and nothing else."""
        if self.questionnaire is None:
            return True
        first, *others = self.questionnaire.questions
        return not others and isinstance(first, ChoiceQuestion)

    @property
    def has_branches(self) -> bool:
        """Whether a question was meant for some participants only, which no proof shows."""
        if self.questionnaire is None:
            return False
        return any(question.only_if is not None for question in self.questionnaire.questions)

    @property
    def sums(self) -> tuple[tuple[int, float], ...]:
        """Numbers of the questions with a sum, and by how much one report can change each."""
        if self.questionnaire is None:
            return ()
        found = []
        for number, question in enumerate(self.questionnaire.questions, 1):
            if isinstance(question, SumQuestion):
                # From the lowest to the highest answer: as far as a valid report can move the sum.
                found.append((number, float(question.unit * question.largest)))
        return tuple(found)

    def frequency_bound(self, dishonest: int) -> float:
        """Return by how much so many dishonest participants can change a frequency at most."""
        if self.proven and self.counted:
            return min(1.0, dishonest / self.counted)
        # Without proofs a single report can hold any numbers, and so make a frequency anything.
        return float(dishonest > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; without proofs there is no bound."""
        # The keys exist in both cases: a program reads null as "no bound", not as "forgotten".
        bounds: dict[str, Any] = {
            "count_per_liar": None,
            "frequency_per_liar": None,
            "fails_with_probability": None,
        }
        if self.proven:
            bounds = {
                "count_per_liar": 1,
                "frequency_per_liar": self.frequency_bound(1),
                "fails_with_probability": 2.0**-FAILURE_BITS,
            }
        if self.proven and self.sums:
            bounds["sums_per_liar"] = [
                {"question": number, "sum": reach} for number, reach in self.sums
            ]
        if self.alike_votes is not None:
            bounds["votes_per_liar_if_alike"] = self.alike_votes
        return {
            "proven": self.proven,
            "counted": self.counted,
            "refused": self.refused,
            **bounds,
            "statement": str(self),
        }

    def __str__(self) -> str:
        reports = f"{self.counted} reports counted, {self.refused} refused."
        if not self.proven:
            return (
                f"{reports} They were not proven: "
                "a malicious client can change any count by any amount."
            )
        coins = ", and coins that its sender could not choose" if self.coins else ""
        return (
            f"{reports} {self._proven_part(coins)}{self._alike_part()} This fails with "
            f"probability below 2^-{FAILURE_BITS} in this survey, if both servers followed the "
            "protocol and no client learned the secret values of both before the batch manifest "
            "was fixed. A dishonest server can change the result and leave out anybody; invented "
            "people count as people. No independent security review yet."
        )

    def _alike_part(self) -> str:
        """What a dishonest participant can change in estimates from two tables."""
        if self.alike_votes is None:
            return ""
        # Rounded up: it must not look smaller than it is.
        votes = math.ceil(10 * self.alike_votes) / 10
        return (
            " In the estimates that count some people twice, each counts like at most "
            f"{votes:.1f} votes."
        )

    def _proven_part(self, coins: str) -> str:
        """What is proven of a report, and what a dishonest participant can change nevertheless."""
        if self.is_one_vote:
            return (
                f"Every counted report added exactly one to exactly one item{coins}. Each "
                "dishonest participant can change a count by at most one and a frequency by at "
                f"most 1/{self.counted}, before frequencies are made consistent."
            )
        sums = "".join(
            f", the sum of question {number} by at most {reach:.6g}" for number, reach in self.sums
        )
        text = (
            "Every counted report is one sheet with a possible answer to every question. Each "
            f"dishonest participant can change a count by at most one{sums}, and a share of all "
            f"people by at most 1/{self.counted}, before shares are made consistent."
        )
        if self.has_branches:
            text += (
                " It is not proven that only those answered a question whom it concerns: a "
                "dishonest participant may answer it anyway."
            )
        return text


def describe_assumption(validity: Validity | None, *, is_survey: bool) -> str:
    """What a result assumes about the clients, or about the table that it was computed from.

    is_survey: whether people answered over a network, with clients of their own
    """
    proven = validity is not None and validity.proven
    # Computed in one process, with or without the messages of a topology: all clients were ours, so
    # only the rows can be wrong.
    if not is_survey and not proven:
        return ROWS_ASSUMPTION
    return ASSUMPTIONS[proven]
