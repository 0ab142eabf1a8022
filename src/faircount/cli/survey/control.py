"""`faircount survey open`, `extend`, `close`, `abort` and `delete`: the life of a survey."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import JSON, SURVEY_FOLDER

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

    Everybody can see that the time was extended.
    """
    _show(_load(folder).extend(by), as_json)


@click.command("close")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
def close_command(folder: Path, as_json: bool) -> None:
    """Accept no more answers for the survey in FOLDER, and count those received.

    If people visit several times, this ends the current visit.
    """
    _show(_load(folder).close(), as_json)


@click.command("abort")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--reason", default="", help="Reason that everybody can read.")
@JSON
def abort_command(folder: Path, reason: str, as_json: bool) -> None:
    """End the survey in FOLDER for good, without a result."""
    _show(_load(folder).abort(reason), as_json)


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
