"""What a client learns: the signed acknowledgement, how the survey ended, whether it was counted; and withdrawing."""

from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.entropy import SeededStream
from faircount.core.errors import MalformedError, ProtocolError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    ClientState,
    SurveyParameters,
    coordinator_step,
    encode,
    end_phase,
    known_topologies,
    simulator,
)
from faircount.protocol.roles.coordinator import (
    Coordinator,
    coordinator_step_for_many,
    start_resync,
)
from faircount.protocol.simulator import set_up
from faircount.protocol.survey import inclusion
from faircount.protocol.survey.acknowledgement import (
    sign_together,
    unsigned_acknowledgement,
    verify_acknowledgement,
)
from faircount.protocol.survey.devices import Notice, sign_for_device
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.masked.messages import MaskedSum
from faircount.protocol.wire import canonical_json
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import (
    Aborted,
    Acknowledgement,
    FinalStatement,
    InclusionProof,
    OutcomeRequest,
    Published,
    Reason,
    Withdrawal,
)
from faircount.protocol.wire.signing import SigningKey, sign
from simulation.example_sheets import example_sheet
from simulation.parties import Simulation, small_survey


def begun(setup, i):
    sheet = example_sheet(setup.params.questionnaire, 0)
    device = simulator.ClientState(setup.invitations[i], sheet)
    return setup.params.topology.client.start(
        setup.params, device, setup.s2.crypto, SeededStream(i)
    )


# --- acknowledgements


@given(count=st.integers(1, 20), data=st.data())
def test_one_signature_covers_several_messages(count: int, data: st.DataObject) -> None:
    setup = set_up(Laplace(items=2, users=4, epsilon=1.0), SERVERS, SeededStream(1))
    first_messages = [
        Withdrawal(setup.params.survey, bytes([i]) * 32, bytes(32), bytes(64)) for i in range(count)
    ]
    written = [
        unsigned_acknowledgement(setup.params.survey, sha256(encode(message)).digest())
        for message in first_messages
    ]
    signed = sign_together(setup.s1.key, written)
    assert len({acknowledgement.signature for acknowledgement in signed}) == 1
    assert all(
        verify_acknowledgement(setup.params, acknowledgement, message)
        for acknowledgement, message in zip(signed, first_messages, strict=True)
    )
    i, j = data.draw(st.integers(0, count - 1)), data.draw(st.integers(0, count - 1))
    assert verify_acknowledgement(setup.params, signed[i], first_messages[j]) == (i == j)
    assert not verify_acknowledgement(
        setup.params, replace(signed[i], index=(i + 1) % (count + 1)), first_messages[i]
    )
    forged = sign_together(SigningKey(bytes(32)), written)[i]
    assert not verify_acknowledgement(setup.params, forged, first_messages[i])


def test_a_group_of_messages_is_acknowledged_together(stage) -> None:
    made = stage(SERVERS)
    first_messages = [device.waiting[0] for device in made.begun()]
    stranger = replace(first_messages[0], access=bytes(32))
    step, outs = coordinator_step_for_many(made.s1.state, [*first_messages, stranger], made.s1.rows)
    written = [row.table for row in step.rows]
    assert written == ["first_messages"] * 6
    assert [type(reply).__name__ for (reply,) in outs] == ["Acknowledgement"] * 6 + ["Rejection"]
    assert {reply.size for (reply,) in outs[:6]} == {6}
    for (reply,), message in zip(outs[:6], first_messages, strict=True):
        assert verify_acknowledgement(made.params, reply, message)


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_devices_that_come_together_are_counted_as_those_that_come_alone(topology) -> None:
    """Every client accepts its acknowledgement, and one signature covers what a group sends at once."""
    results, sizes = [], set()
    for together in (1, 4):
        setup = set_up_small(topology)
        responses = []
        sheet = example_sheet(setup.params.questionnaire, 0)
        devices = [ClientState(invitation, sheet) for invitation in setup.invitations]
        s1 = simulator.run_phases(
            setup,
            devices,
            SeededStream(7),
            meter=lambda *exchange, responses=responses: responses.append(exchange[2]),
            together=together,
        )
        accepted = [reply for reply in responses if isinstance(reply, Acknowledgement)]
        sizes |= {(together, max(reply.size for reply in accepted))}
        results.append((s1.phase, s1.final.message.included, len(accepted)))
    assert results[0] == results[1]
    assert sizes == {(1, 1), (4, 4)}


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_topology_knows_the_messages_of_its_clients(topology) -> None:
    asked = topology.client.next_message(begun(set_up_small(topology), 0))
    assert type(asked) in topology.messages
    assert any(type(asked) not in other.messages for other in known_topologies())


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_a_device_believes_no_acknowledgement_that_s1_did_not_sign(topology) -> None:
    """It keeps what it has to send: somebody in between cannot make it believe that it was received."""
    setup = set_up_small(topology)
    client, device = topology.client, begun(setup, 0)
    _, (answer,) = setup.s1.make_step(coordinator_step, client.next_message(device))
    for change in (
        {"signature": bytes(64)},
        {"message_hash": bytes(32)},
        {"survey": bytes(16)},
        {"path": (bytes(32),)},
    ):
        after = client.handle_response(
            device, client.next_message(device), replace(answer, **change), SeededStream(1)
        )
        assert after.waiting == device.waiting
        assert after.failed_checks == 1
    after = client.handle_response(device, client.next_message(device), answer, SeededStream(1))
    assert after.waiting == ()
    assert after.acknowledgements == (answer,)


def set_up_small(topology):
    setup = small_survey(topology, 6, 0)
    return replace(setup, s1=setup.s1.copy(), s2=setup.s2.copy())


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_who_has_no_invitation_is_told_nothing_and_the_tree_of_a_result_is_made_once(
    topology, monkeypatch
) -> None:
    """Anybody could make the coordinator hash a whole roster again and again."""
    world, made = Simulation(topology, 5, 1), list[int]()
    world.visit(0)
    device = SigningKey(bytes(32))
    stranger = sign_for_device(OutcomeRequest, world.setup.params, bytes(32), device)
    guest = world.client.outcome_request(world.devices[0])
    for _ in range(2):  # before and after the end
        assert world.send_to_s1(stranger)[0].why is Reason.UNKNOWN
        world.finish()
    root = inclusion.merkle_root
    monkeypatch.setattr(inclusion, "merkle_root", lambda leaves: made.append(1) or root(leaves))
    inclusion._tree_above_blocks.cache_clear()
    for _ in range(3):
        world.client.handle_response(
            world.devices[0], guest, world.send_to_s1(guest)[0], world.entropy
        )
    assert len(made) == (
        topology is SERVERS
    )  # elsewhere it is shown to whoever visits with its credential


# --- how it ended


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_everybody_learns_how_it_ended_and_whether_it_was_counted(topology) -> None:
    """One user never comes: the others are counted, and know it."""
    setup, entropy = set_up_small(topology), SeededStream(1)
    devices = [
        simulator.ClientState(invitation, example_sheet(setup.params.questionnaire, i))
        for i, invitation in enumerate(setup.invitations)
    ]
    absent = 0
    s1, left = run(setup, devices, entropy, absent)
    assert s1.phase is Phase.PUBLISHED
    for i, device in enumerate(left):
        if i == absent or device.withdrawn:
            continue
        asked = (
            topology.client.outcome_request(device)
            if topology is SERVERS
            else topology.client.next_message(device)
        )
        if asked is None:  # it learned the outcome on its last visit
            informed = device
        else:
            _, (answer,) = s1.make_step(coordinator_step, asked)
            informed = topology.client.handle_response(device, asked, answer, entropy)
        assert isinstance(informed.outcome.message, Published)
        assert informed.counted


def run(setup, devices, entropy, absent):
    states = list(devices)
    topology, s1, s2 = setup.params.topology, setup.s1, setup.s2
    while s1.phase not in (Phase.PUBLISHED, Phase.ABORTED):
        for i in range(len(states)):
            if i != absent:
                if states[i].state is None:
                    states[i] = topology.client.start(setup.params, states[i], s2.crypto, entropy)
                s1 = simulator.visit(s1, topology.client, states, [i], entropy)
        s1, out = s1.make_step(end_phase)
        s1, s2 = simulator.exchange_messages(s1, s2, out)
    return s1, states


def test_two_results_of_one_survey_are_not_believed(stage) -> None:
    made = stage(EXPLICIT)
    made.enrol_all()
    made.share_all()
    made.settle(made.sum_all())
    device = made.exchange(made.device(0))
    assert device.counted
    lie = sign(made.s2.key, Party.AGGREGATOR, replace(made.s1.final.message, included=5))
    again = made.client.handle_response(
        device, made.client.outcome_request(device), FinalStatement(lie), SeededStream(1)
    )
    assert again.failed_checks == device.failed_checks + 1
    assert again.outcome == device.outcome


def test_an_abort_is_told_too(stage) -> None:
    made = stage(EXPLICIT)
    made.enrol_all()
    made.settle(made.deadline())  # nobody shared
    assert made.s1.phase is Phase.ABORTED
    device = made.exchange(made.device(2))
    assert isinstance(device.outcome.message, Aborted)
    assert not device.counted


# --- taking it back


def test_a_withdrawn_answer_is_not_counted_and_cannot_be_sent_again(stage) -> None:
    made = stage(SERVERS)
    made.answer_all()
    gone = made.invitations[2]
    (answer,) = made.send_to_s1(made.withdrawal(2))
    assert isinstance(answer, Acknowledgement)
    assert made.s1.view.first_messages.get(gone.user) is None  # its share is deleted
    assert made.send_to_s1(made.people[2].report)[0].why is Reason.CLOSED
    assert isinstance(made.send_to_s1(made.withdrawal(2))[0], Acknowledgement)  # the same again
    made.settle(made.deadline())
    assert made.counts() == [1, 1, 0, 1, 1, 1]
    assert isinstance(
        made.send_to_s1(made.client.outcome_request(made.device(2)))[0], FinalStatement
    )
    assert isinstance(
        made.send_to_s1(made.client.outcome_request(made.device(3)))[0], InclusionProof
    )


def test_who_withdraws_first_cannot_answer_later(stage) -> None:
    made = stage(SERVERS)
    made.answer_all(skip=(1,))
    assert isinstance(made.send_to_s1(made.withdrawal(1))[0], Acknowledgement)
    assert made.send_to_s1(made.people[1].report)[0].why is Reason.CLOSED


def test_after_the_manifest_it_is_too_late(stage) -> None:
    made = stage(SERVERS)
    made.answer_all()
    out = made.deadline()
    assert made.send_to_s1(made.withdrawal(1))[0].why is Reason.LATE
    made.settle(out)
    assert made.counts() == [1] * 6


def test_nobody_else_can_withdraw(stage) -> None:
    made = stage(SERVERS)
    made.answer_all()
    assert made.send_to_s1(made.signed_with(Withdrawal, bytes(32)))[0].why is Reason.UNKNOWN


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_only_the_device_that_answered_speaks_for_its_participant(topology) -> None:
    """An owner has the invitation too, and could otherwise take the answer back."""
    world = Simulation(topology, 5, 1)
    world.visit(0)
    params, access = world.setup.params, world.setup.invitations[0].access
    before = world.s1.copy()
    for kind in (Withdrawal, OutcomeRequest):
        # Twice: the second time nothing is left to be noted.
        for _ in range(2):
            owned = sign_for_device(kind, params, access, SigningKey(bytes(32)))
            assert world.send_to_s1(owned)[0].why is Reason.INVITATION_USED
    unsigned = replace(world.client.withdraw(world.devices[0]).waiting[0], signature=bytes(64))
    assert world.send_to_s1(unsigned)[0].why is Reason.UNSIGNED
    asked = world.client.outcome_request(world.devices[0])
    assert world.send_to_s1(replace(asked, access=access, signature=unsigned.signature))[0].why is (
        Reason.UNSIGNED
    )
    (told,) = world.send_to_s1(asked)
    assert Notice(told.notices) is Notice.OTHER_DEVICE
    before.rows.table("notices").update(world.s1.rows.table("notices"))
    assert (world.s1 == before, world.monitor.problems) == (True, [])
    after = world.client.handle_response(world.devices[0], asked, told, world.entropy)
    assert after.notices == Notice.OTHER_DEVICE
    # Flags of a coordinator that knows more, or lies, do not stop the client.
    assert after.with_notices(0xFC) is after


def test_a_restored_s1_asks_before_it_lets_anybody_withdraw(stage) -> None:
    """There may be a manifest that it forgot, with the report in it."""
    made = stage(SERVERS)
    made.answer_all()
    kept = made.s1.copy()
    made.settle(made.deadline())
    made.s1, out = kept.make_step(start_resync)
    assert made.send_to_s1(made.withdrawal(1))[0].why is Reason.EARLY
    made.settle(out)
    assert made.send_to_s1(made.withdrawal(1))[0].why is Reason.LATE


def test_who_has_withdrawn_sends_nothing_more(stage) -> None:
    made = stage(EXPLICIT)
    made.enrol_all()
    bundle = made.people[0].bundle
    assert isinstance(made.send_to_s1(made.withdrawal(0))[0], Acknowledgement)
    assert made.send_to_s1(bundle)[0].why is Reason.CLOSED
    assert (
        made.send_to_s1(made.people[1].bundle)[0].message_hash
        == sha256(encode(made.people[1].bundle)).digest()
    )


def test_before_the_roster_is_closed_it_is_as_if_the_person_had_not_come(stage) -> None:
    made = stage(EXPLICIT)
    devices = [made.exchange(device) for device in made.begun()]
    withdrawn = made.exchange(made.client.withdraw(devices[4]))
    assert withdrawn.waiting == ()
    made.settle(made.deadline())
    assert made.s1.n == 5
    assert made.client.next_message(withdrawn) is None


@pytest.mark.parametrize("until", ["shared", "sent"])
def test_on_a_sealed_roster_it_is_a_dropout(masked, until) -> None:
    """Neighbours help with its mask, whether or not it has sent its vector; the aggregator never gets that vector."""
    made = masked("shared")
    for i in range(20):
        if until == "sent" or i != 3:
            made.come(i)
    assert isinstance(made.send_to_s1(made.withdrawal(3))[0], Acknowledgement)
    assert (
        made.s1.view.uploads.get((MaskedSum.tag, made.s1.topology_state.set_digest, 3)) is not None
        or until == "shared"
    )
    made.settle(made.deadline())
    made.settle(made.recover())
    assert made.counts() == [int(i != 3) for i in range(20)]
    assert isinstance(made.come(3), FinalStatement)


def test_explicit_goes_on_without_who_withdrew(stage) -> None:
    made = stage(EXPLICIT)
    made.enrol_all()
    made.share_all()
    for i in range(6):
        made.come(i)
    made.send_to_s1(made.withdrawal(0))
    made.settle(made.deadline())
    made.settle(made.sum_all(skip=(0,)))
    assert made.counts() == [0, 1, 1, 1, 1, 1]


# --- parameters, version 2


def test_who_asks_and_who_runs_the_servers_is_under_the_digest() -> None:
    terms = {
        "owner": "Tea House",
        "purpose": "stock",
        "contact": "a@b",
        "s1_operator": "one",
        "s2_operator": "two",
    }
    setup = set_up(Laplace(items=2, users=4, epsilon=1.0), SERVERS, SeededStream(1), **terms)
    read = SurveyParameters.parse(setup.params.published)
    assert {name: getattr(read, name) for name in terms} == terms
    for name in terms:
        assert replace(setup.params, **{name: "somebody else"}).digest != setup.params.digest


def test_version_2_is_not_read() -> None:
    setup = set_up(Laplace(items=2, users=4, epsilon=1.0), SERVERS, SeededStream(1))
    plain = canonical_json.decode(setup.params.published)
    assert plain["version"] == 3
    with pytest.raises(MalformedError):
        SurveyParameters.parse(canonical_json.encode({**plain, "version": 2}))


def test_each_server_holds_the_value_that_it_committed_to() -> None:
    setup = set_up(Laplace(items=2, users=8, epsilon=1.0), MASKED, SeededStream(1))
    assert setup.params.keys.coordinator_commitment != setup.params.keys.aggregator_commitment
    with pytest.raises(ProtocolError, match="committed"):
        Coordinator.begin(setup.params, setup.s1.key, committed_value=bytes(32))
