"""`masked` and `explicit`: either server against a dishonest one.

The aggregator states false sets of members whose seeds it could decrypt; the coordinator sends
false totals.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from faircount.protocol import EXPLICIT, MASKED, resume
from faircount.protocol.peers import one_sum
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles.coordinator import request_abort
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.endings import NOT_OF_BATCH, OTHER_BATCH, EndCode, Ending, ending_of
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import PeerSum
from faircount.protocol.topologies.masked.messages import MaskedSum, ReadyForTotal
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import Reason, Reservation, SyncState
from faircount.protocol.wire.signing import ChainLink, compute_chain_link, sign

N, MINIMUM = 8, 5


@pytest.fixture(params=["masked", "explicit"])
def play(request, stage, masked) -> Any:
    """The coordinator has fixed its manifest and has the reservation, but not the accepted set."""
    if request.param == "masked":
        play = masked("shared", n=N, k=N - 1, t=3, minimum=MINIMUM)
    else:
        play = stage(EXPLICIT, N, minimum=MINIMUM)
        play.enrol_all()
        play.share_all()
    (manifest,) = play.sum_all()
    reservation, play.true_set = play.send_to_s2(manifest)
    assert play.send_to_s1(reservation) != ()
    return play


def false_set(play, places, **change) -> Any:
    """A false set of accepted members, signed in the place of the true one."""
    s1 = play.s1
    stated = AcceptedMembers(
        s1.params.survey,
        s1.manifest_hash,
        s1.manifest.set_digest,
        bitmap(places, N),
        one_sum.inclusion_root(s1, places),
    )
    return play.instead(replace(stated, **change))


def test_the_true_set_brings_one_sum_and_asking_again_the_same(play) -> None:
    (first,) = play.sums(play.send_to_s1(play.true_set))
    assert play.sums(resume(play.s1.state, play.s1.rows)) == [first]
    assert play.send_to_s1(play.true_set) == ()
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * N


TOO_FEW = (EndCode.TOO_FEW_LEFT, EndCode.TOO_FEW_READABLE)


@pytest.mark.parametrize("few", [(0,), (0, 1), range(MINIMUM - 1)])
def test_no_sum_over_fewer_than_the_minimum(play, few) -> None:
    out = play.send_to_s1(false_set(play, few))
    assert play.sums(out) == play.sums(resume(play.s1.state, play.s1.rows)) == []
    assert play.s1.final.message.code in TOO_FEW or play.s1.attempt == 2


def test_rejecting_good_seeds_leaves_their_senders_out_and_reveals_nothing(play) -> None:
    """Both attacks on version 0.1 began so: a good seed rejected, then a second sum, or a key."""
    out = play.send_to_s1(false_set(play, range(N - 1)))
    assert play.sums(out) == []
    assert play.s1.phase is (
        Phase.UNMASKING if play.params.topology is MASKED else Phase.SUBMITTING
    )
    kind = MaskedSum if play.params.topology is MASKED else PeerSum
    assert not play.s1.view.uploads.get(
        (kind.tag, play.s1.manifest.set_digest, N - 1)
    )  # its vector is gone


@pytest.mark.parametrize(
    "change",
    [{"members": b""}, {"members": b"\xff\xff"}, {"set_digest": bytes(32)}, {"root": bytes(32)}],
)
def test_a_set_that_is_not_of_the_manifest_ends_the_survey(play, change) -> None:
    assert play.sums(play.send_to_s1(false_set(play, range(N), **change))) == []
    assert play.s1.phase is Phase.ABORTED
    assert play.s1.rows.is_scrubbed("uploads")
    assert play.send_to_s1(play.true_set) == ()


@pytest.mark.parametrize("second", [range(MINIMUM), range(1, N), (0,)])
def test_a_second_set_ends_the_survey(play, second) -> None:
    (first,) = play.sums(play.send_to_s1(play.true_set))
    out = play.send_to_s1(false_set(play, second))
    assert play.sums(out) == []
    assert play.s1.phase is Phase.ABORTED
    assert first.total


def test_a_second_set_after_a_smaller_one_ends_the_survey_without_a_sum(play) -> None:
    play.send_to_s1(false_set(play, range(N - 1)))
    assert play.sums(play.send_to_s1(false_set(play, range(1, N)))) == []
    assert play.s1.phase is Phase.ABORTED


def test_no_set_is_used_before_the_reservation(play) -> None:
    play.s1 = play.s1.replace_fields(reservation=None)
    assert play.sums(play.send_to_s1(play.true_set)) == []
    assert play.s1.accepted is None


def test_another_manifest_after_the_sum_ends_the_survey(play) -> None:
    """The aggregator claims to have recorded a smaller manifest: the difference is one vector."""
    play.send_to_s1(play.true_set)
    statements = play.s2.statements
    manifest = play.s1.manifest
    other = replace(manifest, attempt=2)
    reservation = next(s.message for s in statements if isinstance(s.message, Reservation))
    hashed = sha256(encode(other)).digest()
    chain = [statement.signed for statement in statements]
    for says in (
        replace(reservation, manifest_hash=hashed),
        replace(statements[2].message, manifest_hash=hashed),
    ):
        before = compute_chain_link(chain[-1])
        chain.append(
            sign(play.s2.key, Party.AGGREGATOR, says, ChainLink(before.number + 1, before.hash))
        )
    state = SyncState(manifest.survey, encode(play.s2.roster), encode(other), tuple(chain))
    out = play.send_to_s1(sign(play.s2.key, Party.AGGREGATOR, state))
    assert play.sums(out) == []
    assert OTHER_BATCH in str(ending_of(play.s1.final.message))


def test_a_claim_of_s2s_whose_digest_is_that_of_another_set_is_none(stage) -> None:
    """`explicit`: the coordinator looked for vectors under one digest and summed under the other."""
    play = stage(EXPLICIT, n=N)
    play.enrol_all()
    play.share_all()
    play.sum_all()
    manifest = play.s1.manifest
    roster = encode(play.s2.roster)
    for members in (range(1, N), range(N)):
        encrypted_shares = tuple(manifest.encrypted_shares[j] for j in members)
        digest = manifest.set_digest if len(encrypted_shares) < N else bytes(32)
        other = replace(
            manifest,
            members=bitmap(members, N),
            encrypted_shares=encrypted_shares,
            set_digest=digest,
        )
        reservation = Reservation(
            manifest.survey, sha256(encode(other)).digest(), b"0", b"0", b"", 1, 1, bytes(32)
        )
        confirmation = play.s2.statements[0].signed
        chain_link = ChainLink(2, compute_chain_link(confirmation).hash)
        signed = sign(play.s2.key, Party.AGGREGATOR, reservation, chain_link)
        state = SyncState(manifest.survey, roster, encode(other), (confirmation, signed))
        (answer,) = play.send_to_s1(sign(play.s2.key, Party.AGGREGATOR, state))
        assert answer.why is Reason.MALFORMED


def test_a_set_with_somebody_who_was_not_claimed_ends_the_survey(masked) -> None:
    play = masked("shared", n=N, k=N - 1, t=3, minimum=MINIMUM)
    reservation, _ = play.send_to_s2(play.sum_all(skip=(3,))[0])
    play.send_to_s1(reservation)
    assert play.sums(play.send_to_s1(false_set(play, range(N)))) == []
    assert NOT_OF_BATCH in str(ending_of(play.s1.final.message))


def test_a_result_over_another_set_is_refused(play) -> None:
    (total,) = play.send_to_s1(play.true_set)
    (published,) = play.send_to_s2(total)
    other = replace(play.read_from_s2(published), root=bytes(32))
    (answer,) = play.send_to_s1(
        sign(play.s2.key, Party.AGGREGATOR, other, ChainLink(published.number, published.previous))
    )
    assert answer.why is Reason.WRONG_DIGEST
    assert play.s1.phase is Phase.AGGREGATED
    play.send_to_s1(published)
    assert play.counts() == [1] * N


def test_what_clients_sent_is_deleted_after_the_result(play) -> None:
    play.settle((play.true_set,))
    assert play.s1.rows.is_scrubbed("uploads")
    assert play.s1.topology_state.total is None
    assert play.s2.encryption_keys.secret == b""


def test_s2_takes_one_sum_over_the_set_that_it_named(play) -> None:
    """A dishonest coordinator sends totals over nothing, over another set, and a second one."""
    (total,) = play.send_to_s1(play.true_set)
    made = play.s1.topology_state.total
    other = play.by_s1(replace(made, accepted_hash=bytes(32)))
    assert play.read_from_s2(play.send_to_s2(other)[0]).reason == Reason.WRONG_DIGEST
    (published,) = play.send_to_s2(total)
    assert play.send_to_s2(play.by_s1(replace(made, total=bytes(len(made.total))))) == (published,)


def test_an_abort_before_s2_is_ready_costs_nothing_and_after_it_everything(play) -> None:
    charge = play.params.survey
    wish = request_abort(play.s1.state, Ending(EndCode.OWNER, (), "the owner has had enough"))[1]
    play.settle(wish)
    assert (
        play.s2.ledger.find(charge).status is Status.SPENT
    )  # all seeds were open: the coordinator may have sent its sum


def test_ready_is_used_only_while_keys_are_recovered(play) -> None:
    if play.params.topology is MASKED:
        play.send_to_s1(false_set(play, range(MINIMUM - 1)))
    out = play.send_to_s1(play.instead(ReadyForTotal(play.params.survey, play.s1.manifest_hash)))
    assert play.sums(out) == []
