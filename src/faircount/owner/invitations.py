"""Invitations on the owner's machine: one secret token per person, as a table and as pages."""

import csv
import html
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.client.invitation_codes import Code, read_code
from faircount.core.csv_cells import decode_cell, write_csv
from faircount.core.domain import escape_controls
from faircount.core.entropy import Entropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.core.files import read_file
from faircount.owner.invitation_texts import ENGLISH, PrintedWords, printed_words
from faircount.owner.page_export import PageFacts
from faircount.owner.people import People
from faircount.protocol import Invitation, SurveyParameters
from faircount.protocol.survey.operators import has_one_operator

COLUMNS = ("person", "user", "code", "link")
_RENAMED = re.compile(f"({'|'.join(COLUMNS)})( 2)*")
QR_BORDER = 4  # white modules around a QR code, which its standard requires


@dataclass(frozen=True, slots=True)
class Invitee:
    """An invited person.

    person: the owner's name for them: an address, a name, or a number
    code: their invitation
    columns: what the owner's table of people says about them, as titles and cells
    """

    person: str
    code: Code
    columns: tuple[tuple[str, str], ...] = ()

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the owner's table, without their titles."""
        return tuple(cell for _, cell in self.columns)

    @property
    def user(self) -> str:
        """The id by which both servers know the person, in hexadecimal."""
        return self.code.invitation.user.hex()


def invite(
    params: SurveyParameters, people: People | Sequence[str], entropy: Entropy
) -> tuple[Invitee, ...]:
    """Make a fresh invitation for each of these people."""
    if not isinstance(people, People):
        people = People.from_names(people)
    # The noise was calibrated for at most this number of people.
    if len(people) > params.n_max:
        raise too_many_invited(params.n_max, len(people))
    # Even if everybody answered, there would be no result.
    if len(people) < params.minimum:
        raise RefusedError(
            f"{len(people):,} people are invited, and {params.minimum:,} must answer: invite more, "
            "or create a survey for fewer"
        ).with_code("too_few_invited", invited=len(people), minimum=params.minimum)
    # Two invitations for one person would be two votes.
    if len(set(people.names)) < len(people):
        message = "the list names a person twice: write one line per person"
        raise ParameterError(message).with_code("person_twice")
    invitees = []
    for place, person in enumerate(people.names):
        code = Code(params.survey, Invitation.issue(params.digest, entropy))
        invitees.append(Invitee(person, code, people.columns_of(place)))
    return tuple(invitees)


def too_many_invited(planned: int, invited: int) -> RefusedError:
    """The error to raise for a list of more people than a survey was planned for."""
    return RefusedError(
        f"the survey was planned for {planned:,} people, and the list has {invited:,}: create a "
        "survey for that many"
    ).with_code("too_many_invited", planned=planned, invited=invited)


def numbered_people(users: int, language: str = ENGLISH) -> list[str]:
    """Names such as "person 07", for people whom the owner does not name."""
    # Leading zeros keep the order when a spreadsheet sorts the names.
    width = len(str(users))
    person = printed_words(language).person
    return [f"{person} {number:0{width}d}" for number in range(1, users + 1)]


def invitations_csv(invitees: Sequence[Invitee], address: str) -> bytes:
    """The invitations as a CSV file for a mail merge: ours first, then the owner's columns."""
    titles = [title for title, _ in invitees[0].columns] if invitees else []
    rows = []
    for invitee in invitees:
        link = invitee.code.link(address)
        rows.append((invitee.person, invitee.user, invitee.code.text, link, *invitee.cells))
    return write_csv((*COLUMNS, *map(_merge_title, titles)), rows)


def read_invitations(path: Path) -> tuple[Invitee, ...]:
    """Read the invitations from the CSV file."""
    data = read_file(path, "make the invitations first, with faircount survey invite")
    # A byte that is no text makes its code unreadable, which is reported below.
    reader = csv.reader(io.StringIO(data.decode(errors="replace"), newline=""))
    header, *rows = [[decode_cell(cell) for cell in row] for row in reader] or [[]]
    titles = [_own_title(title) for title in header[len(COLUMNS) :]]
    invitees = []
    try:
        if tuple(header[: len(COLUMNS)]) != COLUMNS:
            raise ValueError("other columns")
        for person, _, code, _, *cells in rows:
            columns = tuple(zip(titles, cells, strict=True))
            invitees.append(Invitee(person, read_code(code), columns))
    except ValueError:
        message = f"{path} was changed: restore it from a copy"
        raise FaircountError(message).with_code("file_damaged", file=str(path)) from None
    return tuple(invitees)


def _merge_title(title: str) -> str:
    """The title of an owner's column in the table of invitations."""
    # A column of the owner may have the name of one of ours, or of one that was renamed so.
    return f"{title} 2" if _RENAMED.fullmatch(title) else title


def _own_title(title: str) -> str:
    """The title that `_merge_title` was given."""
    own = title.removesuffix(" 2")
    return own if _RENAMED.fullmatch(own) else title


def invitations_html(
    params: SurveyParameters,
    invitees: Sequence[Invitee],
    address: str,
    language: str = ENGLISH,
    page: PageFacts | None = None,
) -> bytes:
    """The invitations as one printed page per person, with a QR code of the link and the code.

    page: what participants need to check the page, or to answer without it
    """
    words = printed_words(language)
    parts = [
        _HEAD.format(
            language=words.language, title=_escape(words.name_survey(params.questionnaire))
        )
    ]
    parts += [_page_of(params, invitee, address, words, page) for invitee in invitees]
    parts.append("</body></html>\n")
    return "".join(parts).encode()


def _page_of(
    params: SurveyParameters,
    invitee: Invitee,
    address: str,
    words: PrintedWords,
    page: PageFacts | None,
) -> str:
    """One person's page. Codes run from left to right, also in right-to-left languages."""
    link = invitee.code.link(address)
    parts = [
        f"<section><p class=person dir=auto>{_escape(invitee.person)}</p>",
        f"<h1 dir=auto>{_escape(words.name_survey(params.questionnaire))}</h1>",
        _describe_count(params, words),
        _describe_survey(params, words),
        f"<p>{_escape(words.promise(params.epsilon, params.single_epsilon))}</p>",
        qr_code(link),
        f"<p>{words.scan}</p><p class=code dir=ltr>{_escape(link)}</p>",
        f"<p>{words.paste}</p><p class=code dir=ltr>{invitee.code.grouped_text}</p>",
        f"<p>{words.yours}</p>",
        "" if page is None else _describe_page(page, invitee, words),
        "</section>\n",
    ]
    return "".join(parts)


def _describe_count(params: SurveyParameters, words: PrintedWords) -> str:
    count = words.count_questions(params.questionnaire)
    return f"<p>{_escape(count)}</p>" if count else ""


def _describe_page(page: PageFacts, invitee: Invitee, words: PrintedWords) -> str:
    """How to check the page, and how to answer without it."""
    command = f"faircount answer --server {page.server} {invitee.code.text}"
    return (
        f"<p>{words.page_hash}</p><p class=code dir=ltr>{page.hash}</p>"
        f"<p>{words.program}</p><p class=code dir=ltr>{_escape(command)}</p>"
    )


def _describe_survey(params: SurveyParameters, words: PrintedWords) -> str:
    """Who asks and why, and who runs the servers."""
    names = [params.s1_operator, params.s2_operator]
    # One operator of both servers is named once: "X and X" would look like two.
    if has_one_operator(params):
        names = names[:1]
    operators = [name for name in names if name]
    lines = {
        words.owner: params.owner,
        words.purpose: params.purpose,
        words.contact: params.contact,
        words.operators: f" {words.both} ".join(operators),
    }
    parts = [f"<p>{name}: <bdi>{_escape(text)}</bdi></p>" for name, text in lines.items() if text]
    return "".join(parts)


def qr_code(link: str) -> str:
    """A QR code as SVG, for a page."""
    svg: str = _make_qr_code(link).svg_inline(scale=4, border=QR_BORDER)
    return svg


def qr_rows(link: str) -> list[str]:
    """A QR code with its white border, row by row: 1 is black."""
    matrix = _make_qr_code(link).matrix_iter(border=QR_BORDER)
    return ["".join(str(int(module)) for module in row) for row in matrix]


def _make_qr_code(link: str) -> Any:
    try:
        import segno
    except ImportError:
        message = "QR codes need more packages: pip install 'faircount[service]'"
        raise FaircountError(message).with_code("not_installed") from None
    # A fixed mask: trying which one is best takes four times as long.
    return segno.make(link, error="m", micro=False, mask=1)


def _escape(text: object) -> str:
    # Names and questions are data: markup in them must not run in the owner's browser.
    return html.escape(escape_controls(text))


_HEAD = """<!doctype html><html lang={language}><meta charset=utf-8><title>{title}</title>
<style>section{{break-after:page;font:16px/1.4 sans-serif;max-width:40em;margin:2em auto}}
.code{{font-family:monospace;overflow-wrap:anywhere}}.person{{color:#555}}</style><body>
"""
