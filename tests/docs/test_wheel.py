"""The wheel, installed with its own dependencies alone: it runs, and says what an extra is for. No
network is used.
"""

import importlib.util
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from faircount.client.invitation_codes import Code
from faircount.protocol import Invitation

ROOT = Path(__file__).parents[2]
CODE = Code(bytes(16), Invitation(bytes(32), bytes(32))).text


def loaded(path: Path) -> object:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needed(name: str, known: set[str]) -> Iterator[str]:
    """A package and what it needs without extras, each once."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return
    if name in known:
        return
    known.add(name)
    yield name
    for requirement in map(Requirement, found.requires or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield from needed(requirement.name, known)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's own files and links to its dependencies, and nothing else to
    import.
    """
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
        (metadata,) = (name for name in packed.namelist() if name.endswith("METADATA"))
        wanted = re.findall(r"^Requires-Dist: (.*)$", packed.read(metadata).decode(), re.MULTILINE)
    known: set[str] = set()
    for requirement in map(Requirement, wanted):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            for name in needed(requirement.name, known):
                _link(name, folder)
    return folder


def _link(name: str, folder: Path) -> None:
    for top in {path.parts[0] for path in distribution(name).files or [] if ".." not in path.parts}:
        there = Path(str(distribution(name).locate_file(top)))
        if there.exists() and not (folder / top).exists() and top != "__pycache__":
            (folder / top).symlink_to(there)


def use(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {"PYTHONPATH": str(folder), "PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8"}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_runs_without_extras(installed: Path) -> None:
    done = use(installed, "-m", "faircount", "demo", "--in-memory")
    assert done.returncode == 0, done.stderr
    assert "Aldmoor" in done.stdout
    assert "faircount, version " in use(installed, "-m", "faircount", "--version").stdout


def test_a_survey_over_a_network_says_which_extra_it_needs(installed: Path) -> None:
    for arguments in (("demo",), ("answer", "https://count.example.org/#" + CODE)):
        done = use(installed, "-m", "faircount", *arguments)
        assert done.returncode == 2, done.stderr
        assert "pip install 'faircount[service]'" in done.stderr


@pytest.mark.parametrize("name", ["pandas", "matplotlib", "pyarrow", "dask", "pytest"])
def test_nothing_else_can_be_imported(installed: Path, name: str) -> None:
    assert "ModuleNotFoundError" in use(installed, "-c", f"import {name}").stderr


@pytest.mark.parametrize(
    ("call", "words"), [("plot()", "install faircount[plot]"), ("to_frame()", "install pandas")]
)
def test_what_needs_an_extra_says_so(installed: Path, call: str, words: str) -> None:
    made = "fc.run(['a', 'b'] * 50, fc.Laplace(items=['a', 'b'], epsilon=1.0))"
    assert words in use(installed, "-c", f"import faircount as fc; {made}.{call}").stderr


def test_the_description_has_no_link_into_nowhere(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = (name for name in packed.namelist() if name.endswith("METADATA"))
        text = packed.read(metadata).decode()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert [link for link in links if not link.startswith("https://")] == []
    assert "where its claims do not hold" in " ".join(text.split())


def test_links_become_absolute_where_the_repository_is_known() -> None:
    hook = loaded(ROOT / "hatch_build.py")
    text = "[a](docs/a.md), [b](https://b.example), [c](#here)"
    absolute = "[a](https://r.example/x/blob/main/docs/a.md), [b](https://b.example), [c](#here)"
    readable = hook.resolve_links  # type: ignore[attr-defined] # loaded by path
    assert readable(text, "https://r.example/x/") == absolute
    assert readable(text, None) == "a, [b](https://b.example), [c](#here)"


def test_a_table_of_pictures_is_left_out_as_a_whole() -> None:
    hook = loaded(ROOT / "hatch_build.py")
    text = "A\n\n| one | two |\n|---|---|\n| ![a](x.png) | ![b](y.png) |\n\nB ![c](z.png)\n\nC\n"
    assert hook.resolve_links(text, None) == "A\n\nB C\n"  # type: ignore[attr-defined] # loaded by path
