"""How a printed number or claim is judged: by theory and by what was measured, never by hand.

A printed number agrees when an average of the paper's 20 runs would lie at least as far from the theory's mean in more
than one of 100 cases, its last digit's rounding granted. A claim about an order agrees when the theory has that order
at every point it speaks of. Where the paper leaves open what was run, every reading is judged; readings that disagree
mean that it cannot be told.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal

from faircount.experiments.studies.study import Expected, Line

AGREES, DIFFERS, CANNOT = "agrees", "differs", "cannot be told"
PAPER_RUNS = 20
CHANCE = 0.01


@dataclass(frozen=True, slots=True)
class Verdict:
    """One number or claim of the paper with ours beside it."""

    study: str
    place: str
    claim: str
    printed: str
    ours: str
    verdict: str
    why: str

    def record(self) -> dict[str, str]:
        """One row of verdicts.csv."""
        return asdict(self)


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
    mean, deviation and skewness; where the skewness is not known, as a plain gamma law.
    """
    from scipy.special import gammainc, gammaincc

    deviation = (expected.deviation or 0.0) / runs**0.5
    if average == expected.mean or not deviation:
        return 1.0 if average == expected.mean else 0.0
    own = expected.skewness
    skewness = 2 * deviation / expected.mean if own is None else own / runs**0.5
    shape = 4 / skewness**2
    place = shape + (average - expected.mean) / deviation * shape**0.5
    tail = gammainc if average < expected.mean else gammaincc
    return min(1.0, 2 * float(tail(shape, max(place, 0.0))))


def number(study: str, place: str, claim: str, printed: str, theory: Mapping[str, Expected], ours: str) -> Verdict:
    """Judge a printed number against each way of reading what was measured; one that fits is enough."""
    fits = {name: chance(printed, each) for name, each in theory.items()}
    told = "; ".join(f"{name}: theory {each.mean:.3g}, chance {_percent(fits[name])}" for name, each in theory.items())
    verdict = AGREES if max(fits.values()) > CHANCE else DIFFERS
    return Verdict(study, place, claim, printed, ours, verdict, f"{told} of a 20-run average at least this far off")


def _percent(probability: float) -> str:
    if probability < 1e-4:
        return "below 0.01%"
    return f"{probability:.2%}" if probability < 0.1 else f"{probability:.0%}"


def scaled(expected: Expected, factor: float) -> Expected:
    """The same error in other units."""
    deviation = expected.deviation
    return Expected(expected.mean * factor, None if deviation is None else deviation * factor, expected.skewness)


def with_measured_spread(line: Line) -> Expected:
    """Theory's mean with the deviation between runs as measured, where the theory does not know it."""
    if line.expected.deviation is not None:
        return line.expected
    return Expected(line.expected.mean, line.standard_error * line.runs**0.5)


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
