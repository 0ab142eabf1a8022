"""Which mechanisms run where vectors are added up."""

from faircount.core.errors import ParameterError
from faircount.mechanisms.base import Collected
from faircount.mechanisms.secret_shared import FieldMechanism


def runs(mechanism: FieldMechanism) -> FieldMechanism:
    """A mechanism of which only the sum of all vectors is opened runs as it is; anything else is refused."""
    if mechanism.collected is not Collected.SUM:
        raise ParameterError(f"{mechanism.name} is no sum of everybody's vectors: choose 'two-stage', or 'shares'")
    if mechanism.proven:
        raise ParameterError(f"{mechanism.name} needs proofs, which only servers check: choose 'shares' to try it")
    return mechanism
