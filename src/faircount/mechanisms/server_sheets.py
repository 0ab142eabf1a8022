"""Joint noise by both servers, on the proven sheets of a questionnaire.

    user      report_bits      the bits of all answers, shared, with one proof for all of them
    servers   tally            bits of the accepted reports added up, as shares of the cells
              server_noise     plus the server's own joint noise, drawn for all cells at once
    revealed  the cells of all people with the noise of both servers

Each server adds the whole noise, because each knows its own. So the guarantee counts on one of
them, does not depend on how many people take part or collude, and covers all answers of a person
together. A question with exactly one answer has noise that adds up to zero: its revealed counts
must add up to the number of people, and a spoiled sum nearly never does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.composition import Losses
from faircount.accounting.guarantee import Adversary, Guarantee, Relation
from faircount.core.arrays import Floats, Ints, Residues
from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import RefusedError
from faircount.core.questions import (
    Constraint,
    OneOf,
    Questionnaire,
    Sheet,
    YesNo,
)
from faircount.core.validation import check_integer
from faircount.mechanisms.base import set_fields
from faircount.mechanisms.count_distribution import NoiseDistribution
from faircount.mechanisms.joint_noise.mechanism import GroupNoise, JointNoise, split_epsilon
from faircount.mechanisms.proven import check_no_level
from faircount.mechanisms.server_noise import NoiseOfServers
from faircount.mechanisms.sheets import SheetMechanism
from faircount.mechanisms.worst_pair import WorstPair
from faircount.sharing.field import dtype_for, from_signed


@dataclass(frozen=True, kw_only=True)
class ServerSheets(SheetMechanism, NoiseOfServers):
    """Both servers add joint noise to all cells: pure epsilon for all answers together."""

    name: ClassVar[str] = "server-joint"

    def __post_init__(self) -> None:
        super().__post_init__()
        # Its constructor checks epsilon, the groups and the size of the questionnaire.
        set_fields(self, epsilon=self.joint.epsilon, groups=self.joint.groups)
        # Not when the servers draw: people would have answered in vain.
        self._noise_of_one.check_drawable()

    @classmethod
    def example(cls, users: int, items: int) -> "ServerSheets":
        """Return a small instance on which the tests of the interface run."""
        labels = tuple(str(item) for item in range(items))
        questions = (OneOf(text="Which one?", items=labels), YesNo(text="Sure?"))
        groups = split_epsilon(2.0, [range(len(questions))])
        return cls(questionnaire=Questionnaire(questions), groups=groups, epsilon=2.0, users=users)

    @cached_property
    def joint(self) -> JointNoise:
        """The noise of both servers together."""
        return JointNoise(
            questionnaire=self.questionnaire,
            groups=self.groups,
            epsilon=self.epsilon,
            draws=2,
            users=self.users,
        )

    @cached_property
    def _noise_of_one(self) -> JointNoise:
        return JointNoise(
            questionnaire=self.questionnaire, groups=self.groups, epsilon=self.epsilon, draws=1
        )

    @property
    def answer_bits(self) -> int:
        """Bits of a sheet."""
        return self.questionnaire.bits

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the bits of every valid sheet satisfy, at most one constraint per question."""
        return self.questionnaire.constraints

    def report_bits(self, sheet: Sheet, entropy: Entropy, level: int = 0) -> Ints:
        """Return the bits of a sheet; nothing is drawn."""
        check_no_level(level)
        return np.array(self.questionnaire.encode(sheet), dtype=np.int64)

    @cached_property
    def _opening_matrix(self) -> NDArray[np.object_]:
        """The matrix from bits to cells, a column per cell."""
        matrix = np.zeros((self.answer_bits, self.N), dtype=np.object_)
        for cell, weights in enumerate(self.cell_weights):
            for bit, weight in weights:
                matrix[bit, cell] = weight
        return matrix

    def cells_from_bits(self, sums: Residues) -> Residues:
        """Return the weighted sums of bits, mod q; slack bits are in none of them."""
        q = self.modulus
        # Python's integers: a product of a residue and a weight may exceed 64 bits.
        cells = sums.astype(np.object_) @ self._opening_matrix
        return np.array([int(cell) % q for cell in cells], dtype=dtype_for(q))

    def server_noise(self, entropy: Entropy) -> Ints:
        """Draw one server's noise for all cells."""
        return self._noise_of_one.draw_noise(entropy)

    @cached_property
    def reaches(self) -> tuple[int, ...]:
        """The largest noise of both servers in every cell: a hard bound, since tables are finite.

        It is not a bound that holds with high probability, so no honest sum is ever refused.
        """
        return self._joint_reaches()

    def _joint_reaches(self) -> tuple[int, ...]:
        """Return the largest joint noise of both servers in every cell of the questionnaire."""
        reaches = [0] * self.questionnaire.cells
        for noise in self.joint.noises:
            balls = iter(noise.balls)
            for number in noise.group.questions:
                cells = list(range(len(reaches)))[self.questionnaire.cell_slices[number]]
                for block in self.questionnaire.questions[number].blocks:
                    # Twice: each server adds all of the noise.
                    reach = 2 * noise.table.largest * next(balls).reach
                    for cell in cells[: block.cells]:
                        reaches[cell] = reach
                    del cells[: block.cells]
        return tuple(reaches)

    @property
    def noise_tables(self) -> str:
        """The tables of all groups, as published parameters hash them."""
        lines = []
        for number, noise in enumerate(self.joint.noises):
            lines.append(f"group {number}\n")
            rows = enumerate(noise.table.cumulative)
            lines += [f"{radius} {cumulative}\n" for radius, cumulative in rows]
        return "".join(lines)

    def decode(self, total: Residues, included: int) -> Ints:
        """Return the cells, or raise if honest sheets and noise cannot lead to them."""
        users = self.check_included(included)
        cells = self.decode_cells(total, users)
        # Counts of a one-of question must add up to the people, since their noise adds up to zero.
        self.joint.decode(cells[: self.questionnaire.cells], users)
        return cells

    def respond(self, answers: NDArray[Any], entropy: Entropy) -> Residues:
        """Return the cells of every user, one row each, and two rows of the servers' noise."""
        noise = [self.server_noise(entropy) for _ in range(2)]
        rows = np.vstack([np.asarray(answers, dtype=np.int64), *noise])
        return from_signed(rows, self.modulus)

    def respond_as(self, user: int, sheet: Sheet, entropy: Entropy) -> Residues:
        """Return one user's cells; a survey shares proven bits instead."""
        return from_signed(self.cells_of(sheet), self.modulus)

    def draw(self, population: Any, rng: np.random.Generator) -> Ints:
        """Sample noisy cells. For simulations only."""
        return self.joint.release(population, SeededStream(int(rng.integers(1 << 62))))

    def estimate(self, aggregate: Any, included: int) -> Floats:
        """Return the cells per user: shares, and mean numbers of steps."""
        return self.joint.estimate(aggregate, included)

    def variance(self, truth: Any, included: int | None = None) -> Floats:
        """Return the variance of every cell of `estimate`; it does not depend on the answers."""
        count = self.n if included is None else check_integer("included", included, least=1)
        return self.joint.variance(truth, count)

    def noise_in(self, included: int) -> "ServerSheets":
        """Return the noise of both servers, which is the same for any number of people."""
        return self

    def fit(self, question: int, cells: Sequence[float], included: int) -> tuple[float, ...]:
        """Return the cells of a question as they are: their noise adds up to 0 already."""
        return self.joint.fit(question, cells, included)

    def distribution(self, question: int, block: int = 0) -> NoiseDistribution:
        """Return the distribution of both servers' noise in a cell of a question's block."""
        return self.joint.distribution(question, block)

    def distribution_of_sum(self, question: int, terms: int) -> NoiseDistribution:
        """Return the distribution of both servers' noise in a sum of cells of a one-of question."""
        return self.joint.distribution_of_sum(question, terms)

    def distribution_of_scores(self, question: int, weights: Sequence[int]) -> None:
        """Return nothing, as joint noise does."""

    def contrast_variance(self, question: int, weights: Floats) -> float:
        """Return the variance of a weighted sum of the cells of a one-of question."""
        return self.joint.contrast_variance(question, weights)

    @property
    def noises(self) -> tuple[GroupNoise, ...]:
        """The noise of every group."""
        return self.joint.noises

    def delta_at(self, epsilon: float, adversary: Adversary, relation: Relation) -> float:
        """Return an upper bound of delta, from the noise of one server.

        A reader of the result knows neither noise, and has at most the loss of a server.
        """
        return self._noise_of_one.delta_at(epsilon, adversary, relation)

    @property
    def least_promise(self) -> Fraction:
        """The smallest epsilon that may be promised: what all groups spend together, exactly."""
        return sum((group.epsilon for group in self.groups), Fraction())

    def remaining_guarantee(
        self, included: int, *, epsilon: float | None = None, places: Sequence[int] | None = None
    ) -> Guarantee:
        """Return the promised guarantee; one below what the groups spend is refused.

        There would be a delta for it, but one that is a probability to lose the rest of epsilon,
        and a participant's page, which computes no such delta, would refuse the survey.
        """
        # check: promise-below-groups - a small epsilon is promised, and delta hides the rest
        if epsilon is not None and Fraction(epsilon) < self.least_promise:
            raise RefusedError(
                f"the questions spend epsilon {float(self.least_promise):.4g} together: promise "
                "that much, or give them less"
            )
        return super().remaining_guarantee(included, epsilon=epsilon, places=places)

    def losses(self, adversary: Adversary) -> Losses | None:
        """Return a randomized response per group, from the noise of one server."""
        return self._noise_of_one.losses(adversary)

    def worst_pair(self, epsilon: float, adversary: Adversary | None = None) -> WorstPair:
        """Return two sheets of one user that differ in every answer, for one server's noise."""
        return self._noise_of_one.worst_pair(epsilon, adversary)
