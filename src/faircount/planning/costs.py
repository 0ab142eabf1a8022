"""What a survey costs a user, in bytes and visits, by the form in which its answer travels.

Where the protocol carries it, the protocol counts: these are the bytes of the encoded messages.
"""

from dataclasses import dataclass

from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.mechanisms.secret_shared import makes_shares
from faircount.protocol import EXPLICIT, SERVERS, TWO_STAGE


@dataclass(frozen=True, slots=True)
class Cost:
    """Per user: bytes sent, and how often the device must be online. `topology` is None where there are no shares."""

    form: str
    topology: str | None
    bytes_sent: int
    visits: int
    sees: str  # who sees what


def cost(mechanism: FrequencyMechanism) -> Cost:
    """The cheapest form that needs no trusted party: two servers for sums, helpers for TSS, a report for local ones."""
    if mechanism.collected is Collected.SUM:
        sent = SERVERS.bytes_sent(makes_shares(mechanism))
        sees = "each server one uniform share, everybody the result"
        return Cost("two servers", str(SERVERS), sent, len(SERVERS.phases), sees)
    if mechanism.collected is Collected.SETS:
        sent = TWO_STAGE.bytes_sent(makes_shares(mechanism))
        sees = "S1 which items a user reports, helpers uniform shares, S2 how many report an item, everybody the result"
        return Cost("elected helpers", str(TWO_STAGE), sent, len(TWO_STAGE.phases), sees)
    report = -(-mechanism.response_bits // 8)
    if mechanism.collected is Collected.REPORTS:
        return Cost("one report", None, report, 1, "the server every user's own, randomized report")
    return Cost("trusted server", None, report, 1, "the server every answer in the clear")


def paper_form_bytes(mechanism: FrequencyMechanism) -> int:
    """Bytes sent in the paper's form: (n-1) N sealed elements to the other users, N to the server."""
    return EXPLICIT.bytes_sent(makes_shares(mechanism))
