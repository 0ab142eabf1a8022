"""What the coordinator of `masked` hands out: to users what they need next, to the aggregator
the help that came.
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


def neighbourhood(s: Coordinator, seal: Statement, place: int) -> Neighbourhood:
    """A user's place in the roster, with the lines of its neighbours and their proof."""
    masked = masked_state(s)
    places = sorted((*masked.graph.neighbours_of(place), place))
    lines = tuple(PeerKey(s.roster[j].user, s.roster[j].public_key) for j in places)
    return Neighbourhood(seal.signed, place, lines, multiproof(s.levels, places))


def mask_call(s: Coordinator, rows: StepRows, i: int) -> MaskedSumRequest:
    """The set of the attempt, with the mask keys of a user's neighbours in it and their key
    shares.
    """
    masked = masked_state(s)
    near = zip(
        masked.graph.neighbours[i].tolist(), masked.graph.reverse_index[i].tolist(), strict=True
    )
    sent = [(rows.uploads[KeyBundle.tag, 0, j], at) for j, at in near if j in masked.members]
    keys = tuple(bundle.mask_key for bundle, _ in sent)
    encrypted_shares = tuple(bundle.encrypted_shares[at] for bundle, at in sent)
    return MaskedSumRequest(s.params.survey, s.attempt, masked.bits, keys, encrypted_shares)


def help_batch(s: Coordinator, rows: StepRows) -> UnmaskBatch:
    """The help that came, with the sealed key shares that it is about."""
    masked = masked_state(s)
    helpers = [
        j
        for j in masked.included
        if coordinator.has_upload(s, rows, UnmaskShares, masked.set_digest, j)
    ]
    encrypted_shares = tuple(
        rows.uploads[UnmaskShares.tag, masked.set_digest, j].encrypted_share for j in helpers
    )
    shares = list[bytes]()
    for helper in helpers:
        dropped = (j for j in masked.graph.neighbours_of(helper) if j in masked.gone)
        shares += [_dealt(s, rows, j, helper) for j in dropped]
    return UnmaskBatch(
        s.params.survey, s.manifest_hash, bitmap(helpers, s.n), encrypted_shares, tuple(shares)
    )


def _dealt(s: Coordinator, rows: StepRows, dealer: int, to: int) -> bytes:
    """The sealed share that a dropped user had dealt to a neighbour; nothing if the coordinator
    does not have it any more.
    """
    bundle = coordinator.intact_upload(s, rows, KeyBundle, 0, dealer)
    if bundle is None:
        return b""
    return bytes(bundle.encrypted_shares[masked_state(s).graph.neighbours_of(dealer).index(to)])
