"""The aggregator (S2): what it does in every topology.

It uses no randomness, so doing a thing again gives the same.

    confirm one roster -> record one manifest and reserve the budget
    -> take the encrypted shares of that manifest -> publish or abort

`state` is all that it keeps, `receive` what happens when a message comes in, `steps` what the
topologies build their handlers from, and `rules` the class that a topology derives from to add
these handlers. The functions of `receive` take a state and a reader of rows and return a `Step`,
which is written before its answer is sent.
"""

from faircount.protocol.roles.aggregator.receive import (
    abort_after_restore,
    aggregate,
    aggregate_with,
)
from faircount.protocol.roles.aggregator.rules import AggregatorRules, Handler
from faircount.protocol.roles.aggregator.state import Aggregator, Change, Entry, mac_key_rows
from faircount.protocol.roles.aggregator.steps import (
    abort,
    admit,
    answer_known_manifest,
    has_valid_mac,
    is_still_private,
    publish,
    refuse_manifest,
    reserve,
    sign_statement,
)

__all__ = [
    "Aggregator",
    "AggregatorRules",
    "Change",
    "Entry",
    "Handler",
    "abort",
    "abort_after_restore",
    "admit",
    "aggregate",
    "aggregate_with",
    "answer_known_manifest",
    "has_valid_mac",
    "is_still_private",
    "mac_key_rows",
    "publish",
    "refuse_manifest",
    "reserve",
    "sign_statement",
]
