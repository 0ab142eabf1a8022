"""Writes every page that prints computed output, or with `--check` says which of them are out of
date.
"""

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    makers = sorted(HERE.glob("make_*.py"))
    failed = [
        script.name
        for script in makers
        if subprocess.run([sys.executable, str(script), *sys.argv[1:]]).returncode
    ]
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
