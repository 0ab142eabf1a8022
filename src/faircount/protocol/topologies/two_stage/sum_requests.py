"""Sum requests: which slots each helper sums, over which set of reporters, in which attempt.

    helper        the sums of its slots under a fresh mask              -> coordinator
                  the seed of that mask, encrypted to the aggregator    -> coordinator, relayed
    coordinator   adds up the masked sums item by item: one vector of
                  totals over one set                                   -> aggregator
    aggregator    subtracts the masks item by item: it never sees the sum of a single slot

A sum from an earlier attempt stays valid as long as the set and the slot's holder do. So a manifest
covers the requests of all attempts since the set was formed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from faircount.core.arrays import Ints
from faircount.protocol.topologies.two_stage.election import Ballot, Slots
from faircount.protocol.topologies.two_stage.messages import (
    SlotSumRequest,
    TwoStageManifest,
    VanishedHelper,
)
from faircount.protocol.wire.digests import tagged_hash


@dataclass(frozen=True, slots=True)
class SumScope:
    """What a sum request covers: attempt, set and vanished helpers; not the shares in it."""

    attempt: int
    formed: int
    gone: tuple[VanishedHelper, ...]
    members: bytes

    @classmethod
    def of(cls, message: SlotSumRequest | TwoStageManifest) -> "SumScope":
        """The scope of a sum request, or of a manifest."""
        return cls(message.attempt, message.formed, tuple(message.gone), message.members)

    def is_within(self, attempts: int) -> bool:
        """Whether its attempts follow each other, and are no more than a survey has."""
        # The attempts of a manifest are bounded before anything is computed for each of them.
        last = max([self.formed, *(helper.attempt for helper in self.gone)])
        return 1 <= self.formed <= last <= self.attempt <= attempts

    def in_attempt(self, attempt: int) -> "SumScope":
        """The scope over the same set as it was in an earlier attempt."""
        gone = tuple(helper for helper in self.gone if helper.attempt <= attempt)
        return SumScope(attempt, self.formed, gone, self.members)

    def digest(self, ballot: Ballot) -> bytes:
        """What binds the masks: election, attempt, set, and who holds the slots."""
        # The length comes before the list, so that no two scopes have the same encoding.
        numbers = [self.attempt, self.formed, len(self.gone)]
        for helper in self.gone:
            numbers += [helper.attempt, helper.index]
        encoded = b"".join(number.to_bytes(4, "big") for number in numbers)
        return tagged_hash(b"call", ballot.hash, self.members, encoded)


@dataclass(frozen=True, slots=True)
class HelperSums:
    """One helper's sums in a manifest: the request it answered, and the positions of its slots."""

    attempt: int
    digest: bytes
    holder: int
    due: Ints


def sums_by_helper(ballot: Ballot, slots: Slots, scope: SumScope) -> Iterator[HelperSums]:
    """Every helper's sums, by attempt and then place; every slot is in exactly one of them."""
    due_in = np.maximum(slots.granted, scope.formed)
    for attempt in range(scope.formed, scope.attempt + 1):
        positions = np.flatnonzero(due_in == attempt)
        if not positions.size:
            continue
        # Stable, so that each holder's slots stay in the order of the manifest.
        positions = positions[np.argsort(slots.holder[positions], kind="stable")]
        digest = scope.in_attempt(attempt).digest(ballot)
        borders = np.flatnonzero(np.diff(slots.holder[positions])) + 1
        for due in np.split(positions, borders):
            yield HelperSums(attempt, digest, int(slots.holder[due[0]]), due)
