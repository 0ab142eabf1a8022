"""Simulated people answer any questionnaire, and only what they are asked."""

import numpy as np

from faircount.core.questions.form import make_form
from faircount.demo.simulated_answers import draw_sheets

FORM = make_form(
    [
        {"kind": "one", "text": "a", "items": ["x", "y", "z"], "skip": True},
        {"kind": "yes", "text": "b", "only_if": {"question": 1, "items": ["x"]}},
        {"kind": "any", "text": "c", "items": ["x", "y", "z"], "skip": True},
        {"kind": "most", "text": "d", "items": ["w", "x", "y", "z"], "most": 2},
        {"kind": "number", "text": "e", "low": -3, "high": 7.5, "step": 0.5, "skip": True},
        {"kind": "number", "text": "f", "bands": [0, 10, 20, 50]},
        {"kind": "scale", "text": "g", "items": ["1", "2", "3"], "open": "mean"},
        {"kind": "scale", "text": "h", "items": ["1", "2", "3"]},
        {"kind": "table", "text": ["i", "j"], "rows": ["r", "s"], "columns": ["t", "u"]},
    ]
)


def test_all_kinds_get_different_possible_answers() -> None:
    questionnaire = FORM.questionnaire
    sheets = draw_sheets(questionnaire, 300, np.random.default_rng(7))
    for sheet in sheets:
        assert questionnaire.is_valid(questionnaire.encode(sheet))
        assert questionnaire.is_asked(1, sheet) == (sheet[1] != 2)
    for number in range(len(questionnaire)):
        assert len({sheet[number] for sheet in sheets}) >= 2
    assert any(sheet[0] == 3 for sheet in sheets)
