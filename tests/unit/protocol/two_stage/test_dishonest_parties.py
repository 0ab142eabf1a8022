"""TSS and TSS' against dishonest servers and malicious clients.

Nobody is singled out, and one malicious client cannot stop a survey. Noise is off: user i has item
i and reports it, so an item's sum over one reporter is that user's bit.
"""

from dataclasses import replace
from hashlib import sha256
from itertools import product

import pytest

from faircount.protocol import resume
from faircount.protocol.survey.endings import OTHER_BATCH, TWO_SETS
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_stage import user as people
from faircount.protocol.topologies.two_stage.blame import assign_blame
from faircount.protocol.topologies.two_stage.lists import (
    is_listed,
    item_salt,
    list_root,
    prove_listed,
)
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    Election,
    SlotSumRequest,
    SlotSums,
)
from faircount.protocol.topologies.two_stage.relay import (
    ballot_of,
    current_helper_sums,
    items_of,
    make_election_request,
    present_reporters,
    two_stage_state,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Published, Reason, Signed, SyncState, decode
from faircount.protocol.wire.signing import UNCHAINED, ChainLink, compute_chain_link, sign
from faircount.sharing.packing import packed_size


def ones(*without) -> list[int]:
    return [int(i not in without) for i in range(8)]


# --- a dishonest coordinator ----------------------------------------------------------------------


def one_reporter_per_item(play) -> dict[int, int]:
    """For every item the number of one of its reporters."""
    found = dict[int, int]()
    for number, place in present_reporters(play.s1):
        for item in items_of(play.s1, place):
            found.setdefault(item, number)
    return found


def single_out(play, call, victims, *, lists=False):
    """A sum request with the shares of one reporter per item, and with cut or whole lists."""
    tasks = []
    for task in call.tasks:
        listed = members_of(task.listed, 8)
        victim = victims.get(task.item)
        shares = zip(listed, task.encrypted_shares, strict=True)
        kept = tuple(share for number, share in shares if number == victim)
        bits = task.listed
        if lists and victim is not None:
            bits = bitmap((victim,), 8)
        tasks.append(replace(task, encrypted_shares=kept, listed=bits))
    return replace(call, tasks=tuple(tasks))


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_coordinator_cannot_give_helpers_one_reporter_per_item(two_stage, seed, lists) -> None:
    """In version 0.1 this attack published the bits of chosen people in 20 of 20 surveys."""
    play = two_stage("shared", k=2, seed=seed)
    victims = one_reporter_per_item(play)
    refused = 0
    for i in play.waiting_for(SlotSumRequest):
        call = play.visit(i)
        changed = single_out(play, call, victims, lists=lists)
        if changed != call:
            answer = people.answer_sum_request(play.people[i], changed, play.entropy)
            assert (answer[0], answer[1].why) == (play.people[i], Reason.WRONG_DIGEST)
            refused += 1
    assert refused


def test_the_coordinator_cannot_hide_behind_lost_reporters(two_stage) -> None:
    """A lower bound of m_j minus the lost would let the coordinator hide as many reporters."""
    play = two_stage("shared", k=2, skip=(6, 7))
    i = play.waiting_for(SlotSumRequest)[0]
    call = play.visit(i)
    at, task = next(
        (at, task) for at, task in enumerate(call.tasks) if len(task.encrypted_shares) > 1
    )
    tasks = (
        *call.tasks[:at],
        replace(task, encrypted_shares=task.encrypted_shares[1:]),
        *call.tasks[at + 1 :],
    )
    assert (
        people.answer_sum_request(play.people[i], replace(call, tasks=tasks), play.entropy)[1].why
        is Reason.WRONG_DIGEST
    )


def test_a_list_has_as_many_reporters_as_were_announced(two_stage) -> None:
    """Otherwise a false m_j would let the coordinator choose how many helpers an item has."""
    play = two_stage("shared", k=2)
    task = play.visit(play.waiting_for(SlotSumRequest)[0]).tasks[0]
    ballot = ballot_of(play.s1)
    assert people._is_complete(task, ballot, range(8))
    other = tuple(m + (j == task.item) for j, m in enumerate(ballot.reporters))
    assert not people._is_complete(task, replace(ballot, reporters=other), range(8))


def announce_lists(play, change) -> None:
    """The coordinator announces other lists than users indicated, and the aggregator signs."""
    (first,) = play.phase()
    lists = tuple(
        bitmap(change(j, members_of(bits, 8)), 8)
        for j, bits in enumerate(two_stage_state(play.s1).lists)
    )
    hashed = sha256(encode(make_election_request(play.s1, lists, 8))).digest()
    changed = replace(decode(first.payload), request_hash=hashed)
    play.s1 = play.s1.replace_fields(
        topology_state=replace(two_stage_state(play.s1), lists=lists, announcement=changed)
    )
    play.settle((play.by_s1(changed),))


def test_a_reporter_who_is_not_on_a_list_does_not_share(two_stage) -> None:
    """The coordinator exchanges numbers on a list, so that the m_j still fit."""
    play = two_stage("drawn", sets={i: (0, 1, 2) if i < 4 else (3, 4, 5) for i in range(8)})
    announce_lists(play, lambda j, listed: listed if j else sorted({*range(8)} - {*listed}))
    assert ballot_of(play.s1).reporters[0] == 4
    known = two_stage_state(play.s1)
    for number, place in enumerate(known.order):
        items = play.people[place].items
        proofs = []
        for j in items:
            if number in known.numbers[j]:
                salt = item_salt(known.order_key, play.params.survey, j)
                proofs.append(prove_listed(salt, known.numbers[j], number))
            else:
                proofs.append(prove_listed(bytes(32), [number], number))
        call = Assignment(play.params.survey, 1, known.election.signed, (), tuple(proofs))
        answer = people.send_shares(play.people[place], call, play.entropy)[1]
        assert getattr(answer, "why", None) is (Reason.WRONG_DIGEST if 0 in items else None)


def test_proofs_lead_to_their_list_and_to_no_other() -> None:
    salt = b"s" * 32
    numbers = (1, 4, 6, 7, 9)
    root = list_root(salt, numbers)
    for number in numbers:
        proof = prove_listed(salt, numbers, number)
        assert is_listed(proof, number, 5, root)
        assert not is_listed(proof, number + 10, 5, root)
        assert not is_listed(proof, number, 5, list_root(salt, numbers[:-1]))
        assert not is_listed(proof, number, 5, list_root(b"t" * 32, numbers))
        assert salt not in (proof.salt, *proof.path)
    assert not is_listed(replace(prove_listed(salt, numbers, 1), position=1), 1, 5, root)
    salts = {
        item_salt(bytes(32), bytes(16), 0),
        item_salt(bytes(32), bytes(16), 1),
        item_salt(b"k" * 32, bytes(16), 0),
    }
    assert len(salts) == 3


def test_the_coordinator_cannot_make_up_reporters(two_stage) -> None:
    """With made-up keys the coordinator would know all shares of an item but one victim's."""
    play = two_stage("drawn")
    (first,) = play.phase()
    own = decode(first.payload)
    key = play.s2.crypto.keypair(play.entropy).public
    stranger = Invitation(bytes(32), play.params.digest)
    tried = (
        replace(own.entries[2], public_key=key),
        replace(
            own.entries[2],
            public_key=key,
            mac=stranger.authenticate_key(key, people.REPORTING_LABEL),
        ),
        replace(
            own.entries[2],
            mac=play.invitations[own.entries[2].place].authenticate_key(own.entries[2].public_key),
        ),
    )
    for entry in tried:
        entries = (*own.entries[:2], entry, *own.entries[3:])
        (answer,) = play.send_to_s2(play.by_s1(replace(own, entries=entries)))
        assert play.read_from_s2(answer).positions == (2,)
        assert play.s2.last(Election) is None
        # No m_j was read, so nothing is charged.
        assert play.s2.ledger.find(play.params.survey) is None


def test_the_aggregator_accepts_one_sum_over_one_set(two_stage) -> None:
    play = two_stage("shared", k=2)
    reservation, included = play.send_to_s2(play.phase()[0])
    play.send_to_s1(reservation)
    (total,) = play.send_to_s1(included)
    own = two_stage_state(play.s1).total
    manifest = play.s1.manifest
    fewer = replace(manifest, attempt=2, formed=2, members=b"\x7f")
    for changed, why in (
        (fewer, Reason.CONFLICT),
        (replace(own, accepted_hash=bytes(32)), Reason.WRONG_DIGEST),
    ):
        assert play.read_from_s2(play.send_to_s2(play.by_s1(changed))[0]).reason == why
    (published,) = play.send_to_s2(total)
    assert play.send_to_s2(play.by_s1(replace(own, total=bytes(len(own.total))))) == (published,)
    play.send_to_s1(published)
    assert play.counts() == ones()


# --- a dishonest aggregator -----------------------------------------------------------------------


@pytest.fixture
def reserved_play(two_stage):
    """A survey with a reservation, in which the aggregator's set has not arrived yet."""
    play = two_stage("shared", k=2, minimum=5)
    reservation, play.true_set = play.send_to_s2(play.phase()[0])
    play.send_to_s1(reservation)
    return play


def test_the_coordinator_sends_one_sum_of_each_item_and_no_sum_of_a_slot(reserved_play) -> None:
    (first,) = reserved_play.sums(reserved_play.send_to_s1(reserved_play.true_set))
    assert reserved_play.sums(resume(reserved_play.s1.state, reserved_play.s1.rows)) == [first]
    assert len(first.total) == packed_size(reserved_play.params.q, reserved_play.params.N)
    sent = [
        b"".join(statement.signed.payload for statement in reserved_play.s2.statements),
        encode(reserved_play.s2.manifest),
    ]
    vectors = [
        reserved_play.s1.view.uploads[SlotSums.tag, part.digest, part.holder].vector
        for part in current_helper_sums(reserved_play.s1)
    ]
    long_vectors = [vector for vector in vectors if len(vector) > 2]
    assert not any(vector in where for vector, where in product(long_vectors, sent))
    reserved_play.settle(resume(reserved_play.s1.state, reserved_play.s1.rows))
    assert reserved_play.counts() == ones()
    assert reserved_play.s1.rows.is_scrubbed("uploads")
    assert reserved_play.s1.topology_state.total is None


def test_rejecting_good_seeds_replaces_helpers_and_reveals_nothing(reserved_play) -> None:
    """In an earlier version it made the coordinator send a second batch of sums."""
    true = reserved_play.read_from_s2(reserved_play.true_set)
    holder = reserved_play.holders()[0]
    part = next(part for part in current_helper_sums(reserved_play.s1) if part.holder == holder)
    fewer = bitmap([i for i in reserved_play.holders() if i != holder], 8)
    assert (
        reserved_play.sums(
            reserved_play.send_to_s1(reserved_play.instead(replace(true, members=fewer)))
        )
        == []
    )
    assert (reserved_play.s1.phase, reserved_play.s1.attempt) == (Phase.SHARING, 2)
    # The helper is replaced and its sums are deleted. Its own answer still counts.
    assert len(reserved_play.s1.members) == 8
    assert not reserved_play.s1.view.uploads.get((SlotSums.tag, part.digest, holder))


@pytest.mark.parametrize(
    "change",
    [{"members": b""}, {"members": b"\xff\xff"}, {"set_digest": bytes(32)}, {"root": bytes(32)}],
)
def test_a_set_that_is_not_of_the_manifest_ends_the_survey(reserved_play, change) -> None:
    true = reserved_play.read_from_s2(reserved_play.true_set)
    assert (
        reserved_play.sums(reserved_play.send_to_s1(reserved_play.instead(replace(true, **change))))
        == []
    )
    assert reserved_play.s1.phase is Phase.ABORTED
    assert reserved_play.s1.rows.is_scrubbed("uploads")


def test_a_second_set_or_another_manifest_after_the_sum_ends_the_survey(reserved_play) -> None:
    """Two sums over two sets would differ by somebody's bits."""
    reserved_play.send_to_s1(reserved_play.true_set)
    before = reserved_play.s1
    statements = reserved_play.s2.statements
    true = reserved_play.read_from_s2(reserved_play.true_set)
    assert (
        reserved_play.sums(
            reserved_play.send_to_s1(reserved_play.instead(replace(true, members=b"\x01")))
        )
        == []
    )
    assert reserved_play.s1.final.message.detail.decode() == TWO_SETS
    reserved_play.s1 = before
    other = replace(before.manifest, members=b"\x7f", attempt=2, formed=2)
    hashed = sha256(encode(other)).digest()
    messages = [statement.message for statement in statements] + [
        replace(statements[-2].message, manifest_hash=hashed),
        replace(true, manifest_hash=hashed),
    ]
    chained = list[Signed]()
    chain_link = ChainLink(0, UNCHAINED.hash)
    for message in messages:
        chained.append(
            sign(
                reserved_play.s2.key,
                Party.AGGREGATOR,
                message,
                ChainLink(chain_link.number + 1, chain_link.hash),
            )
        )
        chain_link = compute_chain_link(chained[-1])
    state = SyncState(other.survey, encode(reserved_play.s2.roster), encode(other), tuple(chained))
    assert (
        reserved_play.sums(
            reserved_play.send_to_s1(sign(reserved_play.s2.key, Party.AGGREGATOR, state))
        )
        == []
    )
    assert reserved_play.s1.final.message.detail.decode() == OTHER_BATCH


@pytest.mark.parametrize(
    "change", [{"attempt": 0xFFFFFFFF}, {"attempt": 0}, {"formed": 0}, {"formed": 9, "attempt": 9}]
)
def test_a_manifest_with_attempts_that_there_are_not_is_refused(reserved_play, change) -> None:
    """Otherwise the coordinator would compute something for up to 2^32 attempts: 20 hours."""
    before = reserved_play.s1
    statements = reserved_play.s2.statements
    other = replace(before.manifest, **change)
    messages = [statement.message for statement in statements[:-2]] + [
        replace(statements[-2].message, manifest_hash=sha256(encode(other)).digest())
    ]
    chained = list[Signed]()
    chain_link = ChainLink(0, UNCHAINED.hash)
    for message in messages:
        chained.append(
            sign(
                reserved_play.s2.key,
                Party.AGGREGATOR,
                message,
                ChainLink(chain_link.number + 1, chain_link.hash),
            )
        )
        chain_link = compute_chain_link(chained[-1])
    reserved_play.s1 = before.replace_fields(chain_end=compute_chain_link(chained[-2]))
    state = SyncState(other.survey, encode(reserved_play.s2.roster), encode(other), tuple(chained))
    (answer,) = reserved_play.send_to_s1(sign(reserved_play.s2.key, Party.AGGREGATOR, state))
    assert answer.why is Reason.MALFORMED


@pytest.mark.parametrize(
    "change",
    [
        {"reporters": (2, *(3,) * 6, 4)},
        {"lists": (bytes(32),) * 8},
        {"eligible": b"\x7f"},
        {"keys": tuple(bytes([i]) * 32 for i in range(8))},
    ],
)
def test_another_election_than_requested_ends_the_survey(two_stage, change) -> None:
    """The aggregator would exchange participants, or change how many helpers an item has."""
    play = two_stage("drawn")
    _, announced = play.send_to_s2(play.phase()[0])
    (request,) = play.send_to_s1(announced)
    (election,) = play.send_to_s2(request)
    changed = replace(play.read_from_s2(election), **change)
    play.send_to_s1(
        sign(play.s2.key, Party.AGGREGATOR, changed, ChainLink(election.number, election.previous))
    )
    assert b"another election" in play.s1.final.message.detail
    assert play.s1.phase is Phase.ABORTED


def test_another_announcement_ends_the_survey_before_any_m_j(two_stage) -> None:
    play = two_stage("drawn")
    _, announced = play.send_to_s2(play.phase()[0])
    changed = replace(play.read_from_s2(announced), eligible=b"\x7f")
    (request,) = play.send_to_s1(
        sign(
            play.s2.key, Party.AGGREGATOR, changed, ChainLink(announced.number, announced.previous)
        )
    )
    assert b"had announced another election" in decode(request.payload).detail


# --- malicious clients ----------------------------------------------------------------------------


def test_a_key_without_a_valid_mac_leaves_its_owner_out(two_stage) -> None:
    play = two_stage("drawn")
    malicious = play.people[3]
    play.people[3] = replace(malicious, indicator=replace(malicious.indicator, mac=bytes(32)))
    play.indicate()
    assert ballot_of(play.s1).eligible == (0, 1, 2, 4, 5, 6, 7)
    play.finish()
    assert play.counts() == ones(3)


def test_too_few_keys_end_the_survey_and_cost_nothing(two_stage) -> None:
    play = two_stage("drawn", minimum=8)
    play.people[3] = replace(
        play.people[3], indicator=replace(play.people[3].indicator, mac=bytes(32))
    )
    play.indicate()
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.ledger.find(play.params.survey) is None


def test_who_leaves_after_complaints() -> None:
    """A complaint is (attempt, helper, reporters named); phi is the number of malicious clients."""
    assert assign_blame([], 1, 1) == (set(), set())
    # Nobody can tell who is malicious: the helper is replaced.
    assert assign_blame([(1, 1, [5])], 1, 1) == ({1}, set())
    # Who names more than phi reporters is malicious.
    assert assign_blame([(1, 1, [5, 6])], 1, 1) == ({1}, set())
    # A reporter about whom more than phi complain is malicious.
    assert assign_blame([(1, 1, [5]), (1, 2, [5])], 1, 1) == (set(), {5})
    assert assign_blame([(1, 1, [5]), (1, 2, [5])], 1, 2) == ({1, 2}, set())
    # Complaints in two attempts make a reporter leave.
    assert assign_blame([(1, 1, [5]), (2, 2, [5])], 2, 2) == (set(), {5})
    # The first complaint names too many, so it does not count.
    assert assign_blame([(1, 1, [5, 6, 7]), (2, 2, [5])], 2, 2) == ({2}, set())
    assert assign_blame([(1, 1, [5]), (1, 2, [5]), (1, 3, [6, 7])], 1, 1) == ({3}, {5})
    # Reporter 6 stays, so helper 2 is replaced.
    assert assign_blame([(1, 1, [5]), (1, 2, [5, 6]), (1, 3, [5])], 1, 2) == ({2}, {5})
    # A complaint of an earlier attempt alone blames nobody again.
    assert assign_blame([(1, 1, [5])], 2, 1) == (set(), set())


def test_who_complains_falsely_is_replaced_and_nobody_else_leaves(two_stage) -> None:
    for numbers in ([0], range(8)):
        play = two_stage("shared", k=2)
        i = play.waiting_for(SlotSumRequest)[0]
        play.complain(i, numbers)
        play.phase()
        assert [helper.index for helper in two_stage_state(play.s1).gone] == [i]
        play.finish()
        assert play.counts() == ones()


@pytest.mark.parametrize("spoiled", [1, 2, None])
def test_a_reporter_with_unreadable_shares_leaves_with_all_its_items(two_stage, spoiled) -> None:
    """If one helper complains, it is replaced, and the reporter leaves after the next complaint.

    If more than phi complain, the reporter leaves at once.
    """
    play = two_stage("elected", k=2)
    send_unreadable_shares(play, 4, spoiled)
    play.phase()
    play.phase()
    if spoiled != 1:
        assert 4 not in play.s1.members
    while 4 in play.s1.members:
        send_unreadable_shares(play, 4, None)
        play.phase()
        play.phase()
    play.finish()
    assert play.counts() == ones(4)
    assert play.s1.attempt <= 3


def send_unreadable_shares(play, i, spoiled) -> None:
    """User i sends zeros in place of its first encrypted shares, or of all of them."""
    play.people[i], bundle = people.send_shares(play.people[i], play.visit(i), play.entropy)
    encrypted_shares = tuple(
        bytes(len(encrypted_share)) if at < (spoiled or 99) else encrypted_share
        for at, encrypted_share in enumerate(bundle.encrypted_shares)
    )
    play.send_to_s1(replace(bundle, encrypted_shares=encrypted_shares))
    play.people[i] = replace(
        play.people[i],
        bundles=(*play.people[i].bundles[:-1], replace(bundle, encrypted_shares=encrypted_shares)),
    )


def test_one_malicious_client_costs_three_attempts_and_no_more(two_stage) -> None:
    """As a helper it sends an unreadable seed, as a reporter unreadable shares in two attempts."""
    play = two_stage("elected", k=2, attempts=4)
    malicious = play.holders()[0]
    send_unreadable_shares(play, malicious, 1)
    play.phase()
    if malicious in play.waiting_for(SlotSumRequest):
        play.send_sums(malicious, bytes(ENCRYPTED_SEED_BYTES))
    while play.s1.final is None:
        if isinstance(play.visit(malicious), Assignment):
            send_unreadable_shares(play, malicious, 1)
        play.settle(play.phase(skip=(malicious,)))
    assert isinstance(play.read_from_s2(play.s1.final), Published)
    assert [i for i, count in enumerate(play.counts()) if not count] in ([], [malicious])
