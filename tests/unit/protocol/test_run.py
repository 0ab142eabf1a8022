"""`run` gives the same kind of result however the shares travel."""

import numpy as np
import pytest

import faircount as fc
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.protocol.run import TOPOLOGIES, run

ITEMS = ["a", "b", "c"]
ANSWERS = ["a"] * 9 + ["b"] * 5 + ["c"] * 2
SILENT = fc.DPDS(items=ITEMS, p=1.0, epsilon=1.0, delta=1.0)  # everybody counts: the sum must be exact


@pytest.mark.parametrize("topology", ["shares", "servers", "explicit", "masked"])
def test_without_noise_every_form_opens_the_exact_sum(topology: str) -> None:
    result = run(ANSWERS, SILENT, topology=topology, entropy=SeededStream(41))
    assert result.aggregate.tolist() == [9, 5, 2]
    assert result.included == 16


@pytest.mark.parametrize("topology", ["shares", "two-stage"])
def test_two_stage_counts_nobody_twice(topology: str) -> None:
    made = fc.TSSPrime(items=ITEMS, p=1.0, alpha=2 / 3, phi=2, epsilon=1.0)
    result = run(ANSWERS, made, topology=topology, entropy=SeededStream(42))
    assert np.all(result.aggregate <= [9, 5, 2])
    assert result.aggregate.sum() > 0


def test_the_default_is_the_protocol_for_small_crowds_and_shares_for_the_rest() -> None:
    small = run(ANSWERS, fc.Laplace(items=ITEMS, epsilon=1.0))
    assert small.facts["topology"] == "servers"
    for mechanism in (fc.Decoys(items=ITEMS, epsilon=1.0, delta=1e-3), fc.DPDS(items=ITEMS, p=0.5)):
        assert run(ANSWERS, mechanism).facts["topology"] == "shares"
    assert run(ANSWERS * 200, fc.Laplace(items=ITEMS, epsilon=1.0)).facts["topology"] == "shares"
    assert run(ANSWERS, fc.Laplace(items=ITEMS, epsilon=1.0), parties=3).facts["share holders"] == 3


def test_what_does_not_fit_is_refused_in_words() -> None:
    assert set(TOPOLOGIES) == {"shares", "servers", "explicit", "masked", "two-stage"}
    with pytest.raises(ParameterError, match="topology must be one of"):
        run(ANSWERS, SILENT, topology="ring")
    with pytest.raises(ParameterError, match="two-stage"):
        run(ANSWERS, SILENT, topology="two-stage")
    with pytest.raises(ParameterError, match="grr does not run"):
        run(ANSWERS, fc.GRR(items=ITEMS, epsilon=1.0), topology="servers")
    with pytest.raises(ParameterError, match="give epsilon="):
        run(ANSWERS, fc.DPDS(items=ITEMS, p=0.5), topology="servers")
