"""The original files' loaders, on files made here and, where it is at hand, on the public data."""

import csv
import gzip
import os
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

from faircount.core.errors import InputError
from faircount.experiments.data import loaders, published_counts
from faircount.experiments.data.loaders import census_views, gowalla_views, wage_histogram
from faircount.experiments.data.populations import population

SHARED = Path(os.environ.get("FAIRCOUNT_DATA", Path(__file__).parents[5] / "shared" / "data"))
SOURCES = [("made", False), ("made", True), *([("shared", True)] if SHARED.is_dir() else [])]


def gowalla(path, view="gowalla-12"):
    return gowalla_views(path)[view]


def census(*paths, view="census"):
    return census_views(paths)[view]


def checkin(user, latitude, longitude):
    return f"{user}\t2010-10-19T23:55:27Z\t{latitude}\t{longitude}\t22847\n"


def person(wage):
    """A row as in census-income: 42 columns, a space behind each comma."""
    row = [
        "73",
        "Not in universe",
        "0",
        "0",
        "High school graduate",
        str(wage),
        *["Not in universe"] * 34,
        "95",
        "- 50000.",
    ]
    return ", ".join(row) + "\n"


def written(path, lines, zipped=False):
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text, 1) if zipped else text)
    return path


def made_checkins():
    rng = np.random.default_rng(11)
    users, where = rng.integers(0, 300, 3000), rng.uniform([25, -105], [50, -75], (3000, 2)).round(6)
    return [(int(user), *map(float, place)) for user, place in zip(users, where, strict=True)]


def shared_checkins():
    with gzip.open(SHARED / "gowalla_box_pois.csv.gz", "rt") as file:
        places = {row["poi"]: (float(row["lat"]), float(row["lon"])) for row in csv.DictReader(file)}
    with gzip.open(SHARED / "gowalla_box_records.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    return [(int(row["user"]), *places[row["poi"]]) for row in rows for _ in range(int(row["checkins"]))]


def one_by_one(checkins, rows, columns):
    """The paper's processing without any vectors."""
    visits = defaultdict(Counter)
    for user, latitude, longitude in checkins:
        if 30 <= latitude <= 45 and -100 <= longitude <= -80:
            row = min(int((latitude - 30) / (15 / rows)), rows - 1)
            column = min(int((longitude + 100) / (20 / columns)), columns - 1)
            visits[user][row * columns + column] += 1
    favourite = Counter(min(cells, key=lambda cell: (-cells[cell], cell)) for cells in visits.values())
    return tuple(favourite[cell] for cell in range(rows * columns))


@pytest.mark.parametrize(("source", "zipped"), SOURCES)
def test_gowalla_counts_users_by_most_visited_cell(source, zipped, tmp_path):
    checkins = {"made": made_checkins, "shared": shared_checkins}[source]()
    path = written(tmp_path / "checkins", [checkin(*each) for each in checkins], zipped)
    literal, other = gowalla(path).counts, gowalla(path, "gowalla-25").counts
    assert literal == one_by_one(checkins, 3, 4)
    assert other == one_by_one(checkins, 5, 5)
    if source == "shared":
        assert (literal, other) == (published_counts.GOWALLA_12, published_counts.GOWALLA_25)
        assert gowalla(path, "gowalla").counts == population("gowalla").counts


@pytest.mark.parametrize(("source", "zipped"), SOURCES)
def test_census_counts_persons_by_wage(source, zipped, tmp_path):
    if source == "shared":
        with gzip.open(SHARED / "census_test_columns.csv.gz", "rt") as file:
            wages = [int(row["wage_per_hour"]) for row in csv.DictReader(file)]
    else:
        wages = np.random.default_rng(12).choice([0, 0, 0, 5, 99, 100, 399, 400, 2099, 2100, 9900], 500).tolist()
    path = written(tmp_path / "census", map(person, wages), zipped)
    zero, held = wage_histogram(path)
    assert zero == wages.count(0)
    assert held == Counter(wage // 100 for wage in wages if wage)
    full, merged = census(path, view="census-full"), census(path)
    assert full.users == len(wages)
    assert len(full.labels) == 100
    assert merged.users == len(wages) - zero
    assert merged.counts[0] == sum(0 < wage < 400 for wage in wages)
    assert merged.counts[-1] == sum(wage >= 2100 for wage in wages)
    if source == "shared":
        assert (zero, held) == (published_counts.WAGE_ZERO, published_counts.WAGES)
        assert full.counts == population("census-full").counts
        assert merged.counts == population("census").counts


def test_ties_go_to_the_first_cell(tmp_path):
    """Cells 0, 5 and 11, once each, in any order; then two of three in cell 11."""
    places = [(42, -81), (31, -99), (37, -93)]
    lines = [checkin(user, *places[(user + turn) % 3]) for user in range(3) for turn in range(3)]
    lines += [checkin(9, 31, -99), checkin(9, 42, -81), checkin(9, 42, -81)]
    assert gowalla(written(tmp_path / "ties", lines)).counts == (3, *[0] * 10, 1)


def test_the_box_is_closed_and_lines_belong_to_the_north_and_east(tmp_path):
    lines = [checkin(1, 45, -80), checkin(2, 30, -100), checkin(3, 35, -95), checkin(4, 39, -84)]
    lines += [
        checkin(user, *place)
        for user, place in enumerate([(29.9999, -90), (45.0001, -90), (40, -79.99), (40, -101)], 5)
    ]
    path = written(tmp_path / "edges", lines)
    cells = np.flatnonzero(gowalla(path).counts)
    np.testing.assert_array_equal(cells, [0, 5, 7, 11])
    np.testing.assert_array_equal(np.flatnonzero(gowalla(path, "gowalla-25").counts), [0, 6, 19, 24])


def test_blocks_of_lines_do_not_show(tmp_path, monkeypatch):
    path = written(tmp_path / "checkins", [checkin(*each) for each in made_checkins()])
    people = written(tmp_path / "people", map(person, [0, 500, 600] * 7))
    whole = gowalla(path), wage_histogram(people)
    monkeypatch.setattr(loaders, "LINES", 17)
    assert (gowalla(path), wage_histogram(people)) == whole


def test_blank_lines_are_not_records(tmp_path):
    lines = ["\n", checkin(1, 31, -99), "  \n", checkin(2, 31, -99), "\n"]
    assert gowalla(written(tmp_path / "blank", lines)).users == 2


def test_two_parts_of_the_census_are_added(tmp_path):
    first = written(tmp_path / "census-income.data", map(person, [0, 450]))
    second = written(tmp_path / "census-income.test.gz", map(person, [0, 450, 2500]), zipped=True)
    assert wage_histogram(first, second) == (2, {4: 2, 25: 1})
    assert census(first, second).limits.startswith("all rows of census-income.data, census-income.test.gz")


GOOD = checkin(1, 31, -99)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1\t2010-10-19T23:55:27Z\t31\t-99\n", "4 columns instead of 5"),
        ("user\ttime\tlatitude\tlongitude\tplace\n", "user 'user', latitude 'latitude'"),
        (checkin("1.5", 31, -99), "user '1.5'"),
        (checkin(-1, 31, -99), "user '-1'"),
        (checkin(2**60, 31, -99), "user '1152921504606846976'"),
        (checkin(1, "nan", -99), "latitude 'nan'"),
        (checkin(1, 31, "inf"), "longitude 'inf'"),
        (checkin(1, "", -99), "latitude ''"),
        ("1,2010,31,-99,5\n", "1 columns instead of 5"),
        ("1\t2010", "2 columns instead of 5"),
    ],
)
@pytest.mark.parametrize("before", [0, 4])
def test_a_bad_check_in_is_named_by_its_line(bad, reason, before, tmp_path, monkeypatch):
    monkeypatch.setattr(loaders, "LINES", 3)
    path = written(tmp_path / "gowalla.txt", [*[GOOD] * before, bad])
    with pytest.raises(InputError, match=rf"gowalla.txt, line {before + 1}: ") as raised:
        gowalla(path)
    assert reason in str(raised.value)
    assert "download it again, or remove the line" in str(raised.value)


@pytest.mark.parametrize("wage", ["x", "-5", "12.5", "", 10**7])
def test_a_bad_person_is_named_by_its_line(wage, tmp_path):
    path = written(tmp_path / "census.data", [person(0), person(wage)])
    with pytest.raises(InputError, match=r"census.data, line 2: not usable: wage"):
        wage_histogram(path)


def test_a_short_row_of_the_census_is_named(tmp_path):
    path = written(tmp_path / "census.data", [person(0), "73, Not in universe\n"])
    with pytest.raises(InputError, match="line 2: 2 columns instead of 42"):
        census(path)


def test_files_that_are_no_data(tmp_path):
    with pytest.raises(InputError, match="check the path"):
        gowalla(tmp_path / "absent")
    with pytest.raises(InputError, match="empty"):
        gowalla(written(tmp_path / "empty", []))
    with pytest.raises(InputError, match="inside the box"):
        gowalla(written(tmp_path / "elsewhere", [checkin(1, 60, 10)]))
    with pytest.raises(InputError, match="census-income"):
        wage_histogram()
    with pytest.raises(InputError, match="census-income"):
        census(written(tmp_path / "empty", []))


def test_a_gzip_file_that_ends_too_early(tmp_path):
    path = written(tmp_path / "checkins.gz", [GOOD] * 5000, zipped=True)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cut short or damaged"):
        gowalla(path)
