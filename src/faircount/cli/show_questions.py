"""How the result of a survey or a questionnaire looks in a terminal: a table per question."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from faircount.cli.show import BAR_WIDTH, cell, make_definitions, make_table, print_notes

if TYPE_CHECKING:
    from faircount.estimation.question_estimates import QuestionEstimates
    from faircount.estimation.sheet_estimates import Estimate
    from faircount.estimation.sheet_result import QuestionnaireResult
    from faircount.estimation.sheet_texts import SheetWords


def show_questions(
    out: Console, result: "QuestionnaireResult", confidence: float, covers: str = "users"
) -> None:
    """Show a result in the language of its survey; that of a table is shown in English."""
    from faircount.estimation.sheet_texts import sheet_words_of

    words = sheet_words_of(result)
    if result.simulation:
        out.print(f"[bold]{words.general.simulation}[/bold]\n")
    if result.record is not None:
        out.print(make_definitions(words.general.record_lines(result.record)))
        out.print()
    # The record of a survey begins with its title.
    title = result.questionnaire.title if result.record is None else ""
    heading = f"{title}: {words.heading(result)}" if title else words.heading(result)
    out.print(heading, markup=False)
    found = result.estimates(confidence, covers=covers)
    out.print()
    # A survey with one question has named it above.
    print_questions(out, found, words, is_named=len(found) > 1 or result.record is None)
    print_notes(out, result.notes)
    _show_statements(out, result, found, words)


def print_questions(
    out: Console,
    found: Sequence["QuestionEstimates"],
    words: "SheetWords",
    *,
    is_named: bool,
    truth: Mapping[int, Sequence[float]] | None = None,
) -> None:
    """Print a table per question, and below them what explains estimates that look wrong.

    truth: the true values of the estimates by number of the question, where they are known
    """
    from faircount.estimation.level_texts import level_words

    for place, question in enumerate(found):
        if place:
            out.print()
        if is_named:
            out.print(cell(question.title), style="bold")
        known = (truth or {}).get(question.number)
        _print_rows(out, question, question.estimates, words, known)
        if question.alike:
            # The condition stands right above the estimates that need it.
            out.print(f"\n{level_words(words.general.language).condition}:", markup=False)
            _print_rows(out, question, question.alike, words)
    if any(question.has_outside for question in found):
        out.print(f"\n{words.general.outside_note}.", markup=False)
    for note in filter(None, map(words.general.sum_note, found)):
        out.print(f"\n{note}", markup=False)


def _print_rows(
    out: Console,
    question: "QuestionEstimates",
    shown: Sequence["Estimate"],
    words: "SheetWords",
    truth: Sequence[float] | None = None,
) -> None:
    """Print estimate, interval and bar of every answer, and the truth where it is known.

    An estimate outside its interval is marked, and the mark is explained below all tables.
    """
    from faircount.estimation.presentation import OUTSIDE_MARK
    from faircount.estimation.question_estimates import decimals_of
    from faircount.estimation.sheet_estimates import is_outside, is_share

    # Where one row is marked, the others get a space, so that the numbers stay aligned.
    unmarked = " " if question.has_outside else ""
    shows_consistent = question.unusual_sum is not None
    # Means have no bar: their numbers have another scale.
    longest = max([row.estimate for row in shown if is_share(row)], default=0.0)
    item_heading, estimate_heading, *_, consistent_heading = words.general.columns
    confidence = question.coverage.confidence
    headings = [item_heading, estimate_heading, words.general.interval_heading(confidence)]
    headings += [consistent_heading] if shows_consistent else []
    headings += [""] if truth is None else ["truth", ""]
    rows = []
    for place, row in enumerate(shown):
        digits = decimals_of(question, row)
        mark = OUTSIDE_MARK if is_outside(row) else unmarked
        cells = [
            words.label(question, row),
            words.value(row, row.estimate, digits),
            f"{words.range(row, digits)}{mark}",
        ]
        if shows_consistent:
            cells.append(words.value(row, row.consistent, digits))
        if truth is not None:
            # The truth is known of the answers, not of what is derived from them.
            is_known = place < len(truth)
            cells.append(words.value(row, truth[place], digits) if is_known else "")
        share = row.estimate / longest if is_share(row) and longest > 0 else 0.0
        cells.append("█" * max(0, round(BAR_WIDTH * share)))
        rows.append(cells)
    table = make_table(headings, rows, left=(0, len(headings) - 1))
    table.columns[-1].style = "cyan"
    out.print(table)


def _show_statements(
    out: Console,
    result: "QuestionnaireResult",
    found: Sequence["QuestionEstimates"],
    words: "SheetWords",
) -> None:
    """Print what the intervals cover, what the result assumes and what it guarantees."""
    from faircount.core.domain import escape_controls
    from faircount.estimation.level_texts import level_words

    general = words.general
    coverage = found[0].coverage
    out.print(
        f"\n{general.intervals}: {general.interval_text(coverage.confidence, coverage)}.",
        markup=False,
    )
    if result.validity is not None and result.validity.proven:
        out.print(f"{general.reports}: {general.statement(result)}", markup=False)
    else:
        out.print(general.assumption_text(result), markup=False)
    out.print(f"{general.privacy}: {general.sentence(result.guarantee)}", markup=False)
    for line in words.privacy_lines(result):
        out.print(f"{line}.", markup=False)
    lines = level_words(general.language).lines(result, coverage.confidence)
    if lines:
        out.print(f"\n{level_words(general.language).title}", style="bold")
    for line in lines:
        out.print(f"{escape_controls(line)}.", markup=False)
    out.print(f"{general.running_again}: {general.repetition}.", markup=False)
