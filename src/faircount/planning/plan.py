"""Compare every mechanism at the same exact privacy, and recommend one or none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from faircount.core import plain
from faircount.core.arguments import describe_value, explain_arguments
from faircount.core.domain import Domain
from faircount.core.errors import ParameterError
from faircount.core.validation import check_integer, expected_users, share_of_users
from faircount.estimation.validity import ASSUMPTIONS, ROWS_ASSUMPTION
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.mechanisms.sampling import largest_floor
from faircount.planning.advice import (
    best_of,
    compare_with_next,
    describe_alternative,
    describe_servers,
    error_of,
    rank,
    suits,
)
from faircount.planning.completion import LOSS, Completion, completions, dropout_needed
from faircount.planning.dropout import DropoutCost, dropout_cost, usual_dropout
from faircount.planning.forecast import Forecast, forecast
from faircount.planning.minimum import parse_minimum, parse_response_rate, parse_target_error
from faircount.planning.option import Option, format_percent, make_option
from faircount.planning.request import SURVEY, TABLE, PlanRequest, privacy_warnings
from faircount.protocol import SERVERS, topology_named
from faircount.protocol.survey.topology import TARGET_COMPLETION

# Columns of a plan as a data frame.
FRAME_COLUMNS = (
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

    request: what was asked of the planner
    options: every mechanism: first those that may be recommended, by error, then the other ones
        that can be used, then those that cannot
    """

    request: PlanRequest
    options: tuple[Option, ...]

    @property
    def recommended(self) -> Option | None:
        """The most accurate option that meets the budget; None where none does.

        Options with proven reports are always considered, and no others if clients may be
        malicious. A mechanism whose server sees every answer is never recommended.
        """
        return best_of(self.options, self.request.malicious_clients)

    @property
    def verified(self) -> Option | None:
        """The most accurate such option whose reports are proven to be one vote."""
        # Asked as if clients were malicious, whatever the owner has said: then only proven reports
        # suit.
        return best_of(self.options, malicious_clients=True)

    @property
    def assumption(self) -> str:
        """What the recommended option assumes of the clients, or of the rows, as a sentence."""
        if self.request.purpose == TABLE:
            return ROWS_ASSUMPTION
        best = self.recommended
        proven = self.request.malicious_clients if best is None else best.proven
        return ASSUMPTIONS[proven]

    @property
    def alternative_advice(self) -> str | None:
        """What to run, and at which cost, if clients are not as assumed; None for a table."""
        if self.request.purpose == TABLE:
            return None
        return describe_alternative(self.options, self.request.malicious_clients)

    @cached_property
    def forecast(self) -> Forecast | None:
        """What to expect of a survey that runs the recommended option; None for a table."""
        best = self.recommended
        # Local mechanisms send no shares, and no survey of ours runs them.
        if best is None or best.topology is None or self.request.purpose != SURVEY:
            return None
        return forecast(best, self.request, topology_named(best.topology))

    @property
    def worthwhile(self) -> bool:
        """Whether the survey completes, with a 95% half-width below the average frequency 1/N."""
        # A table has no forecast: its rows are all there.
        expects_enough = self.forecast is None or self.forecast.expects_enough
        completes = self._completes and expects_enough
        return self.recommended is not None and completes and self._is_informative

    @property
    def min_users(self) -> int:
        """The number of users who must stay."""
        return self.request.staying if self.forecast is None else self.forecast.minimum

    @property
    def _is_informative(self) -> bool:
        # A survey is judged by the responses that are expected, which may be more than its minimum.
        if self.forecast is not None:
            return self.forecast.is_informative
        best = self.recommended
        # Where every item were alike each had this share: an error above it cannot even tell a
        # popular item from one that nobody chose.
        return best is not None and (best.half_width_95 or 0.0) < 1 / self.request.items

    @property
    def _completes(self) -> bool:
        """Whether enough surveys complete in the recommended topology, where that was asked."""
        # An unknown chance is no reason against a survey; the text says that it is unknown.
        chance = self._completion.chance if self._completion else None
        return chance is None or chance >= TARGET_COMPLETION

    @property
    def _completion(self) -> Completion | None:
        """How likely the recommended topology completes."""
        best = self.recommended
        # Local mechanisms send one report without shares: they need one visit, as servers do.
        wanted = str(SERVERS)
        if best is not None and best.topology is not None:
            wanted = best.topology
        for completion in self.completions:
            if str(completion.topology) == wanted:
                return completion
        return None

    @property
    def verdict(self) -> str:
        """One sentence: what to run and why, or that nothing should be run."""
        best = self.recommended
        if best is None:
            reports = " with proven reports" if self.request.malicious_clients else ""
            return (
                f"do not run this: no mechanism{reports} meets the budget; allow a larger epsilon "
                "or delta (an epsilon of 1 is a common choice), or ask more users"
            )
        # An interval wider than an average frequency cannot tell a popular item from an unpopular
        # one.
        if not self._is_informative:
            expected = self.forecast or best
            error = format_percent(expected.half_width_95 or 0.0, "±")
            average = format_percent(1 / self.request.items)
            return (
                f"do not run this: even {best.name}, the best, has a 95% error of {error}, more "
                f"than an average item's {average}; ask more users, offer fewer items or allow a "
                "larger epsilon"
            )
        if self.forecast is not None and self.forecast.too_few_expected:
            return f"do not run this: {self.forecast.too_few_expected}"
        if not self._completes:
            return self._describe_incomplete()
        if self.forecast is not None:
            accuracy = "; ".join(self.forecast.accuracy_clauses)
            return f"run this survey: {accuracy}{self._describe_target()}"
        condition = "whatever the answers are"
        if best.condition is not None:
            condition = f"provided that {best.condition}"
        # `run` on a table has a roster of all rows, which a survey of two servers lacks.
        servers = "" if self.request.purpose == TABLE else describe_servers(best)
        # A tiny error is only said to be "below" a bound, which needs no "of".
        error = format_percent(error_of(best))
        of = "" if error.startswith("below") else "of "
        return (
            f"run {best.name}: its standard error {of}{error} is "
            f"{compare_with_next(self.options, self.request.malicious_clients)}, "
            f"{condition}{servers}{self._describe_target()}"
        )

    def _describe_target(self) -> str:
        """Whether the target error is met, and else how many users it takes; empty without one."""
        best = self.recommended
        target = self.request.target_error
        if best is None or target is None:
            return ""
        wanted = f"; the target error of {format_percent(target, '±')} is"
        if (best.half_width_95 or 0.0) <= target:
            # Fewer responses to a survey have a larger error, which stands beside it.
            is_survey = self.request.purpose == SURVEY
            return f"{wanted} met{f' with {self.request.staying:,} responses' * is_survey}"
        unmet = f"{wanted} not met"
        suitable = [
            option
            for option in self.options
            if option.users_needed and suits(option, self.request.malicious_clients)
        ]
        if not suitable:
            return f"{unmet}, and no number of users was found that meets it"
        # Not always the recommended one: another mechanism may be worse now and better with more
        # users.
        cheapest = min(suitable, key=lambda option: option.users_needed or 0)
        users = cheapest.users_needed or 0
        if self.request.purpose != SURVEY:
            return f"{unmet}: it takes {users:,} users with {cheapest.name}"
        # The error is that of the responses, which are fewer than the invitations.
        responses = users - share_of_users("dropout", self.request.dropout, users)
        return (
            f"{unmet}: it takes {users:,} invited people, of whom {responses:,} respond, with "
            f"{cheapest.name}"
        )

    def _describe_incomplete(self) -> str:
        """What to do about a survey that too few users stay for."""
        topology = self._completion.topology if self._completion else SERVERS
        dropout = dropout_needed(self.request, self.loss or 0.0, topology)
        # The one thing that always helps; what follows is cheaper, where it exists.
        advice = "ask more users"
        if dropout is not None:
            min_users = self.request.users - share_of_users("dropout", dropout, self.request.users)
            advice = f"plan with --minimum {min_users} (minimum={min_users} in Python)"
        # The next best option may travel in a topology that does complete.
        completing = set()
        for completion in self.completions:
            if (completion.chance or 0.0) >= TARGET_COMPLETION:
                completing.add(str(completion.topology))
        for other in self.options:
            if suits(other, self.request.malicious_clients) and other.topology in completing:
                advice += f", or run {other.name} in {other.topology}"
                break
        visits = len(topology.phases)
        return (
            f"do not run this: if each visit is missed with probability {self.loss:.3g}, fewer "
            f"than {TARGET_COMPLETION:.0%} of the surveys complete in {topology}, with {visits} "
            f"visit{'s' * (visits > 1)}, because {self.min_users:,} of "
            f"{self.request.users:,} users must stay; {advice}"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the request itself."""
        return privacy_warnings(self.request.epsilon, self.request.delta)

    @property
    def loss(self) -> float | None:
        """Probability of a missed visit; None if users are not expected to miss any."""
        # Whoever plans for people who do not respond expects missed visits, too.
        request = self.request
        expects_loss = request.minimum is not None or (
            request.purpose != SURVEY and request.lost > 0
        )
        if request.loss is None and expects_loss:
            return LOSS
        return request.loss

    @cached_property
    def completions(self) -> tuple[Completion, ...]:
        """How likely each topology completes; empty where no user is expected to miss a visit."""
        request = self.request
        # Peers share with each other: a survey of one has nobody to share with.
        if self.loss is None or self.min_users < 2:
            return ()
        return completions(request.users, self.min_users, self.loss, request.insiders)

    @cached_property
    def dropout_cost(self) -> DropoutCost | None:
        """What a dropout allowance costs the recommended option; None where no shares travel."""
        if self.recommended is None:
            return None
        return dropout_cost(self.recommended, self.request)

    @property
    def tolerated_malicious(self) -> str:
        """How many malicious clients each topology tolerates; empty where nobody may drop out."""
        known: dict[str, int] = {}
        if self.dropout_cost is not None:
            # A client that sends garbage is left out like one that drops out, so the same allowance
            # tolerates both.
            known = self.dropout_cost.tolerated_malicious
        else:
            for completion in self.completions:
                known[str(completion.topology)] = completion.tolerated_malicious
        if not known:
            return ""
        limits = ", ".join(f"{count:,} in {topology}" for topology, count in known.items())
        return f"the survey still completes if participants send garbage: up to {limits}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        best = self.recommended
        request = self.request
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
            "purpose": request.purpose,
            "requested": {"epsilon": request.epsilon, "delta": request.delta},
            "recommended": best.name if best else None,
            "verdict": self.verdict,
            "worthwhile": self.worthwhile,
            "malicious_clients": request.malicious_clients,
            "assumption": self.assumption,
            "alternative_advice": self.alternative_advice,
            "verified": self.verified.name if self.verified else None,
            **{key: getattr(request, key) for key in keys},
            "invited": request.users if request.invited is None else request.invited,
            "loss": self.loss,
            "topologies": [completion.to_dict() for completion in self.completions],
            "dropout_cost": self.dropout_cost.to_dict() if self.dropout_cost else None,
            **(self.forecast.to_dict() if self.forecast else {}),
            "notes": list(self.notes),
            "mechanisms": [option.to_dict() for option in self.options],
        }

    def __str__(self) -> str:
        request = self.request
        budget = f"epsilon {request.epsilon:g}, delta {request.delta:g}"
        lines = [f"{request.users_in_words}, {request.items} items, {budget}", self.verdict]
        errors = self._errors()
        # As wide as the longest entry of each column, so that the columns stand below each other.
        wide = [max(map(len, column)) for column in zip(*errors, strict=True)]
        for name, half, error, users in errors:
            needed = f", users needed {users}" if users else ""
            lines.append(
                f"  {name:<{wide[0]}}  95% error {half:>{wide[1]}}, "
                f"standard error {error:>{wide[2]}}{needed}"
            )
        lines.append(f"assumes: {self.assumption}")
        if self.alternative_advice is not None:
            lines.append(self.alternative_advice)
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
            # Decoys, for one, have more noise with two servers than the plan states. `run` on a
            # table does not have it.
            in_servers = None if self.request.purpose == TABLE else option.servers
            variants = ((option.name, option), (f"{option.name} in servers", in_servers))
            for label, variant in variants:
                if variant is not None and variant.standard_error is not None:
                    half = format_percent(variant.half_width_95 or 0.0, "±")
                    users = self._format_needed(variant) if variant is option else ""
                    rows.append((label, half, format_percent(variant.standard_error), users))
        return rows

    def _format_needed(self, option: Option) -> str:
        """How many users the target error takes, in words; empty without a target."""
        if self.request.target_error is None:
            return ""
        return f"{option.users_needed:,}" if option.users_needed else "none found"

    def __repr__(self) -> str:
        return f"<Plan: {self.verdict}>"

    def __hash__(self) -> int:
        # The options follow from the request, which is enough and takes no time.
        return hash(self.request)

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per mechanism, best first.

        Its `attrs` hold request and verdict.
        """
        rows = [option.to_dict() for option in self.options]
        columns = {}
        for key in FRAME_COLUMNS:
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

        return plan_axes(self.request, ax)

    def _repr_html_(self) -> str:
        headings = ["mechanism", "95% error", "standard error"]
        if self.request.target_error is not None:
            headings.append("users needed")
        rows = []
        for name, *figures in self._errors():
            rows.append([plain.escape_html(name), *figures][: len(headings)])
        html = plain.html_paragraph(self.verdict, strong=True)
        html += plain.html_table(headings, rows)
        html += plain.html_paragraph(f"Assumes: {self.assumption}")
        if self.alternative_advice is not None:
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
    purpose: str = SURVEY,
    minimum: int | str | None = None,
    floor: int = 0,
    releases: int = 1,
    colluding: float = 0.0,
    target_error: float | str | None = None,
    loss: float | None = None,
    response_rate: float | str | None = None,
    malicious_clients: bool | None = None,
) -> Plan:
    """Say how accurate a survey will be and what it needs, under a total budget over all releases.

    A survey over the network is planned as `faircount survey create` plans it. With
    `purpose="table"` the plan is for `histogram` and `run`.

    users: number of people who are invited, or of rows in the table
    items: number of items to choose from, or the items themselves
    epsilon: privacy loss of all releases together
    delta: probability that the privacy loss of all releases together exceeds epsilon
    purpose: "survey" or "table"
    minimum: minimum number of responses of a survey, or a rate of the invited such as "40%"; by
        default one that fits the mechanism
    floor: minimum number of other people known to choose each item, without looking at the answers
    releases: number of results to be published about the same users
    colluding: share of the users who may collude; at least one user always counts as an insider
    target_error: wanted 95% half-width, such as 0.02 or "2%"; the plan then says how many users it
        needs: in a survey people to invite, of whom as many respond as the plan expects
    loss: probability that a user misses a visit; the plan then says how likely each topology
        completes (5% by default with a `minimum`)
    response_rate: expected response rate, such as 0.6 or "60%": errors are stated for so many
        responses, with the chance that they reach the minimum; by default nearly all respond
    malicious_clients: recommend only mechanisms that count proven reports, so that dishonest
        participants cannot skew the result: the default for a survey; a table has no participants
    returns: the comparison, with a recommendation or the advice not to run it

    >>> plan = fc.plan(users=800, items=12, epsilon=1.0)
    >>> plan.recommended.name, plan.forecast.minimum
    ('server-joint', 200)
    >>> fc.plan(users=800, items=12, epsilon=1.0, purpose="table").recommended.name
    'laplace'
    """
    terms: dict[str, Any] = {
        "floor": floor,
        "releases": releases,
        "colluding": colluding,
        "target_error": None if target_error is None else parse_target_error(target_error),
        "loss": loss,
    }
    rate = None if response_rate is None else parse_response_rate(response_rate)
    if purpose == TABLE:
        if minimum is not None or loss is not None:
            raise ParameterError(
                "the rows of a table are all there and miss no visit: plan a survey, or leave "
                "minimum and loss out"
            )
        if malicious_clients:
            raise ParameterError(
                "the rows of a table send no reports: plan a survey, or leave malicious_clients out"
            )
        terms |= {"response_rate": rate, "purpose": TABLE}
        return compare_mechanisms(users, items, epsilon, delta, **terms)
    if purpose != SURVEY:
        message = f'a plan is for a "{SURVEY}" or a "{TABLE}"'
        raise ParameterError(f"{message}, not for {describe_value(purpose)}")

    invited = check_integer("users", users, least=1)
    needed = None if minimum is None else parse_minimum(str(minimum), invited)
    expected = None if rate is None else expected_users("response_rate", rate, invited)
    terms |= {
        "dropout": _dropout_of_survey(invited, needed, expected),
        "expected": expected,
        "malicious_clients": malicious_clients is not False,
        "purpose": SURVEY,
        "minimum": needed,
    }
    return compare_mechanisms(users, items, epsilon, delta, **terms)


def _dropout_of_survey(invited: int, minimum: int | None, expected: int | None) -> float:
    """The share of the invited who may be missing in the survey that is planned for."""
    # Where users make the noise it must suffice at the minimum, whatever is expected.
    needed = expected if minimum is None else minimum
    return usual_dropout(invited) if needed is None else (invited - needed) / invited


def compare_mechanisms(
    users: int,
    items: int | Sequence[object],
    epsilon: float,
    delta: float = 1e-6,
    *,
    dropout: float = 0.0,
    response_rate: float | None = None,
    **terms: Any,
) -> Plan:
    """Compare every mechanism at the same privacy, for users of whom some may drop out.

    dropout: share of the users who may drop out
    response_rate: share of the users who will respond; the plan is made for them alone
    terms: of the `PlanRequest`
    """
    # Noise is planned for those who respond: people who never do cannot hide anybody.
    expected = users
    if response_rate is not None:
        invited = check_integer("users", users, least=1)
        expected = expected_users("response_rate", response_rate, invited)
        terms["invited"] = invited
    count = len(Domain.of(items)) if isinstance(items, Iterable) else items
    request = PlanRequest(expected, count, epsilon, delta, dropout=dropout, **terms)
    # Every person chooses one item, so a larger floor is a mistake and no public knowledge.
    largest = largest_floor(request.users, request.items)
    if request.floor > largest:
        raise ParameterError(
            f"floor {request.floor:,} is impossible: {request.users_in_words} cannot give each "
            f"of {request.items:,} items more than {largest:,} other holders"
        )
    options = [make_option(kind, request) for kind in frequency_mechanisms().values()]
    return Plan(request, rank(options, request.malicious_clients))
