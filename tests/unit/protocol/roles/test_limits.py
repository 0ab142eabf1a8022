"""What is longer than a message of its survey can be is refused unread."""

import tracemalloc

import pytest

from faircount.core.entropy import SeededStream
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import EXPLICIT, MASKED, SERVERS, ClientState, encode, known_topologies
from faircount.protocol.roles.limits import decode_client_message, max_client_bytes
from faircount.protocol.simulator import set_up
from faircount.protocol.topologies.explicit.messages import Complaint
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import PollRequest, Reason, Rejection, reject
from simulation.parties import Simulation


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_every_message_of_an_honest_survey_is_short_enough(topology) -> None:
    world = Simulation(topology, 7, 1)
    world.finish()
    sent = [
        message for message in world.sent if type(message) in topology.coordinator.user_handlers()
    ]
    assert sent
    for message in sent:
        assert decode_client_message(world.setup.params, encode(message)) == message


@pytest.mark.parametrize("topology", [EXPLICIT, MASKED], ids=str)
def test_no_message_of_a_large_survey_may_be_much_longer_than_an_honest_one(topology) -> None:
    """A masked key bundle was allowed 450 GB where 100,000 users were invited, and has 8 KB."""
    survey = set_up(Laplace(items=30, epsilon=1.0, users=2000), topology, SeededStream(0))
    honest = topology.bytes_sent(survey.params.mechanism)
    for kind in topology.sizes(survey.params):
        assert max_client_bytes(survey.params, kind) < honest + 300


def test_a_encrypted_seed_may_be_longer_than_the_vector() -> None:
    """Three items and few users: the vector has 2 bytes, and every honest submission was refused as too long."""
    survey = set_up(
        Laplace(items=["a", "b", "c"], epsilon=20.0, users=12), SERVERS, SeededStream(0)
    )
    device = SERVERS.client.start(
        survey.params, ClientState(survey.invitations[0], (1,)), StandardCrypto(), SeededStream(1)
    )
    report = SERVERS.client.next_message(device)
    assert decode_client_message(survey.params, encode(report)) == report


def test_a_complaint_of_millions_is_refused_unread(stage) -> None:
    """12 MB that named one user 3,000,000 times were read and stored."""
    play = stage(EXPLICIT)
    data = encode(Complaint(play.params.survey, 0, bytes(32), 1, (1,) * 300_000))
    assert max_client_bytes(play.params, Complaint) < 200
    tracemalloc.start()
    answer = decode_client_message(play.params, data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(answer, Rejection)
    assert most < 2 * len(data)


def test_a_complaint_names_everybody_once(stage) -> None:
    play = stage(EXPLICIT)
    play.enrol_all()
    play.share_all()
    member = play.people[0].member
    twice = Complaint(play.params.survey, 0, member.credential, play.s1.attempt, (1, 1))
    assert play.send_to_s1(twice)[0].why is Reason.MALFORMED
    assert not isinstance(
        play.send_to_s1(Complaint(play.params.survey, 0, member.credential, 1, (1, 2)))[0],
        Rejection,
    )


def test_what_users_of_this_topology_do_not_say_is_refused_unread(stage) -> None:
    params = stage(SERVERS).params
    for data in (
        b"",
        b"\x02",
        encode(PollRequest(params.survey, 0, bytes(32))),
        encode(reject(Reason.LATE)),
    ):
        assert decode_client_message(params, data).why is Reason.MALFORMED
