"""Sheets of simulated people: plausible answers to any questionnaire."""

import numpy as np

from faircount.core.questions import Questionnaire, Sheet
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.question import Answer, Question
from faircount.core.questions.several_items import SeveralItems

# One person in so many prefers not to say, where a question offers it.
SKIPPING = 12


def draw_sheets(
    questionnaire: Questionnaire, people: int, draw: np.random.Generator
) -> list[Sheet]:
    """Return the answers of so many people."""
    return [_draw_sheet(questionnaire, draw) for _ in range(people)]


def _draw_sheet(questionnaire: Questionnaire, draw: np.random.Generator) -> Sheet:
    sheet: list[Answer] = []
    for number, question in enumerate(questionnaire.questions):
        is_asked = questionnaire.is_asked(number, sheet)
        sheet.append(_draw_answer(question, draw) if is_asked else question.not_applicable)
    return questionnaire.check_sheet(sheet)


def _draw_answer(question: Question, draw: np.random.Generator) -> Answer:
    if question.skip and draw.integers(SKIPPING) == 0:
        return question.check_answer(None)
    if isinstance(question, ChoiceQuestion):
        return _draw_popular(len(question.choices), draw)
    if isinstance(question, SeveralItems):
        return _draw_several(question, draw)
    # A number, or a scale of which the mean is asked: around a third of the way up.
    largest: int = getattr(question, "largest", 1)
    return int(draw.binomial(largest, 1 / 3))


def _draw_popular(items: int, draw: np.random.Generator) -> int:
    """The first answers are more popular than the last, so that there is something to see."""
    weights = 1 / np.arange(1, items + 1)
    return int(draw.choice(items, p=weights / weights.sum()))


def _draw_several(question: SeveralItems, draw: np.random.Generator) -> tuple[int, ...]:
    wanted = 1 / (1.5 + np.arange(len(question.items)) / 2)
    chosen = np.flatnonzero(draw.random(len(question.items)) < wanted)
    return tuple(int(place) for place in chosen[: question.limit])
