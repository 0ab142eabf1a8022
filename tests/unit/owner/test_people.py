"""People as they come: tables of every usual form, and clear words about what cannot be used."""

import io
import sys
import zipfile
from pathlib import Path

import openpyxl
import pytest

from faircount.core.errors import FaircountError, ParameterError
from faircount.owner.people import People, is_email, read_people

TABLE = "Name,E-Mail,Office\nZoë,zoe@example.org,Aldmoor\n\nBo,bo@example.org,\n"


def written(folder: Path, content: str | bytes, name: str = "people.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_table_keeps_all_columns_and_finds_the_addresses(tmp_path: Path) -> None:
    people = read_people(written(tmp_path, TABLE))
    assert people.names == ("zoe@example.org", "bo@example.org")
    assert people.columns_of(0) == (
        ("Name", "Zoë"),
        ("E-Mail", "zoe@example.org"),
        ("Office", "Aldmoor"),
    )
    assert People.decode(people.encode()) == people


@pytest.mark.parametrize(
    "content",
    [
        TABLE.encode("utf-8-sig"),
        TABLE.encode("utf-16"),
        TABLE.replace(",", ";").encode("cp1252"),
        TABLE.replace(",", "\t").encode("utf-16"),
        ("sep=;\r\n" + TABLE.replace(",", ";").replace("\n", "\r\n")).encode("utf-8-sig"),
        ("\n\n" + TABLE.replace(",", "|")).encode(),
        TABLE.replace("Office\n", "Office,,\n").encode(),
        TABLE.replace("bo@example.org,\n", "bo@example.org\n").encode(),
    ],
    ids=["bom", "utf-16", "cp1252", "tabs", "sep", "blank-lines", "empty-columns", "short-row"],
)
def test_what_spreadsheets_write_is_read(tmp_path: Path, content: bytes) -> None:
    people = read_people(written(tmp_path, content))
    assert people.names == ("zoe@example.org", "bo@example.org")
    assert people.rows[0] == ("Zoë", "zoe@example.org", "Aldmoor")
    assert people.header == ("Name", "E-Mail", "Office")


def test_a_guessed_encoding_is_mentioned(tmp_path: Path) -> None:
    assert "Windows-1252" in read_people(written(tmp_path, TABLE.encode("cp1252"))).note
    assert not read_people(written(tmp_path, TABLE)).note


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty: its first line must name the columns"),
        ("Name,E-Mail\n", "has a header and no people"),
        ("zoe@example.org,Zoë\nbo@example.org,Bo\n", "put a line above it that names the columns"),
        ("Mail\na@example.org\nb@example.org\nA@Example.org\n", "twice, in lines 2 and 4"),
        ("Name,Mail\nZoë,\nBo,b@example.org\nCy,c@example.org\n", "people without 'Mail', in line 2"),
        ("Mail\na@example.org\nb@example\nc@example.org\n", "no e-mail address in line 3"),
        ("Name,Room\nZoë,12\n", "--address-column .*no column of .* has e-mail addresses"),
        ("A,B\na@example.org,b@example.org\n", "several have e-mail addresses: 'A', 'B'"),
        ("Mail,Mail\na@example.org,b@example.org\n", "2 columns named 'Mail'"),
        (",Mail\nZoë,a@example.org\n", "column 1 of .* has no title"),
        ("Mail,City\na@example.org,Upper, Carrow\n", "line 2 of .* has 3 cells, but the header has 2"),
        ('Mail\n"a@example.org\n', "not readable as CSV"),
        ("x" * 200_000 + "\na@example.org\n", "not readable as CSV"),
        (b"Mail\n\0\0\n", "is not text"),
        (b"Mail\nZo\x81\n", "is not text"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_explained(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        read_people(written(tmp_path, content))


def test_the_owner_names_the_column(tmp_path: Path) -> None:
    path = written(tmp_path, "Name,Room\nZoë,12\nBo,14\n")
    assert read_people(path, "Room").names == ("12", "14")
    with pytest.raises(ParameterError, match="no column 'room'; it has 'Name', 'Room'"):
        read_people(path, "room")


def test_a_list_has_one_person_a_line(tmp_path: Path) -> None:
    path = written(tmp_path, "Zoë\n\nBo\n", "people.txt")
    assert read_people(path) == People.from_names(["Zoë", "Bo"])
    with pytest.raises(ParameterError, match="no columns"):
        read_people(path, "Name")


def sheet(*rows: tuple[object, ...]) -> bytes:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def test_a_spreadsheet_is_read(tmp_path: Path) -> None:
    content = sheet(("Number", "Mail"), (12.0, "a@example.org"), (None, None), (7, "b@example.org"))
    people = read_people(written(tmp_path, content, "people.xlsx"))
    assert people.names == ("a@example.org", "b@example.org")
    assert [row[0] for row in people.rows] == ["12", "7"]


def test_other_files_are_no_spreadsheets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match=r"cannot be read as a spreadsheet \(BadZipFile\)"):
        read_people(written(tmp_path, "nothing", "people.xlsx"))
    with pytest.raises(ParameterError, match=r"save it as \.xlsx"):
        read_people(written(tmp_path, "nothing", "people.ods"))
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(FaircountError, match=r"pip install 'faircount\[xlsx\]', or save it as CSV"):
        read_people(written(tmp_path, sheet(("Mail",)), "people.xlsx"))


SHEET = "xl/worksheets/sheet1.xml"


def with_part(name: str, content: str) -> bytes:
    """A spreadsheet with other bytes in one of its parts."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(sheet(("Mail",)))) as source,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for part in {*source.namelist(), name}:
            target.writestr(part, content if part == name else source.read(part))
    return out.getvalue()


def sheet_of(rows: str, size: str = "A1:A2") -> str:
    return (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
        f'<dimension ref="{size}"/><sheetData>{rows}</sheetData></worksheet>'
    )


def cell(place: str, text: str) -> str:
    return f'<c r="{place}" t="inlineStr"><is><t>{text}</t></is></c>'


def test_a_sheet_that_claims_to_be_huge_is_read_as_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faircount.owner.people.MAX_CELLS", 1000)
    rows = f'<row r="1">{cell("A1", "Mail")}</row><row r="99">{cell("A99", "a@example.org")}</row>'
    content = with_part(SHEET, sheet_of(rows, "A1:XFD1048576"))
    people = read_people(written(tmp_path, content, "people.xlsx"))
    assert people.names == ("a@example.org",)
    assert people.header == ("Mail",)


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faircount.owner.people.MAX_UNPACKED", 200_000)
    content = with_part("xl/media/picture.bin", "0" * 300_000)
    assert len(content) < 20_000
    with pytest.raises(ParameterError, match="too large for a list of people"):
        read_people(written(tmp_path, content, "people.xlsx"))


@pytest.mark.parametrize(
    "rows",
    [
        f'<row r="4000000000">{cell("A4000000000", "a@example.org")}</row>',
        "".join(f'<row r="{row}">{cell(f"ZZZ{row}", "x")}</row>' for row in range(1, 30)),
    ],
    ids=["many_rows", "many_cells"],
)
def test_cells_far_away_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    monkeypatch.setattr("faircount.owner.people.MAX_CELLS", 500_000)
    content = with_part(SHEET, sheet_of(rows))
    with pytest.raises(ParameterError, match="too large for a list of people"):
        read_people(written(tmp_path, content, "people.xlsx"))


@pytest.mark.parametrize(
    "text", ["a@b", "a b@example.org", "a@example.org\nBcc: b@example.org", "<a@example.org>", "@"]
)
def test_no_header_of_a_mail_hides_in_an_address(text: str) -> None:
    assert not is_email(text)
    assert is_email("zoë.o'neil+x@mail.example.org")
