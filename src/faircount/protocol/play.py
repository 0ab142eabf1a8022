"""Whole surveys in memory, played by the real roles: the specification of the protocol, and the oracle of its tests.

Each `play_...` is a topology from invitation to result, for answers that all arrive; what happens when they do not is
in the roles, and the tests play that with the same pieces: `set_up`, `converse`, `result_of`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import count
from typing import Any, TypeVar

import numpy as np

from faircount.core.entropy import Entropy, SystemEntropy
from faircount.core.errors import ProtocolError
from faircount.estimation.result import Result
from faircount.mechanisms.base import FrequencyMechanism
from faircount.mechanisms.decoys import Decoys
from faircount.protocol.roles.aggregator import Aggregator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.entrances import aggregate, coordinate, end_phase
from faircount.protocol.survey.budget import Ledger
from faircount.protocol.survey.invitations import Invitation
from faircount.protocol.survey.parameters import Keys, SurveyParameters, Topology, propose
from faircount.protocol.topologies.explicit import explicit
from faircount.protocol.topologies.masked import user as masked_user
from faircount.protocol.topologies.masked.messages import MaskCall, Neighbourhood
from faircount.protocol.topologies.peers import member as user
from faircount.protocol.topologies.peers.messages import Call, Roster
from faircount.protocol.topologies.two_servers import servers
from faircount.protocol.topologies.two_stage import user as two_stage_user
from faircount.protocol.topologies.two_stage.messages import Assignment, Bundle, SlotSums, SumCall
from faircount.protocol.wire.codec import Message, Party
from faircount.protocol.wire.messages import Aborted, Inquiry, Published, addressee
from faircount.protocol.wire.sealing import RealSealing, Sealing
from faircount.protocol.wire.signing import SigningKey, unwrap

T = TypeVar("T")

Progress = Callable[[int], None]
"""Is told the number of users done."""

MOST_MESSAGES = 1000
"""More than any survey needs between the servers: a conversation beyond it goes in circles."""


@dataclass(frozen=True)
class Cast:
    """A survey about to begin: its parameters, one invitation per person, and both servers."""

    params: SurveyParameters
    invitations: tuple[Invitation, ...]
    s1: Coordinator
    s2: Aggregator


def set_up(
    mechanism: FrequencyMechanism, topology: Topology, entropy: Entropy, sealing: Sealing | None = None, **terms: Any
) -> Cast:
    """Keys, parameters and invitations for a mechanism bound to n_max users; `terms` go to `params.propose`."""
    crypto = RealSealing() if sealing is None else sealing
    first, second, box = SigningKey.generate(entropy), SigningKey.generate(entropy), crypto.keypair(entropy)
    committed = entropy.bytes(32)
    keys = Keys(first.public, second.public, box.public, sha256(committed).digest())
    params = propose(mechanism, keys, survey=entropy.bytes(16), topology=topology, **terms)
    guests = tuple(Invitation.issue(params.digest, entropy) for _ in range(params.n_max))
    s1 = Coordinator(params, first, frozenset(each.access for each in guests), crypto)
    ledger = Ledger(params.population, params.epsilon, params.delta)
    known = {each.user: each.sealing_key for each in guests}
    return Cast(params, guests, s1, Aggregator(params, second, box, known, ledger, committed, crypto))


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


def result_of(s1: Coordinator) -> Result:
    """What S2 signed, as estimates with intervals; refused if the survey was aborted."""
    final = None if s1.final is None else unwrap(s1.params.keys.s2, Party.S2, s1.final)
    if not isinstance(final, Published):
        words = final.reason.decode() if isinstance(final, Aborted) else "S2 has not published"
        raise ProtocolError(f"this survey has no result: {words}")
    mechanism = _as_included(s1)
    counts = np.array(final.counts, dtype=np.int64) / getattr(mechanism, "steps_per_count", 1)
    facts = {"topology": str(s1.params.topology), "modulus": s1.params.q, "published": final}
    return Result(mechanism, counts, final.included, facts)


def _as_included(s1: Coordinator) -> FrequencyMechanism:
    """The mechanism as it ran: where users flip unequal numbers of coins, with the coins that went in."""
    mechanism = s1.params.mechanism
    included = s1.extra.included if s1.params.topology is Topology.MASKED else s1.members
    if isinstance(mechanism, Decoys) and included and mechanism.D % mechanism.n:
        coins = mechanism.coins_of(np.array(included))
        return replace(mechanism, users=len(included), dropouts=0, delta=None, coins=coins)
    return mechanism


def expect(kind: type[T], value: object) -> T:
    """The value, if a party answered with what an undisturbed survey has here."""
    if not isinstance(value, kind):
        raise ProtocolError(f"expected a {kind.__name__}, not {value!r}")
    return value


def _begin(
    answers: Iterable[object], mechanism: FrequencyMechanism, topology: Topology, entropy: Entropy | None, terms: Any
) -> tuple[Entropy, list[int], Cast]:
    """The source of randomness, every user's item, and the survey before its first user."""
    source = SystemEntropy() if entropy is None else entropy
    held = mechanism.domain.encode(answers)
    return source, held.tolist(), set_up(mechanism.bind(held.size), topology, source, **terms)


def _teller(progress: Progress | None, phases: int) -> Callable[[], None]:
    """To be called once for every user in every phase: tells how many users' worth of work is done."""
    done = count(1)

    def tell() -> None:
        if progress is not None:
            progress(next(done) // phases)

    return tell


def _enrol(cast: Cast, source: Entropy) -> tuple[list[user.Member], Coordinator, Aggregator]:
    """Everybody enrols, and S2 seals the roster."""
    s1, s2 = cast.s1, cast.s2
    members = [user.join(cast.params, invitation, source, s2.sealing) for invitation in cast.invitations]
    for each in members:
        s1, _ = coordinate(s1, each.enrolment)
    s1, request = end_phase(s1)
    return members, *converse(s1, s2, request)


def _believers(cast: Cast, members: Sequence[user.Member], s1: Coordinator) -> list[user.Member]:
    """The members with the sealed roster, which each has checked."""
    _, (roster,) = coordinate(s1, Inquiry(cast.params.survey, cast.invitations[0].access))
    return [expect(user.Member, user.believe(each, expect(Roster, roster))) for each in members]


def _published(s1: Coordinator, s2: Aggregator) -> Result:
    """After the last deadline: claim, blobs, result."""
    s1, claim = end_phase(s1)
    s1, _ = converse(s1, s2, claim)
    return result_of(s1)


def play_servers(
    answers: Iterable[object],
    mechanism: FrequencyMechanism,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Result:
    """A survey in the `servers` topology: every answer is one visit of one user."""
    source, held, cast = _begin(answers, mechanism, Topology.SERVERS, entropy, terms)
    tell = _teller(progress, phases=1)
    s1 = servers.open_survey(cast.s1)
    for invitation, item in zip(cast.invitations, held, strict=True):
        respondent = servers.respond(cast.params, invitation, item, source, cast.s2.sealing)
        s1, _ = coordinate(s1, servers.submit(respondent))
        tell()
    return _published(s1, cast.s2)


def play_explicit(
    answers: Iterable[object],
    mechanism: FrequencyMechanism,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Result:
    """A survey in the `explicit` topology: enrol, share, send the sum (Algorithm 2)."""
    source, held, cast = _begin(answers, mechanism, Topology.EXPLICIT, entropy, terms)
    members, s1, s2 = _enrol(cast, source)
    tell = _teller(progress, phases=2)
    sharers = []
    for each, item in zip(_believers(cast, members, s1), held, strict=True):
        sharers.append(explicit.share(each, item, source))
        s1, _ = coordinate(s1, sharers[-1].bundle)
        tell()
    s1, _ = end_phase(s1)
    for sharer in sharers:
        s1, (call,) = coordinate(s1, user.visit(sharer.member))
        _, body = explicit.answer_call(sharer, expect(Call, call), source)
        s1, _ = coordinate(s1, body)
        tell()
    return _published(s1, s2)


def play_two_stage(
    answers: Iterable[object],
    mechanism: FrequencyMechanism,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Result:
    """A survey with TSS or TSS': enrol, indicate, share with the elected users, send their sums (Alg. 3 and 4)."""
    source, held, cast = _begin(answers, mechanism, Topology.TWO_STAGE, entropy, terms)
    members, s1, s2 = _enrol(cast, source)
    tell = _teller(progress, phases=3)
    people = []
    for each, item in zip(_believers(cast, members, s1), held, strict=True):
        people.append(two_stage_user.indicate(each, item, source))
        s1, _ = coordinate(s1, people[-1].indicator)
        tell()
    s1, request = end_phase(s1)
    s1, s2 = converse(s1, s2, request)
    for i, person in enumerate(people):
        s1, (assigned,) = coordinate(s1, user.visit(person.member))
        people[i], bundle = two_stage_user.report(person, expect(Assignment, assigned), source)
        s1, _ = coordinate(s1, expect(Bundle, bundle))
        tell()
    s1, _ = end_phase(s1)
    for person in people:
        s1, (call,) = coordinate(s1, user.visit(person.member))
        if isinstance(call, SumCall):  # it was elected
            _, sums = two_stage_user.add_up(person, call, source)
            s1, _ = coordinate(s1, expect(SlotSums, sums))
        tell()
    return _published(s1, s2)


def play_masked(
    answers: Iterable[object],
    mechanism: FrequencyMechanism,
    *,
    entropy: Entropy | None = None,
    progress: Progress | None = None,
    **terms: Any,
) -> Result:
    """A survey in the `masked` topology: enrol, share a mask key, send a masked vector."""
    source, held, cast = _begin(answers, mechanism, Topology.MASKED, entropy, terms)
    members, s1, s2 = _enrol(cast, source)
    tell = _teller(progress, phases=2)
    maskers = []
    for each, invitation, item in zip(members, cast.invitations, held, strict=True):
        s1, (near,) = coordinate(s1, Inquiry(cast.params.survey, invitation.access))
        placed = expect(masked_user.Placed, masked_user.believe(each, expect(Neighbourhood, near)))
        maskers.append(masked_user.share(placed, item, source))
        s1, _ = coordinate(s1, maskers[-1].bundle)
        tell()
    s1, _ = end_phase(s1)
    for masker in maskers:
        s1, (call,) = coordinate(s1, masked_user.visit(masker))
        _, body = masked_user.answer_call(masker, expect(MaskCall, call), source)
        s1, _ = coordinate(s1, body)
        tell()
    return _published(s1, s2)
