"""A published result as estimates with confidence intervals."""

from collections.abc import Sequence

import numpy as np

from faircount.accounting.conditions import ONE_OPERATOR
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.protocol.survey.operators import has_one_operator
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.validity import validity_of
from faircount.protocol.wire.messages import Published


def decode_release(
    params: SurveyParameters, final: Published, places: Sequence[int] = ()
) -> QuestionnaireResult:
    """The estimates of a result that the aggregator published.

    places: positions of the counted participants in the roster; needed where they add unequal noise
    """
    mechanism = params.mechanism.for_included(places)
    cells = np.array(final.counts, dtype=np.int64)
    # Counts travel as integers, in steps of the mechanism's resolution.
    sums = cells if mechanism.steps_per_count == 1 else cells / mechanism.steps_per_count
    facts = {
        "topology": str(params.topology),
        "modulus": params.q,
        "published": final,
        "validity": validity_of(params, final),
    }
    # Whoever runs both servers holds all shares and all noise: no accounting protects from that.
    conditions = (ONE_OPERATOR,) if has_one_operator(params) else ()
    return QuestionnaireResult(
        params.questionnaire, mechanism, sums, final.included, facts, conditions
    )
