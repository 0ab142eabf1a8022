"""How likely a survey comes to an end when each visit of a user is lost with the same probability, independently.

`servers` needs one visit of enough users. `explicit` needs everybody of the set in one attempt: after each attempt the
set is who came, and it gives up below the minimum or after the last attempt. Both are exact. `masked` depends on the
graph and is simulated: `faircount.simulation.completion`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from faircount.core.errors import ParameterError
from faircount.core.validation import integer, real
from faircount.protocol.params import Topology

Floats = NDArray[np.float64]


def completion(topology: Topology, users: int, minimum: int, loss: float, attempts: int = 10) -> float:
    """Probability that a survey of invited users publishes, each visit being lost with probability `loss`."""
    count = integer("users", users, least=2)
    least = integer("minimum", minimum, least=2, most=count)
    if not 0 <= real("loss", loss) < 1:
        raise ParameterError("loss, the probability that a user misses a visit, lies in [0, 1)")
    if topology is Topology.SERVERS:
        return float(_stay(count, loss)[least:].sum())
    if topology is Topology.EXPLICIT:
        return _explicit(count, least, loss, integer("attempts", attempts, least=1))
    raise ParameterError(f"completion is exact for servers and peers explicit; simulate {topology}")


def _stay(users: int, loss: float) -> Floats:
    """Law of how many of `users` come to one visit."""
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(users + 1), users, 1 - loss), dtype=np.float64)


def _explicit(users: int, minimum: int, loss: float, attempts: int) -> float:
    """Enrol, share, then attempts: the law of the set's size goes from visit to visit."""
    sizes = np.zeros(users + 1)
    sizes[users] = 1
    laws = [_stay(size, loss) for size in range(users + 1)]
    for _ in range(2):  # enrol and share: who comes is the set
        sizes = _after(sizes, minimum, lambda size: laws[size])
    done = 0.0
    for _ in range(attempts):
        everybody = (1 - loss) ** np.arange(users + 1)
        done += float((sizes * everybody).sum())
        sizes = _after(sizes, minimum, lambda size: laws[size][:-1])  # somebody is missing
    return done


def _after(sizes: Floats, minimum: int, law: Callable[[int], Floats]) -> Floats:
    """The sizes after a visit, without sets below the minimum."""
    after = np.zeros_like(sizes)
    for size in np.flatnonzero(sizes).tolist():
        came = law(size)
        after[: came.size] += sizes[size] * came
    after[:minimum] = 0
    return after
