"""A real Chromium, the system's own; `make test` finds or installs it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright

from faircount.core.errors import FaircountError

ROOT = Path(__file__).parents[2]
ORIGIN = "http://localhost:9"  # nothing listens there: every request is answered by the test
POLICY = "default-src 'none'; script-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found_chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def found_chromium() -> str:
    """Where Debian, or another system, has put it."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        for folder in ("/usr/bin", "/usr/local/bin", "/snap/bin"):
            if (path := Path(folder, name)).exists():
                return str(path)
    raise FaircountError("the tests of the page need Chromium: run make browser, or install the package chromium")


@pytest.fixture
def library_page(chromium: Browser) -> Iterator[Page]:
    """An empty page under a strict policy, at an origin that serves the files of this repository."""
    page = chromium.new_page()
    page.route("**/*", _from_disk)
    page.goto(ORIGIN)
    yield page
    page.close()


def _from_disk(route: Route) -> None:
    path = route.request.url.removeprefix(ORIGIN).lstrip("/")
    body = (ROOT / path).read_bytes() if path else b"<!doctype html><title>empty</title>"
    kind = "text/javascript" if path else "text/html"
    route.fulfill(body=body, headers={"content-type": kind, "content-security-policy": POLICY})
