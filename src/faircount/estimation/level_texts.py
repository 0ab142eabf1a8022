"""Words about hidden privacy levels, in the languages of the pages."""

from collections.abc import Mapping
from dataclasses import dataclass

from faircount.accounting.guarantee import attacker_certainty, format_rounded_up
from faircount.accounting.levels import LevelGuarantee
from faircount.core import plain
from faircount.estimation.sheet_estimates import ALIKE_CONDITION
from faircount.estimation.sheet_result import QuestionnaireResult


@dataclass(frozen=True)
class LevelWords:
    """What one language says about levels.

    language:  its code
    decimal:   sign between the digits of a number
    thousands: sign between thousands
    names:     levels that programs know; others are the owner's words
    title:     heading of what a result says about levels
    condition: above the weighted estimates, which are never shown without it
    again:     how many people were counted a second time
    level:     what is guaranteed at one level
    differs, alike: the outcome of the test
    question:  asked before a person answers
    strongest, between, weakest: what a level means, in odds
    both:      about answer and level together
    hidden:    that nobody learns the choice
    number_of_level: asked in a terminal
    """

    language: str
    decimal: str
    thousands: str
    names: Mapping[str, str]
    title: str
    condition: str
    again: str
    level: str
    differs: str
    alike: str
    question: str
    strongest: str
    between: str
    weakest: str
    both: str
    hidden: str
    number_of_level: str

    def number(self, value: float) -> str:
        """A number of people."""
        return f"{round(value):,}".replace(",", self.thousands)

    def percent(self, epsilon: float) -> str:
        """How sure of one of two answers anybody can become."""
        # Rounded up where it is computed: nobody is promised more than what holds.
        return f"{attacker_certainty(epsilon):.1f}".replace(".", self.decimal)

    def name(self, level: str) -> str:
        """A level in this language, if it is one of the usual names."""
        # An owner may name levels freely; only the usual names are translated.
        return self.names.get(level, level)

    def describe(self, guarantee: LevelGuarantee) -> str:
        """What is guaranteed to the people of one level."""
        losses = {
            "answer": guarantee.answer.epsilon,
            "both": guarantee.with_level.epsilon,
        }
        shown = {
            key: format_rounded_up(loss, 4).replace(".", self.decimal)
            for key, loss in losses.items()
        }
        sure = {f"{key}_sure": self.percent(loss) for key, loss in losses.items()}
        return self.level.format(name=self.name(guarantee.name), **shown, **sure)

    def meaning(self, position: int, levels: int, answer: str, both: str) -> str:
        """What a level means for the person who chooses it.

        answer, both: how sure anybody can become, in percent, of the answer, and of both
        """
        text = self.between
        if position == 0:
            text = self.strongest
        elif position == levels - 1:
            text = self.weakest
        return f"{text.format(sure=answer)} {self.both.format(both=both)}"

    def lines(self, result: QuestionnaireResult, confidence: float) -> list[str]:
        """What a result says about levels besides its estimates; empty where there are none."""
        tables = result.tables
        if tables is None:
            return []
        again = tables.counted_again(confidence)
        counted = self.again.format(
            estimate=self.number(again.estimate),
            included=self.number(result.included),
            low=self.number(again.low),
            high=self.number(again.high),
            confidence=plain.format_confidence(confidence),
        )
        p_value = f"{tables.test.p_value:.3g}".replace(".", self.decimal)
        # Both outcomes are stated: saying nothing would read as "alike".
        outcome = (self.differs if tables.test.rejected else self.alike).format(p=p_value)
        # One line per level: what holds for the weakest would frighten those who chose the
        # strongest.
        guarantees = tables.mechanism.levels.guarantees(result.guarantee)
        return [counted, outcome, *map(self.describe, guarantees)]


_ENGLISH = LevelWords(
    language="en",
    decimal=".",
    thousands=",",
    names={},
    title="Privacy levels",
    condition=f"{ALIKE_CONDITION[:1].upper()}{ALIKE_CONDITION[1:]}",
    again="About {estimate} of {included} people were counted twice ({confidence}: {low} to "
    "{high})",
    level="{name}: epsilon {answer} for the answer (nobody can be more than {answer_sure} % sure "
    "which of two it is), epsilon {both} for answer and level together ({both_sure} %)",
    differs="Those counted twice answered differently from everybody (p = {p}): the estimates "
    "under that condition are wrong",
    alike="No difference between those counted twice and everybody was found (p = {p}). This does "
    "not prove that they are alike: with this much noise only large differences show",
    question="How well should your answer be hidden?",
    strongest="Even after seeing the result, nobody can be more than {sure} % sure which of two "
    "answers is yours. 50 % would be a guess.",
    between="At most {sure} % sure. Your device tosses a coin: your answer may be counted a "
    "second time, which makes the result more exact.",
    weakest="At most {sure} % sure. Your answer is counted a second time, which makes the "
    "result more exact.",
    both="Somebody who guesses both your answer and your choice here can be at most {both} % sure.",
    hidden="Nobody learns what you choose here. It stays on this device, and what is sent looks "
    "the same whatever you choose.",
    number_of_level="Number of your level",
)

_GERMAN = LevelWords(
    language="de",
    decimal=",",
    thousands=".",
    names={"very strong": "sehr stark", "strong": "stark", "normal": "normal"},
    title="Schutzstufen",
    condition="Falls Personen mit schwächerem Schutz so antworten wie alle",
    again="Etwa {estimate} von {included} Personen wurden doppelt gezählt ({confidence}: {low} bis "
    "{high})",
    level="{name}: Epsilon {answer} für die Antwort (niemand kann mehr als zu {answer_sure} % "
    "sicher sein, welche von zweien es ist), Epsilon {both} für Antwort und Schutzstufe zusammen "
    "({both_sure} %)",
    differs="Die doppelt Gezählten antworteten anders als alle (p = {p}): Die Schätzungen unter "
    "dieser Bedingung sind falsch",
    alike="Zwischen den doppelt Gezählten und allen wurde kein Unterschied gefunden (p = {p}). Das "
    "beweist nicht, dass sie gleich antworten: Bei so viel Rauschen fallen nur große Unterschiede "
    "auf",
    question="Wie gut soll Ihre Antwort verborgen sein?",
    strongest="Selbst wer das Ergebnis kennt, kann nicht mehr als zu {sure} % sicher sein, welche "
    "von zwei Antworten Ihre ist. 50 % wären bloßes Raten.",
    between="Höchstens zu {sure} % sicher. Ihr Gerät wirft eine Münze: Ihre Antwort wird "
    "vielleicht ein zweites Mal gezählt, was das Ergebnis genauer macht.",
    weakest="Höchstens zu {sure} % sicher. Ihre Antwort wird ein zweites Mal gezählt, was das "
    "Ergebnis genauer macht.",
    both="Wer Ihre Antwort und Ihre Wahl hier zugleich erraten will, kann höchstens zu {both} % "
    "sicher sein.",
    hidden="Niemand erfährt, was Sie hier wählen. Es bleibt auf diesem Gerät, und was gesendet "
    "wird, sieht bei jeder Wahl gleich aus.",
    number_of_level="Nummer Ihrer Schutzstufe",
)

_LANGUAGES = {words.language: words for words in (_ENGLISH, _GERMAN)}


def level_words(language: str) -> LevelWords:
    """The words of a language; English for one that is not known."""
    return _LANGUAGES.get(language, _ENGLISH)
