"""`faircount costs`: Table I of the paper, formulas beside counters of running code."""

from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import JSON

if TYPE_CHECKING:
    from faircount.experiments.costs import CostTable

TITLES = {
    "dpds": "DPDS (Algorithm 2): everybody shares with everybody",
    "tss": "TSS (Algorithm 3): reporters share among elected helpers",
    "tss_prime": "TSS' (Algorithm 4), what it adds: d_j = phi + 1 - m_j helpers for an item of m_j < phi + 1 reporters",
    "seeded": "DPDS with seeded shares: a share is sent as the 16-byte seed that expands to it",
    "servers": "DPDS between two servers: one row to S1, one seed to S2",
}


@click.command()
@click.option("--users", default=60, show_default=True, help="n, number of users.")
@click.option("--items", default=10, show_default=True, help="N, number of items.")
@click.option(
    "--alpha", type=float, help="Share of the items that a user of TSS reports.  [default: 0.4, to whole items]"
)
@click.option("--gamma", default=1.0, show_default=True, help="How much likelier a set holds the own item.")
@click.option(
    "--phi", type=click.IntRange(min=1), help="Colluding users that TSS' is made for.  [default: a few above alpha n]"
)
@click.option("--runs", default=20, show_default=True, help="Surveys of TSS that are averaged.")
@click.option("--seed", default=1, show_default=True, help="Of the users' sets and helpers; costs only, no release.")
@JSON
def costs(as_json: bool, seed: int, **given: Any) -> None:
    """Count what every party draws, adds and sends, and compare with the formulas of the paper's Table I.

    Costs of a user are averages over all users. Corrected formulas stand where the paper's do not hold.
    """
    from faircount.cli.show import tell
    from faircount.core.entropy import SeededStream
    from faircount.experiments.costs import costs as count

    made = count(**given, seed=seed, entropy=SeededStream(seed))
    tell(made, as_json, _show)


def _show(made: "CostTable") -> None:
    from faircount.cli.show import console, grid, number

    out, said = console(), made.to_dict()
    sizes = f"n = {said['users']}, N = {said['items']}, α = {said['alpha']:.4g}, γ = {said['gamma']:g}"
    out.print(f"{sizes}, phi = {said['phi']}, q = {said['q']}")
    for name, rows in said["protocols"].items():
        cells = []
        for row in rows:
            paper = [row["printed"], number(row["printed_value"])] if row["printed"] else ["", ""]
            ours = [row["corrected"], number(row["corrected_value"])]
            corrected = ["", ""] if row["printed"] == row["corrected"] else ours
            cells.append([row["cost"], *paper, *corrected, number(row["counted"])])
        out.print(f"\n[bold]{TITLES[name]}[/bold]")
        out.print(grid(["cost", "paper", "", "corrected", "", "counted"], cells, left=(0, 1, 3)))
    sent = ", ".join(f"{name} {value:,.0f}" for name, value in said["bytes_sent_per_user"].items())
    out.print(f"\nBytes that a user sends, elements packed: {sent}.")
    out.print("Seeds pay off where a row of N elements is longer than 16 bytes; two servers, from a few users on.")
