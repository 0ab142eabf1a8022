"""Exact views: the joint law of everything that a party sees, over all randomness, through the real role functions.

Cryptography is ideal: a blob is a handle that says nothing but its length, a mask is a uniform vector. What is left of
the randomness is small and enumerated, one run of the survey for every outcome (`every_run`): the users' responses,
their shares, the masks. A party's view is every message it received, what it can open of it, and the masks it can
compute; everybody reads the result. Keys and handles are the same in every run, so nothing needs to be renamed.

Roles are pure functions, so each is run for real once for every answer that the randomness gives to its questions, and
remembered (`IdealFunctionality.call`): a hundred thousand runs cost little more than looking them up.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import shake_256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.core.arrays import Residues
from faircount.core.entropy import Entropy
from faircount.core.errors import ShareError
from faircount.protocol import aggregate, coordinate, end_phase
from faircount.protocol.simulator import InMemory
from faircount.protocol.wire.codec import Message, parse
from faircount.protocol.wire.crypto import IdealCrypto, KeyPair
from faircount.protocol.wire.field_codecs import PackedList
from faircount.protocol.wire.messages import Signed
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import KEY_BYTES
from faircount.sharing.shamir import SHARE_BYTES, KeyShare, combine_key

Law = dict[Hashable, Fraction]
"""Probability of every view."""


# --- all outcomes of the randomness -------------------------------------------------------------------------------


class Chance:
    """The randomness of one run: each named draw gives one of its outcomes, always the same within the run."""

    def __init__(self, path: list[int]) -> None:
        self._path, self.sizes, self.drawn = path, list[int](), dict[Hashable, int]()
        self._weight = self._whole = 1

    def draw(self, name: Hashable, weights: Sequence[int]) -> int:
        """The outcome of a draw with probabilities in these proportions."""
        known = self.drawn.get(name)
        if known is not None:
            return known
        at = len(self.sizes)
        if at == len(self._path):
            self._path.append(0)
        self.sizes.append(len(weights))
        chosen = self.drawn[name] = self._path[at]
        self._weight *= weights[chosen]
        self._whole *= sum(weights)
        return chosen

    @property
    def weight(self) -> Fraction:
        """The probability of all outcomes so far."""
        return Fraction(self._weight, self._whole)


def every_run(enumerator: Callable[[Chance], Hashable]) -> Law:
    """The law of what `enumerator` returns, over all outcomes of all draws that it makes."""
    law, path = dict[Hashable, Fraction](), list[int]()
    while True:
        chance = Chance(path)
        seen = enumerator(chance)
        law[seen] = law.get(seen, Fraction(0)) + chance.weight
        while path and path[-1] == chance.sizes[len(path) - 1] - 1:
            path.pop()
        if not path:
            return law
        path[-1] += 1


@lru_cache(maxsize=64)
def uniform(size: int) -> tuple[int, ...]:
    """Equal proportions."""
    return (1,) * size


def excess(one: Law, other: Law, epsilon: float) -> float:
    """The smallest delta for which two views are (epsilon, delta)-close, in both directions."""
    views, factor = one.keys() | other.keys(), math.exp(epsilon)
    pairs = [(float(one.get(each, 0)), float(other.get(each, 0))) for each in views]
    return max(
        math.fsum(max(0.0, p - factor * q) for p, q in pairs),
        math.fsum(max(0.0, q - factor * p) for p, q in pairs),
    )


# --- ideal cryptography -------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A state of one party, and what became of it for every message that it has been given."""

    state: Any
    edges: dict[Hashable, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def fact(self, name: str, found: Callable[[Any], Any]) -> Any:
        """Something about the state, worked out once."""
        if name not in self.facts:
            self.facts[name] = found(self.state)
        return self.facts[name]


@dataclass
class _Question:
    """What a role asked the randomness next; the branches are the answers met so far."""

    ask: tuple[Any, ...]
    branches: dict[Hashable, Any] = field(default_factory=dict)


@dataclass
class _Answer:
    """A role's result, and what it sealed on the way."""

    node: Node
    out: Any
    sealed: list[tuple[bytes, bytes]]


class IdealFunctionality(IdealCrypto):
    """One ideal of ideal cryptography, and the memory of what the roles did in it."""

    def __init__(self) -> None:
        super().__init__()
        self.chance = Chance([])
        self.pairs: dict[bytes, frozenset[bytes]] = {}  # secret of a pair -> its public keys
        self.handles: dict[
            bytes, tuple[bytes, bytes]
        ] = {}  # handle -> key under which it was sealed, secret
        self.sealed: dict[bytes, bytes] = {}  # key -> plaintext, in this run
        self.masks: dict[
            tuple[bytes, bytes], tuple[int, ...]
        ] = {}  # (secret, info) -> vector, in this run
        self._numbers: dict[Message, int] = {}
        self._listed: dict[
            int, tuple[Message, int, list[bytes]]
        ] = {}  # by identity, which the message here keeps
        self._journal: list[tuple[tuple[Any, ...], Hashable]] | None = None
        self._effects: list[tuple[bytes, bytes]] = []

    def begin(self, chance: Chance) -> None:
        """A new run."""
        self.chance, self.sealed, self.masks = chance, {}, {}

    # randomness, asked by roles: every question and its answer is noted

    def ask(self, *question: Any) -> Any:
        """What the randomness of this run answers."""
        kind, *rest = question
        answer = (
            self._open(*rest)
            if kind == "open"
            else self._stretch(*rest)
            if kind == "mask"
            else self._draw(*rest)
        )
        if self._journal is not None:
            self._journal.append((question, answer))
        return answer

    def _open(self, key: bytes) -> bytes | None:
        return self.sealed.get(key)

    def _draw(self, name: Hashable, weights: Sequence[int]) -> int:
        return self.chance.draw(name, weights)

    def _stretch(self, secret: bytes, info: bytes, q: int, count: int) -> tuple[int, ...]:
        names = [("mask", secret, info, at) for at in range(count)]
        self.masks[secret, info] = tuple(self.chance.draw(name, uniform(q)) for name in names)
        return self.masks[secret, info]

    # the interface of sealing

    def agree(self, mine: KeyPair, theirs: bytes) -> bytes:
        """The name of the pair."""
        secret = super().agree(mine, theirs)
        self.pairs[secret] = frozenset((mine.public, theirs))
        return secret

    def encrypt(
        self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy
    ) -> bytes:
        """A handle: who seals for whom, and how much."""
        key = self.message_key(secret, salt, info)
        handle = self.handle(key, plaintext)
        self.handles[handle] = key, secret
        self.sealed[key] = plaintext
        self._effects.append((key, plaintext))
        return handle

    def decrypt_with_key(self, key: bytes, encrypted_share: bytes) -> bytes | None:
        """What was sealed, for whoever has its key."""
        plaintext: bytes | None = self.ask("open", key)
        return (
            plaintext
            if plaintext is not None and encrypted_share == self.handle(key, plaintext)
            else None
        )

    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """A uniform vector of the pair, or of the seed."""
        return np.array(self.ask("mask", secret, info, q, count), dtype=dtype_for(q))

    def commit(self, salt: bytes, content: bytes) -> bytes:
        """A handle that depends on the salt alone."""
        return shake_256(b"commitment" + salt).digest(32)

    def catalogue(self, received: Iterable[Message]) -> tuple[tuple[int, ...], list[bytes]]:
        """Messages as numbers, equal for equal messages, and all handles in them."""
        found = [self._listed.get(id(each)) or self._list(each) for each in received]
        return tuple(number for _, number, _ in found), [
            handle for _, _, handles in found for handle in handles
        ]

    def _list(self, message: Message) -> tuple[Message, int, list[bytes]]:
        number = self._numbers.setdefault(message, len(self._numbers))
        listed = message, number, [each for each in _bytes_in(message) if each in self.handles]
        self._listed[id(message)] = listed
        return listed

    # the memory

    def call(self, role: Callable[..., Any], node: Node, *what: Hashable) -> tuple[Node, Any]:
        """(state, ...) -> (state, out) of a pure role function, run for real only for questions not met before."""
        at = node.edges.get((role, *what))
        while isinstance(at, _Question):
            at = at.branches.get(self.ask(*at.ask))
        if at is None:
            return self._really(role, node, what)
        self.sealed.update(at.sealed)
        return at.node, at.out

    def _really(
        self, role: Callable[..., Any], node: Node, what: tuple[Any, ...]
    ) -> tuple[Node, Any]:
        self._journal, self._effects = [], []
        before = node.state.copy() if isinstance(node.state, InMemory) else node.state
        if isinstance(before, InMemory) and role in (coordinate, end_phase, aggregate):
            state, out = before.do(role, *what)
        else:
            state, out = role(before, *what)
        journal, self._journal = self._journal, None
        after = Node(state)
        branches: dict[Hashable, Any] = node.edges
        key: Hashable = (role, *what)
        for question, answer in journal:
            branches, key = branches.setdefault(key, _Question(question)).branches, answer
        branches[key] = _Answer(after, out, list(self._effects))
        return after, out


class Scripted(Entropy):
    """A user's entropy: keys and nonces are the same in every run, uniform elements of F_q are drawn by chance.

    `name` must tell apart what a user draws at different times.
    """

    def __init__(self, ideal: IdealFunctionality, q: int, user: int, *name: Hashable) -> None:
        self._world, self._name, self._q, self._count = ideal, ("user", user, *name), q, 0

    def bytes(self, size: int) -> bytes:
        """The same in every run."""
        self._count += 1
        return shake_256(f"{self._name} {self._count}".encode()).digest(size)

    def fill(self, out: NDArray[np.uint8]) -> None:
        """The words from which `sharing.field` makes elements of F_q: the element itself is accepted as a word."""
        words = out.view(np.uint16)
        for at in range(words.size):
            words[at] = self.choose(uniform(self._q))

    def choose(self, weights: Sequence[int]) -> int:
        """A draw with probabilities in these proportions."""
        self._count += 1
        return int(self._world.ask("draw", (*self._name, self._count), tuple(weights)))


# --- what a party knows -------------------------------------------------------------------------------------------


@dataclass
class Observer:
    """Everything that a party, or a coalition, has: its keys, what it received, what it drew."""

    keys: frozenset[bytes]  # public halves of its own keys
    received: list[Message] = field(default_factory=list)
    owners: frozenset[int] = frozenset()  # users whose own draws it knows

    def view(self, ideal: IdealFunctionality) -> Hashable:
        """Messages, what opens of them, the masks that it can compute, and its own draws."""
        numbers, handles = ideal.catalogue(self.received)
        plain = self.plaintexts(ideal, handles)
        known = self.known_keys(ideal, plain)
        masks = tuple(
            sorted(
                item
                for item in ideal.masks.items()
                if self.computes(ideal, item[0][0], plain, known)
            )
        )
        own = tuple(item for item in ideal.chance.drawn.items() if owner_of(item[0]) in self.owners)
        return numbers, plain, masks, own

    def known_keys(self, ideal: IdealFunctionality, plain: Iterable[bytes]) -> frozenset[bytes]:
        """Public halves of its own keys, and of those that it can put together."""
        return self.keys | find_recovered_keys(ideal, plain)

    def plaintexts(self, ideal: IdealFunctionality, handles: Sequence[bytes]) -> tuple[bytes, ...]:
        """What opens with its own keys, and then what opens with the message keys found in that."""
        first = [self._decrypt(ideal, each) for each in handles]
        keys = {piece for text in first if text is not None for piece in _pieces(text)}
        later = [
            ideal.sealed.get(ideal.handles[each][0])
            for each in handles
            if ideal.handles[each][0] in keys
        ]
        return tuple(text for text in (*first, *later) if text is not None)

    def _decrypt(self, ideal: IdealFunctionality, handle: bytes) -> bytes | None:
        key, secret = ideal.handles[handle]
        return None if ideal.pairs[secret].isdisjoint(self.keys) else ideal.sealed.get(key)

    def computes(
        self,
        ideal: IdealFunctionality,
        secret: bytes,
        plain: Sequence[bytes],
        known: frozenset[bytes],
    ) -> bool:
        """Whether it has the seed of a mask, or a key of its pair."""
        pair = ideal.pairs.get(secret)
        return secret in plain if pair is None else not pair.isdisjoint(known)


def _pieces(text: bytes) -> Iterator[bytes]:
    """Message keys, if it is a list of them."""
    return (text[at : at + KEY_BYTES] for at in range(0, len(text), KEY_BYTES))


def owner_of(name: Hashable) -> object:
    """Draws of a user are named ("user", number, ...)."""
    return name[1] if isinstance(name, tuple) and name[0] == "user" else None


def _bytes_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, Signed):
        yield from _bytes_in(parse(value.payload))
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, tuple | PackedList):
        for each in value:
            yield from _bytes_in(each)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _bytes_in(getattr(value, part.name))


def find_recovered_keys(ideal: IdealFunctionality, plain: Iterable[bytes]) -> frozenset[bytes]:
    """Public halves of the keys that follow from Shamir shares among the plaintexts."""
    dealings: dict[bytes, dict[int, KeyShare]] = {}
    for text in plain:
        for at in range(0, len(text) if len(text) % SHARE_BYTES == 0 else 0, SHARE_BYTES):
            try:
                share = KeyShare.from_bytes(text[at : at + SHARE_BYTES])
            except ShareError:
                continue
            dealings.setdefault(share.dealing, {})[share.index] = share
    found = [each for each in dealings.values() if len(each) >= next(iter(each.values())).threshold]
    secrets = [
        combine_key(list(each.values()), next(iter(each.values())).threshold) for each in found
    ]
    return frozenset(ideal.keypair_from(secret).public for secret in secrets)
