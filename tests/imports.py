"""What a script imports, seen from a new process."""

from __future__ import annotations

import subprocess
import sys


def imported_by(script: str, names: str) -> list[str]:
    """Run a script in a new interpreter, and return which of some packages are imported then."""
    told = f"print(*(each for each in {names.split()} if each in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", f"{script}\nimport sys\n{told}"],
        check=True,
        capture_output=True,
        text=True,
    )
    return result.stdout.split()
