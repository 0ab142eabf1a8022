"""A published result as estimates with confidence intervals."""

from collections.abc import Sequence

import numpy as np

from faircount.core.errors import ProtocolError
from faircount.estimation.result import Result
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.server_joint import ServerJoint
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.validity import validity_of
from faircount.protocol.wire.messages import Published


def decode_release(
    params: SurveyParameters, final: Published, places: Sequence[int] = ()
) -> Result | QuestionnaireResult:
    """The estimates of a result that the aggregator published.

    places: positions of the counted participants in the roster; needed where they add unequal noise
    """
    mechanism = params.mechanism.for_included(places)
    counts = np.array(final.counts, dtype=np.int64)
    facts = {
        "topology": str(params.topology),
        "modulus": params.q,
        "published": final,
        "validity": validity_of(params, final),
    }
    if isinstance(mechanism, ServerJoint):
        return QuestionnaireResult(mechanism, counts, final.included, facts)
    if not isinstance(mechanism, FrequencyMechanism):
        raise ProtocolError(f"the sums of {mechanism.name} have no estimates here")
    return Result(mechanism, counts / mechanism.steps_per_count, final.included, facts)
