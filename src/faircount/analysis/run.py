"""Run a whole survey in memory: every answer acts as a user.

`topology` says how the secret shares travel. "servers", "explicit", "masked" and "two-stage" play
the protocol itself, with encrypted messages between users, coordinator and aggregator
(`protocol.simulator.play`). "shares" does the same arithmetic without messages, for any number of
users. By default mechanisms whose users all draw from one distribution, and prove nothing, go
through "servers" up to 2,000 users, and everything else through "shares". Mechanisms that make no
shares have no topology.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from numpy.typing import ArrayLike

from faircount.accounting.conditions import ROWS_ARE_PEOPLE
from faircount.analysis.read import check_rows_are_people
from faircount.core.arguments import describe_value, explain_arguments
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import check_integer, check_numbers
from faircount.estimation.result import MeanResult, Result
from faircount.mechanisms.base import (
    DEFAULT_DELTA,
    Collected,
    FrequencyMechanism,
    Mechanism,
    Progress,
)
from faircount.mechanisms.local_mean import LocalMean
from faircount.mechanisms.secret_shared import EVERY_USER_UP_TO, as_field_mechanism

TOPOLOGIES = ("shares", "servers", "explicit", "masked", "two-stage")

# Deltas at which a survey may state its guarantee where the usual delta is out of reach.
LARGER_DELTAS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.49)


class Options(TypedDict, total=False):
    """What may be given besides answers and mechanism."""

    topology: str | None
    proofs: bool
    parties: int | None
    ledger: str | Path | None
    population: str | None
    entropy: Entropy | None
    progress: Progress | None


@overload
def run(
    answers: Iterable[object], mechanism: FrequencyMechanism, **options: Unpack[Options]
) -> Result: ...
@overload
def run(answers: ArrayLike, mechanism: LocalMean, **options: Unpack[Options]) -> MeanResult: ...
@explain_arguments('fc.run(answers, fc.Laplace(items=["yes", "no"], epsilon=1.0))')
def run(
    answers: Any,
    mechanism: Mechanism,
    *,
    topology: str | None = None,
    proofs: bool = False,
    parties: int | None = None,
    ledger: str | Path | None = None,
    population: str | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Result | MeanResult:
    """Run a mechanism on one answer per user and return estimates, intervals and the guarantee.

    answers: one item of the mechanism's list per user; numbers in [-1, 1] for Duchi and PM. The
        guarantee holds on condition that every answer is another person's
    mechanism: such as `Laplace(items=cities, epsilon=1.0)`
    topology: how the shares travel: "servers" (each user sends one share to each of two servers),
        "explicit" (every user holds shares of every other), "masked" (users hide their vectors
        under pairwise masks), "two-stage" (TSS and TSS'), or "shares" (the same sums without
        messages, for large numbers of users); by default "servers" up to 2,000 users if all of
        them draw noise of one distribution and nothing is proven (Laplace, DPDG, DPDS), else
        "shares"
    proofs: whether to count only reports that are proven to be one vote; this needs "servers" and
        a mechanism that proves its reports (ServerJoint, ServerLaplace, ServerCoins, PlacedCoins).
        Without it such a mechanism runs in "shares"
    parties: for "shares" alone: how many parties hold the additive shares; by default every user
        up to 2,000 users, and two servers above
    ledger, population: a budget (see `LedgerFile`) that is charged before noise is drawn; if it
        does not suffice, the run is refused
    entropy: by default AES-256-CTR with a fresh key from the operating system; a `SeededStream`
        makes a simulation repeatable and must not be used for a release
    progress: called with the number of users done
    returns: the result; for a mechanism of means, the result of a mean

    >>> result = fc.run(["yes"] * 60 + ["no"] * 40, fc.Laplace(items=["yes", "no"], epsilon=1.0))
    >>> result.included
    100
    """
    source = SystemEntropy() if entropy is None else entropy
    # A NumPy generator is predictable, and would silently protect nobody.
    if not isinstance(source, Entropy):
        raise ParameterError(
            "entropy must be a source of random bytes, such as SeededStream(seed); else leave it "
            "out"
        )
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(
            "mechanism must be one of faircount's mechanisms with its parameters, such as "
            f"fc.Laplace(items=cities, epsilon=1.0), not {describe_value(mechanism)}"
        )
    if not mechanism.makes_shares and (topology, parties) != (None, None):
        raise ParameterError(f"{mechanism.name} makes no shares: leave topology and parties out")
    check_rows_are_people(answers)
    if proofs:
        _check_provable(mechanism, topology)
        topology = "servers"
    facts: dict[str, object] = {}
    if not isinstance(source, SystemEntropy):
        # Printed with the result and kept in JSON, so that a simulation is never taken for a
        # release.
        facts["simulation"] = True

    if isinstance(mechanism, LocalMean):
        values = check_numbers("answers", answers)
        bound_mean = mechanism.bind(check_integer("number of answers", values.size, least=1))
        with charge(ledger, population, source, [bound_mean], f"mean, {bound_mean.name}"):
            mean = bound_mean.decode(
                bound_mean.total(bound_mean.respond(values, source)), values.size
            )
        return MeanResult(bound_mean, mean, values.size, facts, (ROWS_ARE_PEOPLE,))

    if not isinstance(mechanism, FrequencyMechanism):
        raise ParameterError(
            f"{mechanism.name} estimates neither frequencies nor a mean: run has no use for it"
        )
    positions = mechanism.domain.encode(answers)
    # From here on the number of users is fixed, and with it the noise of every user.
    bound = mechanism.bind(positions.size)
    chosen = _choose_topology(bound, topology, parties)
    with charge(ledger, population, source, [bound], f"frequencies, {bound.name}"):
        if chosen == "shares":
            result = _add_shares(positions, bound, parties, source, progress)
        else:
            result = _play_protocol(chosen, positions, bound, source, progress)
    return replace(result, facts={**result.facts, **facts}, conditions=(ROWS_ARE_PEOPLE,))


def charge(
    ledger: Any,
    population: str | None,
    entropy: Entropy,
    mechanisms: Sequence[Mechanism],
    label: str,
) -> AbstractContextManager[None]:
    """Charge the budget, where one is named, before the body of a `with` draws noise."""
    if ledger is None and population is None:
        return nullcontext()
    # Imported here because the ledger brings most of the protocol with it.
    from faircount.analysis.ledger_file import charge_budget

    return charge_budget(ledger, population, entropy, mechanisms, label)


def _check_provable(mechanism: Mechanism, topology: str | None) -> None:
    """Refuse proofs that a mechanism cannot give, or that nobody would check."""
    if not mechanism.proven:
        raise ParameterError(
            f"{mechanism.name}: no proof can tell a user's own noise from a manipulated vote; "
            "choose ServerJoint, ServerLaplace, ServerCoins or PlacedCoins, or leave proofs out"
        )
    if topology not in (None, "servers"):
        raise ParameterError(
            f"only servers check proofs: leave topology={topology!r} out, or leave proofs out"
        )


def _choose_topology(survey: FrequencyMechanism, requested: str | None, parties: int | None) -> str:
    """The requested topology, or a default."""
    if requested is None:
        # "servers" is the default where it takes a second at most and does not change the noise.
        draws_from_one_distribution = (
            survey.collected is Collected.SUM and survey.identical_for_all_users
        )
        has_epsilon = survey.promise[0] is not None
        small = 2 <= survey.n <= EVERY_USER_UP_TO
        if (
            draws_from_one_distribution
            and not survey.proven
            and has_epsilon
            and parties is None
            and small
        ):
            return "servers"
        return "shares"
    if requested not in TOPOLOGIES:
        raise ParameterError(f"topology must be one of {', '.join(TOPOLOGIES)}, not {requested!r}")
    if parties is not None and requested != "shares":
        raise ParameterError(
            f"parties is for topology='shares': {requested!r} fixes who takes part"
        )
    return requested


def _add_shares(
    positions: Ints,
    survey: FrequencyMechanism,
    parties: int | None,
    entropy: Entropy,
    progress: Progress | None,
) -> Result:
    """Make and add the shares without sending messages."""
    users = positions.size
    responses = survey.respond(positions, entropy)
    total, facts = survey.collect(responses, parties, entropy, progress)
    # Mechanisms report progress while they make shares; the last call says that everybody is done.
    if progress is not None:
        progress(users)
    return Result(survey, survey.decode(total, users), users, facts)


def _play_protocol(
    name: str,
    positions: Ints,
    survey: FrequencyMechanism,
    entropy: Entropy,
    progress: Progress | None,
) -> Result:
    """Play the protocol with every message."""
    # Most of the protocol: loaded only when it is played.
    from faircount.protocol import topology_named
    from faircount.protocol.simulator import play

    topology = topology_named(name)
    topology.adapt_mechanism(
        as_field_mechanism(survey)
    )  # refuses a mechanism that cannot run in this topology
    options: dict[str, Any] = {}
    if survey.promise[0] is None:
        options["epsilon"] = _epsilon_to_publish(survey)
    result = play(positions, survey, topology, entropy=entropy, progress=progress, **options)
    # A frequency mechanism counts the answers to one question.
    votes = result.count_votes()
    facts = {**votes.facts, "played_here": True}
    # All clients were ours. Without proofs only the rows can be wrong, which no report can tell.
    if not survey.proven:
        del facts["validity"]
    # A survey spells all items as text; here they are what the caller's data has.
    return replace(votes, mechanism=replace(votes.mechanism, items=survey.domain), facts=facts)


def _epsilon_to_publish(survey: FrequencyMechanism) -> float:
    """The epsilon of a survey whose parameters fix none: the one at the usual delta."""
    # Few coins, which a plan with a large delta may ask for, reach only a larger delta.
    for delta in (DEFAULT_DELTA, *LARGER_DELTAS):
        with suppress(RefusedError):
            return survey.guarantees(delta=delta)[0].epsilon
    raise ParameterError(
        f"{survey.name}: give epsilon=, at which the protocol publishes the guarantee"
    )
