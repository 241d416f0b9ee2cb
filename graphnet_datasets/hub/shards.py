"""The new shards of a push, recomputed for each state of the repository."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ..atomic import file_sha256
from ..schema import EXCLUDED, Table
from ..storage.table import write_arrow
from .append import Files
from .card import make_card
from .checking import leave_out_known
from .gather import Place
from .repository import Repository, Snapshot, with_place
from .results import Skipped


class Shards:
    """The new shards of a push, recomputed for each state of the repository."""

    def __init__(
        self,
        repository: Repository,
        tables: Mapping[Place, pa.Table],
        table: Table,
        directory: Path,
        is_proposal: bool,
    ) -> None:
        self.repository = repository
        self.tables = tables
        self.table = table
        self.directory = directory
        self.is_proposal = is_proposal
        self.num_added = 0
        self.skipped: list[Skipped] = []
        # Fixed for all attempts, so that files uploaded for a rejected commit are not sent again.
        self.names = {
            place: f"{place[0]}/{place[1]}-{secrets.token_hex(8)}.parquet" for place in tables
        }

    def make_files(self, snapshot: Snapshot) -> Files:
        """Return shards of rows that the snapshot lacks, with the card; empty without new rows."""
        present = snapshot.tables[self.table.name]
        present_items = known_items(present, self.table)
        self.num_added, self.skipped = 0, []
        shards: dict[str, Path] = {}
        added = []
        for place, table in self.tables.items():
            fresh = leave_out_known(
                table,
                self.table.key,
                self.table.label,
                present_items,
                self.repository.id,
                self.skipped,
            )
            if not fresh.num_rows:
                continue
            path = self.names[place]
            shards[path] = write_arrow(fresh, self.directory / path, self.table)
            added.append(with_place(fresh.select(self.table.scalars), path))
            self.num_added += fresh.num_rows
        if not shards:
            return {}
        if self.is_proposal and all(self._is_announced(snapshot, path) for path in shards):
            # Pull requests that each change the card would conflict with each other.
            return shards
        files = {**snapshot.files, **{path: file_sha256(local) for path, local in shards.items()}}
        tables = {**snapshot.tables, self.table.name: pa.concat_tables([present, *added])}
        return {**shards, **make_card(snapshot.readme, self.repository.id, files, tables)}

    @staticmethod
    def _is_announced(snapshot: Snapshot, path: str) -> bool:
        """Return whether the card's patterns match a new shard, given existing similar shards."""
        start = path.rpartition("-")[0]
        return snapshot.readme is not None and any(
            name.rpartition("-")[0] == start for name in snapshot.files
        )


def known_items(rows: pa.Table, table: Table) -> dict[str, str]:
    """Return the items of a repository, key to label, without excluded graphs."""
    rows = rows.filter(pc.field("config") != EXCLUDED)
    return dict(zip(rows[table.key].to_pylist(), rows[table.label].to_pylist(), strict=True))
