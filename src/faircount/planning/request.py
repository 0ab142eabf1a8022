"""What an analyst asks of the planner before a survey, or before a table is analysed."""

from dataclasses import dataclass

from faircount.accounting.guarantee import attacker_certainty, format_delta
from faircount.core.errors import ParameterError
from faircount.core.validation import (
    check_fraction,
    check_integer,
    check_positive,
    check_real,
    share_of_users,
)
from faircount.mechanisms.calibration import Requirements
from faircount.planning.promise import is_weak_delta, is_weak_epsilon

SURVEY = "survey"
TABLE = "table"
"""What a plan is for: a survey over the network, or the histogram of a table that is there."""


def privacy_warnings(epsilon: float, delta: float = 0.0, delta_digits: int = 3) -> tuple[str, ...]:
    """Warnings about an epsilon or a delta so large that it protects next to nobody.

    Delta is printed as the guarantee beside it prints it: rounded up to so many digits.
    """
    warnings = []
    if is_weak_epsilon(epsilon):
        warnings.append(
            f"an epsilon of {epsilon:g} protects next to nothing: somebody who thinks that two "
            "answers of a user are equally likely may become "
            f"{attacker_certainty(epsilon):g}% sure of one by reading the result; 1 is a common "
            "choice"
        )
    if is_weak_delta(delta):
        warnings.append(
            f"a delta of {format_delta(delta, delta_digits)} is large: it is the probability that "
            "the result may reveal a user's answer, whatever epsilon is; 1e-6 is a common choice"
        )
    return tuple(warnings)


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A survey under one total budget, with what is known about its users.

    users: number of people who are invited to a survey, or whose answers are in a table
    items: number of items to choose from
    epsilon, delta: the budget of all releases together
    floor: minimum number of OTHER people known to choose each item; public knowledge
    releases: number of results about the same users
    dropout, colluding: shares of the users; at least one participant always counts as an insider,
        because everybody reads the result
    target_error: wanted 95% half-width
    loss: probability that a user misses a visit
    invited: number of people who are asked, where a table will hold fewer; None for a survey
    malicious_clients: whether clients may send anything
    purpose: "survey" or "table"; None where mechanisms are only compared
    minimum: minimum number of responses that the owner gives to a survey
    expected: number of responses to a survey that the owner expects
    """

    users: int
    items: int
    epsilon: float
    delta: float
    floor: int = 0
    releases: int = 1
    dropout: float = 0.0
    colluding: float = 0.0
    target_error: float | None = None
    loss: float | None = None
    invited: int | None = None
    malicious_clients: bool = False
    purpose: str | None = None
    minimum: int | None = None
    expected: int | None = None

    def __post_init__(self) -> None:
        check_integer("users", self.users, least=1)
        check_integer("items", self.items, least=2)
        check_positive("epsilon", self.epsilon)
        check_fraction("delta", self.delta)
        check_integer("floor", self.floor)
        check_integer("releases", self.releases, least=1)
        if self.loss is not None and not 0 <= check_real("loss", self.loss) < 1:
            raise ParameterError(
                "loss is the probability that a user misses a visit: give a number from 0 to "
                "below 1"
            )
        # Refused here and not when the mechanisms are compared, so that the message names the
        # option.
        if self.target_error is not None:
            check_fraction("target error", self.target_error)
        # Noise hides a user among the others who stay and do not collude. There must be one.
        if self.staying <= self.insiders:
            users = "1 user is too few" if self.users == 1 else f"{self.users} users are too few"
            raise ParameterError(
                f"{users}: {self.lost} may drop out and {self.insiders} may collude (at least one "
                "participant always counts as an insider), so too few honest users would remain to "
                "protect an answer"
            )

    @property
    def users_in_words(self) -> str:
        """How many users answer and, where not all are expected to, how many are invited."""
        if self.purpose == SURVEY:
            return f"{self.users:,} people invited"
        if self.invited:
            return f"{self.users:,} users who answer, of {self.invited:,} invited"
        return f"{self.users:,} users"

    @property
    def insiders(self) -> int:
        """t: colluding participants that the survey must be safe against, at least one."""
        return max(1, share_of_users("colluding", self.colluding, self.users))

    @property
    def lost(self) -> int:
        """d: users who may drop out before the sum is revealed."""
        return share_of_users("dropout", self.dropout, self.users)

    @property
    def staying(self) -> int:
        """n': users expected in the sum."""
        return self.users - self.lost

    @property
    def requirements(self) -> Requirements:
        """What a mechanism must be calibrated for."""
        return Requirements(
            self.users,
            self.items,
            self.epsilon,
            self.delta,
            self.floor,
            self.releases,
            self.insiders,
            self.lost,
        )
