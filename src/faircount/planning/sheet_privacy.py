"""The guarantee of a questionnaire, with the shares of epsilon that a plan finds for it."""

from pathlib import Path

from faircount.accounting.guarantee import Relation
from faircount.core.questions import Questionnaire
from faircount.core.questions.form import Form, form_of, read_form
from faircount.core.validation import check_integer, check_positive
from faircount.mechanisms.sheets import SheetMechanism
from faircount.planning.compose import compose as compose_mechanisms
from faircount.planning.forecast import forecast_sheet
from faircount.planning.one_question import JOINT
from faircount.planning.statement import Statement
from faircount.protocol import SERVERS

DEFAULT_USERS = 1000
"""People of a questionnaire unless given; the guarantee does not depend on their number."""


def state_sheets(
    name: str,
    questionnaire: str | Path | Form | Questionnaire,
    epsilon: float,
    delta: float | None = None,
    users: int = DEFAULT_USERS,
    insiders: int = 1,
    dropouts: int = 0,
    releases: int = 1,
) -> Statement:
    """The guarantee of all answers together, at epsilon or, with a delta, at what is spent then.

    questionnaire: the path of a TOML file, or the questions
    epsilon: what the noise of every release is made for
    """
    form = _read(questionnaire)
    count = check_integer("releases", releases, least=1)
    people = check_integer("users", users, least=2)
    loss = check_positive("epsilon", epsilon)
    # The topology does not matter: the noise, and so the guarantee, is the same in all that run it.
    planned = forecast_sheet(
        form,
        users=people,
        epsilon=loss,
        topology=SERVERS,
        minimum=people - check_integer("dropouts", dropouts, most=people - 2),
        insiders=check_integer("insiders", insiders),
        proven=name == JOINT,
    )
    made = planned.mechanism
    assert isinstance(made, SheetMechanism)  # noqa: S101 - `forecast_sheet` makes it
    # Without a delta the question is what is lost for sure; with one, losses compose.
    wanted = None if delta is not None else count * loss
    stated = compose_mechanisms(*[made] * count, epsilon=wanted, delta=delta)
    # Several releases are composed for replaced answers only.
    zero = None
    if count == 1:
        zero = made.guarantee(epsilon=stated.epsilon, relation=Relation.ZERO_OUT).delta
    numbers = range(len(form.questionnaire))
    more = {
        "questions": len(form.questionnaire),
        "cells": form.questionnaire.cells,
        "moves": sum(question.moves for question in form.questionnaire.questions),
        "single_answer_epsilon": max(made.answer_epsilon(number) for number in numbers),
    }
    return Statement(
        name,
        stated.epsilon,
        stated.delta,
        zero,
        stated.adversary,
        stated.condition,
        count,
        more=more,
        is_bound=True,
    )


def _read(questionnaire: str | Path | Form | Questionnaire) -> Form:
    if isinstance(questionnaire, Form):
        return questionnaire
    if isinstance(questionnaire, Questionnaire):
        return form_of(questionnaire)
    return read_form(Path(questionnaire))
