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
    from faircount.planning.questionnaire import QuestionnairePlan

# Options of `faircount run` and `faircount plan` that a questionnaire has a use for.
RUN_OPTIONS = {
    "table", "questionnaire", "epsilon", "encoding", "user", "ledger", "population", "level",
    "as_json", "out", "csv_file", "plot", "simulate_seed",
}  # fmt: skip
PLAN_OPTIONS = {"questionnaire", "purpose", "users", "epsilon", "as_json"}


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
            show_questions(console(), result, level)

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
