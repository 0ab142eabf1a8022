"""`faircount survey invite`, `remind` and `reissue`: the people who are asked."""

from pathlib import Path
from typing import Any

import click

from faircount.cli.options import ADDRESS_COLUMN, FILE, JSON, PEOPLE, SURVEY_FOLDER
from faircount.cli.survey.each_group import each_group


@click.command("invite")
@click.argument("folder", type=SURVEY_FOLDER)
@PEOPLE
@ADDRESS_COLUMN
@JSON
@each_group
def invite_command(
    folder: Path, people: Path | None, address_column: str | None, as_json: bool
) -> None:
    """Make the invitations of the survey in FOLDER, and register them with both servers.

    Send the links in invitations.csv, or print invitations.html. Keep both files secret: whoever
    has a code can answer in that person's place. Running the command again makes no new
    invitations.
    """
    from faircount.cli.show import spinner
    from faircount.owner.people import read_people
    from faircount.owner.survey import Survey
    from faircount.protocol.survey.phases import Phase

    survey = Survey.at(folder)
    # Invitations that exist are completed and not made anew: some may have been sent already.
    listed = None if people is None else read_people(people, address_column)
    with spinner("making invitations and their codes ..."):
        made = survey.invite(listed)
        phase = survey.status()["phase"]
    table = str(survey.folder.invitations_file)
    printable = str(survey.folder.printable_file)
    # Whoever calls this again wants the files, and may have opened the survey before.
    following = f"The survey is open: faircount survey status {folder} says how many have answered."
    if phase == Phase.DRAFT:
        following = f"Next: faircount survey open {folder}"
    _print_facts(
        as_json,
        {"invited": len(made), "files": [table, printable]},
        f"{len(made):,} people can be invited: send the links in {table}, or print {printable}.",
        "Keep both files secret: whoever has a code can answer in that person's place.",
        *([f"Note: {listed.note}"] if listed is not None and listed.note else []),
        following,
    )


@click.command("remind")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option(
    "--out", type=FILE, help="Write the table here.  [default: reminders.csv in the folder]"
)
@JSON
@each_group
def remind_command(folder: Path, out: Path | None, as_json: bool) -> None:
    """Write a table of the people in the survey in FOLDER who have not answered yet.

    The coordinator knows who has used an invitation. It does not know what anybody answered, and
    neither do you.
    """
    from faircount.owner.survey import Survey

    survey = Survey.at(folder)
    missing = survey.remind(out)
    target = out or survey.folder.reminders_file
    _print_facts(
        as_json,
        {"not_answered": len(missing), "file": str(target)},
        f"{len(missing):,} people have not answered yet: their links are in {target}. Keep it "
        "secret.",
    )


@click.command("reissue")
@click.argument("folder", type=SURVEY_FOLDER)
@click.argument("person")
@JSON
def reissue_command(folder: Path, person: str, as_json: bool) -> None:
    """Replace the invitation of PERSON, who has lost it, in the survey in FOLDER.

    The old invitation stops working. An invitation that was used is not replaced, because the
    person has answered.
    """
    from faircount.owner.survey import Survey

    survey = Survey.at(folder)
    link = survey.reissue(person).code.link(survey.owner.link_address)
    _print_facts(
        as_json, {"person": person, "link": link}, f"New link of {person} (keep it secret):", link
    )


def _print_facts(as_json: bool, facts: dict[str, Any], *lines: str) -> None:
    """Print facts as JSON, or sentences that say the same."""
    from faircount.cli.show import print_json
    from faircount.core.domain import escape_controls

    if as_json:
        print_json(facts)
        return
    for line in lines:
        click.echo(escape_controls(line))  # names of people may contain control characters
