"""`fc.run` with and without proofs: topologies, refusals, and what a result says it assumes."""

import json

import numpy as np
import pytest

import faircount as fc
from faircount.core.errors import ParameterError
from faircount.estimation.validity import ASSUMPTIONS, ROWS_ASSUMPTION

ITEMS = ["tea", "milk", "water"]
ANSWERS = ["tea"] * 30 + ["milk"] * 20 + ["water"] * 10
PROVEN = [
    fc.ServerLaplace(items=ITEMS, epsilon=1.0),
    fc.ServerCoins(items=ITEMS, epsilon=1.0, delta=1e-3),
    fc.PlacedCoins(items=ITEMS, epsilon=1.0, delta=1e-2),
]


@pytest.mark.parametrize("mechanism", PROVEN, ids=lambda mechanism: mechanism.name)
def test_with_proofs_the_result_says_how_much_liars_could_have_moved(
    mechanism: fc.ServerLaplace,
) -> None:
    result = fc.run(ANSWERS, mechanism, proofs=True, entropy=fc.SeededStream(1))
    assert result.topology == "servers"
    assert result.assumption == ASSUMPTIONS[True]
    assert result.validity is not None
    assert (result.validity.counted, result.validity.refused) == (60, 0)
    assert f"assumes: {ASSUMPTIONS[True]}" in str(result)
    assert "a frequency by at most 1/60" in str(result)
    assert "Assumes: clients may be malicious" in result._repr_html_()
    said = json.loads(json.dumps(result.to_dict()))
    assert said["assumption"] == ASSUMPTIONS[True]
    assert said["validity"]["frequency_per_liar"] == pytest.approx(1 / 60)
    found = result.interval(0.999999)
    truth = np.array([0.5, 1 / 3, 1 / 6])
    assert np.all((found.low <= truth) & (truth <= found.high))


@pytest.mark.parametrize("topology", [None, "servers", "shares"])
def test_without_proofs_the_result_says_that_rows_were_believed(topology: str | None) -> None:
    result = fc.run(
        ANSWERS, fc.Laplace(items=ITEMS, epsilon=1.0), topology=topology, entropy=fc.SeededStream(1)
    )
    assert result.assumption == ROWS_ASSUMPTION == result.to_dict()["assumption"]
    assert "assumes: every row of the table holds what that person answered" in str(result)
    # There were no clients of which anything could be said.
    assert result.to_dict()["validity"] is None


def test_a_topology_that_was_played_is_not_taken_for_two_servers() -> None:
    mechanism = fc.Laplace(items=ITEMS, epsilon=1.0)
    played = fc.run(ANSWERS, mechanism, topology="servers", entropy=fc.SeededStream(1))
    first = next(line for line in str(played).splitlines() if line.startswith("laplace"))
    assert first == "laplace: 60 users, 3 items, topology servers played in this process"
    table = fc.histogram(ANSWERS, domain=ITEMS, epsilon=1.0, entropy=fc.SeededStream(1))
    assert "laplace: 60 users, 3 items" in str(table).splitlines()
    assert table.to_dict()["topology"] == "servers"


def test_a_mechanism_that_proves_is_tried_without_messages_unless_asked() -> None:
    tried = fc.run(ANSWERS, PROVEN[0], entropy=fc.SeededStream(1))
    assert tried.topology == "shares"
    assert tried.assumption == ROWS_ASSUMPTION
    assert (
        fc.run(ANSWERS, PROVEN[0], topology="servers", entropy=fc.SeededStream(1)).assumption
        == ASSUMPTIONS[True]
    )


def test_what_cannot_be_proven_is_refused() -> None:
    for unproven in (fc.Laplace(items=ITEMS, epsilon=1.0), fc.OUE(items=ITEMS, epsilon=1.0)):
        with pytest.raises(ParameterError, match="choose ServerJoint, ServerLaplace, ServerCoins"):
            fc.run(ANSWERS, unproven, proofs=True)
    with pytest.raises(ParameterError, match="only servers check proofs"):
        fc.run(ANSWERS, PROVEN[0], topology="masked", proofs=True)


def test_means_and_tables_say_it_too() -> None:
    mean = fc.run(np.linspace(-1, 1, 50), fc.Duchi(epsilon=1.0), entropy=fc.SeededStream(1))
    assert f"assumes: {ROWS_ASSUMPTION}" in str(mean)
    assert mean.to_dict()["assumption"] == ROWS_ASSUMPTION
    table = fc.histogram(ANSWERS, domain=ITEMS, epsilon=1.0, entropy=fc.SeededStream(1))
    assert table.to_dict()["assumption"] == ROWS_ASSUMPTION
