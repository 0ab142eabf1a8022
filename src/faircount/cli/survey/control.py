"""`faircount survey open`, `extend`, `close`, `abort` and `delete`: how a survey goes on."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import JSON, seconds
from faircount.cli.survey.people import FOLDER

if TYPE_CHECKING:
    from faircount.service.owner.survey import Survey


@click.command("open")
@click.argument("folder", type=FOLDER)
@JSON
def open_command(folder: Path, as_json: bool) -> None:
    """Let the invited people of the survey in FOLDER answer, from now on.

    The time for answers begins to run. Nobody can be added any more.
    """
    survey = _survey(folder)
    _after(survey.servers.wish(survey.params, "open", people=len(survey.invited())), as_json)


@click.command("extend")
@click.argument("folder", type=FOLDER)
@click.option("--by", required=True, help="How much longer: 30m, 12h, 3d.")
@JSON
def extend_command(folder: Path, by: str, as_json: bool) -> None:
    """Give the people of the survey in FOLDER more time for the visit that is open now; everybody can see it."""
    survey = _survey(folder)
    _after(survey.servers.wish(survey.params, "extend", seconds=seconds("--by", by)), as_json)


@click.command("close")
@click.argument("folder", type=FOLDER)
@JSON
def close_command(folder: Path, as_json: bool) -> None:
    """Take no more answers for the survey in FOLDER: S1 and S2 count those that are there.

    Where people have to come several times, this ends the visit that is open now.
    """
    survey = _survey(folder)
    now = survey.servers.status(survey.params)
    _after(survey.servers.wish(survey.params, "close", state=now["state"], attempt=now["attempt"]), as_json)


@click.command("abort")
@click.argument("folder", type=FOLDER)
@click.option("--reason", default="", help="In words, for everybody to read.")
@JSON
def abort_command(folder: Path, reason: str, as_json: bool) -> None:
    """End the survey in FOLDER without a result, for good."""
    survey = _survey(folder)
    _after(survey.servers.wish(survey.params, "abort", reason=reason), as_json)


@click.command("delete")
@click.argument("folder", type=FOLDER)
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete_command(folder: Path, yes: bool) -> None:
    """Remove the survey in FOLDER from both servers; it must be over. The folder stays.

    People cannot see any more whether they were counted. What was spent of the budget stays spent.
    """
    survey = _survey(folder)
    if not yes:
        click.confirm(f"Remove the survey {survey.params.question!r} from both servers?", abort=True)
    survey.servers.delete(survey.params)
    click.echo("Both servers have removed the survey.")


def _survey(folder: Path) -> "Survey":
    from faircount.service.owner.survey import Survey

    return Survey.at(folder)


def _after(status: dict[str, Any], as_json: bool) -> None:
    from faircount.cli.show import console, print_json
    from faircount.cli.survey.outcome import show_status

    if as_json:
        print_json(status)
    else:
        show_status(console(), status)
