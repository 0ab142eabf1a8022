"""What hidden privacy levels gain, and when one level for all is better.

The base table has the error of one level for all at the strongest epsilon, whatever people choose.
What levels add needs an assumption, or next to nobody outside: the plan says that first.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from faircount.accounting.guarantee import format_rounded_up
from faircount.accounting.levels import LARGEST_RATIO, Levels
from faircount.core.errors import ParameterError
from faircount.core.questions import OneOf, Questionnaire
from faircount.core.search import first_integer
from faircount.core.validation import check_integer, check_real
from faircount.estimation.leveled import LeveledTables, uses_both_tables
from faircount.mechanisms.count_distribution import Z95
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon
from faircount.mechanisms.server_levels import ServerLevels

# Steps of 1% in which the epsilon of one level for all is searched.
_STEPS = 100

# A gain below this is not worth a choice that every participant has to make.
_SMALL_GAIN = 1.1


@dataclass(frozen=True, eq=False)
class LevelsPlan:
    """What to expect of a survey with hidden levels, of items that are equally frequent.

    levels: the levels
    shares: which share of the people is expected to choose each of them
    users, items: how many people respond, and how many answers there are
    """

    levels: Levels
    shares: tuple[float, ...]
    users: int
    items: int

    @cached_property
    def mechanism(self) -> ServerLevels:
        """The mechanism that a survey would run."""
        return ServerLevels(
            questionnaire=_one_question(self.items),
            groups=split_epsilon(self.levels.base, [[0]]),
            epsilon=self.levels.most,
            levels=self.levels,
            users=self.users,
        )

    @property
    def again(self) -> float:
        """How many people are expected to be counted twice."""
        chances = (self.levels.probability(number) for number in range(len(self.levels)))
        pairs = zip(self.shares, chances, strict=True)
        return self.users * sum(share * chance for share, chance in pairs)

    @property
    def base_error(self) -> float:
        """The 95% error of the base, which needs no assumption, as a share."""
        # From the exact distribution, which is symmetric: one end of the interval is enough.
        return self.mechanism.distribution(0).quantiles(0.025)[1] / self.users

    @cached_property
    def alike_error(self) -> float:
        """The 95% error if people who chose weaker protection answer like everybody."""
        return Z95 * self._alike_deviation

    @cached_property
    def _alike_deviation(self) -> float:
        # Expected counts without noise lead to the expected weights and errors.
        base = np.full(self.items, self.users / self.items)
        # Of two answers only the second has a cell in the first table.
        first = base[1:] if self.items == 2 else base
        second = np.full(self.items, self.again / self.items)
        tables = LeveledTables(self.mechanism, np.concatenate([first, second]), self.users)
        deviation = tables.alike(0, 0.05)[0].standard_error
        assert deviation is not None  # noqa: S101 - a weighted estimate always has one
        return deviation

    @cached_property
    def equal_epsilon(self) -> float:
        """The epsilon of one level for all with which the base alone has that error."""
        lowest = self.levels.base
        highest = self.levels.most

        def deviation(step: int) -> float:
            epsilon = lowest * (highest / lowest) ** (step / _STEPS)
            return math.sqrt(_base_distribution(self.items, epsilon).variance) / self.users

        wanted = self._alike_deviation
        step = first_integer(lambda at: deviation(at) <= wanted, 0, _STEPS)
        return float(lowest * (highest / lowest) ** (step / _STEPS))

    @property
    def gain(self) -> float:
        """By which factor the error is smaller if people are alike."""
        return (
            math.sqrt(self.mechanism.distribution(0).variance) / self.users / self._alike_deviation
        )

    @property
    def narrowing(self) -> int:
        """How many people may stay outside for intervals without assumptions to be narrower.

        0 where they never are, and where they use the first table alone.
        """
        if not uses_both_tables(self.levels):
            return 0
        mechanism = self.mechanism
        alone = 2 * mechanism.distribution(0).quantiles(0.025)[1]
        # Those of the second table get a fifth of the error.
        both = mechanism.second_distribution(0).quantiles(0.005)[1]
        both += mechanism.second_distribution(0, self.items - 1).quantiles(0.005)[1]
        return max(0, int(alone - both))

    @property
    def sentences(self) -> list[str]:
        """The plan in words: what is sure first, then what needs an assumption."""
        alike = f"±{100 * self.alike_error:.1f}"
        equal = (
            f"One level of {self.equal_epsilon:.2g} for all would give {alike} points to "
            "everybody, without any assumption."
        )
        leveled = (
            "With these levels everybody has the error of the strongest: "
            f"±{100 * self.base_error:.1f} points. If {self.again:,.0f} let themselves be counted "
            f"twice and answer like everybody: {alike}."
        )
        found = [equal, leveled]
        if self.narrowing > self.users - self.again:
            found.append(
                f"Without any assumption intervals are narrower, too, because fewer than "
                f"{self.narrowing:,} people are expected to be counted once only."
            )
        else:
            found.append("Without that assumption the levels gain nothing.")
        found.append(
            f"The population's budget is charged {self.levels.most:g}, the weakest level: nobody "
            "knows who lost less."
        )
        return found

    @property
    def notes(self) -> list[str]:
        """When one level for all is better, and whom a weak level costs too much."""
        notes = level_cautions(self.levels)
        if self.gain < _SMALL_GAIN:
            notes.append(
                f"the second table makes the error smaller by a factor of {self.gain:.2f} only, "
                "and only if people are alike: offer one level for all"
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        offered = []
        for number, name in enumerate(self.levels.names):
            answer, both = self.levels.stated_losses(number)
            offered.append(
                {
                    "name": name,
                    "epsilon": answer,
                    "epsilon_with_level": both,
                    "counted_again_with_probability": self.levels.probability(number),
                    "share": self.shares[number],
                }
            )
        return {
            "users": self.users,
            "items": self.items,
            "levels": offered,
            "counted_again": self.again,
            "half_width_95": self.base_error,
            "half_width_95_if_alike": self.alike_error,
            "equal_epsilon": self.equal_epsilon,
            "charged_epsilon": self.levels.most,
            "sentences": self.sentences,
            "notes": self.notes,
        }


def plan_levels(levels: Levels, shares: Sequence[float], users: int, items: int) -> LevelsPlan:
    """Plan a survey with hidden levels.

    shares: which share of the people is expected to choose each level, in their order
    """
    given = tuple(check_real("share", share) for share in shares)
    # Shares are typed by people: a third is 0.333333.
    if len(given) != len(levels) or min(given) < 0 or abs(sum(given) - 1) > 1e-6:
        raise ParameterError(
            f"give {len(levels)} shares that add up to 1, one per level, the strongest first"
        )
    return LevelsPlan(
        levels,
        given,
        check_integer("users", users, least=2),
        check_integer("items", items, least=2),
    )


def level_cautions(levels: Levels) -> list[str]:
    """What an owner should know before offering these levels."""
    if not levels.is_costly:
        return []
    _, both = levels.stated_losses(0)
    note = (
        f"offering {levels.most:g} costs the people of the strongest level: whoever guesses at "
        f"their answer and level together learns epsilon {format_rounded_up(both, 4)}, more than "
        f"twice the {levels.base:g} that they chose. Offer at most {LARGEST_RATIO * levels.base:g}"
    )
    return [note]


def _one_question(items: int) -> Questionnaire:
    labels = tuple(str(item) for item in range(items))
    return Questionnaire((OneOf(text="Which one?", items=labels),))


def _base_distribution(items: int, epsilon: float) -> Any:
    """The distribution of both servers' noise in a count, at one level for all."""
    noise = JointNoise(
        questionnaire=_one_question(items),
        groups=split_epsilon(epsilon, [[0]]),
        epsilon=epsilon,
        draws=2,
    )
    return noise.distribution(0)
