"""One mechanism's answer to a question: whether it meets the budget, its errors, and what it costs in which form."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from faircount.core.errors import FaircountError, RefusedError
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.planning.accuracy import Kind, users_needed
from faircount.planning.costs import Cost, InServers, cost, in_servers, paper_form_bytes
from faircount.planning.question import Question

TRIES = 4
"""Attempts at meeting a budget that composed accounting overshoots by a rounding error."""


LEAST = 1e-6
"""Shares below this are only said to be below it."""


def percent(share: float, sign: str = "") -> str:
    """A share in percent with two significant digits, never in exponents; `sign` goes before the number."""
    if 0 < share < LEAST:
        return f"below {sign}{LEAST:.4%}"
    digits = 0 if share <= 0 else max(0, 1 - math.floor(math.log10(100 * share)))
    return f"{sign}{share:.{digits}%}"


@dataclass(frozen=True)
class Option:
    """One mechanism's answer to the question. Errors are fractions of the users, averaged over the items.

    name: of the mechanism
    sound: whether it meets the budget
    reason: why it does, or why not
    parameters: what it is run with, each release
    epsilon, delta: the exact privacy of all releases together
    standard_error, half_width_95: error of an average item
    users_needed: users that the wanted error takes; None where none was asked for, or no number is enough
    condition: what must hold for the guarantee not to be empty; None where it holds for any data
    cost: bytes, visits and who sees what
    paper_form_bytes: bytes of a user in the paper's own form
    servers: errors and bytes in two servers, where they are not as above; None where they are
    mechanism: the mechanism itself, ready to run
    """

    name: str
    sound: bool
    reason: str
    parameters: Mapping[str, float]
    epsilon: float | None = None
    delta: float | None = None
    standard_error: float | None = None
    half_width_95: float | None = None
    users_needed: int | None = None
    condition: str | None = None
    cost: Cost | None = None
    paper_form_bytes: int | None = None
    mechanism: FrequencyMechanism | None = None
    servers: InServers | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.epsilon, self.delta, self.standard_error))

    @property
    def topology(self) -> str | None:
        """How the shares travel with these errors and bytes; None where there are no shares."""
        return self.cost.topology if self.cost else None

    @property
    def needs_trust(self) -> bool:
        """Whether a server sees every answer in the clear."""
        return self.mechanism is not None and self.mechanism.collected is Collected.ANSWERS

    @property
    def proven(self) -> bool:
        """Whether every report is proven to be one vote, so that users who lie have no more than theirs."""
        return self.mechanism is not None and self.mechanism.proven

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        keys = ("name", "sound", "reason", "epsilon", "delta", "standard_error", "half_width_95", "users_needed")
        spent = self.cost
        return {
            **{key: getattr(self, key) for key in keys},
            "parameters": dict(self.parameters),
            "condition": self.condition,
            "bytes_per_user": spent.bytes_sent if spent else None,
            "bytes_per_user_paper_form": self.paper_form_bytes,
            "rounds": spent.visits if spent else None,
            "topology": self.topology,
            "servers": self.servers.to_dict() if self.servers else None,
            "form": spent.form if spent else None,
            "sees": spent.sees if spent else None,
            "proven": self.proven,
        }


def option(kind: Kind, q: Question) -> Option:
    """What a mechanism makes of the question, or why it cannot meet it."""
    try:
        mechanism, spent = _within_budget(kind, q)
    except FaircountError as refusal:
        return Option(kind.name, False, str(refusal), {})
    target = q.target_error
    error, half = mechanism.expected_errors(q.staying)
    condition = mechanism.condition(mechanism.participants)
    return Option(
        kind.name,
        True,
        _reason(mechanism, condition),
        mechanism.parameters,
        q.epsilon,
        spent,
        error,
        half,
        users_needed(kind, q, target) if target is not None else None,
        condition,
        cost(mechanism),
        paper_form_bytes(mechanism) if mechanism.collected is Collected.SUM and not mechanism.proven else None,
        mechanism,
        in_servers(mechanism, q.staying),
    )


def _within_budget(kind: Kind, q: Question) -> tuple[FrequencyMechanism, float]:
    """The mechanism and the delta it spends, at most the budget; where rounding overshoots, made for a little less."""
    aim = q
    for _ in range(TRIES):
        made = kind.calibrated(aim.requirements)
        spent = made.total_delta()
        if spent <= q.delta:
            return made.mechanism, spent
        aim = replace(aim, delta=aim.delta * 0.99 * min(1.0, q.delta / spent))
    raise RefusedError(f"what it spends, delta = {spent:.3g}, cannot be brought below the budget: allow a larger delta")


def _reason(mechanism: FrequencyMechanism, condition: str | None) -> str:
    trusted = mechanism.collected is Collected.ANSWERS
    who = " for whoever has a server that may see every answer" if trusted else ""
    return f"meets the budget{who}, " + (
        "whatever the answers are" if condition is None else f"provided that {condition}"
    )
