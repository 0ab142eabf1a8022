"""`faircount survey status`, `result` and `receipts`: how far a survey is, and how it ended."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import CONFIDENCE, COVERS, FILE, JSON, SURVEY_FOLDER
from faircount.cli.survey.each_group import each_group
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.owner.survey import Survey
    from faircount.protocol.wire.messages import Aborted

WAITING = "waiting for the result; faircount survey status says what it waits for ..."
NO_RESULT = 4  # exit code if the survey ended without a result


@click.command("status")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
@each_group
def status_command(folder: Path, as_json: bool) -> None:
    """Show how far the survey in FOLDER is, and what comes next.

    Times are those of this computer's time zone. Messages that a server rejected are counted by
    reason. --json prints what both servers report, with times in UTC.
    """
    from faircount.cli.show import console, print_json
    from faircount.cli.survey.progress import describe_silence
    from faircount.core.errors import UnreachableError
    from faircount.owner.survey import Survey

    survey = Survey.at(folder)
    coordinator = survey.status()
    silence = None
    # The coordinator alone knows the phase, so an aggregator that is away only leaves a gap.
    try:
        aggregator: dict[str, Any] = survey.servers.aggregator_status(survey.params)
    except UnreachableError as problem:
        aggregator = {"problem": str(problem)}
        silence = describe_silence(survey, coordinator)
    if as_json:
        print_json({"s1": coordinator, "s2": aggregator})
        return
    out = console()
    show_status(out, survey, coordinator)
    if silence is not None:
        out.print(silence, markup=False)
    _show_rejections(out, "The aggregator", aggregator)


def show_status(out: "Console", survey: "Survey", status: dict[str, Any]) -> None:
    """Show what the coordinator reports about a survey."""
    from faircount.cli.show import make_definitions
    from faircount.cli.survey.progress import describe_status

    out.print(make_definitions(describe_status(survey, status)))
    _show_rejections(out, "The coordinator", status)


def _show_rejections(out: "Console", server: str, status: dict[str, Any]) -> None:
    """Show how many messages a server rejected, by reason."""
    from faircount.cli.survey.progress import REASONS
    from faircount.core.domain import escape_controls

    counts = []
    for reason, count in status.get("rejections", {}).items():
        # A newer server may know reasons that this program does not.
        counts.append(f"{REASONS.get(reason, escape_controls(reason))}: {count:,}")
    if counts:
        out.print(f"{server} rejected messages. {'; '.join(counts)}.", markup=False)


@click.command("receipts")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--out", type=FILE, help="Write here.  [default: receipts.json in the folder]")
@each_group
def receipts_command(folder: Path, out: Path | None) -> None:
    """Save what the aggregator signed about the budget of the survey in FOLDER.

    The operator of the aggregator needs this file after a restore (faircount reopen). The
    coordinator has kept it, and nothing in it is secret.
    """
    from faircount.owner.survey import Survey

    target = Survey.at(folder).receipts(out)
    click.echo(f"The reservations are in {target}: give it to the operator of the aggregator.")


@click.command("result")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--wait", is_flag=True, help="Wait until there is a result.")
@CONFIDENCE
@COVERS
@click.option(
    "--consistent", is_flag=True, help="Draw the consistent frequencies, which sum to 100%."
)
@click.option("--csv", type=FILE, help="Write a table for programs.")
@click.option("--xlsx", type=FILE, help="Write a spreadsheet.")
@click.option("--plot", type=FILE, help="Draw bars with intervals, for a slide (PNG, SVG, PDF).")
@click.option("--html", type=FILE, help="Write a page that stands alone.")
@JSON
def result_command(
    folder: Path,
    wait: bool,
    confidence: float,
    covers: str,
    consistent: bool,
    as_json: bool,
    **files: Path | None,
) -> None:
    """Verify the result of the survey in FOLDER and show it with intervals and guarantee.

    The signature of the aggregator is checked against the parameters in the folder. The result is
    saved in result.json. If the survey ended without a result, the reason is shown and the exit
    code is 4. Every file names the survey, its question and dates, how many people were invited,
    responded and were counted, and the guarantee.

    The results of a survey in groups are shown side by side; those of privacy levels are combined.
    """
    from faircount.cli.show import console, print_json, spinner
    from faircount.cli.show_questions import show_questions
    from faircount.cli.survey.group_result import show_groups
    from faircount.cli.survey.targets import check_targets
    from faircount.core.errors import RemoteError
    from faircount.core.validation import check_fraction
    from faircount.owner.exports import View, plain_result, save_result
    from faircount.owner.groups import is_grouped
    from faircount.owner.survey import Survey
    from faircount.protocol.wire.messages import Aborted, Reason

    check_fraction("confidence", confidence)
    if is_grouped(folder):
        show_groups(folder, View(confidence, covers, consistent), wait, as_json, files)
        return
    targets = check_targets(files)
    view = View(confidence, covers, consistent)
    survey = Survey.at(folder)
    try:
        # Without --wait the answer comes at once, and a spinner would only flicker.
        with spinner(WAITING) if wait else nullcontext():
            result = survey.latest_ending(wait=wait)
    except RemoteError as problem:
        if problem.reason != Reason.EARLY:
            raise
        raise ParameterError(
            f"this survey is not over yet: `faircount survey status {folder}` says what it waits "
            "for, and --wait waits for the result"
        ) from None
    if isinstance(result, Aborted):
        _show_aborted(result, as_json)
        # An exit code of its own: a script must not take an aborted survey for a failed command.
        raise click.exceptions.Exit(NO_RESULT)
    # Before the result is printed, so that a full disk is not scrolled away.
    for target in targets:
        save_result(result, target, view)
    if as_json:
        print_json(plain_result(result, view))
        return
    show_questions(console(), result, confidence, covers)
    for target in targets:
        click.echo(f"Written to {target}")


def _show_aborted(ending: "Aborted", as_json: bool) -> None:
    from faircount.cli.show import console, print_json
    from faircount.protocol.survey.endings import describe_abort, ending_of

    reason = describe_abort(ending)
    if as_json:
        print_json(
            {
                "state": "aborted",
                "reason": reason,
                "ending": ending_of(ending).to_dict(),
                "spent": bool(ending.spent),
            }
        )
        return
    # The aggregator cannot know whether somebody saw a result that was not published, so a survey
    # that had come far enough stays charged.
    budget = "Its budget is spent nevertheless." if ending.spent else "No budget is spent."
    console().print(f"The survey ended without a result: {reason}. {budget}", markup=False)
