"""Test vectors of validity proofs: rows, the query, both verifier shares, and the decision."""

from typing import Any

import numpy as np
from basics import Case, Listed, Prepared, secret
from surveys import QUESTIONNAIRE, SHEETS, leveled_survey, proven_surveys

from faircount.accounting.levels import ALWAYS
from faircount.core.arrays import Residues
from faircount.core.questions import Sheet
from faircount.core.questions.published import to_plain
from faircount.demo.invalid_reports import INVALID
from faircount.mechanisms.proven import as_proven
from faircount.mechanisms.server_levels import ServerLevels
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers.proofs import (
    Query,
    ReportLayout,
    prove,
    query_point,
)
from faircount.protocol.topologies.two_servers.reports import (
    AggregateContext,
    derive_query,
    report_layout_of,
)
from faircount.protocol.wire.digests import bitmap, tagged_hash
from faircount.sharing.expand import expand
from faircount.sharing.field import subtract
from faircount.sharing.keys import derive_key
from faircount.sharing.packing import pack

VALUES = secret(104), secret(103)
"""v1 and v2: what coordinator and aggregator committed to in the parameters."""


def _layout(params: SurveyParameters) -> ReportLayout:
    found = report_layout_of(params.mechanism)
    assert found is not None  # noqa: S101 - both surveys are proven
    return found


def _verify_row(params: SurveyParameters, row: Residues, number: int) -> Case:
    """A row, shared with key `number`: shares, verifier shares and decision."""
    layout = _layout(params)
    query: Query = derive_query(params, layout, VALUES)
    second = expand(secret(number), layout.q, layout.width)
    first = subtract(row, second, layout.q)
    verifier_shares = [query.verifier_shares(share[np.newaxis]) for share in (first, second)]
    return {
        "row": row.tolist(),
        "key": secret(number),
        "share": pack(first, layout.q),
        "verifier_share_1": verifier_shares[0][0].tolist(),
        "verifier_share_2": verifier_shares[1][0].tolist(),
        "accepted": bool(query.accepts(*verifier_shares)[0]),
    }


def _describe_query(params: SurveyParameters) -> Case:
    layout = _layout(params)
    point = query_point(layout, derive_key(b"".join(VALUES), params.digest, tagged_hash(b"query")))
    values = {
        "v1": VALUES[0],
        "v2": VALUES[1],
        "point": list(point),
        "modulus": list(layout.field.modulus),
    }
    sizes: dict[str, Any] = {
        "q": layout.q,
        "bits": layout.answer_bits,
        "coins": layout.coins,
        "constraints": [
            {"weights": constraint.weights, "value": constraint.value}
            for constraint in layout.constraints
        ],
        "degree": layout.degree,
    }
    return {"published": params.published.decode(), **sizes, **values}


def proven_reports() -> list[Case]:
    """Valid reports of a questionnaire, and of single questions without and with coins."""
    made = []
    for params in proven_surveys():
        layout = _layout(params)
        reports = []
        for number, sheet in enumerate(_sheets(params)):
            coins = [(number >> coin) & 1 for coin in range(layout.coins)]
            level = number % 3 if isinstance(params.mechanism, ServerLevels) else 0
            bits = as_proven(params.mechanism).report_bits(sheet, Listed(), level)
            # The coins of a report are known here, instead of drawn.
            bits[layout.answer_bits :] = coins
            blind = expand(secret(50 + number), layout.q, layout.degree)
            row = prove(layout, bits.astype(np.uint64), blind)
            reports.append(
                {"sheet": sheet, "level": level, **_verify_row(params, row, 60 + number)}
            )
        made.append({**_describe_query(params), "reports": reports})
    return made


def _sheets(params: SurveyParameters) -> list[Sheet]:
    """Every answer to a single question, and four sheets of the questionnaire."""
    if len(params.questionnaire) == 1:
        return [(item,) for item in range(params.N)]
    return [sheet[: len(params.questionnaire)] for sheet in SHEETS]


def levels() -> list[Case]:
    """The coins of hidden privacy levels, and the bits of sheets by level and random bytes."""
    params = leveled_survey()
    mechanism = params.mechanism
    assert isinstance(mechanism, ServerLevels)  # noqa: S101 - the survey was made with it
    reports = []
    for level, coin in enumerate(mechanism.levels.coins):
        # On both sides of the coin: inside is what lies below it.
        for drawn in {0, max(coin - 1, 0), min(coin, ALWAYS - 1), ALWAYS - 1}:
            random = drawn.to_bytes(16, "big")
            for sheet in _sheets(params)[:2]:
                bits = mechanism.report_bits(sheet, Prepared(random), level)
                cells = [sum(int(bits[bit]) for bit, _ in cell) for cell in mechanism.cell_weights]
                known = {"sheet": sheet, "level": level, "random": random}
                reports.append({**known, "bits": bits.tolist(), "cells": cells})
    reports.sort(key=lambda report: (report["level"], report["random"], report["sheet"]))
    constraints = [
        {"weights": constraint.weights, "value": constraint.value}
        for constraint in mechanism.constraints
    ]
    openings = [{"weights": weights} for weights in mechanism.cell_weights]
    losses = [
        dict(zip(("answer", "both"), mechanism.levels.stated_losses(level), strict=True))
        for level in range(len(mechanism.levels))
    ]
    form = {"constraints": constraints, "openings": openings, "losses": losses}
    return [{"published": params.published.decode(), **form, "reports": reports}]


def sheets() -> list[Case]:
    """The bits and opened cells of answers to questions of every kind."""
    made = []
    for sheet in SHEETS:
        bits = QUESTIONNAIRE.encode(sheet)
        made.append({"sheet": sheet, "bits": bits, "cells": QUESTIONNAIRE.cells_from_bits(bits)})
    openings = [{"weights": weights} for weights in QUESTIONNAIRE.cell_weights]
    constraints = [
        {"weights": constraint.weights, "value": constraint.value}
        for constraint in QUESTIONNAIRE.constraints
    ]
    plain = to_plain(QUESTIONNAIRE)
    return [{**plain, "constraints": constraints, "openings": openings, "sheets": made}]


def bad_reports() -> list[Case]:
    """Reports that are not one vote, or have the proof of another; random bytes are 00, 01, ..."""
    params = proven_surveys()[-1]
    cases = []
    for number, (why, forge) in enumerate(INVALID.items(), 70):
        verified = _verify_row(params, forge(_layout(params), Listed()), number)
        cases.append({"why": why, **_describe_query(params), **verified})
    return cases


def placed_coins() -> list[Case]:
    """Which coins of ten members count for which item, and which are inverted."""
    params = proven_surveys()[-1]
    manifest_hash = secret(105)
    members = bitmap(range(10), 10)
    context = AggregateContext(params, as_proven(params.mechanism), VALUES, manifest_hash, members)
    placed = context.placement(10)
    known = {
        "published": params.published.decode(),
        "v1": VALUES[0],
        "v2": VALUES[1],
        "manifest_hash": manifest_hash,
    }
    tables = {
        "user": placed.user.tolist(),
        "coin": placed.coin.tolist(),
        "turned": placed.inverted.astype(int).tolist(),
    }
    return [{**known, "members": members, **tables}]
