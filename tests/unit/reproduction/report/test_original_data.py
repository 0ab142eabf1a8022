"""`reproduce --data`: the figures on the original files, here small ones of the same format."""

import gzip

import numpy as np
import pytest
from click.testing import CliRunner
from paper_lines import read_csv

from faircount.cli import main
from faircount.core.errors import InputError
from faircount.reproduction.data.loaders import load_original_data
from faircount.reproduction.data.populations import (
    REPLACEMENTS,
    get_population,
    replace_populations,
)
from faircount.reproduction.report.reproduce import reproduce
from faircount.reproduction.studies.study import sampled_counts

# Places in five cells of the box, and how many of the made-up users visit each.
PLACES = [(31, -99), (31, -94), (36, -99), (36, -84), (41, -89)]
SHARES = [0.4, 0.25, 0.2, 0.1, 0.05]


def make_checkins():
    """400 users of Gowalla with three check-ins each."""
    rng = np.random.default_rng(4)
    lines = []
    for user, cell in enumerate(rng.choice(len(PLACES), 400, p=SHARES)):
        latitude, longitude = PLACES[cell]
        lines += [f"{user}\t2010-10-19T23:55:27Z\t{latitude}\t{longitude}\t22847\n"] * 3
    return "".join(lines)


def make_census(wages):
    rows = [", ".join(["73"] * 5 + [str(wage)] + ["x"] * 36) for wage in wages]
    return "\n".join(rows) + "\n"


@pytest.fixture
def folder(tmp_path):
    """Gowalla gzipped, and both parts of the census with 600 persons together."""
    data = tmp_path / "original"
    data.mkdir()
    checkins = gzip.compress(make_checkins().encode())
    (data / "loc-gowalla_totalCheckins.txt.gz").write_bytes(checkins)
    (data / "census-income.data").write_text(make_census(range(0, 4000, 10)))
    (data / "census-income.test").write_text(make_census(range(100, 2100, 10)))
    return data


def test_populations_come_from_the_files(folder):
    found = load_original_data(folder)
    assert set(found) == {"gowalla", "gowalla-12", "gowalla-25", "census", "census-full"}
    assert found["gowalla"].users == 400
    assert found["gowalla-25"].users == 400
    assert len(found["gowalla"].counts) == 5
    assert found["census-full"].users == 600
    # One wage is 0.
    assert found["census"].users == 599


def test_replacements_last_as_long_as_their_block(folder):
    found = load_original_data(folder)
    built_in = sampled_counts("gowalla")
    with replace_populations(found):
        assert get_population("gowalla") is found["gowalla"]
        assert len(sampled_counts("gowalla")) == 5
        assert sum(sampled_counts("gowalla")) == 1000
        # What has no original file stays built in.
        assert get_population("uniform").source == "uniform on 30 items"
    assert sampled_counts("gowalla") == built_in
    assert not REPLACEMENTS.get()


def test_one_data_set_may_be_missing(folder):
    (folder / "loc-gowalla_totalCheckins.txt.gz").unlink()
    (folder / "census-income.test").unlink()
    found = load_original_data(folder)
    assert set(found) == {"census", "census-full"}
    assert found["census-full"].users == 400


def test_a_file_and_its_gzipped_copy_are_read_once(folder):
    plain = folder / "census-income.test"
    # Read twice, the part would count its 200 persons twice.
    plain.with_suffix(".test.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert load_original_data(folder)["census-full"].users == 600


def test_a_folder_without_the_files_is_refused(tmp_path):
    message = r"none of the original files \(loc-gowalla_totalCheckins\.txt"
    with pytest.raises(InputError, match=message):
        load_original_data(tmp_path)


@pytest.mark.usefixtures("without_pictures")
def test_every_worker_has_the_data_of_the_files(folder, tmp_path):
    alone = tmp_path / "alone"
    pool = tmp_path / "pool"
    reproduce("fig2", runs=3, out=alone, workers=1, data=folder)
    reproduce("fig2", runs=3, out=pool, workers=2, data=folder)
    assert (alone / "fig2.csv").read_bytes() == (pool / "fig2.csv").read_bytes()
    rows = read_csv(alone / "fig2.csv")
    items = {row["data"]: row["items"] for row in rows}
    assert items == {"gowalla": "5", "census": "19", "uniform": "30"}
    # The population travels with the points, but is no column of the results.
    assert "population" not in rows[0]
    page = (alone / "report.html").read_text(encoding="utf-8")
    assert "all check-ins of loc-gowalla_totalCheckins.txt.gz" in page
    assert "all rows of census-income.data, census-income.test" in page


@pytest.mark.usefixtures("without_pictures")
def test_the_command_line_takes_a_folder(folder, tmp_path):
    out = tmp_path / "out"
    arguments = f"reproduce fig3 --runs 2 --out {out} --workers 1 --data".split()
    done = CliRunner().invoke(main, [*arguments, str(folder)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert {row["items"] for row in read_csv(out / "fig3.csv")} == {"5", "19", "30"}
    done = CliRunner().invoke(main, [*arguments, str(tmp_path / "nowhere")])
    assert done.exit_code == 2
