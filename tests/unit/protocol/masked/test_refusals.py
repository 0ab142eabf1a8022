"""`masked`: what S1, S2 and users refuse: other sets, other keys, bad blobs, sets that fall apart."""

from dataclasses import replace

import pytest

from faircount.protocol import decode, resume
from faircount.protocol.roles import coordinator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.masked import coordinator as masked_rules
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import (
    MaskedClaim,
    MaskedSum,
)
from faircount.protocol.topologies.peers.peer_set import PeerSet
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import (
    Reason,
    Refused,
    Rejected,
)
from faircount.protocol.wire.sealing import SEALED_SEED


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


def test_who_sends_a_seed_that_does_not_open_is_dropped(masked) -> None:
    play = masked("shared")
    play.spoil(4)
    play.settle(play.sum_all(skip=(4, 9)))
    kinds = [type(play.said_by_s2(each)).__name__ for each in play.s2.statements]
    assert kinds == ["Seal", "Receipt", "PeersIncluded"]
    assert (MaskedSum.tag, play.s1.own.set_digest, 4) not in play.s1.uploads._written  # its vector is deleted
    play.settle(play.recover())
    assert play.counts() == without(20, 4, 9)


def test_a_mask_key_that_s1_changes_in_the_claim_gives_no_result(masked) -> None:
    play = masked("shared", attempts=1)
    play.sum_all(skip=(3,))
    keys = list(play.s1.claim.mask_keys)
    keys[3] = keys[4]
    play.s1 = coordinator.with_claim(play.s1, replace(play.s1.claim, mask_keys=tuple(keys)))
    play.settle(resume(play.s1))
    play.settle(play.recover())
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.held is None
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.RELEASED


def test_seeds_whose_senders_cannot_be_recovered_cost_an_attempt(masked) -> None:
    """Nine users are needed for each key: with four dropped, the eight others cannot, and begin again by themselves."""
    play = masked("shared", t=9, minimum=7, n=12, k=11)
    for i in range(3):
        play.spoil(i)
    play.settle(play.sum_all(skip=range(3)))
    assert (play.s1.attempt, play.s1.state) == (1, State.RECOVERING)
    play = masked("shared", t=9, minimum=7, n=12, k=11)
    for i in range(4):
        play.spoil(i)
    play.settle(play.sum_all(skip=range(4)))
    assert play.s1.state is play.s2.state is State.ABORTED  # nobody has nine neighbours among eight
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.RELEASED


def test_too_few_seeds_that_open_end_the_survey(masked) -> None:
    play = masked("shared", t=2, minimum=8, n=12, k=11)
    for i in range(5):
        play.spoil(i)
    play.settle(play.sum_all(skip=range(5)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"7 seeds open, 8 are needed" in play.said_by_s2(play.s1.final).reason


def test_a_mask_key_of_low_order_is_refused_by_everybody(masked) -> None:
    """With such a key every pair agrees on zeros, and S2 would know the mask."""
    zeros, play = bytes(32), masked("enrolled")
    assert play.tell_s1(replace(play.people[0].bundle, mask_key=zeros))[0].why is Reason.MALFORMED
    play.share_all()
    call = play.visit(0)
    _, answer = masked_user.answer_call(
        play.people[0], replace(call, mask_keys=(zeros, *call.mask_keys[1:])), play.entropy
    )
    assert answer.why is Reason.MALFORMED
    claim = altered(play, range(20), range(20), mask_keys=(zeros, *(each.mask.public for each in play.people[1:])))
    assert play.said_by_s2(play.tell_s2(play.by_s1(claim))[0]).reason == Reason.MALFORMED


def test_a_user_takes_no_part_if_few_neighbours_have_shared_with_it(masked) -> None:
    """S1 puts keys of its own in the place of the neighbours': their shares beside them do not open."""
    play = masked("shared")
    call = play.visit(0)
    own = tuple(play.s2.sealing.keypair(play.entropy).public for _ in call.mask_keys)
    for changed, fine in ((5, True), (6, False)):
        shown = replace(call, mask_keys=(*own[:changed], *call.mask_keys[changed:]))
        answer = masked_user.answer_call(play.people[0], shown, play.entropy)[1]
        assert isinstance(answer, MaskedSum) == fine


def test_a_sum_made_for_another_set_does_not_open(masked) -> None:
    """S1 shows a user another set than the others: its sum cannot be combined with theirs."""
    play = masked("shared")
    call = play.visit(0)
    other = PeerSet(play.s1.digest, 1, 20, tuple(i for i in range(20) if i != 15))
    live = list(play.people[0].placed.neighbours)
    kept = [at for at, j in enumerate(live) if j != 15]
    shown = replace(
        call,
        members=other.bits,
        mask_keys=tuple(call.mask_keys[at] for at in kept),
        blobs=tuple(call.blobs[at] for at in kept),
    )
    _, body = masked_user.answer_call(play.people[0], shown, play.entropy)
    assert play.tell_s1(body)[0].why is Reason.LATE  # S1 itself would not take it
    body = replace(body, keys_digest=masked_rules._keys_around(play.s1, 0))
    play.s1.uploads.put((MaskedSum.tag, play.s1.own.set_digest, 0), body)
    play.settle(play.sum_all(skip=(0,)))
    assert 0 not in play.s1.own.included
    play.settle(play.recover())
    assert play.counts() == without(20, 0)


def cut_off(play):
    """Two users on the ring, and the eight around them without whom they are alone."""
    order = play.s1.own.graph.order.tolist()
    return set(order[8:10]), set(order[4:8]) | set(order[10:14])


@pytest.mark.parametrize(("attempts", "ends"), [(1, State.ABORTED), (2, State.PUBLISHED)])
def test_who_is_cut_off_is_dropped_before_the_claim(masked, attempts, ends) -> None:
    play = masked("shared", attempts=attempts)
    alone, around = cut_off(play)
    play.settle(play.sum_all(skip=around))
    assert play.s2.claim is None
    if attempts == 2:
        assert set(play.s1.members) == set(range(20)) - alone - around
        play.settle(play.sum_all())
        assert play.counts() == without(20, *alone, *around)
    assert play.s1.state is play.s2.state is ends


def test_who_is_cut_off_while_sharing_is_not_in_the_set(masked) -> None:
    play = masked("enrolled")
    alone, around = cut_off(play)
    play.share_all(skip=around)
    assert set(play.s1.members) == set(range(20)) - alone - around
    play.settle(play.sum_all())
    assert play.counts() == without(20, *alone, *around)


def altered(play, everybody, part, **change):
    wanted = PeerSet(play.s1.digest, 1, 20, tuple(sorted(everybody)))
    hashes = tuple(bytes(SEALED_SEED) for _ in part)
    keys = tuple(play.people[i].mask.public for i in wanted.members)
    bits = bitmap(part, 20)
    claim = MaskedClaim(play.setup.params.survey, play.s1.digest, 1, wanted.bits, bits, wanted.set_digest, keys, hashes)
    return replace(claim, **change)


def test_s2_refuses_a_part_that_falls_apart_or_cannot_be_recovered(masked) -> None:
    play = masked("shared")
    alone, around = cut_off(play)
    everybody = set(range(20))
    for included, reason in (
        (everybody - around, Reason.DISCONNECTED),
        (everybody - around - alone, Reason.DISCONNECTED),
    ):
        claim = altered(play, everybody, included)
        (answer,) = play.tell_s2(play.by_s1(claim))
        assert play.said_by_s2(answer).reason == reason
    assert play.s2.claim is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"attempt": 2}, Reason.WRONG_DIGEST),
        ({"members": bytes(2)}, Reason.MALFORMED),
        ({"members": b"\xff\xff\xff"}, Reason.MALFORMED),
        ({"included": bytes(3)}, Reason.MALFORMED),
        ({"mask_keys": ()}, Reason.MALFORMED),
        ({"mask_keys": (b"\xff" * 32,) * 20}, Reason.MALFORMED),
        ({"blobs": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(masked, change, reason) -> None:
    play = masked("shared")
    (answer,) = play.tell_s2(play.by_s1(altered(play, range(20), range(20), **change)))
    refused = play.said_by_s2(answer)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert play.s2.claim is None


def test_attempts_have_an_end_at_s2_too(masked) -> None:
    play = masked("shared", attempts=1)
    wanted = PeerSet(play.s1.digest, 2, 20, tuple(range(20)))
    claim = altered(play, range(20), range(20), attempt=2, set_digest=wanted.set_digest)
    assert play.said_by_s2(play.tell_s2(play.by_s1(claim))[0]).reason == Reason.TOO_MANY_ATTEMPTS


def test_too_small_a_part_is_refused(masked) -> None:
    play = masked("shared", n=6, k=5, t=2, minimum=4)
    wanted = PeerSet(play.s1.digest, 1, 6, tuple(range(6)))
    keys = tuple(each.mask.public for each in play.people)
    three = bitmap((0, 1, 2), 6), wanted.set_digest, keys, (bytes(32),) * 3
    claim = MaskedClaim(play.setup.params.survey, play.s1.digest, 1, wanted.bits, *three)
    assert play.said_by_s2(play.tell_s2(play.by_s1(claim))[0]).reason == Reason.TOO_FEW


@pytest.mark.parametrize("at", [2, 60, -20, -1])
def test_a_blob_that_changed_on_its_way_is_not_acknowledged(masked, at) -> None:
    """Else the sender's retry would be a conflict, and S2 would get nearly its vector, and then its key."""
    play = masked("shared")
    play.people[3], body = masked_user.answer_call(play.people[3], play.visit(3), play.entropy)
    wire = bytearray(encode(body))
    wire[at] ^= 4
    assert isinstance(decode(bytes(wire)), Rejected)
    play.tell_s1(body)
    play.settle(play.sum_all(skip=(3,)))
    assert play.counts() == [1] * 20
