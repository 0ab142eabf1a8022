"""Questions of several kinds about the same people, as bits, constraints and cells.

Everything here is whole numbers and follows from the questions alone, so that two programs that
read the same questions agree on every bit.
"""

from faircount.core.questions.blocks import Block, BlockKind, Constraint
from faircount.core.questions.choices import Bands, OneOf, ScaleCounts, Table, YesNo
from faircount.core.questions.question import Branch, Question
from faircount.core.questions.questionnaire import QuestionGroup, Questionnaire, Sheet
from faircount.core.questions.several_items import AnyOf, MostOf
from faircount.core.questions.sums import Number, ScaleMean
from faircount.core.questions.translations import TranslatedQuestion, Translation

__all__ = [
    "AnyOf",
    "Bands",
    "Block",
    "BlockKind",
    "Branch",
    "Constraint",
    "MostOf",
    "Number",
    "OneOf",
    "Question",
    "QuestionGroup",
    "Questionnaire",
    "ScaleCounts",
    "ScaleMean",
    "Sheet",
    "Table",
    "TranslatedQuestion",
    "Translation",
    "YesNo",
]
