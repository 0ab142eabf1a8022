"""A whole survey in memory: every answer acts as a user, every share is really made.

`topology` says how the shares travel. "servers", "explicit", "masked" and "two-stage" are the protocol itself, sealed
messages between users, coordinator and aggregator (`protocol.play`); "shares" does the same arithmetic without
messages, for crowds of any size. By default up to 2,000 users answer through "servers", everything else is "shares".
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, overload

from numpy.typing import ArrayLike

from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.validation import integer, numbers
from faircount.estimation.result import MeanResult, Result
from faircount.mechanisms.base import DEFAULT_DELTA, Collected, FrequencyMechanism, Mechanism, Progress
from faircount.mechanisms.local_mean import LocalMean
from faircount.mechanisms.secret_shared import EVERY_USER_UP_TO, makes_shares

TOPOLOGIES = ("shares", "servers", "explicit", "masked", "two-stage")

LARGER_DELTAS = (1e-5, 1e-4, 1e-3, 1e-2, 0.1, 0.3, 0.49)
"""At which a survey may state its guarantee where the usual delta is out of reach."""


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
def run(answers: Iterable[object], mechanism: FrequencyMechanism, **options: Unpack[Options]) -> Result: ...
@overload
def run(answers: ArrayLike, mechanism: LocalMean, **options: Unpack[Options]) -> MeanResult: ...
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

    answers: one item of the mechanism's list per user; numbers in [-1, 1] for Duchi and PM
    mechanism: such as `Laplace(items=cities, epsilon=1.0)`
    topology: how the shares travel: "servers" (each user sends one share to each of two servers), "explicit" (every
        user holds shares of every other), "masked" (users hide each other's vectors), "two-stage" (TSS and TSS'), or
        "shares" (the same sums without messages, for crowds); by default "servers" up to 2,000 users, else "shares"
    proofs: whether only reports that are proven to be one vote may count: in "servers", with a mechanism that proves
        them (ServerLaplace, ServerCoins, PlacedCoins); without it such a mechanism is tried in "shares"
    parties: for "shares" alone: how many hold the additive shares; by default every user up to 2,000 users and two
        servers above
    ledger, population: name a budget (`LedgerFile`) that is charged before anything is drawn, or refuses
    entropy: the operating system's if not given; a `SeededStream` makes a simulation repeatable and must not be used
        for a release
    progress: told the number of users done
    """
    source = SystemEntropy() if entropy is None else entropy
    if not isinstance(source, Entropy):
        raise ParameterError("entropy must be a source of random bytes, such as SeededStream(seed); else leave it out")
    if not isinstance(mechanism, Mechanism):
        raise ParameterError("mechanism must be one of faircount's mechanisms")
    if not mechanism.makes_shares and (topology, parties) != (None, None):
        raise ParameterError(f"{mechanism.name} makes no shares: leave topology and parties out")
    if proofs:
        _provable(mechanism, topology)
        topology = "servers"
    facts: dict[str, object] = {} if isinstance(source, SystemEntropy) else {"simulation": True}
    if isinstance(mechanism, LocalMean):
        values = numbers("answers", answers)
        bound = mechanism.bind(integer("number of answers", values.size, least=1))
        with charging(ledger, population, source, [bound], f"mean, {bound.name}"):
            mean = bound.decode(bound.total(bound.respond(values, source)), values.size)
        return MeanResult(bound, mean, values.size, facts)
    if not isinstance(mechanism, FrequencyMechanism):
        raise ParameterError(f"{mechanism.name} estimates neither frequencies nor a mean: run has no use for it")
    positions = mechanism.domain.encode(answers)
    survey = mechanism.bind(positions.size)
    form = _topology(survey, topology, parties)
    with charging(ledger, population, source, [survey], f"frequencies, {survey.name}"):
        found = _drawn(form, positions, survey, parties, source, progress)
    return replace(found, facts={**found.facts, **facts})


def _provable(mechanism: Mechanism, topology: str | None) -> None:
    """Refuse proofs of what cannot be proven, or where nobody checks them."""
    if not mechanism.proven:
        raise ParameterError(
            f"{mechanism.name}: no proof can tell noise that a user made from a lie; choose ServerLaplace, ServerCoins "
            "or PlacedCoins, or leave proofs out"
        )
    if topology not in (None, "servers"):
        raise ParameterError(f"only servers check proofs: leave topology={topology!r} out, or leave proofs out")


def charging(
    ledger: Any, population: str | None, entropy: Entropy, mechanisms: Sequence[Mechanism], label: str
) -> AbstractContextManager[None]:
    """Around everything that draws: the budget is charged before, where one is named."""
    if ledger is None and population is None:
        return nullcontext()
    from faircount.analysis.ledger_file import charged  # with most of the protocol

    return charged(ledger, population, entropy, mechanisms, label)


def _drawn(
    form: str,
    positions: Ints,
    survey: FrequencyMechanism,
    parties: int | None,
    entropy: Entropy,
    progress: Progress | None,
) -> Result:
    if form != "shares":
        return _play(form, positions, survey, entropy, progress)
    responses, n = survey.respond(positions, entropy), positions.size
    total, seen = survey.collect(responses, parties, entropy, progress)
    if progress is not None:
        progress(n)
    return Result(survey, survey.decode(total, n), n, seen)


def _topology(survey: FrequencyMechanism, asked: str | None, parties: int | None) -> str:
    """The form asked for, or the protocol where it costs a second at most and changes nothing of the noise."""
    if asked is not None:
        if asked not in TOPOLOGIES:
            raise ParameterError(f"topology must be one of {', '.join(TOPOLOGIES)}, not {asked!r}")
        if parties is not None and asked != "shares":
            raise ParameterError(f"parties is for topology='shares': in {asked!r} the parties are who they are")
        return asked
    alike = survey.collected is Collected.SUM and survey.every_user_alike and not survey.proven
    promised = survey.promise[0] is not None
    return "servers" if alike and promised and parties is None and 2 <= survey.n <= EVERY_USER_UP_TO else "shares"


def _play(
    form: str, positions: Ints, survey: FrequencyMechanism, entropy: Entropy, progress: Progress | None
) -> Result:
    from faircount.protocol import topology_named  # most of the protocol: loaded when it is played
    from faircount.protocol.play import play

    topology = topology_named(form)
    topology.runs(makes_shares(survey))  # refuses a mechanism that cannot travel like this
    return play(positions, survey, topology, entropy=entropy, progress=progress, **_promised(survey))


def _promised(survey: FrequencyMechanism) -> dict[str, float]:
    """The epsilon to publish where the parameters fix none, as for one of several releases: that at the usual delta.

    Few coins, which a plan with a large delta may ask for, reach it only at a larger one. What would give every other
    answer away is refused.
    """
    if survey.promise[0] is not None:
        return {}
    for delta in (DEFAULT_DELTA, *LARGER_DELTAS):
        with suppress(RefusedError):
            return {"epsilon": survey.guarantees(delta=delta)[0].epsilon}
    raise ParameterError(f"{survey.name}: give epsilon=, the protocol publishes the guarantee there")
