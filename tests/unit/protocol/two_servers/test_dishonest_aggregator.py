"""A dishonest aggregator in the `servers` topology.

Whatever it signs, the coordinator sends one aggregate share, over at least the minimum number of
reports.
"""

from dataclasses import replace
from hashlib import sha256

import pytest
from stored_rows import spoil

from faircount.protocol import SERVERS, Message, resume
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, BatchManifest
from faircount.protocol.wire.codec import Party, encode, parse
from faircount.protocol.wire.digests import bitmap, entry_leaves, merkle_root
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
from faircount.protocol.wire.signing import UNCHAINED, ChainLink, compute_chain_link


def play_to_reservation(stage, n: int = 6):
    """Play until the coordinator has its reservation and has sent the encrypted shares."""
    play = stage(SERVERS, n=n)
    play.answer_all()
    play.send_to_s1(play.send_to_s2(play.deadline()[0])[0])
    return play


def make_accepted(play, places, **change) -> AcceptedReports:
    """A set of accepted reports as the aggregator would sign it."""
    return replace(accept_all(play.s1.manifest, places), **change)


def accept_all(manifest: BatchManifest, places) -> AcceptedReports:
    entries = [(manifest.entries[i].user, manifest.entries[i].public_key) for i in places]
    bits = bitmap(places, len(manifest.entries))
    return AcceptedReports(
        manifest.survey,
        sha256(encode(manifest)).digest(),
        bits,
        merkle_root(entry_leaves(entries)),
    )


def sync_state(play, *messages: Message, manifest: bytes = b"", roster: bytes = b"") -> Signed:
    """A sync state with these statements, properly chained."""
    statements: list[Signed] = []
    for message in messages:
        before = compute_chain_link(statements[-1]) if statements else UNCHAINED
        statements.append(play.by_s2(message, ChainLink(before.number + 1, before.hash)))
    return play.by_s2(SyncState(play.params.survey, roster, manifest, tuple(statements)))


# --- one sum, over enough people ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("members", "change", "detail"),
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
def test_a_set_that_must_not_be_added_up_ends_the_survey_without_a_sum(
    stage, members, change, detail
) -> None:
    """A set of one report would give the aggregator that share, and with the seed the answer."""
    play = play_to_reservation(stage)
    out = play.send_to_s1(play.by_s2(make_accepted(play, members, **change)))
    assert play.sums(out) == play.sums(resume(play.s1.state, play.s1.rows)) == []
    request = parse(out[0].payload)
    assert isinstance(request, Aborted)
    assert request.spent == 1
    assert request.code == EndCode.AGGREGATOR_CONTRADICTION
    assert detail in request.detail.decode()
    assert play.sums(play.send_to_s1(play.by_s2(make_accepted(play, range(6))))) == []


def test_a_second_set_ends_the_survey(stage) -> None:
    play = play_to_reservation(stage)
    first = play.by_s2(make_accepted(play, range(6)))
    out = play.send_to_s1(first)
    assert len(play.sums(out)) == 1
    # The same set again is a repeated message.
    assert play.send_to_s1(first) == ()
    assert resume(play.s1.state, play.s1.rows) == out
    assert play.sums(play.send_to_s1(play.by_s2(make_accepted(play, range(5))))) == []
    assert play.sums(resume(play.s1.state, play.s1.rows)) == []


def test_another_manifest_in_a_sync_state_never_leads_to_another_sum(stage) -> None:
    """With 11 smaller and smaller manifests it got 11 further sums in an earlier version."""
    play = play_to_reservation(stage, n=15)
    handed_over = play.sums(play.send_to_s1(play.by_s2(make_accepted(play, range(15)))))
    reservation = next(
        statement.message
        for statement in play.s2.statements
        if isinstance(statement.message, Reservation)
    )
    for left_out in range(1, 12):
        manifest = replace(play.s2.manifest, entries=play.s2.manifest.entries[left_out:])
        accepted = accept_all(manifest, range(len(manifest.entries)))
        for statements in (
            (replace(reservation, manifest_hash=accepted.manifest_hash), accepted),
            (reservation, accepted),
        ):
            handed_over += play.sums(
                play.send_to_s1(sync_state(play, *statements, manifest=encode(manifest)))
            )
        handed_over += play.sums(resume(play.s1.state, play.s1.rows))
    assert len(set(handed_over)) == 1
    assert isinstance(play.s1.final.message, Aborted)


@pytest.mark.parametrize(
    "chain_link", [ChainLink(2, bytes(32)), ChainLink(3, bytes(32)), UNCHAINED]
)
def test_statements_that_do_not_follow_each_other_are_no_sync_state(stage, chain_link) -> None:
    play = play_to_reservation(stage)
    before = play.s1.copy()
    reservation = play.s2.statements[0].signed
    other = play.by_s2(make_accepted(play, range(5)), chain_link)
    state = SyncState(play.params.survey, b"", encode(play.s2.manifest), (reservation, other))
    (answer,) = play.send_to_s1(play.by_s2(state))
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)
    right = replace(
        state,
        statements=(
            reservation,
            play.by_s2(
                make_accepted(play, range(5)), ChainLink(2, compute_chain_link(reservation).hash)
            ),
        ),
    )
    assert len(play.sums(play.send_to_s1(play.by_s2(right)))) == 1


def test_an_aggregator_without_its_own_reservation_ends_the_survey(stage) -> None:
    """Its statements form a chain, but not the one that the coordinator has received."""
    play = play_to_reservation(stage)
    other = replace(play.s2.statements[0].message, ledger_version=99)
    play.send_to_s1(sync_state(play, other, manifest=encode(play.s2.manifest)))
    assert play.s1.phase is Phase.ABORTED


@pytest.mark.parametrize("has_reservation", [False, True])
def test_a_manifest_without_its_reservation_is_no_sync_state(stage, has_reservation) -> None:
    """The coordinator must not adopt a manifest that the aggregator has made up."""
    play = stage(SERVERS)
    play.answer_all()
    reservation = play.read_from_s2(play.send_to_s2(play.deadline()[0])[0])
    before = play.s1.copy()
    fewer = replace(play.s2.manifest, entries=play.s2.manifest.entries[1:])
    (answer,) = play.send_to_s1(
        sync_state(play, *([reservation] if has_reservation else []), manifest=encode(fewer))
    )
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)


@pytest.mark.parametrize("summed", [False, True])
def test_a_further_manifest_ends_the_survey_even_if_it_continues_the_chain(stage, summed) -> None:
    """The aggregator states a second reservation, and in `servers` there is one manifest only."""
    play = play_to_reservation(stage)
    reservation = play.s2.statements[0].message
    handed_over = (
        play.sums(play.send_to_s1(play.by_s2(make_accepted(play, range(6))))) if summed else []
    )
    manifest = replace(play.s2.manifest, entries=play.s2.manifest.entries[1:])
    accepted = accept_all(manifest, range(5))
    second = replace(reservation, manifest_hash=accepted.manifest_hash)
    out = play.send_to_s1(
        sync_state(play, reservation, second, accepted, manifest=encode(manifest))
    )
    assert play.sums(out) == play.sums(resume(play.s1.state, play.s1.rows)) == []
    assert len(handed_over) == summed
    assert play.s1.phase is Phase.ABORTED


def test_the_sum_is_stored_before_it_is_sent(stage) -> None:
    """The coordinator repeats the stored aggregate share and adds up no report again."""
    play = play_to_reservation(stage)
    (first,) = play.sums(play.send_to_s1(play.by_s2(make_accepted(play, range(6)))))
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


def test_a_set_before_the_reservation_is_not_answered(stage) -> None:
    play = stage(SERVERS)
    play.answer_all()
    play.deadline()
    before = play.s1
    assert play.send_to_s1(play.by_s2(make_accepted(play, range(6)))) == ()
    assert play.s1 is before


@pytest.mark.parametrize("change", [{"included": 5}, {"root": bytes(32)}])
def test_a_result_over_another_set_is_refused(stage, change) -> None:
    play = play_to_reservation(stage)
    play.settle(resume(play.s1.state, play.s1.rows))
    result = play.s2.statements[-1].message
    assert isinstance(result, Published)
    play = play_to_reservation(stage)
    play.send_to_s1(play.by_s2(make_accepted(play, range(6))))
    before = play.s1
    (answer,) = play.send_to_s1(play.by_s2(replace(result, **change)))
    assert answer.why is Reason.WRONG_DIGEST
    assert play.s1 is before
    assert play.send_to_s1(play.by_s2(result)) == ()
    assert play.s1.phase is Phase.PUBLISHED


@pytest.mark.parametrize(
    "change",
    [
        {"counts": (1,)},
        {"counts": ()},
        {"epsilon": b"\xff"},
        {"realized_delta": b"1.5"},
        {"delta": b"9" * 5000},
        {"against": (AdversaryGuarantee(1, b"", b"0"),)},
    ],
)
def test_what_is_no_result_is_refused_and_changes_nothing(stage, change) -> None:
    """An earlier version kept such a result, and could then show it to nobody."""
    play = play_to_reservation(stage)
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
    (answer,) = play.send_to_s1(play.by_s2(replace(result, **change)))
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)


@pytest.mark.parametrize("of_the_sum", [True, False])
def test_an_aggregator_that_denies_its_own_set_ends_the_survey(stage, of_the_sum) -> None:
    """An earlier version sent its aggregate share again and again, and the survey never ended."""
    play = play_to_reservation(stage)
    (sent,) = play.send_to_s1(play.by_s2(make_accepted(play, range(5))))
    about = sha256(sent.payload).digest() if of_the_sum else bytes(32)
    out = play.send_to_s1(play.by_s2(Refusal(play.params.survey, about, int(Reason.EARLY))))
    assert play.s1.phase is (Phase.ABORTED if of_the_sum else Phase.COUNTING)
    assert play.sums(out) == []
    assert play.sums(resume(play.s1.state, play.s1.rows)) == (
        [] if of_the_sum else play.sums((sent,))
    )


# --- the aggregator rolled back -------------------------------------------------------------------


@pytest.mark.parametrize("back", [0, 1])
def test_an_aggregator_that_was_rolled_back_stops_as_restored(stage, back) -> None:
    """It notices because the coordinator names the newest statement with every message."""
    play = stage(SERVERS)
    play.answer_all()
    states = [play.s2]
    out = play.deadline()
    for _ in range(2):
        out = play.send_to_s1(play.send_to_s2(out[0])[0])
        states.append(play.s2)
    assert play.s1.chain_end.number == 2
    play.s2 = states[back]
    play.settle(out)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.closed
    assert play.s2.ledger.charges[0].survey == play.params.survey


def test_an_aggregator_with_another_history_stops_too(stage) -> None:
    play = play_to_reservation(stage)
    other = stage(SERVERS)
    other.answer_all(skip=(0,))
    other.send_to_s2(other.deadline()[0])
    # It has as many statements, but other ones.
    play.s2 = other.s2
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED


def test_statements_are_numbered_and_name_the_one_before(stage) -> None:
    play = play_to_reservation(stage)
    play.settle(resume(play.s1.state, play.s1.rows))
    signed = [statement.signed for statement in play.s2.statements]
    assert [signed_message.number for signed_message in signed] == [1, 2, 3]
    assert [signed_message.previous for signed_message in signed] == [
        bytes(32),
        *(compute_chain_link(signed_message).hash for signed_message in signed[:-1]),
    ]


# --- what is kept when the survey is over ---------------------------------------------------------


@pytest.mark.parametrize("ends", [Phase.PUBLISHED, Phase.ABORTED])
def test_when_it_is_over_shares_and_the_encryption_key_are_gone(stage, ends) -> None:
    play = play_to_reservation(stage)
    secret = play.s2.encryption_keys.secret
    assert all(_contains(play.s1, person.report.encrypted_share) for person in play.people)
    assert len(play.s1.view.report_parts) == 1
    if ends is Phase.ABORTED:
        request = make_aborted(
            play.params.survey, Ending(EndCode.OWNER), Party.COORDINATOR, spent=True
        )
        play.settle((play.by_s1(request),))
    else:
        play.settle(resume(play.s1.state, play.s1.rows))
    assert play.s1.phase is play.s2.phase is ends
    assert play.s2.encryption_keys.secret == b""
    assert secret not in _all_bytes(play.s2)
    for person in play.people:
        assert person.report.share not in _all_bytes(play.s1)
        # A share is short enough to occur by chance; an encrypted one in a copy is not.
        assert not _contains(play.s1, person.report.encrypted_share)
    again = play.people[0].report
    assert isinstance(play.send_to_s1(again)[0], Acknowledgement)
    assert play.send_to_s1(replace(again, salt=bytes(16)))[0].why is Reason.CONFLICT
    assert again.share not in _all_bytes(play.s1)


def _contains(state, encrypted_share: bytes) -> bool:
    """Whether an encrypted share is stored anywhere, by itself or in the copy of a part."""
    return any(encrypted_share in stored for stored in _all_bytes(state))


def _all_bytes(state) -> set[bytes]:
    """All byte strings that a state contains anywhere."""
    found = set[bytes]()
    # The objects are kept, so that no other object gets the id of one that was visited.
    visited = dict[int, object]()
    waiting = [state]
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes):
            found.add(value)
        elif id(value) not in visited:
            visited[id(value)] = value
            waiting += _children(value)
    return found


def _children(value) -> list[object]:
    """Everything that an object refers to directly."""
    children = list(getattr(value, "__dict__", {}).values())
    for kind in type(value).__mro__:
        children += [getattr(value, name, None) for name in getattr(kind, "__slots__", ())]
    if isinstance(value, dict):
        children += [*value, *value.values()]
    elif isinstance(value, tuple | frozenset):
        children += value
    return children
