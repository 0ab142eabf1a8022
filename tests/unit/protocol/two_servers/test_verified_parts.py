"""`servers`: parts of the encrypted shares in any order, and what the aggregator says about each.

Whatever order they come in and whatever is lost, there is one set and one sum; and the coordinator
adds up nothing that is not confirmed by the verified parts which the set names.
"""

import pickle
from dataclasses import replace
from itertools import chain, permutations

import pytest
from stored_rows import spoil

from faircount.protocol import SERVERS, aggregator_step, resume
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.rows import MemoryRows, PrecomputedReader, StepRows, part_key
from faircount.protocol.roles.stored import encode_state
from faircount.protocol.survey.endings import NOT_CONFIRMED, EndCode, Ending
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.manifests import (
    earlier_hashes,
    iterate_entries,
    iterate_parts,
)
from faircount.protocol.topologies.two_servers.messages import (
    AcceptedReports,
    AggregateShare,
    NextPartRequest,
    PartReports,
    VerifiedPart,
    hash_of_verified,
)
from faircount.protocol.topologies.two_servers.reports import (
    pack_verifier_shares,
    report_layout_of,
    unpack_verifier_shares,
)
from faircount.protocol.topologies.two_servers.verification import PartVerifier, PartWork
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.digests import bitmap, entry_leaves, merkle_root
from faircount.protocol.wire.messages import Aborted, PartShares, Reason, SyncRequest
from faircount.sharing.packing import packed_size

ORDERS = list(permutations(range(3)))


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "REPORTS_PER_PART", 2)


@pytest.fixture(params=["without proofs", "proven"])
def stage(request, stage, proven):
    return stage if request.param == "without proofs" else lambda topology, **terms: proven(**terms)


def proven_stage(proven):
    return lambda topology, **terms: proven(**terms)


def play_to_reservation(stage, n: int = 6):
    """Play until the coordinator has its reservation; nothing of its batch is delivered yet."""
    play = stage(SERVERS, n=n)
    play.answer_all()
    play.deadline()
    for part in iterate_parts(play.s1.state, play.s1.view):
        answers = play.send_to_s2(play.by_s1(part))
    play.send_to_s1(answers[0])
    return play


def batch_of(play, number: int):
    """The encrypted shares of one part, as the coordinator sends them."""
    (batch,) = SERVERS.coordinator.part_shares(play.s1.state, play.s1.view, number)
    return batch


def kinds(out) -> list[type]:
    return [type(parse(message.payload)) for message in out]


def verify_all(play, order=range(3)) -> tuple[list, object]:
    """The aggregator verifies all parts: what it signs about each, by number, and its set."""
    verified = {}
    for number in order:
        *about, last = play.send_to_s2(batch_of(play, number))
        verified[number] = about
    return [verified[number] for number in range(3)], last


# --- any order ------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_parts_are_verified_in_any_order(stage, order) -> None:
    play = play_to_reservation(stage)
    done = set()
    out = ()
    for number in order:
        assert play.s2.phase is Phase.COUNTING
        answers = play.send_to_s2(batch_of(play, number))
        done.add(number)
        missing = sorted({0, 1, 2} - done)
        contents = [play.read_from_s2(answer) for answer in answers]
        if missing:
            assert contents[-1] == NextPartRequest(
                play.params.survey, play.s1.manifest_hash, missing[0]
            )
        else:
            assert isinstance(contents[-1], AcceptedReports)
        assert [type(content) for content in contents[:-1]] == [VerifiedPart] * play.params.proven
        assert all(content.number == number for content in contents[:-1])
        for answer in answers:
            out = play.send_to_s1(answer)
    assert kinds(out) == [AggregateShare]
    play.settle(out)
    assert play.counts() == [1] * 6


def test_all_orders_lead_to_the_same_statements(stage) -> None:
    results = set()
    for order in ORDERS:
        play = play_to_reservation(stage)
        verified, accepted = verify_all(play, order)
        for about in verified:
            for statement in about:
                play.send_to_s1(statement)
        (total,) = play.send_to_s1(accepted)
        (published,) = play.send_to_s2(total)
        # In real cryptography signatures are deterministic, too.
        results.add((encode(accepted), encode(total), encode(published)))
    assert len(results) == 1


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_repeated_parts_get_the_same_answer_and_count_once(stage, order) -> None:
    play = play_to_reservation(stage)
    for at, number in enumerate(order):
        batch = batch_of(play, number)
        first = play.send_to_s2(batch)
        before = play.s2.copy()
        assert play.send_to_s2(batch) == first
        for earlier in order[:at]:
            *about, last = play.send_to_s2(batch_of(play, earlier))
            assert last == first[-1]
            assert [play.read_from_s2(found).number for found in about] == (
                [earlier] * play.params.proven
            )
        assert play.s2 == before
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_reports_that_do_not_count_are_left_out_in_any_order(stage, order) -> None:
    """One report of the second part has no valid MAC, and one of the third is garbled."""
    play = stage(SERVERS, n=6)
    play.answer_all(skip=(2, 5))
    play.send_to_s1(replace(play.people[2].report, mac=bytes(32)))
    garbled = bytes(len(play.people[5].report.encrypted_share))
    play.send_to_s1(replace(play.people[5].report, encrypted_share=garbled))
    play.deadline()
    for part in iterate_parts(play.s1.state, play.s1.view):
        answers = play.send_to_s2(play.by_s1(part))
    play.send_to_s1(answers[0])
    verified, accepted = verify_all(play, order)
    assert play.read_from_s2(accepted).members == bitmap([0, 1, 3, 4], 6)
    if play.params.proven:
        found = [play.read_from_s2(about[0]).decrypted for about in verified]
        assert found == [bitmap([0, 1], 2), bitmap([1], 2), bitmap([0], 2)]
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1, 1, 0, 1, 1, 0]


def test_a_part_is_not_verified_again_with_other_verifier_shares(proven) -> None:
    """A coordinator that has seen the aggregator's verifier shares must not choose new ones."""
    play = play_to_reservation(proven_stage(proven))
    first = play.send_to_s2(batch_of(play, 1))
    batch = parse(batch_of(play, 1).payload)
    before = play.s2.copy()
    other = replace(batch, verifier_shares=bytes(len(batch.verifier_shares)))
    assert play.send_to_s2(play.by_s1(other)) == first
    assert play.s2 == before
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * 6


# --- lost messages, restores ----------------------------------------------------------------------


@pytest.mark.parametrize("lost", range(3))
def test_the_coordinator_asks_again_for_a_verified_part_that_was_lost(proven, lost) -> None:
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    for number, (statement,) in enumerate(verified):
        if number != lost:
            assert play.send_to_s1(statement) == ()
    (again,) = play.send_to_s1(accepted)
    assert parse(again.payload) == parse(batch_of(play, lost).payload)
    assert play.s1.topology_state.aggregate_share is None
    (pending,) = resume(play.s1.state, play.s1.rows)
    assert pending.payload == again.payload
    answers = play.send_to_s2(again)
    assert answers == (*verified[lost], accepted)
    out = play.send_to_s1(answers[0])
    assert kinds(out) == [AggregateShare]
    play.settle(out)
    assert play.counts() == [1] * 6


def test_when_only_the_set_was_lost_it_is_the_answer_to_any_part(stage) -> None:
    play = play_to_reservation(stage)
    verified, accepted = verify_all(play)
    for about in verified:
        for statement in about:
            play.send_to_s1(statement)
    (batch,) = resume(play.s1.state, play.s1.rows)
    assert play.send_to_s2(batch)[-1] == accepted
    play.settle((batch,))
    assert play.counts() == [1] * 6


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_set_before_the_verified_parts_is_kept_and_waits_for_them(proven, order) -> None:
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    (batch,) = play.send_to_s1(accepted)
    assert parse(batch.payload).number == 0
    assert play.s1.accepted.message == play.read_from_s2(accepted)
    *some, last = order
    for number in some:
        out = play.send_to_s1(*verified[number])
        assert play.sums(out) == []
        assert play.s1.topology_state.aggregate_share is None
    assert kinds(play.send_to_s1(*verified[last])) == [AggregateShare]


def restored(stage):
    """The aggregator has fixed its set, and the coordinator is restored to before its manifest."""
    play = stage(SERVERS, n=6)
    play.answer_all()
    saved = play.s1.copy()
    play.deadline()
    for part in iterate_parts(play.s1.state, play.s1.view):
        answers = play.send_to_s2(play.by_s1(part))
    play.send_to_s1(answers[0])
    verify_all(play, (2, 0, 1))
    play.s1, out = saved.make_step(coordinator.start_resync)
    return play, out


def test_a_restored_coordinator_asks_for_every_verified_part_again(stage) -> None:
    """One message after the other, without a pause before each."""
    play, out = restored(stage)
    play.settle(out)
    assert play.counts() == [1] * 6


def test_a_restored_coordinator_has_no_copies_and_reads_the_reports(stage) -> None:
    play, (sync_request,) = restored(stage)
    waiting = [sync_request]
    # The history, both other parts of the manifest, and the history again.
    for _ in range(4):
        (answer,) = play.send_to_s2(waiting.pop())
        waiting += play.send_to_s1(answer)[:1]
    assert len(earlier_hashes(play.s1)) == 2
    assert play.s1.topology_state.copies == ()
    assert len(play.s1.view.report_parts) == 0


@pytest.mark.parametrize("change", ["share", "encrypted_share", "mac", "lost", "copies"])
def test_a_restored_coordinator_checks_the_reports_against_the_manifest(stage, change) -> None:
    play, (sync_request,) = restored(stage)
    (history,) = play.send_to_s2(sync_request)
    user = sorted(play.s1.view.first_messages)[3]
    report = play.s1.view.first_messages[user]
    if change == "lost":
        del play.s1.rows.table("first_messages")[user]
    elif change == "copies":
        # Of what manifest ever: a copy counts only if the coordinator has made it.
        empty = PartReports(report.share * 2, report.encrypted_share * 2)
        rows = play.s1.view
        rows.report_parts.overwrite(part_key(1), empty)
        play.s1.rows.apply(rows.step(play.s1.state))
    else:
        damaged = replace(report, **{change: bytes(len(getattr(report, change)))})
        spoil(play.s1, "first_messages", user, damaged)
    play.settle(play.send_to_s1(history))
    if change == "copies":
        assert play.counts() == [1] * 6
    else:
        assert play.s1.phase is play.s2.phase is Phase.ABORTED
        assert play.s2.statements[-1].message.code == EndCode.REPORTS_LOST


# --- a dishonest aggregator -----------------------------------------------------------------------


def contents_of(play, verified) -> list[VerifiedPart]:
    return [play.read_from_s2(statement) for (statement,) in verified]


def show(play, parts, accepted):
    """What the coordinator sends after these verified parts and this set."""
    sent = []
    for statement in (*parts, accepted):
        sent += play.send_to_s1(play.by_s2(statement))
    return sent


def without_last(play, accepted: AcceptedReports) -> AcceptedReports:
    """The set without the last report, under its right root."""
    entries = list(iterate_entries(play.s1.state, play.s1.view))[:-1]
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in entries))
    return replace(accepted, members=bitmap(range(5), 6), root=root)


def shift_last(play, part: VerifiedPart) -> VerifiedPart:
    """The part with another verifier share of its last report, which is then not valid."""
    layout = report_layout_of(play.params.mechanism)
    shares = unpack_verifier_shares(part.verifier_shares, layout, 2)
    shares[1, -1] = (int(shares[1, -1]) + 1) % layout.q
    return replace(part, verifier_shares=pack_verifier_shares(shares, layout))


def assert_not_confirmed(play, sent) -> None:
    assert play.sums(sent) == play.sums(resume(play.s1.state, play.s1.rows)) == []
    (request,) = [parse(message.payload) for message in sent]
    assert isinstance(request, Aborted)
    assert (request.code, request.detail.decode(), request.spent) == (
        EndCode.AGGREGATOR_CONTRADICTION,
        NOT_CONFIRMED,
        1,
    )
    assert play.s1.rows.is_scrubbed("report_parts")
    assert play.s1.rows.is_scrubbed("verified_parts")


def test_an_aggregator_that_shows_other_parts_than_it_signed_gets_no_sum(proven) -> None:
    """With what it shows the set would be right; with what it signed it is not."""
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    true = contents_of(play, verified)
    shown = [*true[:2], shift_last(play, true[2])]
    fewer = without_last(play, play.read_from_s2(accepted))
    backup = play.s1.copy()
    assert_not_confirmed(play, show(play, shown, fewer))
    # It may leave somebody out if it signs that, as the documentation says.
    play.s1 = backup
    named = replace(fewer, verified=hash_of_verified(shown))
    assert kinds(show(play, shown, named)) == [AggregateShare]


@pytest.mark.parametrize("number", range(3))
def test_verifier_shares_of_another_part_confirm_nothing(proven, number) -> None:
    """The aggregator exchanges the verifier shares of two parts, and signs what it shows."""
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    shown = contents_of(play, verified)
    one, other = number, (number + 1) % 3
    shown[one], shown[other] = (
        replace(shown[other], number=one),
        replace(shown[one], number=other),
    )
    named = replace(play.read_from_s2(accepted), verified=hash_of_verified(shown))
    # The last of the three, or the set before it: the answer is a request to abort, and no sum.
    assert_not_confirmed(play, show(play, shown, named))


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize(
    "spoiled",
    ["no bitmap", "long bitmap", "high bits", "fewer shares", "more shares", "one byte more"],
)
def test_verified_parts_of_another_size_confirm_nothing(proven, spoiled, number) -> None:
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    shown = contents_of(play, verified)
    shares = shown[number].verifier_shares
    change = {
        "no bitmap": {"decrypted": b""},
        "long bitmap": {"decrypted": b"\x03\x00"},
        "high bits": {"decrypted": b"\x07"},
        "fewer shares": {"verifier_shares": shares[: len(shares) // 2]},
        "more shares": {"verifier_shares": shares * 2},
        "one byte more": {"verifier_shares": shares + b"\0"},
    }[spoiled]
    shown[number] = replace(shown[number], **change)
    named = replace(play.read_from_s2(accepted), verified=hash_of_verified(shown))
    assert_not_confirmed(play, show(play, shown, named))


@pytest.mark.parametrize("last", range(3))
def test_a_false_part_after_the_set_gets_no_sum(proven, last) -> None:
    """The set is known: it does not matter which of its parts is shown otherwise."""
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    for number, (statement,) in enumerate(verified):
        if number != last:
            play.send_to_s1(statement)
    play.send_to_s1(accepted)
    true = contents_of(play, verified)[last]
    assert_not_confirmed(play, play.send_to_s1(play.by_s2(shift_last(play, true))))


def test_the_newest_verified_part_of_a_number_counts(proven) -> None:
    """What the set names is compared once everything is there."""
    play = play_to_reservation(proven_stage(proven))
    verified, accepted = verify_all(play)
    true = contents_of(play, verified)
    assert play.send_to_s1(play.by_s2(shift_last(play, true[1]))) == ()
    for (statement,) in verified:
        assert play.send_to_s1(statement) == ()
    assert kinds(play.send_to_s1(accepted)) == [AggregateShare]


def false_part(play, **change) -> VerifiedPart:
    part = VerifiedPart(play.params.survey, play.s1.manifest_hash, 0, b"\x03", b"")
    return replace(part, **change)


@pytest.mark.parametrize(
    "change", [{"number": 3}, {"number": 2**32 - 1}, {"manifest_hash": bytes(32)}]
)
def test_verified_parts_of_nothing_are_not_stored(proven, change) -> None:
    play = play_to_reservation(proven_stage(proven))
    before = play.s1.copy()
    assert play.send_to_s1(play.by_s2(false_part(play, **change))) == ()
    assert play.s1 == before
    assert play.send_to_s1(play.by_s2(false_part(play))) == ()
    assert len(play.s1.view.verified_parts) == 1


@pytest.mark.parametrize(("number", "reports"), [(0, 2), (2, 1)])
@pytest.mark.parametrize("long", ["decrypted", "verifier_shares"])
def test_a_verified_part_that_is_too_long_is_not_stored_and_ends_the_survey(
    proven, long, number, reports
) -> None:
    """Of five reports in three parts the last part has one: the aggregator must not fill the disk."""
    play = play_to_reservation(proven_stage(proven), n=5)
    layout = report_layout_of(play.params.mechanism)
    fitting = bytes(packed_size(layout.q, reports * layout.verifier_size))
    part = false_part(play, number=number, decrypted=b"\x01", verifier_shares=fitting)
    assert play.send_to_s1(play.by_s2(part)) == ()
    assert len(play.s1.view.verified_parts) == 1
    too_long = replace(part, **{long: getattr(part, long) + b"\0"})
    assert_not_confirmed(play, play.send_to_s1(play.by_s2(too_long)))
    assert len(play.s1.view.verified_parts) == 0


def before_the_manifest(stage):
    play = stage(SERVERS, n=6)
    play.answer_all()
    return play


def before_the_reservation(stage):
    play = before_the_manifest(stage)
    play.deadline()
    return play


def after_the_sum(stage):
    play = play_to_reservation(stage)
    verified, accepted = verify_all(play)
    for about in verified:
        for statement in about:
            play.send_to_s1(statement)
    play.send_to_s1(accepted)
    assert play.s1.topology_state.aggregate_share is not None
    return play


def after_a_request_to_abort(stage):
    play = play_to_reservation(stage)
    after, _ = coordinator.request_abort(play.s1.state, Ending(EndCode.OWNER))
    play.s1 = replace(play.s1, state=after)
    return play


def after_the_end(stage):
    play = play_to_reservation(stage)
    play.settle(resume(play.s1.state, play.s1.rows))
    return play


@pytest.mark.parametrize(
    "when",
    [
        before_the_manifest,
        before_the_reservation,
        after_the_sum,
        after_a_request_to_abort,
        after_the_end,
    ],
)
def test_verified_parts_are_stored_only_while_they_are_needed(stage, when) -> None:
    play = when(stage)
    before = play.s1.copy()
    assert play.send_to_s1(play.by_s2(false_part(play))) == ()
    assert play.s1 == before


@pytest.mark.parametrize("verified_first", [0, 2, 3])
def test_answers_that_cross_a_request_to_abort_do_not_change_its_reason(
    stage, verified_first
) -> None:
    """The owner ends the survey while the aggregator verifies the last parts."""
    play = play_to_reservation(stage)
    verified, accepted = verify_all(play)
    for statement in chain.from_iterable(verified[:verified_first]):
        play.send_to_s1(statement)
    request, _ = coordinator.request_abort(
        play.s1.state, Ending(EndCode.OWNER, (), "wrong question")
    )
    play.s1 = replace(play.s1, state=request)
    for statement in chain.from_iterable(verified[verified_first:]):
        assert play.send_to_s1(statement) == ()
    play.send_to_s1(accepted)
    assert play.s1.topology_state.aggregate_share is None
    assert play.s1.final == request.final
    play.settle(resume(play.s1.state, play.s1.rows))
    assert (play.s1.final.message.code, play.s1.phase) == (EndCode.OWNER, Phase.ABORTED)


def test_without_proofs_no_verified_part_is_stored(stage) -> None:
    play = play_to_reservation(stage)
    play.send_to_s1(play.by_s2(false_part(play)))
    assert len(play.s1.view.verified_parts) == int(play.params.proven)


@pytest.mark.parametrize(
    "when",
    [before_the_manifest, before_the_reservation, after_a_request_to_abort, after_the_end],
)
def test_no_part_shares_are_made_before_the_reservation_or_after_the_end(stage, when) -> None:
    play = when(stage)
    for number in range(4):
        assert SERVERS.coordinator.part_shares(play.s1.state, play.s1.view, number) == ()


def test_the_same_part_shares_are_made_again(stage) -> None:
    """There is no second query about a report, with the copies or without them."""
    play = play_to_reservation(stage)
    first = [batch_of(play, number) for number in range(3)]
    assert [batch_of(play, number) for number in range(3)] == first
    play.s1.rows.table("report_parts").clear()
    assert [batch_of(play, number) for number in range(3)] == first
    assert SERVERS.coordinator.part_shares(play.s1.state, play.s1.view, 3) == ()


# --- work that is done ahead ----------------------------------------------------------------------


def work_ahead(play, message) -> PartWork | None:
    return SERVERS.aggregator.work_ahead(play.s2.state, play.s2.view, parse(message.payload))


def refuse_to_verify(*_):
    raise AssertionError("this was verified ahead")


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_work_done_ahead_gives_the_same_step(stage, order, monkeypatch) -> None:
    """All parts are verified before the first step is made, in other processes."""
    play = play_to_reservation(stage)
    batches = {number: batch_of(play, number) for number in order}
    computed = {}
    for number, batch in batches.items():
        work = pickle.loads(pickle.dumps(work_ahead(play, batch)))  # noqa: S301 - our own bytes
        computed[number] = work.rows(work.run())
    for number in order:
        plain = aggregator_step(play.s2.state, batches[number], play.s2.rows)
        with monkeypatch.context() as patch:
            patch.setattr(PartVerifier, "verify", refuse_to_verify)
            reader = PrecomputedReader(play.s2.rows, computed[number])
            step = aggregator_step(play.s2.state, batches[number], reader)
        assert (step.messages, step.rows, step.scrubbed) == (
            plain.messages,
            plain.rows,
            plain.scrubbed,
        )
        assert encode_state(step.state) == encode_state(plain.state)
        play.s2 = play.s2.write_step(step)
    play.settle(resume(play.s1.state, play.s1.rows))
    assert play.counts() == [1] * 6


def test_work_done_for_another_batch_is_not_used(proven) -> None:
    """Otherwise verifier shares would be accepted that nobody has sent for this part."""
    play = play_to_reservation(proven_stage(proven))
    batch = batch_of(play, 1)
    content = parse(batch.payload)
    other = replace(content, verifier_shares=bytes(len(content.verifier_shares)))
    work = SERVERS.aggregator.work_ahead(play.s2.state, play.s2.view, other)
    computed = work.rows(work.run())
    assert computed.count("part_verifications") == 1
    plain = aggregator_step(play.s2.state, batch, play.s2.rows)
    step = aggregator_step(play.s2.state, batch, PrecomputedReader(play.s2.rows, computed))
    assert (step.messages, step.rows) == (plain.messages, plain.rows)
    # The other batch itself is judged by it, and none of its reports is valid.
    (found,) = aggregator_step(
        play.s2.state, play.by_s1(other), PrecomputedReader(play.s2.rows, computed)
    ).rows
    assert found.value.members == bitmap([], 2)


def test_work_for_a_part_that_was_verified_meanwhile_changes_nothing(proven) -> None:
    play = play_to_reservation(proven_stage(proven))
    batch = batch_of(play, 1)
    content = parse(batch.payload)
    other = play.by_s1(replace(content, verifier_shares=bytes(len(content.verifier_shares))))
    work = work_ahead(play, other)
    computed = work.rows(work.run())
    first = play.send_to_s2(batch)
    step = aggregator_step(play.s2.state, other, PrecomputedReader(play.s2.rows, computed))
    assert (step.messages, step.rows, step.state) == (first, (), play.s2.state)


def test_no_work_is_done_for_what_will_be_refused(stage) -> None:
    play = stage(SERVERS, n=6)
    play.answer_all()
    play.deadline()
    early = play.by_s1(PartShares(play.params.survey, bytes(32), ()))
    assert work_ahead(play, early) is None
    play = play_to_reservation(stage)
    batch = parse(batch_of(play, 0).payload)
    for change in ({"manifest_hash": bytes(32)}, {"number": 3}):
        assert work_ahead(play, play.by_s1(replace(batch, **change))) is None
    assert work_ahead(play, play.by_s1(SyncRequest(play.params.survey))) is None
    play.send_to_s2(play.by_s1(batch))
    assert work_ahead(play, play.by_s1(batch)) is None
    play.settle(resume(play.s1.state, play.s1.rows))
    assert work_ahead(play, play.by_s1(replace(batch, number=1))) is None


def test_work_without_a_result_leaves_the_refusal_to_the_step(proven) -> None:
    play = play_to_reservation(proven_stage(proven))
    batch = parse(batch_of(play, 0).payload)
    message = play.by_s1(replace(batch, verifier_shares=b""))
    work = work_ahead(play, message)
    computed = work.rows(work.run())
    assert computed == MemoryRows()
    step = aggregator_step(play.s2.state, message, PrecomputedReader(play.s2.rows, computed))
    assert play.read_from_s2(step.messages[0]).reason == Reason.MALFORMED
    assert step.rows == ()


def test_no_second_query_is_made_ahead_of_its_refusal(proven) -> None:
    """With another value of the coordinator the verifier shares would be those of another point."""
    play = play_to_reservation(proven_stage(proven))
    batch = parse(batch_of(play, 0).payload)
    message = play.by_s1(replace(batch, revealed=bytes(32)))
    assert work_ahead(play, message) is None
    (aborted,) = play.send_to_s2(message)
    assert play.read_from_s2(aborted).code == EndCode.COORDINATOR_CONTRADICTION


def test_no_work_is_done_for_shares_that_are_not_those_of_the_manifest(stage) -> None:
    play = play_to_reservation(stage)
    batch = parse(batch_of(play, 0).payload)
    first, second = batch.encrypted_shares
    for shares in ((), (first,), (second, first), (first, bytes(len(second))), (first, second) * 2):
        message = play.by_s1(replace(batch, encrypted_shares=shares))
        assert work_ahead(play, message) is None
        (refused,) = play.send_to_s2(message)
        assert play.read_from_s2(refused).reason == Reason.WRONG_SHARES


def test_work_shows_no_secret(proven) -> None:
    play = play_to_reservation(proven_stage(proven))
    shown = repr(work_ahead(play, batch_of(play, 0))) + repr(PartVerifier.of(play.s2.state))
    for secret in (play.s2.encryption_keys.secret, play.s2.committed_value):
        assert repr(secret) not in shown
        assert secret.hex() not in shown


def test_no_step_is_sent_to_another_process_as_a_whole(stage) -> None:
    play = play_to_reservation(stage)
    batch = parse(batch_of(play, 0).payload)
    assert SERVERS.aggregator.rows_for(play.s2.state, StepRows(play.s2.rows), batch) is None
