"""Which mechanism a survey runs: the best of those that run in its topology, with room for the absent."""

import pytest

from faircount.core.errors import ParameterError, RefusedError
from faircount.protocol import EXPLICIT, SERVERS, TWO_STAGE
from faircount.service.owner.advice import Wishes, advise

CITIES = tuple("abcdef")


def test_the_best_mechanism_of_two_servers_leaves_room_for_the_absent() -> None:
    advice = advise(Wishes(CITIES, 300, 1.0, absent=0.2))
    assert advice.mechanism.name == "laplace"
    assert (advice.mechanism.n, advice.mechanism.dropouts) == (300, 60)
    assert advice.mechanism.domain.labels == CITIES
    assert advice.tells_something
    assert "300 invited people of whom 240 must answer" in advice.words


def test_more_room_costs_accuracy() -> None:
    little, much = (advise(Wishes(CITIES, 300, 1.0, absent=each)) for each in (0.05, 0.5))
    assert little.half_width_95 < much.half_width_95


def test_the_mechanism_asked_for_is_taken_with_its_condition() -> None:
    advice = advise(Wishes(CITIES, 300, 2.0, mechanism="dpds", topology=EXPLICIT, floor=40, absent=0.1))
    assert advice.mechanism.name == "dpds"
    assert advice.condition is not None
    assert "provided that" in advice.words


def test_what_does_not_run_there_is_refused_with_the_reason() -> None:
    with pytest.raises(RefusedError, match=r"no mechanism keeps this promise in two-stage: laplace: .* does not run"):
        advise(Wishes(CITIES, 300, 1.0, mechanism="laplace", topology=TWO_STAGE))
    with pytest.raises(RefusedError, match="needs a floor"):
        advise(Wishes(CITIES, 300, 1.0, mechanism="dpds"))
    with pytest.raises(ParameterError, match="mechanism must be auto or one of"):
        advise(Wishes(CITIES, 300, 1.0, mechanism="magic"))


def test_local_mechanisms_are_no_survey_between_servers() -> None:
    with pytest.raises(RefusedError, match="grr makes no shares"):
        advise(Wishes(CITIES, 300, 1.0, mechanism="grr", topology=SERVERS))
