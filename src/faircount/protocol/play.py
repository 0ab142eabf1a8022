"""A whole survey in memory, played by the real roles: the specification of the protocol, and the oracle of its tests.

    set up -> in every phase each device comes by and says what it has to say -> S1's deadline -> the servers talk

`play` does this for answers that all arrive. Whoever wants to lose, delay or change something uses the same pieces:
`set_up`, `visits`, `converse`, `result_of`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ProtocolError
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.protocol.roles.aggregator import Aggregator, aggregate
from faircount.protocol.roles.client import Client, Device, goes_on
from faircount.protocol.roles.coordinate import coordinate, coordinate_many
from faircount.protocol.roles.coordinator import Coordinator, end_phase
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import Keys, SurveyParameters, propose, smallest_set
from faircount.protocol.survey.states import FINAL
from faircount.protocol.survey.topology import Topology
from faircount.protocol.survey.validity import validity_of
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.messages import Aborted, Published, addressee
from faircount.protocol.wire.packed_rows import in_parts
from faircount.protocol.wire.sealing import RealSealing, Sealing
from faircount.protocol.wire.signing import SigningKey

Progress = Callable[[int], None]
"""Is told the number of users done."""

Meter = Callable[[int, Message, Message], None]
"""Is told what a user said to S1 and what it heard."""

MOST_MESSAGES = 10_000
"""More than any survey needs between the servers: a conversation beyond it goes in circles."""

MOST_EXCHANGES = 12
"""More than a device has to say in one visit, and an end for one that is refused every time."""

TOGETHER = 64
"""Devices that come by at once where all do: S1 writes what they say together, as a service does."""


@dataclass(frozen=True)
class SurveySetup:
    """A survey about to begin: its parameters, one invitation per person, and both servers."""

    params: SurveyParameters
    invitations: tuple[Invitation, ...]
    s1: Coordinator
    s2: Aggregator


def set_up(
    mechanism: FrequencyMechanism, topology: Topology, entropy: Entropy, sealing: Sealing | None = None, **terms: Any
) -> SurveySetup:
    """Keys, parameters and invitations for a mechanism bound to n_max users; `terms` go to `propose`."""
    crypto = RealSealing() if sealing is None else sealing
    first, second, box = SigningKey.generate(entropy), SigningKey.generate(entropy), crypto.keypair(entropy)
    values = entropy.bytes(32), entropy.bytes(32)
    keys = Keys(first.public, second.public, box.public, *(sha256(each).digest() for each in values))
    params = propose(mechanism, keys, survey=entropy.bytes(16), topology=topology, **terms)
    invitations = tuple(Invitation.issue(params.digest, entropy) for _ in range(params.n_max))
    order_key = entropy.bytes(32) if topology.numbers_users else b""
    access = tuple(each.access for each in invitations)
    secrets = (entropy.bytes(32), entropy.bytes(32)) if params.proven else (b"", b"")
    s1 = Coordinator.begin(params, first, access, values[0], crypto, order_key, secrets[0])
    ledger = Ledger(params.population, params.epsilon, params.delta)
    mac_keys = {each.user: each.sealing_key for each in invitations}
    s2 = Aggregator.begin(params, second, box, mac_keys, ledger, values[1], crypto, noise_secret=secrets[1])
    return SurveySetup(params, invitations, s1, s2)


def converse(s1: Coordinator, s2: Aggregator, out: Sequence[Message]) -> tuple[Coordinator, Aggregator]:
    """Carry messages between the servers until neither has anything to say."""
    waiting, left = list(out), MOST_MESSAGES
    while waiting:
        if (left := left - 1) < 0:
            raise ProtocolError(f"S1 and S2 exchanged {MOST_MESSAGES} messages without coming to an end")
        message = waiting.pop(0)
        if addressee(message) is Party.S2:
            s2, answers = aggregate(s2, message)
        else:
            s1, answers = coordinate(s1, message)
        waiting += answers
    return s1, s2


def visits(
    s1: Coordinator,
    client: Client,
    held: list[Device],
    users: Sequence[int],
    entropy: Entropy,
    meter: Meter | None = None,
) -> Coordinator:
    """These devices come by and do all that there is to do; one signature acknowledges what they say at once."""
    for _ in range(MOST_EXCHANGES):
        asked = [(user, message) for user in users if (message := client.ask(held[user])) is not None]
        s1, answers = coordinate_many(s1, [message for _, message in asked])
        users = []
        for (user, message), out in zip(asked, answers, strict=True):
            before, answer = held[user], out[0] if out else None
            if answer is not None:
                held[user] = client.hear(before, message, answer, entropy)
                if meter is not None:
                    meter(user, message, answer)
            if goes_on(before, held[user]):
                users.append(user)
        if not users:
            break
    return s1


def run_phases(
    survey: SurveySetup,
    devices: Iterable[Device],
    entropy: Entropy,
    present: Callable[[int], bool] = lambda user: True,
    progress: Progress | None = None,
    meter: Meter | None = None,
    together: int = 1,
) -> Coordinator:
    """S1 at the end of a survey in which those who are `present`, asked once a phase, do all that they are asked to.

    So many of them come `together`.
    """
    s1, s2, client, held = survey.s1, survey.s2, survey.params.topology.client, list(devices)
    phases, done = len(survey.params.topology.phases), 0
    while s1.state not in FINAL:
        for group in in_parts(range(len(held)), together):
            here = [user for user in group if present(user)]
            for user in here:
                if not held[user].state:
                    held[user] = client.begin(survey.params, held[user], s2.sealing, entropy)
            s1 = visits(s1, client, held, here, entropy, meter)
            if progress is not None:
                progress(min(len(held), (done := done + len(group)) // phases))
        s1, out = end_phase(s1)
        s1, s2 = converse(s1, s2, out)
    if progress is not None:
        progress(len(held))
    return s1


def play(
    positions: Iterable[int],
    mechanism: FrequencyMechanism,
    topology: Topology,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Result:
    """A survey in which everybody answers, from invitation to result; one position in the item list per user."""
    source, held = SystemEntropy() if entropy is None else entropy, [int(each) for each in positions]
    bound = mechanism.bind(len(held))
    terms = {"minimum": smallest_set(bound), **terms}  # nobody vanishes: no room is left for it
    survey = set_up(bound, topology, source, **terms)
    devices = (Device(invitation, item) for invitation, item in zip(survey.invitations, held, strict=True))
    return result_of(run_phases(survey, devices, source, progress=progress, together=TOGETHER))


def result_of(s1: Coordinator) -> Result:
    """What S2 signed, as estimates with intervals; refused if the survey was aborted."""
    final = None if s1.final is None or s1.final.signed.by != Party.S2 else s1.final.says
    if not isinstance(final, Published):
        words = final.reason.decode() if isinstance(final, Aborted) else "S2 has not published"
        raise ProtocolError(f"this survey has no result: {words}")
    return opened(s1.params, final, s1.rules.included(s1))


def opened(params: SurveyParameters, final: Published, places: Sequence[int] = ()) -> Result:
    """What S2 published, as estimates with intervals.

    `places` in the roster of those whom it counts are needed where users do not all draw alike.
    """
    mechanism = params.mechanism.as_included(places)
    counts = np.array(final.counts, dtype=np.int64) / mechanism.steps_per_count
    facts = {
        "topology": str(params.topology),
        "modulus": params.q,
        "published": final,
        "validity": validity_of(params, final),
    }
    return Result(mechanism, counts, final.included, facts)
