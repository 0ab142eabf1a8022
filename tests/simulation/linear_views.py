"""What a party learns, exactly, where its view is linear: sums of answers, found by algebra instead of enumeration.

With noise off and two items, a user's vector is (1 - a, a) for its answer a, and everything that is sent is a linear
function over F_q of the answers and of uniform elements (masks, shares). So the view is A a + B u with u uniform: it
says w A a for every w with w B = 0, and nothing else. A and B are found by playing the survey once for every answer and
once for every element; that the view is linear is checked on runs with all of them drawn at random.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.protocol.wire.codec import Party, parse
from faircount.protocol.wire.field_codecs import PackedList
from faircount.protocol.wire.messages import Published, Signed
from faircount.sharing.packing import packed_size, unpack
from simulation.views import Chance, Eyes, Ideal, owner_of
from simulation.views_play import Story, ViewEnumerator

Matrix = NDArray[np.int64]
Element = tuple[Hashable, int]

VECTORS = ("vector", "total", "share")
"""Fields of messages that hold a packed vector."""

UNTOLD = ("signature", "message_hash", "path", "previous")
"""Fields that follow from others: signatures, and hashes of what the party has anyway."""


class Fixed(Chance):
    """Randomness with given values; what is not given is 0."""

    def __init__(self, values: dict[Hashable, int]) -> None:
        super().__init__([])
        self.values = values

    def draw(self, name: Hashable, weights: Sequence[int]) -> int:
        """The given value; which elements there are is noted."""
        if name not in self.drawn:
            self.sizes.append(len(weights))
        self.drawn[name] = self.values.get(name, 0) if len(weights) > 1 else 0
        return self.drawn[name]


def learned(play: ViewEnumerator, story: Story, who: Iterable[Any]) -> list[list[int]]:
    """A basis of the sums of answers that follow from the joint view of these parties, in reduced form.

    A party is `Party.COORDINATOR`, `Party.AGGREGATOR`, or a tuple of users.
    """
    n, q, parties = play.params.n_max, play.params.q, list(who)
    chance, shape, base = _run(play, story, parties, [0] * n, {})
    names = [name for name, size in zip(chance.drawn, chance.sizes, strict=True) if size > 1]
    answers = [_run(play, story, parties, [int(j == i) for j in range(n)], {}) for i in range(n)]
    elements = [_run(play, story, parties, [0] * n, {name: 1}) for name in names]
    a = _columns([found for _, _, found in answers], base, q)
    b = _columns([found for _, _, found in elements], base, q)
    rng = np.random.default_rng(0)
    for _ in range(2):
        drawn, chosen = rng.integers(0, q, len(names)), rng.integers(0, 2, n)
        values = dict(zip(names, drawn.tolist(), strict=True))
        _, same, found = _run(play, story, parties, chosen.tolist(), values)
        if same != shape or ((base + a @ chosen + b @ drawn - found) % q).any():
            raise AssertionError(
                "the view is not linear in answers and random elements, or its form depends on them"
            )
    if any(each[1] != shape for each in (*answers, *elements)):
        raise AssertionError("the form of the view depends on answers")
    return _reduced(_without_randomness(b, a, q), q)


def _run(
    play: ViewEnumerator,
    story: Story,
    who: Sequence[Any],
    answers: Sequence[int],
    values: dict[Hashable, int],
) -> tuple[Fixed, tuple[Hashable, ...], Matrix]:
    chance = Fixed(values)
    play.start(chance, answers)
    story(play)
    found = [each for party in who for each in _elements(play, play.eyes(party), _own(party))]
    return (
        chance,
        tuple(name for name, _ in found),
        np.array([value for _, value in found], dtype=np.int64),
    )


def _own(who: Any) -> frozenset[int]:
    return frozenset() if isinstance(who, Party) else frozenset(who)


def _elements(play: ViewEnumerator, eyes: Eyes, owners: frozenset[int]) -> Iterator[Element]:
    """Everything in a view, as field elements with names; what is no element has its content in its name."""
    world, q, count = play.world, play.params.q, play.params.N
    for at, message in enumerate(eyes.received):
        yield from _in_message(message, (at,), q, count)
    _, handles = world.catalogue(eyes.received)
    plain = eyes.plaintexts(world, handles)
    for at, text in enumerate(plain):
        if len(text) == packed_size(q, count):
            yield from (
                (("plain", at, i), int(value)) for i, value in enumerate(unpack(text, q, count))
            )
        else:
            yield ("plain", at, text), 0
    yield from _known_masks(world, eyes, plain)
    yield from (
        (name, value) for name, value in world.chance.drawn.items() if owner_of(name) in owners
    )
    yield from ((("answer", i), int(play.devices[i].state.answer)) for i in owners)


def _known_masks(world: Ideal, eyes: Eyes, plain: Sequence[bytes]) -> Iterator[Element]:
    known = eyes.known_keys(world, plain)
    for (secret, info), mask in sorted(world.masks.items()):
        if eyes.computes(world, secret, plain, known):
            yield from ((("mask", secret, info, i), value) for i, value in enumerate(mask))


def _in_message(value: Any, name: tuple[Hashable, ...], q: int, count: int) -> Iterator[Element]:
    if isinstance(value, Signed):
        yield from _in_message(parse(value.payload), name, q, count)
    elif isinstance(value, Published):
        yield from (((*name, "count", i), int(each) % q) for i, each in enumerate(value.counts))
    elif isinstance(value, tuple | PackedList):
        for i, each in enumerate(value):
            yield from _in_message(each, (*name, i), q, count)
    elif is_dataclass(value):
        for part in fields(value):
            content = getattr(value, part.name)
            if part.name in VECTORS:
                unpacked = unpack(content, q, _elements_in(content, q, count))
                yield from (((*name, part.name, i), int(each)) for i, each in enumerate(unpacked))
            elif part.name not in UNTOLD:
                yield from _in_message(content, (*name, part.name), q, count)
    else:
        yield (*name, value), 0


def _elements_in(content: bytes, q: int, usual: int) -> int:
    """How many elements these bytes hold: as many as usual, else the most that fit; those behind the last one are 0."""
    fitting = [each for each in range(8 * len(content) + 1) if packed_size(q, each) == len(content)]
    return usual if usual in fitting else max(fitting)


# --- linear algebra over F_q, q prime -----------------------------------------------------------------------------


def _columns(found: Sequence[Matrix], base: Matrix, q: int) -> Matrix:
    return (
        np.array([(each - base) % q for each in found], dtype=np.int64)
        .reshape(len(found), base.size)
        .T
    )


def _without_randomness(b: Matrix, a: Matrix, q: int) -> Matrix:
    """w A for a basis of all w with w B = 0."""
    width = b.shape[1]
    rows = _echelon(np.concatenate((b, a), axis=1) % q, q)
    return rows[~rows[:, :width].any(axis=1), width:]


def _reduced(rows: Matrix, q: int) -> list[list[int]]:
    left = _echelon(rows, q)
    found: list[list[int]] = left[left.any(axis=1)].tolist()
    return found


def _echelon(rows: Matrix, q: int) -> Matrix:
    """Reduced row echelon form."""
    rows, top = rows.copy() % q, 0
    for column in range(rows.shape[1]):
        pivot = next((i for i in range(top, len(rows)) if rows[i, column]), None)
        if pivot is None:
            continue
        rows[[top, pivot]] = rows[[pivot, top]]
        rows[top] = rows[top] * pow(int(rows[top, column]), -1, q) % q
        for i in np.flatnonzero(rows[:, column]).tolist():
            if i != top:
                rows[i] = (rows[i] - rows[i, column] * rows[top]) % q
        top += 1
    return rows
