"""Where the original GraphNet's samples are, and what lies beside them, for tests of these."""

from __future__ import annotations

import functools
import os
import tarfile
from pathlib import Path

UPSTREAM_VARIABLE = "GRAPHNET_DATASETS_UPSTREAM_SAMPLES"
"""Names the original GraphNet's samples: an archive, or the directory that holds `samples/`."""


def why_no_upstream() -> str:
    """Say why there are no samples of upstream: nothing is named, or something else."""
    if named := os.environ.get(UPSTREAM_VARIABLE, ""):
        return (
            f"`{named}`, which {UPSTREAM_VARIABLE} names, is neither a directory with the original "
            "GraphNet's `samples` nor an archive of them (README, Tests)"
        )
    return f"the original GraphNet's samples are not here: set {UPSTREAM_VARIABLE} (README, Tests)"


def upstream_place() -> Path | None:
    """Return the archive or directory of upstream's samples that the environment names."""
    text = os.environ.get(UPSTREAM_VARIABLE, "")
    place = Path(text).expanduser()
    if not text or (not (place / "samples").is_dir() and not _is_archive(place)):
        return None
    return place


@functools.cache
def _is_archive(place: Path) -> bool:
    return place.is_file() and tarfile.is_tarfile(place)


def upstream_file(name: str) -> Path:
    """Return the path of a file beside upstream's samples; tests that read it have `upstream`."""
    place = upstream_place()
    return (place.parent if place else Path()) / name
