"""Secret sharing compared with its lower limit, the AES key stream, and with a plain loop."""

import secrets
from collections.abc import Callable
from functools import partial
from time import process_time

import numpy as np

from faircount.core.entropy import SystemEntropy
from faircount.sharing.additive import exchange
from faircount.sharing.expand import expand
from faircount.sharing.field import BLOCK_BYTES, uniform, word_for
from faircount.sharing.primes import smallest_prime_above
from table import Row, best_of, markdown

ITEMS = 30
BULK = 10_000_000
LOOP = 100_000
LIMIT = "key stream of as many bytes"


def rows() -> list[Row]:
    """The limit itself, random elements, the whole exchange of Alg. 2, and a peer."""
    source = SystemEntropy()
    return [
        stream_row(),
        *(
            bulk_row(f"uniform elements, q = {q}", q, partial(uniform, q, BULK, source))
            for q in (1009, 100003)
        ),
        *(
            bulk_row(f"expanded elements, q = {q}", q, partial(expand, bytes(32), q, BULK))
            for q in (1009, 100003)
        ),
        *(exchange_row(users, source) for users in (1000, 5000)),
        peer_row(1009, source),
    ]


def stream_row() -> Row:
    """The key stream through core.entropy: what every other row is held against."""
    taken = key_stream(1 << 30)
    return Row("key stream, 1 GiB", taken, "-", None, f"{(1 << 30) / taken / 1e9:.2f} GB/s")


def bulk_row(what: str, q: int, work: Callable[[], object]) -> Row:
    return limited(f"{what}, {BULK:,} of them", BULK, q, work)


def exchange_row(users: int, source: SystemEntropy) -> Row:
    """Everybody shares a vector with everybody: DPDS with every explicit share."""
    q = smallest_prime_above(users)
    responses = np.zeros((users, ITEMS), dtype=np.uint16)
    what = f"exchange, n = m = {users}, N = {ITEMS}, q = {q}"
    return limited(
        what, users * (users - 1) * ITEMS, q, lambda: exchange(responses, users, q, source)
    )


def peer_row(q: int, source: SystemEntropy) -> Row:
    loop = best_of(lambda: [secrets.randbelow(q) for _ in range(LOOP)], clock=process_time)
    ours = best_of(lambda: uniform(q, LOOP, source), clock=process_time)
    return Row(
        f"uniform elements, q = {q}, {LOOP:,} of them",
        ours,
        "secrets.randbelow in a loop",
        loop,
        rate(LOOP, ours),
    )


def limited(what: str, elements: int, q: int, work: Callable[[], object]) -> Row:
    """Ours beside the key stream of one word per element, without which there are no elements."""
    ours = best_of(work, clock=process_time)
    limit = key_stream(elements * word_for(q).itemsize)
    return Row(what, ours, LIMIT, limit, rate(elements, ours))


def key_stream(size: int) -> float:
    """Seconds for `size` bytes, in a buffer that stays in the cache."""
    source, buffer = SystemEntropy(), np.empty(BLOCK_BYTES, dtype=np.uint8)

    def work() -> None:
        for _ in range(size // BLOCK_BYTES):
            source.fill(buffer)
        source.fill(buffer[: size % BLOCK_BYTES])

    return best_of(work, clock=process_time)


def rate(elements: int, taken: float) -> str:
    return f"{elements / taken / 1e6:,.0f} M elements/s"


if __name__ == "__main__":
    print(markdown(rows()))
