"""`faircount audit`: the mechanism's own code on the worst pair of data sets, and whether the claim survives."""

from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, JSON
from faircount.core.errors import ParameterError
from faircount.mechanisms.registry import names

if TYPE_CHECKING:
    from faircount.auditing.runs import AuditReport
    from faircount.mechanisms.base import Mechanism

MECHANISMS = names()


@click.command()
@click.argument("mechanism", type=click.Choice(MECHANISMS))
@click.option("--epsilon", type=float, help="What the mechanism is made for; for dpcs, dpds, tss: the claim.")
@click.option("--delta", type=float, help=f"{DELTA}: what decoys and dpdg are made for; for the others, the claim.")
@click.option("--p", type=float, help="Sampling probability (dpcs, dpds, tss).")
@click.option("--floor", type=int, help="Holders of every item besides the user in question.  [default: 0]")
@click.option("--decoys", type=int, help="Fair coins per item that decoys really flip, whatever the claim.")
@click.option("--items", type=int, help="Number of items.  [default: 3]")
@click.option("--users", type=int, help="Number of users; fewer are faster, and no easier to protect.")
@click.option("--alpha", type=float, help="Share of the items that a user reports (tss).")
@click.option("--gamma", type=float, help="How much likelier a set holds the own item (tss).  [default: 1]")
@click.option("--insiders", type=int, help="Colluding participants whose noise is known.  [default: 1]")
@click.option("--claim-epsilon", type=float, help="Epsilon of a claim to be tested instead of the mechanism's own.")
@click.option("--claim-delta", type=float, help="Delta of a claim to be tested instead of the mechanism's own.")
@click.option(
    "--through",
    type=click.Choice(["devices", "servers", "explicit", "masked", "two-stage"]),
    default="devices",
    show_default=True,
    help="Look at what leaves the devices, or at the results of whole surveys.",
)
@click.option(
    "--runs",
    type=int,
    help="Runs on each of the two data sets.  [default: what takes seconds: up to 200,000, at least 20,000; 200 whole "
    "surveys]",
)
@click.option("--confidence", default=0.999, show_default=True, help="A true claim survives with this probability.")
@click.option("--simulate-seed", type=int, help="Repeatable randomness, for examples and tests.")
@JSON
def audit(
    mechanism: str,
    as_json: bool,
    runs: int | None,
    confidence: float,
    through: str,
    simulate_seed: int | None,
    **given: Any,
) -> None:
    """Try to refute the privacy claim of MECHANISM by running its own code on two neighbouring data sets.

    Exit code 1 if the claim is refuted, 0 if not. An audit can refute a claim; it cannot prove one.
    """
    from faircount.auditing.runs import audit as run_audit
    from faircount.auditing.runs import default_runs
    from faircount.cli.show import progress, tell
    from faircount.core.entropy import SeededStream

    made, claim = _made(mechanism, given)
    pair = made.worst_pair(given["epsilon"] or 1.0)
    runs = default_runs(pair, through) if runs is None else runs
    _bearable(made, given, runs, pair.first.size)
    with progress(f"runs of {mechanism}", runs) as done:
        entropy = None if simulate_seed is None else SeededStream(simulate_seed)
        report = run_audit(
            made, **claim, runs=runs, confidence=confidence, through=through, entropy=entropy, progress=done
        )
    tell(report, as_json, _show)
    raise click.exceptions.Exit(int(report.refuted))


PARAMETERS = ("items", "users", "p", "floor", "alpha", "gamma", "insiders", "epsilon", "delta", "decoys")
"""Options that may be parameters of a mechanism; which of them are, its class says."""

CLAIM = ("epsilon", "delta", "claim_epsilon", "claim_delta")
"""Options that go with every mechanism."""

MOST_RESPONSES = 10**9
"""Users of all runs together, at most: a few minutes' work."""


def _made(name: str, given: dict[str, Any]) -> "tuple[Mechanism, dict[str, Any]]":
    """The mechanism, and the claim about it. Options that are parameters of the mechanism go to it."""
    from faircount.mechanisms.registry import mechanism

    kind = mechanism(name)
    takes = _options(kind)
    _checked(kind, takes, given)
    options = {key: given[key] for key in takes if given[key] is not None}
    if "items" in takes:
        options.setdefault("items", 3)
    if "p" in takes or "decoys" in options:  # the parameters are given; epsilon and delta are claimed about them
        options = {key: value for key, value in options.items() if key not in ("epsilon", "delta")}
    if "decoys" in options:
        options["coins"] = options.pop("decoys")
    return kind(**options), _claim(given)


def _options(kind: "type[Mechanism]") -> tuple[str, ...]:
    """The parameters of a mechanism that the command has options for; coins are called decoys there."""
    from dataclasses import fields

    own = {"decoys" if each.name == "coins" else each.name for each in fields(kind)}
    return tuple(name for name in PARAMETERS if name in own)


def _checked(kind: "type[Mechanism]", takes: tuple[str, ...], given: dict[str, Any]) -> None:
    """Refuse options that the mechanism does not have, and ask for those it needs."""
    every = tuple(dict.fromkeys((*takes, *CLAIM)))
    strange = [key for key, value in given.items() if value is not None and key not in every]
    if strange:
        listed = ", ".join(every).replace("_", "-")
        raise ParameterError(f"audit of {kind.name} has no {', '.join(strange)}; it takes {listed}")
    lacking = [f"--{key}" for key in kind.needs if given.get(key) is None]
    if lacking:
        raise ParameterError(f"audit {kind.name} needs {' and '.join(lacking)}: see faircount audit --help")


def _bearable(made: "Mechanism", given: dict[str, Any], runs: int, users: int) -> None:
    """Refuse runs that would take hours."""
    responses = 2 * runs * users
    if responses > MOST_RESPONSES:
        few = given["users"] is None or "p" in _options(type(made))
        fewer = "make" if few else "leave --users out, because a dozen are no easier to protect, or make"
        raise ParameterError(f"{runs:,} runs, twice, would take {responses:,} responses: {fewer} fewer --runs")


def _claim(given: dict[str, Any]) -> dict[str, Any]:
    """The claim asked for; else what the options say; a delta that is named nowhere is the mechanism's own."""
    delta = given["delta"] if given["claim_delta"] is None else given["claim_delta"]
    if given["claim_epsilon"] is not None:
        return {"epsilon": given["claim_epsilon"], "delta": 0.0 if delta is None else delta}
    return {"epsilon": given["epsilon"], "delta": delta}


def _show(report: "AuditReport") -> None:
    from faircount.accounting.guarantee import delta_in_words
    from faircount.cli.show import console, pairs

    out, claim = console(), f"{report.epsilon:.4g}, {delta_in_words(report.delta)}"
    out.print(
        pairs(
            [
                ("claim", f"({claim})-differential privacy of {report.mechanism}"),
                ("measured", f"epsilon is at least {report.lower_bound:.4g}, with confidence {report.confidence:g}"),
                ("would refute", report.power),
                ("runs", f"{report.runs:,} on each of two neighbouring data sets"),
            ]
        )
    )
    out.print(f"\n[bold]{'REFUTED' if report.refuted else 'not refuted'}[/bold]")
