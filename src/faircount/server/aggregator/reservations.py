"""Reopening a population after the aggregator was restored from a backup.

Every reservation that the aggregator signs is linked to the one before it: it names what was
reserved and the head of the hash chain that it extends. A restored aggregator may have signed
reservations that its database no longer contains, and would spend the same budget again. So each
population stays closed until the operator shows the reservations since the backup, which the
coordinator keeps. The anchor knows the newest head, however old the database is: the reservations
must lead exactly there.

If the anchor is lost too, nothing here knows which reservation was the newest. Whoever shows the
reservations could leave the last ones out, so the operator states the newest number from the log
or from records of its own; the population stays closed until the reservations lead there.
"""

from collections.abc import Sequence

from faircount.protocol import Ledger
from faircount.protocol.roles.anchor import UNSET, Anchor, ledger_name
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.budget import ReservationRecord
from faircount.protocol.survey.reservations import record_from
from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.messages import Reservation, Signed
from faircount.protocol.wire.signing import verify_message
from faircount.server.aggregator.signers import find_signer
from faircount.server.common.base import Server
from faircount.server.common.problems import ProblemError, conflict, not_found
from faircount.storage.database import Transaction


async def reopen_population(
    server: Server, population: str, reservations: Sequence[bytes], newest: int | None = None
) -> Ledger:
    """Reopen a population with the charges of these reservations, which must be complete.

    newest: the number of the newest reservation, as the operator states it if the anchor is lost
    """
    async with server.database.write() as tx:
        row = await tx.fetch_one_for_update(
            "SELECT owner, ledger FROM populations WHERE name = ?", population
        )
        if row is None:
            raise not_found("population")
        closed = stored_ledger.decode(bytes(row["ledger"]))
        records = [
            await _verify_reservation(tx, server, data, population, bytes(row["owner"]))
            for data in reservations
        ]
        reopened = closed.reopen(records)
        _check_newest(server.anchor, reopened, newest)
        await tx.execute(
            "UPDATE populations SET ledger = ? WHERE name = ?",
            stored_ledger.encode(reopened),
            population,
        )
    return reopened


def _check_newest(anchor: Anchor, reopened: Ledger, stated: int | None) -> None:
    """Refuse to reopen without the newest reservations: what they reserved could be spent again."""
    name = ledger_name(reopened.population)
    shown = len(reopened.heads)
    head = reopened.head(shown)
    known = anchor.current_value(name)
    # check: anchored-newest - the last reservations are withheld, and their budget is spent again
    if known not in (UNSET, head):
        raise conflict(
            "the anchor knows a newer reservation than those shown: show all that the "
            "coordinator has"
        )
    # check: stated-newest - with a lost anchor whoever shows reservations leaves the last ones out
    if known == UNSET and stated != shown:
        raise conflict(
            "the anchor of this aggregator is new and does not know its newest reservation of this "
            f"population; number {shown} is the newest of those shown. Look for lines with "
            '"reserved" in the log of the aggregator, and state the newest number (--newest)'
        ).with_code("newest_unknown", shown=shown)
    # From here on the anchor guards this population again. If the database is not written after
    # this, the same reservations are shown once more and lead to the same head.
    anchor.advance(name, known, head)


async def _verify_reservation(
    tx: Transaction, server: Server, data: bytes, population: str, owner: bytes
) -> ReservationRecord:
    """Return what a reservation says, if this aggregator signed it for this population."""
    signed = decode_signed(data)
    content = parse(signed.payload) if isinstance(signed, Signed) else None
    if (
        not isinstance(signed, Signed)
        or not isinstance(content, Reservation)
        # check: shown-population - the reservations of one population open another
        or content.population != population.encode()
    ):
        raise ProblemError(
            400, "malformed", "these are not the aggregator's reservations of this population"
        )
    signer = await find_signer(tx, server.keys, population, content.survey)
    if signer is None:
        raise conflict(
            f"reservation {content.number} names a survey whose signing key this aggregator does "
            "not know: it is made up, or the folder of keys is lost. The population stays closed; "
            "open a new one"
        )
    if (
        # check: reservation-signed - a reservation of anybody's making shows less than was spent
        verify_message(signer.key, Party.AGGREGATOR, signed) is None
        # check: reservation-owner - another owner's population of the same name hides charges
        or signer.owner != owner
    ):
        raise conflict(
            f"reservation {content.number} is not one that this aggregator has signed for this "
            "population"
        )
    return record_from(content)
