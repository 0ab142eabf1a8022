"""Compare every mechanism at the same exact privacy, and recommend one or none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from faircount.core import plain
from faircount.core.arguments import explain_arguments
from faircount.core.domain import Domain
from faircount.core.errors import ParameterError
from faircount.core.validation import check_integer, expected_users
from faircount.estimation.validity import ASSUMPTIONS
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.advice import (
    best_of,
    compare_with_next,
    describe_alternative,
    describe_servers,
    error_of,
    rank,
    suits,
)
from faircount.planning.completion import LOSS, Ending, dropout_needed, endings
from faircount.planning.dropout import DropoutCost, dropout_cost
from faircount.planning.option import Option, make_option, percent
from faircount.planning.question import Question, cautions
from faircount.protocol import SERVERS
from faircount.protocol.survey.topology import TARGET_COMPLETION

# Columns of a plan as a data frame.
FRAME = (
    "sound",
    "half_width_95",
    "standard_error",
    "users_needed",
    "topology",
    "bytes_per_user",
    "condition",
    "reason",
)

# Entries of a plan's JSON that are tables of their own, and have no place in a frame's `attrs`.
TABLES = ("mechanisms", "topologies")


@dataclass(frozen=True)
class Plan:
    """All options, best first, and what to do.

    question: what was asked
    options: every mechanism: first those that may be recommended, by error, then the other sound
        ones, then those that cannot be used
    """

    question: Question
    options: tuple[Option, ...]

    @property
    def recommended(self) -> Option | None:
        """The most accurate sound option; None where none is sound.

        Options with proven reports are always considered, and no others if clients may be
        malicious. A mechanism whose server sees every answer is never recommended.
        """
        return best_of(self.options, self.question.malicious_clients)

    @property
    def verified(self) -> Option | None:
        """The most accurate sound option whose reports are proven to be one vote."""
        return best_of(self.options, malicious_clients=True)

    @property
    def assumption(self) -> str:
        """What the recommended option assumes of the clients, as a sentence."""
        best = self.recommended
        proven = self.question.malicious_clients if best is None else best.proven
        return ASSUMPTIONS[proven]

    @property
    def alternative_advice(self) -> str:
        """What to run, and at which cost, if clients are not as assumed."""
        return describe_alternative(self.options, self.question.malicious_clients)

    @property
    def worthwhile(self) -> bool:
        """Whether the survey completes, with a 95% half-width below the average frequency 1/N."""
        return self.recommended is not None and self._completes and self._is_informative

    @property
    def _is_informative(self) -> bool:
        best = self.recommended
        return best is not None and (best.half_width_95 or 0.0) < 1 / self.question.items

    @property
    def _completes(self) -> bool:
        """Whether enough surveys complete in the recommended topology, where that was asked."""
        # An unknown chance is no reason against a survey; the text says that it is unknown.
        chance = self._ending.chance if self._ending else None
        return chance is None or chance >= TARGET_COMPLETION

    @property
    def _ending(self) -> Ending | None:
        """How likely the recommended topology completes."""
        best = self.recommended
        # Local mechanisms send one report without shares: they need one visit, as servers do.
        wanted = str(SERVERS)
        if best is not None and best.topology is not None:
            wanted = best.topology
        for ending in self.endings:
            if str(ending.topology) == wanted:
                return ending
        return None

    @property
    def verdict(self) -> str:
        """One sentence: what to run and why, or that nothing should be run."""
        best = self.recommended
        if best is None:
            reports = " with proven reports" if self.question.malicious_clients else ""
            return (
                f"do not run this: no mechanism{reports} meets the budget; allow a larger epsilon "
                "or delta (an epsilon of 1 is a common choice), or ask more users"
            )
        # An interval wider than an average frequency cannot tell a popular item from an unpopular
        # one.
        if not self._is_informative:
            error = percent(best.half_width_95 or 0.0, "±")
            average = percent(1 / self.question.items)
            return (
                f"do not run this: even {best.name}, the best, has a 95% error of {error}, more "
                f"than an average item's {average}; ask more users, offer fewer items or allow a "
                "larger epsilon"
            )
        if not self._completes:
            return self._describe_incomplete()
        condition = "whatever the answers are"
        if best.condition is not None:
            condition = f"provided that {best.condition}"
        # A tiny error is only said to be "below" a bound, which needs no "of".
        error = percent(error_of(best))
        of = "" if error.startswith("below") else "of "
        return (
            f"run {best.name}: its standard error {of}{error} is "
            f"{compare_with_next(self.options, self.question.malicious_clients)}, "
            f"{condition}{describe_servers(best)}{self._describe_target()}"
        )

    def _describe_target(self) -> str:
        """That the target error is not met, and how many users it takes; else nothing."""
        best = self.recommended
        target = self.question.target_error
        if best is None or target is None or (best.half_width_95 or 0.0) <= target:
            return ""
        unmet = f"; the target error of {percent(target, '±')} is not met"
        suitable = [
            option
            for option in self.options
            if option.users_needed and suits(option, self.question.malicious_clients)
        ]
        if not suitable:
            return f"{unmet}, and no number of users was found that meets it"
        fewest = min(suitable, key=lambda option: option.users_needed or 0)
        return f"{unmet}: it takes {fewest.users_needed:,} users with {fewest.name}"

    def _describe_incomplete(self) -> str:
        """What to do about a survey that too few users stay for."""
        topology = self._ending.topology if self._ending else SERVERS
        dropout = dropout_needed(self.question, self.loss or 0.0, topology)
        advice = "ask more users"
        if dropout is not None:
            advice = f"plan with --dropout {dropout:g} (dropout={dropout:g} in Python)"
        # The next best option may travel in a topology that does complete.
        completing = set()
        for ending in self.endings:
            if (ending.chance or 0.0) >= TARGET_COMPLETION:
                completing.add(str(ending.topology))
        for other in self.options:
            if suits(other, self.question.malicious_clients) and other.topology in completing:
                advice += f", or run {other.name} in {other.topology}"
                break
        visits = len(topology.phases)
        return (
            f"do not run this: if each visit is missed with probability {self.loss:.3g}, fewer "
            f"than {TARGET_COMPLETION:.0%} of the surveys complete in {topology}, with {visits} "
            f"visit{'s' * (visits > 1)}, because {self.question.staying:,} of "
            f"{self.question.users:,} users must stay; {advice}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the question itself."""
        return cautions(self.question.epsilon, self.question.delta)

    @property
    def loss(self) -> float | None:
        """Probability of a missed visit; None if users are not expected to miss any."""
        # Whoever plans for dropouts expects missed visits, too.
        if self.question.loss is None and self.question.lost:
            return LOSS
        return self.question.loss

    @cached_property
    def endings(self) -> tuple[Ending, ...]:
        """How likely each topology completes; empty where no user is expected to miss a visit."""
        asked = self.question
        if self.loss is None or asked.staying < 2:
            return ()
        return endings(asked.users, asked.staying, self.loss, asked.insiders)

    @cached_property
    def dropout_cost(self) -> DropoutCost | None:
        """What a dropout allowance costs the recommended option; None where no shares travel."""
        if self.recommended is None:
            return None
        return dropout_cost(self.recommended, self.question)

    @property
    def tolerated_malicious(self) -> str:
        """How many malicious clients each topology tolerates; empty where nobody may drop out."""
        known: dict[str, int] = {}
        if self.dropout_cost is not None:
            known = self.dropout_cost.liars
        else:
            for ending in self.endings:
                known[str(ending.topology)] = ending.liars
        if not known:
            return ""
        limits = ", ".join(f"{count:,} in {topology}" for topology, count in known.items())
        return f"the survey still completes if participants send garbage: up to {limits}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        best = self.recommended
        asked = self.question
        keys = (
            "users",
            "items",
            "floor",
            "releases",
            "dropout",
            "colluding",
            "insiders",
            "target_error",
        )
        return {
            **plain.JSON_VERSION,
            "requested": {"epsilon": asked.epsilon, "delta": asked.delta},
            "recommended": best.name if best else None,
            "verdict": self.verdict,
            "worthwhile": self.worthwhile,
            "liars": asked.malicious_clients,
            "supposed": self.assumption,
            "otherwise": self.alternative_advice,
            "verified": self.verified.name if self.verified else None,
            **{key: getattr(asked, key) for key in keys},
            "invited": asked.users if asked.invited is None else asked.invited,
            "loss": self.loss,
            "topologies": [ending.to_dict() for ending in self.endings],
            "room": self.dropout_cost.to_dict() if self.dropout_cost else None,
            "notes": list(self.notes),
            "mechanisms": [option.to_dict() for option in self.options],
        }

    def __str__(self) -> str:
        asked = self.question
        budget = f"epsilon {asked.epsilon:g}, delta {asked.delta:g}"
        lines = [f"{asked.users_in_words}, {asked.items} items, {budget}", self.verdict]
        for name, half, error, users in self._errors():
            needed = f", users needed {users}" if users else ""
            lines.append(f"  {name:<9}  95% error {half}, standard error {error}{needed}")
        lines += [f"assumes: {self.assumption}", self.alternative_advice]
        if self.dropout_cost is not None:
            lines.append(self.dropout_cost.words)
        if self.tolerated_malicious:
            lines.append(self.tolerated_malicious)
        lines += [f"note: {note}" for note in self.notes]
        return "\n".join(lines)

    def _errors(self) -> list[tuple[str, str, str, str]]:
        """Name, 95% error, standard error and users needed of the mechanisms that can be used.

        A mechanism that has other errors in servers has a second line. Without a target error
        the users needed are empty.
        """
        rows = []
        for option in self.options:
            # Decoys, for one, have more noise with two servers than the plan states.
            variants = ((option.name, option), (f"{option.name} in servers", option.servers))
            for label, variant in variants:
                if variant is not None and variant.standard_error is not None:
                    half = percent(variant.half_width_95 or 0.0, "±")
                    users = self._format_needed(variant) if variant is option else ""
                    rows.append((label, half, percent(variant.standard_error), users))
        return rows

    def _format_needed(self, option: Option) -> str:
        """How many users the target error takes, in words; empty without a target."""
        if self.question.target_error is None:
            return ""
        return f"{option.users_needed:,}" if option.users_needed else "none found"

    def __repr__(self) -> str:
        return f"<Plan: {self.verdict}>"

    def __hash__(self) -> int:
        return hash(self.question)

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per mechanism, best first.

        Its `attrs` hold question and verdict.
        """
        rows = [option.to_dict() for option in self.options]
        columns = {}
        for key in FRAME:
            columns[key] = [row[key] for row in rows]
        facts = self.to_dict()
        for table in TABLES:
            del facts[table]
        return plain.data_frame(
            columns, [option.name for option in self.options], "mechanism", facts
        )

    def plot(self, *, ax: Any = None) -> Any:
        """Draw 95% errors against the number of users on matplotlib axes, and return the axes."""
        from faircount.planning.drawing import plan_axes

        return plan_axes(self.question, ax)

    def _repr_html_(self) -> str:
        headings = ["mechanism", "95% error", "standard error"]
        if self.question.target_error is not None:
            headings.append("users needed")
        rows = []
        for name, *figures in self._errors():
            rows.append([plain.escape_html(name), *figures][: len(headings)])
        html = plain.html_paragraph(self.verdict, strong=True)
        html += plain.html_table(headings, rows)
        html += plain.html_paragraph(f"Assumes: {self.assumption}")
        html += plain.html_paragraph(self.alternative_advice)
        for note in self.notes:
            html += plain.html_paragraph(f"Note: {note}")
        return html


@explain_arguments("fc.plan(users=800, items=12, epsilon=1.0)")
def plan(
    users: int,
    items: int | Sequence[object],
    epsilon: float,
    delta: float = 1e-6,
    *,
    floor: int = 0,
    releases: int = 1,
    dropout: float = 0.0,
    colluding: float = 0.0,
    target_error: float | None = None,
    loss: float | None = None,
    response_rate: float | None = None,
    malicious_clients: bool = False,
) -> Plan:
    """Compare every mechanism for a survey under a total budget over all releases.

    users: number of users who will be asked; all of them are expected to respond, unless
        `response_rate` is given
    items: number of items to choose from, or the items themselves
    epsilon: privacy loss of all releases together
    delta: probability that the privacy loss of all releases together exceeds epsilon
    floor: minimum number of other people known to choose each item, without looking at the answers
    releases: number of results to be published about the same users
    dropout: share of the users who may drop out during the survey
    colluding: share of the users who may collude; at least one user always counts as an insider
    target_error: wanted 95% half-width; the plan then says how many users it needs
    loss: probability that a user misses a visit; the plan then says how likely each topology
        completes (5% by default where users may drop out)
    response_rate: share of the users who will respond; the plan is made for them alone
    malicious_clients: recommend only mechanisms that count proven reports, so that dishonest
        participants cannot skew the result
    returns: the comparison, with a recommendation or the advice not to run it

    >>> plan = fc.plan(users=800, items=12, epsilon=1.0)
    >>> plan.recommended.name
    'laplace'
    """
    invited = None
    # Noise is planned for those who respond: people who never do cannot hide anybody.
    expected = users
    if response_rate is not None:
        invited = check_integer("users", users, least=1)
        expected = expected_users("response_rate", response_rate, invited)
    count = len(Domain.of(items)) if isinstance(items, Iterable) else items
    question = Question(
        expected,
        count,
        epsilon,
        delta,
        floor,
        releases,
        dropout,
        colluding,
        target_error,
        loss,
        invited,
        malicious_clients,
    )
    # Every person chooses one item, so a larger floor is a mistake and no public knowledge.
    largest = (question.users - 1) // question.items
    if question.floor > largest:
        raise ParameterError(
            f"floor {question.floor:,} is impossible: {question.users_in_words} cannot give each "
            f"of {question.items:,} items more than {largest:,} other holders"
        )
    options = [make_option(kind, question) for kind in frequency_mechanisms().values()]
    return Plan(question, rank(options, malicious_clients))
