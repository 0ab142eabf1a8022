"""`faircount run --questionnaire` and `faircount plan --questionnaire`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from faircount.core.errors import FaircountError, ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.analysis.ledger_file import Account
    from faircount.cli.deliver import Targets
    from faircount.estimation.sheet_result import QuestionEstimates, QuestionnaireResult
    from faircount.planning.questionnaire import QuestionnairePlan

# Options of `faircount run` and `faircount plan` that a questionnaire has a use for.
RUN_OPTIONS = {
    "table", "questionnaire", "epsilon", "encoding", "user", "ledger", "population", "level",
    "as_json", "out", "csv_file", "plot", "simulate_seed",
}  # fmt: skip
PLAN_OPTIONS = {"questionnaire", "purpose", "users", "epsilon", "as_json"}

BAR_WIDTH = 24  # characters of the longest bar


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
    from faircount.core.entropy import SeededStream
    from faircount.estimation.sheet_drawing import save_questions

    refuse_others(context, RUN_OPTIONS)
    given = context.params
    if given["epsilon"] is None:
        raise ParameterError(
            "give --epsilon, the privacy loss of all answers together; 1 is a common choice"
        )
    seed = given["simulate_seed"]
    level = given["level"]
    result = questionnaire(
        table,
        questions,
        epsilon=given["epsilon"],
        user=given["user"],
        encoding=given["encoding"],
        ledger=account,
        entropy=None if seed is None else SeededStream(seed),
    )
    document = result.to_dict(level)

    def show() -> None:
        if given["as_json"]:
            print_json(document)
        else:
            _show(console(), result, level)

    try:
        deliver(document, show, targets, lambda path: save_questions(result, path, level))
    finally:
        # `deliver` raises after the result was printed or kept, so the ledger may say so.
        settle(account)
    if not given["as_json"]:
        echo_written(targets, account)


def refuse_others(context: click.Context, known: set[str]) -> None:
    """Refuse options that were given although a questionnaire has no use for them."""
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in known and source is ParameterSource.COMMANDLINE:
            raise ParameterError(
                f"{parameter.opts[0]} is not for a questionnaire: leave it out, or see the fields "
                "of a question"
            )


def _show(out: "Console", result: "QuestionnaireResult", level: float) -> None:
    from faircount.cli.show import print_notes
    from faircount.estimation.presentation import OUTSIDE_NOTE, SIMULATION
    from faircount.estimation.sheet_result import is_outside

    if result.simulation:
        out.print(f"[bold]{SIMULATION}[/bold]\n")
    title = result.mechanism.questionnaire.title
    heading = f"{title}: " if title else ""
    count = len(result.questions)
    out.print(f"{heading}{result.included:,} users, {count} questions", markup=False)
    marked = False
    for question in result.estimates(level):
        _show_question(out, question, level)
        marked = marked or any(is_outside(row) for row in question.estimates)
    if marked:
        out.print(f"\n{OUTSIDE_NOTE}.", markup=False)
    print_notes(out, result.notes)
    out.print()
    for label, text in result.statements(level):
        out.print(f"{label.capitalize()}: {text}.", markup=False)


def _show_question(out: "Console", question: "QuestionEstimates", level: float) -> None:
    from faircount.cli.show import cell, make_table
    from faircount.core.plain import format_level
    from faircount.estimation.presentation import OUTSIDE_MARK
    from faircount.estimation.sheet_result import format_value, is_outside, is_share, row_label

    out.print()
    out.print(cell(question.title), style="bold")
    longest = max([row.estimate for row in question.estimates if is_share(row)], default=0.0)
    rows = []
    for row in question.estimates:
        mark = OUTSIDE_MARK if is_outside(row) else " "
        span = f"{format_value(row, row.low)} to {format_value(row, row.high)}{mark}"
        share = row.estimate / longest if is_share(row) and longest > 0 else 0.0
        bar = "█" * max(0, round(BAR_WIDTH * share))
        rows.append([row_label(row), format_value(row, row.estimate), span, bar])
    headings = ["answer", "estimate", f"{format_level(level)} interval", ""]
    table = make_table(headings, rows, left=(0, 3))
    table.columns[-1].style = "cyan"
    out.print(table)


def plan_questionnaire(context: click.Context, questions: Path) -> None:
    """Print groups, shares of epsilon and errors of a questionnaire."""
    from faircount.cli.show import console, print_result
    from faircount.core.questions.form import read_form
    from faircount.planning.questionnaire import make_plan

    refuse_others(context, PLAN_OPTIONS)
    given = context.params
    is_named = context.get_parameter_source("purpose") is ParameterSource.COMMANDLINE
    if is_named and given["purpose"] != "table":
        raise ParameterError(
            "a survey over the network has one question: plan a questionnaire with --for table"
        )
    if given["users"] is None or given["epsilon"] is None:
        raise FaircountError("give --users, the number of people, and --epsilon for all answers")
    plan = make_plan(read_form(questions), given["users"], given["epsilon"])
    print_result(plan, given["as_json"], lambda made: _show_plan(console(), made))


def _show_plan(out: "Console", plan: "QuestionnairePlan") -> None:
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
    out.print(
        f"{plan.users:,} users, epsilon {plan.mechanism.epsilon:g} for all answers of a person "
        "together, on a table\n",
        markup=False,
    )
    heads = ["question", "kind", "group", "epsilon", "95% error", "wanted"]
    out.print(make_table(heads, rows, left=(0, 1)))
    out.print(
        "\nErrors are in percentage points, those of a mean in percent of its range. Questions of "
        "one group share one noise radius; the groups were found by search.",
        markup=False,
    )
    for sentence in plan.advice:
        out.print(f"\n{sentence[0].upper()}{sentence[1:]}", markup=False)
