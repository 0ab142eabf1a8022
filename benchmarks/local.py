"""GRR and OUE of 100,000 users over 30 items, compared with two libraries and plain NumPy.

Ours draws from exact integer tables with cryptographic randomness. The others compare
floating-point numbers of ordinary generators, which is not a private release (Mironov 2012).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faircount.core.entropy import SystemEntropy
from faircount.mechanisms.local_frequency import GRR, OUE, LocalFrequency
from table import Row, best_of, in_turns

USERS, ITEMS, EPSILON = 100_000, 30, 1.0
Floats = NDArray[np.float64]
Answers = NDArray[np.int64]
Way = Callable[[Answers], Floats]
Ways = Callable[[], dict[str, Way]]  # by the name of the mechanism; imports its library when called

_GAP = float(np.exp(EPSILON) - 1)
_MISS_GRR = float(1 / (np.exp(EPSILON) + ITEMS - 1))
_MISS_OUE = float(1 / (np.exp(EPSILON) + 1))


def rows() -> list[Row]:
    """One row for each mechanism and each other way of doing it."""
    answers = np.random.default_rng(1).integers(0, ITEMS, USERS)
    others = (
        ("multi-freq-ldpy, warm", multi_freq),
        ("pure-ldp", pure_ldp),
        ("NumPy, floats", plain),
    )
    both = (GRR(items=ITEMS, epsilon=EPSILON), OUE(items=ITEMS, epsilon=EPSILON))
    return [beside(mechanism, name, ways, answers) for mechanism in both for name, ways in others]


def beside(mechanism: LocalFrequency, name: str, ways: Ways, answers: Answers) -> Row:
    what = f"{mechanism.name.upper()}: respond and estimate, n = {USERS:,}, N = {ITEMS}"
    mine = ready(ours(mechanism), answers)
    try:
        other = ready(ways()[mechanism.name], answers)
    except ImportError as missing:
        return Row(what, best_of(mine), name, None, f"not installed here ({missing.name})")
    mine_seconds, other_seconds = in_turns(mine, other)
    return Row(what, mine_seconds, name, other_seconds)


def ready(way: Way, answers: Answers) -> Callable[[], Floats]:
    """The work to be timed, after one warm run whose estimates must be close to the truth."""
    truth = np.bincount(answers, minlength=ITEMS) / USERS
    assert np.abs(way(answers) - truth).max() < 0.1
    return lambda: way(answers)


def ours(mechanism: LocalFrequency) -> Way:
    entropy = SystemEntropy()

    def way(answers: Answers) -> Floats:
        reports = mechanism.respond(answers, entropy)
        return mechanism.estimate(mechanism.decode(mechanism.total(reports), USERS), USERS)

    return way


def multi_freq() -> dict[str, Way]:
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

    def grr(answers: Answers) -> Floats:
        reports = [GRR_Client(answer, ITEMS, EPSILON) for answer in answers]
        return np.asarray(GRR_Aggregator_MI(reports, ITEMS, EPSILON))

    def oue(answers: Answers) -> Floats:
        reports = [UE_Client(answer, ITEMS, EPSILON, True) for answer in answers]
        return np.asarray(UE_Aggregator_MI(reports, EPSILON, True))

    return {"grr": grr, "oue": oue}


def pure_ldp() -> dict[str, Way]:
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

    def same(item: int) -> int:
        return item

    def way(client: Any, server: Any, answers: Answers) -> Floats:
        server.aggregate_all([client.privatise(answer) for answer in answers])
        counts = server.estimate_all(range(ITEMS), suppress_warnings=True)
        return np.asarray(counts) / USERS

    return {
        "grr": lambda a: way(DEClient(EPSILON, ITEMS, same), DEServer(EPSILON, ITEMS, same), a),
        "oue": lambda a: way(
            UEClient(EPSILON, ITEMS, True, same), UEServer(EPSILON, ITEMS, True, same), a
        ),
    }


def plain() -> dict[str, Way]:
    """The fewest NumPy operations, with floating-point randomness: a careless program."""
    rng = np.random.default_rng(2)

    def grr(answers: Answers) -> Floats:
        others = rng.integers(0, ITEMS - 1, USERS)
        others += others >= answers
        reports = np.where(rng.random(USERS) < _GAP * _MISS_GRR + _MISS_GRR, answers, others)
        return (np.bincount(reports, minlength=ITEMS) / USERS - _MISS_GRR) / (_GAP * _MISS_GRR)

    def oue(answers: Answers) -> Floats:
        bits = rng.random((USERS, ITEMS)) < _MISS_OUE
        bits[np.arange(USERS), answers] = rng.random(USERS) < 0.5
        return (bits.sum(axis=0) / USERS - _MISS_OUE) / (0.5 - _MISS_OUE)

    return {"grr": grr, "oue": oue}
