"""Hockey-stick divergences of discrete laws, without cancellation and without losing tails.

    delta(epsilon) = sum over outcomes of max(0, P - e^epsilon Q)

is the smallest delta for which P against Q is (epsilon, delta)-indistinguishable. Every sum here has positive terms
only and starts at its smallest one, so the relative error stays near 1e-12 even for a delta of 1e-300; what error is
left is rounded towards the larger delta.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.search import SMALLEST, smallest_within
from faircount.core.validation import integer, probability, real

LARGEST_EPSILON = 500.0
"""No epsilon beyond this is looked at: it would protect nobody."""

ROUND_UP = 1 + 1e-11
"""Factor on a result, larger than the rounding errors of its sums."""

_LOSS_ERROR = 1e-12  # absolute error of a difference of two log probabilities; epsilon is lowered by it
_LOG_SMALLEST = -690.0  # probabilities below e^-690 = 1e-300 under Q are taken for 0, which raises delta
_LOG_UNDERFLOW = 745.0  # e^-745 is the smallest positive double


def _running_sum(steps: Floats) -> Floats:
    """Cumulative sums in blocks of about sqrt(len): far fewer roundings at full magnitude than one long chain."""
    width = math.isqrt(steps.size) + 1
    blocks = np.zeros((-(-steps.size // width), width))
    blocks.ravel()[: steps.size] = steps
    within = np.cumsum(blocks, axis=1)
    before = np.concatenate(([0.0], np.cumsum(within[:, -1])[:-1])) if steps.size else np.zeros(0)
    summed: Floats = (within + before[:, None]).ravel()[: steps.size]
    return summed


def _log_pmf(n: int, p: float, low: int, high: int) -> Floats:
    """Log probabilities of Bin(n, p) at low..high (the mode is among them), from the ratios of neighbours."""
    if p == 1.0 or n == 0:
        return np.where(np.arange(low, high + 1) == n, 0.0, -np.inf)
    x = np.arange(low, high, dtype=np.float64)
    with np.errstate(divide="ignore"):  # a p near the smallest double: beyond the mode nothing is left
        steps = np.log((n - x) * (p / (1 - p)) / (x + 1))
    mode = min(max(int((n + 1) * p), low), high) - low
    left = _running_sum(-steps[:mode][::-1])[::-1]
    relative = np.concatenate((left, [0.0], _running_sum(steps[mode:])))
    return np.asarray(relative - math.log(float(np.exp(relative).sum())))


def log_binomial(n: int, p: float) -> Floats:
    """Natural logarithms of the n + 1 probabilities of Bin(n, p), good to about 1e-12 for n up to millions."""
    return _log_pmf(integer("n", n), probability("p", p), 0, n)


def binomial_window(n: int, p: float) -> tuple[int, Floats]:
    """(first point, log probabilities) of Bin(n, p) wherever a probability exceeds the smallest double.

    Bernstein's inequality bounds what lies outside by e^-745 on each side.
    """
    mean, spread = n * p, n * p * (1 - p)
    half = _LOG_UNDERFLOW / 3 + math.sqrt((_LOG_UNDERFLOW / 3) ** 2 + 2 * _LOG_UNDERFLOW * spread) + 1
    low, high = max(0, math.floor(mean - half)), min(n, math.ceil(mean + half))
    return low, _log_pmf(n, p, low, high)


@dataclass(frozen=True, eq=False)
class LossPair:
    """Two laws on one finite support, as log probabilities: the output of one coordinate on two neighbours."""

    log_p: Floats
    log_q: Floats

    def __post_init__(self) -> None:
        if self.log_p.ndim != 1 or self.log_p.shape != self.log_q.shape or self.log_p.size == 0:
            raise ParameterError("a loss pair needs two laws on the same, non-empty support")
        for law in (self.log_p, self.log_q):
            if not abs(float(np.exp(law).sum()) - 1) < 1e-6:
                raise ParameterError("the probabilities of a loss pair must sum to 1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LossPair) and self._bytes() == other._bytes()

    def __hash__(self) -> int:
        return hash(self._bytes())

    def _bytes(self) -> tuple[bytes, bytes]:
        return self.log_p.tobytes(), self.log_q.tobytes()

    def swapped(self) -> "LossPair":
        """The same two laws, compared the other way round."""
        return LossPair(self.log_q, self.log_p)

    def losses(self) -> tuple[Floats, Floats]:
        """(probability under P, ln(P/Q)) of every outcome that P can have; the loss may be infinite."""
        possible = self.log_p > -np.inf
        log_p, log_q = self.log_p[possible], self.log_q[possible]
        hidden = log_q < _LOG_SMALLEST
        return np.exp(log_p), np.where(hidden, np.inf, log_p - np.where(hidden, 0.0, log_q))

    def curve(self) -> Callable[[Floats], Floats]:
        """The divergence as a function of epsilon (any real number): E_P[max(0, 1 - e^(epsilon - loss))].

        Abel summation over the sorted losses l_1 < l_2 < ... turns the differences P - e^epsilon Q into positive
        terms: (1 - e^(l_(j-1) - l_j)) R_j with R_j = e^(l_j) Q(loss >= l_j).
        """
        mass, loss = self.losses()
        finite = np.isfinite(loss)
        order = np.argsort(loss[finite])
        steps = loss[finite][order]
        tails = np.cumsum(np.exp(self.log_q[self.log_p > -np.inf][finite][order])[::-1])[::-1]
        raised = np.exp(steps + np.log(np.maximum(tails, SMALLEST)))
        gains = -np.expm1(steps[:-1] - steps[1:]) * raised[1:]
        always = float(mass[~finite].sum())
        above = np.concatenate((np.cumsum(gains[::-1])[::-1], [0.0, 0.0])) + always
        tops, scale = np.append(steps, np.inf), np.append(raised, 0.0)

        def divergence(epsilon: Floats) -> Floats:
            first = np.searchsorted(steps, epsilon, side="right")
            return np.asarray(above[first] - np.expm1(epsilon - tops[first]) * scale[first])

        return divergence


def hockey_stick(pairs: Sequence[LossPair], epsilon: float) -> float:
    """The exact delta at `epsilon` for the product of one or two independent coordinates, in O(W log W)."""
    if not 1 <= len(pairs) <= 2:
        raise ParameterError("give one or two coordinates; more are composed by faircount.accounting.composition")
    target = real("epsilon", epsilon) - _LOSS_ERROR
    curve = pairs[-1].curve()
    if len(pairs) == 1:
        value = float(curve(np.array([target]))[0])
    else:
        mass, loss = pairs[0].losses()
        value = float((mass * curve(target - loss)).sum())
    if sum(float(pair.losses()[1].max()) for pair in pairs) > target:
        value = max(value, SMALLEST)
    return min(1.0, value * ROUND_UP)


def epsilon_for(delta_at: Callable[[float], float], delta: float) -> float:
    """The smallest epsilon with delta_at(epsilon) <= delta, rounded up; delta_at must not increase.

    delta = 0 asks for pure differential privacy. Refused where no epsilon up to 500 is enough.
    """
    wanted = real("delta", delta)
    if not 0 <= wanted <= 1:
        raise ParameterError(f"delta must lie in [0, 1], not {wanted:g}")
    if delta_at(0.0) <= wanted:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > wanted:
        if high >= LARGEST_EPSILON:
            raise RefusedError(
                f"no epsilon reaches delta = {wanted:g} (at epsilon = {high:g} it is still {delta_at(high):.3g}): "
                "ask for a larger delta, or add noise, or rely on a larger floor"
            )
        low, high = high, min(2 * high, LARGEST_EPSILON)
    return smallest_within(delta_at, wanted, low, high)


def largest_within(value_at: Callable[[float], float], limit: float, top: float = 1.0) -> float:
    """The largest x in (0, top] with value_at(x) <= limit, rounded down; value_at must rise from 0 at x = 0."""
    if value_at(top) <= limit:
        return top

    def falling(rarity: float) -> float:  # x = top e^-rarity, so that tiny values keep their digits
        return value_at(top * math.exp(-rarity))

    low, high = 0.0, 1.0
    while falling(high) > limit:
        if high > _LOG_UNDERFLOW / 2:
            raise RefusedError(f"no parameter reaches delta = {limit:g}: ask for a larger delta")
        low, high = high, 2 * high
    return top * math.exp(-smallest_within(falling, limit, low, high))


def delta_bound(value: float) -> float:
    """`value` as a probability, rounded up."""
    return min(1.0, max(value * ROUND_UP, SMALLEST))
