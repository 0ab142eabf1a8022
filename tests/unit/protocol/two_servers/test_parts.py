"""`servers`: manifests and encrypted shares in parts.

The result is the same as that of a manifest in one piece, whatever is lost on the way.
"""

from dataclasses import replace
from hashlib import sha256
from itertools import chain

import pytest
from stored_rows import spoil

from faircount.protocol import SERVERS, MemoryRows, Step, end_phase, resume
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.aggregator import abort_after_restore
from faircount.protocol.roles.rows import RowWrite, StepRows, part_key
from faircount.protocol.roles.stored import decode_rows, decode_state, encode_rows, encode_state
from faircount.protocol.simulator import InMemory
from faircount.protocol.survey import inclusion
from faircount.protocol.survey.endings import EndCode, Ending
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import messages, part_reports
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
    PartReports,
    RecordedPart,
    RecordedPartRequest,
    VerifiedPart,
)
from faircount.protocol.topologies.two_servers.part_reports import ServersState
from faircount.protocol.topologies.two_servers.reports import (
    report_layout_of,
    unpack_verifier_shares,
)
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.digests import bitmap, entry_leaves, marks_of, merkle_root
from faircount.protocol.wire.messages import (
    FinalStatement,
    InclusionProof,
    OutcomeRequest,
    PartShares,
    Published,
    Reason,
    Refusal,
    Reservation,
    Signed,
    SyncRequest,
    SyncState,
)
from faircount.protocol.wire.signing import UNCHAINED, ChainLink, compute_chain_link


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 2)


@pytest.fixture(params=["without proofs", "proven"])
def stage(request, stage, proven):
    return stage if request.param == "without proofs" else lambda topology, **terms: proven(**terms)


def hash_of(what) -> bytes:
    return sha256(encode(what)).digest()


def play_to_deadline(stage, n: int = 6, **terms):
    """Play until the coordinator has fixed its manifest, with everybody's report."""
    play = stage(SERVERS, n=n, **terms)
    play.answer_all()
    play.deadline()
    return play


def parts(play) -> list[BatchManifest]:
    return list(iterate_parts(play.s1.state, play.s1.view))


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_a_manifest_is_a_chain_of_parts_and_everybody_is_counted_once(stage, n) -> None:
    play = play_to_deadline(stage, n)
    found = parts(play)
    assert [len(part.entries) for part in found] == [2] * (n // 2) + [1] * (n % 2)
    assert [part.previous_hash for part in found] == [bytes(32), *map(hash_of, found[:-1])]
    assert [(part.number, part.has_more) for part in found] == [
        (k, int(k < len(found) - 1)) for k in range(len(found))
    ]
    users = [entry.user for entry in iterate_entries(play.s1.state, play.s1.view)]
    assert users == sorted(invitation.user for invitation in play.invitations)
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * n
    assert play.s2.manifest_hash == hash_of(found[-1])


def test_parts_are_handed_on_as_they_are_made(stage) -> None:
    """A server writes them at once, so a step over all reports has one part in memory."""
    play = stage(SERVERS, n=7)
    play.answer_all()
    taken = []

    def sink(write) -> None:
        taken.append((write.table, write.key))
        play.s1.rows.write([write])

    step = end_phase(play.s1.state, reader=play.s1.rows, sink=sink)
    both = [[("manifest_parts", part_key(k)), ("report_parts", part_key(k))] for k in range(4)]
    # The last part of the manifest is in the state.
    assert taken == [*chain.from_iterable(both[:-1]), both[-1][1]]
    assert step.rows == ()
    play.s1 = play.s1.write_step(step)
    play.settle(step.messages)
    assert play.counts() == [1] * 7


def deliver_all(play, out):
    """Deliver everything between the servers, in order; yield the content of each message."""
    waiting = list(out)
    while waiting:
        message = waiting.pop(0)
        yield parse(message.payload)
        waiting += (
            play.send_to_s2(message)
            if play.read_from_s2(message) is None
            else play.send_to_s1(message)
        )


def test_each_message_between_the_servers_has_the_entries_of_one_part(stage) -> None:
    play = play_to_deadline(stage, 7)
    sent = []
    for content in deliver_all(play, resume(play.s1.state, play.s1.rows)):
        size = len(getattr(content, "entries", getattr(content, "encrypted_shares", ())))
        sent.append((type(content).__name__, size))
    next_request = ("NextPartRequest", 0)
    sizes = (2, 2, 2, 1)
    verified = [("VerifiedPart", 0)] if play.params.proven else []
    manifests = [[("BatchManifest", size), next_request] for size in sizes]
    batches = [[("PartShares", size), *verified, next_request] for size in sizes]
    assert sent == [
        *list(chain.from_iterable(manifests))[:-1],
        ("Reservation", 0),
        *list(chain.from_iterable(batches))[:-1],
        ("AcceptedReports", 0),
        ("AggregateShare", 0),
        ("Published", 0),
    ]


def test_the_set_is_that_of_a_manifest_in_one_piece(stage, monkeypatch) -> None:
    """Members, root and verifier shares are over the whole manifest, with rejected reports too."""
    sets = []
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
        contents = list(deliver_all(play, play.deadline()))
        verified = [content for content in contents if isinstance(content, VerifiedPart)]
        accepted = play.s1.accepted.message
        sets.append((accepted.members, accepted.root, *join_verified(play, verified, size)))
        assert sorted(play.counts()) == [0, 0, 1, 1, 1, 1, 1]
        assert (accepted.verified != bytes(32)) == play.params.proven
    assert sets[0] == sets[1]
    assert sets[0][0] == bitmap([0, 2, 3, 5, 6], 7)
    assert sets[0][2] == ([1, 0, 1, 1, 0, 1, 1] if play.params.proven else [])


def join_verified(play, verified, size: int) -> tuple[list[int], list[list[int]]]:
    """Which of 7 reports were decrypted, and the verifier shares of those, over all parts."""
    decrypted = []
    shares = []
    for part in verified:
        marks = marks_of(part.decrypted, min(size, 7 - part.number * size))
        decrypted += marks.astype(int).tolist()
        layout = report_layout_of(play.params.mechanism)
        shares += unpack_verifier_shares(part.verifier_shares, layout, int(marks.sum())).tolist()
    return decrypted, shares


def test_every_message_may_be_lost_or_come_twice(stage) -> None:
    play = play_to_deadline(stage, 6)
    for _ in range(40):
        for message in resume(play.s1.state, play.s1.rows) * 2:
            answers = play.send_to_s2(message)
        following = []
        for answer in answers * 2:
            following += play.send_to_s1(answer)
        # The answer to this message is lost.
        for message in following[:1] * 2:
            play.send_to_s2(message)
    assert play.counts() == [1] * 6
    assert [type(statement.message) for statement in play.s2.statements] == [
        Reservation,
        AcceptedReports,
        Published,
    ]


def reload(server, ledger=None):
    state = decode_state(type(server.state), encode_state(server.state), server.crypto, ledger)
    return InMemory(state, MemoryRows(decode_rows(encode_rows(server.rows.rows()))))


def test_both_servers_continue_from_their_stored_bytes_after_every_message(stage) -> None:
    play = play_to_deadline(stage, 7)
    waiting = list(resume(play.s1.state, play.s1.rows))
    while waiting:
        message = waiting.pop(0)
        to_s2 = play.read_from_s2(message) is None
        waiting += play.send_to_s2(message) if to_s2 else play.send_to_s1(message)
        play.s1 = reload(play.s1)
        play.s2 = reload(play.s2, play.s2.ledger)
    assert play.counts() == [1] * 7


# --- what the aggregator refuses ------------------------------------------------------------------


def refusal(play, message) -> Reason:
    (answer, *_) = play.send_to_s2(play.by_s1(message))
    return Reason(play.read_from_s2(answer).reason)


def test_parts_come_in_order_and_from_the_first(stage) -> None:
    play = play_to_deadline(stage)
    first, second, third = parts(play)
    assert refusal(play, second) is Reason.EARLY
    assert refusal(play, third) is Reason.EARLY
    (next_request,) = play.send_to_s2(play.by_s1(first))
    assert play.read_from_s2(next_request) == NextPartRequest(play.params.survey, hash_of(first), 1)
    assert refusal(play, third) is Reason.EARLY
    assert refusal(play, replace(second, number=2)) is Reason.EARLY
    assert refusal(play, replace(first, previous_hash=hash_of(third))) is Reason.EARLY
    assert play.send_to_s2(play.by_s1(replace(second, previous_hash=bytes(32)))) == (next_request,)
    assert play.send_to_s2(play.by_s1(first)) == (next_request,)
    assert play.s2.manifest is None
    assert not play.s2.ledger.charges


def test_a_first_part_replaces_a_manifest_that_is_not_complete(stage) -> None:
    """A restored coordinator may fix other reports; the unfinished manifest has no effect."""
    play = play_to_deadline(stage)
    first, *_ = parts(play)
    play.send_to_s2(play.by_s1(first))
    everybody = list(iterate_entries(play.s1.state, play.s1.view))
    other = list(split_into_parts(play.params, everybody[1:]))
    for part in other:
        answers = play.send_to_s2(play.by_s1(part))
    assert play.read_from_s2(answers[0]).manifest_hash == hash_of(other[-1])
    assert [entry.user for entry in iterate_entries(play.s2.state, play.s2.view)] == [
        entry.user for entry in everybody[1:]
    ]
    assert refusal(play, first) is Reason.CONFLICT


@pytest.mark.parametrize("lost", range(8))
@pytest.mark.parametrize("recorded", range(1, 4))
def test_a_manifest_that_goes_on_otherwise_replaces_the_rest(stage, recorded, lost) -> None:
    """The servers go back, part by part, to where the two manifests part."""
    play = play_to_deadline(stage, 8)
    for part in parts(play)[:recorded]:
        play.send_to_s2(play.by_s1(part))
    everybody = list(iterate_entries(play.s1.state, play.s1.view))
    # A restored coordinator made this one; it may have fewer parts than the aggregator has.
    left = [entry for at, entry in enumerate(everybody) if at not in (lost, 5, 6)]
    *earlier, last = split_into_parts(play.params, left)
    for part in earlier:
        play.s1.rows.write([RowWrite("manifest_parts", part_key(part.number), part)])
    play.s1 = play.s1.replace_fields(
        manifest=last,
        manifest_hash=hash_of(last),
        # The copies are of the other manifest.
        topology_state=ServersState(tuple(map(hash_of, earlier))),
    )
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.s1.phase is play.s2.phase is Phase.PUBLISHED
    assert list(iterate_entries(play.s2.state, play.s2.view)) == left
    assert sum(play.counts()) == len(left)


def test_a_replaced_part_does_not_count(stage) -> None:
    """A dishonest coordinator shows real people first, and puts invented ones in their place."""
    play = play_to_deadline(stage)
    first, second, third = parts(play)
    for part in (first, second):
        play.send_to_s2(play.by_s1(part))
    invented = replace(second, entries=[replace(entry, mac=bytes(32)) for entry in second.entries])
    (answer,) = play.send_to_s2(play.by_s1(invented))
    assert play.read_from_s2(answer).recorded == hash_of(invented)
    rest = [replace(entry, mac=bytes(32)) for entry in third.entries]
    end = replace(third, previous_hash=hash_of(invented), entries=rest)
    assert refusal(play, end) is Reason.TOO_FEW
    assert play.s2.manifest is None
    assert not play.s2.ledger.charges


def test_no_part_is_replaced_after_the_reservation(stage) -> None:
    """From the sums over two batches the aggregator could compute one person's vector."""
    play, _ = play_to_reservation(stage)
    before = play.s2
    everybody = list(iterate_entries(play.s1.state, play.s1.view))
    for part in list(split_into_parts(play.params, everybody[:-1]))[2:]:
        assert refusal(play, part) is Reason.CONFLICT
    for part in parts(play):
        (answer,) = play.send_to_s2(play.by_s1(part))
        assert isinstance(play.read_from_s2(answer), Reservation)
    assert play.s2 == before


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
    ],
)
def test_parts_that_the_aggregator_refuses(stage, spoil) -> None:
    play = play_to_deadline(stage)
    entries = list(iterate_entries(play.s1.state, play.s1.view))
    chains = {
        "short": [replace(parts(play)[0], entries=entries[:1])],
        "long": [replace(parts(play)[0], entries=entries[:3])],
        "order inside": list(split_into_parts(play.params, [entries[1], entries[0], *entries[2:]])),
        "order between": list(
            split_into_parts(play.params, [*entries[2:4], *entries[:2], *entries[4:]])
        ),
        "twice": list(split_into_parts(play.params, [*entries[:2], *entries[1:5]])),
        "under two keys": list(
            split_into_parts(
                play.params, [entries[0], replace(entries[0], public_key=bytes(32)), *entries[1:]]
            )
        ),
        "empty end": [parts(play)[0], replace(parts(play)[1], entries=(), has_more=0)],
    }
    reasons = []
    for part in chains[spoil]:
        content = play.read_from_s2(play.send_to_s2(play.by_s1(part))[0])
        reasons.append(None if isinstance(content, NextPartRequest) else Reason(content.reason))
    assert next(reason for reason in reasons if reason is not None) is Reason.MALFORMED
    assert play.s2.manifest is None
    assert not play.s2.ledger.charges


def test_more_entries_than_people_are_refused_before_all_arrived(stage) -> None:
    play = play_to_deadline(stage)
    more = [
        ManifestEntry(bytes([at]) * 16, bytes(31) + bytes([at]), *(bytes(32),) * 3)
        for at in range(1, 9)
    ]
    *fitting, over = list(split_into_parts(play.params, more))
    for part in fitting:
        assert isinstance(play.read_from_s2(play.send_to_s2(play.by_s1(part))[0]), NextPartRequest)
    assert refusal(play, over) is Reason.FULL


def test_the_coordinator_aborts_when_a_part_is_refused_for_good(stage) -> None:
    for number in range(3):
        play = play_to_deadline(stage)
        refused = Refusal(
            play.params.survey, hash_of(parts(play)[number]), int(Reason.FULL), b"more than 1 users"
        )
        play.send_to_s1(play.by_s2(replace(refused, request_hash=bytes(32))))
        assert play.s1.final is None
        play.send_to_s1(play.by_s2(refused))
        assert b"more than 1 users" in play.s1.final.message.detail


def test_the_aggregator_asks_for_the_first_part_that_it_lacks(stage) -> None:
    play, first = play_to_reservation(stage)
    batch = parse(first.payload)
    # The encrypted shares of one part do not pass for those of another.
    assert refusal(play, replace(batch, number=2)) is Reason.WRONG_SHARES
    assert refusal(play, replace(batch, number=3)) is Reason.MALFORMED
    assert not play.s2.has_answer_data
    (*_, next_request) = answers = play.send_to_s2(first)
    assert play.read_from_s2(next_request) == NextPartRequest(
        play.params.survey, play.s1.manifest_hash, 1
    )
    assert play.s2.has_answer_data
    assert refusal(play, replace(batch, number=1)) is Reason.WRONG_SHARES
    assert play.send_to_s2(first) == answers


@pytest.mark.parametrize("end", ["too few", "closed"])
def test_a_refused_last_part_changes_nothing(stage, end) -> None:
    """Otherwise somebody could be named again, in a later part, under a second key."""
    play = play_to_deadline(stage)
    first, second, third = parts(play)
    entries = list(iterate_entries(play.s1.state, play.s1.view))
    ledger = play.s2.ledger
    for part in (first, second):
        play.send_to_s2(play.by_s1(part))
    bad = {
        "too few": replace(
            third, entries=tuple(replace(entry, mac=bytes(32)) for entry in entries[4:])
        ),
        "closed": third,
    }[end]
    if end == "too few":
        play.s2 = play.s2.replace_fields(
            topology_state=replace(play.s2.topology_state, authentic_entries=(0, 0))
        )
    if end == "closed":
        play.s2 = play.s2.replace_fields(ledger=ledger.close_after_restore(()))
    before = play.s2.copy()
    assert isinstance(play.read_from_s2(play.send_to_s2(play.by_s1(bad))[0]), Refusal)
    assert play.s2 == before
    again = [replace(entries[0], public_key=bytes(32)), entries[4]]
    assert refusal(play, replace(third, entries=tuple(again))) is Reason.MALFORMED
    play.s2 = play.s2.replace_fields(
        ledger=ledger, topology_state=replace(play.s2.topology_state, authentic_entries=(2, 2))
    )
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * 6


def test_a_refused_manifest_in_one_part_changes_nothing(stage) -> None:
    play = play_to_deadline(stage)
    first, *_ = parts(play)
    play.send_to_s2(play.by_s1(first))
    before = play.s2.copy()
    few = BatchManifest(
        play.params.survey,
        play.params.digest,
        tuple(iterate_entries(play.s1.state, play.s1.view))[:2],
    )
    assert refusal(play, few) is Reason.TOO_FEW
    assert play.s2 == before


def test_a_refused_part_makes_nobody_authentic(stage) -> None:
    """A dishonest coordinator shows invented people, and then a few real ones in their place.

    The real ones are refused, because they are too few. Their valid MACs must not be recorded for
    the invented ones.
    """
    play = play_to_deadline(stage, 8, minimum=4)
    entries = list(iterate_entries(play.s1.state, play.s1.view))
    invented = [replace(entry, mac=bytes(32)) for entry in entries[:2]]
    first, *rest = split_into_parts(play.params, [*invented, *entries[2:]])
    play.send_to_s2(play.by_s1(first))
    few = BatchManifest(play.params.survey, play.params.digest, tuple(entries[:2]))
    assert refusal(play, few) is Reason.TOO_FEW
    for part in rest:
        answers = play.send_to_s2(play.by_s1(part))
    assert isinstance(play.read_from_s2(answers[0]), Reservation)
    assert play.s2.view.authentic_entries[part_key(0)] == bitmap([], 2)


# --- what the coordinator does not do -------------------------------------------------------------


def play_to_reservation(stage, n: int = 6):
    play = play_to_deadline(stage, n)
    for part in parts(play):
        answers = play.send_to_s2(play.by_s1(part))
    (batch,) = play.send_to_s1(answers[0])
    return play, batch


@pytest.mark.parametrize("change", [{"number": 3}, {"number": 99}, {"recorded": bytes(32)}])
def test_an_aggregator_with_another_manifest_gets_no_encrypted_shares(stage, change) -> None:
    play, batch = play_to_reservation(stage)
    next_request = NextPartRequest(play.params.survey, play.s1.manifest_hash, 0)
    assert play.send_to_s1(play.by_s2(next_request)) == (batch,)
    assert play.send_to_s1(play.by_s2(replace(next_request, **change))) == ()


@pytest.mark.parametrize(
    ("number", "recorded", "sent"),
    [(1, 0, 1), (2, 1, 2), (1, 1, 0), (2, 0, 1), (3, 0, 2), (3, 1, 2), (99, 0, 2)],
)
def test_an_aggregator_with_other_parts_gets_those_in_their_place(
    stage, number, recorded, sent
) -> None:
    play = play_to_deadline(stage)
    earlier = earlier_hashes(play.s1)
    next_request = NextPartRequest(play.params.survey, earlier[recorded], number)
    (answer,) = play.send_to_s1(play.by_s2(next_request))
    assert parse(answer.payload) == parts(play)[sent]
    assert play.send_to_s1(play.by_s2(replace(next_request, number=0))) == ()


def test_no_encrypted_share_leaves_before_the_reservation(stage) -> None:
    play = play_to_deadline(stage)
    for number in range(4):
        for recorded in (*earlier_hashes(play.s1), play.s1.manifest_hash):
            out = play.send_to_s1(play.by_s2(NextPartRequest(play.params.survey, recorded, number)))
            assert not any(isinstance(parse(message.payload), PartShares) for message in out)


def test_no_encrypted_share_leaves_after_the_coordinator_aborted(stage) -> None:
    play = play_to_deadline(stage)
    play.s1 = play.s1.write_step(
        Step(*coordinator.request_abort(play.s1.state, Ending(EndCode.OWNER)))
    )
    for part in parts(play):
        answers = play.send_to_s2(play.by_s1(part))
    play.send_to_s1(answers[0])
    for number in range(4):
        assert (
            play.send_to_s1(
                play.by_s2(NextPartRequest(play.params.survey, play.s1.manifest_hash, number))
            )
            == ()
        )


def spoil_report(play, at: int) -> None:
    """Damage the encrypted share of one report where the coordinator stores the report."""
    user = sorted(play.s1.view.first_messages)[at]
    report = play.s1.view.first_messages[user]
    damaged = replace(report, encrypted_share=bytes(len(report.encrypted_share)))
    spoil(play.s1, "first_messages", user, damaged)


def spoil_copy(play, number: int) -> None:
    """Damage the copy of one part: each of its shares, and each encrypted share."""
    copy = play.s1.view.report_parts[part_key(number)]
    damaged = PartReports(bytes(len(copy.shares)), bytes(len(copy.encrypted_shares)))
    spoil(play.s1, "report_parts", part_key(number), damaged)


def lose_report(play, at: int) -> None:
    """Damage a report, and the copy of its part."""
    spoil_report(play, at)
    spoil_copy(play, at // 2)


def test_the_coordinator_aborts_when_a_later_share_is_lost(stage) -> None:
    play, batch = play_to_reservation(stage)
    (*_, next_request) = play.send_to_s2(batch)
    lose_report(play, 3)
    play.send_to_s1(next_request)
    assert play.s1.final.message.code == EndCode.REPORTS_LOST


def test_no_share_is_sent_if_one_was_lost_before_the_reservation(stage) -> None:
    play = play_to_deadline(stage)
    for part in parts(play):
        answers = play.send_to_s2(play.by_s1(part))
    lose_report(play, 5)
    (request,) = play.send_to_s1(answers[0])
    assert play.s1.reservation is not None
    assert parse(request.payload).code == EndCode.REPORTS_LOST


def play_to_set(stage):
    """Play until the aggregator has fixed its set; return its statement, which is on its way."""
    play, message = play_to_reservation(stage)
    while True:
        *verified, answer = play.send_to_s2(message)
        for found in verified:
            assert play.send_to_s1(found) == ()
        if isinstance(parse(answer.payload), AcceptedReports):
            return play, answer
        (message,) = play.send_to_s1(answer)


def test_nothing_is_added_up_if_a_report_was_lost_before_the_set(stage) -> None:
    play, answer = play_to_set(stage)
    lose_report(play, 5)
    (request,) = play.send_to_s1(answer)
    assert play.s1.accepted is not None
    assert play.s1.topology_state.aggregate_share is None
    assert parse(request.payload).code == EndCode.REPORTS_LOST


def when_reservation_comes(stage):
    play = play_to_deadline(stage)
    for part in parts(play):
        answers = play.send_to_s2(play.by_s1(part))
    return play, answers[0]


def when_next_part_is_asked_for(stage):
    play, batch = play_to_reservation(stage)
    (*verified, answer) = play.send_to_s2(batch)
    for found in verified:
        play.send_to_s1(found)
    return play, answer


@pytest.mark.parametrize(
    "arrives", [when_reservation_comes, when_next_part_is_asked_for, play_to_set]
)
def test_a_damaged_copy_is_made_good_from_the_reports(stage, arrives) -> None:
    play, answer = arrives(stage)
    for number in range(3):
        spoil_copy(play, number)
    play.settle(play.send_to_s1(answer))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize(
    "arrives", [when_reservation_comes, when_next_part_is_asked_for, play_to_set]
)
def test_damaged_reports_do_not_matter_once_they_are_copied(stage, arrives) -> None:
    play, answer = arrives(stage)
    for at in range(6):
        spoil_report(play, at)
    play.settle(play.send_to_s1(answer))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize(
    "arrives", [when_reservation_comes, when_next_part_is_asked_for, play_to_set]
)
def test_the_copy_of_another_part_is_not_taken(stage, arrives) -> None:
    """Not even if a disk exchanges whole rows, each of them intact."""
    play, answer = arrives(stage)
    first, second = (play.s1.view.report_parts[part_key(number)] for number in (1, 2))
    spoil(play.s1, "report_parts", part_key(1), second)
    spoil(play.s1, "report_parts", part_key(2), first)
    play.settle(play.send_to_s1(answer))
    assert play.counts() == [1] * 6


@pytest.fixture
def no_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the shares of a part are too long for one row."""
    monkeypatch.setattr(part_reports, "MAX_COPY_BYTES", 0)


@pytest.mark.parametrize("size", [2, 4, 4096])
def test_parts_are_copied_up_to_a_number_of_bytes(stage, size, monkeypatch) -> None:
    """A copy is one row, and a row of 4,096 long shares would be larger than a database takes."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", size)
    # Six people: a part has at most as many reports.
    reports = min(size, 6)
    for missing in (0, 1):
        play = stage(SERVERS, n=6)
        play.answer_all()
        share = len(next(iter(play.people)).report.share)
        monkeypatch.setattr(part_reports, "MAX_COPY_BYTES", reports * share - missing)
        play.deadline()
        copies = 0 if missing else len(parts(play))
        assert len(play.s1.topology_state.copies) == copies
        assert len(play.s1.view.report_parts) == copies
        play.settle(resume(play.s1.state, play.s1.rows))
        assert play.counts() == [1] * 6


@pytest.mark.usefixtures("no_copies")
@pytest.mark.parametrize(
    "arrives", [when_reservation_comes, when_next_part_is_asked_for, play_to_set]
)
def test_a_report_that_is_lost_without_copies_ends_the_survey(stage, arrives) -> None:
    play, answer = arrives(stage)
    spoil_report(play, 3)
    play.settle(play.send_to_s1(answer))
    assert play.s1.phase is Phase.ABORTED
    assert play.s1.final.message.code == EndCode.REPORTS_LOST


@pytest.mark.usefixtures("no_copies")
def test_without_copies_one_report_is_read_after_the_other(stage, monkeypatch) -> None:
    """Long shares are never in memory together."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 4096)
    play, _ = play_to_reservation(stage)
    intact_report = part_reports.intact_report
    read = []

    def note(s, rows, entry):
        read.append(entry.user)
        return intact_report(s, rows, entry)

    monkeypatch.setattr(part_reports, "intact_report", note)
    shares = part_reports.shares_of_part(play.s1.state, play.s1.view, 0)
    for count, _ in enumerate(shares, 1):
        assert len(read) == count
    assert read == sorted(play.s1.view.first_messages)


def sync_state(play, last: BatchManifest, *statements):
    """A sync state of a dishonest aggregator, with this manifest and these statements."""
    links = []
    for message in statements:
        before = compute_chain_link(links[-1]) if links else UNCHAINED
        links.append(play.by_s2(message, ChainLink(before.number + 1, before.hash)))
    return play.by_s2(SyncState(play.params.survey, b"", encode(last), tuple(links)))


def tell_history(play, last: BatchManifest, earlier, *statements) -> list:
    """What the coordinator does when it is told this history, and gets the parts that it asks for."""
    history = sync_state(play, last, *statements)
    waiting = [history]
    done = []
    # Bounded: a coordinator that gets nonsense asks again, which the outbox ends.
    for _ in range(20):
        if not waiting:
            break
        out = play.send_to_s1(waiting.pop(0))
        for message in out:
            content = parse(message.payload) if isinstance(message, Signed) else message
            done.append(content)
            if isinstance(content, SyncRequest):
                waiting.append(history)
            elif isinstance(content, RecordedPartRequest) and content.number < len(earlier):
                part = encode(earlier[content.number])
                waiting.append(play.by_s2(RecordedPart(play.params.survey, part)))
    return done


def accept_all(manifest: BatchManifest, entries) -> AcceptedReports:
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))
    return AcceptedReports(
        manifest.survey, hash_of(manifest), bitmap(range(len(entries)), len(entries)), root
    )


@pytest.mark.parametrize("size", [2, 4096])
@pytest.mark.parametrize(
    "named", ["one person many times", "two people in turns", "everybody and one again"]
)
def test_a_manifest_that_names_somebody_twice_is_never_added_up(
    stage, size, named, monkeypatch
) -> None:
    """From a manifest with one entry six times it would get six times that person's share."""
    monkeypatch.setattr(messages, "REPORTS_PER_PART", size)
    play = play_to_deadline(stage)
    entries = list(iterate_entries(play.s1.state, play.s1.view))
    some = {
        "one person many times": [entries[2]] * 6,
        "two people in turns": [entries[0], entries[1]] * 3,
        "everybody and one again": [*entries, entries[0]],
    }[named]
    reservation = Reservation(
        play.params.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed_value
    )
    *earlier, last = split_into_parts(play.params, some)
    accepted = accept_all(last, some)
    granted = replace(reservation, manifest_hash=accepted.manifest_hash)
    *_, answer = tell_history(play, last, earlier, granted, accepted)
    assert answer.why is Reason.MALFORMED
    assert (play.s1.reservation, play.s1.accepted) == (None, None)
    assert play.sums(resume(play.s1.state, play.s1.rows)) == []


@pytest.mark.parametrize(
    "spoil",
    [
        "lost",
        "order",
        "order inside",
        "size",
        "more",
        "no more",
        "numbers",
        "two first parts",
        "another part before",
        "another kind",
    ],
)
def test_the_coordinator_adopts_no_incomplete_manifest(stage, spoil) -> None:
    play = play_to_deadline(stage)
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
        earlier = [first]
        last = replace(last, number=1, previous_hash=hash_of(first))
    elif spoil == "more":
        (*earlier, last) = split_into_parts(play.params, everybody)
        last = replace(last, has_more=1)
    elif spoil == "no more":
        first = replace(earlier[0], entries=everybody[:1], has_more=0)
        earlier = [first]
        last = replace(last, number=1, previous_hash=hash_of(first))
    elif spoil == "numbers":
        last = replace(last, number=5)
    elif spoil == "two first parts":
        # The chain leads to the second of them, and the first one would be read in its place.
        unchecked = replace(earlier[0], entries=[everybody[1]] * 2)
        last = replace(last, previous_hash=hash_of(earlier[0]))
        earlier = [unchecked, earlier[0]]
    elif spoil == "another part before":
        last = replace(last, previous_hash=hash_of(earlier[0]))
    reservation = Reservation(
        play.params.survey, hash_of(last), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed_value
    )
    others = (
        [OutcomeRequest(bytes(16), bytes(32), bytes(32), bytes(64))]
        if spoil == "another kind"
        else earlier
    )
    done = tell_history(play, last, others, reservation)
    assert not any(isinstance(content, PartShares) for content in done)
    assert play.s1.reservation is None
    assert play.s1.manifest != last
    assert verify_parts(play.s1.view.recorded_parts, last) is None
    # Its own manifest is what it was: an honest aggregator could still record it.
    assert play.s1.manifest is not None


# --- restores -------------------------------------------------------------------------------------


def test_a_restored_coordinator_adopts_all_parts(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all()
    old = play.s1.copy()
    play.deadline()
    for part in parts(play):
        play.send_to_s2(play.by_s1(part))
    hashes = earlier_hashes(play.s1)
    play.s1, out = old.make_step(coordinator.start_resync)
    play.settle(out)
    assert earlier_hashes(play.s1) == hashes
    assert play.counts() == [1] * 7


def test_a_restored_coordinator_gets_a_long_manifest_part_by_part(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all()
    old = play.s1.copy()
    play.deadline()
    for part in parts(play):
        play.send_to_s2(play.by_s1(part))
    play.s1, waiting = old.make_step(coordinator.start_resync)
    waiting = list(waiting)
    sizes = []
    while waiting:
        message = waiting.pop(0)
        to_s2 = play.read_from_s2(message) is None
        waiting += play.send_to_s2(message) if to_s2 else play.send_to_s1(message)
        content = parse(message.payload)
        if isinstance(content, RecordedPart):
            sizes.append(len(parse(content.part).entries))
        # A crash at any moment: what is stored is enough to go on.
        play.s1 = reload(play.s1)
    assert sizes == [2, 2, 2]
    assert play.counts() == [1] * 7


def test_an_aggregator_that_claims_another_manifest_and_denies_it_again_stops_nothing(
    stage,
) -> None:
    """The coordinator keeps its own manifest while it asks for the parts of the other one."""
    play = play_to_deadline(stage)
    everybody = list(iterate_entries(play.s1.state, play.s1.view))
    *earlier, last = split_into_parts(play.params, everybody[1:])
    reservation = Reservation(
        play.params.survey, hash_of(last), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed_value
    )
    (request,) = play.send_to_s1(sync_state(play, last, reservation))
    assert isinstance(parse(request.payload), RecordedPartRequest)
    recorded = RecordedPart(play.params.survey, encode(earlier[-1]))
    play.send_to_s1(play.by_s2(recorded))
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * 6


def test_a_part_counts_only_under_its_own_number(stage) -> None:
    """Whatever a store confuses: the parts before the last one are numbered without gaps."""
    play = play_to_deadline(stage)
    first, second, last = parts(play)

    def verify(last: BatchManifest, *stored: BatchManifest):
        rows = [RowWrite("recorded_parts", part_key(at), part) for at, part in enumerate(stored)]
        return verify_parts(StepRows(MemoryRows(rows)).recorded_parts, last)

    assert verify(last, first, second) == (hash_of(first), hash_of(second))
    # The first part in place of the second one: the chain ends, and a part is missing.
    assert verify(replace(last, previous_hash=hash_of(first)), first, first) is None


def test_a_part_that_nobody_asked_for_is_ignored(stage) -> None:
    """The aggregator must not exchange parts of a manifest that is in use, or fill the disk."""
    play = play_to_deadline(stage)
    before = parts(play)
    other = replace(before[0], entries=before[1].entries)
    for part in (other, replace(other, number=99)):
        assert play.send_to_s1(play.by_s2(RecordedPart(play.params.survey, encode(part)))) == ()
    assert parts(play) == before
    assert len(play.s1.view.recorded_parts) == 0
    play.s1 = play.s1.replace_fields(awaiting_sync=True)
    far = replace(other, number=play.params.n_max // 2 + 1)
    assert play.send_to_s1(play.by_s2(RecordedPart(play.params.survey, encode(far)))) == ()
    assert part_key(far.number) not in play.s1.view.recorded_parts
    long = replace(other, entries=[*before[0].entries, *before[1].entries])
    assert play.send_to_s1(play.by_s2(RecordedPart(play.params.survey, encode(long)))) == ()
    assert len(play.s1.view.recorded_parts) == 0
    play.send_to_s1(play.by_s2(RecordedPart(play.params.survey, encode(other))))
    assert len(play.s1.view.recorded_parts) == 1


def test_a_restored_coordinator_that_lost_early_reports_aborts(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all(skip=(0,))
    old = play.s1.copy()
    play.exchange(play.client.start(play.params, play.device(0), play.s2.crypto, play.entropy))
    play.deadline()
    for part in parts(play):
        play.send_to_s2(play.by_s1(part))
    play.s1, out = old.make_step(coordinator.start_resync)
    play.settle(out)
    assert play.s1.phase is Phase.ABORTED
    assert play.s1.final.message.spent == 1


def test_an_aggregator_restored_between_parts_aborts_as_spent(stage) -> None:
    play, batch = play_to_reservation(stage)
    play.send_to_s2(batch)
    play.s2, out = play.s2.make_step(abort_after_restore)
    play.settle(out)
    assert (play.s1.phase, play.s1.final.message.spent) == (Phase.ABORTED, 1)


def test_verifications_are_deleted_and_parts_stay_when_it_is_over(stage) -> None:
    """So a restored coordinator can still learn whom the result counts."""
    play = play_to_deadline(stage, 7)
    play.settle(resume(play.s1.state, play.s1.rows))
    assert (len(play.s2.view.part_verifications), play.s2.partial_sum) == (0, None)
    assert len(play.s2.view.authentic_entries) == 0
    assert (len(play.s1.view.report_parts), len(play.s1.view.verified_parts)) == (0, 0)
    assert play.s2.topology_state == ServersProgress(play.s2.topology_state.earlier)
    for number, part in enumerate(parts(play)):
        (answer,) = play.send_to_s2(play.by_s1(RecordedPartRequest(play.params.survey, number)))
        assert play.read_from_s2(answer).part == encode(part)
    assert refusal(play, RecordedPartRequest(play.params.survey, 4)) is Reason.MALFORMED
    assert isinstance(
        play.send_to_s2(play.by_s1(PartShares(play.params.survey, play.s1.manifest_hash, ())))[0],
        Signed,
    )


# --- inclusion proofs -----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 2, 64])
def test_everybody_can_check_inclusion_in_whatever_part(stage, block, monkeypatch) -> None:
    monkeypatch.setattr(inclusion, "BLOCK", block)
    inclusion._tree_above_blocks.cache_clear()
    play = stage(SERVERS, n=7)
    play.answer_all(skip=(3,))
    play.settle(play.deadline())
    for at, invitation in enumerate(play.invitations):
        (answer,) = play.send_to_s1(play.inquiry(at))
        key = None if at == 3 else play.people[at].report.public_key
        if at == 3:
            assert isinstance(answer, FinalStatement)
        else:
            assert isinstance(answer, InclusionProof)
            assert inclusion.verify_inclusion(play.params, answer, invitation.user, key)
