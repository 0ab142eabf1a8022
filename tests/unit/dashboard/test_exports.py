"""A result as files to keep: the guarantee is in each of them."""

import csv
import io
import json
import zlib

import pytest

from faircount.core.errors import ParameterError
from faircount.dashboard.exports import export_result
from faircount.estimation.result import Result
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS
from faircount.protocol.simulator import play


@pytest.fixture(scope="module")
def result() -> Result:
    mechanism = Laplace(items=("tea", "coffee"), users=12, epsilon=2.0)
    return play([at % 2 for at in range(12)], mechanism, SERVERS)


def test_the_guarantee_is_in_every_file(result) -> None:
    words = str(result.guarantee)
    assert words.startswith("(2, ")
    rows = list(csv.DictReader(io.StringIO(export_result(result, "result.csv").decode())))
    assert [each["item"] for each in rows] == ["tea", "coffee"]
    assert {each["guarantee"] for each in rows} == {words}
    assert {float(each["promised_epsilon"]) for each in rows} == {2.0}
    plain = json.loads(export_result(result, "result.json"))
    assert (plain["in_words"], plain["promised"]["epsilon"], plain["guarantee"]["epsilon"]) == (
        words,
        2.0,
        2.0,
    )
    assert (
        f"<dc:description>{words}</dc:description>" in export_result(result, "result.svg").decode()
    )
    assert words in png_texts(export_result(result, "result.png"))["Description"]


def png_texts(data: bytes) -> dict[str, str]:
    """What is written in a PNG beside the picture, checked sums included."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    found, at = {}, 8
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        body = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + body) == int.from_bytes(data[at + 8 + size : at + 12 + size])
        if kind == b"tEXt":
            name, _, text = body.partition(b"\0")
            found[name.decode()] = text.decode("latin1")
        at += 12 + size
    return found


def test_another_kind_of_file_is_refused(result) -> None:
    with pytest.raises(ParameterError, match="a result can be saved as"):
        export_result(result, "result.exe")
