"""Spare bits: in a larger field, sums that were corrupted at random are noticed."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import CorruptSumError, ParameterError
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.gaussian import DPDG
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSSPrime, TwoStageSum
from faircount.protocol import SERVERS
from faircount.protocol.simulator import play
from faircount.sharing.field import uniform
from faircount.sharing.primes import is_prime

USERS = 60
ITEMS = 3
MECHANISMS = [
    DPDS(items=ITEMS, users=USERS, p=0.5),
    Laplace(items=ITEMS, users=USERS, epsilon=1.0),
    Decoys(items=ITEMS, users=USERS, epsilon=1.0, delta=1e-3),
    DPDG(items=ITEMS, users=USERS, epsilon=1.0, delta=1e-3),
    TSSPrime(items=ITEMS, users=USERS, p=0.5, alpha=2 / 3, phi=1),
]
BY_NAME = {"ids": [mechanism.name for mechanism in MECHANISMS]}


def wider(mechanism, bits):
    return replace(mechanism, spare_bits=bits)


@pytest.mark.parametrize("mechanism", MECHANISMS, **BY_NAME)
@pytest.mark.parametrize("bits", [0, 1, 8, 30])
def test_the_field_is_as_many_bits_larger(mechanism, bits) -> None:
    q = wider(mechanism, bits).modulus
    # Primes are dense: the smallest one is close to the required size.
    least = (mechanism.sum_span + 1) << bits
    assert is_prime(q)
    assert least <= q < 1.1 * least + 20
    assert (wider(mechanism, 0).modulus, wider(mechanism, 0)) == (mechanism.modulus, mechanism)


@pytest.mark.parametrize("mechanism", MECHANISMS, **BY_NAME)
def test_answers_come_through_unchanged(mechanism) -> None:
    answers = np.arange(USERS) % ITEMS
    sums = []
    for made in (mechanism, wider(mechanism, 20)):
        total = made.total(made.respond(answers, SeededStream(1)))
        sums.append(made.decode(total, USERS))
    assert np.array_equal(*sums)


@pytest.mark.parametrize("mechanism", MECHANISMS, **BY_NAME)
def test_a_random_item_passes_with_the_stated_probability(mechanism) -> None:
    """4,000 corrupted sums and a margin of five standard errors; without spare bits many pass."""
    passed = {}
    for bits in (0, 6):
        made = wider(mechanism, bits)
        total = made.total(made.respond(np.arange(USERS) % ITEMS, SeededStream(2)))
        elements = uniform(made.modulus, (4000,), SeededStream(3))
        passed[bits] = np.mean([passes_with(made, total, element) for element in elements])
    assert passed[6] <= 2**-6 + 5 * np.sqrt(2**-6 / 4000)
    assert passed[0] > 0.1


def passes_with(mechanism, total, element) -> bool:
    """Whether the sum is accepted when its second item is replaced by this element."""
    if isinstance(total, TwoStageSum):
        sums = total.sums.copy()
        corrupted = TwoStageSum(total.reporters, sums)
    else:
        sums = total.copy()
        corrupted = sums
    sums[1] = element
    try:
        mechanism.decode(corrupted, USERS)
    except CorruptSumError:
        return False
    return True


def test_a_field_that_is_too_large_is_refused() -> None:
    # Sums up to 60 take 6 bits, and the field has at most 62.
    with pytest.raises(ParameterError, match="ask for at most 55 spare bits"):
        _ = DPDS(items=3, users=60, p=0.5, spare_bits=60).modulus
    assert DPDS(items=3, users=60, p=0.5, spare_bits=55).modulus < 2**62
    with pytest.raises(ParameterError, match="spare_bits"):
        DPDS(items=3, p=0.5, spare_bits=-1)


def test_a_survey_runs_with_spare_bits() -> None:
    mechanism = Laplace(items=ITEMS, epsilon=1.0, spare_bits=40)
    result = play(np.arange(USERS) % ITEMS, mechanism, SERVERS, entropy=SeededStream(5))
    assert result.facts["modulus"] > 2**45
    assert result.facts["topology"] == "servers"
    assert abs(result.count_votes().estimates - 1 / 3).max() < 0.2
