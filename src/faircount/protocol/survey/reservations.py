"""Reservations: from the ledger to the message that the aggregator signs, and back.

The coordinator keeps these messages. After the aggregator was restored from a backup, they show
which charges its ledger lacks.
"""

from faircount.core.errors import ProtocolError
from faircount.protocol.survey.budget import Charge, Ledger, ReservationRecord
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.canonical_json import format_upper_bound, parse_real
from faircount.protocol.wire.messages import Reservation


def charge_of(params: SurveyParameters) -> Charge:
    """What a survey reserves: the guarantee that it promises."""
    return Charge(params.survey, params.epsilon, params.delta)


def reservation_for(
    ledger: Ledger, survey: bytes, manifest_hash: bytes, revealed: bytes
) -> Reservation:
    """The reservation of a survey that the ledger has charged.

    revealed: with validity proofs, the value behind the aggregator's commitment
    """
    charge = ledger.find(survey)
    if charge is None:
        raise ProtocolError("this survey has no charge: reserve budget for it first")
    # Rounded up: a budget must never be charged less than the survey promises.
    return Reservation(
        survey,
        manifest_hash,
        format_upper_bound(charge.epsilon).encode(),
        format_upper_bound(charge.delta).encode(),
        ledger.population.encode(),
        charge.reservation,
        ledger.version,
        ledger.head(charge.reservation),
        revealed,
    )


def record_from(reservation: Reservation) -> ReservationRecord:
    """What a reservation that the aggregator signed says about the ledger."""
    epsilon = parse_real(reservation.epsilon.decode())
    delta = parse_real(reservation.delta.decode())
    charge = Charge(reservation.survey, epsilon, delta)
    return ReservationRecord(
        charge, reservation.number, reservation.ledger_version, reservation.head
    )
