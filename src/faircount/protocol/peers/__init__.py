"""What the topologies with a roster share: participants enrol, and hold shares for each other.

`member` and `client` are the participant's side, `roster` and `one_sum` the coordinator's,
`unmasking` the aggregator's. `self_mask` and `peer_set` are used by all of them.
"""
