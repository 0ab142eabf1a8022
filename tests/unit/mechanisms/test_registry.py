"""A mechanism of one's own, here in 40 lines, is planned, run, audited, published and parsed like any other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import binom

import faircount as fc
from faircount.accounting.exact import decoys_delta, decoys_needed
from faircount.accounting.guarantee import Guarantee, Relation
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import MalformedError, ParameterError
from faircount.mechanisms import registry
from faircount.mechanisms.base import FrequencyMechanism, check_range
from faircount.mechanisms.calibration import Calibrated, Requirements
from faircount.mechanisms.count_law import Channel, NoiseLaw
from faircount.mechanisms.decoys import heads
from faircount.mechanisms.secret_shared import Derived, NoiseMechanism, one_hot
from faircount.protocol import SurveyParameters, topology_named
from faircount.protocol.play import set_up
from faircount.service.owner.advice import Wishes, advise


@dataclass(frozen=True, kw_only=True)
class EvenCoins(NoiseMechanism):
    """Every user flips the same number of fair coins for every item."""

    name = "even-coins"
    epsilon: float
    each: int

    @classmethod
    def calibrated(cls, wanted: Requirements) -> Calibrated:
        left = wanted.users - wanted.insiders - wanted.dropouts
        made = cls(**wanted.crowd, epsilon=wanted.epsilon, each=-(-decoys_needed(wanted.epsilon, wanted.delta) // left))
        return Calibrated(made, lambda: made.guarantee(epsilon=wanted.epsilon).delta)

    promise = property(lambda self: (self.epsilon, None))
    reach = property(lambda self: self.n * (1 + self.each))
    derived = property(lambda self: Derived(h=self.h, D=self.n * self.each))

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        return one_hot(answers, self.N) + heads(self.each, users.size * self.N, entropy).reshape(users.size, self.N)

    def decode(self, total: np.ndarray, included: int) -> np.ndarray:
        most = included * (1 + self.each)
        return check_range(self.opened(total).astype(np.int64), 0, most, included, self.N * most)

    def draw(self, population: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        held = self.present(population)
        return np.asarray(held + rng.binomial(self.each * held.sum(), 0.5, self.N))

    def channel(self, included: int) -> Channel:
        coins = self.each * included
        return Channel(1.0, noise=NoiseLaw(0, binom.pmf(np.arange(coins + 1), coins, 0.5)))

    def delta_at(self, epsilon, adversary, relation):
        return decoys_delta(self.each * self.unknown(adversary), epsilon, relation)

    def realized(self, included, *, epsilon=None, places: Sequence[int] | None = None):
        at, left = self.epsilon if epsilon is None else epsilon, self.left(included)
        return Guarantee(at, decoys_delta(self.each * left, at), Relation.REPLACE_ONE, self.default_adversary)


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Known in this file only."""
    monkeypatch.setattr(registry, "_registered", {})
    assert fc.register(EvenCoins) is EvenCoins


ANSWERS = ["tea"] * 30 + ["milk"] * 20 + ["water"] * 10
ITEMS = ["tea", "milk", "water"]


def test_it_is_planned_at_its_own_exact_error() -> None:
    made = fc.plan(users=800, items=12, epsilon=1.0, delta=1e-6)
    option = next(each for each in made.options if each.name == "even-coins")
    assert option.sound
    assert option.delta is not None
    assert option.delta <= 1e-6
    assert isinstance(option.mechanism, EvenCoins)
    assert option.standard_error == pytest.approx(np.sqrt(option.mechanism.each * 800 / 4) / 800, rel=1e-9)
    assert option.cost is not None
    assert option.cost.bytes_sent > 0


@pytest.mark.parametrize("topology", ["servers", "explicit", "shares"])
def test_it_runs(topology: str) -> None:
    mechanism = EvenCoins(items=ITEMS, epsilon=1.0, each=3)
    result = fc.run(ANSWERS, mechanism, topology=topology, entropy=SeededStream(1))
    assert result.aggregate.sum() - 60 == pytest.approx(3 * 60 * 3 / 2, abs=6 * np.sqrt(3 * 60 * 3 / 4))
    assert result.guarantee.delta == decoys_delta(3 * 59, 1.0)
    low, high = result.interval(0.999999).low, result.interval(0.999999).high
    assert np.all((low <= np.array([0.5, 1 / 3, 1 / 6])) & (np.array([0.5, 1 / 3, 1 / 6]) <= high))


def test_it_runs_from_a_table_by_its_name() -> None:
    made = fc.histogram(
        {"drink": ANSWERS * 10}, "drink", epsilon=1.0, domain=ITEMS, mechanism="even-coins", entropy=SeededStream(2)
    )
    assert made.mechanism.name == "even-coins"


def test_its_published_parameters_parse_to_the_same_mechanism() -> None:
    mechanism = EvenCoins(items=ITEMS, epsilon=1.0, each=3, users=60)
    params = set_up(mechanism, topology_named("servers"), SeededStream(3)).params
    parsed = SurveyParameters.parse(params.published)
    assert parsed.mechanism == params.mechanism == replace(mechanism, dropouts=3)  # three of sixty may be missing
    assert parsed.digest == params.digest
    registry._registered.clear()
    with pytest.raises(MalformedError, match="no protocol runs a mechanism of the name 'even-coins'"):
        SurveyParameters.parse(params.published)


def test_the_owner_of_a_survey_can_ask_for_it() -> None:
    found = advise(Wishes(tuple(ITEMS), users=300, epsilon=1.0, mechanism="even-coins"))
    assert isinstance(found.mechanism, EvenCoins)
    assert found.mechanism.dropouts == 15  # one in twenty of the invited may be missing


def test_it_gives_the_example_on_which_the_contract_is_tested() -> None:
    made = registry.frequency_mechanisms()["even-coins"].example(30, 4)
    assert isinstance(made, EvenCoins)
    assert (made.n, made.N) == (30, 4)
    assert made.guarantee().delta <= 0.01


def test_it_is_audited_on_the_worst_pair_of_all_noise() -> None:
    mechanism = EvenCoins(items=ITEMS, epsilon=1.0, each=2)
    assert not fc.audit(mechanism, runs=1000, entropy=SeededStream(4)).refuted
    assert fc.audit(mechanism, epsilon=0.2, delta=0.0, runs=1000, entropy=SeededStream(4)).refuted


def test_its_privacy_is_stated_as_it_says_itself() -> None:
    said = fc.privacy("even-coins", epsilon=1.0, each=3, users=60)
    assert (said.epsilon, said.delta) == (1.0, decoys_delta(3 * 59, 1.0))
    assert said.delta_zero_out == decoys_delta(3 * 59, 1.0, Relation.ZERO_OUT)
    assert said.more["each"] == 3
    both = fc.privacy("even-coins", epsilon=1.0, each=3, users=60, releases=2)
    assert (both.epsilon, both.releases) == (2.0, 2)
    assert both.delta <= 2 * said.delta
    with pytest.raises(ParameterError, match="even-coins has no p; it takes"):
        fc.privacy("even-coins", p=0.5)
    with pytest.raises(ParameterError, match="missing 2 required keyword-only arguments: 'epsilon' and 'each'"):
        fc.privacy("even-coins")


def test_names_are_taken_once_and_only_by_mechanisms() -> None:
    registry.register(EvenCoins)  # a notebook cell that runs again
    with pytest.raises(ParameterError, match="taken"):
        registry.register(type("Other", (EvenCoins,), {"name": "even-coins"}))
    with pytest.raises(ParameterError, match="taken"):
        registry.register(type("Other", (EvenCoins,), {"name": "laplace"}))
    with pytest.raises(ParameterError, match="name of its own"):
        registry.register(type("Nameless", (EvenCoins,), {}))
    with pytest.raises(ParameterError, match="subclass of a mechanism"):
        registry.register(int)  # type: ignore[type-var]
    with pytest.raises(ParameterError, match="must be one of laplace"):
        registry.mechanism("nothing")


def test_the_tables_name_every_concrete_mechanism_of_the_package() -> None:
    """A class that is forgotten in the tables, or listed under another name than its own, is noticed."""

    def below(kind: type) -> Iterator[type]:
        for each in kind.__subclasses__():
            yield each
            yield from below(each)

    every = {name: registry.mechanism(name) for name in (*registry.FREQUENCY, *registry.MEAN)}
    assert {name: kind.name for name, kind in every.items()} == {name: name for name in every}
    named = {
        kind
        for base in (FrequencyMechanism, fc.Duchi.__mro__[1])
        for kind in below(base)
        if kind.__module__.startswith("faircount.") and "name" in vars(kind)
    }
    assert named == set(every.values())
