"""`faircount answer`: a person takes part in a survey."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import FILE, JSON
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.protocol import SurveyParameters
    from faircount.service.client import Participation
    from faircount.service.standing import Standing

NOT_YET = 3
"""Exit code where the answer is kept here and the server has not got it yet."""


@click.command()
@click.argument("invitation")
@click.option("--item", help="Your answer; without it you are asked.")
@click.option("--server", metavar="ADDRESS", help="Address of the survey's server, where only a code is given.")
@click.option(
    "--state", type=FILE, help="File that keeps your part in the survey.  [default: one in your own data folder]"
)
@click.option("--certificates", metavar="FILE", help="Certificates to believe, for a server with its own authority.")
@click.option("--stay", is_flag=True, help="Come back by itself until the survey is over.")
@click.option("--show", "only_show", is_flag=True, help="Show what is asked and by whom, and send nothing.")
@click.option("--again", is_flag=True, help="Come back: do what there is to do, and see whether you were counted.")
@click.option("--withdraw", is_flag=True, help="Take your answer back, for good; possible until the survey closes.")
@click.option("--receipt", is_flag=True, help="Print what the server has signed for you, as JSON.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@JSON
def answer(
    invitation: str,
    item: str | None,
    server: str | None,
    state: Path | None,
    certificates: str | None,
    yes: bool,
    as_json: bool,
    **what: bool,
) -> None:
    """Take part in the survey to which INVITATION, a link or a code, invites.

    Your device adds its noise, splits your answer between two servers, and keeps a copy of what it sends: it can be
    stopped at any time and goes on with the same bytes. Nobody sees your answer. `-` reads the invitation from standard
    input, so that it does not stand in the list of commands.
    """
    from faircount.cli.show import tell
    from faircount.service.client import connect

    given = sys.stdin.readline() if invitation == "-" else invitation
    part = connect(given, server=server, state=state, certificates=certificates)
    if what["receipt"] or what["only_show"]:
        _print(part, what["receipt"], as_json)
        return
    standing = _standing(part, item, yes, as_json, **what)
    tell(standing, as_json, click.echo)
    if str(standing.stage) == "waiting":
        raise click.exceptions.Exit(NOT_YET)


def _print(part: "Participation", receipt: bool, as_json: bool) -> None:
    from faircount.cli.show import console, print_json

    if receipt:
        print_json(part.receipt())
    elif as_json:
        print_json(about(part.parameters))
    else:
        show_question(console(), part.parameters)


def _standing(part: "Participation", item: str | None, yes: bool, as_json: bool, **what: bool) -> "Standing":
    from faircount.service.standing import Stage

    if what["withdraw"]:
        return part.withdraw()
    if not what["again"] and part.standing().stage is Stage.NOT_ANSWERED:
        standing = part.answer(_chosen(part, item, yes, as_json))
    else:
        standing = part.answer(item) if item is not None else part.visit()
    return part.stay(told=_told(as_json)) if what["stay"] and not standing.over else standing


def _told(as_json: bool) -> Any:
    """Says a standing when it changes."""
    last = list[object]()

    def told(standing: "Standing") -> None:
        if not as_json and [standing.words] != last[-1:] and not standing.over:
            click.echo(str(standing))
        last.append(standing.words)

    return told


def _chosen(part: "Participation", item: str | None, yes: bool, as_json: bool) -> object:
    """The answer, from the option or asked for; nothing is sent before a person has chosen and confirmed."""
    from faircount.cli.show import console

    if as_json and (item is None or not yes):
        raise ParameterError("with --json nobody is asked: give --item ANSWER and --yes")
    if not as_json:
        show_question(console(), part.parameters)
    chosen = _asked(part.items) if item is None else item
    if not yes:
        click.confirm("Send this answer? It cannot be changed, only withdrawn", abort=True)
    return chosen


def _asked(items: tuple[object, ...]) -> object:
    number = click.prompt("Number of your answer", type=click.IntRange(1, len(items)))
    return items[number - 1]


def show_question(out: "Console", params: "SurveyParameters") -> None:
    """Everything that a person should read before it answers: from the parameters, under the hash in the code."""
    from faircount.cli.show import pairs

    facts = about(params)
    shown = ("asked_by", "purpose", "contact", "servers", "people", "privacy", "visits")
    out.print(f"{params.question}\n", markup=False)
    out.print(pairs((f"{number}.", str(each)) for number, each in enumerate(facts["items"], 1)))
    out.print()
    out.print(pairs((name.replace("_", " "), facts[name]) for name in shown if facts[name]))
    out.print()


def about(params: "SurveyParameters") -> dict[str, Any]:
    """What a survey is, in words and lists."""
    from faircount.accounting.guarantee import delta_in_words

    visits = len(params.topology.phases)
    operators = [each or "somebody who is not named" for each in (params.s1_operator, params.s2_operator)]
    same = operators[0].strip().lower() == operators[1].strip().lower()
    return {
        "question": params.question,
        "items": list(params.mechanism.domain.labels),
        "asked_by": params.owner,
        "purpose": params.purpose,
        "contact": params.contact,
        "servers": f"run by {operators[0]} and {operators[1]}{_ONE_HAND if same else ''}",
        "people": f"at most {params.n_max:,} are invited; there is no result with fewer than {params.minimum:,}",
        "privacy": f"epsilon {params.epsilon:g}, delta {delta_in_words(params.delta)}, by {params.mechanism.name}",
        "visits": "one: answer and leave" if visits == 1 else f"{visits}: come back when asked to (--stay does it)",
        "parameters": params.digest.hex(),
    }


_ONE_HAND = ": one hand could put the shares together"
