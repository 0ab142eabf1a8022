"""Forged reports are refused by both servers' check, whatever the questions are."""

from typing import Any

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.questions.form import make_form
from faircount.demo.invalid_reports import invalid_kinds, valid_bits
from faircount.demo.questions import working_here
from faircount.mechanisms.joint_noise.mechanism import split_epsilon
from faircount.mechanisms.server_sheets import ServerSheets
from faircount.protocol.topologies.two_servers.proofs import (
    ReportLayout,
    prove,
    query_at,
    query_point,
)
from faircount.protocol.topologies.two_servers.reports import report_layout_of
from faircount.sharing.field import from_signed, uniform

ONE: dict[str, Any] = {"kind": "one", "text": "a", "items": ["x", "y", "z"]}
YES: dict[str, Any] = {"kind": "yes", "text": "b"}
ANY: dict[str, Any] = {"kind": "any", "text": "c", "items": ["x", "y", "z"]}
MOST: dict[str, Any] = {"kind": "most", "text": "d", "items": list("wxyz"), "most": 2}
NUMBER: dict[str, Any] = {"kind": "number", "text": "e", "low": 0, "high": 10}
SHEETS: dict[str, list[dict[str, Any]]] = {
    "one question": [ONE],
    "one bit": [YES],
    "without constraints": [YES, ANY, NUMBER],
    "with skips": [{**ANY, "skip": True}, {**NUMBER, "skip": True}, {**MOST, "skip": True}],
    "most first": [MOST, NUMBER, ONE, {**MOST, "most": 1}],
}


def layout_of(fields: list[dict[str, Any]]) -> ReportLayout:
    questions = make_form(fields).questionnaire
    groups = split_epsilon(1.0, [range(len(questions))])
    mechanism = ServerSheets(questionnaire=questions, groups=groups, epsilon=1.0, users=50)
    layout = report_layout_of(mechanism)
    assert layout is not None
    return layout


def is_accepted(layout: ReportLayout, row: Any) -> bool:
    """Whether two servers, one of which holds all of it, accept a report."""
    query = query_at(layout, query_point(layout, bytes(32)))
    shares = query.verifier_shares(np.array([row]))
    return bool(query.accepts(shares, np.zeros_like(shares))[0])


@pytest.mark.parametrize("name", SHEETS)
def test_every_forgery_is_refused_and_a_valid_sheet_is_not(name: str) -> None:
    layout = layout_of(SHEETS[name])
    entropy = SeededStream(3)
    blind = uniform(layout.q, layout.degree, entropy)
    honest = prove(layout, from_signed(valid_bits(layout), layout.q), blind)
    assert is_accepted(layout, honest)
    for kind, forge in invalid_kinds(layout).items():
        assert not is_accepted(layout, forge(layout, entropy)), kind


def test_the_demonstration_has_a_liar_for_every_kind_of_question() -> None:
    questions = working_here().questionnaire
    groups = split_epsilon(1.0, [range(len(questions))])
    mechanism = ServerSheets(questionnaire=questions, groups=groups, epsilon=1.0, users=50)
    layout = report_layout_of(mechanism)
    assert layout is not None
    kinds = invalid_kinds(layout)
    assert {"more ticks than are allowed", "a number above its range"} <= set(kinds)
    assert "a number without an answer" not in kinds
