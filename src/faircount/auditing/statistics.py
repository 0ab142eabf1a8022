"""How large epsilon must be, judged from runs of the real code on two neighbouring data sets.

If a mechanism is (epsilon, delta)-DP then every event has P <= e^epsilon Q + delta. An event is chosen on one half of
the runs and measured on the other, so the choice costs no confidence; Clopper-Pearson bounds turn the two counts into
an epsilon that the mechanism exceeds with the stated confidence.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import ParameterError
from faircount.core.validation import fraction, integer


def epsilon_bound(hits_p: ArrayLike, hits_q: ArrayLike, runs: int, delta: float, tail: float) -> Floats:
    """Lower bound on epsilon from an event's counts under both data sets; -inf where the counts say nothing."""
    low_p, _ = clopper_pearson(hits_p, runs, tail)
    _, high_q = clopper_pearson(hits_q, runs, tail)
    with np.errstate(divide="ignore"):
        return np.where(low_p > delta, np.log(np.maximum(low_p - delta, 1e-300)) - np.log(high_q), -np.inf)


@dataclass(frozen=True, slots=True)
class Event:
    """ "statistic number `column` is at least `threshold`", compared from one data set to the other."""

    column: int
    threshold: float
    swapped: bool  # whether the second data set plays P

    def hits(self, first: Floats, second: Floats) -> tuple[int, int]:
        """How often it happened under P and under Q."""
        p, q = (second, first) if self.swapped else (first, second)
        return int((p[:, self.column] >= self.threshold).sum()), int((q[:, self.column] >= self.threshold).sum())


@dataclass(frozen=True, slots=True)
class Finding:
    """What the second half of the runs showed for the event chosen on the first half."""

    event: Event
    runs: int
    hits_p: int
    hits_q: int
    delta: float
    confidence: float

    @property
    def tail(self) -> float:
        """Error of each of the two one-sided bounds."""
        return (1 - self.confidence) / 2

    @property
    def epsilon(self) -> float:
        """The mechanism's epsilon at this delta is at least this, with the stated confidence."""
        return max(0.0, float(epsilon_bound(self.hits_p, self.hits_q, self.runs, self.delta, self.tail)))

    def detectable(self, claimed: float) -> float:
        """The smallest true epsilon that this event, as often as it happened under P, would have exposed.

        Found as the largest count under Q that would still refute the claim; infinite if none would.
        """
        refuting = np.arange(0, max(self.hits_p, 1) + 1)
        bound = epsilon_bound(self.hits_p, refuting, self.runs, self.delta, self.tail)
        enough = refuting[bound > claimed]
        rate = self.hits_p / self.runs - self.delta
        if not enough.size or rate <= 0:
            return math.inf
        return math.log(rate * self.runs / max(float(enough[-1]), 0.5))


def find(first: Floats, second: Floats, delta: float, confidence: float) -> Finding:
    """Choose the event on the first half of the rows (runs) and measure it on the second half."""
    fraction("confidence", confidence)
    if first.shape != second.shape or first.ndim != 2:
        raise ParameterError("both data sets need the same number of runs and statistics")
    half = integer("runs", first.shape[0], least=4) // 2
    event = _choose(first[:half], second[:half], delta, (1 - confidence) / 2)
    kept = first.shape[0] - half
    hits_p, hits_q = event.hits(first[half:], second[half:])
    return Finding(event, kept, hits_p, hits_q, delta, confidence)


def _choose(first: Floats, second: Floats, delta: float, tail: float) -> Event:
    """The threshold on one statistic, and the direction, with the largest bound on these runs."""
    best, chosen = -math.inf, Event(0, -math.inf, False)
    for column in range(first.shape[1]):
        thresholds = np.unique(np.concatenate([first[:, column], second[:, column]]))
        counts = [_at_least(each[:, column], thresholds) for each in (first, second)]
        for swapped in (False, True):
            p, q = reversed(counts) if swapped else counts
            bounds = epsilon_bound(p, q, first.shape[0], delta, tail)
            top = int(np.argmax(bounds))
            if bounds[top] > best:
                best, chosen = float(bounds[top]), Event(column, float(thresholds[top]), swapped)
    return chosen


def _at_least(values: Floats, thresholds: Floats) -> NDArray[np.int64]:
    ordered = np.sort(values)
    return values.size - np.searchsorted(ordered, thresholds, side="left").astype(np.int64)
