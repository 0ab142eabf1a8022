"""The aggregator (S2): what it does in every topology.

    confirm one roster -> record one manifest and reserve the budget
    -> decrypt the shares of that manifest -> publish or abort

It draws no randomness, so a step that is repeated after a crash gives the same bytes.

`state` is all that it stores, `receive` handles a message, `steps` has the functions from which
the topologies build their handlers, and `rules` the class that a topology derives from to add
them. The functions of `receive` take a state and a reader of rows and return a `Step`. The caller
writes the step, and only then sends its messages.
"""

from faircount.protocol.roles.aggregator.receive import (
    abort_after_restore,
    aggregator_step,
    aggregator_step_with,
    stop,
)
from faircount.protocol.roles.aggregator.rules import AggregatorRules, Handler
from faircount.protocol.roles.aggregator.state import (
    Aggregator,
    AuthenticatedEntry,
    Change,
    mac_key_rows,
)
from faircount.protocol.roles.aggregator.steps import (
    abort,
    answer_known_manifest,
    has_valid_mac,
    is_still_private,
    publish,
    record_manifest,
    refuse_manifest,
    reserve,
    sign_statement,
)

__all__ = [
    "Aggregator",
    "AggregatorRules",
    "AuthenticatedEntry",
    "Change",
    "Handler",
    "abort",
    "abort_after_restore",
    "aggregator_step",
    "aggregator_step_with",
    "answer_known_manifest",
    "has_valid_mac",
    "is_still_private",
    "mac_key_rows",
    "publish",
    "record_manifest",
    "refuse_manifest",
    "reserve",
    "sign_statement",
    "stop",
]
