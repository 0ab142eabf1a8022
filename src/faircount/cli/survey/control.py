"""`faircount survey open`, `extend`, `close`, `abort` and `delete`: the life of a survey."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import JSON, SURVEY_FOLDER
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from faircount.owner.survey import Survey


@click.command("open")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
def open_command(folder: Path, as_json: bool) -> None:
    """Let the invited people of the survey in FOLDER answer from now on.

    The time to answer starts now, and nobody can be added any more.
    """
    _show(_load(folder).open(), as_json)


@click.command("extend")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--by", required=True, help="How much longer: 30m, 12h, 3d.")
@JSON
def extend_command(folder: Path, by: str, as_json: bool) -> None:
    """Give the people of the survey in FOLDER more time for the current visit.

    A survey that is held open, because there were too few answers at its closing time, closes this
    much later from now on. Everybody can see that the time was extended.
    """
    _show(_load(folder).extend(by), as_json)


@click.command("close")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
def close_command(folder: Path, as_json: bool) -> None:
    """Accept no more answers for the survey in FOLDER, and count those received.

    If people visit several times, this ends the current visit. With fewer answers than the minimum
    the survey stays open, and the exit code is 2: extend it, or end it with abort.
    """
    _show(_load(folder).close(), as_json)


@click.command("abort")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--reason", default="", help="Reason that everybody can read.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON
def abort_command(folder: Path, reason: str, yes: bool, as_json: bool) -> None:
    """End the survey in FOLDER for good, without a result."""
    survey = _load(folder)
    if not yes:
        # A program cannot answer a prompt, and nobody could have confirmed the end.
        if as_json:
            raise ParameterError("--json asks no questions: give --yes")
        click.confirm(
            f"End the survey {survey.params.question!r} without a result? All answers are deleted, "
            "and this cannot be undone",
            abort=True,
        )
    _show(survey.abort(reason), as_json)


@click.command("delete")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def delete_command(folder: Path, yes: bool) -> None:
    """Delete the finished survey in FOLDER from both servers. The folder stays.

    Participants can no longer see whether they were counted. The budget stays spent.
    """
    survey = _load(folder)
    if not yes:
        click.confirm(
            f"Delete the survey {survey.params.question!r} from both servers?", abort=True
        )
    survey.delete()
    click.echo("Both servers have removed the survey.")


def _load(folder: Path) -> "Survey":
    from faircount.owner.survey import Survey

    return Survey.at(folder)


def _show(status: dict[str, Any], as_json: bool) -> None:
    from faircount.cli.show import console, print_json
    from faircount.cli.survey.outcome import show_status

    if as_json:
        print_json(status)
    else:
        show_status(console(), status)
