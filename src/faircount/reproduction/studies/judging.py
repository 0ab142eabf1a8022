"""How a number or claim of the paper is judged: by computation, never by hand.

Every verdict names what decided it:

    RUNS        what was measured or counted here
    THEORY      the expected error, its distribution, or an exact delta; if the runs of the same
    study
                contradict its theory (`checks`), no such verdict is given
    ARITHMETIC  the paper's own numbers and formulas, without any run

A printed number agrees when, in more than one of 100 cases, an average of the paper's 20 runs would
be at least as far from the expected value, allowing for the rounding of its last digit. The runs
decide claims about an order. Where the paper leaves open what was run, every reading is judged, and
readings that disagree leave the claim undecided.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from faircount.reproduction.studies.study import Expected, Line

AGREES = "agrees"
DIFFERS = "differs"
UNDECIDED = "undecided"

RUNS = "runs"
THEORY = "theory"
ARITHMETIC = "arithmetic"

# The paper averages 20 runs of every experiment (Section IV).
PAPER_RUNS = 20

# A printed number differs when an average as far from theory is less likely than this.
MIN_PROBABILITY = 0.01

# Standard errors that a normal variable exceeds once in a million cases (two-sided).
SURE = 4.9


@dataclass(frozen=True, slots=True)
class Verdict:
    """One number or claim of the paper with ours beside it."""

    study: str
    place: str
    claim: str
    printed: str
    ours: str
    verdict: str
    decided_by: str
    why: str


def half_unit(printed: str) -> float:
    """Half a unit of the last printed digit: 0.05e-3 for 2.4e-3."""
    exponent = Decimal(printed).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def printed_probability(printed: str, expected: Expected, runs: int = PAPER_RUNS) -> float:
    """Two-sided probability of an average as far from theory as the printed number.

    The printed number counts as the value closest to theory that it may have been rounded from.
    """
    value = float(printed)
    slack = half_unit(printed)
    closest = min(max(expected.mean, value - slack), value + slack)
    return tail_probability(closest, expected, runs)


def tail_probability(average: float, expected: Expected, runs: int) -> float:
    """Two-sided probability that an average of so many runs is at least this far from theory.

    Averages of squared errors are skewed. They are modelled by a shifted gamma distribution
    (Pearson's type III) with the mean, deviation and skewness of the theory; where the skewness is
    not known, by a plain gamma distribution.
    """
    deviation = (expected.deviation or 0.0) / runs**0.5
    if average == expected.mean:
        return 1.0
    if not deviation:
        return 0.0
    plain_skewness = 2 * deviation / expected.mean
    skewness = plain_skewness
    if expected.skewness is not None:
        skewness = expected.skewness / runs**0.5
    distance = (average - expected.mean) / deviation
    tail = _gamma_tail(distance, skewness)
    if distance <= 0:
        # Type III may begin above 0, although no average above 0 is impossible. Below the mean the
        # larger of the two tails counts.
        tail = max(tail, _gamma_tail(distance, plain_skewness))
    return min(1.0, 2 * tail)


def _gamma_tail(distance: float, skewness: float) -> float:
    """Probability beyond so many deviations from a gamma distribution's mean, on that side."""
    from scipy.special import gammainc, gammaincc

    # A gamma distribution of shape k has mean k, deviation sqrt(k) and skewness 2 / sqrt(k).
    shape = 4 / skewness**2
    place = max(shape + distance * shape**0.5, 0.0)
    tail = gammainc if distance < 0 else gammaincc
    return float(tail(shape, place))


def judge_number(
    study: str,
    place: str,
    claim: str,
    printed: str,
    theory: Mapping[str, Expected],
    ours: str,
) -> Verdict:
    """Judge a printed number under every reading of what was measured; one that fits is enough."""
    probabilities = {}
    explanations = []
    for reading, expected in theory.items():
        probability = printed_probability(printed, expected)
        probabilities[reading] = probability
        explanations.append(
            f"{reading}: theory {expected.mean:.3g}, chance {_format_percent(probability)}"
        )
    verdict = AGREES if max(probabilities.values()) > MIN_PROBABILITY else DIFFERS
    why = "; ".join(explanations) + " of a 20-run average at least this far off"
    return Verdict(study, place, claim, printed, ours, verdict, THEORY, why)


def _format_percent(probability: float) -> str:
    if probability < 1e-4:
        return "below 0.01%"
    if probability < 0.1:
        return f"{probability:.2%}"
    return f"{probability:.0%}"


def rescale(expected: Expected, factor: float) -> Expected:
    """The same error in other units."""
    deviation = expected.deviation
    if deviation is not None:
        deviation = deviation * factor
    return Expected(expected.mean * factor, deviation, expected.skewness)


def judge_all(cases: Sequence[bool]) -> str:
    """A claim agrees when it holds in every case that it speaks of."""
    return AGREES if cases and all(cases) else DIFFERS


def judge_readings(holds: Mapping[str, bool]) -> str:
    """A claim agrees or differs when all readings of the paper say so; else it is undecided."""
    answers = set(holds.values())
    if len(answers) > 1:
        return UNDECIDED
    return AGREES if answers == {True} else DIFFERS


def format_count(cases: Sequence[bool]) -> str:
    """How many of the cases hold, as '27 of 30'."""
    return f"{sum(cases)} of {len(cases)}"


# Two lines; the claim is that the first has the larger error.
Pair = tuple[Line, Line]


def judge_order(clusters: Sequence[Sequence[Pair]], factor: float = 1.0) -> tuple[str, str]:
    """Judge whether the first error of every pair is more than `factor` times the second.

    Returns the verdict and what was measured. Pairs of one cluster may share lines; clusters are
    independent. One pair that is certainly the other way round refutes the claim. To agree, all
    pairs together must certainly have the claimed order.
    """
    distances: list[float] = []
    averages: list[float] = []
    for cluster in clusters:
        own = [_distance(pair, factor) for pair in cluster]
        distances += own
        # Shared lines make the pairs of a cluster dependent: together they count as one.
        averages.append(sum(own) / len(own))
    together = sum(averages) / math.sqrt(len(clusters))
    positive = format_count([distance > 0 for distance in distances])
    measured = f"measured at {positive} pairs, together {together:.1f} standard errors"
    if min(distances) < -_sure_for(len(distances)) or together < -SURE:
        return DIFFERS, measured
    return (AGREES if together > SURE else UNDECIDED), measured


def _distance(pair: Pair, factor: float) -> float:
    worse, better = pair
    error = math.hypot(worse.error_of_mean, factor * better.error_of_mean)
    return (worse.mean - factor * better.mean) / error


def _sure_for(cases: int) -> float:
    """Standard errors that any of so many cases exceeds only once in a million times."""
    from scipy.special import ndtri

    # Bonferroni: all cases share one millionth, half of it on this side.
    return float(-ndtri(5e-7 / cases))
