"""`faircount survey mail`: send invitations and reminders through the owner's mail server."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import CERTIFICATES, FILE, JSON, SURVEY_FOLDER
from faircount.cli.survey.each_group import each_group
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from faircount.owner.mail import Mailing, MailReport
    from faircount.owner.mail_server import MailServer

PASSWORD = "FAIRCOUNT_SMTP_PASSWORD"  # noqa: S105 - the name of a variable
PEOPLE_LISTED = 10
INCOMPLETE = 3  # exit code if somebody is left who should get a mail


@click.command("mail")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--remind", is_flag=True, help="Remind those who have not answered yet.")
@click.option(
    "--from",
    "sender",
    envvar="FAIRCOUNT_MAIL_FROM",
    show_envvar=True,
    required=True,
    help='Address that the mails come from, also as "Name <address>".',
)
@click.option("--template", type=FILE, help="Your own text; its first line is the subject.")
@click.option("--dry-run", is_flag=True, help="Write the mails as .eml files and send nothing.")
# The mail server. The password is no option, because other users of a machine see a command line.
@click.option(
    "--smtp-host",
    envvar="FAIRCOUNT_SMTP_HOST",
    show_envvar=True,
    help="Your mail server. Its password is read from the environment variable "
    f"{PASSWORD} or from --smtp-password-file.",
)
@click.option(
    "--smtp-port",
    type=int,
    default=0,
    envvar="FAIRCOUNT_SMTP_PORT",
    show_envvar=True,
    help="Its port.  [default: 587, 465 or 25, by --smtp-security]",
)
@click.option(
    "--smtp-security",
    type=click.Choice(["starttls", "tls", "none"]),
    default="starttls",
    envvar="FAIRCOUNT_SMTP_SECURITY",
    show_default=True,
    show_envvar=True,
    help="How the connection is encrypted.",
)
@click.option(
    "--smtp-user",
    default="",
    envvar="FAIRCOUNT_SMTP_USER",
    show_envvar=True,
    help="Your user name there, if it needs one.",
)
@click.option("--smtp-password-file", type=FILE, help="File with your password.")
@CERTIFICATES
@click.option(
    "--rate",
    default=60.0,
    envvar="FAIRCOUNT_MAIL_RATE",
    show_default=True,
    show_envvar=True,
    help="Mails per minute, at most.",
)
@click.option(
    "--retry-unsure",
    is_flag=True,
    help="Also to people who may have got the mail when an earlier command was interrupted.",
)
@click.option("--again", is_flag=True, help="Remind although the last reminder is not a day old.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON
@each_group
def mail_command(
    folder: Path,
    remind: bool,
    sender: str,
    template: Path | None,
    dry_run: bool,
    rate: float,
    retry_unsure: bool,
    again: bool,
    yes: bool,
    as_json: bool,
    **server: Any,
) -> None:
    """Send everybody in the survey in FOLDER their invitation by mail.

    The survey must be open. Nobody gets the same mail twice: the folder has a journal of what was
    sent, and running the command again continues it. If it was interrupted while the mail server
    had a mail, that person is listed and not sent another one. The exit code is 3 if somebody is
    left who should get a mail.

    With --remind only people whose invitation was not used get a mail. The coordinator knows who
    used an invitation; nobody knows what they answered.
    """
    from faircount.owner.mail import Mailing
    from faircount.owner.mail_texts import read_template
    from faircount.owner.survey import Survey

    # Read and checked before the first mail, which nobody can take back.
    own_text = None if template is None else read_template(template)
    mailing = Mailing(Survey.at(folder), sender, remind, own_text)
    if dry_run:
        # Neither mail server nor confirmation: this is for looking at the mails first.
        _show_files(mailing.write(), as_json)
        return
    chosen = _server_of(server)
    if not yes:
        # With --json the question goes to the error stream, so that the output stays one document.
        click.confirm(_question(mailing, chosen), abort=True, err=as_json)
    report = mailing.send(chosen, rate=rate, retry_unsure=retry_unsure, again=again)
    _show(report, as_json)
    if not report.is_complete:
        raise click.exceptions.Exit(INCOMPLETE)


def _server_of(given: dict[str, Any]) -> "MailServer":
    from faircount.core.files import read_file
    from faircount.owner.mail_server import MailServer

    if not given["smtp_host"]:
        raise ParameterError("name your mail server with --smtp-host, or look first: --dry-run")
    password = os.environ.get(PASSWORD, "")
    file = given["smtp_password_file"]
    if file is not None:
        password = read_file(file, "write the password of your mail account into it").decode()
    return MailServer(
        given["smtp_host"],
        given["smtp_port"],
        given["smtp_security"],
        given["smtp_user"],
        # Without an account the password in the environment is for something else.
        # Line ends of the file are no part of the password, other spaces at its ends may be.
        password.strip("\r\n") if given["smtp_user"] else "",
        given["certificates"],
    )


def _question(mailing: "Mailing", server: "MailServer") -> str:
    # Made now, so that a template with a mistake fails before the question and not after it.
    letters = mailing.letters()
    whom = "everybody who has not answered" if mailing.remind else "everybody"
    return (
        f"Send {mailing.kind}s to {whom} in {mailing.survey.params.questionnaire.text!r}, at most "
        f"{len(letters):,} mails from {mailing.sender} through {server.host}?"
    )


def _show_files(report: "MailReport", as_json: bool) -> None:
    from faircount.cli.show import print_json

    if as_json:
        print_json({"kind": report.kind, "files": [str(path) for path in report.files]})
        return
    if not report.files:
        click.echo("Everybody has answered: there is no mail to write.")
        return
    click.echo(
        f"{len(report.files):,} mails are in {report.files[0].parent}, and none was sent. Keep "
        "them secret: a link lets anybody answer."
    )


def _show(report: "MailReport", as_json: bool) -> None:
    from faircount.cli.show import print_json

    if as_json:
        print_json(
            {
                "kind": report.kind,
                "round": report.round,
                "sent": len(report.sent),
                "sent_before": report.before,
                "refused": report.refused,
                "postponed": report.postponed,
                "unsure": report.unsure,
                "complete": report.is_complete,
            }
        )
        return
    before = f" ({report.before:,} had theirs before)" if report.before else ""
    click.echo(f"{len(report.sent):,} {report.kind}s were sent{before}.")
    # Three lists, since each needs something else: a new address, patience, or a decision.
    _list(report.refused, "The mail server refused the address of")
    _list(report.postponed, "Not sent for now, run the command again later:")
    _list(
        report.unsure,
        "A command was interrupted while it sent the mail, and these may have got it (to send it "
        "again: --retry-unsure):",
    )


def _list(people: list[str], words: str) -> None:
    from faircount.core.domain import escape_controls

    if people:
        more = len(people) - PEOPLE_LISTED
        listed = ", ".join(map(escape_controls, people[:PEOPLE_LISTED]))
        click.echo(f"{words} {listed}{f' and {more:,} more' if more > 0 else ''}")
