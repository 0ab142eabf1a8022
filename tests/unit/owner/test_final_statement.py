"""The owner believes only what the aggregator signed about this survey."""

from types import SimpleNamespace
from typing import Any

import pytest

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError
from faircount.owner.remote import verify_final_statement
from faircount.protocol import encode
from faircount.protocol.survey.endings import EndCode, Ending, make_aborted
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.signing import SigningKey, sign

KEY = SigningKey.generate(SystemEntropy())
SURVEY = bytes(range(16))
PARAMS: Any = SimpleNamespace(survey=SURVEY, keys=SimpleNamespace(aggregator=KEY.public))


def end(survey: bytes, key: SigningKey = KEY, by: Party = Party.AGGREGATOR) -> bytes:
    aborted = make_aborted(survey, Ending(EndCode.OWNER), Party.COORDINATOR, spent=False)
    return encode(sign(key, by, aborted))


def test_what_the_aggregator_signed_is_believed() -> None:
    assert verify_final_statement(PARAMS, end(SURVEY)).message.survey == SURVEY  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "shown",
    [
        end(SURVEY, SigningKey.generate(SystemEntropy())),
        end(SURVEY, by=Party.COORDINATOR),
        encode(make_aborted(SURVEY, Ending(EndCode.OWNER), Party.AGGREGATOR, spent=False)),
    ],
    ids=["another key", "another party", "unsigned"],
)
def test_what_it_did_not_sign_is_not_believed(shown: bytes) -> None:
    with pytest.raises(RefusedError, match="has not signed for this survey"):
        verify_final_statement(PARAMS, shown)


def test_the_end_of_another_survey_is_not_believed() -> None:
    with pytest.raises(RefusedError, match="has not signed for this survey"):
        verify_final_statement(PARAMS, end(bytes(16)))
