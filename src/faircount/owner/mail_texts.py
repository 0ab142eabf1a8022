"""What an invitation or a reminder says by mail: our texts in every language, or the owner's own.

A template is a text whose first line is the subject. A word in braces stands for something about
the survey or the person:

{question} {owner} {purpose} {contact}   as the owner wrote them; of several questions the title
{questions}                              how many questions there are
{link} {code}                            the person's invitation
{closes}                                 when the survey closes, if that is known
{promise}                                how the answers are protected, in sentences
{page_hash} {server}                     the SHA-256 of the page's files, and the coordinator
{person}                                 the person's name in the table of invitations

and every title of the owner's table of people, such as {First name}, for its cell. A paragraph with
a fact about the survey that is not known, for example without a purpose, is left out.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from faircount.core.errors import ParameterError
from faircount.core.files import read_file
from faircount.owner.invitation_texts import ENGLISH, printed_words

INVITATION = "invitation"
REMINDER = "reminder"
SUBJECT = "Subject:"

OPTIONAL = frozenset({"owner", "purpose", "contact", "closes"})
"""Facts that an owner may leave empty."""

# Not `str.format`: a template is the owner's text, and a format reaches into attributes of values.
_PLACEHOLDER = re.compile(r"\{([^{}\n]+)\}")


@dataclass(frozen=True)
class Template:
    """The subject and the paragraphs of a mail, with placeholders."""

    subject: str
    paragraphs: tuple[str, ...]

    def check(self, known: frozenset[str]) -> None:
        """Refuse a template that names something unknown, or that lacks the person's link."""
        # Before the first mail is sent: nobody can take back one with an unfilled {First nam}.
        names = set(_PLACEHOLDER.findall("\n".join((self.subject, *self.paragraphs))))
        unknown = sorted(names - known)
        if unknown:
            listed = ", ".join(f"{{{name}}}" for name in sorted(known))
            raise ParameterError(
                f"the template has {{{unknown[0]}}}, which stands for nothing: write one of "
                f"{listed}"
            )
        # check: link-in-body - subjects are shown in lists and logs, and a link is a secret
        if not names_in(self.paragraphs) & {"link", "code"} or names_in((self.subject,)) & {
            "link",
            "code",
        }:
            raise ParameterError(
                "the template must have {link} or {code} in its text, and not in its subject: it "
                "is the secret with which the person answers"
            )

    def fill(self, values: Mapping[str, str]) -> tuple[str, str]:
        """The subject and the text for one person."""
        # A subject is one line: a line end in a question must not begin another header.
        subject = " ".join(_fill_in(self.subject, values).split())
        kept = []
        for paragraph in self.paragraphs:
            names = set(_PLACEHOLDER.findall(paragraph))
            # A title of the owner's table may be empty for some people, and its paragraph stays:
            # only facts about the survey decide.
            if all(values[name] for name in names & OPTIONAL):
                kept.append(_fill_in(paragraph, values))
        return subject, "\n\n".join(kept) + "\n"


def names_in(texts: tuple[str, ...]) -> set[str]:
    """The placeholders of some texts."""
    return set(_PLACEHOLDER.findall("\n".join(texts)))


def _fill_in(text: str, values: Mapping[str, str]) -> str:
    # In one pass, so that braces in a value stay what they are.
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def parse_template(text: str) -> Template:
    """A template from its text, whose first line is the subject."""
    first, _, body = text.strip().partition("\n")
    if not first.lower().startswith(SUBJECT.lower()):
        raise ParameterError(
            f'a template begins with a line such as "{SUBJECT} A question to you", then an empty '
            "line, then the text"
        )
    paragraphs = [part.strip("\n") for part in re.split(r"\n\s*\n", body.strip("\n"))]
    return Template(first[len(SUBJECT) :].strip(), tuple(part for part in paragraphs if part))


def read_template(path: Path) -> Template:
    """The owner's own template."""
    data = read_file(path, "write the subject and the text of the mail into it")
    try:
        # Editors on Windows begin a file with a byte order mark, and end lines with both
        # characters.
        return parse_template(data.decode("utf-8-sig").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not UTF-8 text: save it as UTF-8") from None


def own_template(kind: str, language: str, *, several: bool = False) -> Template:
    """Our template of an invitation or a reminder in the survey's language.

    several: whether there is more than one question
    """
    templates = _TEMPLATES_FOR_SEVERAL if several else _TEMPLATES
    return parse_template(templates[printed_words(language).language, kind])


def format_closing_time(closes_at: str | None, language: str) -> str:
    """A closing time as the language writes it, in the time zone of this machine."""
    if not closes_at:
        return ""
    # The zone is named, since a reader may be in another one than the owner's machine.
    when = datetime.fromisoformat(closes_at).astimezone()
    zone = when.tzname() or "UTC"
    if language == ENGLISH:
        return f"{when.day} {when:%B %Y, %H:%M} {zone}"
    return f"{when:%d.%m.%Y, %H:%M} Uhr {zone}"


# A paragraph is one line, which every mail program wraps to its own width.
_ENGLISH_REST = """
{question}

Asked by: {owner}

Purpose: {purpose}

Please answer before {closes}.

Your personal link:
{link}

The link works once. Anybody who has it can answer in your place, so please do not pass it on.

{promise}

We can see whether your invitation was used, so that we can remind people. We cannot see what \
anybody answered.

To check the page itself: all of its files together have the SHA-256
{page_hash}
The installed program needs no page: faircount answer --server {server} CODE
where CODE is what follows the # in your link.

Questions to: {contact}
"""

_GERMAN_REST = """
{question}

Es fragt: {owner}

Zweck: {purpose}

Bitte antworten Sie vor dem {closes}.

Ihr persönlicher Link:
{link}

Der Link gilt einmal. Wer ihn hat, kann an Ihrer Stelle antworten: Bitte geben Sie ihn nicht weiter.

{promise}

Wir sehen, ob Ihre Einladung benutzt wurde, um erinnern zu können. Was jemand geantwortet hat, \
sehen wir nicht.

Um die Seite selbst zu prüfen: Alle ihre Dateien zusammen haben die SHA-256-Prüfsumme
{page_hash}
Das installierte Programm braucht keine Seite: faircount answer --server {server} CODE
Der CODE ist, was in Ihrem Link auf das # folgt.

Fragen an: {contact}
"""

_TEMPLATES = {
    (ENGLISH, INVITATION): """Subject: One question: {question}

Hello,

you are invited to answer one question:
"""
    + _ENGLISH_REST,
    (ENGLISH, REMINDER): """Subject: Reminder: {question}

Hello,

your invitation to answer this question has not been used yet. Taking part is voluntary; if you do \
not want to, you need not do anything.
"""
    + _ENGLISH_REST,
    ("de", INVITATION): """Subject: Eine Frage: {question}

Guten Tag,

Sie sind eingeladen, eine Frage zu beantworten:
"""
    + _GERMAN_REST,
    ("de", REMINDER): """Subject: Erinnerung: {question}

Guten Tag,

Ihre Einladung, diese Frage zu beantworten, wurde noch nicht benutzt. Die Teilnahme ist \
freiwillig; wenn Sie nicht möchten, brauchen Sie nichts zu tun.
"""
    + _GERMAN_REST,
}

_TEMPLATES_FOR_SEVERAL = {
    (ENGLISH, INVITATION): """Subject: {questions} questions: {question}

Hello,

you are invited to answer {questions} questions:
"""
    + _ENGLISH_REST,
    (ENGLISH, REMINDER): """Subject: Reminder: {question}

Hello,

your invitation to answer these {questions} questions has not been used yet. Taking part is \
voluntary; if you do not want to, you need not do anything.
"""
    + _ENGLISH_REST,
    ("de", INVITATION): """Subject: {questions} Fragen: {question}

Guten Tag,

Sie sind eingeladen, {questions} Fragen zu beantworten:
"""
    + _GERMAN_REST,
    ("de", REMINDER): """Subject: Erinnerung: {question}

Guten Tag,

Ihre Einladung, diese {questions} Fragen zu beantworten, wurde noch nicht benutzt. Die Teilnahme \
ist freiwillig; wenn Sie nicht möchten, brauchen Sie nichts zu tun.
"""
    + _GERMAN_REST,
}
