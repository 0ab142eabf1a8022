"""Dishonest servers in surveys with proven reports: revealed values, proofs, and noise."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ProtocolError
from faircount.demo.invalid_reports import INVALID
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import SERVERS, encode
from faircount.protocol.roles.anchor import MemoryAnchor, record_value_use
from faircount.protocol.roles.coordinator import start_resync
from faircount.protocol.survey.endings import OTHER_VALUE, EndCode
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.server_secrets import noise_stream
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    hash_of_verified,
)
from faircount.protocol.topologies.two_servers.reports import (
    compute_verifier_shares,
    derive_query,
    pack_verifier_shares,
    report_layout_of,
    unpack_verifier_shares,
)
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.digests import bitmap, entry_leaves, merkle_root
from faircount.protocol.wire.messages import (
    Aborted,
    Published,
    Reason,
    Reservation,
    Signed,
    SyncRequest,
)
from faircount.protocol.wire.roster_messages import RosterProposal
from faircount.protocol.wire.signing import sign
from faircount.sharing.packing import pack, unpack


def statement_of(play, kind):
    return next(
        statement.message for statement in play.s2.statements if isinstance(statement.message, kind)
    )


def find_message(out, kind):
    found = [parse(message.payload) for message in out if isinstance(message, Signed)]
    return next(message for message in found if isinstance(message, kind))


def with_members(play, places, accepted):
    """The aggregator's statement with another set, and the root of that set."""
    entries = [
        (play.s1.manifest.entries[i].user, play.s1.manifest.entries[i].public_key) for i in places
    ]
    return replace(
        accepted,
        members=bitmap(places, len(play.s1.manifest.entries)),
        root=merkle_root(entry_leaves(entries)),
    )


# --- values ---------------------------------------------------------------------------------------


def test_nothing_reveals_a_value_before_the_manifest(proven) -> None:
    play = proven()
    play.answer_all()
    for request in (RosterProposal(play.params.survey, play.params.digest, ()),):
        (answer,) = play.send_to_s2(play.by_s1(request))
        assert play.s2.committed_value not in encode(answer)
        assert play.read_from_s2(answer).reason == Reason.MALFORMED
    (manifest,) = play.deadline()
    assert play.s1.committed_value not in encode(manifest)
    (reservation,) = play.send_to_s2(manifest)
    assert play.read_from_s2(reservation).revealed == play.s2.committed_value
    (batch,) = play.send_to_s1(reservation)
    assert parse(batch.payload).revealed == play.s1.committed_value


def test_a_reservation_before_there_is_a_manifest_is_not_kept(proven) -> None:
    """Its manifest hash is zeros, as in the state without a manifest.

    The coordinator must not know both values while participants respond.
    """
    play = proven()
    play.answer_all(skip=(5,))
    early = Reservation(
        play.params.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed_value
    )
    (sync_request,) = play.send_to_s1(sign(play.s2.key, Party.AGGREGATOR, early))
    assert isinstance(parse(sync_request.payload), SyncRequest)
    assert (play.s1.reservation, play.s1.topology_state) == (None, None)
    play.exchange(play.client.start(play.params, play.device(5), play.s2.crypto, play.entropy))
    play.settle(play.deadline())
    assert play.counts() == [1] * 6


def test_without_proofs_no_value_is_revealed(stage) -> None:
    play = stage(SERVERS)
    play.answer_all()
    (reservation,) = play.send_to_s2(play.deadline()[0])
    (batch,) = play.send_to_s1(reservation)
    assert play.read_from_s2(reservation).revealed == bytes(32)
    assert parse(batch.payload).verifier_shares == b""
    assert parse(batch.payload).revealed == bytes(32)


def test_a_value_serves_one_survey(proven) -> None:
    """A second survey with the same commitment is refused; the first may begin again."""
    first = proven().params
    anchor = MemoryAnchor()
    second = replace(first, survey=b"\x09" * 16)
    for server in (Party.COORDINATOR, Party.AGGREGATOR):
        record_value_use(anchor, first, server)
        record_value_use(anchor, first, server)
        with pytest.raises(ProtocolError, match="another survey"):
            record_value_use(anchor, second, server)


def test_an_aggregator_without_its_value_reveals_nothing_and_aborts(proven) -> None:
    play = proven()
    play.answer_all()
    play.s2 = play.s2.replace_fields(committed_value=b"\x08" * 32)
    (last,) = play.send_to_s2(play.deadline()[0])
    assert (play.read_from_s2(last).spent, play.s2.phase) == (0, Phase.ABORTED)


def test_a_reservation_with_another_value_ends_the_survey_without_a_charge(proven) -> None:
    play = proven()
    play.answer_all()
    (reservation,) = play.send_to_s2(play.deadline()[0])
    changed = replace(play.read_from_s2(reservation), revealed=b"\5" * 32)
    out = play.send_to_s1(sign(play.s2.key, Party.AGGREGATOR, changed))
    request_sent = find_message(out, Aborted)
    assert (request_sent.spent, request_sent.code, request_sent.detail.decode()) == (
        0,
        EndCode.AGGREGATOR_CONTRADICTION,
        OTHER_VALUE,
    )
    play.settle(out)
    assert play.s2.ledger.find(play.params.survey).status == "cancelled"
    assert play.s1.rows.is_scrubbed("first_messages")


def test_a_batch_with_another_value_ends_the_survey(proven) -> None:
    play = proven()
    play.answer_all()
    (batch,) = play.send_to_s1(play.send_to_s2(play.deadline()[0])[0])
    changed = replace(parse(batch.payload), revealed=b"\5" * 32)
    play.send_to_s2(play.by_s1(changed))
    assert play.s2.phase is Phase.ABORTED
    assert statement_of(play, Aborted).code == EndCode.COORDINATOR_CONTRADICTION


def test_malformed_verifier_shares_are_refused_and_the_right_ones_still_taken(proven) -> None:
    play = proven()
    play.answer_all()
    (batch,) = play.send_to_s1(play.send_to_s2(play.deadline()[0])[0])
    true = parse(batch.payload)
    for answers in (
        b"",
        true.verifier_shares[:-1],
        true.verifier_shares + b"\0",
        b"\xff" * len(true.verifier_shares),
    ):
        (answer,) = play.send_to_s2(play.by_s1(replace(true, verifier_shares=answers)))
        assert play.read_from_s2(answer).reason == Reason.MALFORMED
    play.settle((batch,))
    assert play.counts() == [1] * 6


# --- a dishonest server ---------------------------------------------------------------------------


def play_to_reservation(proven, **terms):
    """Play until the coordinator has its reservation; also the batch that it sends."""
    play = proven(**terms)
    play.answer_all()
    (batch,) = play.send_to_s1(play.send_to_s2(play.deadline()[0])[0])
    return play, batch


def judge(play, batch):
    """What the honest aggregator says about the only part, and its set."""
    verified, accepted = play.send_to_s2(batch)
    return play.read_from_s2(verified), play.read_from_s2(accepted)


def show(play, verified, accepted):
    """The coordinator's answer to what a dishonest aggregator says; its hash is the right one."""
    assert play.send_to_s1(play.by_s2(verified)) == ()
    named = replace(accepted, verified=hash_of_verified([verified]))
    return play.send_to_s1(play.by_s2(named))


def test_an_aggregator_that_rejects_a_valid_report_gets_no_sum(proven) -> None:
    play, batch = play_to_reservation(proven)
    verified, accepted = judge(play, batch)
    out = show(play, verified, with_members(play, range(5), accepted))
    assert b"verifier shares" in find_message(out, Aborted).detail
    assert not any(isinstance(parse(message.payload), AggregateShare) for message in out)


def test_an_aggregator_that_accepts_an_invalid_report_gets_no_sum(proven) -> None:
    play = proven()
    play.answer_all(skip=(0,))
    play.sends(0, INVALID["two votes"](report_layout_of(play.params.mechanism), play.entropy))
    (batch,) = play.send_to_s1(play.send_to_s2(play.deadline()[0])[0])
    verified, accepted = judge(play, batch)
    out = show(play, verified, with_members(play, range(6), accepted))
    assert b"verifier shares" in find_message(out, Aborted).detail


@pytest.mark.parametrize(
    "change",
    [{"verifier_shares": b""}, {"decrypted": b""}, {"decrypted": b"\xff"}, {"decrypted": b"\x1f"}],
)
def test_a_set_without_its_verifier_shares_gets_no_sum(proven, change) -> None:
    play, batch = play_to_reservation(proven)
    verified, accepted = judge(play, batch)
    out = show(play, replace(verified, **change), accepted)
    assert isinstance(find_message(out, Aborted), Aborted)


@pytest.mark.parametrize(
    "changed", ["a member whose share was not decrypted", "verifier shares about nobody"]
)
def test_verifier_shares_are_about_decrypted_reports_and_nothing_else(proven, changed) -> None:
    """The aggregator states that it could not decrypt a share, and accepts the report."""
    play, batch = play_to_reservation(proven)
    verified, accepted = judge(play, batch)
    layout = report_layout_of(play.params.mechanism)
    shares = verified.verifier_shares
    fewer = pack_verifier_shares(unpack_verifier_shares(shares, layout, 6)[:5], layout)
    changes = {
        "a member whose share was not decrypted": replace(
            verified, decrypted=bitmap(range(5), 6), verifier_shares=fewer
        ),
        "verifier shares about nobody": replace(verified, decrypted=bitmap(range(5), 6)),
    }
    if changed == "verifier shares about nobody":
        accepted = with_members(play, range(5), accepted)
    out = show(play, changes[changed], accepted)
    assert b"verifier shares" in find_message(out, Aborted).detail


def test_an_aggregator_can_leave_somebody_out_by_shifted_verifier_shares(proven) -> None:
    """No proof prevents this, and the documentation states it: the others are counted."""
    play, batch = play_to_reservation(proven)
    verified, accepted = judge(play, batch)
    layout = report_layout_of(play.params.mechanism)
    answers = unpack_verifier_shares(verified.verifier_shares, layout, 6)
    answers[5, -1] = (int(answers[5, -1]) + 1) % layout.q
    shifted = replace(verified, verifier_shares=pack_verifier_shares(answers, layout))
    out = show(play, shifted, with_members(play, range(5), accepted))
    assert find_message(out, AggregateShare).total


def test_a_coordinator_that_changes_a_share_loses_that_report(proven) -> None:
    """The coordinator adds a vote to its share of report 2, which is then not valid any more."""
    play, batch = play_to_reservation(proven)
    layout = report_layout_of(play.params.mechanism)
    values = (play.s1.committed_value, play.s2.committed_value)
    shares = [play.s1.view.first_messages[entry.user].share for entry in play.s1.manifest.entries]
    share = unpack(shares[2], layout.q, layout.width)
    share[0] = (int(share[0]) + 1) % layout.q
    shares[2] = pack(share, layout.q)
    answers = pack_verifier_shares(
        compute_verifier_shares(derive_query(play.params, layout, values), shares), layout
    )
    changed = play.by_s1(replace(parse(batch.payload), verifier_shares=answers))
    _, accepted = judge(play, changed)
    assert accepted.members == bytes([0b111011])


def test_a_repeated_batch_with_other_verifier_shares_gets_the_stored_set(proven) -> None:
    play, batch = play_to_reservation(proven)
    first = play.send_to_s2(batch)
    other = parse(batch.payload)
    shifted = replace(other, verifier_shares=bytes(len(other.verifier_shares)))
    assert play.send_to_s2(play.by_s1(shifted)) == first
    assert play.send_to_s2(batch) == first


def test_a_result_that_hides_refused_reports_is_not_taken(proven) -> None:
    play, batch = play_to_reservation(proven)
    play.settle((batch,))
    true = statement_of(play, Published)
    again, batch = play_to_reservation(proven)
    for statement in again.send_to_s2(batch):
        again.send_to_s1(statement)
    (answer,) = again.send_to_s1(sign(again.s2.key, Party.AGGREGATOR, replace(true, rejected=2)))
    assert answer.why is Reason.WRONG_DIGEST


# --- one query, one draw of noise -----------------------------------------------------------------


def test_the_blind_is_drawn_apart_from_the_seed(proven) -> None:
    """The aggregator has the seed, and cannot compute the blind from it."""
    play = proven()
    layout = report_layout_of(play.params.mechanism)
    mechanism = play.params.mechanism
    rows = [servers_user.draw_vector(mechanism, (1,), SeededStream(seed)) for seed in range(5)]
    blinds = {tuple(row[layout.bits : layout.bits + layout.degree].tolist()) for row in rows}
    assert len(blinds) == 5
    assert len({tuple(row[: layout.bits].tolist()) for row in rows}) == 1


def test_another_survey_has_another_query_and_other_noise(proven) -> None:
    first = proven(seed=1)
    second = proven(seed=2)
    layout = report_layout_of(first.params.mechanism)
    values = (b"\1" * 32, b"\2" * 32)
    ours, theirs = (derive_query(play.params, layout, values) for play in (first, second))
    assert not np.array_equal(ours.matrix, theirs.matrix)
    same = b"\3" * 32, bytes(32), b"\xff"
    servers = product((first, second), (Party.COORDINATOR, Party.AGGREGATOR))
    drawn = [noise_stream(play.params, party, *same).bytes(32) for play, party in servers]
    assert len(set(drawn)) == 4
    assert noise_stream(first.params, Party.COORDINATOR, *same).bytes(32) == drawn[0]
    releases = (b"\1" * 32, b"\xff"), (bytes(32), b"\xfe")
    others = [
        noise_stream(first.params, Party.COORDINATOR, same[0], *release).bytes(32)
        for release in releases
    ]
    assert len({drawn[0], *others}) == 3


@pytest.mark.parametrize(
    "mechanism",
    [
        ServerLaplace(items=6, users=6, epsilon=0.5),
        PlacedCoins(items=6, users=6, coins=5, epsilon=1.0),
    ],
    ids=lambda mechanism: mechanism.name,
)
def test_a_restored_coordinator_sends_the_same_sum_with_the_same_noise(proven, mechanism) -> None:
    """Other noise, or another placement of coins, over the same set would be a second release."""
    play = proven(mechanism=mechanism, minimum=None)
    play.answer_all()
    (manifest,) = play.deadline()
    saved = play.s1.copy()
    (batch,) = play.send_to_s1(play.send_to_s2(manifest)[0])
    verified, accepted = play.send_to_s2(batch)
    play.send_to_s1(verified)
    (first,) = play.send_to_s1(accepted)
    play.s1, (sync_request,) = saved.make_step(start_resync)
    # The restored coordinator has the set, and asks for the verified part again.
    (same_batch,) = play.send_to_s1(play.send_to_s2(sync_request)[0])
    assert parse(same_batch.payload) == parse(batch.payload)
    assert play.send_to_s2(same_batch) == (verified, accepted)
    (again,) = play.send_to_s1(verified)
    assert isinstance(parse(again.payload), AggregateShare)
    assert parse(again.payload) == parse(first.payload)


def test_noise_of_both_servers_is_in_the_result(proven) -> None:
    play, batch = play_to_reservation(
        proven, mechanism=ServerLaplace(items=6, users=6, epsilon=0.5)
    )
    play.settle((batch,))

    mechanism = play.params.mechanism
    members = statement_of(play, AcceptedReports).members
    secrets = {
        Party.COORDINATOR: play.setup.s1.noise_secret,
        Party.AGGREGATOR: play.setup.s2.noise_secret,
    }
    noise = sum(
        mechanism.server_noise(
            noise_stream(play.params, who, secret, play.s2.manifest_hash, members)
        )
        for who, secret in secrets.items()
    )
    assert (np.array(play.counts()) - 1 == noise).all()
    # The secrets are destroyed with the final statement.
    assert (play.s1.noise_secret, play.s2.noise_secret) == (b"", b"")


def test_batch_and_reservation_survive_encoding(proven) -> None:
    play, batch = play_to_reservation(proven)
    message = parse(batch.payload)
    assert parse(encode(message)) == message
    assert parse(encode(statement_of(play, Reservation))) == statement_of(play, Reservation)
