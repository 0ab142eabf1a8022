"""Combine groups of users that have their own privacy levels (Section III-B of the paper).

Every group is a survey of its own with its own epsilon, and the results are added with weights.
Which group a user is in is public.

The headline weights the groups by their sizes (UWA): it estimates the frequencies among all users,
and its interval holds whatever the groups answer, also where the answer decides about the group.
Weights by variance (total, VWA, OWA) have a smaller error, but only if the groups answer alike, so
that estimate stands beside the headline under this condition. A test on the released results
informs about the condition. It never chooses: a test that has little power would let through just
the groups that bias the weighted estimate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from faircount.accounting.composition import compose_parallel
from faircount.accounting.guarantee import (
    Adversary,
    AdversaryCode,
    Guarantee,
    format_delta,
    format_rounded_up,
)
from faircount.analysis.cells import text_of
from faircount.analysis.read import ColumnName
from faircount.core import plain
from faircount.core.arrays import Floats, Ints, read_only
from faircount.core.domain import escape_controls, is_missing
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.validation import check_positive
from faircount.estimation import weighting
from faircount.estimation.homogeneity import HomogeneityTest, homogeneity
from faircount.estimation.intervals import Intervals
from faircount.estimation.presentation import Frequencies
from faircount.estimation.question_counts import QuestionCounts
from faircount.estimation.result import Result
from faircount.estimation.weighted_distribution import WeightedGroup, WeightedSum
from faircount.estimation.weighted_intervals import weighted_interval

WEIGHTS = ("total", "vwa", "owa", "uwa", "cpa")
DEFAULT_WEIGHTS = "total"

IF_ALIKE = "if the groups answer alike"

GroupCounts = Result | QuestionCounts
"""The released counts of one group: of a table or a survey, or of one question of several."""

# The test simulates its null distribution. A fixed seed gives a release always the same p-value.
_TEST_SEED = 2014

_LEAST_VARIANCE = 1e-12  # keeps the weights finite where a group has no noise


def check_groups_public(column: ColumnName | None, groups: ColumnName, declared: bool) -> None:
    """Refuse groups that are the answers themselves, or that nobody declared to be public."""
    # An exact count of every answer would be printed beside an epsilon.
    if groups == column:
        raise RefusedError(
            f"the column {column!r} cannot be the answers and the groups: the size of every group "
            "is published exactly"
        )
    if not declared:
        raise RefusedError(
            f"the membership in the groups of {groups!r} is not protected: their sizes are "
            "published exactly, and a result for each. If the membership is public anyway, "
            "whatever the answers are, declare it with --public-groups (public_groups=True in "
            "Python); the guarantee then says so too"
        )


def check_groups_are_mixed(groups: ColumnName, positions: Ints, members: Sequence[Ints]) -> None:
    """Refuse groups that all hold a single answer: their published sizes are the exact counts."""
    # A column that determines the answer, such as city and district, is the same leak in disguise.
    # This catches the plain case; whoever declares groups public is responsible for the others.
    if all(np.unique(positions[group]).size == 1 for group in members):
        raise RefusedError(
            f"in every group of {groups!r} all users have the same answer, so the sizes of the "
            "groups, which are published exactly, are the counts of the answers: take another "
            "column, or run without groups"
        )


def split_by_level(
    cells: Sequence[object], epsilons: Mapping[Any, float] | None
) -> dict[str, tuple[float, Ints]]:
    """Epsilon and members of every level, smallest epsilon first.

    Without a mapping the levels are epsilons themselves.
    """
    if any(is_missing(cell) for cell in cells):
        raise AnswerError("a row has no privacy level: fill the column of groups")
    # As texts: 1 and 1.0 from two columns of a table are the same level.
    levels, level_of_user = np.unique(list(map(text_of, cells)), return_inverse=True)
    if levels.size < 2:
        raise AnswerError("all users have the same privacy level: run without groups")
    by_text: dict[str, float] | None = None
    if epsilons is not None:
        by_text = {text_of(level): epsilon for level, epsilon in epsilons.items()}
    split = []
    for number, level in enumerate(levels.tolist()):
        split.append((_epsilon_of(level, by_text), level, np.flatnonzero(level_of_user == number)))
    # The strictest level comes first, in every table and every JSON, so that results are
    # comparable.
    split.sort(key=lambda entry: entry[0])
    return {level: (epsilon, members) for epsilon, level, members in split}


def _epsilon_of(level: str, by_text: Mapping[str, float] | None) -> float:
    if by_text is not None:
        if level not in by_text:
            raise ParameterError(
                f"the privacy level {level!r} has no epsilon: give one, as in {level}=0.5"
            )
        return check_positive(f"epsilon of level {level!r}", by_text[level])
    try:
        return check_positive(f"privacy level {level!r}", float(level))
    except ValueError:
        raise ParameterError(
            f"the privacy level {level!r} is not a positive number: map levels to epsilons, as in "
            f"{level}=0.5"
        ) from None


@dataclass(frozen=True, eq=False, repr=False)
class GroupedHistogram(Frequencies):
    """Frequencies among all users, combined from the results of several groups.

    groups:    the result of every group, by its name
    weights:   one number per group, in the same order; they sum to one
    weighting: the name of these weights; "uwa" (the sizes) for what `histogram` returns
    test:      the test whether the groups answer alike; it informs and chooses nothing
    notes:     what a reader must know
    if_alike:  the estimate with weights by variance, whose error is smaller if the groups answer
               alike; None where none was asked for
    """

    groups: Mapping[str, GroupCounts]
    weights: Floats
    weighting: str
    test: HomogeneityTest
    notes: tuple[str, ...] = ()
    if_alike: "GroupedHistogram | None" = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", read_only(self.weights))

    @property
    def _results(self) -> tuple[GroupCounts, ...]:
        return tuple(self.groups.values())

    @property
    def topology(self) -> str | None:
        """How the shares of every group travelled; None where groups differ."""
        # The mechanisms of the groups may differ, and with them the way.
        used = {result.topology for result in self._results}
        return used.pop() if len(used) == 1 else None

    def _describe_route(self) -> str:
        # As in the histogram of a table without groups.
        return ""

    @property
    def requested(self) -> dict[str, float | None]:
        """The largest budget of a group: nobody is in two of them."""
        largest: dict[str, float | None] = {"epsilon": None, "delta": None}
        for result in self._results:
            for name, value in result.requested.items():
                known = largest[name]
                # The largest and not the sum: whoever is in one group is in no other.
                if value is not None and (known is None or value > known):
                    largest[name] = value
        return largest

    @property
    def simulation(self) -> bool:
        """Whether a group used seeded randomness, which protects nobody in it."""
        return any(result.simulation for result in self._results)

    @property
    def name(self) -> str:
        """Names of the mechanisms that ran."""
        return "+".join(dict.fromkeys(result.name for result in self._results))

    @property
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""
        return self._results[0].items

    @cached_property
    def included(self) -> int:
        """Number of users in all groups."""
        return sum(result.included for result in self._results)

    @cached_property
    def estimates(self) -> Floats:
        """Weighted frequencies; single ones may be negative: see `consistent`."""
        return read_only(
            weighting.combine([result.estimates for result in self._results], self.weights)
        )

    @cached_property
    def raw(self) -> Floats:
        """Weighted raw frequencies of the groups; they need not sum to one."""
        return read_only(weighting.combine([result.raw for result in self._results], self.weights))

    @cached_property
    def standard_errors(self) -> Floats:
        """Of the consistent estimates: privacy noise, and the effect of unequal weights."""
        if self.weighting == "uwa":
            # What each group holds is not assumed to be alike, so each has its own error.
            errors = np.array([result.standard_errors for result in self._results])
            return read_only(np.sqrt(self.weights**2 @ errors**2))
        total = WeightedSum(self._parts)
        counts = (self.consistent * self.included).tolist()
        return read_only(np.sqrt([total.variance(count) for count in counts]))

    @cached_property
    def _parts(self) -> tuple[WeightedGroup, ...]:
        parts = []
        for weight, result in zip(self.weights.tolist(), self._results, strict=True):
            channel = result.channel.fitted_to_total(len(self.items))
            parts.append(WeightedGroup(weight, channel, result.included))
        return tuple(parts)

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """The guarantee of every group, the weakest first."""
        # The weakest one of every group already, whatever the adversary.
        stated = [result.guarantee for result in self._results]
        return tuple(sorted(stated, key=lambda guarantee: -guarantee.epsilon))

    @property
    def guarantee(self) -> Guarantee:
        """Nobody is in two groups, so the weakest group's guarantee holds for everybody."""
        return combine_guarantees(self.guarantees)

    def weigh(self, name: str) -> "GroupedHistogram":
        """The same groups with other weights, which assume that the groups answer alike.

        name: of the weights: total, vwa or owa
        """
        weights = _weights_by_variance(name, self._results)
        return GroupedHistogram(self.groups, weights, name, self.test)

    def interval(
        self, confidence: float = 0.95, *, covers: str = "users", simultaneous: bool = False
    ) -> Intervals:
        """Intervals of the frequencies among all users, or in the population they come from.

        With weights by size they hold for any groups, with other weights if the groups answer
        alike.
        """
        return weighted_interval(
            [_fitted_sums(result) for result in self._results],
            self._parts,
            confidence=confidence,
            covers=covers,
            simultaneous=simultaneous,
        )

    def to_dict(self, confidence: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        groups = []
        for (name, result), weight in zip(self.groups.items(), self.weights, strict=True):
            groups.append(
                {
                    "group": name,
                    "users": result.included,
                    "mechanism": result.name,
                    "epsilon": result.guarantee.epsilon,
                    "delta": result.guarantee.delta,
                    "weight": float(weight),
                    "guarantee": result.guarantee.to_dict(),
                }
            )
        return {
            **super().to_dict(confidence, covers=covers),
            "weighting": self.weighting,
            "if_alike": self._if_alike_to_dict(confidence, covers),
            "homogeneity": {
                "p_value": self.test.p_value,
                "rejected": self.test.rejected,
                "words": self.test.words,
            },
            "groups": groups,
            "notes": list(self.notes),
        }

    def _if_alike_to_dict(self, confidence: float, covers: str) -> dict[str, Any] | None:
        if self.if_alike is None:
            return None
        whole = self.if_alike.to_dict(confidence, covers=covers)
        return {
            "weighting": whole["weighting"],
            "condition": IF_ALIKE,
            "weights": [group["weight"] for group in whole["groups"]],
            "estimates": whole["estimates"],
            "consistent": whole["consistent"],
        }

    @property
    def promises(self) -> tuple[str, ...]:
        """What each group is promised, in words, the strictest first."""
        sentences = []
        for name, result in self.groups.items():
            stated = result.guarantee
            delta = f", delta {format_delta(stated.delta, 2)}" if stated.delta else ""
            epsilon = format_rounded_up(stated.epsilon, 4)
            sentences.append(f"group {name}: epsilon {epsilon}{delta}, {result.included:,} users")
        return tuple(sentences)

    def __str__(self) -> str:
        lines = [super().__str__()]
        lines += [f"privacy of {escape_controls(promise)}" for promise in self.promises]
        if self.if_alike is not None:
            lines.append(f"{IF_ALIKE}, with {self.if_alike.weighting} weights:")
            bounds = self.if_alike.interval()
            rows = zip(self.items, self.if_alike.estimates, bounds.low, bounds.high, strict=True)
            for item, estimate, low, high in rows:
                label = escape_controls(item)
                lines.append(f"  {label}  {estimate:z7.4f}  [{low:.4f}, {high:.4f}]")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        page = super()._repr_html_()
        for promise in self.promises:
            page += plain.html_paragraph(f"Privacy of {promise}.")
        if self.if_alike is not None:
            title = f"{IF_ALIKE}, with {self.if_alike.weighting} weights:"
            page += plain.html_paragraph(title.capitalize())
            bounds = self.if_alike.interval()
            table = []
            rows = zip(self.items, self.if_alike.estimates, bounds.low, bounds.high, strict=True)
            for item, estimate, low, high in rows:
                span = f"{low:.1%} to {high:.1%}"
                table.append([plain.escape_html(item), f"{estimate:z.1%}", span])
            page += plain.html_table(["item", "estimate", "95% interval"], table)
        return page


def combine_guarantees(guarantees: Sequence[Guarantee]) -> Guarantee:
    """The weakest guarantee of disjoint groups, which holds for everybody."""
    # The groups may be safe against different numbers of insiders. No single number is true then.
    adversaries = {guarantee.adversary for guarantee in guarantees}
    if len(adversaries) == 1:
        adversary = adversaries.pop()
    else:
        adversary = Adversary(AdversaryCode.GROUP_INSIDERS)
    return compose_parallel([replace(stated, adversary=adversary) for stated in guarantees])


def _fitted_sums(result: GroupCounts) -> Floats:
    """The sums of a group as its estimates use them: fitted to its number of users, or not."""
    return result.channel.fit(result.aggregate, result.included)


def combine_groups(
    groups: Mapping[str, GroupCounts], wanted: str, notes: tuple[str, ...] = ()
) -> GroupedHistogram:
    """Combine the results of disjoint groups: by size, and beside that with the wanted weights."""
    results = list(groups.values())
    sizes = np.array([result.included for result in results])
    table = np.array([result.aggregate for result in results], dtype=np.float64)
    channels = [result.channel for result in results]
    # The test looks only at released results, so it spends no privacy.
    test = homogeneity(table, channels, sizes, rng=np.random.default_rng(_TEST_SEED))
    # The headline: it is unbiased whatever the groups answer. Other weights have less noise and are
    # wrong if the groups differ, so they stand beside it under that condition.
    by_size = GroupedHistogram(groups, weighting.uwa(sizes), "uwa", test, (*notes, test.words))
    if wanted == "uwa":
        return by_size
    return replace(by_size, if_alike=by_size.weigh(wanted))


def _weights_by_variance(wanted: str, results: Sequence[GroupCounts]) -> Floats:
    """The weights of this name, which favour groups with little noise."""
    sizes = np.array([result.included for result in results])
    items = len(results[0].items)
    variances = []
    for result in results:
        channel = result.channel.fitted_to_total(items)
        variance = weighting.group_variance(channel, items, result.included)
        # A group without any noise would get all of the weight, or none after a division by 0.
        variances.append(max(variance, _LEAST_VARIANCE))
    if wanted == "vwa":
        return weighting.vwa(sizes, variances)
    if wanted == "owa":
        return weighting.owa(sizes, variances)
    if wanted == "total":
        estimates = [result.estimates for result in results]
        spread = weighting.sigma_squared(estimates, sizes, variances)
        return weighting.total_variance(sizes, variances, spread)
    raise ParameterError(
        "results of groups are combined with the weights total, vwa, owa or uwa, not "
        f"{wanted!r}; cpa is one survey of everybody"
    )
