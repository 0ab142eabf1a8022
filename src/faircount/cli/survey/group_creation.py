"""`faircount survey create --group-column`: one survey for each group of people."""

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

    if people is None:
        raise ParameterError("--group-column is a column of the table of people: give --people")
    if given.pop("users") is not None:
        raise ParameterError("every group has as many people as the table says: leave --users out")
    with spinner("planning every group and fetching keys from both servers ..."):
        made = GroupedSurvey.create(folder, column, people=people, items=items, **given)
    _show(made, as_json)


def _show(made: "GroupedSurvey", as_json: bool) -> None:
    from faircount.cli.show import console, make_table, print_json, print_notes
    from faircount.owner.group_results import MOST_ERROR
    from faircount.owner.membership import PUBLIC_MEMBERSHIP

    facts = made.describe()
    if as_json:
        print_json({"folder": str(made.path), "column": made.column, "groups": facts})
        return
    out = console()
    rows = []
    for group in facts:
        errors = group["half_widths"]
        shown = [error for error in errors if error <= MOST_ERROR]
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
        f"Where the error is above {MOST_ERROR:.0f} points nothing is shown.",
        markup=False,
    )
    print_notes(out, [PUBLIC_MEMBERSHIP])
    path = made.path
    out.print(f"\nWritten to {path}. Next: faircount survey invite {path}", markup=False)
