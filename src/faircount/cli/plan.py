"""`faircount plan`: what a survey or a table needs, and how accurate its result will be."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import (
    COLLUDING,
    DELTA,
    FILE,
    FLOOR,
    JSON,
    parse_error_option,
    parse_rate_option,
)
from faircount.cli.plan_levels import plan_hidden_levels
from faircount.core.errors import ParameterError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.planning.completion import Completion
    from faircount.planning.costs import InServers
    from faircount.planning.groups import GroupsPlan
    from faircount.planning.option import Option
    from faircount.planning.plan import Plan

DO_NOT_RUN = 3  # exit code of a plan that advises against the survey

# Chances beyond these are not printed digit by digit.
ALMOST_CERTAIN = 0.9999
ALMOST_IMPOSSIBLE = 1e-4

# The columns of the table, and what each of them shows.
COLUMNS = {
    "mechanism": "a way to randomize answers; the name to use with `faircount run --mechanism`",
    "topology": "how shares travel; - if there are none; a second line: the same with two servers",
    "95% error": "19 of 20 estimates of an average item are closer, in percent of the users",
    "std. error": "standard error of an average item",
    "users": "the fewest users who reach the target error",
    "bytes": "what a user sends in total",
    "visits": "how often a user's device must be online",
    "parameters": "what it runs with; `faircount privacy` computes what they guarantee",
}

LEFT_ALIGNED = ("mechanism", "topology", "parameters")

# What a survey asks of its participants. The rows of a table send nothing.
SENT_BY_USERS = ("topology", "bytes", "visits")

# What the parameters of the table are. Only those that occur in it are explained.
PARAMETER_NAMES = {
    "p": "probability with which a user is counted",
    "D": "fair coins per item: of all users together, or of each server",
    "m": "coins in the report of one user",
    "sigma": "standard deviation of the noise of a count",
    "epsilon": "privacy loss of one release",
    "alpha": "share of the items that one user reports",
    "q": "counts are added modulo this prime",
}

# Words above and below the table that a newcomer may look up.
FLOOR_MEANING = "minimum number of other people known to choose each answer (its holders)"
ONE_VOTE_MEANING = "a report that adds 1 to one item and nothing to the others"

# The parameters that differ between mechanisms; the others are in the first line and in the JSON.
PARAMETERS = ("p", "D", "m", "sigma", "epsilon", "alpha", "gamma", "phi", "q")


@click.command()
# The survey and its budget. They are not required by click, because --groups-file replaces users
# and epsilon, and because everything that is missing is asked for at once.
@click.option(
    "--for",
    "purpose",
    type=click.Choice(["survey", "table"]),
    default="survey",
    show_default=True,
    help="Plan a survey over the network, as `faircount survey create` does, or the histogram of "
    "a table by `faircount run`.",
)
@click.option("--users", type=int, help="Number of people to invite, or of rows in the table.")
@click.option(
    "--response-rate",
    metavar="RATE",
    callback=parse_rate_option,
    help="Expected response rate, such as 60%: errors are stated for so many responses, with the "
    "chance that they reach the minimum.  [default: 95% in a survey, 100% in a table]",
)
@click.option(
    "--minimum",
    metavar="NUMBER|RATE",
    help="Minimum number of responses of a survey, such as 100, or rate of the invited, such as "
    "40%.  [default: as in faircount survey create]",
)
@click.option("--items", type=int, help="Number of items to choose from.")
@click.option("--epsilon", type=float, help="Privacy loss of all releases together.")
@click.option(
    "--delta",
    type=float,
    default=1e-6,
    show_default=True,
    help=f"{DELTA}, over all releases together.",
)
# What is known about the users. None of it can be checked, so the plan repeats it with its verdict.
@click.option(
    "--floor",
    default=0,
    show_default=True,
    help=f"{FLOOR}. This must be public knowledge; never look it up in the answers.",
)
@click.option(
    "--releases",
    default=1,
    show_default=True,
    help="Number of results to be published about the same users.",
)
@click.option("--colluding", default=0.0, show_default=True, help=f"{COLLUDING}.")
@click.option(
    "--loss",
    type=float,
    help="Probability that a user misses a visit. Shows how likely each topology completes.  "
    "[default: 0.05 with --minimum]",
)
@click.option(
    "--groups-file",
    type=FILE,
    help="Plan for groups with their own privacy levels, such as public levels of a survey: a CSV "
    "file with columns group, users, epsilon, instead of --users and --epsilon.",
)
@click.option(
    "--levels",
    metavar="0.25,0.5,1",
    help="Plan two or three hidden privacy levels from which people choose, instead of --epsilon: "
    "their epsilons, or names with epsilons as in strong=0.5,normal=1.",
)
@click.option(
    "--shares",
    metavar="0.1,0.3,0.6",
    help="Which share of the people you expect to choose each of the --levels.  [default: equal "
    "shares]",
)
@click.option(
    "--malicious-clients/--honest-clients",
    default=None,
    help="Whether to recommend only mechanisms that stop dishonest participants from skewing the "
    "result of a survey.  [default: malicious-clients]",
)
# What to compute and show in addition.
@click.option(
    "--target-error",
    metavar="RATE",
    callback=parse_error_option,
    help="Wanted 95% error, such as 2% or 0.02. Shows how many users each mechanism needs.",
)
@click.option(
    "--all",
    "with_all",
    is_flag=True,
    help="Also compare all mechanisms, with those that cannot be used, and why.",
)
@click.option("--plot", type=FILE, help="Draw error against number of users (PNG, SVG or PDF).")
@click.option(
    "--questionnaire",
    type=FILE,
    help="Plan several questions that are asked about the people of a table: a TOML file, with "
    "--users and --epsilon alone.",
)
@JSON
@click.pass_context
def plan(
    context: click.Context,
    /,
    questionnaire: Path | None,
    users: int | None,
    epsilon: float | None,
    groups_file: Path | None,
    levels: str | None,
    shares: str | None,
    plot: Path | None,
    with_all: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Say how accurate a result will be, and whether to run the survey at all.

    Every mechanism is compared at the same privacy budget; --all shows them. Errors are in percent
    of those who respond, for an average item, and come from privacy noise alone. The exit code is 3
    if the plan advises against it.
    """
    if questionnaire is not None:
        from faircount.cli.questionnaire import plan_questionnaire

        if not plan_questionnaire(context, questionnaire):
            raise click.exceptions.Exit(DO_NOT_RUN)
        return
    if levels is not None or shares is not None:
        if groups_file is not None or epsilon is not None:
            raise ParameterError("--levels bring their epsilons: leave --epsilon and groups out")
        _require({"--users": users, "--items": options["items"]})
        plan_hidden_levels(levels, shares, users or 0, options, as_json)
        return
    # Groups bring their own sizes and epsilons. Loss and target error have no meaning for a
    # weighted sum of several surveys.
    if groups_file is not None:
        conflicting = {
            "--users": users,
            "--epsilon": epsilon,
            "--plot": plot,
            "--minimum": options.pop("minimum"),
            "--loss": options.pop("loss"),
            "--target-error": options.pop("target_error"),
        }
        given = [name for name, value in conflicting.items() if value is not None]
        if given:
            raise ParameterError(
                "--groups-file brings the users and epsilons and compares weights: leave "
                f"{', '.join(given)} out"
            )
        _require({"--items": options["items"]})
        worthwhile = _plan_groups(groups_file, as_json, options)
    else:
        _require({"--users": users, "--items": options["items"], "--epsilon": epsilon})
        options |= {"users": users, "epsilon": epsilon}
        worthwhile = _plan_survey(options, plot, with_all, as_json)
    if not worthwhile:
        raise click.exceptions.Exit(DO_NOT_RUN)


# What is needed for a plan, with a word for those who see it for the first time.
NEEDED = {
    "--users": "--users, how many people you invite",
    "--items": "--items, how many answers there are to choose from",
    "--epsilon": "--epsilon, the privacy loss (1 is a common choice; smaller protects better)",
}


def _require(given: "Mapping[str, object]") -> None:
    """Ask for everything that is missing in one sentence."""
    missing = [NEEDED[name] for name, value in given.items() if value is None]
    if not missing:
        return
    message = f"give {'; '.join(missing)}"
    if "--users" in given:
        message += ". For groups of users with their own epsilon give --items and --groups-file"
    raise ParameterError(message)


def _plan_survey(options: dict[str, Any], plot: Path | None, with_all: bool, as_json: bool) -> bool:
    """Plan one survey; whether it is worth running."""
    from faircount.cli.deliver import Targets
    from faircount.cli.show import console, print_json, spinner
    from faircount.planning.plan import plan as make_plan

    # A wrong file name is reported before the mechanisms are compared, which takes seconds.
    Targets(plot=plot).check()
    with spinner("comparing every mechanism at the same privacy ..."):
        made = make_plan(**options)
    if plot is not None:
        from faircount.planning.drawing import plan_file

        plan_file(made.request, plot)
    if as_json:
        print_json(made.to_dict())
    else:
        _show(console(), made, with_all)
        if plot is not None:
            console().print(f"\nWritten to {plot}", soft_wrap=True)
    return made.worthwhile


def _show(out: "Console", made: "Plan", with_all: bool) -> None:
    from faircount.cli.show import print_notes
    from faircount.planning.promise import promise_to_participants

    request = made.request
    releases = "one release"
    if request.releases > 1:
        releases = f"all {request.releases} releases together"
    budget = f"epsilon {request.epsilon:g} and delta {request.delta:g}"
    out.print(f"{request.users_in_words}, {request.items} items, {budget} for {releases}\n")
    # The recommendation comes before the comparison: most readers need nothing else.
    _show_verdict(out, made)
    if made.forecast is not None:
        # What an owner decides first, in the words of `faircount survey create`.
        needed = filter(None, (made.forecast.minimum_sentence, made.forecast.chance_sentence))
        out.print(f"\n{' '.join(needed)} {made.forecast.terms}", markup=False)
        # Nobody will read anything in a survey that should not be run.
        if made.worthwhile:
            promise = promise_to_participants(request.epsilon, request.delta)
            out.print(f"\nParticipants will read: {promise}", markup=False)
    if with_all:
        _show_comparison(out, made)
    else:
        out.print("\n--all compares all mechanisms, and says what the plan assumes.")
    print_notes(out, made.notes)


def _show_comparison(out: "Console", made: "Plan") -> None:
    """All mechanisms with their errors, conditions and costs, and what the plan assumes."""
    from faircount.planning.request import TABLE

    out.print(f"\n{_capitalize(_describe_assumptions(made))}.")
    if made.alternative_advice is not None:
        out.print(f"\n{_capitalize(made.alternative_advice)}.", markup=False)
    if made.recommended is not None:
        out.print()
        _show_table(out, made)

    _show_by_text(
        out,
        "Conditions",
        made,
        lambda option: str(option.condition) if option.sound and option.condition else None,
    )
    _show_by_text(
        out, "Cannot meet the budget", made, lambda option: not option.sound and option.reason
    )
    # Whoever runs a mechanism on a table has all answers already, and nobody sends anything.
    if made.request.purpose == TABLE:
        return
    _show_by_text(
        out,
        "Does not run in servers",
        made,
        lambda option: option.servers is not None and option.servers.reason,
    )
    _show_by_text(
        out, "Who sees what", made, lambda option: option.cost is not None and option.cost.sees
    )
    _show_completion(out, made)
    if made.dropout_cost is not None:
        out.print(f"\n{_capitalize(made.dropout_cost.words)}.")
    if made.tolerated_malicious:
        out.print(f"{_capitalize(made.tolerated_malicious)}.")


def _show_verdict(out: "Console", made: "Plan | GroupsPlan") -> None:
    title = "Recommendation" if made.worthwhile else "Verdict"
    out.print(f"[bold]{title}:[/bold] {made.verdict}.")


def _capitalize(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _describe_assumptions(made: "Plan") -> str:
    request = made.request
    insiders = "1 insider (a participant who reads the result)"
    if request.insiders > 1:
        insiders = f"{request.insiders:,} insiders (participants who pool what they know)"
    dropouts = f", {request.lost:,} may not respond" if request.lost else ""
    floor = f"; floor {request.floor:,}" if request.floor else ""
    return f"safe against {insiders}{dropouts}{floor}; assumes: {made.assumption}"


def _show_table(out: "Console", made: "Plan") -> None:
    """The mechanisms that can be used, and below them what every column shows."""
    from faircount.cli.show import make_definitions, make_table
    from faircount.planning.request import TABLE

    columns = _describe_columns(made)
    rows = []
    for option in made.options:
        if not option.sound:
            continue
        rows.append(_row_of(option))
        # Two servers do not know which place a user has in a roster, so all users draw from one
        # distribution there. That changes errors and parameters of some mechanisms.
        servers = None if made.request.purpose == TABLE else option.servers
        if servers is not None and servers.mechanism is not None:
            rows.append(_row_in_servers(option.name, servers))

    headings = list(columns)
    left = [headings.index(name) for name in LEFT_ALIGNED if name in columns]
    cells = [[row[name] for name in columns] for row in rows]
    if made.request.target_error is not None:
        headings[headings.index("users")] = f"users for ±{100 * made.request.target_error:g}%"
    out.print(make_table(headings, cells, left))
    out.print()
    words = {**columns, **_explain_parameters(made), "floor": FLOOR_MEANING}
    if made.alternative_advice is not None:
        words["one vote"] = ONE_VOTE_MEANING
    out.print(make_definitions(words.items()))


def _describe_columns(made: "Plan") -> dict[str, str]:
    """The columns of this plan, and what each of them shows."""
    from faircount.planning.request import SURVEY, TABLE

    request = made.request
    columns = dict(COLUMNS)
    if request.purpose == TABLE:
        for name in SENT_BY_USERS:
            del columns[name]
    if request.target_error is None:
        del columns["users"]
    elif request.purpose == SURVEY:
        rate = request.staying / request.users
        columns["users"] = (
            f"the fewest people to invite who reach the target error, if {rate:.0%} respond"
        )
    return columns


def _explain_parameters(made: "Plan") -> dict[str, str]:
    """The meaning of the parameters that occur in the table."""
    used: set[str] = set()
    for option in made.options:
        if option.sound:
            used.update(option.parameters)
    return {name: text for name, text in PARAMETER_NAMES.items() if name in used}


def _row_of(option: "Option") -> dict[str, str]:
    return {
        "mechanism": option.name,
        "topology": option.topology or "-",
        **_format_errors(option),
        "users": f"{option.users_needed:,}" if option.users_needed else "none found",
        "bytes": f"{option.cost.bytes_sent:,}" if option.cost else "",
        "visits": str(option.cost.visits) if option.cost else "",
        "parameters": _format_parameters(option.parameters),
    }


def _row_in_servers(name: str, servers: "InServers") -> dict[str, str]:
    parameters = servers.mechanism.parameters if servers.mechanism else {}
    return {
        "mechanism": name,
        "topology": "servers",
        **_format_errors(servers),
        "users": "",
        "bytes": f"{servers.bytes_sent:,}",
        "visits": "1",
        "parameters": _format_parameters(parameters),
    }


def _format_errors(variant: "Option | InServers") -> dict[str, str]:
    from faircount.planning.option import format_percent

    return {
        "95% error": format_percent(variant.half_width_95 or 0, "±"),
        "std. error": format_percent(variant.standard_error or 0),
    }


def _format_parameters(parameters: "Mapping[str, float]") -> str:
    return " ".join(f"{key}={parameters[key]:.5g}" for key in PARAMETERS if key in parameters)


def _show_by_text(
    out: "Console", title: str, made: "Plan", text_of: "Callable[[Option], str | bool | None]"
) -> None:
    """Show a text of the mechanisms; those with the same text share a line."""
    from faircount.cli.show import make_definitions

    # Most mechanisms share a condition or a view, and repeating it for each would hide the others.
    names: dict[str, list[str]] = {}
    for option in made.options:
        text = text_of(option)
        if text:
            names.setdefault(str(text), []).append(option.name)
    if names:
        out.print(f"\n[bold]{title}[/bold]")
        out.print(make_definitions((", ".join(group), text) for text, group in names.items()))


def _show_completion(out: "Console", made: "Plan") -> None:
    """How likely every topology brings the survey to a result, where users may miss visits."""
    from faircount.cli.show import make_definitions

    if not made.completions or made.loss is None:
        return
    request = made.request
    out.print(
        f"\n[bold]Chance to complete[/bold], if each visit is missed with probability "
        f"{made.loss:.3g} and {made.min_users:,} of {request.users:,} users must stay"
    )
    out.print(
        make_definitions(
            (str(completion.topology), _format_chance(completion) + completion.words)
            for completion in made.completions
        )
    )


def _format_chance(completion: "Completion") -> str:
    if completion.chance is None:
        return ""
    if completion.chance > ALMOST_CERTAIN:
        return "above 99.99%: "
    if completion.chance < ALMOST_IMPOSSIBLE:
        return "below 0.01%: "
    least = "at least " if completion.kind == "at least" else ""
    return f"{least}{completion.chance:.2%}: "


def _plan_groups(path: Path, as_json: bool, options: dict[str, Any]) -> bool:
    """Plan groups with their own privacy levels; whether they are worth running."""
    from faircount.analysis.read import columns
    from faircount.cli.show import print_result, spinner
    from faircount.planning.groups import plan_groups

    groups: dict[str, tuple[int, float]] = {}
    rows = zip(*columns(path, ["group", "users", "epsilon"]), strict=True)
    for name, users, epsilon in rows:
        # Two lines of one group are ambiguous: they could be one group of both sizes, or a typing
        # error.
        if str(name) in groups:
            raise ParameterError(f"{path} lists a group twice: one line per group")
        try:
            groups[str(name)] = (int(str(users)), float(str(epsilon)))
        except ValueError:
            raise ParameterError(
                f"{path}: users must be whole numbers and epsilon numbers"
            ) from None
    with spinner("comparing every mechanism in every group ..."):
        made = plan_groups(groups, options.pop("items"), options.pop("delta"), **options)
    print_result(made, as_json, _show_groups)
    return made.worthwhile


def _show_groups(made: "GroupsPlan") -> None:
    from faircount.cli.show import console, make_table, print_notes
    from faircount.planning.option import format_percent

    out = console()
    rows = []
    for name, group in made.plans.items():
        best = group.recommended
        # A group without a sound mechanism is named in the verdict.
        if best is None:
            continue
        size = [f"{group.request.users:,}", f"{group.request.epsilon:g}"]
        error = format_percent((group.forecast or best).standard_error or 0)
        rows.append([name, *size, best.name, error, _format_parameters(best.parameters)])
    headings = ["group", "users", "epsilon", "mechanism", "std. error", "parameters"]
    out.print(make_table(headings, rows, left=(0, 3, 5)))

    out.print("\n[bold]All groups together[/bold], errors against the frequencies of all users")
    rows = []
    for name, way in made.combined.items():
        weights = " ".join(f"{weight:.3f}" for weight in way.weights)
        rows.append(
            [name, format_percent(way.standard_error), format_percent(way.noise_error), weights]
        )
    headings = ["weights", "std. error", "noise alone", "of the groups, in the order above"]
    out.print(make_table(headings, rows, left=(0, 3)))
    out.print(
        "uwa: by size; cpa: one survey of all users at the smallest epsilon; both hold whatever "
        "the groups answer. Only if the groups answer alike: vwa: by noise variance (the paper's); "
        "owa: the same, solved numerically; total: by total variance. Which group a user is in is "
        "public. Equally frequent items are assumed."
    )
    print_notes(out, made.notes)
    out.print()
    _show_verdict(out, made)
