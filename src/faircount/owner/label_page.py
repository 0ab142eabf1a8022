"""The privacy label as a page that participants read."""

import math
from typing import Any

from faircount.accounting.conditions import Condition
from faircount.accounting.guarantee import format_delta, format_rounded_up
from faircount.core.plain import escape_html
from faircount.estimation.result_texts import words_in
from faircount.owner.invitation_texts import printed_words
from faircount.owner.label_texts import RISKS, UNPROVEN, LabelWords, label_words
from faircount.owner.result_page import definition_list, html_document

ANY_NUMBER = "any number"
"""Participants who may collude, where the servers' noise protects against all of them."""


def label_page(content: dict[str, Any], condition: Condition | None, language: str) -> bytes:
    """The label as participants read it.

    condition: what the weakest of its guarantees depends on
    """
    words = label_words(language)
    survey = content["survey"]
    title, questions = _texts_in(survey, language)
    parts = [
        f"<p class=soft>{words.title}</p>",
        f"<h1>{escape_html(title)}</h1>",
        definition_list(
            [
                (words.asked_by, survey["owner"] or words.unknown),
                (words.purpose, survey["purpose"] or words.unknown),
                (words.contact, survey["contact"] or words.unknown),
            ]
        ),
        *_list_questions(questions, words),
        *_protection(content, words, language),
        f"<h2>{words.sees}</h2>",
        *_who_sees(content, condition, words),
        f"<h2>{words.published}</h2>",
        *_what_is_published(content, words),
        f"<h2>{words.budget}</h2>",
        _paragraph(_describe_budget(content["budget"], words)),
        f"<h2>{words.open_risks}</h2>",
    ]
    names = RISKS if content["mechanisms"][0]["proven_reports"] else (UNPROVEN, *RISKS)
    risks = "".join(f"<li>{escape_html(words.risks[name])}</li>" for name in names)
    parts.append(f"<ul>{risks}</ul>")
    parts.append(f"<h2>{words.checked}</h2>")
    checked = words.checked_text.format(
        version=content["software"]["version"], digest=survey["parameters_digest"]
    )
    parts.append(f'<p class=soft style="overflow-wrap:anywhere">{escape_html(checked)}</p>')
    return html_document(language, f"{words.title}: {title}", "\n".join(parts))


def _texts_in(survey: dict[str, Any], language: str) -> tuple[str, list[str]]:
    """The title and the questions in this language, if the owner has translated them."""
    texts = survey["translations"].get(language, survey)
    questions = []
    for question in texts["questions"]:
        text = question["text"]
        # A table asks for its rows and its columns.
        questions.append(text if isinstance(text, str) else " / ".join(text))
    return texts["title"] or questions[0], questions


def _list_questions(questions: list[str], words: LabelWords) -> list[str]:
    if len(questions) == 1:
        return []
    entries = "".join(f"<li>{escape_html(text)}</li>" for text in questions)
    return [f"<h2>{words.questions}</h2>", f"<ol>{entries}</ol>"]


def _protection(content: dict[str, Any], words: LabelWords, language: str) -> list[str]:
    promise = content["promise"]
    epsilon = words.number(format_rounded_up(promise["epsilon"], 4))
    delta = words.number(format_delta(promise["delta"]))
    # The heading already asks how the answer is protected.
    _, _, sentence = printed_words(language).promise(promise["epsilon"]).partition(": ")
    parts = [
        f"<h2>{words.protection}</h2>",
        _paragraph(sentence[:1].upper() + sentence[1:]),
    ]
    if promise["delta"]:
        parts.append(_paragraph(words.exception.format(delta=words.chance(promise["delta"]))))
    loss = words.loss_text.format(epsilon=epsilon, delta=delta)
    mechanism = content["mechanisms"][0]["name"]
    noise = words.noise_text.format(mechanism=mechanism, topology=content["model"]["topology"])
    several = len(content["survey"]["questions"]) > 1
    unit = words.unit_text_several if several else words.unit_text
    lines = [(words.loss, loss), (words.unit, unit)]
    if several:
        single = []
        for group in content["single_answer"]:
            spent = words.number(format_rounded_up(group["epsilon"], 4))
            numbers = ", ".join(map(str, group["questions"]))
            single.append(words.single_text.format(epsilon=spent, questions=numbers))
        lines.append((words.single, "; ".join(single)))
    parts.append(definition_list([*lines, (words.noise, noise)]))
    return parts


def _who_sees(content: dict[str, Any], condition: Condition | None, words: LabelWords) -> list[str]:
    servers = content["model"]["servers"]
    first, second = (server["operator"] for server in servers)
    parts = []
    # First and in bold: with one operator the sentence about two that do not collude is empty.
    if content["model"]["one_operator"]:
        parts.append(f"<p><b>{escape_html(words.one_operator)}</b></p>")
    else:
        operators = {"first": first or words.unknown, "second": second or words.unknown}
        parts.append(_paragraph(words.sees_text.format(**operators)))
    keys = [(server["operator"] or words.unknown, server["fingerprint"]) for server in servers]
    parts.append(_paragraph(words.operator_keys))
    parts.append(definition_list(keys))
    insiders = content["model"]["colluding_participants_covered"]
    sentence = words.any_insiders if insiders == ANY_NUMBER else words.insiders
    parts.append(_paragraph(sentence.format(insiders=insiders)))
    if condition is not None:
        text = words_in(words.language).condition(condition)
        # After the colon a German sentence begins with a capital letter.
        if words.condition.endswith(":"):
            text = text[:1].upper() + text[1:]
        parts.append(_paragraph(f"{words.condition} {text}."))
    return parts


def _what_is_published(content: dict[str, Any], words: LabelWords) -> list[str]:
    survey = content["survey"]
    # Without a list of answers there are several questions, or one of another kind.
    text = words.published_text if "items" in survey else words.published_text_several
    sentence = text.format(
        items=len(survey.get("items", ())),
        questions=len(survey["questions"]),
        minimum=survey["fewest_responses"],
        users=survey["most_participants"],
    )
    parts = [_paragraph(sentence)]
    if content["release"]["published"]:
        parts.append(_paragraph(words.counted.format(counted=content["release"]["counted"])))
    if content["mechanisms"][0]["proven_reports"]:
        proofs = words.proofs if "items" in survey else words.proofs_several
        parts.append(_paragraph(proofs))
    return parts


def _describe_budget(budget: dict[str, Any], words: LabelWords) -> str:
    numbers = {
        "total": words.number(f"{budget['epsilon']:.4g}"),
        "spent": words.number(format_rounded_up(budget["spent"]["epsilon"], 4)),
        # Rounded down: no more is left than this.
        "left": words.number(f"{math.floor(budget['left']['epsilon'] * 1000) / 1000:g}"),
    }
    if budget["population"] is None:
        return words.own_budget.format(**numbers)
    return words.budget_text.format(
        population=budget["population"], surveys=budget["surveys"], **numbers
    )


def _paragraph(text: str) -> str:
    return f"<p>{escape_html(text)}</p>"
