"""What a survey's result says in words, in English; other languages override it."""

from faircount.accounting.conditions import Condition
from faircount.accounting.guarantee import Guarantee
from faircount.core import plain
from faircount.estimation.intervals import Coverage, Intervals
from faircount.estimation.presentation import (
    OUTSIDE_NOTE,
    REPETITION,
    SIMULATION,
    Described,
    Summed,
    describe_sum,
)
from faircount.estimation.record import ENGLISH, SurveyRecord


class ResultWords:
    """English, which is also what every other language derives from."""

    language = ENGLISH
    result = "Result"
    about = "About"
    answer = "Answer"
    estimate = "Estimate"
    consistent = "Consistent"
    columns = ("item", "estimate", "low", "high", "consistent")
    privacy = "Privacy"
    reports = "Reports"
    survey = "Survey"
    intervals = "Intervals"
    sum = "Sum"
    guarantee = "Guarantee"
    in_words = "In words"
    running_again = "Running again"
    simulation = SIMULATION
    outside_note = OUTSIDE_NOTE
    repetition = REPETITION

    def number(self, value: int) -> str:
        """A number of people."""
        return f"{value:,}"

    def percent(self, share: float, digits: int = 1) -> str:
        """A share as a percentage; the z turns a rounded -0.0% into 0.0%."""
        return f"{share:z.{digits}%}"

    def range(self, low: float, high: float, digits: int = 1) -> str:
        """An interval of shares."""
        return f"{self.percent(low, digits)} to {self.percent(high, digits)}"

    def interval_heading(self, confidence: float) -> str:
        """The title of the column of intervals."""
        return f"{plain.format_confidence(confidence)} interval"

    def interval_text(self, confidence: float, bounds: Intervals | Coverage) -> str:
        """What the intervals cover."""
        # Said every time: twenty intervals of 95% each miss once on average.
        scope = "all together" if bounds.simultaneous else "each"
        return f"{plain.format_confidence(confidence)} {scope}; {bounds.method}"

    def axis(self, result: Described, confidence: float, covers: str, *, consistent: bool) -> str:
        """What the bars and lines of a figure are."""
        kind = "consistent share" if consistent else "share"
        # A table has users, who need not be people; a survey has people.
        noun = "users" if result.record is None else "people counted"
        subject = f"{result.included:,} {noun}"
        if covers == "population":
            subject = f"the population, from {result.included:,} {noun}"
        return f"{kind} of {subject}, with {plain.format_confidence(confidence)} intervals"

    def trend_axis(self, confidence: float) -> str:
        """What the lines of a trend are."""
        return f"share, with {plain.format_confidence(confidence)} intervals"

    def sum_note(self, result: Summed) -> str | None:
        """Why the estimates do not sum to 100%; None where they do."""
        return describe_sum(result)

    def short_sum_note(self, result: Summed) -> str | None:
        """The same without what is about numbers that a figure does not show."""
        # What follows the semicolon compares them with the consistent shares, which tables show.
        note = self.sum_note(result)
        return None if note is None else note.partition("; ")[0]

    def claim(self, guarantee: Guarantee) -> str:
        """The guarantee in the terms of experts."""
        return str(guarantee)

    def condition(self, condition: Condition) -> str:
        """What must be true for a guarantee to hold."""
        return str(condition)

    def certainty(self, sure: float) -> str:
        """What the guarantee means for one person: how sure of the answer anybody can become."""
        return (
            "Imagine somebody who thinks that two answers of a person are equally likely. Even "
            f"after seeing the result, they can be at most {self.percent(sure)} sure which one it "
            "is."
        )

    def sentence(self, guarantee: Guarantee) -> str:
        """The guarantee in one plain sentence."""
        return guarantee.sentence

    def statement(self, result: Described) -> str:
        """What is known or assumed about the reports."""
        if result.validity is not None:
            return str(result.validity)
        return self.assumption_text(result)

    def assumption_text(self, result: Described) -> str:
        """What is assumed about the clients."""
        return f"Assumption: {result.assumption}."

    def record_lines(self, record: SurveyRecord) -> tuple[tuple[str, str], ...]:
        """The survey behind a result, as labels and texts."""
        return record.lines

    def people(self, record: SurveyRecord) -> str:
        """How many were invited, responded and were counted."""
        return record.people

    def servers(self, record: SurveyRecord) -> str:
        """Who ran both servers; empty if nobody recorded it."""
        return record.servers

    def dates(self, record: SurveyRecord) -> str:
        """When the survey was open; empty if nobody recorded it."""
        return record.dates

    def open_dates(self, record: SurveyRecord) -> str:
        """The same as a part of a longer line."""
        return f"open {record.dates}" if record.dates else ""

    def survey_id(self, record: SurveyRecord) -> str:
        """The id of a survey as a part of a longer line."""
        return f"survey {record.survey}"
