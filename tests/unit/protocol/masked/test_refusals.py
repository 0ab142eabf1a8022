"""`masked`: what servers and clients refuse: other sets, other keys, sets that fall apart."""

from dataclasses import replace

import pytest
from stored_rows import put

from faircount.protocol import Step, decode, resume
from faircount.protocol.peers.peer_set import PeerSet
from faircount.protocol.roles import coordinator
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.endings import ending_of, too_few_readable
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.masked import coordinator as masked_rules
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import (
    MaskedManifest,
    MaskedSum,
)
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.digests import bitmap
from faircount.protocol.wire.messages import (
    Reason,
    Refusal,
    Rejection,
)


def without(n, *gone):
    return [int(i not in gone) for i in range(n)]


def test_who_sends_a_seed_that_does_not_open_is_dropped(masked) -> None:
    play = masked("shared")
    play.spoil(4)
    play.settle(play.sum_all(skip=(4, 9)))
    kinds = [type(play.read_from_s2(statement)).__name__ for statement in play.s2.statements]
    assert kinds == ["RosterConfirmation", "Reservation", "AcceptedMembers"]
    assert not play.s1.view.uploads.get(
        (MaskedSum.tag, play.s1.topology_state.set_digest, 4)
    )  # its vector is deleted
    play.settle(play.recover())
    assert play.counts() == without(20, 4, 9)


def test_a_mask_key_that_s1_changes_in_the_claim_gives_no_result(masked) -> None:
    play = masked("shared", attempts=1)
    play.sum_all(skip=(3,))
    keys = list(play.s1.manifest.mask_keys)
    keys[3] = keys[4]
    other = replace(play.s1.manifest, mask_keys=tuple(keys))
    play.s1 = play.s1.write_step(Step(coordinator.with_manifest(play.s1.state, other)))
    play.settle(resume(play.s1.state, play.s1.rows))
    play.settle(play.recover())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.partial_sum is None
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.CANCELLED


def test_seeds_whose_senders_cannot_be_recovered_cost_an_attempt(masked) -> None:
    """Each key needs nine neighbours: with four dropped only eight are left, and they begin again."""
    play = masked("shared", t=9, minimum=7, n=12, k=11)
    for i in range(3):
        play.spoil(i)
    play.settle(play.sum_all(skip=range(3)))
    assert (play.s1.attempt, play.s1.phase) == (1, Phase.UNMASKING)
    play = masked("shared", t=9, minimum=7, n=12, k=11)
    for i in range(4):
        play.spoil(i)
    play.settle(play.sum_all(skip=range(4)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED  # nobody has nine neighbours among eight
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.CANCELLED


def test_too_few_seeds_that_open_end_the_survey(masked) -> None:
    play = masked("shared", t=2, minimum=8, n=12, k=11)
    for i in range(5):
        play.spoil(i)
    play.settle(play.sum_all(skip=range(5)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert ending_of(play.read_from_s2(play.s1.final)) == too_few_readable(7, 8)


def test_a_mask_key_of_low_order_is_refused_by_everybody(masked) -> None:
    """With such a key every pair agrees on zeros, and the aggregator would know the mask."""
    zeros, play = bytes(32), masked("enrolled")
    assert (
        play.send_to_s1(replace(play.people[0].bundle, mask_key=zeros))[0].why is Reason.MALFORMED
    )
    play.share_all()
    call = play.visit(0)
    _, answer = masked_user.answer_sum_request(
        play.people[0], replace(call, mask_keys=(zeros, *call.mask_keys[1:])), play.entropy
    )
    assert answer.why is Reason.MALFORMED
    manifest = altered(
        play,
        range(20),
        range(20),
        mask_keys=(zeros, *(person.mask.public for person in play.people[1:])),
    )
    assert play.read_from_s2(play.send_to_s2(play.by_s1(manifest))[0]).reason == Reason.MALFORMED


def test_a_user_takes_no_part_if_few_neighbours_have_shared_with_it(masked) -> None:
    """The coordinator shows keys of its own: the neighbours' shares do not decrypt beside them."""
    play = masked("shared")
    call = play.visit(0)
    own = tuple(play.s2.crypto.keypair(play.entropy).public for _ in call.mask_keys)
    for changed, fine in ((5, True), (6, False)):
        shown = replace(call, mask_keys=(*own[:changed], *call.mask_keys[changed:]))
        answer = masked_user.answer_sum_request(play.people[0], shown, play.entropy)[1]
        assert isinstance(answer, MaskedSum) == fine


def test_a_sum_made_for_another_set_does_not_open(masked) -> None:
    """The coordinator shows one client another set: its sum cannot be combined with the others."""
    play = masked("shared")
    call = play.visit(0)
    other = PeerSet(play.s1.digest, 1, 20, tuple(i for i in range(20) if i != 15))
    live = list(play.people[0].placed.neighbours)
    kept = [at for at, j in enumerate(live) if j != 15]
    shown = replace(
        call,
        members=other.bits,
        mask_keys=tuple(call.mask_keys[at] for at in kept),
        encrypted_shares=tuple(call.encrypted_shares[at] for at in kept),
    )
    _, body = masked_user.answer_sum_request(play.people[0], shown, play.entropy)
    assert play.send_to_s1(body)[0].why is Reason.LATE  # The coordinator itself would not take it
    body = replace(body, keys_digest=masked_rules._keys_around(play.s1.state, play.s1.view, 0))
    put(play.s1, "uploads", (MaskedSum.tag, play.s1.topology_state.set_digest, 0), body)
    play.settle(play.sum_all(skip=(0,)))
    assert 0 not in play.s1.topology_state.accepted
    play.settle(play.recover())
    assert play.counts() == without(20, 0)


def cut_off(play):
    """Two users on the ring, and the eight around them without whom they are alone."""
    order = play.s1.topology_state.graph.order.tolist()
    return set(order[8:10]), set(order[4:8]) | set(order[10:14])


@pytest.mark.parametrize(("attempts", "ends"), [(1, Phase.ABORTED), (2, Phase.PUBLISHED)])
def test_who_is_cut_off_is_dropped_before_the_manifest(masked, attempts, ends) -> None:
    play = masked("shared", attempts=attempts)
    alone, around = cut_off(play)
    play.settle(play.sum_all(skip=around))
    assert play.s2.manifest is None
    if attempts == 2:
        assert set(play.s1.members) == set(range(20)) - alone - around
        play.settle(play.sum_all())
        assert play.counts() == without(20, *alone, *around)
    assert play.s1.phase is play.s2.phase is ends


def test_who_is_cut_off_while_sharing_is_not_in_the_set(masked) -> None:
    play = masked("enrolled")
    alone, around = cut_off(play)
    play.share_all(skip=around)
    assert set(play.s1.members) == set(range(20)) - alone - around
    play.settle(play.sum_all())
    assert play.counts() == without(20, *alone, *around)


def altered(play, everybody, part, **change):
    wanted = PeerSet(play.s1.digest, 1, 20, tuple(sorted(everybody)))
    hashes = tuple(bytes(ENCRYPTED_SEED_BYTES) for _ in part)
    keys = tuple(play.people[i].mask.public for i in wanted.members)
    bits = bitmap(part, 20)
    manifest = MaskedManifest(
        play.setup.params.survey,
        play.s1.digest,
        1,
        wanted.bits,
        bits,
        wanted.set_digest,
        keys,
        hashes,
    )
    return replace(manifest, **change)


def test_s2_refuses_a_part_that_falls_apart_or_cannot_be_recovered(masked) -> None:
    play = masked("shared")
    alone, around = cut_off(play)
    everybody = set(range(20))
    for included, reason in (
        (everybody - around, Reason.DISCONNECTED),
        (everybody - around - alone, Reason.DISCONNECTED),
    ):
        manifest = altered(play, everybody, included)
        (answer,) = play.send_to_s2(play.by_s1(manifest))
        assert play.read_from_s2(answer).reason == reason
    assert play.s2.manifest is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"attempt": 2}, Reason.WRONG_DIGEST),
        ({"members": bytes(2)}, Reason.MALFORMED),
        ({"members": b"\xff\xff\xff"}, Reason.MALFORMED),
        ({"senders": bytes(3)}, Reason.MALFORMED),
        ({"mask_keys": ()}, Reason.MALFORMED),
        ({"mask_keys": (b"\xff" * 32,) * 20}, Reason.MALFORMED),
        ({"encrypted_shares": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(masked, change, reason) -> None:
    play = masked("shared")
    (answer,) = play.send_to_s2(play.by_s1(altered(play, range(20), range(20), **change)))
    refused = play.read_from_s2(answer)
    assert isinstance(refused, Refusal)
    assert refused.reason == reason
    assert play.s2.manifest is None


def test_attempts_have_an_end_at_s2_too(masked) -> None:
    play = masked("shared", attempts=1)
    wanted = PeerSet(play.s1.digest, 2, 20, tuple(range(20)))
    manifest = altered(play, range(20), range(20), attempt=2, set_digest=wanted.set_digest)
    assert (
        play.read_from_s2(play.send_to_s2(play.by_s1(manifest))[0]).reason
        == Reason.TOO_MANY_ATTEMPTS
    )


def test_too_small_a_part_is_refused(masked) -> None:
    play = masked("shared", n=6, k=5, t=2, minimum=4)
    wanted = PeerSet(play.s1.digest, 1, 6, tuple(range(6)))
    keys = tuple(person.mask.public for person in play.people)
    three = bitmap((0, 1, 2), 6), wanted.set_digest, keys, (bytes(32),) * 3
    manifest = MaskedManifest(play.setup.params.survey, play.s1.digest, 1, wanted.bits, *three)
    assert play.read_from_s2(play.send_to_s2(play.by_s1(manifest))[0]).reason == Reason.TOO_FEW


@pytest.mark.parametrize("at", [2, 60, -20, -1])
def test_a_blob_that_changed_on_its_way_is_not_acknowledged(masked, at) -> None:
    """Otherwise the aggregator would get nearly the vector of a sender, and then its key."""
    play = masked("shared")
    play.people[3], body = masked_user.answer_sum_request(
        play.people[3], play.visit(3), play.entropy
    )
    wire = bytearray(encode(body))
    wire[at] ^= 4
    assert isinstance(decode(bytes(wire)), Rejection)
    play.send_to_s1(body)
    play.settle(play.sum_all(skip=(3,)))
    assert play.counts() == [1] * 20
