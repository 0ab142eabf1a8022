"""Fault schedules: a whole survey runs through the real roles while messages and machines fail.

A schedule is a list of `Op`s. `run_schedule` applies them one by one to a `Simulation`, and checks
after each whether anything happened that must never happen (`monitor`). Then the network recovers
and the survey must end: with the right sum over the set that the aggregator stated, or aborted. A
run is repeatable: the same schedule gives the same run.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from faircount.demo.invalid_reports import invalid_kinds
from faircount.protocol import ClientState, Message, Topology, end_phase, resume
from faircount.protocol.peers.member import Member
from faircount.protocol.peers.messages import Enrolment
from faircount.protocol.roles import aggregator, coordinator
from faircount.protocol.roles.rows import ACKNOWLEDGED_TABLES
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.explicit.messages import ExplicitManifest
from faircount.protocol.topologies.masked.messages import MaskedManifest
from faircount.protocol.topologies.two_servers import user as two_servers_user
from faircount.protocol.topologies.two_servers.messages import BatchManifest, Report
from faircount.protocol.topologies.two_servers.reports import report_layout_of
from faircount.protocol.wire.codec import Party
from faircount.protocol.wire.messages import Rejection, addressee, decode
from faircount.protocol.wire.signing import ChainLink, sign
from faircount.sharing.keys import SEED_BYTES
from simulation import dishonest, dishonest_peers, dishonest_two_stage
from simulation.example_sheets import example_sheet
from simulation.monitor import hash_of
from simulation.parties import Simulation, Trouble, corrupt, damage


class Kind(StrEnum):
    """What happens next. `who` and `how` are taken modulo what there is to choose from."""

    # Participant `who` sends one message to the coordinator; `how` is what goes wrong (Trouble).
    VISIT = "visit"
    # Everybody does all that there is to do, except the participants in the bits of `how`.
    ROUND = "round"
    # The coordinator ends the phase; `how` odd: two workers do.
    DEADLINE = "deadline"
    # Message `who` between the servers arrives; `how` is what goes wrong (Mishap).
    CARRY = "carry"
    # Everything between the servers arrives, in order.
    EXCHANGE = "exchange"
    # Message `who` between the servers is lost.
    DROP = "drop"
    # Delayed message `who` of a client arrives at the coordinator, maybe late.
    MAIL = "mail"
    # Message `who` of all that was ever sent arrives again.
    REPLAY = "replay"
    # Both servers get `how` old messages from `who` on, meant for them or not, and garbage.
    FLOOD = "flood"
    # The coordinator sends the aggregator again what that may not have received; `how` odd: all
    # parts of the encrypted shares at once.
    RETRY = "retry"
    # The coordinator goes back to backup `who` and resynchronizes; `how` odd: nobody tells it.
    RESTORE_S1 = "restore s1"
    # The aggregator goes back to backup `who`; `how` odd: nobody tells it.
    RESTORE_S2 = "restore s2"
    # A report, an upload or a copy of reports changes at the coordinator; `who` says which row,
    # `how` the byte. With the bit `BOTH_COPIES` every copy changes too: what was there is lost.
    ROT = "rot"
    # Device `who` is lost for good.
    LOSE = "lose"
    # Participant `who` lost its state and begins again with the same invitation.
    SECOND_DEVICE = "second device"
    # Participant `who` withdraws; `how` is what goes wrong (Trouble).
    WITHDRAW = "withdraw"
    # The owner, who has all invitations, uses that of `who`; `how` says what for.
    OWNER = "owner"
    # The coordinator signs a false message to the aggregator, about `who`; `how` says which.
    DISHONEST_COORDINATOR = "dishonest coordinator"
    # The aggregator signs a false statement to the coordinator.
    DISHONEST_AGGREGATOR = "dishonest aggregator"
    # Where reports have proofs: participant `who` sends an invalid one; `how` says which.
    INVALID = "invalid report"
    # Participant `who` arrives with a key that is not its own; `how` odd: without a valid MAC.
    WRONG_KEY = "wrong key"


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
    """How a schedule ended, and everything that should not have happened.

    `dishonest_phases` are the coordinator's phases at the times when a server was dishonest.
    """

    ending: str
    problems: tuple[str, ...]
    dishonest_phases: tuple[Phase, ...] = field(default=(), compare=False)


# --- messages and deadlines -----------------------------------------------------------------------


def _visit(sim: Simulation, op: Op) -> None:
    troubles = list(Trouble)
    trouble = troubles[op.how % len(troubles)]
    sim.exchange(op.who % len(sim.devices), trouble, op.how // len(troubles))


def _round(sim: Simulation, op: Op) -> None:
    for at in range(len(sim.devices)):
        if not op.how >> at & 1:
            sim.visit(at)


def _deadline(sim: Simulation, op: Op) -> None:
    observed = sim.s1.phase_attempt
    for _ in range(1 + op.how % 2):
        sim.s1, out = sim.s1.make_step(end_phase, observed)
        sim.post(out)


def _carry(sim: Simulation, op: Op) -> None:
    if not sim.in_transit:
        return
    message = sim.in_transit.pop(op.who % len(sim.in_transit))
    mishaps = list(Mishap)
    mishap = mishaps[op.how % len(mishaps)]
    is_for_s2 = addressee(message) is Party.AGGREGATOR
    crash = sim.crash_s2 if is_for_s2 else sim.crash_s1
    if mishap is Mishap.CORRUPTED:
        sim.deliver(corrupt(message, op.how // len(mishaps)))
        return
    if mishap is Mishap.CRASH_BEFORE:
        crash(message)
        return
    if mishap is Mishap.DUPLICATED:
        sim.in_transit.append(message)
    before = len(sim.in_transit)
    sim.deliver(message)
    if mishap is Mishap.CRASH_AFTER:
        # The answers were not sent. The monitor has taken them for sent, which is the worse case.
        del sim.in_transit[before:]
        crash()
        if is_for_s2:
            # The coordinator receives nothing, and sends it again.
            sim.post(resume(sim.s1.state, sim.s1.rows))


def _drop(sim: Simulation, op: Op) -> None:
    if sim.in_transit:
        sim.in_transit.pop(op.who % len(sim.in_transit))


def _mail(sim: Simulation, op: Op) -> None:
    if sim.delayed:
        sim.send_to_s1(sim.delayed.pop(op.who % len(sim.delayed)))


def _replay(sim: Simulation, op: Op) -> None:
    if sim.sent:
        sim.deliver(sim.sent[op.who % len(sim.sent)])


def _flood(sim: Simulation, op: Op) -> None:
    for i in range(1 + op.how % 5):
        old = sim.sent[(op.who + i) % len(sim.sent)] if sim.sent else Rejection(1)
        garbage = decode(sim.entropy.bytes(op.how % 60))
        for message in (old, corrupt(old, op.who + i), garbage):
            sim.send_to_s1(message)
            sim.send_to_s2(message)


def _retry(sim: Simulation, op: Op) -> None:
    sim.post(resume(sim.s1.state, sim.s1.rows))
    if op.how % 2:
        rules = sim.s1.rules
        for number in rules.parts_to_send(sim.s1.state, sim.s1.view):
            sim.post(rules.part_shares(sim.s1.state, sim.s1.view, number))


# --- storage and devices --------------------------------------------------------------------------


def _restore_s1(sim: Simulation, op: Op) -> None:
    sim.s1 = sim.disk_s1.read(sim.backups_s1[op.who % len(sim.backups_s1)])
    sim.monitor.is_s1_rolled_back = True
    # If nobody tells it, the coordinator goes on as if nothing had happened.
    if not op.how % 2:
        sim.s1, out = sim.s1.make_step(coordinator.start_resync)
        sim.post(out)


def _restore_s2(sim: Simulation, op: Op) -> None:
    before = sim.disk_s2.read(sim.backups_s2[op.who % len(sim.backups_s2)])
    if op.how % 2:
        sim.s2 = before
        sim.is_rolled_back = True
    else:
        sim.s2, out = before.make_step(aggregator.abort_after_restore)
        sim.post(out)


BOTH_COPIES = 1 << 11
"""In `how` of a ROT: not only the chosen row changes, but also every copy of reports."""


def _rot(sim: Simulation, op: Op) -> None:
    stored = _stored_rows(sim, *ACKNOWLEDGED_TABLES)
    copies = _stored_rows(sim, "report_parts")
    chosen = [*stored, *copies]
    if chosen:
        at = op.who % len(chosen)
        chosen = [*chosen[at : at + 1], *(copies if op.how & BOTH_COPIES and stored else ())]
    for table, key in chosen:
        row = table[key]
        # No role may do this: a disk does.
        table[key] = replace(row, value=damage(row.value, op.how), is_intact=False)


def _stored_rows(sim: Simulation, *names: str) -> list[tuple[Any, Any]]:
    """The coordinator's rows of these tables that are not deleted: their tables, and their keys."""
    found = list[tuple[Any, Any]]()
    for name in names:
        table = sim.s1.rows.table(name)
        found.extend((table, key) for key in table if table[key].value is not None)
    return found


def _lose(sim: Simulation, op: Op) -> None:
    sim.devices[op.who % len(sim.devices)] = None


def _second_device(sim: Simulation, op: Op) -> None:
    at = op.who % len(sim.devices)
    sheet = example_sheet(sim.setup.params.questionnaire, at)
    sim.devices[at] = ClientState(sim.setup.invitations[at], sheet)
    sim.generation[at] += 1


def _withdraw(sim: Simulation, op: Op) -> None:
    at = op.who % len(sim.devices)
    device = sim.devices[at]
    if device is not None and device.state is not None and not device.withdrawn:
        sim.devices[at] = sim.client.withdraw(device)
        _visit(sim, op)


def _owner(sim: Simulation, op: Op) -> None:
    """The owner withdraws, answers or asks in the place of somebody, who has answered or not."""
    at = op.who % len(sim.devices)
    device = sim.devices[at]
    has_answered = device is not None and bool(device.acknowledgements)
    sheet = example_sheet(sim.setup.params.questionnaire, at)
    blank = ClientState(sim.setup.invitations[at], sheet)
    owned = sim.client.start(sim.setup.params, blank, sim.crypto, sim.entropy)
    sim.monitor.sheets |= sim.client.counted_as(owned)
    withdrawn = sim.client.withdraw(owned)
    messages = (withdrawn.waiting[0], owned.waiting[0], sim.client.outcome_request(owned))
    answers = sim.send_to_s1(messages[op.how % len(messages)])
    is_rejected = all(isinstance(answer, Rejection) for answer in answers)
    # A coordinator that was rolled back may have forgotten which device has answered.
    if has_answered and not is_rejected and not sim.monitor.is_s1_rolled_back:
        sim.monitor.problems.append("the owner spoke for somebody whose device had answered")


# --- dishonest participants -----------------------------------------------------------------------


def _wrong_key(sim: Simulation, op: Op) -> None:
    at = op.who % len(sim.devices)
    device = sim.devices[at]
    if device is None or device.state is not None:
        return
    sim.monitor.broken.add(at)
    device = sim.client.start(sim.setup.params, device, sim.crypto, sim.entropy)
    message = device.waiting[0]
    if isinstance(message, (Enrolment, Report)):
        other = sim.crypto.keypair(sim.entropy).public
        mac = bytes(32) if op.how % 2 else device.invitation.authenticate_key(other)
        message = replace(message, public_key=other, mac=mac)
    state = device.state
    if isinstance(state, Member) and isinstance(message, Enrolment):
        state = replace(state, enrolment=message)
    sim.devices[at] = replace(device, state=state, waiting=(message,))


def _invalid(sim: Simulation, op: Op) -> None:
    params = sim.setup.params
    at = op.who % len(sim.devices)
    device = sim.devices[at]
    layout = report_layout_of(params.mechanism)
    if device is None or device.state is not None or layout is None:
        return
    invitation = device.invitation
    kinds = list(invalid_kinds(layout).values())
    row = kinds[op.how % len(kinds)](layout, sim.entropy)
    seed = sim.entropy.bytes(SEED_BYTES)
    keys = sim.crypto.keypair(sim.entropy)
    state = two_servers_user.make_report(
        params, invitation, row, seed, keys, sim.entropy, sim.crypto
    )
    sim.monitor.invalid.add(state.public_key)
    sim.monitor.sheets[invitation.user] = device.sheet
    sim.devices[at] = replace(device, state=state, waiting=(state.report,))


# --- dishonest servers ----------------------------------------------------------------------------


def _dishonest_aggregator(sim: Simulation, op: Op) -> None:
    """The aggregator signs something false, and the coordinator receives it."""
    manifest = sim.s1.manifest
    who = op.who
    how = op.how
    if how % 5 == 4:
        message = dishonest.repeat_statement(sim, who, how)
    elif sim.s1.phase is Phase.ENROLLING:
        message = dishonest.reject_good_entries(sim, who, how)
    elif isinstance(manifest, BatchManifest):
        message = dishonest.forge_for_aggregator(sim, manifest, who, how)
    elif isinstance(manifest, (ExplicitManifest, MaskedManifest)):
        message = dishonest_peers.forge_for_aggregator(sim, manifest, who, how)
    else:
        message = dishonest_two_stage.forge_for_aggregator(sim, who, how)
    if message is not None:
        sim.send_to_s1(message)


def _dishonest_coordinator(sim: Simulation, op: Op) -> None:
    """The coordinator signs something false, and the aggregator receives it."""
    manifest = sim.s1.manifest
    who = op.who
    how = op.how
    if isinstance(manifest, BatchManifest):
        forged: Message | None = dishonest.forge_for_coordinator(sim, manifest, who, how)
    elif isinstance(manifest, (ExplicitManifest, MaskedManifest)):
        forged = dishonest_peers.forge_for_coordinator(sim, manifest, who, how)
    else:
        forged = dishonest_two_stage.forge_for_coordinator(sim, who, how)
    if forged is None:
        return
    chain_link = sim.s1.chain_end
    if how % 21 == 20:
        # The aggregator takes itself for restored, and stops.
        chain_link = ChainLink(99, bytes(32))
    sim.monitor.manifests[hash_of(forged)] = forged
    sim.monitor.is_s1_dishonest = True
    sim.send_to_s2(sign(sim.s1.key, Party.COORDINATOR, forged, chain_link))


_OPERATIONS: Mapping[Kind, Callable[[Simulation, Op], None]] = {
    Kind.VISIT: _visit,
    Kind.ROUND: _round,
    Kind.DEADLINE: _deadline,
    Kind.CARRY: _carry,
    Kind.EXCHANGE: lambda sim, _: sim.deliver_all(),
    Kind.DROP: _drop,
    Kind.MAIL: _mail,
    Kind.REPLAY: _replay,
    Kind.FLOOD: _flood,
    Kind.RETRY: _retry,
    Kind.RESTORE_S1: _restore_s1,
    Kind.RESTORE_S2: _restore_s2,
    Kind.ROT: _rot,
    Kind.LOSE: _lose,
    Kind.SECOND_DEVICE: _second_device,
    Kind.WITHDRAW: _withdraw,
    Kind.OWNER: _owner,
    Kind.DISHONEST_COORDINATOR: _dishonest_coordinator,
    Kind.DISHONEST_AGGREGATOR: _dishonest_aggregator,
    Kind.INVALID: _invalid,
    Kind.WRONG_KEY: _wrong_key,
}


def run_schedule(
    topology: Topology, schedule: Iterable[Op], users: int = 6, seed: int = 0, *, real: bool = False
) -> Outcome:
    """Run a survey through a schedule, with a check after every step.

    `real` uses real cryptography instead of the ideal one.
    """
    sim = Simulation(topology, users, seed, real=real)
    dishonest_phases = list[Phase]()
    for op in schedule:
        if op.kind in (Kind.DISHONEST_COORDINATOR, Kind.DISHONEST_AGGREGATOR):
            dishonest_phases.append(sim.s1.phase)
        step(sim, op)
    sim.finish()
    sim.monitor.check_servers(sim.s1.state, sim.s2.state)
    problems = tuple(dict.fromkeys(sim.monitor.problems))
    return Outcome(str(sim.s1.phase), problems, tuple(dishonest_phases))


def step(sim: Simulation, op: Op) -> None:
    """Apply one operation, check the servers, and keep a backup of both."""
    _OPERATIONS[op.kind](sim, op)
    sim.monitor.check_servers(sim.s1.state, sim.s2.state)
    sim.keep_backups()
