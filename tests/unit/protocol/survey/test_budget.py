"""The ledger: reserve, release, settle, versions, receipts, composition, and what a restore does."""

from dataclasses import replace

import pytest

from faircount.core.errors import ParameterError, ProtocolError, StaleLedgerError
from faircount.protocol.survey.budget import (
    Charge,
    Ledger,
    ReservationRecord,
    Status,
    compare_and_swap,
    fits_budget,
)


def charge(i: int, epsilon: float = 0.25, delta: float = 1e-9, **more) -> Charge:
    return Charge(bytes([i]) * 16, epsilon, delta, **more)


def test_a_budget_is_spent_and_no_more() -> None:
    ledger = Ledger("people", 1.0, 1e-6, adaptive=True)
    for i in range(4):
        assert ledger.covers(charge(i))
        ledger = ledger.reserve(charge(i))
    assert not ledger.covers(charge(4))
    with pytest.raises(ProtocolError):
        ledger.reserve(charge(4))
    with pytest.raises(ProtocolError):
        ledger.reserve(charge(0, epsilon=0.0))


def test_ten_tenths_are_one() -> None:
    ledger = Ledger("people", 1.0, 0.0, adaptive=True)
    for i in range(10):
        ledger = ledger.reserve(charge(i, 0.1, 0.0))
    assert not ledger.covers(charge(10, 1e-3, 0.0))


def test_cancelled_charges_cost_nothing_and_settled_ones_what_was_realized() -> None:
    ledger = Ledger("people", 1.0, 1e-6, adaptive=True).reserve(charge(1, 1.0))
    assert not ledger.covers(charge(2))
    assert ledger.cancel(charge(1).survey).covers(charge(2, 1.0))
    settled = ledger.settle(charge(1).survey, 0.5, 1e-9)
    assert settled.covers(charge(2, 0.5))
    assert not settled.covers(charge(2, 0.6))
    assert ledger.settle(charge(1).survey).find(charge(1).survey).epsilon == 1.0
    for again in (settled.cancel, settled.settle):
        with pytest.raises(ProtocolError, match="only a reserved charge"):
            again(charge(1).survey)


def test_composition_is_tighter_than_adding_up_and_never_weaker() -> None:
    many = [(0.05, 1e-12)] * 25
    assert fits_budget(many, 1.0, 1e-6, adaptive=False)
    assert not fits_budget(many, 1.0, 1e-6, adaptive=True)
    assert not fits_budget([(0.05, 1e-12)] * 60, 1.0, 1e-6, adaptive=False)
    assert not fits_budget([(0.1, 1e-6)] * 2, 1.0, 1e-6, adaptive=False)


def test_every_change_has_a_version_and_every_reservation_a_receipt() -> None:
    empty = Ledger("people", 1.0, 1e-6)
    one = empty.reserve(charge(1))
    two = one.settle(charge(1).survey)
    three = two.reserve(charge(2))
    assert [ledger.version for ledger in (empty, one, two, three)] == [0, 1, 2, 3]
    assert [charge.reservation for charge in three.charges] == [1, 2]
    assert len({three.head(number) for number in range(3)}) == 3
    assert one.heads == two.heads == three.heads[:1]


def test_a_change_counts_only_where_it_was_made_from_what_is_stored() -> None:
    """Two surveys with the same ledger both reserved the last of a budget."""
    before = Ledger("people", 1.0, 0.0)
    first, second = (before.reserve(charge(i, 1.0, 0.0)) for i in (1, 2))
    stored = compare_and_swap(before, before, first)
    assert stored == first
    with pytest.raises(
        StaleLedgerError, match="is at version 1, and this change was made from version 0"
    ):
        compare_and_swap(stored, before, second)
    assert not stored.covers(charge(2, 1.0, 0.0))


def test_two_changes_of_the_same_version_are_told_apart() -> None:
    before = Ledger("people", 2.0, 0.0)
    first, second = (before.reserve(charge(i, 1.0, 0.0)) for i in (1, 2))
    with pytest.raises(StaleLedgerError):
        compare_and_swap(first, second, second.settle(charge(2).survey))


def series(count: int) -> tuple[list[Ledger], list[ReservationRecord]]:
    """A ledger before and after each of so many surveys, settled, and their reservations."""
    found, shown = [Ledger("people", 9.0, 1e-6)], []
    for i in range(1, count + 1):
        reserved = found[-1].reserve(charge(i, 0.1))
        shown.append(ReservationRecord(charge(i, 0.1), i, reserved.version, reserved.head(i)))
        found.append(reserved.settle(charge(i).survey))
    return found, shown


def test_a_restored_ledger_charges_what_was_live_and_stays_closed() -> None:
    ledgers, shown = series(3)
    backup = ledgers[0].reserve(charge(1, 0.1))
    after = backup.close_after_restore([charge(1, 0.1), charge(2, 0.1)])
    assert after.closed
    assert not after.covers(charge(5, 0.01))
    assert [charge.status for charge in after.charges] == [Status.SPENT, Status.SPENT]
    assert after.close_after_restore([charge(1, 0.1), charge(2, 0.1)]) == after
    reopened = after.reopen(shown)
    assert not reopened.closed
    assert [(charge.survey[0], charge.reservation) for charge in reopened.charges] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    assert reopened.heads == ledgers[-1].heads
    assert reopened.version > max(shown[-1].version, after.version)
    assert reopened.reserve(charge(4, 0.1)).charges[-1].reservation == 4


def test_a_missing_receipt_is_noticed() -> None:
    ledgers, shown = series(5)
    for kept, ledger in enumerate(ledgers[:5]):
        backup = ledger.close_after_restore(())
        assert len(backup.reopen(shown[kept:]).charges) == 5
        assert len(backup.reopen(shown).charges) == 5
        for lost in range(kept, 4):
            with pytest.raises(
                ProtocolError, match=f"reservation {lost + 1} of this population is missing"
            ):
                backup.reopen(shown[kept:lost] + shown[lost + 1 :])


def test_a_closed_population_opens_with_the_newest_receipt_and_nothing_less() -> None:
    ledgers, shown = series(2)
    after = ledgers[-1].close_after_restore(())
    assert not after.reopen(shown[1:]).closed
    for wrong in ([], shown[:1]):
        with pytest.raises(ProtocolError, match="newest reservation"):
            after.reopen(wrong)
    with pytest.raises(ProtocolError, match="open a new population"):
        Ledger("people", 1.0, 0.0).close_after_restore(()).reopen([])


def test_receipts_of_another_history_are_noticed() -> None:
    """The aggregator was rolled back unnoticed and went on: two reservations have the same number, and were counted as two."""
    ledgers, shown = series(3)
    other = ledgers[1].reserve(charge(9, 0.1))
    fork = ReservationRecord(charge(9, 0.1), 2, other.version, other.head(2))
    backup = ledgers[1].close_after_restore(())
    wrong = [
        [*shown[:2], fork, shown[2]],
        [fork, shown[2]],
        [shown[1], replace(shown[2], head=bytes(32))],
        [replace(shown[1], charge=charge(2, 0.05)), shown[2]],
        [replace(shown[1], number=0), *shown[1:]],
    ]
    for reservations in wrong:
        with pytest.raises(ProtocolError, match="does not belong to the others"):
            backup.reopen(reservations)
    with pytest.raises(ProtocolError, match="does not belong"):
        replace(backup, population="staff").reopen(shown[1:])


@pytest.mark.parametrize("loss", [30.0, 36.7, 60.0, 400.0])
def test_large_epsilons_are_charged_in_full(loss: float) -> None:
    """At epsilon 36.7 the pair of a charge was computed as one of 36.04, so two of them fitted 72.2."""
    two = [(loss, 1e-12)] * 2
    assert not fits_budget(two, 2 * loss - 1.2, 1e-9, adaptive=False)
    assert fits_budget(two, 2 * loss, 1e-9, adaptive=False)


def test_what_cannot_be_composed_is_added_up() -> None:
    assert fits_budget([(600.0, 0.0), (1.0, 0.0)], 601.0, 1e-6, adaptive=False)
    assert not fits_budget([(600.0, 0.0), (1.0, 0.0)], 600.9, 1e-6, adaptive=False)


@pytest.mark.parametrize(
    "amounts", [(-1.0, 0.0), (float("nan"), 0.0), (1.0, -1e-9), (1.0, 1.5), (float("inf"), 0.0)]
)
def test_a_charge_is_a_number_that_can_be_added(amounts: tuple[float, float]) -> None:
    with pytest.raises(ParameterError):
        Charge(bytes(16), *amounts)


def test_budgets_are_checked() -> None:
    with pytest.raises(ParameterError):
        Ledger("people", -1.0, 0.0)


def test_what_is_spent_is_composed_where_that_is_less() -> None:
    fixed = Ledger("people", 1.0, 1e-6)
    for i in range(20):
        fixed = fixed.reserve(charge(i, 0.05, 0.0))
    epsilon, delta = fixed.spent
    assert 0.7 < epsilon < 0.95
    assert delta == 1e-6
    assert replace(fixed, adaptive=True).spent == (pytest.approx(1.0), 0.0)
    assert replace(fixed, delta=1e-300).spent == (pytest.approx(1.0), 0.0)
    assert Ledger("people", 1.0, 1e-6).spent == (0.0, 0.0)


def test_a_charge_just_above_the_budget_is_refused() -> None:
    """A tolerance of 1e-12 let through more than was promised."""
    assert not fits_budget([(1.0, 0.0)], 1 - 5e-13, 0.0, adaptive=False)
    assert not fits_budget([(0.5, 0.0), (0.5, 0.0)], 1 - 5e-13, 0.0, adaptive=True)
    assert not fits_budget([(1.0, 1e-6)], 1.0, 1e-6 * (1 - 1e-13), adaptive=True)
    assert fits_budget([(0.1, 1e-7)] * 10, 1.0, 1e-6, adaptive=True)
