"""What an analyst gets: estimates with intervals and the guarantee they were bought with."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.accounting.guarantee import SEEDED, Guarantee
from faircount.core import plain
from faircount.core.arrays import Floats, read_only
from faircount.estimation.intervals import Intervals, interval
from faircount.estimation.mean_intervals import reports_interval, two_point_interval
from faircount.estimation.presentation import AGAIN, SIMULATION, Frequencies
from faircount.estimation.validity import SUPPOSED, Validity
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.local_mean import LocalMean


def void_if(simulation: bool, guarantee: Guarantee) -> Guarantee:
    """The guarantee, or that it does not hold because the randomness was seeded."""
    return replace(guarantee, void=SEEDED) if simulation else guarantee


@dataclass(frozen=True, eq=False, repr=False)
class Result(Frequencies):
    """Estimated frequencies of the items among the `included` users.

    mechanism: the mechanism that ran, bound to its number of users
    aggregate: the opened sums, one number per item
    included:  number of users in the sums
    facts:     what the run wants remembered: topology, number of share holders, modulus, whether it is a simulation
    """

    mechanism: FrequencyMechanism
    aggregate: NDArray[Any]
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "aggregate", read_only(self.aggregate))

    @property
    def name(self) -> str:
        """Of the mechanism."""
        return self.mechanism.name

    @property
    def topology(self) -> str | None:
        """How the shares travelled; None where there were none."""
        found = self.facts.get("topology")
        return None if found is None else str(found)

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's: then nobody is protected, whatever is guaranteed."""
        return bool(self.facts.get("simulation"))

    @property
    def validity(self) -> Validity | None:
        """What was proven of the reports, where they travelled between devices and servers."""
        found = self.facts.get("validity")
        return found if isinstance(found, Validity) else None

    @cached_property
    def items(self) -> tuple[object, ...]:
        """Labels, in the order of the estimates."""
        return self.mechanism.domain.labels

    @cached_property
    def estimates(self) -> Floats:
        """Unbiased frequencies; single ones may be negative and they need not sum to one: see `consistent`."""
        return read_only(self.mechanism.estimate(self.aggregate, self.included))

    @cached_property
    def standard_errors(self) -> Floats:
        """Standard deviation of the privacy noise, at the consistent estimates."""
        return read_only(np.sqrt(self.mechanism.variance(self.consistent, self.included)))

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first; users who are missing are accounted for."""
        return tuple(void_if(self.simulation, each) for each in self.mechanism.stated(self.included))

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees: what may be claimed without naming the adversary."""
        return self.guarantees[0]

    @property
    def requested(self) -> dict[str, float | None]:
        """The epsilon and delta that the mechanism was made for; the guarantee says what is really spent."""
        return dict(zip(("epsilon", "delta"), self.mechanism.promise, strict=True))

    def interval(self, level: float = 0.95, *, covers: str = "users", simultaneous: bool = False) -> Intervals:
        """Confidence intervals of the frequencies.

        `covers="users"`: privacy noise alone, the truth being what these users hold. `covers="population"`: also the
        luck of drawing these users from a larger population. `simultaneous`: all items at once hold with `level`.
        """
        channel = self.mechanism.channel(self.included)
        return interval(self.aggregate, channel, self.included, level=level, covers=covers, simultaneous=simultaneous)


@dataclass(frozen=True, repr=False)
class MeanResult:
    """An estimated mean of values in [-1, 1].

    mechanism: the mechanism that ran, bound to its number of users
    aggregate: sums of the reports
    included:  number of users in the sums
    facts:     what the run wants remembered, such as whether it is a simulation
    """

    mechanism: LocalMean
    aggregate: Any
    included: int
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def simulation(self) -> bool:
        """Whether the randomness was not the operating system's: then nobody is protected, whatever is guaranteed."""
        return bool(self.facts.get("simulation"))

    @cached_property
    def estimate(self) -> float:
        """Unbiased estimate of the mean of these users' values."""
        return float(self.mechanism.estimate(self.aggregate, self.included))

    @property
    def guarantee(self) -> Guarantee:
        """Local differential privacy of each report."""
        return void_if(self.simulation, self.mechanism.stated()[0])

    def interval(self, level: float = 0.95, *, covers: str = "users") -> tuple[float, float]:
        """Confidence interval of the mean: privacy noise alone, or (`covers="population"`) also the draw of users.

        Two-valued reports (Duchi) cannot tell the two apart; their exact interval serves for both.
        """
        magnitude = self.mechanism.report_magnitude
        if magnitude is not None:
            return two_point_interval(self.estimate, magnitude, self.included, level=level)
        return reports_interval(self.mechanism, self.aggregate, self.included, level=level, covers=covers)

    def to_dict(self, level: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        low, high = self.interval(level, covers=covers)
        epsilon, delta = self.mechanism.promise
        return {
            **plain.JSON_VERSION,
            **({"simulation": True} if self.simulation else {}),
            "mechanism": self.mechanism.name,
            "users": self.included,
            "requested": {"epsilon": epsilon, "delta": delta},
            "level": level,
            "covers": covers,
            "mean": {"estimate": self.estimate, "low": low, "high": high},
            "guarantee": self.guarantee.to_dict(),
            "again": AGAIN,
            "supposed": SUPPOSED[False],
        }

    def to_frame(self, level: float = 0.95, *, covers: str = "users") -> Any:
        """A pandas DataFrame of one row; its `attrs` hold the guarantee."""
        said = self.to_dict(level, covers=covers)
        about = {"guarantee": said["guarantee"], "simulation": self.simulation}
        return plain.frame({name: [value] for name, value in said["mean"].items()}, ["mean"], "of", about)

    def plot(self, level: float = 0.95, *, covers: str = "users", ax: Any = None) -> Any:
        """The mean with its interval on matplotlib axes: those given, or new ones, which are returned."""
        from faircount.estimation.drawing import mean_axes

        return mean_axes(self, level, covers, ax)

    def __str__(self) -> str:
        head = f"{self._head()} of {self.included} users"
        above = [SIMULATION] if self.simulation else []
        supposed = f"supposed: {SUPPOSED[False]}"
        return "\n".join([*above, head, supposed, f"privacy: {self.guarantee}", f"again: {AGAIN}"])

    def __repr__(self) -> str:
        simulated = ", SIMULATION" if self.simulation else ""
        return f"<MeanResult: {self._head()}, {self.included:,} users, epsilon {self.guarantee.epsilon:.4g}{simulated}>"

    def _repr_html_(self) -> str:
        above, *lines = str(self).splitlines()
        return plain.paragraph(above, strong=True) + "".join(map(plain.paragraph, lines))

    def _head(self) -> str:
        low, high = self.interval()
        return f"{self.mechanism.name}: mean {self.estimate:.4f} [{low:.4f}, {high:.4f}]"

    def __hash__(self) -> int:
        return hash((self.mechanism, self.included, self.estimate))
