"""Fault simulation: a whole survey played through the real roles while messages, machines and memories fail.

A schedule is a list of `Op`s. `play` applies them one by one to a `World`, looks after each whether anything happened
that may never happen (`watch`), then lets the network recover and the survey end: with the right sum over the
declared set, or aborted. Everything is repeatable: the same schedule gives the same run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from faircount.demo.invalid_reports import invalid_kinds
from faircount.protocol import ClientState, Message, Topology, end_phase, resume
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.messages import Enrolment
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.rows import ACKNOWLEDGED_TABLES, StoredRow
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import ExplicitManifest
from faircount.protocol.topologies.masked.messages import MaskedManifest
from faircount.protocol.topologies.two_servers import user as two_servers_user
from faircount.protocol.topologies.two_servers.messages import BatchManifest, Report
from faircount.protocol.topologies.two_servers.reports import form_of
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Rejection, addressee, decode
from faircount.protocol.wire.signing import Link, sign
from faircount.sharing.keys import SEED_BYTES
from simulation import lies, lies_peers, lies_two_stage
from simulation.watch import hash_of
from simulation.world import Trouble, World, corrupted, rotten


class Kind(StrEnum):
    """What happens next. `who` and `how` are taken modulo what there is to choose from."""

    VISIT = (
        "visit"  # user `who` says one thing to the coordinator; `how` is what goes wrong (Trouble)
    )
    ROUND = "round"  # everybody visits until there is nothing to do, but for the users in the bits of `how`
    DEADLINE = "deadline"  # The coordinator ends the phase; `how` odd: two workers do
    CARRY = "carry"  # message `who` between the servers arrives; `how` is what goes wrong (Mishap)
    CONVERSE = "converse"  # everything between the servers arrives, in order
    DROP = "drop"  # message `who` between the servers is lost
    MAIL = "mail"  # delayed user message `who` arrives at the coordinator, maybe late
    REPLAY = "replay"  # message `who` of all that was ever sent arrives again
    FLOOD = "flood"  # The coordinator and the aggregator are sent `how` old messages, meant for them or not, from `who` on, and garbage
    RETRY = "retry"  # The coordinator says its last word to the aggregator again
    RESTORE_S1 = "restore s1"  # The coordinator goes back to backup `who` and asks the aggregator what stands; `how` odd: nobody tells it
    RESTORE_S2 = (
        "restore s2"  # The aggregator goes back to backup `who`; `how` odd: nobody tells it
    )
    ROT = "rot"  # what the coordinator stores of a user changes, before or after the claim: `who` and `how` say what
    LOSE = "lose"  # device `who` is lost for good
    SECOND_DEVICE = (
        "second device"  # user `who` lost its state and begins again with the same invitation
    )
    WITHDRAW = "withdraw"  # user `who` takes its answer back; `how` is what goes wrong (Trouble)
    LIE_S1 = "lie of s1"  # The coordinator signs something false, for the aggregator; `who` says about whom, `how` what
    LIE_S2 = "lie of s2"  # The aggregator signs something false, for the coordinator
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
    """How a schedule ended, everything that should not have happened, and where the coordinator stood when a server lied."""

    ending: str
    problems: tuple[str, ...]
    lies: tuple[Phase, ...] = field(default=(), compare=False)


# --- operations


def _visit(world: World, op: Op) -> None:
    troubles = list(Trouble)
    world.exchange(
        op.who % len(world.devices), troubles[op.how % len(troubles)], op.how // len(troubles)
    )


def _round(world: World, op: Op) -> None:
    for at in range(len(world.devices)):
        if not op.how >> at & 1:
            world.visit(at)


def _deadline(world: World, op: Op) -> None:
    seen = world.s1.phase_attempt
    for _ in range(1 + op.how % 2):
        world.s1, out = world.s1.do(end_phase, seen)
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
    for_s2 = addressee(message) is Party.AGGREGATOR
    crash = world.crash_s2 if for_s2 else world.crash_s1
    if mishap is Mishap.CRASH_BEFORE:
        return crash(message)
    on_the_way = len(world.wire)
    world.arrive(message)
    if mishap is Mishap.CRASH_AFTER:
        del world.wire[
            on_the_way:
        ]  # its answers were not sent; the watch takes them for sent, which is the worse case
        crash()
        if for_s2:  # The coordinator hears nothing, and says it again
            world.post(resume(world.s1.state, world.s1.rows))
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
        old = world.sent[(op.who + i) % len(world.sent)] if world.sent else Rejection(1)
        for message in (old, corrupted(old, op.who + i), decode(world.entropy.bytes(op.how % 60))):
            world.tell_s1(message)
            world.tell_s2(message)


def _restore_s1(world: World, op: Op) -> None:
    world.s1 = world.disk_s1.read(world.backups_s1[op.who % len(world.backups_s1)])
    world.watch.forgetful = True
    if not op.how % 2:  # else nobody tells it: it goes on as if nothing had happened
        world.s1, out = world.s1.do(coordinator.start_resync)
        world.post(out)


def _restore_s2(world: World, op: Op) -> None:
    before = world.disk_s2.read(world.backups_s2[op.who % len(world.backups_s2)])
    if op.how % 2:
        world.s2, world.taken_back = before, True
    else:
        world.s2, out = before.do(aggregator.abort_after_restore)
        world.post(out)


def _rot(world: World, op: Op) -> None:
    tables = [world.s1.rows.table(name) for name in ACKNOWLEDGED_TABLES]
    stored = [(table, key) for table in tables for key in table if table[key].value is not None]
    if stored:
        table, key = stored[op.who % len(stored)]
        row = table[key]
        # No role may do this: a disk does.
        table[key] = StoredRow(rotten(row.value, op.how), row.hash)


def _lose(world: World, op: Op) -> None:
    world.devices[op.who % len(world.devices)] = None


def _second_device(world: World, op: Op) -> None:
    at = op.who % len(world.devices)
    world.devices[at] = ClientState(world.setup.invitations[at], at)
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
    device = world.client.start(world.setup.params, device, world.crypto, world.entropy)
    body = device.waiting[0]
    if isinstance(body, (Enrolment, Report)):
        other = world.crypto.keypair(world.entropy).public
        mac = bytes(32) if op.how % 2 else device.invitation.authenticate_key(other)
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
    secrets = world.entropy.bytes(SEED_BYTES), world.crypto.keypair(world.entropy)
    made = two_servers_user.prepare(params, invitation, row, *secrets, world.entropy, world.crypto)
    world.watch.invalid.add(made.public_key)
    world.watch.items[invitation.user] = at
    world.devices[at] = replace(device, state=made, waiting=(made.report,))


def _lie_s2(world: World, op: Op) -> None:
    """The aggregator signs something false, and the coordinator hears it."""
    manifest, who, how = world.s1.manifest, op.who, op.how
    if how % 5 == 4:
        message = lies.old_statement(world, who, how)
    elif world.s1.phase is Phase.ENROLLING:
        message = lies.bad_lines(world, who, how)
    elif isinstance(manifest, BatchManifest):
        message = lies.lies_of_s2(world, manifest, who, how)
    elif isinstance(manifest, (ExplicitManifest, MaskedManifest)):
        message = lies_peers.lies_of_s2(world, manifest, who, how)
    else:
        message = lies_two_stage.lies_of_s2(world, who, how)
    if message is not None:
        world.tell_s1(message)


def _lie_s1(world: World, op: Op) -> None:
    """The coordinator signs something false, and the aggregator hears it."""
    manifest, who, how = world.s1.manifest, op.who, op.how
    if isinstance(manifest, BatchManifest):
        lie: Message | None = lies.lies_of_s1(world, manifest, who, how)
    elif isinstance(manifest, (ExplicitManifest, MaskedManifest)):
        lie = lies_peers.lies_of_s1(world, manifest, who, how)
    else:
        lie = lies_two_stage.lies_of_s1(world, who, how)
    if lie is None:
        return
    ahead = (
        Link(99, bytes(32)) if how % 21 == 20 else world.s1.newest_link
    )  # The aggregator takes itself for restored, and stops
    world.watch.manifests[hash_of(lie)], world.watch.s1_lies = lie, True
    world.tell_s2(sign(world.s1.key, Party.COORDINATOR, lie, ahead))


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
    Kind.RETRY: lambda world, _: world.post(resume(world.s1.state, world.s1.rows)),
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


def play(
    topology: Topology, schedule: Iterable[Op], users: int = 6, seed: int = 0, *, real: bool = False
) -> Outcome:
    """Play a survey of `users` through a schedule, looking after every step; `real`: with real cryptography."""
    world, told = World(topology, users, seed, real=real), list[Phase]()
    for op in schedule:
        told += [world.s1.phase] if op.kind in (Kind.LIE_S1, Kind.LIE_S2) else []
        step(world, op)
    world.finish()
    world.watch.look(world.s1.state, world.s2.state)
    return Outcome(str(world.s1.phase), tuple(dict.fromkeys(world.watch.problems)), tuple(told))


def step(world: World, op: Op) -> None:
    """Apply one operation, look, and keep a backup of both servers."""
    _DO[op.kind](world, op)
    world.watch.look(world.s1.state, world.s2.state)
    world.keep_backups()
