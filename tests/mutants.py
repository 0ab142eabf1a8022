"""Disable one security check after the other, and see that a test notices: `make mutants`.

    python tests/mutants.py               all of them
    python tests/mutants.py set receipt   those whose name contains one of these texts

In the source a check carries a tag, `# check: slug - which attack it refuses`; in JavaScript `//`
takes the place of `#`. A mutant names the
slug, an operation that disables the check (`security_checks/operations.py`), and the tests that
must fail then. The script copies the package into a temporary directory, changes one file there and
runs the tests on it. If they pass the mutant survives: the check is not tested, and the script
fails.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from security_checks import (
    dashboard,
    levels,
    owner,
    page,
    peers,
    questions,
    roles,
    servers,
    service,
    storage,
    two_stage,
)
from security_checks.mutant import Mutant, ScriptMutant
from security_checks.tags import TagError, files_by_slug

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
MUTANTS = (
    *servers.MUTANTS,
    *roles.MUTANTS,
    *peers.MUTANTS,
    *two_stage.MUTANTS,
    *service.MUTANTS,
    *storage.MUTANTS,
    *dashboard.MUTANTS,
    *owner.MUTANTS,
    *page.MUTANTS,
    *questions.MUTANTS,
    *levels.MUTANTS,
)


@cache
def _tagged_files() -> dict[str, list[Path]]:
    return files_by_slug(SOURCE)


def find_file(slug: str) -> Path:
    """Return the one file that has the tag, relative to the source."""
    files = _tagged_files().get(slug, [])
    if len(files) != 1:
        raise TagError(f"{slug}: {len(files)} tags in the source, and there must be one")
    return files[0].relative_to(SOURCE)


def survives(mutant: Mutant | ScriptMutant) -> bool:
    """Whether the tests pass without the check."""
    file = find_file(mutant.slug)
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory) / "src"
        # Compiled files are copied too: they are valid for all files but the one that changes.
        shutil.copytree(SOURCE, source)
        (source / file).write_text(mutant.apply((SOURCE / file).read_text()))
        environment = {
            **os.environ,
            "PYTHONPATH": str(source),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            [*command, *shlex.split(mutant.tests)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            check=False,
        )
    # pytest exits with 1 when tests fail; other codes mean that it could not run them.
    if done.returncode not in (0, 1):
        output = done.stdout.decode()[-2000:]
        raise RuntimeError(f"{mutant.name}: the tests could not be run\n{output}")
    return done.returncode == 0


def main(filters: list[str]) -> int:
    """Try the mutants whose name contains one of the filters; return how many survive."""
    chosen = MUTANTS
    if filters:
        chosen = tuple(mutant for mutant in MUTANTS if any(text in mutant.name for text in filters))
    survivors = 0
    for mutant in chosen:
        if survives(mutant):
            survivors += 1
            print(f"SURVIVES  {mutant.name}", flush=True)
        else:
            print(f"found     {mutant.name}", flush=True)
    print(f"{len(chosen)} mutants, {survivors} survive")
    return survivors


if __name__ == "__main__":
    sys.exit(1 if main(sys.argv[1:]) else 0)
