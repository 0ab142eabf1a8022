"""What a survey promises, what is left of it after dropouts, and the smallest set that still keeps it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from faircount.accounting.exact import decoys_needed
from faircount.accounting.guarantee import OUTSIDER, Guarantee
from faircount.accounting.two_stage import sets_delta
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.sampling import Sampling
from faircount.mechanisms.secret_shared import NoiseMechanism
from faircount.mechanisms.two_stage import TSS


def realized(
    mechanism: FrequencyMechanism, included: int, epsilon: float, places: Sequence[int] | None = None
) -> Guarantee:
    """The weakest exact guarantee when `included` of the n users are in the sum and the planned insiders among them.

    Sampling: the floor loses everybody who is missing and every insider. Noise: what the others' noise still gives;
    where users make unequal noise, `places` of the roster says who they are (without it, those who make least).
    """
    if isinstance(mechanism, Decoys):
        chosen = range(mechanism.n - included, mechanism.n) if places is None else places
        return _realized(mechanism, included, epsilon, mechanism.coins_of(np.asarray(chosen, dtype=np.int64)))
    return _realized(mechanism, included, epsilon, None)


@lru_cache(maxsize=1024)
def _realized(mechanism: FrequencyMechanism, included: int, epsilon: float, coins: int | None) -> Guarantee:
    if isinstance(mechanism, Decoys):
        return mechanism.realized(included, coins=coins, epsilon=epsilon)
    if isinstance(mechanism, NoiseMechanism):
        return mechanism.realized(included)
    if isinstance(mechanism, Sampling):
        return replace(mechanism, dropouts=mechanism.n - included).guarantees(epsilon=epsilon)[0]
    raise ParameterError(f"{mechanism.name}: no protocol runs this mechanism; use DPDS, TSS, DPDG, Laplace or Decoys")


def realized_against(mechanism: TSS, included: int, epsilon: float, lost: int) -> tuple[Guarantee, ...]:
    """Two-stage: what is left against each adversary.

    `lost` users indicated and are not in the sum: S2 and helpers may know no more of them than their sets.
    """
    sets = sets_delta(mechanism.N, mechanism.reported, mechanism.rate, mechanism.gamma, epsilon) if lost else 0.0
    left = replace(mechanism, dropouts=mechanism.n - included).guarantees(epsilon=epsilon)
    return tuple(each if each.adversary == OUTSIDER else replace(each, delta=max(each.delta, sets)) for each in left)


def keeps(
    mechanism: FrequencyMechanism, included: int, epsilon: float, delta: float, places: Sequence[int] | None = None
) -> bool:
    """Whether that guarantee is at least as strong as (epsilon, delta)."""
    try:
        left = realized(mechanism, included, epsilon, places)
    except RefusedError:
        return False
    return left.epsilon <= epsilon and left.delta <= delta


@lru_cache(maxsize=64)
def minimum_set(mechanism: FrequencyMechanism, epsilon: float, delta: float) -> int:
    """The smallest number of included users that keeps the promise, insiders removed; refused if even all do not."""
    if not keeps(mechanism, mechanism.n, epsilon, delta):
        raise RefusedError(
            f"{mechanism.name} does not give ({epsilon:.4g}, {delta:.3g}) even if all {mechanism.n} users take part: "
            "promise less, or choose stronger parameters"
        )
    return first(lambda size: keeps(mechanism, size, epsilon, delta), 1, mechanism.n)


def first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The smallest number in [low, high] for which a monotone condition holds; it is known to hold at `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def alike(mechanism: FrequencyMechanism) -> bool:
    """Whether every user makes the same noise, so that no roster position is needed."""
    return not isinstance(mechanism, Decoys) or mechanism.D % mechanism.n == 0


def made_alike(mechanism: FrequencyMechanism) -> FrequencyMechanism:
    """The mechanism with the same noise for every user: decoys get c = ceil(D0 / h) coins each."""
    if alike(mechanism) or not isinstance(mechanism, Decoys) or mechanism.epsilon is None or mechanism.delta is None:
        return mechanism
    each = -(-decoys_needed(mechanism.epsilon, mechanism.delta) // mechanism.h)
    return replace(mechanism, delta=None, coins=each * mechanism.n)
