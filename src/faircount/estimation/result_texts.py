"""What a survey's result says in words, in the languages of the pages.

Files to keep, figures and the command line speak the language of the survey; tables for programs
(CSV, JSON) and Python's own output stay in English. A result that belongs to no survey is described
in English too.
"""

from collections.abc import Mapping

from faircount.estimation.english_texts import ResultWords
from faircount.estimation.german_texts import GermanWords
from faircount.estimation.record import ENGLISH

_LANGUAGES: Mapping[str, ResultWords] = {ENGLISH: ResultWords(), "de": GermanWords()}
LANGUAGES = tuple(_LANGUAGES)


def words_of(result: object) -> ResultWords:
    """The words of a result, in the language of its survey."""
    record = getattr(result, "record", None)
    return words_in(ENGLISH if record is None else record.language)


def words_in(language: str) -> ResultWords:
    """The words of a language; a record may name one that this version does not know."""
    return _LANGUAGES.get(language, _LANGUAGES[ENGLISH])
