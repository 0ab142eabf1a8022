"""Was I counted? The path from a user's entry to the root that S2 signed with the result."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from faircount.protocol.survey.parameters import SurveyParameters
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.digests import InclusionProof, Levels, leaf, prove, proves, roster_leaves, tree
from faircount.protocol.wire.messages import Inclusion, Published, Signed
from faircount.protocol.wire.signing import unwrap

Entry = tuple[bytes, bytes]
"""(user id, public key) under which a result names a user."""


def inclusion(published: Signed, entries: Callable[[], Iterable[Entry]], entry: Entry) -> Inclusion | None:
    """The result with the path from this entry; None if it is not among those that the result counts, in its order."""
    places, levels = _tree(_Counted(published.payload, entries))
    if entry not in places:
        return None
    proof = prove(levels, places[entry])
    return Inclusion(published, proof.index, proof.size, proof.path)


@dataclass(frozen=True)
class _Counted:
    """Whom a result counts, known by the result."""

    result: bytes
    entries: Callable[[], Iterable[Entry]] = field(compare=False)


@lru_cache(maxsize=16)
def _tree(counted: _Counted) -> tuple[dict[Entry, int], Levels]:
    """Where everybody stands in the published tree, and the tree: made once, asked for by everybody."""
    lines = list(counted.entries())
    return {entry: at for at, entry in enumerate(lines)}, tree(roster_leaves(lines))


def counts_in(params: SurveyParameters, answer: Inclusion, user: bytes, public_key: bytes) -> bool:
    """Whether S2's signed result counts the entry with this user id and key."""
    published = unwrap(params.keys.s2, Party.S2, answer.published)
    if not isinstance(published, Published) or published.survey != params.survey:
        return False
    proof = InclusionProof(answer.index, answer.size, answer.path)
    return answer.size == published.included and proves(proof, leaf(answer.index, user, public_key), published.root)
