"""Joint noise by both servers for one question: noise on the counts that adds up to zero.

This is `server_sheets.py` for a single question with exactly one answer each, in the form that
planner, audit and tables know: N items, one answer per user. Everybody counted has one vote, so the
counts add up to a public number anyway, and noise that keeps this sum can be smaller than
independent noise on every count: by about half for two answers, and by a quarter for five.

Each server draws z with P(z) ~ exp(-epsilon r(z)) over all z whose entries add up to 0, where r(z)
is the sum of the positive ones: the number of people who would have to change their answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import (
    Losses,
    compose_randomized_response,
    laplace_epsilon_for_releases,
)
from faircount.accounting.guarantee import Adversary, Relation
from faircount.core.arrays import Ints, Residues
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import CorruptSumError, ParameterError, RefusedError
from faircount.core.questions import BlockKind, OneOf, QuestionGroup, Questionnaire
from faircount.core.validation import check_positive
from faircount.mechanisms.base import Mechanism, set_fields
from faircount.mechanisms.calibration import CalibrationResult, Requirements
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.joint_noise.balls import MAX_CELLS, ZeroSumBall
from faircount.mechanisms.joint_noise.losses import informed_share
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon
from faircount.mechanisms.joint_noise.radius import LARGEST_EPSILON, SMALLEST_EPSILON
from faircount.mechanisms.secret_shared import FieldMechanism
from faircount.mechanisms.server_noise import ServerNoise
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.sharing.field import to_signed

MAX_ITEMS = MAX_CELLS[BlockKind.ONE]


@dataclass(frozen=True, kw_only=True)
class ServerJoint(ServerNoise):
    """Both servers add noise that keeps the number of votes: pure epsilon against each of them.

    >>> fc.ServerJoint(items=3, users=100, epsilon=1.0).guarantee().epsilon
    1.0
    """

    name: ClassVar[str] = "server-joint"
    parameter_docs: ClassVar[dict[str, str]] = {
        "epsilon": "privacy loss that the noise is calibrated for"
    }
    parameter_attributes: ClassVar[dict[str, str]] = {"epsilon": "epsilon"}
    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        set_fields(self, epsilon=check_positive("epsilon", self.epsilon))
        if not 2 <= self.N <= MAX_ITEMS:
            raise ParameterError(
                f"{self.name} counts 2 to {MAX_ITEMS} items, not {self.N}: with more of them "
                "choose server-laplace, whose error is next to the same"
            )
        # Not when the servers draw: people would have answered in vain.
        self._noise_of_one.check_drawable()

    @cached_property
    def _noise_of_one(self) -> JointNoise:
        """The noise of one server. Only the number of items matters here, not their labels."""
        labels = tuple(str(item) for item in range(self.N))
        questionnaire = Questionnaire((OneOf(text=self.name, items=labels),))
        groups = split_epsilon(self.epsilon, [[0]])
        return JointNoise(questionnaire=questionnaire, groups=groups, epsilon=self.epsilon)

    def for_questionnaire(self, questionnaire: Questionnaire) -> FieldMechanism:
        """Return the mechanism with which a survey asks this one question."""
        self.check_questionnaire(questionnaire)
        return ServerSheets(
            questionnaire=questionnaire,
            groups=split_epsilon(self.epsilon, [[0]]),
            epsilon=self.epsilon,
            users=self.users,
            insiders=self.insiders,
            dropouts=self.dropouts,
            spare_bits=self.spare_bits,
        )

    @classmethod
    def calibrate(cls, wanted: Requirements) -> CalibrationResult:
        """Return the mechanism whose releases compose to the budget."""
        if not 2 <= wanted.items <= MAX_ITEMS:
            raise RefusedError(f"{cls.name} counts 2 to {MAX_ITEMS} items")
        total = wanted.epsilon
        epsilon = total
        if wanted.releases > 1:
            epsilon = _epsilon_per_release(wanted)
        mechanism = cls(**wanted.population, epsilon=epsilon)

        def total_delta() -> float:
            ideal = _compose_votes(wanted, epsilon)
            return ideal + wanted.releases * mechanism._noise_of_one.table_delta

        return CalibrationResult(mechanism, total_delta)

    def server_noise(self, entropy: Entropy) -> Ints:
        """Draw one server's noise, which adds up to 0."""
        cells = self._noise_of_one.draw_noise(entropy)
        # Of two items only the second has a cell: what it gains, the first one loses.
        return np.array([-cells[0], cells[0]]) if self.N == 2 else cells

    @property
    def single_server_channel(self) -> Channel:
        """The noise of one server."""
        return Channel(1.0, noise=self._noise_of_one.distribution(0), independent=False)

    def channel(self, included: int) -> Channel:
        """Return the channel that counts all holders and adds the noise of both servers."""
        self.check_included(included)
        both = replace(self._noise_of_one, draws=2)
        return Channel(1.0, noise=both.distribution(0), independent=False)

    @property
    def _reach(self) -> int:
        """The largest noise of both servers in one count: a hard bound."""
        return 2 * self._noise_of_one.noises[0].table.largest

    @property
    def min_sum(self) -> int:
        """No holder, and the most negative noise."""
        return -self._reach

    @property
    def sum_span(self) -> int:
        """From no holder to all of them, and the noise on both sides."""
        return self.n + 2 * self._reach

    def decode(self, total: Residues, included: int) -> Ints:
        """Return the noisy counts; they must add up to the number of users."""
        users = self.check_included(included)
        counts = to_signed(self.check_sum(total), self.modulus, self.min_sum)
        if (counts < -self._reach).any() or (counts > users + self._reach).any():
            raise CorruptSumError("a revealed count lies outside its range: the sum is corrupt")
        if int(counts.sum()) != users:
            raise CorruptSumError(f"the revealed counts do not add up to the {users} users")
        return counts

    def draw(self, population: NDArray[Any], rng: np.random.Generator) -> Ints:
        """Sample noisy counts for the counts of those who take part. For simulations only."""
        counts = self.check_population(population)
        stream = SeededStream(int(rng.integers(1 << 62)))
        return counts + self.server_noise(stream) + self.server_noise(stream)

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return an upper bound of delta, from the noise of one server."""
        return self._noise_of_one.delta_at(epsilon, adversary, relation)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return a randomized response, from the noise of one server."""
        return self._noise_of_one.losses(adversary)

    has_fast_simulation: ClassVar[bool] = False

    def simulate_views(
        self,
        answers: NDArray[Any],
        copies: int,
        adversaries: Sequence[Adversary],
        entropy: Entropy,
    ) -> list[Ints]:
        """Run `copies` surveys, one after the other, and return every adversary's view of them."""
        # Not as one wide survey: its noise would add up to zero over the items of all surveys.
        return Mechanism.simulate_views(self, answers, copies, adversaries, entropy)


def _epsilon_per_release(wanted: Requirements) -> float:
    """Return an epsilon of each release with which all of them keep the budget."""
    # A billionth of delta is kept for the tables, which need less.
    limit = wanted.delta * (1 - 1e-9)
    terms = (wanted.epsilon, limit, wanted.releases, 1)
    # As if something were lost in every outcome, which any pure loss is bounded by.
    least = laplace_epsilon_for_releases(*terms)
    if limit == 0:
        return least
    # How often something is lost grows with epsilon: once for a smaller epsilon than is possible,
    # and then for a larger one, which makes the last epsilon a little smaller than possible.
    epsilon = least
    for _ in range(2):
        informed = _informed_share(wanted.items, epsilon)
        epsilon = laplace_epsilon_for_releases(*terms, informed=informed)
    # What was assumed on the way is not relied on: the result is checked with its own share.
    return epsilon if _compose_votes(wanted, epsilon) <= limit else least


def _informed_share(items: int, epsilon: float) -> float:
    """Return how often a release of this epsilon loses something."""
    if items == 2 or not SMALLEST_EPSILON <= epsilon <= LARGEST_EPSILON:
        return 1.0
    return informed_share((ZeroSumBall(items),), QuestionGroup.of(epsilon, [0]).scaled_epsilon)


def _compose_votes(wanted: Requirements, epsilon: float) -> float:
    """Return the delta of all releases together, without that of the tables."""
    informed = _informed_share(wanted.items, epsilon)
    return compose_randomized_response(
        epsilon, wanted.releases, epsilon=wanted.epsilon, informed=informed
    )
