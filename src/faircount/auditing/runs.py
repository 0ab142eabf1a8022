"""Audit: run a mechanism's own `respond` on the worst neighbouring pair and see whether the claim survives.

What leaves the devices is looked at, by somebody who knows everything but one user's answer (and, for noise mechanisms,
what the insiders sent); or, at choice, the published result of whole surveys, with every message of the protocol. An
audit can refute a claim; it cannot prove one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from faircount.accounting.guarantee import delta_in_words
from faircount.auditing.statistics import CHANCE, Finding, find, refutable
from faircount.core import plain
from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import fraction, integer, real
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.secret_shared import makes_shares
from faircount.mechanisms.worst_pair import WorstPair

Progress = Callable[[int], None]

DEVICES = "devices"
"""The default: what `respond` makes of the answers is looked at, without a protocol."""

BATCH = 50_000  # responses made at a time

MOST_RUNS = 200_000
"""By default, where many surveys are made in one call: sampling with doubled coins, for one, is then found."""

QUICK_RESPONSES = 5 * 10**7
"""Users of all these runs together: with many users there are fewer runs."""

LEAST_RUNS = 20_000
"""By default, where there are many users, or surveys are made one by one."""

WHOLE_SURVEYS = 200
"""By default, where every message of a survey is sent."""


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """Claim, measurement and verdict.

    mechanism:      name of the mechanism
    epsilon, delta: the claim that was tested
    runs:           runs on each of the two data sets
    confidence:     a sound claim survives with at least this probability
    finding:        what the runs showed
    refutable:      the largest epsilon that such an audit refutes with probability 95% if the mechanism follows its own
                    laws; None if there is none above 0
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
    def power(self) -> str:
        """What such an audit can see, in words."""
        if self.refutable is None:
            return "no claim about this mechanism for sure: make more runs"
        return f"a claim of epsilon {self.refutable:.4g} or less about this mechanism, with probability {CHANCE:.0%}"

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
        """A pandas DataFrame of one row; its `attrs` hold what `to_dict` says."""
        names = ("epsilon", "delta", "lower_bound", "refutable", "refuted")
        columns = {name: [getattr(self, name)] for name in names}
        return plain.frame(columns, [self.mechanism], "mechanism", self.to_dict())

    def plot(self, *, ax: Any = None) -> Any:
        """Claimed and measured epsilon on matplotlib axes: those given, or new ones, which are returned."""
        from faircount.auditing.drawing import audit_axes

        return audit_axes(self.mechanism, self.epsilon, self.lower_bound, self.confidence, ax)

    def _repr_html_(self) -> str:
        return plain.paragraph(self, strong=self.refuted)

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        verdict, delta = "REFUTED" if self.refuted else "not refuted", delta_in_words(self.delta)
        return (
            f"{self.mechanism}: claim ({self.epsilon:g}, {delta})-DP is {verdict}; epsilon is at least "
            f"{self.lower_bound:.4g} with confidence {self.confidence:g} from {self.runs} runs on each of two data "
            f"sets; such an audit refutes {self.power}"
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
    """Run a mechanism's own code on two neighbouring data sets and test a claim about it.

    mechanism: what is audited
    epsilon, delta: the claim; by default the mechanism's own guarantee
    runs: made on each of the two data sets; by default what takes seconds, `default_runs`: the report says what so
        many can refute
    confidence: a sound claim is refuted with probability at most 1 - confidence
    through: "devices", or the topology of whole surveys ("servers", "explicit", "masked", "two-stage"): each run is
        then a survey with every message, of which only the published result is looked at; a few hundred take minutes
    entropy: randomness other than the operating system's, to make an audit repeatable
    progress: told the number of runs done
    """
    confidence = fraction("confidence", confidence)
    asked = mechanism.promise[0] if epsilon is None else epsilon
    if asked is None:
        raise ParameterError("give epsilon= and delta=, the claim to be tested")
    claimed = checked_epsilon(asked)
    pair = mechanism.worst_pair(claimed, reader=through != DEVICES)
    if delta is None:
        delta = pair.stated_by.guarantee(epsilon=claimed, adversary=mechanism.default_adversary).delta
    allowed = float(real("delta", delta))
    made = default_runs(pair, through) if runs is None else integer("runs", runs, least=100)
    if not 0 <= allowed <= 1:
        raise ParameterError(f"delta must lie in [0, 1], not {allowed:g}")
    source = SystemEntropy() if entropy is None else entropy
    make = _respond if through == DEVICES else _survey(through, claimed)
    first, second = (
        _statistics(pair, _many(pair, answers, made, make, source, progress)) for answers in (pair.first, pair.second)
    )
    finding = find(first, second, allowed, confidence, claimed)
    sees = refutable(pair.chances, allowed, made, confidence, most=2 * claimed + 1)
    return AuditReport(mechanism.name, claimed, allowed, made, confidence, finding, sees, through)


def default_runs(pair: WorstPair, through: str = DEVICES) -> int:
    """As many runs as take seconds; of whole surveys as take a minute."""
    if through != DEVICES:
        return WHOLE_SURVEYS
    quick = min(MOST_RUNS, QUICK_RESPONSES // pair.first.size) if pair.mechanism.observed_quickly else 0
    return max(quick, LEAST_RUNS)


Runs = Callable[[WorstPair, Ints, int, Entropy], Ints]
"""Makes so many runs with these answers; one row for each, of what the adversary sees."""


def _many(pair: WorstPair, answers: Ints, runs: int, make: Runs, entropy: Entropy, progress: Progress | None) -> Ints:
    batch, rows = max(1, BATCH // answers.size), []
    for start in range(0, runs, batch):
        rows.append(make(pair, answers, min(batch, runs - start), entropy))
        if progress is not None:
            progress(min(start + batch, runs))
    return np.concatenate(rows)


def _respond(pair: WorstPair, answers: Ints, copies: int, entropy: Entropy) -> Ints:
    return pair.mechanism.observed(answers, copies, pair.insiders, entropy)


def _survey(name: str, epsilon: float) -> Runs:
    """Whole surveys; what is seen of each are the published counts."""
    from faircount.protocol import topology_named  # most of the protocol: loaded when it is played
    from faircount.protocol.play import play

    topology = topology_named(name)

    def make(pair: WorstPair, answers: Ints, copies: int, entropy: Entropy) -> Ints:
        made = makes_shares(pair.mechanism)
        at = epsilon if made.promise[0] is None else made.promise[0]
        counts = [play(answers, made, topology, entropy=entropy, epsilon=at).aggregate for _ in range(copies)]
        return np.asarray(np.rint(np.array(counts)[:, :2] * made.steps_per_count), dtype=np.int64)

    return make


def _statistics(pair: WorstPair, seen: Ints) -> Floats:
    """One row per run: the likelihood ratio of the exact laws, and plainer ones in case the code follows others.

    Those are each number alone and, where there are two, their difference and "more than usual here, less there".
    """
    ratio = pair.log_ratio(seen)
    columns = [ratio, -ratio, *seen.T.astype(np.float64)]
    if len(pair.law) == 2:
        first, second = (seen[:, j] - part.centre for j, part in enumerate(pair.law))
        columns += [first - second, np.minimum(first, -second)]
    return np.stack(columns, axis=1)
