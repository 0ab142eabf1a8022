"""`faircount run`: a private histogram out of a table."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, FILE, JSON, listed
from faircount.core.errors import FaircountError, ParameterError
from faircount.mechanisms.registry import frequency_names

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.analysis.groups import GroupedHistogram
    from faircount.analysis.histogram import Histogram
    from faircount.analysis.ledger_file import Account

MECHANISMS = ("auto", *frequency_names())


@click.command()
@click.argument("table", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
@click.option("--column", required=True, help="Column that holds the answers, one per row.")
@click.option("--epsilon", type=float, help="Privacy loss of the release; with --groups every level has its own.")
@click.option("--delta", type=float, default=1e-6, show_default=True, help=f"{DELTA}.")
@click.option(
    "--mechanism",
    type=click.Choice(MECHANISMS),
    default="auto",
    metavar="NAME",
    show_default=True,
    help=f"One of {', '.join(MECHANISMS)}; auto takes the one that plan recommends.",
)
@click.option("--encoding", help="Encoding of a CSV file, such as cp1252.  [default: UTF-8]")
@click.option(
    "--domain",
    metavar="a,b,c|@FILE",
    help="The public list of items: here (an item with a comma in double quotes), or in a file, one item a line.",
)
@click.option(
    "--domain-from-data", is_flag=True, help="Take the list from the answers. The guarantee does not cover it."
)
@click.option(
    "--floor", default=0, show_default=True, help="Other holders every item has for sure: dpds, dpcs, tss-prime."
)
@click.option(
    "--colluding", default=0.0, show_default=True, help="Share of users who may pool what they know; at least 1 user."
)
@click.option("--user", metavar="COLUMN", help="Column that tells people apart: only the first row of each counts.")
@click.option(
    "--missing",
    type=click.Choice(["refuse", "drop", "other"]),
    default="refuse",
    show_default=True,
    help="Rows without an answer: refuse, leave out (the guarantee says so), or count as --other.",
)
@click.option(
    "--outside",
    type=click.Choice(["refuse", "drop", "other"]),
    help="Answers that are not on the list: refuse, leave out (the guarantee says so), or count as --other.  "
    "[default: refuse, or other if --other is given]",
)
@click.option(
    "--missing-spellings",
    metavar="NA,n/a",
    help="Texts that count as no answer. Without it only empty and blank cells do.",
)
@click.option("--other", metavar="ITEM", help="The item of the list that answers outside it count as.")
@click.option("--groups", metavar="COLUMN", help="Column of privacy levels: each level is a survey of its own.")
@click.option(
    "--public-groups",
    is_flag=True,
    help="Declare that it is public who is in which group: sizes of groups are printed exactly.",
)
@click.option("--levels", metavar="a=0.5,b=2|@FILE", help="Epsilon of every level; without it the levels are epsilons.")
@click.option(
    "--weights",
    type=click.Choice(["total", "vwa", "uwa"]),
    default="total",
    show_default=True,
    help="How groups are put together: by total variance, noise variance, or size.",
)
@click.option("--anyway", is_flag=True, help="Run it although the error would swamp the answers.")
@click.option("--ledger", type=FILE, help="Charge the budget in this file, or refuse: see faircount budget.")
@click.option("--population", metavar="NAME", help="Whose budget in that file: the people of this table.")
@click.option("--level", default=0.95, show_default=True, help="Confidence of the intervals.")
@click.option(
    "--covers",
    type=click.Choice(["users", "population"]),
    default="users",
    show_default=True,
    help="What the intervals speak about: the users of the table, or the population they were drawn from.",
)
@JSON
@click.option("--out", type=FILE, help="Write the same JSON to a file.")
@click.option("--csv", "csv_file", type=FILE, help="Write estimates and intervals as CSV.")
@click.option("--plot", type=FILE, help="Draw bars with intervals (PNG or SVG).")
@click.option("--simulate-seed", type=int, help="Repeatable randomness for examples and tests: NOT for a release.")
def run(
    table: Path,
    as_json: bool,
    out: Path | None,
    csv_file: Path | None,
    plot: Path | None,
    level: float,
    covers: str,
    simulate_seed: int | None,
    ledger: Path | None,
    population: str | None,
    **terms: Any,
) -> None:
    """Estimate how often each item occurs in a column of TABLE, privately.

    TABLE is a CSV file (also .gz), a Parquet file, or - for CSV on standard input.

    Every row acts as a user of the full protocol: it adds its noise, makes real secret shares, and only the sum of all
    is opened. In Python this is fc.histogram; `faircount histogram` is the same command.
    """
    from faircount.cli.deliver import Targets, deliver
    from faircount.cli.show import console, print_json
    from faircount.core.validation import fraction
    from faircount.estimation.drawing import result_file

    fraction("level", level)
    targets = Targets(out, csv_file, plot)
    targets.check(None if str(table) == "-" else table)
    account = _account(ledger, population)
    result = _result(table, simulate_seed, {**terms, "ledger": account})
    said = result.to_dict(level, covers=covers)

    def show() -> None:
        if as_json:
            print_json(said)
        else:
            _show(console(), result, level, covers)

    try:
        deliver(said, show, targets, lambda path: result_file(result, path, level, covers))
    except FaircountError:  # it was printed or kept all the same
        _settle(account)
        raise
    _settle(account)
    if not as_json:
        for path in targets.paths:
            click.echo(f"Written to {path}")
        if account is not None:
            click.echo(f"Budget of {account.population}: {account.left()}")


def _account(ledger: Path | None, population: str | None) -> "Account | None":
    if ledger is None and population is None:
        return None
    from faircount.analysis.ledger_file import account_of

    return account_of(ledger, population)


def _settle(account: "Account | None") -> None:
    """The result is printed or kept: the ledger may say so."""
    problem = None if account is None else account.settle()
    if problem is not None:
        click.echo(f"faircount: {problem}", err=True)


def _result(table: Path, seed: int | None, terms: dict[str, Any]) -> "Histogram | GroupedHistogram":
    from faircount.analysis.histogram import histogram
    from faircount.cli.show import progress
    from faircount.core.entropy import SeededStream

    domain, levels = terms.pop("domain"), terms.pop("levels")
    terms["domain"] = None if domain is None else listed("--domain a,b,c", domain)
    spellings = terms.pop("missing_spellings")
    terms["missing_spellings"] = () if spellings is None else listed("--missing-spellings NA,n/a", spellings)
    terms["outside"] = terms["outside"] or ("refuse" if terms["other"] is None else "other")
    if terms["groups"] is not None and terms["epsilon"] is not None:
        raise ParameterError("with --groups every level has its own epsilon: leave --epsilon out, or see --levels")
    if levels is not None:
        if terms["groups"] is None:
            raise ParameterError("--levels says what the values of --groups COLUMN mean: give --groups too")
        terms["epsilon"] = dict(map(_pair, listed("--levels a=0.5,b=2", levels)))
    elif terms["groups"] is None and terms["epsilon"] is None:
        raise ParameterError("give --epsilon, the privacy loss of the release; 1 is a common choice")
    with progress(f"users of {table.name}") as done:
        entropy = None if seed is None else SeededStream(seed)
        return histogram(table, terms.pop("column"), entropy=entropy, progress=done, **terms)


def _pair(entry: str) -> tuple[str, float]:
    name, _, epsilon = entry.rpartition("=")
    try:
        return name.strip(), float(epsilon)
    except ValueError:
        raise ParameterError(f"--levels: {entry!r} is not of the form level=epsilon") from None


def _show(out: "Console", result: "Histogram | GroupedHistogram", level: float, covers: str) -> None:
    from faircount.cli.show import bars, notes, promise
    from faircount.estimation.presentation import AGAIN, SIMULATION

    if result.simulation:
        out.print(f"[bold]{SIMULATION}[/bold]\n")
    said = result.to_dict(level, covers=covers)
    out.print(f"{said['mechanism']}, {result.included:,} users, {len(result.items)} items\n")
    bars(out, result, level=level, covers=covers)
    notes(out, result.notes)
    if "groups" in said:
        _show_groups(out, said)
    out.print(f"\nIntervals: {level:.0%} each; {result.interval(level, covers=covers).method}.", markup=False)
    out.print(f"Supposed: {result.supposed}.", markup=False)
    out.print(f"Privacy: {promise(result.guarantee)}", markup=False)
    out.print(f"Again: {AGAIN}.", markup=False)


def _show_groups(out: "Console", said: dict[str, Any]) -> None:
    from faircount.accounting.guarantee import delta_in_words
    from faircount.cli.show import grid

    rows = [
        [
            g["group"],
            f"{g['users']:,}",
            f"{g['epsilon']:.4g}",
            delta_in_words(g["delta"], 2),
            g["mechanism"],
            f"{g['weight']:.3f}",
        ]
        for g in said["groups"]
    ]
    out.print(f"\nGroups, put together with {said['weighting']} weights")
    out.print(grid(["group", "users", "epsilon", "delta", "mechanism", "weight"], rows, left=(0, 4)))
