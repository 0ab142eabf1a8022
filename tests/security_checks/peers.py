"""Checks of `masked` and `explicit`, and of what all topologies with a roster share."""

from security_checks.mutant import Mutant
from security_checks.operations import ALWAYS, NEVER, REMOVED, becomes, replacing

ONE_SUM = "tests/unit/protocol/peers/test_one_sum.py"
LIMITS = "tests/unit/protocol/roles/test_limits.py"
MASKED_USER = "tests/unit/protocol/masked/test_user.py"
MASKED_REFUSALS = "tests/unit/protocol/masked/test_refusals.py"
MASKED = "tests/unit/protocol/masked/test_masked.py"
COSTS = "tests/unit/protocol/roles/test_decoding_costs.py"
EXPLICIT = "tests/unit/protocol/explicit/test_explicit.py"
MASKED_TOPOLOGY = "tests/unit/protocol/masked/test_topology.py"
EXPLICIT_USER = "tests/unit/protocol/explicit/test_user.py"
PEER_SET = "tests/unit/protocol/peers/test_peer_set.py"

MUTANTS = (
    Mutant("explicit-set-digest", NEVER, ONE_SUM),
    Mutant("complaint-names-once", REMOVED, LIMITS),
    Mutant(
        "roster-minimum",
        replacing("params.minimum", "0"),
        EXPLICIT_USER,
    ),
    Mutant(
        "own-key-on-roster",
        becomes("member.user not in {entry.user for entry in entries}"),
        EXPLICIT_USER,
    ),
    Mutant("explicit-minimum", REMOVED, EXPLICIT_USER),
    Mutant("enrolled-key", NEVER, EXPLICIT + " -k one_key"),
    Mutant("peers-minimum", becomes("True"), ONE_SUM),
    Mutant("peers-second-set", NEVER, ONE_SUM),
    Mutant("peers-set-of-manifest", REMOVED, ONE_SUM),
    Mutant("peers-set-attempt", REMOVED, ONE_SUM),
    Mutant("peers-set-root", NEVER, ONE_SUM),
    Mutant("peers-set-before-reservation", REMOVED, ONE_SUM),
    Mutant("peers-result-set", NEVER, ONE_SUM),
    Mutant("peers-vectors-deleted", REMOVED, ONE_SUM),
    Mutant("peers-sum-deleted", NEVER, ONE_SUM),
    Mutant("explicit-second-manifest", NEVER, ONE_SUM),
    Mutant("masked-second-manifest", NEVER, ONE_SUM),
    Mutant("peers-share-of-set", NEVER, ONE_SUM),
    Mutant("peers-manifest-when-ready", REMOVED, "tests/unit/protocol/explicit/test_aggregator.py"),
    Mutant("complaint-first-attempt", REMOVED, EXPLICIT + " -k later"),
    Mutant("neighbour-mask-key", NEVER, MASKED_REFUSALS + " -k low_order"),
    Mutant("manifest-mask-key", NEVER, MASKED_REFUSALS + " -k low_order"),
    Mutant("low-order-key", REMOVED, "tests/unit/sharing/test_keys.py"),
    Mutant("masked-few-shares", NEVER, MASKED_REFUSALS + " -k few_neighbours"),
    Mutant("masked-one-statement", ALWAYS, MASKED_USER + " -k one_statement"),
    Mutant("masked-help-included", REMOVED, MASKED_USER + " -k does_not_give"),
    Mutant("masked-help-minimum", NEVER, MASKED_USER + " -k does_not_give"),
    Mutant("masked-help-set", REMOVED, MASKED_USER + " -k does_not_give"),
    Mutant("masked-revealed-member", NEVER, MASKED + " -k revealed"),
    Mutant("recovered-key", ALWAYS, MASKED + " -k another_key"),
    Mutant("masked-threshold", NEVER, MASKED_TOPOLOGY + " -k threshold_below"),
    Mutant("roster-length", NEVER, COSTS + " -k true_messages"),
    Mutant("roster-for-invited", NEVER, "tests/unit/protocol/roles/test_client.py -k told_nothing"),
    Mutant("removed-pair-once", becomes("True"), PEER_SET),
    Mutant("removed-pair-inside", REMOVED, PEER_SET),
)
