"""`faircount privacy`: the exact guarantee of given parameters, with what the paper prints beside it."""

from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, JSON
from faircount.mechanisms.registry import names

if TYPE_CHECKING:
    from faircount.planning.statement import Statement

MECHANISMS = (*names(), "gaussian")  # continuous noise is no mechanism of ours, but the paper compares with it


@click.command()
@click.argument("mechanism", type=click.Choice(MECHANISMS), metavar="MECHANISM")
@click.option(
    "--epsilon",
    type=float,
    help="Privacy loss; delta is computed. Of laplace, dpdg and local ones: what they are made for.",
)
@click.option("--delta", type=float, help=f"{DELTA}, instead of --epsilon; epsilon is computed.")
@click.option("--p", type=float, help="Sampling probability (dpds, tss).")
@click.option("--floor", type=int, help="k of the formula: holders of every item besides the user in question.")
@click.option("--users", type=int, help="Number of users; with --items it brings the paper's bounds for dpds.")
@click.option("--items", type=int, help="Number of items.")
@click.option("--decoys", type=int, help="Fair coins per item that the adversary knows nothing about.")
@click.option("--sigma", type=float, help="Standard deviation of the Gaussian noise on a count.")
@click.option("--alpha", type=float, help="Share of the items that a user reports (tss).")
@click.option("--gamma", type=float, help="How much likelier a reported set holds the own item (tss).  [default: 1]")
@click.option(
    "--insiders",
    type=int,
    help="Colluding participants, taken off the floor or the noise.  [default: 0 for dpds, 1 for laplace and dpdg]",
)
@click.option("--dropouts", type=int, help="Users who may vanish, taken off the floor or the noise.  [default: 0]")
@click.option("--releases", default=1, show_default=True, help="Releases to the same users, composed.")
@JSON
def privacy(mechanism: str, as_json: bool, **given: Any) -> None:
    """Compute the exact guarantee of MECHANISM with given parameters.

    \b
    dpds, dpcs      --p --floor, --epsilon or --delta [--users --items]
                    [--insiders] [--dropouts]
    tss, tss-prime  --p --alpha [--gamma] [--floor] [--items]
                    [--epsilon or --delta] [--dropouts]
    decoys          --decoys, --epsilon or --delta
    laplace         --epsilon [--delta] [--users] [--insiders] [--dropouts]
    server-laplace  --epsilon [--delta]
    server-coins    --epsilon --delta
    placed-coins    --epsilon --delta [--users] [--insiders] [--dropouts]
    gaussian        --sigma, --epsilon or --delta
    dpdg            --users --epsilon --delta [--insiders] [--dropouts]
    grr, oue        --epsilon [--delta] [--items]
    duchi, pm       --epsilon [--delta]
    """
    from faircount.cli.show import tell
    from faircount.planning.privacy_report import statement

    made = statement(mechanism, **{name: value for name, value in given.items() if value is not None})
    tell(made, as_json, _show)


def _show(made: "Statement") -> None:
    from faircount.accounting.guarantee import Guarantee, Relation
    from faircount.cli.show import console, notes, number, pairs, promise

    out = console()
    if made.epsilon is not None and made.delta is not None:
        said = Guarantee(made.epsilon, made.delta, Relation.REPLACE_ONE, made.adversary, made.condition)
        several = f"{made.releases} releases of {made.mechanism}" if made.releases > 1 else made.mechanism
        out.print(f"{several}: {promise(said)}\n", markup=False)
    rows = [("epsilon", number(made.epsilon)), ("delta", _delta(made.delta))]
    rows.append(("delta, zero-out", _delta(made.delta_zero_out)))
    rows += [(WORDS.get(name, name), number(value)) for name, value in (*made.more.items(), *made.paper.items())]
    out.print(pairs(row for row in rows if row[1] != "-"))
    if "s1_delta" in made.more and made.more["s1_delta"] is None:
        out.print("\nS1 also reads the result: give --items and --epsilon (or --delta) for what it learns from both.")
    notes(out, made.notes)
    bounds = [made.paper.get(name) for name in ("theorem1_delta", "theorem2_delta")]
    if any(bound is not None and made.delta is not None and bound < made.delta for bound in bounds):
        out.print("\nThe paper's bound does not hold here: the exact delta is larger (docs/errata.md).")


def _delta(value: float | None) -> str:
    from faircount.accounting.guarantee import delta_in_words

    return "-" if value is None else delta_in_words(value, 4)


WORDS = {
    "delta_one_more_insider": "delta, 1 insider more",
    "s1_epsilon": "epsilon of S1, sets alone",
    "s1_epsilon_paper": "the same in the paper",
    "s1_delta": "delta of S1, with the result",
    "s2_delta": "delta of S2, at most",
    "reader_delta": "delta of a reader",
    "theorem1_delta": "paper, Theorem 1: delta",
    "theorem2_delta": "paper, Theorem 2: delta",
    "classical_sigma": "paper, sigma for the same",
    "printed_share_delta": "paper, delta of its shares",
    "epsilon_each": "epsilon of each release",
}
