"""Every mechanism side by side at equal exact privacy, one recommendation, and a warning where there is no point."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from faircount.core import plain
from faircount.core.errors import FaircountError, RefusedError
from faircount.mechanisms.base import Collected, FrequencyMechanism
from faircount.planning.accuracy import users_needed
from faircount.planning.calibrate import Family, families
from faircount.planning.completion import LOSS, Ending, dropout_needed, endings
from faircount.planning.costs import Cost, cost, paper_form_bytes
from faircount.planning.question import Question, cautions
from faircount.protocol.survey.topology import TARGET_COMPLETION

TRIES = 4
"""Attempts at meeting a budget that composed accounting overshoots by a rounding error."""

TIE_FACTOR = 1.01
"""Errors within this factor of the smallest count as equal: then the order of the families decides."""

LEAST = 1e-6
"""Shares below this are only said to be below it."""

TWICE = 1.95
"""Errors closer than this are compared in percent: "1 times below" would say nothing."""

COMPARE_LIMIT = 1000
"""An error so many times below the next one's is not compared more closely."""


def percent(share: float, sign: str = "") -> str:
    """A share in percent with two significant digits, never in exponents; `sign` goes before the number."""
    if 0 < share < LEAST:
        return f"below {sign}{LEAST:.4%}"
    digits = 0 if share <= 0 else max(0, 1 - math.floor(math.log10(100 * share)))
    return f"{sign}{share:.{digits}%}"


FRAME = ("sound", "half_width_95", "standard_error", "users_needed", "bytes_per_user", "condition", "reason")
"""Columns of a plan as a data frame."""


@dataclass(frozen=True)
class Option:
    """One mechanism's answer to the question. Errors are fractions of the users, averaged over the items.

    name: of the mechanism
    sound: whether it meets the budget
    reason: why it does, or why not
    parameters: what it is run with, each release
    epsilon, delta: the exact privacy of all releases together
    standard_error, half_width_95: error of an average item
    users_needed: users that the wanted error takes; None where none was asked for, or no number is enough
    condition: what must hold for the guarantee not to be empty; None where it holds for any data
    cost: bytes, visits and who sees what
    paper_form_bytes: bytes of a user in the paper's own form
    mechanism: the mechanism itself, ready to run
    """

    name: str
    sound: bool
    reason: str
    parameters: Mapping[str, float]
    epsilon: float | None = None
    delta: float | None = None
    standard_error: float | None = None
    half_width_95: float | None = None
    users_needed: int | None = None
    condition: str | None = None
    cost: Cost | None = None
    paper_form_bytes: int | None = None
    mechanism: FrequencyMechanism | None = None

    def __hash__(self) -> int:
        return hash((self.name, self.epsilon, self.delta, self.standard_error))

    @property
    def needs_trust(self) -> bool:
        """Whether a server sees every answer in the clear."""
        return self.mechanism is not None and self.mechanism.collected is Collected.ANSWERS

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        keys = ("name", "sound", "reason", "epsilon", "delta", "standard_error", "half_width_95", "users_needed")
        spent = self.cost
        return {
            **{key: getattr(self, key) for key in keys},
            "parameters": dict(self.parameters),
            "condition": self.condition,
            "bytes_per_user": spent.bytes_sent if spent else None,
            "bytes_per_user_paper_form": self.paper_form_bytes,
            "rounds": spent.visits if spent else None,
            "form": spent.form if spent else None,
            "sees": spent.sees if spent else None,
        }


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
        """The sound option with the smallest error; None where none is sound."""
        return self.options[0] if self.options and self.options[0].sound else None

    @property
    def worthwhile(self) -> bool:
        """Whether the survey comes to an end and its error, a 95% half-width, stays below the average frequency 1/N."""
        return self.recommended is not None and self._ends and self._tells

    @property
    def _tells(self) -> bool:
        best = self.recommended
        return best is not None and (best.half_width_95 or 0.0) < 1 / self.question.items

    @property
    def _ends(self) -> bool:
        """Whether the topology that bears the most brings enough surveys to their end, where that was asked."""
        return all(each.chance is None or each.chance >= TARGET_COMPLETION for each in self.endings[:1])

    @property
    def verdict(self) -> str:
        """One sentence: what to run and why, or that nothing should be run."""
        best = self.recommended
        if best is None:
            return (
                "do not run this: no mechanism meets the budget; allow a larger epsilon or delta (an epsilon of 1 is a "
                "common choice), or ask more users"
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
        return f"run {best.name}: its standard error of {error} is {self._compared(best)}, {needs}"

    def _unfinished(self) -> str:
        """What to do about a survey that too few users stay for."""
        needed = dropout_needed(self.question, self.loss or 0.0)
        advice = (
            "ask more users" if needed is None else f"plan with --dropout {needed:g} (dropout={needed:g} in Python)"
        )
        return (
            f"do not run this: if each visit is missed with probability {self.loss:.3g}, even servers, which need one "
            f"visit, end in fewer than {TARGET_COMPLETION:.0%} of the surveys, because {self.question.staying:,} of "
            f"{self.question.users:,} users must stay; {advice}"
        )

    def _compared(self, best: Option) -> str:
        """Beside the next one that needs no trusted server."""
        others = [o for o in self.options if o is not best and o.mechanism is not None and not o.needs_trust]
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
            **{key: getattr(asked, key) for key in keys},
            "loss": self.loss,
            "topologies": [each.to_dict() for each in self.endings],
            "notes": list(self.notes),
            "mechanisms": [option.to_dict() for option in self.options],
        }

    def __str__(self) -> str:
        asked = self.question
        lines = [f"{asked.users:,} users, {asked.items} items, epsilon {asked.epsilon:g}, delta {asked.delta:g}"]
        for each in self.options:
            if each.sound:
                half, error = percent(each.half_width_95 or 0.0, "±"), percent(each.standard_error or 0.0)
                lines.append(f"  {each.name:<9}  95% error {half}, standard error {error}")
        cannot = ", ".join(each.name for each in self.options if not each.sound)
        lines += [f"  cannot meet the budget: {cannot}"] if cannot else []
        return "\n".join([*lines, *(f"note: {each}" for each in self.notes), self.verdict])

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
        rows = [
            [plain.text(each.name), percent(each.half_width_95 or 0.0, "±"), percent(each.standard_error or 0.0)]
            for each in self.options
            if each.sound
        ]
        table = plain.table(["mechanism", "95% error", "standard error"], rows)
        words = (f"Note: {each}" for each in self.notes)
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
) -> Plan:
    """Compare every mechanism for this many users and items under a total budget over all releases.

    users: number of users who will be asked
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
    """
    question = Question(users, items, epsilon, delta, floor, releases, dropout, colluding, target_error, loss)
    return Plan(question, _ordered([option(name, family, question) for name, family in families().items()]))


def _ordered(options: list[Option]) -> tuple[Option, ...]:
    """Sound ones by error, but first among equals the one that the families prefer; then those that are not."""
    sound = sorted((o for o in options if o.sound), key=lambda o: o.standard_error or 0.0)
    if sound:
        limit = TIE_FACTOR * (sound[0].standard_error or 0.0)
        first = next(o for o in options if o.sound and (o.standard_error or 0.0) <= limit)
        sound = [first, *(o for o in sound if o is not first)]
    return (*sound, *(o for o in options if not o.sound))


def option(name: str, family: Family, q: Question) -> Option:
    """What a family makes of the question, or why it cannot meet it."""
    try:
        mechanism, spent = _within_budget(family, q)
    except FaircountError as refusal:
        return Option(name, False, str(refusal), {})
    target = q.target_error
    error, half = mechanism.expected_errors(q.staying)
    condition = mechanism.condition(mechanism.participants)
    return Option(
        name,
        True,
        _reason(mechanism, condition),
        mechanism.parameters,
        q.epsilon,
        spent,
        error,
        half,
        users_needed(family, q, target) if target is not None else None,
        condition,
        cost(mechanism),
        paper_form_bytes(mechanism) if mechanism.collected is Collected.SUM else None,
        mechanism,
    )


def _within_budget(family: Family, q: Question) -> tuple[FrequencyMechanism, float]:
    """The mechanism and the delta it spends, at most the budget; where rounding overshoots, made for a little less."""
    aim = q
    for _ in range(TRIES):
        made = family(aim)
        spent = made.total_delta()
        if spent <= q.delta:
            return made.mechanism, spent
        aim = replace(aim, delta=aim.delta * 0.99 * min(1.0, q.delta / spent))
    raise RefusedError(f"what it spends, delta = {spent:.3g}, cannot be brought below the budget: allow a larger delta")


def _reason(mechanism: FrequencyMechanism, condition: str | None) -> str:
    trusted = mechanism.collected is Collected.ANSWERS
    who = " for whoever has a server that may see every answer" if trusted else ""
    return f"meets the budget{who}, " + (
        "whatever the answers are" if condition is None else f"provided that {condition}"
    )
