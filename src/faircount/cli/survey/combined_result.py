"""How a combined result looks in a terminal, and `faircount survey combine`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircount.cli.options import CONFIDENCE, COVERS, FILE, JSON, SURVEY_FOLDER

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.owner.combined_result import CombinedResult
    from faircount.owner.exports import View


@click.command("combine")
@click.argument("folders", nargs=-1, type=SURVEY_FOLDER, required=True)
@click.option(
    "--disjoint",
    is_flag=True,
    help="Declare that nobody was invited to two of the surveys; needed where a folder does not "
    "say who was invited.",
)
@CONFIDENCE
@COVERS
@click.option("--csv", type=FILE, help="Write a table for programs.")
@click.option("--xlsx", type=FILE, help="Write a spreadsheet of the headline.")
@click.option("--plot", type=FILE, help="Draw the headline with intervals (PNG, SVG, PDF).")
@click.option("--html", type=FILE, help="Write a page that stands alone.")
@JSON
def combine_command(
    folders: tuple[Path, ...],
    disjoint: bool,
    confidence: float,
    covers: str,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Combine the results of finished surveys of different people in FOLDERS.

    All of them must have asked the same. Every person counts the same in the estimates, and their
    intervals hold whatever the surveys differ in. Beside them stand estimates with weights by
    variance, whose error is smaller if everybody answers alike. Surveys of the same people are
    refused.
    """
    from faircount.core.validation import check_fraction
    from faircount.owner.combining import combine_surveys
    from faircount.owner.exports import View
    from faircount.owner.survey import Survey

    check_fraction("confidence", confidence)
    view = View(confidence, covers)
    result = combine_surveys([Survey.at(folder) for folder in folders], disjoint=disjoint)
    deliver_combined(result, view, as_json, files, are_levels=False)


def deliver_combined(
    result: "CombinedResult",
    view: "View",
    as_json: bool,
    files: dict[str, Path | None],
    *,
    are_levels: bool,
) -> None:
    """Write the files that were asked for, and show or print the result."""
    from faircount.cli.show import console, print_json
    from faircount.cli.survey.targets import check_targets
    from faircount.owner.combined_files import save_combined

    # All files are checked before the first is written, and before anything is shown.
    targets = check_targets(files)
    for target in targets:
        save_combined(result, target, view, are_levels=are_levels)
    if as_json:
        print_json(result.to_dict(view.confidence, covers=view.covers))
        return
    _show(console(), result, view, are_levels)
    for target in targets:
        click.echo(f"Written to {target}")


def _show(out: "Console", result: "CombinedResult", view: "View", are_levels: bool) -> None:
    from faircount.cli.show import make_table
    from faircount.cli.show_questions import show_questions
    from faircount.owner.combined_texts import CombinedWords

    words = CombinedWords(result, are_levels)
    show_questions(out, result, view.confidence, view.covers)
    # Between the headline and what depends on a condition, so that nobody mixes them up.
    out.print(f"\n{words.text('headline')}", markup=False)
    several = len(result.questionnaire) > 1
    for number in range(len(result.questionnaire)):
        if several:
            out.print(f"\n{words.text('question', number=number + 1)}", style="bold", markup=False)
        weighted = words.weighted_table(number, view)
        if weighted is not None:
            out.print(f"\n{words.text('if_alike')}\n", markup=False)
            out.print(make_table(*weighted))
            out.print(f"\n{words.text('ways')}", markup=False)
            out.print(make_table(*words.ways(number)))
        for sentence in words.sentences(number):
            out.print(sentence, markup=False)
    out.print(f"\n{words.text('parts_heading')}", markup=False)
    headings, rows = words.parts()
    out.print(make_table(headings, rows, left=(0, len(headings) - 1)))
    out.print(words.text("public"), markup=False)
