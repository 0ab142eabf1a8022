"""Known answers of proven reports: rows, the question, what both servers answer, and what they decide."""

from typing import Any

import numpy as np
from basics import Case, Listed, secret
from surveys import proven_surveys

from faircount.core.arrays import Residues
from faircount.mechanisms.verified import proves_reports
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers.reports import Release, form_of, question_of
from faircount.protocol.topologies.two_servers.validity import Question, ReportForm, point_of, prove
from faircount.protocol.wire.digests import bitmap, labelled
from faircount.sharing.expand import expand
from faircount.sharing.field import subtract
from faircount.sharing.keys import derive_key
from faircount.sharing.packing import pack
from faircount.testing.invalid_reports import INVALID

VALUES = secret(104), secret(103)
"""v1 and v2, behind the commitments of the parameters."""


def _form(params: SurveyParameters) -> ReportForm:
    found = form_of(params.mechanism)
    assert found is not None  # noqa: S101 - both surveys are proven
    return found


def _judged(params: SurveyParameters, row: Residues, number: int) -> Case:
    """A row split with key `number`: shares, answers and decision."""
    form = _form(params)
    asked: Question = question_of(params, form, VALUES)
    second = expand(secret(number), form.q, form.width)
    first = subtract(row, second, form.q)
    answers = [asked.answers(each[np.newaxis]) for each in (first, second)]
    return {
        "row": row.tolist(),
        "key": secret(number),
        "share": pack(first, form.q),
        "answers_1": answers[0][0].tolist(),
        "answers_2": answers[1][0].tolist(),
        "accepted": bool(asked.accepts(*answers)[0]),
    }


def _asked(params: SurveyParameters) -> Case:
    form = _form(params)
    point = point_of(form, derive_key(b"".join(VALUES), params.digest, labelled(b"question")))
    values = {"v1": VALUES[0], "v2": VALUES[1], "point": list(point), "modulus": list(form.field.modulus)}
    sizes: dict[str, Any] = {"q": form.q, "items": form.items, "coins": form.coins, "degree": form.degree}
    return {"published": params.published.decode(), **sizes, **values}


def proven_reports() -> list[Case]:
    """A valid report for every item, of surveys without coins and of one with."""
    made = []
    for params in proven_surveys():
        form, reports = _form(params), []
        for item in range(form.items):
            coins = [(item >> at) & 1 for at in range(form.coins)]
            bits = np.array([*(int(at == item) for at in range(form.items)), *coins], dtype=np.uint8)
            reports.append(
                _judged(params, prove(form, bits, expand(secret(50 + item), form.q, form.degree)), 60 + item)
            )
        made.append({**_asked(params), "reports": reports})
    return made


def bad_reports() -> list[Case]:
    """Reports that are not one vote, or whose proof is not theirs; the blind and what else is random: 00, 01, ..."""
    params = proven_surveys()[-1]
    rows = {why: forged(_form(params), Listed()) for why, forged in INVALID.items()}
    judged = ((why, _judged(params, row, 70 + at)) for at, (why, row) in enumerate(rows.items()))
    return [{"why": why, **_asked(params), **each} for why, each in judged]


def placed_coins() -> list[Case]:
    """Which coins of ten members count for which item, and which are turned over."""
    params, claim_hash, members = proven_surveys()[-1], secret(105), bitmap(range(10), 10)
    release = Release(params, proves_reports(params.mechanism), VALUES, claim_hash, members)
    placed = release.placement(10)
    known = {"published": params.published.decode(), "v1": VALUES[0], "v2": VALUES[1], "claim_hash": claim_hash}
    tables = {"user": placed.user.tolist(), "coin": placed.coin.tolist(), "turned": placed.turned.astype(int).tolist()}
    return [{**known, "members": members, **tables}]
