"""What a survey costs a user, in bytes and visits, by the form in which its answer travels.

Where the protocol carries it, the protocol counts: these are the bytes of the encoded messages.
"""

from dataclasses import dataclass
from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.mechanisms.secret_shared import makes_shares
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.survey.topology import Topology


@dataclass(frozen=True, slots=True)
class Cost:
    """Per user: bytes sent, and how often the device must be online. `topology` is None where there are no shares."""

    form: str
    topology: str | None
    bytes_sent: int
    visits: int
    sees: str  # who sees what


def cost(mechanism: FrequencyMechanism) -> Cost | None:
    """The cheapest form that needs no trusted party and changes nothing of the noise; None where nothing carries it.

    That is two servers for sums, but users with places in a roster where they do not all draw alike; helpers for TSS, a
    report for local mechanisms.
    """
    if mechanism.proven:
        return _proven(mechanism)
    if mechanism.collected is Collected.SUM:
        return _through(SERVERS, mechanism) if mechanism.every_user_alike else _with_places(mechanism)
    if mechanism.collected is Collected.SETS:
        return _through(TWO_STAGE, mechanism)
    report = -(-mechanism.response_bits // 8)
    if mechanism.collected is Collected.REPORTS:
        return Cost("one report", None, report, 1, "the server every user's own, randomized report")
    return Cost("trusted server", None, report, 1, "the server every answer in the clear")


def _through(topology: Topology, mechanism: FrequencyMechanism) -> Cost:
    sent = topology.bytes_sent(makes_shares(mechanism))
    return Cost(topology.form, str(topology), sent, len(topology.phases), topology.sees)


def _proven(mechanism: FrequencyMechanism) -> Cost | None:
    """Two servers that check the proofs; None where they cannot."""
    try:
        SERVERS.runs(makes_shares(mechanism))
    except ParameterError:
        return None
    return _through(SERVERS, mechanism)


def _with_places(mechanism: FrequencyMechanism) -> Cost:
    """Between users who have places in a roster: each with all others, or with some neighbours where that is less."""
    whole = _through(EXPLICIT, mechanism)
    try:
        masked = _through(MASKED, mechanism)
    except ParameterError:  # no graph bears so many colluding users
        return whole
    return min(whole, masked, key=lambda each: each.bytes_sent)


@dataclass(frozen=True)
class InServers:
    """A mechanism as two servers run it, where that is not as planned: they know no places, so all users draw alike.

    mechanism: ready to run there; None if it does not run there
    standard_error, half_width_95: error of an average item, as fractions of the users
    bytes_sent: of a user
    reason: why it does not run there; None if it does
    """

    mechanism: FrequencyMechanism | None = None
    standard_error: float | None = None
    half_width_95: float | None = None
    bytes_sent: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        keys = ("standard_error", "half_width_95", "reason")
        parameters = self.mechanism.parameters if self.mechanism else {}
        return {
            **{key: getattr(self, key) for key in keys},
            "bytes_per_user": self.bytes_sent,
            "parameters": dict(parameters),
        }


def in_servers(mechanism: FrequencyMechanism, staying: int) -> InServers | None:
    """What changes in servers when so many users stay; None where nothing does, or where it never goes there."""
    if mechanism.collected is not Collected.SUM or mechanism.every_user_alike:
        return None
    try:
        alike = SERVERS.runs(makes_shares(mechanism))
        return InServers(alike, *alike.expected_errors(staying), SERVERS.bytes_sent(alike))
    except ParameterError as refusal:
        return InServers(reason=str(refusal))


def paper_form_bytes(mechanism: FrequencyMechanism) -> int:
    """Bytes sent in the paper's form: (n-1) N sealed elements to the other users, N to the server."""
    return EXPLICIT.bytes_sent(makes_shares(mechanism))
