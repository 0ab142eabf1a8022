"""No cell that we write is a formula, and every text can be read back."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.csv_cells import decode_cell, encode_cell, write_csv

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


@pytest.mark.parametrize("sign", [*FORMULA_SIGNS, "\n", "＝", "＋", "－", "＠"])
def test_no_cell_begins_like_a_formula(sign: str) -> None:
    text = f'{sign}HYPERLINK("https://example.org";A1)'
    assert encode_cell(text) == f"'{text}"
    assert decode_cell(encode_cell(text)) == text


@given(st.text(alphabet="'=+-@\t ab\n\r\"", max_size=6))
def test_every_text_reads_back(text: str) -> None:
    data = write_csv([text], [[text, 1]])
    header, row = csv.reader(io.StringIO(data.decode(), newline=""))
    assert [decode_cell(header[0]), decode_cell(row[0])] == [text, text]
    assert not any(cell.startswith(FORMULA_SIGNS) for cell in (*header, *row))


def test_a_line_end_inside_a_text_begins_no_row() -> None:
    """Every kind of line end, also the carriage return alone, which spreadsheets know as well."""
    for line_end in ("\n", "\r", "\r\n"):
        text = f"Ann{line_end}=HYPERLINK(A1)"
        data = write_csv(["name", "id"], [[text, 1]])
        assert data.decode() == f'name,id\n"{text}",1\n'


@pytest.mark.parametrize("number", [-0.25, -3, 0.0, 12, 1e-9])
def test_numbers_stay_numbers(number: float) -> None:
    cell = encode_cell(number)
    assert float(cell) == number
    assert not cell.startswith(FORMULA_SIGNS)


def test_nothing_is_an_empty_cell() -> None:
    assert encode_cell(None) == ""
    assert encode_cell("plain, text") == "plain, text"
