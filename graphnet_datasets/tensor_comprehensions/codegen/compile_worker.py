"""Worker process that runs the C compiler; it imports little, and each job is a fork of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from ...isolation import Reporter


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:  # noqa: ARG001
    """Compile the source file to the shared object `result` in the job's directory."""
    libraries = [f"-l{library}" for library in payload["libraries"]]
    process = subprocess.run(  # noqa: S603 (our own command line, no shell)
        [*payload["command"], "-o", "result", payload["source"], *libraries],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr[-4000:])
