"""`servers`: claims and blobs in parts. The result is the one of a claim in one piece, whatever is lost on the way."""

from dataclasses import replace
from hashlib import sha256

import pytest

from faircount.protocol import SERVERS, resume
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.aggregator import restored
from faircount.protocol.roles.coordinator import backup
from faircount.protocol.roles.stored import decode_state, encode_state
from faircount.protocol.survey import inclusion
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.aggregator import apart
from faircount.protocol.topologies.two_servers.claims import chain_of, entries_of, in_chain, parts_of
from faircount.protocol.topologies.two_servers.messages import Included, Next, ServersClaim, Submitter
from faircount.protocol.wire.codec import encode, parse
from faircount.protocol.wire.digests import bitmap, merkle_root, roster_leaves
from faircount.protocol.wire.messages import (
    Batch,
    Concluded,
    Inclusion,
    Inquiry,
    Published,
    Reason,
    Receipt,
    Refused,
    Signed,
    SyncRequest,
    SyncState,
)
from faircount.protocol.wire.signing import UNCHAINED, Link, link_to


@pytest.fixture(autouse=True)
def lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LINES", 2)


@pytest.fixture(params=["as they come", "proven"])
def stage(request, stage, proven):
    return stage if request.param == "as they come" else lambda topology, **terms: proven(**terms)


def hash_of(what) -> bytes:
    return sha256(encode(what)).digest()


def closed(stage, n: int = 6, **terms):
    """Everybody has answered, and S1 has its claim."""
    play = stage(SERVERS, n=n, **terms)
    play.answer_all()
    play.deadline()
    return play


def parts(play) -> list[ServersClaim]:
    return list(parts_of(play.s1))


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_a_claim_is_a_chain_of_parts_and_everybody_is_counted_once(stage, n) -> None:
    play = closed(stage, n)
    found = parts(play)
    assert [len(each.entries) for each in found] == [2] * (n // 2) + [1] * (n % 2)
    assert [each.before for each in found] == [bytes(32), *map(hash_of, found[:-1])]
    assert [(each.number, each.more) for each in found] == [(k, int(k < len(found) - 1)) for k in range(len(found))]
    users = [each.user for each in entries_of(play.s1)]
    assert users == sorted(each.user for each in play.invitations)
    play.settle(resume(play.s1))
    assert play.counts() == [1] * n
    assert play.s2.claim_hash == hash_of(found[-1])


def test_each_message_between_the_servers_has_the_lines_of_one_part(stage) -> None:
    play = closed(stage, 7)
    waiting, sent = list(resume(play.s1)), []
    while waiting:
        message = waiting.pop(0)
        said = parse(message.payload)
        sent.append((type(said).__name__, len(getattr(said, "entries", getattr(said, "blobs", ())))))
        waiting += play.tell_s2(message) if play.said_by_s2(message) is None else play.tell_s1(message)
    asked = [("Next", 0)]
    claims, blobs = (
        [pair for size in (2, 2, 2, 1) for pair in [(kind, size), *asked]][:-1] for kind in ("ServersClaim", "Batch")
    )
    assert sent == [*claims, ("Receipt", 0), *blobs, ("Included", 0), ("ShareSum", 0), ("Published", 0)]


def test_the_set_is_the_one_of_a_claim_in_one_piece(stage, monkeypatch) -> None:
    """Members, root and evidence are over the whole claim, whoever's blob does not open."""
    stated = []
    for size in (2, 4096):
        monkeypatch.setattr(messages, "LINES", size)
        play = stage(SERVERS, n=7, seed=5)
        play.answer_all()
        for at in (1, 4):
            user = sorted(play.s1.bodies.keys())[at]
            play.s1.bodies._written[user] = replace(play.s1.bodies[user], mac=bytes(32))
            play.s1.bodies._hashes[user] = hash_of(play.s1.bodies[user])
        play.settle(play.deadline())
        stated.append(play.s1.included.says)
        assert sorted(play.counts()) == [0, 0, 1, 1, 1, 1, 1]
    assert [(each.members, each.root, each.opened) for each in stated[:1]] == [
        (each.members, each.root, each.opened) for each in stated[1:]
    ]
    assert stated[0].members == bitmap([0, 2, 3, 5, 6], 7)


def test_every_message_may_be_lost_or_come_twice(stage) -> None:
    play = closed(stage, 6)
    for _ in range(40):
        for message in resume(play.s1) * 2:
            answers = play.tell_s2(message)
        following = [each for answer in answers * 2 for each in play.tell_s1(answer)]
        for message in following[:1] * 2:  # its answer is lost
            play.tell_s2(message)
    assert play.counts() == [1] * 6
    assert [type(each.says) for each in play.s2.statements] == [Receipt, Included, Published]


def test_both_servers_come_back_from_their_bytes_after_every_message(stage) -> None:
    play = closed(stage, 7)
    waiting = list(resume(play.s1))
    while waiting:
        message = waiting.pop(0)
        to_s2 = play.said_by_s2(message) is None
        waiting += play.tell_s2(message) if to_s2 else play.tell_s1(message)
        play.s1 = decode_state(type(play.s1), encode_state(play.s1), play.s1.sealing)
        play.s2 = decode_state(type(play.s2), encode_state(play.s2), play.s2.sealing, play.s2.ledger)
    assert play.counts() == [1] * 7


def test_a_step_about_a_part_needs_no_more_than_that_part(stage) -> None:
    """What another process is given: a few people's keys, one part of the claim, and of others what was noted."""
    play = closed(stage, 7)
    waiting, given = list(resume(play.s1)), []
    while waiting:
        message = waiting.pop(0)
        if play.said_by_s2(message) is not None:
            waiting += play.tell_s1(message)
            continue
        says = parse(message.payload)
        small = apart(play.s2, says)
        if small is not None:
            given.append((type(says).__name__, len(small.mac_keys), len(small.kept), len(small.notes)))
            whole, play.s2 = play.s2, small
            waiting += play.tell_s2(message)
            after = play.s2
            play.s2 = replace(after, mac_keys=whole.mac_keys, kept=whole.kept, notes=whole.notes)
            for name in ("kept", "notes"):
                for key, value, _ in getattr(after, name).rows():
                    getattr(play.s2, name).put(key, value)
        else:
            given.append((type(says).__name__,))
            waiting += play.tell_s2(message)
    assert given == [
        *[("ServersClaim", 2, 0, 0)] * 3, ("ServersClaim",),
        *[("Batch", 2, 1, 0)] * 3, ("Batch", 1, 0, 3), ("ShareSum", 0, 0, 0),
    ]  # fmt: skip
    assert play.counts() == [1] * 7


# --- what S2 refuses


def refusal(play, message) -> Reason:
    (answer, *_) = play.tell_s2(play.by_s1(message))
    return Reason(play.said_by_s2(answer).reason)


def test_parts_come_in_order_and_from_the_first(stage) -> None:
    play = closed(stage)
    first, second, third = parts(play)
    assert refusal(play, second) is Reason.EARLY
    assert refusal(play, third) is Reason.EARLY
    (asked,) = play.tell_s2(play.by_s1(first))
    assert play.said_by_s2(asked) == Next(play.params.survey, hash_of(first), 1)
    assert refusal(play, third) is Reason.EARLY
    assert refusal(play, replace(second, before=bytes(32))) is Reason.EARLY
    assert play.tell_s2(play.by_s1(first)) == (asked,)
    assert play.s2.claim is None
    assert not play.s2.ledger.charges


def test_a_claim_that_begins_anew_takes_the_place_of_one_that_is_not_whole(stage) -> None:
    """A restored S1 may claim others; what S2 had recorded of the first is of no effect."""
    play = closed(stage)
    first, *_ = parts(play)
    play.tell_s2(play.by_s1(first))
    everybody = list(entries_of(play.s1))
    other = list(in_chain(play.params, everybody[1:]))
    for each in other:
        answers = play.tell_s2(play.by_s1(each))
    assert play.said_by_s2(answers[0]).claim_hash == hash_of(other[-1])
    assert [each.user for each in entries_of(play.s2)] == [each.user for each in everybody[1:]]
    assert refusal(play, first) is Reason.CONFLICT


@pytest.mark.parametrize(
    "spoil", ["short", "long", "order inside", "order between", "twice", "under two keys", "empty end", "two keys"]
)
def test_parts_that_s2_refuses(stage, spoil) -> None:
    play = closed(stage)
    lines = list(entries_of(play.s1))
    chains = {
        "short": [replace(parts(play)[0], entries=lines[:1])],
        "long": [replace(parts(play)[0], entries=lines[:3])],
        "order inside": list(in_chain(play.params, [lines[1], lines[0], *lines[2:]])),
        "order between": list(in_chain(play.params, [*lines[2:4], *lines[:2], *lines[4:]])),
        "twice": list(in_chain(play.params, [*lines[:2], *lines[1:5]])),
        "under two keys": list(in_chain(play.params, [lines[0], replace(lines[0], public_key=bytes(32)), *lines[1:]])),
        "empty end": [parts(play)[0], replace(parts(play)[1], entries=(), more=0)],
        "two keys": list(in_chain(play.params, [*lines[:5], replace(lines[5], public_key=lines[0].public_key)])),
    }
    reasons = []
    for each in chains[spoil]:
        said = play.said_by_s2(play.tell_s2(play.by_s1(each))[0])
        reasons.append(None if isinstance(said, Next) else Reason(said.reason))
    assert next(each for each in reasons if each is not None) is Reason.MALFORMED
    assert play.s2.claim is None
    assert not play.s2.ledger.charges


def test_keys_that_only_begin_alike_are_different(stage) -> None:
    play = closed(stage)
    lines = list(entries_of(play.s1))
    twin = replace(lines[5], public_key=lines[0].public_key[:8] + lines[5].public_key[8:])
    for each in in_chain(play.params, [*lines[:5], twin]):
        answers = play.tell_s2(play.by_s1(each))
    assert isinstance(play.said_by_s2(answers[0]), Receipt)


def test_more_lines_than_people_are_refused_before_they_all_came(stage) -> None:
    play = closed(stage)
    more = [Submitter(bytes([at]) * 16, bytes(31) + bytes([at]), *(bytes(32),) * 3) for at in range(1, 9)]
    *fitting, over = list(in_chain(play.params, more))
    for each in fitting:
        assert isinstance(play.said_by_s2(play.tell_s2(play.by_s1(each))[0]), Next)
    assert refusal(play, over) is Reason.FULL


def test_s1_gives_up_when_a_part_is_refused_for_good(stage) -> None:
    for number in range(3):
        play = closed(stage)
        refused = Refused(play.params.survey, hash_of(parts(play)[number]), int(Reason.FULL), b"more than 1 users")
        play.tell_s1(play.by_s2(replace(refused, request_hash=bytes(32))))
        assert play.s1.final is None
        play.tell_s1(play.by_s2(refused))
        assert b"more than 1 users" in play.s1.final.says.reason


def test_blobs_of_another_part_are_asked_for_in_order(stage) -> None:
    play = closed(stage)
    for each in parts(play):
        answers = play.tell_s2(play.by_s1(each))
    (first,) = play.tell_s1(answers[0])
    batch = parse(first.payload)
    (asked,) = play.tell_s2(play.by_s1(replace(batch, number=2)))
    assert play.said_by_s2(asked) == Next(play.params.survey, play.s1.claim_hash, 0)
    (asked,) = play.tell_s2(first)
    assert play.said_by_s2(asked) == Next(play.params.survey, play.s1.claim_hash, 1)
    assert play.s2.handed_over
    assert refusal(play, replace(batch, number=1)) is Reason.WRONG_BLOBS
    assert play.tell_s2(first) == (asked,)


@pytest.mark.parametrize("end", ["two keys", "too few", "closed"])
def test_after_a_refused_end_s2_stands_where_it_stood(stage, end) -> None:
    """It forgot how far it had come, but not the parts: then somebody could be named again under a second key."""
    play = closed(stage)
    first, second, third = parts(play)
    lines, ledger = list(entries_of(play.s1)), play.s2.ledger
    for each in (first, second):
        play.tell_s2(play.by_s1(each))
    bad = {
        "two keys": replace(third, entries=(lines[4], replace(lines[5], public_key=lines[0].public_key))),
        "too few": replace(third, entries=tuple(replace(each, mac=bytes(32)) for each in lines[4:])),
        "closed": third,
    }[end]
    if end == "too few":
        play.s2 = replace(play.s2, own=replace(play.s2.own, vouched=0))
    if end == "closed":
        play.s2 = replace(play.s2, ledger=ledger.restored(()))
    before = play.s2
    assert isinstance(play.said_by_s2(play.tell_s2(play.by_s1(bad))[0]), Refused)
    assert play.s2 == before
    again = [replace(lines[0], public_key=bytes(32)), lines[4]]
    assert refusal(play, replace(third, entries=tuple(again))) is Reason.MALFORMED
    play.s2 = replace(play.s2, ledger=ledger, own=replace(play.s2.own, vouched=4))
    play.settle(resume(play.s1))
    assert play.counts() == [1] * 6


def test_a_claim_in_one_part_that_is_refused_leaves_what_was_recorded(stage) -> None:
    play = closed(stage)
    first, *_ = parts(play)
    play.tell_s2(play.by_s1(first))
    before = play.s2
    few = ServersClaim(play.params.survey, play.params.digest, tuple(entries_of(play.s1))[:2])
    assert refusal(play, few) is Reason.TOO_FEW
    assert play.s2 == before


# --- what S1 does not do


def receipted(stage, n: int = 6):
    play = closed(stage, n)
    for each in parts(play):
        answers = play.tell_s2(play.by_s1(each))
    (batch,) = play.tell_s1(answers[0])
    return play, batch


@pytest.mark.parametrize("change", [{"number": 0}, {"number": 3}, {"number": 99}, {"recorded": bytes(32)}])
def test_s1_does_not_answer_an_s2_that_has_other_parts(stage, change) -> None:
    play = closed(stage)
    asked = replace(Next(play.params.survey, play.s1.earlier[0], 1), **change)
    assert play.tell_s1(play.by_s2(asked)) == ()
    play, _ = receipted(stage)
    asked = replace(Next(play.params.survey, play.s1.claim_hash, 1), **change)
    assert play.tell_s1(play.by_s2(asked)) == ()


def test_no_blob_leaves_before_the_receipt(stage) -> None:
    play = closed(stage)
    for number in range(4):
        for recorded in (*play.s1.earlier, play.s1.claim_hash):
            out = play.tell_s1(play.by_s2(Next(play.params.survey, recorded, number)))
            assert not any(isinstance(parse(each.payload), Batch) for each in out)


def test_no_blob_leaves_after_s1_has_given_up(stage) -> None:
    play = closed(stage)
    play.s1, _ = coordinator.give_up(play.s1, "the owner says so")
    for each in parts(play):
        answers = play.tell_s2(play.by_s1(each))
    play.tell_s1(answers[0])
    for number in range(4):
        assert play.tell_s1(play.by_s2(Next(play.params.survey, play.s1.claim_hash, number))) == ()


def test_s1_gives_up_when_a_blob_of_a_later_part_is_lost(stage) -> None:
    play, batch = receipted(stage)
    (asked,) = play.tell_s2(batch)
    last = sorted(play.s1.bodies.keys())[3]
    play.s1.bodies._written[last] = replace(play.s1.bodies[last], blob=bytes(len(play.s1.bodies[last].blob)))
    play.tell_s1(asked)
    assert b"damaged or lost" in play.s1.final.says.reason


def told(play, last: ServersClaim, earlier, *says):
    """What a lying S2 says that stands."""
    chain = []
    for each in says:
        before = link_to(chain[-1]) if chain else UNCHAINED
        chain.append(play.by_s2(each, Link(before.number + 1, before.hash)))
    return play.by_s2(SyncState(play.params.survey, b"", encode(last), tuple(chain), tuple(map(encode, earlier))))


def named_set(claim: ServersClaim, lines) -> Included:
    root = merkle_root(roster_leaves((each.user, each.public_key) for each in lines))
    return Included(claim.survey, hash_of(claim), bitmap(range(len(lines)), len(lines)), root)


@pytest.mark.parametrize("size", [2, 4096])
@pytest.mark.parametrize("named", ["one person many times", "two people in turns", "everybody and one again"])
def test_a_claim_that_names_somebody_twice_is_never_added_up(stage, size, named, monkeypatch) -> None:
    """S2 made up a claim with one line six times, and was handed six times that person's share."""
    monkeypatch.setattr(messages, "LINES", size)
    play = closed(stage)
    lines = list(entries_of(play.s1))
    some = {
        "one person many times": [lines[2]] * 6,
        "two people in turns": [lines[0], lines[1]] * 3,
        "everybody and one again": [*lines, lines[0]],
    }[named]
    receipt = Receipt(play.params.survey, bytes(32), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed)
    *earlier, last = in_chain(play.params, some)
    stated = named_set(last, some)
    before = backup(play.s1)
    (answer,) = play.tell_s1(told(play, last, earlier, replace(receipt, claim_hash=stated.claim_hash), stated))
    assert (answer.why, play.s1) == (Reason.MALFORMED, before)
    assert play.sums(resume(play.s1)) == []


@pytest.mark.parametrize("spoil", ["lost", "order", "order inside", "size", "more", "numbers", "another kind"])
def test_s1_takes_over_no_claim_that_is_not_whole(stage, spoil) -> None:
    play = closed(stage)
    everybody = list(entries_of(play.s1))
    *earlier, last = in_chain(play.params, everybody[1:])
    play.s1.kept._written.clear()
    if spoil == "lost":
        earlier = earlier[1:]
    elif spoil == "order":
        (*earlier, last) = in_chain(play.params, [*everybody[3:5], *everybody[1:3], everybody[5]])
    elif spoil == "order inside":
        (*earlier, last) = in_chain(play.params, [everybody[2], everybody[1], *everybody[3:]])
    elif spoil == "size":
        first = replace(earlier[0], entries=everybody[:1])
        earlier, last = [first], replace(last, number=1, before=hash_of(first))
    elif spoil == "more":
        (*earlier, last) = in_chain(play.params, everybody)
        last = replace(last, more=1)
    elif spoil == "numbers":
        last = replace(last, number=5)
    receipt = Receipt(play.params.survey, hash_of(last), b"0", b"0", b"", 1, 1, bytes(32), play.s2.committed)
    others = [Inquiry(bytes(16), bytes(32))] if spoil == "another kind" else earlier
    (answer,) = play.tell_s1(told(play, last, others, receipt))
    assert answer.why is Reason.MALFORMED
    assert chain_of(play.s1.kept, last) is None


# --- restores


def test_a_restored_s1_takes_over_all_parts_from_s2(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all()
    old = backup(play.s1)
    play.deadline()
    for each in parts(play):
        play.tell_s2(play.by_s1(each))
    hashes = play.s1.earlier
    play.s1, out = coordinator.restored(old)
    play.settle(out)
    assert play.s1.earlier == hashes
    assert play.counts() == [1] * 7


def test_a_restored_s1_that_lost_answers_of_an_early_part_ends_the_survey(stage) -> None:
    play = stage(SERVERS, n=7)
    play.answer_all(skip=(0,))
    old = backup(play.s1)
    play.exchange(play.client.begin(play.params, play.device(0), play.s2.sealing, play.entropy))
    play.deadline()
    for each in parts(play):
        play.tell_s2(play.by_s1(each))
    play.s1, out = coordinator.restored(old)
    play.settle(out)
    assert play.s1.state is State.ABORTED
    assert play.s1.final.says.spent == 1


def test_s2_that_is_restored_in_the_middle_of_the_blobs_ends_the_survey_as_spent(stage) -> None:
    play, batch = receipted(stage)
    play.tell_s2(batch)
    play.s2, out = restored(play.s2)
    play.settle(out)
    assert (play.s1.state, play.s1.final.says.spent) == (State.ABORTED, 1)


def test_notes_about_blobs_go_and_parts_stay_when_it_is_over(stage) -> None:
    """A restored S1 can still be told whom the result counts."""
    play = closed(stage, 7)
    play.settle(resume(play.s1))
    assert (len(play.s2.notes), play.s2.own, play.s2.held) == (0, None, None)
    (answer,) = play.tell_s2(play.by_s1(SyncRequest(play.params.survey)))
    stands = play.said_by_s2(answer)
    assert len(stands.earlier) == 3
    assert isinstance(play.tell_s2(play.by_s1(Batch(play.params.survey, play.s1.claim_hash, ())))[0], Signed)


# --- was I counted?


@pytest.mark.parametrize("block", [1, 2, 64])
def test_everybody_can_check_that_it_was_counted_in_whatever_part(stage, block, monkeypatch) -> None:
    monkeypatch.setattr(inclusion, "BLOCK", block)
    inclusion._above.cache_clear()
    play = stage(SERVERS, n=7)
    play.answer_all(skip=(3,))
    play.settle(play.deadline())
    for at, each in enumerate(play.invitations):
        (answer,) = play.tell_s1(Inquiry(play.params.survey, each.access))
        key = None if at == 3 else play.people[at].body.public_key
        if at == 3:
            assert isinstance(answer, Concluded)
        else:
            assert isinstance(answer, Inclusion)
            assert inclusion.counts_in(play.params, answer, each.user, key)
