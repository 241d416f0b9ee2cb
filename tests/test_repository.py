"""Limits on the files that Git tracks: sources and the embedded dataset, no builds."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAX_TRACKED_BYTES = 70_000_000
MAX_EMBEDDED_BYTES = 60_000_000


def tracked_sizes() -> dict[str, int]:
    """Return the size in bytes of every tracked file that exists in the working tree."""
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listing.returncode != 0:
        pytest.skip("these tests need a Git checkout")
    names = [name for name in listing.stdout.split("\0") if name]
    return {name: (ROOT / name).stat().st_size for name in names if (ROOT / name).is_file()}


def test_tracked_files_stay_small() -> None:
    assert sum(tracked_sizes().values()) < MAX_TRACKED_BYTES


def test_the_embedded_dataset_stays_small() -> None:
    folder = "graphnet_datasets/starter/"
    sizes = [size for name, size in tracked_sizes().items() if name.startswith(folder)]
    assert sizes
    assert sum(sizes) < MAX_EMBEDDED_BYTES


def test_no_generated_site_is_tracked() -> None:
    pages = [name for name in tracked_sizes() if name.endswith(".html")]
    assert [name for name in pages if "/templates/" not in name] == []
