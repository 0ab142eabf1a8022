"""Invitations and reminders by mail: to the right people, once, through a real mail server."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from pathlib import Path
from typing import Any

import pytest
from certificates import write_certificate
from click.testing import CliRunner
from smtp_sink import Sink, smtp_sink

from faircount.cli import main
from faircount.client.participation import connect
from faircount.core.errors import FaircountError, ParameterError, RefusedError, UnreachableError
from faircount.owner import mail_journal
from faircount.owner.advice import SurveyRequirements
from faircount.owner.creation import SurveyDescription, create
from faircount.owner.folder import OwnerFile, read_servers
from faircount.owner.mail import Mailing
from faircount.owner.mail_journal import Event, Journal
from faircount.owner.mail_server import MailServer
from faircount.owner.mail_texts import (
    format_closing_time,
    names_in,
    own_template,
    parse_template,
)
from faircount.owner.people import People
from faircount.owner.questions import one_question
from faircount.owner.survey import Survey

SENDER = "People team <people@example.org>"
PEOPLE = 12
SECRET = " ".join(("correct", "horse"))


@pytest.fixture
def sink() -> Iterator[Sink]:
    with smtp_sink() as started:
        yield started


def make_survey(both_apps: Any, language: str = "en", *, is_open: bool = True) -> Survey:
    """A survey of twelve people with addresses and names."""
    names = tuple(f"p{number}@example.org" for number in range(PEOPLE))
    rows = tuple((f"Zoë {number}",) for number in range(PEOPLE))
    s1, s2 = read_servers(both_apps.servers_file)
    owner = OwnerFile(s1, s2, s1.address, (8.0, 1e-6), language)
    survey, _ = create(
        both_apps.folder / "survey",
        SurveyRequirements(
            one_question("Tea or\ncoffee?", ("tea", "coffee")), PEOPLE, 8.0, minimum=PEOPLE // 2
        ),
        SurveyDescription(owner="A company", contact="hr@example.org"),
        owner,
        people=People(names, ("Name",), rows),
        anyway=True,
    )
    survey.invite()
    if is_open:
        survey.servers.request(survey.params, "open", invited=PEOPLE)
    return survey


def server_of(sink: Sink, **more: Any) -> MailServer:
    return MailServer("127.0.0.1", sink.port, **{"security": "none", **more})


def send(mailing: Mailing, sink: Sink, **more: Any) -> Any:
    return mailing.send(server_of(sink), pause=lambda seconds: None, **more)


def answer_as(survey: Survey, folder: Path, *places: int) -> None:
    for place in places:
        link = survey.invitees()[place].code.link("http://s1")
        connect(link, state=folder / f"{place}.device").answer("tea")


def addresses(*places: int) -> list[str]:
    return [f"p{place}@example.org" for place in places]


def test_everybody_gets_their_own_invitation_once(both_apps: Any, sink: Sink) -> None:
    survey = make_survey(both_apps)
    pauses: list[float] = []
    report = Mailing(survey, SENDER).send(server_of(sink), rate=30, pause=pauses.append)
    assert report.sent == sink.recipients == addresses(*range(PEOPLE))
    assert pauses == [2.0] * (PEOPLE - 1)  # 30 mails a minute
    for mail, invitee in zip(sink.mails, survey.invitees(), strict=True):
        text = mail.get_content()
        assert invitee.code.link("http://s1") in text.replace("\r\n", "\n")
        assert "Asked by: A company" in text
        assert "Please answer before" in text
        assert "Purpose" not in text  # there is none
        assert mail["Subject"] == "One question: Tea or coffee?"
        assert mail["From"] == SENDER
        assert mail["Message-ID"].endswith("@example.org>")
    links = {mail.get_content() for mail in sink.mails}
    assert len(links) == PEOPLE
    again = send(Mailing(survey, SENDER), sink)
    assert (again.sent, again.before, len(sink.mails)) == ([], PEOPLE, PEOPLE)
    assert survey.folder.path.joinpath("mail.journal").stat().st_mode & 0o077 == 0


def test_only_those_who_have_not_answered_are_reminded(
    both_apps: Any, sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = make_survey(both_apps)
    answer_as(survey, tmp_path, 0, 3)
    first = send(Mailing(survey, SENDER, remind=True), sink)
    waiting = [place for place in range(PEOPLE) if place not in (0, 3)]
    assert first.sent == sink.recipients == addresses(*waiting)
    assert sink.mails[0]["Subject"] == "Reminder: Tea or coffee?"
    with pytest.raises(RefusedError, match="less than a day ago"):
        send(Mailing(survey, SENDER, remind=True), sink)
    assert len(sink.mails) == PEOPLE - 2
    answer_as(survey, tmp_path, 1)
    second = send(Mailing(survey, SENDER, remind=True), sink, again=True)
    assert second.sent == addresses(*waiting[1:])
    monkeypatch.setattr(mail_journal, "BETWEEN_REMINDERS", timedelta(0))
    monkeypatch.setattr("faircount.owner.mail.BETWEEN_REMINDERS", timedelta(0))
    assert send(Mailing(survey, SENDER, remind=True), sink).round == 3


def test_whoever_answers_during_a_long_round_is_not_reminded(
    both_apps: Any, sink: Sink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = make_survey(both_apps)
    monkeypatch.setattr("faircount.owner.mail.MAILS_BETWEEN_QUESTIONS", 4)

    def answer_meanwhile(_: float) -> None:
        if len(sink.mails) == 2:
            answer_as(survey, tmp_path, 9)

    report = Mailing(survey, SENDER, remind=True).send(server_of(sink), pause=answer_meanwhile)
    assert report.sent == addresses(*(place for place in range(PEOPLE) if place != 9))


class KilledError(BaseException):
    """Nothing of the program runs after this, as after SIGKILL."""


def test_a_kill_sends_nobody_a_second_mail_silently(
    both_apps: Any, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    survey = make_survey(both_apps)
    record = Journal.record

    def killed_after_the_fifth(
        self: Journal, kind: str, number: int, event: Event, user: str = ""
    ) -> None:
        if event is Event.SENT and len(sink.mails) == 5:
            raise KilledError
        record(self, kind, number, event, user)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "record", killed_after_the_fifth)
        with pytest.raises(KilledError):
            send(Mailing(survey, SENDER), sink)
    assert len(sink.mails) == 5
    report = send(Mailing(survey, SENDER), sink)
    assert (report.unsure, report.before, len(report.sent)) == (addresses(4), 4, PEOPLE - 5)
    assert not report.is_complete
    assert sorted(sink.recipients) == sorted(addresses(*range(PEOPLE)))
    last = send(Mailing(survey, SENDER), sink, retry_unsure=True)
    assert (last.sent, last.unsure, last.is_complete) == (addresses(4), [], True)


def test_a_line_cut_off_by_a_crash_is_dropped(both_apps: Any, sink: Sink) -> None:
    survey = make_survey(both_apps)
    journal = survey.folder.path / "mail.journal"
    send(Mailing(survey, SENDER), sink)
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3]) + lines[3][:20])  # the second mail's "sent" is torn
    report = send(Mailing(survey, SENDER), sink)
    assert (report.before, report.unsure) == (1, addresses(1))
    journal.write_bytes(b"{}\n" + whole)
    with pytest.raises(FaircountError, match="damaged"):
        send(Mailing(survey, SENDER), sink)


def test_a_mail_server_that_vanishes_leaves_one_person_unsure(both_apps: Any, sink: Sink) -> None:
    survey = make_survey(both_apps)
    sink.vanishes_after = set(addresses(3))
    with pytest.raises(UnreachableError, match=r"p3@example\.org, who may have got it\. 3 mails"):
        send(Mailing(survey, SENDER), sink)
    report = send(Mailing(survey, SENDER), sink)
    assert (report.before, report.unsure, len(report.sent)) == (3, addresses(3), PEOPLE - 4)


def test_connections_that_are_closed_between_mails_are_opened_again(
    both_apps: Any, sink: Sink
) -> None:
    survey = make_survey(both_apps)
    sink.mails_per_connection = 5
    assert send(Mailing(survey, SENDER), sink).is_complete
    assert (len(sink.mails), sink.connections) == (PEOPLE, 3)


def test_refused_and_postponed_addresses_are_told_apart(both_apps: Any, sink: Sink) -> None:
    survey = make_survey(both_apps)
    sink.replies = {"p1@example.org": 550, "p2@example.org": 450}
    report = send(Mailing(survey, SENDER), sink)
    assert (report.refused, report.postponed) == (addresses(1), addresses(2))
    sink.replies = {}
    later = send(Mailing(survey, SENDER), sink)
    assert (later.sent, later.refused, later.before) == (addresses(2), addresses(1), PEOPLE - 2)
    sink.refuses_senders = 550
    with pytest.raises(UnreachableError, match="refuses: 550 not from you"):
        send(Mailing(survey, SENDER, remind=True), sink)


def test_mails_are_in_the_language_of_the_survey(both_apps: Any, sink: Sink) -> None:
    send(Mailing(make_survey(both_apps, "de"), SENDER), sink)
    text = sink.mails[0].get_content()
    assert "Ihr persönlicher Link:" in text
    assert "höchstens zu" in text
    assert sink.mails[0]["Subject"] == "Eine Frage: Tea or coffee?"
    assert sink.mails[0]["Content-Language"] == "de"


def test_times_are_written_as_the_language_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    closes = datetime(2030, 3, 4, 15, 0, tzinfo=UTC).isoformat()
    assert format_closing_time(closes, "en").startswith("4 March 2030, ")
    assert format_closing_time(closes, "de").startswith("04.03.2030, ")
    assert format_closing_time(None, "en") == ""


def test_the_owners_own_text_uses_the_columns_of_the_table(both_apps: Any, sink: Sink) -> None:
    template = parse_template("Subject: {Name}, {question}\n\nHello {Name} {link}\n\nFor {purpose}")
    send(Mailing(make_survey(both_apps), SENDER, template=template), sink)
    assert sink.mails[2]["Subject"] == "Zoë 2, Tea or coffee?"
    assert sink.mails[2].get_content().startswith("Hello Zoë 2 http://s1/#")
    assert "For" not in sink.mails[2].get_content()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello {link}", "begins with a line such as"),
        ("Subject: a\n\nHello", "must have {link}"),
        ("Subject: {link}\n\n{link}", "not in its subject"),
        ("Subject: a\n\n{link} {Nmae}", "{Nmae}, which stands for nothing"),
        ("Subject: a\n\n{link} {link.__class__}", "stands for nothing"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused_before_anything_is_sent(
    both_apps: Any, sink: Sink, text: str, words: str
) -> None:
    survey = make_survey(both_apps)
    with pytest.raises(ParameterError, match=words):
        send(Mailing(survey, SENDER, template=parse_template(text)), sink)
    assert not sink.mails


def test_a_value_is_not_read_as_a_template(both_apps: Any) -> None:
    template = parse_template("Subject: a\n\n{Name} {link}")
    values = {"Name": "{link}", "link": "secret"}
    assert template.fill(values) == ("a", "{link} secret\n")


def test_nothing_is_sent_for_a_survey_that_nobody_can_answer(both_apps: Any, sink: Sink) -> None:
    survey = make_survey(both_apps, is_open=False)
    with pytest.raises(RefusedError, match="not open yet"):
        send(Mailing(survey, SENDER), sink)
    assert "Please answer before" not in Mailing(survey, SENDER).letters()[0].message.get_content()
    survey.servers.request(survey.params, "open", invited=PEOPLE)
    survey.servers.request(survey.params, "abort", reason="")
    survey.ending(wait=True)
    with pytest.raises(RefusedError, match="closed"):
        send(Mailing(survey, SENDER), sink)
    assert not sink.mails


def test_people_without_an_address_are_refused(both_apps: Any, sink: Sink, tmp_path: Path) -> None:
    survey = make_survey(both_apps)
    table = survey.folder.invitations_file
    table.write_text(table.read_text().replace("p5@example.org", "Cem"))
    with pytest.raises(RefusedError, match="1 people have no e-mail address, such as 'Cem'"):
        send(Mailing(survey, SENDER), sink)
    with pytest.raises(ParameterError, match="a sender"):
        Mailing(survey, "people")
    assert not sink.mails


@pytest.mark.parametrize("implicit", [False, True], ids=["starttls", "tls"])
def test_mails_travel_encrypted_and_with_a_login(
    both_apps: Any, tmp_path: Path, implicit: bool
) -> None:
    survey = make_survey(both_apps)
    write_certificate(tmp_path)
    with smtp_sink(tmp_path / "both.pem", implicit=implicit) as sink:
        sink.account = ("owner", SECRET)
        terms: dict[str, Any] = {"security": "tls" if implicit else "starttls", "user": "owner"}
        with pytest.raises(UnreachableError, match="certificate verify failed"):
            Mailing(survey, SENDER).send(server_of(sink, password=SECRET, **terms))
        trusting = {**terms, "certificates": str(tmp_path / "certificate.pem")}
        with pytest.raises(FaircountError, match="refuses the user or the password") as refused:
            Mailing(survey, SENDER).send(server_of(sink, password=SECRET[1:], **trusting))
        assert SECRET[1:] not in str(refused.value)
        report = Mailing(survey, SENDER).send(
            server_of(sink, password=SECRET, **trusting), pause=lambda seconds: None
        )
        assert len(report.sent) == PEOPLE
        assert sink.was_encrypted == [True] * PEOPLE
        assert sink.logins[-1] == ("owner", SECRET)


def test_encryption_is_not_given_up_and_a_password_never_travels_plainly(
    both_apps: Any, sink: Sink
) -> None:
    survey = make_survey(both_apps)
    with pytest.raises(FaircountError, match=r"does not offer STARTTLS on port .*-security tls"):
        Mailing(survey, SENDER).send(server_of(sink, security="starttls"))
    with pytest.raises(RefusedError, match="unencrypted"):
        MailServer("mail.example.org", security="none", user="owner", password=SECRET)
    with pytest.raises(ParameterError, match="both a user and a password"):
        MailServer("mail.example.org", user="owner")
    assert SECRET not in repr(MailServer("mail.example.org", user="owner", password=SECRET))
    assert not sink.mails


def run(*arguments: object, password: str = "", text: str | None = None) -> Any:
    runner = CliRunner(env={"FAIRCOUNT_SMTP_PASSWORD": password or None})
    return runner.invoke(main, list(map(str, arguments)), catch_exceptions=False, input=text)


def test_the_command_asks_first_and_reports(both_apps: Any, sink: Sink, tmp_path: Path) -> None:
    survey = make_survey(both_apps)
    through = ("--smtp-host", "127.0.0.1", "--smtp-port", sink.port, "--smtp-security", "none")
    command = ("survey", "mail", survey.folder.path, "--from", SENDER, *through, "--rate", 1e9)
    declined = run(*command, text="n\n")
    assert "Send invitations to everybody" in declined.stdout
    assert "at most 12 mails" in declined.stdout
    assert (declined.exit_code, sink.mails) == (1, [])
    sink.replies = {"p1@example.org": 550, "p2@example.org": 450}
    done = run(*command, "--yes")
    assert done.exit_code == 3
    assert "10 invitations were sent." in done.stdout
    assert "refused the address of p1@example.org" in done.stdout
    sink.replies = {}
    sink.account = ("owner", SECRET)
    file = tmp_path / "password"
    file.write_text("from a file\n")
    login = ("--smtp-user", "owner", "--yes", "--json")
    bad = run(*command, *login, "--smtp-password-file", file)
    assert bad.exit_code == 2
    assert sink.logins == [("owner", "from a file")]
    printed = json.loads(run(*command, *login, password=SECRET).stdout)
    assert (printed["sent"], printed["sent_before"], printed["complete"]) == (1, 10, True)
    everything = "".join(
        path.read_text(errors="replace") for path in survey.folder.path.iterdir() if path.is_file()
    )
    assert SECRET not in everything + bad.stderr + done.output


def test_a_dry_run_writes_mails_and_sends_none(both_apps: Any, tmp_path: Path) -> None:
    survey = make_survey(both_apps, is_open=False)
    command = ("survey", "mail", survey.folder.path, "--from", SENDER, "--dry-run")
    done = run(*command)
    assert done.exit_code == 0
    assert "12 mails are in" in done.stdout
    files = sorted((survey.folder.path / "mail").glob("*.eml"))
    assert len(files) == PEOPLE
    mail = message_from_bytes(files[0].read_bytes(), policy=policy.default)
    assert mail["To"] == "p0@example.org"
    assert survey.invitees()[0].code.link("http://s1") in mail.get_content()  # type: ignore[attr-defined]
    assert files[0].stat().st_mode & 0o077 == 0
    assert not (survey.folder.path / "mail.journal").exists()
    assert len(json.loads(run(*command, "--json").stdout)["files"]) == PEOPLE
    missing = run(*command[:-1], "--yes")
    assert "name your mail server with --smtp-host" in missing.stderr


def test_two_commands_do_not_send_at_once(both_apps: Any, sink: Sink) -> None:
    survey = make_survey(both_apps)

    def meanwhile(_: float) -> None:
        with pytest.raises(RefusedError, match="another program works with"):
            send(Mailing(survey, SENDER), sink)

    Mailing(survey, SENDER).send(server_of(sink), pause=meanwhile)
    assert len(sink.mails) == PEOPLE


def test_our_templates_are_whole_in_every_language() -> None:
    for kind in ("invitation", "reminder"):
        for language in ("en", "de"):
            template = own_template(kind, language)
            names = {"question", "owner", "purpose", "contact", "link", "closes", "promise"}
            names |= {"page_hash", "server"}
            template.check(frozenset(names))
            assert names_in(template.paragraphs) == names
            # Elsewhere a line end would break a sentence on a narrow screen.
            for paragraph in template.paragraphs:
                has_own_lines = names_in((paragraph,)) & {"link", "page_hash"}
                assert has_own_lines or "\n" not in paragraph
