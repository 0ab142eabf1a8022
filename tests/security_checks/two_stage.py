"""Checks in `two-stage`: rules 12 to 14."""

from security_checks.mutant import Mutant

USER, S2 = "topologies/two_stage/user.py", "topologies/two_stage/aggregator.py"
ELECTION, BLAME = "topologies/two_stage/election.py", "topologies/two_stage/blame.py"
ANNOUNCING = "topologies/two_stage/announcing.py"
LIARS = "tests/unit/protocol/two_stage/test_liars.py tests/unit/protocol/two_stage/test_refusals.py"
DRAWN = "tests/unit/protocol/two_stage/test_election.py"

MUTANTS = (
    Mutant(
        "S2's claim with attempts that there are not",
        "topologies/two_stage/coordinator.py",
        "if not Called.by(claim).within(s.params.attempts):",
        "if False:",
        "tests/unit/protocol/two_stage/test_liars.py -k 'there_are_not and (change1 or change2 or change3)'",
    ),
    Mutant(
        "helper adds parcels from outside the set",
        USER,
        "sorted({*(members_of(task.listed, len(ballot.eligible)) or ())} & {*present})",
        "sorted({*(members_of(task.listed, len(ballot.eligible)) or ())})",
        LIARS,
    ),
    Mutant(
        "helper does not count the shares",
        USER,
        "return whole and len(task.parcels) == len(_senders(task, ballot, present))",
        "return whole",
        LIARS,
    ),
    Mutant(
        "helper does not check the list",
        USER,
        "whole = list_root(task.salt, listed) == ballot.lists[task.item]",
        "whole = True",
        LIARS,
    ),
    Mutant(
        "helper does not compare the list with the m_j",
        USER,
        "if listed is None or len(listed) != ballot.reporters[task.item]:",
        "if listed is None:",
        LIARS,
    ),
    Mutant(
        "reporter does not look for itself on the lists",
        USER,
        "problem = _report_problem(user, call, slots) or _list_problem(user, call, ballot)",
        "problem = _report_problem(user, call, slots)",
        LIARS,
    ),
    Mutant(
        "helper adds over fewer than the minimum",
        USER,
        "if len(numbers) < params.minimum:",
        "if False:",
        LIARS,
    ),
    Mutant(
        "helper adds over two sets in one attempt",
        USER,
        "same = user.summed[known] == called",
        "same = True",
        LIARS,
    ),
    Mutant(
        "S2 believes a reporter's key without an invitation",
        S2,
        "if not _vouched_for(s, each))",
        "if False)",
        LIARS,
    ),
    Mutant(
        "reporter's key sealed for another purpose",
        S2,
        "return entry_holds(key, s.params.digest, each.public_key, each.mac, REPORTING)",
        "return any(entry_holds(key, s.params.digest, each.public_key, each.mac, p) for p in (b'', REPORTING))",
        LIARS,
    ),
    Mutant(
        "S1 takes another election than it asked for",
        ANNOUNCING,
        "if known.announcement is not None and not _as_asked(s, message):",
        "if False:",
        LIARS,
    ),
    Mutant(
        "two-stage: another claim after the sum",
        "topologies/two_stage/coordinator.py",
        "    if known.total is not None:\n        return coordinator.end_alone(",
        "    if False:\n        return coordinator.end_alone(",
        LIARS,
    ),
    Mutant(
        "two-stage: sums of a helper who is replaced are kept",
        "topologies/two_stage/coordinator.py",
        "_forget_sums(s, None if dropped else leaving)",
        "pass",
        LIARS,
    ),
    Mutant("m_j of another request", S2, " or known.request_hash != sha256(encode(request)).digest():", ":", LIARS),
    Mutant(
        "abort after the m_j costs nothing",
        S2,
        "replace(granted, handed_over=True)",
        "granted",
        LIARS,
    ),
    Mutant(
        "reporter under a key of the roster",
        S2,
        " or not keys.isdisjoint(opening.entry(s, i)[1] for i in range(n)):",
        ":",
        LIARS,
    ),
    Mutant(
        "user elected twice",
        S2,
        "if len(places) != len(entries) or not places <= set(range(n)):",
        "if not places <= set(range(n)):",
        LIARS,
    ),
    Mutant("election of fewer than the minimum", S2, "    if len(entries) < s.params.minimum:", "    if False:", LIARS),
    Mutant(
        "m_j that do not fit",
        ELECTION,
        "if max(reporters) > len(eligible) or sum(reporters) != reported * len(eligible):",
        "if False:",
        DRAWN + " " + LIARS,
    ),
    Mutant(
        "election with another value",
        ELECTION,
        "if sha256(election.revealed).digest() != params.keys.s2_commitment:",
        "if False:",
        DRAWN + " " + LIARS,
    ),
    Mutant("two elections", USER, 'if user.election not in (b"", ballot.hash):', "if False:", LIARS),
    Mutant("two lists of who has vanished", USER, "if gone[:shorter] != user.gone[:shorter]:", "if False:", LIARS),
    Mutant(
        "long list of who has vanished",
        USER,
        "if len(gone) > len(ballot.eligible):",
        "if False:",
        "tests/unit/protocol/roles/test_decoding_costs.py -k true_messages",
    ),
    Mutant("set that grows", USER, "if user.summed and not _shrinks(", "if False and not _shrinks(", LIARS),
    Mutant("who names many is believed", BLAME, "[each for each in said if len(each[2]) <= most]", "list(said)", LIARS),
    Mutant(
        "reporter with complaints in two attempts stays",
        BLAME,
        "count > most or times[number] > 1",
        "count > most",
        LIARS,
    ),
    Mutant(
        "who complains keeps its slots",
        BLAME,
        "return {helper for when, helper, _ in said if when == attempt} - kept, leave",
        "return set(), leave",
        LIARS,
    ),
    Mutant(
        "election that S2 has not recorded",
        ANNOUNCING,
        "said is not None and said != _recorded(s, known.announcement):",
        "False:",
        LIARS,
    ),
    Mutant(
        "reporter with the key of somebody else",
        ANNOUNCING,
        "return message.public_key != line.public_key and s.keys.fits(message.public_key, line.user)",
        "return True",
        "tests/unit/protocol/two_stage/test_restores.py -k one_reporter",
    ),
)
