"""S1 in the two-stage topology up to the election: who reports what, under which keys, fixed before S2 reads the m_j.

announce   the hash of the request, and every user's key with the seal of its invitation            -> S2
S2         names keys for which nobody vouches: S1 leaves their users out, and announces anew; or
           reserves the budget and records the announcement                                        -> S1
request    the m_j and the salted roots of the items' lists: the one that was announced              -> S2
S2         the election
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from faircount.mechanisms.two_stage import reports_sets
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.survey.states import State, advance
from faircount.protocol.topologies.peers import roster
from faircount.protocol.topologies.two_stage.messages import (
    Announced,
    Announcement,
    Election,
    Indicator,
    ReporterKey,
    TwoStageClaim,
)
from faircount.protocol.topologies.two_stage.relay import claimed, lists_of, request_for, rounds, shuffled
from faircount.protocol.wire.codec import Message, encode
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import Accepted, Reason, rejected
from faircount.protocol.wire.roster_messages import BadEntries
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import canonical_key


def take_indicator(s: Coordinator, message: Indicator) -> coordinator.Step:
    """A user's A_i, and a key of its own for it. After a restore, users of the election say again what S1 forgot."""
    items, known = members_of(message.items, s.params.N), rounds(s)
    if items is None or len(items) != reports_sets(s.params.mechanism).reported:
        return s, (rejected(Reason.MALFORMED, "an indicator has as many items as the parameters say"),)
    asked = s.state is State.INDICATING and known.announcement is None
    forgotten = s.state is State.SHARING and not known.lists and message.index in known.order
    open_ = asked or forgotten
    if open_ and not _key_fits(s, message):
        return s, (rejected(Reason.MALFORMED, "a reporter has one key, made for this, and nobody else's"),)
    after, out = coordinator.upload(s, message, made_for=0, open_=open_)
    if not (open_ and isinstance(out[0], Accepted)):
        return after, out
    s.keys.put(message.public_key, s.roster[message.index].user)
    return (_remembered(after) if forgotten else after), out


def _key_fits(s: Coordinator, message: Indicator) -> bool:
    """A key of no low order that is nobody else's, and not the one on the roster."""
    if message.index >= s.n or not canonical_key(message.public_key):
        return False
    line = s.roster[message.index]
    return message.public_key != line.public_key and s.keys.fits(message.public_key, line.user)


def _remembered(s: Coordinator) -> Coordinator:
    """S1 with the lists of its election again, once every user has said what it had forgotten: the very same ones."""
    known = rounds(s)
    held, lists = known.election, lists_of(s, known.order)
    if held is None or lists is None or not isinstance(held.says, Election):
        return s
    found = request_for(s, lists, len(known.order))
    same = (found.reporters, found.lists) == (held.says.reporters, held.says.lists)
    return replace(s, own=replace(known, lists=lists)) if same else s


def end_indicating(s: Coordinator) -> coordinator.Step:
    """Fix who may be elected, the keys and the lists, and announce it. From here on S1 cannot change them."""
    if rounds(s).announcement is None:
        return _announce(s, [j for j in range(s.n) if coordinator.holds(s, Indicator, 0, j)])
    return _announced(s)


def _announce(s: Coordinator, eligible: Sequence[int]) -> coordinator.Step:
    order = shuffled(s, eligible)
    lists = lists_of(s, order)
    if len(eligible) < s.params.minimum or lists is None:
        return coordinator.give_up(s, f"{len(eligible)} users indicated, {s.params.minimum} are needed")
    sent = [(place, s.uploads[Indicator.tag, 0, place]) for place in order]
    entries = tuple(ReporterKey(place, each.public_key, each.mac) for place, each in sent)
    request_hash = sha256(encode(request_for(s, lists, len(order)))).digest()
    first = Announcement(s.params.survey, request_hash, entries)
    return _announced(replace(s, own=replace(rounds(s), announcement=first, order=order, lists=lists)))


def on_bad_entries(s: Coordinator, message: BadEntries, statement: Statement) -> coordinator.Step:
    """S2 does not believe some keys: leave their users out, and announce it again. S2 has read no m_j yet."""
    known = rounds(s)
    if s.state is not State.INDICATING or known.announcement is None or known.announced is not None:
        return roster.on_bad_entries(s, message, statement)
    if message.request_hash != sha256(encode(known.announcement)).digest():
        return s, ()
    doubted = {known.order[i] for i in message.positions if i < len(known.order)}
    return _announce(s, sorted(set(known.order) - doubted)) if doubted else (s, ())


def _announced(s: Coordinator) -> coordinator.Step:
    """Announce the request, or send it once S2 has recorded that. S2 never gets two: they would differ by an A_i."""
    known = rounds(s)
    said = None if known.announced is None else known.announced.says
    if known.announcement is not None and said is not None and said != _recorded(s, known.announcement):
        return coordinator.give_up(s, "another election was announced before S1 was restored")
    return s, asking(s)


def _recorded(s: Coordinator, first: Announcement) -> Announced:
    """What S2 says when it has recorded our announcement."""
    eligible = bitmap((each.place for each in first.entries), s.n)
    return Announced(s.params.survey, first.request_hash, eligible, tuple(each.public_key for each in first.entries))


def on_announced(s: Coordinator, _: Announced, statement: Statement) -> coordinator.Step:
    """S2 will read one request: ours, or the one from before a restore."""
    if s.state is not State.INDICATING or rounds(s).announced is not None:
        return s, ()
    return _announced(replace(s, own=replace(rounds(s), announced=statement)))


def on_election(s: Coordinator, message: Election, statement: Statement) -> coordinator.Step:
    """The election is held, for what S1 asked or, after a restore, for what it had asked: reporters may share."""
    restored, known = isinstance(s.claim, TwoStageClaim), rounds(s)
    if known.election is not None or message.digest != s.digest or not (s.state is State.INDICATING or restored):
        return s, ()
    eligible = members_of(message.eligible, s.n) or ()
    if known.announcement is not None and not _as_asked(s, message):
        return coordinator.end_alone(s, "S2 held another election than S1 asked for")
    s = replace(s, own=replace(known, election=statement, order=shuffled(s, eligible)))
    s = s if known.lists else _remembered(s)
    if isinstance(s.claim, TwoStageClaim):
        return replace(s, members=claimed(s, s.claim)), ()
    return replace(s, attempt=1, members=eligible, state=advance(s.state, State.SHARING)), ()


def _as_asked(s: Coordinator, held: Election) -> bool:
    known = rounds(s)
    asked = request_for(s, known.lists, len(known.order))
    own = known.announcement is not None and _recorded(s, known.announcement)
    same_users = own and (own.eligible, own.keys) == (held.eligible, held.keys)
    return bool(same_users) and (asked.reporters, asked.lists) == (held.reporters, held.lists)


def request(s: Coordinator) -> Message | None:
    """What S1 asks S2 to grant: the claim, or before it the announcement, and then the election."""
    known = rounds(s)
    if s.claim is not None or known.announcement is None or known.announced is None:
        return s.claim or known.announcement
    return request_for(s, known.lists, len(known.order))


def asking(s: Coordinator) -> coordinator.Out:
    """What S1 asks for, signed; nothing before the deadline."""
    asked = request(s)
    return () if asked is None else (coordinator.to_s2(s, asked),)
