"""Hockey-stick divergences of discrete distributions, without cancellation or lost tails.

    delta(epsilon) = sum over outcomes of max(0, P - e^epsilon Q)

is the smallest delta for which P against Q is (epsilon, delta)-indistinguishable. Every sum here
has positive terms only and starts at its smallest one, so the relative error stays near 1e-12 even
for a delta of 1e-300; the error that remains is rounded towards the larger delta.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Floats
from faircount.core.errors import ParameterError, RefusedError
from faircount.core.search import SMALLEST, smallest_within
from faircount.core.validation import check_integer, check_probability, check_real

LARGEST_EPSILON = 500.0
"""No epsilon beyond this is considered: it would protect nobody."""

ROUND_UP = 1 + 1e-11
"""Factor on a result, larger than the rounding errors of its sums."""

# Absolute error of a difference of two log probabilities; epsilon is lowered by it.
_LOSS_ERROR = 1e-12

# Probabilities below e^-690 = 1e-300 under Q are taken for 0, which raises delta.
_LOG_SMALLEST = -690.0

# e^-745 is the smallest positive double.
_LOG_UNDERFLOW = 745.0


def _running_sum(steps: Floats) -> Floats:
    """Return cumulative sums, computed in blocks of about sqrt(len) numbers.

    A single long chain would round once per element at full magnitude; blocks round far less.
    """
    if not steps.size:
        return np.zeros(0)
    width = math.isqrt(steps.size) + 1
    blocks = np.zeros((-(-steps.size // width), width))
    blocks.ravel()[: steps.size] = steps
    within = np.cumsum(blocks, axis=1)
    before = np.concatenate(([0.0], np.cumsum(within[:, -1])[:-1]))
    sums: Floats = (within + before[:, None]).ravel()[: steps.size]
    return sums


def _log_pmf(n: int, p: float, low: int, high: int) -> Floats:
    """Return log probabilities of Bin(n, p) at low..high; the mode must be among them."""
    if p == 1.0 or n == 0:
        return np.where(np.arange(low, high + 1) == n, 0.0, -np.inf)
    x = np.arange(low, high, dtype=np.float64)
    # For a p near the smallest double the ratio underflows to 0: beyond the mode nothing is left.
    with np.errstate(divide="ignore"):
        steps = np.log((n - x) * (p / (1 - p)) / (x + 1))
    # Ratios of neighbours, added up from the mode outwards: log-gamma functions would lose digits
    # where n is in the millions, and sums from one end would carry their error into the bulk.
    mode = min(max(int((n + 1) * p), low), high) - low
    left = _running_sum(-steps[:mode][::-1])[::-1]
    relative = np.concatenate((left, [0.0], _running_sum(steps[mode:])))
    return np.asarray(relative - math.log(float(np.exp(relative).sum())))


def log_binomial(n: int, p: float) -> Floats:
    """Return log probabilities of Bin(n, p) at 0..n, good to about 1e-12 for n up to millions."""
    return _log_pmf(check_integer("n", n), check_probability("p", p), 0, n)


def binomial_window(n: int, p: float) -> tuple[int, Floats]:
    """Return (first point, log probabilities) of Bin(n, p) where these do not underflow."""
    mean = n * p
    variance = n * p * (1 - p)
    # Bernstein's inequality: beyond this distance from the mean a tail is below e^-745.
    third = _LOG_UNDERFLOW / 3
    half = third + math.sqrt(third**2 + 2 * _LOG_UNDERFLOW * variance) + 1
    low = max(0, math.floor(mean - half))
    high = min(n, math.ceil(mean + half))
    return low, _log_pmf(n, p, low, high)


@dataclass(frozen=True, eq=False)
class LossPair:
    """Outputs of one coordinate on two neighbouring data sets, as log probabilities.

    Both are distributions on the same finite support.
    """

    log_p: Floats
    log_q: Floats

    def __post_init__(self) -> None:
        if self.log_p.ndim != 1 or self.log_p.shape != self.log_q.shape or self.log_p.size == 0:
            raise ParameterError(
                "a loss pair needs two distributions on the same, non-empty support"
            )
        for distribution in (self.log_p, self.log_q):
            # Negated, so that a sum that is not a number is refused too.
            if not abs(float(np.exp(distribution).sum()) - 1) < 1e-6:
                raise ParameterError("the probabilities of a loss pair must sum to 1")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LossPair) and self._bytes() == other._bytes()

    def __hash__(self) -> int:
        return hash(self._bytes())

    def _bytes(self) -> tuple[bytes, bytes]:
        return self.log_p.tobytes(), self.log_q.tobytes()

    def swap(self) -> "LossPair":
        """Return the same two distributions, compared the other way round."""
        return LossPair(self.log_q, self.log_p)

    def losses(self) -> tuple[Floats, Floats]:
        """Return (probability under P, ln(P/Q)) of every outcome that P can have.

        The loss is infinite where Q cannot have the outcome.
        """
        possible = self.log_p > -np.inf
        log_p = self.log_p[possible]
        log_q = self.log_q[possible]
        impossible = log_q < _LOG_SMALLEST
        # The inner `where` keeps the difference finite where the outer one discards it.
        loss = np.where(impossible, np.inf, log_p - np.where(impossible, 0.0, log_q))
        return np.exp(log_p), loss

    def curve(self) -> Callable[[Floats], Floats]:
        """Return the divergence E_P[max(0, 1 - e^(epsilon - loss))] as a function of epsilon.

        epsilon may be any real number.
        """
        mass, loss = self.losses()
        finite = np.isfinite(loss)
        order = np.argsort(loss[finite])
        steps = loss[finite][order]
        q_sorted = np.exp(self.log_q[self.log_p > -np.inf][finite][order])

        # Abel summation over the sorted losses l_1 < l_2 < ... turns the differences
        # P - e^epsilon Q, in which digits would cancel, into positive terms
        # (1 - e^(l_(j-1) - l_j)) R_j with R_j = e^(l_j) Q(loss >= l_j).
        tails = np.cumsum(q_sorted[::-1])[::-1]
        raised = np.exp(steps + np.log(np.maximum(tails, SMALLEST)))
        gains = -np.expm1(steps[:-1] - steps[1:]) * raised[1:]

        # Outcomes that Q cannot have count in full at every epsilon.
        always = float(mass[~finite].sum())
        above = np.concatenate((np.cumsum(gains[::-1])[::-1], [0.0, 0.0])) + always
        tops = np.append(steps, np.inf)
        scale = np.append(raised, 0.0)

        def divergence(epsilon: Floats) -> Floats:
            first = np.searchsorted(steps, epsilon, side="right")
            return np.asarray(above[first] - np.expm1(epsilon - tops[first]) * scale[first])

        return divergence


def hockey_stick(pairs: Sequence[LossPair], epsilon: float) -> float:
    """Return the exact delta at `epsilon` of one coordinate or two independent ones, rounded up.

    It takes O(W log W) for a support of W outcomes: two coordinates are not multiplied out, but
    the curve of the second is evaluated at what the losses of the first leave of epsilon.
    """
    if not 1 <= len(pairs) <= 2:
        raise ParameterError(
            "give one or two coordinates; more are composed by faircount.accounting.composition"
        )
    target = check_real("epsilon", epsilon) - _LOSS_ERROR
    curve = pairs[-1].curve()
    if len(pairs) == 1:
        value = float(curve(np.array([target]))[0])
    else:
        mass, loss = pairs[0].losses()
        value = float((mass * curve(target - loss)).sum())
    # A delta of 0 is a claim of pure privacy: it must not come from an underflow.
    if sum(float(pair.losses()[1].max()) for pair in pairs) > target:
        value = max(value, SMALLEST)
    return min(1.0, value * ROUND_UP)


def epsilon_for(delta_at: Callable[[float], float], delta: float) -> float:
    """Return the smallest epsilon with delta_at(epsilon) <= delta, rounded up.

    `delta_at` must not increase. delta = 0 asks for pure differential privacy. Refused where no
    epsilon up to 500 is enough.
    """
    wanted = check_real("delta", delta)
    if not 0 <= wanted <= 1:
        raise ParameterError(f"delta must lie in [0, 1], not {wanted:g}")
    if delta_at(0.0) <= wanted:
        return 0.0
    low = 0.0
    high = 1.0
    while delta_at(high) > wanted:
        if high >= LARGEST_EPSILON:
            raise RefusedError(
                f"no epsilon reaches delta = {wanted:g} "
                f"(at epsilon = {high:g} it is still {delta_at(high):.3g}): "
                "ask for a larger delta, or add noise, or rely on a larger floor"
            )
        low = high
        high = min(2 * high, LARGEST_EPSILON)
    return smallest_within(delta_at, wanted, low, high)


def largest_within(value_at: Callable[[float], float], limit: float, top: float = 1.0) -> float:
    """Return the largest x in (0, top] with value_at(x) <= limit, rounded down.

    `value_at` must rise from 0 at x = 0.
    """
    if value_at(top) <= limit:
        return top

    # The search is for rarity = -ln(x / top), so that a tiny x keeps all its digits.
    def value_at_rarity(rarity: float) -> float:
        return value_at(top * math.exp(-rarity))

    low = 0.0
    high = 1.0
    while value_at_rarity(high) > limit:
        if high > _LOG_UNDERFLOW / 2:
            raise RefusedError(f"no parameter reaches delta = {limit:g}: ask for a larger delta")
        low = high
        high = 2 * high
    return top * math.exp(-smallest_within(value_at_rarity, limit, low, high))


def delta_bound(value: float) -> float:
    """Round a computed delta up to a probability that is never 0."""
    return min(1.0, max(value * ROUND_UP, SMALLEST))
