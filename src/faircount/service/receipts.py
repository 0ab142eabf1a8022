"""After a restore of S2 a population stays closed until its newest receipts are shown: S1 keeps them.

A receipt names what was reserved and the head of the chain that it makes. The anchor knows the newest head, however
old the database is: the receipts that are shown must lead there, and then each of them is what S2 once signed.
"""

from collections.abc import Sequence

from faircount.protocol import Ledger
from faircount.protocol.roles.anchor import NOTHING
from faircount.protocol.roles.limits import decode_signed
from faircount.protocol.survey import stored_ledger
from faircount.protocol.survey.budget import Shown
from faircount.protocol.survey.receipts import shown_by
from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.messages import Receipt, Signed
from faircount.service.problems import ProblemError, conflict, unknown
from faircount.service.server import Server


async def show_receipts(server: Server, population: str, receipts: Sequence[bytes]) -> Ledger:
    """The ledger, open again with all that the receipts show; refused if they are not all."""
    async with server.database.write() as tx:
        found = await tx.held("SELECT ledger FROM populations WHERE name = ?", population)
        if found is None:
            raise unknown("population")
        before = stored_ledger.decode(bytes(found["ledger"]))
        after = before.reopen([_shown(each, population) for each in receipts])
        newest = server.anchor.standing(b"ledger/" + population.encode())
        if newest not in (NOTHING, after.head(len(after.heads))):
            raise conflict("the anchor knows a newer receipt than those shown: show all that S1 has")
        await tx.run("UPDATE populations SET ledger = ? WHERE name = ?", stored_ledger.encode(after), population)
    return after


def _shown(data: bytes, population: str) -> Shown:
    signed = decode_signed(data)
    said = parse(signed.payload) if isinstance(signed, Signed) else None
    if not isinstance(said, Receipt) or said.population != population.encode():
        raise ProblemError(400, "malformed", "these are not S2's receipts of this population")
    return shown_by(said)
