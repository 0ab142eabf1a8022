"""What NumPy itself takes for uniform field elements: each pass over a block alone.

An element needs a random word, a comparison (is the word accepted?), the place of the rejected
words, and a remainder. NumPy makes one pass over memory for each of them, and three for a
remainder; nothing of it can be fused without compiled code of our own. CPU times of one thread, in
turns: a block of the key stream beside each pass over the same block.
"""

from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np

from faircount.core.entropy import SystemEntropy
from faircount.sharing.field import BLOCK_BYTES, UniformDraws, dtype_for, last_accepted, word_for
from table import Row, markdown

ROUNDS = 200
TURNS = 7


def rows() -> list[Row]:
    return [row for q in (1009, 100003) for row in rows_for(q)]


def rows_for(q: int) -> list[Row]:
    """The key stream of a block beside each pass over it, beside all of them, and beside ours."""
    source = SystemEntropy()
    word = word_for(q)
    words = np.empty(BLOCK_BYTES // word.itemsize, dtype=word)
    source.fill(words.view(np.uint8))
    spare = np.empty_like(words)
    above = np.empty(words.size, dtype=np.bool_)
    out = np.empty(words.size, dtype=dtype_for(q))
    last = last_accepted(q, word)
    divisor = word.type(q)
    draws = UniformDraws(q, source)
    ways: dict[str, Callable[[], object]] = {
        "key stream": lambda: source.fill(spare.view(np.uint8)),
        "comparison": lambda: np.greater(words, last, out=above),
        "places of the rejected": lambda: np.flatnonzero(above),
        "division": lambda: np.floor_divide(words, divisor, out=spare),
        "multiplication": lambda: np.multiply(spare, divisor, out=spare),
        "subtraction": lambda: np.subtract(words, spare, out=out, casting="same_kind"),
        "ours": lambda: draws.fill(out),
    }
    spent: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, work in ways.items():
            start = process_time()
            for _ in range(ROUNDS):
                work()
            spent[name].append((process_time() - start) / ROUNDS / words.size)
    per_element = {name: median(times) for name, times in spent.items()}
    stream = per_element.pop("key stream")
    ours = per_element.pop("ours")
    passes = ", ".join(f"{name} {1e9 * taken:.2f}" for name, taken in per_element.items())
    floor = stream + sum(per_element.values())
    limit = "key stream alone"
    return [
        Row(f"NumPy's passes for an element, q = {q}", floor, limit, stream, f"ns: {passes}"),
        Row(f"our uniform element, q = {q}", ours, limit, stream),
        Row(f"our uniform element, q = {q}", ours, "NumPy's passes", floor),
    ]


if __name__ == "__main__":
    print(markdown(rows()))
