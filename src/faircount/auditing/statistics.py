"""Bound epsilon from below, judging from runs of the real code on two neighbouring data sets.

If a mechanism is (epsilon, delta)-DP, then every event has P <= e^epsilon Q + delta. For every
claim five events are tried.

Two follow from the exact distributions, "so much likelier on one data set" in either direction, and
are measured on all runs. Faulty code does not follow those distributions, so the other events are
learned from a fifth of the runs, the pilot runs, and measured on the others; then learning costs no
confidence. The first half of the pilot runs shows which linear combination of all that the
adversary sees tells the data sets apart best, and two events say "so much likelier" of it, again in
either direction. This finds noise that is too weak, and noise that depends on what the adversary
knows. The second half serves to choose the last event among many, about any statistic.

Each event gives a bound that may be wrong with its share of 1 - confidence (Bonferroni), and the
largest bound is reported.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from faircount.core.arrays import Floats
from faircount.core.binomial import lower_bound, upper_bound
from faircount.core.errors import ParameterError
from faircount.core.search import last_float
from faircount.core.validation import check_fraction, check_integer

# How the allowed error is divided: for the two events that follow from the exact distributions, for
# the two of the learned combination, and for the event that is chosen on the pilot runs.
ERROR_SHARES = (0.15, 0.15, 0.15, 0.15, 0.4)

# The statistics of every run begin with a log ratio and its negative, that of the exact
# distributions and then that of the learned combination.
EXACT = 0
LEARNED = 2

# Share of the error for the first claim where there are several; the others share the rest.
FIRST_SHARE = 0.5

# One run in so many is a pilot run, which serves to choose an event. On the first half of them
# statistics are learned, and on the second half an event is chosen.
PILOT = 5

# A table of values is learned only if there are this many runs per value.
_RUNS_PER_VALUE = 10

# Most thresholds of a statistic that are compared on the pilot runs.
MAX_THRESHOLDS = 256

# Share of an event's error for the separate bounds of P and Q; the rest is for comparing the two.
_RATES_SHARE = 0.1

# How often an audit refutes the claim that it is said to be able to refute.
CHANCE = 0.95

# That chance is judged from this many simulated audits, and the simulated chance must exceed it by
# three standard errors.
_SIMULATED_AUDITS = 2000
_FIRST_SIMULATED = 200
_MARGIN = 0.015

# A log ratio that falls short of a threshold by less than this does so by rounding.
_ROUNDING = 1e-9

Probabilities = Callable[[float], tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim that a mechanism is (epsilon, delta)-DP.

    epsilon: privacy loss
    delta: probability with which more than epsilon may be lost
    """

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True)
class Finding:
    """What the runs showed about a claim.

    claim: the claim that was tested
    epsilon: with the stated confidence, the mechanism's epsilon at the claim's delta is at least
             this
    """

    claim: Claim
    epsilon: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong at the stated confidence."""
        return self.epsilon > self.claim.epsilon


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
    share = lower_bound(first - shared, once, error * (1 - _RATES_SHARE))
    least_p = lower_bound(first, runs, error * _RATES_SHARE / 2)
    most_q = upper_bound(second, runs, error * _RATES_SHARE / 2)
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


def find_bounds(
    first: Floats, second: Floats, claims: Sequence[Claim], confidence: float
) -> tuple[Finding, ...]:
    """For every claim the largest bound of its five events.

    Every row is a run, and the first columns are log ratios in favour of the first data set (see
    EXACT and LEARNED). All bounds together hold with the given confidence.
    """
    error = 1 - check_fraction("confidence", confidence)
    if first.shape != second.shape or first.ndim != 2:
        raise ParameterError("both data sets need the same number of runs and statistics")
    check_integer("runs", first.shape[0], least=PILOT)
    candidates = _PilotCounts.of(*(_choosing_runs(rows) for rows in (first, second)))
    return tuple(
        _find_bound(first, second, claim, share * error, candidates)
        for claim, share in zip(claims, claim_shares(len(claims)), strict=True)
    )


def claim_shares(claims: int) -> tuple[float, ...]:
    """How the allowed error is divided among so many claims."""
    if claims == 1:
        return (1.0,)
    return (FIRST_SHARE, *[(1 - FIRST_SHARE) / (claims - 1)] * (claims - 1))


def _pilots(runs: int) -> int:
    """How many runs are pilot runs: the first ones."""
    return runs // PILOT


def _learning(runs: int) -> int:
    """How many of them serve to learn statistics: again the first ones."""
    return _pilots(runs) // 2


def _learning_runs(rows: Floats) -> Floats:
    return rows[: _learning(len(rows))]


def _choosing_runs(rows: Floats) -> Floats:
    return rows[_learning(len(rows)) : _pilots(len(rows))]


def _find_bound(
    first: Floats, second: Floats, claim: Claim, error: float, candidates: "_PilotCounts"
) -> Finding:
    *fixed_errors, chosen_error = (share * error for share in ERROR_SHARES)
    threshold = claim.epsilon - _ROUNDING
    # Measured on other runs than they were learned on: choosing among many events on the same runs
    # would find a large bound by chance.
    tried = [
        (Event(EXACT, threshold, swapped=False), 0),
        (Event(EXACT + 1, threshold, swapped=True), 0),
        (Event(LEARNED, threshold, swapped=False), _learning(len(first))),
        (Event(LEARNED + 1, threshold, swapped=True), _learning(len(first))),
        (candidates.choose_event(claim.delta, chosen_error), _pilots(len(first))),
    ]
    bounds = [
        event.bound_epsilon(first[start:], second[start:], claim.delta, share)
        for (event, start), share in zip(tried, (*fixed_errors, chosen_error), strict=True)
    ]
    return Finding(claim, max(0.0, *bounds))


def learn_centres(columns: Floats) -> Floats:
    """Return the mean of every column over the first pilot runs."""
    return np.asarray(_learning_runs(columns).mean(axis=0))


def learn_combination(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the linear combination of the columns that tells the data sets apart best.

    Fisher's linear discriminant, learned from the first pilot runs: the difference of the means,
    divided by the covariance within a data set. A combination that hardly varies within a data set,
    because one column determines another, gets a large weight. The result is the log ratio in
    favour of the first data set if the columns are normal.
    """
    learned = [_learning_runs(rows) for rows in (first, second)]
    means = [rows.mean(axis=0) for rows in learned]
    centred = np.concatenate([rows - mean for rows, mean in zip(learned, means, strict=True)])
    spread = np.atleast_2d(np.cov(centred, rowvar=False))
    # Without the small term, columns that determine each other would make this singular.
    ridge = 1e-6 * (float(np.trace(spread)) / len(spread) + 1e-6)
    direction = np.linalg.solve(spread + ridge * np.eye(len(spread)), means[0] - means[1])
    middle = (means[0] + means[1]) / 2
    # Rounded, so that equal combinations of whole numbers stay equal.
    return np.round((first - middle) @ direction, 6), np.round((second - middle) @ direction, 6)


def learn_log_ratio(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return for every run how much likelier its value was on the first data set.

    It is learned from the first pilot runs, by counting every value on both data sets. If there are
    too many values to count them, the result is 0 for all runs.
    """
    learned = [_learning_runs(values) for values in (first, second)]
    values = np.unique(np.concatenate(learned))
    if values.size * _RUNS_PER_VALUE > 2 * len(learned[0]):
        return np.zeros(len(first)), np.zeros(len(second))
    # Half a run is added to every count, so that a value that was seldom seen is weak evidence.
    counts = [
        np.bincount(np.searchsorted(values, side), minlength=values.size) + 0.5 for side in learned
    ]
    ratios = np.log(counts[0] / counts[1])
    return _look_up(first, values, ratios), _look_up(second, values, ratios)


def _look_up(runs: Floats, values: Floats, ratios: Floats) -> Floats:
    """The ratio of every run's value; 0 for a value that is not in the table."""
    places = np.minimum(np.searchsorted(values, runs), values.size - 1)
    return np.where(values[places] == runs, ratios[places], 0.0)


@dataclass(frozen=True, slots=True)
class _PilotCounts:
    """How often the candidate events happened in the last pilot runs, one entry per event.

    An event is a column and a threshold. `first` and `second` count it on either data set, `both`
    in both runs of a pair, out of `runs`.
    """

    columns: NDArray[np.int64]
    thresholds: Floats
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    both: NDArray[np.int64]
    runs: int

    @classmethod
    def of(cls, first: Floats, second: Floats) -> "_PilotCounts":
        found = []
        for column in range(first.shape[1]):
            in_first = first[:, column]
            in_second = second[:, column]
            thresholds = _spread_thresholds(np.concatenate([in_first, in_second]))
            # An event happens in both runs of a pair if their smaller statistic is large enough.
            counted = [
                _count_at_least(values, thresholds)
                for values in (in_first, in_second, np.minimum(in_first, in_second))
            ]
            found.append((np.full(thresholds.size, column), thresholds, *counted))
        columns, thresholds, hits_first, hits_second, both = (
            np.concatenate(parts) for parts in zip(*found, strict=True)
        )
        return cls(columns, thresholds, hits_first, hits_second, both, len(first))

    def choose_event(self, delta: float, error: float) -> Event:
        """The event with the largest bound if all runs were like these pilot runs."""
        best = -math.inf
        chosen = Event(0, -math.inf, swapped=False)
        scale = 2 * (PILOT - 1)  # the event is measured on about this many times the runs
        for swapped in (False, True):
            hits = (self.second, self.first) if swapped else (self.first, self.second)
            hits_p, hits_q, both = (scale * number for number in (*hits, self.both))
            bounds = epsilon_bound(hits_p, hits_q, both, scale * self.runs, delta, error)
            top = int(np.argmax(bounds))
            if bounds[top] > best:
                best = float(bounds[top])
                chosen = Event(int(self.columns[top]), float(self.thresholds[top]), swapped)
        return chosen


def _spread_thresholds(values: Floats) -> Floats:
    """At most MAX_THRESHOLDS of the values, closest together at both ends."""
    found = np.unique(values)
    if found.size <= MAX_THRESHOLDS:
        return found
    ordered = np.sort(values)
    steps = np.geomspace(1, ordered.size / 2, MAX_THRESHOLDS // 2).astype(np.int64)
    return np.unique(ordered[np.concatenate([steps - 1, ordered.size - steps])])


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
        return _is_refuted_often(chances, claimed, delta, runs, confidence)

    if not is_refuted_often(0.0):
        return None
    return last_float(is_refuted_often, 0.0, most, 1e-3 * most)


def _is_refuted_often(
    chances: Probabilities, claimed: float, delta: float, runs: int, confidence: float
) -> bool:
    """Whether enough of the simulated audits refute this claim with their first event."""
    p, q = (min(1.0, max(0.0, chance)) for chance in chances(claimed))
    both = p * q
    once_p = p * (1 - q)
    once_q = (1 - p) * q
    # Rounding may leave a negative remainder, which the generator would refuse.
    neither = max(0.0, 1 - (both + once_p + once_q))
    # A fixed seed: the search above needs the same answer for the same claim.
    generator = np.random.default_rng(0)
    drawn = generator.multinomial(runs, [both, once_p, once_q, neither], size=_SIMULATED_AUDITS)
    error = ERROR_SHARES[0] * (1 - confidence)
    failed = 0
    # Bounds take long, and where few audits refute the claim, the first ones show it.
    for counts in np.split(drawn, [_FIRST_SIMULATED]):
        in_both, in_p, in_q, _ = counts.T
        bounds = epsilon_bound(in_p + in_both, in_q + in_both, in_both, runs, delta, error)
        failed += bounds.size - int((bounds > claimed).sum())
        if (_SIMULATED_AUDITS - failed) / _SIMULATED_AUDITS < CHANCE + _MARGIN:
            return False
    return True
