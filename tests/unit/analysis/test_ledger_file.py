"""A budget in a file: spent before drawn, whatever happens meanwhile."""

import errno
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import faircount as fc
from faircount.analysis.histogram import histogram
from faircount.analysis.ledger_file import Account, LedgerFile
from faircount.core.entropy import SeededStream
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.protocol.survey.budget import Status

ITEMS = ["a", "b", "c"]
TABLE = {"answer": ["a", "b", "b", "c"] * 100, "level": ["x", "y"] * 200, "who": list(range(400))}
PEOPLE: dict[str, Any] = {"population": "people"}


@pytest.fixture
def file(tmp_path: Path) -> LedgerFile:
    made = LedgerFile(tmp_path / "people.ledger")
    made.create("people", 1.0, 1e-6)
    return made


def statuses(file: LedgerFile) -> list[Status]:
    return [charge.status for charge in file.ledger("people").charges]


def ask(file: LedgerFile, epsilon: float = 0.4, **known: Any) -> Any:
    return histogram(
        TABLE, "answer", domain=ITEMS, epsilon=epsilon, ledger=file.path, **PEOPLE, **known
    )


def test_runs_spend_until_the_budget_is_spent(file: LedgerFile) -> None:
    """Forty runs of the same data averaged to the truth, each saying epsilon 1."""
    for _ in range(2):
        ask(file)
    with pytest.raises(
        RefusedError, match=r"epsilon 0.4 and .* epsilon 0.8 and .* Nothing was drawn"
    ):
        ask(file)
    ask(file, 0.2)
    assert statuses(file) == [Status.SPENT] * 3
    assert file.ledger("people").spent[0] == pytest.approx(1.0)
    assert "answer: frequencies" in file.ledger("people").charges[0].label


def test_a_charge_is_named_after_the_column_if_it_has_a_name(file: LedgerFile) -> None:
    series = pd.Series(TABLE["answer"], name="city")
    for table in (TABLE["answer"], series):
        histogram(table, domain=ITEMS, epsilon=0.4, ledger=file.path, **PEOPLE)
    labels = [charge.label for charge in file.ledger("people").charges]
    assert "None" not in labels[0]
    assert "city: frequencies" in labels[1]


def test_answers_and_means_are_charged_too(file: LedgerFile) -> None:
    fc.run(TABLE["answer"], fc.Laplace(items=ITEMS, epsilon=0.5), ledger=file.path, **PEOPLE)
    fc.run(np.zeros(400), fc.Duchi(epsilon=0.5), ledger=file.path, **PEOPLE)
    assert [charge.epsilon for charge in file.ledger("people").charges] == [0.5, 0.5]
    with pytest.raises(RefusedError, match="does not cover"):
        fc.run(np.zeros(400), fc.Duchi(epsilon=0.5), ledger=file.path, **PEOPLE)


def test_groups_of_one_run_have_nobody_in_common(file: LedgerFile) -> None:
    levels: Any = {"x": 0.3, "y": 0.9}
    ask(file, levels, groups="level", public_groups=True, user="who")
    assert [charge.epsilon for charge in file.ledger("people").charges] == [0.9]


def test_what_is_refused_before_it_is_drawn_costs_nothing(file: LedgerFile) -> None:
    for known in ({"epsilon": 1e-9}, {"mechanism": "dpds"}, {"user": "nobody"}, {"epsilon": 0.01}):
        with pytest.raises(FaircountError):
            ask(file, **known)
    assert statuses(file) == []


def test_what_fails_while_it_is_drawn_stays_charged(
    file: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("faircount.analysis.histogram.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ask(file)
    assert statuses(file) == [Status.RESERVED]
    assert file.ledger("people").spent[0] == 0.4


def test_seeded_runs_have_no_budget(file: LedgerFile) -> None:
    with pytest.raises(ParameterError, match="protects nobody"):
        ask(file, entropy=SeededStream(1))


def test_a_fixed_series_composes_exactly(tmp_path: Path) -> None:
    file = LedgerFile(tmp_path / "a")
    file.create("fixed", 1.0, 1e-6, adaptive=False)
    account = Account(file, "fixed")
    for _ in range(25):
        account.reserve(0.05, 0.0, "one of many")
        account.settle()
    assert 0.9 < file.ledger("fixed").spent[0] < 1.0


def test_a_budget_is_not_raised_and_populations_do_not_mix(file: LedgerFile) -> None:
    with pytest.raises(RefusedError, match="is not raised"):
        file.create("people", 9.0, 1e-6)
    file.create("others", 2.0, 0.0)
    ask(file)
    assert [ledger.population for ledger in file.ledgers()] == ["people", "others"]
    assert not file.ledger("others").charges


@pytest.mark.parametrize(
    ("known", "words"),
    [
        ({"ledger": None}, "give both"),
        ({"population": None}, "give both"),
        (
            {"population": "nobody"},
            "has no population 'nobody', only 'people'.* --population nobody",
        ),
        (
            {"ledger": "nowhere"},
            "there is no ledger .*create it with faircount budget .*nowhere --",
        ),
    ],
)
def test_a_budget_that_is_not_there_is_told(
    file: LedgerFile, known: dict[str, Any], words: str
) -> None:
    named: dict[str, Any] = {"ledger": file.path, **PEOPLE} | known
    with pytest.raises(FaircountError, match=words):
        histogram(TABLE, "answer", domain=ITEMS, epsilon=0.1, **named)
    assert not Path("nowhere.lock").exists()


def test_other_files_are_no_ledger(file: LedgerFile) -> None:
    whole = file.path.read_bytes()
    for data in (b"city\nAldmoor\n", whole[:-10], whole.replace(b"1.0", b"9.0"), whole + whole):
        file.path.write_bytes(data)
        with pytest.raises(FaircountError, match=r"people\.ledger"):
            ask(file)
        assert file.path.read_bytes() == data


@pytest.mark.parametrize(
    "wrong", [("", 1.0, 0.0), ("a", 0.0, 0.0), ("a", 1.0, 1.0), ("a" * 201, 1.0, 0.0)]
)
def test_a_budget_needs_a_name_and_a_total(tmp_path: Path, wrong: tuple[str, float, float]) -> None:
    with pytest.raises(ParameterError):
        LedgerFile(tmp_path / "a").create(*wrong)
    assert not (tmp_path / "a").exists()


def fill_disk(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_leaves_the_ledger_as_it_was(
    file: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = file.path.read_bytes()
    monkeypatch.setattr(os, "fsync", fill_disk)
    with pytest.raises(FaircountError, match="no space left on device; the ledger is as it was"):
        ask(file)
    assert file.path.read_bytes() == before
    assert not file.path.with_name("people.ledger.new").exists()


def test_a_result_is_not_lost_when_the_disk_fills_up_meanwhile(
    file: LedgerFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from faircount.analysis import histogram as module

    draw = module.run

    def fills(*known: Any, **more: Any) -> Any:
        found = draw(*known, **more)
        monkeypatch.setattr(os, "fsync", fill_disk)
        return found

    monkeypatch.setattr(module, "run", fills)
    with pytest.warns(
        UserWarning, match="shows this run as 'spent, no result', although it has one"
    ):
        assert ask(file).included == 400
    assert statuses(file) == [Status.RESERVED]


def test_without_locks_nothing_is_run(file: LedgerFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse_lock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse_lock)
    with pytest.raises(RefusedError, match=r"cannot be locked \(no locks available\)"):
        ask(file)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(RefusedError, match="has no file locks"):
        ask(file)
    assert statuses(file) == []


def test_a_link_and_the_rights_of_a_file_stay(file: LedgerFile, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file.path)
    file.path.chmod(0o640)
    Account(LedgerFile(tmp_path / "link"), "people").reserve(0.1, 0.0, "x")
    assert (tmp_path / "link").is_symlink()
    assert file.path.stat().st_mode & 0o777 == 0o640
    assert len(statuses(file)) == 1
