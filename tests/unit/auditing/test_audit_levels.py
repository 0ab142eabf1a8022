"""The audit of both tables of a survey with hidden levels, and of errors planted in them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import faircount as fc
from faircount.accounting.levels import Levels
from faircount.core.entropy import SeededStream
from faircount.core.questions import OneOf, Questionnaire
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_levels import ServerLevels
from faircount.mechanisms.server_noise import S1_AND_USERS, S2_AND_USERS

RUNS = 500


def make(kind: type[ServerLevels] = ServerLevels, **fields: Any) -> ServerLevels:
    question = OneOf(text="a", items=("1", "2", "3"))
    return kind(
        questionnaire=Questionnaire((question,)),
        groups=split_epsilon(0.5, [[0]]),
        epsilon=2.0,
        levels=Levels.of({"strong": 0.5, "weak": 2.0}),
        **fields,
    )


@dataclass(frozen=True, kw_only=True)
class OtherLevel(ServerLevels):
    """The pair differs in the level: the same answers, counted twice or not."""

    def worst_pair(self, epsilon, adversary=None):
        return self.pair_of(((0,), 1), ((0,), 0), adversary)


@dataclass(frozen=True, kw_only=True)
class EqualNoise(OtherLevel):
    """The second table has the noise of the first one, as from the same place of a stream."""

    def noise_from(self, streams):
        noise = super().noise_from(streams)
        noise[self.second_slices[0]] = noise[:3]
        return noise


@dataclass(frozen=True, kw_only=True)
class ZeroSum(OtherLevel):
    """The noise of the second table adds up to 0, so that the number inside is exact."""

    def noise_from(self, streams):
        noise = super().noise_from(streams)
        where = self.second_slices[0]
        noise[where.stop - 1] = -noise[where][:-1].sum()
        return noise


@dataclass(frozen=True, kw_only=True)
class WholeShare(ServerLevels):
    """The vote in the second table costs eL - e1 in each of its cells, and not half of it."""

    @property
    def second_noises(self):
        return tuple(
            type(noise)(noise.group, noise.balls, 4 * noise.scaled)
            for noise in ServerLevels.second_noises.func(self)
        )


@dataclass(frozen=True, kw_only=True)
class NoSecondNoise(ServerLevels):
    """The coordinator adds nothing to the second table."""

    def respond(self, answers, entropy):
        rows = super().respond(answers, entropy)
        rows[self.n, self.base_cells :] = 0
        return rows


@pytest.mark.parametrize("kind", [ServerLevels, OtherLevel])
def test_both_tables_are_not_refuted(kind) -> None:
    assert not fc.audit(make(kind), runs=RUNS, entropy=SeededStream(1)).refuted


@pytest.mark.parametrize(
    ("kind", "adversary"),
    [
        (EqualNoise, S1_AND_USERS),
        (ZeroSum, S1_AND_USERS),
        (WholeShare, S1_AND_USERS),
        # The noise of the other server is missing.
        (NoSecondNoise, S2_AND_USERS),
    ],
)
def test_planted_errors_are_refuted(kind, adversary) -> None:
    assert fc.audit(make(kind), runs=RUNS, adversary=adversary, entropy=SeededStream(1)).refuted


def test_the_view_is_a_cell_of_each_table_first() -> None:
    mechanism = make(users=1)
    pair = mechanism.worst_pair(2.0)
    assert pair.first[0][[0, mechanism.base_cells]].tolist() == [1, 1]
    assert pair.second[0][[0, mechanism.base_cells]].tolist() == [0, 0]
    rows = pair.mechanism.respond(pair.first, SeededStream(3))
    view = pair.mechanism.adversary_view(rows, pair.first, 1, pair.adversary)
    assert view.shape == (1, 2 * mechanism.N)
    assert np.array_equal(view[0, mechanism.N :], pair.mechanism._signed_sums(rows[1][None]))
