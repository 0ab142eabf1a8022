"""The exact privacy loss of joint noise below epsilon, for composing several releases.

With R(z) the radius of the noise, the largest of the radii of all blocks, the loss of an outcome is
epsilon (R(z + v) - R(z)) where a person's change of answers moves the cells by v. All of v lies in
balls of radius 1, so a loss is -epsilon, 0 or +epsilon: the release is a randomized response that
says nothing with some probability. With B(r) the ball of all blocks, p(r) the probability of a
point of radius r, and I(r) the number of points z in B(r) with z + v in B(r) as well,

    P(loss is not 0) = 1 - sum over r of p(r) (I(r) + I(r - 1) - 2 |B(r - 1)|),

because all points of B(r - 1) stay in B(r). The larger any I(r), the smaller this is. I(r) is the
product of that of all blocks, so that the worst pair of sheets is one in which every block changes,
each by the v that leaves the fewest points, if one v does so at all radii. That is known for

    cube      every cell moves by a whole step: (2 s r + 1 - s)^N points stay
    zero sum  one answer is replaced by another, and all such v are alike

but not for limited balls; nor are losses of three values only, where a number is alone in its group
and has finer balls. There the loss counts as never 0, which bounds any pure loss of epsilon.
"""

from functools import lru_cache
from math import comb, prod

from faircount.mechanisms.exact_draws import BITS
from faircount.mechanisms.joint_noise.balls import (
    Ball,
    CubeBall,
    ZeroSumBall,
    extend_polynomial,
)
from faircount.mechanisms.joint_noise.radius import radius_table

# Fractional bits of the probability of a point, beyond those of the largest ball.
_GUARD = 64

# The table differs from the ideal distribution by less than this, and the result is rounded to a
# double.
_ROUNDING = 1e-12


@lru_cache(maxsize=256)
def informed_share(balls: tuple[Ball, ...], scaled: int) -> float:
    """Return the largest probability that the loss of a group is not 0, over all pairs of sheets.

    scaled: epsilon of the group in units of 2^-128
    """
    if not all(isinstance(ball, CubeBall | ZeroSumBall) for ball in balls):
        return 1.0
    table = radius_table(balls, scaled)
    sizes = [prod(row) for row in zip(*(ball.sizes(table.largest) for ball in balls), strict=True)]
    columns = [count_staying(ball, table.largest) for ball in balls]
    stays = [prod(row) for row in zip(*columns, strict=True)]
    bits = sizes[-1].bit_length() + _GUARD
    point = 0
    equal = 0
    for radius in range(table.largest, -1, -1):
        # A point of this radius is reached from all radii that are at least as large.
        point += (table.weights[radius] << bits) // sizes[radius]
        before = (stays[radius - 1] - 2 * sizes[radius - 1]) if radius else 0
        equal += point * (stays[radius] + before)
    share: float = 1 - equal / (1 << (BITS + bits))
    return min(1.0, share * (1 + _ROUNDING) + _ROUNDING)


def count_staying(ball: Ball, largest: int) -> tuple[int, ...]:
    """Return how many points of a ball stay in it when an answer changes as much as it can.

    It has one number for every radius from 0 to the largest.
    """
    sizes = ball.sizes(largest)
    if isinstance(ball, CubeBall):
        # Of the numbers from -s r to s r, s being the step, the last s leave.
        sides = [max(2 * ball.step * radius + 1 - ball.step, 0) for radius in range(largest + 1)]
        return tuple(int(side**ball.cells) for side in sides)
    # One cell gains and another one loses. Of the points whose positive part is the radius, those
    # leave in which the first is not negative and the second is not positive. With k positive cells
    # among the N - 2 others: compositions of r into k parts and one that may be 0, and of r into
    # the N - 1 - k parts that are left, all of which may be 0. That is a polynomial in r.
    others = ball.cells - 2
    first = [
        sum(
            comb(others, k) * comb(radius, k) * comb(radius + others - k, others - k)
            for k in range(others + 1)
        )
        for radius in range(others + 1)
    ]
    leaving = extend_polynomial(first, largest)
    return tuple(size - gone for size, gone in zip(sizes, leaving, strict=True))
