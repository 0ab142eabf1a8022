"""Why a survey ended without a result, as a value: a code, its numbers, and sometimes a detail.

Both servers sign the code (`messages.Aborted`), so that pages translate a code and nobody searches
English sentences for their meaning. The English sentences are here; pages have their own under
the same codes. A detail is added where the code alone would hide something: what the owner wrote,
or which statement of a server contradicts which.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from faircount.core.domain import escape_controls
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Aborted


class EndCode(IntEnum):
    """The codes on the wire; a number is never reused for another meaning."""

    OWNER = 1  # the owner ended it; the detail is the owner's reason, in any language
    TOO_FEW_RESPONSES = 2
    TOO_FEW_ENROLLED = 3
    TOO_FEW_LEFT = 4  # after participants dropped out
    TOO_FEW_READABLE = 5  # too many reports cannot be decrypted or are invalid
    OVER_BUDGET = 6
    AGGREGATOR_RESTORED = 7
    COORDINATOR_RESTORED = 8
    REPORTS_LOST = 9
    ATTEMPTS_USED = 10
    KEY_LOST = 11
    NO_SUBSTITUTE = 12
    NOT_INVITED = 13
    CORRUPT_SUM = 14
    AGGREGATOR_REFUSED = 15
    AGGREGATOR_CONTRADICTION = 16
    COORDINATOR_CONTRADICTION = 17
    AGGREGATOR_SECRET_LOST = 18
    OPERATOR = 19  # the operator of a server stopped it; the detail is the operator's reason


# Numbers and not sentences, so that a page makes a sentence of them in any language.
NUMBERS: Mapping[EndCode, tuple[str, ...]] = {
    EndCode.TOO_FEW_RESPONSES: ("responses", "minimum"),
    EndCode.TOO_FEW_ENROLLED: ("enrolled", "minimum"),
    EndCode.TOO_FEW_LEFT: ("left", "minimum"),
    EndCode.TOO_FEW_READABLE: ("readable", "minimum"),
    EndCode.ATTEMPTS_USED: ("attempts",),
    EndCode.AGGREGATOR_REFUSED: ("reason",),
}
"""Names of the numbers that come with a code, in their order on the wire; other codes have none."""

TOO_FEW = frozenset(
    (
        EndCode.TOO_FEW_RESPONSES,
        EndCode.TOO_FEW_ENROLLED,
        EndCode.TOO_FEW_LEFT,
        EndCode.TOO_FEW_READABLE,
    )
)
"""Codes of surveys in which fewer took part than the minimum; their first number is how many."""

ENGLISH: Mapping[EndCode, str] = {
    EndCode.OWNER: "the owner ended the survey",
    EndCode.TOO_FEW_RESPONSES: "{responses} participants responded, {minimum} are needed",
    EndCode.TOO_FEW_ENROLLED: "{enrolled} participants enrolled, {minimum} are needed",
    EndCode.TOO_FEW_LEFT: "{left} participants are left, {minimum} are needed",
    EndCode.TOO_FEW_READABLE: (
        "{readable} responses can be decrypted and added up, {minimum} are needed"
    ),
    EndCode.OVER_BUDGET: "the privacy budget of this population is not enough",
    EndCode.AGGREGATOR_RESTORED: "the aggregator (S2) was restored from a backup",
    EndCode.COORDINATOR_RESTORED: (
        "the coordinator (S1) was restored from a backup and cannot go on"
    ),
    EndCode.REPORTS_LOST: "reports were damaged or lost after the batch was fixed",
    EndCode.ATTEMPTS_USED: "participants were missing in each of {attempts} attempts",
    EndCode.KEY_LOST: (
        "the key of a participant who dropped out could not be recovered, and no attempt is left"
    ),
    EndCode.NO_SUBSTITUTE: "nobody is left who could take over a slot: elect phi + 1 helpers only",
    EndCode.NOT_INVITED: "no invitation vouches for anybody who enrolled",
    EndCode.CORRUPT_SUM: "the sum is outside the range that honest responses can reach",
    EndCode.AGGREGATOR_REFUSED: "the aggregator (S2) refused the batch (reason {reason})",
    EndCode.AGGREGATOR_CONTRADICTION: "the aggregator (S2) contradicted itself",
    EndCode.COORDINATOR_CONTRADICTION: "the coordinator (S1) contradicted itself",
    EndCode.AGGREGATOR_SECRET_LOST: (
        "the aggregator (S2) does not hold the value that it has committed to"
    ),
    EndCode.OPERATOR: "the operator of one of the servers stopped the survey",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a survey ended: a code, the numbers that `NUMBERS` names, and a detail or nothing."""

    code: int
    numbers: tuple[int, ...] = ()
    detail: str = ""

    @property
    def known(self) -> EndCode | None:
        """The code by name; None if it has no name, or comes with the wrong number of numbers.

        Another version, or a dishonest server, may have signed it: it is shown as unknown.
        """
        # Formatting a sentence with missing numbers would raise, on the page of a participant.
        if self.code not in set(EndCode):
            return None
        code = EndCode(self.code)
        return code if len(self.numbers) == len(NUMBERS.get(code, ())) else None

    @property
    def name(self) -> str:
        """The code as pages name their sentences."""
        return "unknown" if self.known is None else self.known.name.lower()

    @property
    def values(self) -> dict[str, int]:
        """The numbers by name."""
        if self.known is None:
            return {}
        return dict(zip(NUMBERS.get(self.known, ()), self.numbers, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON: what a page needs to translate the ending."""
        return {"code": self.name, "values": self.values, "detail": self.detail}

    def __str__(self) -> str:
        if self.known is None:
            sentence = f"for a reason that this version does not know (code {self.code})"
        else:
            sentence = ENGLISH[self.known].format(**self.values)
        # check: ending-controls - whoever ends a survey writes into the terminals of others
        detail = escape_controls(self.detail)
        return f"{sentence}: {detail}" if detail else sentence


def too_few_responses(responses: int, minimum: int) -> Ending:
    """Fewer participants responded than the minimum."""
    return Ending(EndCode.TOO_FEW_RESPONSES, (responses, minimum))


def too_few_enrolled(enrolled: int, minimum: int) -> Ending:
    """Fewer participants enrolled than the minimum."""
    return Ending(EndCode.TOO_FEW_ENROLLED, (enrolled, minimum))


def too_few_left(left: int, minimum: int) -> Ending:
    """Fewer participants are left after dropouts than the minimum."""
    return Ending(EndCode.TOO_FEW_LEFT, (left, minimum))


def too_few_readable(readable: int, minimum: int) -> Ending:
    """Fewer responses can be decrypted and added up than the minimum."""
    return Ending(EndCode.TOO_FEW_READABLE, (readable, minimum))


def attempts_used(attempts: int, detail: str = "") -> Ending:
    """Participants were missing in every attempt."""
    return Ending(EndCode.ATTEMPTS_USED, (attempts,), detail)


def aggregator_contradiction(detail: str) -> Ending:
    """The aggregator contradicted what it had signed, or asked for what must not be given."""
    return Ending(EndCode.AGGREGATOR_CONTRADICTION, (), detail)


# Details of contradictions that are found in more than one place.
OTHER_BATCH = "it names another batch than the one that the coordinator has added up"
OTHER_RESERVATION = "it names another batch than the one that it signed a reservation for"
TWO_SETS = "it named two sets of reports to add up for one batch"
NOT_OF_BATCH = "it named a set of reports that is not part of the batch"
OTHER_ROOT = "it named one set of reports and signed the root of another"
NOT_CONFIRMED = (
    "its accepted reports are not those that the verifier shares of both servers confirm"
)
OTHER_VALUE = "it revealed another value than the one that it had committed to"


def make_aborted(survey: bytes, ending: Ending, by: Party, *, spent: bool) -> Aborted:
    """The ending as a message.

    by: the server that found the reason
    spent: whether the budget is charged nevertheless
    """
    return Aborted(
        survey, int(ending.code), ending.numbers, ending.detail.encode(), int(by), int(spent)
    )


def ending_of(stated: Aborted) -> Ending:
    """The ending in a message."""
    # A detail can be any bytes that a server signed: replace what is no UTF-8.
    return Ending(stated.code, tuple(stated.numbers), stated.detail.decode(errors="replace"))


def describe_abort(stated: Aborted) -> str:
    """The reason in English; it says so where only the coordinator can know the reason."""
    # The aggregator signs the end without being able to verify a reason of the coordinator.
    reported = "the coordinator (S1) reports: " if stated.by == Party.COORDINATOR else ""
    return f"{reported}{ending_of(stated)}"
