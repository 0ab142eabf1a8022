"""`faircount survey invite`, `remind` and `reissue`: who is asked."""

from pathlib import Path
from typing import Any

import click

from faircount.cli.options import FILE, JSON

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


@click.command("invite")
@click.argument("folder", type=FOLDER)
@click.option("--people", type=FILE, help="File with one person a line; without it people are numbered.")
@JSON
def invite_command(folder: Path, people: Path | None, as_json: bool) -> None:
    """Make the invitations of the survey in FOLDER, and tell both servers whom to admit.

    invitations.csv is for sending, invitations.html for printing. Each holds secrets: whoever has a code can answer in
    that person's place. Running it again makes nothing new.
    """
    from faircount.analysis.prepare import lines_of
    from faircount.cli.show import busy
    from faircount.service.owner.invitations import numbered
    from faircount.service.owner.survey import Survey

    survey = Survey.at(folder)
    named = [] if people is None else lines_of(people)
    if not named and not survey.folder.invitations_file.exists():
        named = numbered(survey.params.n_max, survey.owner.language)
    with busy("invitations and their codes ..."):
        made = survey.invite(named)
    files = [str(survey.folder.invitations_file), str(survey.folder.printable_file)]
    _say(as_json, {"invited": len(made), "files": files}, [
        f"{len(made):,} people can be invited: send the links in {files[0]}, or print {files[1]}.",
        "Both files are secret: whoever has a code can answer in that person's place.",
        f"Next: faircount survey open {folder}",
    ])  # fmt: skip


@click.command("remind")
@click.argument("folder", type=FOLDER)
@click.option("--out", type=FILE, help="Write the table here.  [default: reminders.csv in the folder]")
@JSON
def remind_command(folder: Path, out: Path | None, as_json: bool) -> None:
    """Write a table of the people of the survey in FOLDER who have not answered yet, to send them a reminder.

    S1 tells who has used an invitation. It does not know what anybody answered, and neither do you.
    """
    from faircount.core.files import write_durably
    from faircount.service.owner.invitations import as_table
    from faircount.service.owner.survey import Survey

    survey = Survey.at(folder)
    left, target = survey.not_answered(), out or folder / "reminders.csv"
    write_durably(target, as_table(left, survey.owner.public_address))
    said = f"{len(left):,} people have not answered yet: their links are in {target}, which is secret."
    _say(as_json, {"not_answered": len(left), "file": str(target)}, [said])


@click.command("reissue")
@click.argument("folder", type=FOLDER)
@click.argument("person")
@JSON
def reissue_command(folder: Path, person: str, as_json: bool) -> None:
    """Make a new invitation for PERSON of the survey in FOLDER, who has lost the old one without using it.

    The old one admits nobody from now on. One that was used is not replaced: the person has answered.
    """
    from faircount.service.owner.reissue import reissue
    from faircount.service.owner.survey import Survey

    survey = Survey.at(folder)
    link = reissue(survey, person).code.link(survey.owner.public_address)
    _say(as_json, {"person": person, "link": link}, [f"The new link of {person}, which is secret:", link])


def _say(as_json: bool, facts: dict[str, Any], lines: list[str]) -> None:
    from faircount.cli.show import print_json
    from faircount.core.domain import shown

    if as_json:
        print_json(facts)
        return
    for each in lines:
        click.echo(shown(each))
