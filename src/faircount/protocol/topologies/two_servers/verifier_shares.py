"""What the coordinator keeps of a `servers` survey, and its answers to the one question about each
proven report.

The answers are made when the aggregator's receipt has fixed all reports, and recorded before
they are sent. With the answers of the aggregator they say which reports are valid: the
coordinator judges the set that the aggregator names, before it adds anything up.
"""

from dataclasses import dataclass, field, replace

from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.topologies.two_servers import messages
from faircount.protocol.topologies.two_servers.accepted import accepted_marks
from faircount.protocol.topologies.two_servers.manifests import (
    PartsState,
    iterate_parts,
    manifest_size,
)
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, AggregateShare
from faircount.protocol.topologies.two_servers.reports import (
    RevealedValues,
    compute_verifier_shares,
    derive_query,
    form_of,
    pack_verifier_shares,
    unpack_verifier_shares,
    verifier_shares_bytes,
)
from faircount.protocol.wire.digests import marks_of
from faircount.protocol.wire.messages import Reservation


@dataclass(frozen=True)
class ServersState(PartsState):
    """What the coordinator keeps of this topology beside the parts of its claim."""

    stored_tag = "servers-coordinator"
    verifier_shares: tuple[bytes, ...] = field(
        default=(), repr=False
    )  # about proven reports, part by part
    total: AggregateShare | None = (
        None  # the one sum, recorded before it is sent: no other ever leaves
    )


def servers_state(s: Coordinator) -> ServersState:
    """The coordinator's own part of the state."""
    return s.topology_state if isinstance(s.topology_state, ServersState) else ServersState()


def values_of(s: Coordinator) -> RevealedValues:
    """v1 and v2: the aggregator's is in the receipt."""
    reservation = None if s.reservation is None else s.reservation.message
    return s.committed, reservation.revealed if isinstance(reservation, Reservation) else bytes(32)


def with_verifier_shares(s: Coordinator, rows: StepRows) -> Coordinator:
    """With the answers, where there are proofs; without them where answers of users were lost in a
    restore.

    Whether the shares are those that were claimed is looked at before anything is sent
    (`is_complete`), not here again.
    """
    form = form_of(s.params.mechanism)
    if form is None:
        return s
    asked, answers = derive_query(s.params, form, values_of(s)), list[bytes]()
    for part in iterate_parts(s, rows):
        shares = [
            body.share
            for each in part.entries
            if (body := rows.first_messages.get(each.user)) is not None
        ]
        if len(shares) < len(part.entries):
            return s
        answers.append(pack_verifier_shares(compute_verifier_shares(asked, shares), form))
    return replace(s, topology_state=replace(servers_state(s), verifier_shares=tuple(answers)))


def agrees(s: Coordinator, rows: StepRows, stated: AcceptedReports) -> bool:
    """Whether the set has exactly those reports, of all that opened, which both servers' answers
    show to be valid.
    """
    form = form_of(s.params.mechanism)
    if form is None or not servers_state(s).verifier_shares:
        # without the users' answers the coordinator adds up nothing anyway
        return form is None or not s.rules.is_complete(s, rows)
    opened, members = marks_of(stated.opened, manifest_size(s)), accepted_marks(s, stated)
    if (
        opened is None
        or members is None
        # check: accepted-were-opened - the aggregator accepts shares that it could not open
        or (members & ~opened).any()
    ):
        return False
    asked, theirs = derive_query(s.params, form, values_of(s)), stated.verifier_shares
    for number, mine in enumerate(servers_state(s).verifier_shares):
        part = slice(number * messages.REPORTS_PER_PART, (number + 1) * messages.REPORTS_PER_PART)
        some = opened[part]
        count = int(some.sum())
        size = verifier_shares_bytes(form, count)
        told, known = (
            unpack_verifier_shares(theirs[:size], form, count),
            unpack_verifier_shares(mine, form, len(some)),
        )
        if (
            told is None
            or known is None
            or (asked.accepts(known[some], told) != members[part][some]).any()
        ):
            return False
        theirs = theirs[size:]
    # check: no-extra-answers - verifier shares about nobody would go unchecked
    return not theirs
