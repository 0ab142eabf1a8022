"""A whole survey in memory: every answer acts as a user, every share is really made.

`topology` says how the shares travel. "servers", "explicit", "masked" and "two-stage" are the protocol itself, sealed
messages between users, coordinator and aggregator (survey.py); "shares" does the same arithmetic without messages, for
crowds of any size. By default up to 2,000 users answer through "servers", and everything else is "shares".
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.validation import integer, numbers
from faircount.estimation.result import MeanResult, Result
from faircount.mechanisms.base import FrequencyMechanism, Mechanism
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.local_mean import LocalMean
from faircount.mechanisms.secret_shared import FieldMechanism, SharedMechanism
from faircount.mechanisms.two_stage import TSS, TSSPrime, TwoStageResponse, TwoStageSum
from faircount.sharing.additive import combine, exchange

EVERY_USER_UP_TO = 2000
"""Up to this many users a run goes through the protocol, and in "shares" everybody holds shares of everybody."""

TOPOLOGIES = ("shares", "servers", "explicit", "masked", "two-stage")

Progress = Callable[[int], None]


@overload
def run(
    answers: Iterable[object],
    mechanism: FrequencyMechanism,
    *,
    topology: str | None = ...,
    parties: int | None = ...,
    entropy: Entropy | None = ...,
    progress: Progress | None = ...,
) -> Result: ...
@overload
def run(
    answers: ArrayLike,
    mechanism: LocalMean,
    *,
    topology: str | None = ...,
    parties: int | None = ...,
    entropy: Entropy | None = ...,
    progress: Progress | None = ...,
) -> MeanResult: ...
def run(
    answers: Any,
    mechanism: Mechanism,
    *,
    topology: str | None = None,
    parties: int | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Result | MeanResult:
    """Run a mechanism on one answer per user and return estimates, intervals and the guarantee.

    `topology` is how the shares travel: "servers" (each user sends one share to each of two servers), "explicit" (every
    user holds shares of every other), "masked" (users hide each other's vectors), "two-stage" (TSS and TSS'), or
    "shares" (the same sums without messages, for crowds); by default "servers" up to 2,000 users, else "shares".
    `parties` is for "shares" alone: how many hold the additive shares, by default every user up to 2,000 users and two
    servers above. `entropy` is the operating system's; a `SeededStream` makes a simulation repeatable and must not be
    used for a release. `progress` is told the number of users done.
    """
    source = SystemEntropy() if entropy is None else entropy
    if not isinstance(source, Entropy):
        raise ParameterError("entropy must be a source of random bytes, such as SeededStream(seed); else leave it out")
    if not isinstance(mechanism, FieldMechanism) and (topology, parties) != (None, None):
        raise ParameterError(f"{getattr(mechanism, 'name', 'this')} makes no shares: leave topology and parties out")
    facts: dict[str, object] = {} if isinstance(source, SystemEntropy) else {"simulation": True}
    if isinstance(mechanism, LocalMean):
        values = numbers("answers", answers)
        bound = mechanism.bind(integer("number of answers", values.size, least=1))
        mean = bound.decode(bound.total(bound.respond(values, source)), values.size)
        return MeanResult(bound, mean, values.size, facts)
    if not isinstance(mechanism, FrequencyMechanism):
        raise ParameterError("mechanism must be one of faircount's mechanisms")
    positions = mechanism.domain.encode(answers)
    survey, n = mechanism.bind(positions.size), positions.size
    form = _topology(survey, topology, parties)
    if form != "shares":
        found = _play(form, [survey.domain.labels[j] for j in positions], survey, source, progress)
        return replace(found, facts={**found.facts, **facts})
    responses = survey.respond(positions, source)
    total, seen = _open(survey, responses, parties, source, progress)
    if progress is not None:
        progress(n)
    return Result(survey, survey.decode(total, n), n, {**seen, **facts})


def _topology(survey: FrequencyMechanism, asked: str | None, parties: int | None) -> str:
    """The form asked for, or the protocol where it costs a second at most and changes nothing of the noise."""
    if asked is not None:
        if asked not in TOPOLOGIES:
            raise ParameterError(f"topology must be one of {', '.join(TOPOLOGIES)}, not {asked!r}")
        if parties is not None and asked != "shares":
            raise ParameterError(f"parties is for topology='shares': in {asked!r} the parties are who they are")
        return asked
    alike = isinstance(survey, SharedMechanism) and not isinstance(survey, Decoys)
    promised = survey.promise[0] is not None
    return "servers" if alike and promised and parties is None and 2 <= survey.n <= EVERY_USER_UP_TO else "shares"


def _play(
    form: str, answers: list[object], survey: FrequencyMechanism, entropy: Entropy, progress: Progress | None
) -> Result:
    from faircount.protocol import play as protocol  # most of the protocol: loaded when it is played

    plays = {
        "servers": protocol.play_servers,
        "explicit": protocol.play_explicit,
        "masked": protocol.play_masked,
        "two-stage": protocol.play_two_stage,
    }
    if isinstance(survey, TSS) != (form == "two-stage"):
        fitting = "'two-stage'" if isinstance(survey, TSS) else "'servers', 'explicit' or 'masked'"
        raise ParameterError(f"{survey.name} does not run as {form!r}: choose {fitting}, or 'shares'")
    if survey.promise[0] is None:
        raise ParameterError(f"{survey.name}: give epsilon=, the protocol publishes the guarantee there")
    return plays[form](answers, survey, entropy=entropy, progress=progress)


def _open(
    survey: FrequencyMechanism, responses: Any, parties: int | None, entropy: Entropy, progress: Progress | None
) -> tuple[Any, dict[str, object]]:
    if isinstance(survey, SharedMechanism):
        holders = _holders(survey.n, parties)
        sums = exchange(responses, holders, survey.modulus, entropy, progress)
        facts = {"topology": "shares", "share holders": holders, "modulus": survey.modulus}
        return combine(sums, survey.modulus), facts
    if isinstance(survey, TSS):
        facts = {"topology": "shares", "modulus": survey.modulus}
        return _open_two_stage(survey, responses, parties, entropy), facts
    return survey.total(responses), {}


def _holders(users: int, parties: int | None) -> int:
    if parties is None:
        return users if 2 <= users <= EVERY_USER_UP_TO else 2
    return integer("parties", parties, least=2)


def _open_two_stage(survey: TSS, responses: TwoStageResponse, parties: int | None, entropy: Entropy) -> TwoStageSum:
    """S1 counts the reporters, helpers add the shares of their item, S2 adds the helpers' sums."""
    reporters = responses.indicators.sum(axis=0).astype(np.int64)
    sums = np.zeros(survey.N, dtype=responses.bits.dtype)
    for j, count in enumerate(reporters):
        bits: Residues = responses.bits[responses.indicators[:, j], j : j + 1]
        if count:
            helpers = _helpers(survey, int(count), parties)
            sums[j] = combine(exchange(bits, helpers, survey.modulus, entropy), survey.modulus)[0]
    return TwoStageSum(reporters, sums)


def _helpers(survey: TSS, reporters: int, parties: int | None) -> int:
    """m_j helpers as printed (m'_j in TSS'); fewer for crowds too large for that, but never below phi + 1."""
    least = survey.phi + 1 if isinstance(survey, TSSPrime) else 1
    wanted = reporters if parties is None and survey.n <= EVERY_USER_UP_TO else min(reporters, parties or 2)
    return min(survey.n, max(least, wanted))
