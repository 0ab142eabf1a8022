"""`faircount plan`: what is possible with so many users."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, FILE, JSON
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from faircount.planning.completion import Ending
    from faircount.planning.costs import InServers
    from faircount.planning.groups import GroupsPlan
    from faircount.planning.option import Option
    from faircount.planning.plan import Plan

DO_NOT_RUN = 3
"""Exit code of a plan that says not to run it."""


@click.command()
@click.option("--users", type=int, help="Number of users who will be asked.")
@click.option(
    "--response-rate",
    type=float,
    help="Share of these users who will answer: the plan is made for them alone; all of them, unless given.",
)
@click.option("--items", type=int, required=True, help="Number of items that the question offers.")
@click.option("--epsilon", type=float, help="Privacy loss of all releases together.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help=f"{DELTA}, over all releases together.")
@click.option(
    "--floor",
    default=0,
    show_default=True,
    help="Other holders that every item has for sure: public knowledge, never looked up in the answers.",
)
@click.option("--releases", default=1, show_default=True, help="Results to be published about the same users.")
@click.option("--dropout", default=0.0, show_default=True, help="Share of the users who may vanish half-way.")
@click.option(
    "--colluding",
    default=0.0,
    show_default=True,
    help="Share of the users who may pool what they know; at least one user is always counted as such an insider.",
)
@click.option(
    "--loss",
    type=float,
    help="Probability that a user misses a visit: shows which topologies end; 0.05 with --dropout, unless given.",
)
@click.option(
    "--groups-file",
    "groups",
    type=FILE,
    help="CSV with columns group, users, epsilon: groups with their own privacy level, instead of --users, --epsilon.",
)
@click.option("--groups", "old_groups", type=FILE, hidden=True, help="The name of --groups-file until 0.1.")
@click.option(
    "--liars", is_flag=True, help="Clients may lie: recommend only what counts reports proven to be one vote."
)
@click.option("--target-error", type=float, help="Wanted 95% half-width, as a share: shows the fewest users it takes.")
@click.option("--all", "with_all", is_flag=True, help="Show also the mechanisms that cannot be used, and why not.")
@click.option("--plot", type=FILE, help="Draw error against users (PNG or SVG).")
@JSON
def plan(
    users: int | None,
    epsilon: float | None,
    groups: Path | None,
    plot: Path | None,
    with_all: bool,
    as_json: bool,
    **known: Any,
) -> None:
    """Compare every mechanism at one exact privacy budget, and recommend one.

    Errors are shares of the users, for an average item: privacy noise alone. The exit code is 3 where the plan says not
    to run it.
    """
    from faircount.cli.deliver import Targets
    from faircount.cli.show import busy, console, print_json

    former = known.pop("old_groups")
    groups = groups or former  # until 0.1 the file had the name that is a column in run
    if groups is not None:
        given = {"--users": users, "--epsilon": epsilon, "--plot": plot}
        given |= {"--loss": known.pop("loss"), "--target-error": known.pop("target_error")}
        strange = [name for name, value in given.items() if value is not None]
        if strange:
            raise ParameterError(
                f"--groups-file brings the users and epsilons and compares weights: leave {', '.join(strange)} out"
            )
        _groups(groups, as_json, known)
        return
    if users is None or epsilon is None:
        raise ParameterError("give --users and --epsilon, or a file of groups with --groups-file")
    from faircount.planning.plan import plan as make

    Targets(plot=plot).check()
    with busy("every mechanism at the same privacy ..."):
        made = make(users, known.pop("items"), epsilon, known.pop("delta"), **known)
    if plot is not None:
        from faircount.planning.drawing import plan_file

        plan_file(made.question, plot)
    if as_json:
        print_json(made.to_dict())
    else:
        _show(console(), made, with_all)
        if plot is not None:
            console().print(f"\nWritten to {plot}", soft_wrap=True)
    if not made.worthwhile:
        raise click.exceptions.Exit(DO_NOT_RUN)


def _show(out: "Console", made: "Plan", with_all: bool) -> None:
    from faircount.cli.show import notes

    asked = made.question
    several = f"all {asked.releases} releases together" if asked.releases > 1 else "one release"
    budget = f"epsilon {asked.epsilon:g} and delta {asked.delta:g}"
    out.print(f"{asked.users_in_words}, {asked.items} items, {budget} for {several}")
    out.print(_assumed(made) + "\n")
    out.print(f"[bold]{'Recommendation' if made.worthwhile else 'Verdict'}:[/bold] {made.verdict}.\n")
    out.print(f"{made.otherwise[:1].upper()}{made.otherwise[1:]}.\n", markup=False)
    if made.recommended is not None:
        _table(out, made)
    _said(out, "Conditions", made, lambda o: o.condition if o.sound else None)
    _said(out, "Does not run in servers", made, lambda o: o.servers.reason if o.servers else None)
    _cannot(out, made, with_all)
    _said(out, "Who sees what", made, lambda o: o.cost.sees if o.cost else None)
    _ends(out, made)
    if made.room is not None:
        out.print(f"\n[bold]Room[/bold]: {made.room.words}")
    if made.bears:
        out.print(made.bears[0].upper() + made.bears[1:])
    notes(out, made.notes)


def _cannot(out: "Console", made: "Plan", with_all: bool) -> None:
    """Mechanisms that cannot be used: how many, or with all their reasons."""
    count = sum(not each.sound for each in made.options)
    if with_all:
        _said(out, "Cannot meet the budget", made, lambda o: None if o.sound else o.reason)
    elif count:
        out.print(f"\n{count} more cannot meet the budget: --all says which, and why.")


def _ends(out: "Console", made: "Plan") -> None:
    """Which ways for the shares to travel bring the survey to its end."""
    from faircount.cli.show import pairs

    if made.endings and made.loss is not None:
        needed = f"{made.question.staying:,} of {made.question.users:,} users must stay"
        out.print(
            f"\n[bold]Chance to finish[/bold], if each visit is missed with probability {made.loss:.3g} and {needed}"
        )
        out.print(pairs((str(each.topology), _chance(each) + each.words) for each in made.endings))


def _chance(each: "Ending") -> str:
    if each.chance is None:
        return ""
    if each.chance > 0.9999:
        return "above 99.99%: "
    least = "at least " if each.kind == "at least" else ""
    return f"{least}{each.chance:.2%}: " if each.chance >= 1e-4 else "below 0.01%: "


def _assumed(made: "Plan") -> str:
    asked = made.question
    who = "1 insider (a participant who reads the result)"
    insiders = who if asked.insiders == 1 else f"{asked.insiders:,} insiders (participants who pool what they know)"
    lost = f", {asked.lost:,} may drop out" if asked.lost else ""
    floor = f"floor {asked.floor:,}" if asked.floor else "no floor"
    return f"safe against {insiders}{lost}; {floor}; supposed: {made.supposed}"


COLUMNS = {
    "mechanism": "the name that `faircount run --mechanism` takes",
    "topology": "how the shares travel; second line: servers do it otherwise; -: there are no shares",
    "95% error": "19 of 20 estimates of an average item are off by no more, as a share of the users",
    "std. error": "standard error of the same",
    "users": "the fewest users who reach the wanted error",
    "bytes": "what a user sends in all",
    "visits": "how often a user's device must be online",
    "parameters": "what it runs with; `faircount privacy` states what they guarantee",
}
"""Every column of the table, and what it says."""


def _table(out: "Console", made: "Plan") -> None:
    """What can be used, and under it a line for every column."""
    from faircount.cli.show import grid, pairs

    target = made.question.target_error
    columns = {key: words for key, words in COLUMNS.items() if target or key != "users"}
    titles = {"users": f"users for ±{100 * (target or 0):g}%"}
    heads = [titles.get(key, key) for key in columns]
    rows = [row for each in made.options if each.sound for row in _rows(each, bool(target))]
    out.print(grid(heads, rows, left=(0, 1, len(heads) - 1)))
    out.print()
    out.print(pairs(columns.items()))


def _rows(option: "Option", with_users: bool) -> list[list[str]]:
    """One row, and a second one where it runs otherwise in servers."""
    needed = [f"{option.users_needed:,}" if option.users_needed else "none found"] if with_users else []
    spent = option.cost
    cost = [f"{spent.bytes_sent:,}", str(spent.visits)] if spent else ["", ""]
    rows = [[option.name, option.topology or "-", *_errors(option), *needed, *cost, _parameters(option.parameters)]]
    other = option.servers
    if other is not None and other.mechanism is not None:
        shown = _parameters(other.mechanism.parameters)
        rows.append(["", "servers", *_errors(other), *[""] * with_users, f"{other.bytes_sent:,}", "1", shown])
    return rows


def _errors(form: "Option | InServers") -> list[str]:
    from faircount.planning.option import percent

    return [percent(form.half_width_95 or 0, "±"), percent(form.standard_error or 0)]


def _parameters(parameters: "Mapping[str, float]") -> str:
    """Those that differ between the mechanisms; the rest is in the head line and in the JSON."""
    shown = ("p", "D", "m", "sigma", "epsilon", "alpha", "gamma", "phi", "q")
    return " ".join(f"{key}={parameters[key]:.5g}" for key in shown if key in parameters)


def _said(out: "Console", title: str, made: "Plan", words: Any) -> None:
    """What mechanisms have in common is said once, with their names in front."""
    from faircount.cli.show import pairs

    said: dict[str, list[str]] = {}
    for each in made.options:
        if words(each):
            said.setdefault(words(each), []).append(each.name)
    if said:
        out.print(f"\n[bold]{title}[/bold]")
        out.print(pairs((", ".join(names), text) for text, names in said.items()))


def _groups(path: Path, as_json: bool, known: dict[str, Any]) -> None:
    from faircount.analysis.read import columns
    from faircount.cli.show import busy, tell
    from faircount.planning.groups import plan_groups

    names, users, epsilons = columns(path, ["group", "users", "epsilon"])
    if len(set(names)) < len(names):
        raise ParameterError(f"{path} lists a group twice: one line per group")
    try:
        sizes = [(int(str(n)), float(str(e))) for n, e in zip(users, epsilons, strict=True)]
    except ValueError:
        raise ParameterError(f"{path}: users must be whole numbers and epsilon numbers") from None
    groups = dict(zip(map(str, names), sizes, strict=True))
    with busy("every mechanism in every group ..."):
        made = plan_groups(groups, known.pop("items"), known.pop("delta"), **known)
    tell(made, as_json, _show_groups)
    if not made.worthwhile:
        raise click.exceptions.Exit(DO_NOT_RUN)


def _show_groups(made: "GroupsPlan") -> None:
    from faircount.cli.show import console, grid, notes
    from faircount.planning.option import percent

    out, rows = console(), []
    for name, each in made.plans.items():
        best, asked = each.recommended, each.question
        if best is not None:
            error = percent(best.standard_error or 0)
            rows.append(
                [name, f"{asked.users:,}", f"{asked.epsilon:g}", best.name, error, _parameters(best.parameters)]
            )
    out.print(grid(["group", "users", "epsilon", "mechanism", "std. error", "parameters"], rows, left=(0, 3, 5)))
    out.print("\n[bold]All groups together[/bold], errors against the frequencies of all users")
    ways = [
        [name, percent(way.standard_error), percent(way.noise_error), " ".join(f"{w:.3f}" for w in way.weights)]
        for name, way in made.combined.items()
    ]
    out.print(grid(["weights", "std. error", "noise alone", "of the groups, in the order above"], ways, left=(0, 3)))
    out.print(
        "uwa: by size; vwa: by noise variance (the paper's); total: by total variance; cpa: one survey of all users at "
        "the smallest epsilon. Which group a user is in is public. Equally frequent items are assumed."
    )
    notes(out, made.notes)
    out.print(f"\n[bold]{'Recommendation' if made.worthwhile else 'Verdict'}:[/bold] {made.verdict}.")
