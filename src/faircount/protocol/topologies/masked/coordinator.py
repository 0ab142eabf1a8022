"""The coordinator in the `masked` topology: it draws the graph, forms the set, adds up who sent,
and gathers help for the rest.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from faircount.core.arrays import Bools
from faircount.protocol.peers import one_sum
from faircount.protocol.peers.one_sum import PeersCoordinator
from faircount.protocol.peers.peer_set import PeerSet
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.survey.endings import (
    OTHER_BATCH,
    EndCode,
    Ending,
    aggregator_contradiction,
    too_few_left,
    too_few_readable,
)
from faircount.protocol.survey.phases import Phase, advance
from faircount.protocol.topologies.masked.aggregator import needed, recoverable
from faircount.protocol.topologies.masked.graph import draw_graph
from faircount.protocol.topologies.masked.masks import keys_digest
from faircount.protocol.topologies.masked.messages import (
    KeyBundle,
    MaskedManifest,
    MaskedSum,
    ReadyForTotal,
    UnmaskRequest,
    UnmaskShares,
    Unrecoverable,
)
from faircount.protocol.topologies.masked.relay import help_batch, mask_call, neighbourhood
from faircount.protocol.topologies.masked.state import MaskedState, masked_state, with_included
from faircount.protocol.wire.codec import Message
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, OVERHEAD
from faircount.protocol.wire.digests import bitmap, members_of
from faircount.protocol.wire.messages import NotReady, OutcomeRequest, Reason, reject
from faircount.protocol.wire.packed_rows import is_vector
from faircount.protocol.wire.roster_messages import RosterConfirmation
from faircount.protocol.wire.signing import Statement
from faircount.sharing.keys import KEY_BYTES, is_canonical_key
from faircount.sharing.shamir import SHARE_BYTES


def _holding(
    s: Coordinator, rows: StepRows, kind: type[Message], made_for: int | bytes = 0
) -> Bools:
    """Those of whom the coordinator has a message of this kind, as it was acknowledged."""
    return np.array(
        [coordinator.has_upload(s, rows, kind, made_for, j) for j in range(s.n)], dtype=np.bool_
    )


class MaskedCoordinator(PeersCoordinator):
    """The coordinator of `masked`: keys of masks, masked vectors, and help for those who dropped
    out.
    """

    answer_messages = (MaskedSum,)

    def user_handlers(self) -> Mapping[type[Message], coordinator.UserHandler]:
        """Key shares, vectors and help; a user is shown its neighbours instead of the whole
        roster.
        """
        return {
            **super().user_handlers(),
            OutcomeRequest: self.show_place,
            KeyBundle: self.take_keys,
            MaskedSum: self.take_sum,
            UnmaskShares: self.take_help,
        }

    def aggregator_handlers(self) -> Mapping[type[Message], coordinator.AggregatorHandler]:
        """Whether the aggregator could recover the keys of those who dropped out."""
        return {
            **super().aggregator_handlers(),
            ReadyForTotal: self.on_ready,
            Unrecoverable: self.on_unrecoverable,
        }

    def deadline_handlers(self) -> Mapping[Phase, coordinator.DeadlineHandler]:
        """The end of sharing keys, of sending vectors, and of helping."""
        return {
            **super().deadline_handlers(),
            Phase.SHARING: self.end_sharing,
            Phase.SUBMITTING: self.end_submitting,
            Phase.UNMASKING: self.end_recovering,
        }

    # --- roster and keys

    def on_seal(
        self, s: Coordinator, rows: StepRows, message: RosterConfirmation, statement: Statement
    ) -> coordinator.Change:
        """The roster is sealed and the aggregator's value revealed: the graph is drawn."""
        after, out = super().on_seal(s, rows, message, statement)
        if after is s:
            return s, out
        graph = draw_graph(message.revealed, message.digest, message.n, s.params.k)
        return replace(after, topology_state=MaskedState(None, graph)), out

    def show_place(
        self, s: Coordinator, rows: StepRows, message: OutcomeRequest
    ) -> coordinator.Change:
        """An invited person's place in the roster, with its neighbours' lines."""
        user = coordinator.invited_user(rows, message.access)
        if user is None:
            return s, (reject(Reason.UNKNOWN, "no such invitation for this survey"),)
        place = bisect_left(s.roster, user, key=lambda line: line.user)
        if s.confirmation is None:
            return s, (NotReady(s.params.survey, s.phase.encode()),)
        if place == s.n or s.roster[place].user != user:
            return s, (reject(Reason.UNKNOWN, "this person is not on the sealed roster"),)
        return s, (neighbourhood(s, s.confirmation, place),)

    def take_keys(self, s: Coordinator, rows: StepRows, message: KeyBundle) -> coordinator.Change:
        """A user's mask key, shared with its neighbours."""
        if s.confirmation is None:
            return s, (reject(Reason.EARLY, "the roster is not sealed yet"),)
        degree, size = masked_state(s).graph.degree, SHARE_BYTES + OVERHEAD
        if len(message.encrypted_shares) != degree or any(
            len(encrypted_share) != size for encrypted_share in message.encrypted_shares
        ):
            return s, (
                reject(Reason.MALFORMED, f"{degree} sealed key shares of {size} bytes are needed"),
            )
        if not is_canonical_key(message.mask_key) or message.mask_key in rows.keys:
            return s, (
                reject(
                    Reason.MALFORMED, "a mask key is canonical, not of low order, and used once"
                ),
            )
        return coordinator.upload(s, rows, message, made_for=0, open_=s.phase is Phase.SHARING)

    def end_sharing(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Those who shared their key, hang together and have t neighbours each, are the set."""
        inside = masked_state(s).graph.stable_component(_holding(s, rows, KeyBundle), s.params.t)
        return _attempt(replace(s, phase=advance(s.phase, Phase.SUBMITTING)), rows, inside)

    # --- sums and claim

    def next_task(self, s: Coordinator, rows: StepRows, index: int) -> Message | None:
        """Share its key, send its masked vector, or help to recover keys."""
        if s.confirmation is None or s.final is not None:
            return None
        masked = masked_state(s)
        if s.phase is Phase.SHARING and not coordinator.has_upload(s, rows, KeyBundle, 0, index):
            return neighbourhood(s, s.confirmation, index)
        if (
            s.phase is Phase.SUBMITTING
            and index in masked.members
            and not coordinator.has_upload(s, rows, MaskedSum, masked.set_digest, index)
        ):
            return mask_call(s, rows, index)
        if (
            s.included is not None
            and _asked(s, index)
            and not coordinator.has_upload(s, rows, UnmaskShares, masked.set_digest, index)
        ):
            return UnmaskRequest(s.included.signed)
        return None

    def take_sum(self, s: Coordinator, rows: StepRows, message: MaskedSum) -> coordinator.Change:
        """A user's masked vector for the current attempt, made for the very set and with the very
        keys that the coordinator has now.

        After the deadline it is not even kept. After a restore the coordinator may form another
        set for the same attempt: masks made for the former one would not cancel.
        """
        if len(message.encrypted_share) != ENCRYPTED_SEED_BYTES or not is_vector(
            message.vector, s.params.q, s.params.N
        ):
            return s, (
                reject(
                    Reason.MALFORMED,
                    "the vector or the sealed seed does not have the form of this survey",
                ),
            )
        if s.confirmation is None:
            return s, (reject(Reason.EARLY, "the roster is not sealed yet"),)
        masked = masked_state(s)
        here = (
            s.phase is Phase.SUBMITTING
            and message.index in masked.members
            and message.set_digest == masked.set_digest
        )
        open_ = here and message.keys_digest == _keys_around(s, rows, message.index)
        return coordinator.upload(s, rows, message, made_for=message.set_digest, open_=open_)

    def end_submitting(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Claim the largest connected part of those who sent; begin again if a dropped user has too
        few neighbours in it.

        Begin again, too, if a stored mask key was spoiled: its neighbours may have added masks that
        do not cancel.
        """
        graph = masked_state(s).graph
        inside, keys = graph.marks(s.members), _holding(s, rows, KeyBundle)
        if (inside & ~keys).any():
            return _attempt(s, rows, graph.stable_component(inside & keys, s.params.t))
        sent = _sent(s, rows)
        included = graph.largest_component(sent)
        if included.sum() >= s.params.minimum and not recoverable(
            graph, inside, included, s.params.t
        ):
            return _attempt(s, rows, graph.stable_component(sent, s.params.t))
        return self._claim(s, rows, tuple(np.flatnonzero(included).tolist()))

    def _claim(self, s: Coordinator, rows: StepRows, places: tuple[int, ...]) -> coordinator.Change:
        """Close writes and claim: the set, who of it has sent, and the sealed seed of each."""
        if len(places) < s.params.minimum:
            return coordinator.give_up(s, too_few_left(len(places), s.params.minimum))
        masked = with_included(masked_state(s), masked_state(s).members, places)
        keys = tuple(rows.uploads[KeyBundle.tag, 0, j].mask_key for j in s.members)
        seeds = tuple(
            rows.uploads[MaskedSum.tag, masked.set_digest, j].encrypted_share for j in places
        )
        set_of = s.attempt, masked.bits, bitmap(places, s.n), masked.set_digest
        manifest = MaskedManifest(s.params.survey, s.digest, *set_of, keys, seeds)
        after = coordinator.with_manifest(
            replace(s, topology_state=masked), manifest, Phase.COUNTING
        )
        return after, self.pending(after, rows)

    def claimed_places(self, s: Coordinator) -> Sequence[int]:
        """Those who had sent their vectors when the batch was fixed."""
        return masked_state(s).included if s.confirmation is not None else ()

    def go_on(self, s: Coordinator, rows: StepRows, places: tuple[int, ...]) -> coordinator.Change:
        """Nobody is dropped: the one sum is due.

        Else their neighbours are asked, or there is a further attempt.
        """
        masked, graph = masked_state(s), masked_state(s).graph
        if not one_sum.enough(s, places):
            return coordinator.give_up(s, too_few_readable(len(places), s.params.minimum))
        inside, counted = graph.marks(list(masked.members)), graph.marks(places)
        if not recoverable(graph, inside, counted, s.params.t):
            return _attempt(
                replace(s, phase=advance(s.phase, Phase.SUBMITTING)),
                rows,
                graph.stable_component(counted, s.params.t),
            )
        one_sum.forget_vectors(
            s, rows, MaskedSum, masked.set_digest, sorted(masked.members - frozenset(places))
        )
        s = replace(s, topology_state=with_included(masked, masked.members, places))
        if needed(graph, inside, counted).any():
            return replace(s, phase=advance(s.phase, Phase.UNMASKING)), ()
        return self._hand_over(s, rows)

    def _hand_over(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """The one sum, over those whose seeds opened."""
        places, digest = masked_state(s).included, masked_state(s).set_digest
        if not self.is_complete(s, rows):
            return coordinator.give_up(s, Ending(EndCode.REPORTS_LOST))
        return one_sum.hand_over(
            s, rows, places, [rows.uploads[MaskedSum.tag, digest, j].vector for j in places]
        )

    # --- recovery

    def take_help(
        self, s: Coordinator, rows: StepRows, message: UnmaskShares
    ) -> coordinator.Change:
        """A user's message keys for the key shares that its dropped neighbours had dealt to it."""
        asked = _asked(s, message.index)
        open_ = asked > 0 and message.set_digest == masked_state(s).set_digest
        if open_ and len(message.encrypted_share) != asked * KEY_BYTES + OVERHEAD:
            return s, (
                reject(Reason.MALFORMED, "one message key for each dropped neighbour is needed"),
            )
        return coordinator.upload(s, rows, message, made_for=message.set_digest, open_=open_)

    def end_recovering(self, s: Coordinator, rows: StepRows) -> coordinator.Change:
        """Hand over the help that came: the aggregator says whether it is enough."""
        after = replace(s, topology_state=replace(masked_state(s), helped=True))
        return after, self.pending(after, rows)

    def on_ready(
        self, s: Coordinator, rows: StepRows, message: ReadyForTotal, _: Statement
    ) -> coordinator.Change:
        """The aggregator can use the sum: now it is made, over the set that the aggregator had
        named.
        """
        if (
            s.phase is not Phase.UNMASKING
            or s.final is not None
            or message.manifest_hash != s.manifest_hash
        ):
            return s, ()
        return self._hand_over(s, rows)

    def on_unrecoverable(
        self, s: Coordinator, rows: StepRows, message: Unrecoverable, _: Statement
    ) -> coordinator.Change:
        """Dropped users' keys are lost: a further attempt with those whose seeds opened, in which
        nobody needs them.
        """
        if (
            s.phase is not Phase.UNMASKING
            or s.final is not None
            or message.manifest_hash != s.manifest_hash
        ):
            return s, ()
        graph = masked_state(s).graph
        left = graph.stable_component(graph.marks(masked_state(s).included), s.params.t)
        return _attempt(replace(s, phase=advance(s.phase, Phase.SUBMITTING)), rows, left)

    # --- what the common code asks

    def pending(self, s: Coordinator, rows: StepRows) -> coordinator.Out:
        """The claim until the aggregator has named a set, then the help once its time is over,
        then the one sum.
        """
        waits = s.phase is Phase.UNMASKING and masked_state(s).helped
        return (
            (coordinator.to_aggregator(s, help_batch(s, rows)),)
            if waits
            else super().pending(s, rows)
        )

    def adopt_manifest(
        self, s: Coordinator, rows: StepRows, manifest: Message, parts: Sequence[Message]
    ) -> Coordinator | None:
        """The aggregator's claim instead of ours, with nothing said about it yet; once the sum
        is made, another one ends the survey.
        """
        if (
            not isinstance(manifest, MaskedManifest)
            or manifest.digest != s.digest
            or s.confirmation is None
        ):
            return None
        if s.manifest == manifest:
            return s
        members, included = members_of(manifest.members, s.n), members_of(manifest.included, s.n)
        if members is None or included is None or len(manifest.encrypted_shares) != len(included):
            return None
        # check: masked-second-manifest - a second aggregate share would differ by one report
        if masked_state(s).total is not None:
            return coordinator.end_alone(s, rows, aggregator_contradiction(OTHER_BATCH))[0]
        path = {
            Phase.SHARING: (Phase.SUBMITTING, Phase.COUNTING),
            Phase.SUBMITTING: (Phase.COUNTING,),
        }.get(s.phase, ())
        if s.phase is Phase.UNMASKING:
            path = Phase.SUBMITTING, Phase.COUNTING
        masked = replace(masked_state(s), bits=manifest.members, set_digest=manifest.set_digest)
        masked = with_included(masked, frozenset(members), included)
        return coordinator.with_manifest(
            replace(s, attempt=manifest.attempt, members=members, topology_state=masked),
            manifest,
            *path,
        )

    def is_complete(self, s: Coordinator, rows: StepRows) -> bool:
        """Whether the sum is made, or every vector that it needs is here, with the very seeds that
        were claimed.
        """
        if not isinstance(s.manifest, MaskedManifest):
            return False
        masked = masked_state(s)
        seeds = dict(
            zip(
                members_of(s.manifest.included, s.n) or (), s.manifest.encrypted_shares, strict=True
            )
        )
        held = (
            (j, coordinator.intact_upload(s, rows, MaskedSum, s.manifest.set_digest, j))
            for j in masked.included
        )
        return masked.total is not None or all(
            each is not None and each.encrypted_share == seeds[j] for j, each in held
        )

    def included_places(self, s: Coordinator) -> tuple[int, ...]:
        """Those whose sums the result counts."""
        return s.topology_state.included if isinstance(s.topology_state, MaskedState) else ()


def _attempt(s: Coordinator, rows: StepRows, inside: Bools) -> coordinator.Change:
    """The next attempt; the vectors of the last one are of no use any more."""
    members = tuple(np.flatnonzero(inside).tolist())
    if len(members) < s.params.minimum:
        return coordinator.give_up(s, too_few_left(len(members), s.params.minimum))
    if s.attempt >= s.params.attempts:
        return coordinator.give_up(s, Ending(EndCode.KEY_LOST))
    one_sum.forget_vectors(s, rows, MaskedSum, masked_state(s).set_digest, s.members)
    wanted = PeerSet(s.digest, s.attempt + 1, s.n, members)
    masked = replace(masked_state(s), bits=wanted.bits, set_digest=wanted.set_digest)
    masked = with_included(masked, frozenset(members), ())
    return replace(s, attempt=wanted.attempt, members=members, topology_state=masked), ()


def _sent(s: Coordinator, rows: StepRows) -> Bools:
    """Those of whom the coordinator has a vector for the current set, made with the mask keys
    that the coordinator has now.
    """
    masked, found = masked_state(s), np.zeros(s.n, dtype=np.bool_)
    for j in s.members:
        held = coordinator.intact_upload(s, rows, MaskedSum, masked.set_digest, j)
        found[j] = held is not None and held.keys_digest == _keys_around(s, rows, j)
    return found


def _keys_around(s: Coordinator, rows: StepRows, i: int) -> bytes:
    """Digest of the mask keys of a user and of its neighbours in the set, as the coordinator has
    given them to others.
    """
    masked = masked_state(s)
    near = [j for j in masked.graph.neighbours_of(i) if j in masked.members]
    own, *others = (rows.uploads[KeyBundle.tag, 0, j].mask_key for j in (i, *near))
    return keys_digest(own, others)


def _asked(s: Coordinator, i: int) -> int:
    """How many dropped neighbours a user is asked to help with."""
    if s.phase is not Phase.UNMASKING:
        return 0
    masked = masked_state(s)
    if masked.helped or i not in masked.members or i in masked.gone:
        return 0
    return len(masked.gone.intersection(masked.graph.neighbours_of(i)))
