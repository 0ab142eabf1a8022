"""`faircount privacy`: compute the guarantee of given parameters."""

from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, FILE, FLOOR, JSON
from faircount.mechanisms.registry import names
from faircount.planning.one_question import SHEETS

if TYPE_CHECKING:
    from faircount.planning.statement import Statement

# Continuous Gaussian noise is no mechanism of ours, but the paper compares with it.
MECHANISMS = (*names(), SHEETS, "gaussian")

# How the further figures of a mechanism are called in the output.
LABELS = {
    "delta_one_more_insider": "delta, 1 insider more, at most",
    "s1_epsilon": "epsilon of the coordinator, sets alone",
    "s1_epsilon_paper": "the same in the paper",
    "s1_delta": "delta of the coordinator, with the result",
    "s2_delta": "delta of the aggregator, at most",
    "reader_delta": "delta of a reader",
    "theorem1_delta": "paper, Theorem 1: delta",
    "theorem2_delta": "paper, Theorem 2: delta",
    "classical_sigma": "paper, sigma for the same",
    "printed_share_delta": "paper, delta of its shares",
    "epsilon_each": "epsilon of each release",
    "moves": "cells that one person can move",
    "single_answer_epsilon": "epsilon of a single answer, at most",
}


@click.command()
@click.argument("mechanism", type=click.Choice(MECHANISMS), metavar="MECHANISM")
# Which options go with which mechanism is listed in the help and checked by the report.
@click.option(
    "--epsilon",
    type=float,
    help="Compute delta for this epsilon. laplace, dpdg and local mechanisms are built for it.",
)
@click.option("--delta", type=float, help=f"{DELTA}. Without --epsilon, epsilon is computed.")
@click.option("--p", type=float, help="Sampling probability (dpds, tss).")
@click.option("--floor", type=int, help=f"{FLOOR}: k of the paper's formulas.")
@click.option(
    "--users", type=int, help="Number of users; with --items shows the paper's bounds for dpds."
)
@click.option("--items", type=int, help="Number of items.")
@click.option(
    "--decoys", type=int, help="Fair coins per item that the adversary knows nothing about."
)
@click.option("--sigma", type=float, help="Standard deviation of the Gaussian noise on a count.")
@click.option("--alpha", type=float, help="Share of the items that a user reports (tss).")
@click.option(
    "--gamma",
    type=float,
    help="How much likelier a reported set contains the user's own item (tss).  [default: 1]",
)
@click.option(
    "--insiders",
    type=int,
    help="Colluding participants, whose noise or presence does not count.  [default: 0 for dpds, 1 "
    "for laplace and dpdg]",
)
@click.option(
    "--dropouts",
    type=int,
    help="Users who may drop out, whose noise or presence does not count.  [default: 0]",
)
@click.option(
    "--questionnaire",
    type=FILE,
    help="Several questions from a TOML file (server-joint, laplace-sheets): the guarantee is for "
    "all answers of a person together.",
)
@click.option(
    "--releases",
    default=1,
    show_default=True,
    help="Number of results about the same users, composed.",
)
@JSON
def privacy(mechanism: str, as_json: bool, **given: Any) -> None:
    """Compute the guarantee of MECHANISM with given parameters.

    Delta is exact, or "at most" says that it is an upper bound.

    \b
    dpds, dpcs      --p --floor, --epsilon or --delta [--users --items]
                    [--insiders] [--dropouts]
    tss, tss-prime  --p --alpha [--gamma] [--floor] [--items]
                    [--epsilon or --delta] [--dropouts]
    decoys          --decoys, --epsilon or --delta
    laplace         --epsilon [--delta] [--users] [--insiders] [--dropouts]
    server-joint    --epsilon [--delta] [--questionnaire]
    laplace-sheets  --questionnaire --epsilon [--delta] [--users]
                    [--insiders] [--dropouts]
    server-laplace  --epsilon [--delta]
    server-coins    --epsilon --delta
    placed-coins    --epsilon --delta [--users] [--insiders] [--dropouts]
    gaussian        --sigma, --epsilon or --delta
    dpdg            --users --epsilon --delta [--insiders] [--dropouts]
    grr, oue        --epsilon [--delta] [--items]
    duchi, pm       --epsilon [--delta]
    """
    from faircount.cli.show import print_result
    from faircount.planning.privacy_report import privacy as compute_privacy

    # The report itself refuses parameters that a mechanism does not have, so only given ones are
    # passed on.
    parameters = {name: value for name, value in given.items() if value is not None}
    print_result(compute_privacy(mechanism, **parameters), as_json, _show)


def _show(made: "Statement") -> None:
    from faircount.cli.show import console, make_definitions, print_notes

    out = console()
    # tss without epsilon and delta has figures for the coordinator alone, and no guarantee to
    # state.
    if made.sentence is not None:
        out.print(f"{made.sentence}\n", markup=False)

    out.print(make_definitions(_figures_of(made)))
    # The coordinator sees the sets of items and the result. What it learns from both together
    # depends on the
    # number of items.
    if "s1_delta" in made.more and made.more["s1_delta"] is None:
        out.print(
            "\nS1 also reads the result: give --items and --epsilon (or --delta) to see what it "
            "learns from both."
        )
    print_notes(out, made.notes)
    # The theorems print bounds on delta. One below the exact delta is an error of the paper; one
    # below another bound need not be.
    if made.is_bound:
        return
    for name in ("theorem1_delta", "theorem2_delta"):
        bound = made.paper.get(name)
        if bound is not None and made.delta is not None and bound < made.delta:
            out.print(
                "\nThe paper's bound does not hold here: the exact delta is larger "
                "(docs/explanation/errata.md)."
            )
            break


def _figures_of(made: "Statement") -> list[tuple[str, str]]:
    """The figures that are known, with their labels."""
    from faircount.accounting.guarantee import format_delta
    from faircount.cli.show import format_number
    from faircount.planning.statement import DELTA_DIGITS

    rows = []
    if made.epsilon is not None:
        rows.append(("epsilon", format_number(made.epsilon)))
    if made.delta is not None:
        label = "delta, at most" if made.is_bound else "delta"
        rows.append((label, format_delta(made.delta, DELTA_DIGITS)))
    if made.delta_zero_out is not None:
        rows.append(("delta, zero-out", format_delta(made.delta_zero_out, DELTA_DIGITS)))
    for name, value in {**made.more, **made.paper}.items():
        if value is None:
            continue
        text = format_number(value)
        # Rounded up like the deltas above; the paper's own bounds are printed as they are.
        if "delta" in name and name not in made.paper:
            text = format_delta(value, DELTA_DIGITS)
        rows.append((LABELS.get(name, name), text))
    return rows
