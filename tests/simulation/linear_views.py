"""What a party learns, exactly, where its view is linear: sums of answers, found by algebra.

With noise off and two items, a client's vector is (1 - a, a) for its answer a, and everything that
is sent is a linear function over F_q of the answers and of uniform elements (masks, shares). So the
view is A a + B u with u uniform. It reveals w A a for every w with w B = 0, and nothing else. A and
B are found by running the survey once for every answer and once for every element. That the view is
linear is checked on runs with all of them drawn at random.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.protocol.wire.codec import parse
from faircount.protocol.wire.field_codecs import PackedList
from faircount.protocol.wire.messages import Published, Signed
from faircount.sharing.packing import packed_size, unpack
from simulation.view_enumeration import Scenario, ViewEnumerator
from simulation.views import Chance, IdealFunctionality, Observer, owner_of

Matrix = NDArray[np.int64]
Element = tuple[Hashable, int]
"""A field element in a view, with its name."""

VECTORS = ("vector", "total", "share")
"""Fields of messages that hold a packed vector."""

DERIVED = ("signature", "message_hash", "path", "previous")
"""Fields that follow from others: signatures, and hashes of what the party has anyway."""


class Fixed(Chance):
    """Randomness with given values; what is not given is 0."""

    def __init__(self, values: dict[Hashable, int]) -> None:
        super().__init__([])
        self.values = values

    def draw(self, name: Hashable, weights: Sequence[int]) -> int:
        """The given value; which elements there are is recorded."""
        if name not in self.drawn:
            self.sizes.append(len(weights))
        self.drawn[name] = self.values.get(name, 0) if len(weights) > 1 else 0
        return self.drawn[name]


@dataclass(frozen=True)
class _Run:
    """One run: its randomness, the names of all elements in the joint view, and their values."""

    chance: Fixed
    names: tuple[Hashable, ...]
    values: Matrix


def find_learned_sums(
    enumerator: ViewEnumerator, scenario: Scenario, who: Iterable[Any]
) -> list[list[int]]:
    """A basis, in reduced form, of the sums of answers that follow from these parties' joint view.

    A party is `Party.COORDINATOR`, `Party.AGGREGATOR`, or a tuple of clients.
    """
    n = enumerator.params.n_max
    q = enumerator.params.q
    parties = list(who)

    def run(answers: Sequence[int], values: dict[Hashable, int]) -> _Run:
        return _run(enumerator, scenario, parties, answers, values)

    zeros = [0] * n
    base = run(zeros, {})
    drawn = zip(base.chance.drawn, base.chance.sizes, strict=True)
    names = [name for name, size in drawn if size > 1]
    answer_runs = [run([int(j == i) for j in range(n)], {}) for i in range(n)]
    element_runs = [run(zeros, {name: 1}) for name in names]
    if any(other.names != base.names for other in (*answer_runs, *element_runs)):
        raise AssertionError("the form of the view depends on answers")
    a = _columns(answer_runs, base, q)
    b = _columns(element_runs, base, q)

    rng = np.random.default_rng(0)
    for _ in range(2):
        elements = rng.integers(0, q, len(names))
        answers = rng.integers(0, 2, n)
        values = dict(zip(names, elements.tolist(), strict=True))
        found = run(answers.tolist(), values)
        predicted = base.values + a @ answers + b @ elements
        if found.names != base.names or ((predicted - found.values) % q).any():
            raise AssertionError(
                "the view is not linear in answers and random elements, or its form depends on them"
            )
    return reduce_rows(eliminate_randomness(b, a, q), q)


def _run(
    enumerator: ViewEnumerator,
    scenario: Scenario,
    who: Sequence[Any],
    answers: Sequence[int],
    values: dict[Hashable, int],
) -> _Run:
    chance = Fixed(values)
    enumerator.start(chance, answers)
    scenario(enumerator)
    elements = list[Element]()
    for party in who:
        elements.extend(_elements_of_view(enumerator, enumerator.observer(party)))
    names = tuple(name for name, _ in elements)
    return _Run(chance, names, np.array([value for _, value in elements], dtype=np.int64))


# --- a view as field elements ---------------------------------------------------------------------


def _elements_of_view(enumerator: ViewEnumerator, observer: Observer) -> Iterator[Element]:
    """Everything in a view, as field elements with names.

    What is no field element has its content in its name.
    """
    ideal = enumerator.ideal
    q = enumerator.params.q
    count = enumerator.params.N
    for at, message in enumerate(observer.received):
        yield from _elements_of_message(message, (at,), q, count)
    _, handles = ideal.catalogue(observer.received)
    plaintexts = observer.plaintexts(ideal, handles)
    for at, plaintext in enumerate(plaintexts):
        if len(plaintext) == packed_size(q, count):
            for i, value in enumerate(unpack(plaintext, q, count)):
                yield ("plain", at, i), int(value)
        else:
            yield ("plain", at, plaintext), 0
    yield from _known_masks(ideal, observer, plaintexts)
    for name, value in ideal.chance.drawn.items():
        if owner_of(name) in observer.owners:
            yield name, value
    for i in observer.owners:
        yield ("answer", i), int(enumerator.devices[i].state.sheet[0])


def _known_masks(
    ideal: IdealFunctionality, observer: Observer, plaintexts: Sequence[bytes]
) -> Iterator[Element]:
    known = observer.known_keys(ideal, plaintexts)
    for (secret, info), mask in sorted(ideal.masks.items()):
        if observer.has_mask(ideal, secret, plaintexts, known):
            for i, value in enumerate(mask):
                yield ("mask", secret, info, i), value


def _elements_of_message(
    value: Any, name: tuple[Hashable, ...], q: int, count: int
) -> Iterator[Element]:
    if isinstance(value, Signed):
        yield from _elements_of_message(parse(value.payload), name, q, count)
    elif isinstance(value, Published):
        for i, number in enumerate(value.counts):
            yield (*name, "count", i), int(number) % q
    elif isinstance(value, tuple | PackedList):
        for i, element in enumerate(value):
            yield from _elements_of_message(element, (*name, i), q, count)
    elif is_dataclass(value):
        for part in fields(value):
            content = getattr(value, part.name)
            if part.name in VECTORS:
                yield from _elements_of_vector(content, (*name, part.name), q, count)
            elif part.name not in DERIVED:
                yield from _elements_of_message(content, (*name, part.name), q, count)
    else:
        yield (*name, value), 0


def _elements_of_vector(
    packed: bytes, name: tuple[Hashable, ...], q: int, usual: int
) -> Iterator[Element]:
    """The elements of a packed vector: as many as usual if that fits, else the most that fit.

    Those behind the last one are 0.
    """
    fitting = [n for n in range(8 * len(packed) + 1) if packed_size(q, n) == len(packed)]
    size = usual if usual in fitting else max(fitting)
    for i, value in enumerate(unpack(packed, q, size)):
        yield (*name, i), int(value)


# --- linear algebra over F_q, q prime -------------------------------------------------------------


def _columns(runs: Sequence[_Run], base: _Run, q: int) -> Matrix:
    """How the view changes from the base in each of the runs."""
    rows = np.array([(run.values - base.values) % q for run in runs], dtype=np.int64)
    return rows.reshape(len(runs), base.values.size).T


def eliminate_randomness(b: Matrix, a: Matrix, q: int) -> Matrix:
    """w A for a basis of all w with w B = 0."""
    width = b.shape[1]
    rows = _echelon(np.concatenate((b, a), axis=1) % q, q)
    return rows[~rows[:, :width].any(axis=1), width:]


def reduce_rows(rows: Matrix, q: int) -> list[list[int]]:
    """The nonzero rows of the reduced row echelon form."""
    echelon = _echelon(rows, q)
    found: list[list[int]] = echelon[echelon.any(axis=1)].tolist()
    return found


def _echelon(rows: Matrix, q: int) -> Matrix:
    """Reduced row echelon form."""
    rows = rows.copy() % q
    top = 0
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
