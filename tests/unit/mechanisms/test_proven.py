"""Mechanisms with proofs: bits of a report, coins that nobody can bias, noise of the servers."""

import math
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scripted_entropy import ScriptedEntropy

import faircount as fc
from faircount.accounting.conditions import EITHER_NOISE, S1_NOISE, S2_NOISE
from faircount.accounting.exact import decoys_delta, decoys_needed
from faircount.accounting.guarantee import (
    COLLECTOR,
    OUTSIDER,
    S1,
    S2,
    Adversary,
    AdversaryCode,
    insiders,
)
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError, RefusedError
from faircount.mechanisms.calibration import Requirements
from faircount.mechanisms.proven import Placement, ProvenMechanism
from faircount.mechanisms.server_noise import S1_AND_USERS, S2_AND_USERS
from faircount.sharing.additive import split
from faircount.sharing.field import add

PROVEN: list[ProvenMechanism] = [
    fc.ServerLaplace(items=4, users=30, epsilon=0.8),
    fc.ServerCoins(items=4, users=30, epsilon=1.0, delta=1e-3),
    fc.PlacedCoins(items=4, users=30, coins=25, dropouts=3),
]
PROVEN_ONLY = pytest.mark.parametrize("mechanism", PROVEN, ids=lambda mechanism: mechanism.name)


# The bits of a report.


@PROVEN_ONLY
def test_a_report_is_a_one_hot_answer_and_coins(mechanism: ProvenMechanism) -> None:
    items, coins = mechanism.answer_bits, mechanism.coins_per_user
    source = SeededStream(1)
    reports = np.array(
        [[mechanism.report_bits((j,), source) for j in range(items)] for _ in range(400)]
    )
    assert reports.shape == (400, items, items + coins)
    assert np.array_equal(
        reports[:, :, :items], np.broadcast_to(np.eye(items), (400, items, items))
    )
    assert set(np.unique(reports[:, :, items:])) <= {0, 1}
    # A margin of six standard deviations: a false alarm once in 5e8.
    if coins:
        heads = reports[:, :, items:].sum()
        flipped = 400 * items * coins
        assert abs(heads - flipped / 2) < 6 * math.sqrt(flipped / 4)
    assert mechanism.respond_as(0, (1,), SeededStream(2)).shape == (items + coins,)
    assert mechanism.modulus >= items + coins


def test_coins_are_the_bits_of_the_entropy() -> None:
    mechanism = fc.PlacedCoins(items=2, users=4, coins=3, insiders=0)
    assert (mechanism.answer_bits, mechanism.coins_per_user) == (2, 2)
    drawn = []
    for bits in range(4):
        report = mechanism.report_bits((0,), ScriptedEntropy(bytes([bits << 6])))
        drawn.append(report[2:].tolist())
    assert drawn == [[0, 0], [0, 1], [1, 0], [1, 1]]


def test_the_field_has_a_point_for_every_bit() -> None:
    assert fc.ServerCoins(items=300, users=2, coins=1).modulus == 307
    # 300 bits of the answer and 200 coins.
    assert fc.PlacedCoins(items=300, users=3, coins=2).modulus == 503


# Inverted and placed.


@pytest.mark.parametrize(
    ("users", "dropouts", "items", "coins"),
    [(5, 0, 3, 5), (9, 2, 4, 5), (40, 3, 7, 11), (30, 0, 2, 1), (7, 1, 6, 6)],
)
def test_every_item_gets_its_coins_from_different_users_and_no_coin_counts_twice(
    users: int, dropouts: int, items: int, coins: int
) -> None:
    mechanism = fc.PlacedCoins(items=items, users=users, dropouts=dropouts, coins=coins)
    # From the fewest members that may be left to all of them.
    for members in range(users - dropouts, users + 1):
        found = mechanism.place_coins(SeededStream(members), members)
        assert found.user.shape == found.coin.shape == found.inverted.shape == (coins, items)
        assert all(len(set(found.user[:, j])) == coins for j in range(items))
        used = set(zip(found.user.ravel().tolist(), found.coin.ravel().tolist(), strict=True))
        assert len(used) == coins * items
        assert used <= set(product(range(members), range(mechanism.coins_per_user)))


def test_a_coin_is_fair_whatever_its_sender_chose() -> None:
    """For all patterns of sent coins, over all inversions, the heads per item are Bin(2, 1/2)."""
    mechanism = fc.PlacedCoins(items=2, users=2, coins=2, insiders=0)
    order = bytes(16)
    fair = {heads: math.comb(2, heads) / 4 for heads in range(3)}
    distribution = {(a, b): fair[a] * fair[b] for a, b in product(fair, fair)}
    for sent in product((0, 1), repeat=4):
        rows = np.hstack([np.eye(2, dtype=np.int64), np.array(sent).reshape(2, 2)]).astype(np.uint8)
        opened: Counter[tuple[int, ...]] = Counter()
        for inversions in range(16):
            script = ScriptedEntropy(order + bytes([inversions << 4]))
            placement = mechanism.place_coins(script, 2)
            total = mechanism.add_up(mechanism.tally([rows]), placement, constants=True)
            opened[tuple((total.astype(int) - 1).tolist())] += 1
        assert {heads: count / 16 for heads, count in opened.items()} == distribution
    biased = Placement(
        *(getattr(placement, name) for name in ("user", "coin")), np.zeros((2, 2), dtype=bool)
    )
    heads = mechanism.add_up(mechanism.tally([rows]), biased, constants=True)
    # Planted: if nothing is inverted, users who send heads only get heads only.
    assert heads.tolist() == [3, 3]


@PROVEN_ONLY
def test_both_servers_add_up_shares_to_what_an_honest_run_opens(
    mechanism: ProvenMechanism,
) -> None:
    answers = np.arange(30) % 4
    source = SeededStream(3)
    bits = np.array([mechanism.report_bits((int(j),), source) for j in answers])
    placement = mechanism.place_coins(source, 30)
    shares = np.array([split(row, 2, mechanism.modulus, source) for row in bits])
    parts = []
    for server, constants in ((0, True), (1, False)):
        rows = shares[:, server]
        tally = mechanism.tally([rows[:7], rows[7:]])
        parts.append(mechanism.add_up(tally, placement, constants=constants))
    sent = bits[placement.user, 4 + placement.coin]
    coins = np.where(placement.inverted, 1 - sent, sent)
    expected = np.bincount(answers, minlength=4) + coins.sum(axis=0)
    assert np.array_equal(add(*parts, mechanism.modulus), expected)


def test_a_tally_keeps_no_rows() -> None:
    """Of 40 blocks of 0.8 MB only a few are in memory at a time, besides 1.3 MB of coins."""
    mechanism = fc.PlacedCoins(items=90, users=80_000, coins=800)
    bits = mechanism.proven_bits
    shape = (2000, bits + 10)
    kind = np.uint32
    assert mechanism.coins_per_user == 1

    def rows() -> Iterator[np.ndarray]:
        for number in range(40):
            yield np.full(shape, number, dtype=kind)

    tracemalloc.start()
    tally = mechanism.tally(rows())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A few blocks and a few copies of the coins.
    assert most < 5 * math.prod(shape) * 4 + 3 * 80_000 * 4
    assert tally.coins.shape == (80_000, 1)
    assert tally.cells.tolist() == [2000 * sum(range(40)) % mechanism.modulus] * 90


def test_too_few_members_have_too_few_coins() -> None:
    mechanism = fc.PlacedCoins(items=4, users=30, coins=25, dropouts=3)
    assert mechanism.coins_per_user == 4
    enough = [members for members in range(1, 31) if mechanism.has_enough_coins(members)]
    assert enough == list(range(25, 31))
    with pytest.raises(RefusedError, match="wait for more users"):
        mechanism.place_coins(SeededStream(1), 24)
    with pytest.raises(RefusedError, match="wait for more users"):
        mechanism.remaining_guarantee(24, epsilon=1.0)
    assert mechanism.remaining_guarantee(25, epsilon=1.0) == mechanism.remaining_guarantee(
        30, epsilon=1.0
    )


def test_fewer_users_than_coins_are_refused() -> None:
    with pytest.raises(ParameterError, match="invite 152 or more"):
        fc.PlacedCoins(items=4, users=150, epsilon=1.0, delta=1e-6, dropouts=3)
    mechanism = fc.PlacedCoins(items=4, users=152, epsilon=1.0, delta=1e-6, dropouts=3)
    assert (mechanism.D, mechanism.coins_per_user) == (149, 4)


def test_coins_of_the_insiders_are_added() -> None:
    """100 of 1,000 users collude: without a further coin for each, delta would be far too large."""
    mechanism = fc.PlacedCoins(items=30, users=1000, epsilon=1.0, delta=1e-6, insiders=100)
    assert mechanism.D == decoys_needed(1.0, 1e-6) + 100 == 248
    assert mechanism.guarantee(adversary=insiders(100)).delta == decoys_delta(148, 1.0) <= 1e-6
    assert mechanism.guarantee(adversary=replace(S2, insiders=100)).delta == decoys_delta(148, 1.0)
    without = fc.PlacedCoins(items=30, users=1000, coins=148, insiders=100)
    assert without.guarantee(epsilon=1.0).delta > 1e-4


# Noise of the servers.


def noise_of_one_server(made: ProvenMechanism) -> dict[int, float]:
    if isinstance(made, fc.ServerLaplace):
        return dict(zip(made.table.values, made.table.probabilities.tolist(), strict=True))
    assert isinstance(made, fc.ServerCoins)
    return {x: math.comb(made.D, x) / 2**made.D for x in range(made.D + 1)}


def divergence(distribution: dict[int, float], epsilon: float) -> float:
    """One count up and another one down, both with this noise."""
    low = min(distribution) - 1
    high = max(distribution) + 1
    same = np.array([distribution.get(z, 0.0) for z in range(low, high + 1)])
    up = np.array([distribution.get(z - 1, 0.0) for z in range(low, high + 1)])
    return float(np.maximum(0, np.outer(up, same) - math.exp(epsilon) * np.outer(same, up)).sum())


@pytest.mark.parametrize(
    "made", [fc.ServerLaplace(items=2, epsilon=1.0), fc.ServerCoins(items=2, coins=9, epsilon=1.0)]
)
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_the_guarantee_is_exact_for_the_noise_of_the_one_other_server(
    made: ProvenMechanism, epsilon: float
) -> None:
    truth = divergence(noise_of_one_server(made), epsilon)
    for adversary in made.adversaries:
        claim = made.guarantee(epsilon=epsilon, adversary=adversary).delta
        assert claim == pytest.approx(truth, rel=1e-5, abs=1e-15)
        assert claim >= truth * (1 - 1e-12) - 1e-15


@pytest.mark.parametrize(
    "made",
    [fc.ServerLaplace(items=2, users=5, epsilon=0.7), fc.ServerCoins(items=2, users=5, coins=9)],
)
def test_estimates_use_the_distribution_of_both_servers_noise_together(
    made: ProvenMechanism,
) -> None:
    one = noise_of_one_server(made)
    line = np.array([one.get(z, 0.0) for z in range(min(one), max(one) + 1)])
    both = np.convolve(line, line)
    distribution = made.channel(5).noise
    assert distribution is not None
    found = {int(z): float(p) for z, p in zip(distribution.values, distribution.pmf, strict=True)}
    # The sum of two draws has the convolution of the distribution with itself.
    for at, chance in enumerate(both):
        assert found.get(2 * min(one) + at, 0.0) == pytest.approx(
            float(chance), rel=1e-9, abs=1e-15
        )
    assert distribution.variance == pytest.approx(
        {"server-laplace": 4 * a_over(0.7), "server-coins": 9 / 2}[made.name]
    )


def a_over(epsilon: float) -> float:
    a = math.exp(-epsilon / 2)
    return a / (1 - a) ** 2


@pytest.mark.parametrize(
    "made",
    [
        fc.ServerLaplace(items=4, users=50, epsilon=1.0),
        fc.ServerCoins(items=4, users=50, epsilon=1.0, delta=1e-5),
    ],
)
def test_insiders_and_missing_users_leave_the_guarantee_as_it_is(made: ProvenMechanism) -> None:
    planned = made.guarantee()
    for colluding, missing in product((0, 1, 40), (0, 10, 49)):
        other = replace(made, insiders=colluding, dropouts=missing)
        assert other.guarantee() == planned
        assert {other.remaining_guarantee(included).delta for included in (1, 2, 50)} == {
            planned.delta
        }
        assert np.array_equal(other.variance(np.full(4, 0.25)), made.variance(np.full(4, 0.25)))


def test_the_other_server_protects_from_a_server() -> None:
    mechanism = fc.ServerLaplace(items=4, users=50, epsilon=1.0)
    relied_on = {stated.adversary: stated.condition for stated in mechanism.guarantees()}
    assert relied_on == {
        S1_AND_USERS: S2_NOISE,
        S2_AND_USERS: S1_NOISE,
        OUTSIDER: EITHER_NOISE,
    }
    assert mechanism.guarantee(adversary=S1).condition == relied_on[S1_AND_USERS]
    assert mechanism.guarantee(adversary=S2).condition == relied_on[S2_AND_USERS]
    assert mechanism.guarantee(adversary=insiders(7)).condition == relied_on[OUTSIDER]
    assert (
        "against the coordinator (S1), who reads the result, together with any number of participants"
        in str(mechanism.guarantee())
    )


@PROVEN_ONLY
def test_a_collector_of_reports_sees_the_answer(mechanism: ProvenMechanism) -> None:
    assert mechanism.guarantee(epsilon=1.0, adversary=COLLECTOR).delta == 1.0
    assert mechanism.losses(COLLECTOR) is None


@pytest.mark.parametrize(
    "adversary", [S1_AND_USERS, replace(S1, insiders=2), Adversary(AdversaryCode.GROUP_INSIDERS)]
)
def test_no_other_mechanism_claims_anything_against_a_server_with_users(
    adversary: Adversary,
) -> None:
    """A server with users must not be accounted for as users alone or as a server alone."""
    for mechanism in (
        fc.Laplace(items=4, users=50, epsilon=1.0),
        fc.TSS(items=4, users=50, p=0.5, alpha=0.5, floor=5),
    ):
        with pytest.raises(RefusedError, match="is not known"):
            mechanism.guarantee(epsilon=1.0, adversary=adversary)


# Several releases, and where it runs.


@pytest.mark.parametrize("releases", [1, 4])
@pytest.mark.parametrize("kind", [fc.ServerLaplace, fc.ServerCoins, fc.PlacedCoins])
def test_a_budget_is_spent_and_not_exceeded(kind: type, releases: int) -> None:
    made = kind.calibrate(
        Requirements(900, 5, 1.0, 1e-6, releases=releases, insiders=3, dropouts=20)
    )
    assert made.total_delta() <= 1e-6
    mechanism = made.mechanism
    spent = fc.compose(*[mechanism] * releases, epsilon=1.0).delta
    if releases == 1:
        assert spent == pytest.approx(mechanism.guarantee().delta, rel=1e-9)
    assert spent <= 1e-6
    # A single release of Laplace noise is pure and spends next to no delta.
    if mechanism.name != "server-laplace" or releases > 1:
        assert spent > 0.5e-6


def test_the_variances_are_those_of_the_design() -> None:
    """Squared counts of one release at (1, 1e-6): twice the noise of users, D/2 and D/4."""
    asked = Requirements(1000, 30, 1.0, 1e-6)
    per_count = {
        kind.name: kind.calibrate(asked).mechanism.variance(np.full(30, 1 / 30), raw=True)[0]
        * 1000**2
        for kind in (fc.ServerLaplace, fc.ServerCoins, fc.PlacedCoins)
    }
    assert per_count == pytest.approx(
        {"server-laplace": 2 * 7.8354, "server-coins": 74, "placed-coins": 37.25}, rel=1e-4
    )


@PROVEN_ONLY
@pytest.mark.parametrize("topology", ["explicit", "masked", "two-stage"])
def test_no_topology_without_proofs_runs_it(topology: str, mechanism: ProvenMechanism) -> None:
    """The sum would have no noise: the servers add it, or know which coins count."""
    with pytest.raises(ParameterError, match=r"needs proofs|does not run"):
        fc.run([0, 1, 2, 3] * 7 + [0, 1], mechanism, topology=topology, entropy=SeededStream(1))


@PROVEN_ONLY
def test_it_runs_in_memory(mechanism: ProvenMechanism) -> None:
    result = fc.run(
        [0, 1, 2, 3] * 7 + [0, 1], mechanism, topology="shares", entropy=SeededStream(5)
    )
    found = result.interval(0.999999)
    truth = np.array([8, 8, 7, 7]) / 30
    assert np.all((found.low <= truth) & (truth <= found.high))
