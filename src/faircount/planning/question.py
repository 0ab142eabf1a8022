"""What an analyst asks before a survey, as a value."""

from dataclasses import dataclass

from faircount.core.errors import ParameterError
from faircount.core.validation import fraction, integer, positive, real, share_of_users
from faircount.mechanisms.calibration import Requirements

WEAK = 10.0
"""Above this epsilon hardly anything is left of privacy."""


WEAK_DELTA = 0.001
"""Above this delta chance alone exposes people: with it, all answers may be published once in a thousand times."""


def cautions(epsilon: float, delta: float = 0.0) -> tuple[str, ...]:
    """What to say about an epsilon or a delta so large that it protects next to nobody; nothing about others."""
    said = []
    if epsilon > WEAK:
        words = "whoever reads the result may learn a user's answer with near certainty; 1 is a common choice"
        said.append(f"an epsilon of {epsilon:g} protects next to nothing: {words}")
    if delta > WEAK_DELTA:
        words = (
            "that is how likely the result may give a user's answer away, whatever epsilon is; 1e-6 is a common choice"
        )
        said.append(f"a delta of {delta:g} is large: {words}")
    return tuple(said)


@dataclass(frozen=True, slots=True)
class Question:
    """So many users, items and releases under one total budget, with what is known about the users.

    `floor` is public knowledge: so many OTHER holders every item has for sure. `dropout` and `colluding` are shares of
    the users; at least one participant is always counted as an insider, because everybody reads the result. `loss` is
    the probability that a user misses a visit. `users` are those expected to answer; `invited` is how many are asked,
    where not all of them are expected to. `liars`: clients may send what they like.
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
    liars: bool = False

    def __post_init__(self) -> None:
        integer("users", self.users, least=1)
        integer("items", self.items, least=2)
        positive("epsilon", self.epsilon)
        fraction("delta", self.delta)
        integer("floor", self.floor)
        integer("releases", self.releases, least=1)
        if self.loss is not None and not 0 <= real("loss", self.loss) < 1:
            raise ParameterError("loss is the probability that a user misses a visit: give a number from 0 to below 1")
        if self.target_error is not None:
            fraction("target error", self.target_error)
        if self.staying <= self.insiders:
            raise ParameterError(
                f"{self.users} user{'s are' if self.users > 1 else ' is'} too few: {self.lost} may drop out and "
                f"{self.insiders} may collude (at least one participant always counts as an insider), so nobody is "
                "left to hide among"
            )

    @property
    def users_in_words(self) -> str:
        """How many users answer, and of how many invited ones where these are more."""
        return f"{self.users:,} users" + (f" who answer, of {self.invited:,} invited" if self.invited else "")

    @property
    def insiders(self) -> int:
        """t: colluding participants to be safe against, at least one."""
        return max(1, share_of_users("colluding", self.colluding, self.users))

    @property
    def lost(self) -> int:
        """d: users who may vanish before the sum is opened."""
        return share_of_users("dropout", self.dropout, self.users)

    @property
    def staying(self) -> int:
        """n': users expected in the sum."""
        return self.users - self.lost

    @property
    def requirements(self) -> Requirements:
        """What a mechanism must be made for."""
        return Requirements(
            self.users, self.items, self.epsilon, self.delta, self.floor, self.releases, self.insiders, self.lost
        )
