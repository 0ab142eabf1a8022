"""Histories of a dishonest aggregator: the coordinator never raises, and what it rejects changes nothing."""

from functools import cache
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from faircount.protocol import (
    EXPLICIT,
    MASKED,
    SERVERS,
    TWO_STAGE,
    aggregator_step,
    coordinator_step,
    end_phase,
    known_topologies,
)
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles.coordinator import Coordinator, start_resync
from faircount.protocol.roles.reissue import reissue
from faircount.protocol.simulator import MAX_EXCHANGES, exchange_messages
from faircount.protocol.topologies.masked.messages import ReadyForTotal, Unrecoverable
from faircount.protocol.topologies.two_servers.messages import AcceptedReports
from faircount.protocol.topologies.two_stage.messages import AnnouncementReply, Election
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.messages import (
    Aborted,
    Published,
    Refusal,
    Rejection,
    Reservation,
    Signed,
    SyncState,
)
from faircount.protocol.wire.roster_messages import (
    RejectedEntries,
    RosterConfirmation,
    RosterProposal,
)
from faircount.protocol.wire.signing import UNCHAINED, ChainLink, compute_chain_link, sign
from simulation.parties import Simulation

NUMBERS = st.one_of(st.integers(0, 8), st.just(2**32 - 1))
PLACES = st.one_of(st.integers(0, 8), st.just(2**31))
BITS = st.sampled_from([b"", b"\x07", b"\x0f", b"\x1f", b"\x3f", b"\xff", b"\x1f\x00", bytes(1)])


@cache
def stages(topology) -> list[Simulation]:
    """The coordinator and the aggregator after every step of an honest survey of five users."""
    worlds, world = [], Simulation(topology, 5, 1)
    for _ in range(6):
        worlds.append(world)
        world = _later(world)
    return worlds


def _later(before: Simulation) -> Simulation:
    world = Simulation(before.setup.params.topology, 5, 1)
    world.s1, world.s2, world.devices, world.crypto = (
        before.s1.copy(), before.s2.copy(), list(before.devices), before.crypto,
    )  # fmt: skip
    for at in range(5):
        for _ in range(MAX_EXCHANGES):
            if not world.exchange(at):
                break
    world.s1, out = world.s1.make_step(end_phase)
    world.in_transit = list(out)
    if len(before.in_transit) % 2 == 0:
        world.s1, world.s2 = exchange_messages(world.s1, world.s2, tuple(world.in_transit))
    return world


def hashes(world: Simulation) -> st.SearchStrategy[bytes]:
    known = [
        world.s1.manifest_hash,
        world.s2.manifest_hash,
        world.s1.digest,
        world.s2.digest,
        bytes(32),
    ]
    return st.sampled_from(
        [*known, *(sha256(statement.signed.payload).digest() for statement in world.s2.statements)]
    )


@cache
def lies(world: Simulation) -> st.SearchStrategy:
    """One statement, true or false."""
    survey, some = st.just(world.setup.params.survey), hashes(world)
    said = [statement.message for statement in world.s2.statements]
    places, keys = st.lists(NUMBERS, max_size=4).map(tuple), st.lists(some, max_size=3).map(tuple)
    return st.one_of(
        *([st.sampled_from(said)] * 3 if said else []),
        st.builds(
            Reservation,
            survey,
            some,
            st.just(b"1"),
            st.just(b"1"),
            st.just(b""),
            NUMBERS,
            NUMBERS,
            some,
        ),
        st.builds(AcceptedReports, survey, some, BITS, some),
        st.builds(
            Aborted,
            survey,
            st.integers(0, 20),
            places,
            st.binary(max_size=4),
            NUMBERS,
            st.integers(0, 1),
        ),
        st.builds(Published, survey, some, some, some, NUMBERS, places, *[st.just(b"0")] * 4),
        st.builds(RosterConfirmation, survey, some, NUMBERS, some, some),
        st.builds(RejectedEntries, survey, some, places),
        st.builds(Refusal, survey, some, st.integers(0, 20)),
        st.builds(AcceptedMembers, survey, some, some, BITS, some),
        st.builds(ReadyForTotal, survey, some),
        st.builds(Unrecoverable, survey, some, BITS),
        st.builds(AnnouncementReply, survey, some, BITS, keys),
        st.builds(Election, survey, some, BITS, keys, places, keys, some),
        st.just(SyncState(world.setup.params.survey, b"", b"", ())),
    )


@st.composite
def sync_states(draw, world: Simulation) -> Signed:
    """Statements in a chain that may be broken, a roster and a claim that may be others or nothing at all."""
    key, statements = world.s2.key, list[Signed]()
    for says in draw(st.lists(lies(world), max_size=4)):
        before = compute_chain_link(statements[-1]) if statements else UNCHAINED
        chain_link = (
            ChainLink(before.number + 1, before.hash)
            if draw(st.integers(0, 9))
            else ChainLink(draw(PLACES), bytes(32))
        )
        statements.append(sign(key, Party.AGGREGATOR, says, chain_link))
    if draw(st.integers(0, 2)) == 0:
        statements = [statement.signed for statement in world.s2.statements] + statements
    if not draw(st.integers(0, 9)):
        statements.append(Signed(Party.AGGREGATOR, draw(st.binary(max_size=3)), bytes(64)))
    roster = b"" if world.s2.roster is None else encode(world.s2.roster)
    empty = encode(RosterProposal(world.setup.params.survey, world.setup.params.digest, ()))
    manifest = b"" if world.s2.manifest is None else encode(world.s2.manifest)
    message = SyncState(
        world.setup.params.survey,
        draw(st.sampled_from([roster, roster, b"", b"\x01", empty])),
        draw(st.sampled_from([manifest, manifest, b"", b"\x01\x02", empty])),
        tuple(statements),
    )
    return sign(key, Party.AGGREGATOR, message)


@pytest.mark.slow
@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_no_sync_state_makes_s1_raise_and_a_refused_one_changes_nothing(topology) -> None:
    @settings(
        max_examples=100,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def holds(data) -> None:
        world = data.draw(st.sampled_from(stages(topology)))
        _tell(world.s1, data.draw(sync_states(world)))
        alone = data.draw(lies(world))
        _tell(
            world.s1,
            sign(world.s2.key, Party.AGGREGATOR, alone, ChainLink(data.draw(PLACES), bytes(32))),
        )

    holds()


def _tell(s1: Coordinator, message: Signed) -> None:
    before, told = s1.copy(), s1.copy()
    after, out = told.make_step(coordinator_step, message)
    if any(isinstance(reply, Rejection) for reply in out):
        assert after is told
        assert told == before


@pytest.mark.parametrize("topology", [SERVERS, EXPLICIT, MASKED, TWO_STAGE], ids=str)
def test_what_an_honest_s2_says_is_adopted(topology) -> None:
    """The fuzzing would find nothing if every sync state were refused."""
    for world in stages(topology):
        if world.s2.statements:
            forgetful = Simulation(topology, 5, 1)
            roster = b"" if world.s2.roster is None else encode(world.s2.roster)
            manifest = b"" if world.s2.manifest is None else encode(world.s2.manifest)
            said = tuple(statement.signed for statement in world.s2.statements)
            stands = SyncState(world.setup.params.survey, roster, manifest, said)
            after, out = forgetful.s1.make_step(
                coordinator_step, sign(world.s2.key, Party.AGGREGATOR, stands)
            )
            assert not any(isinstance(reply, Rejection) for reply in out)
            assert after.chain_end == compute_chain_link(said[-1])


@pytest.mark.parametrize("exchanged", [False, True])
def test_an_invitation_that_was_exchanged_is_nobodys_on_the_roster(exchanged: bool) -> None:
    world = Simulation(EXPLICIT, 5, 1)
    early, invitation = world.s1.copy(), world.setup.invitations[0]
    sealed = _later(world).s2
    s1 = early.make_step(reissue, invitation.access, bytes(32))[0] if exchanged else early
    awaiting_sync, out = s1.make_step(start_resync)
    after, _ = awaiting_sync.make_step(
        coordinator_step, sealed.make_step(aggregator_step, out[0])[1][0]
    )
    assert (after.n, after.awaiting_sync) == ((0, True) if exchanged else (5, False))
