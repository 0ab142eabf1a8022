"""`faircount survey status`, `result` and `receipts`: how a survey stands, and how it ended."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import FILE, JSON, SURVEY_FOLDER

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.estimation.result import Result
    from faircount.protocol.wire.messages import Aborted

NO_RESULT = 4  # exit code if the survey ended without a result


@click.command("status")
@click.argument("folder", type=SURVEY_FOLDER)
@JSON
def status_command(folder: Path, as_json: bool) -> None:
    """Show the phase of the survey in FOLDER, and what it waits for.

    Messages that a server rejected are counted by reason.
    """
    from faircount.cli.show import console, print_json
    from faircount.core.errors import UnreachableError
    from faircount.owner.survey import Survey

    survey = Survey.at(folder)
    coordinator = survey.servers.status(survey.params)
    # The coordinator alone knows the phase, so an aggregator that is away only leaves a gap.
    try:
        aggregator: dict[str, Any] = survey.servers.aggregator_status(survey.params)
    except UnreachableError as problem:
        aggregator = {"problem": str(problem)}
    if as_json:
        print_json({"s1": coordinator, "s2": aggregator})
        return
    out = console()
    show_status(out, coordinator)
    if "problem" in aggregator:
        out.print(aggregator["problem"], markup=False)
    _show_rejections(out, "The aggregator", aggregator)


def show_status(out: "Console", status: dict[str, Any]) -> None:
    """Show what the coordinator reports about a survey."""
    from faircount.cli.show import make_definitions

    phase = str(status["state"])
    if status.get("attempt"):
        phase += f", attempt {status['attempt']}"
    answers = (
        f"{status['users']:,} of {status['people']:,} invited; at least {status['minimum']:,} are "
        "needed"
    )
    facts = {
        "phase": phase,
        "answers": answers,
        "since": status["since"],
        "closes": status["closes_at"],
        "waits for": status["waits_for"],
        "next": status["next"],
        "problem": status["problem"],
    }
    out.print(make_definitions((name, str(fact)) for name, fact in facts.items() if fact))
    _show_rejections(out, "The coordinator", status)


def _show_rejections(out: "Console", server: str, status: dict[str, Any]) -> None:
    """Show how many messages a server rejected, by reason."""
    counts = []
    for reason, count in status.get("rejections", {}).items():
        counts.append(f"{count:,} {reason}")
    if counts:
        out.print(f"{server} rejected messages: {', '.join(counts)}", markup=False)


@click.command("receipts")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--out", type=FILE, help="Write here.  [default: receipts.json in the folder]")
def receipts_command(folder: Path, out: Path | None) -> None:
    """Save what the aggregator signed about the budget of the survey in FOLDER.

    The operator of the aggregator needs this file after a restore (faircount reopen). The
    coordinator has kept it, and nothing in it is secret.
    """
    import json

    from faircount.core.files import write_durably
    from faircount.owner.folder import PUBLIC
    from faircount.owner.survey import Survey

    survey = Survey.at(folder)
    receipts = survey.servers.reservations(survey.params)
    document = {"population": survey.params.population, "receipts": receipts}
    target = out or folder / "receipts.json"
    # Signed by the aggregator, so a changed file is noticed.
    write_durably(target, json.dumps(document, indent=2).encode() + b"\n", PUBLIC)
    click.echo(
        f"{len(receipts)} receipts are in {target}: give it to the operator of the aggregator."
    )


@click.command("result")
@click.argument("folder", type=SURVEY_FOLDER)
@click.option("--wait", is_flag=True, help="Wait until there is a result.")
@click.option("--level", default=0.95, show_default=True, help="Confidence of the intervals.")
@JSON
def result_command(folder: Path, wait: bool, level: float, as_json: bool) -> None:
    """Verify the result of the survey in FOLDER and show it with intervals and guarantee.

    The signature of the aggregator is checked against the parameters in the folder. The result is
    saved in result.json. If the survey ended without a result, the reason is shown and the exit
    code is 4.
    """
    from faircount.cli.show import console, print_json
    from faircount.owner.survey import Survey
    from faircount.protocol.wire.messages import Aborted

    survey = Survey.at(folder)
    result = survey.result(wait=wait)
    if isinstance(result, Aborted):
        _show_aborted(result, as_json)
        raise click.exceptions.Exit(NO_RESULT)
    document = {
        **result.to_dict(level),
        "invited": survey.params.n_max,
        "survey": survey.params.survey.hex(),
    }
    # Saved before it is shown: the servers may delete the survey later.
    survey.save_result(document)
    if as_json:
        print_json(document)
    else:
        _show(console(), result, level)


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


def _show(out: "Console", result: "Result", level: float) -> None:
    from faircount.cli.show import print_bars, print_statements

    out.print(
        f"{result.name}, {result.included:,} people counted, {len(result.items)} items\n",
        markup=False,
    )
    print_bars(out, result, level=level)
    print_statements(out, result, level)
