"""Builds the wheel, and installs and uses it without extras on every Python from 3.11 on.

Needs a package index for the dependencies of the other Pythons. Prints one line for each Python,
and fails if one of them fails.
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
EXAMPLE = """
import faircount as fc
result = fc.histogram({"city": ["a", "b"] * 100}, "city", domain=["a", "b"], epsilon=1.0)
assert result.to_dict()["users"] == 200
try:
    result.plot()
except fc.FaircountError as problem:
    assert "install faircount[plot]" in str(problem)
else:
    raise SystemExit("matplotlib is there without the extra")
"""


def find_pythons() -> dict[str, Path]:
    """A Python for every version from 3.11 on: on the path, of pyenv and of the system."""
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep)]
    folders += Path("~/.pyenv/versions").expanduser().glob("*/bin")
    folders += [Path("/usr/bin"), Path("/usr/local/bin")]
    pythons: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("python3.*")):
            if re.fullmatch(r"python3\.\d+", path.name) and version_of(path) >= OLDEST:
                pythons.setdefault(path.name, path)
    # By number: as text, 3.9 would come after 3.11.
    return dict(sorted(pythons.items(), key=lambda entry: int(entry[0].split(".")[1])))


def version_of(python: Path) -> tuple[int, ...]:
    """The version of a Python, or (0,) if it does not start."""
    code = "import sys; print(*sys.version_info[:2])"
    done = subprocess.run([str(python), "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    # pyenv has a stub for every version, which fails if the version is not selected.
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else (0,)


def build_wheel(folder: Path) -> Path:
    """Build the wheel of this tree."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    return wheel


def try_wheel(python: Path, wheel: Path, work: Path) -> None:
    """Install and use the wheel in an environment of its own."""
    environment = work / python.name
    run(str(python), "-m", "venv", str(environment))
    own_python = str(environment / "bin" / "python")
    run(own_python, "-m", "pip", "install", "--quiet", str(wheel))
    run(own_python, "-W", "error::DeprecationWarning:faircount", "-c", EXAMPLE)
    run(str(environment / "bin" / "faircount"), "demo", "--in-memory")
    shutil.rmtree(environment)


def run(*arguments: str) -> None:
    """Run a command; if it fails, so do we, with its output."""
    settings = dict(os.environ)
    # Without it, a Python could import this tree instead of the wheel.
    settings.pop("PYTHONPATH", None)
    done = subprocess.run(  # noqa: S603
        arguments, cwd=ROOT, env=settings, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} fails:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        wheel = build_wheel(Path(place))
        for name, python in find_pythons().items():
            try_wheel(python, wheel, Path(place))
            print(f"{name}: {wheel.name} installs without extras and runs")  # noqa: T201 - a script
