"""The minimum number of responses fits the mechanism, unless it is given."""

from dataclasses import replace

import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.server_noise import ServerCoins, ServerLaplace
from faircount.protocol import MASKED, SERVERS, coordinator_step, end_phase
from faircount.protocol.simulator import exchange_messages, play, set_up
from faircount.protocol.survey.parameters import default_dropout_allowance, default_minimum
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import user


@pytest.mark.parametrize(
    ("users", "room"), [(2, 0), (3, 1), (20, 1), (21, 2), (100, 5), (800, 40), (801, 41)]
)
def test_room_is_five_percent_and_at_least_one(users: int, room: int) -> None:
    assert default_dropout_allowance(users) == room


@pytest.mark.parametrize(
    ("users", "minimum"),
    [(2, 2), (3, 2), (8, 4), (12, 6), (20, 10), (40, 10), (41, 11), (400, 100), (4001, 1001)],
)
def test_with_noise_from_the_servers_it_is_a_quarter(users: int, minimum: int) -> None:
    assert default_minimum(ServerLaplace(items=3, users=users, epsilon=1.0)) == minimum
    assert default_minimum(Laplace(items=3, users=users, epsilon=1.0, insiders=0)) == (
        users - default_dropout_allowance(users)
    )


@pytest.mark.parametrize(
    "mechanism",
    [
        ServerLaplace(items=3, users=40, epsilon=1.0),
        ServerCoins(items=3, users=40, epsilon=1.0, delta=1e-3),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_the_promise_is_the_same_for_the_fewest_responses(mechanism) -> None:
    params = set_up(mechanism, SERVERS, SeededStream(1)).params
    assert (params.minimum, params.mechanism.dropouts) == (10, 30)
    everybody = set_up(mechanism, SERVERS, SeededStream(1), minimum=40).params
    assert (params.epsilon, params.delta) == (everybody.epsilon, everybody.delta)


@pytest.mark.parametrize("topology", [SERVERS, MASKED], ids=str)
@pytest.mark.parametrize(
    "mechanism",
    [Laplace(items=3, users=40, epsilon=1.0), Decoys(items=3, users=40, epsilon=1.0, delta=1e-3)],
    ids=lambda mechanism: mechanism.name,
)
def test_the_promise_holds_with_the_room(topology, mechanism) -> None:
    params = set_up(mechanism, topology, SeededStream(1)).params
    assert params.minimum == 38
    assert params.mechanism.dropouts == 2
    assert params.epsilon == 1.0
    given = set_up(mechanism, topology, SeededStream(1), minimum=40).params
    assert (given.minimum, given.mechanism.dropouts) == (40, 0)
    assert set_up(replace(mechanism, dropouts=8), topology, SeededStream(1)).params.minimum == 32


def test_one_share_that_cannot_be_decrypted_does_not_end_a_survey() -> None:
    """It did, with the budget spent: the default minimum was the number of users."""
    entropy = SeededStream(2)
    survey = set_up(Laplace(items=3, users=20, epsilon=1.0), SERVERS, entropy)
    s1 = survey.s1
    for i, invitation in enumerate(survey.invitations):
        report = user.respond(survey.params, invitation, (i % 3,), entropy).report
        s1, _ = s1.make_step(
            coordinator_step,
            replace(report, encrypted_share=bytes(len(report.encrypted_share)))
            if i == 7
            else report,
        )
    s1, s2 = exchange_messages(*(lambda s1, out: (s1, survey.s2, out))(*s1.make_step(end_phase)))
    assert s1.phase is s2.phase is Phase.PUBLISHED
    assert s1.final.message.included == 19


def test_rows_of_a_table_do_not_vanish() -> None:
    result = play([0, 1, 2] * 7, Laplace(items=3, epsilon=1.0), SERVERS, entropy=SeededStream(3))
    assert result.mechanism.dropouts == 0
