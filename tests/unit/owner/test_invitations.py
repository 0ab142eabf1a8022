"""Invitations: one token per person, in a table that reads back and on pages that print."""

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.mechanisms.laplace import Laplace
from faircount.owner.folder import Access, OwnerFile
from faircount.owner.invitation_texts import printed_words
from faircount.owner.invitations import (
    invitations_csv,
    invitations_html,
    invite,
    numbered_people,
    qr_code,
    read_invitations,
)
from faircount.owner.page_export import PageFacts
from faircount.owner.people import People
from faircount.owner.questions import one_question
from faircount.protocol import SERVERS, SurveyParameters
from faircount.protocol.simulator import set_up
from faircount.server.common.page_files import make_bundle, page_hash

ADDRESS = "https://count.example.org"


@pytest.fixture(scope="module")
def params() -> SurveyParameters:
    texts: dict[str, Any] = {
        "questionnaire": one_question("Which <city>?", ["x", "y"]).questionnaire,
        "owner": "A & B",
        "s1_operator": "One",
        "s2_operator": "Two",
    }
    mechanism = Laplace(items=["x", "y"], epsilon=1.0).bind(12)
    return set_up(mechanism, SERVERS, SystemEntropy(), **texts).params


def test_a_table_reads_back(params: SurveyParameters, tmp_path: Path) -> None:
    invitees = invite(params, ["Zoë, a.", "=1+1", *numbered_people(10)], SystemEntropy())
    assert len({invitee.code.invitation.token for invitee in invitees}) == 12
    path = tmp_path / "invitations.csv"
    path.write_bytes(invitations_csv(invitees, ADDRESS))
    assert read_invitations(path) == invitees
    (first, *_) = csv.DictReader(io.StringIO(path.read_text()))
    assert first["link"] == f"{ADDRESS}/#{invitees[0].code.text}"
    assert first["user"] == invitees[0].code.invitation.user.hex()


def test_a_changed_table_is_refused(params: SurveyParameters, tmp_path: Path) -> None:
    path = tmp_path / "invitations.csv"
    text = invitations_csv(invite(params, numbered_people(12), SystemEntropy()), ADDRESS).decode()
    path.write_text(text.replace("person,user,code", "person,user,kode"))
    with pytest.raises(FaircountError, match="was changed"):
        read_invitations(path)
    with pytest.raises(FaircountError, match="make the invitations first"):
        read_invitations(tmp_path / "none.csv")


def test_too_many_too_few_or_repeated_people_are_refused(params: SurveyParameters) -> None:
    with pytest.raises(RefusedError, match="planned for 12 people, and the list has 13"):
        invite(params, numbered_people(13), SystemEntropy())
    with pytest.raises(RefusedError, match="5 people are invited, and 11 must answer"):
        invite(params, numbered_people(5), SystemEntropy())
    with pytest.raises(ParameterError, match="a person twice"):
        invite(params, ["a", *numbered_people(9), "a"], SystemEntropy())


def test_a_page_has_everything_and_runs_no_script(params: SurveyParameters) -> None:
    invitees = invite(params, ["<script>alert(1)</script>", *numbered_people(11)], SystemEntropy())
    page = invitations_html(params, invitees, ADDRESS).decode()
    assert page.count("<section>") == page.count("<svg") == 12
    assert "<script>" not in page
    assert "Which &lt;city&gt;?" in page
    assert "Servers operated by: <bdi>One and Two</bdi>" in page
    assert "can be at most 73.2\u00a0% sure" in page  # e / (1 + e), rounded up
    for invitee in invitees:
        assert invitee.code.grouped_text in page
        assert invitee.code.link(ADDRESS) in page


def test_a_page_in_another_language_is_all_in_it(params: SurveyParameters) -> None:
    invitees = invite(params, numbered_people(12, "de"), SystemEntropy())
    page = invitations_html(params, invitees, ADDRESS, "de").decode()
    assert "<html lang=de>" in page
    assert "Die Server werden betrieben von: <bdi>One und Two</bdi>" in page
    assert "höchstens zu 73,2\u00a0% sicher" in page
    assert page.count(">Person 12<") == 1
    for sentence in vars(printed_words("en")).values():
        # Single words such as "person" may stand in both languages.
        if " " in sentence:
            assert max(re.split(r"\{\w+\}", sentence), key=len) not in page
    with pytest.raises(ParameterError, match="printed in one of en, de, not 'fr'"):
        invitations_html(params, invitees, ADDRESS, "fr")


def test_a_qr_code_is_a_picture_of_the_link() -> None:
    """Different links have different pictures, drawn as a path without text."""
    one = qr_code(f"{ADDRESS}/#{'A' * 136}")
    other = qr_code(f"{ADDRESS}/#{'B' * 136}")
    assert one != other
    assert re.search(r"<path [^>]*d=", one)
    assert "AAAA" not in one


def test_the_owners_columns_come_back_and_no_cell_is_a_formula(
    params: SurveyParameters, tmp_path: Path
) -> None:
    header = ("=name", "link", "link 2", "Office")
    row = ("=HYPERLINK(1)", "+1", "-1", "@home")
    names = tuple(numbered_people(12))
    invitees = invite(params, People(names, header, (row,) * 12), SystemEntropy())
    path = tmp_path / "invitations.csv"
    path.write_bytes(invitations_csv(invitees, ADDRESS))
    assert read_invitations(path) == invitees
    table = list(csv.reader(io.StringIO(path.read_text())))
    assert table[0] == ["person", "user", "code", "link", "'=name", "link 2", "link 2 2", "Office"]
    assert table[1][4:] == ["'=HYPERLINK(1)", "'+1", "'-1", "'@home"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_an_invitation_has_the_hash_of_the_page_and_the_way_without_it(
    params: SurveyParameters, language: str
) -> None:
    invitees = invite(params, numbered_people(12), SystemEntropy())
    owner = OwnerFile(Access("http://s1", "x"), Access("http://s2", "y"), ADDRESS, (1.0, 0.1))
    own_page = PageFacts.of(owner)
    elsewhere = replace(owner, page="https://www.example.org/survey")
    bundle = PageFacts.of(elsewhere)
    assert (own_page.hash, bundle.hash) == (page_hash(), make_bundle(ADDRESS).hash)
    address = elsewhere.link_address
    page = invitations_html(params, invitees, address, language, bundle).decode()
    assert page.count(bundle.hash) == len(invitees)
    for invitee in invitees:
        assert f"faircount answer --server {ADDRESS} {invitee.code.text}" in page
        assert f"https://www.example.org/survey/#{invitee.code.text}" in page
