"""Ways in which a mechanism once stated a guarantee that was not true, and input that once crashed it."""

import math
from math import comb

import numpy as np
import pytest

import faircount as fc
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, Adversary, Relation, insiders
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, FaircountError, ParameterError, RefusedError
from faircount.mechanisms.count_law import Channel, NoiseLaw
from faircount.mechanisms.exact_draws import ONE, DrawTable, flips
from faircount.mechanisms.two_stage import TwoStageResponse, TwoStageSum

CROWD = {"items": 5, "users": 1000, "p": 0.5, "floor": 100}


def test_the_floor_hides_nobody_from_whoever_sees_the_report_itself() -> None:
    for made, delta in ((fc.DPDS(**CROWD), 0.5), (fc.TSS(**CROWD, alpha=0.4), 0.5), (fc.DPCS(**CROWD), 1.0)):
        claim = made.guarantee(epsilon=0.5, adversary=COLLECTOR)
        assert (claim.delta, claim.condition) == (delta, None)
        assert made.guarantee(epsilon=0.5, adversary=OUTSIDER).delta < 1e-4


def test_no_guarantee_against_an_adversary_whose_view_is_not_known() -> None:
    made = fc.TSSPrime(**CROWD, alpha=0.4, gamma=2.0)
    for who in (Adversary("S1, the coordinator"), Adversary(S1.who, 1)):
        with pytest.raises(RefusedError, match="not known"):
            made.guarantee(epsilon=0.5, adversary=who)


def test_a_misspelt_relation_is_refused_and_a_name_means_the_relation() -> None:
    for made in (fc.DPDS(**CROWD), fc.Laplace(items=5, users=10, epsilon=1.0)):
        with pytest.raises(ParameterError, match="relation"):
            made.guarantee(epsilon=0.5, relation="replace_one")  # type: ignore[arg-type] # that is the point
        named = made.guarantee(epsilon=0.5, relation="replace-one")  # type: ignore[arg-type] # that is the point
        assert named == made.guarantee(epsilon=0.5, relation=Relation.REPLACE_ONE)


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int16])
def test_small_numpy_integers_do_not_wrap_around(kind: type) -> None:
    """An unsigned 5 minus 6 insiders is 255 others to hide among, or 2^64 - 1."""
    made = fc.DPDS(items=5, users=kind(100), p=0.5, floor=kind(5), insiders=kind(6), dropouts=kind(0))
    assert made.guarantee(epsilon=0.5, adversary=insiders(6)).delta == 0.5
    assert made.guarantee(epsilon=0.5, adversary=Adversary("participants", kind(6))).delta == 0.5
    noise = fc.Laplace(items=3, users=kind(100), epsilon=0.1, insiders=kind(1))
    assert noise.modulus == fc.Laplace(items=3, users=100, epsilon=0.1).modulus
    assert fc.Decoys(items=3, users=kind(100), epsilon=0.1, delta=1e-5).D > 5000
    assert fc.DPDG(items=3, users=kind(20), epsilon=1.0, delta=1e-3, scale=kind(8)).modulus > 400
    assert fc.PM(epsilon=1.0, cells=kind(64)).respond(np.zeros(3), SeededStream(1)).size == 3
    assert fc.TSSPrime(items=5, users=kind(30), p=0.5, alpha=0.4, gamma=kind(2), phi=kind(2)).modulus == 31


def test_the_weakest_guarantee_comes_first_at_a_given_delta() -> None:
    """All deltas are then the one asked for, up to rounding: epsilon decides."""
    for p in (0.1, 0.2, 0.3, 0.5, 0.7):
        for floor in (30, 60, 100, 150):
            for made in (
                fc.DPDS(items=5, users=1000, p=p, floor=floor),
                fc.TSS(items=5, users=1000, p=p, floor=floor, alpha=0.4),
            ):
                try:
                    stated = made.guarantees(delta=1e-6)
                except RefusedError:
                    continue
                assert stated[0].epsilon == max(each.epsilon for each in stated)
                at_one = made.guarantees(epsilon=1.0)
                assert at_one[0].delta == max(each.delta for each in at_one)


def test_two_stage_states_what_was_asked_for_or_refuses() -> None:
    with pytest.raises(ParameterError, match="phi"):
        fc.TSSPrime(**CROWD, alpha=0.4, insiders=5, phi=1)
    spoken_of = [each.adversary for each in fc.TSSPrime(**CROWD, alpha=0.4, insiders=0).guarantees(epsilon=1.0)]
    assert len(spoken_of) == len(set(spoken_of)) == 3


def test_realized_keeps_an_epsilon_of_zero_and_names_the_weakest() -> None:
    strict = fc.DPDS(items=5, users=1000, epsilon=0.0, delta=0.01, floor=100)
    assert strict.realized(990).epsilon == 0.0
    staged = fc.TSS(**CROWD, alpha=0.4, epsilon=1.0).realized(990)
    assert staged.adversary == S1
    assert staged.delta > fc.TSS(**CROWD, alpha=0.4).guarantee(epsilon=1.0, adversary=S1).delta


def pair_delta(a: int, b: int, p: float, epsilon: float) -> float:
    """(a + 1, b) against (a, b + 1) holders, all outcomes enumerated."""

    def law(n: int, size: int) -> list[float]:
        return [comb(n, x) * p**x * (1 - p) ** (n - x) if x <= n else 0.0 for x in range(size)]

    up, down = (law(a + 1, a + 2), law(a, a + 2)), (law(b, b + 2), law(b + 1, b + 2))
    return sum(
        max(0.0, up[0][x] * down[0][y] - math.exp(epsilon) * up[1][x] * down[1][y])
        for x in range(a + 2)
        for y in range(b + 2)
    )


@pytest.mark.parametrize(("users", "floor", "t", "d"), [(9, 2, 0, 0), (15, 4, 1, 0), (15, 4, 2, 1), (20, 6, 3, 2)])
@pytest.mark.parametrize(("p", "epsilon"), [(0.1, 0.0), (0.5, 0.5), (0.9, 1.0)])
def test_two_items_with_insiders_and_dropouts(users: int, floor: int, t: int, d: int, p: float, epsilon: float) -> None:
    """Wherever the insiders and those who drop out are, no pair of neighbours is worse than the claim."""
    made = fc.DPDS(items=2, users=users, p=p, floor=floor, insiders=t, dropouts=d)
    claim = made.guarantee(epsilon=epsilon, adversary=insiders(t)).delta
    worst = max(
        pair_delta(a - ta - da, users - 1 - a - (t - ta) - (gone - da), p, epsilon)
        for a in range(floor, users - floor)
        for ta in range(t + 1)
        for gone in range(d + 1)
        for da in range(gone + 1)
    )
    assert worst <= claim * (1 + 1e-12)


class Fixed(Entropy):
    """Bytes given beforehand."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def fill(self, out: np.ndarray) -> None:
        out[:] = np.frombuffer(self.data[: out.nbytes], dtype=np.uint8)
        self.data = self.data[out.nbytes :]


@pytest.mark.parametrize(
    "cuts",
    [
        [],
        [1],
        [ONE - 1],
        [0, ONE],
        [2**64 - 1, 2**64, ONE - 2**64],
        [0, 0, 1, 2**63, 2**64, 2**64 + 1, ONE - 1, ONE, ONE],
        [(7 << 64) - 1, 7 << 64, (7 << 64) + 1, 8 << 64, (2**64 - 1) << 64],
    ],
    ids=len,
)
def test_tables_at_every_edge(cuts: list[int]) -> None:
    table = DrawTable(tuple(range(len(cuts) + 1)), (*cuts, ONE))
    edges = {0, ONE - 1, *(cut + step for cut in cuts for step in (-(2**64), -1, 0, 1, 2**64))}
    drawn = sorted(each for each in edges if 0 <= each < ONE)
    halves = [[each >> 64 for each in drawn], [each & (2**64 - 1) for each in drawn]]
    expected = [sum(cut <= each for cut in cuts) for each in drawn]
    assert table.draw(len(drawn), Fixed(np.array(halves, dtype=np.uint64).tobytes())).tolist() == expected


@pytest.mark.parametrize("heads", [0, 1, 2**112, 2**112 - 1, 2**112 + 1, 3 << 96, ONE - 1, ONE])
def test_coins_at_every_edge(heads: int) -> None:
    for drawn in (each for each in (0, ONE - 1, heads - 1, heads, heads + 1) if 0 <= each < ONE):
        words = np.array([(drawn >> (112 - 16 * i)) & 0xFFFF for i in range(8)] + [0] * 8, dtype=np.uint16)
        assert bool(flips(heads, 1, Fixed(words.tobytes()))[0]) == (drawn < heads)


def test_responses_do_not_print() -> None:
    answers = np.array([0, 1, 2, 3, 0])
    staged = fc.TSS(items=4, users=5, p=1.0, alpha=0.5).respond(answers, SeededStream(1))
    assert repr(staged) == "TwoStageResponse()"
    assert "reporters" not in repr(TwoStageSum(np.array([1, 2]), np.array([0, 1], dtype=np.uint8)))
    assert isinstance(staged, TwoStageResponse)


def test_sums_of_the_wrong_shape_are_refused() -> None:
    central, staged = fc.DPCS(items=3, users=5, p=0.5), fc.TSS(items=4, users=5, p=0.5, alpha=0.5)
    for total in ([1, 2], [[1, 2, 0]], [0.5, 1, 1], "abc"):
        with pytest.raises(AnswerError):
            central.decode(total, 5)  # type: ignore[arg-type] # that is the point
    for responses in ([0, 5], [-2, 0], [[0, 1]], [0.5]):
        with pytest.raises(AnswerError):
            central.total(np.array(responses))
    with pytest.raises(AnswerError):
        staged.decode(TwoStageSum(np.array([1, 1]), np.array([0, 1], dtype=np.uint8)), 5)
    with pytest.raises(CorruptSumError):
        central.decode(np.array([6, 0, 0]), 5)
    for mechanism, total in ((central, np.array([1, 0, 0])), (staged, TwoStageSum(np.zeros(4), np.zeros(4)))):
        with pytest.raises(ParameterError):
            mechanism.decode(total, "5")  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(
    "make",
    [
        lambda: fc.DPDS(items=3, users=10**30, p=0.5),
        lambda: fc.DPDS(items=3, p=0.5, epsilon="1", floor=3),
        lambda: fc.DPDS(items=3, p=0.5, delta=math.nan, floor=3),
        lambda: fc.TSS(items=5, p=0.5, alpha=1e308),
        lambda: fc.TSS(items=5, p=0.5, alpha=0.4, gamma=1e308),
        lambda: fc.TSS(items=5, p=0.5, alpha=1e-12),
        lambda: fc.Decoys(items=3, users=5, coins=10**12),
        lambda: fc.DPDG(items=3, users=5, epsilon=1e-6, delta=1e-6).guarantee(),
        lambda: fc.DPDG(items=3, users=5, epsilon=1.0, delta=1e-6, calibration=np.array([1, 2])),
        lambda: fc.DPDG(items=3, users=5, epsilon=1.0, delta=1e-6, scale=10**400),
        lambda: fc.Laplace(items=3, users=10**400, epsilon=1.0),
        lambda: fc.Laplace(items=3, users=5, epsilon=10**400),
        lambda: Channel(0.2, 0.2),
        lambda: Channel(1.5),
        lambda: Channel(math.nan),
        lambda: NoiseLaw(0, np.array([math.nan, 1.0])),
    ],
)
def test_extreme_parameters_are_refused_in_words(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FaircountError):
        make()
