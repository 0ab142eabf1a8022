"""Whether surveys come to an end when users miss visits: played for real, and by the coordinator's rules alone.

In every phase each invited user fails to come with the same probability, independently. `played` runs the whole
protocol; `completes` follows only who is there, with the same graphs and the same thresholds, and is quick enough for
thousands of runs.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from faircount.core.arrays import Bools
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.sampling import DPDS
from faircount.protocol import EXPLICIT, MASKED, ClientState, Topology
from faircount.protocol.simulator import Meter, run_phases, set_up
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.survey.topology import ATTEMPTS
from faircount.protocol.topologies.masked.aggregator import find_uncancelled
from faircount.protocol.topologies.masked.graph import COLLUDING, draw_graph, plan_graph
from faircount.protocol.wire.crypto import IdealCrypto
from faircount.protocol.wire.messages import Aborted, Published


def played(
    topology: Topology,
    users: int,
    minimum: int,
    loss: float = 0.0,
    seed: int = 0,
    mechanism: FrequencyMechanism | None = None,
    meter: Meter | None = None,
    **terms: Any,
) -> Published | str:
    """The result, or in words why there is none, of a survey with ideal sealing: of two items unless told."""
    rng, entropy, sealing = np.random.default_rng(seed), SeededStream(seed), IdealCrypto()
    terms = {"epsilon": 1.0, "delta": 1.0, "minimum": minimum, "attempts": ATTEMPTS, **terms}
    survey = set_up(
        mechanism or DPDS(items=2, users=users, p=0.5), topology, entropy, sealing, **terms
    )
    devices = (ClientState(invitation, (0,)) for invitation in survey.invitations)
    s1 = run_phases(survey, devices, entropy, lambda _: bool(rng.random() >= loss), meter=meter)
    final = None if s1.final is None else s1.final.message
    if isinstance(final, Aborted):
        return describe_abort(final)
    return final if isinstance(final, Published) else ""


def completes(
    topology: Topology,
    users: int,
    minimum: int,
    loss: float,
    rng: np.random.Generator,
    insiders: int = 1,
) -> bool:
    """Whether one survey publishes, by who comes to each visit."""
    here = rng.random(users) >= loss
    if here.sum() < minimum or len(topology.phases) == 1:
        return bool(here.sum() >= minimum)
    model = _LATER_VISITS.get(topology)
    if model is None:
        raise ParameterError(f"no model of who comes to {topology}")
    return model(here, minimum, loss, rng, insiders)


def _explicit(here: Bools, minimum: int, loss: float, rng: np.random.Generator, _: int) -> bool:
    members = here & (rng.random(here.size) >= loss)
    for _ in range(ATTEMPTS):
        came = members & (rng.random(here.size) >= loss)
        if members.sum() < minimum or (came == members).all():
            return bool(members.sum() >= minimum)
        members = came
    return False


@lru_cache(maxsize=16)
def _planned(users: int, insiders: int) -> tuple[int, int]:
    """Neighbours and threshold of a survey, as `params.propose` chooses them."""
    return plan_graph(users, max(COLLUDING, insiders / users))


def _masked(
    here: Bools, minimum: int, loss: float, rng: np.random.Generator, insiders: int
) -> bool:
    """As the coordinator does it: the settled part of those who shared, the largest part of those who sent, t helpers for each."""
    k, t = _planned(here.size, insiders)
    graph = draw_graph(rng.bytes(32), rng.bytes(32), int(here.sum()), k)

    def come() -> Bools:
        return np.asarray((rng.random(here.size) >= loss)[here])

    inside = graph.stable_component(come(), t)
    for _ in range(ATTEMPTS):
        if inside.sum() < minimum:
            return False
        sent = inside & come()
        included = graph.largest_component(sent)
        dropped = find_uncancelled(graph, inside, included)
        if included.sum() < minimum or not dropped.any():
            return bool(included.sum() >= minimum)
        if not (graph.count_neighbours(included)[dropped] >= t).all():
            inside = graph.stable_component(sent, t)
        elif (graph.count_neighbours(included & come())[dropped] >= t).all():
            return True
        else:  # a key is lost: once more with those whose seeds opened
            inside = graph.stable_component(included, t)
    return False


_LATER_VISITS: dict[Topology, Callable[[Bools, int, float, np.random.Generator, int], bool]] = {
    EXPLICIT: _explicit,
    MASKED: _masked,
}
