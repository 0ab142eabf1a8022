"""Every word of a printed invitation, in every language. The languages are those of the pages (`strings.js`)."""

import math
from dataclasses import dataclass

from faircount.core.errors import ParameterError

ENGLISH = "en"


@dataclass(frozen=True, kw_only=True)
class PrintedWords:
    """One language. Names before a colon, and whole sentences; {sure} is filled in."""

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

    def promise(self, epsilon: float) -> str:
        """What epsilon means, as the page says it: how sure anybody can become, rounded up to a tenth of a percent."""
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
        operators="Servers run by",
        both="and",
        promised="What is promised: suppose that somebody thinks two answers are equally likely to be yours. After "
        "seeing the result this person can be at most {sure}\u00a0% sure which one it is. On the page you read, before "
        "you answer, on what this relies and what it does not cover.",
        scan="Scan the picture, or open",
        paste="or paste this code:",
        yours="It is yours alone and works once: whoever has it can answer in your place.",
    ),
    "de": PrintedWords(
        language="de",
        decimal=",",
        person="Person",
        owner="Von",
        purpose="Zweck",
        contact="Fragen an",
        operators="Die Server betreiben",
        both="und",
        promised="Was versprochen wird: Angenommen, jemand hält zwei Antworten für gleich wahrscheinlich die Ihre. "
        "Nach dem Ergebnis kann diese Person höchstens zu {sure}\u00a0% sicher sein, welche es ist. Auf der Seite "
        "lesen Sie, bevor Sie antworten, worauf das beruht und was es nicht umfasst.",
        scan="Scannen Sie das Bild, oder öffnen Sie",
        paste="oder fügen Sie auf der Seite diesen Code ein:",
        yours="Die Einladung gilt nur für Sie und einmal: Wer sie hat, kann an Ihrer Stelle antworten.",
    ),
}
LANGUAGES = tuple(_LANGUAGES)
"""What printed invitations can be written in."""


def printed_words(language: str) -> PrintedWords:
    """The words of a language, by its short name."""
    if language not in _LANGUAGES:
        raise ParameterError(f"invitations are printed in one of {', '.join(LANGUAGES)}, not {language!r:.20}")
    return _LANGUAGES[language]
