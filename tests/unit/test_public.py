"""What the package offers, and how light it is to load."""

import subprocess
import sys

import pytest

import faircount

HELP = "from click.testing import CliRunner; from faircount.cli import main; CliRunner().invoke(main, ['--help'])"
HEAVY = ("scipy", "matplotlib", "dp_accounting", "pandas", "pyarrow", "dask")


def test_every_public_name_is_there() -> None:
    for name in faircount.__all__:
        assert getattr(faircount, name) is not None
        assert name in dir(faircount)


def test_the_public_names_are_these() -> None:
    assert set(faircount.__all__) == {
        "DPCS", "DPDG", "DPDS", "Decoys", "Duchi", "FaircountError", "GRR", "Guarantee", "Laplace", "LedgerFile", "OUE",
        "PM", "Result", "SeededStream", "TSS", "TSSPrime", "audit", "compose", "costs", "histogram", "plan", "privacy",
        "register", "run",
        "statement",
    }  # fmt: skip


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no public name"):
        _ = faircount.Nothing


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import faircount", (*HEAVY, "numpy")),
        ("import faircount; faircount.Laplace; faircount.run; faircount.DPDS; faircount.audit", HEAVY),
        (HELP, (*HEAVY, "numpy")),
    ],
    ids=["import", "mechanisms", "help"],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str, unwanted: tuple[str, ...]) -> None:
    check = f"{code}; import sys; print([m for m in {unwanted!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
