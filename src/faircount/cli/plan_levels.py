"""`faircount plan --levels`: what hidden privacy levels gain, and what one level for all would."""

from typing import Any

from faircount.accounting.levels import USUAL_NAMES
from faircount.cli.options import parse_levels, parse_list
from faircount.core.errors import ParameterError


def plan_hidden_levels(
    levels: str | None, shares: str | None, users: int, options: dict[str, Any], as_json: bool
) -> None:
    """Plan hidden levels, and say first what one level for all would give."""
    from faircount.accounting.levels import Levels
    from faircount.cli.show import console, make_table, print_json, print_notes
    from faircount.core.validation import expected_users
    from faircount.planning.levels import plan_levels

    if levels is None:
        raise ParameterError("--shares are those of --levels: say what the levels are")
    given = _read_levels(levels)
    # Shares follow the levels as they were typed: in another order they would mean others.
    if list(given.values()) != sorted(given.values()):
        raise ParameterError("--levels begin with the strongest, which has the smallest epsilon")
    offered = Levels.of(given)
    equal = [1 / len(offered)] * len(offered)
    expected = equal if shares is None else _parse_numbers("--shares", shares)
    rate = options["response_rate"]
    responding = users if rate is None else expected_users("response_rate", rate, users)
    made = plan_levels(offered, expected, responding, options["items"])
    if as_json:
        print_json(made.to_dict())
        return
    out = console()
    rows = [
        [
            level["name"],
            f"{level['epsilon']:g}",
            f"{level['counted_again_with_probability']:.1%}",
            f"{level['epsilon_with_level']:.3g}",
            f"{level['share']:.0%}",
        ]
        for level in made.to_dict()["levels"]
    ]
    heads = ["level", "epsilon", "counted twice", "epsilon of answer and level", "chosen by"]
    out.print(make_table(heads, rows, left=(0,)))
    out.print()
    for sentence in made.sentences:
        out.print(sentence, markup=False)
    print_notes(out, made.notes)


def _read_levels(given: str) -> dict[str, float]:
    """Levels with names, or the epsilons of levels with the usual names."""
    if "=" in given or given.startswith("@"):
        return parse_levels("--levels", given)
    epsilons = _parse_numbers("--levels", given)
    # More than there are names are refused where levels are made, with a reason.
    names = [f"level {number + 1}" for number in range(len(epsilons))]
    if len(epsilons) <= len(USUAL_NAMES):
        names = list(USUAL_NAMES[-len(epsilons) :])
    return dict(zip(names, epsilons, strict=True))


def _parse_numbers(option: str, given: str) -> list[float]:
    entries = parse_list(option, "0.25,0.5,1", given)
    try:
        return [float(entry) for entry in entries]
    except ValueError:
        raise ParameterError(f"{option} {given!r:.60} is no list of numbers") from None
