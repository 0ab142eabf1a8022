"""A result as an HTML page that stands alone: no script, no other file, light and dark."""

from collections.abc import Sequence

from faircount.accounting.guarantee import Guarantee, Relation, attacker_certainty
from faircount.core.plain import escape_html
from faircount.core.questions.sums import SumQuestion
from faircount.estimation.english_texts import ResultWords
from faircount.estimation.level_texts import level_words
from faircount.estimation.presentation import OUTSIDE_MARK
from faircount.estimation.question_estimates import QuestionEstimates, decimals_of
from faircount.estimation.sheet_estimates import IF_ALIKE, SHARE, Estimate, is_outside, is_share
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.sheet_texts import SheetWords, sheet_words_of

BAR_WIDTH = 300
BAR_HEIGHT = 22

STYLE = """
:root{color-scheme:light dark;--bar:#8fb8ad;--line:#1d2b28;--soft:#56635f;--rule:#d5dedb}
@media(prefers-color-scheme:dark){:root{--bar:#3f7f70;--line:#eef3f1;--soft:#a9b6b2;--rule:#3a4744}}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem;line-height:1.25;margin:0 0 .3rem}
h2{font-size:1rem;margin:1.6rem 0 .3rem}
p{margin:.4rem 0}.soft{color:var(--soft)}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th{text-align:left;font-weight:600;border-bottom:1px solid var(--rule);padding:.2rem .5rem}
td{padding:.25rem .5rem;vertical-align:middle}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;margin:.6rem 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
svg rect{fill:var(--bar)}svg line{stroke:var(--line);stroke-width:1.5}
@media(max-width:40rem){.bar{display:none}dl{display:block}dd{margin-bottom:.5rem}
table{font-size:.85rem}th,td{padding:.25rem .2rem}td{overflow-wrap:anywhere}
.number{font-size:.8rem}}
@media print{body{margin:0;max-width:none}}
"""


def html_document(language: str, title: str, body: str) -> bytes:
    """A page without scripts, which a browser may not let load anything."""
    # A second line after escaping: labels come from the owner's table, and the page is mailed
    # around and opened from disks, where a script could read other files.
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape_html(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    ).encode()


def result_page(
    result: QuestionnaireResult, confidence: float, covers: str, further: Sequence[str] = ()
) -> bytes:
    """The page of a result: bars with intervals per question, and all that belongs to them.

    further: sections that follow the estimates, in HTML
    """
    sheet_words = sheet_words_of(result)
    words = sheet_words.general
    levels = level_words(words.language)
    found = result.estimates(confidence, covers=covers)
    record = result.record
    title = words.result if record is None else record.question
    parts = [f"<h1>{escape_html(title)}</h1>"]
    if result.simulation:
        parts.append(f"<p><b>{words.simulation}</b></p>")
    if record is not None:
        about = (record.owner, words.open_dates(record), words.people(record))
        parts.append(f"<p class=soft>{escape_html('; '.join(filter(None, about)))}.</p>")
    for question in found:
        if len(found) > 1:
            parts.append(f"<h2>{escape_html(question.title)}</h2>")
        parts.append(_table(question, question.estimates, sheet_words))
        if question.alike:
            parts.append(f"<p>{escape_html(levels.condition)}:</p>")
            parts.append(_table(question, question.alike, sheet_words))
        note = words.sum_note(question)
        parts += [] if note is None else [f"<p class=soft>{escape_html(note)}</p>"]
    notes = [f"{words.intervals}: {words.interval_text(confidence, found[0].coverage)}."]
    if any(question.has_outside for question in found):
        notes.insert(0, f"{words.outside_note}.")
    parts += [f"<p class=soft>{escape_html(note)}</p>" for note in notes]
    parts += further
    warning = words.servers(record) if record is not None and record.one_operator else ""
    parts += _privacy(result.guarantee, words, warning, sheet_words.privacy_lines(result))
    about_levels = levels.lines(result, confidence)
    if about_levels:
        parts.append(f"<h2>{escape_html(levels.title)}</h2>")
        parts += [f"<p>{escape_html(line)}.</p>" for line in about_levels]
    parts.append(f"<h2>{words.reports}</h2>")
    parts.append(f"<p>{escape_html(words.statement(result))}</p>")
    if record is not None:
        parts.append(f"<h2>{words.survey}</h2>")
        parts.append(definition_list(words.record_lines(record)))
    return html_document(words.language, title, "\n".join(parts))


def _privacy(
    guarantee: Guarantee, words: ResultWords, warning: str, scope: Sequence[str]
) -> list[str]:
    """The guarantee: what it means for one person, then in a sentence, then for experts.

    scope: for how many answers it is, where there are several questions
    """
    parts = [f"<h2>{words.privacy}</h2>"]
    if warning:
        parts.append(f"<p><b>{escape_html(warning[:1].upper() + warning[1:])}.</b></p>")
    # The picture of two possible answers is about replacing one by the other.
    if guarantee.void is None and guarantee.relation == Relation.REPLACE_ONE:
        sure = attacker_certainty(guarantee.epsilon) / 100
        parts.append(f"<p>{escape_html(words.certainty(sure))}</p>")
    sentence = words.sentence(guarantee)
    parts.append(f"<p>{escape_html(sentence[:1].upper() + sentence[1:])}</p>")
    parts += [f"<p>{escape_html(line)}.</p>" for line in scope]
    parts.append(f"<p class=soft>{escape_html(words.claim(guarantee))}.</p>")
    again = f"{words.running_again}: {words.repetition}."
    parts.append(f"<p class=soft>{escape_html(again)}</p>")
    return parts


def definition_list(lines: Sequence[tuple[str, str]]) -> str:
    """Labels and texts beside each other."""
    rows = [f"<dt>{escape_html(name)}</dt><dd>{escape_html(text)}</dd>" for name, text in lines]
    return f"<dl>{''.join(rows)}</dl>"


def _table(question: QuestionEstimates, shown: Sequence[Estimate], words: SheetWords) -> str:
    """Estimates of a question, with bars for shares and dots for means."""
    largest = 1e-9
    for row in shown:
        largest = max(largest, row.high, row.estimate) if is_share(row) else largest
    rows = []
    # The condition of weighted estimates stands above their table.
    measure = IF_ALIKE if shown is question.alike else SHARE
    for row in shown:
        mark = f" {OUTSIDE_MARK}" if is_outside(row) else ""
        digits = decimals_of(question, row)
        label = words.answer(question, row) or words.measures[row.measure]
        # Once above all shares among those who answered, and not beside each of them.
        if row.measure != measure and is_share(row) and row.measure != SHARE:
            heading = escape_html(words.measures[row.measure])
            rows.append(f"<tr><th colspan=5 scope=rowgroup>{heading}</th></tr>")
        measure = row.measure
        rows.append(
            f"<tr><td>{escape_html(label)}</td>"
            f"<td class=number>{words.value(row, row.estimate, digits)}</td>"
            f"<td class=number>{words.range(row, digits)}{mark}</td>"
            f"<td class=number>{words.value(row, row.consistent, digits)}</td>"
            f"<td class=bar>{_draw(question, row, largest)}</td></tr>"
        )
    general = words.general
    headings = (
        f"<th>{general.answer}</th><th class=number>{general.estimate}</th>"
        f"<th class=number>{general.interval_heading(question.coverage.confidence)}</th>"
        f"<th class=number>{general.consistent}</th><th class=bar></th>"
    )
    return f"<table><thead><tr>{headings}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _draw(question: QuestionEstimates, row: Estimate, largest: float) -> str:
    """A bar for a share; for the mean of a number a dot within its range."""
    if is_share(row):
        return _bar(row.estimate / largest, row.low / largest, row.high / largest)
    asked = question.question
    if not isinstance(asked, SumQuestion):
        return ""
    reach = float(asked.unit * asked.largest)
    values = (row.estimate, row.low, row.high)
    return _bar(*((value - float(asked.origin)) / reach for value in values), is_dot=True)


def _bar(estimate: float, low: float, high: float, *, is_dot: bool = False) -> str:
    """A bar or a dot with its interval, as shares of the width; decoration, hidden from readers."""
    width = BAR_WIDTH * min(max(estimate, 0.0), 1.0)
    left = BAR_WIDTH * low + 1
    right = BAR_WIDTH * high + 1
    middle = BAR_HEIGHT / 2
    shape = f'<rect x="0" y="3" width="{width:.1f}" height="{BAR_HEIGHT - 6}"/>'
    if is_dot:
        # The line below it is the range of possible answers.
        shape = (
            f'<rect x="0" y="{BAR_HEIGHT - 2}" width="{BAR_WIDTH}" height="1"/>'
            f'<rect x="{width - 4:.1f}" y="{middle - 4}" width="8" height="8" rx="4"/>'
        )
    ends = ""
    for end in (left, right):
        ends += f'<line x1="{end:.1f}" x2="{end:.1f}" y1="6" y2="{BAR_HEIGHT - 6}"/>'
    return (
        f'<svg width="{BAR_WIDTH + 2}" height="{BAR_HEIGHT}" aria-hidden="true">'
        f'{shape}<line x1="{left:.1f}" x2="{right:.1f}" y1="{middle}" y2="{middle}"/>{ends}</svg>'
    )
