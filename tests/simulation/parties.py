"""The parties of one simulated survey, the messages in transit between them, and their backups.

`Simulation` runs the real roles and the real clients in one process. A party that crashes is read
back from its stored bytes, and nothing else survives. Messages between the servers wait in
`in_transit` until the schedule delivers, loses or repeats them (`faults`); a monitor looks at
everything that is sent (`monitor`).
"""

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
    aggregator_step,
    coordinator_step,
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
from faircount.protocol.simulator import MAX_EXCHANGES, SurveySetup, set_up
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
    Reason,
    Rejection,
    Signed,
    Withdrawal,
    addressee,
    decode,
)
from simulation.disk import Backup, Disk
from simulation.example_sheets import example_sheet
from simulation.monitor import Monitor

MAX_SERVER_MESSAGES = 400
"""Messages between the servers after which they count as never stopping."""

RECOVERY_ROUNDS = 25
"""Rounds in which a recovered network must bring every survey to its end."""


class Trouble(StrEnum):
    """What goes wrong when a client sends something to the coordinator."""

    NONE = "none"
    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    S1_CRASH_BEFORE = "The coordinator crashes before its write"
    S1_CRASH_AFTER = "The coordinator crashes after its write"
    DELAYED = "delayed"
    DUPLICATED = "duplicated"
    NOISE = "changed on the way to the coordinator"
    CORRUPTED = "the device sends something else than it made, well-formed or not"
    TAMPERED = "The coordinator shows this participant another roster or set"


class Simulation:
    """All parties of one survey, the messages in transit between them, and their backups."""

    def __init__(
        self, topology: Topology, users: int = 6, seed: int = 0, *, real: bool = False
    ) -> None:
        self.crypto: CryptoSuite = StandardCrypto() if real else IdealCrypto()
        self.entropy = SeededStream(seed)
        self.setup = small_survey(topology, users, seed % 2)
        self.client = topology.client
        self.s1 = self.setup.s1.copy().replace_fields(crypto=self.crypto)
        self.s2 = self.setup.s2.copy().replace_fields(crypto=self.crypto)
        self.devices: list[ClientState | None] = [
            ClientState(invitation, example_sheet(self.setup.params.questionnaire, i))
            for i, invitation in enumerate(self.setup.invitations)
        ]
        # How often a participant began again without the state of an earlier device.
        self.generation = [0] * users
        # Between the servers; delayed messages of clients; everything that was ever sent.
        self.in_transit: list[Message] = []
        self.delayed: list[Message] = []
        self.sent: list[Message] = []
        self.disk_s1 = Disk(Coordinator, self.crypto)
        self.disk_s2 = Disk(Aggregator, self.crypto)
        self.backups_s1 = list[Backup]()
        self.backups_s2 = list[Backup]()
        self.keep_backups()
        # The aggregator was rolled back and nobody told it: it may never learn that it is over.
        self.is_rolled_back = False
        self.monitor = Monitor(self.setup.params)
        self.anchor = MemoryAnchor()

    # --- the servers

    def keep_backups(self) -> None:
        """Write both servers as they are now."""
        self.backups_s1.append(self.disk_s1.write(self.s1))
        self.backups_s2.append(self.disk_s2.write(self.s2))

    def crash_s1(self, lost: Message | None = None) -> None:
        """The coordinator crashes, and starts again from its stored bytes.

        If a message was `lost`, it had worked on it and not written the result.
        """
        before = self.s1.copy()
        written = self.disk_s1.write(self.s1)
        if lost is not None:
            coordinator_step(self.s1.state, lost, self.s1.rows)
        self.s1 = self.disk_s1.read(written)
        self.monitor.compare_restart("S1", before, self.s1)
        self.post(resume(self.s1.state, self.s1.rows))

    def crash_s2(self, lost: Message | None = None) -> None:
        """The same for the aggregator, which then waits for a message."""
        before = self.s2.copy()
        written = self.disk_s2.write(self.s2)
        if lost is not None:
            aggregator_step(self.s2.state, lost, self.s2.rows)
        self.s2 = self.disk_s2.read(written)
        self.monitor.compare_restart("S2", before, self.s2)

    def post(self, out: Iterable[Message]) -> None:
        """Put messages for the other server in transit; answers to clients that left are dropped."""
        for message in out:
            if isinstance(message, Signed):
                self.sent.append(message)
                self.monitor.observe_server_message(message)
                self.in_transit.append(message)

    def send_to_s1(self, message: Message) -> tuple[Message, ...]:
        """The coordinator handles a message. One that it rejects must leave no trace.

        Except for a note that another device has shown an invitation.
        """
        before = self.s1.copy()
        self.monitor.observe_arrival_at_s1(message)
        step = coordinator_step(self.s1.state, message, self.s1.rows)
        step = anchor_coordinator_step(self.anchor, self.s1.state, step)
        self.s1 = self.s1.write_step(step)
        out = step.messages
        rejections = [answer for answer in out if isinstance(answer, Rejection)]
        is_rejected = bool(out) and len(rejections) == len(out)
        if any(answer.why is Reason.INVITATION_USED for answer in rejections):
            before.rows.table("notices").update(self.s1.rows.table("notices"))
        if is_rejected and self.s1 != before:
            self.monitor.problems.append("a rejected message changed the coordinator")
        self.post(out)
        return out

    def send_to_s2(self, message: Message) -> tuple[Message, ...]:
        """The aggregator handles a message."""
        before = self.s2
        step = aggregator_step(before.state, message, before.rows)
        step = anchor_aggregator_step(self.anchor, before.state, step, before.rows)
        self.s2 = before.write_step(step)
        self.post(step.messages)
        return step.messages

    def deliver(self, message: Message) -> None:
        """A message reaches the server that it is addressed to."""
        if addressee(message) is Party.AGGREGATOR:
            self.send_to_s2(message)
        else:
            self.send_to_s1(message)

    def deliver_all(self) -> None:
        """Everything between the servers arrives, in order."""
        for _ in range(MAX_SERVER_MESSAGES):
            if not self.in_transit:
                return
            self.deliver(self.in_transit.pop(0))
        self.monitor.problems.append("the servers never stop talking")

    # --- the clients

    def exchange(self, at: int, trouble: Trouble = Trouble.NONE, how: int = 0) -> bool:
        """A client sends its next message and handles the answer; whether it may have more."""
        device = self._start(at)
        request = None if device is None else self.client.next_message(device)
        if device is None or request is None:
            return False
        self.sent.append(request)
        attempt = getattr(request, "attempt", 0)
        self.monitor.observe_request((at, self.generation[at], attempt), request)
        response = self._send(request, trouble, how)
        if response is None:
            self.crash_device(at)
            return False
        after = self.client.handle_response(device, request, response, self.entropy)
        self.devices[at] = after
        if isinstance(request, Withdrawal) and isinstance(response, Acknowledgement):
            self.monitor.withdrawn |= self.client.counted_as(after).keys()
        self.monitor.sheets |= self.client.counted_as(after)
        return has_progressed(device, after)

    def _start(self, at: int) -> ClientState | None:
        """The device, which draws its keys at the first visit; None if it was lost."""
        device = self.devices[at]
        if device is not None and device.state is None:
            device = self.client.start(self.setup.params, device, self.crypto, self.entropy)
            self.devices[at] = device
            self.monitor.sheets |= self.client.counted_as(device)
        return device

    def crash_device(self, at: int) -> None:
        """The device starts again from its stored bytes, as if it had received no answer."""
        device = self.devices[at]
        if device is not None:
            self.devices[at] = decode_state(ClientState, encode_state(device), self.crypto)
            self.monitor.compare_restart("a device", device, self.devices[at])

    def _send(self, request: Message, trouble: Trouble, how: int) -> Message | None:
        """The answer that the device receives, if any."""
        if trouble is Trouble.REQUEST_LOST:
            return None
        if trouble is Trouble.DELAYED:
            self.delayed.append(request)
            return None
        if trouble is Trouble.CORRUPTED:
            self.send_to_s1(corrupt(request, how))
            return None
        if trouble is Trouble.NOISE:
            self.send_to_s1(flip_byte(request, how))
            return None
        if trouble is Trouble.S1_CRASH_BEFORE:
            self.crash_s1(request)
            return None
        answers = self.send_to_s1(request)
        if trouble is Trouble.S1_CRASH_AFTER:
            self.crash_s1()
        if trouble is Trouble.DUPLICATED:
            self.send_to_s1(request)
        if trouble in (Trouble.ANSWER_LOST, Trouble.S1_CRASH_AFTER) or not answers:
            return None
        return tamper(answers[0], how) if trouble is Trouble.TAMPERED else answers[0]

    def visit(self, at: int) -> None:
        """A client polls and does all that there is to do."""
        for _ in range(MAX_EXCHANGES):
            if not self.exchange(at):
                return

    # --- the end

    def finish(self) -> None:
        """The network recovers and the devices that are left come back: the survey must end."""
        for _ in range(RECOVERY_ROUNDS):
            for at in range(len(self.devices)):
                self.visit(at)
            self.post(resume(self.s1.state, self.s1.rows))
            self.deliver_all()
            if self.s1.phase in FINAL and (self.s2.phase in FINAL or self.is_rolled_back):
                return
            self.s1, out = self.s1.make_step(end_phase)
            self.post(out)
            self.deliver_all()
        self.monitor.problems.append(
            f"the survey does not end: the coordinator is {self.s1.phase}, "
            f"the aggregator is {self.s2.phase}"
        )


@lru_cache(maxsize=64)
def small_survey(topology: Topology, users: int, variant: int) -> SurveySetup:
    """A survey before its first message: no noise, one item per participant.

    A variant has fewer helpers or neighbours.
    """
    mechanism, terms = topology.example(users, variant)
    # Without noise nothing is kept; sheets promise at least what their questions spend.
    promised = max(1.0, mechanism.promise[0] or 0.0)
    agreed = {"epsilon": promised, "delta": 1.0, "minimum": min(3, users), "attempts": 3, **terms}
    return set_up(mechanism, topology, SeededStream(users), **agreed)


# --- what can happen to a message -----------------------------------------------------------------


def corrupt(message: Message, how: int) -> Message:
    """The message with one byte changed and a valid checksum, or the reader's rejection of it."""
    data = bytearray(encode(message)[:-CHECKSUM_BYTES])
    data[2 + how % (len(data) - 2)] ^= 1 + how % 255
    return decode(add_checksum(bytes(data)))


def flip_byte(message: Message, how: int) -> Message:
    """What the reader makes of the message when one byte was changed in transit."""
    data = bytearray(encode(message))
    data[how % len(data)] ^= 1 + how % 255
    return decode(bytes(data))


def damage(message: Any, how: int) -> Any:
    """The stored message with one byte, or one number, of its fields changed."""
    places = list[tuple[str, int]]()
    scalars = list[tuple[str, int]]()
    for part in fields(message):
        value = getattr(message, part.name)
        if isinstance(value, tuple | PackedList):
            places.extend((part.name, i) for i in range(len(value)))
        elif value != b"":
            scalars.append((part.name, -1))
    places += scalars
    # The copy of a part without reports is empty.
    if not places:
        return message
    name, i = places[how % len(places)]
    value = getattr(message, name)
    if i < 0:
        return replace(message, **{name: _damage_value(value, how)})
    return replace(message, **{name: (*value[:i], _damage_value(value[i], how), *value[i + 1 :])})


def _damage_value(value: bytes | int, how: int) -> bytes | int:
    if isinstance(value, int):
        return value ^ (1 + how % 255)
    data = bytearray(value)
    if data:
        data[how % len(data)] ^= 1 + how % 255
    return bytes(data)


def tamper(answer: Message, how: int) -> Message:
    """Another roster, or another set, than the coordinator shows to everybody else."""
    if isinstance(answer, Roster):
        return replace(answer, entries=answer.entries[1:] if how % 2 else answer.entries[::-1])
    if isinstance(answer, SumRequest):
        bits = bytearray(answer.members)
        bits[0] ^= 1 << how % 8
        others = max(0, bits[0].bit_count() - 1)
        shares = answer.encrypted_shares[:others]
        return replace(answer, members=bytes(bits), encrypted_shares=shares)
    if isinstance(answer, SlotSumRequest) and how % 3:
        return replace(answer, tasks=tuple(_single_out(task, how) for task in answer.tasks))
    if isinstance(answer, (MaskedSumRequest, SlotSumRequest)):
        first = answer.members[0] ^ 1 << how % 8
        return replace(answer, members=bytes((first, *answer.members[1:])))
    if isinstance(answer, Assignment) and how % 2:
        return replace(answer, proofs=answer.proofs[1:])
    if isinstance(answer, Assignment):
        return replace(answer, gone=(VanishedHelper(2, how % 8),), attempt=2)
    return answer


def _single_out(task: SlotTask, how: int) -> SlotTask:
    """A slot with the share of one reporter; its list is cut down to that one, or left as it was."""
    listed = task.listed if how % 2 else bytes((1 << how % 8, *task.listed[1:]))
    return replace(task, listed=listed, encrypted_shares=task.encrypted_shares[:1])
