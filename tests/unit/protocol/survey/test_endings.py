"""Why a survey ended: codes with numbers, and the English sentence that is made of them."""

import re

import pytest

from faircount.protocol import decode, encode
from faircount.protocol.survey.endings import (
    ENGLISH,
    NUMBERS,
    EndCode,
    Ending,
    describe_abort,
    ending_of,
    make_aborted,
    too_few_responses,
)
from faircount.protocol.wire.codec import Party

SURVEY = bytes(range(16))


@pytest.mark.parametrize("code", EndCode)
def test_every_code_has_a_sentence_that_uses_its_numbers(code) -> None:
    assert set(re.findall(r"\{(\w+)\}", ENGLISH[code])) == set(NUMBERS.get(code, ()))


def test_an_ending_comes_back_from_the_wire_as_it_was() -> None:
    wanted = Ending(EndCode.AGGREGATOR_REFUSED, (9,), "zu früh")
    message = decode(encode(make_aborted(SURVEY, wanted, Party.COORDINATOR, spent=True)))
    assert ending_of(message) == wanted
    assert (message.by, message.spent) == (Party.COORDINATOR, 1)
    assert wanted.to_dict() == {
        "code": "aggregator_refused",
        "values": {"reason": 9},
        "detail": "zu früh",
    }


def test_what_s1_reports_is_shown_as_its_report_and_what_s2_found_is_not() -> None:
    few = too_few_responses(3, 5)
    reason = "3 participants responded, 5 are needed"
    assert describe_abort(make_aborted(SURVEY, few, Party.AGGREGATOR, spent=False)) == reason
    assert (
        describe_abort(make_aborted(SURVEY, few, Party.COORDINATOR, spent=False))
        == f"the coordinator (S1) reports: {reason}"
    )


@pytest.mark.parametrize(
    "ending", [Ending(0), Ending(200), Ending(EndCode.TOO_FEW_LEFT, (1,)), Ending(1, (1,))]
)
def test_a_code_that_nobody_gave_out_or_with_wrong_numbers_is_unknown(ending) -> None:
    """Another version or a server that lies can sign it: it is shown as such, and breaks nothing."""
    assert (ending.name, ending.values) == ("unknown", {})
    assert f"code {int(ending.code)}" in str(ending)


def test_a_detail_cannot_write_into_a_terminal() -> None:
    """A dishonest server, an owner or an operator writes it, and others read it in a terminal."""
    message = make_aborted(
        bytes(16),
        Ending(EndCode.OPERATOR, (), "\x1b[2J\u202eno\nmore"),
        Party.AGGREGATOR,
        spent=False,
    )
    shown = describe_abort(message)
    assert shown.isprintable()
    assert "x1b[2J" in shown
