"""`masked` and `explicit`: S1 against an S2 that lies about whose seeds open, and S2 against an S1 that lies."""

from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from faircount.protocol import EXPLICIT, MASKED, resume
from faircount.protocol.roles.coordinator import give_up
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit.messages import SumUpload
from faircount.protocol.topologies.masked.messages import MaskedSum, Ready
from faircount.protocol.topologies.peers import one_sum
from faircount.protocol.topologies.peers.messages import PeersIncluded
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import Reason, Receipt, SyncState
from faircount.protocol.wire.signing import Link, link_to, sign

N, MINIMUM = 8, 5


@pytest.fixture(params=["masked", "explicit"])
def claimed(request, stage, masked) -> Any:
    """Everybody has sent, S1 has claimed, and S2 has answered: the receipt is heard, its set is not."""
    if request.param == "masked":
        play = masked("shared", n=N, k=N - 1, t=3, minimum=MINIMUM)
    else:
        play = stage(EXPLICIT, N, minimum=MINIMUM)
        play.enrol_all()
        play.share_all()
    (claim,) = play.sum_all()
    receipt, play.true_set = play.tell_s2(claim)
    assert play.tell_s1(receipt) != ()
    return play


def named(play, places, **change) -> Any:
    """S2's word for a set, signed where the true one stands."""
    s1 = play.s1
    stated = PeersIncluded(
        s1.params.survey, s1.claim_hash, s1.claim.set_digest, bitmap(places, N), one_sum.root_of(s1, places)
    )
    return play.instead(replace(stated, **change))


def test_the_true_set_brings_one_sum_and_asking_again_the_same(claimed) -> None:
    (first,) = claimed.sums(claimed.tell_s1(claimed.true_set))
    assert claimed.sums(resume(claimed.s1)) == [first]
    assert claimed.tell_s1(claimed.true_set) == ()
    claimed.settle(resume(claimed.s1))
    assert claimed.counts() == [1] * N


@pytest.mark.parametrize("few", [(0,), (0, 1), range(MINIMUM - 1)])
def test_no_sum_over_fewer_than_the_minimum(claimed, few) -> None:
    out = claimed.tell_s1(named(claimed, few))
    assert claimed.sums(out) == claimed.sums(resume(claimed.s1)) == []
    assert b"are needed" in claimed.s1.final.says.reason or claimed.s1.attempt == 2


def test_calling_good_seeds_bad_leaves_their_senders_out_and_tells_nothing(claimed) -> None:
    """Both attacks of version 0.1 began so: a false bad blob, then a second sum, or a key."""
    out = claimed.tell_s1(named(claimed, range(N - 1)))
    assert claimed.sums(out) == []
    assert claimed.s1.state is (State.RECOVERING if claimed.params.topology is MASKED else State.SUBMITTING)
    kind = MaskedSum if claimed.params.topology is MASKED else SumUpload
    assert (kind.tag, claimed.s1.claim.set_digest, N - 1) not in claimed.s1.uploads._written  # its vector is gone


@pytest.mark.parametrize(
    "change",
    [{"members": b""}, {"members": b"\xff\xff"}, {"set_digest": bytes(32)}, {"root": bytes(32)}],
)
def test_a_set_that_is_none_of_the_claim_ends_the_survey(claimed, change) -> None:
    assert claimed.sums(claimed.tell_s1(named(claimed, range(N), **change))) == []
    assert claimed.s1.state is State.ABORTED
    assert claimed.s1.uploads.is_scrubbed
    assert claimed.tell_s1(claimed.true_set) == ()


@pytest.mark.parametrize("second", [range(MINIMUM), range(1, N), (0,)])
def test_a_second_set_ends_the_survey(claimed, second) -> None:
    (first,) = claimed.sums(claimed.tell_s1(claimed.true_set))
    out = claimed.tell_s1(named(claimed, second))
    assert claimed.sums(out) == []
    assert claimed.s1.state is State.ABORTED
    assert first.total


def test_a_second_set_after_a_smaller_one_ends_the_survey_without_a_sum(claimed) -> None:
    claimed.tell_s1(named(claimed, range(N - 1)))
    assert claimed.sums(claimed.tell_s1(named(claimed, range(1, N)))) == []
    assert claimed.s1.state is State.ABORTED


def test_no_set_is_heard_before_the_receipt(claimed) -> None:
    claimed.s1 = replace(claimed.s1, receipt=None)
    assert claimed.sums(claimed.tell_s1(claimed.true_set)) == []
    assert claimed.s1.included is None


def test_another_claim_after_the_sum_ends_the_survey(claimed) -> None:
    """S2 says that a smaller claim stands, with a receipt and a set: the difference would be one user's vector."""
    claimed.tell_s1(claimed.true_set)
    said, claim = claimed.s2.statements, claimed.s1.claim
    other = replace(claim, attempt=2)
    receipt = next(each.says for each in said if isinstance(each.says, Receipt))
    hashed = sha256(encode(other)).digest()
    chain = [each.signed for each in said]
    for says in (replace(receipt, claim_hash=hashed), replace(said[2].says, claim_hash=hashed)):
        before = link_to(chain[-1])
        chain.append(sign(claimed.s2.key, Party.S2, says, Link(before.number + 1, before.hash)))
    state = SyncState(claim.survey, encode(claimed.s2.roster), encode(other), tuple(chain))
    out = claimed.tell_s1(sign(claimed.s2.key, Party.S2, state))
    assert claimed.sums(out) == []
    assert b"another claim" in claimed.s1.final.says.reason


def test_a_claim_of_s2s_whose_digest_is_that_of_another_set_is_none(stage) -> None:
    """`explicit`: S1 looked for vectors under one digest, and added up under the other: it raised."""
    play = stage(EXPLICIT, n=N)
    play.enrol_all()
    play.share_all()
    play.sum_all()
    claim, roster = play.s1.claim, encode(play.s2.roster)
    for members in (range(1, N), range(N)):
        blobs = tuple(claim.blobs[j] for j in members)
        digest = claim.set_digest if len(blobs) < N else bytes(32)
        other = replace(claim, members=bitmap(members, N), blobs=blobs, set_digest=digest)
        receipt = Receipt(claim.survey, sha256(encode(other)).digest(), b"0", b"0", b"", 1, 1, bytes(32))
        seal = play.s2.statements[0].signed
        said = sign(play.s2.key, Party.S2, receipt, Link(2, link_to(seal).hash))
        state = SyncState(claim.survey, roster, encode(other), (seal, said))
        (answer,) = play.tell_s1(sign(play.s2.key, Party.S2, state))
        assert answer.why is Reason.MALFORMED


def test_a_set_with_somebody_who_was_not_claimed_ends_the_survey(masked) -> None:
    play = masked("shared", n=N, k=N - 1, t=3, minimum=MINIMUM)
    receipt, _ = play.tell_s2(play.sum_all(skip=(3,))[0])
    play.tell_s1(receipt)
    assert play.sums(play.tell_s1(named(play, range(N)))) == []
    assert b"none of the claim" in play.s1.final.says.reason


def test_a_result_over_another_set_is_refused(claimed) -> None:
    (total,) = claimed.tell_s1(claimed.true_set)
    (published,) = claimed.tell_s2(total)
    other = replace(claimed.said_by_s2(published), root=bytes(32))
    (answer,) = claimed.tell_s1(sign(claimed.s2.key, Party.S2, other, Link(published.number, published.previous)))
    assert answer.why is Reason.WRONG_DIGEST
    assert claimed.s1.state is State.OPENED
    claimed.tell_s1(published)
    assert claimed.counts() == [1] * N


def test_what_users_sent_is_deleted_after_the_result(claimed) -> None:
    claimed.settle((claimed.true_set,))
    assert claimed.s1.uploads.is_scrubbed
    assert claimed.s1.own.total is None
    assert claimed.s2.box.secret == b""


def test_s2_takes_one_sum_over_the_set_that_it_named(claimed) -> None:
    """A lying S1 sends sums over nothing, over another set, and a second one."""
    (total,) = claimed.tell_s1(claimed.true_set)
    own = claimed.s1.own.total
    other = claimed.by_s1(replace(own, included_hash=bytes(32)))
    assert claimed.said_by_s2(claimed.tell_s2(other)[0]).reason == Reason.WRONG_DIGEST
    (published,) = claimed.tell_s2(total)
    assert claimed.tell_s2(claimed.by_s1(replace(own, total=bytes(len(own.total))))) == (published,)


def test_an_abort_before_s2_is_ready_costs_nothing_and_after_it_everything(claimed) -> None:
    charge = claimed.params.survey
    wish = give_up(claimed.s1, "the owner has had enough")[1]
    claimed.settle(wish)
    assert claimed.s2.ledger.find(charge).status is Status.SPENT  # all seeds were open: S1 may have sent its sum


def test_ready_is_heard_only_while_keys_are_recovered(claimed) -> None:
    if claimed.params.topology is MASKED:
        claimed.tell_s1(named(claimed, range(MINIMUM - 1)))
    out = claimed.tell_s1(claimed.instead(Ready(claimed.params.survey, claimed.s1.claim_hash)))
    assert claimed.sums(out) == []
