"""A privacy budget in a file, which all runs on the same people spend together.

    create -> [reserve -> draw -> show -> settle] -> [reserve -> ...] -> refused when it is spent

The file holds one line per population: the stored form of a ledger, the same that the aggregator
keeps. Every change is made under a lock, written to a second file, forced to the disk and renamed
over the first one, so that after any failure the file holds the ledger either before or after the
change. A charge is on the disk before noise is drawn. A run that is killed before it has shown its
result leaves its charge reserved ("spent, no result"), because somebody may have seen the result;
running it again spends privacy again.

This cannot prevent anybody from copying an older file back, or from opening a second budget for the
same people.
"""

import os
import shlex
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from faircount.accounting.guarantee import format_delta
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError, MalformedError, ParameterError, RefusedError
from faircount.core.files import describe_os_error, sync_folder
from faircount.core.validation import check_positive, check_real
from faircount.mechanisms.base import Mechanism
from faircount.protocol.survey.budget import Charge, Ledger
from faircount.protocol.survey.stored_ledger import decode, encode

# Characters of a population's name, and of the label of a charge.
MAX_NAME_LENGTH = 200

_NO_LOCKS = (
    "two runs at once could both spend what is left, so keep the ledger on a local disk of a Unix "
    "machine"
)


@dataclass(frozen=True)
class LedgerFile:
    """The budgets of one or more populations, in one file.

    path: where the file is, or will be

    >>> budget = fc.LedgerFile("customers.ledger")
    >>> ledger = budget.create("customers", epsilon=3.0, delta=1e-6)
    >>> ledger.spent
    (0.0, 0.0)
    """

    path: Path

    def __post_init__(self) -> None:
        # Resolved, because replacing a symbolic link would leave two diverging ledgers.
        object.__setattr__(self, "path", Path(self.path).resolve())

    def create(
        self, population: str, epsilon: float, delta: float, *, adaptive: bool = True
    ) -> Ledger:
        """Open the budget of a population: a total that is never raised.

        `adaptive`: later runs may be chosen by earlier results, so epsilons and deltas add up. If
        the whole series was fixed before the first result, adaptive=False composes it exactly,
        which allows more runs.
        """
        # A delta of 1 would allow every run.
        if not 0 <= check_real("delta", delta) < 1:
            raise ParameterError(f"delta must be at least 0 and below 1, not {delta:g}")
        _check_name(population)
        created = Ledger(population, check_positive("epsilon", epsilon), float(delta), adaptive)
        with self._lock():
            known = self.ledgers() if self.path.exists() else ()
            if any(ledger.population == population for ledger in known):
                raise RefusedError(
                    f"{self.path} has a budget of {population!r} already, and a budget is not "
                    "raised"
                )
            self._write((*known, created))
        return created

    def ledgers(self) -> tuple[Ledger, ...]:
        """All ledgers of the file as they are now."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            raise FaircountError(
                f"there is no ledger {self.path}: {self._how_to_create('NAME')}"
            ) from None
        except OSError as problem:
            raise FaircountError(
                f"{self.path} cannot be read: {describe_os_error(problem)}"
            ) from None
        try:
            found = tuple(decode(line) for line in lines)
        except MalformedError as problem:
            # A line that fails its check is refused and not repaired: a guess could give spent
            # privacy back.
            raise FaircountError(f"{self.path}: {problem}") from None
        if len({ledger.population for ledger in found}) < len(found):
            raise FaircountError(
                f"{self.path} has a population twice: it was edited by hand, restore it from a copy"
            )
        return found

    def ledger(self, population: str) -> Ledger:
        """The ledger of one population."""
        found = self.ledgers()
        for ledger in found:
            if ledger.population == population:
                return ledger
        known = ", ".join(repr(ledger.population) for ledger in found) or "none"
        raise FaircountError(
            f"{self.path} has no population {population!r}, only {known}: "
            f"{self._how_to_create(shlex.quote(population))}"
        )

    def _how_to_create(self, population: str) -> str:
        """The command that makes a budget in this file."""
        file = shlex.quote(str(self.path))
        return (
            f"create it with faircount budget {file} --population {population} --epsilon TOTAL "
            "--delta TOTAL"
        )

    def change(self, population: str, change: Callable[[Ledger], Ledger]) -> Ledger:
        """Change one ledger under the lock, and write it to the disk."""
        self.ledger(population)  # a wrong name is reported before a lock file is left behind
        with self._lock():
            # Read again: another run may have spent something before the lock was ours.
            before = self.ledger(population)
            after = change(before)
            self._write(tuple(after if known == before else known for known in self.ledgers()))
        return after

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Exclude other processes on this machine; the lock of a process ends with it."""
        try:
            from fcntl import LOCK_EX, flock
        except ImportError:
            raise RefusedError(f"this system has no file locks: {_NO_LOCKS}") from None
        # A file of its own: a lock on the ledger would be lost when the ledger is replaced.
        path = self.path.with_name(self.path.name + ".lock")
        with _open_for_writing(path, "ab") as lock:
            try:
                flock(lock, LOCK_EX)
            except OSError as problem:
                raise RefusedError(
                    f"{path} cannot be locked ({describe_os_error(problem)}): {_NO_LOCKS}"
                ) from None
            yield

    def _write(self, ledgers: tuple[Ledger, ...]) -> None:
        """Replace the file, under the lock."""
        fresh = self.path.with_name(self.path.name + ".new")
        try:
            with _open_for_writing(fresh, "wb") as target:
                for ledger in ledgers:
                    target.write(encode(ledger) + b"\n")
                # The new content reaches the disk before the rename makes it the ledger. In the
                # other order a power failure could leave an empty ledger.
                target.flush()
                os.fsync(target.fileno())
                # Whoever may read the ledger may still read it after the change.
                if self.path.exists():
                    shutil.copymode(self.path, fresh)
                fresh.replace(self.path)
        except FaircountError:
            # Probably the disk is full: the half-written file must not keep it so.
            fresh.unlink(missing_ok=True)
            raise
        try:
            sync_folder(self.path.parent)  # the rename itself is on the disk only after this
        except OSError as problem:
            raise FaircountError(
                f"{self.path.parent} cannot be forced to the disk: {describe_os_error(problem)}; "
                "the ledger "
                "has changed, and may change back if the power fails"
            ) from None


@dataclass
class Account:
    """One run's access to a budget: reserve before noise is drawn, settle when it was shown."""

    file: LedgerFile
    population: str
    charge: bytes | None = field(default=None, init=False, repr=False)

    def reserve(self, epsilon: float, delta: float, label: str) -> None:
        """Charge the population, or refuse; when this returns, the charge is on the disk."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        labelled = f"{now} {label}"[:MAX_NAME_LENGTH]
        wanted = Charge(SystemEntropy().bytes(16), epsilon, delta, label=labelled)

        def reserve_in(ledger: Ledger) -> Ledger:
            if not ledger.covers(wanted):
                raise RefusedError(
                    f"the budget of {ledger.population!r} does not cover this run: it costs "
                    f"{_describe(epsilon, delta)}, and {_describe(*ledger.spent)} are spent of "
                    f"{_describe(ledger.epsilon, ledger.delta)}. Nothing was drawn. Ask for less, "
                    "or stop here: a second budget for the same people protects nobody"
                )
            return ledger.reserve(wanted)

        self.file.change(self.population, reserve_in)
        self.charge = wanted.survey

    def describe_spending(self) -> str:
        """A phrase that says how much of the budget is spent."""
        ledger = self.file.ledger(self.population)
        total = _describe(ledger.epsilon, ledger.delta)
        return f"{_describe(*ledger.spent)} spent of {total}"

    def settle(self) -> str | None:
        """Record that the result was shown.

        A problem is returned and not raised, so that no caller loses the result because of it.
        """
        survey = self.charge
        self.charge = None
        if survey is None:
            return None
        try:
            self.file.change(self.population, lambda ledger: ledger.settle(survey))
        except FaircountError as problem:
            return (
                f"the ledger shows this run as 'spent, no result', although it has one: {problem}"
            )
        return None


@contextmanager
def charge_budget(
    ledger: "str | Path | Account | None",
    population: str | None,
    entropy: Entropy,
    mechanisms: Sequence[Mechanism],
    label: str,
) -> Iterator[None]:
    """Charge what these mechanisms guarantee before the body draws noise, and settle after it.

    The mechanisms run on groups that have nobody in common, so the largest epsilon and delta are
    charged. If the caller passes an `Account`, the caller settles it when the result is safe.
    """
    # A simulation must not use up the budget of real people, nor look like a release in the ledger.
    if not isinstance(entropy, SystemEntropy):
        raise ParameterError(
            "seeded randomness protects nobody, so there is no budget to spend: leave the ledger "
            "out"
        )
    account = account_of(ledger, population)
    guarantees = [mechanism.stated_guarantees()[0] for mechanism in mechanisms]
    epsilon = max(guarantee.epsilon for guarantee in guarantees)
    delta = max(guarantee.delta for guarantee in guarantees)
    account.reserve(epsilon, delta, label)
    # If the body raises, the charge stays reserved: nobody knows how much of the result was seen.
    yield
    if account is ledger:
        return
    problem = account.settle()
    if problem is not None:
        # A warning and not an error: the result is worth more than the entry in the ledger.
        warnings.warn(problem, stacklevel=3)


def account_of(ledger: "str | Path | Account | None", population: str | None) -> Account:
    """The account that a caller passes, or names by file and population."""
    if isinstance(ledger, Account):
        return ledger
    if ledger is None or population is None:
        raise ParameterError(
            "a budget has a file and a population: give both, --ledger FILE and --population NAME "
            "(ledger= and population= in Python)"
        )
    return Account(LedgerFile(Path(ledger)), population)


def _describe(epsilon: float, delta: float) -> str:
    return f"epsilon {epsilon:.4g} and delta {format_delta(delta)}"


def _check_name(population: object) -> None:
    if (
        not isinstance(population, str)
        or not population.strip()
        or len(population) > MAX_NAME_LENGTH
    ):
        raise ParameterError(
            f"a population needs a name of at most {MAX_NAME_LENGTH} characters, such as "
            "'customers 2026'"
        )


@contextmanager
def _open_for_writing(path: Path, mode: str) -> Iterator[Any]:
    try:
        with path.open(mode) as target:
            yield target
    except OSError as problem:
        raise FaircountError(
            f"{path} cannot be written: {describe_os_error(problem)}; the ledger is as it was"
        ) from None
