"""Invitations on the owner's machine: one token per person, as a table to send from and as pages to print."""

import csv
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.core.domain import shown
from faircount.core.entropy import Entropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.core.files import read_file
from faircount.protocol import Invitation, SurveyParameters
from faircount.service.codes import Code, read_code
from faircount.service.owner.printed_words import ENGLISH, PrintedWords, printed_words

COLUMNS = ("person", "user", "code", "link")
BORDER = 4
"""White modules around a QR code, as its standard asks."""


@dataclass(frozen=True, slots=True)
class Invited:
    """One person of the list. `person` is what the owner calls them: a name, an address, or a number."""

    person: str
    code: Code

    @property
    def user(self) -> str:
        """The id by which both servers know the person, in hexadecimal."""
        return self.code.invitation.user.hex()


def invite(params: SurveyParameters, people: Sequence[str], entropy: Entropy) -> tuple[Invited, ...]:
    """A fresh invitation for each of them."""
    if len(people) > params.n_max:
        raise RefusedError(
            f"the survey was planned for {params.n_max:,} people, and these are {len(people):,}: create it for so many"
        ).coded("too_many_invited", planned=params.n_max, invited=len(people))
    if len(people) < params.minimum:
        raise RefusedError(
            f"{len(people):,} people are invited, and {params.minimum:,} must answer: invite more, or create a survey "
            "for fewer"
        ).coded("too_few_invited", invited=len(people), minimum=params.minimum)
    if len(set(people)) < len(people):
        raise ParameterError("the list names somebody twice: one line per person").coded("person_twice")
    return tuple(Invited(each, Code(params.survey, Invitation.issue(params.digest, entropy))) for each in people)


def numbered(users: int, language: str = ENGLISH) -> list[str]:
    """Names for people whom the owner does not name."""
    width, person = len(str(users)), printed_words(language).person
    return [f"{person} {number:0{width}d}" for number in range(1, users + 1)]


def as_table(invited: Sequence[Invited], address: str) -> bytes:
    """The invitations as CSV, to send from."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows((each.person, each.user, each.code.text, each.code.link(address)) for each in invited)
    return out.getvalue().encode()


def read_table(path: Path) -> tuple[Invited, ...]:
    """The invitations as they were written."""
    data = read_file(path, "make the invitations first, with faircount survey invite").decode(errors="replace")
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    try:
        return tuple(Invited(row["person"], read_code(row["code"])) for row in rows)
    except (KeyError, TypeError, AttributeError, ParameterError):
        raise FaircountError(f"{path} was changed: restore it from a copy") from None


def as_page(params: SurveyParameters, invited: Sequence[Invited], address: str, language: str = ENGLISH) -> bytes:
    """The invitations as one page per person, with a QR code of the link and the code to type or paste."""
    words = printed_words(language)
    parts = [_HEAD.format(language=words.language, title=_text(params.question))]
    parts += [_one(params, each, address, words) for each in invited]
    return "".join([*parts, "</body></html>\n"]).encode()


def _one(params: SurveyParameters, invited: Invited, address: str, words: PrintedWords) -> str:
    link = invited.code.link(address)
    return (
        f"<section><p class=person dir=auto>{_text(invited.person)}</p><h1 dir=auto>{_text(params.question)}</h1>"
        f"{_facts(params, words)}<p>{_text(words.promise(params.epsilon))}</p>{qr_code(link)}"
        f"<p>{words.scan}</p><p class=code dir=ltr>{_text(link)}</p>"
        f"<p>{words.paste}</p><p class=code dir=ltr>{invited.code.grouped}</p><p>{words.yours}</p></section>\n"
    )


def _facts(params: SurveyParameters, words: PrintedWords) -> str:
    """Who asks, why, and who counts."""
    operators = dict.fromkeys(each for each in (params.s1_operator, params.s2_operator) if each)
    lines = (
        (words.owner, params.owner),
        (words.purpose, params.purpose),
        (words.contact, params.contact),
        (words.operators, f" {words.both} ".join(operators)),
    )
    return "".join(f"<p>{name}: <bdi>{_text(said)}</bdi></p>" for name, said in lines if said)


def qr_code(link: str) -> str:
    """A QR code as SVG, to stand in a page."""
    drawn: str = _qr(link).svg_inline(scale=4, border=BORDER)
    return drawn


def qr_rows(link: str) -> list[str]:
    """A QR code with its white border, row by row: 1 is black."""
    return ["".join(str(int(each)) for each in row) for row in _qr(link).matrix_iter(border=BORDER)]


def _qr(link: str) -> Any:
    """One mask for all: trying which one suits best takes four times as long."""
    try:
        import segno
    except ImportError:
        raise FaircountError("QR codes need more: pip install 'faircount[service]'") from None
    return segno.make(link, error="m", micro=False, mask=1)


def _text(words: object) -> str:
    return html.escape(shown(words))


_HEAD = """<!doctype html><html lang={language}><meta charset=utf-8><title>{title}</title>
<style>section{{break-after:page;font:16px/1.4 sans-serif;max-width:40em;margin:2em auto}}
.code{{font-family:monospace;overflow-wrap:anywhere}}.person{{color:#555}}</style><body>
"""
