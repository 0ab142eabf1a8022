"""A claim in parts, as S1 makes it and both servers read it: the last is `claim`, the others are kept by number."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import pairwise
from typing import Protocol

from faircount.protocol.roles.write_once import WriteOnce, part_key
from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.messages import ServersClaim, Submitter
from faircount.protocol.wire.codec import Message, encode, packed
from faircount.protocol.wire.packed_rows import in_parts

Kept = WriteOnce[bytes, Message]


class Claiming(Protocol):
    """S1 or S2."""

    @property
    def claim(self) -> Message | None:
        """The last part."""

    @property
    def earlier(self) -> tuple[bytes, ...]:
        """Hashes of the others."""

    @property
    def kept(self) -> Kept:
        """Where the others are."""


def in_chain(params: SurveyParameters, lines: Iterable[Submitter]) -> Iterator[ServersClaim]:
    """The parts of a claim with these lines, as they come; of no lines, one part without any."""
    waiting = in_parts(lines, messages.LINES)
    some, number, before = next(waiting, []), 0, bytes(32)
    while True:
        following = next(waiting, None)
        more = int(following is not None)
        part = ServersClaim(params.survey, params.digest, packed(Submitter, some), number, before, more)
        yield part
        if following is None:
            return
        some, number, before = following, number + 1, sha256(encode(part)).digest()


def chain_of(kept: Kept, last: ServersClaim) -> tuple[bytes, ...] | None:
    """The hashes of the parts before the last one, all of which are kept; None if this is no end of a whole claim."""
    hashes, part = list[bytes](), last
    while part.number:
        before = kept.get(part_key(part.number - 1))
        if not isinstance(before, ServersClaim) or not is_part(before) or not follows(before, part):
            return None
        hashes.append(part.before)
        part = before
    whole = is_part(last) and not last.more and part.before == bytes(32)
    return tuple(reversed(hashes)) if whole else None


def follows(before: ServersClaim, part: ServersClaim) -> bool:
    """Whether a part comes after another one: it has its hash, and its users come after those of the other one."""
    last, first = before.entries[-1:], part.entries[:1]
    in_order = all(one.user < two.user for one in last for two in first)
    named = before.number == part.number - 1 and part.before == sha256(encode(before)).digest()
    return before.more == 1 and named and in_order


def is_part(part: ServersClaim) -> bool:
    """Whether a part has as many lines as it may have, ascending by user id, so that it names each person once.

    S1 adds up whom a claim names: somebody who is named many times would make up a sum alone.
    """
    lines = len(part.entries)
    enough = lines == messages.LINES if part.more else lines <= messages.LINES and (lines > 0 or part.number == 0)
    return enough and all(one.user < two.user for one, two in pairwise(part.entries))


def part_of(s: Claiming, number: int) -> ServersClaim:
    """A part of the claim by its number."""
    part = s.kept[part_key(number)] if number < len(s.earlier) else s.claim
    if not isinstance(part, ServersClaim):
        raise KeyError(number)
    return part


def parts_of(s: Claiming) -> Iterator[ServersClaim]:
    """The parts of the claim in order, read one at a time; none before there is a claim."""
    return (part_of(s, number) for number in range(0 if s.claim is None else len(s.earlier) + 1))


def entries_of(s: Claiming) -> Iterator[Submitter]:
    """The lines of the claim, ascending by user id: whoever goes through them reads bodies in the order of storage."""
    return (line for part in parts_of(s) for line in part.entries)


def claimed_size(s: Claiming) -> int:
    """How many lines the claim has."""
    return s.claim.size if isinstance(s.claim, ServersClaim) else 0
