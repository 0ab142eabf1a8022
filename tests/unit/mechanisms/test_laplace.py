"""Laplace: laws are convolved exactly in the integers of the table; samples only tie the two levels together."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from faircount.accounting.exact import laplace_log_pmf
from faircount.accounting.guarantee import COLLECTOR, OUTSIDER, Relation, insiders
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, ParameterError, RefusedError, ShareError
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.exact_draws import ONE, PRECISE
from faircount.mechanisms.laplace import Laplace, half_law, laplace_table
from faircount.sharing.primes import is_prime


def fits(sample, low, pmf, alarm=1e-6):
    """Chi-square test that raises a false alarm once in a million; cells below 10 expected are put together."""
    expected = np.asarray(pmf) * sample.size
    inner = np.flatnonzero(expected >= 10)
    first, last = inner[0], inner[-1]
    clipped = np.clip(sample - low, first, last) - first
    observed = np.bincount(clipped.astype(np.int64), minlength=last - first + 1)
    cells = expected[first : last + 1].copy()
    cells[0] += expected[:first].sum()
    cells[-1] += expected[last + 1 :].sum()
    return ((observed - cells) ** 2 / cells).sum() < chi2.isf(alarm, cells.size - 1)


def folded(weights, terms):
    """The exact law, in integers over 2^(128 terms), of a sum of independent draws."""
    law = np.array(weights, dtype=object)
    total = law
    for _ in range(terms - 1):
        total = np.convolve(total, law)
    return total


# Laplace: the law of one draw


@pytest.mark.parametrize(("epsilon", "h"), [(1.0, 1), (0.5, 3), (1.0, 5000), (4.0, 20)])
def test_the_recurrence_is_the_convolution_of_two_negative_binomials(epsilon, h):
    with mpmath.workdps(90):
        a, r = mpmath.exp(-mpmath.mpf(epsilon) / 2), mpmath.mpf(1) / h
        single = [(1 - a) ** r]
        for x in range(math.ceil(400 / epsilon) + 120):
            single.append(single[-1] * a * (x + r) / (x + 1))
        law = half_law(epsilon, h, math.ceil(150 / epsilon) + 60)
        for z in (0, 1, 2, 7, 60):
            direct = mpmath.fsum(low * high for low, high in zip(single, single[z:], strict=False))
            assert abs(mpmath.mpf(str(law[z])) / direct - 1) < mpmath.mpf(10) ** -40


@pytest.mark.parametrize(("epsilon", "h"), [(1.0, 1), (1.0, 3), (0.3, 2)])
def test_h_draws_add_up_to_the_two_sided_geometric_law(epsilon, h):
    table, _ = laplace_table(epsilon, h)
    total = folded(table.weights, h)
    with localcontext(PRECISE):
        a = (-Decimal(epsilon) / 2).exp()
        for at, weight in enumerate(total):
            z = abs(at - len(total) // 2)
            assert abs(Decimal(weight) / Decimal(ONE) ** h - (1 - a) / (1 + a) * a**z) < Decimal("1e-30")


def test_the_distance_of_the_table_from_its_law_is_what_an_independent_sum_says():
    table, distance = laplace_table(1.0, 3)
    with localcontext(PRECISE):
        law = half_law(1.0, 3, 400)
        inside = {z: Decimal(weight) / ONE for z, weight in zip(table.values, table.weights, strict=True)}
        apart = sum(abs(inside.get(z, Decimal(0)) - law[abs(z)]) for z in range(-400, 401)) / 2
    assert distance == pytest.approx(float(apart), rel=1e-9, abs=0)


def test_the_cost_of_the_table_is_small_printed_and_never_zero():
    assert math.log2(Laplace(items=30, epsilon=1, users=5001).table_delta(1.0)) == pytest.approx(-107, abs=1)
    for epsilon, users in ((0.1, 3), (1, 2), (10, 10**6), (50, 2)):
        assert 0 < Laplace(items=2, epsilon=epsilon, users=users).table_delta(epsilon) < 2.0**-40


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_what_runs_is_private_up_to_the_cost_of_the_table(epsilon):
    """The hockey-stick divergence of the integers themselves, summed over h users, for a shift of one count."""
    mechanism = Laplace(items=2, epsilon=epsilon, users=3, insiders=1)
    law = folded(mechanism.table.weights, 2)
    with localcontext(PRECISE):
        factor, whole = (Decimal(epsilon) / 2).exp(), Decimal(ONE) ** 2
        shifted = [0, *law]
        exact = sum(max(Decimal(0), p - factor * q) for p, q in zip(shifted, [*law, 0], strict=True)) / whole
    claimed = mechanism.delta_at(epsilon / 2, insiders(1), Relation.ZERO_OUT)
    assert 0 < exact <= Decimal(claimed)
    assert claimed < 2.0**-110


# Laplace: guarantee and theory


@pytest.mark.parametrize(("epsilon", "counts"), [(0.5, 31.8), (1.0, 7.84), (2.0, 1.84)])
def test_variance_is_that_of_the_mathematics(epsilon, counts):
    mechanism = Laplace(items=5, epsilon=epsilon, users=1000, insiders=0)
    a = math.exp(-epsilon / 2)
    found = mechanism.variance(np.full(5, 0.2)) * 1000**2
    assert found == pytest.approx(np.full(5, 2 * a / (1 - a) ** 2), rel=1e-10)
    assert round(found[0], 3 - len(f"{int(counts)}")) == counts
    some = Laplace(items=5, epsilon=epsilon, users=1000, insiders=50, dropouts=150)
    assert some.variance(np.full(5, 0.2), 900) * 900**2 == pytest.approx(found * 900 / 800, rel=1e-10)


def test_the_promise_is_kept_against_the_insiders_it_was_made_for():
    mechanism = Laplace(items=30, epsilon=1, users=1000, insiders=100, dropouts=100)
    promised = mechanism.guarantee()
    assert (promised.epsilon, promised.adversary, promised.condition) == (1.0, insiders(100), None)
    assert promised.delta == mechanism.table_delta(mechanism.epsilon)
    assert mechanism.guarantee(adversary=OUTSIDER).delta < 2.0**-100
    assert mechanism.guarantee(adversary=insiders(300)).delta > 1e-3
    assert mechanism.guarantee(adversary=insiders(900)).delta == 1.0
    assert mechanism.guarantee(adversary=COLLECTOR).delta > 0.9
    assert mechanism.guarantee(delta=1e-30, relation=Relation.ZERO_OUT).epsilon == pytest.approx(0.5, rel=1e-6)


def test_below_the_promised_epsilon_delta_is_that_of_randomized_response():
    """A shift of a two-sided geometric law is randomized response with e^(epsilon/2); two shifts are two of them."""
    mechanism = Laplace(items=3, epsilon=2, users=10)
    keep = math.exp(1) / (1 + math.exp(1))
    one = keep - math.exp(0.5) * (1 - keep)
    assert mechanism.delta_at(0.5, insiders(1), Relation.ZERO_OUT) == pytest.approx(one, rel=1e-9)
    two = keep**2 - math.exp(0.5) * (1 - keep) ** 2
    assert mechanism.delta_at(0.5, insiders(1), Relation.REPLACE_ONE) == pytest.approx(two, rel=1e-9)


def test_beyond_the_pure_epsilon_delta_stays():
    mechanism = Laplace(items=3, epsilon=2, users=10)
    for relation, pure in ((Relation.REPLACE_ONE, 2.0), (Relation.ZERO_OUT, 1.0)):
        assert mechanism.delta_at(pure, insiders(1), relation) == mechanism.delta_at(40.0, insiders(1), relation)
    few = mechanism.realized(5)
    assert mechanism.delta_at(40.0, insiders(6), Relation.REPLACE_ONE) == few.delta


def test_realized_guarantee_counts_the_noise_that_went_in():
    mechanism = Laplace(items=30, epsilon=1, users=1000, insiders=0)
    assert mechanism.realized(1000).epsilon == 1.0
    assert mechanism.realized(900).epsilon == pytest.approx(1.172, abs=5e-4)
    assert mechanism.guarantee(delta=1e-15, adversary=insiders(500)).epsilon == pytest.approx(2.275, abs=5e-4)
    assert 0 < mechanism.realized(900).delta < 2.0**-100
    assert Laplace(items=30, epsilon=1, users=1000, insiders=50, dropouts=50).realized(960).epsilon == 1.0
    with pytest.raises(RefusedError, match="no noise is left"):
        Laplace(items=30, epsilon=1, users=1000, insiders=10).realized(10)


# Laplace: from responses to estimates


def test_count_level_law_is_the_sum_of_the_users_tables():
    mechanism = Laplace(items=2, epsilon=1, users=4, insiders=1)
    for included in (2, 4):
        law, exact = mechanism.channel(included).noise, folded(mechanism.table.weights, included)
        inner = [float(Fraction(exact[len(exact) // 2 + z], ONE**included)) for z in range(-60, 61)]
        assert law.pmf[-law.low - 60 : -law.low + 61] == pytest.approx(np.array(inner), rel=1e-9, abs=0)


@pytest.mark.parametrize(("scale", "same"), [(1.0, True), (1.3, False)])
def test_both_levels_draw_the_same_law_and_another_scale_is_noticed(scale, same):
    items, users = 40_000, 5
    promised = Laplace(items=items, epsilon=1, users=users, insiders=2)
    drawn = Laplace(items=items, epsilon=1 / scale, users=users, insiders=2)
    law, answers = promised.channel(users).noise, np.arange(users)
    held = np.bincount(answers, minlength=items)
    one_by_one = drawn.decode(drawn.total(drawn.respond(answers, SeededStream(1))), users)
    at_once = drawn.draw(held, np.random.default_rng(2))
    assert fits(one_by_one - held, law.low, law.pmf) == same
    assert fits(at_once - held, law.low, law.pmf) == same


def test_the_noise_has_mean_zero_exactly_and_estimates_are_unbiased():
    mechanism = Laplace(items=3, epsilon=1, users=100)
    table = mechanism.table
    assert sum(z * weight for z, weight in zip(table.values, table.weights, strict=True)) == 0
    assert mechanism.estimate(np.array([50, 30, 20]), 100) == pytest.approx([0.5, 0.3, 0.2], abs=1e-12)
    assert mechanism.estimate(np.array([-4, 60, 20]), 80) == pytest.approx([-0.05, 0.75, 0.25], abs=1e-12)


@pytest.mark.parametrize(("epsilon", "users", "missing"), [(1.0, 1000, 1), (0.1, 50, 40), (5.0, 10, 0)])
def test_modulus_is_a_prime_that_noise_outgrows_once_in_2_60(epsilon, users, missing):
    mechanism = Laplace(items=30, epsilon=epsilon, users=users, insiders=missing)
    q, reach = mechanism.modulus, mechanism.bound
    assert is_prime(q)
    assert q > users + 2 * reach
    half = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), users / mechanism.h))
    half = half[half.size // 2 :]
    assert 30 * 2 * half[reach + 1 :].sum() < 2.0**-60 < 30 * 2 * half[int(0.75 * reach) :].sum()
    spread = np.exp(laplace_log_pmf(math.exp(-epsilon / 2), 30 * users / mechanism.h))
    assert 2 * spread[: spread.size // 2 - mechanism.total_bound].sum() < 2.0**-60


def test_sums_keep_their_sign_and_impossible_ones_are_refused():
    mechanism = Laplace(items=3, epsilon=1, users=10)
    q, kind = mechanism.modulus, np.uint16

    def decode(values, included=10):
        return mechanism.decode((np.array(values) % q).astype(kind), included)

    assert decode([-5, 9, 7]).tolist() == [-5, 9, 7]
    low, high = -mechanism.bound, 10 + mechanism.bound
    assert decode([low, high, 0]).tolist() == [low, high, 0]
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
    users, items = 70_000, 4
    mechanism = Laplace(items=items, epsilon=1, users=users)
    answers = np.arange(users) % items
    responses = mechanism.respond(answers, SeededStream(5))
    assert responses.shape == (users, items)
    assert responses.dtype == np.uint32
    alone = responses.copy()
    alone[np.arange(users), answers] -= 1
    assert (alone == 0).mean() > 0.9999  # nearly all noise of so many users is 0
    one = mechanism.respond_as(69_999, 2, SeededStream(6))
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
        mechanism.respond_as(2, 0, SeededStream(1))


@pytest.mark.parametrize("epsilon", [0, -1, float("nan"), float("inf"), "1", None, 1e-9, 1000])
def test_epsilons_that_make_no_sense_are_refused(epsilon):
    with pytest.raises(ParameterError):
        Laplace(items=3, epsilon=epsilon)


@pytest.mark.parametrize("make", [partial(Laplace, items=3, epsilon=1), partial(Decoys, items=3, coins=5)])
def test_somebody_must_be_left_whose_noise_counts(make):
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
