"""How far dishonest participants can have skewed a published result."""

from faircount.estimation.validity import Validity
from faircount.mechanisms.verified import as_verified
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.messages import Published


def validity_of(params: SurveyParameters, published: Published) -> Validity:
    """Whether the counted reports have validity proofs, and how many reports were refused."""
    # With placed coins the clients also make the noise; the proof covers their coins too.
    has_coins = params.proven and as_verified(params.mechanism).coins_per_user > 0
    return Validity(
        params.proven, published.included, published.rejected, has_coins, params.questionnaire
    )
