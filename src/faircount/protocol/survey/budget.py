"""The privacy budget of a population, which the aggregator keeps in a ledger.

A survey's charge is reserved before the aggregator receives any encrypted share. Afterwards it is
settled, at the guarantee that remained, or cancelled if no share was sent. A reservation counts as
spent until then, because the result may have been published already.

Charges add up like releases of any (epsilon, delta) mechanisms: by the exact composition of their
dominating pairs, or, if the owner declares that questions depend on earlier results (adaptive), by
adding epsilons and deltas. Surveys of different groups add up too, since nothing proves to the
aggregator that two groups have no member in common.

A ledger is a value with a version, stored apart from the surveys that charge it. A change is
written only if the stored version is the one that it was made from (compare and swap), so that two
surveys never spend the same part of a budget.

Every reservation is numbered from 1 and chained: its head is a hash of the head before and of what
was reserved. After the aggregator was restored from a backup, its populations are closed until it
is shown all reservations that it has signed since, in one unbroken chain.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from faircount.accounting.composition import (
    adds_up_to,
    compose,
    dominating_pair,
    grid_step,
)
from faircount.accounting.divergence import LARGEST_EPSILON
from faircount.core.errors import ParameterError, ProtocolError, RefusedError, StaleLedgerError
from faircount.core.validation import check_epsilon, check_real
from faircount.protocol.wire.canonical_json import format_upper_bound
from faircount.protocol.wire.digests import tagged_hash


class Status(StrEnum):
    """What became of a charge."""

    RESERVED = "reserved"
    SPENT = "spent"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Charge:
    """What one survey costs its population."""

    survey: bytes
    epsilon: float
    delta: float
    status: Status = Status.RESERVED
    label: str = ""  # for people: what it was for
    reservation: int = 0  # number of its reservation; 0 for a charge without one

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon, "epsilon of a charge")
        if not 0 <= check_real("delta of a charge", self.delta) <= 1:
            raise ParameterError(f"the delta of a charge must lie in [0, 1], not {self.delta:g}")


@dataclass(frozen=True, slots=True)
class ReservationRecord:
    """A reservation that the aggregator has signed, shown to it after a restore.

    `version` is that of the ledger at the time, `head` the chain's head after the reservation.
    """

    charge: Charge
    number: int
    version: int
    head: bytes


@dataclass(frozen=True, slots=True)
class Ledger:
    """All charges of one population.

    adaptive: whether questions may depend on earlier results
    version:  number of changes so far
    heads:    the chain's head after each reservation, in order
    closed:   whether the aggregator was restored and has not been shown its reservations since
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
        check_epsilon(self.epsilon, "budget epsilon")
        check_real("budget delta", self.delta)

    def find(self, survey: bytes) -> Charge | None:
        """The charge of a survey, or None."""
        for charge in self.charges:
            if charge.survey == survey:
                return charge
        return None

    def head(self, number: int) -> bytes:
        """The chain's head after the reservation with this number; 0 is the chain's beginning."""
        return self.heads[number - 1] if number else bytes(32)

    @property
    def costs(self) -> list[tuple[float, float]]:
        """(epsilon, delta) of every charge that counts."""
        # A reservation counts as well: its result may have been published before a crash.
        counting = (charge for charge in self.charges if charge.status is not Status.CANCELLED)
        return [(charge.epsilon, charge.delta) for charge in counting]

    @property
    def spent(self) -> tuple[float, float]:
        """(epsilon, delta) of all charges together: their sum, or their composition if smaller."""
        epsilon = math.fsum(epsilon for epsilon, _ in self.costs)
        delta = math.fsum(delta for _, delta in self.costs)
        # Plain addition is valid for every order of questions and needs no delta of its own.
        # The exact composition holds for questions that were fixed in advance.
        if self.adaptive or delta >= self.delta or epsilon > LARGEST_EPSILON:
            return epsilon, delta
        try:
            composed = _compose_costs(self.costs, delta=self.delta)
        except RefusedError:  # a total delta below the accuracy of the composition
            return epsilon, delta
        return (composed, self.delta) if composed < epsilon else (epsilon, delta)

    def covers(self, charge: Charge) -> bool:
        """Whether the budget is enough for this charge besides the others."""
        # check: closed-population - a ledger restored from a backup would grant spent budget again
        if self.closed:
            return False
        after = replace(self, charges=(*self.charges, charge))
        return fits_budget(after.costs, self.epsilon, self.delta, self.adaptive)

    def reserve(self, charge: Charge) -> "Ledger":
        """The ledger with this charge reserved; the caller has asked `covers`."""
        if self.find(charge.survey) is not None or not self.covers(charge):
            raise ProtocolError(
                "this survey is charged already, or the budget does not cover it: "
                "ask covers() first"
            )
        # Numbers without gaps: a missing one shows that somebody withholds a reservation.
        number = len(self.heads) + 1
        head = _extend_chain(self.head(number - 1), self.population, charge)
        after = self._with_charges((*self.charges, replace(charge, reservation=number)))
        return replace(after, heads=(*self.heads, head))

    def cancel(self, survey: bytes) -> "Ledger":
        """The ledger without a reservation: only for a survey whose shares were never sent."""
        return self._end_reservation(survey, status=Status.CANCELLED)

    def settle(
        self, survey: bytes, epsilon: float | None = None, delta: float | None = None
    ) -> "Ledger":
        """The ledger with a reservation spent, at the remaining guarantee if there is a result."""
        if epsilon is None or delta is None:
            return self._end_reservation(survey, status=Status.SPENT)
        return self._end_reservation(survey, status=Status.SPENT, epsilon=epsilon, delta=delta)

    def close_after_restore(self, live: Iterable[Charge]) -> "Ledger":
        """The ledger of a backup: closed, with every survey that was live charged in full.

        A survey that was live in the backup may have published since.
        """
        after = self
        for charge in live:
            known = after.find(charge.survey)
            if known is None:
                spent = replace(charge, status=Status.SPENT)
                after = after._with_charges((*after.charges, spent))
            elif known.status is Status.RESERVED:
                after = after.settle(charge.survey)
        # Closing a closed ledger again changes nothing: a restore may be repeated after a crash.
        return after if after.closed else replace(after, closed=True, version=after.version + 1)

    def reopen(self, reservations: Iterable[ReservationRecord]) -> "Ledger":
        """The ledger open again, with the charges that the backup lacks.

        Refused unless the reservations continue the chain of the backup without a gap or, if there
        are none since, unless the newest of the backup is among them.
        """
        records = sorted(reservations, key=lambda record: record.number)
        after = self
        for record in records:
            after = after._add_record(record)
        if (
            not records
            # check: newest-reservation - older reservations alone hide the newest charges
            or records[-1].number < len(after.heads)
        ):
            raise ProtocolError(
                "show the newest reservation that the aggregator has signed for this population: "
                "the coordinator keeps them; if it has never signed one, open a new population"
            )
        # Above every version that was ever stored: a change made before the restore is stale.
        return replace(after, closed=False, version=max(after.version, records[-1].version) + 1)

    def _add_record(self, record: ReservationRecord) -> "Ledger":
        """The ledger with a reservation that it knows already, or with the next of the chain."""
        if record.number > len(self.heads) + 1:
            raise ProtocolError(
                f"reservation {len(self.heads) + 1} of this population is missing, "
                f"and {record.number} is there: show all that are newer than the backup"
            )
        if not self._is_continued_by(record):
            raise ProtocolError(
                f"reservation {record.number} does not belong to the others: the aggregator has "
                "signed two different histories since a backup, and both have spent; "
                "open a new population"
            )
        if record.number <= len(self.heads):
            return self
        # Spent, and not reserved: the survey may have published after the backup was made.
        known = self.find(record.charge.survey) or record.charge
        spent = replace(known, status=Status.SPENT, reservation=record.number)
        others = tuple(charge for charge in self.charges if charge.survey != spent.survey)
        return replace(self, charges=(*others, spent), heads=(*self.heads, record.head))

    def _is_continued_by(self, record: ReservationRecord) -> bool:
        """Whether a reservation is part of the chain, or its next one."""
        if (
            record.number < 1
            # check: reservation-chain - a reservation of another history hides charges
            or (record.number <= len(self.heads) and self.head(record.number) != record.head)
        ):
            return False
        before = self.head(record.number - 1)
        # check: reservation-amount - a reservation that shows a smaller charge than the signed one
        return _extend_chain(before, self.population, record.charge) == record.head

    def _end_reservation(self, survey: bytes, **change: object) -> "Ledger":
        before = self.find(survey)
        if before is None or before.status is not Status.RESERVED:
            raise ProtocolError("only a reserved charge can be cancelled or settled")
        after = replace(before, **change)  # type: ignore[arg-type]  # fields of Charge
        charges = [after if charge is before else charge for charge in self.charges]
        return self._with_charges(tuple(charges))

    def _with_charges(self, charges: tuple[Charge, ...]) -> "Ledger":
        return replace(self, charges=charges, version=self.version + 1)


def _extend_chain(head: bytes, population: str, charge: Charge) -> bytes:
    """The chain's head after one more reservation."""
    epsilon = format_upper_bound(charge.epsilon)
    delta = format_upper_bound(charge.delta)
    # Rounded up as published, so that anybody can recompute the head from the signed message.
    amounts = f"{epsilon} {delta}".encode()
    # check: chain-population - the reservations of one population continue another's chain
    return tagged_hash(b"reservation", head, population.encode(), charge.survey, amounts)


def compare_and_swap(stored: Ledger, before: Ledger, after: Ledger) -> Ledger:
    """`after`, unless the stored ledger has changed since `before` was read."""
    # Heads are compared too: two ledgers that grew from one backup can have equal versions.
    # check: stale-ledger - two surveys that start at once would both spend the same budget
    if (stored.version, stored.heads) != (before.version, before.heads):
        raise StaleLedgerError(
            f"the ledger of {stored.population!r} is at version {stored.version}, and this change "
            f"was made from version {before.version}: read it again and repeat the step"
        )
    return after


def fits_budget(
    costs: list[tuple[float, float]], epsilon: float, delta: float, adaptive: bool
) -> bool:
    """Whether releases of these (epsilon, delta) together stay within a budget."""
    fits_epsilon = adds_up_to((cost for cost, _ in costs), epsilon)
    if fits_epsilon and adds_up_to((cost for _, cost in costs), delta):
        return True
    total_delta = math.fsum(cost for _, cost in costs)
    # The exact composition needs some delta of its own, and epsilons that its grid can represent.
    if adaptive or total_delta >= delta or max(costs)[0] > LARGEST_EPSILON:
        return False
    return _compose_costs(costs, epsilon=epsilon) <= delta


def _compose_costs(
    costs: list[tuple[float, float]], *, epsilon: float | None = None, delta: float | None = None
) -> float:
    """Delta at this epsilon, or epsilon at this delta, of all releases together."""
    pairs = [[dominating_pair(*cost)] for cost in costs]
    step = grid_step(cost for cost, _ in costs)
    return compose(pairs, epsilon=epsilon, delta=delta, step=step)
