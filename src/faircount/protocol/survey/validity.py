"""What a published result says about its reports: for the owner, and for every client that is shown the result."""

from faircount.estimation.validity import Validity
from faircount.mechanisms.verified import proves_reports
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.messages import Published


def validity_of(params: SurveyParameters, published: Published) -> Validity:
    """Whether the counted reports were proven, and how much clients who lie can have moved the result."""
    coins = params.proven and proves_reports(params.mechanism).coins_per_user > 0
    return Validity(params.proven, published.included, published.refused, coins)
