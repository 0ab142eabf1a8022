"""Messages that the coordinator of `masked` assembles from what clients uploaded.

A client gets what it needs for its next task: the roster entries and keys of its neighbours, never
those of everybody. The aggregator gets the unmask shares in one batch.
"""

from faircount.protocol.peers.messages import PeerKey
from faircount.protocol.roles import coordinator
from faircount.protocol.roles.coordinator import Coordinator
from faircount.protocol.roles.rows import StepRows
from faircount.protocol.topologies.masked.messages import (
    KeyBundle,
    MaskedSumRequest,
    Neighbourhood,
    UnmaskBatch,
    UnmaskShares,
)
from faircount.protocol.topologies.masked.state import masked_state
from faircount.protocol.wire.digests import bitmap, multiproof
from faircount.protocol.wire.signing import Statement


def neighbourhood(s: Coordinator, confirmation: Statement, place: int) -> Neighbourhood:
    """A member's place in the roster, its entry and its neighbours', and their Merkle proof."""
    masked = masked_state(s)
    places = sorted((*masked.graph.neighbours_of(place), place))
    entries = tuple(PeerKey(s.roster[j].user, s.roster[j].public_key) for j in places)
    return Neighbourhood(confirmation.signed, place, entries, multiproof(s.roster_tree, places))


def masked_sum_request(s: Coordinator, rows: StepRows, place: int) -> MaskedSumRequest:
    """The set of the attempt, and for each neighbour in it the mask key and the key share."""
    masked = masked_state(s)
    neighbours = masked.graph.neighbours[place].tolist()
    # A bundle lists its shares in the order of its sender's neighbours: this is the member's index
    # among them.
    reverse_index = masked.graph.reverse_index[place].tolist()
    mask_keys = []
    encrypted_shares = []
    for neighbour, index in zip(neighbours, reverse_index, strict=True):
        if neighbour in masked.members:
            bundle = rows.uploads[KeyBundle.tag, 0, neighbour]
            mask_keys.append(bundle.mask_key)
            encrypted_shares.append(bundle.encrypted_shares[index])
    return MaskedSumRequest(
        s.params.survey, s.attempt, masked.bits, tuple(mask_keys), tuple(encrypted_shares)
    )


def unmask_batch(s: Coordinator, rows: StepRows) -> UnmaskBatch:
    """All unmask shares, with the encrypted key shares whose message keys they contain."""
    masked = masked_state(s)
    helpers = []
    encrypted_keys = []
    key_shares = list[bytes]()
    for place in masked.accepted:
        uploaded = coordinator.intact_upload(s, rows, UnmaskShares, masked.set_digest, place)
        if uploaded is None:
            continue
        helpers.append(place)
        encrypted_keys.append(uploaded.encrypted_share)
        dealers = [j for j in masked.graph.neighbours_of(place) if j in masked.dropped]
        key_shares.extend(_dealt_share(s, rows, dealer, place) for dealer in dealers)
    return UnmaskBatch(
        s.params.survey,
        s.manifest_hash,
        bitmap(helpers, s.n),
        tuple(encrypted_keys),
        tuple(key_shares),
    )


def _dealt_share(s: Coordinator, rows: StepRows, dealer: int, to: int) -> bytes:
    """The encrypted share of its mask key that a dropped member dealt to a neighbour.

    Empty if the coordinator lost it: the shares of the others still have their places.
    """
    bundle = coordinator.intact_upload(s, rows, KeyBundle, 0, dealer)
    if bundle is None:
        return b""
    index = masked_state(s).graph.neighbours_of(dealer).index(to)
    return bytes(bundle.encrypted_shares[index])
