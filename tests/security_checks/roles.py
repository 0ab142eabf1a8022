"""Checks in every topology: anchors, receipts, withdrawal, acknowledgements, what is read; and of the service."""

from security_checks.mutant import Mutant

LYING = "tests/unit/protocol/two_servers/test_lying_s2.py"
ANCHOR, LIMITS = "tests/unit/protocol/roles/test_anchor.py", "tests/unit/protocol/roles/test_limits.py"
COSTS = "tests/unit/protocol/roles/test_decoding_costs.py"
S1, BUDGET = "roles/coordinator.py", "survey/budget.py"
CLIENT = "tests/unit/protocol/roles/test_client.py"
LEDGER = "tests/unit/protocol/survey/test_budget.py"
REQUESTS = "tests/unit/service/test_signed_requests.py"

MUTANTS = (
    Mutant(
        "S2 does not notice that it is behind",
        "roles/aggregator.py",
        "if s.state not in FINAL and _is_behind(",
        "if False and _is_behind(",
        LYING,
    ),
    Mutant("box key kept after the end", "roles/aggregator.py", "box=s.box.destroyed()", "box=s.box", LYING),
    Mutant(
        "anchor takes anything",
        "roles/anchor.py",
        "not in (before, after):\n            return False",
        "not in (before, after):\n            return True",
        ANCHOR,
    ),
    Mutant("S1's sum not anchored", "roles/anchor.py", "or anchor.advance(name, NOTHING, sent):", "or True:", ANCHOR),
    Mutant("S2's step not anchored", "roles/anchor.py", "return step if held else", "return step if True else", ANCHOR),
    Mutant(
        "long uploads are read", "roles/limits.py", "if len(data) > longest_upload(params, kind):", "if False:", LIMITS
    ),
    Mutant(
        "proof size not compared",
        "survey/inclusion.py",
        "return answer.size == published.included and",
        "return",
        "tests/unit/protocol/two_servers/test_two_servers.py",
    ),
    Mutant(
        "value used in two surveys",
        "roles/anchor.py",
        "if not anchor.advance(name, NOTHING, params.digest):",
        "if False:",
        "tests/unit/protocol/two_servers/test_proven_lies.py -k one_survey",
    ),
    Mutant("ledger not anchored", "roles/anchor.py", "        (ledger, _head(before), _head(after)),\n", "", ANCHOR),
    Mutant(
        "receipt of another chain",
        BUDGET,
        "if shown.number < 1 or (shown.number <= len(self.heads) and self.head(shown.number) != shown.head):",
        "if shown.number < 1:",
        LEDGER,
    ),
    Mutant(
        "receipt with another amount",
        BUDGET,
        "return chained(self.head(shown.number - 1), self.population, shown.charge) == shown.head",
        "return True",
        LEDGER,
    ),
    Mutant(
        "newest receipt not shown",
        BUDGET,
        "if not shown or shown[-1].number < len(after.heads):",
        "if not shown:",
        LEDGER,
    ),
    Mutant(
        "ledger that somebody else has changed",
        BUDGET,
        "if (stored.version, stored.heads) != (before.version, before.heads):",
        "if False:",
        LEDGER,
    ),
    Mutant("closed population charged", BUDGET, "        if self.closed:\n            return False\n", "", LEDGER),
    Mutant(
        "survey charged before a restore goes on",
        "roles/aggregator.py",
        "if known is not None and s.last(Receipt) is None:",
        "if False:",
        "tests/unit/protocol/two_servers/test_restores.py",
    ),
    Mutant("upload after a withdrawal", S1, "    if has_withdrawn(s, message.index):", "    if False:", CLIENT),
    Mutant("new body after a withdrawal", S1, "if user in s.withdrawn and all(", "if False and all(", CLIENT),
    Mutant(
        "withdrawal after the claim",
        S1,
        "        if s.claim is not None or s.final is not None:\n            return s, (rejected(Reason.LATE",
        "        if False:\n            return s, (rejected(Reason.LATE",
        CLIENT,
    ),
    Mutant("body kept after a withdrawal", S1, "            s.bodies.scrub(user)", "            pass", CLIENT),
    Mutant(
        "answer counted after a withdrawal",
        S1,
        "if kind in s.rules.answers and has_withdrawn(s, index):",
        "if False:",
        CLIENT,
    ),
    Mutant(
        "withdrawal before a restored S1 knows what stands",
        S1,
        "        if s.asks:\n            return s, (rejected(Reason.EARLY",
        "        if False:\n            return s, (rejected(Reason.EARLY",
        CLIENT,
    ),
    Mutant(
        "credential of somebody else",
        S1,
        "if body is not None and hmac.compare_digest(sha256(credential).digest(), body.credential_hash):",
        "if body is not None:",
        "tests/unit/protocol/explicit/test_explicit.py -k credential",
    ),
    Mutant(
        "access value that nobody was given",
        S1,
        "return user if s.invited.get(user) == access else None",
        "return user",
        "tests/unit/protocol/roles/test_client.py -k told_nothing",
    ),
    Mutant(
        "exchanged invitation on the roster",
        S1,
        "return bool(s.invited.get(user))",
        "return user in s.invited",
        "tests/unit/protocol/roles/test_sync.py -k exchanged",
    ),
    Mutant(
        "used invitation exchanged",
        "roles/reissue.py",
        "if user in s.bodies or user in s.withdrawn:",
        "if False:",
        "tests/unit/service/test_survey_in_process.py -k exchanged",
    ),
    Mutant(
        "acknowledgement of another body",
        "survey/acknowledgement.py",
        "if answer.survey != params.survey or answer.body_hash != sha256(encode(body)).digest():",
        "if False:",
        CLIENT,
    ),
    Mutant(
        "acknowledgement that nobody signed",
        "survey/acknowledgement.py",
        "return verify(params.keys.s1, answer.signature, ",
        "return True or (",
        CLIENT,
    ),
    Mutant(
        "two results believed",
        "roles/client.py",
        " or self.outcome not in (None, statement):",
        ":",
        CLIENT,
    ),
    Mutant(
        "statements that are no chain",
        "roles/sync.py",
        " or not chained(message.statements):",
        ":",
        LYING,
    ),
    Mutant(
        "claim without its receipt",
        "roles/sync.py",
        "if named == granted or early else None",
        "if True else None",
        LYING,
    ),
    Mutant(
        "S2 with another past",
        "roles/coordinate.py",
        "if not found.over and s.newest != found.place(s.newest.number):",
        "if False:",
        LYING,
    ),
    Mutant(
        "set named before the blobs",
        "roles/coordinate.py",
        "if s.state not in FINAL and s.included is not None and message.reason == Reason.EARLY:",
        "if False:",
        LYING,
    ),
    Mutant(
        "a user reads what is not for users",
        "roles/limits.py",
        "if kind is None or kind.to is not Party.USER:",
        "if kind is None:",
        COSTS + " -k for_users",
    ),
    Mutant(
        "a server reads what is not signed",
        "roles/limits.py",
        " if class_of(data) in (Signed, Rejected) else None",
        "",
        COSTS + " -k between_servers",
    ),
    Mutant(
        "body read before its signature",
        "wire/signing.py",
        "    if signed.by != by or not verify(",
        "    parse(signed.payload)\n    if signed.by != by or not verify(",
        COSTS + " -k between_servers",
    ),
    Mutant(
        "request of somebody else",
        "../service/signed_requests.py",
        "if not verify(params.keys.s1, signature, said):",
        "if False:",
        REQUESTS,
    ),
    Mutant("request twice", "../service/signed_requests.py", "    if not fresh:", "    if False:", REQUESTS),
    Mutant(
        "receipt for another population kept",
        "../service/coordinator.py",
        " and said.population == params.population.encode():",
        ":",
        REQUESTS,
    ),
)
