"""Fault simulation: a whole survey played through the real roles while messages, machines and memories fail.

A schedule is a list of `Op`s. `play` applies them one by one to a `World`, looks after each whether anything happened
that may never happen (`watch`), then lets the network recover and the survey end: with the right sum over the
declared set, or aborted. Everything is repeatable: the same schedule gives the same run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from faircount.protocol import Device, Message, Topology, end_phase, resume
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.write_once import Acknowledged
from faircount.protocol.survey.states import State
from faircount.protocol.topologies.explicit.messages import PeersClaim
from faircount.protocol.topologies.masked.messages import MaskedClaim
from faircount.protocol.topologies.peers.member import Member
from faircount.protocol.topologies.peers.messages import Enrolment
from faircount.protocol.topologies.two_servers import user as two_servers_user
from faircount.protocol.topologies.two_servers.messages import ServersClaim, Submission
from faircount.protocol.topologies.two_servers.reports import form_of
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Rejected, addressee, decode
from faircount.protocol.wire.signing import Link, sign
from faircount.sharing.keys import SEED_BYTES
from faircount.testing import lies, lies_peers, lies_two_stage
from faircount.testing.invalid_reports import invalid_kinds
from faircount.testing.watch import hash_of
from faircount.testing.world import Trouble, World, corrupted, rotten


class Kind(StrEnum):
    """What happens next. `who` and `how` are taken modulo what there is to choose from."""

    VISIT = "visit"  # user `who` says one thing to S1; `how` is what goes wrong (Trouble)
    ROUND = "round"  # everybody visits until there is nothing to do, but for the users in the bits of `how`
    DEADLINE = "deadline"  # S1 ends the phase; `how` odd: two workers do
    CARRY = "carry"  # message `who` between the servers arrives; `how` is what goes wrong (Mishap)
    CONVERSE = "converse"  # everything between the servers arrives, in order
    DROP = "drop"  # message `who` between the servers is lost
    MAIL = "mail"  # delayed user message `who` arrives at S1, maybe late
    REPLAY = "replay"  # message `who` of all that was ever sent arrives again
    FLOOD = "flood"  # S1 and S2 are sent `how` old messages, meant for them or not, from `who` on, and garbage
    RETRY = "retry"  # S1 says its last word to S2 again
    RESTORE_S1 = "restore s1"  # S1 goes back to backup `who` and asks S2 what stands; `how` odd: nobody tells it
    RESTORE_S2 = "restore s2"  # S2 goes back to backup `who`; `how` odd: nobody tells it
    ROT = "rot"  # what S1 stores of a user changes, before or after the claim: `who` and `how` say what
    LOSE = "lose"  # device `who` is lost for good
    SECOND_DEVICE = "second device"  # user `who` lost its state and begins again with the same invitation
    WITHDRAW = "withdraw"  # user `who` takes its answer back; `how` is what goes wrong (Trouble)
    LIE_S1 = "lie of s1"  # S1 signs something false, for S2; `who` says about whom, `how` what
    LIE_S2 = "lie of s2"  # S2 signs something false, for S1
    INVALID = "invalid report"  # where reports are proven: user `who` sends one that is not valid; `how` says which
    WRONG_KEY = "wrong key"  # user `who` arrives with a key that is not its own; `how` odd: without a valid seal


class Mishap(StrEnum):
    """What goes wrong when a message between the servers arrives."""

    NONE = "none"
    CRASH_BEFORE = "the receiver crashes before its write"
    CRASH_AFTER = "the receiver crashes after its write"
    DUPLICATED = "duplicated"
    CORRUPTED = "corrupted"


@dataclass(frozen=True, slots=True)
class Op:
    """One step of a schedule."""

    kind: Kind
    who: int = 0
    how: int = 0

    def __repr__(self) -> str:
        return f"Op(Kind.{self.kind.name}, {self.who}, {self.how})"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a schedule ended, everything that should not have happened, and where S1 stood when a server lied."""

    ending: str
    problems: tuple[str, ...]
    lies: tuple[State, ...] = field(default=(), compare=False)


# --- operations


def _visit(world: World, op: Op) -> None:
    troubles = list(Trouble)
    world.exchange(op.who % len(world.devices), troubles[op.how % len(troubles)], op.how // len(troubles))


def _round(world: World, op: Op) -> None:
    for at in range(len(world.devices)):
        if not op.how >> at & 1:
            world.visit(at)


def _deadline(world: World, op: Op) -> None:
    seen = world.s1.phase
    for _ in range(1 + op.how % 2):
        world.s1, out = end_phase(world.s1, seen)
        world.post(out)


def _carry(world: World, op: Op) -> None:
    if not world.wire:
        return None
    message, mishaps = world.wire.pop(op.who % len(world.wire)), list(Mishap)
    mishap = mishaps[op.how % len(mishaps)]
    if mishap is Mishap.CORRUPTED:
        return world.arrive(corrupted(message, op.how // len(mishaps)))
    if mishap is Mishap.DUPLICATED:
        world.wire.append(message)
    for_s2 = addressee(message) is Party.S2
    crash = world.crash_s2 if for_s2 else world.crash_s1
    if mishap is Mishap.CRASH_BEFORE:
        return crash(message)
    on_the_way = len(world.wire)
    world.arrive(message)
    if mishap is Mishap.CRASH_AFTER:
        del world.wire[on_the_way:]  # its answers were not sent; the watch takes them for sent, which is the worse case
        crash()
        if for_s2:  # S1 hears nothing, and says it again
            world.post(resume(world.s1))
    return None


def _drop(world: World, op: Op) -> None:
    if world.wire:
        world.wire.pop(op.who % len(world.wire))


def _mail(world: World, op: Op) -> None:
    if world.mail:
        world.tell_s1(world.mail.pop(op.who % len(world.mail)))


def _replay(world: World, op: Op) -> None:
    if world.sent:
        world.arrive(world.sent[op.who % len(world.sent)])


def _flood(world: World, op: Op) -> None:
    for i in range(1 + op.how % 5):
        old = world.sent[(op.who + i) % len(world.sent)] if world.sent else Rejected(1)
        for message in (old, corrupted(old, op.who + i), decode(world.entropy.bytes(op.how % 60))):
            world.tell_s1(message)
            world.tell_s2(message)


def _restore_s1(world: World, op: Op) -> None:
    world.s1 = world.disk_s1.read(world.backups_s1[op.who % len(world.backups_s1)])
    world.watch.forgetful = True
    if not op.how % 2:  # else nobody tells it: it goes on as if nothing had happened
        world.s1, out = coordinator.restored(world.s1)
        world.post(out)


def _restore_s2(world: World, op: Op) -> None:
    before = world.disk_s2.read(world.backups_s2[op.who % len(world.backups_s2)])
    if op.how % 2:
        world.s2, world.taken_back = before, True
    else:
        world.s2, out = aggregator.restored(before)
        world.post(out)


def _rot(world: World, op: Op) -> None:
    stores: tuple[Acknowledged[Any], ...] = world.s1.bodies, world.s1.uploads
    stored = [(store, key) for store in stores for key in store.keys()]  # noqa: SIM118 - it is no dict
    if stored:
        store, key = stored[op.who % len(stored)]
        store._written[key] = rotten(store[key], op.how)  # no role may do this: a disk does


def _lose(world: World, op: Op) -> None:
    world.devices[op.who % len(world.devices)] = None


def _second_device(world: World, op: Op) -> None:
    at = op.who % len(world.devices)
    world.devices[at] = Device(world.setup.invitations[at], at)
    world.generation[at] += 1


def _withdraw(world: World, op: Op) -> None:
    at = op.who % len(world.devices)
    device = world.devices[at]
    if device is not None and device.state is not None and not device.withdrawn:
        world.devices[at] = world.client.withdraw(device)
        _visit(world, op)


def _wrong_key(world: World, op: Op) -> None:
    at = op.who % len(world.devices)
    device = world.devices[at]
    if device is None or device.state is not None:
        return
    world.watch.broken.add(at)
    device = world.client.begin(world.setup.params, device, world.sealing, world.entropy)
    body = device.waiting[0]
    if isinstance(body, (Enrolment, Submission)):
        other = world.sealing.keypair(world.entropy).public
        mac = bytes(32) if op.how % 2 else device.invitation.seal(other)
        body = replace(body, public_key=other, mac=mac)
    state = device.state
    if isinstance(state, Member) and isinstance(body, Enrolment):
        state = replace(state, enrolment=body)
    world.devices[at] = replace(device, state=state, waiting=(body,))


def _invalid(world: World, op: Op) -> None:
    at, form = op.who % len(world.devices), form_of(world.setup.params.mechanism)
    device, params = world.devices[at], world.setup.params
    if device is None or device.state is not None or form is None:
        return
    kinds = list(invalid_kinds(form).values())
    row, invitation = kinds[op.how % len(kinds)](form, world.entropy), device.invitation
    secrets = world.entropy.bytes(SEED_BYTES), world.sealing.keypair(world.entropy)
    made = two_servers_user.prepare(params, invitation, row, *secrets, world.entropy, world.sealing)
    world.watch.invalid.add(made.public_key)
    world.watch.items[invitation.user] = at
    world.devices[at] = replace(device, state=made, waiting=(made.body,))


def _lie_s2(world: World, op: Op) -> None:
    """S2 signs something false, and S1 hears it."""
    claim, who, how = world.s1.claim, op.who, op.how
    if how % 5 == 4:
        message = lies.old_statement(world, who, how)
    elif world.s1.state is State.ENROLLING:
        message = lies.bad_lines(world, who, how)
    elif isinstance(claim, ServersClaim):
        message = lies.lies_of_s2(world, claim, who, how)
    elif isinstance(claim, (PeersClaim, MaskedClaim)):
        message = lies_peers.lies_of_s2(world, claim, who, how)
    else:
        message = lies_two_stage.lies_of_s2(world, who, how)
    if message is not None:
        world.tell_s1(message)


def _lie_s1(world: World, op: Op) -> None:
    """S1 signs something false, and S2 hears it."""
    claim, who, how = world.s1.claim, op.who, op.how
    if isinstance(claim, ServersClaim):
        lie: Message | None = lies.lies_of_s1(world, claim, who, how)
    elif isinstance(claim, (PeersClaim, MaskedClaim)):
        lie = lies_peers.lies_of_s1(world, claim, who, how)
    else:
        lie = lies_two_stage.lies_of_s1(world, who, how)
    if lie is None:
        return
    ahead = Link(99, bytes(32)) if how % 21 == 20 else world.s1.newest  # S2 takes itself for restored, and stops
    world.watch.claims[hash_of(lie)], world.watch.s1_lies = lie, True
    world.tell_s2(sign(world.s1.key, Party.S1, lie, ahead))


_DO: Mapping[Kind, Callable[[World, Op], None]] = {
    Kind.VISIT: _visit,
    Kind.ROUND: _round,
    Kind.DEADLINE: _deadline,
    Kind.CARRY: _carry,
    Kind.CONVERSE: lambda world, _: world.converse(),
    Kind.DROP: _drop,
    Kind.MAIL: _mail,
    Kind.REPLAY: _replay,
    Kind.FLOOD: _flood,
    Kind.RETRY: lambda world, _: world.post(resume(world.s1)),
    Kind.RESTORE_S1: _restore_s1,
    Kind.RESTORE_S2: _restore_s2,
    Kind.ROT: _rot,
    Kind.LOSE: _lose,
    Kind.SECOND_DEVICE: _second_device,
    Kind.WITHDRAW: _withdraw,
    Kind.LIE_S1: _lie_s1,
    Kind.LIE_S2: _lie_s2,
    Kind.INVALID: _invalid,
    Kind.WRONG_KEY: _wrong_key,
}


def play(topology: Topology, schedule: Iterable[Op], users: int = 6, seed: int = 0, *, real: bool = False) -> Outcome:
    """Play a survey of `users` through a schedule, looking after every step; `real`: with real cryptography."""
    world, told = World(topology, users, seed, real=real), list[State]()
    for op in schedule:
        told += [world.s1.state] if op.kind in (Kind.LIE_S1, Kind.LIE_S2) else []
        step(world, op)
    world.finish()
    world.watch.look(world.s1, world.s2)
    return Outcome(str(world.s1.state), tuple(dict.fromkeys(world.watch.problems)), tuple(told))


def step(world: World, op: Op) -> None:
    """Apply one operation, look, and keep a backup of both servers."""
    _DO[op.kind](world, op)
    world.watch.look(world.s1, world.s2)
    world.keep_backups()
