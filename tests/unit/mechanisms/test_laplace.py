"""Laplace: exact convolutions of table integers; samples only compare `respond` and `draw`."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

import faircount as fc
from faircount.accounting.composition import compose_randomized_response
from faircount.accounting.exact import laplace_epsilon, laplace_log_pmf
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation, insiders
from faircount.core.entropy import SeededStream
from faircount.core.errors import (
    AnswerError,
    CorruptSumError,
    ParameterError,
    RefusedError,
    ShareError,
)
from faircount.mechanisms.calibration import Requirements
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.exact_draws import ONE, PRECISE
from faircount.mechanisms.laplace import Laplace, laplace_table, one_sided_distribution
from faircount.sharing.field import to_signed
from faircount.sharing.primes import is_prime


def fits(sample, low, pmf, alarm=1e-6):
    """Chi-square test with one false alarm in a million; rare outcomes share a cell."""
    expected = np.asarray(pmf) * sample.size
    inner = np.flatnonzero(expected >= 10)
    first = inner[0]
    last = inner[-1]
    # Outcomes beyond the common ones are counted in the first and the last cell.
    clipped = np.clip(sample - low, first, last) - first
    observed = np.bincount(clipped.astype(np.int64), minlength=last - first + 1)
    cells = expected[first : last + 1].copy()
    cells[0] += expected[:first].sum()
    cells[-1] += expected[last + 1 :].sum()
    return ((observed - cells) ** 2 / cells).sum() < chi2.isf(alarm, cells.size - 1)


def convolve_weights(weights, terms):
    """The exact distribution of a sum of independent draws, in integers over 2^(128 terms)."""
    distribution = np.array(weights, dtype=object)
    total = distribution
    for _ in range(terms - 1):
        total = np.convolve(total, distribution)
    return total


# The distribution of one draw.


@pytest.mark.parametrize(("epsilon", "h"), [(1.0, 1), (0.5, 3), (1.0, 5000), (4.0, 20)])
def test_the_recurrence_is_the_convolution_of_two_negative_binomials(epsilon, h):
    with mpmath.workdps(90):
        a = mpmath.exp(-mpmath.mpf(epsilon) / 2)
        r = mpmath.mpf(1) / h
        # The negative binomial by its own recurrence.
        single = [(1 - a) ** r]
        for x in range(math.ceil(400 / epsilon) + 120):
            single.append(single[-1] * a * (x + r) / (x + 1))
        distribution = one_sided_distribution(epsilon, h, math.ceil(150 / epsilon) + 60)
        for z in (0, 1, 2, 7, 60):
            direct = mpmath.fsum(low * high for low, high in zip(single, single[z:], strict=False))
            assert abs(mpmath.mpf(str(distribution[z])) / direct - 1) < mpmath.mpf(10) ** -40


@pytest.mark.parametrize(("epsilon", "h"), [(1.0, 1), (1.0, 3), (0.3, 2)])
def test_h_draws_add_up_to_the_two_sided_geometric_distribution(epsilon, h):
    table, _ = laplace_table(epsilon, h)
    total = convolve_weights(table.weights, h)
    with localcontext(PRECISE):
        a = (-Decimal(epsilon) / 2).exp()
        for at, weight in enumerate(total):
            z = abs(at - len(total) // 2)
            ideal = (1 - a) / (1 + a) * a**z
            assert abs(Decimal(weight) / Decimal(ONE) ** h - ideal) < Decimal("1e-30")


def test_the_distance_of_the_table_from_the_ideal_distribution_by_an_independent_sum():
    table, distance = laplace_table(1.0, 3)
    with localcontext(PRECISE):
        distribution = one_sided_distribution(1.0, 3, 400)
        drawn = dict(zip(table.values, table.weights, strict=True))
        differences = Decimal(0)
        for z in range(-400, 401):
            differences += abs(Decimal(drawn.get(z, 0)) / ONE - distribution[abs(z)])
    # Total variation distance is half the sum of all differences.
    assert distance == pytest.approx(float(differences / 2), rel=1e-9, abs=0)


def test_the_delta_of_the_table_is_small_and_never_zero():
    delta = Laplace(items=30, epsilon=1, users=5001).table_delta()
    assert math.log2(delta) == pytest.approx(-107, abs=1)
    for epsilon, users in ((0.1, 3), (1, 2), (10, 10**6), (50, 2)):
        assert 0 < Laplace(items=2, epsilon=epsilon, users=users).table_delta() < 2.0**-40


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_what_runs_is_private_up_to_the_delta_of_the_table(epsilon):
    """The hockey-stick divergence of the table's integers, for a shift by one count."""
    mechanism = Laplace(items=3, epsilon=epsilon, users=3, insiders=1)
    distribution = convolve_weights(mechanism.table.weights, 2)
    with localcontext(PRECISE):
        factor = (Decimal(epsilon) / 2).exp()
        whole = Decimal(ONE) ** 2
        pairs = zip([0, *distribution], [*distribution, 0], strict=True)
        exact = sum(max(Decimal(0), p - factor * q) for p, q in pairs) / whole
    claimed = mechanism.delta_at(epsilon / 2, insiders(1), Relation.ZERO_OUT)
    assert 0 < exact <= Decimal(claimed)
    assert claimed < 2.0**-110


# Guarantee and variance.


@pytest.mark.parametrize(("epsilon", "counts"), [(0.5, 31.8), (1.0, 7.84), (2.0, 1.84)])
def test_variance_is_that_of_the_mathematics(epsilon, counts):
    mechanism = Laplace(items=5, epsilon=epsilon, users=1000, insiders=0)
    a = math.exp(-epsilon / 2)
    found = mechanism.variance(np.full(5, 0.2), raw=True) * 1000**2
    assert found == pytest.approx(np.full(5, 2 * a / (1 - a) ** 2), rel=1e-10)
    # The expected value has three significant digits.
    assert round(found[0], 3 - len(f"{int(counts)}")) == counts
    # With 900 of 1,000 users in the sum and noise for 800.
    some = Laplace(items=5, epsilon=epsilon, users=1000, insiders=50, dropouts=150)
    assert some.variance(np.full(5, 0.2), 900, raw=True) * 900**2 == pytest.approx(
        found * 900 / 800, rel=1e-10
    )


def test_the_promise_is_kept_against_the_insiders_it_was_made_for():
    mechanism = Laplace(items=30, epsilon=1, users=1000, insiders=100, dropouts=100)
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.adversary, promised.condition) == (1.0, insiders(100), None)
    assert promised.delta == mechanism.table_delta()
    assert mechanism.guarantee(adversary=OUTSIDER).delta < 2.0**-100
    # Three times as many insiders as planned for, and everybody.
    assert mechanism.guarantee(adversary=insiders(300)).delta > 1e-3
    assert mechanism.guarantee(adversary=insiders(900)).delta == 1.0
    assert mechanism.guarantee(adversary=COLLECTOR).delta > 0.9
    assert mechanism.guarantee(delta=1e-30, relation=Relation.ZERO_OUT).epsilon == pytest.approx(
        0.5, rel=1e-6
    )


def test_below_the_promised_epsilon_delta_is_that_of_randomized_response():
    """A shift of the discrete Laplace distribution is a randomized response with e^(epsilon/2)."""
    mechanism = Laplace(items=3, epsilon=2, users=10)
    # Zero-out shifts one count and replace-one two of them, independently.
    keep = math.exp(1) / (1 + math.exp(1))
    one = keep - math.exp(0.5) * (1 - keep)
    assert mechanism.delta_at(0.5, insiders(1), Relation.ZERO_OUT) == pytest.approx(one, rel=1e-9)
    two = keep**2 - math.exp(0.5) * (1 - keep) ** 2
    assert mechanism.delta_at(0.5, insiders(1), Relation.REPLACE_ONE) == pytest.approx(
        two, rel=1e-9
    )


def test_beyond_the_pure_epsilon_delta_stays():
    mechanism = Laplace(items=3, epsilon=2, users=10)
    for relation, pure in ((Relation.REPLACE_ONE, 2.0), (Relation.ZERO_OUT, 1.0)):
        assert mechanism.delta_at(pure, insiders(1), relation) == mechanism.delta_at(
            40.0, insiders(1), relation
        )
    few = mechanism.remaining_guarantee(5)
    assert mechanism.delta_at(40.0, insiders(6), Relation.REPLACE_ONE) == few.delta


def test_the_remaining_guarantee_counts_the_noise_that_was_added():
    mechanism = Laplace(items=30, epsilon=1, users=1000, insiders=0)
    assert mechanism.remaining_guarantee(1000).epsilon == 1.0
    assert mechanism.remaining_guarantee(900).epsilon == pytest.approx(1.172, abs=5e-4)
    assert mechanism.guarantee(delta=1e-15, adversary=insiders(500)).epsilon == pytest.approx(
        2.275, abs=5e-4
    )
    assert 0 < mechanism.remaining_guarantee(900).delta < 2.0**-100
    expected = Laplace(items=30, epsilon=1, users=1000, insiders=50, dropouts=50)
    assert expected.remaining_guarantee(960).epsilon == 1.0
    with pytest.raises(RefusedError, match="no noise is left"):
        Laplace(items=30, epsilon=1, users=1000, insiders=10).remaining_guarantee(10)


# Two items share one draw.


def pair_distribution(mechanism: Laplace, unknown: int) -> dict[int, Fraction]:
    """The distribution of x, the noise that `unknown` users add to one item and subtract from the other."""
    weights = convolve_weights(mechanism.table.weights, unknown)
    middle = len(weights) // 2
    return {at - middle: Fraction(weight, ONE**unknown) for at, weight in enumerate(weights)}


def hockey_stick(first: dict, second: dict, factor: Fraction) -> Fraction:
    """Sum over all outcomes of what the first distribution exceeds `factor` times the second by."""
    gains = [mass - factor * second.get(outcome, 0) for outcome, mass in first.items()]
    return sum(gain for gain in gains if gain > 0)


@pytest.mark.parametrize(
    ("users", "known", "epsilon"), [(3, 1, 0.5), (3, 1, 1.0), (2, 1, 3.0), (4, 2, 1.0), (4, 3, 1.0)]
)
@pytest.mark.parametrize("share", [0.3, 0.9, 1.0, 1.5])
def test_two_published_counts_are_as_private_as_stated(users, known, epsilon, share):
    """Both counts, enumerated: all others chose item 0, the last user item 0 or 1.

    `known` of the users collude; the mechanism is made for one of them.
    """
    mechanism = Laplace(items=2, epsilon=epsilon, users=users, insiders=1)
    noise = pair_distribution(mechanism, users - known)
    stays = {(users - known + x, -x): mass for x, mass in noise.items()}
    moves = {(users - known - 1 + x, 1 - x): mass for x, mass in noise.items()}
    at = share * epsilon
    with localcontext(PRECISE):
        factor = Fraction(Decimal(at).exp())
    exact = float(hockey_stick(stays, moves, factor))
    stated = mechanism.delta_at(at, insiders(known), Relation.REPLACE_ONE)
    assert exact <= stated * (1 + 1e-9) + 1e-30
    assert stated <= exact * (1 + 1e-9) + 1e-30
    # A zeroed response is seen in the total, which has no noise.
    zeroed = {(users - known - 1 + x, -x): mass for x, mass in noise.items()}
    assert hockey_stick(stays, zeroed, factor) == 1
    assert mechanism.delta_at(at, insiders(known), Relation.ZERO_OUT) == 1.0


def test_the_epsilon_of_a_pair_with_a_part_of_the_noise_is_half_of_twice():
    """epsilon' = laplace_epsilon(2 epsilon, share) / 2, by enumeration of the largest loss."""
    mechanism = Laplace(items=2, epsilon=1.0, users=5, insiders=1)
    noise = pair_distribution(mechanism, 2)
    largest = max(math.log(noise[x] / noise[x + 1]) for x in range(-40, 40))
    assert largest == pytest.approx(laplace_epsilon(2.0, 2 / 4) / 2, rel=1e-12)
    assert mechanism.remaining_guarantee(3).epsilon == pytest.approx(largest, rel=1e-12)
    assert largest > 1.0


def test_several_surveys_of_two_items_compose_as_one_response_each():
    mechanism = Laplace(items=2, epsilon=0.3, users=100)
    for epsilon in (0.1, 0.5, 0.85):
        exact = compose_randomized_response(0.3, 3, epsilon=epsilon)
        composed = fc.compose(*[mechanism] * 3, epsilon=epsilon).delta
        assert exact <= composed <= exact * 1.01 + 1e-4
        # Two independent counts of half the epsilon each would lose less at a small epsilon, so
        # that this is not the same distribution.
        assert exact > 1.05 * compose_randomized_response(0.15, 6, epsilon=epsilon)
    made = Laplace.calibrate(Requirements(100, 2, 1.0, 1e-6, releases=12))
    assert 0.9e-6 < made.total_delta() <= 1e-6


def test_a_pair_has_a_quarter_of_the_variance_and_an_exact_total():
    mechanism = Laplace(items=2, epsilon=1.0, users=1000, insiders=0)
    b = math.exp(-1.0)
    found = mechanism.variance(np.array([0.3, 0.7])) * 1000**2
    assert found == pytest.approx(np.full(2, 2 * b / (1 - b) ** 2), rel=1e-9)
    assert found[0] == pytest.approx(7.8354 / 4, rel=0.07)
    responses = to_signed(
        mechanism.respond(np.arange(1000) % 2, SeededStream(3)), mechanism.modulus, -100
    )
    assert (responses.sum(axis=1) == 1).all()
    assert np.abs(responses).max() > 1
    total = mechanism.total(mechanism.respond(np.arange(1000) % 2, SeededStream(3)))
    sums = mechanism.decode(total, 1000)
    assert sums.sum() == 1000
    assert mechanism.estimate(sums, 1000).sum() == pytest.approx(1)
    assert np.array_equal(mechanism.estimate(sums, 1000), mechanism.estimate(sums, 1000, raw=True))
    # A sum with another total was corrupted.
    with pytest.raises(CorruptSumError, match="add up to"):
        mechanism.decode(((sums + np.array([1, 0])) % mechanism.modulus).astype(np.uint16), 1000)


def test_both_levels_draw_the_same_pair():
    mechanism = Laplace(items=2, epsilon=0.5, users=4, insiders=1)
    distribution = mechanism.channel(4).noise
    surveys = 4000
    batch = mechanism.for_batch(surveys)
    responses = batch.respond(np.zeros(4 * surveys, dtype=int), SeededStream(8))
    signed = to_signed(responses, batch.modulus, -(batch.modulus // 2))
    views = signed.reshape(4, surveys, 2).sum(axis=0)
    rng = np.random.default_rng(9)
    drawn = np.array([mechanism.draw(np.array([4, 0]), rng) for _ in range(surveys)])
    assert fits(views[:, 0] - 4, distribution.low, distribution.pmf)
    assert fits(drawn[:, 0] - 4, distribution.low, distribution.pmf)
    assert (views.sum(axis=1) == 4).all()
    assert (drawn.sum(axis=1) == 4).all()


# From responses to estimates.


def test_count_level_distribution_is_the_sum_of_the_users_tables():
    mechanism = Laplace(items=2, epsilon=1, users=4, insiders=1)
    for included in (2, 4):
        distribution = mechanism.channel(included).noise
        exact = convolve_weights(mechanism.table.weights, included)
        inner = [float(Fraction(exact[len(exact) // 2 + z], ONE**included)) for z in range(-60, 61)]
        assert distribution.pmf[-distribution.low - 60 : -distribution.low + 61] == pytest.approx(
            np.array(inner), rel=1e-9, abs=0
        )


@pytest.mark.parametrize(("scale", "same"), [(1.0, True), (1.3, False)])
def test_both_levels_draw_the_same_distribution_and_another_scale_is_noticed(scale, same):
    items = 40_000
    users = 5
    promised = Laplace(items=items, epsilon=1, users=users, insiders=2)
    drawn = Laplace(items=items, epsilon=1 / scale, users=users, insiders=2)
    distribution = promised.channel(users).noise
    answers = np.arange(users)
    counts = np.bincount(answers, minlength=items)
    one_by_one = drawn.decode(drawn.total(drawn.respond(answers, SeededStream(1))), users)
    at_once = drawn.draw(counts, np.random.default_rng(2))
    assert fits(one_by_one - counts, distribution.low, distribution.pmf) == same
    assert fits(at_once - counts, distribution.low, distribution.pmf) == same


def test_the_noise_has_mean_zero_exactly_and_estimates_are_unbiased():
    mechanism = Laplace(items=3, epsilon=1, users=100)
    table = mechanism.table
    assert sum(z * weight for z, weight in zip(table.values, table.weights, strict=True)) == 0
    assert mechanism.estimate(np.array([50, 30, 20]), 100) == pytest.approx(
        [0.5, 0.3, 0.2], abs=1e-12
    )
    raw = mechanism.estimate(np.array([-4, 60, 20]), 80, raw=True)
    assert raw == pytest.approx([-0.05, 0.75, 0.25], abs=1e-12)
    # Four too few were counted: every item gets a third of them.
    fitted = mechanism.estimate(np.array([-4, 60, 20]), 80)
    assert fitted == pytest.approx(raw + 4 / 3 / 80, abs=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "users", "missing"), [(1.0, 1000, 1), (0.1, 50, 40), (5.0, 10, 0)]
)
def test_modulus_is_a_prime_that_noise_outgrows_once_in_2_60(epsilon, users, missing):
    mechanism = Laplace(items=30, epsilon=epsilon, users=users, insiders=missing)
    q = mechanism.modulus
    reach = mechanism.bound
    assert is_prime(q)
    assert q > users + 2 * reach
    half = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), users / mechanism.h))
    # The bound holds for the exact distribution, and three quarters of it would not.
    half = half[half.size // 2 :]
    assert 30 * 2 * half[reach + 1 :].sum() < 2.0**-60 < 30 * 2 * half[int(0.75 * reach) :].sum()
    spread = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), 30 * users / mechanism.h))
    assert 2 * spread[: spread.size // 2 - mechanism.total_bound].sum() < 2.0**-60


def test_sums_keep_their_sign_and_impossible_ones_are_refused():
    mechanism = Laplace(items=3, epsilon=1, users=10)
    q = mechanism.modulus
    kind = np.uint16

    def decode(values, included=10):
        return mechanism.decode((np.array(values) % q).astype(kind), included)

    assert decode([-5, 9, 7]).tolist() == [-5, 9, 7]
    low = -mechanism.bound
    high = 10 + mechanism.bound
    assert decode([low, high, 0]).tolist() == [low, high, 0]
    # Above the range of an item, and totals that are too small and too large.
    for corrupt in ([high + 1, 0, 0], [-60, -60, -60], [90, 90, 50]):
        with pytest.raises(CorruptSumError):
            decode(corrupt)
    with pytest.raises(ParameterError):
        decode([1, 2, 3], included=11)
    with pytest.raises(ShareError):
        mechanism.decode(np.array([1, 2, q]), 10)
    with pytest.raises(AnswerError):
        mechanism.decode(np.array([1, 2]), 10)


def test_a_response_is_one_vector_per_user_even_across_blocks():
    users = 70_000
    items = 4
    # More entries than are computed at a time.
    mechanism = Laplace(items=items, epsilon=1, users=users)
    answers = np.arange(users) % items
    responses = mechanism.respond(answers, SeededStream(5))
    assert responses.shape == (users, items)
    assert responses.dtype == np.uint32
    alone = responses.copy()
    alone[np.arange(users), answers] -= 1
    # With so many users nearly every draw is 0.
    assert (alone == 0).mean() > 0.9999
    one = mechanism.respond_as(69_999, (2,), SeededStream(6))
    assert one.tolist() == [0, 0, 1, 0]
    assert mechanism.total(responses[:, :]).shape == (items,)


def test_answers_and_responses_that_do_not_fit_are_refused():
    mechanism = Laplace(items=3, epsilon=1, users=2)
    for answers in ([0, 3], [-1, 0], [0], [0, 1, 2], [0.0, 1.0], [[0, 1]], ["a", "b"]):
        with pytest.raises(AnswerError):
            mechanism.respond(np.array(answers), SeededStream(1))
    with pytest.raises(AnswerError):
        mechanism.total(np.zeros((2, 4), dtype=np.uint16))
    with pytest.raises(ShareError):
        mechanism.total(np.full((2, 3), mechanism.modulus))
    with pytest.raises(AnswerError):
        mechanism.draw(np.array([1, 1, 1]), np.random.default_rng(1))
    with pytest.raises(ParameterError):
        mechanism.respond_as(2, (0,), SeededStream(1))


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, 1e-9, 1000])
def test_epsilons_that_make_no_sense_are_refused(epsilon):
    with pytest.raises(ParameterError):
        Laplace(items=3, epsilon=epsilon)


@pytest.mark.parametrize(
    "make", [partial(Laplace, items=3, epsilon=1), partial(Decoys, items=3, coins=5)]
)
def test_the_noise_of_at_least_one_user_must_count(make):
    with pytest.raises(ParameterError, match="nobody's noise can be counted on"):
        make(users=1)
    with pytest.raises(ParameterError, match="nobody's noise can be counted on"):
        make(insiders=3, dropouts=2).bind(5)
    with pytest.raises(ParameterError):
        make(insiders=-1)
    with pytest.raises(ParameterError, match="give users="):
        assert make().modulus
    assert make(users=1, insiders=0).h == 1
    assert make(insiders=3, dropouts=2).bind(6).h == 1


def test_a_mechanism_prints_its_parameters_and_no_table():
    mechanism = Laplace(items=2, epsilon=1, users=10)
    assert mechanism.table.weights
    assert mechanism.modulus
    assert "insiders=1, dropouts=0, epsilon=1.0" in repr(mechanism)
    assert len(repr(mechanism)) < 120


@pytest.mark.parametrize("items", [2, 3, 12])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_the_bound_on_the_error_never_refuses_what_suffices(items, epsilon):
    mechanism = Laplace(items=items, users=60, epsilon=epsilon, dropouts=20)
    for included in (20, 40, 41, 45, 60):
        exact = mechanism.expected_errors(included)[1]
        for factor in (0.5, 0.95, 0.999, 1, 1.001, 1.05, 2):
            assert mechanism.reaches(factor * exact, included) is (factor >= 1 or not exact)


class Exact(Laplace):
    """A mechanism of somebody else, whose errors are smaller than those of its base class."""

    def expected_errors(self, included):
        return 0.0, 0.0


class NoNoise(Laplace):
    """Another one with a distribution of its own, from which its errors follow."""

    def channel(self, included):
        return Channel(1.0)


@pytest.mark.parametrize("kind", [Exact, NoNoise])
def test_the_bound_on_the_error_is_not_that_of_a_subclass_with_other_errors(kind):
    terms = {"items": 3, "users": 60, "epsilon": 1.0, "dropouts": 20}
    exact = kind(**terms).expected_errors(60)[1]
    assert exact < Laplace(**terms).expected_errors(60)[1] / 2
    assert kind(**terms).reaches(exact, 60)
