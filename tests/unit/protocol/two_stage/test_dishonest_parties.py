"""TSS and TSS' against a lying coordinator, a lying aggregator and lying clients: nobody is singled out, one liar stops nothing.

Noise is off: user i holds item i and reports it, so an item's sum over one reporter is that user's bit.
"""

from dataclasses import replace
from hashlib import sha256

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
    items_of,
    parts_now,
    reporters,
    request_for,
    rounds,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Published, Reason, Signed, SyncState, decode
from faircount.protocol.wire.signing import UNCHAINED, Link, compute_link, sign
from faircount.sharing.packing import packed_size


def ones(*without) -> list[int]:
    return [int(i not in without) for i in range(8)]


# --- a lying coordinator ---------------------------------------------------------------------------------------------------


def one_each(play) -> dict[int, int]:
    """For every item the number of one of its reporters."""
    found = dict[int, int]()
    for number, place in reporters(play.s1):
        for item in items_of(play.s1, place):
            found.setdefault(item, number)
    return found


def singled_out(play, call, victims, *, lists=False):
    """A call with the shares of one reporter per item; the list cut down to it too, or left as it was."""
    tasks = []
    for task in call.tasks:
        listed = members_of(task.listed, 8)
        victim = victims.get(task.item)
        parcels = tuple(
            p for number, p in zip(listed, task.encrypted_shares, strict=True) if number == victim
        )
        bits = (
            bitmap((victim,) if victim is not None and lists else listed, 8)
            if lists
            else task.listed
        )
        tasks.append(replace(task, encrypted_shares=parcels, listed=bits))
    return replace(call, tasks=tuple(tasks))


@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_s1_cannot_give_helpers_one_reporter_per_item(two_stage, seed, lists) -> None:
    """In version 0.1 this published the bits of chosen users in 20 of 20 surveys."""
    play = two_stage("shared", k=2, seed=seed)
    victims, fooled = one_each(play), 0
    for i in play.waiting_for(SlotSumRequest):
        call = play.visit(i)
        lied = singled_out(play, call, victims, lists=lists)
        if lied != call:
            answer = people.answer_sum_request(play.people[i], lied, play.entropy)
            assert (answer[0], answer[1].why) == (play.people[i], Reason.WRONG_DIGEST)
            fooled += 1
    assert fooled


def test_s1_cannot_hide_behind_lost_reporters(two_stage) -> None:
    """False m_j and people who vanish: a lower bound m_j - lost would let the coordinator hide as many reporters of one item."""
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
    """Else the coordinator would choose how many helpers an item has by a false m_j."""
    play = two_stage("shared", k=2)
    task, ballot = play.visit(play.waiting_for(SlotSumRequest)[0]).tasks[0], ballot_of(play.s1)
    assert people._is_complete(task, ballot, range(8))
    other = tuple(m + (j == task.item) for j, m in enumerate(ballot.reporters))
    assert not people._is_complete(task, replace(ballot, reporters=other), range(8))


def announce_lists(play, change) -> None:
    """The coordinator announces, and the aggregator signs, lists that are not those that users indicated."""
    (first,) = play.phase()
    lists = tuple(
        bitmap(change(j, members_of(bits, 8)), 8) for j, bits in enumerate(rounds(play.s1).lists)
    )
    hashed = sha256(encode(request_for(play.s1, lists, 8))).digest()
    said = replace(decode(first.payload), request_hash=hashed)
    play.s1 = play.s1.changed(
        topology_state=replace(rounds(play.s1), lists=lists, announcement=said)
    )
    play.settle((play.by_s1(said),))


def test_a_reporter_who_is_not_on_a_list_does_not_share(two_stage) -> None:
    """The coordinator writes another number in the place of one on a list, so that the m_j still fit: its owner notices."""
    play = two_stage("drawn", sets={i: (0, 1, 2) if i < 4 else (3, 4, 5) for i in range(8)})
    announce_lists(play, lambda j, listed: listed if j else sorted({*range(8)} - {*listed}))
    assert ballot_of(play.s1).reporters[0] == 4
    known = rounds(play.s1)
    for number, place in enumerate(known.order):
        items = play.people[place].items
        proofs = tuple(
            prove_listed(
                item_salt(play.s1.topology_state.order_key, play.params.survey, j),
                known.numbers[j],
                number,
            )
            if number in known.numbers[j]
            else prove_listed(bytes(32), [number], number)
            for j in items
        )
        call = Assignment(play.params.survey, 1, known.election.signed, (), proofs)
        said = people.send_shares(play.people[place], call, play.entropy)[1]
        assert getattr(said, "why", None) is (Reason.WRONG_DIGEST if 0 in items else None)


def test_proofs_lead_to_their_list_and_to_no_other() -> None:
    salt, numbers = b"s" * 32, (1, 4, 6, 7, 9)
    root = list_root(salt, numbers)
    for number in numbers:
        proof = prove_listed(salt, numbers, number)
        assert is_listed(proof, number, 5, root)
        assert not is_listed(proof, number + 10, 5, root)
        assert not is_listed(proof, number, 5, list_root(salt, numbers[:-1]))
        assert not is_listed(proof, number, 5, list_root(b"t" * 32, numbers))
        assert salt not in (proof.salt, *proof.path)
    assert not is_listed(replace(prove_listed(salt, numbers, 1), place=1), 1, 5, root)
    salts = {
        item_salt(bytes(32), bytes(16), 0),
        item_salt(bytes(32), bytes(16), 1),
        item_salt(b"k" * 32, bytes(16), 0),
    }
    assert len(salts) == 3


def test_s1_cannot_invent_reporters(two_stage) -> None:
    """Keys of the coordinator's own making, for which it knows the shares, would fill an item's list around one victim."""
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
        (answer,) = play.tell_s2(play.by_s1(replace(own, entries=entries)))
        assert play.said_by_s2(answer).positions == (2,)
        assert play.s2.last(Election) is None
        assert play.s2.ledger.find(play.params.survey) is None  # nothing was read


def test_s2_takes_one_sum_over_one_set_from_a_lying_s1(two_stage) -> None:
    play = two_stage("shared", k=2)
    reservation, included = play.tell_s2(play.phase()[0])
    play.tell_s1(reservation)
    (total,) = play.tell_s1(included)
    own = rounds(play.s1).total
    manifest = play.s1.manifest
    fewer = replace(manifest, attempt=2, formed=2, members=b"\x7f")
    for lie, why in (
        (fewer, Reason.CONFLICT),
        (replace(own, accepted_hash=bytes(32)), Reason.WRONG_DIGEST),
    ):
        assert play.said_by_s2(play.tell_s2(play.by_s1(lie))[0]).reason == why
    (published,) = play.tell_s2(total)
    assert play.tell_s2(play.by_s1(replace(own, total=bytes(len(own.total))))) == (published,)
    play.tell_s1(published)
    assert play.counts() == ones()


# --- a lying aggregator ---------------------------------------------------------------------------------------------------


@pytest.fixture
def claimed(two_stage):
    """Every sum is sent, the coordinator has claimed and holds the receipt; the aggregator's word on whose seeds open is not heard yet."""
    play = two_stage("shared", k=2, minimum=5)
    reservation, play.true_set = play.tell_s2(play.phase()[0])
    play.tell_s1(reservation)
    return play


def test_s1_hands_over_one_sum_of_each_item_and_no_sum_of_a_slot(claimed) -> None:
    (first,) = claimed.sums(claimed.tell_s1(claimed.true_set))
    assert claimed.sums(resume(claimed.s1.state, claimed.s1.rows)) == [first]
    assert len(first.total) == packed_size(claimed.params.q, claimed.params.N)
    sent = [
        b"".join(each.signed.payload for each in claimed.s2.statements),
        encode(claimed.s2.manifest),
    ]
    vectors = [
        claimed.s1.view.uploads[SlotSums.tag, part.digest, part.holder].vector
        for part in parts_now(claimed.s1)
    ]
    assert not any(vector in where for vector in vectors for where in sent if len(vector) > 2)
    claimed.settle(resume(claimed.s1.state, claimed.s1.rows))
    assert claimed.counts() == ones()
    assert claimed.s1.rows.is_scrubbed("uploads")
    assert claimed.s1.topology_state.total is None


def test_calling_good_seeds_bad_replaces_helpers_and_tells_nothing(claimed) -> None:
    """A false "bad blob" made the coordinator send a second batch of sums; now the aggregator has none before the one total."""
    true, holder = claimed.said_by_s2(claimed.true_set), claimed.holders()[0]
    part = next(each for each in parts_now(claimed.s1) if each.holder == holder)
    fewer = bitmap([i for i in claimed.holders() if i != holder], 8)
    assert claimed.sums(claimed.tell_s1(claimed.instead(replace(true, members=fewer)))) == []
    assert (claimed.s1.phase, claimed.s1.attempt) == (Phase.SHARING, 2)
    assert len(claimed.s1.members) == 8  # a helper is replaced; its own answer still counts
    assert not claimed.s1.view.uploads.get((SlotSums.tag, part.digest, holder))  # its sums are gone


@pytest.mark.parametrize(
    "change",
    [{"members": b""}, {"members": b"\xff\xff"}, {"set_digest": bytes(32)}, {"root": bytes(32)}],
)
def test_a_set_that_is_none_of_the_claim_ends_the_survey(claimed, change) -> None:
    true = claimed.said_by_s2(claimed.true_set)
    assert claimed.sums(claimed.tell_s1(claimed.instead(replace(true, **change)))) == []
    assert claimed.s1.phase is Phase.ABORTED
    assert claimed.s1.rows.is_scrubbed("uploads")


def test_a_second_set_or_another_claim_after_the_sum_ends_the_survey(claimed) -> None:
    """Two sums over two sets would differ by somebody's bits."""
    claimed.tell_s1(claimed.true_set)
    before, said, true = claimed.s1, claimed.s2.statements, claimed.said_by_s2(claimed.true_set)
    assert claimed.sums(claimed.tell_s1(claimed.instead(replace(true, members=b"\x01")))) == []
    assert claimed.s1.final.message.detail.decode() == TWO_SETS
    claimed.s1, other = before, replace(before.manifest, members=b"\x7f", attempt=2, formed=2)
    hashed = sha256(encode(other)).digest()
    words = [each.message for each in said] + [
        replace(said[-2].message, manifest_hash=hashed),
        replace(true, manifest_hash=hashed),
    ]
    chained, link = list[Signed](), Link(0, UNCHAINED.hash)
    for says in words:
        chained.append(
            sign(claimed.s2.key, Party.AGGREGATOR, says, Link(link.number + 1, link.hash))
        )
        link = compute_link(chained[-1])
    state = SyncState(other.survey, encode(claimed.s2.roster), encode(other), tuple(chained))
    assert claimed.sums(claimed.tell_s1(sign(claimed.s2.key, Party.AGGREGATOR, state))) == []
    assert claimed.s1.final.message.detail.decode() == OTHER_BATCH


@pytest.mark.parametrize(
    "change", [{"attempt": 0xFFFFFFFF}, {"attempt": 0}, {"formed": 0}, {"formed": 9, "attempt": 9}]
)
def test_a_claim_of_s2s_with_attempts_that_there_are_not_is_none(claimed, change) -> None:
    """The coordinator went through every attempt up to the one that the aggregator named: 20 hours for the largest number."""
    before, said = claimed.s1, claimed.s2.statements
    other = replace(before.manifest, **change)
    words = [each.message for each in said[:-2]] + [
        replace(said[-2].message, manifest_hash=sha256(encode(other)).digest())
    ]
    chained, link = list[Signed](), Link(0, UNCHAINED.hash)
    for says in words:
        chained.append(
            sign(claimed.s2.key, Party.AGGREGATOR, says, Link(link.number + 1, link.hash))
        )
        link = compute_link(chained[-1])
    claimed.s1 = before.changed(newest=compute_link(chained[-2]))
    state = SyncState(other.survey, encode(claimed.s2.roster), encode(other), tuple(chained))
    (answer,) = claimed.tell_s1(sign(claimed.s2.key, Party.AGGREGATOR, state))
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
def test_another_election_than_s1_asked_for_ends_the_survey(two_stage, change) -> None:
    """A lying aggregator would put users of its own in the place of others, or change how many helpers an item has."""
    play = two_stage("drawn")
    _, announced = play.tell_s2(play.phase()[0])
    (request,) = play.tell_s1(announced)
    (election,) = play.tell_s2(request)
    lie = replace(play.said_by_s2(election), **change)
    play.tell_s1(sign(play.s2.key, Party.AGGREGATOR, lie, Link(election.number, election.previous)))
    assert b"another election" in play.s1.final.message.detail
    assert play.s1.phase is Phase.ABORTED


def test_another_announcement_than_that_of_s1_ends_the_survey_before_any_m_j(two_stage) -> None:
    play = two_stage("drawn")
    _, announced = play.tell_s2(play.phase()[0])
    lie = replace(play.said_by_s2(announced), eligible=b"\x7f")
    (wish,) = play.tell_s1(
        sign(play.s2.key, Party.AGGREGATOR, lie, Link(announced.number, announced.previous))
    )
    assert b"had announced another election" in decode(wish.payload).detail


# --- lying clients ------------------------------------------------------------------------------------------------


def test_a_key_that_no_invitation_vouches_for_leaves_its_user_out(two_stage) -> None:
    play = two_stage("drawn")
    liar = play.people[3]
    play.people[3] = replace(liar, indicator=replace(liar.indicator, mac=bytes(32)))
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


def test_whom_complaints_leave_out() -> None:
    """(attempt, helper, reporters named); phi liars are reckoned with, at least one."""
    assert assign_blame([], 1, 1) == (set(), set())
    assert assign_blame([(1, 1, [5])], 1, 1) == (
        {1},
        set(),
    )  # nobody can tell: the helper is replaced
    assert assign_blame([(1, 1, [5, 6])], 1, 1) == ({1}, set())  # who names more than phi lies
    assert assign_blame([(1, 1, [5]), (1, 2, [5])], 1, 1) == (
        set(),
        {5},
    )  # of whom more than phi complain lies
    assert assign_blame([(1, 1, [5]), (1, 2, [5])], 1, 2) == ({1, 2}, set())
    assert assign_blame([(1, 1, [5]), (2, 2, [5])], 2, 2) == (
        set(),
        {5},
    )  # complaints in two attempts
    assert assign_blame([(1, 1, [5, 6, 7]), (2, 2, [5])], 2, 2) == (
        {2},
        set(),
    )  # the first one is void
    assert assign_blame([(1, 1, [5]), (1, 2, [5]), (1, 3, [6, 7])], 1, 1) == ({3}, {5})
    assert assign_blame([(1, 1, [5]), (1, 2, [5, 6]), (1, 3, [5])], 1, 2) == (
        {2},
        {5},
    )  # 6 stays, so 2 is replaced
    assert assign_blame([(1, 1, [5])], 2, 1) == (
        set(),
        set(),
    )  # an old complaint alone blames nobody again


def test_who_complains_falsely_is_replaced_and_nobody_else_leaves(two_stage) -> None:
    for numbers in ([0], range(8)):
        play = two_stage("shared", k=2)
        i = play.waiting_for(SlotSumRequest)[0]
        play.complain(i, numbers)
        play.phase()
        assert [each.index for each in rounds(play.s1).gone] == [i]
        play.finish()
        assert play.counts() == ones()


@pytest.mark.parametrize("spoiled", [1, 2, None])
def test_a_reporter_whose_shares_do_not_open_leaves_with_all_its_items(two_stage, spoiled) -> None:
    """To one helper: that one is replaced, then the reporter leaves. To more than phi: it leaves at once."""
    play = two_stage("elected", k=2)
    garbage(play, 4, spoiled)
    play.phase()
    play.phase()
    if spoiled != 1:
        assert 4 not in play.s1.members
    while 4 in play.s1.members:
        garbage(play, 4, None)
        play.phase()
        play.phase()
    play.finish()
    assert play.counts() == ones(4)
    assert play.s1.attempt <= 3


def garbage(play, i, spoiled) -> None:
    """User i reports, with bytes that do not open instead of its first shares, or of all of them."""
    play.people[i], body = people.send_shares(play.people[i], play.visit(i), play.entropy)
    encrypted_shares = tuple(
        bytes(len(encrypted_share)) if at < (spoiled or 99) else encrypted_share
        for at, encrypted_share in enumerate(body.encrypted_shares)
    )
    play.tell_s1(replace(body, encrypted_shares=encrypted_shares))
    play.people[i] = replace(
        play.people[i],
        bundles=(*play.people[i].bundles[:-1], replace(body, encrypted_shares=encrypted_shares)),
    )


def test_one_liar_costs_three_attempts_and_no_more(two_stage) -> None:
    """As a helper it sends a seed that does not open, as a reporter a share that does not, twice: it is out."""
    play = two_stage("elected", k=2, attempts=4)
    liar = play.holders()[0]
    garbage(play, liar, 1)
    play.phase()
    if liar in play.waiting_for(SlotSumRequest):
        play.send_sums(liar, bytes(ENCRYPTED_SEED_BYTES))
    while play.s1.final is None:
        if isinstance(play.visit(liar), Assignment):
            garbage(play, liar, 1)
        play.settle(play.phase(skip=(liar,)))
    assert isinstance(play.said_by_s2(play.s1.final), Published)
    assert [i for i, count in enumerate(play.counts()) if not count] in ([], [liar])
