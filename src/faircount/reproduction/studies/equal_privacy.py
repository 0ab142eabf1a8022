"""Figure 1 again, with every mechanism at the same EXACT (epsilon, delta).

The adversary is one participant who reads the result. DPDS is favoured: the smallest count of the
data is taken as a floor that everybody knew beforehand. The other mechanisms need no such
knowledge. Local mechanisms and Laplace have delta 0 (Laplace up to the 2^-100 of its table).
"""

from itertools import product
from typing import Any

from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.reproduction.studies.fig1 import EPSILONS
from faircount.reproduction.studies.squared_errors import make_noise_study
from faircount.reproduction.studies.study import (
    COUNT_LEVEL,
    DATA,
    USERS,
    add_user_level,
    counts_at,
)
from faircount.reproduction.sweep.sweep import Point

# Much smaller than 1/n: a delta of 1/n would allow publishing one user's whole record.
DELTA = 1e-5

# Noise on sums first, then sampling, then local mechanisms.
METHODS = ("laplace", "decoys", "dpdg", "dpds", "oue", "grr")
# DPDS and the local mechanisms are simulated for Figures 1 and 5 themselves.
SIMULATED_METHODS = METHODS[:3]


def points() -> list[Point]:
    """All data sets, epsilons and mechanisms; three mechanisms also at user level, at one place."""
    chosen: list[Point] = [
        {
            "data": data,
            "users": USERS,
            "epsilon": epsilon,
            "delta": DELTA,
            "method": method,
            "how": COUNT_LEVEL,
        }
        for epsilon, method, data in product(EPSILONS, METHODS, DATA)
    ]
    return add_user_level(chosen, _is_simulated)


def _is_simulated(point: Point) -> bool:
    place = (point["data"], point["epsilon"])
    return place == ("gowalla", 0.5) and point["method"] in SIMULATED_METHODS


def make_mechanism(method: str, user_counts: tuple[int, ...], epsilon: float) -> FrequencyMechanism:
    """The mechanism with this exact privacy for users with these counts."""
    parameters: dict[str, Any] = {
        "items": len(user_counts),
        "users": sum(user_counts),
        "epsilon": epsilon,
    }
    if method in ("decoys", "dpdg", "dpds"):
        parameters["delta"] = DELTA
    if method == "dpds":
        # Besides the user in question, that many others choose the rarest item.
        parameters["floor"] = min(user_counts) - 1
    return frequency_mechanisms()[method](**parameters)


def _mechanism_at(point: Point) -> FrequencyMechanism:
    return make_mechanism(str(point["method"]), counts_at(point), float(point["epsilon"]))


STUDY = make_noise_study(
    name="fig1_exact",
    title="All mechanisms at equal exact (epsilon, delta)",
    paper="Figure 1, second edition: not in the paper.",
    ours=f"delta = {DELTA:g} for the mechanisms that need one, exactly, against one participant "
    "who reads the result. DPDS has the largest p that is private when everybody knows the "
    "smallest count of the data as a floor. In practice nobody may look at that count.",
    points=points,
    mechanism=_mechanism_at,
)
