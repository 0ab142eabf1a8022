"""The budget of a population, kept by S2: reserved at the claim, released or settled afterwards.

Releases add up as any (epsilon, delta) mechanisms do, by the exact composition of their dominating pair; where an owner
declares the series adaptive, epsilons and deltas are simply added. So do surveys of groups: nothing proves to S2 that
two groups have nobody in common.

A ledger is a value with a version, kept apart from the surveys that charge it: a change counts only where it was made
from the version that is stored (compare and swap), so that two surveys never spend the same part of a budget.

Every reservation has a receipt, numbered from 1 and chained: the head in a receipt is made from the head before and
what was reserved. After a restore the population stays closed until all receipts since the backup are shown, in one
unbroken chain.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from faircount.accounting.composition import compose, dominating_pair, grid_step
from faircount.accounting.divergence import LARGEST_EPSILON
from faircount.core.errors import ParameterError, ProtocolError, RefusedError, StaleLedgerError
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
    status: Status = Status.RESERVED
    label: str = ""  # what it was for, in words
    receipt: int = 0  # number of its receipt; 0 for one that was charged without

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon, "epsilon of a charge")
        if not 0 <= real("delta of a charge", self.delta) <= 1:
            raise ParameterError(f"the delta of a charge must lie in [0, 1], not {self.delta:g}")


@dataclass(frozen=True, slots=True)
class Shown:
    """A receipt of S2's own: what was reserved, the receipt's number, the ledger's version then, the chain's head."""

    charge: Charge
    number: int
    version: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Ledger:
    """All charges of one population.

    `version` counts the changes. `heads` has the chain's head of every receipt, the first one's first. `closed`: S2 was
    restored, and has not been shown the receipts since its backup.
    """

    population: str
    epsilon: float
    delta: float
    adaptive: bool = False
    charges: tuple[Charge, ...] = ()
    version: int = 0
    heads: tuple[bytes, ...] = ()
    closed: bool = False

    def __post_init__(self) -> None:
        checked_epsilon(self.epsilon, "budget epsilon")
        real("budget delta", self.delta)

    def find(self, survey: bytes) -> Charge | None:
        """The charge of a survey, if there is one."""
        return next((each for each in self.charges if each.survey == survey), None)

    def head(self, number: int) -> bytes:
        """The chain's head in the receipt with this number; of number 0, where the chain begins."""
        return self.heads[number - 1] if number else bytes(32)

    @property
    def costs(self) -> list[tuple[float, float]]:
        """(epsilon, delta) of every charge that counts: a reserved one may have been published."""
        return [(each.epsilon, each.delta) for each in self.charges if each.status is not Status.RELEASED]

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
        """With the charge reserved, under the next receipt; the caller has asked `admits`."""
        if self.find(charge.survey) is not None or not self.admits(charge):
            raise ProtocolError("this survey is charged already, or the budget does not admit it: ask admits() first")
        number = len(self.heads) + 1
        head = chained(self.head(number - 1), self.population, charge)
        after = self._with((*self.charges, replace(charge, receipt=number)))
        return replace(after, heads=(*self.heads, head))

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
                after = after._with((*after.charges, replace(charge, status=Status.SPENT)))
            elif known.status is Status.RESERVED:
                after = after.settle(charge.survey)
        return after if after.closed else replace(after, closed=True, version=after.version + 1)

    def reopen(self, receipts: Iterable[Shown]) -> "Ledger":
        """Open again, with the charges that S2's own receipts show and the backup lacks.

        Refused unless the receipts go on from the backup without a gap; or, if there are none since, unless the newest
        of the backup is among them.
        """
        shown = sorted(receipts, key=lambda each: each.number)
        after = self
        for each in shown:
            after = after._taken_over(each)
        if not shown or shown[-1].number < len(after.heads):
            raise ProtocolError(
                "show the newest receipt that S2 has given for this population: S1 keeps them; if it has never given "
                "one, open a new population"
            )
        return replace(after, closed=False, version=max(after.version, shown[-1].version) + 1)

    def _taken_over(self, shown: Shown) -> "Ledger":
        """With a receipt that is known already, or the next one of the chain."""
        if shown.number > len(self.heads) + 1:
            raise ProtocolError(
                f"receipt {len(self.heads) + 1} of this population is missing, and {shown.number} is there: show all "
                "that are newer than the backup"
            )
        if not self._continued_by(shown):
            raise ProtocolError(
                f"receipt {shown.number} does not belong to the others: S2 has gone two ways since a backup, and both "
                "have spent; open a new population"
            )
        if shown.number <= len(self.heads):
            return self
        spent = replace(self.find(shown.charge.survey) or shown.charge, status=Status.SPENT, receipt=shown.number)
        others = tuple(each for each in self.charges if each.survey != spent.survey)
        return replace(self, charges=(*others, spent), heads=(*self.heads, shown.head))

    def _continued_by(self, shown: Shown) -> bool:
        """Whether a receipt is one of the chain or its next one."""
        if shown.number < 1 or (shown.number <= len(self.heads) and self.head(shown.number) != shown.head):
            return False
        return chained(self.head(shown.number - 1), self.population, shown.charge) == shown.head

    def _changed(self, survey: bytes, **change: object) -> "Ledger":
        before = self.find(survey)
        if before is None or before.status is not Status.RESERVED:
            raise ProtocolError("only a reserved charge can be released or settled")
        after = replace(before, **change)  # type: ignore[arg-type]  # fields of Charge
        return self._with(tuple(after if each is before else each for each in self.charges))

    def _with(self, charges: tuple[Charge, ...]) -> "Ledger":
        return replace(self, charges=charges, version=self.version + 1)


def chained(head: bytes, population: str, charge: Charge) -> bytes:
    """The head after one more reservation."""
    amounts = f"{scaled_up(charge.epsilon)} {scaled_up(charge.delta)}".encode()
    return labelled(b"receipt", head, population.encode(), charge.survey, amounts)


def swapped(stored: Ledger, before: Ledger, after: Ledger) -> Ledger:
    """Compare and swap: `after`, unless somebody else has changed the stored ledger since `before` was read."""
    if (stored.version, stored.heads) != (before.version, before.heads):
        raise StaleLedgerError(
            f"the ledger of {stored.population!r} is at version {stored.version}, and this change was made from "
            f"version {before.version}: read it again and do the step again"
        )
    return after


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
