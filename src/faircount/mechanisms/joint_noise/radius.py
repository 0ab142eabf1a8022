"""The distribution of the radius as a table of integers, and its distance from the ideal.

P(rho) ~ exp(-epsilon rho) prod_q |Ball_q(rho)|. The sizes are whole numbers and the powers of
exp(-epsilon) are computed in fixed point, so that every program gets the same table from the same
epsilon and balls. While a power falls like exp(-epsilon rho), the radius lies near D / epsilon for
D dimensions, so that powers need more digits the larger the group is: 512 + 3 D bits. With 512 bits
for all groups, those with D = 300 dimensions would have a delta of 1/512.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ldexp, prod

from faircount.accounting.exponentials import exp_enclosure
from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.questions.questionnaire import EPSILON_BITS
from faircount.mechanisms.exact_draws import BITS, ONE
from faircount.mechanisms.joint_noise.balls import Ball

# Rows end where a falling weight is below 2^-140 of the sum of all before it.
_NEGLIGIBLE_BITS = 140

# Range of the epsilon of a group: below it a table would have more than 500,000 rows, and above it
# there would be next to no noise.
SMALLEST_EPSILON = 0.001
LARGEST_EPSILON = 50.0

MAX_TABLE_BITS = 1 << 27
"""Bits of all powers of the longest table: seconds on a computer, half a minute on a slow phone."""

# Fractional bits of probabilities while the distance is added up.
_FIXED = 256


@dataclass(frozen=True)
class RadiusTable:
    """Cumulative probabilities of the radius over 2^128.

    cumulative:     that of row r is P(radius <= r); the last one is 2^128
    distance_units: upper bound of the total variation distance from the ideal distribution, times
        2^256
    """

    cumulative: tuple[int, ...] = field(repr=False)
    distance_units: int

    @property
    def largest(self) -> int:
        """The largest radius."""
        return len(self.cumulative) - 1

    @property
    def distance(self) -> float:
        """Upper bound of the total variation distance from the ideal distribution."""
        # Rounded up: the conversion of the integer may have rounded down by a half of 2^-52.
        return ldexp(float(self.distance_units), -_FIXED) * (1 + 2**-50)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Probabilities of the radii, as integers over 2^128."""
        starts = (0, *self.cumulative[:-1])
        return tuple(end - start for start, end in zip(starts, self.cumulative, strict=True))

    def draw(self, entropy: Entropy) -> int:
        """Draw a radius from 128 random bits; every row is looked at, whatever the radius is."""
        drawn = int.from_bytes(entropy.bytes(BITS // 8), "big")
        return sum(entry <= drawn for entry in self.cumulative)


@lru_cache(maxsize=64)
def radius_table(balls: tuple[Ball, ...], scaled: int) -> RadiusTable:
    """Return the distribution of the radius of these balls at epsilon = scaled / 2^128."""
    check_scaled(scaled)
    dimension = sum(ball.dimension for ball in balls)
    # check: radius-precision - powers that vanish too early rule large noise out
    bits = 512 + 3 * dimension
    factor = exp_enclosure(scaled, bits)
    sizes = _Sizes(balls)
    weights: list[int] = []
    # The ideal weight lies between both: powers rounded down, and powers rounded up.
    upper: list[int] = []
    power = 1 << bits
    power_above = power
    total = 0
    while True:
        size = sizes[len(weights)]
        weights.append(power * size)
        upper.append(power_above * size)
        total += weights[-1]
        if _is_negligible(weights, total):
            break
        # A participant's page computes the same table, and refuses a longer one, too.
        if len(weights) * bits > MAX_TABLE_BITS:
            raise ParameterError(
                f"the distribution of the noise of questions with {dimension:,} counts together "
                f"has more than {MAX_TABLE_BITS // bits:,} radii: give them a larger epsilon, or "
                "ask fewer questions"
            )
        power = power * factor >> bits
        power_above = -(-(power_above * (factor + 1)) >> bits)
    running = 0
    cumulative = []
    for weight in weights:
        running += weight
        cumulative.append((running << BITS) // total)
    power_above = -(-(power_above * (factor + 1)) >> bits)
    tail = _tail_bound(balls, sizes, len(weights), (power_above, factor + 1, bits))
    distance = _distance_units(cumulative, weights, upper, tail)
    return RadiusTable(tuple(cumulative), distance)


def check_scaled(scaled: int) -> None:
    """Refuse an epsilon, in units of 2^-128, for which there is no useful table."""
    epsilon = scaled / (1 << EPSILON_BITS)
    if not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        raise ParameterError(
            f"the epsilon of a group of questions must lie between {SMALLEST_EPSILON} and "
            f"{LARGEST_EPSILON:g}, not {epsilon:.3g}"
        )


def _is_negligible(weights: Sequence[int], total: int) -> bool:
    if len(weights) < 2:
        return False
    return weights[-1] < weights[-2] and weights[-1] << _NEGLIGIBLE_BITS < total


class _Sizes:
    """Products of the sizes of balls by radius, computed in advance as far as they are needed."""

    def __init__(self, balls: tuple[Ball, ...]) -> None:
        self._balls = Counter(balls)
        self._known: list[int] = []

    def __getitem__(self, radius: int) -> int:
        if radius >= len(self._known):
            top = max(255, 2 * radius)
            columns = []
            for ball, count in self._balls.items():
                columns.append([size**count for size in ball.sizes(top)])
            self._known = [prod(row) for row in zip(*columns, strict=True)]
        return self._known[radius]


def _tail_bound(
    balls: Sequence[Ball], sizes: _Sizes, start: int, powers: tuple[int, int, int]
) -> int:
    """Return an upper bound of the sum of all weights from radius `start` on.

    The size of a ball of dimension d is a sum of C(r + d - k, d), 0 <= k <= d, with weights that
    are not negative (Stanley). Hence it grows from r to r + 1 by a factor of at most
    (r + 1) / (r + 1 - d), if r >= d, and that factor falls with r. Once the weights surely fall by
    a ratio below 1, the geometric series bounds what follows.
    """
    power, factor, bits = powers
    one = 1 << bits
    radius = start
    total = 0
    while True:
        # grown / kept bounds the ratio of the next weight to this one, and of all later ones. It
        # tends to exp(-epsilon); half the gap between that and 1 is close enough.
        grown = factor * (radius + 1) ** len(balls)
        kept = prod(radius + 1 - ball.dimension for ball in balls) << bits
        is_far = all(radius >= ball.dimension for ball in balls)
        weight = power * sizes[radius]
        if is_far and 2 * (kept - grown) * one > kept * (one - factor):
            return total + int(-((-weight * kept) // (kept - grown)))
        total += weight
        power = -(-(power * factor) >> bits)
        radius += 1


def _distance_units(
    cumulative: Sequence[int], weights: Sequence[int], upper: Sequence[int], tail: int
) -> int:
    """Return an upper bound of the distance between table and ideal distribution, times 2^256.

    The ideal probability of a row lies between weight / (sum of upper + tail) and
    upper / (sum of weights); the distance is half the sum of all differences, rounded up.
    """
    least_sum = sum(weights)
    largest_sum = sum(upper) + tail
    moved = 0
    before = 0
    for entry, low, high in zip(cumulative, weights, upper, strict=True):
        drawn = (entry - before) << (_FIXED - BITS)
        before = entry
        below = drawn - (low << _FIXED) // largest_sum
        above = -(-(high << _FIXED) // least_sum) - drawn
        moved += max(abs(below), abs(above))
    moved += -(-(tail << _FIXED) // least_sum)
    if cumulative[-1] != ONE:
        raise ParameterError("the table of radii must end at 2^128")
    return (moved + 1) // 2
