"""What honest and dishonest servers learn in `two-stage`, exactly, by linear algebra.

Noise is off, cryptography is ideal, and everybody's set A_i is fixed and known; several sets are
tried, and as many helpers as reporters. A server may learn each item's sum over ONE set of at least
the minimum, and nothing else. Dishonest servers sign what `simulation.dishonest_two_stage` forges
and show clients what `simulation.parties.tamper` makes; and the coordinator sends the manifests and
totals of two attempts over different sets in every order.
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
from simulation import dishonest_two_stage
from simulation.linear_views import find_learned_sums, reduce_rows
from simulation.parties import tamper
from simulation.view_enumeration import ViewEnumerator
from simulation.views import Chance

pytestmark = pytest.mark.usefixtures("ideal_signatures")

USERS = 5
MINIMUM = 3
Q = 7


@dataclass(frozen=True, kw_only=True)
class Tiny(TSSPrime):
    """Everybody is active, in a field in which no sum of five wraps."""

    @property
    def modulus(self) -> int:
        return Q

    def decode(self, total, included):
        """Any total: that one out of range ends a survey reveals less than the total itself."""
        return np.asarray(total.sums, dtype=np.int64)


ALTERNATING = (0, 1, 0, 1, 0)
"""Which of two items the participant at each place reports by default: its set A_i."""


@dataclass(frozen=True)
class FixedSets(two_stage_user.TwoStageClient):
    """The participant at each place reports a fixed item, so only the bits depend on answers."""

    items: tuple[int, ...] = ALTERNATING

    def draw_response(self, client, placed, entropy):
        item = self.items[placed.index]
        bits = np.array([client.sheet == (item,)], dtype=dtype_for(Q))
        return two_stage_user.make_report(placed, client.invitation, (item,), bits, entropy)


def make_enumerator(items: tuple[int, ...] = ALTERNATING, k: int = 2) -> ViewEnumerator:
    """With k = 0 an item has as many helpers as reporters, if they are more than two."""
    mechanism = Tiny(items=2, users=USERS, p=1.0, alpha=0.5, phi=1, insiders=1)
    enumerator = ViewEnumerator(mechanism, TWO_STAGE, minimum=MINIMUM, attempts=3, k=k)
    enumerator.client = FixedSets(items)
    return enumerator


def places(enumerator: ViewEnumerator) -> list[int]:
    """The participants in the order of their places in the roster."""
    return sorted(range(USERS), key=lambda i: enumerator.setup.invitations[i].user)


def sums_over(enumerator: ViewEnumerator, chosen) -> list[list[int]]:
    """Each item's sum over the participants at these places, as rows."""
    users = places(enumerator)
    rows = []
    for item in range(2):
        reporters = {users[at] for at in chosen if enumerator.client.items[at] == item}
        rows.append([int(i in reporters) for i in range(USERS)])
    return rows


def sets_that_explain(enumerator: ViewEnumerator, found) -> list[tuple[int, ...]]:
    """All sets of at least the minimum from whose sums everything found follows."""
    explaining = []
    for size in range(MINIMUM, USERS + 1):
        for chosen in combinations(range(USERS), size):
            sums = sums_over(enumerator, chosen)
            if _rank(sums + found) == _rank(sums):
                explaining.append(chosen)
    return explaining


def reveals_answer_at(enumerator: ViewEnumerator, found, place: int) -> bool:
    """Whether the answer of the participant at this place follows from what was found."""
    answer = [int(i == places(enumerator)[place]) for i in range(USERS)]
    return _rank([*found, answer]) == len(found)


def _rank(rows) -> int:
    return len(reduce_rows(np.array(rows, dtype=np.int64), Q))


EVERYBODY = tuple(range(USERS))


def run_until_shared(enumerator: ViewEnumerator) -> None:
    for _ in range(2):
        enumerator.visit(*EVERYBODY)
        enumerator.deadline()
    assert enumerator.s1.state.phase is Phase.SUBMITTING


def run_all(enumerator: ViewEnumerator) -> None:
    run_until_shared(enumerator)
    enumerator.visit(*EVERYBODY)
    enumerator.deadline()
    assert enumerator.s1.state.phase is Phase.PUBLISHED


def test_honest_servers_and_clients_learn_the_published_sums_alone() -> None:
    enumerator = make_enumerator()
    sums = reduce_rows(np.array(sums_over(enumerator, EVERYBODY)), Q)
    both_records = [Party.COORDINATOR, Party.AGGREGATOR]  # one operator gets them later
    for who in ([Party.COORDINATOR], [Party.AGGREGATOR], both_records):
        assert find_learned_sums(enumerator, run_all, who) == sums
    for user in EVERYBODY:
        own = [int(i == user) for i in range(USERS)]
        expected = reduce_rows(np.array([*sums, own]), Q)
        assert find_learned_sums(enumerator, run_all, [(user,)]) == expected


# --- what either dishonest server does ------------------------------------------------------------


def as_simulation(enumerator: ViewEnumerator) -> SimpleNamespace:
    """The servers in the form that forgeries are made from; there is no monitor here."""
    monitor = SimpleNamespace(sets={}, manifests={}, claimed=set(), is_s1_dishonest=False)
    return SimpleNamespace(
        s1=enumerator.s1.state, s2=enumerator.s2.state, setup=enumerator.setup, monitor=monitor
    )


def content_of(message):
    """What was signed, or the message itself."""
    return parse(message.payload) if isinstance(message, Signed) else message


def run_phases(enumerator: ViewEnumerator, relay_message, absent: int = USERS) -> None:
    """Every phase and every attempt.

    The participant at the place `absent` stays away once there was a manifest.
    """
    users = places(enumerator)
    for _ in range(7):
        present = list(users)
        if enumerator.s1.state.manifest is not None and absent < USERS:
            present.remove(users[absent])
        enumerator.visit(*present)
        enumerator.s1, out = enumerator.ideal.call(end_phase, enumerator.s1)
        enumerator.in_transit += out
        while enumerator.in_transit:
            relay_message(enumerator, enumerator.in_transit.pop(0))


def deliver(enumerator: ViewEnumerator, message) -> None:
    if addressee(message) is Party.AGGREGATOR:
        enumerator.send_to_s2(message)
    else:
        enumerator.send_to_s1(message)


# --- a dishonest aggregator -----------------------------------------------------------------------


def replace_statement(s2, message):
    """The aggregator as if this were its last statement, and it were not ready for a total."""
    before = replace(s2.state, statements=s2.statements[:-1], partial_sum=None)
    step = Step(*aggregator.sign_statement(before, message))
    return s2.write_step(step), step.messages


def _is_about(enumerator: ViewEnumerator, message, about: type) -> bool:
    """Whether it is a message of this kind; a reservation only of a manifest, not of an election."""
    if type(content_of(message)) is not about:
        return False
    return about is not Reservation or enumerator.s1.state.manifest is not None


def dishonest_s2(about: type, who: int, how: int, absent: int = USERS, times: int = 1):
    """The aggregator forges its statement about keys, the election or a set, so many times.

    The true one is kept back; afterwards the aggregator is honest. It reads everything. When it
    rejects keys, it acts as if nothing had been announced.
    """

    def scenario(enumerator: ViewEnumerator) -> None:
        left = times

        def relay_message(enumerator: ViewEnumerator, message) -> None:
            nonlocal left
            forged = None
            if left and _is_about(enumerator, message, about):
                simulation = as_simulation(enumerator)
                forged = dishonest_two_stage.forge_for_aggregator(simulation, who, how)
            if forged is None:
                deliver(enumerator, message)
                return
            left -= 1
            content = content_of(forged)
            if about is Announcement:
                enumerator.to_s2.append(message)
                forged = sign(enumerator.s2.state.key, Party.AGGREGATOR, content)
            elif not isinstance(content, SyncState):
                enumerator.s2, (forged,) = enumerator.ideal.call(
                    replace_statement, enumerator.s2, content
                )
            enumerator.send_to_s1(forged)

        run_phases(enumerator, relay_message, absent)
        enumerator.to_s2 += resume(enumerator.s1.state.state, enumerator.s1.state.rows)

    return scenario


def sums_learned(enumerator: ViewEnumerator, scenario, who: Party) -> set[tuple[int, ...]]:
    """The sets over which a server may have learned the sums; none where it learned nothing."""
    found = find_learned_sums(enumerator, scenario, [who])
    explain = sets_that_explain(enumerator, found)
    assert explain, f"this follows from the sums over no set: {found}"
    return set(explain) if found else set()


def find_helpers(enumerator: ViewEnumerator) -> list[int]:
    """The places of the helpers, whom the election draws from keys and roster."""
    enumerator.start(Chance([]), [0] * USERS)
    run_until_shared(enumerator)
    return sorted({*relay.slots_of(enumerator.s1.state, 1).holder.tolist()})


def find_outsider(enumerator: ViewEnumerator) -> int:
    """The first place of somebody who is no helper."""
    helpers = find_helpers(enumerator)
    return next(at for at in EVERYBODY if at not in helpers)


def helper_sets(enumerator: ViewEnumerator) -> list[int]:
    """All sets of helpers as bits, the smaller ones first."""
    helpers = find_helpers(enumerator)
    sets = []
    for size in range(len(helpers) + 1):
        sets += [sum(1 << at for at in chosen) for chosen in combinations(helpers, size)]
    return sets


def foreign_sets(enumerator: ViewEnumerator) -> list[int]:
    """Sets with somebody who is no helper: one outsider alone, all but this one, everybody."""
    everybody = (1 << USERS) - 1
    outsider = 1 << find_outsider(enumerator)
    helpers = sum(1 << at for at in find_helpers(enumerator))
    sets = [outsider, everybody ^ outsider, everybody]
    # Where the election drew all others as helpers, all but the outsider are a set of helpers.
    return [chosen for chosen in sets if chosen & ~helpers]


BITS = 256
"""The bit of `how` with which a forgery leaves out all those in the bits of `who`."""


def without(*left: int) -> tuple[int, ...]:
    return tuple(at for at in EVERYBODY if at not in left)


@pytest.mark.parametrize("who", ["reporter", "helper", "nobody"])
def test_a_dishonest_s2_that_names_false_helpers_learns_one_sum_or_nothing(who) -> None:
    """Good seeds count as unreadable, others take over, and then somebody vanishes or nobody."""
    enumerator = make_enumerator()
    helper = find_helpers(enumerator)[0]
    absent = {"reporter": find_outsider(enumerator), "helper": helper, "nobody": USERS}[who]
    known = set[tuple[int, ...]]()
    for bits in helper_sets(enumerator):
        known |= sums_learned(
            enumerator, dishonest_s2(AcceptedMembers, bits, 0, absent), Party.AGGREGATOR
        )
    # It can reach either set, but never both.
    assert known == {EVERYBODY, without(absent)}
    for bits in foreign_sets(enumerator):
        assert not sums_learned(
            enumerator, dishonest_s2(AcceptedMembers, bits, 0, absent), Party.AGGREGATOR
        )


@pytest.mark.parametrize("root", [0, 32])
@pytest.mark.parametrize("index", [2, 3, -1])
def test_two_false_sets_or_a_false_root_tell_a_dishonest_s2_no_more(index, root) -> None:
    """With the bit 32 the set is signed with a false root."""
    enumerator = make_enumerator()
    absent = find_outsider(enumerator)
    bits = helper_sets(enumerator)[index] | root
    scenario = dishonest_s2(AcceptedMembers, bits, 0, absent, times=2)
    known = sums_learned(enumerator, scenario, Party.AGGREGATOR)
    assert known <= {EVERYBODY} or known <= {without(absent)}


@pytest.mark.parametrize("bits", [0b00001, 0b01000, 0b00101, 0b10010, 0b01110, 0b11111])
def test_a_dishonest_s2_that_rejects_good_keys_learns_the_sums_over_the_others(bits) -> None:
    """Keys are rejected by number; the survey goes on without them, if enough are left."""
    enumerator = make_enumerator()
    known = sums_learned(enumerator, dishonest_s2(Announcement, bits, BITS), Party.AGGREGATOR)
    order = relay.assign_numbers(enumerator.s1.state, EVERYBODY)
    left = without(*(place for number, place in enumerate(order) if bits >> number & 1))
    assert known == ({left} if len(left) >= MINIMUM else set())


@pytest.mark.parametrize("how", [0, 1])
def test_another_election_tells_a_dishonest_s2_nothing(how) -> None:
    assert not sums_learned(make_enumerator(), dishonest_s2(Election, 0, how), Party.AGGREGATOR)


@pytest.mark.parametrize("how", [2, 128])
def test_a_smaller_manifest_forged_by_s2_tells_it_nothing(how) -> None:
    """Instead of its reservation, or after all its statements."""
    enumerator = make_enumerator()
    some_helpers = helper_sets(enumerator)[5 - how % 4 :: 2]
    for bits in (*some_helpers, *foreign_sets(enumerator)):
        assert not sums_learned(enumerator, dishonest_s2(Reservation, bits, how), Party.AGGREGATOR)


def test_a_total_over_another_set_that_is_answered_is_found(monkeypatch) -> None:
    """A planted hole: whatever set the aggregator names, it also gets the sum of the manifest."""
    on_accepted = PeersCoordinator.on_accepted

    def send_total_too(rules, s, rows, stated, statement):
        extra = []
        if s.phase is Phase.COUNTING:
            packed = pack(relay.item_totals(s, rows), Q)
            total = AggregateTotal(s.params.survey, bytes(32), packed)
            extra.append(sign(s.key, Party.COORDINATOR, total))
        after, out = on_accepted(rules, s, rows, stated, statement)
        return after, (*extra, *out)

    monkeypatch.setattr(PeersCoordinator, "on_accepted", send_total_too)
    enumerator = make_enumerator()
    # One helper is named unreadable and another vanishes, whoever else was elected.
    named, absent = find_helpers(enumerator)[:2]
    scenario = dishonest_s2(AcceptedMembers, 1 << named, 0, absent)
    found = find_learned_sums(enumerator, scenario, [Party.AGGREGATOR])
    assert not sets_that_explain(enumerator, found)
    assert reveals_answer_at(enumerator, found, absent)


# --- a dishonest coordinator ----------------------------------------------------------------------


def dishonest_s1(about: type, who: int, how: int, silent: bool):
    """The coordinator sends a forged message before one of this kind, or instead of it if `silent`.

    It reads all that the aggregator answers.
    """

    def relay_message(enumerator: ViewEnumerator, message) -> None:
        forged = None
        if type(content_of(message)) is about:
            simulation = as_simulation(enumerator)
            forged = dishonest_two_stage.forge_for_coordinator(simulation, who, how)
        s1 = enumerator.s1.state
        if forged is not None:
            enumerator.send_to_s2(sign(s1.key, Party.COORDINATOR, forged, s1.chain_end))
        if forged is None or not silent:
            deliver(enumerator, message)

    return lambda enumerator: run_phases(enumerator, relay_message)


@pytest.mark.parametrize("silent", [False, True])
@pytest.mark.parametrize("about", [Announcement, ElectionRequest, TwoStageManifest, AggregateTotal])
def test_a_dishonest_s1_learns_the_published_sums_or_nothing(about, silent) -> None:
    """Fewer keys, another request, a manifest over fewer reporters, a total over another set."""
    enumerator = make_enumerator()
    for who, how in product((7, 30), (0, 1)):
        known = sums_learned(enumerator, dishonest_s1(about, who, how, silent), Party.COORDINATOR)
        assert known <= {enumerator.s1.state.members}


def next_attempt(s1, dropped: int):
    """The coordinator in its next attempt, without this reporter."""
    rows = s1.view
    step = rows.step(*coordinator._begin_attempt(s1.state, rows, (), (dropped,)))
    return s1.write_step(step), step.messages


def two_sets(dropped: int, order: tuple[int, ...], sent: int):
    """The coordinator has helpers add up everybody, then claims that a reporter left, and again.

    It sends the aggregator both manifests in this order, and after each all of its totals, and
    zeros, for the set that the aggregator accepts.
    """

    def scenario(enumerator: ViewEnumerator) -> None:
        run_until_shared(enumerator)
        manifests = []
        totals = [np.zeros(2, dtype=dtype_for(Q))]
        for _ in range(2):
            enumerator.visit(*EVERYBODY)
            made, (manifest,) = enumerator.ideal.call(end_phase, enumerator.s1)
            manifests.append(manifest)
            totals.append(relay.item_totals(made.state.state, made.state.view))
            enumerator.s1, _ = enumerator.ideal.call(next_attempt, enumerator.s1, dropped)
        for attempt in order:
            enumerator.send_to_s2(manifests[attempt])
            stated = enumerator.s2.state.last(AcceptedMembers)
            accepted_hash = sha256(stated.signed.payload).digest()
            key = enumerator.s1.state.key
            for vector in (totals[sent], *totals):
                total = AggregateTotal(enumerator.params.survey, accepted_hash, pack(vector, Q))
                enumerator.send_to_s2(
                    sign(key, Party.COORDINATOR, total, enumerator.s2.state.chain_end)
                )
        enumerator.to_s1 += enumerator.in_transit

    return scenario


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("dropped", [0, 1, 4])
def test_two_sets_give_a_dishonest_s1_the_sums_over_one(order, dropped) -> None:
    enumerator = make_enumerator()
    for sent in range(3):
        known = sums_learned(enumerator, two_sets(dropped, order, sent), Party.COORDINATOR)
        assert known == {EVERYBODY if order[0] == 0 else without(dropped)}


def test_a_mask_that_is_not_added_is_found(monkeypatch) -> None:
    """A planted hole: helpers send their sums without masks, and the coordinator has two sets."""
    mask_vector = two_stage_user.mask_vector

    def leave_unmasked(member, context, vector, entropy):
        _, encrypted_seed = mask_vector(member, context, vector, entropy)
        return pack(vector, Q), encrypted_seed

    monkeypatch.setattr(two_stage_user, "mask_vector", leave_unmasked)
    enumerator = make_enumerator()
    found = find_learned_sums(enumerator, two_sets(2, (0, 1), 1), [Party.COORDINATOR])
    assert not sets_that_explain(enumerator, found)
    assert reveals_answer_at(enumerator, found, 2)


def tamper_for_one(kind: type, how: int, place: int):
    """The coordinator shows the client at a place a false request, and then the true one.

    It also reads what the client makes of the false one.
    """

    def exchange(enumerator: ViewEnumerator, i: int) -> bool:
        before = enumerator.devices[i].state
        request = enumerator.devices[i].fact("request", enumerator.client.next_message)
        if request is None:
            return False
        answer = enumerator.send_to_s1(request)[0]
        shown = [tamper(answer, how), answer] if isinstance(answer, kind) else [answer]
        for response in shown:
            enumerator.devices[i], _ = enumerator.ideal.call(
                enumerator._handle_response, enumerator.devices[i], i, request, response
            )
            enumerator.to_s1 += enumerator.devices[i].state.waiting
        return has_progressed(before, enumerator.devices[i].state)

    def scenario(enumerator: ViewEnumerator) -> None:
        others = places(enumerator)
        victim = others.pop(place)
        for _ in range(7):
            enumerator.visit(*others)
            enumerator.begin(victim)
            while exchange(enumerator, victim):
                pass
            enumerator.deadline()

    return scenario


@pytest.mark.parametrize(
    ("kind", "how"), [*product([Assignment], range(2)), *product([SlotSumRequest], range(6))]
)
def test_false_requests_and_assignments_tell_a_dishonest_s1_no_more(kind, how) -> None:
    """The shares of one reporter, another set, a helper called gone, no proof: none is answered."""
    enumerator = make_enumerator()
    helper = find_helpers(enumerator)[-1]
    known = sums_learned(enumerator, tamper_for_one(kind, how, helper), Party.COORDINATOR)
    assert known == {enumerator.s1.state.members}


# --- other sets, and as many helpers as reporters --------------------------------------------------


OTHER_SETS = {
    "as many helpers as reporters": (ALTERNATING, 0),
    "an item that one participant reports": ((0, 1, 1, 1, 1), 2),
    "the same, as many helpers as reporters": ((0, 1, 1, 1, 1), 0),
    "an item that nobody reports": ((0, 0, 0, 0, 0), 0),
}


@pytest.mark.parametrize("name", OTHER_SETS)
def test_with_other_sets_and_helpers_dishonest_servers_learn_the_sums_over_one_set(name) -> None:
    """A good seed or key is rejected; a smaller manifest, two manifests."""
    enumerator = make_enumerator(*OTHER_SETS[name])
    assert sums_learned(enumerator, run_all, Party.AGGREGATOR) >= {EVERYBODY}
    helpers = {*relay.slots_of(enumerator.s1.state, 1).holder.tolist()}
    accepted = sum(1 << at for at in helpers - {min(helpers)})
    # These two fail where no single set explains what was learned.
    sums_learned(enumerator, dishonest_s2(AcceptedMembers, accepted, 0, absent=0), Party.AGGREGATOR)
    sums_learned(enumerator, dishonest_s1(TwoStageManifest, 30, 0, silent=False), Party.COORDINATOR)
    assert sums_learned(enumerator, dishonest_s2(Announcement, 0b00001, BITS), Party.AGGREGATOR)
    assert sums_learned(enumerator, two_sets(0, (1, 0), 1), Party.COORDINATOR) >= {without(0)}


def test_the_client_with_fixed_sets_replaces_a_method_of_the_real_one() -> None:
    """After a rename of the real method the client would draw from its real tables."""
    assert FixedSets.draw_response is not two_stage_user.TwoStageClient.draw_response
