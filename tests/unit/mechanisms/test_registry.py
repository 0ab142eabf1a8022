"""A mechanism of one's own, here in 40 lines, works everywhere like those of the package."""

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
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel, NoiseDistribution
from faircount.mechanisms.decoys import count_heads
from faircount.mechanisms.local_mean import LocalMean
from faircount.mechanisms.secret_shared import DerivedParameters, NoiseMechanism, one_hot
from faircount.owner.advice import SurveyRequirements, advise
from faircount.owner.questions import one_question
from faircount.planning.plan import compare_mechanisms
from faircount.protocol import SurveyParameters, topology_named
from faircount.protocol.simulator import set_up


@dataclass(frozen=True, kw_only=True)
class EvenCoins(NoiseMechanism):
    """Every user flips the same number of fair coins for every item."""

    name = "even-coins"
    epsilon: float
    per_user: int

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        left = wanted.users - wanted.insiders - wanted.dropouts
        made = cls(
            **wanted.population,
            epsilon=wanted.epsilon,
            per_user=-(-decoys_needed(wanted.epsilon, wanted.delta) // left),
        )
        return CalibrationResult(made, lambda: made.guarantee(epsilon=wanted.epsilon).delta)

    # What the interface needs besides: the promise, the range of a sum, and the published numbers.
    promise = property(lambda self: (self.epsilon, None))
    sum_span = property(lambda self: self.n * (1 + self.per_user))
    derived_parameters = property(
        lambda self: DerivedParameters(h=self.h, D=self.n * self.per_user)
    )

    def contribute(self, answers: np.ndarray, users: np.ndarray, entropy: Entropy) -> np.ndarray:
        return one_hot(answers, self.N) + count_heads(
            self.per_user, users.size * self.N, entropy
        ).reshape(users.size, self.N)

    def decode(self, total: np.ndarray, included: int) -> np.ndarray:
        most = included * (1 + self.per_user)
        return check_range(self.check_sum(total).astype(np.int64), 0, most, included, self.N * most)

    def draw(self, population: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        counts = self.check_population(population)
        return np.asarray(counts + rng.binomial(self.per_user * counts.sum(), 0.5, self.N))

    def channel(self, included: int) -> Channel:
        coins = self.per_user * included
        return Channel(1.0, noise=NoiseDistribution(0, binom.pmf(np.arange(coins + 1), coins, 0.5)))

    def delta_at(self, epsilon, adversary, relation):
        return decoys_delta(self.per_user * self.unknown_users(adversary), epsilon, relation)

    def remaining_guarantee(self, included, *, epsilon=None, places: Sequence[int] | None = None):
        at = self.epsilon if epsilon is None else epsilon
        left = self.count_honest(included)
        return Guarantee(
            at, decoys_delta(self.per_user * left, at), Relation.REPLACE_ONE, self.default_adversary
        )


@pytest.fixture(autouse=True)
def register_even_coins(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the mechanism for the tests of this file only."""
    monkeypatch.setattr(registry, "_registered", {})
    assert fc.register(EvenCoins) is EvenCoins


ANSWERS = ["tea"] * 30 + ["milk"] * 20 + ["water"] * 10
ITEMS = ["tea", "milk", "water"]


def test_it_is_planned_at_its_own_exact_error() -> None:
    made = compare_mechanisms(users=800, items=12, epsilon=1.0, delta=1e-6)
    option = next(option for option in made.options if option.name == "even-coins")
    assert option.sound
    assert option.delta is not None
    assert option.delta <= 1e-6
    assert isinstance(option.mechanism, EvenCoins)
    assert option.standard_error == pytest.approx(
        np.sqrt(option.mechanism.per_user * 800 / 4 * 11 / 12) / 800, rel=1e-9
    )
    assert option.cost is not None
    assert option.cost.bytes_sent > 0


@pytest.mark.parametrize("topology", ["servers", "explicit", "shares"])
def test_it_runs(topology: str) -> None:
    mechanism = EvenCoins(items=ITEMS, epsilon=1.0, per_user=3)
    result = fc.run(ANSWERS, mechanism, topology=topology, entropy=SeededStream(1))
    assert result.aggregate.sum() - 60 == pytest.approx(
        3 * 60 * 3 / 2, abs=6 * np.sqrt(3 * 60 * 3 / 4)
    )
    assert result.guarantee.delta == decoys_delta(3 * 59, 1.0)
    low = result.interval(0.999999).low
    high = result.interval(0.999999).high
    assert np.all((low <= np.array([0.5, 1 / 3, 1 / 6])) & (np.array([0.5, 1 / 3, 1 / 6]) <= high))


def test_it_runs_from_a_table_by_its_name() -> None:
    made = fc.histogram(
        {"drink": ANSWERS * 10},
        "drink",
        epsilon=1.0,
        domain=ITEMS,
        mechanism="even-coins",
        entropy=SeededStream(2),
    )
    assert made.mechanism.name == "even-coins"


def test_its_published_parameters_parse_to_the_same_mechanism() -> None:
    mechanism = EvenCoins(items=ITEMS, epsilon=1.0, per_user=3, users=60)
    params = set_up(mechanism, topology_named("servers"), SeededStream(3)).params
    parsed = SurveyParameters.parse(params.published)
    # By default three of sixty users may be missing.
    assert parsed.mechanism == params.mechanism == replace(mechanism, dropouts=3)
    assert parsed.digest == params.digest
    # A program that does not know the mechanism refuses the survey.
    registry._registered.clear()
    with pytest.raises(
        MalformedError, match="no protocol runs a mechanism of the name 'even-coins'"
    ):
        SurveyParameters.parse(params.published)


def test_the_owner_of_a_survey_can_ask_for_it() -> None:
    found = advise(
        SurveyRequirements(
            one_question("Which?", ITEMS), users=300, epsilon=1.0, mechanism="even-coins"
        )
    )
    assert isinstance(found.mechanism, EvenCoins)
    # By default one in twenty of the invited participants may be missing.
    assert found.mechanism.dropouts == 15


def test_it_gives_the_example_on_which_the_contract_is_tested() -> None:
    made = registry.frequency_mechanisms()["even-coins"].example(30, 4)
    assert isinstance(made, EvenCoins)
    assert (made.n, made.N) == (30, 4)
    assert made.guarantee().delta <= 0.01


def test_it_is_audited_on_the_worst_pair_of_all_noise() -> None:
    mechanism = EvenCoins(items=ITEMS, epsilon=1.0, per_user=2)
    # The true claim stands, and one of a fifth of epsilon is refuted.
    assert not fc.audit(mechanism, runs=1000, entropy=SeededStream(4)).refuted
    assert fc.audit(mechanism, epsilon=0.2, delta=0.0, runs=1000, entropy=SeededStream(4)).refuted


def test_its_privacy_is_stated_as_it_says_itself() -> None:
    stated = fc.privacy("even-coins", epsilon=1.0, per_user=3, users=60)
    assert (stated.epsilon, stated.delta) == (1.0, decoys_delta(3 * 59, 1.0))
    assert stated.delta_zero_out == decoys_delta(3 * 59, 1.0, Relation.ZERO_OUT)
    assert stated.more["per_user"] == 3
    # Two releases are composed from the guarantee of one.
    both = fc.privacy("even-coins", epsilon=1.0, per_user=3, users=60, releases=2)
    assert (both.epsilon, both.releases) == (2.0, 2)
    assert both.delta <= 2 * stated.delta
    with pytest.raises(ParameterError, match="even-coins has no p; it takes"):
        fc.privacy("even-coins", p=0.5)
    with pytest.raises(
        ParameterError, match="missing 2 required keyword-only arguments: 'epsilon' and 'per_user'"
    ):
        fc.privacy("even-coins")


def test_names_are_taken_once_and_only_by_mechanisms() -> None:
    # A notebook cell that is run twice registers the same class again.
    registry.register(EvenCoins)
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
    """No class is missing in the tables or listed under a wrong name."""

    def subclasses_of(kind: type) -> Iterator[type]:
        for subclass in kind.__subclasses__():
            yield subclass
            yield from subclasses_of(subclass)

    every = {name: registry.mechanism(name) for name in (*registry.FREQUENCY, *registry.MEAN)}
    assert {name: kind.name for name, kind in every.items()} == {name: name for name in every}
    # Abstract classes have no name of their own, and tests define further subclasses.
    defined = {*subclasses_of(FrequencyMechanism), *subclasses_of(LocalMean)}
    named = {kind for kind in defined if "name" in vars(kind)}
    assert {kind for kind in named if kind.__module__.startswith("faircount.")} == set(
        every.values()
    )
