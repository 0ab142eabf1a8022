"""Which mechanisms run in topologies that only sum the participants' vectors."""

from faircount.core.errors import ParameterError
from faircount.mechanisms.base import Collected
from faircount.mechanisms.secret_shared import FieldMechanism


def check_sum_mechanism(mechanism: FieldMechanism) -> FieldMechanism:
    """The mechanism as it is, if the sum of all vectors is the only thing that it needs.

    Raises:
        ParameterError: it needs more than the sum, or proofs
    """
    if mechanism.collected is not Collected.SUM:
        raise ParameterError(
            f"{mechanism.name} is no sum of everybody's vectors: choose 'two-stage', or 'shares'"
        )
    # Peers see shares of one vector only: nobody is in a position to check a proof.
    if mechanism.proven:
        raise ParameterError(
            f"{mechanism.name} needs proofs, which only servers check: choose 'shares' to try it"
        )
    return mechanism
