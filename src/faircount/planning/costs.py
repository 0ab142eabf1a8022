"""What a survey costs a user, in bytes and visits, by the way in which the answer travels.

The protocol counts the bytes of its own encoded messages.
"""

from dataclasses import dataclass
from typing import Any

from faircount.core.errors import ParameterError
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.mechanisms.secret_shared import as_field_mechanism, as_one_question
from faircount.protocol import EXPLICIT, MASKED, SERVERS, TWO_STAGE
from faircount.protocol.survey.topology import Topology


@dataclass(frozen=True, slots=True)
class Cost:
    """What a survey costs one user.

    form: how the answer travels, as a phrase
    topology: name of the topology; None where there are no shares
    bytes_sent: bytes that a user sends
    visits: how often the device must be online
    sees: who sees what, as a phrase
    """

    form: str
    topology: str | None
    bytes_sent: int
    visits: int
    sees: str


def is_carried(mechanism: FrequencyMechanism) -> bool:
    """Whether a topology can run it: all but mechanisms whose proofs two servers cannot check."""
    if not mechanism.proven:
        return True
    try:
        SERVERS.adapt_mechanism(as_field_mechanism(mechanism))
    except ParameterError:
        return False
    return True


def cost(mechanism: FrequencyMechanism) -> Cost | None:
    """Cost of the cheapest way that needs no trusted party and does not change the noise.

    Sums go through two servers, or between users in a roster if users draw different noise. TSS has
    its helpers, and local mechanisms send a report. None means that no topology carries it.
    """
    if not is_carried(mechanism):
        return None
    # First, because a proof decides the way: only two servers can check it.
    if mechanism.proven:
        return _cost_in(SERVERS, mechanism)
    if mechanism.collected is Collected.SUM:
        if mechanism.identical_for_all_users:
            return _cost_in(SERVERS, mechanism)
        return _cost_between_users(mechanism)
    if mechanism.collected is Collected.SETS:
        return _cost_in(TWO_STAGE, mechanism)
    # Rounded up to whole bytes.
    report = -(-mechanism.response_bits // 8)
    if mechanism.collected is Collected.REPORTS:
        return Cost("one report", None, report, 1, "server: every user's own, randomized report")
    return Cost("trusted server", None, report, 1, "server: every answer in the clear")


def _cost_in(topology: Topology, mechanism: FrequencyMechanism) -> Cost:
    sent = topology.bytes_sent(as_field_mechanism(mechanism))
    return Cost(topology.form, str(topology), sent, len(topology.phases), topology.sees)


def _cost_between_users(mechanism: FrequencyMechanism) -> Cost:
    """Users in a roster exchange shares with all others or, if that is cheaper, with neighbours."""
    # All to all costs bytes with the square of the users; a graph of neighbours less, but it has to
    # be large enough for the colluding ones, so that small surveys are cheaper without.
    explicit = _cost_in(EXPLICIT, mechanism)
    try:
        masked = _cost_in(MASKED, mechanism)
    except ParameterError:  # no graph tolerates so many colluding users
        return explicit
    return min(explicit, masked, key=lambda cost: cost.bytes_sent)


@dataclass(frozen=True)
class InServers:
    """A mechanism with two servers, where that differs from the plan.

    The servers do not know which place a user has in a roster, so all users draw from one
    distribution.

    mechanism: ready to run there; None if it does not run there
    standard_error, half_width_95: error of an average item, as shares of the users
    bytes_sent: bytes that a user sends
    reason: why it does not run there; None if it does
    """

    mechanism: FrequencyMechanism | None = None
    standard_error: float | None = None
    half_width_95: float | None = None
    bytes_sent: int | None = None
    reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "standard_error": self.standard_error,
            "half_width_95": self.half_width_95,
            "reason": self.reason,
            "bytes_per_user": self.bytes_sent,
            "parameters": dict(self.mechanism.parameters) if self.mechanism else {},
        }


def in_servers(mechanism: FrequencyMechanism, staying: int) -> InServers | None:
    """What changes with two servers when so many users stay; None where nothing changes."""
    # Only sums travel through servers, and they differ there only if users draw different noise.
    if mechanism.collected is not Collected.SUM or mechanism.identical_for_all_users:
        return None
    try:
        adapted = as_one_question(SERVERS.adapt_mechanism(as_one_question(mechanism)))
        return InServers(adapted, *adapted.expected_errors(staying), SERVERS.bytes_sent(adapted))
    except ParameterError as refusal:
        return InServers(reason=str(refusal))


def paper_form_bytes(mechanism: FrequencyMechanism) -> int:
    """Bytes sent in the paper's protocol: (n-1) N elements to other users, N to the server."""
    return EXPLICIT.bytes_sent(as_field_mechanism(mechanism))
