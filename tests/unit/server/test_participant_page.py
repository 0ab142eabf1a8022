"""The page as the coordinator serves it: files, policy, and a hash that anybody can recompute."""

import asyncio
import re
import subprocess
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from faircount.server.common.page_files import page_files, page_hash
from faircount.server.common.participant_page import page_routes

FOLDER = Path(__file__).parents[3] / "src" / "faircount" / "web"


def get(*paths: str, **headers: str) -> list[httpx.Response]:
    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(Starlette(routes=page_routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://s1") as client:
            return [await client.get(path, headers=headers) for path in paths]

    return asyncio.run(ask())


def test_every_file_is_served_under_the_policy() -> None:
    paths = ["/", *(f"/{file.path}" for file in page_files())]
    for answer in get(*paths):
        policy = answer.headers["content-security-policy"]
        assert answer.status_code == 200
        assert "default-src 'none'" in policy
        assert "require-trusted-types-for 'script'" in policy
        assert "unsafe" not in policy
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/package.json", "/../pyproject.toml", "/client/", "/page", "/client/none.js"]
)
def test_nothing_else_is_served(path: str) -> None:
    (answer,) = get(path)
    assert answer.status_code == 404


def test_a_cached_file_is_not_sent_again() -> None:
    (first,) = get("/page/main.js")
    (second,) = get("/page/main.js", **{"if-none-match": first.headers["etag"]})
    assert (second.status_code, second.content) == (304, b"")


def test_the_hash_of_the_page_can_be_computed_with_common_tools() -> None:
    names = "-name '*.html' -o -name '*.css' -o -name '*.js' -o -name '*.svg'"
    command = f"find . {names} | cut -c3- | LC_ALL=C sort | xargs sha256sum | sha256sum"
    done = subprocess.run(
        ["bash", "-c", command], cwd=FOLDER, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == page_hash()
    (answer,) = get("/page.json")
    assert answer.json()["page"] == page_hash()
    assert answer.json()["files"]["index.html"] == next(
        file.hash for file in page_files() if file.path == "index.html"
    )


def test_the_page_contacts_nobody_else_and_has_no_inline_script() -> None:
    for file in page_files():
        text = file.content.decode()
        text = re.sub(r"^//.*$", "", text, flags=re.MULTILINE).replace(
            "http://www.w3.org/2000/svg", ""
        )
        addresses = [word for word in ("http://", "https://") if word in text]
        assert addresses == [], file.path
    index = (FOLDER / "index.html").read_text(encoding="utf-8")
    assert "<script>" not in index
    assert "onload" not in index
