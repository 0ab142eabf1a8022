"""The life of a survey and its owner: `faircount survey open`, `extend`, `close`, `abort`, ..."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import FILE, JSON, SURVEY_FOLDER
from faircount.cli.survey.each_group import each_group
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from faircount.owner.survey import Survey


@click.command("open")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
@each_group
def open_command(folder: Path, as_json: bool) -> None:
    """Let the invited people of the survey in FOLDER answer from now on.

    The time to answer starts now, and nobody can be added any more.
    """
    survey = _load(folder)
    _show(survey, survey.open(), as_json)


@click.command("extend")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--by", required=True, help="How much longer: 30m, 12h, 3d.")
@JSON
@each_group
def extend_command(folder: Path, by: str, as_json: bool) -> None:
    """Give the people of the survey in FOLDER more time for the current visit.

    A survey that is held open, because there were too few answers at its closing time, closes this
    much later from now on. Everybody can see that the time was extended.
    """
    survey = _load(folder)
    _show(survey, survey.extend(by), as_json)


@click.command("close")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
@each_group
def close_command(folder: Path, as_json: bool) -> None:
    """Accept no more answers for the survey in FOLDER, and count those received.

    If people visit several times, this ends the current visit. With fewer answers than the minimum
    the survey stays open, and the exit code is 2: extend it, or end it with abort.
    """
    survey = _load(folder)
    _show(survey, survey.close(), as_json)


@click.command("abort")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--reason", default="", help="Reason that everybody can read.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON
@each_group
def abort_command(folder: Path, reason: str, yes: bool, as_json: bool) -> None:
    """End the survey in FOLDER for good, without a result."""
    survey = _load(folder)
    if not yes:
        # A program cannot answer a prompt, and nobody could have confirmed the end.
        if as_json:
            raise ParameterError("--json asks no questions: give --yes")
        # Named by its question: several surveys may be open, and this cannot be undone.
        click.confirm(
            f"End the survey {survey.params.questionnaire.text!r} without a result? All answers "
            "are deleted, and this cannot be undone",
            abort=True,
        )
    status = survey.abort(reason)
    _show(survey, status, as_json)
    # The aggregator signs every ending, so that neither server can end a survey alone.
    if not as_json and status["phase"] != "aborted":
        click.echo("The survey ends as soon as the aggregator has confirmed it.")


@click.command("delete")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@each_group
def delete_command(folder: Path, yes: bool) -> None:
    """Delete the finished survey in FOLDER from both servers. The folder stays.

    Participants can no longer see whether they were counted. The budget stays spent.
    """
    survey = _load(folder)
    if not yes:
        click.confirm(
            f"Delete the survey {survey.params.questionnaire.text!r} from both servers?", abort=True
        )
    survey.delete()
    click.echo("Both servers have removed the survey.")


@click.command("hand-over")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--coordinator", metavar="ID", help="Id of the new owner at the coordinator.")
@click.option("--aggregator", metavar="ID", help="Id of the new owner at the aggregator.")
def hand_over_command(folder: Path, coordinator: str | None, aggregator: str | None) -> None:
    """Give the survey in FOLDER to another owner of both servers.

    The operators tell the new owner its ids (faircount token list). The budget stays yours. From
    then on your tokens do nothing with this survey: give the folder, which has the invitations, to
    the new owner, who continues with faircount survey use-tokens.
    """
    # One of them is enough, for owners who have a new id at one server only.
    if coordinator is None and aggregator is None:
        raise ParameterError("give --coordinator, --aggregator or both: the ids of the new owner")
    _load(folder).hand_over(coordinator=coordinator, aggregator=aggregator)
    click.echo("The survey has another owner now.")


@click.command("use-tokens")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option(
    "--servers", type=FILE, required=True, help="File with addresses and tokens of both servers."
)
@each_group
def use_tokens_command(folder: Path, servers: Path) -> None:
    """Use other tokens for the survey in FOLDER from now on.

    After an operator has replaced your token, or another owner has handed the survey over to you.
    """
    _load(folder).use_tokens(servers)
    click.echo("The survey uses the tokens of this file.")


def _load(folder: Path) -> "Survey":
    from faircount.owner.survey import Survey

    return Survey.at(folder)


def _show(survey: "Survey", status: dict[str, Any], as_json: bool) -> None:
    from faircount.cli.show import console, print_json
    from faircount.cli.survey.outcome import show_status

    if as_json:
        print_json(status)
    else:
        show_status(console(), survey, status)
