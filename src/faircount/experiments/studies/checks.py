"""Do the runs of a study agree with its theory? Asked before any verdict is believed, at a stated false-alarm rate.

Two questions, each at half the rate: is a single average too far from its expected value (the worst, times the
number of averages), and are all averages together too high or too low (which finds a small error that is everywhere)?
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from faircount.experiments.studies.judging import tail_probability
from faircount.experiments.studies.study import Expected, Line
from faircount.sweep.blocks import canonical

FALSE_ALARM = 1e-6
"""How often a study whose runs and theory are both right fails all the same."""


@dataclass(frozen=True, slots=True)
class Check:
    """The runs of one study beside its theory."""

    study: str
    averages: int
    ratio: float
    """Measured error over expected error, all points together, each as heavy as it is precise."""
    together: float
    """How likely a ratio at least this far from 1 is."""
    worst: Line
    single: float
    """How likely one of so many averages is at least as far off as the worst."""

    @property
    def chance(self) -> float:
        """How likely runs as far from theory as these are."""
        return min(1.0, 2 * min(self.together, self.single))

    @property
    def passed(self) -> bool:
        """Whether the runs agree with the theory."""
        return self.chance > FALSE_ALARM


def check(lines: Sequence[Line]) -> Check:
    """Compare all averages of one study with their theory."""
    chances = [probability(line) for line in lines]
    least = min(range(len(lines)), key=lambda place: chances[place])
    ratio, together = _together(lines)
    single = min(1.0, chances[least] * len(lines))
    return Check(lines[0].study, len(lines), ratio, together, lines[least], single)


def probability(line: Line) -> float:
    """Two-sided probability of an average at least so far from theory.

    By the law that theory has for it; by Student's where theory knows the mean alone, as for counters of random sets.
    What does not depend on chance must be exact; a few random counts that happen to be equal prove nothing.
    """
    if line.expected.deviation == 0:
        return float(line.z == 0)
    if line.expected.deviation is not None:
        return tail_probability(line.mean, line.expected, line.runs)
    if not line.standard_error:
        return 1.0
    from scipy.special import stdtr

    return 2 * float(stdtr(line.runs - 1, -abs(line.z)))


def _together(lines: Sequence[Line]) -> tuple[float, float]:
    """The ratio of all points together, and how likely it is.

    The averages of one point come from the same runs; they are taken as if they moved together, which can only make
    their own average look less precise than it is.
    """
    points: dict[bytes, list[Line]] = {}
    for line in lines:
        if line.expected.deviation:
            points.setdefault(canonical(line.point), []).append(line)
    parts = [_of_point(each) for each in points.values()]
    if not parts:
        return _plain_ratio(lines), 1.0
    weight = [deviation**-2 for _, deviation, _ in parts]
    total = sum(weight)
    ratio = sum(w * part[0] for w, part in zip(weight, parts, strict=True)) / total
    third = sum((w / total * part[1]) ** 3 * part[2] for w, part in zip(weight, parts, strict=True))
    law = Expected(1.0, total**-0.5, third * total**1.5)
    return ratio, tail_probability(ratio, law, runs=1)


def _of_point(lines: Sequence[Line]) -> tuple[float, float, float]:
    """Average ratio of measured to expected error at one point; deviation and skewness of such an average."""
    ratio = sum(line.mean / line.expected.mean for line in lines) / len(lines)
    deviation = sum(line.error_of_mean / line.expected.mean for line in lines) / len(lines)
    skewness = max(line.expected.skewness or 0.0 for line in lines) / math.sqrt(lines[0].runs)
    return ratio, deviation, skewness


def _plain_ratio(lines: Sequence[Line]) -> float:
    known = [line.mean / line.expected.mean for line in lines if line.expected.mean]
    return sum(known) / len(known) if known else 1.0
