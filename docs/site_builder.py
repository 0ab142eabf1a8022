"""Builds the documentation site without a network: `python docs/site_builder.py FOLDER` writes it there.

The README is the first page. Links between pages are those of the repository; links to other files of it become plain
words, because they are not part of the site.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
OTHERS = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/RESULTS.md")


def pages() -> dict[str, Path]:
    """Where each page of the site comes from."""
    found = {str(each.relative_to(ROOT / "docs")): each for each in (ROOT / "docs").rglob("*.md")}
    return {"index.md": ROOT / "README.md", **found, **{each: ROOT / each for each in OTHERS}}


def moved(text: str, name: str, source: Path, places: dict[Path, str]) -> str:
    """The page with links to where the other pages are on the site."""

    def link(found: re.Match[str]) -> str:
        words, target, part = found.group(1), found.group(2), found.group(3) or ""
        if "://" in target:
            return found.group(0)
        there = (source.parent / target).resolve()
        if there not in places:
            return words
        return f"[{words}]({os.path.relpath(places[there], Path(name).parent)}{part})"

    return LINK.sub(link, text)


def gather(folder: Path) -> None:
    """Every page and file of the site, before it is built."""
    images = {f"images/{each.name}": each for each in (ROOT / "docs" / "images").iterdir()}
    made = {**pages(), "pandas.ipynb": ROOT / "docs" / "pandas.ipynb", **images}
    places = {source.resolve(): name for name, source in made.items()}
    for name, source in made.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            target.write_text(moved(source.read_text(encoding="utf-8"), name, source, places), encoding="utf-8")
        else:
            shutil.copy(source, target)


def build(out: Path) -> None:
    """The whole site, into a new or emptied folder."""
    with tempfile.TemporaryDirectory() as work:
        gather(Path(work, "pages"))
        shutil.copy(ROOT / "docs" / "zensical.toml", work)
        command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the site cannot be built:\n{done.stdout}{done.stderr}")
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(Path(work, "site"), out)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
