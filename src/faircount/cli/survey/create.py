"""`faircount survey create`: plan a survey and get its keys from both servers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from faircount.cli.options import (
    ADDRESS_COLUMN,
    COLLUDING,
    DELTA,
    FILE,
    FLOOR,
    FOLDER,
    JSON,
    PEOPLE,
    parse_items,
    parse_levels,
    parse_rate_option,
)
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from faircount.accounting.levels import Levels
    from faircount.owner.advice import Advice
    from faircount.owner.survey import Survey


@click.command("create")
@click.argument("folder", type=FOLDER)
@click.option(
    "--servers",
    type=FILE,
    required=True,
    help="File with address and token of both servers, as faircount serve writes it.",
)
# What is asked, of how many people, and at which privacy.
@click.option("--question", help="The question that people are asked.")
@click.option(
    "--items",
    metavar="a,b,c|@FILE",
    help="The answers to choose from, or a file with one answer a line. Put an answer that "
    "contains a comma in double quotes.",
)
@click.option(
    "--questionnaire",
    metavar="FILE",
    type=FILE,
    help="Several questions, or other kinds, from a TOML file, instead of --question and --items.",
)
@PEOPLE
@ADDRESS_COLUMN
@click.option(
    "--group-column",
    metavar="TITLE",
    help="Column of --people that names everybody's group, such as a department: one survey for "
    "each group, each with the whole epsilon, in folders inside FOLDER.",
)
@click.option(
    "--levels",
    metavar="a=0.5,b=1|@FILE",
    help="Named privacy levels with their epsilons, the strongest first, instead of --epsilon. "
    "Everybody chooses one of two or three when answering, and nobody learns which, unless "
    "--level-column names it.",
)
@click.option(
    "--level-column",
    metavar="TITLE",
    help="Column of --people that names everybody's privacy level, which is then public: one "
    "survey for each of the --levels, in folders inside FOLDER, and one combined result.",
)
@click.option(
    "--users",
    type=int,
    help="Largest number of people to invite.  [default: the number of --people]",
)
@click.option(
    "--epsilon",
    type=float,
    default=1.0,
    show_default=True,
    help="Privacy loss of the survey, of all answers of a person together.",
)
@click.option("--delta", type=float, default=1e-6, show_default=True, help=f"{DELTA}.")
@click.option(
    "--minimum",
    metavar="NUMBER|RATE",
    help="Minimum number of responses, such as 100, or rate of the invited, such as 40%; with "
    "fewer there is no result.  [default: 25%, at least 10, where the servers add the noise, as "
    "they do unless you choose otherwise; 95% where participants make it]",
)
@click.option(
    "--response-rate",
    metavar="RATE",
    callback=parse_rate_option,
    help="Expected response rate, such as 60%: errors are stated for so many responses, with the "
    "chance that they reach the minimum.  [default: nearly all respond]",
)
@click.option(
    "--open-for", default="3d", show_default=True, help="Time for each visit: 90s, 30m, 12h, 3d."
)
@click.option(
    "--closes",
    metavar="TIME",
    help="Closing time such as '2026-11-19 18:00', in this computer's time zone, instead of "
    "--open-for.",
)
@click.option(
    "--grace",
    default="30d",
    show_default=True,
    help="How much longer a visit is held open if there are too few answers at its end; then the "
    "survey ends without a result.",
)
# What participants read before they answer; empty texts are not shown to them.
@click.option("--owner", default="", help="Who asks; participants see it.")
@click.option("--purpose", default="", help="What the result is for; participants see it.")
@click.option("--contact", default="", help="Where participants can ask questions.")
@click.option(
    "--s1-operator", default="", help="Refuse unless the coordinator (S1) states this operator."
)
@click.option(
    "--s2-operator", default="", help="Refuse unless the aggregator (S2) states this operator."
)
# Surveys of the same people add up only if they share a population at the aggregator.
@click.option(
    "--population",
    default="",
    help="Name of the people who share a budget over several surveys.  [default: this survey has "
    "its own]",
)
@click.option(
    "--budget",
    type=(float, float),
    metavar="EPSILON DELTA",
    help="Total privacy loss of the population in all its surveys.  [default: what it has already; "
    "for a new one this survey's]",
)
# How it is run. The defaults suit a survey in which everybody visits once.
@click.option(
    "--mechanism",
    default="auto",
    show_default=True,
    help="auto takes the most accurate one for the topology; in servers, one that stops dishonest "
    "participants from skewing the result.",
)
@click.option(
    "--topology",
    default="servers",
    show_default=True,
    help="How shares travel: servers (one visit), explicit, masked or two-stage.",
)
@click.option("--floor", default=0, show_default=True, help=f"{FLOOR} (dpds, tss-prime).")
@click.option("--colluding", default=0.0, show_default=True, help=f"{COLLUDING}.")
@click.option(
    "--address",
    help="Address of the coordinator in invitations, if a proxy gives it another one.",
)
@click.option(
    "--page",
    metavar="URL",
    help="Address of the participant's page, if another place than the coordinator serves it "
    "(faircount page export).",
)
@click.option(
    "--language",
    default="en",
    show_default=True,
    help="Language of invitations, mails and results: en or de.",
)
@click.option(
    "--anyway",
    is_flag=True,
    help="Create it even if the error exceeds the average frequency, or too few are expected.",
)
@JSON
@click.pass_context
def create_command(
    context: click.Context,
    /,
    folder: Path,
    people: Path | None,
    address_column: str | None,
    group_column: str | None,
    level_column: str | None,
    levels: str | None,
    items: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Plan a survey, get its keys from both servers, and write its FOLDER.

    Nobody is invited yet. The survey cannot be changed afterwards: every invitation is bound by a
    hash to the questions, the number of people and the privacy parameters.

    With --group-column there is one survey for each group of people, and with --level-column one
    for each privacy level. The other commands act on all groups or levels if they are given FOLDER,
    and on one of them if they are given a folder inside it.
    """
    from faircount.cli.show import spinner
    from faircount.cli.survey.group_creation import create_groups, create_levels
    from faircount.owner.people import read_people
    from faircount.owner.survey import Survey

    listed = None if people is None else read_people(people, address_column)
    listed_items = None if items is None else parse_items("--items", items)
    if level_column is not None or levels is not None:
        if group_column is not None:
            raise ParameterError("people are in groups or in levels: leave one of them out")
        # A default epsilon beside the levels is no contradiction, another one is.
        if context.get_parameter_source("epsilon") is not ParameterSource.DEFAULT:
            raise ParameterError("every level has its own epsilon: leave --epsilon out")
    if level_column is not None:
        create_levels(folder, level_column, levels, listed, listed_items, as_json, given)
        return
    offered = None if levels is None else parse_levels("--levels", levels)
    if group_column is not None:
        # Before anything is sent to the servers: a group is a survey of its own.
        create_groups(folder, group_column, listed, listed_items, as_json, given)
        return
    with spinner("comparing mechanisms and fetching keys from both servers ..."):
        survey = Survey.create(folder, items=listed_items, people=listed, levels=offered, **given)
    # After the survey was written: notes are no reason to fail, and the owner may still abort.
    notes = _notes_about(survey, own_budget=not given["population"])
    if listed is not None and listed.note:
        notes.append(listed.note)
    _show(survey, notes, as_json)


def _show(survey: "Survey", notes: list[str], as_json: bool) -> None:
    from faircount.cli.questionnaire import show_advice, show_question_errors
    from faircount.cli.show import console, print_json, print_notes
    from faircount.planning.promise import promise_to_participants

    params = survey.params
    advice = survey.advice
    assert advice is not None  # noqa: S101 - a survey that was just created has it
    # What people will read, so that the owner sees the promise before anybody else does.
    levels = _levels_of(survey)
    promise = promise_to_participants(params.epsilon, params.delta, params.single_epsilon, levels)
    if as_json:
        print_json(
            {
                "survey": params.survey.hex(),
                "parameters": params.digest.hex(),
                "folder": str(survey.folder.path),
                "mechanism": params.mechanism.name,
                "topology": str(params.topology),
                "users": params.n_max,
                "minimum": params.minimum,
                "epsilon": params.epsilon,
                "delta": params.delta,
                "half_width_95": advice.half_width_95,
                "half_width_95_at_minimum": advice.half_width_95_at_minimum,
                "responses": advice.responses,
                "chance_of_minimum": advice.chance_of_minimum,
                "standard_error": advice.standard_error,
                "questions": _questions(advice),
                "epsilon_of_a_single_answer": params.single_epsilon,
                **({} if levels is None else {"levels": _describe_levels(levels)}),
                "proven": advice.proven,
                "assumption": advice.assumption,
                "operators": list(_operators(survey)),
                "participants_read": promise,
                "notes": notes,
            }
        )
        return
    out = console()
    # Without markup, here and below: brackets in a question are not styles.
    out.print(advice.description, markup=False)
    if advice.sheet is not None:
        show_question_errors(out, advice.sheet)
        if levels is not None:
            weakest = params.single_epsilon or params.epsilon
            out.print(
                "These are the errors and losses of the table in which everybody is counted, at "
                "the strongest level. At the weakest one a single answer loses at most epsilon "
                f"{weakest:.3g}.",
                markup=False,
            )
        show_advice(out, advice.sheet)
    for operator in _operators(survey):
        text = "{server}: run by {name}, key {fingerprint}".format(**operator)
        out.print(text, markup=False)
    out.print(f"\nParticipants will read: {promise}", markup=False)
    print_notes(out, notes)
    folder = survey.folder.path
    out.print(f"\nWritten to {folder}. Next: faircount survey invite {folder}", markup=False)


def _levels_of(survey: "Survey") -> "Levels | None":
    """The hidden levels that people will choose from; None without them."""
    levels: Levels | None = getattr(survey.params.mechanism, "levels", None)
    return levels


def _describe_levels(levels: "Levels") -> list[dict[str, Any]]:
    described = []
    for number, name in enumerate(levels.names):
        answer, both = levels.stated_losses(number)
        described.append({"name": name, "epsilon": answer, "epsilon_with_level": both})
    return described


def _questions(advice: "Advice") -> list[dict[str, Any]]:
    """What is expected of every question; of a single one with a choice it is said above."""
    questions: list[dict[str, Any]] = advice.to_dict().get("questions", [])
    return questions


def _operators(survey: "Survey") -> "Iterator[dict[str, str]]":
    """Who runs each server as it says, with the fingerprint to compare with the published one."""
    from faircount.core.domain import escape_controls
    from faircount.protocol.survey.operators import ROLES, format_fingerprint, operator_of

    for server, role in zip(("coordinator", "aggregator"), ROLES, strict=True):
        name, key = operator_of(survey.params, role)
        # A server states its operator's name itself, with any characters.
        shown = escape_controls(name) or "an operator without a name"
        yield {"server": server, "name": shown, "fingerprint": format_fingerprint(key)}


def _notes_about(survey: "Survey", own_budget: bool) -> list[str]:
    """What an owner should think about before inviting people."""
    from faircount.mechanisms.laplace_sheets import LaplaceSheets
    from faircount.planning.request import privacy_warnings
    from faircount.protocol.survey.operators import has_one_operator

    params = survey.params
    notes = list(privacy_warnings(params.epsilon, params.delta))
    levels = _levels_of(survey)
    if levels is not None:
        from faircount.planning.levels import level_cautions

        notes += level_cautions(levels)
    if not params.s1_operator or not params.s2_operator:
        notes.append(
            "participants are not told who runs the servers: ask the operators to set their names"
        )
    elif has_one_operator(params):
        notes.append(
            "one organization runs both servers and could combine the shares, so this is a trial"
        )
    # Where a topology takes no proofs, there is nothing better to recommend.
    if params.topology.supports_proofs and not params.proven:
        notes.append(
            "without proofs a malicious client can change any count; --mechanism auto chooses one "
            "with proofs"
        )
    if params.topology.supports_proofs and isinstance(params.mechanism, LaplaceSheets):
        notes.append(
            "the page in a browser cannot draw this noise: participants need `faircount answer` or "
            "Python"
        )
    # Parameters cannot be changed: a population that is not named now cannot be named later.
    if own_budget:
        notes.append(
            "this survey has a budget of its own; name a --population if the same people are asked "
            "again"
        )
    return notes
