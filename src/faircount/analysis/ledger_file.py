"""A budget in a file: what all runs on the same people spend together, whoever starts them on this machine.

    create -> [reserve -> draw -> show -> settle] -> [reserve -> ...] -> refused once the total is spent

The file holds one line per population, each the stored form of a ledger, the same as S2 keeps. A change is made under a
lock, written beside the file, forced to the disk and put in its place at once: whatever fails, there is either the
ledger before or the ledger after. A charge is on the disk before anything is drawn. A run that is killed before it has
shown its result leaves its charge reserved: spent, no result; running again spends again.

Out of reach: somebody who copies an older file back, or who opens a second budget for the same people.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faircount.accounting.guarantee import delta_in_words
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError, MalformedError, ParameterError, RefusedError
from faircount.core.files import reason, sync_folder
from faircount.core.validation import positive, real
from faircount.mechanisms.base import Mechanism
from faircount.protocol.survey.budget import Charge, Ledger
from faircount.protocol.survey.stored_ledger import decode, encode

_LONGEST = 200  # characters of a population's name, and of what a charge was for


@dataclass(frozen=True)
class LedgerFile:
    """The budgets of one or more populations, in one file.

    path: where the file is, or will be
    """

    path: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path).resolve())  # a link stays a link when the file is replaced

    def create(self, population: str, epsilon: float, delta: float, *, adaptive: bool = True) -> Ledger:
        """Open the budget of a population: a total that is never raised.

        `adaptive`: later runs may be chosen by earlier results, so epsilons and deltas add up. Where the whole series
        was fixed before the first result, adaptive=False composes it exactly, which allows for more.
        """
        if not 0 <= real("delta", delta) < 1:
            raise ParameterError(f"delta must be at least 0 and below 1, not {delta:g}")
        opened = Ledger(_name(population), positive("epsilon", epsilon), float(delta), adaptive)
        with self._locked():
            known = self.ledgers() if self.path.exists() else ()
            if any(each.population == population for each in known):
                raise RefusedError(f"{self.path} has a budget of {population!r} already, and a budget is not raised")
            self._write((*known, opened))
        return opened

    def ledgers(self) -> tuple[Ledger, ...]:
        """All ledgers of the file as they are now."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            raise FaircountError(f"there is no ledger {self.path}: {_HOW_TO_CREATE}") from None
        except OSError as problem:
            raise FaircountError(f"{self.path} cannot be read: {reason(problem)}") from None
        try:
            found = tuple(decode(each) for each in lines)
        except MalformedError as problem:
            raise FaircountError(f"{self.path}: {problem}") from None
        if len({each.population for each in found}) < len(found):
            raise FaircountError(f"{self.path} has a population twice: it was changed by hand, restore it from a copy")
        return found

    def ledger(self, population: str) -> Ledger:
        """The ledger of one population."""
        found = self.ledgers()
        for each in found:
            if each.population == population:
                return each
        there = ", ".join(repr(each.population) for each in found) or "none"
        raise FaircountError(f"{self.path} has no population {population!r}, only {there}: {_HOW_TO_CREATE}")

    def change(self, population: str, change: Callable[[Ledger], Ledger]) -> Ledger:
        """Change one ledger, alone and for good."""
        self.ledger(population)  # a name that is wrong is told before a lock is left behind
        with self._locked():
            before = self.ledger(population)
            after = change(before)
            self._write(tuple(after if each == before else each for each in self.ledgers()))
        return after

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Alone on this machine; a lock of a process that dies is gone with it."""
        try:
            from fcntl import LOCK_EX, flock
        except ImportError:
            raise RefusedError(f"this system has no file locks: {_NO_LOCKS}") from None
        lock = self.path.with_name(self.path.name + ".lock")
        with _written(lock, "ab") as held:
            try:
                flock(held, LOCK_EX)
            except OSError as problem:
                raise RefusedError(f"{lock} cannot be locked ({reason(problem)}): {_NO_LOCKS}") from None
            yield

    def _write(self, ledgers: tuple[Ledger, ...]) -> None:
        """Under the lock: all of it on the disk, then in the place of the old one."""
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            with _written(fresh, "wb") as target:
                target.write(b"".join(encode(each) + b"\n" for each in ledgers))
                target.flush()
                os.fsync(target.fileno())
                if self.path.exists():
                    shutil.copymode(self.path, fresh)
                fresh.replace(self.path)
        except FaircountError:
            fresh.unlink(missing_ok=True)
            raise
        try:
            sync_folder(self.path.parent)  # a new name is on the disk only when its folder is
        except OSError as problem:
            raise FaircountError(
                f"{self.path.parent} cannot be forced to the disk: {reason(problem)}; the ledger has changed, and may "
                "change back if the power fails"
            ) from None


@dataclass
class Account:
    """One run's way to a population's budget: reserve before anything is drawn, settle when the result is safe."""

    file: LedgerFile
    population: str
    charge: bytes | None = field(default=None, init=False, repr=False)

    def reserve(self, epsilon: float, delta: float, label: str) -> None:
        """Charge the population, or refuse; when this returns, the charge is on the disk."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        wanted = Charge(SystemEntropy().bytes(16), epsilon, delta, label=f"{now} {label}"[:_LONGEST])
        self.file.change(self.population, lambda before: _reserved(before, wanted))
        self.charge = wanted.survey

    def left(self) -> str:
        """What is spent of how much, in words."""
        now = self.file.ledger(self.population)
        return f"{_amounts(*now.spent)} spent of {_amounts(now.epsilon, now.delta)}"

    def settle(self) -> str | None:
        """Note that there is a result; what hinders that is returned, for the result must not be lost over it."""
        survey, self.charge = self.charge, None
        if survey is None:
            return None
        try:
            self.file.change(self.population, lambda before: before.settle(survey))
        except FaircountError as problem:
            return f"the ledger shows this run as 'spent, no result', although here is one: {problem}"
        return None


@contextmanager
def charged(
    ledger: "str | Path | Account | None",
    population: str | None,
    entropy: Entropy,
    mechanisms: Sequence[Mechanism],
    label: str,
) -> Iterator[None]:
    """Around the drawing: charge what these mechanisms guarantee, in groups that have nobody in common, and settle.

    An account that a caller brings along is not settled here: its owner does that when the result is safe.
    """
    if not isinstance(entropy, SystemEntropy):
        raise ParameterError("seeded randomness protects nobody, so there is no budget to spend: leave the ledger out")
    account = account_of(ledger, population)
    stated = [each.stated()[0] for each in mechanisms]
    account.reserve(max(each.epsilon for each in stated), max(each.delta for each in stated), label)
    yield
    problem = None if account is ledger else account.settle()
    if problem is not None:
        warnings.warn(problem, stacklevel=3)


def account_of(ledger: "str | Path | Account | None", population: str | None) -> Account:
    """The account that a caller names by file and population, or brings along."""
    if isinstance(ledger, Account):
        return ledger
    if ledger is None or population is None:
        raise ParameterError(
            "a budget has a file and a population: give both, --ledger FILE and --population NAME (ledger= and "
            "population= in Python)"
        )
    return Account(LedgerFile(Path(ledger)), population)


def _reserved(before: Ledger, wanted: Charge) -> Ledger:
    if not before.admits(wanted):
        cost, total = _amounts(wanted.epsilon, wanted.delta), _amounts(before.epsilon, before.delta)
        raise RefusedError(
            f"the budget of {before.population!r} does not admit this run: it costs {cost}, and of {total} "
            f"{_amounts(*before.spent)} are spent. Nothing was drawn. Ask for less, or stop here: a second budget for "
            "the same people protects nobody"
        )
    return before.reserve(wanted)


def _amounts(epsilon: float, delta: float) -> str:
    return f"epsilon {epsilon:.4g} and delta {delta_in_words(delta)}"


def _name(population: object) -> str:
    if not isinstance(population, str) or not population.strip() or len(population) > _LONGEST:
        raise ParameterError(f"a population needs a name of at most {_LONGEST} characters, such as 'customers 2026'")
    return population


@contextmanager
def _written(path: Path, mode: str) -> Iterator[Any]:
    try:
        with path.open(mode) as target:
            yield target
    except OSError as problem:
        raise FaircountError(f"{path} cannot be written: {reason(problem)}; the ledger is as it was") from None


_HOW_TO_CREATE = "create it with faircount budget FILE --population NAME --epsilon TOTAL --delta TOTAL"
_NO_LOCKS = "two runs at once could both spend what is left, so keep the ledger on a local disk of a Unix machine"
