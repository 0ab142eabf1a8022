"""Do the runs of a study agree with its theory? This is asked before any verdict is believed.

Two tests share one stated false-alarm rate, half of it each. Is a single average too far from its
expected value (the worst one, times the number of averages)? And are all averages together too high
or too low, which finds a small error that is present everywhere?
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from faircount.reproduction.studies.judging import tail_probability
from faircount.reproduction.studies.study import Expected, Line
from faircount.reproduction.sweep.blocks import encode_point

# How often a study fails although its runs and its theory are both right.
FALSE_ALARM = 1e-6


@dataclass(frozen=True, slots=True)
class Check:
    """The runs of one study beside its theory.

    ratio: measured over expected error of all points, weighted by their precision
    together: probability of a ratio at least this far from 1
    worst: the average that is farthest from its expected value
    single: probability that one of so many averages is at least as far off
    """

    study: str
    averages: int
    ratio: float
    together: float
    worst: Line
    single: float

    @property
    def chance(self) -> float:
        """Probability of runs at least as far from theory as these."""
        return min(1.0, 2 * min(self.together, self.single))

    @property
    def is_consistent(self) -> bool:
        """Whether the runs agree with the theory."""
        return self.chance > FALSE_ALARM


def check(lines: Sequence[Line]) -> Check:
    """Compare all averages of one study with their theory."""
    probabilities = list(map(line_probability, lines))
    least = min(probabilities)
    worst = lines[probabilities.index(least)]
    ratio, together = _compare_together(lines)
    # Bonferroni: among many averages one is far off by chance alone.
    single = min(1.0, least * len(lines))
    return Check(lines[0].study, len(lines), ratio, together, worst, single)


def line_probability(line: Line) -> float:
    """Two-sided probability of an average at least this far from theory."""
    # What is not random must be exact.
    if line.expected.deviation == 0:
        return float(line.z == 0)
    if line.expected.deviation is not None:
        return tail_probability(line.mean, line.expected, line.runs)
    # Theory knows the mean alone, as for counters of random sets: Student's distribution decides. A
    # few random counts that happen to be equal have no spread, and prove nothing.
    if not line.standard_error:
        return 1.0
    from scipy.special import stdtr

    return 2 * float(stdtr(line.runs - 1, -abs(line.z)))


def _compare_together(lines: Sequence[Line]) -> tuple[float, float]:
    """The weighted ratio of measured to expected errors, and how likely it is."""
    points: dict[bytes, list[Line]] = {}
    for line in lines:
        if line.expected.deviation:
            points.setdefault(encode_point(line.point), []).append(line)
    if not points:
        return _plain_ratio(lines), 1.0
    parts = [_average_at_point(lines_of_point) for lines_of_point in points.values()]
    # Weights by precision give the most sensitive average.
    weights = [deviation**-2 for _, deviation, _ in parts]
    total = sum(weights)
    weighted_ratios = []
    thirds = []
    for weight, (part_ratio, deviation, skewness) in zip(weights, parts, strict=True):
        weighted_ratios.append(weight * part_ratio)
        thirds.append((weight / total * deviation) ** 3 * skewness)
    ratio = sum(weighted_ratios) / total
    third = sum(thirds)
    distribution = Expected(1.0, total**-0.5, third * total**1.5)
    return ratio, tail_probability(ratio, distribution, runs=1)


def _average_at_point(lines: Sequence[Line]) -> tuple[float, float, float]:
    """Average ratio of measured to expected error at one point; its deviation and skewness.

    The averages of one point come from the same runs. They are treated as perfectly correlated,
    which can only make their average look less precise than it is.
    """
    ratio = sum(line.mean / line.expected.mean for line in lines) / len(lines)
    deviation = sum(line.error_of_mean / line.expected.mean for line in lines) / len(lines)
    skewness = max(line.expected.skewness or 0.0 for line in lines) / math.sqrt(lines[0].runs)
    return ratio, deviation, skewness


def _plain_ratio(lines: Sequence[Line]) -> float:
    """The unweighted average ratio, for counters, which have no known deviation."""
    ratios = [line.mean / line.expected.mean for line in lines if line.expected.mean]
    return sum(ratios) / len(ratios) if ratios else 1.0
