"""How a printed number or claim is judged: by theory and by what was measured, never by hand.

Every verdict says what decided it. RUNS: what was measured or counted here. THEORY: the expected error, its law, or an
exact delta; the runs of the same study must agree with the theory (`checks`), else no such verdict is given.
ARITHMETIC: the paper's own numbers and formulas, without any run.

A printed number agrees when an average of the paper's 20 runs would lie at least as far from the theory's mean in more
than one of 100 cases, its last digit's rounding granted. A claim about an order is decided by the runs. Where the paper
leaves open what was run, every reading is judged; readings that disagree mean that it cannot be told.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from faircount.experiments.studies.study import Expected, Line

AGREES, DIFFERS, CANNOT = "agrees", "differs", "cannot be told"
RUNS, THEORY, ARITHMETIC = "runs", "theory", "arithmetic"
PAPER_RUNS = 20
CHANCE = 0.01

SURE = 4.9
"""Standard errors that chance exceeds once in a million cases (two-sided, normal)."""


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
    """Half a unit of the last digit printed: 0.05e-3 for 2.4e-3."""
    exponent = Decimal(printed).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


def chance(printed: str, expected: Expected, runs: int = PAPER_RUNS) -> float:
    """Two-sided probability that an average lies as far from the mean as the printed number, its rounding granted."""
    value, slack = float(printed), half_unit(printed)
    return tail_probability(min(max(expected.mean, value - slack), value + slack), expected, runs)


def tail_probability(average: float, expected: Expected, runs: int) -> float:
    """Two-sided probability that an average of so many runs lies at least so far from the theory's mean.

    Averages of squared errors are skewed. They are taken as gamma distributed (Pearson's type III) with the theory's
    mean, deviation and skewness; where the skewness is not known, as a plain gamma law. Type III may begin above
    0, where no average is impossible: below the mean the larger of the two laws' tails counts.
    """
    deviation = (expected.deviation or 0.0) / runs**0.5
    if average == expected.mean or not deviation:
        return 1.0 if average == expected.mean else 0.0
    plain = 2 * deviation / expected.mean
    skewness = plain if expected.skewness is None else expected.skewness / runs**0.5
    distance = (average - expected.mean) / deviation
    tail = _gamma_tail(distance, skewness)
    return min(1.0, 2 * (tail if distance > 0 else max(tail, _gamma_tail(distance, plain))))


def _gamma_tail(distance: float, skewness: float) -> float:
    """Probability beyond so many deviations from the mean, on that side, of a gamma law with this skewness."""
    from scipy.special import gammainc, gammaincc

    shape = 4 / skewness**2
    place = max(shape + distance * shape**0.5, 0.0)
    return float((gammainc if distance < 0 else gammaincc)(shape, place))


def number(study: str, place: str, claim: str, printed: str, theory: Mapping[str, Expected], ours: str) -> Verdict:
    """Judge a printed number against each way of reading what was measured; one that fits is enough."""
    fits = {name: chance(printed, each) for name, each in theory.items()}
    told = "; ".join(f"{name}: theory {each.mean:.3g}, chance {_percent(fits[name])}" for name, each in theory.items())
    verdict = AGREES if max(fits.values()) > CHANCE else DIFFERS
    return Verdict(
        study, place, claim, printed, ours, verdict, THEORY, f"{told} of a 20-run average at least this far off"
    )


def _percent(probability: float) -> str:
    if probability < 1e-4:
        return "below 0.01%"
    return f"{probability:.2%}" if probability < 0.1 else f"{probability:.0%}"


def scaled(expected: Expected, factor: float) -> Expected:
    """The same error in other units."""
    deviation = expected.deviation
    return Expected(expected.mean * factor, None if deviation is None else deviation * factor, expected.skewness)


def everywhere(cases: Sequence[bool]) -> str:
    """Agrees when a claim holds in every case it speaks of."""
    return AGREES if cases and all(cases) else DIFFERS


def readings(holds: Mapping[str, bool]) -> str:
    """Agrees or differs when all readings of the paper say so; otherwise it cannot be told."""
    answers = set(holds.values())
    if len(answers) > 1:
        return CANNOT
    return AGREES if answers == {True} else DIFFERS


def share(cases: Sequence[bool]) -> str:
    """'27 of 30'."""
    return f"{sum(cases)} of {len(cases)}"


Pair = tuple[Line, Line]
"""Two lines, the first of which is claimed to have the larger error."""


def ordered(clusters: Sequence[Sequence[Pair]], factor: float = 1.0) -> tuple[str, str]:
    """Whether the runs show that the first error of every pair is more than `factor` times the second: verdict, words.

    Pairs of one cluster may share lines; clusters are independent. One pair that is surely the other way round refutes
    the claim; all together must surely have the claimed order.
    """
    distances = [[_distance(pair, factor) for pair in cluster] for cluster in clusters]
    together = sum(sum(cluster) / len(cluster) for cluster in distances) / math.sqrt(len(distances))
    single = [each for cluster in distances for each in cluster]
    words = f"measured at {share([each > 0 for each in single])} pairs, together {together:.1f} standard errors"
    if min(single) < -_sure(len(single)) or together < -SURE:
        return DIFFERS, words
    return (AGREES if together > SURE else CANNOT), words


def _distance(pair: Pair, factor: float) -> float:
    worse, better = pair
    error = math.hypot(worse.error_of_mean, factor * better.error_of_mean)
    return (worse.mean - factor * better.mean) / error


def _sure(cases: int) -> float:
    """Standard errors that not one of so many cases exceeds, but for one in a million times."""
    from scipy.special import ndtri

    return float(-ndtri(5e-7 / cases))
