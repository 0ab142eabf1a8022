"""The world of the fault simulation: the parties of one survey, what is on the way between them, their backups."""

from collections.abc import Iterable
from dataclasses import fields, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from faircount.core.entropy import SeededStream
from faircount.protocol import (
    Aggregator,
    Coordinator,
    Topology,
    aggregate,
    coordinate,
    end_phase,
    resume,
)
from faircount.protocol.peers.messages import Roster
from faircount.protocol.roles.anchor import (
    MemoryAnchor,
    anchor_aggregator_step,
    anchor_coordinator_step,
)
from faircount.protocol.roles.client import ClientState, has_progressed
from faircount.protocol.roles.stored import decode_state, encode_state
from faircount.protocol.simulator import MOST_EXCHANGES, SurveySetup, set_up
from faircount.protocol.survey.phases import FINAL
from faircount.protocol.topologies.explicit.messages import SumRequest
from faircount.protocol.topologies.masked.messages import MaskedSumRequest
from faircount.protocol.topologies.two_stage.messages import (
    Assignment,
    SlotSumRequest,
    SlotTask,
    VanishedHelper,
)
from faircount.protocol.wire.codec import CHECKSUM_BYTES, Message, Party, add_checksum, encode
from faircount.protocol.wire.crypto import CryptoSuite, IdealCrypto, StandardCrypto
from faircount.protocol.wire.field_codecs import PackedList
from faircount.protocol.wire.messages import (
    Acknowledgement,
    Rejection,
    Signed,
    Withdrawal,
    addressee,
    decode,
)
from simulation.disk import Backup, Disk
from simulation.watch import Watch

MOST_TALK = 400  # messages between the servers before we say that they never stop
ROUNDS = 25  # in which a recovered network must bring every survey to an end


class Trouble(StrEnum):
    """What goes wrong when a user says something to the coordinator."""

    NONE = "none"
    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    S1_CRASH_BEFORE = "The coordinator crashes before its write"
    S1_CRASH_AFTER = "The coordinator crashes after its write"
    DELAYED = "delayed"
    DUPLICATED = "duplicated"
    NOISE = "changed on the way to the coordinator"
    CORRUPTED = "the device sends something else than it made, well-formed or not"
    TAMPERED = "The coordinator shows this user another roster or set"


class World:
    """All parties of one survey, what is on the way between them, and their backups."""

    def __init__(
        self, topology: Topology, users: int = 6, seed: int = 0, *, real: bool = False
    ) -> None:
        crypto: CryptoSuite = StandardCrypto() if real else IdealCrypto()
        self.setup = small_survey(topology, users, seed % 2)
        self.client, self.entropy, self.crypto = topology.client, SeededStream(seed), crypto
        self.s1 = self.setup.s1.copy().changed(crypto=crypto)
        self.s2 = self.setup.s2.copy().changed(crypto=crypto)
        self.devices: list[ClientState | None] = [
            ClientState(each, i) for i, each in enumerate(self.setup.invitations)
        ]
        self.generation = [0] * users
        self.wire: list[Message] = []
        self.mail: list[Message] = []
        self.sent: list[Message] = []
        self.disk_s1, self.disk_s2 = Disk(Coordinator, crypto), Disk(Aggregator, crypto)
        self.backups_s1, self.backups_s2 = list[Backup](), list[Backup]()
        self.keep_backups()
        self.taken_back = False  # The aggregator lost its memory and nobody told it: it may never hear that it is over
        self.watch, self.anchor = Watch(self.setup.params), MemoryAnchor()

    # --- the servers

    def keep_backups(self) -> None:
        """Write both servers as they are now."""
        self.backups_s1.append(self.disk_s1.write(self.s1))
        self.backups_s2.append(self.disk_s2.write(self.s2))

    def crash_s1(self, lost: Message | None = None) -> None:
        """The coordinator stops, having worked on a message without writing what came of it; it starts again from its bytes."""
        before, written = self.s1.copy(), self.disk_s1.write(self.s1)
        if lost is not None:
            coordinate(self.s1.state, lost, self.s1.rows)
        self.s1 = self.disk_s1.read(written)
        self.watch.came_back("S1", before, self.s1)
        self.post(resume(self.s1.state, self.s1.rows))

    def crash_s2(self, lost: Message | None = None) -> None:
        """The same of the aggregator, which waits to be asked."""
        before, written = self.s2.copy(), self.disk_s2.write(self.s2)
        if lost is not None:
            aggregate(self.s2.state, lost, self.s2.rows)
        self.s2 = self.disk_s2.read(written)
        self.watch.came_back("S2", before, self.s2)

    def post(self, out: Iterable[Message]) -> None:
        """Put what a server said on the wire; answers to users of whom nobody waits are dropped."""
        for message in out:
            if isinstance(message, Signed):
                self.sent.append(message)
                self.watch.said(message)
                self.wire.append(message)

    def tell_s1(self, message: Message) -> tuple[Message, ...]:
        """The coordinator handles a message. One that is rejected must leave no trace."""
        before = self.s1.copy()
        self.watch.reached_s1(message)
        step = coordinate(self.s1.state, message, self.s1.rows)
        step = anchor_coordinator_step(self.anchor, self.s1.state, step)
        self.s1, out = self.s1.after(step), step.messages
        if out and all(isinstance(each, Rejection) for each in out) and self.s1 != before:
            self.watch.problems.append("a rejected message changed the coordinator")
        self.post(out)
        return out

    def tell_s2(self, message: Message) -> tuple[Message, ...]:
        """The aggregator handles a message."""
        before = self.s2
        step = aggregate(before.state, message, before.rows)
        step = anchor_aggregator_step(self.anchor, before.state, step, before.rows)
        self.s2, out = before.after(step), step.messages
        self.post(out)
        return out

    def arrive(self, message: Message) -> None:
        """A message reaches whom it is for."""
        if addressee(message) is Party.AGGREGATOR:
            self.tell_s2(message)
        else:
            self.tell_s1(message)

    def converse(self) -> None:
        """Everything between the servers arrives, in order."""
        for _ in range(MOST_TALK):
            if not self.wire:
                return
            self.arrive(self.wire.pop(0))
        self.watch.problems.append("the servers never stop talking")

    # --- the users

    def exchange(self, at: int, trouble: Trouble = Trouble.NONE, how: int = 0) -> bool:
        """One thing that a device says to the coordinator, and what it makes of the answer; whether it may have more to say."""
        device = self._begun(at)
        asked = None if device is None else self.client.next_message(device)
        if device is None or asked is None:
            return False
        self._note_body(at, asked)
        answer = self._through(asked, trouble, how)
        if answer is None:
            self.crash_device(at)
            return False
        after = self.client.handle_response(device, asked, answer, self.entropy)
        self.devices[at] = after
        if isinstance(asked, Withdrawal) and isinstance(answer, Acknowledgement):
            self.watch.withdrawn |= self.client.counted_as(after).keys()
        self.watch.items |= self.client.counted_as(after)
        return has_progressed(device, after)

    def _begun(self, at: int) -> ClientState | None:
        device = self.devices[at]
        if device is not None and device.state is None:
            device = self.client.start(self.setup.params, device, self.crypto, self.entropy)
            self.devices[at] = device
            self.watch.items |= self.client.counted_as(device)
        return device

    def crash_device(self, at: int) -> None:
        """The device starts again from its bytes: to have crashed is the same as not to have heard."""
        device = self.devices[at]
        if device is not None:
            self.devices[at] = decode_state(ClientState, encode_state(device), self.crypto)
            self.watch.came_back("a device", device, self.devices[at])

    def _note_body(self, at: int, body: Message) -> None:
        self.sent.append(body)
        self.watch.left_device((at, self.generation[at], getattr(body, "attempt", 0)), body)

    def _through(self, asked: Message, trouble: Trouble, how: int) -> Message | None:
        """What the device hears, if anything."""
        if trouble is Trouble.REQUEST_LOST:
            return None
        if trouble is Trouble.DELAYED:
            self.mail.append(asked)
            return None
        if trouble in (Trouble.CORRUPTED, Trouble.NOISE):
            self.tell_s1(
                corrupted(asked, how) if trouble is Trouble.CORRUPTED else noisy(asked, how)
            )
            return None
        if trouble is Trouble.S1_CRASH_BEFORE:
            self.crash_s1(asked)
            return None
        answers = self.tell_s1(asked)
        if trouble is Trouble.S1_CRASH_AFTER:
            self.crash_s1()
        if trouble is Trouble.DUPLICATED:
            self.tell_s1(asked)
        if trouble in (Trouble.ANSWER_LOST, Trouble.S1_CRASH_AFTER) or not answers:
            return None
        return tampered(answers[0], how) if trouble is Trouble.TAMPERED else answers[0]

    def visit(self, at: int) -> None:
        """A device comes and does all that there is to do."""
        for _ in range(MOST_EXCHANGES):
            if not self.exchange(at):
                return

    # --- the end

    def finish(self) -> None:
        """The network recovers, devices that still exist come back, the coordinator keeps its deadlines: the survey must end."""
        for _ in range(ROUNDS):
            for at in range(len(self.devices)):
                self.visit(at)
            self.post(resume(self.s1.state, self.s1.rows))
            self.converse()
            if self.s1.phase in FINAL and (self.s2.phase in FINAL or self.taken_back):
                return
            self.s1, out = self.s1.do(end_phase)
            self.post(out)
            self.converse()
        self.watch.problems.append(
            f"the survey does not end: the coordinator is {self.s1.phase}, the aggregator is {self.s2.phase}"
        )


# --- pieces


@lru_cache(maxsize=64)
def small_survey(topology: Topology, users: int, variant: int) -> SurveySetup:
    """A survey before its first user: noise off, one item per user. A variant has fewer helpers or neighbours."""
    mechanism, terms = topology.trial(users, variant)
    agreed = {"epsilon": 1.0, "delta": 1.0, "minimum": min(3, users), "attempts": 3, **terms}
    return set_up(mechanism, topology, SeededStream(users), **agreed)


def corrupted(message: Message, how: int) -> Message:
    """Another message, made of this one's bytes, if they are one; else the rejection that its reader makes of them."""
    data = bytearray(encode(message)[:-CHECKSUM_BYTES])
    data[2 + how % (len(data) - 2)] ^= 1 + how % 255
    return decode(add_checksum(bytes(data)))


def noisy(message: Message, how: int) -> Message:
    """What its reader makes of the message when one byte of it was changed."""
    data = bytearray(encode(message))
    data[how % len(data)] ^= 1 + how % 255
    return decode(bytes(data))


def rotten(message: Any, how: int) -> Any:
    """The message with one byte, or one number, of what it carries changed."""
    carried = [(each.name, getattr(message, each.name)) for each in fields(message)]
    places = [
        (name, i)
        for name, value in carried
        if isinstance(value, tuple | PackedList)
        for i in range(len(value))
    ]
    places += [
        (name, -1)
        for name, value in carried
        if not isinstance(value, tuple | PackedList) and value != b""
    ]
    name, i = places[how % len(places)]
    value = getattr(message, name)
    changed = _spoiled(value if i < 0 else value[i], how)
    return replace(message, **{name: changed if i < 0 else (*value[:i], changed, *value[i + 1 :])})


def _spoiled(value: bytes | int, how: int) -> bytes | int:
    if isinstance(value, int):
        return value ^ (1 + how % 255)
    data = bytearray(value)
    if data:
        data[how % len(data)] ^= 1 + how % 255
    return bytes(data)


def tampered(answer: Message, how: int) -> Message:
    """Another roster, or another set, than everybody else is shown."""
    if isinstance(answer, Roster):
        return replace(answer, entries=answer.entries[1:] if how % 2 else answer.entries[::-1])
    if isinstance(answer, SumRequest):
        bits = bytearray(answer.members)
        bits[0] ^= 1 << how % 8
        return replace(
            answer,
            members=bytes(bits),
            encrypted_shares=answer.encrypted_shares[: max(0, bits[0].bit_count() - 1)],
        )
    if isinstance(answer, SlotSumRequest) and how % 3:
        return replace(answer, tasks=tuple(_singled_out(each, how) for each in answer.tasks))
    if isinstance(answer, (MaskedSumRequest, SlotSumRequest)):
        return replace(
            answer, members=bytes((answer.members[0] ^ 1 << how % 8, *answer.members[1:]))
        )
    if isinstance(answer, Assignment):
        return (
            replace(answer, proofs=answer.proofs[1:])
            if how % 2
            else replace(answer, gone=(VanishedHelper(2, how % 8),), attempt=2)
        )
    return answer


def _singled_out(task: SlotTask, how: int) -> SlotTask:
    """A slot's shares without those of all reporters but one; the list cut down to it, too, or left as it was."""
    listed = task.listed if how % 2 else bytes((1 << how % 8, *task.listed[1:]))
    return replace(task, listed=listed, encrypted_shares=task.encrypted_shares[:1])
