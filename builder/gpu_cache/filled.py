"""A folder of caches, with the outcome of each sample that was compiled for them."""

from __future__ import annotations

import collections
import io
import json
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphnet_datasets.atomic import append_json, write_text
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.schema import GRAPHS_SCHEMA
from graphnet_datasets.storage.table import write_table

CACHES = ("fxgraph", "aotautograd")
"""The caches that replace a compilation. Both contain the compiled kernels of a graph."""
SAMPLES_NAME = "samples.jsonl"
MANIFEST_NAME = "manifest.json"
CHECK_NAME = "check.parquet"
"""The rows of the first compiled samples, with which the folder is checked on another machine."""
MANIFEST = ("torch_key", "system_hash", "module_of_torch")
"""The parts of all keys that depend on torch, the card and the order of imports."""
_NUM_CHECKED = 5


class Filled:
    """A folder of caches, with a line for each sample that was tried.

    The caches are in `fxgraph/` and `aotautograd/`, as in a cache directory of TorchInductor. A
    line of `samples.jsonl` follows the entries that it lists, so a fill that was killed continues.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.checked: list[Mapping[str, Any]] = []
        self.samples = {record["key"]: record for record in read_journal(directory / SAMPLES_NAME)}

    def is_done(self, key: str, *, is_retrying: bool) -> bool:
        """Return whether a sample needs no further attempt."""
        record = self.samples.get(key)
        return record is not None and not (is_retrying and record["reason"])

    def add(
        self, record: dict[str, Any], archive: bytes | None, row: Mapping[str, Any] | None = None
    ) -> None:
        """Store the entries of a sample, then its line; `row` may be kept for `checking`."""
        if archive is not None:
            record["entries"] = self._store(archive)
            if row is not None and len(self.checked) < _NUM_CHECKED:
                self.checked.append({name: row[name] for name in GRAPHS_SCHEMA.names})
                write_table(self.checked, self.directory / CHECK_NAME)
        self.samples[record["key"]] = record
        append_json(self.directory / SAMPLES_NAME, record)

    def _store(self, archive: bytes) -> list[str]:
        entries = []
        with (
            tempfile.TemporaryDirectory(dir=self.directory, prefix=".partial-") as folder,
            tarfile.open(fileobj=io.BytesIO(archive)) as file,
        ):
            file.extractall(folder, filter="data")
            for path in sorted(Path(folder).rglob("*")):
                if path.is_file():
                    place = path.relative_to(folder)
                    (self.directory / place).parent.mkdir(parents=True, exist_ok=True)
                    path.replace(self.directory / place)
                    entries.append(place.as_posix())
        return entries

    def check_manifest(self, figures: Mapping[str, Any]) -> None:
        """Store the parts of all keys that depend on torch and the card, or compare them.

        Raises:
            GraphNetError: The folder was filled with other versions.
        """
        path = self.directory / MANIFEST_NAME
        current = {name: figures[name] for name in MANIFEST}
        if not path.is_file():
            write_text(path, json.dumps(current, indent=2) + "\n")
        elif json.loads(path.read_text()) != current:
            raise GraphNetError(
                f"`{self.directory}` was filled with another version of torch, Triton or CUDA. "
                "Choose another folder with `--out`."
            )

    def describe(self) -> str:
        """Return the number of samples, their sizes and times, and a table of failures."""
        records = list(self.samples.values())
        compiled = [record for record in records if not record["reason"]]
        num_bytes = sum(
            path.stat().st_size
            for name in CACHES
            for path in (self.directory / name).rglob("*")
            if path.is_file()
        )
        lines = [f"{len(compiled)} samples in {self.directory}, {num_bytes / 1e6:.1f} MB"]
        if compiled:
            seconds = sorted(record["compile_s"] for record in compiled)
            lines[0] += (
                f"; compiling takes {seconds[len(seconds) // 2]:.1f} s in the median and "
                f"{seconds[-1]:.1f} s at most"
            )
        reasons: dict[str, list[str]] = collections.defaultdict(list)
        for record in records:
            if record["reason"]:
                reasons[record["reason"]].append(record["id"])
        for reason, ids in sorted(reasons.items(), key=lambda item: -len(item[1])):
            lines.append(f"{len(ids):6}  {reason[:160]}  ({', '.join(ids[:3])})")
        return "\n".join(lines)
