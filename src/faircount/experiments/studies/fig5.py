"""Figure 5: weighted against unweighted aggregation for GRR, OUE, Duchi and PM, 10,000 users from a standard normal.

GRR and OUE estimate the frequencies of the normal cut into 30 intervals; Duchi and PM the mean of the values clipped to
[-3, 3] and divided by 3. The settings are those of Table II; the paper does not name the ones of its figure.
"""

import math
from functools import lru_cache

import numpy as np

from faircount.analysis.run import run
from faircount.core.arrays import Floats
from faircount.core.entropy import SeededStream
from faircount.estimation import weighting
from faircount.experiments.studies import weighted_groups
from faircount.experiments.studies.judging import RUNS, Pair, Verdict, ordered
from faircount.experiments.studies.squared_errors import blend
from faircount.experiments.studies.study import ACTING, COUNTS, DATA_SEED, Expected, Line, Study, holders, one
from faircount.experiments.studies.weighted_groups import GROUPS, NOISE, POPULATION, SETTINGS
from faircount.mechanisms.local_frequency import GRR, OUE
from faircount.mechanisms.local_mean import PM, Duchi, LocalMean
from faircount.sweep.sweep import Point

USERS = 10_000
EDGE = 3.0
METHODS = ("vwa", "uwa", "total")
FREQUENCIES: dict[str, type[GRR] | type[OUE]] = {"grr": GRR, "oue": OUE}
MEANS: dict[str, type[LocalMean]] = {"duchi": Duchi, "pm": PM}


def points() -> list[Point]:
    """Every mechanism and setting; every user sends a real report at one setting of each."""
    chosen: list[Point] = [
        {"mechanism": mechanism, "users": USERS, "setting": setting, "how": COUNTS}
        for mechanism in (*FREQUENCIES, *MEANS)
        for setting in SETTINGS
    ]
    return chosen + [{**each, "how": ACTING} for each in chosen if each["setting"] == "s1"]


def _people() -> tuple[int, ...]:
    return holders("normal", USERS, 0.0)


@lru_cache(maxsize=1)
def values() -> Floats:
    """The users' values: standard normal, clipped to [-3, 3], divided by 3."""
    drawn = np.random.default_rng([DATA_SEED, USERS]).standard_normal(USERS)
    return np.clip(drawn, -EDGE, EDGE) / EDGE


def _frequency(name: str) -> weighted_groups.Maker:
    return lambda epsilon: FREQUENCIES[name](items=len(_people()), epsilon=epsilon)


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Squared errors of every method, against the groups' own truth and against the population."""
    name, epsilons, how = str(point["mechanism"]), SETTINGS[str(point["setting"])], str(point["how"])
    if name in FREQUENCIES:
        return weighted_groups.errors(_frequency(name), _people(), epsilons, METHODS, runs, how, rng)
    return _mean_errors([MEANS[name](epsilon=each) for each in epsilons], runs, how, rng)


def _mean_errors(groups: list[LocalMean], runs: int, how: str, rng: np.random.Generator) -> dict[str, Floats]:
    truth, found = np.empty((GROUPS, runs)), np.empty((GROUPS, runs))
    for turn in range(runs):
        parts = rng.permutation(values()).reshape(GROUPS, -1)
        truth[:, turn] = parts.mean(axis=1)
        found[:, turn] = [_mean(mechanism, part, how, rng) for mechanism, part in zip(groups, parts, strict=True)]
    measured: dict[str, Floats] = {}
    for method in METHODS:
        w = weighted_groups.weights(method, _report_variances(groups), _spread(), USERS // GROUPS)
        estimate = blend(found, w)
        measured[f"{method}|{NOISE}"] = (estimate - blend(truth, w)) ** 2
        measured[f"{method}|{POPULATION}"] = (estimate - values().mean()) ** 2
    return measured


def _mean(mechanism: LocalMean, part: Floats, how: str, rng: np.random.Generator) -> float:
    if how == ACTING:
        return run(part, mechanism, entropy=SeededStream(int(rng.integers(2**63)))).estimate
    return mechanism.estimate(mechanism.draw(part, rng), part.size)


def _report_variances(groups: list[LocalMean]) -> Floats:
    """V_g: the mean noise variance of a report over the users' values."""
    return np.array([each.report_variance(values()).mean() for each in groups])


def _spread() -> float:
    return float(values().var(ddof=1))


def theory(point: Point) -> dict[str, Expected]:
    """Sum of W_g^2 V_g / n_g; against the population also what the split into groups adds."""
    name, epsilons = str(point["mechanism"]), SETTINGS[str(point["setting"])]
    if name in FREQUENCIES:
        return weighted_groups.expected(_frequency(name), _people(), epsilons, METHODS)
    return _mean_theory([MEANS[name](epsilon=each) for each in epsilons])


def _mean_theory(groups: list[LocalMean]) -> dict[str, Expected]:
    sizes, variances, expected = np.full(GROUPS, USERS // GROUPS), _report_variances(groups), {}
    for method in METHODS:
        w = weighted_groups.weights(method, variances, _spread(), USERS // GROUPS)
        for against in (NOISE, POPULATION):
            error = weighting.expected_error(w, sizes, variances, _spread(), against=against)
            expected[f"{method}|{against}"] = Expected(
                error, math.sqrt(2) * error, math.sqrt(8)
            )  # a square of a normal, nearly
    return expected


# What the paper's text says about the figure.

PLACE = "IV-B4"
MUCH = 1.5
"""What counts as "much improvement": unweighted errors at least this many times the weighted ones."""

LABELS = {"grr": "GRR", "oue": "OUE", "duchi": "Duchi", "pm": "PM"}


def verdicts(lines: list[Line]) -> list[Verdict]:
    """The one claim of the text on Fig. 5."""
    clusters = [_pairs(lines, mechanism, setting) for mechanism in LABELS for setting in SETTINGS]
    verdict, words = ordered(clusters, MUCH)
    told = "; ".join(f"{label} {_ratios(lines, mechanism)}" for mechanism, label in LABELS.items())
    claim = "Weighted aggregation has much improvement compared with direct aggregation for all the methods"
    why = (
        f"unweighted over weighted error, range over s1 to s4, against the groups' own truth; 'much' is taken as more "
        f"than {MUCH:g} times: {words}, errors against the population included"
    )
    return [Verdict("fig5", PLACE, claim, "much improvement", told, verdict, RUNS, why)]


def _pairs(lines: list[Line], mechanism: str, setting: str) -> list[Pair]:
    here = {"mechanism": mechanism, "setting": setting, "how": COUNTS}
    return [
        (one(lines, method="uwa", against=against, **here), one(lines, method="vwa", against=against, **here))
        for against in (NOISE, POPULATION)
    ]


def _ratios(lines: list[Line], mechanism: str) -> str:
    pairs = [_pairs(lines, mechanism, setting)[0] for setting in SETTINGS]
    expected = [plain.expected.mean / weighed.expected.mean for plain, weighed in pairs]
    measured = [plain.mean / weighed.mean for plain, weighed in pairs]
    return f"{min(measured):.3g} to {max(measured):.3g} times (theory {min(expected):.3g} to {max(expected):.3g})"


STUDY = Study(
    name="fig5",
    title="Weighted aggregation for other mechanisms",
    paper="Fig. 5: mean squared error of weighted and direct (unweighted) aggregation for GRR, OUE, Duchi and PM, "
    "10,000 participants with standard normal data.",
    ours="GRR and OUE: the normal cut into 30 intervals of width 0.2, squared error summed over the items. Duchi "
    "and PM: values clipped to [-3, 3] and divided by 3, squared error of the mean in those units (times 9 in the "
    "original ones). The settings are s1 to s4 in four groups of 2,500; the paper does not name those of its figure.",
    points=points,
    task=task,
    theory=theory,
    items=lambda point: len(_people()) if point["mechanism"] in FREQUENCIES else 1,
    seconds=lambda point: 0.02 if point["how"] == ACTING else 0.004,
)
