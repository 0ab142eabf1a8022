"""What honest and lying servers learn in `two-stage`, exactly: sums of reporters' bits, found by linear algebra.

Noise is off, cryptography ideal, and everybody's set is fixed and known (several sets are tried, and as many helpers as
reporters): a server may learn each item's sum over ONE set of at least the minimum, and nothing else. The lies are
those of `testing.lies_two_stage`, what the coordinator may show to users (`testing.world.tampered`), and two attempts over different
sets whose claims and sums the coordinator sends in every order.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest

from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import TWO_STAGE, Step, end_phase, resume
from faircount.protocol.peers.messages import AcceptedMembers, AggregateTotal
from faircount.protocol.peers.one_sum import PeersCoordinator
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.client import has_progressed
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_stage import coordinator, relay
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import (
    Announcement,
    Assignment,
    Election,
    ElectionRequest,
    SlotSumRequest,
    TwoStageManifest,
)
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.messages import Reservation, Signed, SyncState, addressee
from faircount.protocol.wire.signing import sign
from faircount.sharing.field import dtype_for
from faircount.sharing.packing import pack
from simulation import lies_two_stage
from simulation.linear_views import _reduced, learned
from simulation.views_play import ViewEnumerator
from simulation.world import tampered

pytestmark = pytest.mark.usefixtures("ideal_signatures")

USERS, MINIMUM, Q = 5, 3, 7


@dataclass(frozen=True, kw_only=True)
class Tiny(TSSPrime):
    """Everybody is active, in a field in which no sum of five wraps."""

    @property
    def modulus(self) -> int:
        return Q

    def decode(self, total, included):
        """Whatever it is: that a sum out of its range ends a survey says less than the sum."""
        return np.asarray(total.sums, dtype=np.int64)


ALTERNATING = (0, 1, 0, 1, 0)
"""Which of two items the user at each place reports, unless told: one set A_i each."""


@dataclass(frozen=True)
class FixedSets(two_stage_user.TwoStageClient):
    """The users at these places report these items: the bits alone depend on answers."""

    items: tuple[int, ...] = ALTERNATING

    def draw_response(self, device, placed, entropy):
        item = self.items[placed.index]
        bits = np.array([device.answer == item], dtype=dtype_for(Q))
        return two_stage_user.prepare(placed, device.invitation, (item,), bits, entropy)


def theatre(items: tuple[int, ...] = ALTERNATING, k: int = 2) -> ViewEnumerator:
    """With k = 0 an item has as many helpers as reporters, if they are more than two."""
    mechanism = Tiny(items=2, users=USERS, p=1.0, alpha=0.5, phi=1, insiders=1)
    play = ViewEnumerator(mechanism, TWO_STAGE, minimum=MINIMUM, attempts=3, k=k)
    play.client = FixedSets(items)
    return play


def places(play: ViewEnumerator) -> list[int]:
    """Users by their place in the roster."""
    return sorted(range(USERS), key=lambda i: play.setup.invitations[i].user)


def declared(play: ViewEnumerator, chosen) -> list[list[int]]:
    """Each item's sum over the users at these places, as rows."""
    of, items = places(play), play.client.items
    return [
        [int(i in {of[at] for at in chosen if items[at] == item}) for i in range(USERS)]
        for item in range(2)
    ]


def sets_that_explain(play: ViewEnumerator, found) -> list[tuple[int, ...]]:
    """All sets of at least the minimum from whose declared sums everything found follows."""
    large = [
        each for size in range(MINIMUM, USERS + 1) for each in combinations(range(USERS), size)
    ]
    return [
        each for each in large if _rank(declared(play, each) + found) == _rank(declared(play, each))
    ]


def _rank(rows) -> int:
    return len(_reduced(np.array(rows, dtype=np.int64), Q))


EVERYBODY = tuple(range(USERS))


def shared(play: ViewEnumerator) -> None:
    for _ in range(2):
        play.visit(*EVERYBODY)
        play.deadline()
    assert play.s1.state.phase is Phase.SUBMITTING


def everybody(play: ViewEnumerator) -> None:
    shared(play)
    play.visit(*EVERYBODY)
    play.deadline()
    assert play.s1.state.phase is Phase.PUBLISHED


def test_honest_servers_and_users_learn_the_declared_sums_alone() -> None:
    play = theatre()
    sums = _reduced(np.array(declared(play, EVERYBODY)), Q)
    for who in (
        [Party.COORDINATOR],
        [Party.AGGREGATOR],
        [Party.COORDINATOR, Party.AGGREGATOR],
    ):  # the last: their records in one hand, later
        assert learned(play, everybody, who) == sums
    for user in EVERYBODY:
        own = [int(i == user) for i in range(USERS)]
        assert learned(play, everybody, [(user,)]) == _reduced(np.array([*sums, own]), Q)


# --- what either lying server does --------------------------------------------------------------------------------


def both(play: ViewEnumerator) -> SimpleNamespace:
    """The servers as the lies look at them; nothing is watched here."""
    watch = SimpleNamespace(sets={}, manifests={}, s1_lies=False)
    return SimpleNamespace(s1=play.s1.state, s2=play.s2.state, setup=play.setup, watch=watch)


def said(message):
    return parse(message.payload) if isinstance(message, Signed) else message


def phases(play: ViewEnumerator, converse, absent: int = USERS) -> None:
    """Every phase and every attempt; the user at the place `absent` comes no more once there was a claim."""
    users = places(play)
    for _ in range(7):
        claimed = play.s1.state.manifest is not None
        play.visit(*(i for at, i in enumerate(users) if not (claimed and at == absent)))
        play.s1, out = play.world.call(end_phase, play.s1)
        play.wire += out
        while play.wire:
            converse(play, play.wire.pop(0))


def deliver(play: ViewEnumerator, message) -> None:
    (play.tell_s2 if addressee(message) is Party.AGGREGATOR else play.tell_s1)(message)


# --- a lying aggregator ---------------------------------------------------------------------------------------------------


def instead(s2, says):
    """The aggregator as if it had said this in place of its last statement, and were not ready for a sum."""
    before = replace(s2.state, statements=s2.statements[:-1], partial_sum=None)
    step = Step(*aggregator.say(before, says))
    return s2.after(step), step.messages


def _is_about(play: ViewEnumerator, message, about: type) -> bool:
    """A receipt for the claim, that is; there is one for the election, too."""
    return type(said(message)) is about and (
        about is not Reservation or play.s1.state.manifest is not None
    )


def lying_s2(about: type, who: int, how: int, absent: int = USERS, times: int = 1):
    """The aggregator lies when it is to speak about keys, the election or a set, and the truth is kept back; it reads everything.

    So many times; after that it tells the truth. When it doubts keys, it does as if nothing was announced.
    """

    def story(play: ViewEnumerator) -> None:
        left = times

        def converse(play: ViewEnumerator, message) -> None:
            nonlocal left
            lie = (
                lies_two_stage.lies_of_s2(both(play), who, how)
                if left and _is_about(play, message, about)
                else None
            )
            if lie is None:
                deliver(play, message)
                return
            left -= 1
            if about is Announcement:
                play.to_s2.append(message)
                lie = sign(play.s2.state.key, Party.AGGREGATOR, said(lie))
            elif not isinstance(said(lie), SyncState):
                play.s2, (lie,) = play.world.call(instead, play.s2, said(lie))
            play.tell_s1(lie)

        phases(play, converse, absent)
        play.to_s2 += resume(play.s1.state.state, play.s1.state.rows)

    return story


def sums_learned(play: ViewEnumerator, story, who: Party) -> set[tuple[int, ...]]:
    """The sets over which a server may have learned the declared sums; none where it learned nothing."""
    found = learned(play, story, [who])
    explain = sets_that_explain(play, found)
    assert explain, f"this follows from no set's declared sums: {found}"
    return set(explain) if found else set()


HELPED = [
    sum(1 << at for at in each) for size in range(4) for each in combinations((1, 3, 4), size)
]
"""All sets of the helpers, who stand at these places."""

FOREIGN = [0b00001, 0b11110, 0b11111]
"""Sets with somebody who is no helper."""


BITS = 256
"""Of `how`: a lie leaves out all those in the bits."""


def without(*left: int) -> tuple[int, ...]:
    return tuple(at for at in EVERYBODY if at not in left)


@pytest.mark.parametrize("absent", [0, 1, USERS])
def test_a_lying_s2_that_names_false_helpers_learns_the_declared_sums_or_nothing(absent) -> None:
    """Good seeds are called bad; others take over, and then a reporter vanishes or none does."""
    play, known = theatre(), set[tuple[int, ...]]()
    for bits in HELPED:
        known |= sums_learned(play, lying_s2(AcceptedMembers, bits, 0, absent), Party.AGGREGATOR)
    assert known == {EVERYBODY, without(absent)}  # it reaches either, but never both
    for bits in FOREIGN:
        assert not sums_learned(play, lying_s2(AcceptedMembers, bits, 0, absent), Party.AGGREGATOR)


@pytest.mark.parametrize("bits", [8, 16, 26, 40, 58])
def test_two_false_sets_or_a_false_root_tell_a_lying_s2_no_more(bits) -> None:
    """From 32 on the set is signed with a false root."""
    known = sums_learned(
        theatre(), lying_s2(AcceptedMembers, bits, 0, absent=0, times=2), Party.AGGREGATOR
    )
    assert known <= {EVERYBODY} or known <= {without(0)}


@pytest.mark.parametrize("bits", [0b00001, 0b01000, 0b00101, 0b10010, 0b01110, 0b11111])
def test_a_lying_s2_that_doubts_good_keys_learns_the_sums_over_the_others(bits) -> None:
    """By number: the survey goes on without those whom it doubts, if enough are left."""
    play = theatre()
    known = sums_learned(play, lying_s2(Announcement, bits, BITS), Party.AGGREGATOR)
    order = relay.assign_numbers(play.s1.state, EVERYBODY)
    left = without(*(place for number, place in enumerate(order) if bits >> number & 1))
    assert known == ({left} if len(left) >= MINIMUM else set())


@pytest.mark.parametrize("how", [0, 1])
def test_another_election_tells_a_lying_s2_nothing(how) -> None:
    assert not sums_learned(theatre(), lying_s2(Election, 0, how), Party.AGGREGATOR)


@pytest.mark.parametrize("how", [2, 128])
def test_a_smaller_claim_made_up_by_s2_tells_it_nothing(how) -> None:
    """Instead of its receipt, or after all that it has said."""
    play = theatre()
    for bits in (*HELPED[5 - how % 4 :: 2], *FOREIGN):
        assert not sums_learned(play, lying_s2(Reservation, bits, how), Party.AGGREGATOR)


def test_a_total_over_another_set_that_is_answered_is_found(monkeypatch) -> None:
    """The planted hole: the coordinator adds up what it has claimed once the aggregator names any set, and then goes on as it should."""
    told = PeersCoordinator.on_included

    def obliging(own, s, rows, stated, statement):
        totals = [pack(relay.item_totals(s, rows), Q)] if s.phase is Phase.COUNTING else []
        after, out = told(own, s, rows, stated, statement)
        return after, (
            *(
                sign(s.key, Party.COORDINATOR, AggregateTotal(s.params.survey, bytes(32), each))
                for each in totals
            ),
            *out,
        )

    monkeypatch.setattr(PeersCoordinator, "on_included", obliging)
    play = theatre()
    found = learned(play, lying_s2(AcceptedMembers, 8, 0, absent=0), [Party.AGGREGATOR])
    assert not sets_that_explain(play, found)
    assert _rank([*found, [int(i == places(play)[0]) for i in range(USERS)]]) == len(
        found
    )  # an answer is read


# --- a lying coordinator ---------------------------------------------------------------------------------------------------


def lying_s1(about: type, who: int, how: int, silent: bool):
    """The coordinator lies before, or instead of, a message of this kind to the aggregator; it reads all that the aggregator answers."""

    def converse(play: ViewEnumerator, message) -> None:
        lie = (
            lies_two_stage.lies_of_s1(both(play), who, how)
            if type(said(message)) is about
            else None
        )
        if lie is not None:
            play.tell_s2(sign(play.s1.state.key, Party.COORDINATOR, lie, play.s1.state.newest))
        if lie is None or not silent:
            deliver(play, message)

    return lambda play: phases(play, converse)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("about", [Announcement, ElectionRequest, TwoStageManifest, AggregateTotal])
def test_a_lying_s1_learns_the_declared_sums_or_nothing(about, silent) -> None:
    """Fewer keys, another request, a claim over fewer reporters, a sum over a set that does not stand."""
    play = theatre()
    for who, how in product((7, 30), (0, 1)):
        known = sums_learned(play, lying_s1(about, who, how, silent), Party.COORDINATOR)
        assert known <= {play.s1.state.members}


def next_attempt(s1, dropped: int):
    """The coordinator in its next attempt, which this reporter has left."""
    rows = s1.view
    step = rows.step(*coordinator._begin_attempt(s1.state, rows, (), (dropped,)))
    return s1.after(step), step.messages


def two_sets(dropped: int, order: tuple[int, ...], sent: int):
    """The coordinator has everybody's helpers add up, then says that a reporter has left, and has them add up the others.

    It sends the aggregator both claims in this order, and after each one of its two sums, or zeros, for the set that the aggregator names.
    """

    def story(play: ViewEnumerator) -> None:
        shared(play)
        manifests, totals = [], [np.zeros(2, dtype=dtype_for(Q))]
        for _ in range(2):
            play.visit(*EVERYBODY)
            made, (manifest,) = play.world.call(end_phase, play.s1)
            manifests.append(manifest)
            totals.append(relay.item_totals(made.state.state, made.state.view))
            play.s1, _ = play.world.call(next_attempt, play.s1, dropped)
        for each in order:
            play.tell_s2(manifests[each])
            stated, key = play.s2.state.last(AcceptedMembers), play.s1.state.key
            for vector in (totals[sent], *totals):
                total = AggregateTotal(
                    play.params.survey, sha256(stated.signed.payload).digest(), pack(vector, Q)
                )
                play.tell_s2(sign(key, Party.COORDINATOR, total, play.s2.state.newest))
        play.to_s1 += play.wire

    return story


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("dropped", [0, 1, 4])
def test_two_sets_give_a_lying_s1_the_sums_over_one(order, dropped) -> None:
    play = theatre()
    for sent in range(3):
        known = sums_learned(play, two_sets(dropped, order, sent), Party.COORDINATOR)
        assert known == {EVERYBODY if order[0] == 0 else without(dropped)}


def test_a_mask_that_is_not_added_is_found(monkeypatch) -> None:
    """The planted hole: helpers send the coordinator their bare sums, and the coordinator has those over two sets."""
    made = two_stage_user.mask_vector

    def bare(member, now, vector, entropy):
        return pack(vector, Q), made(member, now, vector, entropy)[1]

    monkeypatch.setattr(two_stage_user, "mask_vector", bare)
    play = theatre()
    found = learned(play, two_sets(2, (0, 1), 1), [Party.COORDINATOR])
    assert not sets_that_explain(play, found)
    assert _rank([*found, [int(i == places(play)[2]) for i in range(USERS)]]) == len(
        found
    )  # an answer is read


def shown_to_one(kind: type, how: int):
    """The coordinator shows one user, who reports and helps, a false assignment or call, and then the right one."""

    def exchange(play: ViewEnumerator, i: int) -> bool:
        before, asked = (
            play.devices[i].state,
            play.devices[i].fact("asked", play.client.next_message),
        )
        if asked is None:
            return False
        answer = play.tell_s1(asked)[0]
        for shown in (tampered(answer, how), answer) if isinstance(answer, kind) else (answer,):
            play.devices[i], _ = play.world.call(play._hear, play.devices[i], i, asked, shown)
            play.to_s1 += play.devices[
                i
            ].state.waiting  # it reads what is made of the false one, too
        return has_progressed(before, play.devices[i].state)

    def story(play: ViewEnumerator) -> None:
        *others, shown = (places(play)[at] for at in (0, 1, 2, 4, 3))
        for _ in range(7):
            play.visit(*others)
            play.begin(shown)
            while exchange(play, shown):
                pass
            play.deadline()

    return story


@pytest.mark.parametrize(
    ("kind", "how"), [*product([Assignment], range(2)), *product([SlotSumRequest], range(6))]
)
def test_false_calls_and_assignments_tell_a_lying_s1_no_more(kind, how) -> None:
    """The shares of one reporter alone, another set, a helper called gone, no proof: the survey goes on without."""
    play = theatre()
    known = sums_learned(play, shown_to_one(kind, how), Party.COORDINATOR)
    assert known == {play.s1.state.members}


# --- other sets, and as many helpers as reporters


OTHERS = {
    "as many helpers as reporters": (ALTERNATING, 0),
    "an item that one user reports": ((0, 1, 1, 1, 1), 2),
    "the same, as many helpers as reporters": ((0, 1, 1, 1, 1), 0),
    "an item that nobody reports": ((0, 0, 0, 0, 0), 0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_with_other_sets_and_helpers_lying_servers_learn_the_sums_over_one_set(name) -> None:
    """A helper's good seed called bad, a good key called bad; a smaller claim, two claims."""
    play = theatre(*OTHERS[name])
    assert sums_learned(play, everybody, Party.AGGREGATOR) >= {EVERYBODY}
    helpers = {*relay.slots_of(play.s1.state, 1).holder.tolist()}
    doubted = sum(1 << at for at in helpers - {min(helpers)})
    sums_learned(
        play, lying_s2(AcceptedMembers, doubted, 0, absent=0), Party.AGGREGATOR
    )  # fails where no one set explains it
    sums_learned(play, lying_s1(TwoStageManifest, 30, 0, silent=False), Party.COORDINATOR)
    assert sums_learned(play, lying_s2(Announcement, 0b00001, BITS), Party.AGGREGATOR)
    assert sums_learned(play, two_sets(0, (1, 0), 1), Party.COORDINATOR) >= {without(0)}
