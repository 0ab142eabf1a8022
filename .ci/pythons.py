"""Builds the wheel and installs it, without extras, on every Python from 3.11 on that is found; then uses it there.

Needs a package index for the dependencies of the other Pythons. Prints one line for each, and fails if one does.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = (3, 11)
USE = """
import faircount as fc
made = fc.histogram({"city": ["a", "b"] * 100}, "city", domain=["a", "b"], epsilon=1.0)
assert made.to_dict()["users"] == 200
try:
    made.plot()
except fc.FaircountError as problem:
    assert "install faircount[plot]" in str(problem)
else:
    raise SystemExit("matplotlib is there without the extra")
"""


def found() -> dict[str, Path]:
    """A Python for every version from 3.11 on: on the path, and where pyenv and the system keep theirs."""
    folders = [Path(each) for each in os.environ.get("PATH", "").split(os.pathsep)]
    folders += [*Path("~/.pyenv/versions").expanduser().glob("*/bin"), Path("/usr/bin"), Path("/usr/local/bin")]
    pythons: dict[str, Path] = {}
    for folder in folders:
        for each in sorted(folder.glob("python3.*")):
            if re.fullmatch(r"python3\.\d+", each.name) and version(each) >= OLDEST:
                pythons.setdefault(each.name, each)
    return dict(sorted(pythons.items(), key=lambda entry: int(entry[0].split(".")[1])))


def version(python: Path) -> tuple[int, ...]:
    """Of a Python that starts; a stub of pyenv for a version that is switched off does not."""
    asked = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([str(python), "-c", asked], capture_output=True, text=True, check=False)  # noqa: S603
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0,)


def built(folder: Path) -> Path:
    """The wheel of this tree."""
    _run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    return wheel


def tried(python: Path, wheel: Path, work: Path) -> None:
    """Install and use it in an environment of its own."""
    home = work / python.name
    _run(str(python), "-m", "venv", str(home))
    own = str(home / "bin" / "python")
    _run(own, "-m", "pip", "install", "--quiet", str(wheel))
    _run(own, "-W", "error::DeprecationWarning:faircount", "-c", USE)
    _run(str(home / "bin" / "faircount"), "demo", "--in-memory")
    shutil.rmtree(home)


def _run(*arguments: str) -> None:
    settings = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(arguments, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} fails:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        wheel = built(Path(place))
        for name, python in found().items():
            tried(python, wheel, Path(place))
            print(f"{name}: {wheel.name} installs without extras and runs")  # noqa: T201 - a script
