"""Completion with lost visits: the protocol, the model of who comes, and the exact probability agree."""

import numpy as np
import pytest
from completion_runs import completes, played
from scipy.stats import binom

from faircount.core.errors import ParameterError
from faircount.planning.completion import completion, completions
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.survey.topology import Attendance
from faircount.protocol.topologies.explicit.completion import tolerable_loss
from faircount.protocol.wire.messages import Published


@pytest.mark.parametrize(
    ("topology", "minimum", "loss"), [(SERVERS, 18, 0.1), (EXPLICIT, 8, 0.15), (MASKED, 10, 0.3)]
)
def test_the_model_ends_as_the_protocol_does(topology, minimum, loss) -> None:
    """Of these runs some end and some do not. Up to 64 users everybody is a neighbour: the graph is no matter."""
    ends = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        if topology is MASKED:
            rng = _without_the_graph(rng)
        model = completes(topology, 20, minimum, loss, rng)
        real = played(topology, 20, minimum, loss, seed)
        assert isinstance(real, Published) == model, real
        ends.append(model)
    assert 0 < sum(ends) < 25


class _without_the_graph:  # noqa: N801 - stands in for a generator
    """The visits of a generator, and no random bytes taken from it."""

    def __init__(self, rng) -> None:
        self.random = rng.random

    def bytes(self, size: int) -> bytes:
        return bytes(size)


@pytest.mark.parametrize("topology", [SERVERS, MASKED])
def test_a_hundred_users_with_5_percent_loss_finish(topology) -> None:
    """The whole protocol; the seeds are fixed, so there is no false alarm.

    docs/explanation/protocol-figures.md has more of these runs.
    """
    assert all(
        isinstance(played(topology, 100, 70, 0.05, seed), Published) for seed in range(100, 104)
    )


@pytest.mark.parametrize("topology", [SERVERS, MASKED])
def test_99_percent_finish(topology) -> None:
    rng = np.random.default_rng(1)
    assert sum(completes(topology, 100, 70, 0.05, rng) for _ in range(1000)) >= 990


def test_explicit_gives_up_in_words() -> None:
    said = played(EXPLICIT, 40, 30, 0.15, 1)
    assert isinstance(said, str)
    assert "participants are left, 30 are needed" in said or "try `masked`" in said


@pytest.mark.parametrize(("users", "minimum", "loss"), [(5, 3, 0.3), (10, 6, 0.1), (30, 10, 0.02)])
def test_the_exact_probability_is_what_the_model_measures(users, minimum, loss) -> None:
    """20,000 runs with a fixed seed; five standard errors."""
    for topology in (SERVERS, EXPLICIT):
        exact, rng = completion(topology, users, minimum, loss), np.random.default_rng(7)
        seen = np.mean([completes(topology, users, minimum, loss, rng) for _ in range(20_000)])
        assert abs(seen - exact) <= 5 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-9


def test_known_probabilities() -> None:
    assert completion(SERVERS, 100, 70, 0.05) == pytest.approx(binom.sf(69, 100, 0.95), rel=1e-12)
    assert completion(EXPLICIT, 2, 2, 0.1, attempts=1) == pytest.approx(0.9**6)
    assert completion(EXPLICIT, 3, 2, 0.0) == 1
    assert completion(EXPLICIT, 100, 70, 0.05) < 0.2 < 0.99 < completion(EXPLICIT, 5, 2, 0.05)


@pytest.mark.parametrize(
    ("users", "minimum", "loss", "insiders"),
    [
        (30, 15, 0.1, 1),
        (64, 45, 0.05, 1),
        (100, 70, 0.05, 1),
        (300, 180, 0.1, 1),
        (60, 30, 0.08, 20),
        (50, 25, 0.05, 15),
    ],
)
def test_masked_surveys_end_at_least_as_often_as_is_said(users, minimum, loss, insiders) -> None:
    """2,000 runs with a fixed seed; five standard errors. The bound is of use: in these cases it is above 90%."""
    least, rng = (
        completion(MASKED, users, minimum, loss, insiders=insiders),
        np.random.default_rng(3),
    )
    seen = np.mean([completes(MASKED, users, minimum, loss, rng, insiders) for _ in range(2000)])
    assert 0.9 < least <= seen + 5 * np.sqrt(least * (1 - least) / 2000) + 1e-9


def test_masked_promises_nothing_where_too_few_come() -> None:
    assert completion(MASKED, 100, 95, 0.05) < 0.01
    assert completion(MASKED, 200, 20, 0.6) == 0  # the graph was planned for 30%
    assert completion(MASKED, 100, 70, 0.05, insiders=80) == 0  # no graph bears them


def test_the_loss_that_explicit_bears_is_the_largest() -> None:
    for users, minimum in ((5, 3), (100, 70), (1000, 1000), (10**6, 7 * 10**5)):
        loss = tolerable_loss(Attendance(users, minimum, 0.0))
        assert (
            completion(EXPLICIT, users, minimum, loss)
            >= 0.99
            > completion(EXPLICIT, users, minimum, 1.01 * loss)
        )


def test_endings_in_words() -> None:
    said = {ending.topology: ending for ending in completions(800, 560, 0.05)}
    assert "will fail" in said[EXPLICIT].words
    assert (said[EXPLICIT].chance, said[SERVERS].words) == (
        pytest.approx(2.25e-13, rel=0.01),
        "one visit",
    )
    assert said[MASKED].chance > 0.9999
    assert said[TWO_STAGE].chance is None
    assert "will fail" not in next(
        ending.words for ending in completions(20, 10, 0.001) if ending.topology is EXPLICIT
    )
    assert all("dropout" in ending.words for ending in completions(100, 100, 0.05)[:2])
    assert said[MASKED].to_dict()["kind"] == "at least"


def test_how_many_lying_clients_each_topology_bears() -> None:
    """By what one of them can do: be missing, withhold help, complain, cost attempts. None if nobody may be missing."""
    found = {
        str(ending.topology): ending.tolerated_malicious
        for ending in completions(800, 560, 0.05, insiders=4)
    }
    assert found == {"servers": 240, "explicit": 8, "masked": 9, "two-stage": 3}
    assert [ending.tolerated_malicious for ending in completions(800, 800, 0.05)] == [0, 0, 0, 0]
    assert {ending.tolerated_malicious for ending in completions(100, 99, 0.05, insiders=4)} == {1}
    few = {str(ending.topology): ending.tolerated_malicious for ending in completions(20, 10, 0.05)}
    assert few == {"servers": 10, "explicit": 8, "masked": 1, "two-stage": 1}
    assert completions(800, 560, 0.05)[0].to_dict()["tolerated_malicious"] == 240


def test_bad_questions_are_refused() -> None:
    with pytest.raises(ParameterError):
        completion(TWO_STAGE, 100, 70, 0.05)
    with pytest.raises(ParameterError):
        completion(SERVERS, 100, 70, 1.0)
    with pytest.raises(ParameterError):
        completes(TWO_STAGE, 100, 70, 0.0, np.random.default_rng(1))
