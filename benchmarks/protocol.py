"""Whole surveys in memory beside their cryptography alone: `servers` for many users, `explicit` as in the paper.

CPU times, as everything runs on one thread. The cryptography is that of a few users or pairs, times their number.
"""

import time

import numpy as np

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import EXPLICIT, SERVERS
from faircount.protocol.play import play
from faircount.protocol.wire.sealing import RealSealing
from faircount.sharing.keys import Purpose, key_info
from protocol_masked import LIMIT, cpu
from table import Row, best_of, markdown

ITEMS = 30
SAMPLE = 200


def rows() -> list[Row]:
    return [servers_row(100_000), explicit_row(1_000)]


def servers_row(users: int) -> Row:
    """Every user draws a key, seals one seed to S2 and expands it; S2 opens and expands it again."""
    ours = cpu(lambda: play(np.arange(users) % ITEMS, Laplace(items=ITEMS, epsilon=1.0), SERVERS))
    alone = best_of(lambda: one_sealed_seed(SAMPLE), most=40, budget=3.0, clock=time.process_time) / SAMPLE * users
    return Row(f"servers survey, n = {users:,}, N = {ITEMS}", ours, LIMIT, alone, f"{users / ours:,.0f} users/s")


def explicit_row(users: int) -> Row:
    """Every ordered pair of users seals and opens one row of shares."""
    ours = cpu(lambda: play(np.arange(users) % ITEMS, Laplace(items=ITEMS, epsilon=1.0), EXPLICIT))
    pairs = users * (users - 1)
    alone = best_of(lambda: one_sealed_row(SAMPLE), most=40, budget=3.0, clock=time.process_time) / SAMPLE * pairs
    return Row(f"explicit survey, n = {users:,}, N = {ITEMS}", ours, LIMIT, alone, f"{pairs / ours:,.0f} pairs/s")


def one_sealed_seed(users: int) -> None:
    world, source, salt = RealSealing(), SystemEntropy(), bytes(32)
    server = world.keypair(source)
    info = key_info(Purpose.SERVERS, bytes(16), 0, 0, 1, salt)
    for _ in range(users):
        own = world.keypair(source)
        there, here = world.agree(own, server.public) or b"", world.agree(server, own.public) or b""
        world.open(here, salt, info, world.seal(there, salt, info, bytes(32), source))
        for secret in (there, here):
            world.stretch(secret, salt, info, 100_003, ITEMS)


def one_sealed_row(pairs: int) -> None:
    """Both ends agree on a key once for two directions; a row is sealed and opened in each."""
    world, source, salt = RealSealing(), SystemEntropy(), bytes(32)
    own, other = world.keypair(source), world.keypair(source)
    info = key_info(Purpose.EXPLICIT_SHARE, bytes(16), 0, 0, 1, salt)
    row = bytes(ITEMS * 10 // 8 + 1)
    for _ in range(pairs):
        secret = world.agree(own, other.public) or b""
        world.open(secret, salt, info, world.seal(secret, salt, info, row, source))


if __name__ == "__main__":
    print(markdown(rows()))
