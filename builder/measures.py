"""Measures of a dataset that are compared with its goals.

Graphs that are `truncated` or `small` are not counted, and a model that breaks is represented by
its first piece. Data stays in Arrow columns, since thousands of graphs as Python objects are slow.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from graphnet_datasets.errors import DatasetNotFoundError
from graphnet_datasets.paths import without_folders
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import Table
from graphnet_datasets.schema.builds import SPLIT_STAGE
from graphnet_datasets.schema.tables import DUPLICATES, FAILURES
from graphnet_datasets.storage.table import check_file

from .groups import core_histograms, near_copies
from .published import agreements

pc: Any = pyarrow.compute

LARGE = 512
"""Minimum number of operators of a large graph."""

HALF = ("bfloat16", "float16")

SAID = ("library", "catalog_line", "overrides", "input_specification", "seed", "license")
"""Build columns that are never null in rows with a catalog line."""

UPSTREAM_CALLS = Path(__file__).parent / "upstream_calls.json"
"""Number of calls of each operator in 201 imported GraphNet samples, without calls that compute
nothing (logging of API usage, loading of decompositions)."""

_COLUMNS = (
    "id", "task", "framework", "num_ops", "dtype", "mode", "is_dynamic", "tags", "is_truncated",
    "is_reimplementation", "num_params", "flops", "split_group", "family", "piece_index",
    "op_histogram", "validation", "split", "signature_hash", "break_reason",
    *SAID,
)  # fmt: skip

_OF_ALL = (
    "split", "split_group", "task", "num_params", "op_histogram", "signature_hash", "is_dynamic",
    "break_reason", "id", "piece_index",
)  # fmt: skip
"""Columns of all graphs, including small ones."""

_KINDS = {
    "piece_index": pa.int32(), "is_truncated": pa.bool_(), "num_params": pa.int64(),
    "flops": pa.int64(),
}  # fmt: skip

_LEADING = re.compile(r"=\w+\((\d+)")
_AUTOCAST = "autocast"


@dataclasses.dataclass(frozen=True)
class Counted:
    """The counted rows of a dataset, and the number of failed catalog entries.

    `num_failed` is None if unknown. `operators` contains the framework and name of all called
    operators, including those of small graphs. `graphs` contains some columns of all graphs.
    """

    rows: pa.Table
    num_tried: int | None = None
    num_failed: int | None = None
    operators: frozenset[tuple[str, str]] = frozenset()
    graphs: pa.Table | None = None


def counted_rows(dataset: Path) -> Counted:
    """Return the counted graphs of a dataset directory or a table.

    Raises:
        DatasetNotFoundError: there is no table of graphs.
    """
    files = [dataset] if dataset.is_file() else [
        path for task in TASKS for path in sorted((dataset / task).glob("*.parquet"))
    ]  # fmt: skip
    if not files:
        raise DatasetNotFoundError(f"`{dataset}` has no table of graphs. Choose another dataset.")
    table = pa.concat_tables(_read(path) for path in files)
    is_small = np.array(["small" in (tags or ()) for tags in table["tags"].to_pylist()], bool)
    is_cut = pc.fill_null(table["is_truncated"], False).to_numpy(zero_copy_only=False)
    is_later = pc.fill_null(pc.greater(table["piece_index"], 0), False)
    is_counted = ~is_small & ~is_cut & ~is_later.to_numpy(zero_copy_only=False)
    counted = table.filter(pa.array(is_counted))
    logs = {table.name: _log(dataset / table.name, table) for table in (FAILURES, DUPLICATES)}
    whole = (_operators(table), table.select(list(_OF_ALL)))
    if not any(logs.values()):
        return Counted(counted, None, None, *whole)
    failed = {row["catalog_line"] for row in logs[FAILURES.name] if row["stage"] != SPLIT_STAGE}
    tried = {row["catalog_line"] for rows in logs.values() for row in rows}
    tried |= set(table["catalog_line"].to_pylist())
    return Counted(counted, len(tried - {None, ""}), len(failed), *whole)


def _operators(table: pa.Table) -> frozenset[tuple[str, str]]:
    operators: set[tuple[str, str]] = set()
    for framework in pc.unique(table["framework"]).to_pylist():
        of_framework = table.filter(pc.equal(table["framework"], framework))["op_histogram"]
        if pa.types.is_list(of_framework.type):
            targets = pc.struct_field(pc.list_flatten(of_framework), "target")
            operators |= {(framework, name) for name in pc.unique(targets).to_pylist()}
    return frozenset(operators)


def _log(folder: Path, table: Table) -> list[dict[str, Any]]:
    names = ["stage", "catalog_line"] if "stage" in table.schema.names else ["catalog_line"]
    files = sorted(folder.glob("*.parquet"))
    return [row for path in files for row in pq.read_table(path, columns=names).to_pylist()]


def _read(path: Path) -> pa.Table:
    schema = check_file(path)
    table = pq.read_table(path, columns=[name for name in _COLUMNS if name in schema.names])
    for name in set(_COLUMNS) - set(table.column_names):
        kind = _KINDS.get(name, pa.string())
        table = table.append_column(name, pa.nulls(table.num_rows, kind))
    return table.select(_COLUMNS)


def _share(chosen: Any) -> float:
    values = np.asarray(chosen, bool)
    return float(values.mean()) if len(values) else 0.0


def _of_task(counted: Counted, task: str | None) -> pa.Table:
    return counted.rows if task is None else counted.rows.filter(pc.field("task") == task)


def num_graphs(counted: Counted, task: str | None = None) -> float:
    """Return the number of graphs."""
    return _of_task(counted, task).num_rows


def num_groups(counted: Counted, task: str | None = None) -> float | None:
    """Return the number of groups of nearly equal graphs, or None without groups."""
    groups = _of_task(counted, task)["split_group"]
    return pc.count_distinct(groups).as_py() if groups.null_count < len(groups) else None


def share_leaking(counted: Counted, task: str | None = None) -> float | None:
    """Return the share of held-out graphs whose near copy is a training graph.

    A near copy has a cosine of histograms of core operators of at least `MIN_COSINE`, and as many
    parameters up to 1 %. None if the table has no splits.
    """
    del task
    graphs = counted.graphs
    if graphs is None or graphs["split"].null_count:
        return None
    is_train = np.array(graphs["split"].to_pylist()) == "train"
    histogram = core_histograms(graphs["op_histogram"])
    copies = near_copies(histogram, graphs["num_params"], np.flatnonzero(~is_train))
    return _share(copies[:, is_train].any(axis=1))


def num_equal(counted: Counted, task: str | None = None) -> float:
    """Return the number of graphs that are equal to an earlier one.

    Graphs are equal if they have the same signature, and both or neither have symbolic dimensions.
    """
    del task
    names = ["signature_hash", "is_dynamic"]
    graphs = _graphs(counted).select(names).filter(pc.field("signature_hash").is_valid())
    return graphs.num_rows - graphs.group_by(names).aggregate([]).num_rows


def num_folders(counted: Counted, task: str | None = None) -> float:
    """Return the number of graphs with a folder of the machine of the build in a message."""
    del task
    reasons = filter(None, _graphs(counted)["break_reason"].to_pylist())
    return sum(reason != without_folders(reason) for reason in reasons)


def num_misnamed(counted: Counted, task: str | None = None) -> float:
    """Return the number of whole graphs named `-dynamic` that have no symbolic dimension."""
    del task
    graphs = _graphs(counted).select(["id", "is_dynamic", "piece_index"])
    whole = graphs.filter(pc.field("piece_index").is_null() & ~pc.field("is_dynamic"))
    return pc.sum(pc.match_substring(whole["id"], "-dynamic")).as_py() or 0


def _graphs(counted: Counted) -> pa.Table:
    return counted.rows if counted.graphs is None else counted.graphs


def min_groups(counted: Counted, task: str | None = None) -> float | None:
    """Return the number of groups in the smaller of the splits validation and test.

    Small graphs count too. None if the table has no splits.
    """
    rows = counted.graphs
    if rows is None or rows["split"].null_count:
        return None
    if task is not None:
        rows = rows.filter(pc.field("task") == task)
    groups = [
        pc.count_distinct(rows.filter(pc.field("split") == split)["split_group"]).as_py()
        for split in ("validation", "test")
    ]
    return min(groups)


def share_of_largest_group(counted: Counted, task: str | None = None) -> float | None:
    """Return the largest share of one group in the validation or the test split."""
    rows = _of_task(counted, task)
    shares = []
    for split in ("validation", "test"):
        counts = pc.value_counts(rows.filter(pc.field("split") == split)["split_group"])
        sizes = counts.field("counts").to_numpy()
        shares.append(sizes.max(initial=0) / max(1, sizes.sum()))
    return float(max(shares)) if rows["split"].null_count == 0 else None


def median_ops(counted: Counted, task: str | None = None) -> float:
    """Return the median number of operators."""
    sizes = _of_task(counted, task)["num_ops"].to_numpy()
    return float(np.median(sizes)) if len(sizes) else 0.0


def share_large(counted: Counted, task: str | None = None) -> float:
    """Return the share of graphs with at least `LARGE` operators."""
    return _share(_of_task(counted, task)["num_ops"].to_numpy() >= LARGE)


def share_dynamic(counted: Counted, task: str | None = None) -> float:
    """Return the share of graphs with symbolic dimensions."""
    return _share(_of_task(counted, task)["is_dynamic"].to_pylist())


def share_half(counted: Counted, task: str | None = None) -> float:
    """Return the share of graphs in half precision, by their weights or under autocast."""
    rows = _of_task(counted, task)
    pairs = zip(rows["dtype"].to_pylist(), rows["op_histogram"].to_pylist(), strict=True)
    return _share(
        [
            dtype in HALF or any(_AUTOCAST in operator["target"] for operator in histogram or ())
            for dtype, histogram in pairs
        ]
    )


def share_train(counted: Counted, task: str | None = None) -> float:
    """Return the share of graphs in train mode."""
    return _share([mode == "train" for mode in _of_task(counted, task)["mode"].to_pylist()])


def share_batch_1(counted: Counted, task: str | None = None) -> float | None:
    """Return the share of graphs whose example inputs all have 1 as their first size.

    None if no graph has recorded example inputs.
    """
    specification = _of_task(counted, task)["input_specification"]
    if specification.null_count == len(specification):
        return None
    return _share([is_batch_1(text) for text in specification.to_pylist()])


def is_batch_1(specification: str | None) -> bool:
    """Return whether all inputs of a catalog line have 1 as their first size.

    >>> is_batch_1("x=normal(1,3,8,8) past=cache(1,128)"), is_batch_1("x=ids(8,2; 9)")
    (True, False)
    """
    leading = _LEADING.findall(specification or "")
    return bool(leading) and all(size == "1" for size in leading)


def min_of_tasks(counted: Counted, task: str | None = None) -> float:
    """Return the number of graphs of the smallest task."""
    counts = Counter(_of_task(counted, task)["task"].to_pylist())
    return min(counts[task] for task in TASKS)


def num_paddle(counted: Counted, task: str | None = None) -> float:
    """Return the number of paddle graphs."""
    return _of_task(counted, task).filter(pc.field("framework") == "paddle").num_rows


def share_own(counted: Counted, task: str | None = None) -> float:
    """Return the share of graphs of this project's own architectures."""
    return _share([bool(own) for own in _of_task(counted, task)["is_reimplementation"].to_pylist()])


def share_captured(counted: Counted, task: str | None = None) -> float | None:
    """Return the share of captured catalog entries, or None if unknown."""
    del task
    if counted.num_tried is None or counted.num_failed is None:
        return None
    return 1 - counted.num_failed / max(1, counted.num_tried)


def share_said(counted: Counted, task: str | None = None) -> float:
    """Return the share of rows with build columns."""
    rows = _of_task(counted, task)
    return _share(np.all([rows[name].is_valid().to_numpy() for name in SAID], axis=0))


def share_checked(counted: Counted, task: str | None = None) -> float:
    """Return the share of rows with outcomes of checks."""
    return _share(_of_task(counted, task)["validation"].is_valid().to_numpy())


def num_published(counted: Counted, task: str | None = None) -> float:
    """Return the number of graphs with as many parameters as their model was published with."""
    return sum(_agreements(counted, task))


def share_published(counted: Counted, task: str | None = None) -> float | None:
    """Return the share of the graphs with a published parameter count that agree with it.

    None if no graph has a published count.
    """
    agree = _agreements(counted, task)
    return _share(agree) if agree else None


def _agreements(counted: Counted, task: str | None) -> list[bool]:
    rows = _of_task(counted, task)
    return agreements(zip(rows["id"].to_pylist(), rows["num_params"].to_pylist(), strict=True))


def share_torch_calls(counted: Counted, task: str | None = None) -> float:
    """Return the share of operator calls of GraphNet's torch samples whose operator occurs."""
    del task
    return _share_of_calls(counted, "torch")


def share_paddle_calls(counted: Counted, task: str | None = None) -> float:
    """Return the share of operator calls of GraphNet's paddle samples whose operator occurs."""
    del task
    return _share_of_calls(counted, "paddle")


def _share_of_calls(counted: Counted, framework: str) -> float:
    calls: dict[str, int] = json.loads(UPSTREAM_CALLS.read_text())[framework]
    num_counted = sum(
        count for name, count in calls.items() if (framework, name) in counted.operators
    )
    return num_counted / sum(calls.values())


MEASURES: Mapping[str, Callable[[Counted, str | None], float | None]] = {
    function.__name__: function
    for function in (
        num_graphs, num_groups, median_ops, share_large, share_dynamic, share_half, share_train,
        share_batch_1, min_of_tasks, num_paddle, share_own, share_captured, share_said,
        share_checked, share_torch_calls, share_paddle_calls, share_leaking, min_groups,
        share_of_largest_group, num_published, share_published, num_equal, num_folders,
        num_misnamed,
    )
}  # fmt: skip
"""Measures by name: functions of the counted rows and of a task (None for all tasks)."""
