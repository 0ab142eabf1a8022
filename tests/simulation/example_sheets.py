"""The answers of the participants in surveys that tests run: everybody has other ones."""

from faircount.core.questions import Question, Questionnaire, Sheet
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.question import Answer
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion


def example_sheet(questionnaire: Questionnaire, user: int) -> Sheet:
    """Return one participant's answers; with an item per participant nobody shares the first."""
    return tuple(_answer(question, user) for question in questionnaire.questions)


def _answer(question: Question, user: int) -> Answer:
    if isinstance(question, ChoiceQuestion):
        return user % len(question.answers)
    if isinstance(question, SeveralItems):
        return (user % len(question.items),)
    assert isinstance(question, SumQuestion)
    # Every third participant prefers not to say, where that is possible.
    if question.may_be_missing and user % 3 == 2:
        return None
    return user % (question.largest + 1)
