"""Groups of users with their own privacy level: one survey each, put together with weights (Section III-B).

Which group a user is in is public; each user has the epsilon of its own group. Weights away from the sizes suppose that
the groups are alike, so that is tested on what was released, and where it fails every user counts the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from faircount.accounting.composition import parallel
from faircount.accounting.guarantee import Adversary, Guarantee
from faircount.analysis.prepare import is_missing, text_of
from faircount.core.arrays import Floats, Ints, read_only
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import fraction, positive
from faircount.estimation import weighting
from faircount.estimation.homogeneity import HomogeneityTest, homogeneity
from faircount.estimation.intervals import Intervals
from faircount.estimation.presentation import Frequencies
from faircount.estimation.result import Result
from faircount.estimation.weighted_intervals import weighted_interval
from faircount.estimation.weighted_law import Part, WeightedSum

WEIGHTS = ("total", "vwa", "uwa")
FALLBACK_ERROR = 0.2
"""Share of the intervals' error for the case that the test finds the groups different and falls back to the sizes."""

_TEST_SEED = 2014  # the null law of the test is simulated; a fixed seed keeps its p-value the same for a release


def check_groups_public(column: str | None, groups: str, declared: bool) -> None:
    """Refuse groups that are the answers themselves, or that nobody declared to be public."""
    if groups == column:
        raise RefusedError(
            f"the column {column!r} cannot be the answers and the groups: the size of every group is published exactly"
        )
    if not declared:
        raise RefusedError(
            f"who is in which group of {groups!r} is not protected: sizes are published exactly, and each group's "
            "result apart. If that is public anyway, whatever the answers are, say so: --public-groups "
            "(public_groups=True in Python); the guarantee then says it too"
        )


def check_groups_hide(groups: str, positions: Ints, members: Sequence[Ints]) -> None:
    """Refuse groups of which each holds one answer only: their sizes are the exact counts."""
    if all(np.unique(positions[each]).size == 1 for each in members):
        raise RefusedError(
            f"in every group of {groups!r} all users have the same answer, so the sizes of the groups, which are "
            "published exactly, are the counts of the answers: take another column, or run without groups"
        )


def levels_of(cells: Sequence[object], epsilons: Mapping[Any, float] | None) -> dict[str, tuple[float, Ints]]:
    """Epsilon and members of every level that occurs, smallest epsilon first; without a mapping levels are epsilons."""
    if any(is_missing(each) for each in cells):
        raise AnswerError("a row has no privacy level: fill the column of groups")
    levels, member_of = np.unique(np.array([text_of(each) for each in cells]), return_inverse=True)
    if levels.size < 2:
        raise AnswerError("all users have the same privacy level: run without groups")
    given = None if epsilons is None else {text_of(key): value for key, value in epsilons.items()}
    found = {str(each): (_epsilon(str(each), given), np.flatnonzero(member_of == g)) for g, each in enumerate(levels)}
    return dict(sorted(found.items(), key=lambda entry: entry[1][0]))


def _epsilon(level: str, given: Mapping[str, float] | None) -> float:
    if given is not None:
        if level not in given:
            raise ParameterError(f"the privacy level {level!r} has no epsilon: say which, as in {level}=0.5")
        return positive(f"epsilon of level {level!r}", given[level])
    try:
        return positive(f"privacy level {level!r}", float(level))
    except ValueError:
        raise ParameterError(
            f"the privacy level {level!r} is not a positive number: map levels to epsilons, as in {level}=0.5"
        ) from None


@dataclass(frozen=True, eq=False, repr=False)
class GroupedHistogram(Frequencies):
    """The groups' results put together: frequencies among all users.

    groups:    the result of every group, by its name
    weights:   one number per group, in the same order; they sum to one
    weighting: the weights used: the wanted ones, or uwa after a fall-back
    test:      whether the groups seem to be alike
    notes:     what a reader must know
    tested:    whether the test chose between the wanted weights and the sizes
    """

    groups: Mapping[str, Result]
    weights: Floats
    weighting: str
    test: HomogeneityTest
    notes: tuple[str, ...] = ()
    tested: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", read_only(self.weights))

    @property
    def topology(self) -> str | None:
        """How the shares of every group travelled; None where groups differ."""
        found = {each.topology for each in self.groups.values()}
        return found.pop() if len(found) == 1 else None

    @property
    def requested(self) -> dict[str, float | None]:
        """The largest budget of a group: nobody is in two of them."""
        asked = [each.requested for each in self.groups.values()]
        known = {key: [each[key] for each in asked if each[key] is not None] for key in ("epsilon", "delta")}
        return {key: max((v for v in values if v is not None), default=None) for key, values in known.items()}

    @property
    def simulation(self) -> bool:
        """Whether a group's randomness was not the operating system's: then nobody in it is protected."""
        return any(each.simulation for each in self.groups.values())

    @property
    def name(self) -> str:
        """Names of the mechanisms that ran."""
        return "+".join(dict.fromkeys(each.mechanism.name for each in self.groups.values()))

    @property
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""
        return next(iter(self.groups.values())).items

    @cached_property
    def included(self) -> int:
        """Users of all groups."""
        return sum(each.included for each in self.groups.values())

    @cached_property
    def estimates(self) -> Floats:
        """Weighted frequencies; single ones may be negative: see `consistent`."""
        return read_only(weighting.combine([each.estimates for each in self.groups.values()], self.weights))

    @cached_property
    def standard_errors(self) -> Floats:
        """At the consistent estimates: noise, and that the groups are weighted unlike their sizes."""
        total = WeightedSum(self._parts)
        return read_only(np.sqrt([total.variance(each * self.included) for each in self.consistent.tolist()]))

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        pairs = zip(self.weights.tolist(), self.groups.values(), strict=True)
        return tuple(Part(w, each.mechanism.channel(each.included), each.included) for w, each in pairs)

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """That of every group, the weakest first."""
        return tuple(sorted((each.guarantee for each in self.groups.values()), key=lambda g: -g.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """Nobody is in two groups, so the weakest group's holds for everybody."""
        adversaries = {each.adversary for each in self.guarantees}
        who = adversaries.pop() if len(adversaries) == 1 else Adversary("the insiders of each group reading the result")
        return parallel([replace(each, adversary=who) for each in self.guarantees])

    def interval(self, level: float = 0.95, *, covers: str = "users", simultaneous: bool = False) -> Intervals:
        """Intervals of the frequencies among all users, or in the population they come from.

        With weights as the sizes they hold whatever each group holds, else if the groups are alike. Where the test
        chooses between the two, each has its own share of the error, so that the choice costs no confidence.
        """
        share = 1.0 if not self.tested else FALLBACK_ERROR if self.weighting == "uwa" else 1 - FALLBACK_ERROR
        inner = 1 - share * (1 - fraction("level", level))
        sums = [each.aggregate for each in self.groups.values()]
        made = weighted_interval(sums, self._parts, level=inner, covers=covers, simultaneous=simultaneous)
        return replace(made, level=float(level))

    def to_dict(self, level: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **super().to_dict(level, covers=covers),
            "weighting": self.weighting,
            "homogeneity": {"p_value": self.test.p_value, "rejected": self.test.rejected, "words": self.test.words},
            "groups": [
                _group(name, each, w) for (name, each), w in zip(self.groups.items(), self.weights, strict=True)
            ],
            "notes": list(self.notes),
        }


def _group(name: str, result: Result, weight: float) -> dict[str, Any]:
    said = result.guarantee
    return {
        "group": name,
        "users": result.included,
        "mechanism": result.mechanism.name,
        "epsilon": said.epsilon,
        "delta": said.delta,
        "weight": float(weight),
    }


def combined(groups: Mapping[str, Result], wanted: str, notes: tuple[str, ...] = ()) -> GroupedHistogram:
    """Results of disjoint groups put together with the wanted weights, or by size where the groups are not alike."""
    results = list(groups.values())
    sizes = np.array([each.included for each in results])
    channels = [each.mechanism.channel(each.included) for each in results]
    table = np.array([each.aggregate for each in results], dtype=np.float64)
    test = homogeneity(table, channels, sizes, rng=np.random.default_rng(_TEST_SEED))
    by_size = weighting.uwa(sizes)
    if wanted == "uwa":
        return GroupedHistogram(groups, by_size, wanted, test, (*notes, test.words))
    variances = [
        max(weighting.group_variance(c, table.shape[1], int(n)), 1e-12) for c, n in zip(channels, sizes, strict=True)
    ]
    weights = _weights(wanted, results, sizes, variances)
    tested = not np.allclose(weights, by_size)
    if test.rejected:
        words = f"{test.words} Falling back to unweighted aggregation."
        return GroupedHistogram(groups, by_size, "uwa", test, (*notes, words), tested)
    return GroupedHistogram(groups, weights, wanted, test, (*notes, test.words), tested)


def _weights(wanted: str, results: Sequence[Result], sizes: Ints, variances: Sequence[float]) -> Floats:
    if wanted == "vwa":
        return weighting.vwa(sizes, variances)
    spread = weighting.sigma_squared([each.estimates for each in results], sizes, variances)
    return weighting.total_variance(sizes, variances, spread)
