"""Reading large CSV files with pyarrow: the same cells and the same errors as without it."""

import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from faircount.analysis import coded_column
from faircount.analysis.coded_column import CodedColumn, take
from faircount.analysis.histogram import histogram
from faircount.analysis.read import columns
from faircount.core.entropy import SeededStream
from faircount.core.errors import FaircountError

Outcome = list[list[object]] | str


@pytest.fixture
def outcomes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[Outcome, Outcome, bool]]:
    """Cells or the error with and without pyarrow, and whether pyarrow has read the file."""
    monkeypatch.setattr(coded_column, "LEAST_BYTES", 0)
    path = tmp_path / "answers.csv"

    def read(names: list[str]) -> tuple[Outcome, bool]:
        try:
            found = columns(path, names)
        except FaircountError as problem:
            return str(problem), False
        return [list(column) for column in found], isinstance(found[0], CodedColumn)

    def read_twice(content: bytes, *names: str) -> tuple[Outcome, Outcome, bool]:
        path.write_bytes(content)
        with_arrow, is_coded = read(list(names))
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "pyarrow", None)
            without, is_still_coded = read(list(names))
        assert not is_still_coded
        return with_arrow, without, is_coded

    return read_twice


PLAIN = {
    "two columns": b"id,item\n1,a\n2,b\n3,a\n",
    "no line end": b"id,item\n1,a\n2,b",
    "carriage returns": b"id,item\r\n1,a\r\n2,\r\n",
    "empty lines at the end": b"id,item\n1,a\n\n\n",
    "byte order mark": b"\xef\xbb\xbfid,item\n1,\xc3\xa4\n",
    "Excel's line": b"sep=;\nid;item\n1;a,b\n2; c \n",
    "cells that are words for nothing": b"id,item\n1,NA\n2,null\n3,\n4,nan\n5,#N/A\n",
    "numbers, dates and truth": b"id,item\n1,007\n2,1.50\n3,2024-01-01\n4,true\n5,1e3\n",
    "one column with an empty line": b"item\na\n\nb\n",
    "separators of Unicode": "id,item\n1,a\u2028b\n2,a\u0085b\n".encode(),
}

LEFT_TO_CSV = {
    "quotes": b'id,item\n1,"a,b"\n2,"c""d"\n',
    "a quote inside": b'id,item\n1,a"b\n',
    "an open quote": b'id,item\n1,"a\n2,b\n',
    "a lone carriage return": b"id,item\n1,a\r2,b\n",
    "a null byte": b"id,item\n1,a\0b\n",
    "no UTF-8": b"id,item\n1,\xe4\n",
    "no UTF-8 in another column": b"id,item\n\xe4,a\n",
    "too many fields": b"id,item\n1,a\n2,b,c\n",
    "too few fields": b"id,item\n1,a\n2\n",
    "an empty line": b"id,item\n1,a\n\n2,b\n",
    "an overlong cell": b"id,item\n1," + b"a" * 200_000 + b"\n",
    "an overlong cell elsewhere": b"id,item\n" + b"1" * 200_000 + b",a\n",
    "no rows": b"id,item\n",
    "a wide delimiter": "sep=§\nid§item\n1§a\n".encode(),
}


@pytest.mark.parametrize("content", PLAIN.values(), ids=PLAIN)
def test_plain_files_are_read_by_pyarrow(
    outcomes: Callable[..., tuple[Outcome, Outcome, bool]], content: bytes
) -> None:
    with_arrow, without, is_coded = outcomes(content, "item")
    assert is_coded
    assert with_arrow == without


@pytest.mark.parametrize("content", LEFT_TO_CSV.values(), ids=LEFT_TO_CSV)
def test_other_files_and_all_errors_are_those_of_the_csv_module(
    outcomes: Callable[..., tuple[Outcome, Outcome, bool]], content: bytes
) -> None:
    with_arrow, without, is_coded = outcomes(content, "item")
    assert not is_coded
    assert with_arrow == without


def test_random_files_read_alike(
    outcomes: Callable[..., tuple[Outcome, Outcome, bool]],
) -> None:
    chance = random.Random(5)  # noqa: S311 - the seed of a test
    # Delimiters, line ends, quotes and blanks more often than letters: that is where readers differ.
    letters = ["a", "b", " ", ",", ",", "\n", "\n", "\r\n", '"', ";", "ä", "\t", "\r", "\ufeff"]
    weights = [6, 6, 2, 4, 4, 4, 4, 1, 0.1, 1, 1, 1, 0.1, 0.2]
    coded = 0
    for _ in range(300):
        rows = "".join(chance.choices(letters, weights, k=chance.randrange(40)))
        with_arrow, without, is_coded = outcomes(f"x,y\n{rows}".encode(), "y", "x")
        assert with_arrow == without, rows
        coded += is_coded
    assert coded > 5


def test_small_files_do_not_import_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("item\na\nb\n")
    monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    assert columns(path, ["item"]) == [["a", "b"]]
    assert "pyarrow" not in sys.modules


def test_a_large_file_gives_the_same_result_either_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.csv"
    chosen = np.random.default_rng(2).integers(4, size=300_000)
    path.write_text(
        "n,item\n" + "".join(f"{row},{'wxyz'[item]}\n" for row, item in enumerate(chosen))
    )
    assert path.stat().st_size > coded_column.LEAST_BYTES
    assert isinstance(columns(path, ["item"])[0], CodedColumn)

    def run() -> dict[str, object]:
        entropy = SeededStream(1)
        result = histogram(
            path, "item", epsilon=1.0, domain=["w", "x", "y"], other="y", entropy=entropy
        )
        return result.to_dict()

    with_arrow = run()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run() == with_arrow


def test_a_coded_column_is_a_sequence_of_its_cells() -> None:
    column = CodedColumn(["a", "b"], np.array([1, 0, 1]))
    assert list(column) == ["b", "a", "b"]
    assert column[-1] == "b"
    assert list(column[1:]) == ["a", "b"]
    assert list(take(column, np.array([2, 1]))) == ["b", "a"]
    assert take(["x", "y"], np.array([1])) == ["y"]
