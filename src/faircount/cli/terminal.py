"""Streams that cannot show every character get ASCII: known signs in words, others as escapes, never a traceback."""

import codecs
import os
import sys
from typing import Any

SIGNS = {
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
"""What our own texts use beyond ASCII."""

CODEC = "signs_in_ascii"
"""Not `ascii`: click takes a stream of that encoding for a mistake, and writes UTF-8 to it."""


def ready() -> None:
    """Make standard output and standard error ASCII where they, or LC_ALL, cannot do with UTF-8."""
    codecs.register(_codec)
    for stream in (sys.stdout, sys.stderr):
        if not _shows_all(stream) and hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding=CODEC)


class _Encoder(codecs.IncrementalEncoder):
    def encode(self, text: str, final: bool = False) -> bytes:
        """In ASCII."""
        return "".join(map(_sign, text)).encode("ascii")


def _codec(name: str) -> codecs.CodecInfo | None:
    if name != CODEC:
        return None
    encode, decode, *_ = codecs.lookup("ascii")
    return codecs.CodecInfo(encode, decode, incrementalencoder=_Encoder, name=CODEC)


def _shows_all(stream: Any) -> bool:
    """Python writes UTF-8 under LC_ALL=C too, which such a terminal does not show; PYTHONIOENCODING is an order."""
    if os.environ.get("LC_ALL") in ("C", "POSIX") and "PYTHONIOENCODING" not in os.environ:
        return False
    return (getattr(stream, "encoding", None) or "ascii").lower().startswith("utf")


def is_ascii() -> bool:
    """Whether standard output shows ASCII alone."""
    return not (getattr(sys.stdout, "encoding", None) or "ascii").lower().startswith("utf")


def fitting(text: str) -> str:
    """The text as standard output can show it: replaced before a table is laid out, so that columns stay in line."""
    return "".join(map(_sign, text)) if is_ascii() else text


def _sign(character: str) -> str:
    if character.isascii():
        return character
    return SIGNS.get(character) or character.encode("ascii", "backslashreplace").decode()
