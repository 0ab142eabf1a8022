"""`faircount survey create --group-column` or `--level-column`: a survey for each group."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from faircount.owner.groups import GroupedSurvey
    from faircount.owner.people import People


def create_groups(
    folder: Path,
    column: str,
    people: "People | None",
    items: list[str] | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Create the surveys of all groups, and show how exact each of them will be."""
    from faircount.cli.show import spinner
    from faircount.owner.groups import GroupedSurvey

    # Membership is the owner's knowledge: without a table there is nothing to divide by.
    if people is None:
        raise ParameterError("--group-column is a column of the table of people: give --people")
    if given.pop("users") is not None:
        raise ParameterError("every group has as many people as the table says: leave --users out")
    with spinner("planning every group and fetching keys from both servers ..."):
        made = GroupedSurvey.create(folder, column, people=people, items=items, **given)
    _show(made, as_json)


def create_levels(
    folder: Path,
    column: str,
    levels: str | None,
    people: "People | None",
    items: list[str] | None,
    as_json: bool,
    given: dict[str, Any],
) -> None:
    """Create the surveys of all public levels, and show what to expect of them together."""
    from faircount.cli.options import parse_levels
    from faircount.cli.show import spinner
    from faircount.owner.groups import GroupedSurvey

    if levels is None:
        raise ParameterError(
            "--level-column names everybody's level: say what the levels are with --levels, as in "
            "--levels strong=0.5,normal=1"
        )
    if people is None:
        raise ParameterError("--level-column is a column of the table of people: give --people")
    if given.pop("users") is not None:
        raise ParameterError("every level has as many people as the table says: leave --users out")
    # Every level has its own.
    del given["epsilon"]
    epsilons = parse_levels("--levels", levels)
    with spinner("planning every level and fetching keys from both servers ..."):
        made = GroupedSurvey.create(
            folder, column, people=people, levels=epsilons, items=items, **given
        )
    _show_levels(made, as_json)


def _show_levels(made: "GroupedSurvey", as_json: bool) -> None:
    from faircount.accounting.guarantee import attacker_certainty
    from faircount.cli.show import console, make_table, print_json, print_notes
    from faircount.owner.levels import PUBLIC_LEVELS

    facts = made.describe()
    expected = made.forecast
    assert expected is not None  # noqa: S101 - a survey that was just created has it
    # Two decimals in JSON as well: more would suggest that a forecast is that exact.
    together = [round(error, 2) for error in expected.half_widths]
    alone = [round(error, 2) for error in expected.half_widths_of_one_level]
    notes = [*expected.notes, PUBLIC_LEVELS]
    if as_json:
        print_json(
            {
                "folder": str(made.path),
                "column": made.column,
                "levels": facts,
                "half_widths": together,
                "half_widths_of_one_level": alone,
                "equal_epsilon": expected.equal_epsilon,
                "notes": notes,
            }
        )
        return
    out = console()
    rows = [
        [
            level["name"],
            f"{level['users']:,}",
            f"{level['minimum']:,}",
            f"{level['epsilon']:g}",
            f"at most {attacker_certainty(level['epsilon']):.1f} %",
            level["mechanism"],
        ]
        for level in facts
    ]
    heads = [made.column, "people", "minimum", "epsilon", "sure of an answer", "mechanism"]
    out.print(make_table(heads, rows, left=(0, 5)))
    span = f"±{min(together):.1f}"
    if len(together) > 1:
        span = f"±{min(together):.1f} to ±{max(together):.1f}"
    out.print(
        f"\nAll levels together have an error of {span} percentage points with 95% certainty, if "
        "nearly everybody answers; every person counts the same. Sure of an answer: how certain "
        "anybody can become which of two answers a participant gave; 50 % would be a guess.",
        markup=False,
    )
    print_notes(out, notes)
    path = made.path
    out.print(f"\nWritten to {path}. Next: faircount survey invite {path}", markup=False)


def _show(made: "GroupedSurvey", as_json: bool) -> None:
    from faircount.cli.show import console, make_table, print_json, print_notes
    from faircount.owner.group_results import MAX_ERROR
    from faircount.owner.membership import PUBLIC_MEMBERSHIP

    facts = made.describe()
    if as_json:
        print_json({"folder": str(made.path), "column": made.column, "groups": facts})
        return
    out = console()
    rows = []
    for group in facts:
        errors = group["half_widths"]
        # Said before anybody is invited: nobody should answer a question that is never shown.
        shown = [error for error in errors if error <= MAX_ERROR]
        note = "" if len(shown) == len(errors) else f"{len(errors) - len(shown)} too few to show"
        rows.append(
            [
                group["name"],
                f"{group['users']:,}",
                f"{group['minimum']:,}",
                f"±{min(errors):.0f}",
                f"±{max(errors):.0f}",
                note,
            ]
        )
    heads = [made.column, "people", "minimum", "best error", "worst error", "questions"]
    out.print(make_table(heads, rows, left=(0, 5)))
    out.print(
        "\nErrors are in percentage points, with 95% certainty, if everybody in a group answers. "
        f"Where the error is above {MAX_ERROR:.0f} points nothing is shown.",
        markup=False,
    )
    print_notes(out, [PUBLIC_MEMBERSHIP])
    path = made.path
    out.print(f"\nWritten to {path}. Next: faircount survey invite {path}", markup=False)
