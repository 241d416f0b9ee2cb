"""Caches of compiled kernels that were filled in another process, perhaps on another machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import MutableMapping
from pathlib import Path

PTXAS_VARIABLE = "TRITON_PTXAS_PATH"


def set_environment(environment: MutableMapping[str, str]) -> None:
    """Set the variables that must agree where caches are filled and where they are used.

    The keys of cached kernels depend on the version of `ptxas`, so torch's own is used if it has
    one. A single compile thread is used because workers of a pool would outlive the compilation and
    disturb the timing. A variable that is already set is kept.

    >>> environment = {"TRITON_PTXAS_PATH": "/usr/bin/ptxas"}
    >>> set_environment(environment)
    >>> environment
    {'TRITON_PTXAS_PATH': '/usr/bin/ptxas', 'TORCHINDUCTOR_COMPILE_THREADS': '1'}
    """
    environment.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    package = importlib.util.find_spec("torch")
    if package is None or package.origin is None:
        return
    ptxas = Path(package.origin).parent / "bin" / "ptxas"
    if os.access(ptxas, os.X_OK):
        environment.setdefault(PTXAS_VARIABLE, os.environ.get(PTXAS_VARIABLE, str(ptxas)))


def link_files(carried: Path, private: Path) -> int:
    """Link each file below `carried` to the same place below `private`, and return their number.

    Only the folders are created, so that a file that is written to `private` never changes
    `carried`: caches write a file under another name and move it into place.
    """
    num_links = 0
    for folder, _, names in os.walk(carried):
        target = private / Path(folder).relative_to(carried)
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            (target / name).symlink_to(Path(folder) / name)
            num_links += 1
    return num_links
