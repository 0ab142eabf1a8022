"""What a survey's result says in words, in German."""

import math
from collections.abc import Mapping
from datetime import datetime

from faircount.accounting.conditions import Clause, Condition, ConditionCode
from faircount.accounting.guarantee import (
    AdversaryCode,
    Guarantee,
    Relation,
    format_delta,
    format_factor,
    format_rounded_up,
)
from faircount.core import plain
from faircount.estimation.english_texts import ResultWords
from faircount.estimation.intervals import Coverage, Intervals
from faircount.estimation.presentation import OUTSIDE_MARK, Described, Summed
from faircount.estimation.record import SurveyRecord
from faircount.estimation.validity import FAILURE_BITS, Validity

_GERMAN_MONTHS = [
    "Januar",
    "Februar",
    "März",
    "April",
    "Mai",
    "Juni",
    "Juli",
    "August",
    "September",
    "Oktober",
    "November",
    "Dezember",
]

# In the accusative, since they follow "geschützt gegen".
_GERMAN_ADVERSARIES: Mapping[AdversaryCode, str] = {
    AdversaryCode.READER: "alle, die das veröffentlichte Ergebnis lesen",
    AdversaryCode.PARTICIPANTS: "Teilnehmende, die das Ergebnis lesen",
    AdversaryCode.S1: "den Koordinator (S1), der das Ergebnis liest",
    AdversaryCode.S2: "den Aggregator (S2), der das Ergebnis liest",
    AdversaryCode.S1_AND_PARTICIPANTS: "den Koordinator (S1), der das Ergebnis liest, zusammen mit "
    "beliebig vielen Teilnehmenden",
    AdversaryCode.S2_AND_PARTICIPANTS: "den Aggregator (S2), der das Ergebnis liest, zusammen mit "
    "beliebig vielen Teilnehmenden",
    AdversaryCode.GROUP_INSIDERS: "Eingeweihte jeder Gruppe, die das Ergebnis lesen",
    AdversaryCode.COLLECTOR: "alle, die den eigenen Bericht einer Person sehen",
}

# Codes with values and not sentences: what is guaranteed is decided in one place, and every
# language only says it.
_GERMAN_RELATIONS: Mapping[Relation, str] = {
    Relation.REPLACE_ONE: "bei einer anderen Antwort einer Person",
    Relation.ZERO_OUT: "bei einer fehlenden Antwort einer Person",
}

# The names in braces are those of a clause's values; a test fills in all of them.
_GERMAN_CONDITIONS: Mapping[ConditionCode, str] = {
    ConditionCode.FLOOR: "jede Antwort wird von mindestens {floor} anderen Personen gewählt",
    ConditionCode.NOBODY_LEFT_OUT: "der Koordinator (S1) lässt niemanden wegen der gemeldeten "
    "Antworten aus",
    ConditionCode.NO_HELPER_LOOKS: "keine helfende Person sieht nach, was sie bekommt",
    ConditionCode.S1_NOISE: "der Koordinator (S1) fügt sein Rauschen hinzu und hält es geheim",
    ConditionCode.S2_NOISE: "der Aggregator (S2) fügt sein Rauschen hinzu und hält es geheim",
    ConditionCode.EITHER_NOISE: "der Koordinator (S1) oder der Aggregator (S2) fügt sein Rauschen "
    "hinzu und hält es geheim",
    ConditionCode.PUBLIC_GROUPS: "es ist öffentlich, in welcher Gruppe eine Person ist",
    ConditionCode.PUBLIC_GROUPS_BY: "es ist öffentlich, in welcher Gruppe eine Person ist (Spalte "
    "{column})",
    ConditionCode.ONE_GROUP: "niemand nimmt in zwei der Gruppen teil",
    ConditionCode.PUBLIC_ITEMS: "die Liste der Antworten ist öffentlich",
    ConditionCode.PUBLIC_MISSING: "es ist öffentlich, wer keine Antwort hat",
    ConditionCode.PUBLIC_OUTSIDE: "es ist öffentlich, wer eine Antwort außerhalb der Liste hat",
    ConditionCode.ROWS_ARE_PEOPLE: "jede Zeile ist eine andere Person",
    ConditionCode.ONE_OPERATOR: "niemand, der beide Server betreibt, fügt deren Anteile zusammen",
    ConditionCode.OTHER: "{text}",
}


class GermanWords(ResultWords):
    """German, with its decimal comma."""

    language = "de"
    result = "Ergebnis"
    about = "Angaben"
    answer = "Antwort"
    estimate = "Schätzung"
    consistent = "Stimmig"
    columns = ("Antwort", "Schätzung", "von", "bis", "stimmig")
    privacy = "Privatheit"
    reports = "Berichte"
    survey = "Umfrage"
    intervals = "Intervalle"
    sum = "Summe"
    guarantee = "Garantie"
    in_words = "In Worten"
    running_again = "Noch einmal fragen"
    simulation = (
        "SIMULATION, keine Veröffentlichung: Zufall mit festem Anfangswert kann jeder wiederholen, "
        "und er schützt niemanden."
    )
    outside_note = (
        f"{OUTSIDE_MARK} das Rauschen hat diese Schätzung aus dem möglichen Bereich geschoben: "
        "Lesen Sie das Intervall, das innerhalb bleibt"
    )
    repetition = (
        "jede weitere Umfrage unter denselben Personen kostet wieder Privatheit: Die Verluste "
        "summieren sich"
    )

    def number(self, value: int) -> str:
        """A number of people."""
        # Not by locale: that belongs to the process, and a server writes both languages.
        return f"{value:,}".replace(",", ".")

    def percent(self, share: float, digits: int = 1) -> str:
        """A share as a percentage."""
        # A space that does not break, as German typography wants it before the sign.
        return _in_german(f"{100 * share:z.{digits}f}") + "\u00a0%"

    def range(self, low: float, high: float, digits: int = 1) -> str:
        """An interval of shares."""
        return f"{self.percent(low, digits)} bis {self.percent(high, digits)}"

    def interval_heading(self, confidence: float) -> str:
        """The title of the column of intervals."""
        return f"{_german_confidence(confidence)}-Intervall"

    def interval_text(self, confidence: float, bounds: Intervals | Coverage) -> str:
        """What the intervals cover."""
        # `method` is an English sentence for experts; the page says the two things that follow from
        # it.
        kind = "angenähert" if bounds.is_approximate else "exakt"
        covered = "nur das Rauschen zum Schutz der Privatheit"
        if bounds.covers == "population":
            covered = "das Rauschen und die Auswahl derer, die geantwortet haben"
        scope = "gemeinsam" if bounds.simultaneous else "für jede Antwort"
        return f"{self.percent(confidence, 0)} {scope}; {kind}; berücksichtigt ist {covered}"

    def axis(self, result: Described, confidence: float, covers: str, *, consistent: bool) -> str:
        """What the bars and lines of a figure are."""
        kind = "stimmiger Anteil" if consistent else "Anteil"
        subject = f"unter {self.number(result.included)} Personen"
        if covers == "population":
            subject = f"an der Gesamtheit, aus {self.number(result.included)} Personen"
        return f"{kind} {subject}, mit {_german_confidence(confidence)}-Intervallen"

    def trend_axis(self, confidence: float) -> str:
        """What the lines of a trend are."""
        return f"Anteil, mit {_german_confidence(confidence)}-Intervallen"

    def sum_note(self, result: Summed) -> str | None:
        """Why the estimates do not sum to 100%; None where they do."""
        total = result.unusual_sum
        if total is None:
            return None
        return (
            f"Die Schätzungen ergeben zusammen {self.percent(total)}, weil jede ihr eigenes "
            "Rauschen hat; jede ist im Mittel richtig. Die stimmigen sind die nächsten, die 100"
            "\u00a0% ergeben, aber sie sind verzerrt."
        )

    def claim(self, guarantee: Guarantee) -> str:
        """The guarantee in the terms of experts."""
        # A semicolon stands between them below, since both have a decimal comma.
        epsilon, delta = _numbers(guarantee, 3)
        condition = "für beliebige Antworten"
        if guarantee.condition is not None:
            condition = f"unter der Bedingung: {self.condition(guarantee.condition)}"
        return (
            f"{_void(guarantee)}({epsilon}; {delta})-Differential-Privacy "
            f"{_GERMAN_RELATIONS[guarantee.relation]}, geschützt gegen {_adversary(guarantee)}, "
            f"{condition}"
        )

    def condition(self, condition: Condition) -> str:
        """What must be true for a guarantee to hold."""
        return "; ".join(map(_clause, condition.clauses))

    def certainty(self, sure: float) -> str:
        """What the guarantee means for one person: how sure of the answer anybody can become."""
        return (
            "Angenommen, jemand hält zwei Antworten einer Person für gleich wahrscheinlich. Selbst "
            f"wer das Ergebnis kennt, kann dann höchstens zu {self.percent(sure)} sicher sein, "
            "welche es ist."
        )

    def sentence(self, guarantee: Guarantee) -> str:
        """The guarantee in one plain sentence."""
        epsilon, delta = _numbers(guarantee, 2)
        exception = ""
        if guarantee.delta:
            exception = f", außer mit einer Wahrscheinlichkeit von {delta} (Delta)"
        condition = "was auch immer geantwortet wurde"
        if guarantee.condition is not None:
            condition = f"unter der Bedingung: {self.condition(guarantee.condition)}"
        factor = _in_german(format_factor(guarantee.epsilon))
        return (
            f"{_void(guarantee)}geschützt gegen {_adversary(guarantee)}: Das Verhältnis der "
            f"Wahrscheinlichkeiten zweier Antworten einer Person ändert sich höchstens um den "
            f"Faktor {factor} (Epsilon {epsilon}){exception}, {condition}."
        )

    def statement(self, result: Described) -> str:
        """What is known or assumed about the reports."""
        validity = result.validity
        if validity is None:
            return self.assumption_text(result)
        counted = self.number(validity.counted)
        reports = f"{counted} Berichte gezählt, {self.number(validity.refused)} abgewiesen."
        if not validity.proven:
            return (
                f"{reports} Es ist nicht bewiesen, dass jeder eine Stimme ist: Ein manipuliertes "
                "Programm kann jede Zahl beliebig verändern."
            )
        return (
            f"{reports} {self._proven_part(validity)}{_alike_part(validity)} Das schlägt in "
            f"dieser Umfrage mit einer Wahrscheinlichkeit unter 2^-{FAILURE_BITS} fehl, wenn beide "
            "Server das Protokoll befolgt haben und kein Programm die geheimen Werte beider "
            "kannte, bevor die Liste der Berichte feststand. Ein unehrlicher Server kann das "
            "Ergebnis verändern und Personen auslassen; erfundene Personen zählen als Personen. "
            "Noch keine unabhängige Sicherheitsprüfung."
        )

    def _proven_part(self, validity: Validity) -> str:
        """What is proven of a report, and what a dishonest participant can change nevertheless."""
        counted = self.number(validity.counted)
        # Both sentences end alike; the German verb comes last.
        end = f"um 1/{counted} verändern, bevor die Anteile stimmig gemacht werden."
        if validity.is_one_vote:
            coins = ", und Münzen, die die Person nicht wählen konnte" if validity.coins else ""
            return (
                f"Jeder gezählte Bericht gab genau einer Antwort genau eine Stimme{coins}. Wer "
                "unehrlich teilnimmt, kann eine Zahl höchstens um eins und einen Anteil höchstens "
                f"{end}"
            )
        sums = "".join(
            f", die Summe von Frage {number} höchstens um {_in_german(f'{reach:.6g}')}"
            for number, reach in validity.sums
        )
        text = (
            "Jeder gezählte Bericht ist ein Bogen mit einer möglichen Antwort auf jede Frage. Wer "
            f"unehrlich teilnimmt, kann eine Anzahl höchstens um eins{sums} und einen Anteil an "
            f"allen höchstens {end}"
        )
        if validity.has_branches:
            text += (
                " Nicht bewiesen ist, dass nur antwortete, wen eine Frage betrifft: Wer unehrlich "
                "ist, kann sie trotzdem beantworten."
            )
        return text

    def assumption_text(self, result: Described) -> str:
        """What is assumed about the clients."""
        return (
            "Annahme: Die Programme der Teilnehmenden befolgen das Protokoll. Es ist nicht "
            "bewiesen, dass jeder Bericht eine Stimme ist; ein manipulierter kann für viele zählen."
        )

    def record_lines(self, record: SurveyRecord) -> tuple[tuple[str, str], ...]:
        """The survey behind a result, as labels and texts."""
        lines = (
            ("Umfrage", f"{record.name} ({record.survey})"),
            self._question_line(record),
            ("Von", record.owner),
            ("Offen", self.dates(record)),
            ("Personen", self.people(record)),
            ("Server", self.servers(record)),
        )
        return tuple((label, text) for label, text in lines if text)

    def _question_line(self, record: SurveyRecord) -> tuple[str, str]:
        if record.questions == 1:
            return "Frage", record.question
        return "Fragen", f"{record.questions}: {record.question}"

    def people(self, record: SurveyRecord) -> str:
        """How many were invited, responded and were counted."""
        rate = ""
        if record.invited:
            rate = f" ({self.percent(record.responded / record.invited, 0)})"
        return (
            f"{self.number(record.invited)} eingeladen, {self.number(record.responded)} haben "
            f"geantwortet{rate}, {self.number(record.counted)} gezählt"
        )

    def servers(self, record: SurveyRecord) -> str:
        """Who ran both servers; empty if nobody recorded it."""
        first = record.s1_operator
        if not record.one_operator:
            if not first:
                return ""
            return f"Koordinator (S1): {first}, Aggregator (S2): {record.s2_operator}"
        who = "Niemand ist genannt, also hat vielleicht ein Betreiber beide Server betrieben"
        if first:
            who = f"Ein Betreiber, {first}, hat beide Server betrieben"
        return f"{who} und hätte jede Antwort lesen können: Das war ein Probelauf"

    def dates(self, record: SurveyRecord) -> str:
        """When the survey was open; empty if nobody recorded it."""
        parts = []
        if record.opened:
            parts.append(f"vom {_german_time(record.opened)}")
        if record.ended:
            parts.append(f"bis {_german_time(record.ended)}")
        return " ".join(parts)

    def open_dates(self, record: SurveyRecord) -> str:
        """The same as a part of a longer line."""
        dates = self.dates(record)
        return f"offen {dates}" if dates else ""

    def survey_id(self, record: SurveyRecord) -> str:
        """The id of a survey as a part of a longer line."""
        return f"Umfrage {record.survey}"


def _in_german(number: str) -> str:
    # Numbers below a thousand only, so that no point separates digits in groups.
    return number.replace(".", ",")


def _german_confidence(confidence: float) -> str:
    return _in_german(plain.format_confidence(confidence)).replace("%", "-%")


def _numbers(guarantee: Guarantee, delta_digits: int) -> tuple[str, str]:
    epsilon = format_rounded_up(guarantee.epsilon, 4)
    delta = format_delta(guarantee.delta, delta_digits).replace("below", "unter")
    return _in_german(epsilon), _in_german(delta)


def _adversary(guarantee: Guarantee) -> str:
    adversary = guarantee.adversary
    if not adversary.insiders:
        return _GERMAN_ADVERSARIES[adversary.code]
    # As in English: the claim holds against all of them, nobody is said to have colluded.
    colluding = (
        f"beliebige {adversary.insiders} Teilnehmende, die zusammenarbeiten und das Ergebnis lesen"
    )
    if adversary.insiders == 1:
        colluding = "jede einzelne teilnehmende Person, die das Ergebnis liest"
    if adversary.code is AdversaryCode.PARTICIPANTS:
        return colluding
    return f"{_GERMAN_ADVERSARIES[adversary.code]}, zusammen mit: {colluding}"


def _clause(clause: Clause) -> str:
    values = clause.values
    sentence = _GERMAN_CONDITIONS[clause.code].format(**values)
    if clause.code is not ConditionCode.FLOOR:
        return sentence
    # Named in the sentence, because they weaken it, as in English.
    lost = []
    if values["insiders"]:
        lost.append(f"bis zu {values['insiders']} zusammenarbeiten")
    if values["dropouts"]:
        by_choice = " oder vom Koordinator (S1) ausgelassen werden" if values["left_out"] else ""
        lost.append(f"bis zu {values['dropouts']} ausfallen{by_choice}")
    return f"{sentence} (von denen {' und '.join(lost)} dürfen)" if lost else sentence


def _void(guarantee: Guarantee) -> str:
    if guarantee.void is None:
        return ""
    return (
        "gilt nicht, weil der Zufall einen festen Anfangswert hatte, so dass ihn jeder wiederholen "
        "kann; sonst wäre es: "
    )


def _german_time(time: str) -> str:
    when = datetime.fromisoformat(time)
    month = _GERMAN_MONTHS[when.month - 1]
    return f"{when.day}. {month} {when:%Y, %H:%M} {when.tzname() or ''}".strip()


def _alike_part(validity: Validity) -> str:
    """What a dishonest participant can change in estimates from two tables."""
    if validity.alike_votes is None:
        return ""
    votes = _in_german(f"{math.ceil(10 * validity.alike_votes) / 10:.1f}")
    return (
        " In den Schätzungen, die manche doppelt zählen, zählt jede Person wie höchstens "
        f"{votes} Stimmen."
    )
