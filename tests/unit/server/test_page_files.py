"""The participant's page as a bundle for another origin: the same bytes, checked by browsers."""

import asyncio
import json
import re
import subprocess
from base64 import b64decode
from hashlib import sha256
from html import unescape
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from starlette.applications import Starlette

from faircount.cli import main
from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.page_export import export_page
from faircount.server.common.page_files import make_bundle, page_files, page_hash
from faircount.server.common.participant_page import bundle_routes

COORDINATOR = "https://count.example.org"
ALL_FILES = "find . -type f | cut -c3- | LC_ALL=C sort | xargs sha256sum | sha256sum"


def test_anybody_computes_the_hash_of_an_exported_page(tmp_path: Path) -> None:
    shown = export_page(tmp_path / "page", COORDINATOR)
    done = subprocess.run(
        ["sh", "-c", ALL_FILES], cwd=tmp_path / "page", capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == shown == make_bundle(COORDINATOR).hash
    assert shown == export_page(tmp_path / "again", f"{COORDINATOR}/")
    assert shown not in {page_hash(), export_page(tmp_path / "other", "https://other.example")}


def test_only_index_html_differs_from_the_coordinators_page() -> None:
    own = {file.path: file.hash for file in page_files()}
    exported = {file.path: file.hash for file in make_bundle(COORDINATOR).files}
    assert own.keys() == exported.keys()
    assert {path for path in own if own[path] != exported[path]} == {"index.html"}


def index_of(coordinator: str) -> str:
    (index,) = (file for file in make_bundle(coordinator).files if file.path == "index.html")
    return index.content.decode()


def test_every_script_and_style_has_its_hash() -> None:
    index = index_of(COORDINATOR)
    hashes = {file.path: file.hash for file in page_files()}
    scripts = {path for path in hashes if path.endswith(".js")}
    (import_map,) = re.findall(r'<script type="importmap">(.*?)</script>', index)
    mapped = {
        path.removeprefix("./"): as_hex(value)
        for path, value in json.loads(import_map)["integrity"].items()
    }
    assert mapped == {path: hashes[path] for path in scripts}
    tags = re.findall(r'(?:href|src)="([\w./]+)" integrity="([^"]+)"', index)
    assert {path: as_hex(value) for path, value in tags} == {
        path: hashes[path] for path in (*scripts, "style.css")
    }


def as_hex(integrity: str) -> str:
    return b64decode(integrity.removeprefix("sha256-")).hex()


def test_the_policy_comes_first_and_names_the_coordinator_alone() -> None:
    index = index_of("https://count.example.org:8443/faircount/")
    policy = unescape(re.findall(r'Security-Policy" content="([^"]+)"', index)[0])
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["connect-src"] == "https://count.example.org:8443"
    assert 'content="https://count.example.org:8443/faircount/"' in index
    (import_map,) = re.findall(r'<script type="importmap">(.*?)</script>', index)
    own, inline = directives["script-src"].split(" ")
    assert (own, as_hex(inline.strip("'"))) == ("'self'", sha256(import_map.encode()).hexdigest())
    first = min(index.index(tag) for tag in ("<script", "<link"))
    assert index.index("Security-Policy") < first


@pytest.mark.parametrize(
    "address",
    [
        "count.example.org",
        "ftp://a.example",
        "https://",
        "https://a.example; script-src *",
        "x'y",
        "https://a.example\x0cother.example",
        "https://*.example",
        "https://z\u00e4hlung.example",
    ],
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ParameterError, match="an address looks like"):
        make_bundle(address)


def test_a_folder_with_other_files_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text("mine")
    with pytest.raises(RefusedError, match="not empty"):
        export_page(tmp_path, COORDINATOR)
    assert [file.name for file in tmp_path.iterdir()] == ["other.html"]


def test_the_command_prints_the_hash(tmp_path: Path) -> None:
    arguments = ["page", "export", str(tmp_path / "page"), "--coordinator", COORDINATOR]
    done = CliRunner().invoke(main, [*arguments, "--json"], catch_exceptions=False)
    assert json.loads(done.stdout)["hash"] == make_bundle(COORDINATOR).hash


def test_a_server_that_shows_the_bundle_sends_its_policy() -> None:
    index, hashes = asyncio.run(get_bundle("/", "/page.json"))
    assert index.text == index_of(COORDINATOR)
    policy = index.headers["content-security-policy"]
    assert f"connect-src {COORDINATOR};" in policy
    assert "frame-ancestors 'none'" in policy
    assert hashes.json()["page"] == make_bundle(COORDINATOR).hash


async def get_bundle(*paths: str) -> list[httpx.Response]:
    transport = httpx.ASGITransport(Starlette(routes=bundle_routes(COORDINATOR)))
    async with httpx.AsyncClient(transport=transport, base_url="http://s2") as client:
        return [await client.get(path) for path in paths]
