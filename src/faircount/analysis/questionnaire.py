"""Several questions about the people of a table, in one release under one guarantee."""

from collections.abc import Sequence
from typing import Any

from faircount.accounting.conditions import ROWS_ARE_PEOPLE
from faircount.analysis.prepare import first_rows
from faircount.analysis.read import ColumnName, NoColumnError, check_rows_are_people, columns
from faircount.analysis.run import charge
from faircount.analysis.run_settings import RUN_NEVERTHELESS
from faircount.analysis.sheets import count_cells
from faircount.core.arguments import explain_arguments
from faircount.core.entropy import Entropy, SeededStream, SystemEntropy
from faircount.core.errors import AnswerError, ParameterError, RefusedError
from faircount.core.questions.form import Form, as_form
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.joint_noise.mechanism import JointNoise
from faircount.planning.questionnaire import JointPlan, make_plan
from faircount.planning.request import privacy_warnings

_EXAMPLE = (
    'fc.questionnaire(frame, [{"kind": "yes", "text": "Would you recommend us?", '
    '"column": "recommend"}], epsilon=1.0)'
)


@explain_arguments(_EXAMPLE)
def questionnaire(
    table: Any,
    questions: Any,
    *,
    epsilon: float,
    user: ColumnName | None = None,
    encoding: str | None = None,
    ledger: Any = None,
    population: str | None = None,
    anyway: bool = False,
    entropy: Entropy | None = None,
) -> QuestionnaireResult:
    """Estimate privately what people answered to several questions; every row is a person.

    The noise of all questions is drawn together, and epsilon holds for all answers of a person. The
    process that runs this sees the answers, as whoever holds the table does anyway.

    table: the path of a CSV file (also .gz) or Parquet file, "-" for standard input, a data frame,
        an Arrow table, or a mapping of lists
    questions: the path of a TOML file, a list of dictionaries with the same fields, or a
        `Questionnaire`
    epsilon: privacy loss of all answers together
    user: the name of a column that identifies people, who must have one row each
    encoding: of a CSV file; UTF-8 by default
    ledger, population: a budget, given by its file (see `LedgerFile`) and the people it belongs to;
        it is charged before noise is drawn, and if it does not suffice the run is refused
    anyway: run even if the error of a question is so large that nothing is learned about it
    entropy: randomness other than the operating system's, for simulations only
    returns: the estimates of every question with intervals, and the guarantee

    >>> staff = {"site": ["North", "South", "East"] * 100, "recommend": ["yes", "no"] * 150}
    >>> questions = [
    ...     {"kind": "one", "text": "Which site?", "items": ["North", "South", "East"],
    ...      "column": "site"},
    ...     {"kind": "yes", "text": "Would you recommend us?", "column": "recommend"},
    ... ]
    >>> result = fc.questionnaire(staff, questions, epsilon=1.0)
    >>> result.guarantee.epsilon
    1.0
    >>> [row.answer for row in result["Which site?"].estimates]
    ['North', 'South', 'East']
    """
    form = as_form(questions, _EXAMPLE)
    source = SystemEntropy() if entropy is None else entropy
    # A NumPy generator is predictable, and would silently protect nobody.
    if not isinstance(source, Entropy):
        raise ParameterError(
            "entropy must be a source of random bytes, such as SeededStream(seed); else leave it "
            "out"
        )
    names: list[ColumnName | None] = []
    for place in form.sources:
        names += place.columns
    found = _read_columns(table, names, form, user, encoding)
    # The plan looks at the questions and the number of people, never at an answer.
    plan = make_plan(form, len(found[0]), epsilon)
    mechanism = plan.mechanism
    # Before the budget is charged: answers that cannot be read must cost nothing.
    cells = count_cells(form, found)
    warnings = check_informative(plan, anyway)
    _rehearse(mechanism)
    facts = {} if isinstance(source, SystemEntropy) else {"simulation": True}
    label = f"questionnaire, {len(form.questionnaire)} questions"
    with charge(ledger, population, source, [mechanism], label):
        noisy = mechanism.release(cells, source)
    return QuestionnaireResult(
        form.questionnaire,
        mechanism,
        mechanism.decode(noisy, mechanism.n),
        mechanism.n,
        facts,
        () if user is not None else (ROWS_ARE_PEOPLE,),
        (*warnings, *privacy_warnings(mechanism.epsilon, 0.0)),
    )


def _read_columns(
    table: Any,
    names: list[ColumnName | None],
    form: Form,
    user: ColumnName | None,
    encoding: str | None,
) -> Sequence[Sequence[Any]]:
    """The columns with the answers; every row must be another person."""
    try:
        if user is None:
            check_rows_are_people(table)
            return columns(table, names, encoding)
        *found, people = columns(table, [*names, user], encoding)
    except NoColumnError as problem:
        texts = {question.text for question in form.questionnaire.questions}
        if problem.name not in texts:
            raise
        raise AnswerError(
            f"{problem}. Without a field column, a question takes the column that is named like "
            "its text: add column to the question"
        ) from None
    _check_one_row_each(people)
    return found


def check_informative(plan: JointPlan, anyway: bool) -> tuple[str, ...]:
    """Refuse questions about which nothing would be learned.

    With `anyway` the warning is returned instead, to be noted with the result.
    """
    if not plan.objection:
        return ()
    warning = f"do not run this: {plan.objection}"
    if not anyway:
        raise RefusedError(f"{warning}. {RUN_NEVERTHELESS}")
    return (warning,)


def _rehearse(mechanism: JointNoise) -> None:
    """Draw and estimate once without the answers: what cannot be computed must cost no budget."""
    noise = mechanism.draw_noise(SeededStream(0))
    QuestionnaireResult(mechanism.questionnaire, mechanism, noise, mechanism.n).estimates()


def _check_one_row_each(people: Sequence[object]) -> None:
    """Refuse a person with several rows: each of them would be protected by its own."""
    if first_rows(people).size < len(people):
        raise AnswerError(
            "several rows have the same user: a questionnaire has one row per person, with all of "
            "their answers"
        )
