"""Reports that are proven: their bits, coins that nobody can bias, noise of the servers, and who relies on whom."""

import math
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import faircount as fc
from faircount.accounting.exact import decoys_delta, decoys_needed
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, S1, S2, Adversary, insiders
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.calibration import Requirements
from faircount.mechanisms.server_noise import S1_AND_USERS, S2_AND_USERS
from faircount.mechanisms.verified import Placement, VerifiedMechanism
from faircount.sharing.additive import split
from faircount.sharing.field import add

VERIFIED: list[VerifiedMechanism] = [
    fc.ServerLaplace(items=4, users=30, epsilon=0.8),
    fc.ServerCoins(items=4, users=30, epsilon=1.0, delta=1e-3),
    fc.PlacedCoins(items=4, users=30, coins=25, dropouts=3),
]
EACH = pytest.mark.parametrize("mechanism", VERIFIED, ids=lambda each: each.name)


class Given(Entropy):
    """Exactly these bytes, and nothing after them."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def fill(self, out: np.ndarray) -> None:
        out[:] = np.frombuffer(self.data[: out.size], dtype=np.uint8)
        self.data = self.data[out.size :]


# The bits of a report.


@EACH
def test_a_report_is_a_one_hot_answer_and_coins(mechanism: VerifiedMechanism) -> None:
    items, coins = mechanism.proven_bits
    source = SeededStream(1)
    reports = np.array([[mechanism.report_bits(j, source) for j in range(items)] for _ in range(400)])
    assert reports.shape == (400, items, items + coins)
    assert np.array_equal(reports[:, :, :items], np.broadcast_to(np.eye(items), (400, items, items)))
    assert set(np.unique(reports[:, :, items:])) <= {0, 1}
    if coins:  # six standard deviations of fair coins: a false alarm once in 5e8
        heads, flips = reports[:, :, items:].sum(), 400 * items * coins
        assert abs(heads - flips / 2) < 6 * math.sqrt(flips / 4)
    assert mechanism.respond_as(0, 1, SeededStream(2)).shape == (items + coins,)
    assert mechanism.modulus >= items + coins


def test_coins_are_the_bits_of_the_entropy() -> None:
    made = fc.PlacedCoins(items=2, users=4, coins=3, insiders=0)
    assert made.proven_bits == (2, 2)
    drawn = [tuple(made.report_bits(0, Given(bytes([first << 6])))[2:]) for first in range(4)]
    assert drawn == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_the_field_has_a_point_for_every_bit() -> None:
    assert fc.ServerCoins(items=300, users=2, coins=1).modulus == 307
    assert fc.PlacedCoins(items=300, users=3, coins=2).modulus == 503  # 300 answers and 200 coins


# Turned over and placed.


@pytest.mark.parametrize(
    ("users", "dropouts", "items", "coins"), [(5, 0, 3, 5), (9, 2, 4, 5), (40, 3, 7, 11), (30, 0, 2, 1), (7, 1, 6, 6)]
)
def test_every_item_gets_its_coins_from_different_users_and_no_coin_counts_twice(
    users: int, dropouts: int, items: int, coins: int
) -> None:
    made = fc.PlacedCoins(items=items, users=users, dropouts=dropouts, coins=coins)
    for members in range(users - dropouts, users + 1):
        found = made.turn_and_place(SeededStream(members), members)
        assert found.user.shape == found.coin.shape == found.turned.shape == (coins, items)
        assert all(len(set(found.user[:, j])) == coins for j in range(items))
        used = set(zip(found.user.ravel().tolist(), found.coin.ravel().tolist(), strict=True))
        assert len(used) == coins * items
        assert used <= set(product(range(members), range(made.coins_per_user)))


def test_a_coin_is_fair_whatever_its_sender_chose() -> None:
    """Every pattern of turning, for every pattern of coins: each item's heads are Bin(2, 1/2), independently."""
    made = fc.PlacedCoins(items=2, users=2, coins=2, insiders=0)
    order, fair = bytes(16), {heads: math.comb(2, heads) / 4 for heads in range(3)}
    law = {(a, b): fair[a] * fair[b] for a, b in product(fair, fair)}
    for sent in product((0, 1), repeat=4):
        rows = np.hstack([np.eye(2, dtype=np.int64), np.array(sent).reshape(2, 2)]).astype(np.uint8)
        opened: Counter[tuple[int, ...]] = Counter()
        for turns in range(16):
            placement = made.turn_and_place(Given(order + bytes([turns << 4])), 2)
            total = made.add_up(made.tally([rows]), placement, constants=True)
            opened[tuple((total.astype(int) - 1).tolist())] += 1
        assert {heads: count / 16 for heads, count in opened.items()} == law
    biased = Placement(*(getattr(placement, name) for name in ("user", "coin")), np.zeros((2, 2), dtype=bool))
    heads = made.add_up(made.tally([rows]), biased, constants=True)
    assert heads.tolist() == [3, 3]  # without turning, all heads stay all heads


@EACH
def test_both_servers_add_up_shares_to_what_an_honest_run_opens(mechanism: VerifiedMechanism) -> None:
    answers, source = np.arange(30) % 4, SeededStream(3)
    bits = np.array([mechanism.report_bits(int(j), source) for j in answers])
    placement = mechanism.turn_and_place(source, 30)
    shares = [np.array(each) for each in zip(*(split(row, 2, mechanism.modulus, source) for row in bits), strict=True)]
    parts = [
        mechanism.add_up(mechanism.tally([rows[:7], rows[7:]]), placement, constants=first)
        for first, rows in zip((True, False), shares, strict=True)
    ]
    coins = np.where(
        placement.turned, 1 - bits[placement.user, 4 + placement.coin], bits[placement.user, 4 + placement.coin]
    )
    expected = np.bincount(answers, minlength=4) + coins.sum(axis=0)
    assert np.array_equal(add(*parts, mechanism.modulus), expected)


def test_a_tally_keeps_no_rows() -> None:
    """Of 40 blocks of 0.8 MB, made one after the other, little more than one is in memory, and 1.3 MB of coins."""
    made = fc.PlacedCoins(items=90, users=80_000, coins=800)
    bits = sum(made.proven_bits)
    shape, kind = (2000, bits + 10), np.uint32
    assert made.coins_per_user == 1

    def rows() -> Iterator[np.ndarray]:
        for number in range(40):
            yield np.full(shape, number, dtype=kind)

    tracemalloc.start()
    tally = made.tally(rows())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5 * math.prod(shape) * 4 + 3 * 80_000 * 4
    assert tally.coins.shape == (80_000, 1)
    assert tally.votes.tolist() == [2000 * sum(range(40)) % made.modulus] * 90


def test_too_few_members_have_too_few_coins() -> None:
    made = fc.PlacedCoins(items=4, users=30, coins=25, dropouts=3)
    assert made.coins_per_user == 4
    assert [members for members in range(1, 31) if made.suffices(members)] == [25, 26, 27, 28, 29, 30]
    with pytest.raises(RefusedError, match="wait for more users"):
        made.turn_and_place(SeededStream(1), 24)
    with pytest.raises(RefusedError, match="wait for more users"):
        made.realized(24, epsilon=1.0)
    assert made.realized(25, epsilon=1.0) == made.realized(30, epsilon=1.0)


def test_fewer_users_than_coins_are_refused() -> None:
    with pytest.raises(ParameterError, match="invite 152 or more"):
        fc.PlacedCoins(items=4, users=150, epsilon=1.0, delta=1e-6, dropouts=3)
    made = fc.PlacedCoins(items=4, users=152, epsilon=1.0, delta=1e-6, dropouts=3)
    assert (made.D, made.coins_per_user) == (149, 4)


def test_coins_of_the_insiders_are_added() -> None:
    """100 of 1,000 users collude: with one coin too few for each of them, far more would be lost than promised."""
    made = fc.PlacedCoins(items=30, users=1000, epsilon=1.0, delta=1e-6, insiders=100)
    assert made.D == decoys_needed(1.0, 1e-6) + 100 == 248
    assert made.guarantee(adversary=insiders(100)).delta == decoys_delta(148, 1.0) <= 1e-6
    assert made.guarantee(adversary=replace(S2, insiders=100)).delta == decoys_delta(148, 1.0)
    assert fc.PlacedCoins(items=30, users=1000, coins=148, insiders=100).guarantee(epsilon=1.0).delta > 1e-4


# Noise of the servers.


def noise_of_one_server(made: VerifiedMechanism) -> dict[int, float]:
    if isinstance(made, fc.ServerLaplace):
        return dict(zip(made.table.values, made.table.probabilities.tolist(), strict=True))
    assert isinstance(made, fc.ServerCoins)
    return {x: math.comb(made.D, x) / 2**made.D for x in range(made.D + 1)}


def divergence(law: dict[int, float], epsilon: float) -> float:
    """One count up and another one down, both with this noise."""
    low, high = min(law) - 1, max(law) + 1
    same = np.array([law.get(z, 0.0) for z in range(low, high + 1)])
    up = np.array([law.get(z - 1, 0.0) for z in range(low, high + 1)])
    return float(np.maximum(0, np.outer(up, same) - math.exp(epsilon) * np.outer(same, up)).sum())


@pytest.mark.parametrize(
    "made", [fc.ServerLaplace(items=2, epsilon=1.0), fc.ServerCoins(items=2, coins=9, epsilon=1.0)]
)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_guarantee_is_exact_for_the_noise_of_the_one_other_server(made: VerifiedMechanism, epsilon: float) -> None:
    truth = divergence(noise_of_one_server(made), epsilon)
    for adversary in made.adversaries:
        claim = made.guarantee(epsilon=epsilon, adversary=adversary).delta
        assert claim == pytest.approx(truth, rel=1e-5, abs=1e-15)
        assert claim >= truth * (1 - 1e-12) - 1e-15


@pytest.mark.parametrize(
    "made", [fc.ServerLaplace(items=2, users=5, epsilon=0.7), fc.ServerCoins(items=2, users=5, coins=9)]
)
def test_estimates_use_the_law_of_both_servers_noise_together(made: VerifiedMechanism) -> None:
    one = noise_of_one_server(made)
    line = np.array([one.get(z, 0.0) for z in range(min(one), max(one) + 1)])
    both, law = np.convolve(line, line), made.channel(5).noise
    assert law is not None
    found = {int(z): float(p) for z, p in zip(law.values, law.pmf, strict=True)}
    for at, chance in enumerate(both):
        assert found.get(2 * min(one) + at, 0.0) == pytest.approx(float(chance), rel=1e-9, abs=1e-15)
    assert law.variance == pytest.approx({"server-laplace": 4 * a_over(0.7), "server-coins": 9 / 2}[made.name])


def a_over(epsilon: float) -> float:
    a = math.exp(-epsilon / 2)
    return a / (1 - a) ** 2


@pytest.mark.parametrize(
    "made",
    [fc.ServerLaplace(items=4, users=50, epsilon=1.0), fc.ServerCoins(items=4, users=50, epsilon=1.0, delta=1e-5)],
)
def test_insiders_and_missing_users_leave_the_guarantee_as_it_is(made: VerifiedMechanism) -> None:
    planned = made.guarantee()
    for colluding, missing in product((0, 1, 40), (0, 10, 49)):
        other = replace(made, insiders=colluding, dropouts=missing)
        assert other.guarantee() == planned
        assert {other.realized(included).delta for included in (1, 2, 50)} == {planned.delta}
        assert np.array_equal(other.variance(np.full(4, 0.25)), made.variance(np.full(4, 0.25)))


def test_each_server_is_protected_from_by_the_other_one() -> None:
    made = fc.ServerLaplace(items=4, users=50, epsilon=1.0)
    relied_on = {each.adversary: each.condition for each in made.guarantees()}
    assert relied_on == {
        S1_AND_USERS: "S2 adds its noise and keeps it secret",
        S2_AND_USERS: "S1 adds its noise and keeps it secret",
        OUTSIDER: "S1 or S2 adds its noise and keeps it secret",
    }
    assert made.guarantee(adversary=S1).condition == relied_on[S1_AND_USERS]
    assert made.guarantee(adversary=S2).condition == relied_on[S2_AND_USERS]
    assert made.guarantee(adversary=insiders(7)).condition == relied_on[OUTSIDER]
    assert "against S1, the coordinator, with any number of users" in str(made.guarantee())


@EACH
def test_who_sees_a_report_sees_the_answer(mechanism: VerifiedMechanism) -> None:
    assert mechanism.guarantee(epsilon=1.0, adversary=COLLECTOR).delta == 1.0
    assert mechanism.losses(COLLECTOR) is None


@pytest.mark.parametrize("adversary", [S1_AND_USERS, replace(S1, insiders=2), Adversary("somebody")])
def test_no_other_mechanism_claims_anything_against_a_server_with_users(adversary: Adversary) -> None:
    """A server with users was none that mechanisms account for: it must not pass for users, or a server, alone."""
    for made in (fc.Laplace(items=4, users=50, epsilon=1.0), fc.TSS(items=4, users=50, p=0.5, alpha=0.5, floor=5)):
        with pytest.raises(RefusedError, match="is not known"):
            made.guarantee(epsilon=1.0, adversary=adversary)


# Several releases, and where it runs.


@pytest.mark.parametrize("releases", [1, 4])
@pytest.mark.parametrize("kind", [fc.ServerLaplace, fc.ServerCoins, fc.PlacedCoins])
def test_a_budget_is_spent_and_not_exceeded(kind: type, releases: int) -> None:
    made = kind.calibrated(Requirements(900, 5, 1.0, 1e-6, releases=releases, insiders=3, dropouts=20))
    assert made.total_delta() <= 1e-6
    mechanism = made.mechanism
    spent = fc.compose(*[mechanism] * releases, epsilon=1.0).delta if releases > 1 else mechanism.guarantee().delta
    assert spent <= 1e-6
    if mechanism.name != "server-laplace" or releases > 1:
        assert spent > 0.5e-6


def test_the_variances_are_those_of_the_design() -> None:
    """Squared counts of one release and of the twelfth part of a budget (1, 1e-6): twice the users' noise, or D / 4."""
    asked = Requirements(1000, 30, 1.0, 1e-6)
    per_count = {
        kind.name: kind.calibrated(asked).mechanism.variance(np.full(30, 1 / 30))[0] * 1000**2
        for kind in (fc.ServerLaplace, fc.ServerCoins, fc.PlacedCoins)
    }
    assert per_count == pytest.approx(
        {"server-laplace": 2 * 7.8354, "server-coins": 74, "placed-coins": 37.25}, rel=1e-4
    )


@EACH
@pytest.mark.parametrize("topology", ["explicit", "masked", "two-stage"])
def test_nothing_without_proofs_opens_its_answers(topology: str, mechanism: VerifiedMechanism) -> None:
    """There would be no noise in the sum: the servers make it, or know which coins count."""
    with pytest.raises(ParameterError, match=r"needs proofs|does not run"):
        fc.run([0, 1, 2, 3] * 7 + [0, 1], mechanism, topology=topology, entropy=SeededStream(1))


@EACH
def test_it_runs_in_memory(mechanism: VerifiedMechanism) -> None:
    result = fc.run([0, 1, 2, 3] * 7 + [0, 1], mechanism, topology="shares", entropy=SeededStream(5))
    found = result.interval(0.999999)
    truth = np.array([8, 8, 7, 7]) / 30
    assert np.all((found.low <= truth) & (truth <= found.high))
