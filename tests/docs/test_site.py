"""The documentation site: it builds, no link is dead, and no page loads anything from another
place.
"""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import diagrams
import pytest
import site_builder
from playwright.sync_api import Browser, Request, expect

LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "object": "data",
}
PLANTED = """<html><head><script src="//cdn.example/x.js"></script>
<link href="https://fonts.example/a"></head><body>
<a href="nothing.html">x</a><a href="index.html#nowhere">y</a>
<style>@import url(http://b.example);</style></body></html>
"""


class Page(HTMLParser):
    """Links, identifiers and loaded addresses of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()
        self.feed(text)
        styles = re.findall(r"<style[^>]*>(.*?)</style>", text, re.DOTALL)
        self.loaded += [address for style in styles for address in addresses(style)]

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
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}
    known, found = {key.resolve(): value.names for key, value in pages.items()}, []
    for path, page in pages.items():
        found += [
            f"{path.name} loads {address}" for address in page.loaded if urlsplit(address).netloc
        ]
        for link in page.links:
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if parts.netloc or parts.scheme or path.name == "404.html":
                continue
            if not target.exists():
                found.append(f"{path.name} -> {link}")
            elif (
                parts.fragment and target in known and unquote(parts.fragment) not in known[target]
            ):
                found.append(f"{path.name} -> {link}: no such place")
    for style in folder.rglob("*.css"):
        found += [
            f"{style.name} loads {address}"
            for address in addresses(style.read_text())
            if urlsplit(address).netloc
        ]
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "site"
    site_builder.build(folder)
    return folder


def test_no_link_is_dead_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert not problems(site)
    for path in site.rglob("*.html"):  # what the theme would fetch a program for
        assert not re.search(
            r'class="[^"]*(mermaid|pyodide|glightbox)', path.read_text(encoding="utf-8")
        )


def test_every_page_of_the_documentation_is_on_the_site(site: Path) -> None:
    built = {str(path.relative_to(site)) for path in site.rglob("*.html")}
    wanted = {re.sub(r"README\.md$", "index.md", name) for name in site_builder.pages()}
    assert {name.removesuffix(".md") + ".html" for name in wanted} <= built
    assert "Two commands" in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "tutorials" / "first-histogram.ipynb").exists()
    assert (site / "reference" / "openapi-coordinator.json").exists()


def test_every_page_is_in_the_navigation() -> None:
    """But for decisions and checklists, which have a list of their own."""
    navigation = Path(site_builder.__file__).with_name("zensical.toml").read_text(encoding="utf-8")
    listed = set(re.findall(r'"([\w./-]+\.md)"', navigation))
    assert listed <= set(site_builder.pages())
    rest = set(site_builder.pages()) - listed
    assert {name for name in rest if not name.startswith(("adr/", "extending/"))} == set()


@pytest.mark.slow
def test_search_works_in_pages_that_are_opened_as_files(site: Path, chromium: Browser) -> None:
    addresses: list[str] = []

    def note(request: Request) -> None:
        addresses.append(request.url)

    page = chromium.new_page()
    page.on("request", note)
    page.goto(
        (site / "explanation" / "privacy.html").as_uri()
    )  # not in the site's own folder: paths are relative
    page.locator(".md-search__button").click()
    page.keyboard.type("unmask request")
    result = page.locator("a[href*=glossary]").filter(has_text="unmask share")
    expect(result).to_be_visible(timeout=30_000)
    result.click()
    page.wait_for_url(re.compile(r"glossary\.html"))
    page.close()
    assert addresses
    assert all(address.startswith(("file:", "blob:")) for address in addresses)


def test_diagrams_become_pictures_with_a_title(site: Path) -> None:
    page = (site / "ARCHITECTURE.html").read_text(encoding="utf-8")
    pictures = re.findall(r'<img alt="([^"]+)" src="(diagrams/[^"]+)"', page)
    assert len(pictures) == 3
    for title, source in pictures:
        drawn = (site / source).read_text(encoding="utf-8")
        assert title.replace("&#x27;", "'")[:20] in drawn
        assert "<polyline" in drawn
    assert "Coordinator (S1)" in (site / pictures[1][1]).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        "pie\naccTitle: x\n",
        "flowchart TD\naccTitle: x\na ==> b\n",
        "sequenceDiagram\naccTitle: x\nloop often\n",
        "stateDiagram-v2\naccTitle: x\nstate a {\n",
        "flowchart TD\na --> b\n",
    ],
)
def test_a_diagram_that_cannot_be_drawn_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=r"cannot draw|accTitle"):
        diagrams.draw(source)


def test_planted_problems_are_found(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PLANTED)
    (tmp_path / "a.css").write_text("body { background: url('https://c.example/p.png') }")
    found = " ".join(problems(tmp_path))
    for word in (
        "cdn.example",
        "fonts.example",
        "b.example",
        "c.example",
        "nothing.html",
        "nowhere",
    ):
        assert word in found


def test_links_follow_the_pages(tmp_path: Path) -> None:
    source = site_builder.ROOT / "docs" / "adr" / "x.md"
    places = {(site_builder.ROOT / "README.md").resolve(): "index.md"}
    text = "[home](../../README.md#two) and [code](../../src/x.py) and [far](https://a.example/b)"
    assert (
        site_builder.relocate_links(text, "adr/x.md", source, places)
        == "[home](../index.md#two) and code and [far](https://a.example/b)"
    )
