"""A private histogram of one column: every row acts as a user of the full protocol, with real shares.

result = histogram("answers.csv", "city", epsilon=1.0, domain=["Aldmoor", "Brackwater", "Carrow"])
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from faircount.accounting.composition import MEMBERSHIP
from faircount.accounting.guarantee import Guarantee
from faircount.analysis.groups import WEIGHTS, GroupedHistogram, combined, levels_of
from faircount.analysis.prepare import Prepared, Rules, prepare
from faircount.analysis.read import columns
from faircount.analysis.run import run
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.planning.calibrate import FAMILIES
from faircount.planning.plan import plan
from faircount.planning.question import Question, cautions

AUTO = "auto"
Progress = Callable[[int, int], None]
"""Told how many users of how many are done."""


@dataclass(frozen=True)
class Histogram(Result):
    """A result that remembers how its rows were treated; what that assumes is part of its guarantee."""

    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first, each with everything that it depends on."""
        return tuple(under(each, self.assumed) for each in super().guarantees)

    def to_dict(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**super().to_dict(level), "notes": list(self.notes)}


def under(guarantee: Guarantee, assumed: Sequence[str]) -> Guarantee:
    """The guarantee with further conditions."""
    said = [each for each in (guarantee.condition, *assumed) if each is not None]
    return replace(guarantee, condition=" and ".join(said) or None)


@dataclass(frozen=True)
class Terms:
    """What one group of users runs under."""

    epsilon: float
    delta: float
    mechanism: str = AUTO
    floor: int = 0
    colluding: float = 0.0

    def made(self, users: int, items: int) -> tuple[FrequencyMechanism, tuple[str, ...]]:
        """The mechanism that spends the budget, and a warning if its error would swamp the answers."""
        if self.mechanism == AUTO:
            found = plan(users, items, self.epsilon, self.delta, floor=self.floor, colluding=self.colluding)
            if found.recommended is None or found.recommended.mechanism is None:
                raise RefusedError(found.verdict)
            return found.recommended.mechanism, () if found.worthwhile else (found.verdict,)
        if self.mechanism not in FAMILIES:
            raise ParameterError(f"mechanism must be {AUTO} or one of {', '.join(FAMILIES)}, not {self.mechanism!r}")
        question = Question(users, items, self.epsilon, self.delta, self.floor, colluding=self.colluding)
        try:
            return FAMILIES[self.mechanism](question).mechanism, ()
        except RefusedError as refusal:  # families do not say who they are
            raise RefusedError(f"{self.mechanism}: {refusal}") from refusal

    def cautions(self, result: Result) -> tuple[str, ...]:
        """What speaks against relying on the guarantee: so large an epsilon, or a floor that seems not to hold."""
        return (*cautions(self.epsilon), *_below_floor(result, getattr(result.mechanism, "floor", 0)))


def _below_floor(result: Result, floor: int) -> tuple[str, ...]:
    """Names items whose published interval ends below the floor; it looks at nothing else."""
    if not floor:
        return ()
    most = result.interval(simultaneous=True).high * result.included
    few = ", ".join(str(item) for item, each in zip(result.items, most, strict=True) if round(each) < floor)
    words = f"the guarantee needs at least {floor} holders of every item, which seems not to hold for {few}"
    return (f"{words}: 95% intervals of all items together end below that",) if few else ()


def histogram(
    table: Any,
    column: str,
    *,
    epsilon: float | Mapping[object, float] | None = None,
    delta: float = 1e-6,
    domain: Sequence[object] | int | None = None,
    domain_from_data: bool = False,
    mechanism: str = AUTO,
    floor: int = 0,
    colluding: float = 0.0,
    user: str | None = None,
    missing: str = "refuse",
    outside: str = "refuse",
    other: object | None = None,
    groups: str | None = None,
    weights: str = "total",
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Histogram | GroupedHistogram:
    """Private frequencies of the items in a column of a CSV or Parquet file, a data frame or a mapping of lists.

    `domain` is the public list of items; `mechanism` a name, or "auto" for the one that `plan` recommends. `user` names
    the column that tells people apart (the first row of each counts). `missing` and `outside` say what becomes of
    rows without an item of the list: "refuse", "drop", or "other" for the item named by `other`. `groups` names a
    column of privacy levels, each run on its own and put together with `weights`: the levels are epsilons, or
    `epsilon` maps them to epsilons. Entropy other than the operating system's is for simulations
    only.
    """
    names = [column, *(each for each in (user, groups) if each is not None)]
    cells = dict(zip(names, columns(table, names), strict=True))
    held = prepare(
        cells[column],
        items=domain,
        from_data=domain_from_data,
        users=None if user is None else cells[user],
        rules=Rules(missing, outside, other),
    )
    terms = partial(Terms, delta=delta, mechanism=mechanism, floor=floor, colluding=colluding)
    source = SystemEntropy() if entropy is None else entropy
    if groups is not None:
        levels = levels_of([cells[groups][row] for row in held.kept], _by_level(epsilon))
        return _grouped(held, levels, terms, weights, source, progress)
    if epsilon is None or isinstance(epsilon, Mapping):
        raise ParameterError("give epsilon, one number; several of them need groups=, the column that tells which")
    return _one(held, held.positions, terms(epsilon), source, _counting(progress, 0, held.positions.size))


def _by_level(epsilon: float | Mapping[object, float] | None) -> Mapping[object, float] | None:
    if epsilon is None or isinstance(epsilon, Mapping):
        return epsilon
    raise ParameterError("with groups each level has its own epsilon: leave epsilon out, or map levels to numbers")


def _grouped(
    held: Prepared,
    levels: Mapping[str, tuple[float, Ints]],
    terms: Callable[[float], Terms],
    weights: str,
    entropy: Entropy,
    progress: Progress | None,
) -> GroupedHistogram:
    """One survey per level, put together; that levels are public becomes part of the guarantee."""
    if weights not in WEIGHTS:
        raise ParameterError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    parts, done, public = {}, 0, replace(held, assumed=(*held.assumed, MEMBERSHIP))
    for level, (epsilon, members) in levels.items():
        said = _counting(progress, done, held.positions.size)
        try:
            parts[level] = _one(public, held.positions[members], terms(epsilon), entropy, said)
        except FaircountError as problem:
            raise RefusedError(f"privacy level {level!r}: {problem}; merge it with another level") from problem
        done += members.size
    own = {level: terms(levels[level][0]).cautions(part) for level, part in parts.items()}
    against = (f"privacy level {level!r}: {each}" for level, words in own.items() for each in words)
    return combined(parts, weights, (*held.notes, *against))


def _one(
    held: Prepared, positions: Ints, terms: Terms, entropy: Entropy, progress: Callable[[int], None] | None
) -> Histogram:
    """One survey of these users. Encoded answers go in; the labels are put back on what comes out."""
    made, warnings = terms.made(positions.size, len(held.domain))
    result = run(positions, made, entropy=entropy, progress=progress)
    labelled = replace(result.mechanism, items=held.domain)
    found = Histogram(labelled, result.aggregate, result.included, result.facts, assumed=held.assumed)
    return replace(found, notes=(*held.notes, *warnings, *terms.cautions(found)))


def _counting(progress: Progress | None, before: int, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda users: progress(before + users, total)
