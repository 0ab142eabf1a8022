"""Write to terminals and files that cannot show every character.

Where standard output or standard error is not UTF-8, everything is written in ASCII: the signs that
faircount uses itself are spelled out, and other characters are escaped. Nothing ends in a
UnicodeEncodeError.
"""

import codecs
import os
import sys
from typing import Any

# The characters beyond ASCII that our own texts use. A test compares this table with the sources.
SPELLINGS = {
    "█": "#",
    "±": "+-",
    "…": "...",
    "α": "alpha",
    "γ": "gamma",
    "χ": "chi",
    "φ": "phi",
    "Σ": "sum",
    "²": "^2",
    "′": "'",
    "━": "-",
}

# Not called `ascii`: click takes that for a misconfigured locale and writes UTF-8 to the stream.
CODEC = "signs_in_ascii"


def prepare_streams() -> None:
    """Switch standard output and standard error to ASCII if they cannot show UTF-8."""
    codecs.register(_find_codec)
    for stream in (sys.stdout, sys.stderr):
        if not _shows_unicode(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=CODEC)


def is_ascii() -> bool:
    """Whether standard output shows ASCII alone."""
    return not _is_utf(sys.stdout)


def spell_out(text: str) -> str:
    """The text as standard output can show it.

    Tables use this before their columns are laid out, because spellings change the width.
    """
    return _to_ascii(text) if is_ascii() else text


class _Encoder(codecs.IncrementalEncoder):
    def encode(self, text: str, final: bool = False) -> bytes:
        """Encode in ASCII."""
        return _to_ascii(text).encode("ascii")


def _find_codec(name: str) -> codecs.CodecInfo | None:
    if name != CODEC:
        return None
    # Only the incremental encoder differs from ASCII; text streams use nothing else.
    encode, decode, *_ = codecs.lookup("ascii")
    return codecs.CodecInfo(encode, decode, incrementalencoder=_Encoder, name=CODEC)


def _shows_unicode(stream: Any) -> bool:
    # Under LC_ALL=C Python writes UTF-8, but such a terminal does not show it. PYTHONIOENCODING is
    # explicit and therefore obeyed.
    if os.environ.get("LC_ALL") in ("C", "POSIX") and "PYTHONIOENCODING" not in os.environ:
        return False
    return _is_utf(stream)


def _is_utf(stream: Any) -> bool:
    encoding = getattr(stream, "encoding", None) or "ascii"
    return encoding.lower().startswith("utf")


def _to_ascii(text: str) -> str:
    for character, spelling in SPELLINGS.items():
        text = text.replace(character, spelling)
    return text.encode("ascii", "backslashreplace").decode()
