"""What is said about a combined result, in the languages of surveys."""

from collections.abc import Mapping
from dataclasses import dataclass

from faircount.accounting.guarantee import attacker_certainty, format_delta, format_rounded_up
from faircount.estimation.presentation import decimals_for
from faircount.estimation.result_texts import words_of
from faircount.owner.combined_result import (
    CPA,
    IF_ALIKE_WAYS,
    CombinedResult,
    guarantee_of,
    largest_vote,
    mean_error,
    promise_of,
)
from faircount.owner.exports import View

_ENGLISH = {
    "headline": "Every person counts the same (uwa). This holds whatever the {parts} answer.",
    "if_alike": "A second estimate, with weights by variance (total); it is right only if the "
    "{parts} answer alike",
    "differ": "A test found that the {parts} differ by more than chance (p = {p}): do not read the "
    "weighted estimates.",
    "no_difference": "A test found no difference between the {parts} (p = {p}). This does not "
    "prove that they answer alike: with this much noise only large differences show.",
    "one_level": "One survey of everybody at epsilon {epsilon} would have had a standard error of "
    "{error} (cpa), against {ours} (uwa).",
    "votes": "With weights by variance the answer of one person may count like {votes} votes.",
    "ways": "How the {parts} can be combined: standard error of an average answer, and weights",
    "parts_heading": "The {parts}",
    "sure": "at most {sure} sure",
    "way": "weights",
    "error": "std. error",
    "people": "counted",
    "protection": "one of two answers",
    "question": "Question {number}",
    "public": "It is public who is in which of the {parts}; the noise hides answers, not "
    "membership. If the choice depended on the answer, it tells something about it.",
    "several": "Estimates with weights by variance are made of questions with exactly one answer.",
}
_GERMAN = {
    "headline": "Alle Personen zählen gleich viel (uwa). Das gilt, was auch immer in den {parts} "
    "geantwortet wird.",
    "if_alike": "Eine zweite Schätzung mit Gewichten nach der Varianz (total); sie stimmt nur, "
    "wenn in allen {parts} gleich geantwortet wird",
    "differ": "Ein Test ergab, dass sich die {parts} mehr als zufällig unterscheiden (p = {p}): "
    "Die gewichteten Schätzungen gelten dann nicht.",
    "no_difference": "Ein Test fand keinen Unterschied zwischen den {parts} (p = {p}). Das "
    "beweist nicht, dass gleich geantwortet wurde: Bei so viel Rauschen zeigen sich nur große "
    "Unterschiede.",
    "one_level": "Eine Umfrage unter allen mit Epsilon {epsilon} hätte einen Standardfehler von "
    "{error} gehabt (cpa), statt {ours} (uwa).",
    "votes": "Mit Gewichten nach der Varianz kann die Antwort einer Person wie {votes} Stimmen "
    "zählen.",
    "ways": "Wie die {parts} zusammengefasst werden können: Standardfehler einer "
    "durchschnittlichen Antwort, und Gewichte",
    "parts_heading": "Die {parts}",
    "sure": "höchstens zu {sure} sicher",
    "way": "Gewichte",
    "error": "Standardfehler",
    "people": "gezählt",
    "protection": "eine von zwei Antworten",
    "question": "Frage {number}",
    "public": "Es ist öffentlich, wer in welcher der {parts} ist; das Rauschen verbirgt Antworten, "
    "nicht die Zugehörigkeit. Wenn die Wahl von der Antwort abhing, verrät sie etwas darüber.",
    "several": "Schätzungen mit Gewichten nach der Varianz gibt es für Fragen mit genau einer "
    "Antwort.",
}
_LANGUAGES: Mapping[str, Mapping[str, str]] = {"en": _ENGLISH, "de": _GERMAN}

# What the parts are called.
_PARTS = {
    ("en", True): "levels",
    ("en", False): "surveys",
    ("de", True): "Stufen",
    ("de", False): "Umfragen",
}

Table = tuple[list[str], list[list[str]]]
"""Headings and rows."""


@dataclass(frozen=True)
class CombinedWords:
    """What one language says about a combined result.

    result: the result
    are_levels: whether its parts are privacy levels; otherwise they are surveys
    """

    result: CombinedResult
    are_levels: bool

    @property
    def _language(self) -> str:
        return words_of(self.result).language

    def text(self, name: str, **values: object) -> str:
        """A sentence or a heading."""
        # A survey may have been made in a language that has no such sentences yet.
        language = self._language if self._language in _LANGUAGES else "en"
        parts = _PARTS[language, self.are_levels]
        return _LANGUAGES[language][name].format(parts=parts, **values)

    def sentences(self, number: int) -> list[str]:
        """What a reader must know about a question, from 0, that was combined."""
        counted = self.result.counts(number)
        if counted is None:
            return [self.text("several")]
        name = "differ" if counted.test.rejected else "no_difference"
        found = [self.text(name, p=self._number(f"{counted.test.p_value:.3g}"))]
        error = self.result.error_of_one_level(number)
        if error is not None:
            strictest, _ = promise_of(next(iter(self.result.parts.values())))
            found.append(
                self.text(
                    "one_level",
                    epsilon=self._number(f"{strictest:g}"),
                    error=self._percent(error),
                    ours=self._percent(mean_error(counted)),
                )
            )
        # The largest of all ways: a dishonest participant does not choose the one that is read.
        votes = max(map(largest_vote, self.result.if_alike(number).values()))
        found.append(self.text("votes", votes=self._number(f"{votes:.2g}")))
        return found

    def weighted_table(self, number: int, view: View) -> Table | None:
        """A question, from 0, with weights by total variance; None where there is no such."""
        made = self.result.if_alike(number).get(IF_ALIKE_WAYS[0])
        if made is None:
            return None
        words = words_of(self.result)
        bounds = made.interval(view.confidence, covers=view.covers)
        digits = decimals_for(bounds)
        rows = []
        columns = (made.estimates.tolist(), bounds.low.tolist(), bounds.high.tolist())
        for item, estimate, low, high in zip(made.items, *columns, strict=True):
            span = words.range(low, high, digits)
            rows.append([str(item), words.percent(estimate, digits), span])
        headings = [words.answer, words.estimate, words.interval_heading(view.confidence)]
        return headings, rows

    def ways(self, number: int) -> Table:
        """Every way to combine a question, from 0, with its error and weights."""
        counted = self.result.counts(number)
        headings = [self.text("way"), self.text("error"), *self.result.parts]
        if counted is None:
            return headings, []
        rows = []
        for name, way in {"uwa": counted, **self.result.if_alike(number)}.items():
            weights = [self._number(f"{weight:.3f}") for weight in way.weights]
            rows.append([name, self._percent(mean_error(way)), *weights])
        error = self.result.error_of_one_level(number)
        if error is not None:
            rows.append([CPA, self._percent(error), *[""] * len(self.result.parts)])
        return headings, rows

    def parts(self) -> Table:
        """Every part: its people, and what it promised them."""
        words = words_of(self.result)
        headings = [self.result.column, self.text("people"), "epsilon", "delta"]
        headings.append(self.text("protection"))
        rows = []
        for name, part in self.result.parts.items():
            stated = guarantee_of(part)
            # What was achieved, in the words in which it was promised.
            sure = words.percent(attacker_certainty(stated.epsilon) / 100)
            rows.append(
                [
                    name,
                    words.number(part.included),
                    self._number(format_rounded_up(stated.epsilon, 4)),
                    self._number(format_delta(stated.delta, 2)),
                    self.text("sure", sure=sure),
                ]
            )
        return headings, rows

    def _percent(self, share: float) -> str:
        return words_of(self.result).percent(share, 2)

    def _number(self, text: str) -> str:
        return text.replace(".", ",") if self._language == "de" else text
