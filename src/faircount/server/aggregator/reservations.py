"""Reopening a population after the aggregator was restored from a backup.

Every reservation that the aggregator signs is linked to the one before it: it names what was
reserved and the head of the hash chain that it extends. A restored aggregator may have signed
reservations that its database no longer contains, and would spend the same budget again. So each
population stays closed until the operator shows the reservations since the backup, which the
coordinator keeps. The anchor knows the newest head, however old the database is: the reservations
must lead exactly there.
"""

from collections.abc import Sequence

from faircount.protocol import Ledger
from faircount.protocol.roles.anchor import UNSET
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.budget import ReservationRecord
from faircount.protocol.survey.reservations import record_from
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.messages import Reservation, Signed
from faircount.server.common.base import Server
from faircount.server.common.problems import ProblemError, conflict, not_found


async def reopen_population(
    server: Server, population: str, reservations: Sequence[bytes]
) -> Ledger:
    """Reopen a population with the charges of these reservations, which must be complete."""
    async with server.database.write() as tx:
        row = await tx.fetch_one_for_update(
            "SELECT ledger FROM populations WHERE name = ?", population
        )
        if row is None:
            raise not_found("population")
        closed = stored_ledger.decode(bytes(row["ledger"]))
        shown = [_decode_reservation(data, population) for data in reservations]
        reopened = closed.reopen(shown)
        # Without the newest reservations, what they reserved could be spent a second time.
        newest = server.anchor.current_value(b"ledger/" + population.encode())
        if newest not in (UNSET, reopened.head(len(reopened.heads))):
            raise conflict(
                "the anchor knows a newer reservation than those shown: show all that the "
                "coordinator has"
            )
        await tx.execute(
            "UPDATE populations SET ledger = ? WHERE name = ?",
            stored_ledger.encode(reopened),
            population,
        )
    return reopened


def _decode_reservation(data: bytes, population: str) -> ReservationRecord:
    signed = decode_signed(data)
    payload = parse(signed.payload) if isinstance(signed, Signed) else None
    if (
        not isinstance(payload, Reservation)
        # check: shown-population - the reservations of one population open another
        or payload.population != population.encode()
    ):
        raise ProblemError(
            400, "malformed", "these are not the aggregator's reservations of this population"
        )
    return record_from(payload)
