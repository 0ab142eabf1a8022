"""What the package offers, and how light it is to load."""

import subprocess
import sys

import pytest

import faircount

HELP = "from click.testing import CliRunner; from faircount.cli import main; CliRunner().invoke(main, ['--help'])"
COMMAND = "from click.testing import CliRunner; from faircount.cli import main; done = CliRunner().invoke(main, {line!r}.split(), input='item\\n' + 'a\\nb\\n' * 1500); assert done.exit_code == 0, done.output"
STARTED_LATE = ("scipy", "matplotlib", "pandas", "dask")
HEAVY = (
    "scipy",
    "matplotlib",
    "dp_accounting",
    "pandas",
    "pyarrow",
    "dask",
    "httpx",
    "starlette",
    "sqlalchemy",
)
# What the parties of a survey do and tell each other is most of the code: a plan needs none of it,
# nor does the histogram of a table of more than 2,000 rows, which is computed without messages.
OF_A_SURVEY = (
    "faircount.protocol.roles",
    "faircount.protocol.simulator",
    "faircount.protocol.wire.messages",
    "faircount.protocol.topologies.masked.messages",
    "faircount.protocol.topologies.two_stage.messages",
    "faircount.protocol.topologies.two_servers.coordinator",
)


def test_every_public_name_is_there() -> None:
    for name in faircount.__all__:
        assert getattr(faircount, name) is not None
        assert name in dir(faircount)


def test_the_public_names_are_these() -> None:
    assert set(faircount.__all__) == {
        "DPCS", "DPDG", "DPDS", "Decoys", "Duchi", "FaircountError", "GRR", "GroupedSurvey", "Guarantee", "Laplace", "LedgerFile", "OUE",
        "PM", "PlacedCoins", "Result", "SeededStream", "ServerCoins", "ServerLaplace", "ServerJoint", "Survey", "TSS", "TSSPrime",
        "audit", "combine_surveys", "compose", "connect", "histogram", "plan", "privacy", "questionnaire", "register", "run", "survey",
    }  # fmt: skip


CALLS = """
import importlib, pkgutil, warnings
import faircount as fc
for module in pkgutil.walk_packages(fc.__path__, "faircount."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from faircount.protocol import Invitation
from faircount.client.invitation_codes import Code
code = Code(bytes(16), Invitation(bytes(32), bytes(32))).text
answers, made = ["a", "b", "a", "c"] * 10, fc.Laplace(items=["a", "b", "c"], epsilon=1.0)
calls = {
    "audit": lambda: fc.audit(fc.GRR(items=3, epsilon=1.0), runs=200, entropy=fc.SeededStream(1)),
    "compose": lambda: fc.compose(made.bind(40), made.bind(40), epsilon=2.0),
    "connect": lambda: fc.connect("https://count.example.org/#" + code),
    "histogram": lambda: fc.histogram(answers, domain=["a", "b", "c"], epsilon=1.0, anyway=True),
    "plan": lambda: fc.plan(users=100, items=3, epsilon=1.0, delta=1e-6),
    "privacy": lambda: fc.privacy("laplace", epsilon=1.0),
    "questionnaire": lambda: fc.questionnaire({"q": ["yes", "no"] * 20}, [{"kind": "yes", "text": "q"}], epsilon=1.0),
    "register": lambda: fc.register(type("Own", (fc.Laplace,), {"name": "own"})),
    "run": lambda: fc.run(answers, made, entropy=fc.SeededStream(1)),
}
from pathlib import Path
def missing_survey():
    try:
        fc.survey("nowhere")
    except fc.FaircountError as problem:
        return problem
calls["survey"] = missing_survey
def no_surveys():
    try:
        fc.combine_surveys([])
    except fc.FaircountError as problem:
        return problem
calls["combine_surveys"] = no_surveys
functions = {name for name in fc.__all__ if name[0].islower()}
assert functions == set(calls), functions ^ set(calls)
for name, call in calls.items():
    assert call() is not None, name
for name in set(fc.__all__) - functions:
    assert isinstance(getattr(fc, name), type), name
"""


def test_no_package_hides_a_public_name() -> None:
    """Every submodule is imported, then every public name is called."""
    done = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no public name"):
        _ = faircount.Nothing


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import faircount", (*HEAVY, "numpy")),
        (
            "import faircount; faircount.Laplace; faircount.run; faircount.DPDS; faircount.audit",
            HEAVY,
        ),
        (HELP, (*HEAVY, "numpy")),
        (
            COMMAND.format(line="plan --users 1000 --items 12 --epsilon 1"),
            (*HEAVY, *OF_A_SURVEY),
        ),
        (
            COMMAND.format(line="plan --users 1000 --items 12 --epsilon 1 --releases 3"),
            (*HEAVY, *OF_A_SURVEY),
        ),
        (
            COMMAND.format(line="run - --column item --domain a,b --epsilon 1"),
            (*HEAVY, *OF_A_SURVEY),
        ),
        (
            "import faircount.client.participation, faircount.server.coordinator.service, faircount.server.aggregator.service",
            STARTED_LATE,
        ),
    ],
    ids=["import", "mechanisms", "help", "plan", "plan of releases", "run", "service"],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str, unwanted: tuple[str, ...]) -> None:
    check = f"{code}; import sys; print([m for m in {unwanted!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
