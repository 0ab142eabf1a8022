"""What an analyst gets: estimates with intervals, and the guarantee under which they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.conditions import Condition, joint_condition
from faircount.accounting.guarantee import Guarantee, Void
from faircount.core import plain
from faircount.core.arrays import Floats, read_only
from faircount.estimation.intervals import Intervals, interval
from faircount.estimation.mean_intervals import reports_interval, two_point_interval
from faircount.estimation.presentation import REPETITION, SIMULATION, Frequencies
from faircount.estimation.record import SurveyRecord
from faircount.estimation.validity import ROWS_ASSUMPTION, Validity
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.count_distribution import Channel
from faircount.mechanisms.local_mean import LocalMean


def void_if(simulation: bool, guarantee: Guarantee) -> Guarantee:
    """Return the guarantee, marked as void if the randomness was seeded."""
    # Marked and not removed: a simulation should look like the real thing, and be recognized as
    # none wherever its guarantee is copied to.
    return replace(guarantee, void=Void.SEEDED) if simulation else guarantee


def add_conditions(guarantee: Guarantee, conditions: Sequence[Condition]) -> Guarantee:
    """The guarantee with further conditions."""
    return replace(guarantee, condition=joint_condition((guarantee.condition, *conditions)))


@dataclass(frozen=True, eq=False, repr=False)
class Result(Frequencies):
    """Estimated frequencies of the items among the `included` users.

    mechanism:   the mechanism that ran, bound to its number of users
    aggregate:   the decoded sums, one number per item
    included:    number of users in the sums
    facts:       about the run, such as topology, share holders, modulus, whether it is a simulation
    conditions:  what the guarantee requires of how the answers were collected

    >>> result = fc.run(["yes"] * 60 + ["no"] * 40, fc.Laplace(items=["yes", "no"], epsilon=1.0))
    >>> result.estimates.shape
    (2,)
    """

    mechanism: FrequencyMechanism
    aggregate: NDArray[Any]
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "aggregate", read_only(self.aggregate))

    @property
    def name(self) -> str:
        """Name of the mechanism."""
        return self.mechanism.name

    @property
    def topology(self) -> str | None:
        """How the shares travelled; None where there were none."""
        topology = self.facts.get("topology")
        return None if topology is None else str(topology)

    def _describe_route(self) -> str:
        # Nobody should believe that two servers have kept the answers of a table apart.
        where = " played in this process" if self.facts.get("played_here") else ""
        return f"{super()._describe_route()}{where}"

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's.

        Then nobody is protected, whatever is guaranteed.
        """
        return bool(self.facts.get("simulation"))

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports, where they travelled between clients and servers."""
        validity = self.facts.get("validity")
        return validity if isinstance(validity, Validity) else None

    @property
    def record(self) -> SurveyRecord | None:
        """The survey that the result is about; None where there was none."""
        record = self.facts.get("record")
        return record if isinstance(record, SurveyRecord) else None

    @cached_property
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""
        return self.mechanism.domain.labels

    @property
    def channel(self) -> Channel:
        """The distribution of the sums, for those who are in them and not for those planned for."""
        return self.mechanism.channel(self.included)

    @cached_property
    def estimates(self) -> Floats:
        """Unbiased frequencies; single ones may be negative: see `consistent`.

        Where noise was added to all items they sum to one, because it is known how many users were
        counted. See `raw` for estimates that do not use this.
        """
        return read_only(self.mechanism.estimate(self.aggregate, self.included))

    @cached_property
    def raw(self) -> Floats:
        """Unbiased frequencies of every item by itself; they need not sum to one."""
        return read_only(self.mechanism.estimate(self.aggregate, self.included, raw=True))

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard errors of the estimates, from the privacy noise alone.

        Where they depend on how frequent an item is, the consistent frequency is taken for it.
        """
        # The variance of sampling depends on the frequency: at a negative estimate it would be
        # negative, so it is taken at the nearest possible frequencies.
        return read_only(np.sqrt(self.mechanism.variance(self.consistent, self.included)))

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first; missing users are accounted for."""
        stated = [
            # For those who are in the sums: whoever dropped out has taken a share of the noise
            # along.
            add_conditions(guarantee, self.conditions)
            for guarantee in self.mechanism.stated_guarantees(self.included)
        ]
        return tuple(void_if(self.simulation, guarantee) for guarantee in stated)

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees: what may be claimed without naming the adversary."""
        return self.guarantees[0]

    @property
    def requested(self) -> dict[str, float | None]:
        """The epsilon and delta that the mechanism was made for.

        The guarantee says what is really spent.
        """
        return dict(zip(("epsilon", "delta"), self.mechanism.promise, strict=True))

    def interval(
        self,
        confidence: float = 0.95,
        *,
        covers: str = "users",
        simultaneous: bool = False,
        raw: bool = False,
    ) -> Intervals:
        """Return confidence intervals of the frequencies.

        `covers="users"`: privacy noise only, the truth being what these users hold.
        `covers="population"`: also the random draw of these users from a larger population.
        `simultaneous`: all items are covered at once with probability `confidence`.
        `raw`: around the raw estimates, without using how many users were counted.
        """
        return interval(
            self.aggregate,
            self.channel,
            self.included,
            confidence=confidence,
            covers=covers,
            simultaneous=simultaneous,
            known_total=not raw,
        )


@dataclass(frozen=True, repr=False)
class MeanResult:
    """An estimated mean of values in [-1, 1].

    mechanism:   the mechanism that ran, bound to its number of users
    aggregate:   sums of the reports
    included:    number of users in the sums
    facts:       about the run, such as whether it is a simulation
    conditions: what the guarantee requires of how the answers were collected
    """

    mechanism: LocalMean
    aggregate: Any
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)
    conditions: tuple[Condition, ...] = ()

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's.

        Then nobody is protected, whatever is guaranteed.
        """
        return bool(self.facts.get("simulation"))

    @cached_property
    def estimate(self) -> float:
        """Unbiased estimate of the mean of these users' values."""
        return float(self.mechanism.estimate(self.aggregate, self.included))

    @property
    def guarantee(self) -> Guarantee:
        """Local differential privacy of every report."""
        stated = add_conditions(self.mechanism.stated_guarantees()[0], self.conditions)
        return void_if(self.simulation, stated)

    def interval(self, confidence: float = 0.95, *, covers: str = "users") -> tuple[float, float]:
        """Return the confidence interval of the mean.

        `covers="users"`: privacy noise only. `covers="population"`: also the draw of these users.
        Two-valued reports (Duchi) cannot tell the two apart; their exact interval serves for both.
        """
        magnitude = self.mechanism.report_magnitude
        # A report that is plus or minus one value is a coin: its sum has a binomial distribution,
        # which is inverted exactly.
        if magnitude is not None:
            return two_point_interval(
                self.estimate, magnitude, self.included, confidence=confidence
            )
        return reports_interval(
            self.mechanism, self.aggregate, self.included, confidence=confidence, covers=covers
        )

    def to_dict(self, confidence: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Return plain values for JSON."""
        low, high = self.interval(confidence, covers=covers)
        epsilon, delta = self.mechanism.promise
        return {
            **plain.JSON_VERSION,
            **({"simulation": True} if self.simulation else {}),
            "mechanism": self.mechanism.name,
            "users": self.included,
            "requested": {"epsilon": epsilon, "delta": delta},
            "confidence": confidence,
            "covers": covers,
            "mean": {"estimate": self.estimate, "low": low, "high": high},
            "guarantee": self.guarantee.to_dict(),
            "again": REPETITION,
            "assumption": ROWS_ASSUMPTION,
        }

    def to_frame(self, confidence: float = 0.95, *, covers: str = "users") -> Any:
        """Return a pandas DataFrame of one row; its `attrs` hold the guarantee."""
        low, high = self.interval(confidence, covers=covers)
        columns = {"estimate": [self.estimate], "low": [low], "high": [high]}
        attrs = {"guarantee": self.guarantee.to_dict(), "simulation": self.simulation}
        return plain.data_frame(columns, ["mean"], "quantity", attrs)

    def plot(self, confidence: float = 0.95, *, covers: str = "users", ax: Any = None) -> Any:
        """Draw the mean on matplotlib axes, new ones unless given, and return them."""
        from faircount.estimation.drawing import draw_mean

        return draw_mean(self, confidence, covers, ax)

    def __str__(self) -> str:
        lines = [SIMULATION] if self.simulation else []
        lines.append(f"{self._summary()} of {self.included} users")
        lines.append(f"assumes: {ROWS_ASSUMPTION}")
        lines.append(f"privacy: {self.guarantee}")
        lines.append(f"running again: {REPETITION}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        facts = f"{self.included:,} users, epsilon {self.guarantee.epsilon:.4g}"
        if self.simulation:
            facts += ", SIMULATION"
        return f"<MeanResult: {self._summary()}, {facts}>"

    def _repr_html_(self) -> str:
        above, *lines = str(self).splitlines()
        return plain.html_paragraph(above, strong=True) + "".join(map(plain.html_paragraph, lines))

    def _summary(self) -> str:
        low, high = self.interval()
        return f"{self.mechanism.name}: mean {self.estimate:.4f} [{low:.4f}, {high:.4f}]"

    def __hash__(self) -> int:
        # The facts are a mapping, which has no hash; equal results have equal estimates anyway.
        return hash((self.mechanism, self.included, self.estimate))
