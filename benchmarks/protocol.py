"""Whole surveys in memory compared with their cryptography alone, in `servers` and `explicit`.

CPU times, as everything runs on one thread. The cryptography is that of a few users or pairs, times
their number.
"""

import time

import numpy as np

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import EXPLICIT, SERVERS
from faircount.protocol.simulator import play
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.sharing.keys import Purpose, key_info
from protocol_masked import LIMIT, cpu
from table import Row, best_of, markdown

ITEMS = 30
SAMPLE = 200


def rows() -> list[Row]:
    return [servers_row(100_000), explicit_row(1_000)]


def servers_row(users: int) -> Row:
    """Every client encrypts one seed for the aggregator, and both sides expand it."""
    ours = cpu(lambda: play(np.arange(users) % ITEMS, Laplace(items=ITEMS, epsilon=1.0), SERVERS))
    alone = (
        best_of(lambda: one_sealed_seed(SAMPLE), most=40, budget=3.0, clock=time.process_time)
        / SAMPLE
        * users
    )
    return Row(
        f"servers survey, n = {users:,}, N = {ITEMS}",
        ours,
        LIMIT,
        alone,
        f"{users / ours:,.0f} users/s",
    )


def explicit_row(users: int) -> Row:
    """Every ordered pair of users seals and opens one row of shares."""
    ours = cpu(lambda: play(np.arange(users) % ITEMS, Laplace(items=ITEMS, epsilon=1.0), EXPLICIT))
    pairs = users * (users - 1)
    alone = (
        best_of(lambda: one_sealed_row(SAMPLE), most=40, budget=3.0, clock=time.process_time)
        / SAMPLE
        * pairs
    )
    return Row(
        f"explicit survey, n = {users:,}, N = {ITEMS}",
        ours,
        LIMIT,
        alone,
        f"{pairs / ours:,.0f} pairs/s",
    )


def one_sealed_seed(users: int) -> None:
    world, source, salt = StandardCrypto(), SystemEntropy(), bytes(32)
    server = world.keypair(source)
    info = key_info(Purpose.SERVERS, bytes(16), 0, 0, 1, salt)
    for _ in range(users):
        own = world.keypair(source)
        there, here = world.agree(own, server.public) or b"", world.agree(server, own.public) or b""
        world.decrypt(here, salt, info, world.encrypt(there, salt, info, bytes(32), source))
        for secret in (there, here):
            world.expand(secret, salt, info, 100_003, ITEMS)


def one_sealed_row(pairs: int) -> None:
    """Two clients agree on a key once, and encrypt and decrypt a row in each direction."""
    world, source, salt = StandardCrypto(), SystemEntropy(), bytes(32)
    own, other = world.keypair(source), world.keypair(source)
    info = key_info(Purpose.EXPLICIT_SHARE, bytes(16), 0, 0, 1, salt)
    row = bytes(ITEMS * 10 // 8 + 1)
    for _ in range(pairs):
        secret = world.agree(own, other.public) or b""
        world.decrypt(secret, salt, info, world.encrypt(secret, salt, info, row, source))


if __name__ == "__main__":
    print(markdown(rows()))
