"""What the servers and colluding clients see, exactly: all runs of tiny surveys, by the real roles.

Cryptography and masks are ideal. The distribution of a view may depend on the answers only as the stated
guarantee allows, and a participant who was dropped must leave no trace at all. Signatures are
replaced by hashes, which hide nothing and are faster.
"""

import inspect
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from itertools import permutations, product

import numpy as np
import pytest

from faircount.accounting.guarantee import S1, S2, insiders
from faircount.accounting.two_stage import sets_delta
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.sampling import DPDS
from faircount.mechanisms.two_stage import TSSPrime
from faircount.protocol import SERVERS, TWO_STAGE, Topology, end_phase, known_topologies
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import coordinator as servers_coordinator
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, AggregateShare
from faircount.protocol.topologies.two_stage import announcing, relay
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import ListProof
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.digests import entry_leaves, merkle_root
from faircount.protocol.wire.messages import PartShares
from faircount.protocol.wire.packed_rows import sum_packed
from faircount.protocol.wire.signing import ChainLink, sign
from faircount.sharing.packing import pack
from simulation.view_enumeration import CLIENTS, ViewEnumerator, responses
from simulation.views import IdealFunctionality, every_run, excess, uniform

pytestmark = pytest.mark.usefixtures("ideal_signatures")

EPSILONS = (0.0, 0.3, 1.0)
SAME = 1e-12


@dataclass(frozen=True, kw_only=True)
class Tiny(DPDS):
    """DPDS in a field so small that everything can be enumerated.

    A sum that wraps reveals less, not more.
    """

    q: int = 2

    @property
    def modulus(self) -> int:
        return self.q


# --- scenarios --------------------------------------------------------------------------------------


def run_all(enumerator: ViewEnumerator) -> None:
    """Everybody comes to every phase."""
    phases = 1 if enumerator.params.topology is SERVERS else 3
    for _ in range(phases):
        enumerator.visit(*range(enumerator.params.n_max))
        enumerator.deadline()
    assert enumerator.s1.state.phase is Phase.PUBLISHED


def run_with_late_message(enumerator: ViewEnumerator):
    """The last client's message arrives after the deadline, so it is dropped. Returns it."""
    *others, late = range(enumerator.params.n_max)
    if enumerator.params.topology is not SERVERS:
        enumerator.visit(*others, late)
        enumerator.deadline()
    enumerator.visit(*others)
    message = enumerator.advance_to_message(late)
    enumerator.deadline()
    enumerator.send_to_s1(message)
    # In two-stage the late client is no reporter any more, but it may be an elected helper.
    helpers = (late,) if enumerator.params.topology is TWO_STAGE else ()
    # Two-stage adds up once more.
    for _ in range(2):
        enumerator.visit(*others, *helpers)
        enumerator.deadline()
    assert enumerator.s1.state.phase is Phase.PUBLISHED
    return message


def forward_late_report(enumerator: ViewEnumerator) -> None:
    """A planted hole: the coordinator sends the aggregator a report that came too late."""
    late = run_with_late_message(enumerator)
    s1 = enumerator.s1.state
    params = enumerator.params
    batch = PartShares(params.survey, s1.manifest_hash, (late.encrypted_share,))
    enumerator.send_to_s2(sign(s1.key, Party.COORDINATOR, batch))
    # The survey is over, so only hashes of the others are left.
    stored = [s1.view.first_messages.get(user) for user in s1.view.first_messages]
    shares = [report.share for report in stored if report is not None] + [late.share]
    total = pack(sum_packed(shares, params.q, params.N), params.q)
    aggregate_share = AggregateShare(params.survey, bytes(32), total)
    enumerator.send_to_s2(sign(s1.key, Party.COORDINATOR, aggregate_share))


def make_enumerator(topology: Topology, mechanism, **terms) -> ViewEnumerator:
    return ViewEnumerator(mechanism, topology, **{"attempts": 2, **terms})


# --- everybody comes ------------------------------------------------------------------------------

SIZES = [(SERVERS, 3)]
"""Topologies and moduli. With a roster there is too much to enumerate: see test_linear_views.py."""


@pytest.mark.slow
@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_views_depend_on_the_answers_only_as_the_guarantee_allows(topology, q) -> None:
    """Sampling with phi = 1, and another holder of every item: 1 and 2 hold one each, 0 either."""
    mechanism = Tiny(items=2, users=3, p=0.25, floor=1, q=q)
    enumerator = make_enumerator(topology, mechanism)
    one, other = (enumerator.distribution((item, 0, 1), run_all, [(1,), (2,)]) for item in (0, 1))
    for epsilon in EPSILONS:
        allowed = {
            who: mechanism.guarantee(epsilon=epsilon, adversary=who).delta
            for who in (S1, S2, insiders(1))
        }
        assert excess(one.s1, other.s1, epsilon) <= allowed[S1] + SAME
        assert excess(one.s2, other.s2, epsilon) <= allowed[S2] + SAME
        for who, distribution in one.coalitions.items():
            assert (
                excess(distribution, other.coalitions[who], epsilon) <= allowed[insiders(1)] + SAME
            )
        # The servers see no more than any reader of the result, and the bound is not idle.
        public = excess(one.reader, other.reader, epsilon)
        assert public > 0 or epsilon > 0
        assert excess(one.s1, other.s1, epsilon) == pytest.approx(public, abs=SAME)
        assert excess(one.s2, other.s2, epsilon) == pytest.approx(public, abs=SAME)


@pytest.mark.slow
def test_decoys_hide_all_neighbours_from_everybody() -> None:
    """No floor, and the real field: one of two participants changes its answer, the other spies."""
    mechanism = Decoys(items=2, users=2, coins=2, insiders=1)
    enumerator = make_enumerator(SERVERS, mechanism)
    distributions = {
        answers: enumerator.distribution(answers, run_all, [(0,), (1,)])
        for answers in ((0, 0), (0, 1), (1, 1))
    }
    for answers, changed in product(distributions, repeat=2):
        differing = [i for i in range(2) if answers[i] != changed[i]]
        if len(differing) != 1:
            continue
        peer = (1 - differing[0],)
        one = distributions[answers]
        other = distributions[changed]
        for epsilon in EPSILONS:
            inside = mechanism.guarantee(epsilon=epsilon, adversary=insiders(1)).delta
            outside = mechanism.guarantee(epsilon=epsilon, adversary=insiders(0)).delta
            assert excess(one.s1, other.s1, epsilon) <= outside + SAME
            assert excess(one.s2, other.s2, epsilon) <= outside + SAME
            leaked = excess(one.coalitions[peer], other.coalitions[peer], epsilon)
            assert leaked <= inside + SAME


# --- somebody is dropped --------------------------------------------------------------------------


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_a_dropped_participant_leaves_no_trace(topology, q) -> None:
    """Even without noise no view depends on the answer in a report that came too late."""
    enumerator = make_enumerator(topology, Tiny(items=2, users=3, p=1.0, insiders=0, q=q))
    one, other = (
        enumerator.distribution((0, 1, item), run_with_late_message, [(0,), (1,)])
        for item in (0, 1)
    )
    assert one.s1 == other.s1
    assert one.s2 == other.s2
    assert one.coalitions == other.coalitions
    # Noise is off, so the others' sum is always the same.
    assert len(one.reader) == 1


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_a_late_report_that_is_forwarded_is_found(topology, q) -> None:
    """The aggregator then knows the answer of the participant who was dropped."""
    enumerator = make_enumerator(topology, Tiny(items=2, users=3, p=1.0, insiders=0, q=q))
    one, other = (enumerator.distribution((0, 1, item), forward_late_report) for item in (0, 1))
    assert excess(one.s2, other.s2, 10.0) == pytest.approx(1, abs=SAME)
    assert one.reader == other.reader


@pytest.mark.parametrize(("topology", "q"), SIZES)
def test_those_who_stay_keep_what_is_left_of_the_guarantee(topology, q) -> None:
    mechanism = Tiny(items=2, users=3, p=0.25, floor=1, insiders=0, q=q)
    enumerator = make_enumerator(topology, mechanism)
    one, other = (enumerator.distribution((item, 0, 1), run_with_late_message) for item in (0, 1))
    for epsilon in EPSILONS:
        left = replace(mechanism, dropouts=1).guarantee(epsilon=epsilon).delta
        assert excess(one.s1, other.s1, epsilon) <= left + SAME
        assert excess(one.s2, other.s2, epsilon) <= left + SAME


# --- dishonest servers --------------------------------------------------------------------------------


def sign_for_s2(enumerator: ViewEnumerator, message, number: int = 0):
    return sign(enumerator.s2.state.key, Party.AGGREGATOR, message, ChainLink(number, bytes(32)))


def accepted_reports(enumerator: ViewEnumerator, bits: int) -> AcceptedReports:
    """A set as the aggregator would state it, for the coordinator's manifest."""
    manifest = enumerator.s1.state.manifest
    chosen = [entry for i, entry in enumerate(manifest.entries) if bits >> i & 1]
    root = merkle_root(entry_leaves((entry.user, entry.public_key) for entry in chosen))
    manifest_hash = enumerator.s1.state.manifest_hash
    return AcceptedReports(manifest.survey, manifest_hash, bytes((bits,)), root)


def dishonest_s2(first: int, second: int):
    """The aggregator signs a reservation, states two sets, and reads what the coordinator sends."""

    def scenario(enumerator: ViewEnumerator) -> None:
        enumerator.visit(*range(enumerator.params.n_max))
        enumerator.s1, out = enumerator.ideal.call(end_phase, enumerator.s1)
        enumerator.send_to_s2(out[0])
        # With the reservation the coordinator sends the encrypted shares.
        enumerator.send_to_s1(enumerator.in_transit.pop())
        for bits in (first, second):
            enumerator.send_to_s1(sign_for_s2(enumerator, accepted_reports(enumerator, bits)))
        enumerator.to_s2 += enumerator.in_transit

    return scenario


def sum_in_field(bits: int, answers) -> int:
    """The sum of the answers in the bits, in the field of two elements."""
    return sum(answer for i, answer in enumerate(answers) if bits >> i & 1) % 2


@pytest.mark.parametrize("first", range(8))
@pytest.mark.parametrize("second", [1, 3, 7])
def test_a_dishonest_s2_learns_one_sum_over_at_least_the_minimum(first: int, second: int) -> None:
    """Noise off, minimum 2 of 3: its view depends on one sum over the first set, or on nothing."""
    enumerator = make_enumerator(SERVERS, Tiny(items=2, users=3, p=1.0, insiders=0, q=2))
    distributions = {
        answers: enumerator.distribution(answers, dishonest_s2(first, second)).s2
        for answers in ((0, 0, 1), (0, 1, 0), (1, 1, 1))
    }
    order = _manifest_order(enumerator)
    counted = first if first.bit_count() >= 2 else 0
    for one, other in product(distributions, repeat=2):
        one_sum = sum_in_field(counted, [one[i] for i in order])
        other_sum = sum_in_field(counted, [other[i] for i in order])
        if one_sum == other_sum:
            assert distributions[one] == distributions[other]
        else:
            assert excess(distributions[one], distributions[other], 10.0) == pytest.approx(
                1, abs=SAME
            )


def _manifest_order(enumerator: ViewEnumerator) -> list[int]:
    """The participants by their place in a manifest, which is ascending by user id."""
    invitations = enumerator.setup.invitations
    return sorted(range(enumerator.params.n_max), key=lambda i: invitations[i].user)


def test_without_the_check_a_dishonest_s2_reads_one_answer(monkeypatch) -> None:
    """A planted hole: the coordinator adds up whatever the aggregator names."""
    monkeypatch.setattr(servers_coordinator, "_set_problem", lambda s, rows, stated: None)
    enumerator = make_enumerator(SERVERS, Tiny(items=2, users=3, p=1.0, insiders=0, q=2))
    victim = _manifest_order(enumerator)[0]
    answers = [[0, 0, 0], [0, 0, 0]]
    answers[1][victim] = 1
    one, other = (
        enumerator.distribution(tuple(chosen), dishonest_s2(1, 1)).s2 for chosen in answers
    )
    assert excess(one, other, 10.0) == pytest.approx(1, abs=SAME)


def dishonest_s1(enumerator: ViewEnumerator) -> None:
    """The coordinator sends two manifests, over two of three and over all, and three sums."""
    enumerator.visit(*range(enumerator.params.n_max))
    enumerator.s1, _ = enumerator.ideal.call(end_phase, enumerator.s1)
    params = enumerator.params
    key = enumerator.s1.state.key
    manifest = enumerator.s1.state.manifest
    fewer = replace(manifest, entries=manifest.entries[:2])
    stored = enumerator.s1.state.view.first_messages
    reports = [stored[entry.user] for entry in fewer.entries]
    encrypted_shares = tuple(report.encrypted_share for report in reports)
    shares = [report.share for report in reports]
    digest = sha256(encode(fewer)).digest()
    for message in (
        fewer,
        manifest,
        PartShares(manifest.survey, digest, encrypted_shares),
        PartShares(manifest.survey, digest, encrypted_shares[:1]),
    ):
        enumerator.send_to_s2(sign(key, Party.COORDINATOR, message))
    statements = enumerator.s2.state.statements
    stated = next(s for s in statements if isinstance(s.message, AcceptedReports))
    accepted_hash = sha256(stated.signed.payload).digest()
    for chosen in (shares, shares[:1], []):
        total = pack(sum_packed(chosen, params.q, params.N), params.q)
        aggregate_share = AggregateShare(manifest.survey, accepted_hash, total)
        enumerator.send_to_s2(sign(key, Party.COORDINATOR, aggregate_share))
    enumerator.to_s1 += enumerator.in_transit


def test_a_dishonest_s1_learns_one_sum_over_its_first_manifest() -> None:
    enumerator = make_enumerator(SERVERS, Tiny(items=2, users=3, p=1.0, insiders=0, q=3))
    order = _manifest_order(enumerator)
    outside = order[2]
    answers = [[0, 1, 0], [0, 1, 0]]
    answers[1][outside] = 1 - answers[0][outside]
    one, other = (enumerator.distribution(tuple(chosen), dishonest_s1).s1 for chosen in answers)
    # The participant whom it left out leaves no trace, and of the others it knows only the sum.
    assert one == other
    swapped = list(answers[0])
    swapped[order[0]], swapped[order[1]] = swapped[order[1]], swapped[order[0]]
    assert enumerator.distribution(tuple(swapped), dishonest_s1).s1 == one


# --- two stages -----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class TinyTwoStage(TSSPrime):
    """TSS' in a small field."""

    q: int = 2

    @property
    def modulus(self) -> int:
        return self.q


def make_two_stage_enumerator(monkeypatch, mechanism, **terms) -> ViewEnumerator:
    """A survey in which every order of the reporters, which only the coordinator knows, is tried."""
    enumerator = make_enumerator(TWO_STAGE, mechanism, **terms)
    orders = list(permutations(range(mechanism.n)))

    def assign_numbers(_, eligible):
        drawn = enumerator.ideal.ask("draw", ("order",), uniform(len(orders)))
        return tuple(eligible[i] for i in orders[drawn])

    monkeypatch.setattr(announcing, "assign_numbers", assign_numbers)
    # To whoever does not have the salt, the root of a list says nothing.
    for module in (relay, two_stage_user):
        monkeypatch.setattr(module, "list_root", lambda salt, numbers: bytes(32))
    monkeypatch.setattr(
        relay, "prove_listed", lambda salt, numbers, number: ListProof(0, bytes(32), ())
    )
    monkeypatch.setattr(two_stage_user, "is_listed", lambda *_: True)
    # Without the helpers' masks the coordinator sees more than it does, everybody else the same.
    monkeypatch.setattr(enumerator.ideal, "expand", lambda *_: np.zeros(_[-1], dtype=np.uint8))
    return enumerator


@pytest.mark.slow
@pytest.mark.parametrize(("k", "q"), [(2, 3), (0, 2)], ids=["phi+1", "m'_j"])
def test_two_stage_views(monkeypatch, k, q) -> None:
    """The coordinator sees the sets and the result; helpers see shares of reporters by number."""
    mechanism = TinyTwoStage(items=2, users=3, p=0.5, alpha=0.5, floor=1, phi=1, insiders=1, q=q)
    enumerator = make_two_stage_enumerator(monkeypatch, mechanism, k=k)
    one, other = (enumerator.distribution((item, 0, 1), run_all, [(1,), (2,)]) for item in (0, 1))
    for epsilon in EPSILONS:
        allowed = {
            who: mechanism.guarantee(epsilon=epsilon, adversary=who).delta
            for who in (S1, S2, insiders(1))
        }
        assert excess(one.s1, other.s1, epsilon) <= allowed[S1] + SAME
        assert excess(one.s2, other.s2, epsilon) <= allowed[S2] + SAME
        for who, distribution in one.coalitions.items():
            assert (
                excess(distribution, other.coalitions[who], epsilon) <= allowed[insiders(1)] + SAME
            )
        # The coordinator learns the sets, and what that reveals is known exactly.
        if q > 2:
            assert excess(one.s1, other.s1, epsilon) == pytest.approx(allowed[S1], abs=1e-9)


@pytest.mark.parametrize("gamma", [1.0, 2.0])
def test_a_reporter_that_is_dropped_leaves_nothing_but_its_set(monkeypatch, gamma) -> None:
    """Noise off: a uniform set says nothing about the answer, another one as much as is stated."""
    mechanism = TinyTwoStage(
        items=2, users=3, p=1.0, alpha=0.5, gamma=gamma, phi=1, insiders=1, q=2
    )
    enumerator = make_two_stage_enumerator(monkeypatch, mechanism, k=2)
    one, other = (
        enumerator.distribution((0, 1, item), run_with_late_message, [(0,), (1,)])
        for item in (0, 1)
    )
    for epsilon in EPSILONS:
        stated = sets_delta(mechanism.N, mechanism.reported_items, mechanism.rate, gamma, epsilon)
        assert excess(one.s1, other.s1, epsilon) <= stated + SAME
        assert excess(one.s2, other.s2, epsilon) <= stated + SAME
        for who, distribution in one.coalitions.items():
            assert excess(distribution, other.coalitions[who], epsilon) <= stated + SAME


# --- the enumeration itself -----------------------------------------------------------------------


def test_every_run_is_counted_with_its_probability() -> None:
    def run(chance):
        first = chance.draw("first", (1, 3))
        second = chance.draw("second", uniform(3)) if first else 0
        assert chance.draw("first", (1, 3)) == first
        return first + second

    quarter = Fraction(1, 4)
    assert every_run(run) == {0: quarter, 1: quarter, 2: quarter, 3: quarter}
    one = {0: quarter, 1: 3 * quarter}
    other = {0: 3 * quarter, 1: quarter}
    assert excess(one, other, 0.0) == pytest.approx(0.5)
    assert excess({0: Fraction(1)}, {1: Fraction(1)}, 20.0) == 1


def call_real(ideal, role, node, *what):
    return ideal.call_real(role, node, what)


def test_views_are_the_same_when_every_role_is_run_for_real(monkeypatch) -> None:
    distributions = []
    for _ in range(2):
        enumerator = make_enumerator(SERVERS, Tiny(items=2, users=2, p=0.25, insiders=0))
        distributions.append(enumerator.distribution((0, 1), run_all, [(0,), (1,)]))
        monkeypatch.setattr(IdealFunctionality, "call", call_real)
    assert distributions[0] == distributions[1]


def test_responses_are_those_of_the_mechanism() -> None:
    assert dict(responses(Tiny(items=2, p=0.25), 1)) == {(0, 1): 1, (0, 0): 3}
    with_noise = responses(Decoys(items=2, users=2, coins=2), 0)
    assert sorted(outcome for outcome, _ in with_noise) == [(1, 0), (1, 1), (2, 0), (2, 1)]
    two_stage = TSSPrime(items=3, p=0.5, alpha=1 / 3, gamma=2.0, phi=1)
    distribution = dict(responses(two_stage, 0))
    total = sum(distribution.values())
    # Active, and the set is its own item: 1/2 times 2/(2+1+1).
    assert Fraction(distribution[1, 0], total) == Fraction(1, 4)
    assert Fraction(distribution[0, 2], total) == Fraction(1, 8) + Fraction(1, 6)


@pytest.mark.parametrize("topology", known_topologies(), ids=str)
def test_enumerated_clients_replace_methods_of_the_real_ones(topology) -> None:
    """After a rename of the real method the client would draw from its real tables, for ever."""
    client = CLIENTS[topology]
    real = type(topology.client)
    assert client.__bases__ == (real,)
    replaced = {name: method for name, method in vars(client).items() if inspect.isfunction(method)}
    assert replaced
    for name, method in replaced.items():
        arguments = inspect.signature(getattr(real, name)).parameters
        assert list(inspect.signature(method).parameters) == list(arguments), name
