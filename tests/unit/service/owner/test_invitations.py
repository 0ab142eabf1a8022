"""Invitations: one token per person, in a table that reads back and on pages that print."""

import csv
import io
import re
from pathlib import Path

import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, SurveyParameters
from faircount.protocol.play import set_up
from faircount.service.owner.invitations import as_page, as_table, invite, numbered, qr_code, read_table
from faircount.service.owner.printed_words import printed_words

ADDRESS = "https://count.example.org"


@pytest.fixture(scope="module")
def params() -> SurveyParameters:
    texts = {"question": "Which <city>?", "owner": "A & B", "s1_operator": "One", "s2_operator": "Two"}
    return set_up(Laplace(items=["x", "y"], epsilon=1.0).bind(12), SERVERS, SystemEntropy(), **texts).params


def test_a_table_reads_back(params: SurveyParameters, tmp_path: Path) -> None:
    made = invite(params, ["Zoë, a.", "=1+1", *numbered(10)], SystemEntropy())
    assert len({each.code.invitation.token for each in made}) == 12
    path = tmp_path / "invitations.csv"
    path.write_bytes(as_table(made, ADDRESS))
    assert read_table(path) == made
    (first, *_) = csv.DictReader(io.StringIO(path.read_text()))
    assert first["link"] == f"{ADDRESS}/#{made[0].code.text}"
    assert first["user"] == made[0].code.invitation.user.hex()


def test_a_changed_table_is_refused(params: SurveyParameters, tmp_path: Path) -> None:
    path = tmp_path / "invitations.csv"
    text = as_table(invite(params, numbered(12), SystemEntropy()), ADDRESS).decode()
    path.write_text(text.replace("person,user,code", "person,user,kode"))
    with pytest.raises(FaircountError, match="was changed"):
        read_table(path)
    with pytest.raises(FaircountError, match="make the invitations first"):
        read_table(tmp_path / "none.csv")


def test_too_many_too_few_or_twice_the_same(params: SurveyParameters) -> None:
    with pytest.raises(RefusedError, match="planned for 12 people, and these are 13"):
        invite(params, numbered(13), SystemEntropy())
    with pytest.raises(RefusedError, match="5 people are invited, and 11 must answer"):
        invite(params, numbered(5), SystemEntropy())
    with pytest.raises(ParameterError, match="somebody twice"):
        invite(params, ["a", *numbered(9), "a"], SystemEntropy())


def test_a_page_has_everything_and_obeys_nothing(params: SurveyParameters) -> None:
    made = invite(params, ["<script>alert(1)</script>", *numbered(11)], SystemEntropy())
    page = as_page(params, made, ADDRESS).decode()
    assert page.count("<section>") == page.count("<svg") == 12
    assert "<script>" not in page
    assert "Which &lt;city&gt;?" in page
    assert "Servers run by: <bdi>One and Two</bdi>" in page
    assert "can be at most 73.2\u00a0% sure" in page  # e / (1 + e), rounded up
    for each in made:
        assert each.code.grouped in page
        assert each.code.link(ADDRESS) in page


def test_a_page_in_another_language_is_all_in_it(params: SurveyParameters) -> None:
    made = invite(params, numbered(12, "de"), SystemEntropy())
    page = as_page(params, made, ADDRESS, "de").decode()
    assert "<html lang=de>" in page
    assert "Die Server betreiben: <bdi>One und Two</bdi>" in page
    assert "höchstens zu 73,2\u00a0% sicher" in page
    assert page.count(">Person 12<") == 1
    english = {each for each in vars(printed_words("en")).values() if " " in each}
    assert not [each for each in english if each.partition("{")[0] in page]
    with pytest.raises(ParameterError, match="printed in one of en, de, not 'fr'"):
        as_page(params, made, ADDRESS, "fr")


def test_a_qr_code_is_a_picture_of_the_link() -> None:
    """Different links, different pictures; drawn with a path, no text in it."""
    one, other = (qr_code(f"{ADDRESS}/#{each}") for each in ("A" * 136, "B" * 136))
    assert one != other
    assert re.search(r"<path [^>]*d=", one)
    assert "AAAA" not in one
