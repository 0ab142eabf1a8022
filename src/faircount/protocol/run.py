"""A whole survey in memory: every answer acts as a user, every share is really made.

This is the specification of what the parties compute, and the oracle for everything that does it over a network.
"""

from collections.abc import Callable, Iterable
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.validation import integer
from faircount.estimation.result import MeanResult, Result
from faircount.mechanisms.base import FrequencyMechanism, Mechanism, Residues
from faircount.mechanisms.local_mean import LocalMean
from faircount.mechanisms.shared import SharedMechanism
from faircount.mechanisms.two_stage import TSS, TSSPrime, TwoStageResponse, TwoStageSum
from faircount.sharing.additive import combine, exchange

EVERY_USER_UP_TO = 2000
"""Up to this many users everybody holds shares of everybody (the paper's form); beyond it, two servers do."""

Progress = Callable[[int], None]


@overload
def run(
    answers: Iterable[object],
    mechanism: FrequencyMechanism,
    *,
    parties: int | None = ...,
    entropy: Entropy | None = ...,
    progress: Progress | None = ...,
) -> Result: ...
@overload
def run(
    answers: ArrayLike,
    mechanism: LocalMean,
    *,
    parties: int | None = ...,
    entropy: Entropy | None = ...,
    progress: Progress | None = ...,
) -> MeanResult: ...
def run(
    answers: Any,
    mechanism: Mechanism,
    *,
    parties: int | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Result | MeanResult:
    """Run a mechanism on one answer per user and return estimates, intervals and the guarantee.

    `parties` hold the additive shares: by default every user up to 2,000 users, and two servers above. `entropy` is the
    operating system's; a `SeededStream` makes a simulation repeatable and must not be used for a release.
    """
    source = SystemEntropy() if entropy is None else entropy
    if isinstance(mechanism, LocalMean):
        values = np.asarray(answers, dtype=np.float64)
        bound = mechanism.bind(integer("number of answers", values.size, least=1))
        return MeanResult(bound, bound.decode(bound.total(bound.respond(values, source)), values.size), values.size)
    if not isinstance(mechanism, FrequencyMechanism):
        raise ParameterError("mechanism must be one of faircount's mechanisms")
    positions = mechanism.domain.encode(answers)
    survey, n = mechanism.bind(positions.size), positions.size
    responses = survey.respond(positions, source)
    total, facts = _open(survey, responses, parties, source, progress)
    return Result(survey, survey.decode(total, n), n, facts)


def _open(
    survey: FrequencyMechanism, responses: Any, parties: int | None, entropy: Entropy, progress: Progress | None
) -> tuple[Any, dict[str, object]]:
    if isinstance(survey, SharedMechanism):
        holders = _holders(survey.n, parties)
        sums = exchange(responses, holders, survey.modulus, entropy, progress)
        return combine(sums, survey.modulus), {"share holders": holders, "modulus": survey.modulus}
    if isinstance(survey, TSS):
        return _open_two_stage(survey, responses, parties, entropy), {"modulus": survey.modulus}
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
