"""The coordinator of `two-stage` up to the election: who reports which items, under which keys.

    announce     the hash of the election request, and every reporter's key with its MAC
                                                                               -> aggregator
    aggregator   names keys whose MACs are not valid: the coordinator leaves their owners out and
                 announces again; or it reserves the budget and records the announcement
                                                                               -> coordinator
    request      the m_j and the salted roots of the items' lists, as announced -> aggregator
    aggregator   the election

The m_j depend on responses. The aggregator reads them once, in a request whose hash it recorded
before: from two requests that differ by one participant it could compute that one's items.
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
    assign_numbers,
    list_reporters,
    make_election_request,
    manifest_members,
    two_stage_state,
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
        """The secret from which reporters get their numbers; only the coordinator knows it."""
        # Guessable numbers would tell helpers which member of the roster a reporter is.
        if len(order_key) != 32:
            raise ProtocolError(
                "The coordinator numbers participants in a secret order here: give it 32 random "
                "bytes as order_key"
            )
        return TwoStageState(None, order_key=order_key)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Indicators: who reports which items."""
        return {**super().user_handlers(), Indicator: self.on_indicator}

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """The aggregator records the announcement, and holds the election."""
        return {
            **super().aggregator_handlers(),
            AnnouncementReply: self.on_announcement_reply,
            Election: self.on_election,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of indicating."""
        return {**super().deadline_handlers(), Phase.INDICATING: self.end_indicating}

    def on_indicator(
        self, s: Coordinator, rows: StepRows, message: Indicator
    ) -> coordinator.Change:
        """Store a client's set A_i and its reporting key.

        After a restore, the clients of the election send again what the coordinator has lost.
        """
        state = two_stage_state(s)
        items = members_of(message.items, s.params.N)
        if items is None or len(items) != as_two_stage(s.params.mechanism).reported_items:
            why = "an indicator has as many items as the parameters say"
            return s, (reject(Reason.MALFORMED, why),)
        # Not after the announcement: a later indicator would change the m_j that are announced.
        is_in_time = s.phase is Phase.INDICATING and state.announcement is None
        is_lost = s.phase is Phase.SHARING and not state.lists and message.index in state.order
        is_open = is_in_time or is_lost
        if is_open and not _is_usable_key(s, rows, message):
            why = "a reporter has one key, made for this, and nobody else's"
            return s, (reject(Reason.MALFORMED, why),)
        after, out = coordinator.upload(s, rows, message, made_for=0, phase_is_open=is_open)
        if not is_open or not isinstance(out[0], Acknowledgement):
            return after, out
        # From now on nobody else can report under this key.
        rows.public_keys.put(message.public_key, s.roster[message.index].user)
        if is_lost:
            after = _restore_lists(after, rows)
        return after, out

    def end_indicating(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Fix who is eligible, the keys and the lists, and announce them.

        From here on the coordinator cannot change them.
        """
        # A deadline that is noticed twice announces once: the second time it only sends again.
        if two_stage_state(s).announcement is not None:
            return _send_request(s, rows)
        indicated = list[int]()
        for place in range(s.n):
            if coordinator.has_upload(s, rows, Indicator, 0, place):
                indicated.append(place)
        return _announce(s, rows, indicated)

    def on_rejected_entries(
        self, s: Coordinator, rows: StepRows, message: RejectedEntries, statement: Statement
    ) -> coordinator.Change:
        """The aggregator rejects the MACs of some keys: announce again without their owners.

        The aggregator has read no m_j yet, so it learns nothing from the two announcements.
        """
        state = two_stage_state(s)
        if (
            s.phase is not Phase.INDICATING
            or state.announcement is None
            or state.announcement_reply is not None
        ):
            return super().on_rejected_entries(s, rows, message, statement)
        # An answer to an earlier announcement, which arrived late.
        if message.request_hash != sha256(encode(state.announcement)).digest():
            return s, ()
        rejected = {state.order[i] for i in message.positions if i < len(state.order)}
        if not rejected:
            return s, ()
        return _announce(s, rows, sorted(set(state.order) - rejected))

    def on_announcement_reply(
        self, s: Coordinator, rows: StepRows, _: AnnouncementReply, statement: Statement
    ) -> coordinator.Change:
        """The aggregator will accept one request: this one, or one from before a restore."""
        state = two_stage_state(s)
        if s.phase is not Phase.INDICATING or state.announcement_reply is not None:
            return s, ()
        recorded = replace(state, announcement_reply=statement)
        return _send_request(replace(s, topology_state=recorded), rows)

    def on_election(
        self, s: Coordinator, rows: StepRows, message: Election, statement: Statement
    ) -> coordinator.Change:
        """The election is held: reporters may share.

        After a restore it may be one that the coordinator does not remember having requested.
        """
        state = two_stage_state(s)
        is_restored = isinstance(s.manifest, TwoStageManifest)
        if (
            state.election is not None
            or message.digest != s.digest
            or not (s.phase is Phase.INDICATING or is_restored)
        ):
            return s, ()
        eligible = members_of(message.eligible, s.n) or ()
        # check: election-as-asked - the aggregator elects among other users than were announced
        if state.announcement is not None and not _is_as_announced(s, state.announcement, message):
            why = "it held another election than the coordinator asked for"
            return coordinator.abort_without_aggregator(s, rows, aggregator_contradiction(why))
        # The numbers follow from the secret key: a restored coordinator gives the same ones again.
        elected = replace(state, election=statement, order=assign_numbers(s, eligible))
        s = replace(s, topology_state=elected)
        if not state.lists:
            s = _restore_lists(s, rows)
        # A restored coordinator may know a manifest before it knows the election.
        if isinstance(s.manifest, TwoStageManifest):
            return replace(s, members=manifest_members(s, s.manifest)), ()
        return replace(s, attempt=1, members=eligible, phase=advance(s.phase, Phase.SHARING)), ()

    def current_request(self, s: Coordinator) -> Message | None:
        """What the coordinator asks for now: announcement, then election, then the manifest."""
        state = two_stage_state(s)
        if s.manifest is not None:
            return s.manifest
        # Until the reply only the hash may leave: the request itself depends on responses.
        if state.announcement is None or state.announcement_reply is None:
            return state.announcement
        return make_election_request(s, state.lists, len(state.order))

    def unanswered_messages(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """While participants indicate: the current request, once the deadline has passed."""
        if s.phase is not Phase.INDICATING:
            return super().unanswered_messages(s, rows)
        request = self.current_request(s)
        return () if request is None else (coordinator.to_aggregator(s, request),)


def _is_usable_key(s: Coordinator, rows: StepRows, message: Indicator) -> bool:
    """Whether a reporting key is canonical, not the one on the roster, and nobody else's."""
    if message.index >= s.n or not is_canonical_key(message.public_key):
        return False
    key = message.public_key
    entry = s.roster[message.index]
    # check: reporting-key-own - a client reports under somebody else's key
    return key != entry.public_key and rows.public_keys.accepts(key, entry.user)


def _restore_lists(s: Coordinator, rows: StepRows) -> Coordinator:
    """Store the lists of the election again, once all indicators are back after a restore.

    They must be the very lists that the aggregator signed.
    """
    state = two_stage_state(s)
    election = None if state.election is None else state.election.message
    lists = list_reporters(s, rows, state.order)
    if lists is None or not isinstance(election, Election):
        return s
    request = make_election_request(s, lists, len(state.order))
    # Indicators are still missing, or one has changed: the signed lists stay the only ones.
    if (request.reporters, request.lists) != (election.reporters, election.lists):
        return s
    return replace(s, topology_state=replace(state, lists=lists))


def _announce(s: Coordinator, rows: StepRows, eligible: Sequence[int]) -> coordinator.Change:
    """Fix the lists of these participants, and announce the election request by its hash."""
    order = assign_numbers(s, eligible)
    lists = list_reporters(s, rows, order)
    if len(eligible) < s.params.minimum or lists is None:
        return coordinator.request_abort(s, too_few_responses(len(eligible), s.params.minimum))
    keys = list[ReporterKey]()
    for place in order:
        indicator = rows.uploads[Indicator.tag, 0, place]
        keys.append(ReporterKey(place, indicator.public_key, indicator.mac))
    # The hash binds the m_j and says nothing about them, because the roots of the lists are salted.
    request_hash = sha256(encode(make_election_request(s, lists, len(order)))).digest()
    announcement = Announcement(s.params.survey, request_hash, tuple(keys))
    state = replace(two_stage_state(s), announcement=announcement, order=order, lists=lists)
    return _send_request(replace(s, topology_state=state), rows)


def _send_request(s: Coordinator, rows: StepRows) -> coordinator.Change:
    """Send the announcement, or the election request once the aggregator has recorded it.

    The aggregator never gets two requests: they would differ by somebody's set A_i.
    """
    state = two_stage_state(s)
    reply = None if state.announcement_reply is None else state.announcement_reply.message
    # check: announced-before-restore - two requests would differ by one user's items
    if (
        state.announcement is not None
        and reply is not None
        and reply != _expected_reply(s, state.announcement)
    ):
        detail = "it had announced another election before"
        return coordinator.request_abort(s, Ending(EndCode.COORDINATOR_RESTORED, (), detail))
    return s, s.rules.unanswered_messages(s, rows)


def _expected_reply(s: Coordinator, announcement: Announcement) -> AnnouncementReply:
    """The aggregator's reply when it has recorded this announcement."""
    eligible = bitmap((entry.place for entry in announcement.entries), s.n)
    keys = tuple(entry.public_key for entry in announcement.entries)
    return AnnouncementReply(s.params.survey, announcement.request_hash, eligible, keys)


def _is_as_announced(s: Coordinator, announcement: Announcement, election: Election) -> bool:
    """Whether the election has the places, keys, numbers and lists that were announced."""
    state = two_stage_state(s)
    expected = _expected_reply(s, announcement)
    request = make_election_request(s, state.lists, len(state.order))
    same_users = (expected.eligible, expected.keys) == (election.eligible, election.keys)
    return same_users and (request.reporters, request.lists) == (election.reporters, election.lists)
