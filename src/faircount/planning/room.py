"""What it costs a survey between devices that some people may be missing: one mechanism with that room, and without.

A table has no room, since rows do not vanish.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from faircount.core.errors import ParameterError
from faircount.core.validation import share_of_users
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.option import Option, option, percent
from faircount.planning.question import Question
from faircount.protocol import known_topologies
from faircount.protocol.survey.parameters import room_for_absent
from faircount.protocol.survey.topology import Attendance


@dataclass(frozen=True)
class Room:
    """The errors of an average item, as shares of those who stay.

    users: how many are invited
    missing: how many of them may be missing
    standard_error, half_width_95: with the room, if all these are missing; None where the budget is not met then
    standard_error_without, half_width_95_without: without the room, if nobody is missing
    liars: of each topology, how many lying clients cannot stop a survey with this room
    """

    users: int
    missing: int
    standard_error: float | None
    half_width_95: float | None
    standard_error_without: float | None
    half_width_95_without: float | None
    liars: dict[str, int]

    @property
    def words(self) -> str:
        """What the room costs, in a sentence."""
        who = f"between devices, room for {self.missing:,} of {self.users:,} users to be missing"
        with_room, without = (
            "the budget is not met" if error is None else f"the 95% error is {percent(error, '±')}"
            for error in (self.half_width_95, self.half_width_95_without)
        )
        return f"{who}: {with_room}; without room {without}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def usual_dropout(users: int) -> float:
    """The usual room of a survey, as the share of its users who may be missing."""
    return room_for_absent(users) / max(1, users)


def room_of(best: Option, asked: Question) -> Room | None:
    """What the room that was asked for, or else the usual one, costs this option; None where no shares travel."""
    share = asked.dropout or usual_dropout(asked.users)
    missing = share_of_users("dropout", share, asked.users)
    if best.topology is None or not missing:
        return None
    who = Attendance(asked.users, asked.users - missing, 0.0, insiders=asked.insiders)
    liars = {str(topology): topology.liars(who) for topology in known_topologies()}
    return Room(asked.users, missing, *_errors(best, asked, share), *_errors(best, asked, 0.0), liars)


def _errors(best: Option, asked: Question, dropout: float) -> tuple[float | None, float | None]:
    """Standard error and 95% half-width of the same mechanism, made for this share of the users to be missing."""
    if dropout != asked.dropout:
        try:
            question = replace(asked, dropout=dropout, target_error=None)
        except ParameterError:  # nobody would be left to hide among
            return None, None
        best = option(frequency_mechanisms()[best.name], question)
    return best.standard_error, best.half_width_95
