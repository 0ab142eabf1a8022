"""Which mechanism a survey runs: the best of those that run in its topology, with room for the absent."""

import pytest

from faircount.core.errors import ParameterError, RefusedError
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.service.owner.advice import Wishes, advise

CITIES = tuple("abcdef")


def test_the_best_mechanism_of_two_servers_leaves_room_for_the_absent() -> None:
    advice = advise(Wishes(CITIES, 300, 1.0, absent=0.2))
    assert advice.mechanism.name == "server-laplace"
    assert (advice.mechanism.n, advice.mechanism.dropouts) == (300, 60)
    assert advice.mechanism.domain.labels == CITIES
    assert advice.tells_something
    assert "300 invited people of whom 240 must answer" in advice.words


def test_surveys_of_two_servers_are_planned_for_clients_that_lie() -> None:
    wished = Wishes(CITIES, 300, 1.0)
    assert wished.plan().question.liars
    advice = advise(wished)
    assert advice.proven
    assert advice.supposed == "clients may lie; only reports that are proven to be one vote are counted"
    assert advice.words.endswith("every report is proven to be one vote")


@pytest.mark.parametrize(
    ("name", "floor", "epsilon"), [("laplace", 0, 1.0), ("decoys", 0, 1.0), ("dpdg", 0, 1.0), ("dpds", 40, 2.0)]
)
def test_what_is_not_proven_runs_on_request_and_says_so(name: str, floor: int, epsilon: float) -> None:
    advice = advise(Wishes(CITIES, 300, epsilon, mechanism=name, floor=floor, absent=0.05))
    assert (advice.mechanism.name, advice.proven) == (name, False)
    assert advice.supposed.startswith("clients follow the protocol")
    assert advice.words.endswith("without proofs that a report is one vote")


def test_other_topologies_have_no_proofs_and_say_so() -> None:
    advice = advise(Wishes(CITIES, 300, 1.0, topology=MASKED))
    assert (advice.mechanism.name, advice.proven) == ("laplace", False)
    assert "without proofs" in advice.words


def test_too_many_items_for_a_proof_are_refused_with_what_to_do() -> None:
    many = tuple(str(each) for each in range(2601))
    with pytest.raises(RefusedError, match=r"at most 2600 are proven here.*--mechanism laplace"):
        advise(Wishes(many, 300, 1.0))


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
