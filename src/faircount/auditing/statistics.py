"""How large epsilon must be, judged from runs of the real code on two neighbouring data sets.

If a mechanism is (epsilon, delta)-DP then every event has P <= e^epsilon Q + delta. Two events follow from the exact
laws, "so much likelier on one data set" in either direction, and are measured on all runs; a third one is chosen on a
fifth of the runs and measured on the others, so that the choice costs no confidence. Each gives a bound that may be
wrong with its share of 1 - confidence; the largest one is what the mechanism exceeds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats
from faircount.core.binomial import clopper_pearson
from faircount.core.errors import ParameterError
from faircount.core.search import last_real
from faircount.core.validation import fraction, integer

SHARES = (0.2, 0.2, 0.6)
"""Of the allowed error: the two events of the exact laws, and the one chosen on a part of the runs."""

PILOT = 5
"""One run in so many serves to choose that event."""

_FOR_RATES = 0.1  # of an event's error, for the bounds of P and Q alone; the rest is for comparing the two


def epsilon_bound(
    hits_p: ArrayLike, hits_q: ArrayLike, both: ArrayLike, runs: int, delta: float, error: float
) -> Floats:
    """Lower bound on epsilon from an event's counts in pairs of runs, one on each data set; -inf where there is none.

    Of the pairs in which the event happened once, it happened on the first data set with odds o = P(1-Q) / (Q(1-P)), an
    exact binomial share, so P / Q = o / (1 - Q + o Q). This, with bounds for the share, for Q from above and for P from
    below, gives (P - delta) / Q = P / Q (1 - delta / P): sharper than one bound for P and one for Q.
    """
    first, second, shared = (np.asarray(each, dtype=np.float64) for each in (hits_p, hits_q, both))
    share, _ = clopper_pearson(first - shared, first + second - 2 * shared, error * (1 - _FOR_RATES))
    least_p, _ = clopper_pearson(first, runs, error * _FOR_RATES / 2)
    _, most_q = clopper_pearson(second, runs, error * _FOR_RATES / 2)
    with np.errstate(divide="ignore"):
        ratio = share / np.maximum((1 - share) * (1 - most_q) + share * most_q, np.finfo(np.float64).tiny)
        return np.where(least_p > delta, np.log(ratio) + np.log(1 - delta / np.maximum(least_p, delta or 1.0)), -np.inf)


@dataclass(frozen=True, slots=True)
class Event:
    """ "statistic number `column` is at least `threshold`", compared from one data set to the other."""

    column: int
    threshold: float
    swapped: bool  # whether the second data set plays P

    def measured(self, first: Floats, second: Floats, delta: float, error: float) -> float:
        """The bound on epsilon from these runs."""
        p, q = (second, first) if self.swapped else (first, second)
        in_p, in_q = (each[:, self.column] >= self.threshold for each in (p, q))
        return float(epsilon_bound(in_p.sum(), in_q.sum(), (in_p & in_q).sum(), len(p), delta, error))


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs showed."""

    epsilon: float  # the mechanism's epsilon at this delta is at least this, with the stated confidence
    runs: int
    delta: float
    confidence: float


def find(first: Floats, second: Floats, delta: float, confidence: float, claimed: float) -> Finding:
    """The largest bound of the three events; column 0 is how much likelier a run is on the first data set.

    Column 1 is its negative: how much likelier a run is on the second one.
    """
    error = 1 - fraction("confidence", confidence)
    if first.shape != second.shape or first.ndim != 2:
        raise ParameterError("both data sets need the same number of runs and statistics")
    pilot = integer("runs", first.shape[0], least=PILOT) // PILOT
    fixed, too, chosen = (share * error for share in SHARES)
    bounds = [
        Event(0, claimed, swapped=False).measured(first, second, delta, fixed),
        Event(1, claimed, swapped=True).measured(first, second, delta, too),
        _choose(first[:pilot], second[:pilot], delta, chosen).measured(first[pilot:], second[pilot:], delta, chosen),
    ]
    return Finding(max(0.0, *bounds), first.shape[0], delta, confidence)


def _choose(first: Floats, second: Floats, delta: float, error: float) -> Event:
    """The threshold on one statistic, and the direction, with the largest bound if all runs were like these few."""
    best, chosen = -math.inf, Event(0, -math.inf, False)
    for column in range(first.shape[1]):
        one, other = first[:, column], second[:, column]
        thresholds = np.unique(np.concatenate([one, other]))
        several = (one, other, np.minimum(one, other))
        p, q, both = ((PILOT - 1) * _at_least(each, thresholds) for each in several)
        for swapped in (False, True):
            more, less = (q, p) if swapped else (p, q)
            bounds = epsilon_bound(more, less, both, (PILOT - 1) * one.size, delta, error)
            top = int(np.argmax(bounds))
            if bounds[top] > best:
                best, chosen = float(bounds[top]), Event(column, float(thresholds[top]), swapped)
    return chosen


def _at_least(values: Floats, thresholds: Floats) -> NDArray[np.int64]:
    ordered = np.sort(values)
    return values.size - np.searchsorted(ordered, thresholds, side="left").astype(np.int64)


CHANCE = 0.95
"""How often an audit refutes the claim that it is said to be able to refute."""

_SURVEYS = 2000  # simulated audits from which that chance is judged
_MARGIN = 0.015  # by which the simulated chance must exceed it: three standard errors


def refutable(
    chances: Callable[[float], tuple[float, float]], delta: float, runs: int, confidence: float, most: float
) -> float | None:
    """The largest epsilon that such an audit refutes with probability 95% when the mechanism follows its own laws.

    `chances` gives P and Q of the event "likelier by e^threshold" from the exact laws; `most` is an epsilon that holds.
    None if there is none above 0: then more runs are needed.
    """

    def often(claimed: float) -> bool:
        return _chance(chances, claimed, delta, runs, confidence) >= CHANCE + _MARGIN

    return last_real(often, 0.0, most, 1e-3 * most) if often(0.0) else None


def _chance(
    chances: Callable[[float], tuple[float, float]], claimed: float, delta: float, runs: int, confidence: float
) -> float:
    """Share of simulated audits whose first event refutes this claim."""
    p, q = (min(1.0, max(0.0, each)) for each in chances(claimed))
    cells = np.array([p * q, p * (1 - q), (1 - p) * q])
    drawn = np.random.default_rng(0).multinomial(runs, np.append(cells, max(0.0, 1 - cells.sum())), size=_SURVEYS)
    both, once_p, once_q, _ = drawn.T
    bounds = epsilon_bound(once_p + both, once_q + both, both, runs, delta, SHARES[0] * (1 - confidence))
    return float((bounds > claimed).mean())
