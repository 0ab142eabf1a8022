"""`faircount survey repeat` and `trend`: the same question several times."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from faircount.cli.options import CONFIDENCE, COVERS, FILE, FOLDER, JSON, SURVEY_FOLDER

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.estimation.trend import QuestionTrend, Trend


@click.command("repeat")
@click.argument("folder", type=SURVEY_FOLDER)
@click.argument("new", type=FOLDER, required=False)
@click.option("--question", help="Another wording of the question.  [default: the same]")
@click.option("--open-for", help="Time for each visit: 12h, 3d.  [default: the same]")
@JSON
def repeat_command(
    folder: Path, new: Path | None, question: str | None, open_for: str | None, as_json: bool
) -> None:
    """Make the next survey among the people of the survey in FOLDER, in the folder NEW.

    It has the same answers to choose from, the same privacy and the same people, with new
    invitations, and is charged to the same budget. It is refused if that is spent. Without NEW the
    folder is called like FOLDER, with the next number.
    """
    from faircount.cli.show import print_json, spinner
    from faircount.owner.survey import Survey

    survey = Survey.at(folder)
    with spinner("fetching keys from both servers ..."):
        made = survey.repeat(new, question=question, open_for=open_for)
    path = made.folder.path
    if as_json:
        print_json({"survey": made.params.survey.hex(), "folder": str(path)})
        return
    click.echo(f"Written to {path}. Next: faircount survey invite {path}")


@click.command("trend")
@click.argument("folders", type=SURVEY_FOLDER, nargs=-1, required=True)
@CONFIDENCE
@COVERS
@click.option("--csv", "csv_file", type=FILE, help="Write a table for programs.")
@click.option("--plot", type=FILE, help="Draw the shares over time (PNG, SVG, PDF).")
@JSON
def trend_command(
    folders: tuple[Path, ...],
    confidence: float,
    covers: str,
    csv_file: Path | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Compare the results of the surveys in FOLDERS, in this order, with intervals of the changes.

    The surveys must have questions with the same answers to choose from; questions that not all of
    them have are left out. A change whose interval contains 0 may be noise.
    """
    from faircount.cli.show import print_json
    from faircount.core.csv_cells import write_csv
    from faircount.core.figures import check_figure
    from faircount.core.files import write_durably
    from faircount.estimation.trend_drawing import save_trend
    from faircount.owner.folder import PUBLIC
    from faircount.owner.survey import Survey

    if plot is not None:
        # First of all: a format that cannot be written is no reason to wait for the servers.
        check_figure(plot)
    # In the order given, and not by date: whoever compares two designs has no order of time.
    first, *others = [Survey.at(folder) for folder in folders]
    trend = first.trend(*others, confidence=confidence, covers=covers)
    if csv_file is not None:
        rows = trend.rows()
        # All rows have the same keys in the same order, since one function makes them.
        table = write_csv(list(rows[0]), [list(row.values()) for row in rows])
        write_durably(csv_file, table, PUBLIC)
    if plot is not None:
        save_trend(trend, plot)
    if as_json:
        print_json(trend.to_dict())
        return
    _show(trend)
    for path in filter(None, (csv_file, plot)):
        click.echo(f"Written to {path}")


def _show(trend: "Trend") -> None:
    from faircount.cli.show import cell, console
    from faircount.core.domain import escape_controls
    from faircount.core.plain import format_confidence

    out = console()
    for number, question in enumerate(trend.questions):
        if number:
            out.print()
        if len(trend.questions) > 1:
            out.print(cell(question.title), style="bold")
        _show_question(out, trend, question)
    for title in trend.left_out:
        out.print(f"\nNot in all of these surveys: {escape_controls(title)}", markup=False)
    confidence = format_confidence(trend.confidence)
    out.print(f"\nIntervals: {confidence} each; {trend.methods}.", markup=False)
    out.print("The privacy losses of all surveys of the same people add up.", markup=False)


def _show_question(out: "Console", trend: "Trend", question: "QuestionTrend") -> None:
    from faircount.cli.show import make_table
    from faircount.estimation.question_estimates import decimals_of, format_value
    from faircount.estimation.trend import describe_change, trend_rows

    rows = []
    for place, label in enumerate(question.labels):
        values = []
        for entry in question.series:
            row = entry.estimates[place]
            values.append(format_value(row, row.estimate, decimals_of(entry, row)))
        rows.append([label, *values])
    out.print(make_table(["item", *trend.titles], rows))
    for change in question.changes:
        before = trend.names[change.before]
        after = trend.names[change.after]
        out.print(f"\nFrom {before} to {after}:", markup=False)
        rows = [
            [label, describe_change(row, estimate)]
            for label, row, estimate in trend_rows(question, change)
        ]
        out.print(make_table(["item", "change"], rows, left=(0, 1)))
