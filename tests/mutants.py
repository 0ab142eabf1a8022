"""Remove one security check after the other, and see that a test notices: `make mutants`.

    python tests/mutants.py            all of them
    python tests/mutants.py sum root   those whose name contains one of the words

A mutant is the package with one line changed, in a directory of its own. It survives if the tests that should notice
pass all the same; then a check is not tested, and the script fails.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PROTOCOL = Path("faircount/protocol")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A check, by name; its text in a file of the protocol, what stands there without it, and the tests to ask."""

    name: str
    file: str
    text: str
    without: str
    tests: str


TWO_SERVERS, LYING = "topologies/two_servers/coordinator.py", "tests/unit/protocol/two_servers/test_lying_s2.py"
STAGED_USER = "topologies/two_stage/user.py"
STAGED = "tests/unit/protocol/two_stage/test_liars.py tests/unit/protocol/two_stage/test_refusals.py"
ONE_SUM = "tests/unit/protocol/peers/test_one_sum.py"
ANCHOR, LIMITS = "tests/unit/protocol/roles/test_anchor.py", "tests/unit/protocol/roles/test_limits.py"
PROVEN = "tests/unit/protocol/two_servers/test_proven_lies.py tests/unit/protocol/two_servers/test_proven_surveys.py"
MUTANTS = (
    Mutant(
        "sum over fewer than the minimum",
        TWO_SERVERS,
        "if len(lines) < params.minimum or not keeps(",
        "if False and not keeps(",
        LYING,
    ),
    Mutant(
        "root of the set not compared",
        TWO_SERVERS,
        "if stated.root != root:",
        "if False:",
        LYING,
    ),
    Mutant("second set answered", TWO_SERVERS, "if s.included is not None:", "if False:", LYING),
    Mutant(
        "another claim after a receipt",
        TWO_SERVERS,
        "    if s.receipt is not None:\n        return coordinator.end_alone(",
        "    if False:\n        return coordinator.end_alone(",
        LYING,
    ),
    Mutant(
        "result over another set",
        TWO_SERVERS,
        "if message.claim_hash == s.claim_hash and wanted",
        "if False and wanted",
        LYING,
    ),
    Mutant(
        "set before the receipt",
        TWO_SERVERS,
        "or s.receipt is None or message.claim_hash",
        "or message.claim_hash",
        LYING,
    ),
    Mutant("shares kept after the end", TWO_SERVERS, "bodies=s.bodies.scrubbed(), own=None", "own=None", LYING),
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
        "complaint names a user twice",
        "topologies/explicit/coordinator.py",
        "len(named) < len(message.senders) or",
        "",
        LIMITS,
    ),
    Mutant(
        "claim with a user twice",
        "topologies/two_servers/aggregator.py",
        "if any(a >= b for a, b in pairwise(users)):",
        "if any(a > b for a, b in pairwise(users)):",
        "tests/unit/protocol/two_servers/test_aggregator.py",
    ),
    Mutant(
        "value of S2 not compared",
        TWO_SERVERS,
        "and s.params.proven and not holds(s.params, Party.S2, message.revealed):",
        "and False:",
        PROVEN,
    ),
    Mutant(
        "value of S1 not compared",
        "topologies/two_servers/aggregator.py",
        "if form is None or not holds(s.params, Party.S1, batch.revealed):",
        "if form is None:",
        PROVEN,
    ),
    Mutant(
        "S2's set not judged", TWO_SERVERS, "return None if _agrees(s, stated) else", "return None if True else", PROVEN
    ),
    Mutant(
        "invalid reports counted",
        "topologies/two_servers/aggregator.py",
        "valid[some] = asked.accepts(told[some], answers[some])",
        "valid[some] = asked.accepts(told[some], answers[some]) | True",
        PROVEN,
    ),
    Mutant(
        "value revealed for a roster",
        "topologies/two_servers/aggregator.py",
        "    SealRequest: no_roster,\n",
        "",
        PROVEN,
    ),
    Mutant("refused reports hidden", TWO_SERVERS, "message.root, message.refused)", "message.root, wanted[2])", PROVEN),
    Mutant("secret of the noise kept", TWO_SERVERS, 'own=None, noise_secret=b"")', "own=None)", PROVEN),
    Mutant(
        "proof size not compared",
        "survey/inclusion.py",
        "return answer.size == published.included and",
        "return",
        "tests/unit/protocol/two_servers/test_two_servers.py",
    ),
    Mutant(
        "roster below the minimum accepted by a user",
        "topologies/peers/member.py",
        "if not params.minimum <= n <= params.n_max:",
        "if not n <= params.n_max:",
        "tests/unit/protocol/explicit/test_user.py",
    ),
    Mutant(
        "own key missing from the roster",
        "topologies/peers/member.py",
        "if Peer(member.user, member.keys.public) not in entries:",
        "if member.user not in {each.user for each in entries}:",
        "tests/unit/protocol/explicit/test_user.py",
    ),
    Mutant(
        "explicit user ignores the minimum",
        "topologies/explicit/user.py",
        "if len(wanted.members) < params.minimum or not",
        "if not",
        "tests/unit/protocol/explicit/test_user.py",
    ),
    Mutant(
        "helper adds parcels from outside the set",
        STAGED_USER,
        "sorted({*(members_of(task.listed, len(ballot.eligible)) or ())} & {*present})",
        "sorted({*(members_of(task.listed, len(ballot.eligible)) or ())})",
        STAGED,
    ),
    Mutant(
        "helper does not count the shares",
        STAGED_USER,
        "return whole and len(task.parcels) == len(_senders(task, ballot, present))",
        "return whole",
        STAGED,
    ),
    Mutant(
        "helper does not check the list",
        STAGED_USER,
        "whole = list_root(task.salt, listed) == ballot.lists[task.item]",
        "whole = True",
        STAGED,
    ),
    Mutant(
        "helper does not compare the list with the m_j",
        STAGED_USER,
        "if listed is None or len(listed) != ballot.reporters[task.item]:",
        "if listed is None:",
        STAGED,
    ),
    Mutant(
        "reporter does not look for itself on the lists",
        STAGED_USER,
        "problem = _report_problem(user, call, slots) or _list_problem(user, call, ballot)",
        "problem = _report_problem(user, call, slots)",
        STAGED,
    ),
    Mutant(
        "helper adds over fewer than the minimum",
        STAGED_USER,
        "if len(numbers) < params.minimum:",
        "if False:",
        STAGED,
    ),
    Mutant(
        "helper adds over two sets in one attempt",
        STAGED_USER,
        "same = user.summed[known] == called",
        "same = True",
        STAGED,
    ),
    Mutant(
        "S2 believes a reporter's key without an invitation",
        "topologies/two_stage/aggregator.py",
        "if not _vouched_for(s, each))",
        "if False)",
        STAGED,
    ),
    Mutant(
        "reporter's key sealed for another purpose",
        "topologies/two_stage/aggregator.py",
        "return entry_holds(key, s.params.digest, each.public_key, each.mac, REPORTING)",
        "return any(entry_holds(key, s.params.digest, each.public_key, each.mac, p) for p in (b'', REPORTING))",
        STAGED,
    ),
    Mutant(
        "S1 takes another election than it asked for",
        "topologies/two_stage/announcing.py",
        "if known.announcement is not None and not _as_asked(s, message):",
        "if False:",
        STAGED,
    ),
    Mutant(
        "two-stage: another claim after the sum",
        "topologies/two_stage/coordinator.py",
        "    if known.total is not None:\n        return coordinator.end_alone(",
        "    if False:\n        return coordinator.end_alone(",
        STAGED,
    ),
    Mutant(
        "two-stage: sums of a helper who is replaced are kept",
        "topologies/two_stage/coordinator.py",
        "_forget_sums(s, None if dropped else leaving)",
        "pass",
        STAGED,
    ),
    Mutant(
        "peers: sum over fewer than the minimum",
        "topologies/peers/one_sum.py",
        "return len(places) >= params.minimum and keeps(",
        "return True or keeps(",
        ONE_SUM,
    ),
    Mutant(
        "peers: second set answered",
        "topologies/peers/one_sum.py",
        "    if s.included is not None:\n        return (s, ())",
        "    if False:\n        return (s, ())",
        ONE_SUM,
    ),
    Mutant(
        "peers: set that is none of the claim",
        "topologies/peers/one_sum.py",
        "    if places is None or not set(places) <= set(claimed) or stated.set_digest",
        "    if places is None or stated.set_digest",
        ONE_SUM,
    ),
    Mutant(
        "peers: set of another attempt",
        "topologies/peers/one_sum.py",
        ' or stated.set_digest != getattr(s.claim, "set_digest", b""):',
        ":",
        ONE_SUM,
    ),
    Mutant(
        "peers: root of the set not compared",
        "topologies/peers/one_sum.py",
        "    if stated.root != root:",
        "    if False:",
        ONE_SUM,
    ),
    Mutant(
        "peers: set before the receipt",
        "topologies/peers/one_sum.py",
        "    if s.receipt is None or s.final is not None or",
        "    if s.final is not None or",
        ONE_SUM,
    ),
    Mutant(
        "peers: result over another set",
        "topologies/peers/one_sum.py",
        "isinstance(stated, PeersIncluded) and message.root != stated.root:",
        "False:",
        ONE_SUM,
    ),
    Mutant(
        "peers: vectors of those left out are kept",
        "topologies/peers/one_sum.py",
        "        s.uploads.scrub((kind.tag, made_for, j))",
        "        pass",
        ONE_SUM,
    ),
    Mutant(
        "peers: sum kept after the end",
        "topologies/peers/one_sum.py",
        "own = replace(s.own, total=None) if",
        "own = s.own if",
        ONE_SUM,
    ),
    Mutant(
        "explicit: another claim after the sum",
        "topologies/explicit/coordinator.py",
        "    if one_sum.peers_state(s).total is not None:\n        return coordinator.end_alone",
        "    if False:\n        return coordinator.end_alone",
        ONE_SUM,
    ),
    Mutant(
        "masked: another claim after the sum",
        "topologies/masked/coordinator.py",
        "    if _masked(s).total is not None:\n        return coordinator.end_alone",
        "    if False:\n        return coordinator.end_alone",
        ONE_SUM,
    ),
    Mutant(
        "peers: S2 takes a sum over any set",
        "topologies/peers/opening.py",
        "    if message.included_hash != sha256(stated.signed.payload).digest():",
        "    if False:",
        ONE_SUM,
    ),
    Mutant(
        "peers: claim after S2 is ready",
        "topologies/peers/opening.py",
        "    if s.held is None and claim.attempt >",
        "    if claim.attempt >",
        "tests/unit/protocol/explicit/test_aggregator.py",
    ),
    Mutant(
        "explicit: complaints in later attempts",
        "topologies/explicit/coordinator.py",
        "    open_ = message.attempt == 1 and _may_send(s, message)",
        "    open_ = _may_send(s, message)",
        "tests/unit/protocol/explicit/test_explicit.py -k later",
    ),
    Mutant(
        "masked: low-order mask key shown to a user",
        "topologies/masked/user.py",
        "    if len(secrets) < len(keys):",
        "    if False:",
        "tests/unit/protocol/masked/test_refusals.py -k low_order",
    ),
    Mutant(
        "masked: low-order mask key in a claim",
        "topologies/masked/aggregator.py",
        "    if not all(canonical_key(key) for key in claim.mask_keys):",
        "    if False:",
        "tests/unit/protocol/masked/test_refusals.py -k low_order",
    ),
    Mutant(
        "low-order keys are canonical",
        "../sharing/keys.py",
        "number < _FIELD_PRIME and number not in _LOW_ORDER",
        "number < _FIELD_PRIME",
        "tests/unit/sharing/test_keys.py",
    ),
    Mutant(
        "masked: few shares opened",
        "topologies/masked/user.py",
        "for j, blob in zip(live, call.blobs, strict=True)) < member.params.t:",
        "for j, blob in zip(live, call.blobs, strict=True)) < 0:",
        "tests/unit/protocol/masked/test_refusals.py -k few_neighbours",
    ),
    Mutant(
        "masked: help for a second statement",
        "topologies/masked/user.py",
        "return masker, masker.helped if same else rejected",
        "return masker, masker.helped if True else rejected",
        "tests/unit/protocol/masked/test_user.py -k one_statement",
    ),
    Mutant(
        "masked: help without being included",
        "topologies/masked/user.py",
        " or member.index not in included:",
        ":",
        "tests/unit/protocol/masked/test_user.py -k does_not_give",
    ),
    Mutant(
        "masked: help below the minimum",
        "topologies/masked/user.py",
        "    if len(included) < member.params.minimum:",
        "    if False:",
        "tests/unit/protocol/masked/test_user.py -k does_not_give",
    ),
    Mutant(
        "masked: help for another set",
        "topologies/masked/user.py",
        "    if wanted is None or stated.set_digest != wanted.set_digest:",
        "    if wanted is None:",
        "tests/unit/protocol/masked/test_user.py -k does_not_give",
    ),
    Mutant(
        "masked: a set with somebody revealed",
        "topologies/masked/user.py",
        "    if not masker.revealed.isdisjoint(wanted.members):",
        "    if False:",
        "tests/unit/protocol/masked/test_masked.py -k revealed",
    ),
    Mutant(
        "masked: recovered key not compared",
        "topologies/masked/aggregator.py",
        "return own if own.public == public else None",
        "return own",
        "tests/unit/protocol/masked/test_masked.py -k another_key",
    ),
    Mutant(
        "masked: threshold below the promise",
        "topologies/masked/__init__.py",
        "    if params.t < (least := safe_threshold",
        "    if 0 > (least := safe_threshold",
        "tests/unit/protocol/masked/test_topology.py -k threshold_below",
    ),
)


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass without the check."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        changed = source / PROTOCOL / mutant.file
        changed.write_text(mutated(changed.read_text(), mutant))
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *shlex.split(mutant.tests)]
        told = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=ROOT, env=told, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.name}: the tests could not be run\n{done.stdout.decode()[-2000:]}")
    return done.returncode == 0


def mutated(text: str, mutant: Mutant) -> str:
    """The file without the check, which must stand in it once."""
    if text.count(mutant.text) != 1:
        raise RuntimeError(f"{mutant.name}: its text stands {text.count(mutant.text)} times in {mutant.file}")
    return text.replace(mutant.text, mutant.without)


def main(words: list[str]) -> int:
    """Try the mutants; the number of those that survive."""
    chosen = [each for each in MUTANTS if not words or any(word in each.name for word in words)]
    left = 0
    for each in chosen:
        lives = survives(each)
        left += lives
        print(f"{'SURVIVES' if lives else 'found   '}  {each.name}", flush=True)
    print(f"{len(chosen)} mutants, {left} survive")
    return left


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
