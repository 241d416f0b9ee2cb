"""Where the original GraphNet's samples are, and what lies beside them, for tests of these."""

from __future__ import annotations

import os
from pathlib import Path

UPSTREAM_VARIABLE = "GRAPHNET_DATASETS_UPSTREAM_SAMPLES"
"""Names the original GraphNet's samples: an archive, or the directory that holds `samples/`."""

NO_UPSTREAM = (
    f"the original GraphNet's samples are not here: set {UPSTREAM_VARIABLE} (README, Tests)"
)


def upstream_place() -> Path | None:
    """Return the archive or directory of upstream's samples that the environment names."""
    text = os.environ.get(UPSTREAM_VARIABLE, "")
    return Path(text).expanduser() if text and Path(text).expanduser().exists() else None


def upstream_file(name: str) -> Path:
    """Return the path of a file beside upstream's samples; tests that read it have `upstream`."""
    place = upstream_place()
    return (place.parent if place else Path()) / name
