"""Distributions as `pip install` leaves them: a folder with metadata and entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_distribution(
    site: Path, name: str, group: str, entry_points: Mapping[str, str], version: str = "1.0"
) -> Path:
    """Write the metadata of a distribution into the folder `site` and return their folder."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{key} = {value}\n" for key, value in entry_points.items())
    (folder / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    return folder
