"""The interface in `mechanisms/base.py`, tested on all frequency mechanisms at once.

Statistical tests have a false-alarm rate of 1e-6 each, and must detect a planted error of 30%.
"""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from itertools import product

import numpy as np
import pytest
from scipy import stats

import faircount as fc
from faircount.accounting.conditions import ConditionCode
from faircount.accounting.guarantee import OUTSIDER, S2, Relation, insiders
from faircount.core.entropy import SeededStream
from faircount.core.errors import (
    AnswerError,
    CorruptSumError,
    FaircountError,
    ParameterError,
    RefusedError,
)
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.local import LocalMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.mechanisms.secret_shared import SharedMechanism
from faircount.mechanisms.server_joint import ServerJoint
from faircount.mechanisms.two_stage import TSS, TwoStageResponse, TwoStageSum, default_alpha
from faircount.sharing.additive import combine, exchange

# One small survey for all mechanisms.
COUNTS = np.array([14, 9, 5, 2])
N = COUNTS.size
USERS = int(COUNTS.sum())
ANSWERS = np.repeat(np.arange(N), COUNTS)
FALSE_ALARM = 1e-6
RUNS = 3000

# Parameters that the examples of the mechanisms do not cover.
VARIANTS: dict[str, FrequencyMechanism] = {
    "dpds-all": fc.DPDS(items=N, users=USERS, p=1.0),
    "tss-adaptive": fc.TSS(items=N, users=USERS, p=0.6, alpha=0.25, gamma=3.0),
    "tss-prime-adaptive": fc.TSSPrime(items=N, users=USERS, p=0.6, alpha=0.75, gamma=1.5, phi=2),
    "dpdg-classical": fc.DPDG(
        items=N, users=USERS, epsilon=0.9, delta=1e-3, calibration="classical"
    ),
    "placed-coins-dropouts": fc.PlacedCoins(items=N, users=USERS, coins=25, dropouts=3),
}
EXAMPLES = {name: kind.example(USERS, N) for name, kind in frequency_mechanisms().items()}
MECHANISMS = {**EXAMPLES, **VARIANTS}
ALL = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_mechanism_gives_an_example_of_itself(name: str) -> None:
    mechanism = EXAMPLES[name]
    assert mechanism.name == name
    assert (mechanism.n, mechanism.N) == (USERS, N)
    assert np.all(mechanism.variance(COUNTS / USERS) > 0)


def per_user(mechanism: FrequencyMechanism, runs: int, seed: int) -> np.ndarray:
    source = SeededStream(seed)
    return np.array(
        [
            mechanism.decode(mechanism.total(mechanism.respond(ANSWERS, source)), USERS)
            for _ in range(runs)
        ]
    )


def count_level(mechanism: FrequencyMechanism, runs: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([mechanism.draw(COUNTS, rng) for _ in range(runs)])


def bias_p_value(estimates: np.ndarray, truth: np.ndarray, variance: np.ndarray) -> float:
    """Smallest p-value over the items, times their number; items without noise must be exact."""
    error = np.abs(estimates.mean(axis=0) - truth)
    if np.any(error[variance == 0] > 1e-12):
        return 0.0
    noisy = variance > 0
    if not noisy.any():
        return 1.0
    # Two-sided, with a Bonferroni correction over the items.
    z = error[noisy] / np.sqrt(variance[noisy] / len(estimates))
    return float(min(1.0, noisy.sum() * 2 * stats.norm.sf(z.max())))


def variance_p_value(estimates: np.ndarray, truth: np.ndarray, variance: np.ndarray) -> float:
    """Normal test on the mean squared error, with the fourth moment estimated from the runs."""
    squares = (estimates - truth) ** 2
    noisy = variance > 0
    if not noisy.any():
        return 1.0
    error = squares[:, noisy].std(axis=0) / math.sqrt(len(estimates))
    z = np.abs(squares[:, noisy].mean(axis=0) - variance[noisy]) / error
    return float(min(1.0, noisy.sum() * 2 * stats.norm.sf(z.max())))


def same_distribution_p_value(first: np.ndarray, second: np.ndarray) -> float:
    """Two-sample chi-square over pooled values with at least 20 observations a cell."""
    # Cells are quantiles of both samples together.
    edges = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0, 1, 16)))
    if edges.size == 1:
        return 1.0
    cells = [
        np.bincount(np.searchsorted(edges, sample, side="right"), minlength=edges.size + 1)
        for sample in (first, second)
    ]
    table = np.array(cells)
    table = table[:, table.sum(axis=0) >= 20]
    # A single cell cannot differ.
    if table.shape[1] == 1:
        return 1.0
    return float(stats.chi2_contingency(table).pvalue)


@pytest.mark.slow
@ALL
def test_estimates_have_the_variance_of_theory_and_counts_the_distribution_of_the_users(
    mechanism: FrequencyMechanism,
) -> None:
    """Both compare the same runs of all users; each has its own false-alarm rate."""
    real = per_user(mechanism, RUNS, 11)
    check_bias_and_variance(mechanism, real)
    check_count_level(mechanism, real)


def check_bias_and_variance(mechanism: FrequencyMechanism, real: np.ndarray) -> None:
    truth = COUNTS / USERS
    estimates = np.array([mechanism.estimate(counts, USERS) for counts in real])
    variance = mechanism.variance(truth)
    assert bias_p_value(estimates, truth, variance) > FALSE_ALARM
    assert variance_p_value(estimates, truth, variance) > FALSE_ALARM
    # Power: noise 30% too large would not pass.
    if np.any(variance > 0):
        assert variance_p_value(truth + 1.3 * (estimates - truth), truth, variance) < FALSE_ALARM


def check_count_level(mechanism: FrequencyMechanism, real: np.ndarray) -> None:
    drawn = count_level(mechanism, RUNS, 13)
    # Single items first, then combinations, which would show a wrong dependence between items.
    worst = min(same_distribution_p_value(real[:, j], drawn[:, j]) for j in range(N))
    pairs = min(
        same_distribution_p_value(real[:, j] + 2 * real[:, 0], drawn[:, j] + 2 * drawn[:, 0])
        for j in range(1, N)
    )
    assert min(worst, pairs) > FALSE_ALARM / (2 * N)
    # Power: 30% too much spread would not pass.
    if np.any(mechanism.variance(COUNTS / USERS) > 0):
        spread = drawn.mean(axis=0) + 1.3 * (drawn - drawn.mean(axis=0))
        assert (
            min(same_distribution_p_value(real[:, j], spread[:, j]) for j in range(N)) < FALSE_ALARM
        )


@pytest.mark.parametrize(
    "mechanism",
    [m for m in MECHANISMS.values() if isinstance(m, SharedMechanism)],
    ids=lambda m: m.name,
)
@pytest.mark.parametrize("parties", [2, 3, USERS])
def test_shares_add_up_to_the_sum(mechanism: SharedMechanism, parties: int) -> None:
    source = SeededStream(14)
    responses = mechanism.respond(ANSWERS, source)
    opened = combine(exchange(responses, parties, mechanism.modulus, source), mechanism.modulus)
    assert np.array_equal(opened, mechanism.total(responses))


@ALL
def test_the_order_of_users_does_not_matter(mechanism: FrequencyMechanism) -> None:
    responses = mechanism.respond(ANSWERS, SeededStream(15))
    order = np.random.default_rng(16).permutation(USERS)
    # The rows that the servers add come after those of the users.
    servers = np.arange(USERS, USERS + 2 * mechanism.proven)
    if isinstance(mechanism, TSS):
        shuffled = TwoStageResponse(responses.indicators[order], responses.bits[order])
    else:
        shuffled = responses[np.append(order, servers)]
    decoded = mechanism.decode(mechanism.total(responses), USERS)
    assert np.array_equal(decoded, mechanism.decode(mechanism.total(shuffled), USERS))


@ALL
def test_same_seed_same_answer_and_fresh_entropy_differs(mechanism: FrequencyMechanism) -> None:
    runs = [str(per_user(mechanism, 20, seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    if np.any(mechanism.variance(COUNTS / USERS) > 0):
        assert runs[0] != runs[2]


# Guarantees by enumeration: the distribution of the output of a tiny survey is computed from the
# definition of the mechanism, and the largest hockey-stick divergence over ALL neighbouring data
# sets is compared with the claim.


def hockey_stick(first: dict, second: dict, epsilon: float) -> float:
    outputs = first.keys() | second.keys()
    return sum(
        max(0.0, first.get(o, 0.0) - math.exp(epsilon) * second.get(o, 0.0)) for o in outputs
    )


def binomial_distribution(counts: tuple[int, ...], p: float) -> dict:
    axes = [[(s, stats.binom.pmf(s, c, p)) for s in range(c + 1)] for c in counts]
    return {tuple(s for s, _ in cell): math.prod(w for _, w in cell) for cell in product(*axes)}


def worst_divergence(
    distribution: Callable[[tuple[int, ...]], dict],
    users: int,
    items: int,
    floor: int,
    epsilon: float,
) -> float:
    """Over all counts in which every item has `floor` holders besides the one replaced."""
    worst = 0.0
    for counts in product(range(users + 1), repeat=items):
        if sum(counts) != users:
            continue
        for a, b in product(range(items), repeat=2):
            # Replace one holder of item a by a holder of item b.
            others = list(counts)
            others[a] -= 1
            if a == b or min(others) < floor:
                continue
            other = others.copy()
            other[b] += 1
            worst = max(
                worst, hockey_stick(distribution(counts), distribution(tuple(other)), epsilon)
            )
    return worst


@pytest.mark.parametrize(
    ("users", "items", "floor"), [(4, 3, 1), (7, 3, 2), (5, 2, 2), (6, 2, 1), (8, 3, 2), (5, 4, 1)]
)
@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_sampling_guarantee_is_exact_by_enumeration(
    users: int, items: int, floor: int, p: float, epsilon: float
) -> None:
    claim = (
        fc.DPDS(items=items, users=users, p=p, floor=floor)
        .guarantee(epsilon=epsilon, adversary=OUTSIDER)
        .delta
    )
    truth = worst_divergence(
        lambda counts: binomial_distribution(counts, p), users, items, floor, epsilon
    )
    assert claim == pytest.approx(truth, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(("gamma", "alpha"), [(1.0, 2 / 3), (2.5, 1 / 3)])
def test_two_stage_guarantee_against_a_reader_is_exact_by_enumeration(
    gamma: float, alpha: float
) -> None:
    mechanism = fc.TSS(items=3, users=7, p=0.7, alpha=alpha, gamma=gamma, floor=2)
    rate = 0.7 * mechanism.p_chi
    truth = worst_divergence(lambda counts: binomial_distribution(counts, rate), 7, 3, 2, 0.4)
    assert mechanism.guarantee(epsilon=0.4, adversary=OUTSIDER).delta == pytest.approx(
        truth, rel=1e-9
    )


@pytest.mark.parametrize("gamma", [1.0, 3.0])
def test_two_stage_guarantee_against_s2_covers_its_exact_view(gamma: float) -> None:
    """The aggregator sees (m_j, s_j), enumerated over all coins and sets of four users.

    The claimed delta is that of DPDS, an upper bound.
    """
    mechanism = fc.TSS(items=3, users=4, p=0.5, alpha=1 / 3, gamma=gamma, floor=1)
    # An inactive user reports any one item, with bit 0.
    own = {j: [(0.5 * 1 / 3, (k, 0)) for k in range(3)] for j in range(3)}
    for j in range(3):
        own[j] += [(0.5 * mechanism.p_chi, (j, 1))]
        own[j] += [(0.5 * (1 - mechanism.p_chi) / 2, (k, 0)) for k in range(3) if k != j]

    def distribution(counts: tuple[int, ...]) -> dict:
        views: dict = {}
        holders = np.repeat(np.arange(3), counts)
        for cell in product(*(own[j] for j in holders)):
            m = [0, 0, 0]
            s = [0, 0, 0]
            for _, (k, bit) in cell:
                m[k] += 1
                s[k] += bit
            key = (*m, *s)
            views[key] = views.get(key, 0.0) + math.prod(weight for weight, _ in cell)
        return views

    for epsilon in (0.2, 0.8):
        truth = worst_divergence(distribution, 4, 3, 1, epsilon)
        assert truth <= mechanism.guarantee(epsilon=epsilon, adversary=S2).delta * (1 + 1e-9)
        assert truth > 0


@pytest.mark.parametrize("name", ["laplace", "decoys", "dpdg"])
def test_noise_guarantee_is_exact_for_the_distribution_that_is_drawn(name: str) -> None:
    """The claim against the noise that the adversary does not know, convolved from the tables."""
    mechanism = {
        "laplace": fc.Laplace(items=3, users=3, epsilon=1.0),
        "decoys": fc.Decoys(items=2, users=3, coins=9),
        "dpdg": fc.DPDG(items=2, users=3, epsilon=1.0, delta=1e-2, scale=4),
    }[name]
    distribution, step = unknown_noise(mechanism)
    for epsilon in (0.3, 1.0):
        truth = shift_divergence(distribution, step, epsilon)
        claim = mechanism.guarantee(epsilon=epsilon, adversary=insiders(1)).delta
        # A floating-point sum is accurate to about 1e-15.
        assert claim == pytest.approx(truth, rel=1e-5, abs=1e-15)
        assert claim >= truth * (1 - 1e-12) - 1e-15


def unknown_noise(mechanism) -> tuple[dict[int, float], int]:  # type: ignore[no-untyped-def]
    if mechanism.name == "decoys":
        # One insider of three knows its three coins.
        coins = 9 - 3
        return {x: math.comb(coins, x) / 2**coins for x in range(coins + 1)}, 1
    one = dict(zip(mechanism.table.values, mechanism.table.probabilities, strict=True))
    distribution = {0: 1.0}
    for _ in range(2):
        after: dict[int, float] = {}
        for (x, v), (y, w) in product(distribution.items(), one.items()):
            after[x + y] = after.get(x + y, 0.0) + v * w
        distribution = after
    return distribution, getattr(mechanism, "scale", None) or 1


def shift_divergence(distribution: dict[int, float], step: int, epsilon: float) -> float:
    values = np.arange(min(distribution) - step, max(distribution) + step + 1)
    up = np.array([distribution.get(int(v) - step, 0.0) for v in values])
    same = np.array([distribution.get(int(v), 0.0) for v in values])
    # Replacing an answer raises one count and lowers another, and their noise is independent.
    first = np.outer(up, same)
    second = np.outer(same, up)
    return float(np.maximum(0, first - math.exp(epsilon) * second).sum())


@pytest.mark.parametrize("name", ["grr", "oue"])
def test_local_guarantee_is_exact_for_a_single_report(name: str) -> None:
    mechanism = {"grr": fc.GRR, "oue": fc.OUE}[name](items=N, users=USERS, epsilon=1.2)
    channel = mechanism.channel(1)
    if name == "grr":
        distributions = [dict.fromkeys(range(N), channel.miss) | {j: channel.hit} for j in range(2)]
    else:
        distributions = [unary_distribution(j, channel.hit, channel.miss) for j in range(2)]
    for epsilon in (0.0, 0.5, 1.1):
        truth = hockey_stick(distributions[0], distributions[1], epsilon)
        assert mechanism.guarantee(epsilon=epsilon).delta == pytest.approx(truth, rel=1e-9)
    assert mechanism.guarantee(epsilon=1.2).delta == pytest.approx(0, abs=1e-30)


def unary_distribution(item: int, hit: float, miss: float) -> dict:
    """Probabilities of all reports of N independent bits, of which `item` is set with `hit`."""
    rates = np.full(N, miss)
    rates[item] = hit
    distribution = {}
    for bits in product((0, 1), repeat=N):
        distribution[bits] = float(np.where(bits, rates, 1 - rates).prod())
    return distribution


def with_a_floor(mechanism: FrequencyMechanism) -> FrequencyMechanism:
    """The mechanism with a floor where it takes one."""
    if any(field.name == "floor" for field in fields(mechanism)):
        return replace(mechanism, floor=7)
    return mechanism


@ALL
def test_guarantee_solves_both_ways(mechanism: FrequencyMechanism) -> None:
    made = with_a_floor(mechanism)
    # With p = 1 nothing is random, so that no epsilon has a small delta.
    if getattr(made, "p", None) == 1.0:
        with pytest.raises(RefusedError):
            made.guarantee(delta=1e-3)
        return
    # From epsilon to delta, and back.
    there = made.guarantee(epsilon=0.6)
    if there.delta > 0:
        assert made.guarantee(delta=there.delta).epsilon == pytest.approx(0.6, abs=1e-4)
    assert made.guarantee(epsilon=0.7).delta <= there.delta
    # A collector sees who sent a report, so zero-out has no guarantee.
    if isinstance(made, LocalMechanism):
        with pytest.raises(RefusedError):
            made.guarantee(epsilon=0.6, relation=Relation.ZERO_OUT)
    elif isinstance(made, ServerJoint):
        # Noise that keeps the exact total betrays whether a response is missing.
        assert made.guarantee(epsilon=0.6, relation=Relation.ZERO_OUT).delta == 1
    else:
        assert made.guarantee(epsilon=0.6, relation=Relation.ZERO_OUT).delta <= there.delta


# Invalid input raises a typed error with a message.


@ALL
@pytest.mark.parametrize(
    "answers",
    [
        np.array([0] * (USERS - 1)),
        np.array([N] * USERS),
        np.array([-1] * USERS),
        np.array([0.5] * USERS),
        np.array([]),
    ],
    ids=["too few", "unknown item", "negative", "fractions", "empty"],
)
def test_bad_answers_are_refused(mechanism: FrequencyMechanism, answers: np.ndarray) -> None:
    with pytest.raises(AnswerError):
        mechanism.respond(answers, SeededStream(1))


@ALL
@pytest.mark.parametrize(
    "counts", [[-1, 5, 5, 5], [], [0, 0, 0, 0], [1, 2], [0.5, 1, 1, 1], [float("nan"), 1, 1, 1]]
)
def test_bad_counts_are_refused(mechanism: FrequencyMechanism, counts: list[float]) -> None:
    with pytest.raises(AnswerError):
        mechanism.draw(np.array(counts), np.random.default_rng(1))


@ALL
def test_no_users_and_one_item_are_refused(mechanism: FrequencyMechanism) -> None:
    with pytest.raises(ParameterError, match="users"):
        replace(mechanism, users=0)
    with pytest.raises(ParameterError, match="item"):
        replace(mechanism, items=1)
    with pytest.raises(ParameterError, match="distinct"):
        replace(mechanism, items=["a", "a", "b", "c"])
    # A local report does not depend on the number of users.
    if not isinstance(mechanism, LocalMechanism):
        with pytest.raises(ParameterError, match="users"):
            replace(mechanism, users=None).respond(ANSWERS, SeededStream(1))
    with pytest.raises(FaircountError):
        mechanism.guarantee(epsilon=1.0, delta=1e-6)
    with pytest.raises(FaircountError):
        mechanism.guarantee(epsilon=float("nan"))


@pytest.mark.parametrize("p", [0.0, -0.1, 1.1, float("nan"), "half", True])
@pytest.mark.parametrize("kind", [fc.DPCS, fc.DPDS])
def test_p_outside_its_range_is_refused(kind: type, p: object) -> None:
    with pytest.raises(ParameterError):
        kind(items=3, users=10, p=p)


@pytest.mark.parametrize("alpha", [0.0, 1.0, 0.3, float("nan"), -0.5])
def test_alpha_must_give_whole_items(alpha: float) -> None:
    with pytest.raises(ParameterError):
        fc.TSS(items=4, users=10, p=0.5, alpha=alpha)


def test_the_message_about_alpha_suggests_valid_values() -> None:
    with pytest.raises(ParameterError, match=r"1/4 = 0.25, 2/4 = 0.5"):
        fc.TSS(items=4, users=10, p=0.5, alpha=0.3)


@pytest.mark.parametrize("items", [3, 7, 12, 32, 64, 999])
def test_an_alpha_with_four_printed_digits_is_accepted(items: int) -> None:
    for reported in range(1, items):
        typed = float(f"{reported / items:.4g}")
        assert fc.TSS(items=items, users=10, p=0.5, alpha=typed).alpha == reported / items
    with pytest.raises(ParameterError):
        fc.TSS(items=12, users=10, p=0.5, alpha=0.3332)


def test_the_default_alpha_is_the_closest_to_two_fifths() -> None:
    assert [default_alpha(items) for items in (2, 3, 5, 10, 12, 30)] == [
        1 / 2,
        1 / 3,
        0.4,
        0.4,
        5 / 12,
        0.4,
    ]
    with pytest.raises(ParameterError):
        default_alpha(1)


@pytest.mark.parametrize("phi", [0, 10, 11])
def test_phi_must_leave_somebody_honest(phi: int) -> None:
    with pytest.raises(ParameterError):
        fc.TSSPrime(items=4, users=10, p=0.5, alpha=0.5, phi=phi)


def test_gamma_below_one_is_refused() -> None:
    with pytest.raises(ParameterError, match="gamma"):
        fc.TSS(items=4, users=10, p=0.5, alpha=0.5, gamma=0.5)


def test_a_floor_that_no_data_can_meet_is_refused() -> None:
    with pytest.raises(RefusedError, match="floor"):
        fc.DPDS(items=10, users=100, p=0.5, floor=10)


def test_tss_has_no_guarantee_against_participants_and_tss_prime_up_to_phi() -> None:
    with pytest.raises(RefusedError, match="TSSPrime"):
        fc.TSS(items=4, users=100, p=0.5, alpha=0.5, floor=9).guarantee(
            epsilon=1.0, adversary=insiders(1)
        )
    # TSS' covers up to phi colluding users.
    prime = fc.TSSPrime(items=4, users=100, p=0.5, alpha=0.5, floor=9, phi=2)
    assert prime.guarantee(epsilon=1.0, adversary=insiders(2)).delta < 1
    with pytest.raises(RefusedError, match="phi"):
        prime.guarantee(epsilon=1.0, adversary=insiders(3))


@pytest.mark.parametrize(
    "name", ["dpds", "laplace", "decoys", "dpdg", "server-laplace", "server-coins", "placed-coins"]
)
def test_a_corrupt_sum_is_refused(name: str) -> None:
    mechanism = MECHANISMS[name]
    # A residue that honest users cannot reach: for coins the largest one, for noise with two signs
    # the one in the middle.
    far = mechanism.modulus // 2
    if name in ("decoys", "server-coins", "placed-coins"):
        far = mechanism.modulus - 1
    wild = np.full(N, far, dtype=mechanism.respond(ANSWERS, SeededStream(1)).dtype)
    with pytest.raises(CorruptSumError):
        mechanism.decode(wild, USERS)


def test_two_stage_refuses_more_counts_than_reports() -> None:
    mechanism = MECHANISMS["tss"]
    with pytest.raises(CorruptSumError, match="reported"):
        mechanism.decode(
            TwoStageSum(np.array([1, 9, 9, 9]), np.array([2, 0, 0, 0], dtype=np.uint8)), USERS
        )


@ALL
def test_without_an_adversary_the_weakest_guarantee_is_stated(
    mechanism: FrequencyMechanism,
) -> None:
    """Not the one against a reader, because participants read the result, too."""
    made = with_a_floor(mechanism)
    everybody = [made.guarantee(epsilon=0.6, adversary=who) for who in made.adversaries]
    stated = made.guarantee(epsilon=0.6)
    assert stated.delta == max(guarantee.delta for guarantee in everybody)
    assert stated in everybody
    promised = made.guarantee(epsilon=made.promise[0] or 1.0)
    found = Result(made, np.zeros(made.N), USERS).guarantees
    assert stated.adversary in {guarantee.adversary for guarantee in found}
    if made.promise[0] is not None:
        assert found[0] == promised


@ALL
def test_a_guarantee_without_users_is_stated_or_says_what_is_missing(
    mechanism: FrequencyMechanism,
) -> None:
    unbound = replace(mechanism, users=None)
    try:
        assert unbound.guarantee(epsilon=0.6).epsilon == 0.6
    except ParameterError as missing:
        assert "give users=" in str(missing)  # noqa: PT017 - either is fine, anything else is not


def test_tss_without_phi_states_what_a_helper_sees() -> None:
    mechanism = fc.TSS(items=4, users=100, p=0.5, alpha=0.5, floor=9)
    for stated in (mechanism.guarantee(epsilon=1.0), *mechanism.guarantees(epsilon=1.0)):
        assert stated.condition is not None
        assert stated.condition.has(ConditionCode.NO_HELPER_LOOKS)
    prime = fc.TSSPrime(items=4, users=100, p=0.5, alpha=0.5, floor=9)
    assert "bit" not in str(prime.guarantee(epsilon=1.0))


@pytest.mark.parametrize("kind", [fc.DPDS, fc.DPCS])
@pytest.mark.parametrize("floor", [0, 1, 3])
def test_without_other_holders_nothing_is_calibrated(kind: type[fc.DPDS], floor: int) -> None:
    """The only possible p would be delta: a survey that counts one user in a million."""
    with pytest.raises(RefusedError, match="needs a floor of 82 holders per item"):
        kind(items=5, users=1000, epsilon=1.0, delta=1e-6, floor=floor, insiders=1, dropouts=2)
    assert kind(items=5, users=1000, epsilon=1.0, delta=1e-6, floor=4, dropouts=2).rate > 1e-6


def test_floor_zero_gives_delta_p_and_insiders_lower_the_floor() -> None:
    bare = fc.DPDS(items=4, users=100, p=0.3)
    assert bare.guarantee(epsilon=5.0).delta == pytest.approx(0.3)
    assert bare.guarantee(epsilon=5.0).condition is None
    # A hundred insiders may be all of the hundred other holders.
    known = fc.DPDS(items=30, users=4000, p=0.5, floor=100)
    deltas = [known.guarantee(epsilon=0.5, adversary=insiders(t)).delta for t in (0, 10, 50, 100)]
    assert deltas == pytest.approx([1.66e-5, 3.4e-5, 7.0e-4, 0.5], rel=0.02)


def test_calibration_meets_the_budget_with_one_insider() -> None:
    mechanism = fc.DPDS(items=5, users=1000, epsilon=0.5, delta=1e-5, floor=150)
    assert mechanism.guarantee(epsilon=0.5, adversary=insiders(1)).delta <= 1e-5
    closer = fc.DPDS(items=5, users=1000, epsilon=0.5, delta=1e-5, floor=150, insiders=0)
    assert closer.rate == pytest.approx(0.585, abs=1e-3)
    assert mechanism.rate < closer.rate
