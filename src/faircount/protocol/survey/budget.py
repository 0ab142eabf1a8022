"""The budget of a population, kept by S2: reserved at the claim, released or settled afterwards.

Releases add up as any (epsilon, delta) mechanisms do, by the exact composition of their dominating pair; where an owner
declares the series adaptive, epsilons and deltas are simply added. Groups of one budget id are disjoint: the largest
counts.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import zip_longest

from faircount.accounting.composition import compose, dominating_pair, grid_step
from faircount.accounting.divergence import LARGEST_EPSILON
from faircount.core.errors import ParameterError, ProtocolError, RefusedError
from faircount.core.validation import epsilon as checked_epsilon
from faircount.core.validation import real
from faircount.protocol.wire.canonical_json import scaled_up
from faircount.protocol.wire.digests import labelled

_ROUNDING = 1 + 1e-12  # ten times 0.1 is the budget 1


class Status(StrEnum):
    """What became of a charge."""

    RESERVED = "reserved"
    SPENT = "spent"
    RELEASED = "released"


@dataclass(frozen=True, slots=True)
class Charge:
    """What one survey costs its population."""

    survey: bytes
    epsilon: float
    delta: float
    budget: str = ""
    group: str = ""
    status: Status = Status.RESERVED
    label: str = ""  # what it was for, in words

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon, "epsilon of a charge")
        if not 0 <= real("delta of a charge", self.delta) <= 1:
            raise ParameterError(f"the delta of a charge must lie in [0, 1], not {self.delta:g}")


@dataclass(frozen=True, slots=True)
class Shown:
    """A receipt of S2's own: what it charged, and the reservations, changes and head of the ledger at that time."""

    charge: Charge
    reservations: int
    size: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Ledger:
    """All charges of one population. `head` chains every change, and is signed into every receipt.

    After a restore the population is closed until the newest receipt is shown: one from before the backup must be one
    of those `receipted` here, and charges of later ones are taken over.
    """

    population: str
    epsilon: float
    delta: float
    adaptive: bool = False
    charges: tuple[Charge, ...] = ()
    size: int = 0
    head: bytes = bytes(32)
    receipted: tuple[tuple[int, bytes], ...] = ()  # size and head whenever a charge was reserved
    backup: int | None = None  # after a restore, the size of what was restored

    @property
    def closed(self) -> bool:
        """Whether S2 was restored and has not been shown its newest receipt since."""
        return self.backup is not None

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon, "budget epsilon")
        real("budget delta", self.delta)

    def find(self, survey: bytes) -> Charge | None:
        """The charge of a survey, if there is one."""
        return next((each for each in self.charges if each.survey == survey), None)

    @property
    def costs(self) -> list[tuple[float, float]]:
        """(epsilon, delta) of every charge that counts: a reserved one may have been published."""
        return parallel_costs(each for each in self.charges if each.status is not Status.RELEASED)

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of all charges together: added up, or composed at the total delta if that is less."""
        epsilon, delta = (math.fsum(each) for each in zip(*self.costs, strict=True)) if self.costs else (0.0, 0.0)
        if self.adaptive or delta >= self.delta or epsilon > LARGEST_EPSILON:
            return epsilon, delta
        try:
            less = _composed(self.costs, delta=self.delta)
        except RefusedError:  # a total delta below the accuracy of the composition
            return epsilon, delta
        return (less, self.delta) if less < epsilon else (epsilon, delta)

    def admits(self, charge: Charge) -> bool:
        """Whether the population could bear this charge beside the others."""
        if self.closed:
            return False
        return within(replace(self, charges=(*self.charges, charge)).costs, self.epsilon, self.delta, self.adaptive)

    def reserve(self, charge: Charge) -> "Ledger":
        """With the charge reserved; the caller has asked `admits`."""
        if self.find(charge.survey) is not None or not self.admits(charge):
            raise ProtocolError("this survey is charged already, or the budget does not admit it: ask admits() first")
        after = self._with((*self.charges, charge), charge)
        return replace(after, receipted=(*self.receipted, (after.size, after.head)))

    def release(self, survey: bytes) -> "Ledger":
        """Give a reservation back: only for a survey of which no blob was sent."""
        return self._changed(survey, status=Status.RELEASED)

    def settle(self, survey: bytes, epsilon: float | None = None, delta: float | None = None) -> "Ledger":
        """Spend a reservation, at the realized guarantee where one was realized."""
        amounts = {} if epsilon is None or delta is None else {"epsilon": epsilon, "delta": delta}
        return self._changed(survey, status=Status.SPENT, **amounts)

    def restored(self, live: Iterable[Charge]) -> "Ledger":
        """After a restore: charge every survey that was live, as it may have published since; closed until `reopen`."""
        after = self
        for charge in live:
            known = after.find(charge.survey)
            if known is None:
                spent = replace(charge, status=Status.SPENT)
                after = after._with((*after.charges, spent), spent)
            elif known.status is Status.RESERVED:
                after = after.settle(charge.survey)
        return replace(after, backup=self.size if self.backup is None else self.backup)

    def reopen(self, receipts: Sequence[Shown]) -> "Ledger":
        """Open again, with the charges that S2's own receipts show and the backup lacks.

        Refused unless the newest is later than the backup, and every reservation up to it is in the backup or shown; or
        is the newest of the backup itself.
        """
        newest = max(receipts, key=lambda each: each.size, default=None)
        later = [each for each in receipts if self.backup is None or each.size > self.backup]
        if newest is None or (not later and self.receipted[-1:] != ((newest.size, newest.head),)):
            raise ProtocolError(
                "show the newest receipt that S2 has given for this population: S1 keeps them; if it has never given "
                "one, open a new population"
            )
        if later and len(self.receipted) + len({each.charge.survey for each in later}) < newest.reservations:
            raise ProtocolError(
                f"{newest.reservations} surveys of this population have receipts: show those that are newer than the "
                "backup, all of them"
            )
        after = self
        for each in receipts:
            if after.find(each.charge.survey) is None:
                spent = replace(each.charge, status=Status.SPENT)
                after = after._with((*after.charges, spent), spent)
        return replace(after, backup=None, size=max(after.size, newest.size))

    def _changed(self, survey: bytes, **change: object) -> "Ledger":
        before = self.find(survey)
        if before is None or before.status is not Status.RESERVED:
            raise ProtocolError("only a reserved charge can be released or settled")
        after = replace(before, **change)  # type: ignore[arg-type]  # fields of Charge
        return self._with(tuple(after if each is before else each for each in self.charges), after)

    def _with(self, charges: tuple[Charge, ...], changed: Charge) -> "Ledger":
        amounts = f"{changed.status} {scaled_up(changed.epsilon)} {scaled_up(changed.delta)}".encode()
        head = labelled(b"ledger", self.head, changed.survey, amounts)
        return replace(self, charges=charges, size=self.size + 1, head=head)


def parallel_costs(charges: Iterable[Charge]) -> list[tuple[float, float]]:
    """(epsilon, delta) per release as one person may meet them: groups under one budget id are disjoint.

    Of each budget the i-th release counts with the largest i-th release of any group, both numbers for themselves: that
    is at least what any one group adds up to.
    """
    costs, groups = list[tuple[float, float]](), dict[str, dict[str, list[tuple[float, float]]]]()
    for each in charges:
        alone = not (each.budget and each.group)
        found = costs if alone else groups.setdefault(each.budget, {}).setdefault(each.group, [])
        found.append((each.epsilon, each.delta))
    for of_budget in groups.values():
        releases = zip_longest(*(sorted(group, reverse=True) for group in of_budget.values()), fillvalue=(0.0, 0.0))
        costs += [(max(e for e, _ in one), max(d for _, d in one)) for one in releases]
    return costs


def within(costs: list[tuple[float, float]], epsilon: float, delta: float, adaptive: bool) -> bool:
    """Whether releases of these (epsilon, delta) stay together within a budget."""
    epsilons, deltas = [each for each, _ in costs], [each for _, each in costs]
    if math.fsum(epsilons) <= epsilon * _ROUNDING and math.fsum(deltas) <= delta * _ROUNDING:
        return True
    if adaptive or math.fsum(deltas) >= delta or max(epsilons) > LARGEST_EPSILON:
        return False
    return _composed(costs, epsilon=epsilon) <= delta


def _composed(costs: list[tuple[float, float]], *, epsilon: float | None = None, delta: float | None = None) -> float:
    step = grid_step(each for each, _ in costs)
    return compose([[dominating_pair(*each)] for each in costs], epsilon=epsilon, delta=delta, step=step)
