"""New splits of parts and of problems, after the graphs of a dataset have new splits.

A part is stored in the first split of the graphs in which it occurs. A row names only one of these
graphs, so the graphs are cut again, without a run.
"""

from __future__ import annotations

import collections
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from graphnet_datasets.analysis.splits import SPLITS
from graphnet_datasets.atomic import append_json, replaced_directory
from graphnet_datasets.decoding import read_journal
from graphnet_datasets.errors import MaterializeError, SampleError
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema.tables import PROBLEMS, SUBGRAPHS
from graphnet_datasets.storage.shards import write_shards
from graphnet_datasets.storage.table import read_table, to_arrow, write_arrow
from graphnet_datasets.transforms.subgraphs import Subgraphs

from .placing import read_columns, stored_groups, tables_of, with_column
from .problems import MIN_WORKLOADS
from .subgraphs import NAMES

pc: Any = pyarrow.compute

METHODS = ("sole_op", "rules", "repeats")
"""The methods that need no compiler.

A part that only TorchInductor's fusion finds follows the graph that its row names."""

JOURNAL = Path("build/resplit/parts.jsonl")
"""File with the parts of graphs that were cut, one JSON line per graph."""


def resplit(dataset: Path, journal: Path = JOURNAL) -> None:
    """Store each part in the first split of its graphs, and update the splits of problems.

    Parts of the same structure are stored in one split, whatever their sizes. Parts of graphs that
    the dataset no longer has are removed. The graphs that parts name are cut; an interrupted call
    continues from `journal`.
    """
    rows = read_columns(dataset, ("id", "split"))
    split_of: dict[str, str] = {row["id"]: row["split"] for row in rows}
    ids = pa.array([*split_of], pa.string())
    tables = {name: _parts_in(dataset / name, ids) for name in NAMES}
    splits: dict[str, set[str]] = collections.defaultdict(set)
    parents: set[str] = set()
    for table in tables.values():
        for row in table.select(["parent_id", "subgraph_hash"]).to_pylist():
            parents.add(row["parent_id"])
            splits[row["subgraph_hash"]].add(split_of[row["parent_id"]])
    for name, hashes in cut_again(dataset, parents, journal):
        for part in hashes:
            splits[part].add(split_of[name])
    for name, table in tables.items():
        _resplit_table(table, dataset / name, splits)
    _resplit_problems(dataset / PROBLEMS.name, splits)


def cut_again(
    dataset: Path, names: Collection[str], journal: Path
) -> Iterator[tuple[str, Collection[str]]]:
    """Yield graphs with the hashes of all their parts, which are cut without a run.

    `names` are their ids. Finished graphs are stored in `journal`. A graph that a method cannot cut
    has no parts by this method.
    """
    journal.parent.mkdir(parents=True, exist_ok=True)
    parts_of = {line["signature"]: line["parts"] for line in read_journal(journal)}
    for path in tables_of(dataset):
        columns = read_table(path, columns=["id", "signature_hash"]).to_pylist()
        for index, key in enumerate(columns):
            signature = key["signature_hash"]
            if key["id"] not in names:
                continue
            if signature not in parts_of:
                (row,) = read_table(path).slice(index, 1).to_pylist()
                parts_of[signature] = sorted(_parts_of(Sample.from_row(row)))
                append_json(journal, {"signature": signature, "parts": parts_of[signature]})
            yield key["id"], parts_of[signature]


def _parts_of(sample: Sample) -> set[str]:
    hashes: set[str] = set()
    for method in METHODS:
        subgraphs = Subgraphs(method)
        try:
            subgraphs.add(sample, family="", split="train")
        except (SampleError, MaterializeError):
            continue
        hashes.update(subgraphs.hashes)
    return hashes


def _resplit_table(table: pa.Table, folder: Path, splits: Mapping[str, Collection[str]]) -> None:
    keys = table.select(["id", "subgraph_hash", "structure_hash", "num_ops"]).to_pylist()
    of_structure: dict[str, set[str]] = collections.defaultdict(set)
    for key in keys:
        of_structure[key["structure_hash"]].update(splits[key["subgraph_hash"]])
    first = [_in_order(of_structure[key["structure_hash"]])[0] for key in keys]
    table = with_column(table, "split", first)
    table = with_column(table, "splits", [_in_order(splits[key["subgraph_hash"]]) for key in keys])
    order = sorted(range(len(keys)), key=lambda row: (keys[row]["num_ops"], keys[row]["id"]))
    table = table.take(pa.array(order, pa.int64()))
    with replaced_directory(folder) as place:
        for split in SPLITS:
            of_split = table.filter(pc.field("split") == split)
            if of_split.num_rows:
                write_shards([of_split], place, split, table=SUBGRAPHS)


def _resplit_problems(folder: Path, splits: Mapping[str, Collection[str]]) -> None:
    for path in sorted(folder.glob("*.parquet")):
        table = pa.concat_tables(stored_groups(path, PROBLEMS))
        splits_of_problems = [
            sorted({split for part in workloads for split in splits[part["subgraph_hash"]]})
            for workloads in table["workloads"].to_pylist()
        ]
        write_arrow([with_column(table, "parent_splits", splits_of_problems)], path, PROBLEMS)


def drop_workloads(dataset: Path) -> None:
    """Remove workloads whose part the dataset no longer has, and problems with too few others."""
    parts = {
        (name, part["id"], part["subgraph_hash"])
        for name in NAMES
        for path in (dataset / name).glob("*.parquet")
        for part in read_table(path, columns=["id", "subgraph_hash"]).to_pylist()
    }
    for path in sorted((dataset / PROBLEMS.name).glob("*.parquet")):
        problems = read_table(path).to_pylist()
        rows = [_with_parts(problem, parts) for problem in problems]
        if rows != problems:
            rows = [row for row in rows if row["num_workloads"] >= MIN_WORKLOADS]
            write_arrow([to_arrow(rows, PROBLEMS)], path, PROBLEMS)


def _with_parts(problem: Mapping[str, Any], parts: Collection[tuple[str, ...]]) -> dict[str, Any]:
    """Return a problem with the workloads whose parts exist; counts are of these workloads."""
    workloads = [
        workload
        for workload in problem["workloads"]
        if (workload["config"], workload["part_id"], workload["subgraph_hash"]) in parts
    ]
    if len(workloads) == len(problem["workloads"]):
        return dict(problem)
    return {
        **problem,
        "workloads": workloads,
        "num_workloads": len(workloads),
        "num_occurrences": sum(workload["num_occurrences"] for workload in workloads),
        "num_parents": len({name for workload in workloads for name in workload["parents"]}),
    }


def _parts_in(folder: Path, parents: pa.Array) -> pa.Table:
    """Return the rows of the parts in a folder that name one of these graphs."""
    paths = sorted(folder.glob("*.parquet"))
    groups = [group for path in paths for group in stored_groups(path, SUBGRAPHS)]
    table = pa.concat_tables([SUBGRAPHS.schema.empty_table(), *groups])
    return table.filter(pc.is_in(table["parent_id"], parents))


def _in_order(splits: Collection[str]) -> list[str]:
    return sorted(splits, key=SPLITS.index)
