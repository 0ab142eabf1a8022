"""Exact views: the joint distribution of everything that a party sees, over all randomness.

The role functions are the real ones. Cryptography is ideal: a ciphertext is a handle that reveals
nothing but its length, and a mask is a uniform vector. What is left of the randomness is small and
is enumerated, one run of the survey for every outcome (`every_run`): the clients' responses, their
shares, the masks. A party's view is every message it received, what it can decrypt of them, and the
masks it can compute; everybody reads the result. Keys and handles are the same in every run, so
nothing needs to be renamed.

Roles are pure functions. So each is run for real once for every sequence of outcomes that it asks
for, and then looked up (`IdealFunctionality.call`): a hundred thousand runs cost little more than
the look-ups.
"""

import math
from collections import Counter, defaultdict
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
from faircount.protocol import aggregator_step, coordinator_step, end_phase
from faircount.protocol.simulator import InMemory
from faircount.protocol.wire.codec import Message, parse
from faircount.protocol.wire.crypto import IdealCrypto, KeyPair
from faircount.protocol.wire.field_codecs import PackedList
from faircount.protocol.wire.messages import Signed
from faircount.sharing.field import dtype_for
from faircount.sharing.keys import KEY_BYTES
from faircount.sharing.shamir import SHARE_BYTES, KeyShare, combine_key

Distribution = dict[Hashable, Fraction]
"""Probability of every view."""


# --- all outcomes of the randomness ---------------------------------------------------------------


class Chance:
    """The randomness of one run.

    A draw has a name, and gives the same outcome whenever it is asked for within the run. `path`
    holds the outcome of each draw in the order of the first questions; draws beyond its end take
    their first outcome, and are appended. The probability of all outcomes so far is `weight` out
    of `total`.
    """

    def __init__(self, path: list[int]) -> None:
        self._path = path
        self.sizes = list[int]()
        self.drawn = dict[Hashable, int]()
        self.weight = 1
        self.total = 1

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
        self.weight *= weights[chosen]
        self.total *= sum(weights)
        return chosen


def every_run(run: Callable[[Chance], Hashable]) -> Distribution:
    """The distribution of what `run` returns, over all outcomes of all draws that it makes."""
    # Weights are added as integers, apart for every total of the proportions: there are few, and a
    # hundred thousand sums of fractions take longer than the look-ups of the roles.
    by_total = defaultdict[int, Counter[Hashable]](Counter)
    path = list[int]()
    while True:
        chance = Chance(path)
        returned = run(chance)
        by_total[chance.total][returned] += chance.weight
        # Depth first: go on with the next outcome of the last draw that has one left.
        while path and path[-1] == chance.sizes[len(path) - 1] - 1:
            path.pop()
        if not path:
            break
        path[-1] += 1

    distribution = dict[Hashable, Fraction]()
    for total, weights in by_total.items():
        for returned, weight in weights.items():
            before = distribution.get(returned, Fraction(0))
            distribution[returned] = before + Fraction(weight, total)
    return distribution


@lru_cache(maxsize=64)
def uniform(size: int) -> tuple[int, ...]:
    """Equal proportions."""
    return (1,) * size


def excess(one: Distribution, other: Distribution, epsilon: float) -> float:
    """The smallest delta for which two views are (epsilon, delta)-close, in both directions."""
    factor = math.exp(epsilon)
    views = one.keys() | other.keys()
    pairs = [(float(one.get(view, 0)), float(other.get(view, 0))) for view in views]
    return max(
        math.fsum(max(0.0, p - factor * q) for p, q in pairs),
        math.fsum(max(0.0, q - factor * p) for p, q in pairs),
    )


# --- ideal cryptography ---------------------------------------------------------------------------


@dataclass
class Node:
    """A state of one party, and what follows it for every message that was tried on it."""

    state: Any
    edges: dict[Hashable, Any] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def fact(self, name: str, compute: Callable[[Any], Any]) -> Any:
        """Something about the state, computed once."""
        if name not in self.facts:
            self.facts[name] = compute(self.state)
        return self.facts[name]


@dataclass
class _Branching:
    """What a role asked the randomness next; the branches are the outcomes met so far."""

    question: tuple[Any, ...]
    branches: dict[Hashable, Any] = field(default_factory=dict)


@dataclass
class _Result:
    """What a role returned, and what it encrypted on the way."""

    node: Node
    out: Any
    encrypted: list[tuple[bytes, bytes]]


class IdealFunctionality(IdealCrypto):
    """Ideal cryptography of one survey, and the results of the role functions so far.

    Attributes:
        chance: the randomness of this run
        pairs: the agreed secret of two keys -> their public halves
        handles: handle -> the key under which it was encrypted, and the secret of that key
        plaintexts: key -> plaintext, in this run
        masks: (secret, info) -> vector, in this run
    """

    def __init__(self) -> None:
        super().__init__()
        self.chance = Chance([])
        self.pairs: dict[bytes, frozenset[bytes]] = {}
        self.handles: dict[bytes, tuple[bytes, bytes]] = {}
        self.plaintexts: dict[bytes, bytes] = {}
        self.masks: dict[tuple[bytes, bytes], tuple[int, ...]] = {}
        self._numbers: dict[Message, int] = {}
        self._handles_in: list[list[bytes]] = []
        # By identity. The message is stored too, so that its identity is not used again.
        self._catalogued: dict[int, tuple[Message, int, list[bytes]]] = {}
        self._journal: list[tuple[tuple[Any, ...], Hashable]] | None = None
        self._encrypted: list[tuple[bytes, bytes]] = []

    def begin(self, chance: Chance) -> None:
        """A new run."""
        self.chance = chance
        self.plaintexts = {}
        self.masks = {}

    # --- randomness: every question of a role and its outcome is recorded

    def ask(self, *question: Any) -> Any:
        """The outcome that the randomness of this run gives."""
        kind, *arguments = question
        if kind == "decrypt":
            outcome: Any = self.plaintexts.get(*arguments)
        elif kind == "mask":
            outcome = self._draw_mask(*arguments)
        else:
            outcome = self.chance.draw(*arguments)
        if self._journal is not None:
            self._journal.append((question, outcome))
        return outcome

    def _draw_mask(self, secret: bytes, info: bytes, q: int, count: int) -> tuple[int, ...]:
        names = [("mask", secret, info, at) for at in range(count)]
        self.masks[secret, info] = tuple(self.chance.draw(name, uniform(q)) for name in names)
        return self.masks[secret, info]

    # --- the interface of a crypto suite

    def agree(self, mine: KeyPair, theirs: bytes) -> bytes:
        """The name of the pair."""
        secret = super().agree(mine, theirs)
        self.pairs[secret] = frozenset((mine.public, theirs))
        return secret

    def encrypt(
        self, secret: bytes, salt: bytes, info: bytes, plaintext: bytes, entropy: Entropy
    ) -> bytes:
        """A handle, which reveals who encrypts for whom, and how many bytes."""
        key = self.message_key(secret, salt, info)
        handle = self.handle(key, plaintext)
        self.handles[handle] = key, secret
        self.plaintexts[key] = plaintext
        self._encrypted.append((key, plaintext))
        return handle

    def decrypt_with_key(self, key: bytes, encrypted_share: bytes) -> bytes | None:
        """What was encrypted, for whoever has its key."""
        plaintext: bytes | None = self.ask("decrypt", key)
        if plaintext is None or encrypted_share != self.handle(key, plaintext):
            return None
        return plaintext

    def expand(self, secret: bytes, salt: bytes, info: bytes, q: int, count: int) -> Residues:
        """A uniform vector of the pair, or of the seed."""
        return np.array(self.ask("mask", secret, info, q, count), dtype=dtype_for(q))

    def commit(self, salt: bytes, content: bytes) -> bytes:
        """A handle that depends on the salt alone."""
        return shake_256(b"commitment" + salt).digest(32)

    def catalogue(self, received: Iterable[Message]) -> tuple[tuple[int, ...], list[bytes]]:
        """Messages as numbers, equal for equal messages, and all handles in them."""
        numbers = []
        handles = list[bytes]()
        for message in received:
            known = self._catalogued.get(id(message)) or self._catalogue_message(message)
            numbers.append(known[1])
            handles += known[2]
        return tuple(numbers), handles

    def _catalogue_message(self, message: Message) -> tuple[Message, int, list[bytes]]:
        number = self._numbers.setdefault(message, len(self._numbers))
        if number == len(self._handles_in):
            handles = [data for data in _bytes_in(message) if data in self.handles]
            self._handles_in.append(handles)
        self._catalogued[id(message)] = message, number, self._handles_in[number]
        return self._catalogued[id(message)]

    # --- role functions, each run once for every sequence of outcomes

    def call(self, role: Callable[..., Any], node: Node, *what: Hashable) -> tuple[Node, Any]:
        """(state, ...) -> (state, out) of a pure role function.

        It is run for real only if it asks for an outcome that it was not given before.
        """
        found = node.edges.get((role, *what))
        while isinstance(found, _Branching):
            found = found.branches.get(self.ask(*found.question))
        if found is None:
            return self.call_real(role, node, what)
        self.plaintexts.update(found.encrypted)
        return found.node, found.out

    def call_real(
        self, role: Callable[..., Any], node: Node, what: tuple[Any, ...]
    ) -> tuple[Node, Any]:
        """Run a role function, and record its questions and its result."""
        self._journal = []
        self._encrypted = []
        before = node.state.copy() if isinstance(node.state, InMemory) else node.state
        if isinstance(before, InMemory) and role in (coordinator_step, end_phase, aggregator_step):
            state, out = before.make_step(role, *what)
        else:
            state, out = role(before, *what)
        journal = self._journal
        self._journal = None
        after = Node(state)
        # A path through the tree: question, outcome, question, outcome, ..., result.
        branches: dict[Hashable, Any] = node.edges
        key: Hashable = (role, *what)
        for question, outcome in journal:
            branches = branches.setdefault(key, _Branching(question)).branches
            key = outcome
        branches[key] = _Result(after, out, list(self._encrypted))
        return after, out


class Scripted(Entropy):
    """A client's entropy: keys and nonces are the same in every run, elements of F_q are drawn.

    `name` must differ between what a client draws at different times.
    """

    def __init__(self, ideal: IdealFunctionality, q: int, user: int, *name: Hashable) -> None:
        self._ideal = ideal
        self._name = ("user", user, *name)
        self._q = q
        self._count = 0

    def bytes(self, size: int) -> bytes:
        """The same in every run."""
        self._count += 1
        return shake_256(f"{self._name} {self._count}".encode()).digest(size)

    def fill(self, out: NDArray[np.uint8]) -> None:
        """The words from which `sharing.field` makes elements of F_q; it accepts an element as is."""
        words = out.view(np.uint16)
        for at in range(words.size):
            words[at] = self.choose(uniform(self._q))

    def choose(self, weights: Sequence[int]) -> int:
        """A draw with probabilities in these proportions."""
        self._count += 1
        return int(self._ideal.ask("draw", (*self._name, self._count), tuple(weights)))


# --- what a party knows ---------------------------------------------------------------------------


@dataclass
class Observer:
    """Everything that a party, or a coalition, has.

    keys:     public halves of its own keys
    received: the messages it received
    owners:   clients whose own draws it knows
    """

    keys: frozenset[bytes]
    received: list[Message] = field(default_factory=list)
    owners: frozenset[int] = frozenset()

    def view(self, ideal: IdealFunctionality) -> Hashable:
        """Messages, what it decrypts of them, the masks that it can compute, and its own draws."""
        numbers, handles = ideal.catalogue(self.received)
        plaintexts = self.plaintexts(ideal, handles)
        known = self.known_keys(ideal, plaintexts)
        masks = []
        for (secret, info), mask in ideal.masks.items():
            if self.has_mask(ideal, secret, plaintexts, known):
                masks.append(((secret, info), mask))
        draws = []
        for name, outcome in ideal.chance.drawn.items():
            if owner_of(name) in self.owners:
                draws.append((name, outcome))
        return numbers, plaintexts, tuple(sorted(masks)), tuple(draws)

    def known_keys(
        self, ideal: IdealFunctionality, plaintexts: Iterable[bytes]
    ) -> frozenset[bytes]:
        """Public halves of its own keys, and of those that it can combine from key shares."""
        return self.keys | find_recovered_keys(ideal, plaintexts)

    def plaintexts(self, ideal: IdealFunctionality, handles: Sequence[bytes]) -> tuple[bytes, ...]:
        """What it decrypts with its own keys, then what the message keys found in that decrypt."""
        own = list[bytes]()
        message_keys = set[bytes]()
        for handle in handles:
            key, secret = ideal.handles[handle]
            plaintext = ideal.plaintexts.get(key)
            if plaintext is not None and not ideal.pairs[secret].isdisjoint(self.keys):
                own.append(plaintext)
                message_keys.update(_split_keys(plaintext))
        later = list[bytes]()
        for handle in handles:
            key, _ = ideal.handles[handle]
            plaintext = ideal.plaintexts.get(key)
            if plaintext is not None and key in message_keys:
                later.append(plaintext)
        return (*own, *later)

    def has_mask(
        self,
        ideal: IdealFunctionality,
        secret: bytes,
        plaintexts: Sequence[bytes],
        known: frozenset[bytes],
    ) -> bool:
        """Whether it has the seed of a mask, or a key of its pair."""
        pair = ideal.pairs.get(secret)
        return secret in plaintexts if pair is None else not pair.isdisjoint(known)


def _split_keys(plaintext: bytes) -> Iterator[bytes]:
    """Message keys, if it is a list of them."""
    return (plaintext[at : at + KEY_BYTES] for at in range(0, len(plaintext), KEY_BYTES))


def owner_of(name: Hashable) -> object:
    """The client whose draw has this name; those names are ("user", number, ...)."""
    return name[1] if isinstance(name, tuple) and name[0] == "user" else None


def _bytes_in(value: Any) -> Iterator[bytes]:
    if isinstance(value, Signed):
        yield from _bytes_in(parse(value.payload))
    elif isinstance(value, bytes):
        yield value
    elif isinstance(value, tuple | PackedList):
        for element in value:
            yield from _bytes_in(element)
    elif is_dataclass(value):
        for part in fields(value):
            yield from _bytes_in(getattr(value, part.name))


def find_recovered_keys(ideal: IdealFunctionality, plaintexts: Iterable[bytes]) -> frozenset[bytes]:
    """Public halves of the keys that follow from Shamir shares among the plaintexts."""
    dealings: dict[bytes, dict[int, KeyShare]] = {}
    for plaintext in plaintexts:
        if len(plaintext) % SHARE_BYTES:
            continue
        for at in range(0, len(plaintext), SHARE_BYTES):
            try:
                share = KeyShare.from_bytes(plaintext[at : at + SHARE_BYTES])
            except ShareError:
                continue
            dealings.setdefault(share.dealing, {})[share.index] = share
    found = set[bytes]()
    for shares in dealings.values():
        threshold = next(iter(shares.values())).threshold
        if len(shares) >= threshold:
            secret = combine_key(list(shares.values()), threshold)
            found.add(ideal.keypair_from(secret).public)
    return frozenset(found)
