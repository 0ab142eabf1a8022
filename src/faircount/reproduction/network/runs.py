"""The cells of Figure 4 and Table II, each run once as surveys over the network.

Every cell is a data set and a setting of four epsilons. Its users are split at random into four
levels, every level is a survey in the topology `explicit` with the paper's DPDS, and their results
are combined as `faircount survey result` combines them. One more survey asks everybody at the
smallest epsilon (CPA). The errors stand beside their theory, which the count level agrees with.

The seed decides who gives which answer and is in which level. The coins of the users are those of
the operating system, as in every survey, so that the errors differ from run to run.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from faircount.accounting.paper import theorem1_p
from faircount.core.arrays import Floats, Ints
from faircount.core.errors import ParameterError
from faircount.demo.trial import Trial, trial
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.sampling import DPDS
from faircount.owner.combined_result import CombinedResult, combine_results
from faircount.reproduction.network.surveys import ask
from faircount.reproduction.studies import study, table2, weighted_groups
from faircount.reproduction.studies.checks import Check, check
from faircount.reproduction.studies.study import FLOOR_SHARE, Expected, Line, sampled_counts
from faircount.reproduction.studies.weighted_groups import CPA, GROUPS, NOISE, POPULATION, SETTINGS

HOW = "network"
"""How these points are run, beside the count level and the user level of all studies."""

METHODS = ("owa", "vwa", "uwa", CPA)
"""The ways of the paper."""

DATA: Mapping[str, tuple[Sequence[str], float]] = {
    "fig4": (study.DATA, FLOOR_SHARE),
    "table2": (table2.DATA, 0.0),
}
"""Data sets of both studies, and the smallest share of every item."""

COUNT_LEVEL_RUNS = 200

LEAST_USERS = 12
"""Three people in a level: with fewer nobody could drop a share between them."""

NetworkProgress = Callable[[int, int], None]


@dataclass(frozen=True)
class NetworkRuns:
    """What all surveys gave.

    users: in each cell, in four levels
    seed: of the answers and of the split into levels
    surveys: how many were run
    lines: every error beside its theory
    count_level: the average error of so many runs of the same cells at count level, for every line
    weights: of VWA, as the results had them, by setting, in the order of its epsilons
    """

    users: int
    seed: int
    surveys: int
    lines: tuple[Line, ...]
    count_level: tuple[float, ...]
    weights: dict[str, tuple[float, ...]]

    @property
    def checks(self) -> list[Check]:
        """Whether the errors agree with their theory, for each study."""
        studies: dict[str, list[Line]] = {}
        for line in self.lines:
            studies.setdefault(line.study, []).append(line)
        return list(map(check, studies.values()))


def run_network(
    users: int = 100,
    seed: int = 1,
    settings: Sequence[str] = tuple(SETTINGS),
    studies: Mapping[str, tuple[Sequence[str], float]] = DATA,
    progress: NetworkProgress | None = None,
) -> NetworkRuns:
    """Run every cell of Figure 4 and Table II once, on servers of this machine.

    users: in every cell, in four levels of equal size
    seed: of the answers and of the split into levels
    settings, studies: which cells
    """
    if users < LEAST_USERS or users % GROUPS:
        message = f"network surveys need a multiple of {GROUPS} users, at least {LEAST_USERS}"
        raise ParameterError(f"{message}, not {users}")
    cells = []
    for name, (data_sets, floor_share) in studies.items():
        for data, setting in product(data_sets, settings):
            counts = sampled_counts(data, users, floor_share)
            cells.append(_Cell(name, data, setting, counts))
    lines: list[Line] = []
    weights: dict[str, tuple[float, ...]] = {}
    # For answers and groups only; the noise of these surveys is the operating system's.
    rng = np.random.default_rng(seed)
    # A stream of its own: the answers of the surveys do not depend on the runs beside them.
    beside = np.random.default_rng([seed, COUNT_LEVEL_RUNS])
    count_level: list[float] = []
    with tempfile.TemporaryDirectory() as folder, trial(Path(folder, "trial")) as running:
        for done, cell in enumerate(cells):
            if progress is not None:
                progress(done, len(cells))
            groups = weighted_groups.split_users(cell.counts, rng, runs=1)[:, 0, :]
            combined, everybody = _ask_all(running, Path(folder), cell, groups, rng)
            lines += cell.compare(combined, everybody, groups)
            count_level += cell.draw_counts(beside)
            _, own = _estimate("vwa", combined, everybody)
            weights[cell.setting] = tuple(() if own is None else own.tolist())
    if progress is not None:
        progress(len(cells), len(cells))
    surveys = len(cells) * (GROUPS + 1)
    return NetworkRuns(users, seed, surveys, tuple(lines), tuple(count_level), weights)


@dataclass(frozen=True)
class _Cell:
    """One data set and setting of a study."""

    study: str
    data: str
    setting: str
    counts: tuple[int, ...]

    @property
    def epsilons(self) -> tuple[float, ...]:
        return SETTINGS[self.setting]

    def mechanism(self, epsilon: float) -> DPDS:
        """The paper's sampling; the promise of these surveys is empty, so no floor is named."""
        return DPDS(items=len(self.counts), p=theorem1_p(epsilon))

    def compare(
        self, combined: CombinedResult, everybody: QuestionnaireResult, groups: Ints
    ) -> Iterator[Line]:
        """Every error beside its theory."""
        theory = weighted_groups.expected_errors(
            self.mechanism, self.counts, self.epsilons, METHODS
        )
        whole = np.array(self.counts) / sum(self.counts)
        truth = groups / groups.sum(axis=1, keepdims=True)
        for method in METHODS:
            estimates, weights = _estimate(method, combined, everybody)
            # The paper's two errors: of the noise, and of the noise with the random split.
            own = whole if weights is None else (weights[:, None] * truth).sum(axis=0)
            for against, target in ((NOISE, own), (POPULATION, whole)):
                error = float(((estimates - target) ** 2).sum())
                yield self._line(method, against, error, theory[f"{method}|{against}"])

    def draw_counts(self, rng: np.random.Generator) -> Iterator[float]:
        """Average errors of the same cell at count level, in the order of `compare`."""
        errors = weighted_groups.measure_errors(
            self.mechanism,
            self.counts,
            self.epsilons,
            METHODS,
            COUNT_LEVEL_RUNS,
            study.COUNT_LEVEL,
            rng,
        )
        for method, against in product(METHODS, (NOISE, POPULATION)):
            yield float(errors[f"{method}|{against}"].mean())

    def _line(self, method: str, against: str, error: float, expected: Expected) -> Line:
        return Line(
            study=self.study,
            point={
                "data": self.data,
                "users": sum(self.counts),
                "setting": self.setting,
                "how": HOW,
            },
            method=method,
            against=against,
            items=len(self.counts),
            runs=1,
            mean=error,
            # One run has no spread of its own; the theory knows it.
            standard_error=math.nan,
            low=math.nan,
            high=math.nan,
            expected=expected,
        )


def _estimate(
    method: str, combined: CombinedResult, everybody: QuestionnaireResult
) -> tuple[Floats, Floats | None]:
    """The estimates of one way, raw as in the paper, and the weights in the order of the levels."""
    counted = combined.counts(0)
    if method == CPA or counted is None:
        return everybody.count_votes().raw, None
    made = counted if method == "uwa" else counted.weigh(method)
    # The parts of a combined result are ordered by epsilon, the groups as in the setting.
    order = [list(made.groups).index(name) for name in map(_name, range(GROUPS))]
    return made.raw, np.asarray(made.weights)[order]


def _name(group: int) -> str:
    return f"level {group + 1}"


def _ask_all(
    running: Trial, folder: Path, cell: _Cell, groups: Ints, rng: np.random.Generator
) -> tuple[CombinedResult, QuestionnaireResult]:
    """Ask every level at its epsilon, and everybody at the smallest, all at the same time."""
    asked = [*zip(cell.epsilons, groups, strict=True), (min(cell.epsilons), groups.sum(axis=0))]
    # Drawn before the threads start, so that the seed decides everything but the coins.
    answers = [rng.permutation(np.repeat(np.arange(row.size), row)).tolist() for _, row in asked]

    def ask_one(number: int) -> QuestionnaireResult:
        epsilon = asked[number][0]
        return ask(running, folder, cell.mechanism(epsilon), epsilon, answers[number])

    # Surveys mostly wait for clients and servers, so threads of one process are enough.
    with ThreadPoolExecutor(len(asked)) as pool:
        *levels, everybody = pool.map(ask_one, range(len(asked)))
    parts = {_name(number): result for number, result in enumerate(levels)}
    return combine_results(parts, "level"), everybody
