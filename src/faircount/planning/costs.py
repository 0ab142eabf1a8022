"""What a survey costs a user, in bytes and visits, by the form in which shares travel."""

from dataclasses import dataclass

from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.mechanisms.secret_shared import element_bits
from faircount.mechanisms.two_stage import TSS, reports_sets

SEED = 32  # bytes: a uniform row is sent as the key that expands to it
SEALED = 12 + 16  # nonce and tag of AES-GCM


@dataclass(frozen=True, slots=True)
class Cost:
    """Per user: payload bytes sent, and how often the device must be online."""

    form: str
    bytes_sent: int
    visits: int
    sees: str  # who sees what


def cost(mechanism: FrequencyMechanism) -> Cost:
    """The cheapest form that needs no trusted party: two servers for sums, helpers for TSS, a report for local ones."""
    row = -(-mechanism.response_bits // 8)
    if mechanism.collected is Collected.SUM:
        sees = "each server one uniform share, everybody the result"
        return Cost("two servers", row + SEED + SEALED, 1, sees)
    if mechanism.collected is Collected.SETS:
        return _two_stage(reports_sets(mechanism))
    if mechanism.collected is Collected.REPORTS:
        return Cost("one report", row, 1, "the server every user's own, randomized report")
    return Cost("trusted server", row, 1, "the server every answer in the clear")


def _two_stage(mechanism: TSS) -> Cost:
    """Indicator to S1, one sealed element per reported item and helper, sums of the items one helps with to S2."""
    n, reported = mechanism.n, mechanism.reported
    helpers = max(mechanism.least_helpers, round(n * reported / mechanism.N))
    element = -(-element_bits(mechanism.modulus) // 8)
    sent = -(-mechanism.response_bits // 8) + reported * helpers * (element + SEALED) + reported * (element + SEALED)
    sees = "S1 which items a user reports, helpers uniform shares, S2 how many report an item, everybody the result"
    return Cost("elected helpers", sent, 3, sees)


def paper_form_bytes(mechanism: FrequencyMechanism) -> int:
    """Bytes sent in the paper's form: (n-1) N sealed elements to the other users, N to the server."""
    row = -(-mechanism.response_bits // 8)
    return (mechanism.n - 1) * (row + SEALED) + row + SEALED
