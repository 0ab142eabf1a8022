"""`faircount costs`: Table I of the paper, formulas beside counters of running code."""

from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import JSON

if TYPE_CHECKING:
    from faircount.reproduction.costs.table import CostTable

TITLES = {
    "dpds": "DPDS (Algorithm 2): every user shares with every user",
    "tss": "TSS (Algorithm 3): reporters share among elected helpers",
    "tss_prime": "TSS' (Algorithm 4), added to TSS: d_j = phi + 1 - m_j helpers for an item of m_j "
    "<= phi reporters",
    "seeded": "DPDS with seeded shares: a share is sent as the 16-byte seed that expands to it",
    "servers": "DPDS between two servers: one row to the coordinator (S1), one seed to the "
    "aggregator (S2)",
}


@click.command()
@click.option("--users", default=60, show_default=True, help="n, number of users.")
@click.option("--items", default=10, show_default=True, help="N, number of items.")
@click.option(
    "--alpha",
    type=float,
    help="Share of the items that a user of TSS reports.  [default: 0.4, rounded to whole items]",
)
@click.option(
    "--gamma",
    default=1.0,
    show_default=True,
    help="How much likelier a reported set contains the user's own item.",
)
@click.option(
    "--phi",
    type=click.IntRange(min=1),
    help="Number of colluding users that TSS' protects against.  [default: a few above alpha n]",
)
@click.option(
    "--runs", default=20, show_default=True, help="Surveys of TSS and TSS' that are averaged."
)
@click.option(
    "--seed",
    default=1,
    show_default=True,
    help="For all randomness of the counted surveys; nothing is released.",
)
@JSON
def costs(as_json: bool, seed: int, **given: Any) -> None:
    """Count what every party draws, adds and sends, beside the formulas of the paper's Table I.

    Costs of a user are averages over all users. Where a formula of the paper does not hold, a
    corrected one is given.
    """
    from faircount.cli.show import print_result
    from faircount.core.entropy import SeededStream
    from faircount.reproduction.costs.table import count_costs

    # Seeded randomness is fine here: what is printed are costs, not answers of anybody.
    table = count_costs(**given, seed=seed, entropy=SeededStream(seed))
    print_result(table, as_json, _show)


def _show(table: "CostTable") -> None:
    from faircount.cli.show import console, format_number, make_table

    screen = console()
    values = table.to_dict()
    screen.print(
        f"n = {values['users']}, N = {values['items']}, α = {values['alpha']:.4g}, "
        f"γ = {values['gamma']:g}, phi = {values['phi']}, q = {values['q']}"
    )
    for name, rows in values["protocols"].items():
        cells = []
        for row in rows:
            paper = ["", ""]
            if row["printed"]:
                paper = [row["printed"], format_number(row["printed_value"])]
            # A formula that the paper has right is not repeated.
            corrected = ["", ""]
            if row["printed"] != row["corrected"]:
                corrected = [row["corrected"], format_number(row["corrected_value"])]
            cells.append([row["cost"], *paper, *corrected, format_number(row["counted"])])
        screen.print(f"\n[bold]{TITLES[name]}[/bold]")
        headings = ["cost", "paper", "", "corrected", "", "counted"]
        screen.print(make_table(headings, cells, left=(0, 1, 3)))
    sent = ", ".join(
        f"{name} {count:,.0f}" for name, count in values["bytes_sent_per_user"].items()
    )
    screen.print(f"\nBytes that a user sends, elements packed: {sent}.")
    screen.print(
        "A seed is shorter than the share it stands for when N elements have more than 16 bytes. "
        "With two servers a user sends one row and one seed, however many users there are."
    )
