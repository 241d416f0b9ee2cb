"""Assembly of a transformed dataset: selection, files and order of rows.

Equal parts of graphs are merged by their hash. A part whose structure occurs in several splits,
whatever its sizes, is stored in the first of train, validation and test: training parts may occur
in test graphs, but no part of the test split occurs in training. Its `split` is that split, and
its `splits` list those of the graphs with exactly this part. If several methods find the same part,
each method gets a row with its own number of occurrences; these rows share the sample and the
split, and their families, tasks and splits are those of all methods.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...analysis.splits import SPLITS
from ...sample.vocabulary import TASKS
from ..mapping import Result


@dataclasses.dataclass
class _Row:
    """A row of a part on disk, with the fields that merging adds."""

    id: str
    num_ops: int
    part: str
    position: int
    rank: tuple[int, bool] = (0, False)
    count: int = 0
    families: set[str] = dataclasses.field(default_factory=set)
    splits: set[str] = dataclasses.field(default_factory=set)
    tasks: set[str] = dataclasses.field(default_factory=set)
    is_merged: bool = False
    method: str | None = None
    structure: str = ""
    """The structure hash of a part, which other sizes share."""
    origin: _Row | None = None
    """The row whose sample is used instead: that of the method with the best rank."""

    def listed(self, split: str) -> tuple[str, int, dict[str, Any]]:
        columns: dict[str, Any] = {"id": self.id}
        if self.is_merged:
            columns["split"] = split
            columns["num_occurrences"] = self.count
            columns["num_families"] = len(self.families)
            columns["splits"] = [split for split in SPLITS if split in self.splits]
            columns["tasks"] = [task for task in TASKS if task in self.tasks]
            columns["method"] = self.method
        source = self.origin or self
        return source.part, source.position, columns


class Assembly:
    """The rows of a dataset, by config; equal sources give equal datasets."""

    def __init__(self) -> None:
        self._rows: dict[str, list[_Row]] = {}
        self._merged: dict[tuple[str, str, str], _Row] = {}
        self._same: dict[tuple[str, str], list[_Row]] = {}

    @property
    def num_rows(self) -> int:
        """The number of rows of the dataset."""
        return sum(map(len, self._rows.values()))

    def add(self, result: Result) -> None:
        """Add the samples of the next graph."""
        for place, sample_note in enumerate(result.notes.get("made", ())):
            config, split = sample_note["place"]
            position = result.first_row + place
            row = _Row(sample_note["id"], sample_note["num_ops"], str(result.part), position)
            if "subgraph_hash" in sample_note:
                self._merge(config, split, result.notes, sample_note, row)
                continue
            row.splits.add(split)
            self._rows.setdefault(config, []).append(row)

    def _merge(
        self,
        config: str,
        split: str,
        graph_note: Mapping[str, Any],
        sample_note: Mapping[str, Any],
        row: _Row,
    ) -> None:
        row.rank = (SPLITS.index(split), not sample_note["has_statistics"])
        row.is_merged = True
        row.method, row.structure = sample_note["method"], sample_note["structure_hash"]
        key = (config, sample_note["subgraph_hash"], str(row.method))
        merged = self._merged.get(key)
        if merged is None:
            merged = self._merged[key] = row
            same = self._same.setdefault(key[:2], [])
            same.append(row)
            row.families, row.tasks = same[0].families, same[0].tasks
            row.splits = same[0].splits
            self._rows.setdefault(config, []).append(row)
        elif row.rank < merged.rank:  # prefer the sample of the target split, with statistics
            for name in ("id", "part", "position", "rank"):
                setattr(merged, name, getattr(row, name))
        merged.count += sample_note["count"]
        merged.families.add(graph_note["family"])
        merged.tasks.add(graph_note["task"])
        merged.splits.add(split)

    def plans(self, out: Path) -> list[dict[str, Any]]:
        """Return the plans of the shards, with rows in the order of their table."""
        plans = []
        for same in self._same.values():
            best = min(same, key=lambda row: row.rank)
            for row in same:
                if row is not best:
                    row.origin, row.id = best, best.id
        for config, rows in sorted(self._rows.items()):
            _make_ids_unique(rows)
            rows.sort(key=lambda row: (row.num_ops, row.id))
            splits: dict[str, set[str]] = {}
            for row in rows:
                splits.setdefault(row.structure or row.id, set()).update(row.splits)
            first = {name: min(among, key=SPLITS.index) for name, among in splits.items()}
            for split in SPLITS:
                chosen = [row for row in rows if first[row.structure or row.id] == split]
                if chosen:
                    listed = [row.listed(split) for row in chosen]
                    folder = str(out.absolute() / config)
                    plans.append({"folder": folder, "split": split, "rows": listed})
        return plans


def _make_ids_unique(rows: list[_Row]) -> None:
    """Number repeated ids, such as those of two frameworks, in the order of the graphs."""
    names: set[str] = set()
    for row in rows:
        name, number = row.id, 2
        while row.id in names:
            row.id, number = f"{name}-{number}", number + 1
        names.add(row.id)
