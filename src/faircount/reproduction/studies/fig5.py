"""Figure 5: weighted against unweighted aggregation for GRR, OUE, Duchi and PM, 10,000 users.

The data are standard normal. GRR and OUE estimate the frequencies of the normal cut into 30
intervals; Duchi and PM the mean of the values clipped to [-3, 3] and divided by 3. The settings are
those of Table II, because the paper does not name the ones of its figure.
"""

import math
from functools import lru_cache
from itertools import product

import numpy as np

from faircount.analysis.run import run
from faircount.core.arrays import Floats
from faircount.estimation import weighting
from faircount.mechanisms.local_frequency import GRR, OUE
from faircount.mechanisms.local_mean import PM, Duchi, LocalMean
from faircount.reproduction.studies import weighted_groups
from faircount.reproduction.studies.judging import RUNS, Pair, Verdict, judge_order
from faircount.reproduction.studies.squared_errors import combine_groups
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA_SEED,
    USER_LEVEL,
    Expected,
    Line,
    Study,
    Value,
    add_user_level,
    draw_stream,
    find_line,
    sampled_counts,
)
from faircount.reproduction.studies.weighted_groups import GROUPS, NOISE, POPULATION, SETTINGS
from faircount.reproduction.sweep.sweep import Point

USERS = 10_000
GROUP_SIZE = USERS // GROUPS

# Values beyond this are clipped, because Duchi and PM need a bounded range.
EDGE = 3.0

# OWA has the weights of VWA, as Table II shows, and is left out.
METHODS = ("vwa", "uwa", "total")
FREQUENCIES: dict[str, type[GRR] | type[OUE]] = {"grr": GRR, "oue": OUE}
MEANS: dict[str, type[LocalMean]] = {"duchi": Duchi, "pm": PM}


def points() -> list[Point]:
    """All mechanisms and settings; setting s1 also at user level."""
    chosen: list[Point] = [
        {"mechanism": mechanism, "users": USERS, "setting": setting, "how": COUNT_LEVEL}
        for mechanism, setting in product((*FREQUENCIES, *MEANS), SETTINGS)
    ]
    return add_user_level(chosen, lambda point: point["setting"] == "s1")


def _user_counts() -> tuple[int, ...]:
    return sampled_counts("normal", USERS, 0.0)


@lru_cache(maxsize=1)
def user_values() -> Floats:
    """The users' values: standard normal, clipped to [-3, 3], divided by 3."""
    drawn = np.random.default_rng([DATA_SEED, USERS]).standard_normal(USERS)
    return np.clip(drawn, -EDGE, EDGE) / EDGE


def _frequency_maker(name: str) -> weighted_groups.Maker:
    return lambda epsilon: FREQUENCIES[name](items=len(_user_counts()), epsilon=epsilon)


def _mean_mechanisms(name: str, epsilons: tuple[float, ...]) -> list[LocalMean]:
    return [MEANS[name](epsilon=epsilon) for epsilon in epsilons]


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Squared errors of every method, against the groups' own truth and the population."""
    name = str(point["mechanism"])
    epsilons = SETTINGS[str(point["setting"])]
    how = str(point["how"])
    if name in FREQUENCIES:
        maker = _frequency_maker(name)
        return weighted_groups.measure_errors(
            maker, _user_counts(), epsilons, METHODS, runs, how, rng
        )
    return _measure_mean_errors(_mean_mechanisms(name, epsilons), runs, how, rng)


def _measure_mean_errors(
    mechanisms: list[LocalMean], runs: int, how: str, rng: np.random.Generator
) -> dict[str, Floats]:
    truth = np.empty((GROUPS, runs))
    estimates = np.empty((GROUPS, runs))
    for turn in range(runs):
        # A new random split in every run, as for frequencies.
        groups = rng.permutation(user_values()).reshape(GROUPS, -1)
        truth[:, turn] = groups.mean(axis=1)
        for group, mechanism in enumerate(mechanisms):
            estimates[group, turn] = _estimate_mean(mechanism, groups[group], how, rng)
    errors: dict[str, Floats] = {}
    for method in METHODS:
        weights = _compute_weights(method, mechanisms)
        combined = combine_groups(estimates, weights)
        errors[f"{method}|{NOISE}"] = (combined - combine_groups(truth, weights)) ** 2
        errors[f"{method}|{POPULATION}"] = (combined - user_values().mean()) ** 2
    return errors


def _estimate_mean(
    mechanism: LocalMean, values: Floats, how: str, rng: np.random.Generator
) -> float:
    if how == USER_LEVEL:
        return run(values, mechanism, entropy=draw_stream(rng)).estimate
    return mechanism.estimate(mechanism.draw(values, rng), values.size)


def _compute_weights(method: str, mechanisms: list[LocalMean]) -> Floats:
    variances = _report_variances(mechanisms)
    return weighted_groups.compute_weights(method, variances, _value_variance(), GROUP_SIZE)


def _report_variances(mechanisms: list[LocalMean]) -> Floats:
    """V_g: the noise variance of a report, averaged over the users' values."""
    values = user_values()
    return np.array([mechanism.report_variance(values).mean() for mechanism in mechanisms])


def _value_variance() -> float:
    # ddof=1: the variance of a draw without replacement, as for frequencies.
    return float(user_values().var(ddof=1))


def theory(point: Point) -> dict[str, Expected]:
    """The sum of W_g^2 V_g / n_g; against the population also what the split into groups adds."""
    name = str(point["mechanism"])
    epsilons = SETTINGS[str(point["setting"])]
    if name in FREQUENCIES:
        maker = _frequency_maker(name)
        return weighted_groups.expected_errors(maker, _user_counts(), epsilons, METHODS)
    return _expected_mean_errors(_mean_mechanisms(name, epsilons))


def _expected_mean_errors(mechanisms: list[LocalMean]) -> dict[str, Expected]:
    sizes = np.full(GROUPS, GROUP_SIZE)
    variances = _report_variances(mechanisms)
    expected = {}
    for method in METHODS:
        weights = _compute_weights(method, mechanisms)
        for against in (NOISE, POPULATION):
            error = weighting.expected_error(
                weights, sizes, variances, _value_variance(), against=against
            )
            # The error of a mean over 10,000 users is almost normal. Its square is a chi-square
            # with one degree of freedom: deviation sqrt(2) means, skewness sqrt(8).
            distribution = Expected(error, math.sqrt(2) * error, math.sqrt(8))
            expected[f"{method}|{against}"] = distribution
    return expected


# What the text says about the figure (Section IV-B4).

PLACE = "IV-B4"

# What counts as "much improvement": unweighted errors at least this many times the weighted ones.
MUCH = 1.5

LABELS = {"grr": "GRR", "oue": "OUE", "duchi": "Duchi", "pm": "PM"}


def judge(lines: list[Line]) -> list[Verdict]:
    """Judge the only claim of the text on Figure 5."""
    clusters = []
    ratios = []
    for mechanism, label in LABELS.items():
        pairs = [_find_pairs(lines, mechanism, setting) for setting in SETTINGS]
        clusters += pairs
        # The first pair is against the groups' own truth.
        ratios.append(f"{label} {_format_ratios([noise for noise, _ in pairs])}")
    verdict, measured = judge_order(clusters, MUCH)
    claim = (
        "Weighted aggregation has much improvement compared with direct aggregation for all the "
        "methods"
    )
    why = (
        "unweighted over weighted error, range over s1 to s4, against the groups' own truth; "
        f"'much' is taken as more than {MUCH:g} times: {measured}, errors against the population "
        "included"
    )
    ours = "; ".join(ratios)
    return [Verdict("fig5", PLACE, claim, "much improvement", ours, verdict, RUNS, why)]


def _find_pairs(lines: list[Line], mechanism: str, setting: str) -> list[Pair]:
    """Unweighted and weighted errors, against the groups' own truth and the population."""
    pairs = []
    for against in (NOISE, POPULATION):
        here: dict[str, Value] = {
            "mechanism": mechanism,
            "setting": setting,
            "against": against,
            "how": COUNT_LEVEL,
        }
        unweighted = find_line(lines, method="uwa", **here)
        pairs.append((unweighted, find_line(lines, method="vwa", **here)))
    return pairs


def _format_ratios(pairs: list[Pair]) -> str:
    expected = [plain.expected.mean / weighted.expected.mean for plain, weighted in pairs]
    measured = [plain.mean / weighted.mean for plain, weighted in pairs]
    return (
        f"{min(measured):.3g} to {max(measured):.3g} times "
        f"(theory {min(expected):.3g} to {max(expected):.3g})"
    )


def _count_items(point: Point) -> int:
    return len(_user_counts()) if point["mechanism"] in FREQUENCIES else 1


def _estimate_seconds(point: Point) -> float:
    # Reports have no shares, so simulated users take little more time.
    return 0.02 if point["how"] == USER_LEVEL else 0.004


STUDY = Study(
    name="fig5",
    title="Weighted aggregation for other mechanisms",
    paper="Figure 5: mean squared error of weighted and direct (unweighted) aggregation for GRR, "
    "OUE, Duchi and PM, 10,000 participants with standard normal data.",
    ours="GRR and OUE: the normal cut into 30 intervals of width 0.2, squared error summed over "
    "the items. Duchi and PM: values clipped to [-3, 3] and divided by 3, squared error of the "
    "mean in those units (times 9 in the original ones). The settings are s1 to s4 in four groups "
    "of 2,500; the paper does not name those of its figure.",
    points=points,
    task=task,
    theory=theory,
    items=_count_items,
    seconds=_estimate_seconds,
)
