"""Audit a mechanism: run its own code on the worst neighbouring pair and test its privacy claim.

The adversary knows everything but one user's answer and, for noise mechanisms, also what the
insiders sent. By default the audit looks at what leaves the devices, the output of `respond`;
alternatively it runs whole surveys with every message of the protocol and looks at the published
results. An audit can refute a claim; it cannot prove one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from faircount.accounting.guarantee import format_delta
from faircount.auditing.statistics import CHANCE, Finding, bound_from_runs, refutable
from faircount.core import plain
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.figures import create_axes
from faircount.core.validation import check_epsilon, check_fraction, check_integer, check_real
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.secret_shared import as_field_mechanism
from faircount.mechanisms.worst_pair import WorstPair

Progress = Callable[[int], None]

# The default view: what `respond` makes of the answers, without a protocol.
DEVICES = "devices"

# Responses that are made at a time, which bounds the memory.
BATCH = 50_000

# Default number of runs where many surveys can be made in one call. It suffices, for example, to
# detect sampling with two coins instead of one.
MOST_RUNS = 200_000

# With many users there are fewer runs, so that all runs together have about this many responses.
QUICK_RESPONSES = 5 * 10**7

# Default number of runs where there are many users, or where surveys are made one by one.
LEAST_RUNS = 20_000

# Default number of runs where every message of a survey is sent.
WHOLE_SURVEYS = 200

RunSurveys = Callable[[WorstPair, Ints, int, Entropy], Ints]


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """Claim, measurement and verdict.

    mechanism:      name of the mechanism
    epsilon, delta: the claim that was tested
    runs:           runs on each of the two data sets
    confidence:     a sound claim survives with at least this probability
    finding:        what the runs showed
    refutable:      the largest epsilon that such an audit refutes with probability 95% if the
                    mechanism follows its own distributions; None if there is none above 0
    through:        what was looked at: "devices", or whole surveys of a topology
    """

    mechanism: str
    epsilon: float
    delta: float
    runs: int
    confidence: float
    finding: Finding
    refutable: float | None
    through: str = DEVICES

    @property
    def lower_bound(self) -> float:
        """With the stated confidence the true epsilon at `delta` is at least this."""
        return self.finding.epsilon

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong at the stated confidence."""
        return self.lower_bound > self.epsilon

    @property
    def verdict(self) -> str:
        """`REFUTED` or `not refuted`."""
        return "REFUTED" if self.refuted else "not refuted"

    @property
    def power(self) -> str:
        """A phrase that says which claims such an audit would refute."""
        if self.refutable is None:
            return "no claim about this mechanism for sure: make more runs"
        return (
            f"a claim of epsilon {self.refutable:.4g} or less about this mechanism, with "
            f"probability {CHANCE:.0%}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **plain.JSON_VERSION,
            "mechanism": self.mechanism,
            "claim": {"epsilon": self.epsilon, "delta": self.delta},
            "refuted": self.refuted,
            "lower_bound": self.lower_bound,
            "refutable": {"epsilon": self.refutable, "probability": CHANCE},
            "through": self.through,
            "runs": self.runs,
            "confidence": self.confidence,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame of one row; its `attrs` hold what `to_dict` returns."""
        names = ("epsilon", "delta", "lower_bound", "refutable", "refuted")
        columns = {name: [getattr(self, name)] for name in names}
        return plain.data_frame(columns, [self.mechanism], "mechanism", self.to_dict())

    def plot(self, *, ax: Any = None) -> Any:
        """Draw claimed and measured epsilon on matplotlib axes, and return the axes.

        A claim that lies left of the bar's end is refuted.
        """
        target = create_axes(7, 1.8) if ax is None else ax
        colour = "#c8553d" if self.refuted else "#8fb8ad"
        target.barh([0], [max(self.lower_bound, 0.0)], color=colour, height=0.5)
        target.axvline(self.epsilon, color="black", lw=1.4)
        target.annotate(
            "claim",
            (self.epsilon, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            size=8,
        )
        target.set_yticks([0], [self.mechanism])
        target.set_xlim(0, 1.15 * max(self.epsilon, self.lower_bound, 1e-9))
        target.set_xlabel(
            "epsilon: the true one is at least as large as the bar, with confidence "
            f"{self.confidence:g}"
        )
        target.set_title(self.verdict, size=10, loc="left")
        target.spines[["top", "right"]].set_visible(False)
        return target

    def _repr_html_(self) -> str:
        return plain.html_paragraph(self, strong=self.refuted)

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        delta = format_delta(self.delta)
        return (
            f"{self.mechanism}: claim ({self.epsilon:g}, {delta})-DP is {self.verdict}; epsilon is "
            f"at least {self.lower_bound:.4g} with confidence {self.confidence:g} from {self.runs} "
            f"runs on each of two data sets; such an audit refutes {self.power}"
        )


def audit(
    mechanism: Mechanism,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    runs: int | None = None,
    confidence: float = 0.999,
    through: str = DEVICES,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Test a privacy claim by running a mechanism's own code on two neighbouring data sets.

    mechanism: the mechanism to audit
    epsilon, delta: the claim; by default the mechanism's own guarantee
    runs: number of runs on each of the two data sets; by default as many as take seconds (see
        `default_runs`); the report says which claims so many runs can refute
    confidence: a sound claim is refuted with probability at most 1 - confidence
    through: "devices", or the topology of whole surveys ("servers", "explicit", "masked",
        "two-stage"): each run is then a survey with every message, of which only the published
        result is looked at; a few hundred take minutes
    entropy: randomness other than the operating system's, to make an audit repeatable
    progress: called with the number of runs done
    returns: whether the claim was refuted, and which claims such an audit could refute

    >>> fc.audit(fc.GRR(items=4, epsilon=1.0), runs=2000, entropy=fc.SeededStream(1)).refuted
    False
    """
    confidence = check_fraction("confidence", confidence)
    if epsilon is None:
        epsilon = mechanism.promise[0]
    if epsilon is None:
        raise ParameterError("give epsilon= and delta=, the claim to be tested")
    claimed = check_epsilon(epsilon)
    pair = mechanism.worst_pair(claimed, reader=through != DEVICES)
    if delta is None:
        own = pair.stated_by.guarantee(epsilon=claimed, adversary=mechanism.default_adversary)
        delta = own.delta
    allowed = float(check_real("delta", delta))
    if not 0 <= allowed <= 1:
        raise ParameterError(f"delta must lie in [0, 1], not {allowed:g}")
    if runs is None:
        runs = default_runs(pair, through)
    runs = check_integer("runs", runs, least=100)

    source = SystemEntropy() if entropy is None else entropy
    run_surveys: RunSurveys = _run_devices
    if through != DEVICES:
        run_surveys = _make_protocol_runner(through, claimed)
    first = _run_in_batches(pair, pair.first, runs, run_surveys, source, progress)
    second = _run_in_batches(pair, pair.second, runs, run_surveys, source, progress)
    finding = bound_from_runs(
        _statistics(pair, first), _statistics(pair, second), allowed, confidence, claimed
    )
    power = refutable(pair.tail_probabilities, allowed, runs, confidence, most=2 * claimed + 1)
    return AuditReport(mechanism.name, claimed, allowed, runs, confidence, finding, power, through)


def default_runs(pair: WorstPair, through: str = DEVICES) -> int:
    """As many runs as take seconds, or a minute if they are whole surveys."""
    if through != DEVICES:
        return WHOLE_SURVEYS
    if not pair.mechanism.has_fast_simulation:
        return LEAST_RUNS
    return max(LEAST_RUNS, min(MOST_RUNS, QUICK_RESPONSES // pair.first.size))


def _run_in_batches(
    pair: WorstPair,
    answers: Ints,
    runs: int,
    run_surveys: RunSurveys,
    entropy: Entropy,
    progress: Progress | None,
) -> Ints:
    """The adversary's view of so many surveys with these answers, one row each."""
    batch = max(1, BATCH // answers.size)
    views = []
    for start in range(0, runs, batch):
        views.append(run_surveys(pair, answers, min(batch, runs - start), entropy))
        if progress is not None:
            progress(min(start + batch, runs))
    return np.concatenate(views)


def _run_devices(pair: WorstPair, answers: Ints, copies: int, entropy: Entropy) -> Ints:
    return pair.mechanism.simulate_views(answers, copies, pair.insiders, entropy)


def _make_protocol_runner(name: str, epsilon: float) -> RunSurveys:
    """A function that runs whole surveys and returns their published counts."""
    # Most of the protocol: loaded only when it is played.
    from faircount.protocol import topology_named
    from faircount.protocol.simulator import play

    topology = topology_named(name)

    def run_surveys(pair: WorstPair, answers: Ints, copies: int, entropy: Entropy) -> Ints:
        mechanism = as_field_mechanism(pair.mechanism)
        published = mechanism.promise[0]
        if published is None:
            published = epsilon
        counts = []
        for _ in range(copies):
            result = play(answers, mechanism, topology, entropy=entropy, epsilon=published)
            counts.append(result.aggregate)
        # The worst pair differs in two items. Noise in steps of a fraction becomes whole numbers.
        steps = np.array(counts)[:, :2] * mechanism.steps_per_count
        return np.asarray(np.rint(steps), dtype=np.int64)

    return run_surveys


def _statistics(pair: WorstPair, views: Ints) -> Floats:
    """One row of statistics per run, from which an event is chosen.

    The likelihood ratio of the exact distributions comes first. Simpler statistics follow, because
    faulty code does not follow those distributions: the numbers themselves and, where there are
    two, their difference and "more than usual of the first, less of the second".
    """
    ratio = pair.log_ratio(views)
    columns = [ratio, -ratio, *views.T.astype(np.float64)]
    if len(pair.marginals) == 2:
        first = views[:, 0] - pair.marginals[0].centre
        second = views[:, 1] - pair.marginals[1].centre
        columns += [first - second, np.minimum(first, -second)]
    return np.stack(columns, axis=1)
