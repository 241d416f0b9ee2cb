"""The rows to time on a GPU, in an order in which every prefix is a balanced sample."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import pyarrow.parquet as pq

from graphnet_datasets.analysis.columns import derived_columns
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.schema.tables import GRAPHS, SUBGRAPHS, Table
from graphnet_datasets.storage.table import check_file, read_table, to_arrow, write_arrow
from graphnet_datasets.transforms.cast import cast

Row: TypeAlias = Mapping[str, Any]
Key: TypeAlias = Callable[[Row], Hashable]
T = TypeVar("T", bound=Hashable)

PARTS_FILE, GRAPHS_FILE, HALF_FILE = "rows.parquet", "graphs.parquet", "graphs_bfloat16.parquet"
FILES = (PARTS_FILE, GRAPHS_FILE, HALF_FILE)
"""The files of a queue: parts, whole graphs, and the same graphs in bfloat16."""

PART_CONFIGS = ("fusible", "typical")
NUM_PARTS, NUM_GRAPHS = 500, 300

MAX_BYTES = 4 * 2**30
"""Memory that one call of a row may take. Several samples and their float64 references are on the
GPU at a time, and the host holds a copy of each."""

MIN_FLOPS, MAX_FLOPS = 1e9, 1e11

BYTE_CLASSES = (1e6, 1e7, 1e8)
"""Limits between size classes of parts, in bytes moved by a call."""

FLOP_CLASSES = (3e9, 1e10, 3e10)
"""Limits between size classes of whole graphs, in floating-point operations."""

CPU_ONLY = re.compile(r"_for_cpu|mkldnn|mkl_|onednn|quantized|fbgemm|qnnpack|\.cpu$|\.numpy$")
"""Operators that have no kernel for a GPU, or that move their operand to the CPU."""

NO_HALF = re.compile(r"complex|polar|fft|stft|linalg")
"""Operators without kernels for bfloat16. A cast graph is not run here: it may take 100 GFLOP."""

_COLUMNS = (
    "id", "framework", "task", "source", "family", "dtype", "tags", "flops", "bytes_moved",
    "peak_memory_bytes", "input_bytes", "num_params", "why_excluded", "is_truncated",
    "num_pieces", "op_histogram",
)  # fmt: skip
_PART_COLUMNS = ("subgraph_hash", "splits", "has_statistics")
_ROWS_AT_ONCE = 100


def fair_shares(sizes: Mapping[T, int], count: int, *, is_whole: bool = False) -> dict[T, float]:
    """Return how many of `count` rows to take from each stratum.

    All strata get the same number, limited by their rows. With `is_whole`, the numbers are
    integers, and the largest strata get the remainder.

    >>> fair_shares({"cv": 90, "nlp": 50, "audio": 4}, 41)
    {'audio': 4, 'nlp': 18.5, 'cv': 18.5}
    >>> fair_shares({"cv": 90, "nlp": 50, "audio": 4}, 41, is_whole=True)
    {'audio': 4, 'nlp': 18, 'cv': 19}
    """
    shares: dict[T, float] = {}
    left = float(count)
    for position, (stratum, size) in enumerate(sorted(sizes.items(), key=lambda item: item[1])):
        share = left / (len(sizes) - position)
        shares[stratum] = min(size, int(share) if is_whole else share)
        left -= shares[stratum]
    return shares


def balanced_order(
    rows: Sequence[Row], keys: Sequence[Key], count: int | None = None, seed: int = 0
) -> list[Row]:
    """Return `count` of the rows, or all, in an order in which every prefix is balanced.

    Each key divides the rows into strata, and the strata of all keys together into cells. The next
    row comes from the cell whose strata lack most rows compared with their shares of the prefix
    (`fair_shares`), which lowers the sum of squared deviations most. In a cell the next row is of
    the family with fewest rows so far; rows tagged `small` come last, and a seeded shuffle decides
    the rest. The result does not depend on the order of `rows`, whose ids must differ.

    >>> rows = [{"id": str(i), "family": str(i), "tags": (), "task": "ab"[i > 5]} for i in range(9)]
    >>> [row["task"] for row in balanced_order(rows, [lambda row: row["task"]])]
    ['a', 'b', 'a', 'a', 'b', 'a', 'a', 'b', 'a']
    """
    count = len(rows) if count is None else min(count, len(rows))
    shuffled = sorted(rows, key=lambda row: row["id"])
    random.Random(seed).shuffle(shuffled)  # noqa: S311 (a sample, no secret)
    cells: dict[tuple[Hashable, ...], list[Row]] = defaultdict(list)
    for row in shuffled:
        cells[tuple(key(row) for key in keys)].append(row)
    shares = [fair_shares(Counter(map(key, rows)), count) for key in keys]
    shares.append(fair_shares({cell: len(members) for cell, members in cells.items()}, count))
    lacking = [dict.fromkeys(share, 0.0) for share in shares]
    families: Counter[str] = Counter()
    order: list[Row] = []
    for _ in range(count):
        for lack, share in zip(lacking, shares, strict=True):
            for stratum, size in share.items():
                lack[stratum] += size / count
        cell = max(cells, key=lambda cell: _lacks(lacking, cell))
        row = min(
            cells[cell], key=lambda row: ("small" in (row["tags"] or ()), families[row["family"]])
        )
        cells[cell].remove(row)
        if not cells[cell]:
            del cells[cell]
        for lack, stratum in zip(lacking, (*cell, cell), strict=True):
            lack[stratum] -= 1
        families[row["family"]] += 1
        order.append(row)
    return order


def _lacks(lacking: Sequence[Mapping[Hashable, float]], cell: tuple[Hashable, ...]) -> float:
    """Return the total number of rows that a cell and its strata lack."""
    return sum(lack[stratum] for lack, stratum in zip(lacking, (*cell, cell), strict=True))


def choose_parts(dataset: Path, count: int = NUM_PARTS, seed: int = 0) -> list[dict[str, Any]]:
    """Return complete rows of parts of held-out torch graphs, in a balanced order.

    Keys of the balance are the config, the task, the class of bytes moved and the source. The
    result has no parts that occur in a graph of the split `train`, and no two equal parts.
    """
    candidates: dict[str, Row] = {}
    ids: set[str] = set()
    for config in PART_CONFIGS:
        for row in _rows_of(dataset, config, (*_COLUMNS, *_PART_COLUMNS)):
            if (
                fits(row)
                and row["has_statistics"]
                and row["bytes_moved"]
                and "train" not in (row["splits"] or ("train",))
                and row["subgraph_hash"] not in candidates
                and row["id"] not in ids
            ):
                candidates[row["subgraph_hash"]] = {**row, "config": config}
                ids.add(row["id"])
    keys = (_of("config"), _of("task"), _byte_class, _of("source"))
    return _complete(dataset, _choose(list(candidates.values()), keys, count, seed))


def choose_graphs(dataset: Path, count: int = NUM_GRAPHS, seed: int = 0) -> list[dict[str, Any]]:
    """Return complete rows of whole float32 torch graphs of 1 to 100 GFLOP, in a balanced order.

    Keys of the balance are the task, the class of FLOPs and the source. Pieces of models that break
    and truncated models are left out.
    """
    candidates = [
        {**row, "config": task}
        for task in TASKS
        for row in _rows_of(dataset, task, _COLUMNS)
        if fits(row)
        and row["dtype"] == "float32"
        and row["num_pieces"] is None
        and not row["is_truncated"]
        and MIN_FLOPS <= (row["flops"] or 0) <= MAX_FLOPS
    ]
    keys = (_of("task"), _flop_class, _of("source"))
    return _complete(dataset, _choose(candidates, keys, count, seed))


def fits(row: Row) -> bool:
    """Return whether a row is of torch, fits into GPU memory beside others, and has GPU kernels."""
    memory = max(row["peak_memory_bytes"] or 0, row["input_bytes"] or 0)
    return (
        row["framework"] == "torch"
        and row["why_excluded"] is None
        and memory <= MAX_BYTES
        and not any(CPU_ONLY.search(entry["target"]) for entry in row["op_histogram"] or ())
    )


def in_bfloat16(rows: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield the rows of graphs in bfloat16, in their order, without those that cannot run in it."""
    for row in rows:
        if any(NO_HALF.search(entry["target"]) for entry in row["op_histogram"] or ()):
            continue
        try:
            sample = cast(Sample.from_row(row), "bfloat16", check=False)
            columns = derived_columns(sample)
        except GraphNetError:
            continue
        if columns["flops"] is not None:  # null if an operator rejects its operands
            yield sample_to_row(sample, columns | {"split": row["split"]})


def write_queue(
    dataset: Path,
    out: Path,
    seed: int = 0,
    *,
    num_parts: int = NUM_PARTS,
    num_graphs: int = NUM_GRAPHS,
) -> dict[str, int]:
    """Write the files of a queue into a directory and return the number of rows of each."""
    out.mkdir(parents=True, exist_ok=True)
    parts = choose_parts(dataset, num_parts, seed)
    graphs = choose_graphs(dataset, num_graphs, seed)
    half = list(in_bfloat16(graphs))
    write_rows(parts, out / PARTS_FILE, SUBGRAPHS)
    write_rows(graphs, out / GRAPHS_FILE, GRAPHS)
    write_rows(half, out / HALF_FILE, GRAPHS)
    return {PARTS_FILE: len(parts), GRAPHS_FILE: len(graphs), HALF_FILE: len(half)}


def write_rows(rows: Sequence[Row], path: Path, table: Table) -> Path:
    """Write rows to one file in their order."""
    starts = range(0, len(rows), _ROWS_AT_ONCE)
    return write_arrow(
        (to_arrow(rows[start : start + _ROWS_AT_ONCE], table) for start in starts), path, table
    )


def _choose(candidates: Sequence[Row], keys: Sequence[Key], count: int, seed: int) -> list[Row]:
    """Return as many rows of each task as possible, balanced over the other keys, in order."""
    tasks: dict[str, list[Row]] = defaultdict(list)
    for row in candidates:
        tasks[row["task"]].append(row)
    shares = fair_shares({task: len(rows) for task, rows in tasks.items()}, count, is_whole=True)
    chosen = [
        row
        for task, rows in tasks.items()
        for row in balanced_order(rows, keys, int(shares[task]), seed)
    ]
    return balanced_order(chosen, keys, seed=seed)


def _of(column: str) -> Key:
    return lambda row: row[column]


def _byte_class(row: Row) -> int:
    return sum(row["bytes_moved"] >= limit for limit in BYTE_CLASSES)


def _flop_class(row: Row) -> int:
    return sum(row["flops"] >= limit for limit in FLOP_CLASSES)


def _rows_of(dataset: Path, config: str, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    for path in sorted((dataset / config).glob("*.parquet")):
        yield from read_table(path, columns=list(columns)).to_pylist()


def _complete(dataset: Path, chosen: Sequence[Row]) -> list[dict[str, Any]]:
    """Return all columns of the chosen rows, in their order."""
    wanted: dict[str, set[str]] = defaultdict(set)
    for row in chosen:
        wanted[row["config"]].add(row["id"])
    complete = {
        (config, row["id"]): row
        for config, names in wanted.items()
        for path in sorted((dataset / config).glob("*.parquet"))
        for row in _rows_named(path, names)
    }
    return [complete[row["config"], row["id"]] for row in chosen]


def _rows_named(path: Path, names: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows with these ids. Row groups without any are not decoded."""
    check_file(path)
    with pq.ParquetFile(path) as file:
        for index in range(file.num_row_groups):
            ids = file.read_row_group(index, ["id"])["id"].to_pylist()
            places = [place for place, name in enumerate(ids) if name in names]
            if places:
                yield from file.read_row_group(index).take(places).to_pylist()
