"""`servers`: claims and blobs in parts. The result is the one of a claim in one piece, whatever is lost on the way."""

from dataclasses import replace
from hashlib import sha256

import pytest
from stored_rows import spoil

from faircount.protocol import SERVERS, MemoryRows, Step, aggregate, end_phase, resume
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.aggregator import restored
from faircount.protocol.roles.rows import part_key
from faircount.protocol.roles.stored import decode_rows, decode_state, encode_rows, encode_state
from faircount.protocol.simulator import InMemory
from faircount.protocol.survey import inclusion
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.aggregator import ServersProgress
from faircount.protocol.topologies.two_servers.manifests import (
    earlier_hashes,
    iterate_entries,
    iterate_parts,
    split_into_parts,
    verify_parts,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    BatchManifest,
    ManifestEntry,
    NextPartRequest,
)
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.messages import (
    FinalStatement,
    InclusionProof,
    OutcomeRequest,
    Published,
    Reason,
    Refusal,
    Reservation,
    ShareBatch,
    Signed,
    SyncRequest,
    SyncState,
)
from faircount.protocol.wire.signing import UNCHAINED, Link, compute_link


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 2)


@pytest.fixture(params=["as they come", "proven"])
def stage(request, stage, proven):
    return stage if request.param == "as they come" else lambda topology, **terms: proven(**terms)


def hash_of(what) -> bytes:
    return sha256(encode(what)).digest()


def closed(stage, n: int = 6, **terms):
    """Everybody has answered, and the coordinator has its claim."""
    play = stage(SERVERS, n=n, **terms)
    play.answer_all()
    play.deadline()
    return play


def parts(play) -> list[BatchManifest]:
    return list(iterate_parts(play.s1.state, play.s1.view))


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_a_claim_is_a_chain_of_parts_and_everybody_is_counted_once(stage, n) -> None:
    play = closed(stage, n)
    found = parts(play)
    assert [len(each.entries) for each in found] == [2] * (n // 2) + [1] * (n % 2)
    assert [each.before for each in found] == [bytes(32), *map(hash_of, found[:-1])]
    assert [(each.number, each.more) for each in found] == [
        (k, int(k < len(found) - 1)) for k in range(len(found))
    ]
    users = [each.user for each in iterate_entries(play.s1.state, play.s1.view)]
    assert users == sorted(each.user for each in play.invitations)
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * n
    assert play.s2.manifest_hash == hash_of(found[-1])


def test_parts_are_handed_on_as_they_are_made(stage) -> None:
    """A service writes them at once: a step over everybody holds one part."""
    play = stage(SERVERS, n=7)
    play.answer_all()
    taken = []

    def sink(write) -> None:
        taken.append(write.key)
        play.s1.rows.write([write])

    step = end_phase(play.s1.state, reader=play.s1.rows, sink=sink)
    assert taken == [part_key(number) for number in range(3)]
    assert step.rows == ()
    play.s1 = play.s1.after(step)
    play.settle(step.messages)
    assert play.counts() == [1] * 7


def test_each_message_between_the_servers_has_the_lines_of_one_part(stage) -> None:
    play = closed(stage, 7)
    waiting, sent = list(resume(play.s1.state, play.s1.rows)), []
    while waiting:
        message = waiting.pop(0)
        said = parse(message.payload)
        sent.append(
            (
                type(said).__name__,
                len(getattr(said, "entries", getattr(said, "encrypted_shares", ()))),
            )
        )
        waiting += (
            play.tell_s2(message) if play.said_by_s2(message) is None else play.tell_s1(message)
        )
    asked = [("NextPartRequest", 0)]
    manifests, encrypted_shares = (
        [pair for size in (2, 2, 2, 1) for pair in [(kind, size), *asked]][:-1]
        for kind in ("BatchManifest", "ShareBatch")
    )
    assert sent == [
        *manifests,
        ("Reservation", 0),
        *encrypted_shares,
        ("AcceptedReports", 0),
        ("AggregateShare", 0),
        ("Published", 0),
    ]


def test_the_set_is_the_one_of_a_claim_in_one_piece(stage, monkeypatch) -> None:
    """Members, root and evidence are over the whole claim, whoever's blob does not open."""
    stated = []
    for size in (2, 4096):
        monkeypatch.setattr(messages, "REPORTS_PER_PART", size)
        play = stage(SERVERS, n=7, seed=5)
        play.answer_all()
        for at in (1, 4):
            user = sorted(play.s1.view.first_messages)[at]
            spoil(
                play.s1,
                "first_messages",
                user,
                replace(play.s1.view.first_messages[user], mac=bytes(32)),
            )
            play.s1.rows.table("first_messages")[user].hash = hash_of(
                play.s1.view.first_messages[user]
            )
        play.settle(play.deadline())
        stated.append(play.s1.included.message)
        assert sorted(play.counts()) == [0, 0, 1, 1, 1, 1, 1]
    assert [(each.members, each.root, each.opened) for each in stated[:1]] == [
        (each.members, each.root, each.opened) for each in stated[1:]
    ]
    assert stated[0].members == bitmap([0, 2, 3, 5, 6], 7)


def test_every_message_may_be_lost_or_come_twice(stage) -> None:
    play = closed(stage, 6)
    for _ in range(40):
        for message in resume(play.s1.state, play.s1.rows) * 2:
            answers = play.tell_s2(message)
        following = [each for answer in answers * 2 for each in play.tell_s1(answer)]
        for message in following[:1] * 2:  # its answer is lost
            play.tell_s2(message)
    assert play.counts() == [1] * 6
    assert [type(each.message) for each in play.s2.statements] == [
        Reservation,
        AcceptedReports,
        Published,
    ]


def come_back(server, ledger=None):
    state = decode_state(type(server.state), encode_state(server.state), server.crypto, ledger)
    return InMemory(state, MemoryRows(decode_rows(encode_rows(server.rows.rows()))))


def test_both_servers_come_back_from_their_bytes_after_every_message(stage) -> None:
    play = closed(stage, 7)
    waiting = list(resume(play.s1.state, play.s1.rows))
    while waiting:
        message = waiting.pop(0)
        to_s2 = play.said_by_s2(message) is None
        waiting += play.tell_s2(message) if to_s2 else play.tell_s1(message)
        play.s1 = come_back(play.s1)
        play.s2 = come_back(play.s2, play.s2.ledger)
    assert play.counts() == [1] * 7


def test_a_step_about_a_part_needs_no_more_than_that_part(stage) -> None:
    """What another process is given: a few people's keys, one part of the claim, and of others what was noted."""
    play = closed(stage, 7)
    waiting, given = list(resume(play.s1.state, play.s1.rows)), []
    while waiting:
        message = waiting.pop(0)
        if play.said_by_s2(message) is not None:
            waiting += play.tell_s1(message)
            continue
        says = parse(message.payload)
        small = SERVERS.aggregator.rows_for(play.s2.state, play.s2.view, says)
        if small is not None:
            sizes = (
                small.count(table) for table in ("mac_keys", "manifest_parts", "part_verdicts")
            )
            given.append((type(says).__name__, *sizes))
            step = aggregate(play.s2.state, message, small)
            play.s2 = play.s2.after(step)
            waiting += step.messages
        else:
            given.append((type(says).__name__,))
            waiting += play.tell_s2(message)
    assert given == [
        *[("BatchManifest", 2, 0, 0)] * 3, ("BatchManifest",),
        *[("ShareBatch", 2, 1, 0)] * 3, ("ShareBatch", 1, 0, 3), ("AggregateShare", 0, 0, 0),
    ]  # fmt: skip
    assert play.counts() == [1] * 7


# --- what the aggregator refuses


def refusal(play, message) -> Reason:
    (answer, *_) = play.tell_s2(play.by_s1(message))
    return Reason(play.said_by_s2(answer).reason)


def test_parts_come_in_order_and_from_the_first(stage) -> None:
    play = closed(stage)
    first, second, third = parts(play)
    assert refusal(play, second) is Reason.EARLY
    assert refusal(play, third) is Reason.EARLY
    (asked,) = play.tell_s2(play.by_s1(first))
    assert play.said_by_s2(asked) == NextPartRequest(play.params.survey, hash_of(first), 1)
    assert refusal(play, third) is Reason.EARLY
    assert refusal(play, replace(second, before=bytes(32))) is Reason.EARLY
    assert play.tell_s2(play.by_s1(first)) == (asked,)
    assert play.s2.manifest is None
    assert not play.s2.ledger.charges


def test_a_claim_that_begins_anew_takes_the_place_of_one_that_is_not_whole(stage) -> None:
    """A restored coordinator may claim others; what the aggregator had recorded of the first is of no effect."""
    play = closed(stage)
    first, *_ = parts(play)
    play.tell_s2(play.by_s1(first))
    everybody = list(iterate_entries(play.s1.state, play.s1.view))
    other = list(split_into_parts(play.params, everybody[1:]))
    for each in other:
        answers = play.tell_s2(play.by_s1(each))
    assert play.said_by_s2(answers[0]).manifest_hash == hash_of(other[-1])
    assert [each.user for each in iterate_entries(play.s2.state, play.s2.view)] == [
        each.user for each in everybody[1:]
    ]
    assert refusal(play, first) is Reason.CONFLICT


@pytest.mark.parametrize(
    "spoil",
    [
        "short",
        "long",
        "order inside",
        "order between",
        "twice",
        "under two keys",
        "empty end",
        "two keys",
    ],
)
def test_parts_that_s2_refuses(stage, spoil) -> None:
    play = closed(stage)
    lines = list(iterate_entries(play.s1.state, play.s1.view))
    chains = {
        "short": [replace(parts(play)[0], entries=lines[:1])],
        "long": [replace(parts(play)[0], entries=lines[:3])],
        "order inside": list(split_into_parts(play.params, [lines[1], lines[0], *lines[2:]])),
        "order between": list(split_into_parts(play.params, [*lines[2:4], *lines[:2], *lines[4:]])),
        "twice": list(split_into_parts(play.params, [*lines[:2], *lines[1:5]])),
        "under two keys": list(
            split_into_parts(
                play.params, [lines[0], replace(lines[0], public_key=bytes(32)), *lines[1:]]
            )
        ),
        "empty end": [parts(play)[0], replace(parts(play)[1], entries=(), more=0)],
        "two keys": list(
            split_into_parts(
                play.params, [*lines[:5], replace(lines[5], public_key=lines[0].public_key)]
            )
        ),
    }
    reasons = []
    for each in chains[spoil]:
        said = play.said_by_s2(play.tell_s2(play.by_s1(each))[0])
        reasons.append(None if isinstance(said, NextPartRequest) else Reason(said.reason))
    assert next(each for each in reasons if each is not None) is Reason.MALFORMED
    assert play.s2.manifest is None
    assert not play.s2.ledger.charges


def test_keys_that_only_begin_alike_are_different(stage) -> None:
    play = closed(stage)
    lines = list(iterate_entries(play.s1.state, play.s1.view))
    twin = replace(lines[5], public_key=lines[0].public_key[:8] + lines[5].public_key[8:])
    for each in split_into_parts(play.params, [*lines[:5], twin]):
        answers = play.tell_s2(play.by_s1(each))
    assert isinstance(play.said_by_s2(answers[0]), Reservation)


def test_more_lines_than_people_are_refused_before_they_all_came(stage) -> None:
    play = closed(stage)
    more = [
        ManifestEntry(bytes([at]) * 16, bytes(31) + bytes([at]), *(bytes(32),) * 3)
        for at in range(1, 9)
    ]
    *fitting, over = list(split_into_parts(play.params, more))
    for each in fitting:
        assert isinstance(play.said_by_s2(play.tell_s2(play.by_s1(each))[0]), NextPartRequest)
    assert refusal(play, over) is Reason.FULL


def test_s1_gives_up_when_a_part_is_refused_for_good(stage) -> None:
    for number in range(3):
        play = closed(stage)
        refused = Refusal(
            play.params.survey, hash_of(parts(play)[number]), int(Reason.FULL), b"more than 1 users"
        )
        play.tell_s1(play.by_s2(replace(refused, request_hash=bytes(32))))
        assert play.s1.final is None
        play.tell_s1(play.by_s2(refused))
        assert b"more than 1 users" in play.s1.final.message.detail


def test_blobs_of_another_part_are_asked_for_in_order(stage) -> None:
    play = closed(stage)
    for each in parts(play):
        answers = play.tell_s2(play.by_s1(each))
    (first,) = play.tell_s1(answers[0])
    batch = parse(first.payload)
    (asked,) = play.tell_s2(play.by_s1(replace(batch, number=2)))
    assert play.said_by_s2(asked) == NextPartRequest(play.params.survey, play.s1.manifest_hash, 0)
    (asked,) = play.tell_s2(first)
    assert play.said_by_s2(asked) == NextPartRequest(play.params.survey, play.s1.manifest_hash, 1)
    assert play.s2.handed_over
    assert refusal(play, replace(batch, number=1)) is Reason.WRONG_SHARES
    assert play.tell_s2(first) == (asked,)


@pytest.mark.parametrize("end", ["two keys", "too few", "closed"])
def test_after_a_refused_end_s2_stands_where_it_stood(stage, end) -> None:
    """It forgot how far it had come, but not the parts: then somebody could be named again under a second key."""
    play = closed(stage)
    first, second, third = parts(play)
    lines, ledger = list(iterate_entries(play.s1.state, play.s1.view)), play.s2.ledger
    for each in (first, second):
        play.tell_s2(play.by_s1(each))
    bad = {
        "two keys": replace(
            third, entries=(lines[4], replace(lines[5], public_key=lines[0].public_key))
        ),
        "too few": replace(
            third, entries=tuple(replace(each, mac=bytes(32)) for each in lines[4:])
        ),
        "closed": third,
    }[end]
    if end == "too few":
        play.s2 = play.s2.changed(
            topology_state=replace(play.s2.topology_state, authentic_entries=0)
        )
    if end == "closed":
        play.s2 = play.s2.changed(ledger=ledger.close_after_restore(()))
    before = play.s2
    assert isinstance(play.said_by_s2(play.tell_s2(play.by_s1(bad))[0]), Refusal)
    assert play.s2 == before
    again = [replace(lines[0], public_key=bytes(32)), lines[4]]
    assert refusal(play, replace(third, entries=tuple(again))) is Reason.MALFORMED
    play.s2 = play.s2.changed(
        ledger=ledger, topology_state=replace(play.s2.topology_state, authentic_entries=4)
    )
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * 6


def test_a_claim_in_one_part_that_is_refused_leaves_what_was_recorded(stage) -> None:
    play = closed(stage)
    first, *_ = parts(play)
    play.tell_s2(play.by_s1(first))
    before = play.s2
    few = BatchManifest(
        play.params.survey,
        play.params.digest,
        tuple(iterate_entries(play.s1.state, play.s1.view))[:2],
    )
    assert refusal(play, few) is Reason.TOO_FEW
    assert play.s2 == before


# --- what the coordinator does not do


def receipted(stage, n: int = 6):
    play = closed(stage, n)
    for each in parts(play):
        answers = play.tell_s2(play.by_s1(each))
    (batch,) = play.tell_s1(answers[0])
    return play, batch


@pytest.mark.parametrize(
    "change", [{"number": 0}, {"number": 3}, {"number": 99}, {"recorded": bytes(32)}]
)
def test_s1_does_not_answer_an_s2_that_has_other_parts(stage, change) -> None:
    play = closed(stage)
    asked = replace(NextPartRequest(play.params.survey, earlier_hashes(play.s1)[0], 1), **change)
    assert play.tell_s1(play.by_s2(asked)) == ()
    play, _ = receipted(stage)
    asked = replace(NextPartRequest(play.params.survey, play.s1.manifest_hash, 1), **change)
    assert play.tell_s1(play.by_s2(asked)) == ()


def test_no_blob_leaves_before_the_receipt(stage) -> None:
    play = closed(stage)
    for number in range(4):
        for recorded in (*earlier_hashes(play.s1), play.s1.manifest_hash):
            out = play.tell_s1(play.by_s2(NextPartRequest(play.params.survey, recorded, number)))
            assert not any(isinstance(parse(each.payload), ShareBatch) for each in out)


def test_no_blob_leaves_after_s1_has_given_up(stage) -> None:
    play = closed(stage)
    play.s1 = play.s1.after(Step(*coordinator.give_up(play.s1.state, Ending(EndCode.OWNER))))
    for each in parts(play):
        answers = play.tell_s2(play.by_s1(each))
    play.tell_s1(answers[0])
    for number in range(4):
        assert (
            play.tell_s1(
                play.by_s2(NextPartRequest(play.params.survey, play.s1.manifest_hash, number))
            )
            == ()
        )


def test_s1_gives_up_when_a_blob_of_a_later_part_is_lost(stage) -> None:
    play, batch = receipted(stage)
    (asked,) = play.tell_s2(batch)
    last = sorted(play.s1.view.first_messages)[3]
    spoil(
        play.s1,
        "first_messages",
        last,
        replace(
            play.s1.view.first_messages[last],
            encrypted_share=bytes(len(play.s1.view.first_messages[last].encrypted_share)),
        ),
    )
    play.tell_s1(asked)
    assert play.s1.final.message.code == EndCode.REPORTS_LOST


def told(play, last: BatchManifest, earlier, *says):
    """What a lying aggregator says that stands."""
    chain = []
    for each in says:
        before = compute_link(chain[-1]) if chain else UNCHAINED
        chain.append(play.by_s2(each, Link(before.number + 1, before.hash)))
    return play.by_s2(
        SyncState(play.params.survey, b"", encode(last), tuple(chain), tuple(map(encode, earlier)))
    )


def named_set(manifest: BatchManifest, lines) -> AcceptedReports:
    root = merkle_root(roster_leaves((each.user, each.public_key) for each in lines))
    return AcceptedReports(
        manifest.survey, hash_of(manifest), bitmap(range(len(lines)), len(lines)), root
    )


@pytest.mark.parametrize("size", [2, 4096])
@pytest.mark.parametrize(
    "named", ["one person many times", "two people in turns", "everybody and one again"]
)
def test_a_claim_that_names_somebody_twice_is_never_added_up(
    stage, size, named, monkeypatch
) -> None:
    """The aggregator made up a claim with one line six times, and was handed six times that person's share."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", size)
    play = closed(stage)
    lines = list(iterate_entries(play.s1.state, play.s1.view))
    some = {
        "one person many times": [lines[2]] * 6,
        "two people in turns": [lines[0], lines[1]] * 3,
        "everybody and one again": [*lines, lines[0]],
    }[named]
    reservation = Reservation(
        play.params.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed
    )
    *earlier, last = split_into_parts(play.params, some)
    stated = named_set(last, some)
    before = play.s1.copy()
    (answer,) = play.tell_s1(
        told(play, last, earlier, replace(reservation, manifest_hash=stated.manifest_hash), stated)
    )
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)
    assert play.sums(resume(play.s1.state, play.s1.rows)) == []


@pytest.mark.parametrize(
    "spoil", ["lost", "order", "order inside", "size", "more", "numbers", "another kind"]
)
def test_s1_takes_over_no_claim_that_is_not_whole(stage, spoil) -> None:
    play = closed(stage)
    everybody = list(iterate_entries(play.s1.state, play.s1.view))
    *earlier, last = split_into_parts(play.params, everybody[1:])
    play.s1.rows.table("manifest_parts").clear()
    if spoil == "lost":
        earlier = earlier[1:]
    elif spoil == "order":
        (*earlier, last) = split_into_parts(
            play.params, [*everybody[3:5], *everybody[1:3], everybody[5]]
        )
    elif spoil == "order inside":
        (*earlier, last) = split_into_parts(
            play.params, [everybody[2], everybody[1], *everybody[3:]]
        )
    elif spoil == "size":
        first = replace(earlier[0], entries=everybody[:1])
        earlier, last = [first], replace(last, number=1, before=hash_of(first))
    elif spoil == "more":
        (*earlier, last) = split_into_parts(play.params, everybody)
        last = replace(last, more=1)
    elif spoil == "numbers":
        last = replace(last, number=5)
    reservation = Reservation(
        play.params.survey, hash_of(last), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed
    )
    others = [OutcomeRequest(bytes(16), bytes(32))] if spoil == "another kind" else earlier
    (answer,) = play.tell_s1(told(play, last, others, reservation))
    assert answer.why is Reason.MALFORMED
    assert verify_parts(play.s1.view.manifest_parts, last) is None


# --- restores


def test_a_restored_s1_takes_over_all_parts_from_s2(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all()
    old = play.s1.copy()
    play.deadline()
    for each in parts(play):
        play.tell_s2(play.by_s1(each))
    hashes = earlier_hashes(play.s1)
    play.s1, out = old.do(coordinator.restored)
    play.settle(out)
    assert earlier_hashes(play.s1) == hashes
    assert play.counts() == [1] * 7


def test_a_restored_s1_that_lost_answers_of_an_early_part_ends_the_survey(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all(skip=(0,))
    old = play.s1.copy()
    play.exchange(play.client.start(play.params, play.device(0), play.s2.crypto, play.entropy))
    play.deadline()
    for each in parts(play):
        play.tell_s2(play.by_s1(each))
    play.s1, out = old.do(coordinator.restored)
    play.settle(out)
    assert play.s1.phase is Phase.ABORTED
    assert play.s1.final.message.spent == 1


def test_s2_that_is_restored_in_the_middle_of_the_blobs_ends_the_survey_as_spent(stage) -> None:
    play, batch = receipted(stage)
    play.tell_s2(batch)
    play.s2, out = play.s2.do(restored)
    play.settle(out)
    assert (play.s1.phase, play.s1.final.message.spent) == (Phase.ABORTED, 1)


def test_notes_about_blobs_go_and_parts_stay_when_it_is_over(stage) -> None:
    """A restored coordinator can still be told whom the result counts."""
    play = closed(stage, 7)
    play.settle(resume(play.s1.state, play.s1.rows))
    assert (len(play.s2.view.part_verdicts), play.s2.partial_sum) == (0, None)
    assert play.s2.topology_state == ServersProgress(play.s2.topology_state.earlier)
    (answer,) = play.tell_s2(play.by_s1(SyncRequest(play.params.survey)))
    stands = play.said_by_s2(answer)
    assert len(stands.earlier) == 3
    assert isinstance(
        play.tell_s2(play.by_s1(ShareBatch(play.params.survey, play.s1.manifest_hash, ())))[0],
        Signed,
    )


# --- was I counted?


@pytest.mark.parametrize("block", [1, 2, 64])
def test_everybody_can_check_that_it_was_counted_in_whatever_part(
    stage, block, monkeypatch
) -> None:
    monkeypatch.setattr(inclusion, "BLOCK", block)
    inclusion._tree_above_blocks.cache_clear()
    play = stage(SERVERS, n=7)
    play.answer_all(skip=(3,))
    play.settle(play.deadline())
    for at, each in enumerate(play.invitations):
        (answer,) = play.tell_s1(OutcomeRequest(play.params.survey, each.access))
        key = None if at == 3 else play.people[at].report.public_key
        if at == 3:
            assert isinstance(answer, FinalStatement)
        else:
            assert isinstance(answer, InclusionProof)
            assert inclusion.verify_inclusion(play.params, answer, each.user, key)
