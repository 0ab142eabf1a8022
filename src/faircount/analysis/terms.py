"""What one group of users runs under: its budget, the mechanism that spends it, and whether it is worth running."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from faircount.core.arrays import Ints
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.option import option, percent
from faircount.planning.plan import plan
from faircount.planning.question import Question, cautions

AUTO = "auto"


@dataclass(frozen=True)
class Planned:
    """One survey, ready to run: nothing is drawn yet."""

    terms: "Terms"
    positions: Ints = field(repr=False)
    mechanism: FrequencyMechanism
    half_width_95: float

    @property
    def users(self) -> int:
        """Number of users in this survey."""
        return int(self.positions.size)


@dataclass(frozen=True)
class Terms:
    """What one group of users runs under."""

    epsilon: float
    delta: float
    mechanism: str = AUTO
    floor: int = 0
    colluding: float = 0.0

    def planned(self, positions: Ints, items: int) -> Planned:
        """The survey of these users with the mechanism that spends the budget; refused where there is none."""
        question = Question(positions.size, items, self.epsilon, self.delta, self.floor, colluding=self.colluding)
        if self.mechanism == AUTO:
            made = plan(positions.size, items, self.epsilon, self.delta, floor=self.floor, colluding=self.colluding)
            found, reason = made.recommended, made.verdict
        elif self.mechanism in (known := frequency_mechanisms()):
            found = option(known[self.mechanism], question)
            reason = f"{self.mechanism}: {found.reason}"
        else:
            raise ParameterError(f"mechanism must be {AUTO} or one of {', '.join(known)}, not {self.mechanism!r}")
        if found is None or found.mechanism is None:
            raise RefusedError(reason)
        return Planned(self, positions, found.mechanism, found.half_width_95 or 0.0)

    def cautions(self, result: Result) -> tuple[str, ...]:
        """What speaks against the guarantee: so large an epsilon or delta, or a floor that seems not to hold."""
        return (*cautions(self.epsilon, self.delta), *_below_floor(result, result.mechanism.floor))


def worthwhile(surveys: Sequence[Planned], items: int, anyway: bool) -> tuple[str, ...]:
    """Refuse what would tell nothing: a 95% error, of all groups weighted by size, above an average frequency.

    With `anyway` the same sentence is returned, to be noted with the result.
    """
    users = sum(each.users for each in surveys)
    error = math.sqrt(sum((each.users / users * each.half_width_95) ** 2 for each in surveys))
    if error < 1 / items:
        return ()
    names = "+".join(dict.fromkeys(each.mechanism.name for each in surveys))
    said = (
        f"do not run this: {names} has a 95% error of {percent(error, '±')}, more than an average item's "
        f"{percent(1 / items)}; ask more users, offer fewer items or allow a larger epsilon"
    )
    if not anyway:
        raise RefusedError(f"{said}. --anyway runs it all the same, and spends the budget (anyway=True in Python)")
    return (said,)


def _below_floor(result: Result, floor: int) -> tuple[str, ...]:
    """Names items whose published interval ends below the floor; it looks at nothing else."""
    if not floor:
        return ()
    most = result.interval(simultaneous=True).high * result.included
    few = ", ".join(str(item) for item, each in zip(result.items, most, strict=True) if round(each) < floor)
    words = f"the guarantee needs at least {floor} holders of every item, which seems not to hold for {few}"
    return (f"{words}: 95% intervals of all items together end below that",) if few else ()
