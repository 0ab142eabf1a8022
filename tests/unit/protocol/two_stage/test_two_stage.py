"""TSS and TSS' as a protocol: right sums whoever vanishes, their law, their guarantees and their costs.

Noise is off where not said otherwise: user i holds item i, is active and reports it, so a count is 0 or 1.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from faircount.accounting.guarantee import S1 as AGAINST_S1
from faircount.accounting.guarantee import S2 as AGAINST_S2
from faircount.accounting.guarantee import insiders
from faircount.accounting.two_stage import sets_delta
from faircount.core.entropy import SeededStream
from faircount.mechanisms.two_stage import TSS, TSSPrime
from faircount.protocol import TWO_STAGE
from faircount.protocol.simulator import play as play_survey
from faircount.protocol.survey.budget import Status
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.topologies.two_stage import user as people
from faircount.protocol.topologies.two_stage.election import share_info
from faircount.protocol.topologies.two_stage.messages import Assignment, SlotSumRequest
from faircount.protocol.topologies.two_stage.relay import (
    ballot_of,
    items_of,
    parts_now,
    rounds,
    slots_of,
)
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.crypto import OVERHEAD, StandardCrypto
from faircount.protocol.wire.messages import NotReady, Published, Reason
from faircount.sharing.packing import packed_size

PLAIN = TSS(items=8, users=8, p=1.0, alpha=3 / 8, gamma=1e12)

PRIME = TSSPrime(items=8, users=8, p=1.0, alpha=3 / 8, gamma=1e12, phi=3)

SAME_ITEMS = dict.fromkeys(range(8), (0, 1, 2))

ALARM = 1e-6


def ones(*without) -> list[int]:
    return [int(i not in without) for i in range(8)]


def published(play) -> Published:
    final = play.said_by_s2(play.s1.final)
    assert isinstance(final, Published), final
    return final


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"k": 2},
        {"mechanism": PRIME, "minimum": 4},
        {"mechanism": PLAIN},
        {"crypto": StandardCrypto()},
    ],
)
def test_everybody_is_counted_once(two_stage, terms) -> None:
    play = two_stage("shared", **terms)
    play.finish()
    assert play.counts() == ones()
    assert published(play).included == 8
    assert play.s1.phase is play.s2.phase is Phase.PUBLISHED


@pytest.mark.parametrize("gamma", [1.0, 3.0])
@pytest.mark.parametrize("kind", [TSS, TSSPrime])
def test_the_sums_are_the_bits_of_the_included_reporters(two_stage, kind, gamma) -> None:
    """Coins and sets drawn as in a release, uniform and adaptive, real sealing, some users lost on the way."""
    mechanism = kind(items=4, users=12, p=0.6, alpha=0.5, gamma=gamma)
    play = two_stage("shared", mechanism, skip=(2, 9), crypto=StandardCrypto(), seed=7)
    play.phase(skip=play.holders()[:1])
    play.finish()
    wanted = np.zeros(4, dtype=int)
    for i in play.s1.members:
        wanted[list(play.people[i].items)] += play.people[i].bits
    assert play.counts() == wanted.tolist()
    assert {2, 9}.isdisjoint(play.s1.members)


def test_items_that_nobody_reports_have_helpers_who_send_zero(two_stage) -> None:
    play = two_stage("shared", sets=SAME_ITEMS)
    ballot = ballot_of(play.s1)
    assert ballot.reporters == (8, 8, 8, 0, 0, 0, 0, 0)
    assert ballot.slots == (8, 8, 8, 2, 2, 2, 2, 2)
    play.finish()
    assert play.counts() == [1, 1, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_played_in_memory(gamma) -> None:
    mechanism = TSSPrime(
        items=["a", "b", "c", "d", "e"], p=0.5, alpha=0.4, gamma=gamma, phi=2, floor=7
    )
    result = play_survey(
        list(range(5)) * 8, mechanism, TWO_STAGE, entropy=SeededStream(3), epsilon=1.0
    )
    said = result.facts["published"]
    assert result.included == 40
    assert abs(result.estimates - 0.2).max() < 0.5
    assert int(said.realized_delta) == max(int(each.delta) for each in said.against)


def test_who_does_not_indicate_takes_no_part(two_stage) -> None:
    play = two_stage("elected", skip=(2,))
    assert 2 not in ballot_of(play.s1).eligible
    assert isinstance(play.act(2), NotReady)
    assert play.tell_s1(play.people[2].indicator)[0].why is Reason.LATE
    play.finish()
    assert play.counts() == ones(2)


def test_a_reporter_without_a_bundle_leaves_all_its_items_and_may_still_help(two_stage) -> None:
    play = two_stage("shared", skip=(5,))
    assert 5 not in play.s1.members
    assert 5 in play.holders()
    play.finish()
    assert play.counts() == ones(5)
    assert play.s1.attempt == 1


def test_a_late_bundle_is_refused(two_stage) -> None:
    play = two_stage("elected")
    call = play.visit(5)
    play.phase(skip=(5,))
    _, bundle = people.send_shares(play.people[5], call, play.entropy)
    assert play.tell_s1(bundle)[0].why is Reason.LATE
    play.finish()
    assert play.counts() == ones(5)


def test_who_is_gone_after_its_bundle_is_still_counted(two_stage) -> None:
    plays = (two_stage("shared", k=2, seed=seed) for seed in range(1, 20))
    play = next(
        each for each in plays if len(each.holders()) < 8
    )  # an election in which somebody holds no slot
    idle = next(i for i in range(8) if i not in play.holders())
    del play.people[idle]
    play.finish()
    assert play.counts() == ones()


def test_an_elected_user_that_vanishes_is_replaced(two_stage) -> None:
    play = two_stage("shared", k=2)
    gone = play.holders()[0]
    before = slots_of(play.s1, 1)
    assert play.phase(skip=(gone,)) == ()
    assert (play.s1.phase, play.s1.attempt) == (Phase.SHARING, 2)
    moved = np.flatnonzero(slots_of(play.s1, 2).holder != before.holder)
    assert set(before.holder[moved].tolist()) == {gone}
    items = set(before.item[moved].tolist())
    assert play.waiting_for(Assignment) == [
        i for i in range(8) if items & set(items_of(play.s1, i))
    ]
    play.phase()
    assert set(play.waiting_for(SlotSumRequest)) == set(
        slots_of(play.s1, 2).holder[moved].tolist()
    )  # other sums are good
    play.finish()
    assert play.counts() == ones()
    assert published(play).included == 8


def test_the_same_share_is_sent_again(two_stage) -> None:
    """Both holders of a slot open the same element, under different keys."""
    play = two_stage("shared", k=2)
    play.phase(skip=play.holders()[:1])
    sender = play.waiting_for(Assignment)[0]
    play.act(sender)
    person, ballot = play.people[sender], ballot_of(play.s1)
    slots, earlier = slots_of(play.s1, 2), slots_of(play.s1, 1)
    at = int(slots.owed(person.items, 2)[0])
    place = int(np.searchsorted(earlier.owed(person.items, 1), at))
    opened = []
    for table, bundle, i in ((earlier, person.bundles[0], place), (slots, person.bundles[1], 0)):
        helper = play.people[int(table.holder[at])]
        secret = helper.member.crypto.agree(helper.member.keys, person.reporting_key.public)
        info = share_info(
            play.params, ballot, table, at, ballot.keys.index(person.reporting_key.public)
        )
        opened.append(people._decrypt(helper.member, secret, info, bundle.encrypted_shares[i]))
    assert opened[0] == opened[1] != b""
    assert person.bundles[0].encrypted_shares[place] != person.bundles[1].encrypted_shares[0]


def test_a_replaced_helper_that_vanishes_is_replaced_again(two_stage) -> None:
    play = two_stage("shared", k=2)
    first = play.holders()[0]
    play.phase(skip=(first,))
    play.phase()
    second = play.waiting_for(SlotSumRequest)[0]
    assert play.phase(skip=(second,)) == ()
    assert [each.index for each in rounds(play.s1).gone] == [first, second]
    play.finish()
    assert play.counts() == ones()
    assert play.s1.attempt == 3


def test_a_reporter_that_does_not_send_a_share_again_leaves_all_its_items(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.phase(skip=play.holders()[:1])
    lost = play.waiting_for(Assignment)[0]
    play.phase(skip=(lost,))
    assert lost not in play.s1.members
    assert play.waiting_for(SlotSumRequest) == play.holders()  # every sum anew
    play.finish()
    assert play.counts() == ones(lost)
    assert published(play).included == 7


def test_losses_in_every_phase_at_once(two_stage) -> None:
    play = two_stage("elected", k=2, skip=(0,))
    play.phase(skip=(1,))
    play.phase(skip=play.holders()[:1])
    lost = play.waiting_for(Assignment)[0]
    play.phase(skip=(lost,))
    play.phase(skip=play.holders()[-1:])
    play.finish()
    assert play.counts() == ones(0, 1, lost)


def test_too_few_reporters_abort(two_stage) -> None:
    play = two_stage("elected", minimum=7)
    play.settle(play.phase(skip=(0, 1)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.said_by_s2(play.s1.final).code == EndCode.TOO_FEW_LEFT
    assert (
        play.s2.ledger.find(play.params.survey).status is Status.SPENT
    )  # The aggregator has read how many report each item


def test_too_few_indicators_abort(two_stage) -> None:
    play = two_stage("elected", skip=range(6))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.committed not in b"".join(each.signed.payload for each in play.s2.statements)


def test_attempts_run_out_in_words(two_stage) -> None:
    play = two_stage("shared", k=2, attempts=1)
    play.settle(play.phase(skip=play.holders()[:1]))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.said_by_s2(play.s1.final).code == EndCode.ATTEMPTS_USED


def test_nobody_left_to_take_over_ends_in_words(two_stage) -> None:
    play = two_stage("shared", sets=SAME_ITEMS)  # everybody holds a slot of item 0
    play.settle(play.phase(skip=(3,)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.said_by_s2(play.s1.final).code == EndCode.NO_SUBSTITUTE
    small = two_stage("shared", sets=SAME_ITEMS, k=2)
    small.phase(skip=small.holders()[:1])
    small.finish()
    assert small.counts() == [1, 1, 1, 0, 0, 0, 0, 0]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.sets(st.integers(0, 7), max_size=3), max_size=9), st.sampled_from([0, 2]))
def test_whoever_is_missing_when_the_sum_is_that_of_the_declared_set_or_nothing(
    two_stage, missing, k
) -> None:
    play = two_stage("elected", skip=missing[0] if missing else (), k=k)
    for skip in missing[1:]:
        play.settle(play.phase(skip) if play.s1.final is None else ())
    play.finish()
    if play.s1.phase is Phase.PUBLISHED:
        assert play.counts() == [int(i in play.s1.members) for i in range(8)]
        assert published(play).included == len(play.s1.members) >= 3
    else:
        assert play.s1.phase is play.s2.phase is Phase.ABORTED
        assert play.s2.manifest is None
        charge = play.s2.ledger.find(play.params.survey)
        assert charge is None or charge.status is Status.SPENT


def test_the_way_through_the_states() -> None:
    way = (
        Phase.INDICATING,
        Phase.SHARING,
        Phase.SUBMITTING,
        Phase.SHARING,
        Phase.SUBMITTING,
        Phase.COUNTING,
    )
    assert advance(Phase.CONFIRMED, *way) is Phase.COUNTING


def test_the_result_states_a_guarantee_against_each_adversary(two_stage) -> None:
    mechanism = TSSPrime(
        items=4, users=60, p=0.5, alpha=0.5, gamma=2.0, phi=3, floor=12, dropouts=3
    )
    play = two_stage("shared", mechanism, skip=(0, 1), epsilon=1.0, delta=0.2, minimum=57, k=4)
    play.finish()
    stated = {each.adversary: int(each.delta) / 2**128 for each in published(play).against}
    assert set(stated) == {int(Party.COORDINATOR), int(Party.AGGREGATOR), 3, 0}
    left, lost = replace(play.params.mechanism, dropouts=2), sets_delta(4, 2, 0.5, 2.0, 1.0)
    for who, adversary in (
        (int(Party.COORDINATOR), AGAINST_S1),
        (int(Party.AGGREGATOR), AGAINST_S2),
        (3, insiders(3)),
    ):
        exact = left.guarantee(epsilon=1.0, adversary=adversary).delta
        assert stated[who] == pytest.approx(max(exact, lost), rel=1e-12)
    assert stated[0] < stated[3] < stated[int(Party.COORDINATOR)]
    assert int(published(play).realized_delta) / 2**128 == max(stated.values())


def test_lost_users_raise_what_is_stated_where_sets_say_something() -> None:
    """With a strong preference for the own item, the set of a lost user tells more than the whole result."""
    mechanism = TSSPrime(items=4, users=600, p=0.5, alpha=0.5, gamma=50.0, phi=1, floor=140)
    sets = sets_delta(4, 2, 0.5, 50.0, 0.5)
    without = {each.adversary: each.delta for each in mechanism.remaining_guarantees(600, 0.5, 0)}
    lost = {each.adversary: each.delta for each in mechanism.remaining_guarantees(600, 0.5, 1)}
    assert without[AGAINST_S2] < sets == lost[AGAINST_S2] == lost[insiders(1)]
    assert lost[AGAINST_S1] == without[AGAINST_S1] >= sets


def test_tss_claims_nothing_against_participants(two_stage) -> None:
    play = two_stage("shared", PLAIN)
    play.finish()
    assert {each.adversary for each in published(play).against} == {
        int(Party.COORDINATOR),
        int(Party.AGGREGATOR),
        0,
    }
    assert play.params.phi == 0


@pytest.mark.parametrize(("gamma", "surveys"), [(1.0, 40), (4.0, 120)])
def test_the_published_sums_are_binomial(two_stage, gamma, surveys) -> None:
    """s_j = Bin(Pi_j, p p_chi) over many surveys of 9 users. Planted: alpha for the p_chi of adaptive sets."""
    mechanism = TSSPrime(items=3, users=9, p=0.8, alpha=1 / 3, gamma=gamma, phi=1)
    seen = np.zeros(3)
    for seed in range(surveys):
        play = two_stage("shared", mechanism, k=2, seed=seed)
        play.finish()
        seen += np.bincount(np.minimum(play.counts(), 2), minlength=3)
    limit = chi2.isf(ALARM, 2)
    assert _distance(seen, mechanism.rate * mechanism.p_chi) < limit
    assert _distance(seen, 0.8 / 3 if gamma > 1 else 0.8) > limit


def _distance(seen, rate) -> float:
    """Chi-square distance of counts of 0, 1 and more from Bin(3, rate)."""
    expected = seen.sum() * np.array([*binom.pmf([0, 1], 3, rate), binom.sf(1, 3, rate)])
    return float(((seen - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("gamma", [1.0, 7.4])
def test_costs_are_those_of_table_1(two_stage, gamma) -> None:
    """Field elements on the running protocol. The table has p_chi n helpers per item; the average is alpha n."""
    n, N, M = 30, 6, 3
    play = two_stage(
        "elected", TSSPrime(items=N, users=n, p=0.5, alpha=M / N, gamma=gamma, phi=1), minimum=n
    )
    ballot, one = ballot_of(play.s1), packed_size(play.params.q, 1) + OVERHEAD
    m = np.array(ballot.reporters)
    play.phase()
    sent = [len(person.bundles[0].encrypted_shares) for person in play.people.values()]
    for person, count in zip(play.people.values(), sent, strict=True):
        assert {len(encrypted_share) for encrypted_share in person.bundles[0].encrypted_shares} == {
            one
        }
        assert count == sum(
            ballot.slots[j] for j in person.items
        )  # a reporter: the sum of m'_j over A_i
    received = []
    for i in play.people:
        tasks = call.tasks if isinstance(call := play.visit(i), SlotSumRequest) else ()
        assert all(
            len(task.encrypted_shares) == m[task.item] for task in tasks
        )  # a helper: m_j for each of its slots
        received.append(sum(len(task.encrypted_shares) for task in tasks))
    play.settle(play.phase())
    to_s2 = [len(part.due) for part in parts_now(play.s1)]
    first_messages = [body for person in play.people.values() for body in person.first_messages]
    assert sorted(len(body.vector) for body in first_messages) == sorted(
        packed_size(play.params.q, each) for each in to_s2
    )
    assert ballot.slots == ballot.reporters  # every item has more than phi reporters here
    assert sum(sent) == sum(received) == int((m * m).sum())
    assert (
        sum(to_s2) == m.sum() == n * M
    )  # alpha N for every user on average, exactly, whatever the sets
    alpha, p_chi = M / N, play.params.mechanism.p_chi
    assert np.mean(sent) == pytest.approx(alpha * N * (alpha * n + 1 - alpha), rel=0.1)
    assert (np.mean(sent) == pytest.approx(alpha * N * p_chi * n, rel=0.1)) == (gamma == 1)
    assert len(play.s2.manifest.encrypted_shares) == len(to_s2)  # one seed of every helper


def test_phi_plus_one_helpers_cost_far_less(two_stage) -> None:
    play = two_stage("shared", TSSPrime(items=6, users=30, p=0.5, alpha=0.5, phi=1), k=2)
    assert {len(each.bundles[0].encrypted_shares) for each in play.people.values()} == {3 * 2}
    assert len(slots_of(play.s1, 1)) == 6 * 2
    assert len(encode(play.people[0].bundles[0])) < 350
