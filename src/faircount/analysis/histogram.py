"""Estimate a private histogram of one column of a table.

    result = histogram("answers.csv", "city", epsilon=1.0, domain=["Aldmoor", "Brackwater"])

Every row acts as a user of the full protocol, and secret shares are really made. Cells become
answers in `prepare`, the mechanism is planned in `terms`, and `run` draws the noise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from faircount.accounting.conditions import AssumptionCode, Condition, assume, joint_condition
from faircount.accounting.guarantee import Guarantee
from faircount.analysis.groups import (
    WEIGHTS,
    GroupedHistogram,
    check_groups_are_mixed,
    check_groups_public,
    combine_groups,
    split_by_level,
)
from faircount.analysis.prepare import Prepared, Rules, prepare
from faircount.analysis.read import columns
from faircount.analysis.run import charge, run
from faircount.analysis.terms import AUTO, PlannedSurvey, Terms, check_worthwhile
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.estimation.result import Result

# Called with the number of users done and the number of all users.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Result):
    """A result of a table, whose guarantee includes what the treatment of its rows assumes.

    mechanism, aggregate, included, facts: as in `Result`
    notes:       what a reader must know, one sentence each
    assumptions: conditions of the guarantee that follow from how rows were treated
    asked:       the epsilon and delta that were asked for
    """

    notes: tuple[str, ...] = ()
    assumptions: tuple[Condition, ...] = ()
    asked: tuple[float | None, float | None] = (None, None)

    @property
    def requested(self) -> dict[str, float | None]:
        """The budget that was asked for; the guarantee says what is really spent."""
        epsilon, delta = self.asked
        return {"epsilon": epsilon, "delta": delta}

    @cached_property
    def guarantees(self) -> tuple[Guarantee, ...]:
        """One guarantee per adversary, the weakest first, each with all its conditions."""
        return tuple(add_conditions(stated, self.assumptions) for stated in super().guarantees)

    def to_dict(self, level: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**super().to_dict(level, covers=covers), "notes": list(self.notes)}


def add_conditions(guarantee: Guarantee, assumptions: Sequence[Condition]) -> Guarantee:
    """The guarantee with further conditions."""
    return replace(guarantee, condition=joint_condition((guarantee.condition, *assumptions)))


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
    """Estimate privately how often each item occurs in a column; every row acts as a user.

    table: the path of a CSV file (also .gz) or Parquet file, "-" for standard input, a data frame,
        an Arrow table, a mapping of lists; or the answers themselves, as a Series, list or array
    column: the column that holds the answers; not needed if the answers themselves are given
    epsilon: privacy loss of the release; with `groups` a mapping from level to epsilon
    delta: probability that the privacy loss exceeds epsilon
    domain: the public list of items: labels, a number of items, a path or "@FILE" with one item a
        line, or a categorical column or dtype, whose categories then are public
    domain_from_data: take the list from the answers; the guarantee does not cover it
    mechanism: a name, or "auto" for the one that `plan` recommends
    floor: minimum number of other people known to choose each item, without looking at the answers
    colluding: share of the users who may collude; at least one user always counts as an insider
    user: the column that identifies people; only the first row of each person counts
    missing, outside: what to do with rows without an answer, or with one that is not on the list:
        "refuse", "drop", or "other" for the item named by `other`
    other: the item of the list that such answers count as
    missing_spellings: texts that count as no answer, besides None, blank text, NaN, NaT and NA
    encoding: of a CSV file; UTF-8 by default
    groups: a column of privacy levels, each surveyed on its own; levels are epsilons, or `epsilon`
        maps them
    public_groups: declare that it is public who is in which group, which is not protected
    weights: how groups are combined: "total", "vwa" or "uwa"
    anyway: run even if the error exceeds the average frequency
    ledger, population: a budget, given by its file (see `LedgerFile`) and the people it belongs to;
        it is charged before noise is drawn, and if it does not suffice the run is refused
    entropy: randomness other than the operating system's, for simulations only
    progress: called with the number of users done and the number of all users
    returns: estimates with intervals and the guarantee

    >>> answers = ["yes"] * 260 + ["no"] * 140
    >>> result = fc.histogram(answers, domain=["yes", "no"], epsilon=1.0)
    >>> result.items
    ('yes', 'no')
    >>> result.guarantee.epsilon
    1.0
    """
    # Before the table is read: the refusal must not depend on the answers.
    if groups is not None:
        check_groups_public(column, groups, public_groups)
    names = [column]
    if user is not None:
        names.append(user)
    if groups is not None:
        names.append(groups)
    cells = dict(zip(names, columns(table, names, encoding), strict=True))
    prepared = prepare(
        cells[column],
        items=domain,
        from_data=domain_from_data,
        users=None if user is None else cells[user],
        rules=Rules(missing, outside, other, tuple(missing_spellings)),
    )
    make_terms = partial(Terms, delta=delta, mechanism=mechanism, floor=floor, colluding=colluding)
    items = len(prepared.domain)
    source = SystemEntropy() if entropy is None else entropy
    # Whatever can be refused is refused before the `with`, which charges the budget. The label is
    # what readers of the ledger see: it names the column and no answer.
    charged = partial(charge, ledger, population, source, label=f"{column}: frequencies")

    if groups is None:
        if epsilon is None or isinstance(epsilon, Mapping):
            raise ParameterError(
                "give epsilon, one number; several of them need groups=, the column that tells "
                "which applies"
            )
        survey = make_terms(epsilon).plan(prepared.positions, items)
        warnings = check_worthwhile([survey], items, anyway)
        with charged([survey.mechanism]):
            return _run_survey(prepared, survey, warnings, source, progress)

    if weights not in WEIGHTS:
        raise ParameterError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    levels = [cells[groups][row] for row in prepared.kept.tolist()]
    surveys = _plan_groups(prepared, groups, levels, epsilon, make_terms)
    warnings = check_worthwhile(list(surveys.values()), items, anyway)
    # Sizes of groups are published exactly, so the guarantee holds only if they are public anyway.
    membership = assume(AssumptionCode.PUBLIC_GROUPS_BY, column=groups)
    prepared = replace(prepared, assumptions=(*prepared.assumptions, membership))
    with charged([survey.mechanism for survey in surveys.values()]):
        return _run_groups(prepared, surveys, weights, warnings, source, progress)


def _plan_groups(
    prepared: Prepared,
    column: str,
    levels: Sequence[object],
    epsilon: float | Mapping[object, float] | None,
    make_terms: Callable[[float], Terms],
) -> dict[str, PlannedSurvey]:
    """Plan one survey for every privacy level."""
    if epsilon is not None and not isinstance(epsilon, Mapping):
        raise ParameterError(
            "with groups each level has its own epsilon: leave epsilon out, or map levels to "
            "numbers"
        )
    members_of = split_by_level(levels, epsilon)
    # After rows were left out, because the groups that remain are the ones that are published.
    check_groups_are_mixed(
        column, prepared.positions, [members for _, members in members_of.values()]
    )
    surveys = {}
    for level, (level_epsilon, members) in members_of.items():
        try:
            surveys[level] = make_terms(level_epsilon).plan(
                prepared.positions[members], len(prepared.domain)
            )
        except FaircountError as problem:
            raise RefusedError(
                f"privacy level {level!r}: {problem}; merge it with another level"
            ) from problem
    return surveys


def _run_groups(
    prepared: Prepared,
    surveys: Mapping[str, PlannedSurvey],
    weights: str,
    warnings: tuple[str, ...],
    entropy: Entropy,
    progress: Progress | None,
) -> GroupedHistogram:
    """Run one survey per level and combine the results."""
    results = {}
    notes = [*prepared.notes, *warnings]
    done = 0
    for level, survey in surveys.items():
        results[level] = _run_survey(prepared, survey, (), entropy, progress, done)
        done += survey.users
        cautions = survey.terms.cautions(results[level])
        notes += [f"privacy level {level!r}: {caution}" for caution in cautions]
    return combine_groups(results, weights, tuple(notes))


def _run_survey(
    prepared: Prepared,
    survey: PlannedSurvey,
    warnings: tuple[str, ...],
    entropy: Entropy,
    progress: Progress | None,
    done_before: int = 0,
) -> Histogram:
    """Run the survey of one group, of which `done_before` users of other groups are done."""

    def report(users: int) -> None:
        if progress is not None:
            progress(done_before + users, prepared.positions.size)

    # The mechanism runs on positions; the labels of the items are attached to its result.
    result = run(survey.positions, survey.mechanism, entropy=entropy, progress=report)
    made = Histogram(
        replace(result.mechanism, items=prepared.domain),
        result.aggregate,
        result.included,
        result.facts,
        assumptions=prepared.assumptions,
        asked=(survey.terms.epsilon, survey.terms.delta),
    )
    return replace(made, notes=(*prepared.notes, *warnings, *survey.terms.cautions(made)))
