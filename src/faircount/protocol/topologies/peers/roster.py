"""S1 in the topologies in which users enrol before they answer: it fixes a roster and has S2 seal it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256

from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.inclusion import inclusion
from faircount.protocol.survey.states import FINAL, State, advance
from faircount.protocol.topologies.peers.messages import Enrolment, Peer, Roster
from faircount.protocol.wire.codec import Message, Party, encode
from faircount.protocol.wire.messages import Concluded, Inquiry, Reason, Rejected, SyncRequest, Visit, Wait, rejected
from faircount.protocol.wire.roster_messages import BadEntries, Enrolled, Seal
from faircount.protocol.wire.signing import Statement


def enrol(s: Coordinator, message: Enrolment) -> coordinator.Step:
    """A user joins. After a restore, a user whom S2 has sealed may say again what S1 forgot."""
    user = coordinator.admit_person(s, message.access, message.public_key)
    if isinstance(user, Rejected):
        return s, (user,)
    open_ = s.state is State.ENROLLING and not s.roster
    return coordinator.write_body(
        s, user, message, open_=open_ or Enrolled(user, message.public_key, message.mac) in s.roster
    )


def close_roster(s: Coordinator) -> coordinator.Step:
    """Fix the roster, ascending by user id, and ask S2 to seal it."""
    if not s.roster:
        held = ((user, s.bodies.intact(user)) for user in sorted(s.bodies.keys()))
        lines = (Enrolled(user, body.public_key, body.mac) for user, body in held if body is not None)
        s = replace(s, roster=tuple(lines))
    if s.n < s.params.minimum:
        return coordinator.give_up(s, f"{s.n} users enrolled, {s.params.minimum} are needed")
    return s, (coordinator.to_s2(s, coordinator.seal_request(s)),)


def on_bad_entries(s: Coordinator, message: BadEntries, _: Statement) -> coordinator.Step:
    """S2 does not believe some entries: leave them out and ask again."""
    if s.state is not State.ENROLLING or message.request_hash != sha256(encode(coordinator.seal_request(s))).digest():
        return s, ()
    doubted = set(message.positions)
    left = tuple(each for i, each in enumerate(s.roster) if i not in doubted)
    if not left:  # an empty roster would be made anew from the same entries
        return coordinator.give_up(s, "no invitation vouches for anybody who enrolled")
    return close_roster(replace(s, roster=left))


def on_seal(s: Coordinator, message: Seal, statement: Statement) -> coordinator.Step:
    """The roster is sealed: the next phase of the users begins. Another roster than ours: ask S2 what stands."""
    if s.state is not State.ENROLLING:
        return s, ()
    if message.digest != s.digest:
        return s, (coordinator.to_s2(s, SyncRequest(s.params.survey)),)
    if not s.roster or (message.n, message.root) != (s.n, s.levels[-1][0]):
        return s, (rejected(Reason.MALFORMED, "this is no seal of the roster with its digest"),)
    begins = s.params.topology.phases[1]
    return replace(s, seal=statement, state=advance(s.state, State.SEALED, begins)), ()


def show_roster(s: Coordinator, message: Inquiry) -> coordinator.Step:
    """The roster with S2's signature, for an invited person who asks."""
    if coordinator.invited_user(s, message.access) is None:
        return s, (rejected(Reason.UNKNOWN, "no such invitation for this survey"),)
    return s, (roster_message(s),)


def roster_message(s: Coordinator) -> Message:
    """The roster with S2's signature, or that there is none yet."""
    if s.seal is None:
        return Wait(s.params.survey, s.state.encode())
    return Roster(s.seal.signed, _lines(s.roster))


@lru_cache(maxsize=4)
def _lines(roster: tuple[Enrolled, ...]) -> tuple[Peer, ...]:
    """The roster as users see it; made once, shown to everybody."""
    return tuple(Peer(each.user, each.public_key) for each in roster)


def outcome(s: Coordinator, index: int) -> Message | None:
    """How the survey ended, for the user at this place of the roster; None while it goes on."""
    if s.state not in FINAL or s.final is None or s.final.signed.by != Party.S2:
        return None
    final, places = s.final.signed, s.rules.included(s)
    if s.state is State.ABORTED or index not in places:
        return Concluded(final)
    entries = s.rules.entries(s)
    return inclusion(final, lambda some: entries[some.start : some.stop], len(entries), places.index(index))


def to_do(s: Coordinator, message: Visit, next_task: Callable[[int], Message | None]) -> coordinator.Step:
    """What a user who comes by is told: how it ended, what there is to do, or to come back later."""
    problem = coordinator.credential_problem(s, message.index, message.credential)
    if problem is not None:
        return s, (problem,)
    told = outcome(s, message.index) or next_task(message.index)
    return s, (told or Wait(s.params.survey, s.state.encode()),)


USERS: Mapping[type[Message], coordinator.FromUser] = {
    Enrolment: enrol,
    Inquiry: show_roster,
}
S2: Mapping[type[Message], coordinator.FromS2] = {
    Seal: on_seal,
    BadEntries: on_bad_entries,
}
"""For the rules of a topology in which users enrol before they answer."""
