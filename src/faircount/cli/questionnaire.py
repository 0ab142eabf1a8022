"""`faircount run --questionnaire` and `faircount plan --questionnaire`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from faircount.core.errors import FaircountError, ParameterError, RefusedError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.analysis.ledger_file import Account
    from faircount.cli.deliver import Targets
    from faircount.core.questions.form import Form
    from faircount.planning.forecast import Forecast
    from faircount.planning.questionnaire import QuestionnairePlan
    from faircount.planning.sheet_comparison import SheetWay

# Options of `faircount run` and `faircount plan` that a questionnaire has a use for.
RUN_OPTIONS = {
    "table", "questionnaire", "epsilon", "encoding", "user", "ledger", "population", "confidence",
    "as_json", "out", "csv_file", "plot", "simulate_seed", "anyway",
}  # fmt: skip
PLAN_OPTIONS = {"questionnaire", "purpose", "users", "epsilon", "as_json"}
SURVEY_OPTIONS = {"minimum", "response_rate", "colluding", "with_all"}


def run_questionnaire(
    context: click.Context,
    table: Path,
    questions: Path,
    targets: "Targets",
    account: "Account | None",
) -> None:
    """Ask several questions about the people of a table, and deliver the result."""
    from faircount.analysis.questionnaire import questionnaire
    from faircount.cli.deliver import deliver
    from faircount.cli.run import echo_written, settle
    from faircount.cli.show import console, print_json
    from faircount.cli.show_questions import show_questions
    from faircount.core.entropy import SeededStream
    from faircount.estimation.sheet_drawing import save_questions

    refuse_others(context, RUN_OPTIONS)
    given = context.params
    if given["epsilon"] is None:
        raise ParameterError(
            "give --epsilon, the privacy loss of all answers together; 1 is a common choice"
        )
    seed = given["simulate_seed"]
    confidence = given["confidence"]
    result = questionnaire(
        table,
        questions,
        epsilon=given["epsilon"],
        user=given["user"],
        encoding=given["encoding"],
        ledger=account,
        anyway=given["anyway"],
        entropy=None if seed is None else SeededStream(seed),
    )
    document = result.to_dict(confidence)

    def show() -> None:
        if given["as_json"]:
            print_json(document)
        else:
            show_questions(console(), result, confidence)

    try:
        deliver(document, show, targets, lambda path: save_questions(result, path, confidence))
    finally:
        # `deliver` raises after the result was printed or kept, so the ledger may say so.
        settle(account)
    if not given["as_json"]:
        echo_written(targets, account)


def refuse_others(context: click.Context, known: set[str]) -> None:
    """Refuse options that were given although a questionnaire has no use for them."""
    for parameter in context.command.params:
        name = parameter.name or ""
        # Only what was typed: defaults of other options are no mistake.
        source = context.get_parameter_source(name)
        if name not in known and source is ParameterSource.COMMANDLINE:
            raise ParameterError(
                f"{parameter.opts[0]} is not for a questionnaire: leave it out, or see the fields "
                "of a question"
            )


def plan_questionnaire(context: click.Context, questions: Path) -> bool:
    """Print groups, shares of epsilon and errors of a questionnaire; whether to ask it at all."""
    from faircount.cli.show import console, print_json
    from faircount.core.questions.form import read_form
    from faircount.planning.questionnaire import make_plan

    given = context.params
    is_survey = given["purpose"] == "survey"
    refuse_others(context, PLAN_OPTIONS | SURVEY_OPTIONS if is_survey else PLAN_OPTIONS)
    if given["users"] is None or given["epsilon"] is None:
        raise FaircountError("give --users, the number of people, and --epsilon for all answers")
    form = read_form(questions)
    if is_survey:
        return _plan_survey(form, given)
    plan = make_plan(form, given["users"], given["epsilon"])
    is_worthwhile = not plan.objection
    if given["as_json"]:
        verdict = _describe_verdict(plan.objection, "run this")
        print_json({"purpose": "table", **plan.to_dict(), **verdict})
        return is_worthwhile
    out = console()
    out.print(
        f"{plan.users:,} users, epsilon {plan.mechanism.epsilon:g} for all answers of a person "
        "together, on a table",
        markup=False,
    )
    _show_objection(out, plan.objection)
    show_question_errors(out, plan)
    show_advice(out, plan)
    return is_worthwhile


def _describe_verdict(objection: str, approval: str) -> dict[str, Any]:
    """The advice as the plan of one question gives it, for JSON."""
    verdict = f"do not run this: {objection}" if objection else approval
    return {"verdict": verdict, "worthwhile": not objection}


def _show_objection(out: "Console", objection: str) -> None:
    """Print the advice not to ask these questions, where there is a reason."""
    if objection:
        out.print(f"\n[bold]Verdict:[/bold] do not run this: {objection}.")


def _plan_survey(form: "Form", given: dict[str, Any]) -> bool:
    """Plan a survey with these questions as `survey create` does, and compare other topologies."""
    from faircount.cli.show import console, print_json
    from faircount.core.validation import expected_users, share_of_users
    from faircount.planning.minimum import parse_minimum
    from faircount.planning.sheet_comparison import compare_ways

    users = given["users"]
    rate = given["response_rate"]
    minimum = given["minimum"]
    ways = compare_ways(
        form,
        users=users,
        epsilon=given["epsilon"],
        minimum=None if minimum is None else parse_minimum(minimum, users),
        expected=None if rate is None else expected_users("response_rate", rate, users),
        insiders=max(1, share_of_users("colluding", given["colluding"], users)),
    )
    expected = ways[0].expected
    # What `survey create` would run without further options decides whether there is a plan.
    if expected is None or expected.sheet is None:
        raise RefusedError(ways[0].reason)
    is_worthwhile = not expected.objection
    if given["as_json"]:
        topologies = [way.to_dict() for way in ways]
        document = {**expected.sheet.to_dict(), **expected.to_dict(), "topologies": topologies}
        verdict = _describe_verdict(expected.objection, "run this survey")
        print_json({"purpose": "survey", **document, **verdict})
        return is_worthwhile
    out = console()
    _show_survey(out, expected)
    _show_ways(out, ways, given["with_all"])
    return is_worthwhile


def _show_ways(out: "Console", ways: "Sequence[SheetWay]", with_all: bool) -> None:
    """Print what other topologies cost in error and, if wanted, all of them in a table."""
    from faircount.cli.show import make_definitions, make_table
    from faircount.planning.sheet_comparison import describe_costs, refused_mechanisms

    costs = describe_costs(ways)
    if not with_all:
        out.print(f"\n{f'{costs} --all compares all of them.'.strip()}", markup=False)
        return
    out.print("\n[bold]Topologies[/bold], with the 95% error of every question\n")
    possible = [way for way in ways if way.errors]
    rows = [
        [
            str(way.topology),
            way.mechanism,
            "yes" if way.proven else "no",
            str(len(way.topology.phases)),
            f"{way.bytes_sent:,}",
            *(f"±{error:.1f}" for error in way.errors),
        ]
        for way in possible
    ]
    numbers = [str(number + 1) for number in range(len(possible[0].errors))]
    heads = ["topology", "mechanism", "proven", "visits", "bytes", *numbers]
    out.print(make_table(heads, rows, left=(0, 1, 2)))
    if costs:
        out.print(f"\n{costs}", markup=False)
    refused = [(f"{way.topology}, {way.mechanism}", way.reason) for way in ways if way.reason]
    reasons = [(", ".join(names), reason) for reason, names in refused_mechanisms().items()]
    out.print("\n[bold]Cannot carry these questions[/bold]")
    out.print(make_definitions([*refused, *reasons]))


def _show_survey(out: "Console", expected: "Forecast") -> None:
    from faircount.planning.promise import promise_to_participants

    sheet = expected.sheet
    assert sheet is not None  # noqa: S101 - `forecast_sheet` makes it
    noise = sheet.mechanism
    out.print(
        f"{expected.invited:,} people invited, epsilon {noise.epsilon:g} for all answers of a "
        "person together",
        markup=False,
    )
    _show_objection(out, expected.objection)
    out.print(f"\n{expected.description}", markup=False)
    show_question_errors(out, sheet)
    # Nobody will read anything in a survey that should not be run.
    if not expected.objection:
        # The largest of all groups, because the promise must hold for every answer.
        single = max(float(group.epsilon) for group in noise.groups)
        several = single if len(noise.questionnaire) > 1 else None
        promise = promise_to_participants(noise.epsilon, 0.0, several)
        out.print(f"\nParticipants will read: {promise}", markup=False)
    show_advice(out, sheet)


def show_question_errors(out: "Console", plan: "QuestionnairePlan") -> None:
    """Print a line per question: its kind, its group with its share of epsilon, and its error."""
    from faircount.cli.show import make_table

    rows = []
    for line in plan.lines:
        target = "" if line.target is None else f"±{line.target:.1f}"
        mark = "" if line.is_met else " not met"
        rows.append(
            [
                f"{line.number}. {line.text}",
                line.size,
                str(line.group),
                f"{line.epsilon:.3f}",
                f"±{line.half_width:.1f}",
                f"{target}{mark}",
            ]
        )
    heads = ["question", "kind", "group", "epsilon", "95% error", "wanted"]
    out.print()
    out.print(make_table(heads, rows, left=(0, 1)))
    out.print(
        "\nErrors are in percentage points, those of a mean in percent of its range. "
        f"{plan.about_errors}",
        markup=False,
    )


def show_advice(out: "Console", plan: "QuestionnairePlan") -> None:
    """Print what to do about targets that are not met, and about tables."""
    for sentence in plan.advice:
        out.print(f"\n{sentence[0].upper()}{sentence[1:]}", markup=False)
