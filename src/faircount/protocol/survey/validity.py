"""How far dishonest participants can have skewed a published result."""

import numpy as np

from faircount.estimation.leveled import LeveledTables
from faircount.estimation.validity import Validity
from faircount.mechanisms.proven import as_proven
from faircount.mechanisms.server_levels import ServerLevels
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.messages import Published


def validity_of(params: SurveyParameters, published: Published) -> Validity:
    """Whether the counted reports have validity proofs, and how many reports were refused."""
    # With placed coins the clients also make the noise; the proof covers their coins too.
    has_coins = params.proven and as_proven(params.mechanism).coins_per_user > 0
    alike_votes = None
    if isinstance(params.mechanism, ServerLevels):
        # A report may be in both tables, and weighs more in the one of fewer people.
        cells = np.array(published.counts)
        alike_votes = LeveledTables(params.mechanism, cells, published.included).votes_per_liar
    return Validity(
        params.proven,
        published.included,
        published.rejected,
        has_coins,
        params.questionnaire,
        alike_votes,
    )
