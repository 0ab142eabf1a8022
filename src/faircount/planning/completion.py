"""How likely a survey comes to its end when each visit of a user is lost with the same probability, independently.

Each topology says so of itself (`Topology.completion`); `docs/completion_runs.py` plays them.
"""

from dataclasses import dataclass

from faircount.core.errors import ParameterError
from faircount.core.validation import integer, real, share_of_users
from faircount.planning.question import Question
from faircount.protocol import SERVERS, Topology, known_topologies
from faircount.protocol.survey.topology import ATTEMPTS, TARGET_COMPLETION, Attendance

LOSS = 0.05
"""The probability of a missed visit that we plan for, unless told."""


def completion(
    topology: Topology, users: int, minimum: int, loss: float, attempts: int = ATTEMPTS, insiders: int = 1
) -> float:
    """Probability that a survey of invited users publishes, each visit being lost with probability `loss`.

    For `masked` a lower bound that counts on one attempt, with the graph planned for so many users and insiders.
    """
    count = integer("users", users, least=2)
    least = integer("minimum", minimum, least=2, most=count)
    if not 0 <= real("loss", loss) < 1:
        raise ParameterError("loss, the probability that a user misses a visit, lies in [0, 1)")
    if topology.completion.chance is None:
        raise ParameterError(f"nothing is known about how often {topology} comes to an end")
    tries, colluding = integer("attempts", attempts, least=1), integer("insiders", insiders)
    return topology.completion.chance(Attendance(count, least, loss, tries, colluding))


@dataclass(frozen=True, slots=True)
class Ending:
    """How likely a topology brings a survey to its end, and what there is to know about it."""

    topology: Topology
    chance: float | None  # None where it is not known
    words: str
    liars: int  # lying clients who cannot stop it

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        how = {"visits": len(self.topology.phases), "chance": self.chance, "kind": self.kind, "words": self.words}
        how["liars"] = self.liars
        return {"topology": str(self.topology), **how}

    @property
    def kind(self) -> str:
        """What the chance is: exact, a lower bound, or not known."""
        return self.topology.completion.kind


def endings(users: int, minimum: int, loss: float, insiders: int = 1) -> tuple[Ending, ...]:
    """Which ways for the shares to travel bring a survey of so many users, of whom `minimum` must stay, to its end."""
    who = Attendance(users, minimum, loss, insiders=insiders)
    return tuple(_ending(topology, who) for topology in known_topologies())


def _ending(topology: Topology, who: Attendance) -> Ending:
    known = topology.completion
    chance = None if known.chance is None else known.chance(who)
    return Ending(topology, chance, known.words(who, chance or 0.0), topology.liars(who))


def dropout_needed(q: Question, loss: float, topology: Topology = SERVERS) -> float | None:
    """The smallest dropout, in whole percent, with which surveys end often enough; None where nobody could hide."""
    for hundredths in range(100):
        fewest = q.users - share_of_users("dropout", hundredths / 100, q.users)
        if fewest <= max(1, q.insiders):
            return None
        if completion(topology, q.users, fewest, loss, insiders=q.insiders) >= TARGET_COMPLETION:
            return hundredths / 100
    return None
