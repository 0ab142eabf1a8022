"""`explicit`: what S2 admits, refuses and opens."""

from dataclasses import replace

import numpy as np
import pytest

from faircount.protocol import EXPLICIT
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit import coordinator as explicit_coordinator
from faircount.protocol.topologies.explicit import user as explicit_user
from faircount.protocol.topologies.explicit.messages import Call, SumUpload
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import Edge
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import (
    BadBlobs,
    Batch,
    Reason,
    Receipt,
    Refused,
)
from faircount.protocol.wire.roster_messages import BadEntries, Seal
from faircount.protocol.wire.signing import sign

E = EXPLICIT


def ready(stage, **terms):
    play = stage(E, **terms)
    play.enrol_all()
    return play


def test_sums_that_do_not_open_allow_one_further_claim_without_them(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    assert play.s2.claims == 1
    assert play.s2.state is State.SUBMITTING
    assert (play.s1.attempt, play.s1.members) == (2, (0, 1, 2, 3, 5))
    play.settle(play.sum_all())
    assert play.counts() == [1, 1, 1, 1, 0, 1]
    kinds = [type(play.said_by_s2(each)).__name__ for each in play.s2.statements]
    assert kinds == ["Seal", "Receipt", "BadBlobs", "Receipt", "Published"]


def test_after_the_further_claim_there_is_none(stage) -> None:
    play = ready(stage)
    play.share_all()
    for attempt, who in ((1, 4), (2, 3)):
        assert play.s1.attempt == attempt
        play.spoil(who)
        play.settle(play.sum_all(skip=(who,)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_the_further_claim_may_not_name_who_did_not_open(stage) -> None:
    play = ready(stage)
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    wanted = explicit_coordinator.current_set(replace(play.s1, members=(0, 1, 2, 3, 4)))
    claim = replace(
        play.s2.claim,
        attempt=2,
        members=wanted.bits,
        set_digest=wanted.set_digest,
        blob_hashes=play.s2.claim.blob_hashes[:5],
    )
    answer, receipt = play.tell_s2(play.by_s1(claim))
    assert play.said_by_s2(answer).reason == Reason.CONFLICT
    assert isinstance(play.said_by_s2(receipt), Receipt)  # an S1 that was restored learns what stands


def claimed(stage):
    play = ready(stage)
    play.share_all()
    (claim,) = play.sum_all()
    return play, claim


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"set_digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"attempt": 0}, Reason.WRONG_DIGEST),
        ({"members": b"\xff"}, Reason.MALFORMED),
        ({"members": b"\x1f"}, Reason.MALFORMED),
        ({"removed": (Edge(1, 0),)}, Reason.MALFORMED),
        ({"removed": (Edge(0, 1), Edge(0, 1))}, Reason.MALFORMED),
        ({"blob_hashes": ()}, Reason.MALFORMED),
    ],
)
def test_claims_that_s2_refuses(stage, change, reason) -> None:
    play, _ = claimed(stage)
    (answer,) = play.tell_s2(play.by_s1(replace(play.s1.claim, **change)))
    refused = play.said_by_s2(answer)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert play.s2.claim is None


@pytest.mark.parametrize(
    ("attempt", "removed", "reason"),
    [(4, frozenset(), Reason.TOO_MANY_ATTEMPTS), (1, {(0, j) for j in range(1, 6)}, Reason.DISCONNECTED)],
)
def test_well_formed_sets_that_s2_refuses(stage, attempt, removed, reason) -> None:
    play, _ = claimed(stage)
    wanted = explicit_coordinator.current_set(replace(play.s1, attempt=attempt, removed=frozenset(removed)))
    claim = replace(play.s1.claim, attempt=attempt, removed=wanted.edges, set_digest=wanted.set_digest)
    (answer,) = play.tell_s2(play.by_s1(claim))
    assert play.said_by_s2(answer).reason == reason


def test_too_small_a_set_is_refused(stage) -> None:
    play, _ = claimed(stage)
    wanted = explicit_coordinator.current_set(replace(play.s1, members=(0, 1)))
    small = replace(
        play.s1.claim, members=wanted.bits, set_digest=wanted.set_digest, blob_hashes=play.s1.claim.blob_hashes[:2]
    )
    (answer,) = play.tell_s2(play.by_s1(small))
    assert play.said_by_s2(answer).reason in (Reason.TOO_FEW, Reason.DISCONNECTED)


def test_sums_made_for_another_set_do_not_open(stage) -> None:
    """S1 shows users different sets: S2 opens only what was sealed under the claimed one."""
    play, _ = claimed(stage)
    fooled = explicit_coordinator.current_set(replace(play.s1, members=(0, 1, 2, 3)))
    other = Call(play.setup.params.survey, 1, fooled.bits, (), tuple(b"" for _ in range(3)))
    fresh = replace(play.people[0], last=None, bodies=(), opened=np.ones(6, dtype=bool))
    body = explicit_user._body(fresh, fooled, play.entropy)
    assert isinstance(other, Call)
    assert isinstance(body, SumUpload)
    assert play.tell_s1(body)[0].why is Reason.LATE  # S1 itself would not take it
    key = SumUpload.tag, explicit_coordinator.current_set(play.s1).set_digest, 0
    del play.s1.uploads._hashes[key]
    play.s1.uploads.put(key, body)
    play.s1 = replace(play.s1, claim=None, state=State.SUBMITTING)
    play.settle(play.deadline())
    assert isinstance(play.said_by_s2(play.s2.last(BadBlobs)), BadBlobs)


def test_an_invented_roster_entry_is_named_and_left_out(stage) -> None:
    play = stage(E)
    joined = [user.join(play.setup.params, each, play.entropy) for each in play.setup.invitations]
    for i, each in enumerate(joined):
        play.tell_s1(replace(each.enrolment, mac=bytes(32)) if i == 2 else each.enrolment)
    (request,) = play.deadline()
    (answer,) = play.tell_s2(request)
    assert isinstance(play.said_by_s2(answer), BadEntries)
    play.settle((answer,))
    assert play.s1.state is State.SHARING
    assert play.s1.n == 5


def test_one_roster_is_sealed(stage) -> None:
    play = ready(stage)
    smaller = replace(play.s2.roster, entries=play.s2.roster.entries[1:])
    refused, stored = play.tell_s2(play.by_s1(smaller))
    assert play.said_by_s2(refused).reason == Reason.CONFLICT
    assert isinstance(play.said_by_s2(stored), Seal)
    assert play.tell_s2(play.by_s1(play.s2.roster)) == (stored,)


def test_blobs_of_another_claim_are_refused(stage) -> None:
    play, claim = claimed(stage)
    play.tell_s2(claim)
    wrong = play.by_s1(Batch(play.setup.params.survey, bytes(32), ()))
    assert play.said_by_s2(play.tell_s2(wrong)[0]).reason == Reason.CONFLICT


def test_nobody_may_be_lost_between_the_claims(stage) -> None:
    """S2 has opened user 2's sum over the first set: one over a smaller set would give it the difference."""
    play = stage(EXPLICIT)
    play.enrol_all()
    play.share_all()
    play.spoil(4)
    play.settle(play.sum_all(skip=(4,)))
    assert play.s1.members == (0, 1, 2, 3, 5)
    smaller = explicit_coordinator.current_set(replace(play.s1, members=(0, 1, 3, 5)))
    claim = replace(
        play.s2.claim,
        attempt=2,
        members=smaller.bits,
        set_digest=smaller.set_digest,
        blob_hashes=play.s2.claim.blob_hashes[:4],
    )
    refused, _ = play.tell_s2(sign(play.s1.key, Party.S1, claim))
    assert b"without the bad blobs" in play.said_by_s2(refused).detail
    play.settle(play.sum_all(skip=(2,)))
    assert play.s1.state is play.s2.state is State.ABORTED
    assert b"set is final" in play.said_by_s2(play.s1.final).reason
