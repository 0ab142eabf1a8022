"""Figure 1 again, with every mechanism at the same EXACT (epsilon, delta) against one participant who reads the result.

DPDS is favoured: the smallest count of the data is taken as a floor that everybody knew beforehand. All the others need
no such knowledge. Local mechanisms and Laplace have delta 0 (Laplace up to the 2^-100 of its table).
"""

from typing import Any

from faircount.experiments.studies.fig1 import EPSILONS
from faircount.experiments.studies.squared_errors import noise_study
from faircount.experiments.studies.study import ACTING, COUNTS, DATA, USERS, people
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.registry import frequency_mechanisms
from faircount.sweep.sweep import Point

DELTA = 1e-5
"""Small against 1/n, so that nobody's whole record may be given away."""

METHODS = ("laplace", "decoys", "dpdg", "dpds", "oue", "grr")


def points() -> list[Point]:
    """Every data set, epsilon and mechanism; every user acts for three of them at one point."""
    chosen: list[Point] = [
        {"data": data, "users": USERS, "epsilon": epsilon, "delta": DELTA, "method": method, "how": COUNTS}
        for epsilon in EPSILONS
        for method in METHODS
        for data in DATA
    ]
    return chosen + [{**each, "how": ACTING} for each in chosen if _acts(each)]


def _acts(point: Point) -> bool:
    return (point["data"], point["epsilon"]) == ("gowalla", 0.5) and point["method"] in METHODS[:3]


def mechanism(method: str, held_by: tuple[int, ...], epsilon: float) -> FrequencyMechanism:
    """The mechanism with this exact privacy for so many holders of each item."""
    asked: dict[str, Any] = {"items": len(held_by), "users": sum(held_by), "epsilon": epsilon}
    if method in ("decoys", "dpdg", "dpds"):
        asked["delta"] = DELTA
    if method == "dpds":
        asked["floor"] = min(held_by) - 1
    return frequency_mechanisms()[method](**asked)


STUDY = noise_study(
    name="fig1_exact",
    title="All mechanisms at equal exact (epsilon, delta)",
    paper="Fig. 1, second edition: not in the paper.",
    ours=f"delta = {DELTA:g} for those that need one, exactly, against one participant who reads the result. DPDS "
    "has the largest p that is private when the smallest count of the data is known to everybody as a floor, which "
    "in truth nobody may look at.",
    points=points,
    mechanism=lambda point: mechanism(str(point["method"]), people(point), float(point["epsilon"])),
)
