"""The owner's folder has one survey, and nobody else can read its secrets."""

import json
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.mechanisms.laplace import Laplace
from faircount.owner.folder import Access, OwnerFile, SurveyFolder, read_servers
from faircount.protocol import SERVERS
from faircount.protocol.simulator import set_up

OWNER = OwnerFile(
    Access("https://s1", "secret one"),
    Access("https://s2", "secret two"),
    "https://s1",
    (1.0, 1e-6),
)


def test_what_is_written_reads_back_and_is_private(tmp_path: Path) -> None:
    mechanism = Laplace(items=["x", "y"], epsilon=1.0).bind(12)
    params = set_up(mechanism, SERVERS, SystemEntropy()).params
    folder = SurveyFolder(tmp_path / "survey")
    folder.create(params, OWNER)
    assert folder.owner() == OWNER
    assert folder.parameters() == params
    assert folder.parameters_file.read_bytes() == params.published
    assert stat.S_IMODE((folder.path / "owner.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    with pytest.raises(RefusedError, match="already contains a survey"):
        folder.create(params, OWNER)
    assert "secret" not in repr(OWNER)


def test_a_file_from_before_there_were_languages_is_english() -> None:
    german = replace(OWNER, language="de")
    assert OwnerFile.decode(german.encode()) == german
    before = json.loads(german.encode())
    del before["language"]
    assert OwnerFile.decode(json.dumps(before).encode()) == OWNER


def test_files_that_are_missing_or_damaged_say_what_to_do(tmp_path: Path) -> None:
    folder = SurveyFolder(tmp_path)
    with pytest.raises(FaircountError, match="make a survey there first"):
        folder.owner()
    (tmp_path / "owner.json").write_text("{}")
    with pytest.raises(FaircountError, match=r"owner\.json is damaged"):
        folder.owner()


def test_the_file_of_both_servers(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    with pytest.raises(FaircountError, match="or start a trial with faircount serve"):
        read_servers(path)
    servers = {
        "s1": {"address": "https://one/", "token": "a"},
        "s2": {"address": "http://two:81", "token": "b"},
    }
    path.write_text(json.dumps(servers))
    assert read_servers(path) == (Access("https://one", "a"), Access("http://two:81", "b"))
    path.write_text('{"s1": {}}')
    with pytest.raises(FaircountError, match="must be JSON"):
        read_servers(path)
    servers["s1"]["address"] = "one"
    path.write_text(json.dumps(servers))
    with pytest.raises(ParameterError, match="the address of a server looks like"):
        read_servers(path)
