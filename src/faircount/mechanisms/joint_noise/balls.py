"""The balls of the kinds of blocks: their sizes, and uniform points in them.

    cube      {|z_i| <= step r}                                   any, yes/no, a number
    zero sum  {sum of z = 0, sum of positive z <= r}              exactly one of several
    limited   {|z_i| <= r, sum of positive z <= c r, of negative z likewise}    at most c

Each is the set of integer points in the r-fold of a polytope whose corners are integer, so that its
size is a polynomial in r of the degree `dimension` (Ehrhart).

Points are drawn in a time that does not tell the radius. How long a draw took is often known to
others, and a known radius would make many outcomes impossible. A draw at any radius therefore makes
the draws and the loops of one at the largest radius of the table: the number of random bytes, of
loop passes and of table entries that are looked at depends on the block and on that largest radius
alone. What is not constant is what Python does not offer: an operation on integers of several
hundred bits takes some nanoseconds more when they are larger (with limited balls these add up to a
few percent of the time), and the processor's caches remember which row of a table was used.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from math import comb

from faircount.core.entropy import Entropy
from faircount.core.errors import ParameterError
from faircount.core.questions import Block, BlockKind

# Every uniform integer is made from so many random bits more than it has itself.
EXTRA_BITS = 128

MAX_CELLS = {BlockKind.ONE: 300, BlockKind.MOST: 60}
"""With more cells the sizes of balls would take minutes to count."""

# Most entries of a table from which a point is drawn, some hundred bytes each. A participant's page
# refuses a survey with more of them, too.
MAX_ENTRIES = 1 << 20


class UniformIntegers:
    """Uniform integers below any bound, from a fixed number of random bytes each.

    With u uniform in [0, 2^k), u * bound >> k takes every value with a probability that is off by
    less than 2^-k. k has 128 bits more than the largest bound, so that the distance from a uniform
    integer is at most 2^-129 (total variation). Rejecting too large integers would be exact, but
    the time it takes depends on the bound.
    """

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy

    def below(self, bound: int, largest: int) -> int:
        """Return a uniform integer in [0, bound), where the bound is at most `largest`."""
        size = (largest.bit_length() + EXTRA_BITS + 7) // 8
        # By the largest bound and not by this one: the number of bytes must not tell the radius.
        drawn = int.from_bytes(self._entropy.bytes(size), "big")
        return drawn * bound >> (8 * size)

    def shuffle(self, size: int) -> list[int]:
        """Return the numbers 0 .. size - 1 in a uniform order (size - 1 draws)."""
        order = list(range(size))
        for last in range(size - 1, 0, -1):
            chosen = self.below(last + 1, size)
            # Fisher-Yates: every order comes from exactly one sequence of draws.
            order[last], order[chosen] = order[chosen], order[last]
        return order

    def subset(self, size: int, chosen: int, largest: int) -> list[int]:
        """Return a uniform subset of [0, size) with `chosen` elements, sorted (`chosen` draws)."""
        # Floyd's algorithm: its number of draws is that of the elements, however large the set.
        found: set[int] = set()
        for last in range(size - chosen, size):
            drawn = self.below(last + 1, largest)
            found.add(last if drawn in found else drawn)
        return sorted(found)


class Ball(ABC):
    """The balls of one block of cells."""

    cells: int

    @property
    def reach(self) -> int:
        """By how much one step of the radius may move a cell."""
        return 1

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Dimension of the balls: how many cells can vary freely."""

    @property
    @abstractmethod
    def draws(self) -> int:
        """How many uniform integers a point takes, at any radius."""

    @abstractmethod
    def count_points(self, radius: int) -> int:
        """Return the size of a ball by counting."""

    @abstractmethod
    def radius_of(self, point: Sequence[int]) -> int | None:
        """Return the smallest radius whose ball holds the point; None if no ball does."""

    @abstractmethod
    def draw(self, radius: int, largest: int, source: UniformIntegers) -> list[int]:
        """Return a uniform point of Ball(radius), in the time of one in Ball(largest)."""

    def sizes(self, largest: int) -> tuple[int, ...]:
        """Return the sizes of the balls with the radii 0 .. largest."""
        return ball_sizes(self, largest)

    def count_entries(self, largest: int) -> int:
        """Return how many entries the tables have from which points up to a radius are drawn."""
        return 0

    def check_drawable(self, largest: int) -> None:
        """Refuse a largest radius at which the tables of a draw would not fit into memory."""
        # check: drawable-noise - a server that cannot draw ends a survey that all have answered
        if self.count_entries(largest) > MAX_ENTRIES:
            raise ParameterError(
                f"a question with {self.cells:,} answers needs a larger epsilon, or fewer answers: "
                "its tables would not fit into memory"
            )


@lru_cache(maxsize=256)
def ball_sizes(ball: Ball, largest: int) -> tuple[int, ...]:
    """Return the sizes of the balls with the radii 0 .. largest.

    They are the values of a polynomial, so dimension + 1 of them are counted and the others follow
    by additions.
    """
    # Counting is slow, an addition is not: the tables have thousands of radii.
    first = [ball.count_points(radius) for radius in range(ball.dimension + 1)]
    return extend_polynomial(first, largest)


def extend_polynomial(first: list[int], largest: int) -> tuple[int, ...]:
    """Return p(0) .. p(largest) of a polynomial from its first values, one more than its degree.

    Only additions are needed: differences of differences, of which the last are all the same.
    """
    edge = []
    row = first
    # Exact: integers of any size, where floats would lose the last digits of the sizes.
    while row:
        edge.append(row[0])
        row = [after - before for before, after in pairwise(row)]
    values = []
    for _ in range(largest + 1):
        values.append(edge[0])
        edge = [value + step for value, step in zip(edge, [*edge[1:], 0], strict=True)]
    return tuple(values)


@dataclass(frozen=True, slots=True)
class CubeBall(Ball):
    """{|z_i| <= step r}: every cell moves by up to `step`, independently of the others."""

    cells: int
    step: int = 1

    @property
    def reach(self) -> int:
        """The step of the cube."""
        return self.step

    @property
    def dimension(self) -> int:
        """All cells vary."""
        return self.cells

    @property
    def draws(self) -> int:
        """One integer per cell."""
        return self.cells

    def count_points(self, radius: int) -> int:
        """Return (2 step r + 1)^cells."""
        return int((2 * self.step * radius + 1) ** self.cells)

    def sizes(self, largest: int) -> tuple[int, ...]:
        """Return the powers themselves, which takes less than to add differences up."""
        return tuple(self.count_points(radius) for radius in range(largest + 1))

    def radius_of(self, point: Sequence[int]) -> int:
        """Return the largest move in steps, rounded up."""
        return -(-max(map(abs, point)) // self.step)

    def draw(self, radius: int, largest: int, source: UniformIntegers) -> list[int]:
        """Draw every cell uniformly."""
        reach = self.step * radius
        most = 2 * self.step * largest + 1
        return [source.below(2 * reach + 1, most) - reach for _ in range(self.cells)]


@dataclass(frozen=True, slots=True)
class ZeroSumBall(Ball):
    """{sum of z = 0, sum of positive z <= r}: a replaced answer moves one from cell to cell."""

    cells: int

    @property
    def dimension(self) -> int:
        """The last cell follows from the others."""
        return self.cells - 1

    @property
    def draws(self) -> int:
        """The positive part, how many cells share it, an order of the cells, and the shares."""
        return 2 + (self.cells - 1) + (self.cells - 2)

    def count_points(self, radius: int) -> int:
        """Return the number of points, from the h*-vector C(d, k)^2 of the root polytope A_d."""
        d = self.dimension
        return sum(comb(d, k) ** 2 * comb(radius + d - k, d) for k in range(d + 1))

    def radius_of(self, point: Sequence[int]) -> int | None:
        """Return the sum of the positive cells, if all cells add up to 0."""
        return sum(value for value in point if value > 0) if sum(point) == 0 else None

    def count_entries(self, largest: int) -> int:
        """Return those of the table of shells."""
        return self.cells * largest

    def draw(self, radius: int, largest: int, source: UniformIntegers) -> list[int]:
        """Draw the positive part s, the cells that share it, and the shares of all cells."""
        sizes = self.sizes(largest)
        drawn = source.below(sizes[radius], sizes[largest])
        # The smallest s whose ball holds more than `drawn` points; all sizes are looked at.
        part = sum(size <= drawn for size in sizes)
        # The zero vector makes the draws of another point, which is multiplied by 0 in the end.
        s = max(part, 1)
        rows = shell_rows(self.cells, largest)
        row = rows[min(s, largest)]
        drawn = source.below(row[-1], rows[largest][-1])
        # Without a search that stops: every entry of the row is compared, at any radius.
        positive = 1 + sum(weight <= drawn for weight in row[:-1])
        order = source.shuffle(self.cells)
        most = largest + self.cells
        # Stars and bars: cuts make positive parts of s, bars make parts that may be 0.
        cuts = source.subset(s - 1, positive - 1, most)
        bars = source.subset(s + self.cells - positive - 1, self.cells - positive - 1, most)
        ends = [0, *(cut + 1 for cut in cuts), s]
        edges = [-1, *bars, s + self.cells - positive - 1]
        shares = [end - start for start, end in pairwise(ends)]
        shares += [start - end + 1 for start, end in pairwise(edges)]
        point = [0] * self.cells
        for cell, share in zip(order, shares, strict=True):
            point[cell] = share * min(part, 1)
        return point


@lru_cache(maxsize=64)
def shell_rows(cells: int, largest: int) -> tuple[tuple[int, ...], ...]:
    """Return for s = 0 .. largest how the points with positive part s divide.

    A row holds the cumulative numbers of points with 1, 2, ..., cells - 1 positive cells:
    C(N, i) choices of the cells, C(s-1, i-1) compositions of s into i positive parts, and
    C(N-i+s-1, s) of -s into parts of at most 0. Row 0 stands in for row 1.
    """
    ZeroSumBall(cells).check_drawable(largest)
    rows = []
    for s in range(largest + 1):
        part = max(s, 1)
        weights = [
            comb(cells, i) * comb(part - 1, i - 1) * comb(cells - i + part - 1, part)
            for i in range(1, cells)
        ]
        rows.append(tuple(accumulate(weights)))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class LimitedBall(Ball):
    """{|z_i| <= r, sum of positive z <= c r, of negative z likewise}: at most c cells are chosen.

    Whoever replaces c items by c others moves c cells up and c cells down.
    """

    cells: int
    limit: int

    @property
    def dimension(self) -> int:
        """All cells vary."""
        return self.cells

    @property
    def draws(self) -> int:
        """How many cells are positive and negative, an order of the cells, and their values."""
        return 1 + (self.cells - 1) + self.cells

    def count_points(self, radius: int) -> int:
        """Return the number of points, by the numbers of positive and of negative cells."""
        return sum(self._sign_weights(count_bounded(self.cells, radius, self.limit * radius)))

    def _sign_weights(self, counts: list[list[int]]) -> list[int]:
        """Return the numbers of points for every pair in `_sign_pairs`."""
        whole = [row[-1] for row in counts]
        return [
            comb(self.cells, up) * comb(self.cells - up, down) * whole[up] * whole[down]
            for up, down in self._sign_pairs()
        ]

    def _sign_pairs(self) -> list[tuple[int, int]]:
        """Return all pairs of a number of positive and a number of negative cells."""
        pairs = []
        for up in range(self.cells + 1):
            pairs += [(up, down) for down in range(self.cells - up + 1)]
        return pairs

    def radius_of(self, point: Sequence[int]) -> int:
        """Return the largest of the cells and of both parts, divided by the limit."""
        up = sum(value for value in point if value > 0)
        down = -sum(value for value in point if value < 0)
        return max(*map(abs, point), -(-up // self.limit), -(-down // self.limit))

    def count_entries(self, largest: int) -> int:
        """Return those of the numbers of ways, whose sums go up to the limit times the radius."""
        return self.cells * self.limit * largest

    def draw(self, radius: int, largest: int, source: UniformIntegers) -> list[int]:
        """Draw how many cells are positive and negative, then one value after the other."""
        budget = self.limit * radius
        # The table is as long as that of the largest radius, and the part within the budget counts.
        # All of its entries have as many digits as the largest number of ways.
        pad = 1 << ((largest + 1) ** self.cells).bit_length()
        padded = count_bounded(self.cells, radius, self.limit * largest, pad)
        whole = [[row[budget] - pad] for row in padded]
        weights = list(accumulate(self._sign_weights(whole)))
        drawn = source.below(weights[-1], self.sizes(largest)[largest])
        up, down = self._sign_pairs()[sum(weight <= drawn for weight in weights)]
        order = source.shuffle(self.cells)
        values = self._draw_parts((up, down), (radius, largest, pad), padded, source)
        point = [0] * self.cells
        for cell, value in zip(order, values, strict=True):
            point[cell] = value
        return point

    def _draw_parts(
        self,
        signs: tuple[int, int],
        reach: tuple[int, int, int],
        padded: list[list[int]],
        source: UniformIntegers,
    ) -> list[int]:
        """Draw the positive values, then the negative ones, then as many zeros as are missing."""
        up, down = signs
        radius = reach[0]
        plan = [(1, up - 1 - place) for place in range(up)]
        plan += [(-1, down - 1 - place) for place in range(down)]
        plan += [(0, 0)] * (self.cells - up - down)
        values = []
        left = self.limit * radius
        sign_before = 1
        for sign, others in plan:
            if sign != sign_before:
                left = self.limit * radius
                sign_before = sign
            value = _draw_bounded(padded[others], left, reach, source)
            left -= value * abs(sign)
            values.append(sign * value)
        return values


def _draw_bounded(
    others: list[int], left: int, reach: tuple[int, int, int], source: UniformIntegers
) -> int:
    """Draw a value in [1, radius] whose probability is proportional to what it leaves to others.

    others: in how many ways the other values can have a sum of at most 0, 1, 2, ..., padded
    reach: the radius, the largest radius, and the padding, which exceeds all numbers of ways
    """
    radius, largest, pad = reach
    ways = []
    total = 0
    # Always as many passes as at the largest radius; values beyond the radius have no ways.
    for value in range(1, largest + 1):
        is_possible = (value <= radius) & (value <= left)
        total += (others[max(left - value, 0)] - pad) * is_possible
        ways.append(total)
    drawn = source.below(max(total, 1), pad)
    # All entries are looked at also where nothing is possible, which is at radius 0 alone: known to
    # be 0, the noise would hide nothing.
    value = 1 + sum(way <= drawn for way in ways)
    return value * (total > 0)


def count_bounded(parts: int, top: int, most: int, pad: int = 0) -> list[list[int]]:
    """Return how many vectors in [1, top]^i have a sum of at most b, for i <= parts, b <= most.

    pad: is added to every number, so that all have the same length
    """
    counts = [[1 + pad] * (most + 1)]
    for _ in range(parts):
        before = counts[-1]
        row = [pad]
        for b in range(1, most + 1):
            # A window of `top` entries moves along: one enters, and one leaves.
            leaving = before[b - 1 - top] if b > top else pad
            row.append(row[-1] + before[b - 1] - leaving)
        counts.append(row)
    return counts


def ball_of(block: Block) -> Ball:
    """Return the balls of a block; one with too many cells is refused."""
    most = MAX_CELLS.get(block.kind)
    if most is not None and block.cells > most:
        raise ParameterError(
            f"joint noise is for questions of kind {block.kind} with up to {most} answers, not "
            f"{block.cells:,}: merge answers, or ask this question by itself"
        )
    if block.kind is BlockKind.ONE:
        return ZeroSumBall(block.cells)
    if block.kind is BlockKind.MOST:
        return LimitedBall(block.cells, block.bound)
    if block.kind is BlockKind.NUMBER:
        return CubeBall(1, block.bound)
    return CubeBall(block.cells)
