"""Builds the documentation site without a network: `python docs/generate/site_builder.py FOLDER`.

The README is the first page. Links between pages are those of the repository; a link to a file that
is not part of the site becomes plain text. Diagrams become pictures (`diagrams.py`).

The site can also be read straight from its folder, search included. Browsers let a page that was
opened as a file neither fetch the index nor start the theme's search worker. So the index is also
written as a script, which the theme looks for in that case, and `OFFLINE_SEARCH` starts the worker
from a copy of its source. (The theme has an `offline` plugin, but its pages then load a script from
another host.)
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import diagrams

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[([^\]]+)\]\(([^)#\s]+)(#[^)\s]*)?\)")
TOP_PAGES = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "RELEASE.md",
    "SECURITY.md",
    "benchmarks/RESULTS.md",
)
COPIED = ("*.png", "*.svg", "*.ipynb", "*.json")
SEARCH_SCRIPT = "assets/javascripts/offline-search.js"
OFFLINE_SEARCH = """// Lets search work in pages that are opened as files,
// where a worker cannot be loaded from its address.
if (location.protocol === "file:") {{
  const source = {source};
  const Worker = window.Worker;
  window.Worker = class extends Worker {{
    constructor(address, options) {{
      const copy = new Blob([source], {{ type: "text/javascript" }});
      const isSearch = String(address).includes("/workers/search.");
      super(isSearch ? URL.createObjectURL(copy) : address, options);
    }}
  }};
}}
"""


def pages() -> dict[str, Path]:
    """Where each page of the site comes from."""
    found = {str(path.relative_to(ROOT / "docs")): path for path in (ROOT / "docs").rglob("*.md")}
    found["contents.md"] = found.pop(
        "README.md"
    )  # the first page of the site is the project's README
    return {"index.md": ROOT / "README.md", **found, **{name: ROOT / name for name in TOP_PAGES}}


def other_files() -> dict[str, Path]:
    """Pictures, notebooks and descriptions that pages show or link to."""
    docs = ROOT / "docs"
    found = {}
    for pattern in COPIED:
        found |= {str(path.relative_to(docs)): path for path in docs.rglob(pattern)}
    return found


def relocate_links(text: str, name: str, source: Path, places: dict[Path, str]) -> str:
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


def draw_diagrams(text: str, name: str, folder: Path) -> str:
    """The page with a picture in place of every Mermaid block."""

    def picture(found: re.Match[str]) -> str:
        number = len(list((folder / "diagrams").glob("*.svg"))) + 1
        path = folder / "diagrams" / f"{Path(name).stem.lower()}-{number}.svg"
        path.parent.mkdir(exist_ok=True)
        path.write_text(diagrams.draw(found[1]), encoding="utf-8")
        return f"![{diagrams.title_of(found[1])}]({os.path.relpath(path, (folder / name).parent)})"

    return diagrams.BLOCK.sub(picture, text)


def gather(folder: Path) -> None:
    """Every page and file of the site, before it is built."""
    sources = {**pages(), **other_files()}
    places = {source.resolve(): name for name, source in sources.items()}
    for directory in {(ROOT / name).resolve() for name in ("docs", "docs/adr", "docs/extending")}:
        if (directory / "README.md").exists():
            places[directory] = places[directory / "README.md"]
    for name, source in sources.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".md"):
            text = relocate_links(source.read_text(encoding="utf-8"), name, source, places)
            target.write_text(draw_diagrams(text, name, folder), encoding="utf-8")
        else:
            shutil.copy(source, target)


def add_offline_search(site: Path) -> None:
    """The index as a script, and in every page a script before the theme's own that starts the
    worker.
    """
    index = (site / "search.json").read_text(encoding="utf-8")
    (site / "search.js").write_text(f"var __index = {index};\n", encoding="utf-8")
    (worker,) = (site / "assets" / "javascripts" / "workers").glob("search.*.min.js")
    script = OFFLINE_SEARCH.format(source=json.dumps(worker.read_text(encoding="utf-8")))
    (site / SEARCH_SCRIPT).write_text(script, encoding="utf-8")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        bundle = re.search(r'<script src="([^"]*)assets/javascripts/bundle\.', text)
        if not bundle:
            raise SystemExit(
                f"{page.name}: the theme's script is not where it was; adapt add_offline_search"
            )
        ours = f'<script src="{bundle[1]}{SEARCH_SCRIPT}"></script>'
        page.write_text(text.replace(bundle[0], ours + bundle[0], 1), encoding="utf-8")


def build(out: Path) -> None:
    """The whole site, into a new or emptied folder."""
    with tempfile.TemporaryDirectory() as work:
        gather(Path(work, "pages"))
        shutil.copy(Path(__file__).with_name("zensical.toml"), work)
        command = [sys.executable, "-m", "zensical", "build", "--clean", "--strict"]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"the site cannot be built:\n{done.stdout}{done.stderr}")
        add_offline_search(Path(work, "site"))
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(Path(work, "site"), out)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
