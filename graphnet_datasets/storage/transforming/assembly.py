"""From the parts of a transform to a dataset: which rows, in which files and order.

Equal parts of graphs are merged by their hash. One that occurs in families of several splits goes
into the first of train, validation, test: what is trained on may occur in the test's graphs, but no
part that is in the split test has been seen in training. Its `splits` name all. What two methods
find is a row of each, with the occurrences that the method found, of the same sample in the same
split; families and splits are those in which any of them found it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...analysis.splits import SPLITS
from ...errors import RunError
from ...isolation import Pool, PoolJob


@dataclasses.dataclass
class _Row:
    """A row of a part on disk, and what merging adds to it."""

    id: str
    num_ops: int
    part: str
    position: int
    rank: tuple[int, bool] = (0, False)
    count: int = 0
    families: set[str] = dataclasses.field(default_factory=set)
    splits: set[str] = dataclasses.field(default_factory=set)
    is_merged: bool = False
    method: str | None = None
    origin: _Row | None = None
    """The row whose sample it takes over: that of the method which has it from the better place."""

    def listed(self) -> tuple[str, int, dict[str, Any]]:
        columns: dict[str, Any] = {"id": self.id}
        if self.is_merged:
            columns["num_occurrences"] = self.count
            columns["num_families"] = len(self.families)
            columns["splits"] = [each for each in SPLITS if each in self.splits]
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
        """How many rows the dataset gets."""
        return sum(map(len, self._rows.values()))

    def add(self, note: Mapping[str, Any], part: Path) -> None:
        """Take in what was made of the next graph."""
        for position, made in enumerate(note["made"]):
            config, split = made["place"]
            row = _Row(made["id"], made["num_ops"], str(part), position)
            if "subgraph_hash" in made:
                self._merge(config, split, note["family"], made, row)
                continue
            row.splits.add(split)
            self._rows.setdefault(config, []).append(row)

    def _merge(
        self, config: str, split: str, family: str, made: Mapping[str, Any], row: _Row
    ) -> None:
        row.rank = (SPLITS.index(split), not made["has_statistics"])
        row.is_merged = True
        row.method = made["method"]
        key = (config, made["subgraph_hash"], str(row.method))
        known = self._merged.get(key)
        if known is None:
            known = self._merged[key] = row
            same = self._same.setdefault(key[:2], [])
            same.append(row)
            row.families, row.splits = same[0].families, same[0].splits
            self._rows.setdefault(config, []).append(row)
        elif row.rank < known.rank:  # the one to keep is of the split it goes to, with statistics
            for name in ("id", "part", "position", "rank"):
                setattr(known, name, getattr(row, name))
        known.count += made["count"]
        known.families.add(family)
        known.splits.add(split)

    def plans(self, out: Path) -> list[dict[str, Any]]:
        """Return what to write to which files, rows sorted as their table is."""
        plans = []
        for same in self._same.values():
            best = min(same, key=lambda row: row.rank)
            for row in same:
                if row is not best:
                    row.origin, row.id = best, best.id
        for config, rows in sorted(self._rows.items()):
            _make_ids_unique(rows)
            rows.sort(key=lambda row: (row.num_ops, row.id))
            for split in SPLITS:
                chosen = [row for row in rows if min(row.splits, key=SPLITS.index) == split]
                if chosen:
                    listed = [row.listed() for row in chosen]
                    folder = str(out.absolute() / config)
                    plans.append(
                        {"config": config, "folder": folder, "split": split, "rows": listed}
                    )
        return plans


def _make_ids_unique(rows: list[_Row]) -> None:
    """Number ids that come again, in the order of the graphs: those of two frameworks may."""
    taken: set[str] = set()
    for row in rows:
        name, number = row.id, 2
        while row.id in taken:
            row.id, number = f"{name}-{number}", number + 1
        taken.add(row.id)


def write_dataset(assembly: Assembly, out: Path, directory: Path, pool: Pool) -> None:
    """Write the rows to shards of a dataset directory; plans go through files in `directory`.

    Raises:
        RunError: a table could not be written.
    """
    jobs, place = [], directory.absolute()  # the parts and the staged dataset are in it
    for number, plan in enumerate(assembly.plans(out)):
        path = directory.absolute() / f"plan-{number}.json"
        path.write_text(json.dumps([plan]))
        jobs.append(
            PoolJob(f"{plan['config']}/{plan['split']}", {"plan": str(path)}, writes=(str(place),))
        )
    for finished in pool.run(jobs):
        if not finished.is_success:
            raise RunError(
                f"The table `{finished.job.name}` of `{out}` could not be written: "
                f"{finished.reason}. What was made is kept; the same command goes on."
            )
