"""`faircount audit`: try to refute a privacy claim by running the mechanism's own code."""

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import click

from faircount.cli.options import DELTA, FILE, FLOOR, JSON
from faircount.core.errors import ParameterError
from faircount.mechanisms.registry import names
from faircount.planning.one_question import SHEETS

if TYPE_CHECKING:
    from faircount.auditing.report import AuditReport
    from faircount.mechanisms.base import Mechanism

# The last one is audited with the questions of a file, not with a number of items.
MECHANISMS = (*names(), SHEETS)

# Options that may be parameters of a mechanism; its class says which of them are.
PARAMETERS = (
    "items",
    "users",
    "p",
    "floor",
    "alpha",
    "gamma",
    "insiders",
    "epsilon",
    "delta",
    "decoys",
)

# Options that go with every mechanism.
CLAIM = ("epsilon", "delta", "claim_epsilon", "claim_delta")

# Responses of all runs together; more would take longer than a few minutes.
MAX_RESPONSES = 10**9


@click.command(epilog=f"Mechanisms: {', '.join(MECHANISMS)}.")
@click.argument("mechanism", type=click.Choice(MECHANISMS), metavar="MECHANISM")
# Parameters of the mechanism. They have no defaults here, so that an option which the mechanism
# does not have can be told from one that was left out.
@click.option(
    "--epsilon",
    type=float,
    help="Epsilon that the mechanism is built for; for dpcs, dpds and tss the claim.",
)
@click.option(
    "--delta",
    type=float,
    help=f"{DELTA}; decoys and dpdg are built for it, for the others it is the claim.",
)
@click.option("--p", type=float, help="Sampling probability (dpcs, dpds, tss).")
@click.option("--floor", type=int, help=f"{FLOOR}.  [default: 0]")
@click.option(
    "--decoys", type=int, help="Fair coins per item that decoys flips, whatever the claim is."
)
@click.option("--items", type=int, help="Number of items.  [default: 3]")
@click.option(
    "--users", type=int, help="Number of users. Fewer are faster, and no easier to protect."
)
@click.option("--alpha", type=float, help="Share of the items that a user reports (tss).")
@click.option(
    "--gamma",
    type=float,
    help="How much likelier a reported set contains the user's own item (tss).  [default: 1]",
)
@click.option(
    "--insiders", type=int, help="Colluding participants whose noise is known.  [default: 1]"
)
@click.option(
    "--questionnaire",
    type=FILE,
    help=f"Several questions from a TOML file ({SHEETS}), with --epsilon for all answers together.",
)
# The claim, where it is not what the mechanism was built for.
@click.option(
    "--claim-epsilon",
    type=float,
    help="Test this epsilon, not the mechanism's own; without a delta as pure privacy (delta 0).",
)
@click.option("--claim-delta", type=float, help="Test this delta, not the mechanism's own.")
@click.option(
    "--through",
    type=click.Choice(["devices", "servers", "explicit", "masked", "two-stage"]),
    default="devices",
    show_default=True,
    help="Look at what leaves the devices, or at whole surveys in a topology.",
)
@click.option(
    "--runs",
    type=int,
    help="Runs on each of the two data sets.  [default: what takes seconds, 20,000 to 200,000; "
    "200 whole surveys]",
)
@click.option(
    "--confidence",
    default=0.999,
    show_default=True,
    help="Probability that a true claim is not refuted, whoever is played.",
)
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
    """Try to refute the privacy claim of MECHANISM by running its code.

    The code runs many times on two neighbouring data sets, and what an adversary sees of both is
    compared, for every adversary that the guarantee names. Besides the claim, points of the
    mechanism's own guarantee at other epsilons are tested, unless you claim a delta of your own.
    The audit ends early if it can refute one of them. It can refute a claim; it cannot prove one.
    The exit code is 1 if the claim is refuted and 0 if it is not.
    """
    from faircount.auditing.runs import audit as run_audit
    from faircount.auditing.runs import default_runs
    from faircount.cli.show import print_result, progress_bar
    from faircount.core.entropy import SeededStream

    made = _make_mechanism(mechanism, given)
    pair = made.worst_pair(given["epsilon"] or 1.0)
    if runs is None:
        runs = default_runs(pair, through)
    _check_size(made, given, runs, pair.first.size)
    entropy = None if simulate_seed is None else SeededStream(simulate_seed)
    with progress_bar(f"runs of {mechanism}", runs) as update:
        report = run_audit(
            made,
            **_find_claim(made, given),
            runs=runs,
            confidence=confidence,
            through=through,
            entropy=entropy,
            progress=update,
        )
    print_result(report, as_json, _show)
    raise click.exceptions.Exit(int(report.refuted))


def _make_mechanism(name: str, given: dict[str, Any]) -> "Mechanism":
    """The mechanism with the options that are its parameters."""
    from faircount.mechanisms.registry import mechanism

    if name == SHEETS:
        return _make_sheets(given)
    kind = mechanism(name)
    accepted = _options_of(kind)
    _check_options(kind, accepted, given)
    options = {}
    for key in accepted:
        if given[key] is not None:
            options[key] = given[key]
    if "items" in accepted:
        options.setdefault("items", 3)
    # With p or decoys the mechanism is fully given, and epsilon and delta are a claim about it.
    if "p" in accepted or "decoys" in options:
        options.pop("epsilon", None)
        options.pop("delta", None)
    if "decoys" in options:
        options["coins"] = options.pop("decoys")
    return kind(**options)


def _make_sheets(given: dict[str, Any]) -> "Mechanism":
    """The noise of participants for the questions of a file, with the shares that a plan finds."""
    from faircount.core.questions.form import read_form
    from faircount.mechanisms.secret_shared import AUDITED_USERS
    from faircount.planning.split_plan import Crowd, make_split_plan

    allowed = {"questionnaire", "users", "insiders", *CLAIM}
    strange = [key for key, value in given.items() if value is not None and key not in allowed]
    path = given["questionnaire"]
    if strange or path is None or given["epsilon"] is None:
        raise ParameterError(
            f"audit {SHEETS} needs --questionnaire and --epsilon, and takes --users and --insiders"
        )
    insiders = 1 if given["insiders"] is None else given["insiders"]
    # Few people are no easier to protect, and their noise is that of a survey among them.
    users = given["users"] or AUDITED_USERS + insiders
    crowd = Crowd(users, insiders)
    return make_split_plan(read_form(path), users, given["epsilon"], crowd).mechanism


def _options_of(kind: "type[Mechanism]") -> list[str]:
    """The options that are parameters of a mechanism; its `coins` are the option `decoys`."""
    parameters = {field.name for field in fields(kind)}
    if "coins" in parameters:
        parameters.add("decoys")
    return [name for name in PARAMETERS if name in parameters]


def _check_options(kind: "type[Mechanism]", accepted: list[str], given: dict[str, Any]) -> None:
    """Refuse options that the mechanism does not have, and ask for those it needs."""
    allowed = dict.fromkeys((*accepted, *CLAIM))
    # An option that is silently ignored would audit another mechanism than the one asked for.
    unknown = [key for key, value in given.items() if value is not None and key not in allowed]
    if unknown:
        listed = ", ".join(allowed).replace("_", "-")
        raise ParameterError(f"audit of {kind.name} has no {', '.join(unknown)}; it takes {listed}")
    lacking = [f"--{key}" for key in kind.required_parameters if given.get(key) is None]
    if lacking:
        raise ParameterError(
            f"audit {kind.name} needs {' and '.join(lacking)}: see faircount audit --help"
        )


def _check_size(made: "Mechanism", given: dict[str, Any], runs: int, users: int) -> None:
    """Refuse runs that would take hours."""
    responses = 2 * runs * users
    if responses <= MAX_RESPONSES:
        return
    advice = "make fewer --runs"
    # Sampling mechanisms need as many users as their floor asks for.
    if given["users"] is not None and "p" not in _options_of(type(made)):
        advice = "leave --users out, because a dozen are no easier to protect, or make fewer --runs"
    raise ParameterError(f"{runs:,} runs, twice, would take {responses:,} responses: {advice}")


def _find_claim(made: "Mechanism", given: dict[str, Any]) -> dict[str, Any]:
    """The claim to test; a delta that is no claim is left out, and so is the mechanism's own."""
    delta = given["delta"]
    # A mechanism that was built for this delta claims its own guarantee, at every epsilon.
    if delta is not None and delta == made.promise[1]:
        delta = None
    if given["claim_delta"] is not None:
        delta = given["claim_delta"]
    if given["claim_epsilon"] is None:
        return {"epsilon": given["epsilon"], "delta": delta}
    return {"epsilon": given["claim_epsilon"], "delta": delta}


def _show(report: "AuditReport") -> None:
    from faircount.cli.show import console, make_definitions

    out = console()
    runs = f"{report.runs:,}"
    if report.runs < report.planned_runs:
        runs = f"{runs} of {report.planned_runs:,} planned"
    claim = f"{_describe_claim(report.epsilon, report.delta)} of {report.mechanism}"
    if report.is_own_point:
        claim += ", which its guarantee says too"
    rows = [
        ("claim", claim),
        *_describe_verdicts(report),
        ("would refute", report.power),
        ("runs", f"{runs} on each of two neighbouring data sets"),
        ("confidence", f"{report.confidence:g}, over all that was tried"),
    ]
    out.print(make_definitions(rows))
    out.print(f"\n[bold]{report.verdict}[/bold]")


def _describe_verdicts(report: "AuditReport") -> list[tuple[str, str]]:
    """Whom the audit played, and what it measured for each of them."""
    rows = []
    for verdict in report.verdicts:
        finding = verdict.decisive
        measured = f"epsilon is at least {finding.epsilon:.4g}"
        if (finding.claim.epsilon, finding.claim.delta) != (report.epsilon, report.delta):
            measured += f"; claimed {_describe_claim(finding.claim.epsilon, finding.claim.delta)}"
        if verdict.refuted:
            measured += "; refuted"
        rows += [("against", verdict.played), ("measured", measured)]
    return rows


def _describe_claim(epsilon: float, delta: float) -> str:
    from faircount.accounting.guarantee import format_delta

    return f"({epsilon:.4g}, {format_delta(delta)})-differential privacy"
