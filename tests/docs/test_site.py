"""The documentation site: it builds, no link is dead, and no page loads anything from another place."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import site_builder

LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}
PLANTED = '<html><head><script src="//cdn.example/x.js"></script><link href="https://fonts.example/a"></head><body>'
PLANTED += '<a href="nothing.html">x</a><a href="index.html#nowhere">y</a><style>@import url(http://b.example);</style></body></html>'


class Page(HTMLParser):
    """Links, identifiers and loaded addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
        self.loaded += [each for style in styles for each in addresses(style)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self.names.add(given.get("id", ""))
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag in LOADED and given.get(LOADED[tag]) and given.get("rel") != "canonical":
            self.loaded.append(given[LOADED[tag]])


def addresses(style: str) -> list[str]:
    return re.findall(r"(?:@import\s+(?:url\()?|url\()[\"']?([^\"')\s;]+)", style)


def problems(folder: Path) -> list[str]:
    """Dead links, and what is loaded from elsewhere."""
    pages = {each: Page(each.read_text(encoding="utf-8")) for each in folder.rglob("*.html")}
    known, found = {key.resolve(): value.names for key, value in pages.items()}, []
    for path, page in pages.items():
        found += [f"{path.name} loads {each}" for each in page.loaded if urlsplit(each).netloc]
        for each in page.links:
            parts = urlsplit(each)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if parts.netloc or parts.scheme or path.name == "404.html":
                continue
            if not target.exists():
                found.append(f"{path.name} -> {each}")
            elif parts.fragment and target in known and unquote(parts.fragment) not in known[target]:
                found.append(f"{path.name} -> {each}: no such place")
    for style in folder.rglob("*.css"):
        found += [f"{style.name} loads {each}" for each in addresses(style.read_text()) if urlsplit(each).netloc]
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    site_builder.build(folder)
    return folder


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert not problems(site)
    for each in site.rglob("*.html"):  # what the theme would fetch a program for
        assert not re.search(r'class="[^"]*(mermaid|pyodide|glightbox)', each.read_text(encoding="utf-8"))


def test_every_page_of_the_documentation_is_on_the_site(site: Path) -> None:
    assert {str(each.relative_to(site)) for each in site.rglob("*.html")} >= {
        f"{name.removesuffix('.md')}.html" for name in site_builder.pages()
    }
    assert "Two commands" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "pandas.ipynb").exists()


def test_planted_problems_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PLANTED)
    (tmp_path / "a.css").write_text("body { background: url('https://c.example/p.png') }")
    found = " ".join(problems(tmp_path))
    for each in ("cdn.example", "fonts.example", "b.example", "c.example", "nothing.html", "nowhere"):
        assert each in found


def test_links_follow_the_pages(tmp_path: Path) -> None:
    source = site_builder.ROOT / "docs" / "adr" / "x.md"
    places = {(site_builder.ROOT / "README.md").resolve(): "index.md"}
    text = "[home](../../README.md#two) and [code](../../src/x.py) and [far](https://a.example/b)"
    assert (
        site_builder.moved(text, "adr/x.md", source, places)
        == "[home](../index.md#two) and code and [far](https://a.example/b)"
    )
