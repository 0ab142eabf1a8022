"""Invalid parameters, answers and sums are refused with a message; responses do not print."""

import math

import numpy as np
import pytest

import faircount as fc
from faircount.accounting.guarantee import Adversary, insiders
from faircount.core.entropy import SeededStream
from faircount.core.errors import AnswerError, CorruptSumError, FaircountError, ParameterError
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.two_stage import TwoStageResponse, TwoStageSum


@pytest.mark.parametrize("kind", [np.uint8, np.uint64, np.int16])
def test_small_numpy_integers_do_not_wrap_around(kind: type) -> None:
    """As unsigned integers, a floor of 5 minus 6 insiders would be 255, or 2^64 - 1."""
    mechanism = fc.DPDS(
        items=5, users=kind(100), p=0.5, floor=kind(5), insiders=kind(6), dropouts=kind(0)
    )
    assert mechanism.guarantee(epsilon=0.5, adversary=insiders(6)).delta == 0.5
    assert (
        mechanism.guarantee(epsilon=0.5, adversary=Adversary("participants", kind(6))).delta == 0.5
    )
    noise = fc.Laplace(items=3, users=kind(100), epsilon=0.1, insiders=kind(1))
    assert noise.modulus == fc.Laplace(items=3, users=100, epsilon=0.1).modulus
    assert fc.Decoys(items=3, users=kind(100), epsilon=0.1, delta=1e-5).D > 5000
    assert fc.DPDG(items=3, users=kind(20), epsilon=1.0, delta=1e-3, scale=kind(8)).modulus > 400
    assert fc.PM(epsilon=1.0, cells=kind(64)).respond(np.zeros(3), SeededStream(1)).size == 3
    assert (
        fc.TSSPrime(items=5, users=kind(30), p=0.5, alpha=0.4, gamma=kind(2), phi=kind(2)).modulus
        == 31
    )


def test_responses_do_not_print() -> None:
    answers = np.array([0, 1, 2, 3, 0])
    staged = fc.TSS(items=4, users=5, p=1.0, alpha=0.5).respond(answers, SeededStream(1))
    assert repr(staged) == "TwoStageResponse()"
    assert "reporters" not in repr(TwoStageSum(np.array([1, 2]), np.array([0, 1], dtype=np.uint8)))
    assert isinstance(staged, TwoStageResponse)


def test_sums_of_the_wrong_shape_are_refused() -> None:
    central = fc.DPCS(items=3, users=5, p=0.5)
    staged = fc.TSS(items=4, users=5, p=0.5, alpha=0.5)
    for total in ([1, 2], [[1, 2, 0]], [0.5, 1, 1], "abc"):
        with pytest.raises(AnswerError):
            central.decode(total, 5)  # type: ignore[arg-type] # that is the point
    # An unknown item, a position below -1, a table, and a fraction.
    for responses in ([0, 5], [-2, 0], [[0, 1]], [0.5]):
        with pytest.raises(AnswerError):
            central.total(np.array(responses))
    with pytest.raises(AnswerError):
        staged.decode(TwoStageSum(np.array([1, 1]), np.array([0, 1], dtype=np.uint8)), 5)
    with pytest.raises(CorruptSumError):
        central.decode(np.array([6, 0, 0]), 5)
    for mechanism, total in (
        (central, np.array([1, 0, 0])),
        (staged, TwoStageSum(np.zeros(4), np.zeros(4))),
    ):
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
        lambda: NoiseDistribution(0, np.array([math.nan, 1.0])),
    ],
)
def test_extreme_parameters_are_refused_in_words(make) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FaircountError):
        make()
