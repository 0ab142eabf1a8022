"""The coordinator in the two-stage topology up to the election: who reports what, under which keys,
fixed before the aggregator reads the m_j.

announce   the hash of the request, and every user's key with its enrolment MAC        -> S2
S2         names keys for which nobody vouches: S1 leaves their users out, and announces anew; or
           reserves the budget and records the announcement                                   -> S1
request    the m_j and the salted roots of the items' lists: the one that was announced   -> S2
S2         the election
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from faircount.core.errors import ProtocolError
from faircount.mechanisms.two_stage import as_two_stage
from faircount.protocol.peers.one_sum import PeersCoordinator
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import (
    EndCode,
    Ending,
    aggregator_contradiction,
    too_few_responses,
)
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.topologies.two_stage.messages import (
    Announcement,
    AnnouncementReply,
    Election,
    Indicator,
    ReporterKey,
    TwoStageManifest,
)
from faircount.protocol.topologies.two_stage.relay import (
    TwoStageState,
    claimed,
    lists_of,
    request_for,
    rounds,
    shuffled,
)
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Acknowledgement, Reason, reject
from faircount.protocol.wire.roster_messages import RejectedEntries
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import is_canonical_key


class AnnouncingCoordinator(PeersCoordinator):
    """The coordinator until the election is held."""

    def initial_state(self, order_key: bytes) -> TwoStageState:
        """The key from which the reporters' numbers come, which only the coordinator knows."""
        if len(order_key) != 32:
            raise ProtocolError(
                "The coordinator numbers users in a secret order here: give it 32 random bytes as "
                "order_key"
            )
        return TwoStageState(None, order_key=order_key)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Who reports what."""
        return {**super().user_handlers(), Indicator: self.take_indicator}

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """The aggregator records the announcement, and holds the election."""
        return {
            **super().aggregator_handlers(),
            AnnouncementReply: self.on_announced,
            Election: self.on_election,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of indicating."""
        return {**super().deadline_handlers(), Phase.INDICATING: self.end_indicating}

    def take_indicator(
        self, s: Coordinator, rows: StepRows, message: Indicator
    ) -> coordinator.Change:
        """A user's A_i, and a key of its own for it.

        After a restore, users of the election say again what the coordinator forgot.
        """
        items, known = members_of(message.items, s.params.N), rounds(s)
        if items is None or len(items) != as_two_stage(s.params.mechanism).reported_items:
            return s, (
                reject(Reason.MALFORMED, "an indicator has as many items as the parameters say"),
            )
        asked = s.phase is Phase.INDICATING and known.announcement is None
        forgotten = s.phase is Phase.SHARING and not known.lists and message.index in known.order
        open_ = asked or forgotten
        if open_ and not _key_fits(s, rows, message):
            return s, (
                reject(
                    Reason.MALFORMED, "a reporter has one key, made for this, and nobody else's"
                ),
            )
        after, out = coordinator.upload(s, rows, message, made_for=0, open_=open_)
        if not (open_ and isinstance(out[0], Acknowledgement)):
            return after, out
        rows.keys.put(message.public_key, s.roster[message.index].user)
        return (_remembered(after, rows) if forgotten else after), out

    def end_indicating(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Fix who may be elected, the keys and the lists, and announce it.

        From here on the coordinator cannot change them.
        """
        if rounds(s).announcement is None:
            return _announce(
                s, rows, [j for j in range(s.n) if coordinator.has_upload(s, rows, Indicator, 0, j)]
            )
        return _announced(s, rows)

    def on_rejected_entries(
        self, s: Coordinator, rows: StepRows, message: RejectedEntries, statement: Statement
    ) -> coordinator.Change:
        """The aggregator does not believe some keys: leave their users out, and announce it again.

        The aggregator has read no m_j yet.
        """
        known = rounds(s)
        if (
            s.phase is not Phase.INDICATING
            or known.announcement is None
            or known.announced is not None
        ):
            return super().on_rejected_entries(s, rows, message, statement)
        if message.request_hash != sha256(encode(known.announcement)).digest():
            return s, ()
        doubted = {known.order[i] for i in message.positions if i < len(known.order)}
        return _announce(s, rows, sorted(set(known.order) - doubted)) if doubted else (s, ())

    def on_announced(
        self, s: Coordinator, rows: StepRows, _: AnnouncementReply, statement: Statement
    ) -> coordinator.Change:
        """The aggregator will read one request: ours, or the one from before a restore."""
        if s.phase is not Phase.INDICATING or rounds(s).announced is not None:
            return s, ()
        return _announced(replace(s, topology_state=replace(rounds(s), announced=statement)), rows)

    def on_election(
        self, s: Coordinator, rows: StepRows, message: Election, statement: Statement
    ) -> coordinator.Change:
        """The election is held, for what the coordinator asked or, after a restore, for what it
        had asked: reporters may share.
        """
        restored, known = isinstance(s.manifest, TwoStageManifest), rounds(s)
        if (
            known.election is not None
            or message.digest != s.digest
            or not (s.phase is Phase.INDICATING or restored)
        ):
            return s, ()
        eligible = members_of(message.eligible, s.n) or ()
        # check: election-as-asked - the aggregator elects among other users than were announced
        if known.announcement is not None and not _as_asked(s, message):
            why = "it held another election than the coordinator asked for"
            return coordinator.end_alone(s, rows, aggregator_contradiction(why))
        s = replace(
            s, topology_state=replace(known, election=statement, order=shuffled(s, eligible))
        )
        s = s if known.lists else _remembered(s, rows)
        if isinstance(s.manifest, TwoStageManifest):
            return replace(s, members=claimed(s, s.manifest)), ()
        return replace(s, attempt=1, members=eligible, phase=advance(s.phase, Phase.SHARING)), ()

    def current_request(self, s: Coordinator) -> Message | None:
        """What the coordinator asks the aggregator to grant: the claim, or before it the
        announcement, and then the election.
        """
        known = rounds(s)
        if s.manifest is not None or known.announcement is None or known.announced is None:
            return s.manifest or known.announcement
        return request_for(s, known.lists, len(known.order))

    def pending(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The announcement, then the request until there is an election; nothing before the
        deadline.
        """
        if s.phase is not Phase.INDICATING:
            return super().pending(s, rows)
        asked = self.current_request(s)
        return () if asked is None else (coordinator.to_aggregator(s, asked),)


def _key_fits(s: Coordinator, rows: StepRows, message: Indicator) -> bool:
    """A key of no low order that is nobody else's, and not the one on the roster."""
    if message.index >= s.n or not is_canonical_key(message.public_key):
        return False
    line = s.roster[message.index]
    # check: reporting-key-own - a client reports under somebody else's key
    return message.public_key != line.public_key and rows.keys.fits(message.public_key, line.user)


def _remembered(s: Coordinator, rows: StepRows) -> Coordinator:
    """The coordinator with the lists of its election again, once every user has said what it had
    forgotten: the very same ones.
    """
    known = rounds(s)
    held, lists = known.election, lists_of(s, rows, known.order)
    if held is None or lists is None or not isinstance(held.message, Election):
        return s
    found = request_for(s, lists, len(known.order))
    same = (found.reporters, found.lists) == (held.message.reporters, held.message.lists)
    return replace(s, topology_state=replace(known, lists=lists)) if same else s


def _announce(s: Coordinator, rows: StepRows, eligible: Sequence[int]) -> coordinator.Change:
    order = shuffled(s, eligible)
    lists = lists_of(s, rows, order)
    if len(eligible) < s.params.minimum or lists is None:
        return coordinator.give_up(s, too_few_responses(len(eligible), s.params.minimum))
    sent = [(place, rows.uploads[Indicator.tag, 0, place]) for place in order]
    entries = tuple(ReporterKey(place, each.public_key, each.mac) for place, each in sent)
    request_hash = sha256(encode(request_for(s, lists, len(order)))).digest()
    first = Announcement(s.params.survey, request_hash, entries)
    return _announced(
        replace(s, topology_state=replace(rounds(s), announcement=first, order=order, lists=lists)),
        rows,
    )


def _announced(s: Coordinator, rows: StepRows) -> coordinator.Change:
    """Announce the request, or send it once the aggregator has recorded that.

    The aggregator never gets two: they would differ by an A_i.
    """
    known = rounds(s)
    said = None if known.announced is None else known.announced.message
    # check: announced-before-restore - two requests would differ by one user's items
    if (
        known.announcement is not None
        and said is not None
        and said != _recorded(s, known.announcement)
    ):
        detail = "it had announced another election before"
        return coordinator.give_up(s, Ending(EndCode.COORDINATOR_RESTORED, (), detail))
    return s, s.rules.pending(s, rows)


def _recorded(s: Coordinator, first: Announcement) -> AnnouncementReply:
    """What the aggregator says when it has recorded our announcement."""
    eligible = bitmap((each.place for each in first.entries), s.n)
    return AnnouncementReply(
        s.params.survey,
        first.request_hash,
        eligible,
        tuple(each.public_key for each in first.entries),
    )


def _as_asked(s: Coordinator, held: Election) -> bool:
    known = rounds(s)
    asked = request_for(s, known.lists, len(known.order))
    own = known.announcement is not None and _recorded(s, known.announcement)
    same_users = own and (own.eligible, own.keys) == (held.eligible, held.keys)
    return bool(same_users) and (asked.reporters, asked.lists) == (held.reporters, held.lists)
