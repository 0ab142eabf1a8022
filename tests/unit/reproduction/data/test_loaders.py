"""The loaders of the original files, on made-up files and, where available, on the public data."""

import csv
import gzip
import os
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from faircount.core.errors import InputError
from faircount.reproduction.data import loaders, published_counts
from faircount.reproduction.data.loaders import count_wages, load_census, load_gowalla
from faircount.reproduction.data.populations import get_population

# Tables of the public data, which are not part of the repository.
SHARED = Path(os.environ.get("FAIRCOUNT_DATA", Path(__file__).parents[5] / "shared" / "data"))

# Where the files come from, and whether they are gzipped.
SOURCES = [("made", False), ("made", True)]
if SHARED.is_dir():
    SOURCES.append(("shared", True))


def gowalla(path, view="gowalla-12"):
    return load_gowalla(path)[view]


def census(*paths, view="census"):
    return load_census(paths)[view]


def checkin(user, latitude, longitude):
    return f"{user}\t2010-10-19T23:55:27Z\t{latitude}\t{longitude}\t22847\n"


def person(wage):
    """A row as in census-income: 42 columns, a space behind each comma."""
    start = ["73", "Not in universe", "0", "0", "High school graduate"]
    end = ["Not in universe"] * 34 + ["95", "- 50000."]
    return ", ".join([*start, str(wage), *end]) + "\n"


def write(path, lines, zipped=False):
    text = "".join(lines).encode()
    path.write_bytes(gzip.compress(text, 1) if zipped else text)
    return path


def make_checkins():
    """3,000 check-ins of up to 300 users, inside and outside the box."""
    rng = np.random.default_rng(11)
    users = rng.integers(0, 300, 3000)
    places = rng.uniform([25, -105], [50, -75], (3000, 2)).round(6)
    return [(int(user), *map(float, place)) for user, place in zip(users, places, strict=True)]


def read_shared_checkins():
    places = {}
    with gzip.open(SHARED / "gowalla_box_pois.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            places[row["poi"]] = (float(row["lat"]), float(row["lon"]))
    checkins = []
    with gzip.open(SHARED / "gowalla_box_records.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            record = (int(row["user"]), *places[row["poi"]])
            checkins += [record] * int(row["checkins"])
    return checkins


def count_one_by_one(checkins, rows, columns):
    """The paper's processing without any vectors."""
    visits = defaultdict(Counter)
    for user, latitude, longitude in checkins:
        if 30 <= latitude <= 45 and -100 <= longitude <= -80:
            row = min(int((latitude - 30) / (15 / rows)), rows - 1)
            column = min(int((longitude + 100) / (20 / columns)), columns - 1)
            visits[user][row * columns + column] += 1
    counts = [0] * (rows * columns)
    for cells in visits.values():
        # Of equally visited cells the first one counts.
        counts[min(cells, key=lambda cell: (-cells[cell], cell))] += 1
    return tuple(counts)


@pytest.mark.parametrize(("source", "zipped"), SOURCES)
def test_gowalla_counts_users_by_most_visited_cell(source, zipped, tmp_path):
    checkins = make_checkins() if source == "made" else read_shared_checkins()
    path = write(tmp_path / "checkins", [checkin(*record) for record in checkins], zipped)
    cells_12 = gowalla(path).counts
    cells_25 = gowalla(path, "gowalla-25").counts
    assert cells_12 == count_one_by_one(checkins, 3, 4)
    assert cells_25 == count_one_by_one(checkins, 5, 5)
    if source == "shared":
        # The public tables must give the counts that are built in.
        assert cells_12 == published_counts.GOWALLA_12
        assert cells_25 == published_counts.GOWALLA_25
        assert gowalla(path, "gowalla").counts == get_population("gowalla").counts


def make_wages():
    choices = [0, 0, 0, 5, 99, 100, 399, 400, 2099, 2100, 9900]
    return np.random.default_rng(12).choice(choices, 500).tolist()


def read_shared_wages():
    with gzip.open(SHARED / "census_test_columns.csv.gz", "rt") as file:
        return [int(row["wage_per_hour"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize(("source", "zipped"), SOURCES)
def test_census_counts_persons_by_wage(source, zipped, tmp_path):
    wages = make_wages() if source == "made" else read_shared_wages()
    path = write(tmp_path / "census", map(person, wages), zipped)
    zero, counts = count_wages(path)
    assert zero == wages.count(0)
    assert counts == Counter(wage // 100 for wage in wages if wage)
    full = census(path, view="census-full")
    merged = census(path)
    assert full.users == len(wages)
    assert len(full.labels) == 100
    assert merged.users == len(wages) - zero
    assert merged.counts[0] == sum(0 < wage < 400 for wage in wages)
    assert merged.counts[-1] == sum(wage >= 2100 for wage in wages)
    if source == "shared":
        assert (zero, counts) == (published_counts.WAGE_ZERO, published_counts.WAGES)
        assert full.counts == get_population("census-full").counts
        assert merged.counts == get_population("census").counts


def test_ties_go_to_the_first_cell(tmp_path):
    places = [(42, -81), (31, -99), (37, -93)]
    # Three users visit cells 0, 5 and 11 once each, in different orders.
    turns = product(range(3), range(3))
    lines = [checkin(user, *places[(user + turn) % 3]) for user, turn in turns]
    # The fourth visits cell 0 once and cell 11 twice.
    lines += [checkin(9, 31, -99), checkin(9, 42, -81), checkin(9, 42, -81)]
    assert gowalla(write(tmp_path / "ties", lines)).counts == (3, *[0] * 10, 1)


def test_the_box_is_closed_and_lines_belong_to_the_north_and_east(tmp_path):
    inside = [(45, -80), (30, -100), (35, -95), (39, -84)]
    # Just beyond each of the four sides.
    outside = [(29.9999, -90), (45.0001, -90), (40, -79.99), (40, -101)]
    lines = [checkin(user, *place) for user, place in enumerate(inside + outside)]
    path = write(tmp_path / "edges", lines)
    cells_12 = np.flatnonzero(gowalla(path).counts)
    cells_25 = np.flatnonzero(gowalla(path, "gowalla-25").counts)
    np.testing.assert_array_equal(cells_12, [0, 5, 7, 11])
    np.testing.assert_array_equal(cells_25, [0, 6, 19, 24])


def test_the_size_of_blocks_does_not_matter(tmp_path, monkeypatch):
    path = write(tmp_path / "checkins", [checkin(*record) for record in make_checkins()])
    people = write(tmp_path / "people", map(person, [0, 500, 600] * 7))
    whole = (gowalla(path), count_wages(people))
    # So that users and items are spread over many blocks.
    monkeypatch.setattr(loaders, "LINES_PER_BLOCK", 17)
    assert (gowalla(path), count_wages(people)) == whole


def test_blank_lines_are_not_records(tmp_path):
    lines = ["\n", checkin(1, 31, -99), "  \n", checkin(2, 31, -99), "\n"]
    assert gowalla(write(tmp_path / "blank", lines)).users == 2


def test_two_parts_of_the_census_are_added(tmp_path):
    first = write(tmp_path / "census-income.data", map(person, [0, 450]))
    second = write(tmp_path / "census-income.test.gz", map(person, [0, 450, 2500]), zipped=True)
    assert count_wages(first, second) == (2, {4: 2, 25: 1})
    limits = census(first, second).limits
    assert limits.startswith("all rows of census-income.data, census-income.test.gz")


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
    # Four good lines put the bad one into the second block.
    monkeypatch.setattr(loaders, "LINES_PER_BLOCK", 3)
    path = write(tmp_path / "gowalla.txt", [*[GOOD] * before, bad])
    with pytest.raises(InputError, match=rf"gowalla.txt, line {before + 1}: ") as raised:
        gowalla(path)
    assert reason in str(raised.value)
    assert "download it again, or remove the line" in str(raised.value)


@pytest.mark.parametrize("wage", ["x", "-5", "12.5", "", 10**7])
def test_a_bad_person_is_named_by_its_line(wage, tmp_path):
    path = write(tmp_path / "census.data", [person(0), person(wage)])
    with pytest.raises(InputError, match=r"census.data, line 2: not usable: wage"):
        count_wages(path)


def test_a_short_row_of_the_census_is_named(tmp_path):
    path = write(tmp_path / "census.data", [person(0), "73, Not in universe\n"])
    with pytest.raises(InputError, match="line 2: 2 columns instead of 42"):
        census(path)


def test_files_without_data_are_refused(tmp_path):
    with pytest.raises(InputError, match="check the path"):
        gowalla(tmp_path / "absent")
    with pytest.raises(InputError, match="empty"):
        gowalla(write(tmp_path / "empty", []))
    with pytest.raises(InputError, match="inside the box"):
        gowalla(write(tmp_path / "elsewhere", [checkin(1, 60, 10)]))
    with pytest.raises(InputError, match="census-income"):
        count_wages()
    with pytest.raises(InputError, match="census-income"):
        census(write(tmp_path / "empty", []))


def test_a_gzip_file_that_ends_too_early(tmp_path):
    path = write(tmp_path / "checkins.gz", [GOOD] * 5000, zipped=True)
    # The last bytes hold the end of the data and the checksum.
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="cut short or damaged"):
        gowalla(path)
