"""Print the part of requirements.lock that some packages need, with its hashes.

    python deploy/locked_requirements.py faircount[service] > service.txt
    python deploy/locked_requirements.py --others faircount[service] > others.txt

The lock also has what tests and documentation need; an image of a server does without it, and so
does `make demo`. With --others, only what the named packages do not need is printed.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
NAME = re.compile(r"[A-Za-z0-9._-]+")


def normalize(name: str) -> str:
    """Return the one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(text: str) -> dict[str, list[str]]:
    """Return the lines about each package: its version, its hashes, and who needs it."""
    packages: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        found = NAME.match(line)
        if found is not None:
            lines = packages.setdefault(normalize(found[0]), [])
        lines.append(line)
    return packages


def needed_by(lines: list[str]) -> set[str]:
    """Return the packages because of which a package is in the lock."""
    comments = [line.strip().lstrip("#").strip() for line in lines if line.strip().startswith("#")]
    return {normalize(comment.removeprefix("via").strip()) for comment in comments}


def own_requirements(name: str) -> set[str]:
    """Return what faircount itself needs, with one of its extras if the name has one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    extra = name.partition("[")[2].rstrip("]")
    if extra:
        wanted += project["optional-dependencies"][extra]
    return {normalize(NAME.match(entry)[0]) for entry in wanted}  # type: ignore[index]


def select(packages: dict[str, list[str]], roots: set[str]) -> set[str]:
    """Return these packages and everything that they need."""
    chosen = set(roots)
    while True:
        more = {
            name
            for name, lines in packages.items()
            if name not in chosen and needed_by(lines) & chosen
        }
        if not more:
            break
        chosen |= more
    missing = chosen - set(packages)
    if missing:
        raise SystemExit(f"not in the lock: {', '.join(sorted(missing))}")
    return chosen


def main(names: list[str]) -> None:
    """Print the lines for these packages, or with --others for all but them."""
    others = "--others" in names
    roots: set[str] = set()
    for name in names:
        if name == "--others":
            continue
        is_own = name.partition("[")[0] == "faircount"
        roots |= own_requirements(name) if is_own else {normalize(name)}
    packages = read_lock((ROOT / "requirements.lock").read_text())
    needed = select(packages, roots)
    chosen = set(packages) - needed if others else needed
    lines = [line for name in sorted(chosen) for line in packages[name]]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
