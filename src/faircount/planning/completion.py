"""How likely a survey completes if every visit is missed with the same probability.

Each topology says so of itself (`Topology.completion_chance`);
`docs/generate/completion_runs.py` plays them.
"""

from dataclasses import dataclass

from faircount.core.errors import ParameterError
from faircount.core.validation import check_integer, check_real, share_of_users
from faircount.planning.request import PlanRequest
from faircount.protocol import SERVERS, Topology, known_topologies
from faircount.protocol.survey.topology import ATTEMPTS, TARGET_COMPLETION, Attendance

# The probability of a missed visit that is planned for by default.
LOSS = 0.05


def completion(
    topology: Topology,
    users: int,
    minimum: int,
    loss: float,
    attempts: int = ATTEMPTS,
    insiders: int = 1,
) -> float:
    """Probability that a survey completes if visits are missed independently.

    For `masked` this is a lower bound: one attempt, with the graph for these users and insiders.
    """
    count = check_integer("users", users, least=2)
    least = check_integer("minimum", minimum, least=2, most=count)
    if not 0 <= check_real("loss", loss) < 1:
        raise ParameterError("loss, the probability that a user misses a visit, lies in [0, 1)")
    tries = check_integer("attempts", attempts, least=1)
    colluding = check_integer("insiders", insiders)
    chance = topology.completion_chance(Attendance(count, least, loss, tries, colluding))
    if chance is None:
        raise ParameterError(f"nothing is known about how often {topology} completes")
    return chance


@dataclass(frozen=True, slots=True)
class Completion:
    """How likely a survey completes in a topology, and what to know about it."""

    topology: Topology
    chance: float | None  # None where it is not known
    words: str
    tolerated_malicious: int  # malicious clients that cannot stop it

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {
            "topology": str(self.topology),
            "visits": len(self.topology.phases),
            "chance": self.chance,
            "kind": self.kind,
            "words": self.words,
            "tolerated_malicious": self.tolerated_malicious,
        }

    @property
    def kind(self) -> str:
        """What the chance is: exact, a lower bound, or not known."""
        return self.topology.completion_kind


def completions(users: int, minimum: int, loss: float, insiders: int = 1) -> tuple[Completion, ...]:
    """How likely a survey of so many users, of whom `minimum` must stay, completes."""
    who = Attendance(users, minimum, loss, insiders=insiders)
    return tuple(_ending(topology, who) for topology in known_topologies())


def _ending(topology: Topology, who: Attendance) -> Completion:
    chance = topology.completion_chance(who)
    advice = topology.completion_advice(who, chance or 0.0)
    return Completion(topology, chance, advice, topology.tolerated_malicious(who))


def dropout_needed(request: PlanRequest, loss: float, topology: Topology = SERVERS) -> float | None:
    """The smallest dropout, in whole percent, with which surveys complete often enough.

    None if so few users would have to stay that nobody could hide among them.
    """
    # The chance grows with the dropout, so the first that suffices is the smallest.
    for hundredths in range(100):
        min_users = request.users - share_of_users("dropout", hundredths / 100, request.users)
        # Beyond this point the request itself would be refused.
        if min_users <= max(1, request.insiders):
            return None
        if (
            completion(topology, request.users, min_users, loss, insiders=request.insiders)
            >= TARGET_COMPLETION
        ):
            return hundredths / 100
    return None
