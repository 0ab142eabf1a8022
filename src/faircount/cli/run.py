"""`faircount run`: estimate a private histogram of a column of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import (
    COLLUDING,
    CONFIDENCE,
    DELTA,
    FILE,
    FLOOR,
    JSON,
    parse_items,
    parse_levels,
    parse_list,
)
from faircount.core.errors import FaircountError, ParameterError
from faircount.mechanisms.registry import frequency_names

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.analysis.groups import GroupedHistogram
    from faircount.analysis.histogram import Histogram
    from faircount.analysis.ledger_file import Account
    from faircount.cli.deliver import Targets

MECHANISMS = ("auto", *frequency_names())
RULE = click.Choice(["refuse", "drop", "other"])


@click.command()
@click.argument("table", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
# What is estimated, and at which privacy.
@click.option("--column", help="Column that holds the answers, one per row.")
@click.option(
    "--questionnaire",
    type=FILE,
    help="Ask several questions at once: a TOML file that names them and their columns, instead of "
    "--column. Epsilon then holds for all answers of a person together.",
)
@click.option(
    "--epsilon", type=float, help="Privacy loss of the release; with --groups use --levels."
)
@click.option("--delta", type=float, default=1e-6, show_default=True, help=f"{DELTA}.")
@click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS),
    default="auto",
    metavar="NAME",
    show_default=True,
    help=f"One of {', '.join(MECHANISMS)}; auto takes the one that faircount plan --for table "
    "recommends.",
)
# How the table is read, and which items there are. The list is never taken from the data by
# default, because the items themselves would give answers away.
@click.option("--encoding", help="Encoding of a CSV file, such as cp1252.  [default: UTF-8]")
@click.option(
    "--domain",
    metavar="a,b,c|@FILE",
    help="The public list of items, or a file with one item a line. Put an item that contains a "
    "comma in double quotes.",
)
@click.option(
    "--domain-from-data",
    is_flag=True,
    help="Take the list of items from the answers; the guarantee does not cover it.",
)
# What is known about the users. A floor is believed and not checked; the guarantee names it.
@click.option("--floor", default=0, show_default=True, help=f"{FLOOR} (dpds, dpcs, tss-prime).")
@click.option("--colluding", default=0.0, show_default=True, help=f"{COLLUDING}.")
@click.option(
    "--user",
    metavar="COLUMN",
    help="Column that identifies people, who are counted once each.",
)
@click.option(
    "--repeated",
    type=click.Choice(["refuse", "first"]),
    default="refuse",
    show_default=True,
    help="What to do if rows of one person hold different answers: refuse to run, or count the "
    "first row of each person.",
)
@click.option(
    "--missing",
    type=RULE,
    default="refuse",
    show_default=True,
    help="What to do with rows without an answer: refuse to run, leave them out (which the "
    "guarantee then mentions), or count them as --other.",
)
@click.option(
    "--outside",
    type=RULE,
    help="What to do with answers that are not on the list, likewise.  [default: refuse, or other "
    "if --other is given]",
)
@click.option(
    "--missing-spellings",
    metavar="NA,n/a",
    help="Texts that count as no answer, in addition to empty and blank cells.",
)
# `--outside` has no default of its own, so that `--other ITEM` alone does what it says.
@click.option("--other", metavar="ITEM", help="Item of the list that such answers count as.")
# Groups with their own privacy levels. Their membership is public only if the analyst declares it,
# because the sizes of groups may give answers away.
@click.option(
    "--groups",
    metavar="COLUMN",
    help="Column of privacy levels: each level is a survey of its own, and every user counts the "
    "same in the estimates.",
)
@click.option(
    "--public-groups",
    is_flag=True,
    help="Declare that the members of the groups are public: group sizes are printed exactly.",
)
@click.option(
    "--levels",
    metavar="a=0.5,b=2|@FILE",
    help="Epsilon of every level.  [default: the levels are epsilons]",
)
@click.option(
    "--weights",
    type=click.Choice(["total", "vwa", "owa", "uwa", "cpa"]),
    help="Weights of a second estimate that assumes that the groups answer alike: by total "
    "variance (total), by noise variance (vwa, or owa, solved numerically), or none (uwa). "
    "Instead, cpa runs one survey of everybody at the smallest epsilon.  [default: total]",
)
@click.option(
    "--anyway", is_flag=True, help="Run even if the error is so large that nothing is learned."
)
# The budget that this run is charged to. Without one nobody adds up what several runs spend.
@click.option(
    "--ledger", type=FILE, help="Charge the budget in this file first: see faircount budget."
)
@click.option(
    "--population", metavar="NAME", help="The people of this table, whose budget is charged."
)
@CONFIDENCE
@click.option(
    "--covers",
    type=click.Choice(["users", "population"]),
    default="users",
    show_default=True,
    help="Whether intervals are about the users of the table, or about the population that they "
    "are a sample of.",
)
# How the result is shown, and where it is written.
@JSON
@click.option("--out", type=FILE, help="Write the JSON object to this file, too.")
@click.option("--csv", "csv_file", type=FILE, help="Write estimates and intervals as CSV.")
@click.option("--plot", type=FILE, help="Draw bars with intervals (PNG, SVG or PDF).")
@click.option(
    "--simulate-seed",
    type=int,
    help="Repeatable randomness for examples and tests: NOT for a release.",
)
@click.pass_context
def run(
    context: click.Context,
    /,
    table: Path,
    questionnaire: Path | None,
    as_json: bool,
    out: Path | None,
    csv_file: Path | None,
    plot: Path | None,
    confidence: float,
    covers: str,
    simulate_seed: int | None,
    ledger: Path | None,
    population: str | None,
    **options: Any,
) -> None:
    """Estimate privately how often each item occurs in a column of TABLE.

    TABLE is a CSV file (also .gz), a Parquet file, or - for CSV on standard input.

    Every row acts as a user. The answers are randomized as in a survey; mechanisms that make
    secret shares make them here, too, and only the sum of the shares is revealed. Up to 2,000 rows,
    laplace, dpdg and dpds run the whole protocol with two servers in memory. In Python this is
    fc.histogram, and `faircount histogram` is the same command.
    """
    from faircount.cli.deliver import Targets, deliver
    from faircount.cli.show import console, print_json
    from faircount.core.validation import check_fraction
    from faircount.estimation.drawing import save_frequencies

    # Everything that can be refused is checked before noise is drawn and privacy is spent.
    check_fraction("confidence", confidence)
    targets = Targets(out, csv_file, plot)
    targets.check(None if str(table) == "-" else table)
    account = None
    if ledger is not None or population is not None:
        from faircount.analysis.ledger_file import account_of

        account = account_of(ledger, population)
    if questionnaire is not None:
        from faircount.cli.questionnaire import run_questionnaire

        run_questionnaire(context, table, questionnaire, targets, account)
        return
    if options["column"] is None:
        raise ParameterError(
            "say which column of the table holds the answers: --column NAME, or --questionnaire "
            "FILE for several questions"
        )
    result = _estimate(table, simulate_seed, {**options, "ledger": account})
    document = result.to_dict(confidence, covers=covers)

    def show() -> None:
        if as_json:
            print_json(document)
        else:
            _show(console(), result, confidence, covers)

    try:
        deliver(
            document, show, targets, lambda path: save_frequencies(result, path, confidence, covers)
        )
    except FaircountError:
        # `deliver` raises after the result was printed or kept, so the ledger may say so.
        settle(account)
        raise
    settle(account)
    if not as_json:
        echo_written(targets, account)


def echo_written(targets: "Targets", account: "Account | None") -> None:
    """Say which files were written, and what is left of the budget."""
    for path in targets.paths:
        click.echo(f"Written to {path}")
    if account is not None:
        click.echo(f"Budget of {account.population}: {account.describe_spending()}")


def settle(account: "Account | None") -> None:
    """Record in the ledger that the result was printed or kept."""
    if account is None:
        return
    problem = account.settle()
    if problem is not None:
        click.echo(f"faircount: {problem}", err=True)


def _estimate(
    table: Path, seed: int | None, options: dict[str, Any]
) -> "Histogram | GroupedHistogram":
    """Parse the options that are texts, and run the histogram."""
    from faircount.analysis.histogram import histogram
    from faircount.cli.show import progress_bar
    from faircount.core.entropy import SeededStream

    if options["domain"] is not None:
        options["domain"] = parse_items("--domain", options["domain"])
    spellings = options["missing_spellings"]
    options["missing_spellings"] = ()
    if spellings is not None:
        options["missing_spellings"] = parse_list("--missing-spellings", "NA,n/a", spellings)
    options["epsilon"] = _parse_epsilon(
        options["epsilon"], options["groups"], options.pop("levels")
    )
    entropy = None if seed is None else SeededStream(seed)
    with progress_bar(f"users of {table.name}") as update:
        return histogram(table, options.pop("column"), entropy=entropy, progress=update, **options)


def _parse_epsilon(
    epsilon: float | None, groups: str | None, levels: str | None
) -> float | dict[str, float] | None:
    """The epsilon of the release or, with groups, that of every level."""
    if groups is None:
        if levels is not None:
            raise ParameterError(
                "--levels says what the values of --groups COLUMN mean: give --groups too"
            )
        if epsilon is None:
            raise ParameterError(
                "give --epsilon, the privacy loss of the release; 1 is a common choice"
            )
        return epsilon
    if epsilon is not None:
        raise ParameterError(
            "with --groups every level has its own epsilon: leave --epsilon out, or see --levels"
        )
    if levels is None:
        return None
    return parse_levels("--levels", levels)


def _show(
    out: "Console", result: "Histogram | GroupedHistogram", confidence: float, covers: str
) -> None:
    from faircount.analysis.groups import GroupedHistogram
    from faircount.cli.show import print_bars, print_notes, print_statements
    from faircount.estimation.presentation import SIMULATION

    # Above everything else, so that nobody mistakes a simulation for a release.
    if result.simulation:
        out.print(f"[bold]{SIMULATION}[/bold]\n")
    out.print(f"{result.name}, {result.included:,} users, {len(result.items)} items\n")
    print_bars(out, result, confidence=confidence, covers=covers)
    if isinstance(result, GroupedHistogram) and result.if_alike is not None:
        _show_if_alike(out, result.if_alike, confidence, covers)
    print_notes(out, result.notes)
    if isinstance(result, GroupedHistogram):
        _show_groups(out, result)
    print_statements(out, result, confidence, covers)


def _show_if_alike(
    out: "Console", beside: "GroupedHistogram", confidence: float, covers: str
) -> None:
    """The weighted estimate, with the condition under which it may be read."""
    from faircount.cli.show import print_bars

    out.print(
        f"\nA second estimate, with weights by variance ({beside.weighting}); it is right only if "
        "the groups answer alike\n",
        markup=False,
    )
    print_bars(out, beside, confidence=confidence, covers=covers)


def _show_groups(out: "Console", result: "GroupedHistogram") -> None:
    """What each group is promised, and how much it counts."""
    from faircount.accounting.guarantee import format_delta, format_factor
    from faircount.cli.show import make_table

    beside = result.if_alike
    rows = []
    for number, (name, group) in enumerate(result.groups.items()):
        stated = group.guarantee
        row = [
            name,
            f"{group.included:,}",
            f"{stated.epsilon:.4g}",
            format_delta(stated.delta, 2),
            format_factor(stated.epsilon),
            group.name,
            f"{result.weights[number]:.3f}",
        ]
        if beside is not None:
            row.append(f"{beside.weights[number]:.3f}")
        rows.append(row)
    out.print(
        "\nGroups: the odds between two answers of a user change by at most this factor, except "
        "with probability delta; and how much each group counts"
    )
    headings = ["group", "users", "epsilon", "delta", "factor", "mechanism", "weight"]
    if beside is not None:
        headings.append("if alike")
    out.print(make_table(headings, rows, left=(0, 5)))
