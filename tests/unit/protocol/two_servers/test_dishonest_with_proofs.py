"""A server that lies in a survey with proven reports, values that are revealed, and noise that is drawn once."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ProtocolError
from faircount.demo.invalid_reports import INVALID
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.protocol import SERVERS, encode
from faircount.protocol.roles.anchor import MemoryAnchor, record_value_use
from faircount.protocol.roles.coordinator import restored
from faircount.protocol.survey.endings import OTHER_VALUE, EndCode
from faircount.protocol.survey.phases import Phase
from faircount.protocol.survey.server_secrets import noise_stream
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, AggregateShare
from faircount.protocol.topologies.two_servers.reports import (
    compute_verifier_shares,
    derive_query,
    form_of,
    pack_verifier_shares,
    unpack_verifier_shares,
)
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
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


def said(play, kind):
    return next(each.message for each in play.s2.statements if isinstance(each.message, kind))


def inside(out, kind):
    found = [parse(each.payload) for each in out if isinstance(each, Signed)]
    return next(each for each in found if isinstance(each, kind))


def named(play, places, stated):
    """The aggregator's statement with another set under its root."""
    lines = [
        (play.s1.manifest.entries[i].user, play.s1.manifest.entries[i].public_key) for i in places
    ]
    return replace(
        stated,
        members=bitmap(places, len(play.s1.manifest.entries)),
        root=merkle_root(roster_leaves(lines)),
    )


# --- values -------------------------------------------------------------------------------------------------------


def test_nothing_reveals_a_value_before_the_claim(proven) -> None:
    play = proven()
    play.answer_all()
    for request in (RosterProposal(play.params.survey, play.params.digest, ()),):
        (answer,) = play.tell_s2(play.by_s1(request))
        assert play.s2.committed not in encode(answer)
        assert play.said_by_s2(answer).reason == Reason.MALFORMED
    (manifest,) = play.deadline()
    assert play.s1.committed not in encode(manifest)
    (reservation,) = play.tell_s2(manifest)
    assert play.said_by_s2(reservation).revealed == play.s2.committed
    (batch,) = play.tell_s1(reservation)
    assert parse(batch.payload).revealed == play.s1.committed


def test_a_receipt_before_there_is_a_claim_is_not_kept(proven) -> None:
    """It names the claim that the coordinator has before it has one: all zeros. The coordinator must not hold both values while people answer."""
    play = proven()
    play.answer_all(skip=(5,))
    early = Reservation(
        play.params.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed
    )
    (asked,) = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, early))
    assert isinstance(parse(asked.payload), SyncRequest)
    assert (play.s1.reservation, play.s1.topology_state) == (None, None)
    play.exchange(play.client.start(play.params, play.device(5), play.s2.crypto, play.entropy))
    play.settle(play.deadline())
    assert play.counts() == [1] * 6


def test_without_proofs_no_value_is_revealed(stage) -> None:
    play = stage(SERVERS)
    play.answer_all()
    (reservation,) = play.tell_s2(play.deadline()[0])
    (batch,) = play.tell_s1(reservation)
    assert play.said_by_s2(reservation).revealed == bytes(32)
    assert parse(batch.payload).verifier_shares == b""
    assert parse(batch.payload).revealed == bytes(32)


def test_a_value_serves_one_survey(proven) -> None:
    """Two surveys under the same commitment: the second is refused; the first may begin again after a crash."""
    first, anchor = proven().params, MemoryAnchor()
    second = replace(first, survey=b"\x09" * 16)
    for server in (Party.COORDINATOR, Party.AGGREGATOR):
        record_value_use(anchor, first, server)
        record_value_use(anchor, first, server)
        with pytest.raises(ProtocolError, match="another survey"):
            record_value_use(anchor, second, server)


def test_s2_without_its_value_reveals_nothing_and_ends_the_survey(proven) -> None:
    play = proven()
    play.answer_all()
    play.s2 = play.s2.changed(committed=b"\x08" * 32)
    (last,) = play.tell_s2(play.deadline()[0])
    assert (play.said_by_s2(last).spent, play.s2.phase) == (0, Phase.ABORTED)


def test_a_receipt_with_another_value_ends_the_survey_and_nothing_is_spent(proven) -> None:
    play = proven()
    play.answer_all()
    (reservation,) = play.tell_s2(play.deadline()[0])
    lie = replace(play.said_by_s2(reservation), revealed=b"\5" * 32)
    out = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, lie))
    wish = inside(out, Aborted)
    assert (wish.spent, wish.code, wish.detail.decode()) == (
        0,
        EndCode.AGGREGATOR_CONTRADICTION,
        OTHER_VALUE,
    )
    play.settle(out)
    assert play.s2.ledger.find(play.params.survey).status == "released"
    assert play.s1.rows.is_scrubbed("first_messages")


def test_a_batch_with_another_value_ends_the_survey(proven) -> None:
    play = proven()
    play.answer_all()
    (batch,) = play.tell_s1(play.tell_s2(play.deadline()[0])[0])
    lie = replace(parse(batch.payload), revealed=b"\5" * 32)
    play.tell_s2(play.by_s1(lie))
    assert play.s2.phase is Phase.ABORTED
    assert said(play, Aborted).code == EndCode.COORDINATOR_CONTRADICTION


def test_answers_that_are_none_are_refused_and_the_right_ones_still_taken(proven) -> None:
    play = proven()
    play.answer_all()
    (batch,) = play.tell_s1(play.tell_s2(play.deadline()[0])[0])
    true = parse(batch.payload)
    for answers in (
        b"",
        true.verifier_shares[:-1],
        true.verifier_shares + b"\0",
        b"\xff" * len(true.verifier_shares),
    ):
        (answer,) = play.tell_s2(play.by_s1(replace(true, verifier_shares=answers)))
        assert play.said_by_s2(answer).reason == Reason.MALFORMED
    play.settle((batch,))
    assert play.counts() == [1] * 6


# --- a server that lies -------------------------------------------------------------------------------------------


def claimed(proven, **terms):
    """All answers are in, the coordinator has its receipt; the batch that it sends."""
    play = proven(**terms)
    play.answer_all()
    (batch,) = play.tell_s1(play.tell_s2(play.deadline()[0])[0])
    return play, batch


def test_s2_that_calls_a_valid_report_invalid_gets_no_sum(proven) -> None:
    play, batch = claimed(proven)
    true = play.said_by_s2(play.tell_s2(batch)[0])
    out = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, named(play, range(5), true)))
    assert b"judged" in inside(out, Aborted).detail
    assert not any(isinstance(parse(each.payload), AggregateShare) for each in out)


def test_s2_that_counts_an_invalid_report_gets_no_sum(proven) -> None:
    play = proven()
    play.answer_all(skip=(0,))
    play.sends(0, INVALID["two votes"](form_of(play.params.mechanism), play.entropy))
    (batch,) = play.tell_s1(play.tell_s2(play.deadline()[0])[0])
    true = play.said_by_s2(play.tell_s2(batch)[0])
    out = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, named(play, range(6), true)))
    assert b"judged" in inside(out, Aborted).detail


@pytest.mark.parametrize(
    "change", [{"verifier_shares": b""}, {"opened": b""}, {"opened": b"\xff"}, {"opened": b"\x1f"}]
)
def test_a_set_without_its_evidence_gets_no_sum(proven, change) -> None:
    play, batch = claimed(proven)
    true = play.said_by_s2(play.tell_s2(batch)[0])
    out = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, replace(true, **change)))
    assert isinstance(inside(out, Aborted), Aborted)


@pytest.mark.parametrize("lie", ["a member whose blob did not open", "answers about nobody"])
def test_evidence_is_about_those_who_opened_and_nobody_else(proven, lie) -> None:
    """The aggregator says that a report did not open, sends no answers about it, and counts it."""
    play, batch = claimed(proven)
    true, form = play.said_by_s2(play.tell_s2(batch)[0]), form_of(play.params.mechanism)
    fewer = pack_verifier_shares(unpack_verifier_shares(true.verifier_shares, form, 6)[:5], form)
    lies = {
        "a member whose blob did not open": replace(
            true, opened=bitmap(range(5), 6), verifier_shares=fewer
        ),
        "answers about nobody": replace(
            true, verifier_shares=true.verifier_shares + true.verifier_shares
        ),
    }
    out = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, lies[lie]))
    assert b"judged" in inside(out, Aborted).detail


def test_s2_can_leave_somebody_out_by_shifting_its_answers(proven) -> None:
    """What no proof prevents, and the documentation says: the set without that person is what is counted."""
    play, batch = claimed(proven)
    true, form = play.said_by_s2(play.tell_s2(batch)[0]), form_of(play.params.mechanism)
    answers = unpack_verifier_shares(true.verifier_shares, form, 6)
    answers[5, -1] = (int(answers[5, -1]) + 1) % form.q
    shifted = replace(
        named(play, range(5), true), verifier_shares=pack_verifier_shares(answers, form)
    )
    assert inside(play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, shifted)), AggregateShare).total


def test_s1_that_changes_a_share_loses_that_report(proven) -> None:
    """The coordinator adds a vote to its share of user 2: the answers about it are no longer those of a valid report."""
    play, batch = claimed(proven)
    form, values = form_of(play.params.mechanism), (play.s1.committed, play.s2.committed)
    shares = [play.s1.view.first_messages[each.user].share for each in play.s1.manifest.entries]
    share = unpack(shares[2], form.q, form.width)
    share[0] = (int(share[0]) + 1) % form.q
    shares[2] = pack(share, form.q)
    answers = pack_verifier_shares(
        compute_verifier_shares(derive_query(play.params, form, values), shares), form
    )
    (included,) = play.tell_s2(play.by_s1(replace(parse(batch.payload), verifier_shares=answers)))
    assert play.said_by_s2(included).members == bytes([0b111011])


def test_a_repeated_batch_with_other_answers_gets_the_stored_set(proven) -> None:
    play, batch = claimed(proven)
    first = play.tell_s2(batch)
    other = parse(batch.payload)
    shifted = replace(other, verifier_shares=bytes(len(other.verifier_shares)))
    assert play.tell_s2(play.by_s1(shifted)) == first
    assert play.tell_s2(batch) == first


def test_a_result_that_hides_refused_reports_is_not_taken(proven) -> None:
    play, batch = claimed(proven)
    play.settle((batch,))
    true = said(play, Published)
    again, batch = claimed(proven)
    again.tell_s1(again.tell_s2(batch)[0])
    (answer,) = again.tell_s1(sign(again.s2.key, Party.AGGREGATOR, replace(true, refused=2)))
    assert answer.why is Reason.WRONG_DIGEST


# --- one question, one noise --------------------------------------------------------------------------------------


def test_the_blind_is_drawn_apart_from_the_seed(proven) -> None:
    """Two reports with the same seed have different blinds: the aggregator, who has the seed, cannot compute them."""
    play = proven()
    form, mechanism = form_of(play.params.mechanism), play.params.mechanism
    rows = [servers_user.draw_vector(mechanism, 1, SeededStream(seed)) for seed in range(5)]
    blinds = {tuple(row[form.bits : form.bits + form.degree].tolist()) for row in rows}
    assert len(blinds) == 5
    assert len({tuple(row[: form.bits].tolist()) for row in rows}) == 1


def test_another_survey_asks_another_question_and_draws_other_noise(proven) -> None:

    first, second = proven(seed=1), proven(seed=2)
    form, values = form_of(first.params.mechanism), (b"\1" * 32, b"\2" * 32)
    ours, theirs = (derive_query(each.params, form, values) for each in (first, second))
    assert not np.array_equal(ours.matrix, theirs.matrix)
    same = b"\3" * 32, bytes(32), b"\xff"
    drawn = [
        noise_stream(each.params, party, *same).bytes(32)
        for each in (first, second)
        for party in (Party.COORDINATOR, Party.AGGREGATOR)
    ]
    assert len(set(drawn)) == 4
    assert noise_stream(first.params, Party.COORDINATOR, *same).bytes(32) == drawn[0]
    releases = (b"\1" * 32, b"\xff"), (bytes(32), b"\xfe")
    others = [
        noise_stream(first.params, Party.COORDINATOR, same[0], *each).bytes(32) for each in releases
    ]
    assert len({drawn[0], *others}) == 3


@pytest.mark.parametrize(
    "mechanism",
    [
        ServerLaplace(items=6, users=6, epsilon=0.5),
        PlacedCoins(items=6, users=6, coins=5, epsilon=1.0),
    ],
    ids=lambda each: each.name,
)
def test_a_restored_s1_sends_the_same_sum_with_the_same_noise(proven, mechanism) -> None:
    """Other noise, or another placement of coins, over the same set would be a second release."""
    play = proven(mechanism=mechanism, minimum=None)
    play.answer_all()
    (manifest,) = play.deadline()
    saved = play.s1.copy()
    (batch,) = play.tell_s1(play.tell_s2(manifest)[0])
    (first,) = play.tell_s1(play.tell_s2(batch)[0])
    play.s1, (asked,) = saved.do(restored)
    (again,) = play.tell_s1(play.tell_s2(asked)[0])
    assert isinstance(parse(again.payload), AggregateShare)
    assert parse(again.payload) == parse(first.payload)


def test_noise_of_both_servers_is_in_the_result(proven) -> None:
    play, batch = claimed(proven, mechanism=ServerLaplace(items=6, users=6, epsilon=0.5))
    play.settle((batch,))

    mechanism, members = play.params.mechanism, said(play, AcceptedReports).members
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
    assert (play.s1.noise_secret, play.s2.noise_secret) == (
        b"",
        b"",
    )  # destroyed with the last word


def test_batch_and_receipt_keep_their_parts_as_bytes(proven) -> None:
    play, batch = claimed(proven)
    message = parse(batch.payload)
    assert parse(encode(message)) == message
    assert parse(encode(said(play, Reservation))) == said(play, Reservation)
