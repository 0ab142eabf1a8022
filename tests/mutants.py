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
from pathlib import Path

from security_checks import peers, roles, servers, two_stage
from security_checks.mutant import Mutant

ROOT = Path(__file__).parent.parent
PROTOCOL = Path("faircount/protocol")
MUTANTS = (*servers.MUTANTS, *roles.MUTANTS, *peers.MUTANTS, *two_stage.MUTANTS)


def survives(mutant: Mutant) -> bool:
    """Whether the tests pass without the check."""
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "src"
        shutil.copytree(ROOT / "src", source)  # with what Python has compiled, which is good for all but one file
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
