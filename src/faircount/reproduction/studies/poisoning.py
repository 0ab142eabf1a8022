"""How far malicious clients can move one item's frequency: with proofs, without, and locally.

All malicious clients belong to users of other items and want the rarest item to look frequent. They
do the worst that nobody notices:

    laplace         a vector with up to 50 votes for the item and as many taken from other items,
                    until the item reaches 100%
    server-laplace  their one vote, since everything else is refused
    placed-coins    their one vote, and only heads on their coins, which the servers then invert
                    and place
    grr, oue        the report that counts most for the item, without any coin: a manipulation of
                    local privacy

Measured is the squared error of that item's frequency. The bound for proven reports is c/n, the
effect of c votes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from faircount.core.arrays import Floats, Ints
from faircount.mechanisms.laplace import Laplace
from faircount.mechanisms.local_frequency import GRR, OUE, LocalFrequency
from faircount.mechanisms.placed_coins import PlacedCoins
from faircount.mechanisms.proven import ProvenVotes
from faircount.mechanisms.secret_shared import one_hot
from faircount.mechanisms.server_noise import ServerLaplace
from faircount.reproduction.studies.error_distribution import error_cumulants
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    USER_LEVEL,
    USERS,
    Expected,
    Study,
    add_user_level,
    draw_stream,
    sampled_counts,
)
from faircount.reproduction.sweep.sweep import Point
from faircount.sharing.field import add, from_signed

DATA = "gowalla"
EPSILON = 1.0
DELTA = 1e-6

# Numbers of malicious clients among the 1,000 users, and the one that is simulated at user level.
MALICIOUS = (0, 2, 5, 10, 20, 50, 100, 150, 200)
SIMULATED = 20

# The name of that number in a point. Points are hashed into seeds: another name would change the
# published numbers.
KEY = "liars"

SHARED = ("laplace",)
PROVEN = ("server-laplace", "placed-coins")
LOCAL = ("oue", "grr")
METHODS = (*SHARED, *PROVEN, *LOCAL)

# Votes that one malicious client forges where nobody can tell.
FORGED_VOTES = 50

Attacked = Laplace | ProvenVotes | LocalFrequency
_KINDS: dict[str, Callable[..., Attacked]] = {
    "laplace": Laplace,
    "server-laplace": ServerLaplace,
    "oue": OUE,
    "grr": GRR,
}


def points() -> list[Point]:
    """All methods and numbers of malicious clients; one number also at user level."""
    chosen: list[Point] = [
        {"data": DATA, "users": USERS, KEY: malicious, "method": method, "how": COUNT_LEVEL}
        for malicious, method in product(MALICIOUS, METHODS)
    ]
    return add_user_level(chosen, lambda point: point[KEY] == SIMULATED)


def make_mechanism(method: str, items: int, users: int) -> Attacked:
    """The mechanism at the epsilon of the study, exactly."""
    if method == "placed-coins":
        return PlacedCoins(items=items, users=users, epsilon=EPSILON, delta=DELTA)
    return _KINDS[method](items=items, users=users, epsilon=EPSILON)


@dataclass(frozen=True, slots=True)
class Crowd:
    """The users: counts of the honest ones, true counts of the malicious ones, the pushed item."""

    honest: tuple[int, ...]
    malicious: tuple[int, ...]
    target: int

    @property
    def items(self) -> int:
        """Number of items."""
        return len(self.honest)

    @property
    def size(self) -> int:
        """Number of malicious clients."""
        return sum(self.malicious)


@lru_cache(maxsize=64)
def split_crowd(malicious: int) -> Crowd:
    """Take the malicious clients one by one from the most frequent item other than the rarest."""
    counts = np.array(sampled_counts(DATA), dtype=np.int64)
    target = int(counts.argmin())
    taken = np.zeros_like(counts)
    for _ in range(malicious):
        remaining = counts - taken
        remaining[target] = 0
        taken[remaining.argmax()] += 1
    return Crowd(tuple((counts - taken).tolist()), tuple(taken.tolist()), target)


@lru_cache(maxsize=64)
def forge_votes(malicious: int) -> tuple[int, ...]:
    """Votes that malicious clients add together without proofs.

    The item gets 50 from each of them, as long as it stays at or below 100%. As many are taken from
    the most frequent other items, so that the total stays as it should be.
    """
    crowd = split_crowd(malicious)
    counts = np.array(crowd.honest) + np.array(crowd.malicious)
    votes = np.zeros_like(counts)
    votes[crowd.target] = min(FORGED_VOTES * malicious, counts.sum() - counts[crowd.target])
    for _ in range(votes[crowd.target]):
        remaining = counts + votes
        remaining[crowd.target] = -1
        votes[remaining.argmax()] -= 1
    return tuple(votes.tolist())


def task(point: Point, rng: np.random.Generator, runs: int) -> dict[str, Floats]:
    """Squared errors of the item's frequency."""
    method = str(point["method"])
    how = str(point["how"])
    crowd = split_crowd(int(point[KEY]))
    # The truth is what everybody would answer honestly, users of malicious clients included.
    truth = (crowd.honest[crowd.target] + crowd.malicious[crowd.target]) / USERS
    mechanism = make_mechanism(method, crowd.items, USERS)
    attack = _choose_attack(method)
    frequencies = [attack(mechanism, crowd, how, rng)[crowd.target] for _ in range(runs)]
    return {"noise": (np.array(frequencies) - truth) ** 2}


# An attack returns the estimates of one survey in which it takes place.
Attack = Callable[[Any, Crowd, str, np.random.Generator], Floats]


def _choose_attack(method: str) -> Attack:
    if method in SHARED:
        return _attack_shared
    if method in PROVEN:
        return _attack_proven
    return _attack_local


def _list_answers(counts: tuple[int, ...]) -> Ints:
    return np.repeat(np.arange(len(counts)), counts)


def _attack_shared(mechanism: Laplace, crowd: Crowd, how: str, rng: np.random.Generator) -> Floats:
    """Shares without proofs: forge votes, and take as many from the most frequent items."""
    forged = np.array(forge_votes(crowd.size))
    if how != USER_LEVEL:
        counts = np.array(crowd.honest) + np.array(crowd.malicious)
        return mechanism.estimate(mechanism.draw(counts, rng) + forged, USERS, raw=True)
    answers = np.concatenate([_list_answers(crowd.honest), _list_answers(crowd.malicious)])
    rows = mechanism.respond(answers, draw_stream(rng))
    q = mechanism.modulus
    # Only the sum of all rows is revealed, so one client's vector can carry all forged votes.
    if crowd.size:
        rows[-1] = add(rows[-1], from_signed(forged, q), q)
    return mechanism.estimate(mechanism.decode(mechanism.total(rows), USERS), USERS, raw=True)


def _attack_proven(
    mechanism: ProvenVotes, crowd: Crowd, how: str, rng: np.random.Generator
) -> Floats:
    """Proven reports: a malicious client has one vote and, where it flips coins, picks heads."""
    if how != USER_LEVEL:
        votes = one_hot(np.array([crowd.target]), crowd.items, crowd.size)[0]
        sums = mechanism.draw(np.array(crowd.honest) + votes, rng)
        return mechanism.estimate(sums, USERS, raw=True)
    q = mechanism.modulus
    entropy = draw_stream(rng)
    answers = np.concatenate([_list_answers(crowd.honest), np.full(crowd.size, crowd.target)])
    bits = mechanism.contribute(answers, np.arange(USERS), entropy)
    # Behind the votes of a report stand its coins.
    bits[USERS - crowd.size :, mechanism.N :] = 1
    tally = mechanism.tally([from_signed(bits, q)])
    opened_sum = mechanism.add_up(tally, mechanism.place_coins(entropy, USERS), constants=True)
    # Both servers add their noise.
    for _ in range(2):
        opened_sum = add(opened_sum, from_signed(mechanism.server_noise(entropy), q), q)
    return mechanism.estimate(mechanism.decode(opened_sum, USERS), USERS, raw=True)


def _attack_local(
    mechanism: LocalFrequency, crowd: Crowd, how: str, rng: np.random.Generator
) -> Floats:
    """Local reports: send the item itself, or its bit alone, without flipping coins."""
    forged = one_hot(np.array([crowd.target]), crowd.items, crowd.size)[0]
    if how != USER_LEVEL:
        reports = mechanism.draw(np.array(crowd.honest), rng)
        return mechanism.estimate(reports + forged, USERS, raw=True)
    honest = make_mechanism(mechanism.name, crowd.items, USERS - crowd.size)
    sums = honest.total(honest.respond(_list_answers(crowd.honest), draw_stream(rng)))
    return mechanism.estimate(mechanism.decode(sums + forged, USERS), USERS, raw=True)


def expected_shift(method: str, malicious: int) -> float:
    """How far the malicious clients move the item's frequency on average."""
    if method in SHARED:
        return max(forge_votes(malicious)) / USERS
    if method in PROVEN:
        return malicious / USERS
    channel = make_mechanism(method, len(sampled_counts(DATA)), USERS).channel(USERS)
    # A report without coins counts (1 - miss) / (hit - miss) votes.
    return malicious / USERS * (1 - channel.miss) / (channel.hit - channel.miss)


def theory(point: Point) -> dict[str, Expected]:
    """Distribution of the square of noise that is shifted by a constant b: k2 + b^2, and so on.

    Without the shift these are the formulas of `error_distribution`.
    """
    malicious = int(point[KEY])
    method = str(point["method"])
    crowd = split_crowd(malicious)
    # A manipulated local report carries no noise.
    noisy_users = USERS - malicious if method in LOCAL else USERS
    channel = make_mechanism(method, crowd.items, USERS).channel(USERS)
    count = np.array([float(crowd.honest[crowd.target])])
    noise = error_cumulants(channel, count, noisy_users).scale_by(noisy_users / USERS)
    k2 = float(noise.second[0])
    k3 = float(noise.third[0])
    k4 = float(noise.fourth[0])
    k6 = float(noise.sixth[0])
    b = expected_shift(method, malicious)
    variance = k4 + 2 * k2**2 + 4 * b * k3 + 4 * b**2 * k2
    third = (
        k6
        + 12 * k4 * k2
        + 10 * k3**2
        + 8 * k2**3
        + 8 * b**3 * k3
        + 12 * b**2 * (k4 + 2 * k2**2)
        + 48 * b * k2 * k3
    )
    return {"noise": Expected(k2 + b**2, variance**0.5, third / variance**1.5)}


STUDY = Study(
    name="poisoning",
    title="What malicious clients can change",
    paper="Not in the paper.",
    ours=f"{USERS:,} users, epsilon = {EPSILON:g}; malicious clients push the rarest item of the "
    f"Gowalla data. Without proofs each forges up to {FORGED_VOTES} votes; with proofs it has one; "
    "local reports are sent without their coins.",
    points=points,
    task=task,
    theory=theory,
    items=lambda _: 1,
)
