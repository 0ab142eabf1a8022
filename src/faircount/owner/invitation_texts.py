"""The texts of printed invitations, in the languages of the pages (`strings.js`)."""

import math
from dataclasses import dataclass

from faircount.core.errors import ParameterError

ENGLISH = "en"


@dataclass(frozen=True, kw_only=True)
class PrintedWords:
    """One language: labels before a colon, and whole sentences; {sure} is filled in."""

    language: str
    decimal: str
    person: str
    owner: str
    purpose: str
    contact: str
    operators: str
    both: str
    promised: str
    scan: str
    paste: str
    yours: str
    page_hash: str
    program: str

    def promise(self, epsilon: float) -> str:
        """Epsilon as the page explains it: how sure anybody can become of an answer."""
        # Rounded up to a tenth of a percent: a promise is never printed better than it is.
        sure = math.ceil(1000 / (1 + math.exp(-epsilon))) / 10
        return self.promised.format(sure=f"{sure:g}".replace(".", self.decimal))


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
        "{sure}\u00a0% sure which one you chose. Before you answer, the page explains what this "
        "relies on and what it does not cover.",
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
        "{sure}\u00a0% sicher sein, welche der beiden Sie gewählt haben. Bevor Sie antworten, "
        "erklärt die Seite, worauf das beruht und was es nicht umfasst.",
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
