"""Audit: run a mechanism's own `respond` on the worst neighbouring pair and see whether the claim survives.

Only the published sum is looked at, by somebody who knows everything but one user's answer (and, for noise mechanisms,
the insiders' noise). An audit can refute a claim; it cannot prove one.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.auditing.statistics import Finding, find
from faircount.core import plain
from faircount.core.arrays import Floats
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ParameterError
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import fraction, integer, real
from faircount.mechanisms.base import Mechanism
from faircount.mechanisms.local_frequency import LocalFrequency
from faircount.mechanisms.local_mean import LocalMean
from faircount.mechanisms.sampling import Sampling
from faircount.mechanisms.secret_shared import NoiseMechanism, SharedMechanism
from faircount.mechanisms.two_stage import TSS

Progress = Callable[[int], None]

BATCH = 500_000  # responses made at a time
PILOT = 200  # runs that only say where the sums usually lie
NOISE_USERS = 12  # users of the audited run where the mechanism does not name a number: fewer are faster, and no easier


@dataclass(frozen=True, slots=True, repr=False)
class AuditReport:
    """Claim, measurement and verdict.

    mechanism:      name of the mechanism
    epsilon, delta: the claim that was tested
    runs:           runs on each of the two data sets
    confidence:     a sound claim survives with at least this probability
    finding:        the event that was chosen, and how often it happened
    """

    mechanism: str
    epsilon: float
    delta: float
    runs: int
    confidence: float
    finding: Finding

    @property
    def lower_bound(self) -> float:
        """With the stated confidence the true epsilon at `delta` is at least this."""
        return self.finding.epsilon

    @property
    def refuted(self) -> bool:
        """Whether the claim is wrong at the stated confidence."""
        return self.lower_bound > self.epsilon

    @property
    def detectable(self) -> float:
        """The smallest true epsilon that these runs would have exposed, by the event they used."""
        return self.finding.detectable(self.epsilon)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            **plain.JSON_VERSION,
            "mechanism": self.mechanism,
            "claim": {"epsilon": self.epsilon, "delta": self.delta},
            "refuted": self.refuted,
            "lower_bound": self.lower_bound,
            "detectable": self.detectable if math.isfinite(self.detectable) else None,
            "runs": self.runs,
            "confidence": self.confidence,
        }

    def to_frame(self) -> Any:
        """A pandas DataFrame of one row; its `attrs` hold what `to_dict` says."""
        columns = {"epsilon": [self.epsilon], "delta": [self.delta], "lower_bound": [self.lower_bound]}
        columns |= {"detectable": [self.detectable], "refuted": [self.refuted]}
        return plain.frame(columns, [self.mechanism], "mechanism", self.to_dict())

    def _repr_html_(self) -> str:
        return plain.paragraph(self, strong=self.refuted)

    def __repr__(self) -> str:
        return f"<AuditReport: {self}>"

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        return (
            f"{self.mechanism}: claim ({self.epsilon:g}, {self.delta:g})-DP is {verdict}; epsilon is at least "
            f"{self.lower_bound:.4g} with confidence {self.confidence:g} from {self.runs} runs on each of two data "
            f"sets; a true epsilon of {self.detectable:.4g} or more would have shown"
        )


def audit(
    mechanism: Mechanism,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    runs: int = 20_000,
    confidence: float = 0.999,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> AuditReport:
    """Run a mechanism's own code on two neighbouring data sets and test a claim about it.

    mechanism: what is audited
    epsilon, delta: the claim; by default the mechanism's own guarantee
    runs: made on each of the two data sets
    confidence: a sound claim is refuted with probability at most 1 - confidence
    entropy: randomness other than the operating system's, to make an audit repeatable
    progress: told the number of runs done
    """
    integer("runs", runs, least=100)
    confidence = fraction("confidence", confidence)
    asked = mechanism.promise[0] if epsilon is None else epsilon
    if asked is None:
        raise ParameterError("give epsilon= and delta=, the claim to be tested")
    claimed = checked_epsilon(asked)
    world = _World.of(mechanism, claimed)
    if delta is None:
        made = mechanism if isinstance(mechanism, Sampling) else world.mechanism
        delta = made.guarantee(epsilon=claimed, adversary=made.default_adversary).delta
    if not 0 <= real("delta", delta) <= 1:
        raise ParameterError(f"delta must lie in [0, 1], not {delta:g}")
    source = SystemEntropy() if entropy is None else entropy
    world = world.centred(source)
    first, second = (world.statistics(which, runs, source, progress) for which in (False, True))
    finding = find(first, second, float(delta), confidence)
    return AuditReport(mechanism.name, claimed, float(delta), runs, confidence, finding)


@dataclass(frozen=True, slots=True)
class _World:
    """A mechanism made small, and two vectors of answers that differ in the last user."""

    mechanism: Mechanism
    first: NDArray[Any]
    second: NDArray[Any]
    known: int = 0  # the first users are insiders: what they sent is taken off
    centre: tuple[float, float] = (0.0, 0.0)  # where the two sums usually lie in the first world

    @classmethod
    def of(cls, mechanism: Mechanism, epsilon: float) -> "_World":
        """The worst neighbouring pair for this family of mechanisms."""
        if isinstance(mechanism, LocalMean):
            return cls(replace(mechanism, users=1), np.array([1.0]), np.array([-1.0]))
        if isinstance(mechanism, LocalFrequency):
            return cls(replace(mechanism, users=1), np.array([0]), np.array([1]))
        if isinstance(mechanism, Sampling):
            return cls._sampling(mechanism, epsilon)
        if isinstance(mechanism, NoiseMechanism):
            return cls._noise(mechanism)
        raise ParameterError(f"{mechanism.name} cannot be audited")

    @classmethod
    def _sampling(cls, mechanism: Sampling, epsilon: float) -> "_World":
        """(k+1, k) against (k, k+1) holders; users of other items would change nothing in these two sums.

        With two items alone all users hold one or the other, and the claim may speak of such data sets only.
        """
        others = np.repeat([0, 1], mechanism.worst_crowds(mechanism.default_adversary, epsilon))
        if isinstance(mechanism, TSS):  # its sets are drawn among all items; TSS' differs in the helpers alone
            same = {each.name: getattr(mechanism, each.name) for each in fields(TSS)}
            small: Sampling = TSS(**same | {"users": None, "floor": 0})
        else:
            small = replace(mechanism, users=None, floor=0, items=mechanism.domain.labels[:2])
        return cls(small, np.append(others, 0), np.append(others, 1))

    @classmethod
    def _noise(cls, mechanism: NoiseMechanism) -> "_World":
        """Any data will do: the others hold item 0; the insiders come first, where the most coins are."""
        n = mechanism.users or NOISE_USERS + mechanism.insiders + mechanism.dropouts
        small = replace(mechanism, users=n, items=mechanism.domain.labels[:2])
        others = np.zeros(n - 1, dtype=np.int64)
        return cls(small, np.append(others, 0), np.append(others, 1), mechanism.default_adversary.insiders)

    def centred(self, entropy: Entropy) -> "_World":
        """With the centre seen in a few extra runs, so that "more than usual here, less there" is an event."""
        pilot = self._batch(self.first, PILOT, entropy)
        if pilot.shape[1] == 1:
            return self
        return replace(self, centre=(float(np.median(pilot[:, 1])), float(np.median(-pilot[:, 2]))))

    def statistics(self, swapped: bool, runs: int, entropy: Entropy, progress: Progress | None) -> Floats:
        """One row per run: what the adversary compares."""
        answers = self.second if swapped else self.first
        batch = max(1, BATCH // answers.size)
        rows = []
        for start in range(0, runs, batch):
            rows.append(self._batch(answers, min(batch, runs - start), entropy))
            if progress is not None:
                progress(min(start + batch, runs))
        return np.concatenate(rows)

    def _batch(self, answers: NDArray[Any], runs: int, entropy: Entropy) -> Floats:
        """Many runs in one call of the users' own code: each row is one user of one run."""
        tiled = np.tile(answers, runs)
        if isinstance(self.mechanism, SharedMechanism):
            places = np.tile(np.arange(answers.size), runs)
            rows = self.mechanism.contribute(tiled, places, entropy)[:, :2].reshape(runs, answers.size, 2)
            return self._compare(rows[:, self.known :].sum(axis=1, dtype=np.float64))
        responses = replace(self.mechanism, users=tiled.size).respond(tiled, entropy)
        if isinstance(self.mechanism, LocalMean):
            return np.asarray(responses, dtype=np.float64).reshape(runs, 1)
        bits = responses.bits if isinstance(self.mechanism, TSS) else responses
        if bits.ndim == 1:  # positions, -1 for nothing: DPCS and GRR
            bits = np.stack([bits == 0, bits == 1], axis=1)
        return self._compare(bits[:, :2].reshape(runs, answers.size, 2).sum(axis=1, dtype=np.float64))

    def _compare(self, sums: Floats) -> Floats:
        """Statistics an adversary may threshold: the difference, each side alone, both at once, the likelihood."""
        first, second = sums[:, 0], sums[:, 1]
        columns = [first - second, first, -second]
        if isinstance(self.mechanism, Sampling):
            most, most_too = (self.first == 0).sum(), (self.second == 1).sum()  # a + 1 and b + 1 holders
            with np.errstate(divide="ignore"):  # likelihood ratio (b + 1 - s_2) / (a + 1 - s_1), up to a constant
                columns.append(np.log(most_too - second) - np.log(most - first))
        else:
            columns.append(np.minimum(first - self.centre[0], self.centre[1] - second))
        return np.nan_to_num(np.stack(columns, axis=1))  # both sides impossible at once: no information
