"""`masked` and `explicit`: the coordinator against an aggregator that lies about whose seeds open, and the aggregator against a coordinator that lies."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from faircount.protocol import EXPLICIT, MASKED, resume
from faircount.protocol.peers import one_sum
from faircount.protocol.peers.messages import AcceptedMembers
from faircount.protocol.roles.coordinator import give_up
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.endings import NOT_OF_BATCH, OTHER_BATCH, EndCode, Ending, ending_of
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import PeerSum
from faircount.protocol.topologies.masked.messages import MaskedSum, ReadyForTotal
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import Reason, Reservation, SyncState
from faircount.protocol.wire.signing import Link, compute_link, sign

N, MINIMUM = 8, 5


@pytest.fixture(params=["masked", "explicit"])
def claimed(request, stage, masked) -> Any:
    """Everybody has sent, the coordinator has claimed, and the aggregator has answered: the receipt is heard, its set is not."""
    if request.param == "masked":
        play = masked("shared", n=N, k=N - 1, t=3, minimum=MINIMUM)
    else:
        play = stage(EXPLICIT, N, minimum=MINIMUM)
        play.enrol_all()
        play.share_all()
    (manifest,) = play.sum_all()
    reservation, play.true_set = play.tell_s2(manifest)
    assert play.tell_s1(reservation) != ()
    return play


def named(play, places, **change) -> Any:
    """The aggregator's word for a set, signed where the true one stands."""
    s1 = play.s1
    stated = AcceptedMembers(
        s1.params.survey,
        s1.manifest_hash,
        s1.manifest.set_digest,
        bitmap(places, N),
        one_sum.root_of(s1, places),
    )
    return play.instead(replace(stated, **change))


def test_the_true_set_brings_one_sum_and_asking_again_the_same(claimed) -> None:
    (first,) = claimed.sums(claimed.tell_s1(claimed.true_set))
    assert claimed.sums(resume(claimed.s1.state, claimed.s1.rows)) == [first]
    assert claimed.tell_s1(claimed.true_set) == ()
    claimed.settle(resume(claimed.s1.state, claimed.s1.rows))
    assert claimed.counts() == [1] * N


TOO_FEW = (EndCode.TOO_FEW_LEFT, EndCode.TOO_FEW_READABLE)


@pytest.mark.parametrize("few", [(0,), (0, 1), range(MINIMUM - 1)])
def test_no_sum_over_fewer_than_the_minimum(claimed, few) -> None:
    out = claimed.tell_s1(named(claimed, few))
    assert claimed.sums(out) == claimed.sums(resume(claimed.s1.state, claimed.s1.rows)) == []
    assert claimed.s1.final.message.code in TOO_FEW or claimed.s1.attempt == 2


def test_calling_good_seeds_bad_leaves_their_senders_out_and_tells_nothing(claimed) -> None:
    """Both attacks of version 0.1 began so: a false bad blob, then a second sum, or a key."""
    out = claimed.tell_s1(named(claimed, range(N - 1)))
    assert claimed.sums(out) == []
    assert claimed.s1.phase is (
        Phase.UNMASKING if claimed.params.topology is MASKED else Phase.SUBMITTING
    )
    kind = MaskedSum if claimed.params.topology is MASKED else PeerSum
    assert not claimed.s1.view.uploads.get(
        (kind.tag, claimed.s1.manifest.set_digest, N - 1)
    )  # its vector is gone


@pytest.mark.parametrize(
    "change",
    [{"members": b""}, {"members": b"\xff\xff"}, {"set_digest": bytes(32)}, {"root": bytes(32)}],
)
def test_a_set_that_is_none_of_the_claim_ends_the_survey(claimed, change) -> None:
    assert claimed.sums(claimed.tell_s1(named(claimed, range(N), **change))) == []
    assert claimed.s1.phase is Phase.ABORTED
    assert claimed.s1.rows.is_scrubbed("uploads")
    assert claimed.tell_s1(claimed.true_set) == ()


@pytest.mark.parametrize("second", [range(MINIMUM), range(1, N), (0,)])
def test_a_second_set_ends_the_survey(claimed, second) -> None:
    (first,) = claimed.sums(claimed.tell_s1(claimed.true_set))
    out = claimed.tell_s1(named(claimed, second))
    assert claimed.sums(out) == []
    assert claimed.s1.phase is Phase.ABORTED
    assert first.total


def test_a_second_set_after_a_smaller_one_ends_the_survey_without_a_sum(claimed) -> None:
    claimed.tell_s1(named(claimed, range(N - 1)))
    assert claimed.sums(claimed.tell_s1(named(claimed, range(1, N)))) == []
    assert claimed.s1.phase is Phase.ABORTED


def test_no_set_is_heard_before_the_receipt(claimed) -> None:
    claimed.s1 = claimed.s1.changed(reservation=None)
    assert claimed.sums(claimed.tell_s1(claimed.true_set)) == []
    assert claimed.s1.included is None


def test_another_claim_after_the_sum_ends_the_survey(claimed) -> None:
    """The aggregator says that a smaller claim stands, with a receipt and a set: the difference would be one user's vector."""
    claimed.tell_s1(claimed.true_set)
    said, manifest = claimed.s2.statements, claimed.s1.manifest
    other = replace(manifest, attempt=2)
    reservation = next(each.message for each in said if isinstance(each.message, Reservation))
    hashed = sha256(encode(other)).digest()
    chain = [each.signed for each in said]
    for says in (
        replace(reservation, manifest_hash=hashed),
        replace(said[2].message, manifest_hash=hashed),
    ):
        before = compute_link(chain[-1])
        chain.append(
            sign(claimed.s2.key, Party.AGGREGATOR, says, Link(before.number + 1, before.hash))
        )
    state = SyncState(manifest.survey, encode(claimed.s2.roster), encode(other), tuple(chain))
    out = claimed.tell_s1(sign(claimed.s2.key, Party.AGGREGATOR, state))
    assert claimed.sums(out) == []
    assert OTHER_BATCH in str(ending_of(claimed.s1.final.message))


def test_a_claim_of_s2s_whose_digest_is_that_of_another_set_is_none(stage) -> None:
    """`explicit`: the coordinator looked for vectors under one digest, and added up under the other: it raised."""
    play = stage(EXPLICIT, n=N)
    play.enrol_all()
    play.share_all()
    play.sum_all()
    manifest, roster = play.s1.manifest, encode(play.s2.roster)
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
        seal = play.s2.statements[0].signed
        said = sign(play.s2.key, Party.AGGREGATOR, reservation, Link(2, compute_link(seal).hash))
        state = SyncState(manifest.survey, roster, encode(other), (seal, said))
        (answer,) = play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, state))
        assert answer.why is Reason.MALFORMED


def test_a_set_with_somebody_who_was_not_claimed_ends_the_survey(masked) -> None:
    play = masked("shared", n=N, k=N - 1, t=3, minimum=MINIMUM)
    reservation, _ = play.tell_s2(play.sum_all(skip=(3,))[0])
    play.tell_s1(reservation)
    assert play.sums(play.tell_s1(named(play, range(N)))) == []
    assert NOT_OF_BATCH in str(ending_of(play.s1.final.message))


def test_a_result_over_another_set_is_refused(claimed) -> None:
    (total,) = claimed.tell_s1(claimed.true_set)
    (published,) = claimed.tell_s2(total)
    other = replace(claimed.said_by_s2(published), root=bytes(32))
    (answer,) = claimed.tell_s1(
        sign(claimed.s2.key, Party.AGGREGATOR, other, Link(published.number, published.previous))
    )
    assert answer.why is Reason.WRONG_DIGEST
    assert claimed.s1.phase is Phase.AGGREGATED
    claimed.tell_s1(published)
    assert claimed.counts() == [1] * N


def test_what_users_sent_is_deleted_after_the_result(claimed) -> None:
    claimed.settle((claimed.true_set,))
    assert claimed.s1.rows.is_scrubbed("uploads")
    assert claimed.s1.topology_state.total is None
    assert claimed.s2.encryption_keys.secret == b""


def test_s2_takes_one_sum_over_the_set_that_it_named(claimed) -> None:
    """A lying coordinator sends sums over nothing, over another set, and a second one."""
    (total,) = claimed.tell_s1(claimed.true_set)
    own = claimed.s1.topology_state.total
    other = claimed.by_s1(replace(own, accepted_hash=bytes(32)))
    assert claimed.said_by_s2(claimed.tell_s2(other)[0]).reason == Reason.WRONG_DIGEST
    (published,) = claimed.tell_s2(total)
    assert claimed.tell_s2(claimed.by_s1(replace(own, total=bytes(len(own.total))))) == (published,)


def test_an_abort_before_s2_is_ready_costs_nothing_and_after_it_everything(claimed) -> None:
    charge = claimed.params.survey
    wish = give_up(claimed.s1.state, Ending(EndCode.OWNER, (), "the owner has had enough"))[1]
    claimed.settle(wish)
    assert (
        claimed.s2.ledger.find(charge).status is Status.SPENT
    )  # all seeds were open: the coordinator may have sent its sum


def test_ready_is_heard_only_while_keys_are_recovered(claimed) -> None:
    if claimed.params.topology is MASKED:
        claimed.tell_s1(named(claimed, range(MINIMUM - 1)))
    out = claimed.tell_s1(
        claimed.instead(ReadyForTotal(claimed.params.survey, claimed.s1.manifest_hash))
    )
    assert claimed.sums(out) == []
