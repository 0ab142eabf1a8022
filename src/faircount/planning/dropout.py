"""What it costs a survey over the network that some of the invited may not respond.

The same mechanism is compared with and without a dropout allowance. A histogram of a table needs no
allowance, because rows do not drop out.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from faircount.core.errors import ParameterError
from faircount.core.validation import share_of_users
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.option import Option, format_percent, make_option
from faircount.planning.request import TABLE, PlanRequest
from faircount.protocol import known_topologies
from faircount.protocol.survey.parameters import default_dropout_allowance
from faircount.protocol.survey.topology import Attendance


@dataclass(frozen=True)
class DropoutCost:
    """The errors of an average item, as shares of those who respond.

    users: how many are invited
    missing: how many of them may not respond
    standard_error, half_width_95: with the allowance, if all these do not respond; None where the
        budget is not met then
    standard_error_without, half_width_95_without: without an allowance, if everybody responds
    tolerated_malicious: for every topology, how many malicious clients cannot stop such a survey
    """

    users: int
    missing: int
    standard_error: float | None
    half_width_95: float | None
    standard_error_without: float | None
    half_width_95_without: float | None
    tolerated_malicious: dict[str, int]

    @property
    def words(self) -> str:
        """The cost as a sentence."""
        some = _describe_error(self.half_width_95)
        everybody = _describe_error(self.half_width_95_without)
        return (
            f"if {self.missing:,} of the {self.users:,} do not respond, {some}; if everybody must "
            f"respond, {everybody}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def _describe_error(half_width: float | None) -> str:
    if half_width is None:
        return "the budget is not met"
    return f"the 95% error is {format_percent(half_width, '±')}"


def usual_dropout(users: int) -> float:
    """The usual dropout allowance of a survey, as a share of its users."""
    return default_dropout_allowance(users) / max(1, users)


def dropout_cost(best: Option, request: PlanRequest) -> DropoutCost | None:
    """What the dropout allowance costs this option; None for a table and where no shares travel.

    This is the allowance that was asked for, or else the usual one.
    """
    if request.purpose == TABLE:
        return None
    share = request.dropout or usual_dropout(request.users)
    missing = share_of_users("dropout", share, request.users)
    if best.topology is None or not missing:
        return None
    who = Attendance(request.users, request.users - missing, 0.0, insiders=request.insiders)
    tolerated = {
        str(topology): topology.tolerated_malicious(who) for topology in known_topologies()
    }
    return DropoutCost(
        request.users,
        missing,
        *_errors_with(best, request, share),
        *_errors_with(best, request, 0.0),
        tolerated,
    )


def _errors_with(
    best: Option, request: PlanRequest, dropout: float
) -> tuple[float | None, float | None]:
    """Standard error and 95% half-width of the same mechanism with another allowance."""
    if dropout != request.dropout:
        try:
            changed = replace(request, dropout=dropout, target_error=None)
        except ParameterError:  # so few would remain that nobody could hide among them
            return None, None
        best = make_option(frequency_mechanisms()[best.name], changed)
    return best.standard_error, best.half_width_95
