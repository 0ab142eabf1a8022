"""The texts of printed invitations, in the languages of the pages (`strings.js`)."""

from dataclasses import dataclass

from faircount.accounting.guarantee import attacker_certainty
from faircount.core.errors import ParameterError
from faircount.core.questions import Questionnaire

ENGLISH = "en"


@dataclass(frozen=True, kw_only=True)
class PrintedWords:
    """One language: labels before a colon, and whole sentences; {words} are filled in."""

    language: str
    decimal: str
    person: str
    owner: str
    purpose: str
    contact: str
    operators: str
    both: str
    promised: str
    promised_all: str
    single: str
    single_same: str
    explained: str
    count: str
    more: str
    scan: str
    paste: str
    yours: str
    page_hash: str
    program: str

    def promise(self, epsilon: float, single: float | None = None) -> str:
        """Epsilon as the page explains it: how sure anybody can become of an answer.

        single: epsilon of a single answer, where there are several questions
        """
        sentences = [self.promised.format(sure=self._certainty(epsilon))]
        if single is not None:
            sentences = [self.promised_all.format(sure=self._certainty(epsilon))]
            # Compared as they are printed: two equal percentages with an "at most" each would
            # confuse.
            is_less = self._certainty(single) != self._certainty(epsilon)
            about_one = self.single if is_less else self.single_same
            sentences.append(about_one.format(sure=self._certainty(single)))
        return " ".join((*sentences, self.explained))

    def _certainty(self, epsilon: float) -> str:
        """How sure anybody can become, in percent."""
        # Rounded up where it is computed, so that nobody is promised more than what holds.
        return f"{attacker_certainty(epsilon):g}".replace(".", self.decimal)

    def name_survey(self, questionnaire: Questionnaire) -> str:
        """What a survey is called in one line, in this language if it is translated."""
        asked = questionnaire
        # An untranslated question is printed as its owner wrote it, between sentences of ours.
        if self.language in questionnaire.languages:
            asked = questionnaire.in_language(self.language)
        if asked.title or len(asked) == 1:
            return asked.text
        return f"{asked.text} {self.more.format(count=len(asked) - 1)}"

    def count_questions(self, questionnaire: Questionnaire) -> str:
        """How many questions there are; empty for one, which is read at once."""
        return self.count.format(count=len(questionnaire)) if len(questionnaire) > 1 else ""


_LANGUAGES = {
    ENGLISH: PrintedWords(
        language=ENGLISH,
        decimal=".",
        person="person",
        owner="From",
        purpose="Purpose",
        contact="Questions to",
        operators="Servers operated by",
        both="and",
        promised="How your answer is protected: imagine somebody who thinks that two answers are "
        "equally likely to be yours. Even after seeing the result, this person can be at most "
        "{sure}\u00a0% sure which one you chose.",
        promised_all="How your answers are protected: imagine somebody who thinks that two ways to "
        "answer all these questions are equally likely to be yours. Even after seeing the results, "
        "this person can be at most {sure}\u00a0% sure which one it is. This covers all your "
        "answers together.",
        single="About a single answer of yours, this person can be at most {sure}\u00a0% sure.",
        single_same="About a single answer of yours, this person cannot be any surer.",
        explained="Before you answer, the page explains what this relies on and what it does not "
        "cover.",
        count="{count} questions",
        more="(and {count} more)",
        scan="Scan the code, or open",
        paste="or paste this code on the page:",
        yours="This invitation is for you alone and works once. Anybody who has it can answer in "
        "your place, so please do not pass it on.",
        page_hash="If you want to check the page itself: all of its files together have this "
        "SHA-256. Compute it from the files that you receive, because a page that was changed "
        "would also show another hash.",
        program="Or answer without any page, with the installed program:",
    ),
    "de": PrintedWords(
        language="de",
        decimal=",",
        person="Person",
        owner="Von",
        purpose="Zweck",
        contact="Fragen an",
        operators="Die Server werden betrieben von",
        both="und",
        promised="Wie Ihre Antwort geschützt ist: Angenommen, jemand hält zwei Antworten bei Ihnen "
        "für gleich wahrscheinlich. Selbst wer das Ergebnis kennt, kann dann höchstens zu "
        "{sure}\u00a0% sicher sein, welche der beiden Sie gewählt haben.",
        promised_all="Wie Ihre Antworten geschützt sind: Angenommen, jemand hält es bei Ihnen für "
        "gleich wahrscheinlich, dass Sie alle diese Fragen auf die eine oder auf eine andere Weise "
        "beantwortet haben. Selbst wer die Ergebnisse kennt, kann dann höchstens zu {sure}\u00a0% "
        "sicher sein, welche es war. Das gilt für alle Ihre Antworten zusammen.",
        single="Über eine einzelne Ihrer Antworten kann diese Person höchstens zu {sure}\u00a0% "
        "sicher sein.",
        single_same="Über eine einzelne Ihrer Antworten kann diese Person nicht sicherer sein.",
        explained="Bevor Sie antworten, erklärt die Seite, worauf das beruht und was es nicht "
        "umfasst.",
        count="{count} Fragen",
        more="(und {count} weitere)",
        scan="Scannen Sie den Code, oder öffnen Sie",
        paste="oder fügen Sie auf der Seite diesen Code ein:",
        yours="Diese Einladung gilt nur für Sie, und nur einmal. Wer sie hat, kann an Ihrer Stelle "
        "antworten: Bitte geben Sie sie nicht weiter.",
        page_hash="Wenn Sie die Seite selbst prüfen möchten: Alle ihre Dateien zusammen haben "
        "diese SHA-256-Prüfsumme. Berechnen Sie sie aus den Dateien, die Sie erhalten, denn eine "
        "veränderte Seite würde auch eine andere Prüfsumme anzeigen.",
        program="Oder antworten Sie ganz ohne Seite, mit dem installierten Programm:",
    ),
}
LANGUAGES = tuple(_LANGUAGES)
"""The languages in which invitations can be printed."""


def printed_words(language: str) -> PrintedWords:
    """The texts in the language with this code."""
    if language not in _LANGUAGES:
        names = ", ".join(LANGUAGES)
        words = f"invitations are printed in one of {names}, not {language!r:.20}"
        raise ParameterError(words).with_code("unknown_language", names=names)
    return _LANGUAGES[language]
