"""Hidden privacy levels: what a person loses who is counted a second time with a probability.

A survey with levels publishes two tables. In the first, which has the epsilon e1 of the strongest
level, everybody is counted. In the second only those are counted whose device said so: with a
probability p, the *coin* of their level. It is 0 at the strongest level and 1 at the weakest, whose
epsilon is eL. The noise of the second table is such that a vote in it changes the probability of an
outcome by a factor of at most e^h, with h = (eL - e1) / 2: a changed answer moves one vote out of a
cell and into another. If several questions are asked, a person is counted again in all of them or
in none, and h is the sum of what each of them costs.

Given the answers of all others, the second table has the distribution (1 - p) N + p V, where N is
its distribution without the person's vote and V the distribution with it. V / N lies between e^-h
and e^h, and different answers move different cells. So at worst the losses are

    answer      e1 + ln(1 + p (e^h - 1)) - ln(1 - p (1 - e^-h))
    level       max |ln (1 - p + p r) - ln (1 - p' + p' r)| over r = e^h and r = e^-h
    both        e1 + h + max(ln(1 + p (e^h - 1)), -ln(1 - p (1 - e^-h)))

All of them are attained. The first equals e for the coin

    p = (1 - w) u / ((1 - u) (w + u)),   u = e^-h,  w = e^-(e - e1).

Whatever changes of a person (answer, level or both), the two distributions of the second table are
a post-processing of (V on one cell, N on another) against (N, V), the change of an answer at the
weakest level: keep what is seen with one probability, and replace it by a fresh draw of N or of V
otherwise. So the pairs of the weakest level bound everybody's loss when surveys are composed.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from faircount.accounting.composition import randomized_response
from faircount.accounting.divergence import LossPair
from faircount.accounting.exponentials import exp_enclosure
from faircount.accounting.guarantee import Guarantee
from faircount.core.errors import ParameterError
from faircount.core.questions.question import check_text
from faircount.core.questions.questionnaire import EPSILON_BITS
from faircount.core.validation import check_positive

COIN_BITS = 128
"""A coin is an integer over 2^128: a device compares it with 128 random bits."""

NEVER = 0
ALWAYS = 1 << COIN_BITS

FEWEST = 2
MOST = 3
"""How many levels a survey offers. More of them gain next to nothing, and nobody could choose."""

USUAL_NAMES = ("very strong", "strong", "normal")
"""Names that pages say in the reader's language, the strongest first; others are the owner's."""

LARGEST_RATIO = 3
"""From eL = 3 e1 on, answer and level cost a person of the strongest level more than twice e1."""

# Fractional bits of the exponentials from which a coin is computed.
_WORKING_BITS = 320

# Larger exponents overflow; e^-700 is no longer seen beside 1.
_LARGEST_EXPONENT = 700.0

# Floats of a loss are raised by this share: what is stated must not be below the exact value.
_ROUNDING = 1e-12

# Sums of votes are told apart up to so many; beyond them all questions count as one.
_MAX_SUMS = 4096


@dataclass(frozen=True, slots=True)
class Level:
    """A privacy level that people can choose: its name and its epsilon, a multiple of 2^-128."""

    name: str
    epsilon: Fraction

    @classmethod
    def of(cls, name: str, epsilon: float) -> "Level":
        """Return the level with this epsilon; a float is a multiple of 2^-128 if it is not tiny."""
        scaled = int(Fraction(check_positive("epsilon", epsilon)) * (1 << EPSILON_BITS))
        return cls(name, Fraction(scaled, 1 << EPSILON_BITS))

    @property
    def scaled_epsilon(self) -> int:
        """Epsilon in units of 2^-128."""
        return int(self.epsilon * (1 << EPSILON_BITS))


@dataclass(frozen=True, slots=True)
class LevelGuarantee:
    """What is guaranteed to the people of one level.

    name:       the level
    answer:     as long as nobody guesses at the level, too
    with_level: for answer and level together
    """

    name: str
    answer: Guarantee
    with_level: Guarantee

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON."""
        return {
            "name": self.name,
            "answer": self.answer.to_dict(),
            "with_level": self.with_level.to_dict(),
        }


@dataclass(frozen=True)
class Levels:
    """The levels of a survey, the strongest first."""

    offered: tuple[Level, ...]

    @classmethod
    def of(cls, epsilons: Mapping[str, float]) -> "Levels":
        """Return the levels with these names and epsilons, sorted: the strongest first."""
        found = [Level.of(name, epsilon) for name, epsilon in epsilons.items()]
        return cls(tuple(sorted(found, key=lambda level: level.epsilon)))

    def __post_init__(self) -> None:
        object.__setattr__(self, "offered", tuple(self.offered))
        if not FEWEST <= len(self.offered) <= MOST:
            raise ParameterError(f"a survey offers {FEWEST} or {MOST} hidden levels")
        names = [level.name for level in self.offered]
        for name in names:
            check_text("level", name)
        if len(set(names)) < len(names):
            raise ParameterError("every level needs a name of its own")
        scaled = [level.scaled_epsilon for level in self.offered]
        # check: ascending-levels - a middle level outside both ends would have no coin
        if scaled[0] <= 0 or any(low >= high for low, high in pairwise(scaled)):
            raise ParameterError("name the levels with ascending epsilons, the strongest first")
        usual = [USUAL_NAMES.index(name) for name in names if name in USUAL_NAMES]
        # check: usual-names - the weakest level is called "very strong", in the program's own words
        if usual != sorted(usual):
            raise ParameterError(
                f"{', '.join(USUAL_NAMES)} are names of weaker and weaker levels: give them in "
                "this order, or choose other names"
            )

    def __len__(self) -> int:
        return len(self.offered)

    def __getitem__(self, position: int) -> Level:
        return self.offered[position]

    @property
    def names(self) -> tuple[str, ...]:
        """The names, the strongest first."""
        return tuple(level.name for level in self.offered)

    @property
    def base(self) -> float:
        """e1, the epsilon of the strongest level and of the table of everybody."""
        return float(self.offered[0].epsilon)

    @property
    def most(self) -> float:
        """eL, the epsilon of the weakest level: the most that anybody can lose."""
        return float(self.offered[-1].epsilon)

    @property
    def scaled_half(self) -> int:
        """h = (eL - e1) / 2 in units of 2^-128, rounded down: what a vote may cost."""
        return (self.offered[-1].scaled_epsilon - self.offered[0].scaled_epsilon) >> 1

    @property
    def half(self) -> float:
        """h, the loss of a vote in the second table."""
        return self.scaled_half / (1 << EPSILON_BITS)

    @cached_property
    def coins(self) -> tuple[int, ...]:
        """The probability of being counted again at each level, over 2^128."""
        first = self.offered[0].scaled_epsilon
        between = [
            coin_for(level.scaled_epsilon - first, self.scaled_half) for level in self.offered[1:-1]
        ]
        return (NEVER, *between, ALWAYS)

    def position_of(self, name: str) -> int:
        """Return the position of a level by its name."""
        if name not in self.names:
            raise ParameterError(f"choose one of the levels {', '.join(self.names)}")
        return self.names.index(name)

    def check_position(self, level: int) -> int:
        """Return the position of a level, or raise if there is none."""
        if type(level) is not int or not 0 <= level < len(self.offered):
            raise ParameterError(f"choose one of the levels {', '.join(self.names)}")
        return level

    def probability(self, level: int) -> float:
        """Return the probability with which a person of this level is counted again."""
        return self.coins[self.check_position(level)] / ALWAYS

    def answer_loss(self, level: int) -> float:
        """Return what a person of this level loses whose answer changes."""
        p = self.probability(level)
        return self.base + _gain(p, self.half) + _fall(p, self.half)

    def level_loss(self, level: int, other: int) -> float:
        """Return what is lost if a person's level changes and the answer does not."""
        p = self.probability(level)
        q = self.probability(other)
        gains = _gain(p, self.half) - _gain(q, self.half)
        falls = _fall(p, self.half) - _fall(q, self.half)
        return max(abs(gains), abs(falls))

    def joint_loss(self, level: int) -> float:
        """Return what a person of this level loses whose answer and level change.

        The other level is the weakest one, where the loss is largest.
        """
        p = self.probability(level)
        return self.base + self.half + max(_gain(p, self.half), _fall(p, self.half))

    def stated_losses(self, level: int) -> tuple[float, float]:
        """Return epsilons that bound the loss of the answer, and of answer and level together."""
        # The coin is rounded down, so the answer never loses more than the level's epsilon.
        answer = float(self[self.check_position(level)].epsilon)
        if level == 0:
            # (e1 + eL) / 2 is exact, where a float of the formula need not be.
            return answer, float((self[0].epsilon + self[-1].epsilon) / 2)
        return answer, max(answer, min(self.joint_loss(level) * (1 + _ROUNDING), self.most))

    def guarantees(self, weakest: Guarantee) -> tuple[LevelGuarantee, ...]:
        """Return what is guaranteed at every level, from the guarantee of the weakest one.

        Delta covers the finite tables of the noise, which are the same at every level.
        """
        found = []
        for number, name in enumerate(self.names):
            answer, both = (
                replace(weakest, epsilon=epsilon) for epsilon in self.stated_losses(number)
            )
            found.append(LevelGuarantee(name, answer, both))
        return tuple(found)

    @property
    def is_costly(self) -> bool:
        """Whether the weakest level costs those of the strongest one more than twice its epsilon.

        Nobody learns a level, but who guesses at answer and level together learns (e1 + eL) / 2.
        """
        return self[-1].epsilon > LARGEST_RATIO * self[0].epsilon


def _gain(p: float, half: float) -> float:
    """Return ln(1 - p + p e^h): how much a vote may add to the likelihood."""
    if half > _LARGEST_EXPONENT:
        # An owner may offer any epsilon, and a client has to say what it means.
        return half + math.log(p) if p > 0 else 0.0
    return math.log1p(p * math.expm1(half))


def _fall(p: float, half: float) -> float:
    """Return -ln(1 - p + p e^-h): how much a vote may take from the likelihood."""
    # Not through 1 - p + ..., which has no digits left for p = 1 and a large h.
    return half if p == 1 else -math.log1p(p * math.expm1(-half))


@lru_cache(maxsize=64)
def coin_for(extra: int, half: int) -> int:
    """Return the coin of a level between the strongest and the weakest, rounded down.

    extra: its epsilon minus that of the strongest level, in units of 2^-128
    half:  h in the same units
    """
    one = 1 << _WORKING_BITS
    # p grows with u and falls with w. So u is rounded down and w up, and the coin is never too
    # large: a person would lose more than the level promises.
    u = exp_enclosure(half, _WORKING_BITS)
    w = exp_enclosure(extra, _WORKING_BITS) + 1
    return (((one - w) * u) << COIN_BITS) // ((one - u) * (w + u))


def vote_pair(halves: Sequence[int], p: float) -> LossPair:
    """Return the distribution of the cells with one person's votes, against that without them.

    halves: what a vote costs in each question, in units of 2^-128
    p:      the probability that the votes are in the second table

    In each question a cell tells of the vote what a randomized response tells. All votes come
    together or not at all, so only the sum of the losses matters.
    """
    # Sum of the losses -> its probability without the votes; with them it is e^sum times that.
    sums = {0: 1.0}
    for half in halves:
        seen = 1 / (1 + math.exp(half / (1 << EPSILON_BITS)))
        added: dict[int, float] = {}
        for total, chance in sums.items():
            added[total + half] = added.get(total + half, 0.0) + chance * seen
            added[total - half] = added.get(total - half, 0.0) + chance * (1 - seen)
        sums = added
        if len(sums) > _MAX_SUMS:
            # One question that costs as much as all of them tells more than they do together.
            return vote_pair((sum(halves),), p)
    losses = np.array(list(sums)) / float(1 << EPSILON_BITS)
    log_without = np.log(np.array(list(sums.values())))
    return LossPair(log_without + np.log1p(p * np.expm1(losses.astype(float))), log_without)


def second_table_pairs(halves: Sequence[int], p: float) -> tuple[LossPair, ...]:
    """Return the pairs whose product bounds what the second table tells of a changed answer."""
    if p == 1:
        # The votes of a person who is always counted are independent responses.
        units = [half / (1 << EPSILON_BITS) for half in halves]
        pairs: list[LossPair] = []
        for half in units:
            pairs += [randomized_response(half)] * 2
        return tuple(pairs)
    pair = vote_pair(halves, p)
    return pair, pair.swap()
