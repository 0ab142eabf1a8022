"""What clients who lie can do to one item's frequency, with and without proofs, and to local mechanisms.

All liars hold other items and want the rarest one to look frequent. They do the worst that nobody notices:

    laplace         a vector with up to 50 votes for the item and as many taken from others, until it stands at 100%
    server-laplace  their one vote, since everything else is refused
    placed-coins    their one vote, and heads only on their coins, which are then turned over and placed
    grr, oue        the report that counts most for the item, without any coin: manipulation of local privacy

Measured is the squared error of that item's frequency. The bound for proven reports is c/n, which is what c votes do.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.core.entropy import SeededStream
from faircount.experiments.studies.error_law import cumulants
from faircount.experiments.studies.study import ACTING, COUNTS, USERS, Expected, Study, holders
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local_frequency import GRR, OUE, LocalFrequency
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.secret_shared import one_hot
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.mechanisms.verified import VerifiedMechanism
from faircount.sharing.field import add, from_signed
from faircount.sweep.sweep import Point

DATA = "gowalla"
EPSILON, DELTA = 1.0, 1e-6
LIARS = (0, 2, 5, 10, 20, 50, 100, 150, 200)
"""Of 1,000 users."""

SHARED, PROVEN, LOCAL = ("laplace",), ("server-laplace", "placed-coins"), ("oue", "grr")
METHODS = (*SHARED, *PROVEN, *LOCAL)
VOTES = 50
"""That one liar claims to have where nobody can tell."""

Attack = Callable[[Any, int, str, np.random.Generator], Floats]
"""Estimates of one survey of a mechanism with so many liars."""

Attacked = Laplace | VerifiedMechanism | LocalFrequency
_KINDS: dict[str, Callable[..., Attacked]] = {
    "laplace": Laplace, "server-laplace": ServerLaplace, "oue": OUE, "grr": GRR,
}  # fmt: skip


def points() -> list[Point]:
    """Every method and number of liars; at one number every user acts."""
    chosen: list[Point] = [
        {"data": DATA, "users": USERS, "liars": liars, "method": method, "how": COUNTS}
        for liars in LIARS
        for method in METHODS
    ]
    return chosen + [{**each, "how": ACTING} for each in chosen if each["liars"] == 20]


def mechanism(method: str, items: int, users: int) -> Attacked:
    """At the same privacy, exactly."""
    if method == "placed-coins":
        return PlacedCoins(items=items, users=users, epsilon=EPSILON, delta=DELTA)
    return _KINDS[method](items=items, users=users, epsilon=EPSILON)


@lru_cache(maxsize=64)
def crowd(liars: int) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(what honest users hold, what liars hold in truth, the item that the liars push)."""
    held = np.array(holders(DATA), dtype=np.int64)
    target, lying = int(held.argmin()), np.zeros_like(held)
    for _ in range(liars):
        left = held - lying
        left[target] = 0
        lying[left.argmax()] += 1
    return tuple((held - lying).tolist()), tuple(lying.tolist()), target


@lru_cache(maxsize=64)
def push(liars: int) -> tuple[int, ...]:
    """Votes that liars make up together without proofs: 50 each, as long as the item stays at or below 100%.

    As many are taken from the most frequent other items, so that the total stays what it should be.
    """
    honest, lying, target = crowd(liars)
    counts = np.array(honest) + np.array(lying)
    moved = np.zeros_like(counts)
    moved[target] = min(VOTES * liars, counts.sum() - counts[target])
    for _ in range(moved[target]):
        left = counts + moved
        left[target] = -1
        moved[left.argmax()] -= 1
    return tuple(moved.tolist())


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Squared errors of the item's frequency."""
    liars, method, how = int(point["liars"]), str(point["method"]), str(point["how"])
    honest, lying, target = crowd(liars)
    truth = (honest[target] + lying[target]) / USERS
    attack: Attack = _forged if method in SHARED else _voted if method in PROVEN else _manipulated
    made = mechanism(method, len(honest), USERS)
    found = [attack(made, liars, how, rng)[target] for _ in range(runs)]
    return {"noise": (np.array(found) - truth) ** 2}


def _answers(counts: tuple[int, ...]) -> Ints:
    return np.repeat(np.arange(len(counts)), counts)


def _entropy(rng: np.random.Generator) -> SeededStream:
    return SeededStream(int(rng.integers(2**63)))


def _forged(made: Laplace, liars: int, how: str, rng: np.random.Generator) -> Floats:
    """Laplace pieces without proofs: liars add votes and take as many from the most frequent items."""
    honest, lying, _ = crowd(liars)
    if how != ACTING:
        return made.estimate(made.draw(np.array(honest) + np.array(lying), rng) + np.array(push(liars)), USERS)
    rows = made.respond(np.concatenate([_answers(honest), _answers(lying)]), _entropy(rng))
    if liars:  # one liar's vector can hold it all
        rows[-1] = add(rows[-1], from_signed(np.array(push(liars)), made.modulus), made.modulus)
    return made.estimate(made.decode(made.total(rows), USERS), USERS)


def _voted(made: VerifiedMechanism, liars: int, how: str, rng: np.random.Generator) -> Floats:
    """Proven reports: liars have one vote each and, where they flip coins, choose heads."""
    honest, _, target = crowd(liars)
    if how != ACTING:
        return made.estimate(
            made.draw(np.array(honest) + one_hot(np.array([target]), len(honest), liars)[0], rng), USERS
        )
    entropy = _entropy(rng)
    answers = np.concatenate([_answers(honest), np.full(liars, target)])
    bits = made.contribute(answers, np.arange(USERS), entropy)
    bits[USERS - liars :, made.N :] = 1
    tally = made.tally([from_signed(bits, made.modulus)])
    opened = made.add_up(tally, made.turn_and_place(entropy, USERS), constants=True)
    for _ in range(2):
        opened = add(opened, from_signed(made.server_noise(entropy), made.modulus), made.modulus)
    return made.estimate(made.decode(opened, USERS), USERS)


def _manipulated(made: LocalFrequency, liars: int, how: str, rng: np.random.Generator) -> Floats:
    """Local reports: a liar sends the item itself, or its bit alone, instead of flipping coins."""
    honest, _, target = crowd(liars)
    lies = one_hot(np.array([target]), len(honest), liars)[0]
    if how != ACTING:
        return made.estimate(made.draw(np.array(honest), rng) + lies, USERS)
    small = mechanism(made.name, len(honest), USERS - liars)
    sums = small.total(small.respond(_answers(honest), _entropy(rng)))
    return made.estimate(made.decode(sums + lies, USERS), USERS)


def shift(method: str, liars: int) -> float:
    """By how much the liars move the item's frequency, on average."""
    if method in SHARED:
        return max(push(liars)) / USERS
    if method in PROVEN:
        return liars / USERS
    law = mechanism(method, len(holders(DATA)), USERS).channel(USERS)
    return liars / USERS * (1 - law.miss) / (law.hit - law.miss)


def theory(point: Point) -> dict[str, Expected]:
    """Of the square of noise that is moved by a constant b: k2 + b^2, and so on (see error_law.py)."""
    liars, method = int(point["liars"]), str(point["method"])
    honest, _, target = crowd(liars)
    users = USERS - liars if method in LOCAL else USERS
    law = mechanism(method, len(honest), USERS).channel(USERS)
    noise = cumulants(law, np.array([float(honest[target])]), users).scaled(users / USERS)
    k2, k3, k4, k6 = (float(each[0]) for each in (noise.second, noise.third, noise.fourth, noise.sixth))
    b = shift(method, liars)
    variance = k4 + 2 * k2**2 + 4 * b * k3 + 4 * b**2 * k2
    third = k6 + 12 * k4 * k2 + 10 * k3**2 + 8 * k2**3 + 8 * b**3 * k3 + 12 * b**2 * (k4 + 2 * k2**2) + 48 * b * k2 * k3
    return {"noise": Expected(k2 + b**2, variance**0.5, third / variance**1.5)}


STUDY = Study(
    name="poisoning",
    title="What lying clients move",
    paper="Not in the paper.",
    ours=f"{USERS:,} users, epsilon = {EPSILON:g}; liars push the rarest item of the Gowalla data. Without proofs each "
    f"claims up to {VOTES} votes; with proofs it has one; local reports are sent without their coins.",
    points=points,
    task=task,
    theory=theory,
    items=lambda point: 1,
)
