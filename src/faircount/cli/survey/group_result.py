"""`faircount survey result` of a survey in groups: the groups side by side."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.owner.exports import View
    from faircount.owner.group_results import GroupResults

GROUPS_IN_A_ROW = 4
INCOMPLETE = 4  # exit code if a group ended without a result, as for a single survey


def show_groups(
    folder: Path, view: "View", wait: bool, as_json: bool, files: dict[str, Path | None]
) -> None:
    """Show the results of all groups in a folder, and of privacy levels the combined one."""
    from faircount.cli.show import console, print_json
    from faircount.cli.survey.combined_result import deliver_combined
    from faircount.core.files import write_durably
    from faircount.owner.folder import PUBLIC
    from faircount.owner.groups import GroupedSurvey

    grouped = GroupedSurvey.at(folder)
    others = [name for name, path in files.items() if path is not None and name != "csv"]
    if others and grouped.levels is None:
        raise ParameterError(
            f"--{others[0]} is for one group: give the folder of a group, or --csv for all of them"
        )
    results = grouped.result(wait=wait)
    confidence = view.confidence
    if grouped.levels is not None and results.is_complete:
        deliver_combined(results.combine(), view, as_json, files, are_levels=True)
        return
    if others:
        # A file of some levels would be taken for the result of all.
        results.combine()
    # Groups end one by one; those that are over are shown beside the others.
    if results.questionnaire is None and any(group.ending is None for group in results.groups):
        raise ParameterError(
            f"no group is over yet: `faircount survey status {folder}` says what they wait for, "
            "and --wait waits for the results"
        )
    table = files.get("csv")
    if table is not None:
        write_durably(table, results.to_csv(confidence), PUBLIC)
    if as_json:
        print_json(results.to_dict(confidence))
    else:
        _show(console(), results, confidence)
        if grouped.levels is not None:
            click.echo("Not every level has a result, so they are not combined.")
        if table is not None:
            click.echo(f"Written to {table}")
    if not results.is_complete:
        raise click.exceptions.Exit(INCOMPLETE)


def _show(out: "Console", results: "GroupResults", confidence: float) -> None:
    from faircount.cli.show import cell, make_table
    from faircount.core.domain import escape_controls
    from faircount.core.plain import format_confidence

    headings = []
    for group in results.groups:
        counted = 0 if group.result is None else group.result.included
        headings.append(f"{group.name} ({counted} of {group.invited})")
    asked = results.questionnaire
    for number in range(0 if asked is None else len(asked)):
        assert asked is not None  # noqa: S101 - without questions the loop has no round
        out.print()
        out.print(cell(f"{number + 1}. {asked.questions[number].text}"), style="bold")
        rows = results.table(number, confidence)
        # A terminal is not wide enough for many groups beside each other.
        for start in range(0, len(headings), GROUPS_IN_A_ROW):
            part = slice(start, start + GROUPS_IN_A_ROW)
            lines = [[label, *cells[part]] for label, cells in rows]
            out.print(make_table(["", *headings[part]], lines))
    out.print()
    for reason in results.reasons():
        out.print(f"{escape_controls(reason)}.", markup=False)
    out.print(
        f"Numbers in parentheses beside a group: people counted, of those invited; beside an "
        f"estimate: its {format_confidence(confidence)} interval. Two groups differ clearly where "
        "their intervals do not overlap.",
        markup=False,
    )
    out.print(
        "Everybody is in one group, so the guarantee of each group's result holds for its people: "
        "see faircount survey result with the folder of a group.",
        markup=False,
    )
