"""Tables from anywhere, and clear words where there is none."""

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from faircount.analysis.read import columns
from faircount.core.errors import AnswerError, FaircountError, ParameterError

ROWS = {"id": ["1", "2", "3"], "city": ["Zürich", "São Paulo, Brazil", "東京"]}


def write(folder: Path, text: str, **how: Any) -> Path:
    path = folder / "table.csv"
    path.write_text(text, **({"encoding": "utf-8"} | how))
    return path


def test_csv_with_unicode_and_commas(tmp_path: Path) -> None:
    path = write(tmp_path, 'id,city\n1,Zürich\n2,"São Paulo, Brazil"\n3,東京\n\n\n')
    assert columns(path, ["city", "id"]) == [ROWS["city"], ROWS["id"]]
    assert columns(str(path), ["city"]) == [ROWS["city"]]


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes("\ufeffcity,n\r\na,1\r\nb,2\r\n".encode())
    assert columns(path, ["city"]) == [["a", "b"]]


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_other_delimiters_are_found_by_the_header(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path, f"id{delimiter}city\n1{delimiter}a,b\n")
    assert columns(path, ["city", "id"]) == [["a,b"], ["1"]]


def test_a_cell_may_hold_a_line_break(tmp_path: Path) -> None:
    path = write(tmp_path, 'id,city\n1,"two\nlines"\n2,b\n')
    assert columns(path, ["city"]) == [["two\nlines", "b"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("id,city\n", "no rows"),
        ("id,town\n1,a\n", "no column 'city'; it has 'id', 'town'"),
        ("city,city\na,b\n", "2 columns named 'city'"),
        ("id,city\n1,a\n\n\n2,b\n", "line 3 of .*table.csv is empty: remove it"),
        ("id,city\n1,a\n2\n", "line 3 .* has 1 fields, but its header has 2"),
        ('id,city\n1,"a\n2,b\n', "not readable as CSV"),
    ],
)
def test_bad_files_are_told_in_words(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(AnswerError, match=words):
        columns(write(tmp_path, text), ["city"])


def test_an_empty_line_in_a_file_of_one_column_is_an_empty_cell(tmp_path: Path) -> None:
    path = write(tmp_path, "city\n\na\n\n\nb\n\n\n")
    assert columns(path, ["city"]) == [["", "a", "", "", "b"]]


@pytest.mark.parametrize(
    ("header", "name", "meant"),
    [
        (["id", "City"], "city", "'City'"),
        (["id", " city"], "city", "' city'"),
        ([0, 1], "1", "1"),
        (["0", "1"], 1, "'1'"),
    ],
)
def test_a_name_that_nearly_fits_is_suggested(header: list[Any], name: Any, meant: str) -> None:
    table = {column: ["a", "b"] for column in header}
    for kind in (dict, pd.DataFrame):
        with pytest.raises(AnswerError, match=rf"did you mean {meant}\?$"):
            columns(kind(table), [name])
    with pytest.raises(AnswerError, match=r"no column 'town'; it has [^?]*$"):
        columns(table, ["town"])


def test_the_name_of_the_index_is_no_column() -> None:
    frame = pd.DataFrame(ROWS).set_index("id")
    with pytest.raises(AnswerError, match=r"'id' is the index of the table .* reset_index\(\)"):
        columns(frame, ["city", "id"])
    assert columns(frame.reset_index(), ["city", "id"]) == [ROWS["city"], ROWS["id"]]


def test_files_that_are_not_there_or_not_text(tmp_path: Path) -> None:
    with pytest.raises(AnswerError, match="cannot be opened: no such file"):
        columns(tmp_path / "nothing.csv", ["city"])
    with pytest.raises(AnswerError, match="cannot be opened"):
        columns(tmp_path, ["city"])
    with pytest.raises(AnswerError, match="not UTF-8"):
        columns(write(tmp_path, "city\nZürich\n", encoding="latin-1"), ["city"])


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"city": ["a", None, "c"], "n": [1, 2, 3]}), path)
    assert columns(path, ["city", "n"]) == [["a", None, "c"], [1, 2, 3]]
    with pytest.raises(AnswerError, match="no column 'town'"):
        columns(path, ["town"])
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(AnswerError, match="cannot be read as Parquet"):
        columns(path, ["city"])


@pytest.mark.parametrize(
    "table",
    [
        ROWS,
        pd.DataFrame(ROWS),
        pd.DataFrame(ROWS).astype("category"),
        pa.table(ROWS),
        {"id": np.array(ROWS["id"]), "city": tuple(ROWS["city"])},
    ],
    ids=["mapping", "pandas", "categories", "arrow", "arrays"],
)
def test_frames_and_mappings(table: Any) -> None:
    assert columns(table, ["city", "id"]) == [ROWS["city"], ROWS["id"]]
    with pytest.raises(AnswerError, match="no column 'town'"):
        columns(table, ["town"])


def test_what_is_no_table() -> None:
    for table in (7, object(), np.zeros((2, 2)), b"abc"):
        with pytest.raises(AnswerError, match="a table is"):
            columns(table, ["city"])
    with pytest.raises(AnswerError, match="differ in length"):
        columns({"a": [1, 2], "b": [1]}, ["a", "b"])
    for column in ("abc", 5):
        with pytest.raises(AnswerError, match="list of values"):
            columns({"a": column}, ["a"])
    with pytest.raises(AnswerError, match="no rows"):
        columns(pd.DataFrame({"a": []}), ["a"])


def test_a_long_list_of_columns_is_cut() -> None:
    with pytest.raises(AnswerError, match=r"'c11', \.\.\."):
        columns({f"c{i}": [1] for i in range(40)}, ["x"])


@pytest.mark.parametrize(
    "answers",
    [
        ROWS["city"],
        tuple(ROWS["city"]),
        np.array(ROWS["city"]),
        pd.Series(ROWS["city"]),
        pd.Series(ROWS["city"], name="city", dtype="category"),
        pd.Categorical(ROWS["city"]),
        pd.Index(ROWS["city"]),
        pa.array(ROWS["city"]),
        pa.chunked_array([ROWS["city"][:1], ROWS["city"][1:]]),
    ],
    ids=lambda answers: type(answers).__name__,
)
def test_one_list_of_answers_is_a_table(answers: Any) -> None:
    assert columns(answers, [None]) == [ROWS["city"]]
    with pytest.raises(ParameterError, match="has no column 'level'"):
        columns(answers, [None, "level"])


def test_the_name_of_a_series_may_be_given() -> None:
    assert columns(pd.Series([1, 2], name="n"), ["n"]) == [[1, 2]]


def test_a_table_needs_the_name_of_a_column(tmp_path: Path) -> None:
    for table in (ROWS, pd.DataFrame(ROWS), write(tmp_path, "city\na\n")):
        with pytest.raises(ParameterError, match="say which column"):
            columns(table, [None])


def test_packed_files(tmp_path: Path) -> None:
    path = tmp_path / "table.csv.gz"
    path.write_bytes(gzip.compress("city\nZürich\nb\n".encode()))
    assert columns(path, ["city"]) == [["Zürich", "b"]]
    for damaged in (b"city\na\n", path.read_bytes()[:-6], path.read_bytes()[:12] + b"xxxx"):
        path.write_bytes(damaged)
        with pytest.raises(AnswerError, match="cannot be unpacked"):
            columns(path, ["city"])


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16", "latin-1"])
def test_other_encodings_are_named(tmp_path: Path, encoding: str) -> None:
    path = write(tmp_path, "city\nZürich\n", encoding=encoding)
    assert columns(path, ["city"], encoding) == [["Zürich"]]
    with pytest.raises(
        AnswerError, match=r"not UTF-8 text: name its encoding, as in --encoding cp1252"
    ):
        columns(path, ["city"])


def test_an_encoding_that_is_none_or_does_not_apply(tmp_path: Path) -> None:
    path = write(tmp_path, "city\nZürich\n")
    with pytest.raises(ParameterError, match="there is no encoding 'utf-9'"):
        columns(path, ["city"], "utf-9")
    with pytest.raises(AnswerError, match="is not ascii text"):
        columns(path, ["city"], "ascii")
    for table in (ROWS, tmp_path / "a.parquet"):
        with pytest.raises(FaircountError, match="leave it out"):
            columns(table, ["city"], "utf-8")


@pytest.mark.parametrize("line", ["sep=;", "SEP=;", '"sep=;"', "sep=;\r"])
def test_excels_first_line_names_the_delimiter(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, f"{line}\nid;city, town\n1;a,b\n", newline="")
    assert columns(path, ["city, town"]) == [["a,b"]]


def test_a_column_may_be_called_sep(tmp_path: Path) -> None:
    assert columns(write(tmp_path, "sep=;id\nx;1\n"), ["id"]) == [["1"]]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    source = io.TextIOWrapper(io.BytesIO("city\nZürich\n".encode()), encoding="ascii")
    monkeypatch.setattr("sys.stdin", source)
    assert columns("-", ["city"]) == [["Zürich"]]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(AnswerError, match="standard input is empty"):
        columns(Path("-"), ["city"])


@pytest.mark.parametrize("name", ["answers.xlsx", "answers.XLS", "answers.ods"])
def test_a_spreadsheet_is_told_from_text(name: str) -> None:
    with pytest.raises(AnswerError, match="is a spreadsheet: save its sheet as CSV"):
        columns(name, ["city"])
