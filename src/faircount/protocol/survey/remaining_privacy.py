"""What remains of a survey's promise after dropouts, and the fewest responses that keep it.

Participants add the noise. If some drop out their noise is missing, and so is the noise of the
colluding participants that the promise covers, since they know theirs.
"""

from collections.abc import Sequence
from functools import lru_cache

from faircount.accounting.guarantee import Guarantee
from faircount.core.errors import RefusedError
from faircount.core.search import first_integer
from faircount.mechanisms.secret_shared import FieldMechanism


def remaining_guarantee(
    mechanism: FieldMechanism, included: int, epsilon: float, places: Sequence[int] | None = None
) -> Guarantee:
    """The weakest guarantee if `included` of the n participants are in the sum.

    The covered number of colluding participants is among them.

    places: positions of the included participants in the roster, where they add unequal noise;
        without it, the guarantee assumes those who add least
    """
    # Positions make no difference where everybody adds noise of one distribution: they are dropped,
    # for the cache.
    known = None if places is None or mechanism.identical_for_all_users else tuple(places)
    return _cached_guarantee(mechanism, included, epsilon, known)


@lru_cache(maxsize=1024)
def _cached_guarantee(
    mechanism: FieldMechanism, included: int, epsilon: float, places: tuple[int, ...] | None
) -> Guarantee:
    return mechanism.remaining_guarantee(included, epsilon=epsilon, places=places)


def keeps_promise(
    mechanism: FieldMechanism,
    included: int,
    epsilon: float,
    delta: float,
    places: Sequence[int] | None = None,
) -> bool:
    """Whether the remaining guarantee is at least as strong as (epsilon, delta)."""
    try:
        left = remaining_guarantee(mechanism, included, epsilon, places)
    # Too few participants for the mechanism to give any guarantee.
    except RefusedError:
        return False
    return left.epsilon <= epsilon and left.delta <= delta


@lru_cache(maxsize=64)
def minimum_responses(mechanism: FieldMechanism, epsilon: float, delta: float) -> int:
    """The smallest number of included participants that keeps the promise; refused if none does."""
    if not keeps_promise(mechanism, mechanism.n, epsilon, delta):
        raise RefusedError(
            f"{mechanism.name} does not give ({epsilon:.4g}, {delta:.3g}) even if all "
            f"{mechanism.n} users take part: promise less, or choose stronger parameters"
        )
    # The search assumes what holds for all mechanisms here: more participants add more noise.
    return first_integer(
        lambda included: keeps_promise(mechanism, included, epsilon, delta), 1, mechanism.n
    )
