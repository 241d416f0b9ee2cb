"""The process that runs the C compiler; it imports little, and each job is a fork of it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from ...isolation import Reporter, serve


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:  # noqa: ARG001
    """Compile the file `source` to `result` in the job's directory, a shared object."""
    libraries = [f"-l{each}" for each in payload["libraries"]]
    done = subprocess.run(  # noqa: S603 (our own command line, no shell)
        [*payload["command"], "-o", "result", payload["source"], *libraries],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-4000:])


if __name__ == "__main__":
    serve(work)
