"""TSS and TSS': what the parties refuse, and who learns what."""

from collections import Counter
from dataclasses import replace
from hashlib import sha256

import numpy as np
import pytest
from scipy.stats import chi2

from faircount.protocol import decode
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.inclusion import verify_inclusion
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_stage import user as people
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Election,
    SlotSumRequest,
    SlotSums,
    VanishedHelper,
)
from faircount.protocol.topologies.two_stage.relay import (
    assign_numbers,
    items_of,
    make_election_request,
    present_reporters,
    two_stage_state,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.protocol.wire.messages import Acknowledgement, FinalStatement, InclusionProof, Reason
from faircount.protocol.wire.signing import SigningKey, sign

SAME_ITEMS = dict.fromkeys(range(8), (0, 1, 2))

ALARM = 1e-6


def ones(*without) -> list[int]:
    return [int(i not in without) for i in range(8)]


def election_request(play):
    """The coordinator's request, as it was announced."""
    known = two_stage_state(play.s1)
    return make_election_request(play.s1, known.lists, len(known.order))


def test_the_coordinator_cannot_change_the_m_j_after_the_reveal(two_stage) -> None:
    play = two_stage("elected")
    request = election_request(play)
    other = replace(
        request,
        reporters=(request.reporters[0] + 1, request.reporters[1] - 1, *request.reporters[2:]),
    )
    answer, stored = play.send_to_s2(play.by_s1(other))
    assert play.read_from_s2(answer).reason == Reason.CONFLICT
    assert stored == two_stage_state(play.s1).election.signed
    forged = replace(
        stored, payload=encode(replace(play.read_from_s2(stored), reporters=other.reporters))
    )
    call = replace(play.visit(0), election=forged)
    assert people.send_shares(play.people[0], call, play.entropy)[1].why is Reason.UNSIGNED
    assert play.send_to_s2(play.by_s1(request)) == (stored,)


def test_a_client_takes_part_in_one_election(two_stage) -> None:
    play = two_stage("elected", sets=SAME_ITEMS)
    call = play.visit(0)
    play.people[0], _ = people.send_shares(play.people[0], call, play.entropy)
    election = play.read_from_s2(call.election)
    other = replace(election, reporters=(7, 8, 8, 1, 0, 0, 0, 0))
    second = replace(call, election=sign(play.s2.key, Party.AGGREGATOR, other))
    assert people.send_shares(play.people[0], second, play.entropy)[1].why is Reason.CONFLICT


def test_the_aggregator_must_reveal_what_it_committed_to(two_stage) -> None:
    play = two_stage("drawn")
    play.s2 = play.s2.replace_fields(committed_value=bytes(32))
    play.indicate()
    assert (
        people.send_shares(play.people[0], play.visit(0), play.entropy)[1].why
        is Reason.WRONG_DIGEST
    )


def test_the_value_is_not_revealed_before_the_m_j_are_fixed(two_stage) -> None:
    play = two_stage("drawn")
    assert all(
        play.s2.committed_value not in statement.signed.payload for statement in play.s2.statements
    )
    play.indicate()
    assert play.s2.committed_value in play.s2.statements[-1].signed.payload


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"digest": bytes(32)}, Reason.WRONG_DIGEST),
        ({"reporters": (0,) * 8}, Reason.MALFORMED),
        ({"lists": (bytes(32),) * 7}, Reason.MALFORMED),
    ],
)
def test_requests_that_the_aggregator_refuses(two_stage, change, reason) -> None:
    play = two_stage("drawn")
    (first,) = play.phase()
    wrong = replace(election_request(play), **change)
    # It was not announced.
    assert play.read_from_s2(play.send_to_s2(play.by_s1(wrong))[0]).reason == Reason.CONFLICT
    announced = replace(decode(first.payload), request_hash=sha256(encode(wrong)).digest())
    play.send_to_s2(play.by_s1(announced))
    assert play.read_from_s2(play.send_to_s2(play.by_s1(wrong))[0]).reason == reason
    assert play.s2.last(Election) is None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e[1:3], Reason.TOO_FEW),
        (lambda e: (*e[1:], replace(e[0], place=8)), Reason.MALFORMED),
        (lambda e: (*e[1:], replace(e[0], place=e[1].place)), Reason.MALFORMED),
        (lambda e: (*e[1:], replace(e[0], public_key=e[1].public_key)), Reason.MALFORMED),
    ],
)
def test_announcements_that_the_aggregator_refuses_end_the_survey(
    two_stage, change, reason
) -> None:
    play = two_stage("drawn")
    (first,) = play.phase()
    own = decode(first.payload)
    wrong = replace(own, entries=change(own.entries))
    play.s1 = play.s1.replace_fields(
        topology_state=replace(two_stage_state(play.s1), announcement=wrong)
    )
    (answer,) = play.send_to_s2(play.by_s1(wrong))
    assert play.read_from_s2(answer).reason == reason
    play.settle((answer,))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_a_key_of_the_roster_is_no_reporting_key(two_stage) -> None:
    play = two_stage("drawn")
    (first,) = play.phase()
    own = decode(first.payload)
    wrong = replace(own.entries[0], public_key=play.people[own.entries[0].place].member.keys.public)
    answer = play.send_to_s2(play.by_s1(replace(own, entries=(wrong, *own.entries[1:]))))[0]
    assert play.read_from_s2(answer).reason == Reason.MALFORMED


def test_the_aggregator_reads_one_request_and_the_coordinator_sends_no_other(two_stage) -> None:
    """Two requests would differ by the items of one participant."""
    play = two_stage("drawn")
    before = play.s1.copy()
    for person in play.people.values():
        play.send_to_s1(person.indicator)
    (first,) = play.deadline()
    reservation, announced = play.send_to_s2(first)
    assert play.send_to_s2(first) == (reservation, announced)
    (request,) = play.send_to_s1(announced)
    # The coordinator is rolled back, and does not know it.
    play.s1 = before
    for i in range(7):
        play.send_to_s1(play.people[i].indicator)
    (other,) = play.deadline()
    refused, *_, again = play.send_to_s2(other)
    assert (play.read_from_s2(refused).reason, again) == (Reason.CONFLICT, announced)
    (abort_request,) = play.send_to_s1(again)
    assert b"had announced another election" in decode(abort_request.payload).detail
    # The first request arrives late.
    play.send_to_s2(request)
    play.settle((abort_request,))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    # The request may have been read, so the budget is spent.
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"attempt": 0}, Reason.TOO_MANY_ATTEMPTS),
        ({"attempt": 5}, Reason.TOO_MANY_ATTEMPTS),
        ({"attempt": 2}, Reason.LATE),
        ({"proofs": ()}, Reason.WRONG_DIGEST),
        ({"gone": (VanishedHelper(2, 1),)}, Reason.MALFORMED),
        ({"gone": (VanishedHelper(1, 1),)}, Reason.MALFORMED),
    ],
)
def test_assignments_that_a_reporter_refuses(two_stage, change, reason) -> None:
    play = two_stage("elected")
    same, answer = people.send_shares(
        play.people[0], replace(play.visit(0), **change), play.entropy
    )
    assert answer.why is reason
    assert same is play.people[0]


def test_a_reporter_has_one_list_of_who_is_gone(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.phase(skip=play.holders()[:1])
    i = play.waiting_for(Assignment)[0]
    call = play.visit(i)
    play.act(i)
    other = replace(call, gone=(VanishedHelper(2, (call.gone[0].index + 1) % 8),))
    assert people.send_shares(play.people[i], other, play.entropy)[1].why is Reason.CONFLICT
    nothing_new = replace(call, attempt=3)
    assert people.send_shares(play.people[i], nothing_new, play.entropy)[1].why is Reason.MALFORMED


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda call: {"attempt": 5}, Reason.TOO_MANY_ATTEMPTS),
        (lambda call: {"formed": 2}, Reason.TOO_MANY_ATTEMPTS),
        (lambda call: {"attempt": 2}, Reason.MALFORMED),
        (lambda call: {"members": b"\x03"}, Reason.TOO_FEW),
        (lambda call: {"members": b"\x07\x00"}, Reason.MALFORMED),
        (lambda call: {"tasks": call.tasks[1:]}, Reason.MALFORMED),
        (
            lambda call: {"tasks": (replace(call.tasks[0], slot=7), *call.tasks[1:])},
            Reason.MALFORMED,
        ),
        (lambda call: {"tasks": (_twice(call.tasks[0]), *call.tasks[1:])}, Reason.WRONG_DIGEST),
        (
            lambda call: {"tasks": (replace(call.tasks[0], salt=bytes(32)), *call.tasks[1:])},
            Reason.WRONG_DIGEST,
        ),
        (
            lambda call: {"tasks": (replace(call.tasks[0], listed=b"\xff"), *call.tasks[1:])},
            Reason.WRONG_DIGEST,
        ),
        (
            lambda call: {"tasks": (replace(call.tasks[0], listed=b""), *call.tasks[1:])},
            Reason.WRONG_DIGEST,
        ),
        (lambda call: {"gone": (VanishedHelper(2, 0),)}, Reason.MALFORMED),
    ],
)
def test_sum_requests_that_a_helper_refuses(two_stage, change, reason) -> None:
    play = two_stage("shared")
    i = play.waiting_for(SlotSumRequest)[0]
    call = play.visit(i)
    same, answer = people.answer_sum_request(
        play.people[i], replace(call, **change(call)), play.entropy
    )
    assert answer.why is reason
    assert same is play.people[i]


def _twice(task):
    return replace(task, encrypted_shares=(task.encrypted_shares[0], *task.encrypted_shares))


def test_nobody_sums_two_slots_of_one_item(two_stage) -> None:
    """Not even on request: the slots follow from the election and the vanished helpers."""
    play = two_stage("shared", sets=SAME_ITEMS, k=2)
    i = play.waiting_for(SlotSumRequest)[0]
    call = play.visit(i)
    extra = replace(call.tasks[0], slot=1 - call.tasks[0].slot)
    tasks = tuple(sorted((*call.tasks, extra), key=lambda task: (task.item, task.slot)))
    assert (
        people.answer_sum_request(play.people[i], replace(call, tasks=tasks), play.entropy)[1].why
        is Reason.MALFORMED
    )


def test_a_helper_sums_over_one_set_per_attempt_and_sets_only_shrink(two_stage) -> None:
    play = two_stage("shared")
    i = play.waiting_for(SlotSumRequest)[0]
    call = play.visit(i)
    play.people[i], sums = people.answer_sum_request(play.people[i], call, play.entropy)
    assert isinstance(sums, SlotSums)
    other = replace(call, members=b"\x7f")
    assert people.answer_sum_request(play.people[i], other, play.entropy)[1].why is Reason.CONFLICT
    same_set = replace(call, attempt=2, formed=2)
    assert (
        people.answer_sum_request(play.people[i], same_set, play.entropy)[1].why is Reason.CONFLICT
    )


def test_complaints_name_reporters_of_the_set(two_stage) -> None:
    play = two_stage("shared", skip=(5,))
    i = play.waiting_for(SlotSumRequest)[0]
    for numbers in ((), (two_stage_state(play.s1).order.index(5),), (99,)):
        assert play.complain(i, numbers).why is Reason.MALFORMED
    assert isinstance(play.complain(i, (present_reporters(play.s1)[0][0],)), Acknowledgement)


def test_helpers_do_not_learn_who_reports(two_stage) -> None:
    """Only a number and a key come with a share, and neither is on the roster."""
    play = two_stage("shared", crypto=StandardCrypto())
    for i in play.waiting_for(SlotSumRequest):
        call = encode(play.visit(i))
        assert not any(
            entry.public_key in call or entry.user in call for entry in play.people[i].member.roster
        )


def test_numbers_follow_an_order_that_only_the_coordinator_knows(two_stage) -> None:
    """Who gets number 0, over 2,000 keys; planted error: user 0 gets it 100 times more."""
    play = two_stage("elected")
    assert two_stage_state(play.s1).order == assign_numbers(play.s1, range(8)) != tuple(range(8))
    counts = np.zeros(8)
    for seed in range(2000):
        key = sha256(seed.to_bytes(4, "big")).digest()
        counts[
            assign_numbers(
                play.s1.replace_fields(
                    topology_state=replace(play.s1.topology_state, order_key=key)
                ),
                range(8),
            )[0]
        ] += 1
    # The signing key has no influence on the order.
    other = play.s1.replace_fields(key=SigningKey(bytes(32)))
    assert assign_numbers(other, range(8)) == assign_numbers(play.s1, range(8))
    limit = chi2.isf(ALARM, 7)
    assert ((counts - 250) ** 2 / 250).sum() < limit
    planted = counts + np.where(np.arange(8) == 0, 100.0, -100 / 7)
    assert ((planted - 250) ** 2 / 250).sum() > limit


def test_the_aggregator_learns_the_m_j_once(two_stage) -> None:
    """What the aggregator gets after the election does not depend on a lost reporter's items."""
    sets = {i: tuple(sorted({i, (i + 1) % 8, (i + 2) % 8})) for i in range(8)}
    received = []
    for own in ((0, 1, 2), (5, 6, 7)):
        play = two_stage("shared", k=2, sets={**sets, 0: own}, skip=(0,))
        (manifest,) = play.phase()
        sent = decode(manifest.payload)
        received.append((sent.members, sent.gone, len(sent.encrypted_shares), sent.formed))
        play.settle((manifest,))
        assert play.counts() == ones(0)
    assert received[0] == received[1]


def test_shares_of_all_but_one_slot_reveal_nothing(two_stage) -> None:
    """Every share of every bit is uniform: exact, over all values that can be drawn."""
    play = two_stage("elected", k=2)
    q = play.params.q
    drawn = Counter()
    for bit in (0, 1):
        for first in range(q):
            drawn[bit, (bit - first) % q] += 1
    assert set(drawn.values()) == {1}
    play.act(0)
    person = play.people[0]
    assert person.items == items_of(play.s1, 0)
    assert (
        person.shares.astype(int).reshape(-1, 2).sum(axis=1) % q
    ).tolist() == person.bits.tolist()


def counts(play, i, answer) -> bool:
    return verify_inclusion(play.params, answer, *play.client.entry(play.device(i)))


def test_participants_can_check_that_they_were_counted(two_stage) -> None:
    play = two_stage("shared", skip=(5,))
    play.finish()
    assert isinstance(play.visit(5), FinalStatement)
    answers = {i: play.visit(i) for i in range(8) if i != 5}
    for i, answer in answers.items():
        assert isinstance(answer, InclusionProof)
        assert counts(play, i, answer)
        assert not counts(play, 5, answer)
    forged = replace(answers[7], published=replace(answers[7].published, signature=bytes(64)))
    assert not counts(play, 7, forged)
