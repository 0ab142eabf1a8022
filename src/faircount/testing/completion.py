"""Whether surveys come to an end when users miss visits: played for real, and by S1's rules alone.

In every phase each invited user fails to come with the same probability, independently. `played` runs the whole
protocol; `completes` follows only who is there, with the same graphs and the same thresholds, and is quick enough for
thousands of runs.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from faircount.core.arrays import Marks
from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.sampling import DPDS
from faircount.protocol.play import converse, set_up
from faircount.protocol.roles.entrances import coordinate, end_phase
from faircount.protocol.survey.parameters import ATTEMPTS, Topology
from faircount.protocol.survey.states import FINAL
from faircount.protocol.topologies.masked.aggregator import needed
from faircount.protocol.topologies.masked.graph import COLLUDING, draw, plan
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.decoding import decode
from faircount.protocol.wire.messages import Aborted, Published
from faircount.protocol.wire.sealing import IdealSealing
from faircount.testing.devices import CLIENTS, Device, goes_on

EXCHANGES = 6
"""Requests of a device in one visit: more than it has to say, and an end for one that is refused every time."""


Meter = Callable[[int, Message, Message], None]
"""Is told what a user said to S1 and what it heard."""


def played(
    topology: Topology,
    users: int,
    minimum: int,
    loss: float = 0.0,
    seed: int = 0,
    mechanism: FrequencyMechanism | None = None,
    meter: Meter = lambda user, asked, answer: None,
    **terms: Any,
) -> Published | str:
    """The result, or in words why there is none, of a survey with ideal sealing: of two items unless told."""
    rng, entropy, sealing = np.random.default_rng(seed), SeededStream(seed), IdealSealing()
    terms = {"epsilon": 1.0, "delta": 1.0, "minimum": minimum, "attempts": ATTEMPTS, **terms}
    cast = set_up(mechanism or DPDS(items=2, users=users, p=0.5), topology, entropy, sealing, **terms)
    client = CLIENTS[topology]
    s1, s2, devices = client.open(cast.s1), cast.s2, [Device(0, each) for each in cast.invitations]
    while s1.state not in FINAL:
        for i in np.flatnonzero(rng.random(users) >= loss).tolist():
            device, more = devices[i], True
            if device.state is None:
                device = client.begin(cast.params, device, sealing, entropy)
            for _ in range(EXCHANGES):
                asked = client.ask(device) if more else None
                if asked is None:
                    break
                s1, answers = coordinate(s1, asked)
                meter(i, asked, answers[0])
                before, device = device, client.hear(device, asked, answers[0], entropy)
                more = goes_on(before, device)  # not so for one that is refused
            devices[i] = device
        s1, out = end_phase(s1)
        s1, s2 = converse(s1, s2, out)
    final = None if s1.final is None else decode(s1.final.payload)
    return final if isinstance(final, Published) else final.reason.decode() if isinstance(final, Aborted) else ""


def completes(
    topology: Topology, users: int, minimum: int, loss: float, rng: np.random.Generator, insiders: int = 1
) -> bool:
    """Whether one survey publishes, by who comes to each visit."""
    here = rng.random(users) >= loss
    if here.sum() < minimum or topology is Topology.SERVERS:
        return bool(here.sum() >= minimum)
    if topology is Topology.EXPLICIT:
        return _explicit(here, minimum, loss, rng)
    if topology is Topology.MASKED:
        return _masked(here, minimum, loss, rng, insiders)
    raise ParameterError(f"no model of who comes to {topology}")


def _explicit(here: Marks, minimum: int, loss: float, rng: np.random.Generator) -> bool:
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
    return plan(users, max(COLLUDING, insiders / users))


def _masked(here: Marks, minimum: int, loss: float, rng: np.random.Generator, insiders: int) -> bool:
    """As S1 does it: the settled part of those who shared, the largest part of those who sent, t helpers for each."""
    k, t = _planned(here.size, insiders)
    graph = draw(rng.bytes(32), rng.bytes(32), int(here.sum()), k)

    def come() -> Marks:
        return np.asarray((rng.random(here.size) >= loss)[here])

    inside = graph.settled(come(), t)
    for _ in range(ATTEMPTS):
        if inside.sum() < minimum:
            return False
        sent = inside & come()
        included = graph.largest(sent)
        dropped = needed(graph, inside, included)
        if included.sum() < minimum or not dropped.any():
            return bool(included.sum() >= minimum)
        if (graph.count(included)[dropped] >= t).all():
            return bool((graph.count(included & come())[dropped] >= t).all())
        inside = graph.settled(sent, t)
    return False
