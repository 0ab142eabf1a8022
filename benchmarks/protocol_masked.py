"""Masked surveys in memory compared with their cryptography alone, in plain loops.

CPU times, as everything runs on one thread. The cryptography is that of a few users, times the
number of users.
"""

import time
from collections.abc import Callable

import numpy as np

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import MASKED
from faircount.protocol.simulator import play
from faircount.protocol.topologies.masked.graph import plan_graph
from faircount.protocol.wire.crypto import StandardCrypto
from faircount.sharing.keys import Purpose, key_info
from faircount.sharing.shamir import combine_key, split_key
from table import Row, best_of, markdown

USERS = 5000
ITEMS = 30
SAMPLE = 20
LIMIT = "its cryptography alone"


def rows() -> list[Row]:
    """A whole survey, and what the aggregator does for one user who was dropped."""
    return [survey_row(USERS), recovery_row(USERS)]


def survey_row(users: int) -> Row:
    """Everybody enrols, shares its mask key with k neighbours and sends its masked vector."""
    (k, t), mechanism = plan_graph(users), Laplace(items=ITEMS, epsilon=1.0)
    ours = cpu(lambda: play(np.arange(users) % ITEMS, mechanism, MASKED))
    few = best_of(
        lambda: user_cryptography(SAMPLE, k, t), most=10, budget=5.0, clock=time.process_time
    )
    alone = few / SAMPLE * users
    what = f"masked survey, n = {users:,}, N = {ITEMS}, k = {k}, t = {t}"
    return Row(what, ours, LIMIT, alone, f"{users / ours:,.0f} users/s on one core")


def recovery_row(users: int) -> Row:
    """The key of a user who dropped out, from t shares, and the masks with k others."""
    (k, t), world, source = plan_graph(users), StandardCrypto(), SystemEntropy()
    shares = split_key(source.bytes(32), t, k, source)
    others = [world.keypair(source).public for _ in range(k)]
    combined = best_of(lambda: combine_key(shares[:t], t), budget=0.5)
    taken = best_of(lambda: masks(world, source.bytes(32), others), budget=0.5)
    what = f"recovery of one dropped user, k = {k}, t = {t}"
    return Row(
        what, combined + taken, "-", None, f"of it {combined / (combined + taken):.0%} for the key"
    )


def user_cryptography(users: int, k: int, t: int) -> None:
    """What a client and the aggregator compute for one user.

    Two key pairs, 2 k + 2 key exchanges, 2 k + 2 encryptions, k masks and one shared key.
    """
    world, source, salt = StandardCrypto(), SystemEntropy(), bytes(32)
    others = [world.keypair(source).public for _ in range(k)]
    infos = [key_info(Purpose.KEY_RECOVERY, bytes(16), 0, 0, j + 1, salt) for j in range(k + 1)]
    for _ in range(users):
        own, mask = world.keypair(source), world.keypair(source)
        parts = [part.to_bytes() for part in split_key(mask.secret, t, k, source)]
        secrets = [world.agree(own, other) or b"" for other in others]
        sealed = [
            world.encrypt(secret, salt, info, part, source)
            for secret, info, part in zip(secrets, infos, parts, strict=False)
        ]
        for secret, info, blob in zip(secrets, infos, sealed, strict=False):
            world.decrypt(secret, salt, info, blob)
        masks(world, mask.secret, others)
        for _ in ("user", "S2"):
            world.agree(own, others[0])
            world.encrypt(secrets[0], salt, infos[-1], bytes(50), source)


def masks(world: StandardCrypto, secret: bytes, others: list[bytes]) -> None:
    own = world.keypair_from(secret)
    secrets = [world.agree(own, other) or b"" for other in others]
    infos = [key_info(Purpose.MASK, bytes(16), 1, 0, j + 1, bytes(32)) for j in range(len(others))]
    world.expand_rows(secrets, bytes(32), infos, 5003, ITEMS)


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    print(markdown(rows()))
