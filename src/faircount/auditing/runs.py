"""Audit a mechanism: run its own code on the worst neighbouring pair and test its privacy claim.

The audit plays every adversary whom the mechanism's guarantee names, each on the pair of data sets
that is worst for it. All of them know everything but one user's answer: insiders also what they
sent, a server its own noise, and the coordinator of a two-stage survey all reported sets. By
default the audit looks at what leaves the devices, the output of `respond`; alternatively it runs
whole surveys with every message of the protocol.

A mechanism's guarantee is a curve: a delta for every epsilon. Besides the claim itself the audit
tests a few points of the curve where its runs can see more. A claim with a delta that is not the
mechanism's own is tested alone. An audit can refute a claim; it cannot prove one.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import Adversary
from faircount.auditing.report import DEVICES, AuditReport, Verdict
from faircount.auditing.statistics import (
    Claim,
    Finding,
    claim_shares,
    find_bounds,
    learn_centres,
    learn_combination,
    learn_log_ratio,
    refutable,
)
from faircount.core.arguments import describe_value, explain_arguments
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.search import last_float
from faircount.core.validation import check_epsilon, check_fraction, check_integer, check_real
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.worst_pair import WorstPair

Progress = Callable[[int], None]
RunSurveys = Callable[[list[WorstPair], NDArray[Any], int, Entropy], list[Ints]]

# Responses that are made at a time, which bounds the memory.
BATCH = 50_000

# The same for whole surveys, which take milliseconds per response: progress is seen in between.
SURVEY_BATCH = 500

# Default number of runs where many surveys can be made in one call. It suffices, for example, to
# detect sampling with two coins instead of one.
MAX_RUNS = 200_000

# With many users there are fewer runs, so that all runs together have about this many responses.
QUICK_RESPONSES = 5 * 10**7

# Default number of runs where there are many users, or where surveys are made one by one.
LEAST_RUNS = 20_000

# Default number of runs where every message of a survey is sent.
WHOLE_SURVEYS = 200

# After this share of the runs the audit looks for the first time, and ends if it can refute the
# claim; this look has its own share of the error. Fewer runs are looked at once, in the end.
EARLY_RUNS = 0.1
EARLY_ERROR = 0.2
LEAST_EARLY_RUNS = 1000

# Points of a guarantee's curve that are tested besides the claim: the losses that are reached with
# these probabilities.
_CURVE = (0.4, 0.1, 0.01)

# Points closer than this to each other, as a share of the larger epsilon, are one.
_SAME_POINT = 0.02

# Makes one number of two whole numbers, from which both can be told.
_AS_ONE = np.array([2.0**26, 1.0])


@explain_arguments("fc.audit(fc.Laplace(items=3, epsilon=1.0))")
def audit(
    mechanism: Mechanism,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    adversary: Adversary | None = None,
    runs: int | None = None,
    confidence: float = 0.999,
    through: str = DEVICES,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Test a privacy claim by running a mechanism's own code on two neighbouring data sets.

    mechanism: the mechanism to audit
    epsilon, delta: the claim; by default the mechanism's own guarantee against each adversary. A
        delta that you give is claimed against all of them. Another epsilon than the mechanism was
        built for, without a delta, is a claim of pure differential privacy (delta 0)
    adversary: play only this one; by default all whom the guarantee names
    runs: number of runs on each of the two data sets; by default as many as take seconds (see
        `default_runs`); the report says which claims so many runs can refute
    confidence: a sound claim is refuted with probability at most 1 - confidence, over all
        adversaries and all events that are tried
    through: "devices", or the topology of whole surveys ("servers", "explicit", "masked",
        "two-stage"): each run is then a survey with every message, of which an adversary knows the
        published result and its own part; a few hundred take minutes
    entropy: randomness other than the operating system's, to make an audit repeatable
    progress: called with the number of runs done
    returns: whether the claim was refuted, for which adversary, and which claims such an audit
        could refute

    >>> fc.audit(fc.GRR(items=4, epsilon=1.0), runs=2000, entropy=fc.SeededStream(1)).refuted
    False
    """
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(
            "audit takes a mechanism with its parameters, as in "
            "fc.audit(fc.Laplace(items=3, epsilon=1.0)), not "
            f"{describe_value(mechanism)}"
        )
    confidence = check_fraction("confidence", confidence)
    if epsilon is None:
        epsilon = mechanism.promise[0]
    if epsilon is None:
        raise ParameterError("give epsilon= and delta=, the claim to be tested")
    claimed = check_epsilon(epsilon)
    # A mechanism that was built for an epsilon says nothing of its own about another one.
    if delta is None and mechanism.promise[0] not in (None, claimed):
        delta = 0.0
    if delta is not None and not 0 <= check_real("delta", delta) <= 1:
        raise ParameterError(f"delta must lie in [0, 1], not {delta:g}")
    played = _find_adversaries(mechanism, adversary)
    pairs = [mechanism.worst_pair(claimed, against) for against in played]
    if runs is None:
        runs = default_runs(pairs[0], through)
    runs = check_integer("runs", runs, least=100)

    run_surveys: RunSurveys = _run_devices
    batch = BATCH
    if through != DEVICES:
        # Most of the protocol: loaded only when it is played.
        from faircount.auditing.surveys import make_survey_runner

        run_surveys = make_survey_runner(through, claimed)
        batch = SURVEY_BATCH
    source = SystemEntropy() if entropy is None else entropy
    surveys = _Surveys(_group_pairs(pairs), run_surveys, source, progress, batch)
    claims = [_find_claims(pair, claimed, delta) for pair in surveys.pairs]
    stages = _plan_stages(runs)
    done, findings = _look_in_stages(surveys, claims, stages, confidence)
    # What the audit can refute is said for its last look, which it may not have come to.
    sure = _share_confidence(confidence, stages[-1][1], len(pairs))
    verdicts = tuple(
        Verdict(played[pair.adversary], found, _find_power(pair, tested, runs, sure))
        for pair, tested, found in zip(surveys.pairs, claims, findings, strict=True)
    )
    return AuditReport(mechanism.name, done, runs, confidence, verdicts, through)


def default_runs(pair: WorstPair, through: str = DEVICES) -> int:
    """As many runs as take seconds, or a minute if they are whole surveys."""
    if through != DEVICES:
        return WHOLE_SURVEYS
    if not pair.mechanism.has_fast_simulation:
        return LEAST_RUNS
    work = pair.first.size * pair.mechanism.simulation_cost
    return max(LEAST_RUNS, min(MAX_RUNS, QUICK_RESPONSES // work))


def _plan_stages(runs: int) -> tuple[tuple[int, float], ...]:
    """After how many runs the audit looks, and which share of the error each look has."""
    early = int(EARLY_RUNS * runs)
    if early < LEAST_EARLY_RUNS:
        return ((runs, 1.0),)
    return ((early, EARLY_ERROR), (runs, 1 - EARLY_ERROR))


def _look_in_stages(
    surveys: "_Surveys",
    claims: list[tuple[Claim, ...]],
    stages: tuple[tuple[int, float], ...],
    confidence: float,
) -> tuple[int, list[tuple[Finding, ...]]]:
    """Run and look until a claim is refuted; return how many runs that took, and the findings."""
    runs = 0
    findings: list[tuple[Finding, ...]] = []
    for runs, share in stages:
        sure = _share_confidence(confidence, share, len(claims))
        findings = [
            find_bounds(*_compute_statistics(pair, *views), tested, sure)
            for pair, tested, views in zip(
                surveys.pairs, claims, surveys.run_until(runs), strict=True
            )
        ]
        if any(finding.refuted for finding in chain.from_iterable(findings)):
            break
    return runs, findings


def _share_confidence(confidence: float, share: float, adversaries: int) -> float:
    """The confidence of one look at one adversary's view, from that of the whole audit.

    Each of them has a part of the allowed error, so that all are right with this confidence.
    """
    return 1 - (1 - confidence) * share / adversaries


def _find_adversaries(
    mechanism: Mechanism, adversary: Adversary | None
) -> dict[Adversary, tuple[Adversary, ...]]:
    """Whom to play, and for each all adversaries who see the same; the default one first."""
    named = [mechanism.default_adversary, *mechanism.adversaries]
    if adversary is not None:
        named = [mechanism.check_adversary(adversary)]
    elif mechanism.default_adversary not in mechanism.adversaries:
        named = list(mechanism.adversaries)
    played: dict[Adversary, tuple[Adversary, ...]] = {}
    for known in dict.fromkeys(named):
        same = mechanism.same_view(known)
        played[same] = (*played.get(same, ()), known)
    return played


def _group_pairs(pairs: Iterable[WorstPair]) -> list[list[WorstPair]]:
    """Pairs that are the same surveys together: they run once, and each adversary looks."""
    groups: list[list[WorstPair]] = []
    for pair in pairs:
        for group in groups:
            if pair.is_played_with(group[0]):
                group.append(pair)
                break
        else:
            groups.append([pair])
    return groups


def _find_claims(pair: WorstPair, epsilon: float, delta: float | None) -> tuple[Claim, ...]:
    """The claim against this adversary, then points of the mechanism's own guarantee.

    There are no further points for a claim with a delta of its own.
    """
    if delta is not None:
        return (Claim(epsilon, float(delta)),)
    points = [epsilon]
    for reached in _CURVE:
        point = _find_loss(pair, reached, epsilon)
        if all(abs(point - other) > _SAME_POINT * max(point, other) for other in points):
            points.append(point)
    stated = (pair.stated_by.guarantee(epsilon=point, adversary=pair.adversary) for point in points)
    return tuple(Claim(guarantee.epsilon, guarantee.delta) for guarantee in stated)


def _find_loss(pair: WorstPair, reached: float, most: float) -> float:
    """The largest loss, up to `most`, that is reached with at least this probability."""
    least = 1e-3 * most

    def is_reached(loss: float) -> bool:
        return pair.tail_probabilities(loss)[0] >= reached

    return last_float(is_reached, least, most, least) if is_reached(least) else most


def _find_power(
    pair: WorstPair, claims: tuple[Claim, ...], runs: int, confidence: float
) -> float | None:
    """The largest epsilon that the first claim's events refute with probability 95%."""
    claim = claims[0]
    sure = 1 - (1 - confidence) * claim_shares(len(claims))[0]
    return refutable(pair.tail_probabilities, claim.delta, runs, sure, most=2 * claim.epsilon + 1)


class _Surveys:
    """Runs on both data sets of every pair, which can be continued.

    groups: pairs that are the same surveys; they run once, and each adversary looks
    batch: number of responses that are made at a time
    """

    def __init__(
        self,
        groups: list[list[WorstPair]],
        run_surveys: RunSurveys,
        entropy: Entropy,
        progress: Progress | None,
        batch: int,
    ) -> None:
        self.pairs = list(chain.from_iterable(groups))
        self._groups = groups
        self._run_surveys = run_surveys
        self._entropy = entropy
        self._progress = progress
        self._done = 0
        self._batch = batch
        self._finished = 0
        self._views: list[list[list[Ints]]] = [[[], []] for _ in self.pairs]

    def run_until(self, runs: int) -> list[tuple[Ints, Ints]]:
        """Go on until so many runs were made, and return the views of every pair on both sets."""
        for group in self._groups:
            kept = [self._views[self.pairs.index(pair)] for pair in group]
            for side, answers in enumerate((group[0].first, group[0].second)):
                for views in self._run_batches(group, answers, runs):
                    for sides, seen in zip(kept, views, strict=True):
                        sides[side].append(seen)
        self._done = runs
        return [(np.concatenate(sides[0]), np.concatenate(sides[1])) for sides in self._views]

    def _run_batches(
        self, group: list[WorstPair], answers: NDArray[Any], runs: int
    ) -> Iterator[list[Ints]]:
        """Every adversary's view of the runs that are missing, a batch of them at a time."""
        batch = max(1, self._batch // answers.size)
        # Every group runs on two data sets, and progress counts runs on all of them.
        passes = 2 * len(self._groups)
        for start in range(self._done, runs, batch):
            stop = min(start + batch, runs)
            yield self._run_surveys(group, answers, stop - start, self._entropy)
            self._finished += stop - start
            if self._progress is not None:
                self._progress(self._finished // passes)


def _run_devices(
    pairs: list[WorstPair], answers: NDArray[Any], copies: int, entropy: Entropy
) -> list[Ints]:
    adversaries = [pair.adversary for pair in pairs]
    return pairs[0].mechanism.simulate_views(answers, copies, adversaries, entropy)


def _compute_statistics(pair: WorstPair, first: Ints, second: Ints) -> tuple[Floats, Floats]:
    """One row of statistics per run on either data set, from which an event is chosen.

    The likelihood ratio of the exact distributions comes first. Simpler and learned statistics
    follow, because faulty code does not follow those distributions.
    """
    columns = pair.columns(first).astype(np.float64), pair.columns(second).astype(np.float64)
    combined = learn_combination(*columns)
    # Among all columns, the first two tell most: the sums that the adversary is left with.
    learned = [
        learn_log_ratio(*(rows[:, :2] @ _AS_ONE[: rows.shape[1]] for rows in columns)),
        learn_log_ratio(*combined),
    ]
    centres = learn_centres(columns[0])
    tables = []
    for side, views in enumerate((first, second)):
        ratio = pair.log_ratio(views)
        table = [ratio, -ratio, combined[side], -combined[side]]
        table += [ratios[side] for ratios in learned]
        table += _simple_statistics(columns[side], centres)
        tables.append(np.stack(table, axis=1))
    return tables[0], tables[1]


def _simple_statistics(columns: Floats, centres: Floats) -> list[Floats]:
    """The numbers themselves and, of the first two, "more of the first, less of the second"."""
    table = list(columns.T)
    if columns.shape[1] > 1:
        first = columns[:, 0] - centres[0]
        second = columns[:, 1] - centres[1]
        table += [first - second, np.minimum(first, -second)]
    return table
