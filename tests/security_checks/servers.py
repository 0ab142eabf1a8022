"""Checks in `servers`, and of proven reports."""

from security_checks.mutant import Mutant

S1, S2 = "topologies/two_servers/coordinator.py", "topologies/two_servers/aggregator.py"
CLAIMS = "topologies/two_servers/claims.py"
VALIDITY = "topologies/two_servers/validity.py"
LYING = "tests/unit/protocol/two_servers/test_lying_s2.py"
PARTS = "tests/unit/protocol/two_servers/test_parts.py"
PROVEN = "tests/unit/protocol/two_servers/test_proven_lies.py tests/unit/protocol/two_servers/test_proven_surveys.py"

MUTANTS = (
    Mutant(
        "sum over fewer than the minimum",
        S1,
        "if members < params.minimum or not keeps(",
        "if False and not keeps(",
        LYING,
    ),
    Mutant(
        "root of the set not compared",
        S1,
        "if stated.root != root:",
        "if False:",
        LYING,
    ),
    Mutant("second set answered", S1, "if s.included is not None:", "if False:", LYING),
    Mutant(
        "another claim after a receipt",
        S1,
        "    if s.receipt is not None:\n        return coordinator.end_alone(",
        "    if False:\n        return coordinator.end_alone(",
        LYING,
    ),
    Mutant(
        "result over another set",
        S1,
        "if message.claim_hash == s.claim_hash and wanted",
        "if False and wanted",
        LYING,
    ),
    Mutant(
        "set before the receipt",
        S1,
        "or s.receipt is None or message.claim_hash",
        "or message.claim_hash",
        LYING,
    ),
    Mutant("shares kept after the end", S1, "bodies=s.bodies.scrubbed(), own=None", "own=None", LYING),
    Mutant(
        "claim with a user twice",
        CLAIMS,
        "return enough and all(one.user < two.user",
        "return enough and all(one.user <= two.user",
        PARTS,
    ),
    Mutant(
        "claim of S2's that names one person many times",
        S1,
        "earlier = chain_of(s.kept, claim) if isinstance(claim, ServersClaim) else None",
        "earlier = ()",
        PARTS,
    ),
    Mutant("parts of S2's claim out of order", CLAIMS, " or not follows(before, part):", ":", PARTS),
    Mutant("parts of S2's claim of any size", CLAIMS, " or not is_part(before) or", " or", PARTS),
    Mutant("S2's claim that goes on", CLAIMS, "is_part(last) and not last.more and", "is_part(last) and", PARTS),
    Mutant("what was recorded before a refused end", S2, "if granted else s), out", "if True else s), out", PARTS),
    Mutant("blobs after giving up", S1, " or s.final is not None\n    if over", "\n    if over", PARTS),
    Mutant("parts taken in any order", S2, "if (claim.number, claim.before) != (", "if False and () != (", PARTS),
    Mutant("parts of any size", S2, "if not is_part(claim) or any(", "if any(", PARTS),
    Mutant(
        "order between parts", S2, " or any(each.user <= so_far.last_user for each in claim.entries[:1]):", ":", PARTS
    ),
    Mutant("more lines than people", S2, "if claim.size > s.params.n_max:", "if False:", PARTS),
    Mutant("one key in two parts", S2, "if not _different_keys(s, claim):", "if False:", PARTS),
    Mutant("blobs of another part", S2, "if batch.number != done.parts:", "if False:", PARTS),
    Mutant(
        "blobs before the receipt",
        S1,
        "    if s.receipt is None:\n        known",
        "    if False:\n        known",
        PARTS,
    ),
    Mutant("a lost blob in a later part", S1, "if not _intact(s, part_of(s, number).entries):", "if False:", PARTS),
    Mutant("members who did not open", S1, " or (members & ~opened).any():", ":", PROVEN),
    Mutant("answers about nobody", S1, "    return not theirs\n", "    return True\n", PROVEN),
    Mutant(
        "value of S2 not compared",
        S1,
        "and s.params.proven and not holds(s.params, Party.S2, message.revealed):",
        "and False:",
        PROVEN,
    ),
    Mutant(
        "value of S1 not compared",
        S2,
        "        if not holds(s.params, Party.S1, batch.revealed):",
        "        if False:",
        PROVEN,
    ),
    Mutant("S2's set not judged", S1, "return None if _agrees(s, stated) else", "return None if True else", PROVEN),
    Mutant(
        "invalid reports counted",
        S2,
        "valid[some] = asked.accepts(told[some], answers[some])",
        "valid[some] = asked.accepts(told[some], answers[some]) | True",
        PROVEN,
    ),
    Mutant(
        "value revealed for a roster",
        S2,
        "    SealRequest: no_roster,\n",
        "",
        PROVEN,
    ),
    Mutant("refused reports hidden", S1, "message.root, message.refused)", "message.root, wanted[2])", PROVEN),
    Mutant("secret of the noise kept", S1, 'own=None, noise_secret=b"")', "own=None)", PROVEN),
    Mutant(
        "more votes than one",
        VALIDITY,
        "(votes == 1) & (left",
        "(left",
        "tests/unit/protocol/two_servers/test_validity.py -k 'never_pass or more_points'",
    ),
    Mutant(
        "what is no bit",
        VALIDITY,
        " & (left == right).all(axis=1)",
        "",
        "tests/unit/protocol/two_servers/test_validity.py -k 'never_pass or more_points'",
    ),
    Mutant(
        "both servers commit to one value",
        "survey/server_secrets.py",
        "if NO_COMMITMENT in both or len(both) < 2:",
        "if NO_COMMITMENT in both:",
        "tests/unit/protocol/two_servers/test_proven_surveys.py -k commitment",
    ),
    Mutant(
        "a server begins with another value",
        "survey/server_secrets.py",
        "if commitment_of(params, server) != sha256(committed).digest():",
        "if False:",
        "tests/unit/protocol/two_servers/test_proven_surveys.py -k begins_only",
    ),
    Mutant(
        "noise from the value that is revealed",
        "survey/server_secrets.py",
        " or noise_secret == committed:",
        ":",
        "tests/unit/protocol/two_servers/test_proven_surveys.py -k begins_only",
    ),
    Mutant(
        "inquiry without an invitation",
        S1,
        "    user = coordinator.invited_user(s, message.access)\n",
        "    user = user_id(message.access)\n",
        "tests/unit/protocol/roles/test_client.py -k told_nothing",
    ),
)
