"""What elected users are called for: the slots that each owes a sum of, over one set of reporters, in one attempt.

    helper   the sums of its slots under a fresh mask of its own                                         -> S1
             the seed of that mask, sealed to S2                                                       -> S1, relayed
    S1       adds up the masked sums item by item: ONE vector of totals leaves it, over one set          -> S2
    S2       takes the masks off, item by item: it never sees the sum of a slot

A sum from an earlier attempt stays good as long as set and holder do: a claim is over the calls of all these attempts.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Ints
from faircount.protocol.topologies.two_stage.election import Ballot, Slots
from faircount.protocol.topologies.two_stage.messages import Gone, SumCall, TwoStageClaim
from faircount.protocol.wire.digests import labelled


@dataclass(frozen=True, slots=True)
class Called:
    """What a call is about: attempt, set and who is gone; not the shares that come with it."""

    attempt: int
    formed: int
    gone: tuple[Gone, ...]
    members: bytes

    @classmethod
    def by(cls, said: SumCall | TwoStageClaim) -> "Called":
        """What a call, or a claim, is about."""
        return cls(said.attempt, said.formed, tuple(said.gone), said.members)

    def within(self, attempts: int) -> bool:
        """Whether its attempts follow each other, and are no more than a survey has."""
        last = max([self.formed, *(each.attempt for each in self.gone)])
        return 1 <= self.formed <= last <= self.attempt <= attempts

    def earlier(self, attempt: int) -> "Called":
        """The same set as it was called in an earlier attempt."""
        gone = tuple(each for each in self.gone if each.attempt <= attempt)
        return Called(attempt, self.formed, gone, self.members)

    def digest(self, ballot: Ballot) -> bytes:
        """What binds the masks: election, attempt, set, and who holds the slots."""
        gone = (number for each in self.gone for number in (each.attempt, each.index))
        numbers = (self.attempt, self.formed, len(self.gone), *gone)
        return labelled(b"call", ballot.hash, self.members, b"".join(each.to_bytes(4, "big") for each in numbers))


@dataclass(frozen=True, slots=True)
class Part:
    """One helper's part of a claim: the call that it answered, by digest, and the positions of its slots then."""

    attempt: int
    digest: bytes
    holder: int
    due: Ints


def parts(ballot: Ballot, slots: Slots, called: Called) -> Iterator[Part]:
    """Every helper's part, by attempt and then place; every slot is in exactly one of them."""
    due_in = np.maximum(slots.granted, called.formed)
    for attempt in range(called.formed, called.attempt + 1):
        here = np.flatnonzero(due_in == attempt)
        here = here[np.argsort(slots.holder[here], kind="stable")]
        digest = called.earlier(attempt).digest(ballot)
        for due in np.split(here, np.flatnonzero(np.diff(slots.holder[here])) + 1) if here.size else ():
            yield Part(attempt, digest, int(slots.holder[due[0]]), due)
