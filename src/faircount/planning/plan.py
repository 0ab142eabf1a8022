"""Every mechanism side by side at equal exact privacy, one recommendation, and a warning where there is no point."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from faircount.core import plain
from faircount.core.validation import expected_users, integer
from faircount.estimation.validity import SUPPOSED
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.planning.completion import LOSS, Ending, dropout_needed, endings
from faircount.planning.liars import best_of, otherwise
from faircount.planning.option import Option, option, percent
from faircount.planning.question import Question, cautions
from faircount.planning.room import Room, room_of
from faircount.protocol import SERVERS
from faircount.protocol.survey.topology import TARGET_COMPLETION

TIE_FACTOR = 1.01
"""Errors within this factor of the smallest count as equal: then the order of the mechanisms decides."""

TWICE = 1.95
"""Errors closer than this are compared in percent: "1 times below" would say nothing."""

COMPARE_LIMIT = 1000
"""An error so many times below the next one's is not compared more closely."""


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
"""Columns of a plan as a data frame."""


@dataclass(frozen=True)
class Plan:
    """All options, best first, and what to do.

    question: what was asked
    options: every mechanism, sound ones first, by error
    """

    question: Question
    options: tuple[Option, ...]

    @property
    def recommended(self) -> Option | None:
        """The sound option with the smallest error; None where none is sound. Proven reports if clients may lie."""
        first = self.options[0] if self.options else None
        return first if first is not None and first.sound and first.proven == self.question.liars else None

    @property
    def verified(self) -> Option | None:
        """The sound option with the smallest error of those whose reports are proven to be one vote."""
        return best_of(self.options, proven=True)

    @property
    def supposed(self) -> str:
        """Whether clients follow the protocol, in words."""
        return SUPPOSED[self.question.liars]

    @property
    def otherwise(self) -> str:
        """What to run, and at which cost, if clients were not as supposed."""
        return otherwise(self.options, self.question.liars)

    @property
    def worthwhile(self) -> bool:
        """Whether the survey ends as recommended, with a 95% half-width below the average frequency 1/N."""
        return self.recommended is not None and self._ends and self._tells

    @property
    def _tells(self) -> bool:
        best = self.recommended
        return best is not None and (best.half_width_95 or 0.0) < 1 / self.question.items

    @property
    def _ends(self) -> bool:
        """Whether the recommended topology brings enough surveys to their end, where that was asked."""
        chance = self._ending.chance if self._ending else None
        return chance is None or chance >= TARGET_COMPLETION

    def _instead(self) -> str:
        """The next best that makes shares and would come to an end."""
        ends = {str(each.topology) for each in self.endings if (each.chance or 0.0) >= TARGET_COMPLETION}
        other = next((each for each in self.options if each.sound and each.topology in ends), None)
        return "" if other is None else f", or run {other.name} in {other.topology}"

    @property
    def _ending(self) -> Ending | None:
        """How the recommended topology ends; reports without shares need one visit, as servers do."""
        best = self.recommended
        wanted = str(SERVERS) if best is None or best.topology is None else best.topology
        return next((each for each in self.endings if str(each.topology) == wanted), None)

    @property
    def verdict(self) -> str:
        """One sentence: what to run and why, or that nothing should be run."""
        best = self.recommended
        if best is None:
            return (
                f"do not run this: no mechanism{' with proven reports' if self.question.liars else ''} meets the "
                "budget; allow a larger epsilon or delta (an epsilon of 1 is a common choice), or ask more users"
            )
        if not self._tells:
            error, average = percent(best.half_width_95 or 0.0, "±"), percent(1 / self.question.items)
            return (
                f"do not run this: even {best.name}, the best, has a 95% error of {error}, more than an average "
                f"item's {average}; ask more users, offer fewer items or allow a larger epsilon"
            )
        if not self._ends:
            return self._unfinished()
        needs = "whatever the answers are" if best.condition is None else f"provided that {best.condition}"
        error = percent(best.standard_error or 0.0)
        return f"run {best.name}: its standard error of {error} is {self._compared(best)}, {needs}{_otherwise(best)}"

    def _unfinished(self) -> str:
        """What to do about a survey that too few users stay for."""
        way = self._ending.topology if self._ending else SERVERS
        needed, visits = dropout_needed(self.question, self.loss or 0.0, way), len(way.phases)
        advice = (
            "ask more users" if needed is None else f"plan with --dropout {needed:g} (dropout={needed:g} in Python)"
        )
        return (
            f"do not run this: if each visit is missed with probability {self.loss:.3g}, fewer than "
            f"{TARGET_COMPLETION:.0%} of the surveys come to an end in {way}, with {visits} visit{'s' * (visits > 1)}, "
            f"because {self.question.staying:,} of {self.question.users:,} users must stay; {advice}{self._instead()}"
        )

    def _compared(self, best: Option) -> str:
        """Beside the next one that needs no trusted server."""
        others = [o for o in self.options if o.mechanism is not None and not o.needs_trust and o.proven == best.proven]
        others.remove(best)
        if not others:
            return "the smallest"
        second = min(others, key=lambda o: o.standard_error or 0.0)
        factor = (second.standard_error or 0.0) / (best.standard_error or 1.0)
        if factor < TIE_FACTOR:
            return f"as small as that of {second.name}"
        if factor < TWICE:
            return f"{1 - 1 / factor:.0%} below {second.name}, the next"
        times = f"{factor:.2g}" if factor < COMPARE_LIMIT else f"more than {COMPARE_LIMIT:,}"
        return f"{times} times below {second.name}, the next"

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about the question itself."""
        return cautions(self.question.epsilon, self.question.delta)

    @property
    def loss(self) -> float | None:
        """The probability of a missed visit that was asked about; None if users are not expected to miss any."""
        asked = self.question
        return LOSS if asked.loss is None and asked.lost else asked.loss

    @cached_property
    def endings(self) -> tuple[Ending, ...]:
        """How likely each topology comes to an end with that loss; empty where no user is expected to miss a visit."""
        least = self.question.staying
        asked = self.question
        return () if self.loss is None or least < 2 else endings(asked.users, least, self.loss, asked.insiders)

    @cached_property
    def room(self) -> Room | None:
        """What room for missing users costs the recommended option; None where no shares travel."""
        return None if self.recommended is None else room_of(self.recommended, self.question)

    @property
    def bears(self) -> str:
        """How many lying clients cannot stop the survey, topology by topology; empty where no users may be missing."""
        known = self.room.liars if self.room else {str(each.topology): each.liars for each in self.endings}
        numbers = ", ".join(f"{topology} {liars:,}" for topology, liars in known.items())
        return f"lying clients who cannot stop it: {numbers}" if known else ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        best, asked = self.recommended, self.question
        keys = ("users", "items", "floor", "releases", "dropout", "colluding", "insiders", "target_error")
        return {
            **plain.JSON_VERSION,
            "requested": {"epsilon": asked.epsilon, "delta": asked.delta},
            "recommended": best.name if best else None,
            "verdict": self.verdict,
            "worthwhile": self.worthwhile,
            "liars": asked.liars,
            "supposed": self.supposed,
            "otherwise": self.otherwise,
            "verified": self.verified.name if self.verified else None,
            **{key: getattr(asked, key) for key in keys},
            "invited": asked.users if asked.invited is None else asked.invited,
            "loss": self.loss,
            "topologies": [each.to_dict() for each in self.endings],
            "room": self.room.to_dict() if self.room else None,
            "notes": list(self.notes),
            "mechanisms": [option.to_dict() for option in self.options],
        }

    def __str__(self) -> str:
        asked = self.question
        lines = [
            f"{asked.users_in_words}, {asked.items} items, epsilon {asked.epsilon:g}, delta {asked.delta:g}",
            self.verdict,
        ]
        for name, half, error in self._errors():
            lines.append(f"  {name:<9}  95% error {half}, standard error {error}")
        lines += [f"supposed: {self.supposed}", self.otherwise, *([self.room.words] if self.room else [])]
        lines += [self.bears] if self.bears else []
        return "\n".join([*lines, *(f"note: {each}" for each in self.notes)])

    def _errors(self) -> list[tuple[str, str, str]]:
        """Name, 95% error and standard error of what can be used; what changes in servers has a line of its own."""
        found = []
        for each in self.options:
            for label, form in ((each.name, each), (f"{each.name} in servers", each.servers)):
                if form is not None and form.standard_error is not None:
                    half = percent(form.half_width_95 or 0.0, "±")
                    found.append((label, half, percent(form.standard_error)))
        return found

    def __repr__(self) -> str:
        return f"<Plan: {self.verdict}>"

    def __hash__(self) -> int:
        return hash(self.question)

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row per mechanism, best first; its `attrs` hold question and verdict."""
        rows = [each.to_dict() for each in self.options]
        columns = {key: [row[key] for row in rows] for key in FRAME}
        asked = {key: value for key, value in self.to_dict().items() if key not in ("mechanisms", "topologies")}
        return plain.frame(columns, [each.name for each in self.options], "mechanism", asked)

    def plot(self, *, ax: Any = None) -> Any:
        """95% error against the number of users, on matplotlib axes: those given, or new ones, which are returned."""
        from faircount.planning.drawing import plan_axes

        return plan_axes(self.question, ax)

    def _repr_html_(self) -> str:
        rows = [[plain.text(name), half, error] for name, half, error in self._errors()]
        table = plain.table(["mechanism", "95% error", "standard error"], rows)
        words = [f"Supposed: {self.supposed}", self.otherwise, *(f"Note: {each}" for each in self.notes)]
        return plain.paragraph(self.verdict, strong=True) + table + "".join(map(plain.paragraph, words))


def plan(
    users: int,
    items: int,
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
    liars: bool = False,
) -> Plan:
    """Compare every mechanism for this many users and items under a total budget over all releases.

    users: number of users who will be asked; all of them are expected to answer, unless `response_rate` is given
    items: number of items that the question offers
    epsilon: privacy loss of all releases together
    delta: probability with which more than epsilon may be lost, over all releases together
    floor: other holders that every item has for sure, known without looking at the answers
    releases: results to be published about the same users
    dropout: share of the users who may vanish half-way
    colluding: share of the users who may pool what they know; at least one user always is such an insider
    target_error: wanted 95% half-width; the plan then says how many users it takes
    loss: probability that a user misses a visit; the plan then says which topologies finish (5% where users may
        drop out and nothing is given)
    response_rate: share of the users who will answer, where not all are expected to: the plan is made for those alone
    liars: whether clients may send what they like: then only what counts proven reports is recommended
    """
    invited = None if response_rate is None else integer("users", users, least=1)
    expected = users if invited is None else expected_users("response_rate", response_rate, invited)
    question = Question(
        expected, items, epsilon, delta, floor, releases, dropout, colluding, target_error, loss, invited, liars
    )
    return Plan(question, _ordered([option(kind, question) for kind in frequency_mechanisms().values()], liars))


def _otherwise(best: Option) -> str:
    """What becomes of it in servers, where that is not as planned."""
    if best.servers is None:
        return ""
    error = best.servers.standard_error
    found = "it does not run there" if error is None else f"its standard error is {percent(error)}"
    return f"; this is with topology {best.topology}, and in servers {found}"


def _ordered(options: list[Option], liars: bool) -> tuple[Option, ...]:
    """First the best for such clients, among equals in the order of mechanisms; sound ones by error; then others."""
    sound = sorted((o for o in options if o.sound), key=lambda o: o.standard_error or 0.0)
    best = best_of(sound, proven=liars)
    if best is not None:
        limit = TIE_FACTOR * (best.standard_error or 0.0)
        first = next(o for o in options if o.sound and o.proven == liars and (o.standard_error or 0.0) <= limit)
        sound = [first, *(o for o in sound if o is not first)]
    return (*sound, *(o for o in options if not o.sound))
