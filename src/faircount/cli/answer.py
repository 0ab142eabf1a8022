"""`faircount answer`: take part in a survey."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import CERTIFICATES, FILE, JSON
from faircount.core.domain import escape_controls
from faircount.core.errors import ParameterError
from faircount.core.files import read_file

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.accounting.levels import Levels
    from faircount.client.participation import Participation
    from faircount.client.participation_status import ParticipationStatus
    from faircount.core.questions import Questionnaire, Sheet
    from faircount.protocol import SurveyParameters

NOT_ACCEPTED = 2  # exit code if the server refused the response, for example of a used invitation
NOT_SENT = 3  # exit code while the response is saved here and has not reached the server


@click.command()
@click.argument("invitation")
@click.option("--item", help="Your answer to the one question. Without it you are asked.")
@click.option(
    "--answers",
    "answers_file",
    metavar="FILE",
    type=FILE,
    help="Your answers as JSON: an object by the text or number of a question, or a list in their "
    "order. Several items are a list, null is prefer not to say.",
)
@click.option(
    "--level",
    metavar="NAME",
    help="How well your answer is hidden, where the survey offers privacy levels. Nobody learns "
    "it.  [default: you are asked; with --yes the strongest]",
)
@click.option("--language", help="Language of the questions, where they are translated.")
@click.option(
    "--server",
    metavar="ADDRESS",
    help="Address of the survey's server, if INVITATION is a code and not a link.",
)
@click.option(
    "--state",
    type=FILE,
    help="File that stores your participation.  [default: a file in your data folder]",
)
@CERTIFICATES
@click.option("--stay", is_flag=True, help="Keep running and return by itself until it is over.")
@click.option(
    "--show", "only_show", is_flag=True, help="Show the survey and who runs it; send nothing."
)
@click.option(
    "--again",
    is_flag=True,
    help="Return to the survey: finish what is open, and see whether you were counted.",
)
@click.option(
    "--withdraw",
    is_flag=True,
    help="Withdraw your answer for good; possible until the survey closes.",
)
@click.option(
    "--receipt", is_flag=True, help="Print the server's signed receipt of your response, as JSON."
)
@click.option("--yes", is_flag=True, help="Send or withdraw the answer without asking.")
@JSON
def answer(
    invitation: str,
    item: str | None,
    answers_file: Path | None,
    level: str | None,
    language: str | None,
    server: str | None,
    state: Path | None,
    certificates: str | None,
    only_show: bool,
    receipt: bool,
    as_json: bool,
    **how: bool,
) -> None:
    """Take part in a survey. INVITATION is the link or the code that you received.

    Your device splits your answers into encrypted shares, and no share alone reveals them. Only
    totals with noise are published. The device saves the shares before it sends them, so you can
    stop at any time and continue later.

    With - the invitation is read from standard input, which keeps it out of the shell history.
    """
    from faircount.cli.show import console, print_json, print_result
    from faircount.client.participation import connect
    from faircount.client.participation_status import Stage

    # Whoever has the invitation can answer in this person's place, and other users of the machine
    # can read the arguments of a process.
    given = sys.stdin.readline() if invitation == "-" else invitation
    participation = connect(given, server=server, state=state, certificates=certificates)
    if receipt:
        print_json(participation.receipt())
    elif only_show and as_json:
        print_json(describe_survey(participation.parameters))
    elif only_show:
        show_survey(console(), participation.parameters, language)
    else:
        given_answers = _read_given(participation, item, answers_file)
        chosen = participation.find_level(level)
        status = _take_part(participation, given_answers, chosen, language, as_json, **how)
        print_result(status, as_json, click.echo)
        # A script can tell from the exit code that it has to call again.
        if status.stage is Stage.WAITING:
            raise click.exceptions.Exit(NOT_SENT)
        if status.stage is Stage.REFUSED:
            raise click.exceptions.Exit(NOT_ACCEPTED)


def _read_given(
    participation: "Participation", item: str | None, answers_file: Path | None
) -> "Sheet | None":
    """The answers that were given as options; None if the person is to be asked."""
    from faircount.client.answers import read_sheet

    if item is None and answers_file is None:
        return None
    if item is not None and answers_file is not None:
        raise ParameterError("give --item or --answers, not both")
    questionnaire = participation.questionnaire
    if answers_file is not None:
        return read_sheet(questionnaire, _read_json(answers_file))
    if len(questionnaire) > 1:
        raise ParameterError(
            f"--item answers one question, and the survey has {len(questionnaire)}: give "
            "--answers FILE, or no option to be asked one by one"
        )
    return read_sheet(questionnaire, item)


def _read_json(path: Path) -> Any:
    data = read_file(path, "write your answers into it, as JSON")
    try:
        return json.loads(data, object_pairs_hook=_read_object)
    except ParameterError:
        raise
    except (ValueError, RecursionError):
        # The problem would quote the file, which holds somebody's answers.
        raise ParameterError(
            f'{path} is not JSON: write {{"text of a question": "your answer"}}'
        ) from None


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a question that is answered twice is refused."""
    found = dict(pairs)
    # The last answer would win silently, and nobody could tell which one was meant.
    if len(found) < len(pairs):
        raise ParameterError("the file answers a question twice: write every question once")
    return found


def _take_part(
    participation: "Participation",
    given: "Sheet | None",
    level: int | None,
    language: str | None,
    as_json: bool,
    *,
    again: bool,
    withdraw: bool,
    stay: bool,
    yes: bool,
) -> "ParticipationStatus":
    from faircount.client.participation_status import Stage

    if withdraw:
        if not yes:
            _confirm_withdrawal(as_json)
        return participation.withdraw()
    # Without --again a device that has not answered yet asks for an answer. One that has answered
    # only visits: it sends the same bytes again, or does what the current phase needs.
    if not again and participation.status().stage is Stage.NOT_ANSWERED:
        sheet, chosen = _choose(participation, given, level, language, yes, as_json)
        status = participation.submit(sheet, chosen)
    elif given is not None:
        status = participation.submit(given, level)
    else:
        status = participation.visit()
    if not stay or status.is_over:
        return status
    if as_json:
        return participation.stay()
    return participation.stay(on_visit=_make_reporter())


def _confirm_withdrawal(as_json: bool) -> None:
    if as_json:
        raise ParameterError("--json asks no questions: give --yes")
    click.confirm("Withdraw your answer for good? You cannot answer again", abort=True)


def _make_reporter() -> "Callable[[ParticipationStatus], None]":
    """A function that prints the participation status whenever it changes."""
    last = ""

    def report(status: "ParticipationStatus") -> None:
        nonlocal last
        # The final status is printed by the command itself.
        if status.description != last and not status.is_over:
            click.echo(str(status))
        last = status.description

    return report


def _choose(
    participation: "Participation",
    given: "Sheet | None",
    level: int | None,
    language: str | None,
    yes: bool,
    as_json: bool,
) -> "tuple[Sheet, int]":
    """The answers to send and their level; nothing is sent before a person has confirmed them."""
    from faircount.cli.answer_prompts import ask_level, ask_questions, show_answers
    from faircount.cli.show import console

    # A program cannot answer a prompt, and nobody could have confirmed the answer.
    if as_json:
        if given is None or not yes:
            raise ParameterError(
                "--json asks no questions: give --item ANSWER or --answers FILE, and --yes"
            )
        return given, level or 0
    out = console()
    questionnaire = _in_language(participation.questionnaire, language)
    # Several questions are shown one by one as they are asked, and need not be shown before.
    is_asked_later = given is None and len(questionnaire) > 1
    show_survey(out, participation.parameters, language, with_questions=not is_asked_later)
    levels = participation.levels
    chosen = level or 0
    # After what is asked and before the answer, so that nobody answers and reads it too late.
    if levels is not None and level is None and not yes:
        chosen = ask_level(out, levels, language or questionnaire.language)
    sheet = ask_questions(out, questionnaire) if given is None else given
    if not yes:
        out.print()
        show_answers(out, questionnaire, sheet)
        if levels is not None:
            name = escape_controls(levels.names[chosen])
            click.echo(f"Your level, which stays on this device: {name}")
        click.echo(_what_remains(participation.parameters))
        what = "these answers? They" if len(sheet) > 1 else "this answer? It"
        click.confirm(f"Send {what} cannot be changed, only withdrawn", abort=True)
    return sheet, chosen


def _in_language(questionnaire: "Questionnaire", language: str | None) -> "Questionnaire":
    return questionnaire if language is None else questionnaire.in_language(language)


def _what_remains(params: "SurveyParameters") -> str:
    """What an owner can still do with the invitations, said where a participant decides."""
    owner = escape_controls(params.owner) or "Whoever made the invitations"
    return (
        f"{owner} has a copy of your invitation, could have answered with it before you (then you "
        "will be told), and could have invited people who do not exist. Once you have answered, "
        "only this device can withdraw your answer."
    )


def show_survey(
    out: "Console",
    params: "SurveyParameters",
    language: str | None = None,
    *,
    with_questions: bool = True,
) -> None:
    """Show what a participant should read before answering.

    All of it comes from the parameters, to which the invitation is bound by a hash, so no server
    can change it.
    """
    from faircount.cli.answer_prompts import show_questions
    from faircount.cli.show import make_definitions

    description = describe_survey(params)
    questionnaire = _in_language(params.questionnaire, language)
    if with_questions:
        show_questions(out, questionnaire)
    else:
        count = f"{len(questionnaire)} questions"
        title = escape_controls(questionnaire.title)
        out.print(f"{title}: {count}\n" if title else f"{count}\n", markup=False)
    names = (
        "asked_by",
        "purpose",
        "contact",
        "servers",
        "operator_keys",
        "people",
        "privacy",
        "visits",
    )
    known = [name for name in names if description[name]]
    facts = [(name.replace("_", " "), description[name]) for name in known]
    out.print(make_definitions(facts))
    out.print()


def describe_survey(params: "SurveyParameters") -> dict[str, Any]:
    """A survey as a participant sees it, in words and lists."""
    from faircount.accounting.guarantee import format_delta
    from faircount.core.questions.published import to_plain
    from faircount.protocol.survey.operators import (
        ROLES,
        format_fingerprint,
        has_one_operator,
        operator_of,
    )

    first = params.s1_operator or "somebody who is not named"
    second = params.s2_operator or "somebody who is not named"
    servers = f"run by {first} and {second}"
    # The privacy of the shares rests on two operators who do not collude. Participants must be able
    # to see if there is only one.
    if has_one_operator(params):
        servers = f"both run by {first}, who could combine the shares and see your answer"
    fingerprints = [format_fingerprint(operator_of(params, role)[1]) for role in ROLES]
    visits = "one: answer and leave"
    if len(params.topology.phases) > 1:
        visits = f"{len(params.topology.phases)}: return when asked to (--stay does it for you)"
    return {
        **to_plain(params.questionnaire),
        "asked_by": params.owner,
        "purpose": params.purpose,
        "contact": params.contact,
        "servers": servers,
        "operator_keys": f"{fingerprints[0]} and {fingerprints[1]}; compare them with those that "
        "these organizations publish, because a name alone can be made up",
        "people": f"at most {params.n_max:,} are invited; there is no result with fewer than "
        f"{params.minimum:,}",
        "privacy": f"{_stated_epsilon(params)}, delta {format_delta(params.delta)}"
        f"{_of_all_answers(params)}, by {params.mechanism.name}",
        "visits": visits,
        "parameters": params.digest.hex(),
    }


def _stated_epsilon(params: "SurveyParameters") -> str:
    """The promised epsilon, or that of every level that can be chosen."""
    levels: Levels | None = getattr(params.mechanism, "levels", None)
    if levels is None:
        return f"epsilon {params.epsilon:g}"
    offered = [f"{float(level.epsilon):g} ({level.name})" for level in levels.offered]
    return f"epsilon {', '.join(offered)}, as you choose, which nobody learns"


def _of_all_answers(params: "SurveyParameters") -> str:
    """What the promise covers where there are several answers, and what a single one loses."""
    single = params.single_epsilon
    if single is None:
        return ""
    # Rounded up: a promise is never printed better than it is.
    shown = math.ceil(1000 * single) / 1000
    return f" for all your answers together (at most epsilon {shown:g} for a single one)"
