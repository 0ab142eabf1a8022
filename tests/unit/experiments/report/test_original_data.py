"""`reproduce --data`: the figures on the original files, here small ones of the same format."""

import csv
import gzip

import numpy as np
import pytest
from click.testing import CliRunner

from faircount.cli import main
from faircount.core.errors import InputError
from faircount.experiments.data.loaders import original_data
from faircount.experiments.data.populations import IN_USE, population, using
from faircount.experiments.report.reproduce import reproduce
from faircount.experiments.studies.study import holders

CELLS = [(31, -99), (31, -94), (36, -99), (36, -84), (41, -89)]
"""Five cells of the box that the made-up users visit."""


@pytest.fixture
def folder(tmp_path):
    """400 users of Gowalla with three check-ins each, gzipped, and 600 persons of the census in both parts."""
    rng = np.random.default_rng(4)
    where = rng.choice(len(CELLS), 400, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    lines = [
        f"{user}\t2010-10-19T23:55:27Z\t{CELLS[cell][0]}\t{CELLS[cell][1]}\t22847\n"
        for user, cell in enumerate(where)
        for _ in range(3)
    ]
    data = tmp_path / "original"
    data.mkdir()
    (data / "loc-gowalla_totalCheckins.txt.gz").write_bytes(gzip.compress("".join(lines).encode()))
    for part, wages in (("data", range(0, 4000, 10)), ("test", range(100, 2100, 10))):
        rows = [", ".join(["73"] * 5 + [str(wage)] + ["x"] * 36) + "\n" for wage in wages]
        (data / f"census-income.{part}").write_text("".join(rows))
    return data


def rows(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_populations_come_from_the_files(folder):
    found = original_data(folder)
    assert set(found) == {"gowalla", "gowalla-12", "gowalla-25", "census", "census-full"}
    assert found["gowalla"].users == found["gowalla-25"].users == 400
    assert len(found["gowalla"].counts) == 5
    assert found["census-full"].users == 600
    assert found["census"].users == 599  # one wage is 0
    built_in = holders("gowalla")
    with using(found):
        assert population("gowalla") is found["gowalla"]
        assert len(holders("gowalla")) == 5
        assert sum(holders("gowalla")) == 1000
        assert population("uniform").source == "uniform on 30 items"
    assert holders("gowalla") == built_in
    assert not IN_USE.get()


def test_one_data_set_may_be_missing(folder):
    (folder / "loc-gowalla_totalCheckins.txt.gz").unlink()
    (folder / "census-income.test").unlink()
    found = original_data(folder)
    assert set(found) == {"census", "census-full"}
    assert found["census-full"].users == 400


def test_a_file_and_its_gzipped_copy_are_read_once(folder):
    plain = folder / "census-income.test"
    plain.with_suffix(".test.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert original_data(folder)["census-full"].users == 600


def test_a_folder_without_the_files_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none of the original files \(loc-gowalla_totalCheckins\.txt"):
        original_data(tmp_path)


@pytest.mark.usefixtures("without_pictures")
def test_every_worker_has_the_files_data(folder, tmp_path):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for out, workers in ((alone, 1), (shared, 2)):
        reproduce("fig2", runs=3, out=out, workers=workers, data=folder)
    assert (alone / "fig2.csv").read_bytes() == (shared / "fig2.csv").read_bytes()
    found = rows(alone / "fig2.csv")
    assert {each["data"]: each["items"] for each in found} == {"gowalla": "5", "census": "19", "uniform": "30"}
    assert "population" not in found[0]
    page = (alone / "report.html").read_text(encoding="utf-8")
    assert "all check-ins of loc-gowalla_totalCheckins.txt.gz" in page
    assert "all rows of census-income.data, census-income.test" in page


@pytest.mark.usefixtures("without_pictures")
def test_the_command_line_takes_a_folder(folder, tmp_path):
    arguments = ["reproduce", "fig3", "--runs", "2", "--out", str(tmp_path / "out"), "--workers", "1"]
    done = CliRunner().invoke(main, [*arguments, "--data", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert {each["items"] for each in rows(tmp_path / "out" / "fig3.csv")} == {"5", "19", "30"}
    done = CliRunner().invoke(main, [*arguments, "--data", str(tmp_path / "nowhere")])
    assert done.exit_code == 2
