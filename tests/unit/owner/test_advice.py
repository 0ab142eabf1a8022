"""A survey runs the best mechanism of its topology, with a dropout allowance."""

import pytest

from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.advice import SurveyRequirements, advise
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE

CITIES = tuple("abcdef")


def test_the_best_mechanism_of_two_servers_has_a_dropout_allowance() -> None:
    advice = advise(SurveyRequirements(CITIES, 300, 1.0, dropout=0.2))
    assert advice.mechanism.name == "server-laplace"
    assert (advice.mechanism.n, advice.mechanism.dropouts) == (300, 60)
    assert advice.mechanism.domain.labels == CITIES
    assert advice.is_informative
    assert "At least 240 of the 300 invited people must answer" in advice.description


def test_surveys_of_two_servers_are_planned_for_malicious_clients() -> None:
    requirements = SurveyRequirements(CITIES, 300, 1.0)
    assert requirements.plan().question.malicious_clients
    advice = advise(requirements)
    assert advice.proven
    assert (
        advice.assumption
        == "clients may be malicious; only reports that are proven to be one vote are counted"
    )
    assert "Every report is proven to be one vote" in advice.description


@pytest.mark.parametrize(
    ("name", "floor", "epsilon"),
    [("laplace", 0, 1.0), ("decoys", 0, 1.0), ("dpdg", 0, 1.0), ("dpds", 40, 2.0)],
)
def test_mechanisms_without_proofs_run_on_request_and_say_so(
    name: str, floor: int, epsilon: float
) -> None:
    advice = advise(
        SurveyRequirements(CITIES, 300, epsilon, mechanism=name, floor=floor, dropout=0.05)
    )
    assert (advice.mechanism.name, advice.proven) == (name, False)
    assert advice.assumption.startswith("clients follow the protocol")
    assert "There are no proofs that a report is one vote" in advice.description


def test_other_topologies_have_no_proofs_and_say_so() -> None:
    advice = advise(SurveyRequirements(CITIES, 300, 1.0, topology=MASKED))
    assert (advice.mechanism.name, advice.proven) == ("laplace", False)
    assert "There are no proofs" in advice.description


def test_too_many_items_for_a_proof_are_refused_with_what_to_do() -> None:
    many = tuple(map(str, range(2601)))
    with pytest.raises(RefusedError, match=r"at most 2600 are proven here.*--mechanism laplace"):
        advise(SurveyRequirements(many, 300, 1.0))


def test_a_larger_dropout_allowance_costs_accuracy() -> None:
    small = advise(SurveyRequirements(CITIES, 300, 1.0, dropout=0.05))
    large = advise(SurveyRequirements(CITIES, 300, 1.0, dropout=0.5))
    assert small.half_width_95 < large.half_width_95


def test_a_required_mechanism_is_taken_with_its_condition() -> None:
    advice = advise(
        SurveyRequirements(
            CITIES, 300, 2.0, mechanism="dpds", topology=EXPLICIT, floor=40, dropout=0.1
        )
    )
    assert advice.mechanism.name == "dpds"
    assert advice.condition is not None
    assert "provided that" in advice.description


def test_an_impossible_mechanism_is_refused_with_the_reason() -> None:
    with pytest.raises(
        RefusedError,
        match=r"no mechanism keeps this promise in two-stage: laplace: .* does not run",
    ):
        advise(SurveyRequirements(CITIES, 300, 1.0, mechanism="laplace", topology=TWO_STAGE))
    with pytest.raises(RefusedError, match="needs a floor"):
        advise(SurveyRequirements(CITIES, 300, 1.0, mechanism="dpds"))
    with pytest.raises(ParameterError, match="mechanism must be auto or one of"):
        advise(SurveyRequirements(CITIES, 300, 1.0, mechanism="magic"))


def test_local_mechanisms_cannot_run_between_servers() -> None:
    with pytest.raises(RefusedError, match="grr makes no shares"):
        advise(SurveyRequirements(CITIES, 300, 1.0, mechanism="grr", topology=SERVERS))
