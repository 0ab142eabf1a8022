"""Estimate a private histogram of one column of a table.

    result = histogram("answers.csv", "city", epsilon=1.0, domain=["Aldmoor", "Brackwater"])

Every row acts as a user. Cells become answers in `prepare`, the mechanism is planned in
`run_settings`, and `run` draws the noise; its docstring says when shares are made and when messages
are sent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from faircount.accounting.conditions import ConditionCode, condition_of
from faircount.analysis.groups import (
    DEFAULT_WEIGHTS,
    WEIGHTS,
    GroupedHistogram,
    check_groups_are_mixed,
    check_groups_public,
    combine_groups,
    split_by_level,
)
from faircount.analysis.prepare import Prepared, Rules, prepare
from faircount.analysis.read import ColumnName, check_rows_are_people, columns
from faircount.analysis.run import charge, run
from faircount.analysis.run_settings import AUTO, PlannedSurvey, RunSettings, check_worthwhile
from faircount.core.arguments import explain_arguments
from faircount.core.arrays import Ints
from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError
from faircount.estimation.result import Result

# Called with the number of users done and the number of all users.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False, repr=False)
class Histogram(Result):
    """A result of a table, whose guarantee includes what the treatment of its rows requires.

    mechanism, aggregate, included, facts: as in `Result`
    conditions:  what the guarantee requires because of how rows were treated
    notes:       what a reader must know, one sentence each
    asked:       the epsilon and delta that were asked for
    """

    notes: tuple[str, ...] = ()
    asked: tuple[float | None, float | None] = (None, None)

    @property
    def requested(self) -> dict[str, float | None]:
        """The budget that was asked for; the guarantee says what is really spent."""
        epsilon, delta = self.asked
        return {"epsilon": epsilon, "delta": delta}

    def _describe_route(self) -> str:
        # Whoever analyses a table did not choose how shares travel in memory.
        return ""

    def to_dict(self, confidence: float = 0.95, *, covers: str = "users") -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**super().to_dict(confidence, covers=covers), "notes": list(self.notes)}


@explain_arguments('fc.histogram(frame, "city", epsilon=1.0, domain=cities)')
def histogram(
    table: Any,
    column: ColumnName | None = None,
    *,
    epsilon: float | Mapping[object, float] | None = None,
    delta: float = 1e-6,
    domain: Any = None,
    domain_from_data: bool = False,
    mechanism: str = AUTO,
    floor: int = 0,
    colluding: float = 0.0,
    user: ColumnName | None = None,
    repeated: str = "refuse",
    missing: str = "refuse",
    outside: str | None = None,
    other: object | None = None,
    missing_spellings: str | Sequence[str] = (),
    encoding: str | None = None,
    groups: ColumnName | None = None,
    public_groups: bool = False,
    weights: str | None = None,
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
    domain: the public list of items: labels, a number of items, the path of a file with one item a
        line, or a categorical column or dtype, whose categories then are public. It must not come
        from the answers, as frame["city"].unique() does: no noise hides that an answer is listed
    domain_from_data: take the list from the answers; the guarantee does not cover it
    mechanism: a name, or "auto" for the one that `plan` recommends
    floor: minimum number of other people known to choose each item, without looking at the answers
    colluding: share of the users who may collude; at least one user always counts as an insider
    user: the name of the column that identifies people, who are counted once each
    repeated: what to do if rows of one person hold different answers: "refuse", or "first" to
        count the first row
    missing, outside: what to do with rows without an answer, or with one that is not on the list:
        "refuse", "drop", or "other" for the item named by `other`; for answers that are not on the
        list "other" is the default where `other` is given
    other: the item of the list that such answers count as
    missing_spellings: texts that count as no answer, besides None, blank text, NaN, NaT and NA
    encoding: of a CSV file; UTF-8 by default
    groups: the name of a column of privacy levels, each surveyed on its own; levels are epsilons,
        or `epsilon` maps them. Estimates weight every user the same, whatever the groups answer
    public_groups: declare that it is public who is in which group, which is not protected
    weights: weights of the estimate beside (`if_alike`), which assumes that the groups answer
        alike: "total" (the default), "vwa", "owa", or "uwa" for none. "cpa" runs one survey of
        everybody at the smallest epsilon instead
    anyway: run even if the error is so large that nothing is learned
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
    names = _column_names(column, user, groups)
    _check_users_are_no_answers(table, column, user)
    # Before the table is read: the refusal must not depend on the answers.
    weights = _check_weights(weights, groups)
    if groups is not None:
        check_groups_public(column, groups, public_groups)
    if user is None:
        check_rows_are_people(table)
    cells = dict(zip(names, columns(table, names, encoding), strict=True))
    prepared = prepare(
        cells[column],
        items=domain,
        from_data=domain_from_data,
        users=None if user is None else cells[user],
        rules=Rules(missing, outside, other, missing_spellings, repeated),
    )
    make_settings = partial(
        RunSettings, delta=delta, mechanism=mechanism, floor=floor, colluding=colluding
    )
    items = len(prepared.domain)
    source = SystemEntropy() if entropy is None else entropy
    # Whatever can be refused is refused before the `with`, which charges the budget. The label is
    # what readers of the ledger see: it names the column, if it has a name, and no answer.
    asked = column if column is not None else getattr(table, "name", None)
    label = "frequencies" if asked is None else f"{asked}: frequencies"
    charged = partial(charge, ledger, population, source, label=label)

    if groups is None:
        if epsilon is None or isinstance(epsilon, Mapping):
            raise ParameterError(
                "give epsilon, such as epsilon=1.0; several values need groups=, the column that "
                "tells which applies"
            )
        # Planned from the number of users and items, never from what they answered: a choice that
        # depends on answers would tell about them.
        survey = make_settings(epsilon).plan(prepared.positions, items)
        warnings = check_worthwhile([survey], items, anyway)
        with charged([survey.mechanism]):
            return _run_survey(prepared, survey, warnings, source, progress)

    members_of = _split([cells[groups][row] for row in prepared.kept.tolist()], epsilon)
    # Sizes of groups, or the smallest level that occurs, are published exactly, so the guarantee
    # holds only if they are public anyway.
    membership = condition_of(ConditionCode.PUBLIC_GROUPS_BY, column=str(groups))
    prepared = replace(prepared, conditions=(*prepared.conditions, membership))
    if weights == "cpa":
        # Whoever was promised the least loss gets it, because all are in one release.
        strictest = min(level_epsilon for level_epsilon, _ in members_of.values())
        survey = make_settings(strictest).plan(prepared.positions, items)
        warnings = (_EVERYBODY_ALIKE, *check_worthwhile([survey], items, anyway))
        with charged([survey.mechanism]):
            return _run_survey(prepared, survey, warnings, source, progress)

    # After rows were left out, because the groups that remain are the ones that are published.
    check_groups_are_mixed(
        groups, prepared.positions, [members for _, members in members_of.values()]
    )
    surveys = _plan_groups(prepared, members_of, make_settings)
    warnings = check_worthwhile(list(surveys.values()), items, anyway)
    with charged([survey.mechanism for survey in surveys.values()]):
        return _run_groups(prepared, surveys, weights, warnings, source, progress)


_EVERYBODY_ALIKE = "everybody has the smallest epsilon of all groups, in one survey (cpa)"


def _column_names(
    column: ColumnName | None, user: ColumnName | None, groups: ColumnName | None
) -> list[ColumnName | None]:
    """The columns to read; a column itself in place of its name is refused."""
    for argument, name in (("column", column), ("user", user), ("groups", groups)):
        try:
            hash(name)
        except TypeError:
            raise ParameterError(
                f"{argument} must be the name of a column, as in {argument}='id', not the column "
                "itself"
            ) from None
    return [column, *(name for name in (user, groups) if name is not None)]


def _check_users_are_no_answers(
    table: Any, column: ColumnName | None, user: ColumnName | None
) -> None:
    """Refuse the answers as the column of people: every item would count one of its holders."""
    # A Series knows its own name, so that the name of its column may be left out.
    answers = getattr(table, "name", None) if column is None else column
    if user is not None and user == answers:
        raise ParameterError(
            f"the column {user!r} cannot be the answers and the people: name the column that "
            "identifies people with --user (user= in Python), or leave it out if every row is "
            "another person"
        )


def _check_weights(weights: str | None, groups: ColumnName | None) -> str:
    """The weights asked for, or the default; refused where nothing is weighted."""
    if weights is not None and weights not in WEIGHTS:
        raise ParameterError(f"weights must be one of {', '.join(WEIGHTS)}, not {weights!r}")
    if weights is not None and groups is None:
        raise ParameterError(
            "weights combine groups: name their column with --groups (groups= in Python), or leave "
            "weights out"
        )
    return weights or DEFAULT_WEIGHTS


def _split(
    levels: Sequence[object], epsilon: float | Mapping[Any, float] | None
) -> dict[str, tuple[float, Ints]]:
    """Epsilon and members of every privacy level."""
    if epsilon is not None and not isinstance(epsilon, Mapping):
        raise ParameterError(
            "with groups each level has its own epsilon: leave epsilon out, or map levels to "
            "numbers"
        )
    return split_by_level(levels, epsilon)


def _plan_groups(
    prepared: Prepared,
    members_of: Mapping[str, tuple[float, Ints]],
    make_settings: Callable[[float], RunSettings],
) -> dict[str, PlannedSurvey]:
    """Plan one survey for every privacy level."""
    surveys = {}
    for level, (level_epsilon, members) in members_of.items():
        try:
            surveys[level] = make_settings(level_epsilon).plan(
                prepared.positions[members], len(prepared.domain)
            )
        # The level is named because an error about five users, in a table of thousands, would not
        # say which of them it means.
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
        cautions = survey.settings.warnings_for(results[level])
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
        conditions=prepared.conditions,
        asked=(survey.settings.epsilon, survey.settings.delta),
    )
    return replace(made, notes=(*prepared.notes, *warnings, *survey.settings.warnings_for(made)))
