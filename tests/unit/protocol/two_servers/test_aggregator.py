"""`servers`: which manifests and shares the aggregator accepts, and which it refuses."""

from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest

from faircount.core.errors import ProtocolError, StaleLedgerError
from faircount.protocol import SERVERS
from faircount.protocol.roles.aggregator import aggregator_step_with
from faircount.protocol.survey.budget import Ledger, Status, compare_and_swap
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers.messages import AggregateShare
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.messages import (
    Aborted,
    Acknowledgement,
    PartShares,
    Reason,
    Refusal,
    SyncRequest,
)
from faircount.protocol.wire.signing import sign
from faircount.sharing.packing import pack

S = SERVERS


def test_encrypted_shares_before_the_manifest_are_refused(stage) -> None:
    play = stage(S)
    play.answer_all()
    early = play.by_s1(PartShares(play.setup.params.survey, bytes(32), (b"x",)))
    (answer,) = play.send_to_s2(early)
    assert play.read_from_s2(answer).reason == Reason.EARLY


def test_another_manifest_gets_a_conflict_and_the_stored_reservation(stage) -> None:
    play = stage(S)
    play.answer_all()
    (manifest,) = play.deadline()
    (reservation,) = play.send_to_s2(manifest)
    assert play.send_to_s2(manifest) == (reservation,)
    smaller = replace(play.s1.manifest, entries=play.s1.manifest.entries[1:])
    refused, stored = play.send_to_s2(play.by_s1(smaller))
    assert play.read_from_s2(refused).reason == Reason.CONFLICT
    assert stored == reservation
    assert play.s2.manifest == play.s1.manifest


@pytest.mark.parametrize("spoil", ["order", "twice", "two keys", "params", "few"])
def test_manifests_that_the_aggregator_refuses(stage, spoil) -> None:
    play = stage(S)
    play.answer_all()
    play.deadline()
    entries = play.s1.manifest.entries
    bad = {
        "order": replace(play.s1.manifest, entries=entries[::-1]),
        "twice": replace(play.s1.manifest, entries=(entries[0], *entries)),
        "two keys": replace(
            play.s1.manifest,
            entries=(replace(entries[0], public_key=bytes(31) + b"\x09"), *entries),
        ),
        "params": replace(play.s1.manifest, digest=bytes(32)),
        "few": replace(play.s1.manifest, entries=entries[:2]),
    }[spoil]
    (answer,) = play.send_to_s2(play.by_s1(bad))
    assert isinstance(play.read_from_s2(answer), Refusal)
    assert play.s2.manifest is None
    assert play.s2.phase is Phase.ENROLLING


def test_the_aggregator_reads_only_what_the_coordinator_signed(stage) -> None:
    play = stage(S)
    play.answer_all()
    (manifest,) = play.deadline()
    forged = replace(manifest, signature=bytes(64))
    assert play.send_to_s2(forged)[0].why is Reason.UNSIGNED
    assert play.send_to_s2(play.s1.manifest)[0].why is Reason.UNSIGNED
    assert (
        play.send_to_s1(sign(play.s1.key, Party.AGGREGATOR, SyncRequest(bytes(16))))[0].why
        is Reason.UNSIGNED
    )


def test_a_wrong_batch_is_refused_and_the_right_one_still_taken(stage) -> None:
    play = stage(S)
    play.answer_all()
    (manifest,) = play.deadline()
    (batch,) = play.send_to_s1(play.send_to_s2(manifest)[0])
    encrypted_shares = [
        play.s1.view.first_messages[entry.user].encrypted_share
        for entry in play.s1.manifest.entries
    ]
    wrong = PartShares(
        play.setup.params.survey,
        play.s1.manifest_hash,
        (*encrypted_shares[:-1], bytes(ENCRYPTED_SEED_BYTES)),
    )
    assert play.read_from_s2(play.send_to_s2(play.by_s1(wrong))[0]).reason == Reason.WRONG_SHARES
    play.settle((batch,))
    assert play.counts() == [1] * 6


def test_a_report_that_cannot_be_decrypted_is_left_out(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    spoiled = replace(play.people[3].report, encrypted_share=bytes(ENCRYPTED_SEED_BYTES))
    assert isinstance(play.send_to_s1(spoiled)[0], Acknowledgement)
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 0, 1, 1]


def test_a_report_with_a_swapped_share_is_left_out(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    q = play.setup.params.q
    N = play.setup.params.N
    swapped = replace(play.people[3].report, share=pack(np.zeros(N, dtype=np.uint8), q))
    play.send_to_s1(swapped)
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 0, 1, 1]


def test_an_entry_without_a_valid_mac_is_left_out(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    play.send_to_s1(replace(play.people[3].report, mac=bytes(32)))
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 1, 0, 1, 1]


def test_too_many_entries_without_a_valid_mac_abort_without_a_charge(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(0, 1, 2, 3))
    for i in range(4):
        play.send_to_s1(replace(play.people[i].report, mac=bytes(32)))
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.charges == ()


def test_too_many_reports_that_cannot_be_decrypted_abort_and_charge(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(0, 1, 2, 3))
    for i in range(4):
        play.send_to_s1(replace(play.people[i].report, encrypted_share=bytes(ENCRYPTED_SEED_BYTES)))
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def test_over_budget_aborts_without_a_charge(stage) -> None:
    play = stage(S)
    play.s2 = play.s2.replace_fields(ledger=Ledger("", 0.5, 1.0))
    play.answer_all()
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.charges == ()


def two_manifests(stage, first=None, second=None):
    """Two surveys of one population, both about to send their manifests, and a budget for one."""
    plays = [
        stage(S, seed=seed, **(own_terms or {}))
        for seed, own_terms in zip((1, 2), (first, second), strict=True)
    ]
    for play in plays:
        play.answer_all()
    params = plays[0].setup.params
    assert params.survey != plays[1].setup.params.survey
    return [(play, play.deadline()[0]) for play in plays], Ledger("", params.epsilon, params.delta)


def with_ledger(ledger, s2, message):
    return aggregator_step_with(ledger, s2.state, message, s2.rows)


def test_two_surveys_cannot_reserve_the_same_budget(stage) -> None:
    """In an earlier version both had a copy of the ledger in their states, and both reserved."""
    ((first, one), (second, other)), ledger = two_manifests(stage)
    after, _ = with_ledger(ledger, first.s2, one)
    both, _ = with_ledger(ledger, second.s2, other)
    stored = compare_and_swap(ledger, ledger, after)
    with pytest.raises(StaleLedgerError):
        compare_and_swap(stored, ledger, both)
    again, step = with_ledger(stored, second.s2, other)
    (answer,) = step.messages
    assert second.read_from_s2(answer).code == EndCode.OVER_BUDGET
    assert step.state.phase is Phase.ABORTED
    assert again == stored


def test_groups_add_up_as_long_as_nothing_proves_that_they_are_disjoint(stage) -> None:
    """Otherwise fifty surveys of epsilon 1, one per group, would fit into a budget of 1."""
    north = {"purpose": "people in the north"}
    south = {"purpose": "people in the south"}
    ((first, one), (second, other)), ledger = two_manifests(stage, north, south)
    after, _ = with_ledger(ledger, first.s2, one)
    _, step = with_ledger(after, second.s2, other)
    assert step.state.phase is Phase.ABORTED


def test_the_reservation_of_a_survey_keeps_its_own_number(stage) -> None:
    ((first, one), (second, other)), ledger = two_manifests(stage)
    ledger = replace(ledger, epsilon=9.0, delta=9.0)
    ledger, step = with_ledger(ledger, first.s2, one)
    (mine,) = step.messages
    ledger, step = with_ledger(ledger, second.s2, other)
    (theirs,) = step.messages
    numbers = [first.read_from_s2(mine).number, second.read_from_s2(theirs).number]
    heads = [first.read_from_s2(mine).head, second.read_from_s2(theirs).head]
    assert (numbers, heads) == ([1, 2], list(ledger.heads))


def test_the_ledger_must_be_the_populations(stage) -> None:
    play = stage(S, population="customers")
    play.s2 = play.s2.replace_fields(ledger=Ledger("staff", 9.0, 1.0))
    play.answer_all()
    with pytest.raises(ProtocolError, match="another population"):
        play.settle(play.deadline())


def test_a_sum_out_of_range_is_corrupt_and_charged(stage) -> None:
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(2):
        out = play.send_to_s1(play.send_to_s2(out[0])[0])
    # The total would be six votes for each of six items.
    everybody_everywhere = (6 - play.s2.partial_sum.astype(np.int64)) % 7
    packed = pack(everybody_everywhere.astype(np.uint8), 7)
    wrong = AggregateShare(play.setup.params.survey, _accepted_hash(play), packed)
    (answer,) = play.send_to_s2(play.by_s1(wrong))
    aborted = play.read_from_s2(answer)
    assert isinstance(aborted, Aborted)
    assert (aborted.code, aborted.spent) == (EndCode.CORRUPT_SUM, 1)
    assert play.s2.ledger.find(play.setup.params.survey).status is Status.SPENT


def _accepted_hash(play) -> bytes:
    return sha256(play.s1.accepted.signed.payload).digest()


def test_a_sum_over_another_set_is_refused(stage) -> None:
    play = stage(S)
    play.answer_all()
    out = play.deadline()
    for _ in range(2):
        out = play.send_to_s1(play.send_to_s2(out[0])[0])
    wrong = AggregateShare(
        play.setup.params.survey, bytes(32), pack(np.zeros(6, dtype=np.uint8), 7)
    )
    assert play.read_from_s2(play.send_to_s2(play.by_s1(wrong))[0]).reason == Reason.WRONG_DIGEST
    play.settle(out)
    assert play.counts() == [1] * 6
