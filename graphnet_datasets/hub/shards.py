"""The new shards of a push, made for whatever the repository holds at the moment."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..storage.layout import EXCLUDED
from ..storage.table import ROW_GROUP_SIZE, write_arrow
from .append import Files
from .card import make_card
from .checking import leave_out_known
from .gather import Place
from .repository import GRAPH_COLUMNS, RUN_COLUMNS, Repository, Snapshot, with_place
from .results import Skipped


class Shards:
    """The new shards of a push, made for whatever the repository holds at the moment."""

    def __init__(
        self,
        repository: Repository,
        tables: Mapping[Place, pa.Table],
        key: str,
        label: str,
        directory: Path,
        is_proposal: bool,
    ) -> None:
        self.repository = repository
        self.tables = tables
        self.key, self.label = key, label
        self.directory = directory
        self.is_proposal = is_proposal
        self.num_added = 0
        self.skipped: list[Skipped] = []
        # Once for all attempts: what was uploaded for a commit that was refused is not sent again.
        self.names = {
            place: f"{place[0]}/{place[1]}-{secrets.token_hex(8)}.parquet" for place in tables
        }

    def make_files(self, snapshot: Snapshot) -> Files:
        """Return shards of what the snapshot lacks, with the card; nothing if it lacks nothing."""
        are_runs = self.key == "run_id"
        there = snapshot.runs if are_runs else snapshot.graphs
        known = known_items(there, self.key, self.label)
        self.num_added, self.skipped = 0, []
        shards: dict[str, Path] = {}
        added = []
        for place, table in self.tables.items():
            fresh = leave_out_known(
                table, self.key, self.label, known, self.repository.id, self.skipped
            )
            if not fresh.num_rows:
                continue
            path = self.names[place]
            shards[path] = self._write(fresh, path, are_runs)
            added.append(with_place(fresh.select(RUN_COLUMNS if are_runs else GRAPH_COLUMNS), path))
            self.num_added += fresh.num_rows
        if not shards:
            return {}
        if self.is_proposal and all(self._is_announced(snapshot, path) for path in shards):
            # Pull requests that each changed the card could not be merged one after another.
            return shards
        files = {**snapshot.files, **{path: _sha256(local) for path, local in shards.items()}}
        graphs, runs = snapshot.graphs, snapshot.runs
        whole = pa.concat_tables([there, *added])
        graphs, runs = (graphs, whole) if are_runs else (whole, runs)
        return {
            **shards,
            **make_card(snapshot.readme, self.repository.id, files, graphs, runs),
        }

    def _write(self, table: pa.Table, path: str, are_runs: bool) -> Path:
        local = self.directory / path
        if not are_runs:
            return write_arrow(table, local)
        local.parent.mkdir(parents=True, exist_ok=True)
        with local.open("wb") as file:
            pq.write_table(
                table, file, compression="zstd", write_page_index=True,
                row_group_size=10 * ROW_GROUP_SIZE,
            )  # fmt: skip
        return local

    @staticmethod
    def _is_announced(snapshot: Snapshot, path: str) -> bool:
        """Tell whether the card's patterns take a new shard in, since one like it is there."""
        start = path.rpartition("-")[0]
        return snapshot.readme is not None and any(
            each.rpartition("-")[0] == start for each in snapshot.files
        )


def known_items(there: pa.Table, key: str, label: str) -> dict[str, str]:
    """Return what a repository holds: key to label. Graphs that it excludes are not held."""
    there = there.filter(pc.field("config") != EXCLUDED)
    return dict(zip(there[key].to_pylist(), there[label].to_pylist(), strict=True))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
