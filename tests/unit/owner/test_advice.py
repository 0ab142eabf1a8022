"""A survey runs the best mechanism of its topology, with a minimum that fits it."""

import pytest

from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.advice import SurveyRequirements, advise
from faircount.owner.questions import one_question
from faircount.planning.minimum import parse_minimum
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE

CITIES = one_question("Which city?", "abcdef")


def test_the_best_mechanism_of_two_servers_has_the_minimum_of_the_owner() -> None:
    advice = advise(SurveyRequirements(CITIES, 300, 1.0, minimum=240))
    assert advice.mechanism.name == "server-joint"
    assert (advice.mechanism.n, advice.mechanism.dropouts) == (300, 60)
    assert advice.mechanism.domain.labels == tuple("abcdef")
    assert advice.is_informative
    assert "minimum number of responses is 240 of 300 invited people" in advice.description


def test_with_noise_from_the_servers_a_quarter_of_the_invited_is_enough() -> None:
    """It was 380 of 400: a survey that 240 people had answered ended without a result."""
    default = advise(SurveyRequirements(CITIES, 400, 1.0))
    assert (default.mechanism.name, default.minimum) == ("server-joint", 100)
    assert default.responses == 380
    assert default.half_width_95_at_minimum > 3 * default.half_width_95
    assert "if 380 do, and to ±" in default.description
    assert default.allowance_cost is None


def test_a_low_minimum_costs_nothing_where_the_servers_add_the_noise() -> None:
    low = advise(SurveyRequirements(CITIES, 400, 1.0, minimum=100))
    high = advise(SurveyRequirements(CITIES, 400, 1.0, minimum=400))
    assert low.mechanism.expected_errors(400) == high.mechanism.expected_errors(400)


def test_where_users_make_the_noise_the_default_is_an_allowance_with_its_price() -> None:
    default = advise(SurveyRequirements(CITIES, 400, 1.0, mechanism="laplace"))
    assert default.minimum == default.responses == 380
    low = advise(SurveyRequirements(CITIES, 400, 1.0, mechanism="laplace", minimum=100))
    assert low.half_width_95 > 3 * default.half_width_95
    assert low.allowance_cost is not None
    assert "if all 400 had to answer, the error would be ±" in low.description


@pytest.mark.parametrize(
    ("text", "minimum"), [("100", 100), ("40%", 160), ("0.5 %", 2), ("33.3%", 134), ("100%", 400)]
)
def test_a_minimum_is_a_number_or_a_rate(text: str, minimum: int) -> None:
    assert parse_minimum(text, 400) == minimum


@pytest.mark.parametrize("text", ["", "1", "0%", "401", "101%", "0.4", "-5", "many", "4e2"])
def test_other_minima_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="minimum number of responses"):
        parse_minimum(text, 400)
    with pytest.raises(ParameterError, match="minimum number of responses must be 2 to 400"):
        SurveyRequirements(CITIES, 400, 1.0, minimum=401)


def test_surveys_of_two_servers_are_planned_for_malicious_clients() -> None:
    requirements = SurveyRequirements(CITIES, 300, 1.0)
    assert requirements.plan().request.malicious_clients
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
        SurveyRequirements(CITIES, 300, epsilon, mechanism=name, floor=floor, minimum=285)
    )
    assert (advice.mechanism.name, advice.proven) == (name, False)
    assert advice.assumption.startswith("clients follow the protocol")
    assert "There are no proofs that a report is one vote" in advice.description


def test_other_topologies_have_no_proofs_and_say_so() -> None:
    advice = advise(SurveyRequirements(CITIES, 300, 1.0, topology=MASKED))
    assert (advice.mechanism.name, advice.proven) == ("laplace", False)
    assert "There are no proofs" in advice.description


def test_too_many_items_for_a_proof_are_refused_with_what_to_do() -> None:
    many = one_question("Which one?", map(str, range(2601)))
    with pytest.raises(RefusedError, match=r"at most 2600 are proven here.*--mechanism laplace"):
        advise(SurveyRequirements(many, 300, 1.0))


def test_fewer_responses_are_less_accurate() -> None:
    many = advise(SurveyRequirements(CITIES, 300, 1.0, minimum=285))
    few = advise(SurveyRequirements(CITIES, 300, 1.0, minimum=150))
    assert many.half_width_95 < few.half_width_95


def test_a_required_mechanism_is_taken_with_its_condition() -> None:
    advice = advise(
        SurveyRequirements(
            CITIES, 300, 2.0, mechanism="dpds", topology=EXPLICIT, floor=40, minimum=270
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
