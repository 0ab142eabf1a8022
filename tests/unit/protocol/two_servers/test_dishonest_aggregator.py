"""A lying aggregator in the `servers` topology: whatever it signs, the coordinator hands over one sum, over at least the minimum."""

from dataclasses import replace
from hashlib import sha256

import pytest
from stored_rows import spoil

from faircount.protocol import SERVERS, Message, resume
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, BatchManifest
from faircount.protocol.wire.codec import Party, encode, parse
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.messages import (
    Aborted,
    Acknowledgement,
    AdversaryGuarantee,
    Published,
    Reason,
    Refusal,
    Reservation,
    Signed,
    SyncState,
)
from faircount.protocol.wire.signing import UNCHAINED, Link, compute_link


def claimed(stage, n: int = 6):
    """Everybody has answered, the coordinator has its receipt and has sent the blobs."""
    play = stage(SERVERS, n=n)
    play.answer_all()
    play.tell_s1(play.tell_s2(play.deadline()[0])[0])
    return play


def included(play, places, **change) -> AcceptedReports:
    """A set as the aggregator would name it."""
    return replace(named_set(play.s1.manifest, places), **change)


def named_set(manifest: BatchManifest, places) -> AcceptedReports:
    lines = [(manifest.entries[i].user, manifest.entries[i].public_key) for i in places]
    bits = bitmap(places, len(manifest.entries))
    return AcceptedReports(
        manifest.survey, sha256(encode(manifest)).digest(), bits, merkle_root(roster_leaves(lines))
    )


def told(play, *says: Message, manifest: bytes = b"", roster: bytes = b"") -> Signed:
    """A sync state with these statements, properly chained."""
    statements: list[Signed] = []
    for each in says:
        before = compute_link(statements[-1]) if statements else UNCHAINED
        statements.append(play.by_s2(each, Link(before.number + 1, before.hash)))
    return play.by_s2(SyncState(play.params.survey, roster, manifest, tuple(statements)))


# --- one sum, over enough people ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "change", "words"),
    [
        ([2], {}, "1 reports"),
        ([2], {"root": bytes(32)}, "1 reports"),
        ([0, 1], {}, "2 reports"),
        ([], {}, "0 reports"),
        ([0, 1, 2, 3], {"root": bytes(32)}, "root of another"),
        ([0, 1, 2, 3], {"members": b"\xff"}, "not part of the batch"),
        ([0, 1, 2, 3], {"members": b"\x0f\x00"}, "not part of the batch"),
    ],
)
def test_a_set_that_s1_must_not_add_up_ends_the_survey_without_a_sum(
    stage, members, change, words
) -> None:
    """The aggregator named one user, minimum 3, and was handed that user's share: with the seed that is the answer."""
    play = claimed(stage)
    out = play.tell_s1(play.by_s2(included(play, members, **change)))
    assert play.sums(out) == play.sums(resume(play.s1.state, play.s1.rows)) == []
    wish = parse(out[0].payload)
    assert isinstance(wish, Aborted)
    assert wish.spent == 1
    assert wish.code == EndCode.AGGREGATOR_CONTRADICTION
    assert words in wish.detail.decode()
    assert play.sums(play.tell_s1(play.by_s2(included(play, range(6))))) == []


def test_a_second_set_ends_the_survey(stage) -> None:
    play = claimed(stage)
    first = play.by_s2(included(play, range(6)))
    out = play.tell_s1(first)
    assert len(play.sums(out)) == 1
    assert play.tell_s1(first) == ()  # the same again is a repeated message
    assert resume(play.s1.state, play.s1.rows) == out
    assert play.sums(play.tell_s1(play.by_s2(included(play, range(5))))) == []
    assert play.sums(resume(play.s1.state, play.s1.rows)) == []


def test_another_claim_in_a_sync_state_never_leads_to_another_sum(stage) -> None:
    """The aggregator said that smaller and smaller claims stand: 11 of 11 further sums were handed over, each less one person."""
    play = claimed(stage, n=15)
    handed_over = play.sums(play.tell_s1(play.by_s2(included(play, range(15)))))
    reservation = next(
        each.message for each in play.s2.statements if isinstance(each.message, Reservation)
    )
    for left_out in range(1, 12):
        manifest = replace(play.s2.manifest, entries=play.s2.manifest.entries[left_out:])
        named = named_set(manifest, range(len(manifest.entries)))
        for statements in (
            (replace(reservation, manifest_hash=named.manifest_hash), named),
            (reservation, named),
        ):
            handed_over += play.sums(
                play.tell_s1(told(play, *statements, manifest=encode(manifest)))
            )
        handed_over += play.sums(resume(play.s1.state, play.s1.rows))
    assert len(set(handed_over)) == 1
    assert isinstance(play.s1.final.message, Aborted)


@pytest.mark.parametrize("link", [Link(2, bytes(32)), Link(3, bytes(32)), UNCHAINED])
def test_statements_that_do_not_follow_each_other_are_no_sync_state(stage, link) -> None:
    play = claimed(stage)
    before, reservation = play.s1.copy(), play.s2.statements[0].signed
    other = play.by_s2(included(play, range(5)), link)
    state = SyncState(play.params.survey, b"", encode(play.s2.manifest), (reservation, other))
    (answer,) = play.tell_s1(play.by_s2(state))
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)
    right = replace(
        state,
        statements=(
            reservation,
            play.by_s2(included(play, range(5)), Link(2, compute_link(reservation).hash)),
        ),
    )
    assert len(play.sums(play.tell_s1(play.by_s2(right)))) == 1


def test_an_s2_that_does_not_know_its_own_receipt_ends_the_survey(stage) -> None:
    """Its statements follow each other, and are not those that the coordinator has heard."""
    play = claimed(stage)
    other = replace(play.s2.statements[0].message, ledger_version=99)
    play.tell_s1(told(play, other, manifest=encode(play.s2.manifest)))
    assert play.s1.phase is Phase.ABORTED


@pytest.mark.parametrize("receipted", [False, True])
def test_a_claim_without_a_receipt_for_it_is_no_sync_state(stage, receipted) -> None:
    """The coordinator took a claim of the aggregator's making for its own."""
    play = stage(SERVERS)
    play.answer_all()
    reservation = play.said_by_s2(play.tell_s2(play.deadline()[0])[0])
    before, fewer = play.s1.copy(), replace(play.s2.manifest, entries=play.s2.manifest.entries[1:])
    (answer,) = play.tell_s1(
        told(play, *([reservation] if receipted else []), manifest=encode(fewer))
    )
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)


@pytest.mark.parametrize("summed", [False, True])
def test_a_further_claim_ends_the_survey_even_if_its_chain_is_the_one_that_s1_has_heard(
    stage, summed
) -> None:
    """The aggregator says that after its first receipt it gave another one: in `servers` there is no further claim."""
    play = claimed(stage)
    reservation = play.s2.statements[0].message
    handed_over = play.sums(play.tell_s1(play.by_s2(included(play, range(6))))) if summed else []
    manifest = replace(play.s2.manifest, entries=play.s2.manifest.entries[1:])
    named = named_set(manifest, range(5))
    second = replace(reservation, manifest_hash=named.manifest_hash)
    out = play.tell_s1(told(play, reservation, second, named, manifest=encode(manifest)))
    assert play.sums(out) == play.sums(resume(play.s1.state, play.s1.rows)) == []
    assert len(handed_over) == summed
    assert play.s1.phase is Phase.ABORTED


def test_the_sum_is_recorded_before_it_is_sent(stage) -> None:
    """What the coordinator says again is what it recorded: its bodies are not added up a second time."""
    play = claimed(stage)
    (first,) = play.sums(play.tell_s1(play.by_s2(included(play, range(6)))))
    play.s1 = play.s1.copy()
    for user in play.s1.view.first_messages:
        spoil(
            play.s1,
            "first_messages",
            user,
            replace(
                play.s1.view.first_messages[user],
                share=bytes(len(play.s1.view.first_messages[user].share)),
            ),
        )
    assert play.sums(resume(play.s1.state, play.s1.rows)) == [first]


def test_a_set_before_the_receipt_is_not_answered(stage) -> None:
    play = stage(SERVERS)
    play.answer_all()
    play.deadline()
    before = play.s1
    assert play.tell_s1(play.by_s2(included(play, range(6)))) == ()
    assert play.s1 is before


@pytest.mark.parametrize("change", [{"included": 5}, {"root": bytes(32)}])
def test_a_result_over_another_set_is_refused(stage, change) -> None:
    play = claimed(stage)
    play.settle(resume(play.s1.state, play.s1.rows))
    result = play.s2.statements[-1].message
    assert isinstance(result, Published)
    play = claimed(stage)
    play.tell_s1(play.by_s2(included(play, range(6))))
    before = play.s1
    (answer,) = play.tell_s1(play.by_s2(replace(result, **change)))
    assert answer.why is Reason.WRONG_DIGEST
    assert play.s1 is before
    assert play.tell_s1(play.by_s2(result)) == ()
    assert play.s1.phase is Phase.PUBLISHED


@pytest.mark.parametrize(
    "change",
    [{"counts": (1,)}, {"counts": ()}, {"epsilon": b"\xff"}, {"realized_delta": b"1.5"}, {"delta": b"9" * 5000},
     {"against": (AdversaryGuarantee(1, b"", b"0"),)}],
)  # fmt: skip
def test_what_is_no_result_is_refused_and_changes_nothing(stage, change) -> None:
    """The coordinator took it, and could then show it to nobody."""
    play = claimed(stage)
    result = Published(
        play.params.survey,
        play.s1.digest,
        play.s1.manifest_hash,
        bytes(32),
        6,
        (1,) * 6,
        b"1",
        b"1",
        b"1",
        b"1",
    )
    before = play.s1.copy()
    (answer,) = play.tell_s1(play.by_s2(replace(result, **change)))
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)


@pytest.mark.parametrize("of_the_sum", [True, False])
def test_an_s2_that_names_a_set_and_then_wants_the_blobs_first_ends_the_survey(
    stage, of_the_sum
) -> None:
    """The coordinator said its one sum again and again, and the survey never ended."""
    play = claimed(stage)
    (asked,) = play.tell_s1(play.by_s2(included(play, range(5))))
    about = sha256(asked.payload).digest() if of_the_sum else bytes(32)
    out = play.tell_s1(play.by_s2(Refusal(play.params.survey, about, int(Reason.EARLY))))
    assert play.s1.phase is (Phase.ABORTED if of_the_sum else Phase.COUNTING)
    assert play.sums(out) == []
    assert play.sums(resume(play.s1.state, play.s1.rows)) == (
        [] if of_the_sum else play.sums((asked,))
    )


# --- the aggregator rolled back -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("back", [0, 1])
def test_an_s2_that_forgot_what_it_signed_stops_as_restored(stage, back) -> None:
    """Nobody told it that it was restored. The coordinator gives the newest statement that it has heard with all it says."""
    play = stage(SERVERS)
    play.answer_all()
    states, out = [play.s2], play.deadline()
    for _ in range(2):
        out = play.tell_s1(play.tell_s2(out[0])[0])
        states.append(play.s2)
    assert play.s1.newest.number == 2
    play.s2 = states[back]
    play.settle(out)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.closed
    assert play.s2.ledger.charges[0].survey == play.params.survey


def test_an_s2_with_another_past_than_s1_has_heard_stops_too(stage) -> None:
    play, other = claimed(stage), stage(SERVERS)
    other.answer_all(skip=(0,))
    other.tell_s2(other.deadline()[0])
    play.s2 = other.s2  # as many statements, but others
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_statements_are_numbered_and_name_the_one_before(stage) -> None:
    play = claimed(stage)
    play.settle(resume(play.s1.state, play.s1.rows))
    signed = [each.signed for each in play.s2.statements]
    assert [each.number for each in signed] == [1, 2, 3]
    assert [each.previous for each in signed] == [
        bytes(32),
        *(compute_link(each).hash for each in signed[:-1]),
    ]


# --- what is kept when it is over ---------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", [Phase.PUBLISHED, Phase.ABORTED])
def test_when_it_is_over_shares_blobs_and_the_encryption_key_are_gone(stage, ends) -> None:
    play = claimed(stage)
    secret = play.s2.encryption_keys.secret
    if ends is Phase.ABORTED:
        wish = make_aborted(
            play.params.survey, Ending(EndCode.OWNER), Party.COORDINATOR, spent=True
        )
        play.settle((play.by_s1(wish),))
    else:
        play.settle(resume(play.s1.state, play.s1.rows))
    assert play.s1.phase is play.s2.phase is ends
    assert play.s2.encryption_keys.secret == b""
    assert secret not in _everything(play.s2)
    kept = _everything(play.s1)
    for person in play.people:
        assert person.report.share not in kept
        assert person.report.encrypted_share not in kept
    again = play.people[0].report
    assert isinstance(play.tell_s1(again)[0], Acknowledgement)
    assert play.tell_s1(replace(again, salt=bytes(16)))[0].why is Reason.CONFLICT
    assert again.share not in _everything(play.s1)


def _everything(state) -> set[bytes]:
    """All bytes that a state holds anywhere."""
    found, waiting, seen = set[bytes](), [state], dict[int, object]()
    while waiting:
        one = waiting.pop()
        if isinstance(one, bytes):
            found.add(one)
        elif id(one) not in seen:
            seen[id(one)] = one  # kept: another object may not get its id
            slots = [
                getattr(one, name, None)
                for kind in type(one).__mro__
                for name in getattr(kind, "__slots__", ())
            ]
            inner = (
                [*one, *one.values()]
                if isinstance(one, dict)
                else one
                if isinstance(one, (tuple, frozenset))
                else ()
            )
            waiting += [*getattr(one, "__dict__", {}).values(), *slots, *inner]
    return found
