"""Invitation codes survive printing and typing; typing errors are found."""

import base64
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.client.invitation_codes import Code, read_code, read_invitation, server_address
from faircount.core.errors import ParameterError
from faircount.protocol import Invitation

CODE = Code(bytes(range(16)), Invitation(bytes(range(32)), bytes(range(100, 132))))


@given(
    st.binary(min_size=16, max_size=16),
    st.binary(min_size=32, max_size=32),
    st.binary(min_size=32, max_size=32),
)
def test_every_code_reads_back(survey: bytes, token: bytes, digest: bytes) -> None:
    code = Code(survey, Invitation(token, digest))
    assert read_code(code.text) == code
    assert read_code(code.grouped_text.lower()) == code
    assert len(code.text) == 136


def test_the_bytes_are_as_documented() -> None:
    body = b"\x01" + CODE.survey + CODE.invitation.params + CODE.invitation.token
    check = sha256(b"faircount/1/code\0" + body).digest()[:4]
    assert CODE.text == base64.b32encode(body + check).decode()
    assert CODE.link("https://count.example.org/") == f"https://count.example.org/#{CODE.text}"


def test_lookalike_characters_are_corrected() -> None:
    typed = (
        CODE.grouped_text.replace("O", "0").replace("I", "1").replace("B", "8").replace("-", " ")
    )
    assert read_code(f"  {typed}\n") == CODE


@pytest.mark.parametrize("place", [0, 1, 17, 70, 100, 135])
def test_a_typing_error_is_found(place: int) -> None:
    other = "A" if CODE.text[place] != "A" else "C"
    with pytest.raises(ParameterError, match=r"copy it again|no invitation code"):
        read_code(CODE.text[:place] + other + CODE.text[place + 1 :])


@pytest.mark.parametrize("text", ["", "hello", CODE.text[:-8], CODE.text + "AAAAAAAA", "é" * 136])
def test_what_is_no_code_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="no invitation code"):
        read_code(text)


def test_a_link_names_the_server_and_a_code_alone_does_not() -> None:
    assert read_invitation(CODE.link("https://count.example.org/s1")) == (
        "https://count.example.org/s1",
        CODE,
    )
    assert read_invitation(CODE.text, "http://127.0.0.1:8001/") == ("http://127.0.0.1:8001", CODE)
    with pytest.raises(ParameterError, match="give the link"):
        read_invitation(CODE.text)
    # What is no code needs no address.
    with pytest.raises(ParameterError, match="this is no invitation code"):
        read_invitation("garbage")


@pytest.mark.parametrize(
    "text", ["count.example.org", "ftp://count.example.org", "https://", "https://a?b"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="the address of a server looks like"):
        server_address(text)


def test_repr_of_a_code_leaves_the_token_out() -> None:
    assert CODE.invitation.token.hex() not in repr(CODE)
    assert str(CODE.invitation.token) not in repr(CODE)
