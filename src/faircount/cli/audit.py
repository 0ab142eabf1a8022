"""`faircount audit`: the mechanism's own code on the worst pair of data sets, and whether the claim survives."""

from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA

if TYPE_CHECKING:
    from faircount.auditing.runs import AuditReport
    from faircount.mechanisms.base import Mechanism

MECHANISMS = ("dpcs", "dpds", "tss", "tss-prime", "laplace", "decoys", "dpdg", "grr", "oue", "duchi", "pm")


@click.command()
@click.argument("mechanism", type=click.Choice(MECHANISMS), metavar="MECHANISM")
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
@click.option("--runs", default=20_000, show_default=True, help="Runs on each of the two data sets.")
@click.option("--confidence", default=0.999, show_default=True, help="A true claim survives with this probability.")
@click.option("--simulate-seed", type=int, help="Repeatable randomness, for examples and tests.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def audit(mechanism: str, as_json: bool, runs: int, confidence: float, simulate_seed: int | None, **given: Any) -> None:
    """Try to refute the privacy claim of MECHANISM by running its own code on two neighbouring data sets.

    MECHANISM is one of dpcs, dpds, tss, tss-prime, laplace, decoys, dpdg, grr, oue, duchi, pm. Exit code 1 if the claim
    is refuted, 0 if not. An audit can refute a claim; it cannot prove one.
    """
    from faircount.auditing.runs import audit as run_audit
    from faircount.cli.show import print_json, progress
    from faircount.core.entropy import SeededStream

    made, claim = _made(mechanism, given)
    _bearable(mechanism, given, runs)
    with progress(f"runs of {mechanism}", runs) as done:
        entropy = None if simulate_seed is None else SeededStream(simulate_seed)
        report = run_audit(made, **claim, runs=runs, confidence=confidence, entropy=entropy, progress=done)
    if as_json:
        print_json(report.to_dict())
    else:
        _show(report)
    raise click.exceptions.Exit(int(report.refuted))


_SAMPLING = ("items", "users", "p", "floor")
_NOISE = ("items", "users", "insiders", "epsilon")
OPTIONS = {
    "dpcs": _SAMPLING,
    "dpds": _SAMPLING,
    "tss": (*_SAMPLING, "alpha", "gamma"),
    "tss-prime": (*_SAMPLING, "alpha", "gamma"),
    "laplace": _NOISE,
    "decoys": (*_NOISE, "delta", "decoys"),
    "dpdg": (*_NOISE, "delta"),
    "grr": ("items", "epsilon"),
    "oue": ("items", "epsilon"),
    "duchi": ("epsilon",),
    "pm": ("epsilon",),
}
"""Options that are parameters of the mechanism; those of the claim go with all of them."""

CLAIM = ("epsilon", "delta", "claim_epsilon", "claim_delta")

NEEDS = {
    "dpcs": ("p", "epsilon"),
    "dpds": ("p", "epsilon"),
    "tss": ("p", "alpha", "epsilon"),
    "tss-prime": ("p", "alpha", "epsilon"),
    "decoys": ("epsilon", "delta"),
    "dpdg": ("epsilon", "delta"),
}
"""Options without which there is no mechanism or no claim; all others need --epsilon."""

MOST_RESPONSES = 10**9
"""Users of all runs together, at most: a few minutes' work."""


def _made(name: str, given: dict[str, Any]) -> "tuple[Mechanism, dict[str, Any]]":
    """The mechanism, and the claim about it."""
    import faircount as fc

    _checked(name, given)
    kinds: dict[str, Any] = {"dpcs": fc.DPCS, "dpds": fc.DPDS, "tss": fc.TSS, "tss-prime": fc.TSSPrime}
    kinds |= {"laplace": fc.Laplace, "decoys": fc.Decoys, "dpdg": fc.DPDG}
    kinds |= {"grr": fc.GRR, "oue": fc.OUE, "duchi": fc.Duchi, "pm": fc.PM}
    options = {key: given[key] for key in OPTIONS[name] if given[key] is not None}
    if "items" in OPTIONS[name]:
        options.setdefault("items", 3)
    if "decoys" in options:  # so many coins, whatever is claimed about them
        options["coins"] = options.pop("decoys")
        options = {key: value for key, value in options.items() if key not in ("epsilon", "delta")}
    return kinds[name](**options), _claim(name, given)


def _checked(name: str, given: dict[str, Any]) -> None:
    """Refuse options that the mechanism does not have, and ask for those it needs."""
    from faircount.core.errors import ParameterError

    takes = tuple(dict.fromkeys((*OPTIONS[name], *CLAIM)))
    strange = [key for key, value in given.items() if value is not None and key not in takes]
    if strange:
        listed = ", ".join(takes).replace("_", "-")
        raise ParameterError(f"audit of {name} has no {', '.join(strange)}; it takes {listed}")
    lacking = [f"--{key}" for key in NEEDS.get(name, ("epsilon",)) if given[key] is None]
    if lacking:
        raise ParameterError(f"audit {name} needs {' and '.join(lacking)}: see faircount audit --help")


def _bearable(name: str, given: dict[str, Any], runs: int) -> None:
    """Refuse runs that would take hours: of sampling mechanisms the holders of two items run, of noise all users."""
    from faircount.core.errors import ParameterError

    noisy = OPTIONS[name][: len(_NOISE)] == _NOISE
    responses = 2 * runs * max(1, (given["users"] if noisy else given["floor"]) or 0)
    if responses > MOST_RESPONSES:
        fewer = "leave --users out, because a dozen are no easier to protect, or make" if noisy else "make"
        raise ParameterError(f"{runs:,} runs, twice, would take {responses:,} responses: {fewer} fewer --runs")


def _claim(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The claim asked for; else what the options say; a delta that is named nowhere is the mechanism's own."""
    if given["claim_epsilon"] is not None:
        delta = given["delta"] if given["claim_delta"] is None else given["claim_delta"]
        return {"epsilon": given["claim_epsilon"], "delta": 0.0 if delta is None else delta}
    return {"epsilon": given["epsilon"], "delta": given["claim_delta"] or given["delta"]}


def _show(report: "AuditReport") -> None:
    import math

    from faircount.cli.show import console, pairs

    out, exposed = console(), report.detectable
    shows = f"{exposed:.4g} or more" if math.isfinite(exposed) else "none: make more runs"
    out.print(
        pairs(
            [
                ("claim", f"({report.epsilon:.4g}, {report.delta:.3g})-differential privacy of {report.mechanism}"),
                ("measured", f"epsilon is at least {report.lower_bound:.4g}, with confidence {report.confidence:g}"),
                ("would have shown", f"a true epsilon of {shows}"),
                ("runs", f"{report.runs:,} on each of two neighbouring data sets"),
            ]
        )
    )
    out.print(f"\n[bold]{'REFUTED' if report.refuted else 'not refuted'}[/bold]")
