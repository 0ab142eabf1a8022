"""Joint noise: known answers, samplers by complete enumeration, and privacy of every pair of sheets."""

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from types import FrameType
from typing import Any

import mpmath
import numpy as np
import pytest

from faircount.accounting.composition import compose, randomized_response
from faircount.accounting.guarantee import OUTSIDER, Relation
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError
from faircount.core.questions import (
    AnyOf,
    Block,
    BlockKind,
    MostOf,
    Number,
    OneOf,
    QuestionGroup,
    Questionnaire,
    ScaleMean,
    YesNo,
)
from faircount.mechanisms.joint_noise.balls import (
    Ball,
    CubeBall,
    LimitedBall,
    UniformIntegers,
    ZeroSumBall,
    ball_of,
    shell_rows,
)
from faircount.mechanisms.joint_noise.distributions import cell_distribution, sum_distribution
from faircount.mechanisms.joint_noise.losses import informed_share
from faircount.mechanisms.joint_noise.mechanism import GroupNoise, JointNoise, split_epsilon
from faircount.mechanisms.joint_noise.radius import exp_enclosure, radius_table

ONE = 1 << 128
YES = CubeBall(1)
MIXED = (ZeroSumBall(3), CubeBall(2), CubeBall(1, 10))


def points_of(ball: Ball, radius: int) -> set[tuple[int, ...]]:
    """All points of a ball, found by trying all vectors."""
    reach = radius * getattr(ball, "step", 1)
    tried = product(range(-reach, reach + 1), repeat=ball.cells)
    found = set()
    for point in tried:
        needed = ball.radius_of(point)
        if needed is not None and needed <= radius:
            found.add(point)
    return found


@pytest.mark.parametrize(
    ("ball", "sizes"),
    [
        (YES, (1, 3, 5, 7, 9)),
        (ZeroSumBall(3), (1, 7, 19, 37, 61)),
        (ZeroSumBall(4), (1, 13, 55, 147, 309)),
        (CubeBall(3), (1, 27, 125, 343, 729)),
        (LimitedBall(4, 2), (1, 63, 499, 1949, 5381)),
        (LimitedBall(3, 1), (1, 13, 55, 147, 309)),
        (CubeBall(1, 10), (1, 21, 41, 61, 81)),
    ],
)
def test_sizes_of_balls(ball: Ball, sizes: tuple[int, ...]) -> None:
    assert ball.sizes(4) == sizes
    for radius in range(3):
        assert len(points_of(ball, radius)) == sizes[radius]


@pytest.mark.parametrize("ball", [ZeroSumBall(6), LimitedBall(5, 2), LimitedBall(3, 2)])
def test_sizes_that_follow_from_the_first_ones_are_those_that_are_counted(ball: Ball) -> None:
    assert ball.sizes(20) == tuple(ball.count_points(radius) for radius in range(21))


@pytest.mark.parametrize("ball", [ZeroSumBall(3), CubeBall(2), LimitedBall(3, 2), CubeBall(1, 3)])
def test_balls_add_up(ball: Ball) -> None:
    """Ball(a) + Ball(b) lies in Ball(a + b), and Ball(1) is symmetric."""
    for a, b in ((1, 1), (1, 2)):
        whole = points_of(ball, a + b)
        for left in points_of(ball, a):
            for right in points_of(ball, b):
                assert tuple(x + y for x, y in zip(left, right, strict=True)) in whole
    assert {tuple(-x for x in point) for point in points_of(ball, 1)} == points_of(ball, 1)


class Choices(UniformIntegers):
    """Takes prepared integers, and records the bounds of those that it was asked for."""

    def __init__(self, prepared: Sequence[int]) -> None:
        self.prepared = list(prepared)
        self.bounds: list[int] = []
        self.largest: list[int] = []

    def below(self, bound: int, largest: int) -> int:
        assert bound <= largest
        place = len(self.bounds)
        self.bounds.append(bound)
        self.largest.append(largest)
        return self.prepared[place] if place < len(self.prepared) else 0


def all_draws(ball: Ball, radius: int, largest: int) -> Iterator[tuple[tuple[int, ...], Fraction]]:
    """Every course of a draw, with its probability if all integers are uniform."""
    prepared: list[int] = []
    while True:
        source = Choices(prepared)
        point = ball.draw(radius, largest, source)
        chance = Fraction(1, math.prod(source.bounds))
        yield tuple(point), chance
        taken = prepared + [0] * (len(source.bounds) - len(prepared))
        # The next course in the order of an odometer; those after the changed wheel begin anew.
        while taken and taken[-1] == source.bounds[len(taken) - 1] - 1:
            taken.pop()
        if not taken:
            return
        taken[-1] += 1
        prepared = taken


@pytest.mark.parametrize(
    ("ball", "radius"),
    [
        (YES, 2),
        (CubeBall(2), 1),
        (CubeBall(1, 3), 2),
        (ZeroSumBall(3), 0),
        (ZeroSumBall(3), 1),
        (ZeroSumBall(3), 3),
        (ZeroSumBall(4), 1),
        (LimitedBall(3, 2), 1),
        (LimitedBall(2, 1), 2),
        (LimitedBall(2, 1), 0),
    ],
)
def test_every_point_of_a_ball_is_drawn_equally_often(ball: Ball, radius: int) -> None:
    """All courses of the sampler together, exactly."""
    chances: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for point, chance in all_draws(ball, radius, radius + 1):
        chances[point] += chance
    expected = points_of(ball, radius)
    assert set(chances) == expected
    assert set(chances.values()) == {Fraction(1, len(expected))}


@pytest.mark.parametrize("ball", [ZeroSumBall(5), LimitedBall(4, 2)])
def test_larger_balls_are_drawn_evenly(ball: Ball) -> None:
    source = UniformIntegers(SeededStream(5))
    radius = 2
    size = ball.sizes(radius)[radius]
    drawn = Counter(tuple(ball.draw(radius, 4, source)) for _ in range(20 * size))
    assert len(drawn) == size
    chi_squared = sum((count - 20) ** 2 / 20 for count in drawn.values())
    # Six standard deviations of chi-squared with size - 1 degrees of freedom.
    assert abs(chi_squared - (size - 1)) < 6 * math.sqrt(2 * size)


@pytest.mark.parametrize("ball", [YES, CubeBall(3), ZeroSumBall(6), LimitedBall(5, 2)])
def test_the_draws_do_not_tell_the_radius(ball: Ball) -> None:
    """As many integers from as many random bytes at every radius, whatever they are."""
    taken = set()
    for radius in range(9):
        for seed in range(4):
            source = Choices(np.random.default_rng(seed).integers(0, 1, 50).tolist())
            ball.draw(radius, 8, source)
            taken.add(tuple(source.largest))
    assert len({len(bounds) for bounds in taken}) == 1
    assert {sum(bound.bit_length() for bound in bounds) for bounds in taken} == {
        sum(bound.bit_length() for bound in next(iter(taken)))
    }
    assert len(next(iter(taken))) == ball.draws


def test_uniform_integers_are_as_close_as_they_say() -> None:
    """Of all 2^k inputs each value gets the same number, up to one."""
    for bound in (3, 7, 10):
        shares = Counter(drawn * bound >> 8 for drawn in range(256))
        assert max(shares.values()) - min(shares.values()) <= 1


@pytest.mark.parametrize("epsilon", [0.001, 0.3, 1.0, 7.7, 50.0])
def test_the_exponential_is_exact(epsilon: float) -> None:
    with mpmath.workprec(3000):
        expected = int(mpmath.floor(mpmath.ldexp(mpmath.exp(-mpmath.mpf(epsilon)), 900)))
    assert exp_enclosure(int(Fraction(epsilon) * ONE), 900) == expected


def test_the_radius_of_two_yes_no_questions() -> None:
    table = radius_table((YES, YES), ONE)
    assert table.cumulative[:3] == (
        25713028559897842831722750403483781910,
        110846679756862835578130993446240010670,
        197843679832484983453766934137854044964,
    )
    assert len(table.cumulative) == 107
    mean = sum(radius * weight for radius, weight in enumerate(table.weights)) / ONE
    assert round(mean, 6) == 2.487251


@pytest.mark.parametrize(
    ("balls", "epsilon", "bits"),
    [
        ((YES,) * 8, 1.0, -120),
        ((ZeroSumBall(5),) * 10, 1.0, -120),
        ((ZeroSumBall(30),), 0.1, -119),
        ((CubeBall(400),), 1.0, -120),
        ((LimitedBall(10, 3), CubeBall(1, 10)), 0.5, -120),
        ((ZeroSumBall(40),), 50.0, -120),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_distance_of_a_table_is_what_mpmath_finds(
    balls: tuple[Ball, ...], epsilon: float, bits: int
) -> None:
    """The bound is rigorous and nearly attained; the precision grows with the dimensions."""
    table = radius_table(balls, int(Fraction(epsilon) * ONE))
    with mpmath.workprec(1000 + 8 * sum(ball.dimension for ball in balls)):
        factor = mpmath.exp(-mpmath.mpf(epsilon))
        rows = 2 * len(table.cumulative) + 200
        sizes = [math.prod(row) for row in zip(*(b.sizes(rows) for b in balls), strict=True)]
        ideal = [size * factor**radius for radius, size in enumerate(sizes)]
        whole = mpmath.fsum(ideal)
        drawn = [*table.weights, *[0] * (len(ideal) - len(table.weights))]
        differences = [
            abs(mpmath.mpf(w) / ONE - p / whole) for w, p in zip(drawn, ideal, strict=True)
        ]
        distance = mpmath.fsum(differences) / 2
        assert distance <= table.distance
        # Every row may be off by one unit of 2^-128 more than it really is.
        assert table.distance <= distance + len(table.cumulative) * mpmath.mpf(2) ** -127
        assert table.distance < mpmath.mpf(2) ** bits


def test_a_table_with_512_bits_would_be_wrong_for_large_groups() -> None:
    """Planted: precision that does not grow. The powers vanish before the weights do."""
    factor = exp_enclosure(ONE, 512)
    power = 1 << 512
    for _ in range(355):
        power = power * factor >> 512
    # For any of 300 the radius lies near 300, with a good part of it above 355.
    assert power < 8
    mean = sum(r * w for r, w in enumerate(radius_table((CubeBall(300),), ONE).weights)) / ONE
    assert 295 < mean < 305


@pytest.mark.parametrize(
    ("balls", "place", "epsilon", "variance", "half_width"),
    [
        ((YES,), 0, 1.0, 1.841347, 4),
        ((ZeroSumBall(3),), 0, 1.0, 3.162992, None),
        ((ZeroSumBall(5),), 0, 1.0, 4.628868, None),
        ((ZeroSumBall(10),), 0, 1.0, 6.047950, None),
        ((ZeroSumBall(30),), 0, 1.0, 7.191976, None),
        ((ZeroSumBall(10),), 0, 0.5, 24.70143, None),
        ((YES,) * 2, 0, 1.0, 3.902809, 6),
        ((YES,) * 8, 0, 1.0, 29.916670, 15),
        ((ZeroSumBall(5),) * 3, 0, 1.0, 29.002066, 15),
        ((LimitedBall(10, 3),), 0, 1.0, 35.262871, 16),
        (MIXED, 0, 0.5, 47.219371, 19),
        (MIXED, 1, 0.5, 56.641112, 21),
        (MIXED, 2, 0.5, 5316.403075, 202),
    ],
)  # fmt: skip
def test_known_distributions_of_cells(
    balls: tuple[Ball, ...], place: int, epsilon: float, variance: float, half_width: float | None
) -> None:
    scaled = int(Fraction(epsilon) * ONE)
    assert round(cell_distribution(balls, place, scaled).variance, 6) == variance
    if half_width is not None:
        assert cell_distribution(balls, place, scaled, 2).half_width(0.95) == half_width


def enumerate_distribution(
    balls: Sequence[Ball], scaled: int, reach: int
) -> dict[tuple[tuple[int, ...], ...], float]:
    """P(z) of every vector of points up to a radius, from the table that is drawn from."""
    table = radius_table(tuple(balls), scaled)
    sizes = [math.prod(row) for row in zip(*(b.sizes(table.largest) for b in balls), strict=True)]
    # P(z) = sum of P(rho) / prod |Ball(rho)| over all rho from the radius of z on.
    heights = [0.0] * (table.largest + 2)
    for radius in range(table.largest, -1, -1):
        heights[radius] = heights[radius + 1] + table.weights[radius] / ONE / sizes[radius]
    distribution = {}
    for points in product(*(points_of(ball, reach) for ball in balls)):
        radii = [ball.radius_of(point) for ball, point in zip(balls, points, strict=True)]
        distribution[points] = heights[max(radius or 0 for radius in radii)]
    return distribution


@pytest.mark.parametrize("balls", [(ZeroSumBall(3),), (LimitedBall(3, 2),), (YES, CubeBall(1, 2))])
def test_distributions_of_cells_are_those_of_the_whole_noise(balls: tuple[Ball, ...]) -> None:
    reach = 8
    scaled = 3 * ONE
    seen: Counter[int] = Counter()
    for points, chance in enumerate_distribution(balls, scaled, reach).items():
        seen[points[0][0]] += chance  # type: ignore[assignment]
    distribution = cell_distribution(balls, 0, scaled)
    for value in range(-3, 4):
        assert math.isclose(seen[value], distribution.pmf[value - distribution.low], rel_tol=1e-6)


def test_distributions_of_sums_of_cells() -> None:
    ball = ZeroSumBall(4)
    seen: Counter[int] = Counter()
    for points, chance in enumerate_distribution((ball, YES), 3 * ONE, 7).items():
        seen[sum(points[0][:2])] += chance  # type: ignore[assignment]
    distribution = sum_distribution((ball, YES), 0, 2, 3 * ONE)
    for value in range(-3, 4):
        assert math.isclose(seen[value], distribution.pmf[value - distribution.low], rel_tol=1e-5)
    # Cells that add up to 0 have the covariance -V / (N - 1).
    cell = cell_distribution((ball, YES), 0, 3 * ONE).variance
    assert math.isclose(distribution.variance, 2 * cell * (1 - 1 / 3), rel_tol=1e-12)
    assert math.isclose(sum_distribution((ball, YES), 0, 3, 3 * ONE).variance, cell, rel_tol=1e-12)


# Tiny questionnaires with all of their sheets.
TINY = {
    "two yes/no": (Questionnaire((YesNo(text="a"), YesNo(text="b"))), (range(2), range(2))),
    "one and any": (
        Questionnaire((OneOf(text="a", items=("1", "2", "3")), AnyOf(text="b", items=("1", "2")))),
        (range(3), [(), (0,), (1,), (0, 1)]),
    ),
    "most, number, yes": (
        Questionnaire(
            (
                MostOf(text="a", items=("1", "2", "3"), most=1),
                Number(text="b", low=0, high=2),
                YesNo(text="c"),
            )
        ),
        ([(), (0,), (1,), (2,)], range(3), range(2)),
    ),
    "scale with skip": (
        Questionnaire((ScaleMean(text="a", items=("1", "2", "3"), skip=True), YesNo(text="b"))),
        ([None, 0, 1, 2], range(2)),
    ),
    "a number alone": (Questionnaire((Number(text="a", low=0, high=3),)), (range(4),)),
}


def largest_loss(
    form: Questionnaire, answers: Sequence[Sequence[object]], noise: GroupNoise
) -> float:
    """The largest log ratio over all pairs of sheets and all outcomes near the centre."""
    reach = 4 if len(noise.balls) == 1 else 2
    distribution = enumerate_distribution(noise.balls, noise.scaled, reach)
    cells = [form.cells_from_bits(form.encode(sheet)) for sheet in product(*answers)]
    moves = {tuple(x - y for x, y in zip(a, b, strict=True)) for a in cells for b in cells}
    lengths = [ball.cells for ball in noise.balls]
    worst = 0.0
    for move in moves:
        for points, chance in distribution.items():
            flat = [value for point in points for value in point]
            moved = [value + step for value, step in zip(flat, move, strict=True)]
            parts = []
            for length in lengths:
                parts.append(tuple(moved[:length]))
                del moved[:length]
            other = distribution.get(tuple(parts))
            if other is not None:
                worst = max(worst, math.log(chance / other))
    return worst


@pytest.mark.parametrize("name", TINY)
def test_every_pair_of_sheets_and_every_outcome_lose_at_most_epsilon(name: str) -> None:
    """The table that is drawn from, enumerated: the largest loss is epsilon, and is attained."""
    form, answers = TINY[name]
    group = QuestionGroup.of(0.75, range(len(form)))
    loss = largest_loss(form, answers, GroupNoise.of(form, group))
    assert math.isclose(loss, 0.75, rel_tol=1e-9)


def informed_shares(
    form: Questionnaire, answers: Sequence[Sequence[object]], noise: GroupNoise
) -> tuple[list[float], float]:
    """How often the loss is not 0, for every pair of sheets, and the noise that was left out."""
    reach = 3 if len(noise.balls) == 1 else 2
    distribution = enumerate_distribution(noise.balls, noise.scaled, reach)
    cells = [form.cells_from_bits(form.encode(sheet)) for sheet in product(*answers)]
    moves = {tuple(x - y for x, y in zip(a, b, strict=True)) for a in cells for b in cells}
    shares = []
    for move in moves:
        share = 0.0
        for points, chance in distribution.items():
            left = [value + step for value, step in zip(sum(points, ()), move, strict=True)]
            radii = []
            for ball in noise.balls:
                radii.append(ball.radius_of(left[: ball.cells]))
                del left[: ball.cells]
            before = max(
                b.radius_of(point) or 0 for b, point in zip(noise.balls, points, strict=True)
            )
            share += chance * (max(radius or 0 for radius in radii) != before)
        shares.append(share)
    return shares, 1 - sum(distribution.values())


@pytest.mark.parametrize("name", TINY)
def test_the_worst_pair_of_sheets_is_one_in_which_all_answers_change(name: str) -> None:
    """All pairs of sheets, all noise up to a radius: none has a loss more often than is counted."""
    form, answers = TINY[name]
    noise = GroupNoise.of(form, QuestionGroup.of(4.0, range(len(form))))
    shares, left_out = informed_shares(form, answers, noise)
    assert left_out < 0.02
    counted = informed_share(noise.balls, noise.scaled)
    assert max(shares) <= counted
    is_exact = not any(isinstance(ball, LimitedBall) for ball in noise.balls)
    if is_exact and noise.scaled == noise.group.scaled_epsilon:
        # What was left out may have had a loss, or not.
        assert counted <= max(shares) + left_out


@pytest.mark.parametrize(
    ("balls", "informed"),
    [
        ((YES,), 1.0),
        ((ZeroSumBall(3),), 0.717760),
        ((ZeroSumBall(5),), 0.606934),
        ((ZeroSumBall(10),), 0.561312),
        ((YES,) * 8, 0.851449),
        ((LimitedBall(4, 2),), 1.0),
    ],
)
def test_known_answers_of_how_often_something_is_lost(
    balls: tuple[Ball, ...], informed: float
) -> None:
    assert math.isclose(informed_share(balls, ONE), informed, abs_tol=1e-6)


def test_below_epsilon_delta_is_exact() -> None:
    """Delta of one of three at epsilon 0.4, from all outcomes for two different answers."""
    form = Questionnaire((OneOf(text="q", items=("a", "b", "c")),))
    mechanism = JointNoise(questionnaire=form, groups=split_epsilon(2.0, [[0]]), epsilon=2.0)
    (noise,) = mechanism.noises
    distribution = enumerate_distribution(noise.balls, noise.scaled, 9)
    delta = 0.0
    for ((x, y, z),), chance in distribution.items():
        other = distribution.get(((x + 1, y - 1, z),), 0.0)
        delta += max(chance - math.exp(0.4) * other, 0.0)
    stated = mechanism.delta_at(0.4, OUTSIDER, Relation.REPLACE_ONE)
    assert delta == pytest.approx(stated, abs=1e-5)
    # As if something were always lost, delta would be a fifth larger.
    assert compose([(randomized_response(2.0),)], epsilon=0.4) > 1.2 * stated


def test_a_number_alone_counts_as_always_losing_something() -> None:
    form = Questionnaire((Number(text="a", low=0, high=100),))
    noise = GroupNoise.of(form, QuestionGroup.of(2.0, [0]))
    assert noise.scaled != noise.group.scaled_epsilon
    # Its loss has many values; one of three values would understate the large ones.
    distribution = cell_distribution(noise.balls, 0, noise.scaled)
    later = np.concatenate([np.zeros(100), distribution.pmf])
    earlier = np.concatenate([distribution.pmf, np.zeros(100)])
    for epsilon in (0.3, 1.0, 1.9):
        delta = float(np.maximum(earlier - math.exp(epsilon) * later, 0).sum())
        assert delta <= compose([(noise.response,)], epsilon=epsilon)


@pytest.mark.parametrize("name", TINY)
def test_every_change_of_a_sheet_lies_in_the_smallest_balls(name: str) -> None:
    form, answers = TINY[name]
    balls = [ball_of(block) for question in form.questions for block in question.blocks]
    cells = [form.cells_from_bits(form.encode(sheet)) for sheet in product(*answers)]
    for a in cells:
        for b in cells:
            move = [x - y for x, y in zip(a, b, strict=True)]
            for ball in balls:
                radius = ball.radius_of(move[: ball.cells])
                assert radius is not None
                assert radius <= 1
                del move[: ball.cells]


def test_planted_a_radius_for_each_question_loses_epsilon_for_each() -> None:
    """Each question is private by itself, and all answers together lose four times as much."""
    alone = enumerate_distribution((YES,), ONE, 2)
    loss = math.log(alone[((0,),)] / alone[((1,),)])
    assert math.isclose(4 * loss, 4.0, rel_tol=1e-9)


def test_planted_the_radius_of_one_question_used_for_four() -> None:
    """Counts look plausible, and the loss is 4.2 instead of 1 at the centre."""
    table = radius_table((YES,), ONE)
    heights = [0.0] * (table.largest + 2)
    for radius in range(table.largest, -1, -1):
        points = (2 * radius + 1) ** 4
        heights[radius] = heights[radius + 1] + table.weights[radius] / ONE / points
    assert round(math.log(heights[0] / heights[1]), 3) == 4.222
    assert round(math.log(heights[5] / heights[6]), 2) == 1.48


def test_a_number_alone_has_discrete_laplace_noise() -> None:
    """Finer balls at a part of epsilon: never worse than whole ones, and that of Laplace."""
    for epsilon, largest in product((0.5, 1.0, 2.0, 4.0), (100, 97)):
        form = Questionnaire((Number(text="a", low=0, high=largest),))
        mechanism = JointNoise(
            questionnaire=form, groups=split_epsilon(epsilon, [[0]]), epsilon=epsilon
        )
        fine = mechanism.distribution(0).variance
        whole = cell_distribution((CubeBall(1, largest),), 0, int(Fraction(epsilon) * ONE)).variance
        ratio = math.exp(-epsilon / largest)
        laplace = 2 * ratio / (1 - ratio) ** 2
        # A range that no number of parts divides is rounded up, by 1% here.
        assert fine < 1.001 * whole
        assert fine < 1.03 * laplace


def make_mechanism(draws: int = 1) -> JointNoise:
    form = Questionnaire(
        (
            OneOf(text="a", items=("1", "2", "3")),
            YesNo(text="b"),
            Number(text="c", low=0, high=10, skip=True),
            MostOf(text="d", items=("1", "2", "3"), most=2),
        )
    )
    groups = split_epsilon(2.0, [[3, 0], [1, 2]], [1.0, 3.0])
    return JointNoise(questionnaire=form, groups=groups, epsilon=2.0, draws=draws, users=100)


@pytest.mark.parametrize("draws", [1, 2])
def test_drawn_noise_has_the_distributions_of_its_cells(draws: int) -> None:
    mechanism = make_mechanism(draws)
    entropy = SeededStream(7)
    cells = np.array([20, 30, 50, 40, 300, 80, 10, 20, 30])
    drawn = np.array([mechanism.release(cells, entropy) for _ in range(2000)]) - cells
    assert np.all(drawn[:, :3].sum(axis=1) == 0)
    variance = mechanism.variance(None, 1)
    error = np.abs(drawn.var(axis=0) / variance - 1)
    assert np.all(error < 0.25), error
    assert np.all(np.abs(drawn.mean(axis=0)) < 5 * np.sqrt(variance / 2000))
    # Questions of one group share a radius: large noise in one goes with large noise in another.
    same = np.corrcoef(np.abs(drawn[:, 3]), np.abs(drawn[:, 4]))[0, 1]
    other = np.corrcoef(np.abs(drawn[:, 3]), np.abs(drawn[:, 0]))[0, 1]
    assert same > 0.1 > other


def test_a_whole_draw_takes_as_many_bytes_whatever_the_noise_is() -> None:
    class Counted(SeededStream):
        """Counts the bytes that are taken."""

        taken = 0

        def bytes(self, size: int) -> bytes:
            self.taken += size
            return super().bytes(size)

    mechanism = make_mechanism()
    taken = set()
    for seed in range(100):
        entropy = Counted(seed)
        mechanism.draw_noise(entropy)
        taken.add(entropy.taken)
    assert len(taken) == 1


def test_the_guarantee_counts_the_distance_of_the_tables() -> None:
    mechanism = make_mechanism()
    stated = mechanism.stated_guarantees()[0]
    assert stated.epsilon == 2.0
    assert 0 < stated.delta < 1e-34
    distances = [noise.distance for noise in mechanism.noises]
    assert sum(distances) > 2.0**-129 * 20
    factors = [1 + math.exp(0.5), 1 + math.exp(1.5)]
    expected = sum(factor * d for factor, d in zip(factors, distances, strict=True))
    assert math.isclose(stated.delta, expected, rel_tol=1e-12)
    # Below epsilon delta is that of two randomized responses, one per group.
    assert 0.1 < mechanism.delta_at(1.0, OUTSIDER, Relation.REPLACE_ONE) < 0.6
    assert mechanism.delta_at(3.0, OUTSIDER, Relation.ZERO_OUT) == 1.0
    losses = mechanism.losses(OUTSIDER)
    assert losses is not None
    assert len(losses.pairs) == 2
    assert losses.table_delta == stated.delta


def test_a_question_without_a_group_is_refused() -> None:
    form = Questionnaire((YesNo(text="a"), YesNo(text="b")))
    for groups in ([[0]], [[0, 1], [1]]):
        with pytest.raises(ParameterError, match="exactly one group"):
            JointNoise(questionnaire=form, groups=split_epsilon(1.0, groups), epsilon=1.0)
    with pytest.raises(ParameterError, match="more than epsilon"):
        JointNoise(questionnaire=form, groups=split_epsilon(1.5, [[0, 1]]), epsilon=1.0)


def test_spoiled_counts_do_not_add_up() -> None:
    mechanism = make_mechanism()
    sums = mechanism.release(np.array([20, 30, 50, 40, 300, 80, 10, 20, 30]), SeededStream(1))
    assert mechanism.decode(sums, 100) is not None
    sums[1] += 1
    with pytest.raises(CorruptSumError, match="question 1 do not add up to the 100 users"):
        mechanism.decode(sums, 100)
    with pytest.raises(AnswerError, match="9 whole numbers"):
        mechanism.release(np.array([1, 2]), SeededStream(1))


def test_an_epsilon_without_a_useful_table_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"between 0\.001 and 50"):
        radius_table((YES,), ONE // 2000)
    with pytest.raises(ParameterError, match="larger epsilon, or fewer answers"):
        shell_rows(300, 4000)
    with pytest.raises(ParameterError, match="up to 300 answers, not 301"):
        ball_of(Block(BlockKind.ONE, 301))


def test_a_table_that_would_keep_a_phone_busy_is_refused(monkeypatch) -> None:
    """Powers for 400 counts have 1,712 bits; a smaller limit than the real one is cheaper."""
    limit = "faircount.mechanisms.joint_noise.radius.MAX_TABLE_BITS"
    monkeypatch.setattr(limit, 1 << 20)
    with pytest.raises(ParameterError, match="400 counts together has more than 612 radii"):
        radius_table((CubeBall(400),), ONE // 10)


@pytest.mark.parametrize("ball", [ZeroSumBall(300), LimitedBall(58, 30)])
def test_noise_that_cannot_be_drawn_is_refused(ball) -> None:
    """40 questions of at most 30 of 58 items kept a server drawing until its memory was full."""
    assert ball.check_drawable(600) is None
    with pytest.raises(ParameterError, match="its tables would not fit into memory"):
        ball.check_drawable(4000)


def test_a_limited_ball_works_as_long_at_radius_0_as_at_others() -> None:
    steps = 0

    def count(frame: FrameType, event: str, arg: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    ball = LimitedBall(3, 2)
    counts = []
    for radius in (0, 5, 20):
        source = UniformIntegers(SeededStream(1))
        ball.draw(radius, 20, source)
        steps = 0
        before = sys.gettrace()
        sys.settrace(count)
        ball.draw(radius, 20, source)
        sys.settrace(before)
        counts.append(steps)
    # A pass over 20 entries for each of three cells would make a difference of 60 and more.
    assert max(counts) - min(counts) < 30
