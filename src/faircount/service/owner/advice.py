"""Which mechanism a survey should run, with room for those who will not answer: the planner's advice for one topology.

The planner compares mechanisms where each of them is cheapest; a survey has one topology. So the options are looked at
again as they run there, and the best of those is taken. People's devices may lie, unlike the rows of a table: in
`servers`, where reports can be proven to be one vote, only those that are come into question unless another mechanism
is asked for by its name.
"""

from dataclasses import dataclass, replace

from faircount.core.domain import Domain
from faircount.core.errors import ParameterError, RefusedError
from faircount.estimation.validity import SUPPOSED
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import shared_mechanisms
from faircount.mechanisms.secret_shared import makes_shares
from faircount.planning.option import Option, percent
from faircount.planning.plan import Plan, plan
from faircount.planning.room import usual_dropout
from faircount.protocol import SERVERS, Topology
from faircount.protocol.survey.parameters import smallest_set

AUTO = "auto"


@dataclass(frozen=True)
class Wishes:
    """What the owner asks for.

    `absent` is the share of the invited who may be missing without ending the survey: the usual room, unless given.
    """

    items: tuple[str, ...]
    users: int
    epsilon: float
    delta: float = 1e-6
    mechanism: str = AUTO
    topology: Topology = SERVERS
    absent: float | None = None
    floor: int = 0
    colluding: float = 0.0

    @property
    def liars(self) -> bool:
        """Whether it is planned for clients that may lie: where reports can be proven and nothing else is asked for."""
        return self.topology.takes_proofs and self.mechanism == AUTO

    def plan(self) -> Plan:
        """Every mechanism for those who are expected to stay."""
        absent = usual_dropout(self.users) if self.absent is None else self.absent
        return plan(
            self.users, len(self.items), self.epsilon, self.delta, floor=self.floor, dropout=absent,
            colluding=self.colluding, liars=self.liars,
        )  # fmt: skip


@dataclass(frozen=True)
class Advice:
    """The mechanism to run, ready for the survey, and what to expect of it."""

    wishes: Wishes
    mechanism: FrequencyMechanism
    standard_error: float
    half_width_95: float
    condition: str | None

    @property
    def needed(self) -> int:
        """How many must answer: the minimum of the survey."""
        return smallest_set(self.mechanism)

    @property
    def tells_something(self) -> bool:
        """Whether the 95% error stays below the frequency of an average item."""
        return self.half_width_95 < 1 / len(self.wishes.items)

    @property
    def proven(self) -> bool:
        """Whether every report will be proven to be one vote."""
        return self.mechanism.proven

    @property
    def supposed(self) -> str:
        """What is supposed of the clients, in words."""
        return SUPPOSED[self.proven]

    @property
    def words(self) -> str:
        """What to expect, in a sentence."""
        wished = self.wishes
        needs = "whatever the answers are" if self.condition is None else f"provided that {self.condition}"
        return (
            f"{self.mechanism.name} in {wished.topology}, for {wished.users:,} invited people of whom "
            f"{self.needed:,} must answer: 95% error {percent(self.half_width_95, '±')} of those who answer, "
            f"private {needs}; "
            + ("every report is proven to be one vote" if self.proven else "without proofs that a report is one vote")
        )


def advise(wishes: Wishes) -> Advice:
    """The mechanism with the smallest error in this topology, or the one asked for; refused if there is none."""
    found = [_as_advice(wishes, each) for each in _candidates(wishes)]
    sound = [each for each in found if isinstance(each, Advice)]
    if not sound:
        reasons = "; ".join(dict.fromkeys(each for each in found if isinstance(each, str)))
        words = f"no mechanism keeps this promise in {wishes.topology}: {reasons}{_instead(wishes)}"
        raise RefusedError(words).coded("no_mechanism")
    return min(sound, key=lambda each: each.standard_error)


def _instead(wishes: Wishes) -> str:
    return ". Without proofs that a report is one vote: --mechanism laplace" if wishes.liars else ""


def _candidates(wishes: Wishes) -> tuple[Option, ...]:
    options = wishes.plan().options
    if wishes.mechanism == AUTO:
        fit = {name for name, kind in shared_mechanisms().items() if kind.proven or not wishes.liars}
        return tuple(each for each in options if each.name in fit)
    chosen = tuple(each for each in options if each.name == wishes.mechanism)
    if not chosen:
        names = ", ".join(each.name for each in options)
        raise ParameterError(f"mechanism must be {AUTO} or one of {names}, not {wishes.mechanism!r:.40}")
    return chosen


def _as_advice(wishes: Wishes, option: Option) -> Advice | str:
    """An option as it runs in the topology, or why it does not."""
    if option.mechanism is None:
        return f"{option.name}: {option.reason}"
    try:
        named = replace(makes_shares(option.mechanism), items=Domain(wishes.items))
        runs = wishes.topology.runs(named.for_survey())
    except (ParameterError, RefusedError) as refusal:
        return f"{option.name}: {refusal}"
    error, half = runs.expected_errors(smallest_set(runs))
    return Advice(wishes, named, error, half, runs.condition(runs.participants))
