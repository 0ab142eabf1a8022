"""One mechanism in a plan: whether it meets the budget, its errors and its costs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from faircount.accounting.conditions import Condition, in_english
from faircount.core.errors import FaircountError, RefusedError
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.planning.accuracy import Kind, users_needed
from faircount.planning.costs import Cost, InServers, cost, in_servers, is_carried, paper_form_bytes
from faircount.planning.request import PlanRequest

# Attempts at meeting a budget that composed accounting overshoots by a rounding error.
TRIES = 4

# Shares below this are only said to be below it.
LEAST = 1e-6


def format_percent(share: float, sign: str = "") -> str:
    """A share in percent with two significant digits and no exponent; `sign` goes first."""
    # More digits of so small a share would be rounding errors.
    if 0 < share < LEAST:
        return f"below {sign}{LEAST:.4%}"
    return f"{sign}{share:.{_decimals(share)}%}"


def percents(shares: Sequence[float], sign: str = "") -> list[str]:
    """Shares of one sentence in percent, all with the decimal places that the smallest needs."""
    smallest = min(shares)
    if smallest < LEAST:
        return [format_percent(share, sign) for share in shares]
    return [f"{sign}{share:.{_decimals(smallest)}%}" for share in shares]


def _decimals(share: float) -> int:
    """Decimal places that show two significant digits of a share in percent."""
    return max(0, 1 - math.floor(math.log10(100 * share))) if share > 0 else 0


@dataclass(frozen=True)
class Option:
    """One mechanism in a plan. Errors are shares of the users, averaged over the items.

    Costs are computed on first use, because most readers of a plan do not need them.

    name: name of the mechanism
    sound: whether it meets the budget
    reason: why it does, or why not
    parameters: parameters of each release
    epsilon, delta: the exact privacy of all releases together
    standard_error, half_width_95: error of an average item
    users_needed: users that the target error needs, in a survey people to invite; None without a
        target, or if no number suffices
    condition: condition of the guarantee; None if it holds for any data
    mechanism: the mechanism itself, ready to run
    staying: users who are expected in the sum
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
    condition: Condition | None = None
    mechanism: FrequencyMechanism | None = None
    staying: int = 0

    def __hash__(self) -> int:
        return hash((self.name, self.epsilon, self.delta, self.standard_error))

    @cached_property
    def is_carried(self) -> bool:
        """Whether a topology can run the mechanism."""
        return self.mechanism is not None and is_carried(self.mechanism)

    @cached_property
    def cost(self) -> Cost | None:
        """Bytes, visits and who sees what; None where no topology carries it."""
        return cost(self.mechanism) if self.mechanism is not None else None

    @cached_property
    def paper_form_bytes(self) -> int | None:
        """Bytes that a user sends in the paper's protocol; None where it has no such form."""
        # The paper has no proofs, so only unproven sums have a form there.
        if self.mechanism is None or self.proven or self.mechanism.collected is not Collected.SUM:
            return None
        return paper_form_bytes(self.mechanism)

    @cached_property
    def servers(self) -> InServers | None:
        """Errors and bytes with two servers, if they differ."""
        return in_servers(self.mechanism, self.staying) if self.mechanism is not None else None

    @property
    def topology(self) -> str | None:
        """How the shares travel; None where there are no shares."""
        return self.cost.topology if self.cost else None

    @property
    def needs_trust(self) -> bool:
        """Whether a server sees every answer in the clear."""
        return self.mechanism is not None and self.mechanism.collected is Collected.ANSWERS

    @property
    def proven(self) -> bool:
        """Whether every report is proven to be one vote, so that nobody has more than that."""
        return self.mechanism is not None and self.mechanism.proven

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        keys = (
            "name",
            "sound",
            "reason",
            "epsilon",
            "delta",
            "standard_error",
            "half_width_95",
            "users_needed",
        )
        cost = self.cost
        return {
            **{key: getattr(self, key) for key in keys},
            "parameters": dict(self.parameters),
            "condition": in_english(self.condition),
            "bytes_per_user": cost.bytes_sent if cost else None,
            "bytes_per_user_paper_form": self.paper_form_bytes,
            "visits": cost.visits if cost else None,
            "topology": self.topology,
            "servers": self.servers.to_dict() if self.servers else None,
            "form": cost.form if cost else None,
            "sees": cost.sees if cost else None,
            "proven": self.proven,
        }


def make_option(kind: Kind, request: PlanRequest) -> Option:
    """The mechanism calibrated for a request, or the reason why it cannot meet the budget."""
    try:
        mechanism, spent = _within_budget(kind, request)
    except FaircountError as refusal:
        # A refusal is a result, too: `plan --all` shows the reason.
        return Option(kind.name, False, str(refusal), {})
    # Errors are those of the users who stay; the noise is enough for them alone.
    error, half = mechanism.expected_errors(request.staying)
    needed = None
    if request.target_error is not None:
        needed = users_needed(kind, request, request.target_error)
    # The plan's adversary is always a participant, because everybody reads the result.
    condition = mechanism.condition(mechanism.participants)
    return Option(
        kind.name,
        True,
        _reason(mechanism, condition),
        mechanism.parameters,
        request.epsilon,
        spent,
        error,
        half,
        needed,
        condition,
        mechanism,
        request.staying,
    )


def _within_budget(kind: Kind, request: PlanRequest) -> tuple[FrequencyMechanism, float]:
    """The mechanism and the delta it spends, which is at most the budget."""
    # Composition rounds up, so the first attempt may overshoot. It is then made for a little less.
    aim = request
    for _ in range(TRIES):
        made = kind.calibrate(aim.requirements)
        spent = made.total_delta()
        if spent <= request.delta:
            return made.mechanism, spent
        # A percent less than proportional, so that a few attempts suffice.
        aim = replace(aim, delta=aim.delta * 0.99 * min(1.0, request.delta / spent))
    raise RefusedError(
        f"it spends delta = {spent:.3g}, which cannot be brought below the budget: allow a larger "
        "delta"
    )


def _reason(mechanism: FrequencyMechanism, condition: Condition | None) -> str:
    trust = ""
    if mechanism.collected is Collected.ANSWERS:
        trust = " if a server may see every answer"
    if condition is None:
        return f"meets the budget{trust}, whatever the answers are"
    return f"meets the budget{trust}, provided that {condition}"
