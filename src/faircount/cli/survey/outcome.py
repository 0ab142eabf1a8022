"""`faircount survey status` and `result`: where a survey stands, and how it ended."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import FILE, JSON
from faircount.cli.survey.people import FOLDER

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.estimation.result import Result

NO_RESULT = 4
"""Exit code where the survey ended without a result."""


@click.command("status")
@click.argument("folder", type=FOLDER)
@JSON
def status_command(folder: Path, as_json: bool) -> None:
    """Where the survey in FOLDER stands: what it waits for, since when, and what was refused at which server."""
    from faircount.cli.show import console, print_json
    from faircount.core.errors import UnreachableError
    from faircount.service.owner.survey import Survey

    survey = Survey.at(folder)
    at_s1 = survey.servers.status(survey.params)
    try:
        at_s2: dict[str, Any] = survey.servers.status_at_s2(survey.params)
    except UnreachableError as problem:
        at_s2 = {"problem": str(problem)}
    if as_json:
        print_json({"s1": at_s1, "s2": at_s2})
        return
    out = console()
    show_status(out, at_s1)
    show_refused(out, "S2", at_s2)


def show_status(out: "Console", status: dict[str, Any]) -> None:
    """S1's words on a survey."""
    from faircount.cli.show import pairs

    rows = [
        ("state", _state(status)),
        ("answers", f"{status['users']:,} of {status['people']:,} invited; at least {status['minimum']:,} are needed"),
        ("since", status["since"]),
        ("closes", status["closes_at"]),
        ("waits for", status["waits_for"]),
        ("next", status["next"]),
        ("problem", status["problem"]),
    ]
    out.print(pairs((name, str(words)) for name, words in rows if words))
    show_refused(out, "S1", status)


def _state(status: dict[str, Any]) -> str:
    attempt = f", attempt {status['attempt']}" if status.get("attempt") else ""
    return f"{status['state']}{attempt}"


def show_refused(out: "Console", who: str, status: dict[str, Any]) -> None:
    """Messages that a server did not use, by reason; nothing where there are none."""
    refused = ", ".join(f"{count:,} {reason}" for reason, count in status.get("rejections", {}).items())
    words = refused or (status.get("problem", "") if who == "S2" else "")
    if words:
        out.print(f"{who}: {'refused ' if refused else ''}{words}", markup=False)


@click.command("receipts")
@click.argument("folder", type=FOLDER)
@click.option("--out", type=FILE, help="[default: receipts.json in the folder]")
def receipts_command(folder: Path, out: Path | None) -> None:
    """Write what S2 has signed about the budget of the survey in FOLDER, as S1 has kept it, into a file.

    S2's operator needs it after a restore (faircount reopen). Nothing in it is secret.
    """
    import json

    from faircount.core.files import write_durably
    from faircount.service.owner.folder import PUBLIC
    from faircount.service.owner.survey import Survey

    survey = Survey.at(folder)
    found = survey.servers.receipts(survey.params)
    said = {"population": survey.params.population, "receipts": found}
    target = out or folder / "receipts.json"
    write_durably(target, json.dumps(said, indent=2).encode() + b"\n", PUBLIC)
    click.echo(f"{len(found)} receipts are in {target}: give it to the operator of S2.")


@click.command("result")
@click.argument("folder", type=FOLDER)
@click.option("--wait", is_flag=True, help="Wait until there is one.")
@click.option("--level", default=0.95, show_default=True, help="Confidence of the intervals.")
@JSON
def result_command(folder: Path, wait: bool, level: float, as_json: bool) -> None:
    """The result of the survey in FOLDER, with intervals and what it guarantees; kept in result.json.

    S2's signature is checked against the parameters in the folder. A survey that ended without a result says why, and
    exits with 4.
    """
    from faircount.cli.show import console, print_json
    from faircount.core.plain import JSON_VERSION
    from faircount.protocol.wire.messages import Aborted
    from faircount.service.owner.survey import Survey

    survey = Survey.at(folder)
    found = survey.result(wait=wait)
    if isinstance(found, Aborted):
        words = found.reason.decode(errors="replace")
        ended = {**JSON_VERSION, "state": "aborted", "reason": words, "spent": bool(found.spent)}
        if as_json:
            print_json(ended)
        else:
            spent = "Its budget is spent all the same." if found.spent else "No budget is spent."
            console().print(f"The survey ended without a result: {words}. {spent}", markup=False)
        raise click.exceptions.Exit(NO_RESULT)
    said = {**found.to_dict(level), "invited": survey.params.n_max, "survey": survey.params.survey.hex()}
    survey.keep_result(said)
    if as_json:
        print_json(said)
    else:
        _show(console(), found, level)


def _show(out: "Console", result: "Result", level: float) -> None:
    from faircount.cli.show import bars, promise
    from faircount.estimation.presentation import AGAIN

    out.print(f"{result.name}, {result.included:,} people counted, {len(result.items)} items\n", markup=False)
    bars(out, result, level=level)
    out.print(f"\nIntervals: {level:.0%} each; {result.interval(level).method}.", markup=False)
    if result.validity is not None and result.validity.proven:
        out.print(f"Reports: {result.validity}", markup=False)
    out.print(f"Privacy: {promise(result.guarantee)}", markup=False)
    out.print(f"Again: {AGAIN}.", markup=False)
