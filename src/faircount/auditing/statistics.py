"""Bound epsilon from below, judging from runs of the real code on two neighbouring data sets.

If a mechanism is (epsilon, delta)-DP, then every event has P <= e^epsilon Q + delta. Three events
are tried. Two follow from the exact distributions, "so much likelier on one data set" in either
direction, and are measured on all runs. The third is chosen on a fifth of the runs and measured on
the others, so that choosing it costs no confidence. Each event gives a bound that may be wrong with
its share of 1 - confidence, and the largest bound is reported.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import ParameterError
from faircount.core.search import last_float
from faircount.core.validation import check_fraction, check_integer

# How the allowed error is divided: the two events that follow from the exact distributions, and
# the event that is chosen on the pilot runs.
ERROR_SHARES = (0.2, 0.2, 0.6)

# One run in so many is a pilot run, which serves to choose an event.
PILOT = 5

# Share of an event's error for the separate bounds of P and Q; the rest is for comparing the two.
_RATES_SHARE = 0.1

# How often an audit refutes the claim that it is said to be able to refute.
CHANCE = 0.95

# That chance is judged from this many simulated audits, and the simulated chance must exceed it by
# three standard errors.
_SIMULATED_AUDITS = 2000
_MARGIN = 0.015

Probabilities = Callable[[float], tuple[float, float]]


def epsilon_bound(
    hits_p: ArrayLike, hits_q: ArrayLike, both: ArrayLike, runs: int, delta: float, error: float
) -> Floats:
    """Lower bound on epsilon from counts of an event in pairs of runs; -inf where there is none.

    A pair has one run on each data set. Of the pairs in which the event happened once, it happened
    on the first data set with odds o = P(1-Q) / (Q(1-P)), an exact binomial share, so that
    P / Q = o / (1 - Q + o Q). Bounds for this share, for Q from above and for P from below give
    (P - delta) / Q = P / Q (1 - delta / P), which is sharper than separate bounds for P and Q.
    """
    first = np.asarray(hits_p, dtype=np.float64)
    second = np.asarray(hits_q, dtype=np.float64)
    shared = np.asarray(both, dtype=np.float64)
    once = first + second - 2 * shared
    share, _ = clopper_pearson(first - shared, once, error * (1 - _RATES_SHARE))
    least_p, _ = clopper_pearson(first, runs, error * _RATES_SHARE / 2)
    _, most_q = clopper_pearson(second, runs, error * _RATES_SHARE / 2)
    with np.errstate(divide="ignore"):
        # The smallest positive float keeps 0 / 0 out where the event never happened.
        denominator = (1 - share) * (1 - most_q) + share * most_q
        ratio = share / np.maximum(denominator, np.finfo(np.float64).tiny)
        correction = np.log(1 - delta / np.maximum(least_p, delta or 1.0))
        return np.where(least_p > delta, np.log(ratio) + correction, -np.inf)


@dataclass(frozen=True, slots=True)
class Event:
    """The event that statistic number `column` is at least `threshold`.

    swapped: whether the second data set plays P
    """

    column: int
    threshold: float
    swapped: bool

    def bound_epsilon(self, first: Floats, second: Floats, delta: float, error: float) -> float:
        """The lower bound on epsilon from these runs."""
        in_p = first[:, self.column] >= self.threshold
        in_q = second[:, self.column] >= self.threshold
        if self.swapped:
            in_p, in_q = in_q, in_p
        both = (in_p & in_q).sum()
        return float(epsilon_bound(in_p.sum(), in_q.sum(), both, len(first), delta, error))


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs showed.

    epsilon: with the stated confidence, the mechanism's epsilon at this delta is at least this
    """

    epsilon: float
    runs: int
    delta: float
    confidence: float


def bound_from_runs(
    first: Floats, second: Floats, delta: float, confidence: float, claimed: float
) -> Finding:
    """The largest bound of the three events.

    Every row is a run. Column 0 is the log likelihood ratio in favour of the first data set, and
    column 1 its negative.
    """
    error = 1 - check_fraction("confidence", confidence)
    if first.shape != second.shape or first.ndim != 2:
        raise ParameterError("both data sets need the same number of runs and statistics")
    pilot = check_integer("runs", first.shape[0], least=PILOT) // PILOT
    forward_error, backward_error, chosen_error = (share * error for share in ERROR_SHARES)
    forward = Event(0, claimed, swapped=False)
    backward = Event(1, claimed, swapped=True)
    # Measured on other runs than it was chosen on: choosing among many events on the same runs
    # would find a large bound by chance.
    chosen = _choose_event(first[:pilot], second[:pilot], delta, chosen_error)
    largest = max(
        0.0,
        forward.bound_epsilon(first, second, delta, forward_error),
        backward.bound_epsilon(first, second, delta, backward_error),
        chosen.bound_epsilon(first[pilot:], second[pilot:], delta, chosen_error),
    )
    return Finding(largest, first.shape[0], delta, confidence)


def _choose_event(first: Floats, second: Floats, delta: float, error: float) -> Event:
    """The event with the largest bound if all runs were like these pilot runs."""
    best = -math.inf
    chosen = Event(0, -math.inf, swapped=False)
    scale = PILOT - 1  # the event is measured on this many times the pilot runs
    for column in range(first.shape[1]):
        in_first = first[:, column]
        in_second = second[:, column]
        thresholds = np.unique(np.concatenate([in_first, in_second]))
        hits_first = scale * _count_at_least(in_first, thresholds)
        hits_second = scale * _count_at_least(in_second, thresholds)
        # An event happens in both runs of a pair if their smaller statistic reaches the threshold.
        both = scale * _count_at_least(np.minimum(in_first, in_second), thresholds)
        runs = scale * in_first.size
        for swapped in (False, True):
            hits = (hits_second, hits_first) if swapped else (hits_first, hits_second)
            bounds = epsilon_bound(*hits, both, runs, delta, error)
            top = int(np.argmax(bounds))
            if bounds[top] > best:
                best = float(bounds[top])
                chosen = Event(column, float(thresholds[top]), swapped)
    return chosen


def _count_at_least(values: Floats, thresholds: Floats) -> NDArray[np.int64]:
    """For every threshold, how many values are at least as large."""
    below = np.searchsorted(np.sort(values), thresholds, side="left")
    return values.size - below.astype(np.int64)


def refutable(
    chances: Probabilities, delta: float, runs: int, confidence: float, most: float
) -> float | None:
    """The largest epsilon that an audit of this size refutes with probability 95%.

    This assumes that the mechanism follows its own distributions. `chances` gives P and Q of the
    event "likelier by e^threshold", and `most` is an epsilon that holds. None means that not even
    epsilon 0 would be refuted: more runs are needed.
    """

    def is_refuted_often(claimed: float) -> bool:
        return _refutation_rate(chances, claimed, delta, runs, confidence) >= CHANCE + _MARGIN

    if not is_refuted_often(0.0):
        return None
    return last_float(is_refuted_often, 0.0, most, 1e-3 * most)


def _refutation_rate(
    chances: Probabilities, claimed: float, delta: float, runs: int, confidence: float
) -> float:
    """Share of simulated audits whose first event refutes this claim."""
    p, q = (min(1.0, max(0.0, chance)) for chance in chances(claimed))
    both = p * q
    once_p = p * (1 - q)
    once_q = (1 - p) * q
    # Rounding may leave a negative remainder, which the generator would refuse.
    neither = max(0.0, 1 - (both + once_p + once_q))
    # A fixed seed: the search above needs the same rate for the same claim.
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(runs, [both, once_p, once_q, neither], size=_SIMULATED_AUDITS)
    in_both, in_p, in_q, _ = drawn.T
    error = ERROR_SHARES[0] * (1 - confidence)
    bounds = epsilon_bound(in_p + in_both, in_q + in_both, in_both, runs, delta, error)
    return float((bounds > claimed).mean())
