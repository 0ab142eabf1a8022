"""What a survey promises, what is left of it after dropouts, and the smallest set that still keeps it."""

from collections.abc import Sequence
from functools import lru_cache

from faircount.accounting.guarantee import Guarantee
from faircount.core.errors import RefusedError
from faircount.core.search import first_whole
from faircount.mechanisms.secret_shared import FieldMechanism


def realized(
    mechanism: FieldMechanism, included: int, epsilon: float, places: Sequence[int] | None = None
) -> Guarantee:
    """The weakest exact guarantee when `included` of the n users are in the sum and the planned insiders among them.

    Where users make unequal noise, `places` of the roster says who they are (without it, those who make least).
    """
    known = None if places is None or mechanism.every_user_alike else tuple(places)
    return _realized(mechanism, included, epsilon, known)


@lru_cache(maxsize=1024)
def _realized(mechanism: FieldMechanism, included: int, epsilon: float, places: tuple[int, ...] | None) -> Guarantee:
    return mechanism.realized(included, epsilon=epsilon, places=places)


def keeps(
    mechanism: FieldMechanism, included: int, epsilon: float, delta: float, places: Sequence[int] | None = None
) -> bool:
    """Whether that guarantee is at least as strong as (epsilon, delta)."""
    try:
        left = realized(mechanism, included, epsilon, places)
    except RefusedError:
        return False
    return left.epsilon <= epsilon and left.delta <= delta


@lru_cache(maxsize=64)
def minimum_set(mechanism: FieldMechanism, epsilon: float, delta: float) -> int:
    """The smallest number of included users that keeps the promise, insiders removed; refused if even all do not."""
    if not keeps(mechanism, mechanism.n, epsilon, delta):
        raise RefusedError(
            f"{mechanism.name} does not give ({epsilon:.4g}, {delta:.3g}) even if all {mechanism.n} users take part: "
            "promise less, or choose stronger parameters"
        )
    return first_whole(lambda size: keeps(mechanism, size, epsilon, delta), 1, mechanism.n)
