"""Memory outside every backup: what a server must not do twice, even if its whole database is taken back.

A server that is restored from an old backup, by accident or by somebody who wants two results, knows nothing of what it
has signed since. An anchor does: a value by name, kept where no backup of the server reaches (another machine, a
monotonic counter, a log that others can read), and changed only from the value that the server believes to stand.

    S2   before a statement leaves: the end of the chain of its statements, and the head of the ledger
    S1   before its one sum leaves: the hash of it
    both before a survey with proven reports begins: for which one its value is used (`use_value`)

Roles stay functions of a state and a message; the service passes their step through here, then writes, then sends.
Doing the same step again, after a crash, is not a second step: it ends in the value that stands already.
"""

from abc import ABC, abstractmethod

from faircount.core.errors import ProtocolError
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.survey.server_secrets import commitment_of
from faircount.protocol.wire.codec import Party

NOTHING = bytes(32)
"""What stands under a name that was never set."""


class Anchor(ABC):
    """A few values that no backup takes back."""

    @abstractmethod
    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        """Replace `before` by `after` in one step that nobody else can come between.

        True if `after` stands now, also if it stood already; False, and nothing has changed, if something else does.
        """

    @abstractmethod
    def standing(self, name: bytes) -> bytes:
        """What stands under a name. An owner who has shown all receipts after a restore advances the ledger from it."""


class MemoryAnchor(Anchor):
    """An anchor for tests and trials: it lasts as long as the process."""

    def __init__(self) -> None:
        self._values: dict[bytes, bytes] = {}

    def advance(self, name: bytes, before: bytes, after: bytes) -> bool:
        """Compare and set."""
        if self._values.get(name, NOTHING) not in (before, after):
            return False
        self._values[name] = after
        return True

    def standing(self, name: bytes) -> bytes:
        """The value, or `NOTHING`."""
        return self._values.get(name, NOTHING)


def anchored_s2(anchor: Anchor, before: Aggregator, step: aggregator.Step) -> aggregator.Step:
    """S2's step if the anchor agrees that it comes next; else S2 was taken back, and stops as restored."""
    after = step[0]
    ledger, survey = b"ledger/" + after.ledger.population.encode(), b"s2/" + after.params.survey
    moves = (
        (ledger, _head(before), _head(after)),
        (survey, before.newest.hash, after.newest.hash),
    )
    held = all(anchor.advance(name, old, new) for name, old, new in moves if old != new)
    return step if held else aggregator.restored(before)


def use_value(anchor: Anchor, params: SurveyParameters, server: Party) -> None:
    """Note that a server's committed value is used in this survey; one that another survey has used is refused.

    Whoever knows the values of both servers before the claim can forge votes, and a used value was revealed.
    """
    name = b"value/" + commitment_of(params, server)
    if not anchor.advance(name, NOTHING, params.digest):
        raise ProtocolError(f"{server.name} has used this value in another survey: make a new one, and new parameters")


def _head(s: Aggregator) -> bytes:
    """The end of the chain of the ledger's receipts."""
    return s.ledger.head(len(s.ledger.heads))


def anchored_s1(anchor: Anchor, before: Coordinator, step: coordinator.Step) -> coordinator.Step:
    """S1's step unless it hands over a second, different sum: then S1 was taken back, and ends the survey."""
    name, sent = b"s1/" + before.params.survey, before.rules.sent_once(step[0])
    if sent in (NOTHING, before.rules.sent_once(before)) or anchor.advance(name, NOTHING, sent):
        return step
    return coordinator.give_up(before, "S1 was taken back to before the one sum that it has sent")
