"""Whole surveys with proven reports: invalid ones are rejected, all others counted exactly."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError, ProtocolError
from faircount.demo.invalid_reports import INVALID, invalid_kinds
from faircount.estimation.validity import FAILURE_BITS
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.protocol import EXPLICIT, MASKED, SERVERS, Aggregator, Coordinator, encode
from faircount.protocol.roles.limits import max_client_bytes
from faircount.protocol.simulator import play as play_survey
from faircount.protocol.simulator import result_of, set_up
from faircount.protocol.survey.parameters import Keys, SurveyParameters
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.messages import Report
from faircount.protocol.topologies.two_servers.reports import report_layout_of
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Aborted, Acknowledgement, Published

MECHANISMS = [
    ServerLaplace(items=4, epsilon=1.0),
    ServerCoins(items=4, epsilon=1.0, delta=1e-3),
    PlacedCoins(items=4, coins=9, epsilon=1.0, insiders=1),
]


def statement_of(play, kind):
    return next(
        statement.message for statement in play.s2.statements if isinstance(statement.message, kind)
    )


def test_everybody_is_counted_once(proven) -> None:
    play = proven()
    play.answer_all()
    play.settle(play.deadline())
    assert play.counts() == [1] * 6
    assert statement_of(play, Published).rejected == 0


def test_the_attack_on_the_survey_without_proofs(proven) -> None:
    """Without proofs one of 800 could send (+50, -49) and move two frequencies by 6 points."""
    answers = [0] * 20 + [1] * 15 + [2] * 5
    play = proven(mechanism=ServerLaplace(items=3, users=40, epsilon=40.0))
    play.people = [None] * 40
    for i in range(1, 40):
        bits = servers_user.draw_vector(play.params.mechanism, (answers[i],), play.entropy)
        play.sends(i, bits)
    play.sends(
        0,
        INVALID["fifty votes and minus forty-nine"](
            report_layout_of(play.params.mechanism), play.entropy
        ),
    )
    play.settle(play.deadline())
    assert play.counts() == [19, 15, 5]
    result = result_of(play.s1)
    assert (result.validity.counted, result.validity.refused) == (39, 1)
    assert "39 reports counted, 1 refused" in str(result)


@pytest.mark.parametrize("kind", INVALID)
def test_an_invalid_report_with_coins_is_refused(proven, kind) -> None:
    """Three coins per item, of the six others: a count is their votes and up to three heads."""
    play = proven(
        mechanism=PlacedCoins(items=4, users=7, coins=3, epsilon=5.0, dropouts=1), minimum=None
    )
    play.answer_all(skip=(2,))
    play.sends(2, INVALID[kind](report_layout_of(play.params.mechanism), play.entropy))
    play.settle(play.deadline())
    published = statement_of(play, Published)
    assert (published.included, published.rejected) == (6, 1)
    assert all(
        votes <= count <= votes + 3
        for votes, count in zip([2, 2, 1, 1], play.counts(), strict=True)
    )


@pytest.mark.parametrize("kind", [name for name in INVALID if name != "a coin of two"])
def test_an_invalid_report_is_refused_and_the_others_are_counted_exactly(proven, kind) -> None:
    play = proven(n=7)
    play.answer_all(skip=(2,))
    play.sends(2, INVALID[kind](report_layout_of(play.params.mechanism), play.entropy))
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 0, 1, 1, 1, 1]
    assert (statement_of(play, Published).included, statement_of(play, Published).rejected) == (
        6,
        1,
    )


def test_many_malicious_clients_change_nothing_of_the_honest_sum(proven) -> None:
    """Fourteen kinds at once; everybody else is counted exactly once."""
    play = proven(n=40)
    layout = report_layout_of(play.params.mechanism)
    kinds = list(invalid_kinds(report_layout_of(play.params.mechanism)).values())
    malicious = range(0, 3 * len(kinds), 3)
    play.answer_all(skip=tuple(malicious))
    for i, made in zip(malicious, kinds, strict=True):
        play.sends(i, made(layout, play.entropy))
    play.settle(play.deadline())
    assert play.counts() == [int(i not in malicious) for i in range(40)]
    assert statement_of(play, Published).rejected == len(kinds)


def test_too_many_invalid_reports_end_the_survey_spent(proven) -> None:
    play = proven(n=6, minimum=5)
    layout = report_layout_of(play.params.mechanism)
    play.answer_all(skip=(0, 1))
    for i in (0, 1):
        play.sends(i, INVALID["two votes"](layout, play.entropy))
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert statement_of(play, Aborted).spent == 1


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_each_mechanism_runs_from_answers_to_estimates(mechanism) -> None:
    answers = np.repeat(np.arange(4), [60, 40, 20, 0])
    result = play_survey(answers, mechanism, SERVERS, entropy=SeededStream(11))
    published = result.facts["published"]
    spread = np.sqrt(mechanism.bind(120).variance(np.full(4, 0.25), 120))
    assert (
        abs(result.count_votes().estimates - np.array([0.5, 1 / 3, 1 / 6, 0])).max()
        < 6 * spread.max()
    )
    assert published.included == 120
    assert result.validity.proven
    assert result.validity.coins == (mechanism.name == "placed-coins")


def test_the_result_states_what_a_malicious_client_can_change() -> None:
    result = play_survey(
        np.arange(8) % 4, ServerLaplace(items=4, epsilon=1.0), SERVERS, entropy=SeededStream(1)
    )
    plain = result.to_dict()["validity"]
    assert plain["count_per_liar"] == 1
    assert plain["frequency_per_liar"] == 1 / 8
    assert plain["fails_with_probability"] == 2.0**-FAILURE_BITS
    assert "a frequency by at most 1/8" in plain["statement"]
    assert "No independent security review yet" in plain["statement"]
    assert plain["statement"] in str(result)
    assert "8 reports counted" in result._repr_html_()
    without = play_survey(
        np.arange(8) % 4, Laplace(items=4, epsilon=1.0), SERVERS, entropy=SeededStream(1)
    )
    assert without.to_dict()["validity"]["proven"] is False
    assert "not proven" in without.to_dict()["validity"]["statement"]
    assert without.validity.frequency_bound(1) == 1.0


def test_a_report_of_another_person_cannot_be_replayed(proven) -> None:
    """Not even under a key with the same secret: the points u and 1/u agree in X25519.

    The encryption is bound to the key itself.
    """
    play = proven(n=7)
    play.answer_all(skip=(2,))
    copied = play.people[0].report
    thief = play.invitations[2]
    prime = 2**255 - 19
    twin = pow(int.from_bytes(copied.public_key, "little"), -1, prime).to_bytes(32, "little")
    assert play.s2.crypto.agree(play.s2.encryption_keys, twin) == play.s2.crypto.agree(
        play.s2.encryption_keys, copied.public_key
    )
    (answer,) = play.send_to_s1(
        replace(copied, access=thief.access, public_key=twin, mac=thief.authenticate_key(twin))
    )
    assert isinstance(answer, Acknowledgement)
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 0, 1, 1, 1, 1]
    assert (statement_of(play, Published).included, statement_of(play, Published).rejected) == (
        6,
        1,
    )


# --- parameters -----------------------------------------------------------------------------------


def test_the_parameters_spell_out_the_proof_and_are_read_again(proven) -> None:
    play = proven()
    layout = report_layout_of(play.params.mechanism)
    plain = play.params._plain()["derived"]["proof"]
    assert plain["degree"] == layout.degree
    assert plain["modulus"] == list(layout.field.modulus)
    assert plain["noise"] == "servers"
    assert SurveyParameters.parse(play.params.published) == play.params
    changed = play.params.published.replace(b'"failure_bits":40', b'"failure_bits":20')
    with pytest.raises(ProtocolError, match="do not follow"):
        SurveyParameters.parse(changed)


@pytest.mark.parametrize(
    "commitments",
    [(bytes(32), b"\2" * 32), (b"\1" * 32, bytes(32)), (b"\3" * 32, b"\3" * 32)],
    ids=["none of the coordinator", "none of the aggregator", "the same"],
)
def test_parameters_without_a_commitment_of_each_server_are_refused(proven, commitments) -> None:
    params = proven().params
    keys = Keys(
        params.keys.coordinator, params.keys.aggregator, params.keys.encryption_key, *commitments
    )
    with pytest.raises(ParameterError, match="commit"):
        replace(params, keys=keys)


@pytest.mark.parametrize("server", [Party.COORDINATOR, Party.AGGREGATOR])
@pytest.mark.parametrize(
    "change",
    [{"committed_value": b"\7" * 32}, {"noise_secret": b""}, {"noise_secret": "committed"}],
    ids=["a foreign value", "no secret", "the value as secret"],
)
def test_a_server_begins_only_with_its_own_value_and_a_secret(proven, server, change) -> None:
    play = proven()
    state = play.s1 if server is Party.COORDINATOR else play.s2
    change = {
        name: state.committed_value if value == "committed" else value
        for name, value in change.items()
    }
    terms = {"committed_value": state.committed_value, "noise_secret": state.noise_secret, **change}

    def begin():
        if server is Party.AGGREGATOR:
            return Aggregator.begin(
                state.params, state.key, state.encryption_keys, state.ledger, **terms
            )
        return Coordinator.begin(state.params, state.key, **terms)

    with pytest.raises(ProtocolError, match=server.name.lower()):
        begin()


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED])
def test_other_topologies_prove_nothing_and_say_so(topology) -> None:
    with pytest.raises(ParameterError, match="servers"):
        set_up(ServerLaplace(items=4, users=30, epsilon=1.0), topology, SeededStream(1))


def test_more_bits_than_can_be_proven_are_refused_with_advice() -> None:
    with pytest.raises(ParameterError, match="fewer answers"):
        set_up(ServerLaplace(items=2601, users=30, epsilon=1.0), SERVERS, SeededStream(1))


def test_bytes_that_are_planned_and_allowed_are_those_that_are_sent(proven) -> None:
    play = proven(
        mechanism=PlacedCoins(items=30, users=1000, epsilon=1.0, delta=1e-6, dropouts=50),
        minimum=None,
    )
    made = servers_user.respond(play.params, play.invitations[0], (7,), play.entropy)
    assert len(encode(made.report)) == SERVERS.bytes_sent(play.params.mechanism)
    assert len(encode(made.report)) <= max_client_bytes(play.params, Report)
    plain = Laplace(items=30, users=1000, epsilon=1.0)
    assert SERVERS.bytes_sent(plain) < SERVERS.bytes_sent(play.params.mechanism)
