"""Worker process that runs the C compiler; it imports little, and each job is a fork of it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...isolation import Reporter


def work(payload: dict[str, Any], reporter: Reporter, directory: Path) -> None:  # noqa: ARG001
    """Compile the source file to the shared object `result` in the job's directory."""
    compile_source(payload["command"], payload["source"], payload["libraries"], directory)


def compile_source(
    command: Sequence[str], source: str | Path, libraries: Sequence[str], directory: Path
) -> Path:
    """Compile a source file to the shared object `result` in a directory, and return its path.

    Raises:
        RuntimeError: the compiler fails; the message is the end of its output.
    """
    process = subprocess.run(  # noqa: S603 (our own command line, no shell)
        [*command, "-o", "result", source, *(f"-l{library}" for library in libraries)],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode:
        raise RuntimeError(process.stderr[-4000:])
    return directory / "result"
