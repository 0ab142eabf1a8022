"""A private histogram of one column: every row acts as a user of the full protocol, with real shares.

result = histogram("answers.csv", "city", epsilon=1.0, domain=["Aldmoor", "Brackwater", "Carrow"])
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from faircount.accounting.composition import MEMBERSHIP
from faircount.accounting.guarantee import Guarantee
from faircount.analysis.groups import (
    WEIGHTS,
    GroupedHistogram,
    check_groups_hide,
    check_groups_public,
    combined,
    levels_of,
)
from faircount.analysis.prepare import Prepared, Rules, prepare
from faircount.analysis.read import columns
from faircount.analysis.run import charging, run
from faircount.analysis.terms import AUTO, Planned, Terms, worthwhile
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.estimation.result import Result

Progress = Callable[[int, int], None]
"""Told how many users of how many are done."""


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Result):
    """A result that remembers how its rows were treated; what that assumes is part of its guarantee.

    mechanism, aggregate, included, facts: as in `Result`
    notes:   what a reader must know, one sentence each
    assumed: what the guarantee depends on because of how rows were treated
    asked:   the epsilon and delta that were asked for
    """

    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    asked: tuple[float | None, float | None] = (None, None)

    @property
    def requested(self) -> dict[str, float | None]:
        """The budget that was asked for; the guarantee says what is really spent."""
        return dict(zip(("epsilon", "delta"), self.asked, strict=True))

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first, each with everything that it depends on."""
        return tuple(under(each, self.assumed) for each in super().guarantees)

    def to_dict(self, level: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**super().to_dict(level, covers=covers), "notes": list(self.notes)}


def under(guarantee: Guarantee, assumed: Sequence[str]) -> Guarantee:
    """The guarantee with further conditions."""
    said = [each for each in (guarantee.condition, *assumed) if each is not None]
    return replace(guarantee, condition=" and ".join(said) or None)


def histogram(
    table: Any,
    column: str | None = None,
    *,
    epsilon: float | Mapping[object, float] | None = None,
    delta: float = 1e-6,
    domain: Any = None,
    domain_from_data: bool = False,
    mechanism: str = AUTO,
    floor: int = 0,
    colluding: float = 0.0,
    user: str | None = None,
    missing: str = "refuse",
    outside: str = "refuse",
    other: object | None = None,
    missing_spellings: Sequence[str] = (),
    encoding: str | None = None,
    groups: str | None = None,
    public_groups: bool = False,
    weights: str = "total",
    anyway: bool = False,
    ledger: Any = None,
    population: str | None = None,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
) -> Histogram | GroupedHistogram:
    """Private frequencies of the items in a column of a table; every row acts as a user.

    table: a path of a CSV file (also .gz) or Parquet file, "-" for standard input, a data frame, an Arrow table, a
        mapping of lists; or the answers themselves, as a Series, list or array
    column: the column that holds the answers; not needed where the answers themselves are given
    epsilon: privacy loss of the release; with `groups` a mapping from level to epsilon
    delta: probability with which more than epsilon may be lost
    domain: the public list of items: labels, a number of items, a path or "@FILE" with one item a line, or a
        categorical column or dtype, whose categories then are public
    domain_from_data: take the list from the answers; the guarantee does not cover it
    mechanism: a name, or "auto" for the one that `plan` recommends
    floor: other holders that every item has for sure, known without looking at the answers
    colluding: share of the users who may pool what they know; at least one user always is such an insider
    user: the column that tells people apart; the first row of each person counts
    missing, outside: what becomes of rows without an answer, or with one that is not on the list: "refuse", "drop",
        or "other" for the item named by `other`
    other: the item of the list that such answers count as
    missing_spellings: texts that count as no answer, besides None, blank text, NaN, NaT and NA
    encoding: of a CSV file; UTF-8 if not given
    groups: a column of privacy levels, each run on its own; levels are epsilons, or `epsilon` maps them
    public_groups: declare that it is public who is in which group, which is not protected
    weights: how groups are put together: "total", "vwa" or "uwa"
    anyway: run it although the error would swamp the answers
    ledger, population: a budget, by its file (see `LedgerFile`) and whose it is: charged before anything is drawn, or
        the run is refused
    entropy: randomness other than the operating system's, for simulations only
    progress: told how many users of how many are done
    """
    if groups is not None:
        check_groups_public(column, groups, public_groups)
    names = [column, *(each for each in (user, groups) if each is not None)]
    cells = dict(zip(names, columns(table, names, encoding), strict=True))
    held = prepare(
        cells[column],
        items=domain,
        from_data=domain_from_data,
        users=None if user is None else cells[user],
        rules=Rules(missing, outside, other, tuple(missing_spellings)),
    )
    terms = partial(Terms, delta=delta, mechanism=mechanism, floor=floor, colluding=colluding)
    source = SystemEntropy() if entropy is None else entropy
    count, charge = len(held.domain), partial(charging, ledger, population, source, label=f"{column}: frequencies")
    if groups is not None:
        if weights not in WEIGHTS:
            raise ParameterError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
        levels = levels_of([cells[groups][row] for row in held.kept], _by_level(epsilon))
        check_groups_hide(groups, held.positions, [members for _, members in levels.values()])
        public = replace(held, assumed=(*held.assumed, f"{MEMBERSHIP} (column {groups!r})"))
        surveys = {level: _planned_level(level, terms(each), held, who) for level, (each, who) in levels.items()}
        warnings = worthwhile(list(surveys.values()), count, anyway)
        with charge([each.mechanism for each in surveys.values()]):
            return _grouped(public, surveys, weights, warnings, source, progress)
    if epsilon is None or isinstance(epsilon, Mapping):
        raise ParameterError("give epsilon, one number; several of them need groups=, the column that tells which")
    ready = terms(epsilon).planned(held.positions, count)
    warnings = worthwhile([ready], count, anyway)
    with charge([ready.mechanism]):
        return _one(held, ready, warnings, source, _counting(progress, 0, held.positions.size))


def _by_level(epsilon: float | Mapping[object, float] | None) -> Mapping[object, float] | None:
    if epsilon is None or isinstance(epsilon, Mapping):
        return epsilon
    raise ParameterError("with groups each level has its own epsilon: leave epsilon out, or map levels to numbers")


def _grouped(
    held: Prepared,
    surveys: Mapping[str, Planned],
    weights: str,
    warnings: tuple[str, ...],
    entropy: Entropy,
    progress: Progress | None,
) -> GroupedHistogram:
    """One survey per level, put together."""
    parts, done = {}, 0
    for level, survey in surveys.items():
        parts[level] = _one(held, survey, (), entropy, _counting(progress, done, held.positions.size))
        done += survey.users
    own = {level: surveys[level].terms.cautions(part) for level, part in parts.items()}
    against = (f"privacy level {level!r}: {each}" for level, words in own.items() for each in words)
    return combined(parts, weights, (*held.notes, *warnings, *against))


def _planned_level(level: str, terms: Terms, held: Prepared, members: Ints) -> Planned:
    try:
        return terms.planned(held.positions[members], len(held.domain))
    except FaircountError as problem:
        raise RefusedError(f"privacy level {level!r}: {problem}; merge it with another level") from problem


def _one(
    held: Prepared,
    ready: Planned,
    warnings: tuple[str, ...],
    entropy: Entropy,
    progress: Callable[[int], None] | None,
) -> Histogram:
    """One survey of these users. Encoded answers go in; the labels are put back on what comes out."""
    result = run(ready.positions, ready.mechanism, entropy=entropy, progress=progress)
    labelled = replace(result.mechanism, items=held.domain)
    budget = (ready.terms.epsilon, ready.terms.delta)
    found = Histogram(labelled, result.aggregate, result.included, result.facts, assumed=held.assumed, asked=budget)
    return replace(found, notes=(*held.notes, *warnings, *ready.terms.cautions(found)))


def _counting(progress: Progress | None, before: int, total: int) -> Callable[[int], None] | None:
    return None if progress is None else lambda users: progress(before + users, total)
