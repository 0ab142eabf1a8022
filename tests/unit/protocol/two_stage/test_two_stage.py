"""TSS and TSS' as a protocol: sums, their distribution, guarantees and costs.

Unless stated otherwise noise is off: user i has item i, is active and reports it, so a count is 0
or 1.
"""

from dataclasses import replace
from itertools import chain

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
    current_helper_sums,
    items_of,
    slots_of,
    two_stage_state,
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


def get_result(play) -> Published:
    final = play.read_from_s2(play.s1.final)
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
    assert get_result(play).included == 8
    assert play.s1.phase is play.s2.phase is Phase.PUBLISHED


@pytest.mark.parametrize("gamma", [1.0, 3.0])
@pytest.mark.parametrize("kind", [TSS, TSSPrime])
def test_the_sums_are_the_bits_of_the_included_reporters(two_stage, kind, gamma) -> None:
    """Coins and sets are drawn, uniform and adaptive; real encryption; some participants vanish."""
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
    published = result.facts["published"]
    assert result.included == 40
    assert abs(result.count_votes().estimates - 0.2).max() < 0.5
    assert int(published.realized_delta) == max(
        int(guarantee.delta) for guarantee in published.against
    )


def test_who_does_not_indicate_takes_no_part(two_stage) -> None:
    play = two_stage("elected", skip=(2,))
    assert 2 not in ballot_of(play.s1).eligible
    assert isinstance(play.act(2), NotReady)
    assert play.send_to_s1(play.people[2].indicator)[0].why is Reason.LATE
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
    assert play.send_to_s1(bundle)[0].why is Reason.LATE
    play.finish()
    assert play.counts() == ones(5)


def test_who_is_gone_after_its_bundle_is_still_counted(two_stage) -> None:
    plays = (two_stage("shared", k=2, seed=seed) for seed in range(1, 20))
    # An election in which somebody holds no slot.
    play = next(candidate for candidate in plays if len(candidate.holders()) < 8)
    idle = next(i for i in range(8) if i not in play.holders())
    del play.people[idle]
    play.finish()
    assert play.counts() == ones()


def test_a_helper_that_vanishes_is_replaced(two_stage) -> None:
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
    # The other sums stay valid.
    successors = set(slots_of(play.s1, 2).holder[moved].tolist())
    assert set(play.waiting_for(SlotSumRequest)) == successors
    play.finish()
    assert play.counts() == ones()
    assert get_result(play).included == 8


def test_the_same_share_is_sent_again(two_stage) -> None:
    """Both holders of a slot decrypt the same element, under different keys."""
    play = two_stage("shared", k=2)
    play.phase(skip=play.holders()[:1])
    sender = play.waiting_for(Assignment)[0]
    play.act(sender)
    person = play.people[sender]
    ballot = ballot_of(play.s1)
    slots = slots_of(play.s1, 2)
    earlier = slots_of(play.s1, 1)
    at = int(slots.find_owed(person.items, 2)[0])
    place = int(np.searchsorted(earlier.find_owed(person.items, 1), at))
    plaintexts = []
    for table, bundle, i in ((earlier, person.bundles[0], place), (slots, person.bundles[1], 0)):
        helper = play.people[int(table.holder[at])]
        secret = helper.member.crypto.agree(helper.member.keys, person.reporting_key.public)
        info = share_info(
            play.params, ballot, table, at, ballot.keys.index(person.reporting_key.public)
        )
        plaintexts.append(people._decrypt(helper.member, secret, info, bundle.encrypted_shares[i]))
    assert plaintexts[0] == plaintexts[1] != b""
    assert person.bundles[0].encrypted_shares[place] != person.bundles[1].encrypted_shares[0]


def test_a_replaced_helper_that_vanishes_is_replaced_again(two_stage) -> None:
    play = two_stage("shared", k=2)
    first = play.holders()[0]
    play.phase(skip=(first,))
    play.phase()
    second = play.waiting_for(SlotSumRequest)[0]
    assert play.phase(skip=(second,)) == ()
    assert [helper.index for helper in two_stage_state(play.s1).gone] == [first, second]
    play.finish()
    assert play.counts() == ones()
    assert play.s1.attempt == 3


def test_a_reporter_that_does_not_send_a_share_again_leaves_all_its_items(two_stage) -> None:
    play = two_stage("shared", k=2)
    play.phase(skip=play.holders()[:1])
    lost = play.waiting_for(Assignment)[0]
    play.phase(skip=(lost,))
    assert lost not in play.s1.members
    # Over the smaller set every sum is made anew.
    assert play.waiting_for(SlotSumRequest) == play.holders()
    play.finish()
    assert play.counts() == ones(lost)
    assert get_result(play).included == 7


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
    assert play.read_from_s2(play.s1.final).code == EndCode.TOO_FEW_LEFT
    # The aggregator has read how many report each item.
    assert play.s2.ledger.find(play.params.survey).status is Status.SPENT


def test_too_few_indicators_abort(two_stage) -> None:
    play = two_stage("elected", skip=range(6))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.committed_value not in b"".join(
        statement.signed.payload for statement in play.s2.statements
    )


def test_used_up_attempts_end_with_a_reason(two_stage) -> None:
    play = two_stage("shared", k=2, attempts=1)
    play.settle(play.phase(skip=play.holders()[:1]))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.read_from_s2(play.s1.final).code == EndCode.ATTEMPTS_USED


def test_nobody_left_to_take_over_ends_with_a_reason(two_stage) -> None:
    # Everybody holds a slot of item 0.
    play = two_stage("shared", sets=SAME_ITEMS)
    play.settle(play.phase(skip=(3,)))
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.read_from_s2(play.s1.final).code == EndCode.NO_SUBSTITUTE
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
        assert get_result(play).included == len(play.s1.members) >= 3
    else:
        assert play.s1.phase is play.s2.phase is Phase.ABORTED
        assert play.s2.manifest is None
        charge = play.s2.ledger.find(play.params.survey)
        assert charge is None or charge.status is Status.SPENT


def test_the_path_through_the_phases() -> None:
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
    deltas = {
        guarantee.adversary: int(guarantee.delta) / 2**128 for guarantee in get_result(play).against
    }
    assert set(deltas) == {int(Party.COORDINATOR), int(Party.AGGREGATOR), 3, 0}
    left = replace(play.params.mechanism, dropouts=2)
    lost = sets_delta(4, 2, 0.5, 2.0, 1.0)
    for who, adversary in (
        (int(Party.COORDINATOR), AGAINST_S1),
        (int(Party.AGGREGATOR), AGAINST_S2),
        (3, insiders(3)),
    ):
        exact = left.guarantee(epsilon=1.0, adversary=adversary).delta
        assert deltas[who] == pytest.approx(max(exact, lost), rel=1e-12)
    assert deltas[0] < deltas[3] < deltas[int(Party.COORDINATOR)]
    assert int(get_result(play).realized_delta) / 2**128 == max(deltas.values())


def test_lost_reporters_raise_the_stated_delta_where_sets_reveal_something() -> None:
    """With a strong preference for the chosen item a lost reporter's set reveals more."""
    mechanism = TSSPrime(items=4, users=600, p=0.5, alpha=0.5, gamma=50.0, phi=1, floor=140)
    sets = sets_delta(4, 2, 0.5, 50.0, 0.5)
    without = {
        guarantee.adversary: guarantee.delta
        for guarantee in mechanism.remaining_guarantees(600, 0.5, 0)
    }
    lost = {
        guarantee.adversary: guarantee.delta
        for guarantee in mechanism.remaining_guarantees(600, 0.5, 1)
    }
    assert without[AGAINST_S2] < sets == lost[AGAINST_S2] == lost[insiders(1)]
    assert lost[AGAINST_S1] == without[AGAINST_S1] >= sets


def test_tss_promises_nothing_against_participants(two_stage) -> None:
    play = two_stage("shared", PLAIN)
    play.finish()
    assert {guarantee.adversary for guarantee in get_result(play).against} == {
        int(Party.COORDINATOR),
        int(Party.AGGREGATOR),
        0,
    }
    assert play.params.phi == 0


@pytest.mark.slow
@pytest.mark.parametrize(("gamma", "surveys"), [(1.0, 40), (4.0, 120)])
def test_the_published_sums_are_binomial(two_stage, gamma, surveys) -> None:
    """s_j = Bin(Pi_j, p p_chi) over many surveys; planted error: alpha for p_chi."""
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
    """Field elements that are sent. The table has p_chi n helpers per item, on average alpha n."""
    n = 30
    N = 6
    M = 3
    play = two_stage(
        "elected", TSSPrime(items=N, users=n, p=0.5, alpha=M / N, gamma=gamma, phi=1), minimum=n
    )
    ballot = ballot_of(play.s1)
    one = packed_size(play.params.q, 1) + OVERHEAD
    m = np.array(ballot.reporters)
    play.phase()
    sent = [len(person.bundles[0].encrypted_shares) for person in play.people.values()]
    for person, count in zip(play.people.values(), sent, strict=True):
        sizes = {len(share) for share in person.bundles[0].encrypted_shares}
        assert sizes == {one}
        # A reporter sends m'_j shares for every item of A_i.
        assert count == sum(ballot.slots[j] for j in person.items)
    received = []
    for i in play.people:
        call = play.visit(i)
        tasks = call.tasks if isinstance(call, SlotSumRequest) else ()
        # A helper receives m_j shares for each of its slots.
        assert all(len(task.encrypted_shares) == m[task.item] for task in tasks)
        received.append(sum(len(task.encrypted_shares) for task in tasks))
    play.settle(play.phase())
    to_s2 = [len(part.due) for part in current_helper_sums(play.s1)]
    answers = chain.from_iterable(person.first_messages for person in play.people.values())
    assert sorted(len(sums.vector) for sums in answers) == sorted(
        packed_size(play.params.q, count) for count in to_s2
    )
    # Every item has more than phi reporters here.
    assert ballot.slots == ballot.reporters
    assert sum(sent) == sum(received) == int((m * m).sum())
    # On average alpha N for every user, exactly, whatever the sets are.
    assert sum(to_s2) == m.sum() == n * M
    alpha = M / N
    p_chi = play.params.mechanism.p_chi
    assert np.mean(sent) == pytest.approx(alpha * N * (alpha * n + 1 - alpha), rel=0.1)
    assert (np.mean(sent) == pytest.approx(alpha * N * p_chi * n, rel=0.1)) == (gamma == 1)
    # One seed of every helper.
    assert len(play.s2.manifest.encrypted_shares) == len(to_s2)


def test_phi_plus_one_helpers_cost_far_less(two_stage) -> None:
    play = two_stage("shared", TSSPrime(items=6, users=30, p=0.5, alpha=0.5, phi=1), k=2)
    assert {len(person.bundles[0].encrypted_shares) for person in play.people.values()} == {3 * 2}
    assert len(slots_of(play.s1, 1)) == 6 * 2
    assert len(encode(play.people[0].bundles[0])) < 350
