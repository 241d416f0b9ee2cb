"""Assignment of rows to tables by task and split; nearly equal graphs share a split.

Used by the builds, and by `python -m builder columns`, which updates the tables of a directory
without capturing. Rows are loaded when they are written, a hundred at a time, since thousands of
graphs as Python objects would exhaust memory.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from graphnet_datasets.analysis.columns import cost_columns, derived_columns
from graphnet_datasets.analysis.splits import SPLITS, split_of
from graphnet_datasets.analysis.subtasks import subtask, subtask_of
from graphnet_datasets.paths import without_folders
from graphnet_datasets.sample import Sample
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import CONFIGS as ALL_CONFIGS
from graphnet_datasets.schema import Table, sample_to_row
from graphnet_datasets.schema.graphs import BUILD_COLUMNS
from graphnet_datasets.schema.repeated_elements import with_repeats
from graphnet_datasets.schema.run_files import with_later_columns
from graphnet_datasets.schema.tables import EXCLUDED, TRUNCATED
from graphnet_datasets.storage.table import check_file, read_table, write_arrow, write_table

from .capturing import Capture
from .catalog import Entry
from .groups import COLUMNS, split_groups
from .keeping import Columns, read_checks, with_kept
from .partition import choose_groups
from .provenance import build_columns, license_of
from .provenance import is_cut as entry_is_cut
from .weights import read_weights, with_weights

ROWS_PER_SHARD = 1000
"""Rows of one file: ten row groups, a few megabytes."""

CONFIGS = (*TASKS, TRUNCATED, EXCLUDED)
"""The folders of whole graphs, and of pieces."""

PIECE = re.compile(r"/subgraph_\d+\Z")
"""Matches the suffix of the id of a piece."""

_TEXTS = ("break_reason", "why_excluded")
"""Columns with messages, which may contain paths of the machine of the build."""

_KEYS = (*COLUMNS, "task", "num_ops", "signature_hash", "is_dynamic")


@dataclasses.dataclass(frozen=True)
class Pending:
    """A row to be written; `graph` contains the columns that determine its group.

    `model` is the model that a piece belongs to, or "" for a whole graph.
    """

    id: str
    signature: str
    is_dynamic: bool
    model: str
    task: str
    num_ops: int
    is_truncated: bool
    is_excluded: bool
    graph: pa.Table
    load: Callable[[], dict[str, Any]]


@dataclasses.dataclass(frozen=True)
class Placed:
    """Rows with their groups, and the ids `left_out` of rows that are linked to two splits."""

    rows: list[tuple[Pending, str]]
    left_out: list[str]


def captured(
    captures: Iterable[Capture],
    is_analysed: bool,
    kept_columns: Mapping[str, Columns] | None = None,
) -> Iterator[Pending]:
    """Yield the rows of captures, described by their entries.

    With `is_analysed`, derived columns are computed again. `kept_columns` are stored columns by
    signature; outcomes of checks beside a row take precedence.
    """
    for capture in captures:
        if capture.path is None:
            continue
        keys = read_table(capture.path, columns=list(_KEYS))
        checks = read_checks(capture.path)
        for index, (name, signature) in enumerate(
            zip(keys["id"].to_pylist(), keys["signature_hash"].to_pylist(), strict=True)
        ):
            beside = (checks.get(name, {}), (kept_columns or {}).get(signature, {}))

            def load(
                path: Path = capture.path,
                entry: Entry = capture.entry,
                index: int = index,
                beside: tuple[Columns, Columns] = beside,
            ) -> dict[str, Any]:
                (row,) = read_table(path).slice(index, 1).to_pylist()
                columns = with_repeats(with_weights(described(row, entry), read_weights(path)))
                return with_kept(
                    analysed(columns) if is_analysed else with_subtask(columns), *beside
                )

            is_excluded = bool(with_kept({}, *beside).get("why_excluded"))
            is_cut = entry_is_cut(capture.entry)
            yield _pending(keys.slice(index, 1), load, is_cut, is_excluded)


def with_subtask(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its subtask derived again, since a capture may precede its rule.

    >>> inputs = [{"role": "input", "source_name": "L_input_ids_"}]
    >>> row = {"task": "nlp", "source": "huggingface/transformers", "inputs": inputs}
    >>> name = "AriaForConditionalGeneration"
    >>> with_subtask({**row, "model_name": name, "subtask": "seq2seq-lm"})["subtask"]
    'causal-lm'
    """
    names = [value["source_name"] for value in row["inputs"] if value["role"] == "input"]
    label = subtask_of(row["task"], row["source"], row["model_name"] or "", names)
    return {**row, "subtask": label}


def standing(directory: Path, entries: Mapping[str, Entry]) -> Iterator[Pending]:
    """Yield the rows of a dataset, updated by `renewed`."""
    for path in tables_of(directory):
        table = read_table(path)
        for index in range(table.num_rows):
            part = table.slice(index, 1)

            def load(part: pa.Table = part) -> dict[str, Any]:
                (row,) = part.to_pylist()
                return renewed(row, entries.get(row["id"]))

            (is_truncated,) = part["is_truncated"].to_pylist()
            (why_excluded,) = part["why_excluded"].to_pylist()
            keys = part.select(list(_KEYS))
            yield _pending(keys, load, bool(is_truncated), bool(why_excluded))


def known_groups(directory: Path) -> dict[str, str]:
    """Return the groups of the graphs in a dataset, which do not change."""
    groups: dict[str, str] = {}
    for path in tables_of(directory):
        if "split_group" in pq.read_schema(path).names:
            table = read_table(path, columns=["id", "split_group"])
            pairs = zip(table["id"].to_pylist(), table["split_group"].to_pylist(), strict=True)
            groups |= {sample_id: group for sample_id, group in pairs if group}
    return groups


def truncated_ids(directory: Path) -> set[str]:
    """Return the ids of the graphs of a dataset that are truncated."""
    rows = read_columns(directory, ("id", "is_truncated"))
    return {row["id"] for row in rows if row["is_truncated"]}


def place(
    pending: Iterable[Pending],
    known_groups: Mapping[str, str] | None,
    was_truncated: Collection[str] = (),
) -> Placed:
    """Assign groups to rows, and leave out models that are linked to groups of two splits.

    Rows keep their `known_groups`. An exception is a whole graph whose id is in `was_truncated`:
    the earlier row was a different graph, whose group may belong to other models. If `known_groups`
    is None, all groups and splits are chosen anew.
    """
    rows = list(pending)
    if not rows:
        return Placed([], [])
    graphs = pa.concat_tables(row.graph for row in rows)
    if known_groups is None:
        tasks = pa.array([row.task for row in rows])
        groups: Sequence[str | None] = choose_groups(graphs.append_column("task", tasks))
    else:
        renewed = {row.id for row in rows if row.id in was_truncated and not row.is_truncated}
        kept_groups = {name: group for name, group in known_groups.items() if name not in renewed}
        groups = split_groups(graphs, kept_groups)
    pairs = list(zip(rows, groups, strict=True))
    # Either all pieces of a model are in the dataset, in one split, or none of them.
    splits: dict[str, set[str | None]] = {}
    for row, group in pairs:
        splits.setdefault(row.model, set()).add(group and split_of(group))
    torn = {
        model
        for model, found_splits in splits.items()
        if model and (len(found_splits) > 1 or None in found_splits)
    }
    is_in = [group is not None and row.model not in torn for row, group in pairs]
    return Placed(
        [
            (row, group)
            for (row, group), is_kept in zip(pairs, is_in, strict=True)
            if is_kept and group
        ],
        [row.id for (row, _), is_kept in zip(pairs, is_in, strict=True) if not is_kept],
    )


def write_placed(placed: Placed, out: Path, *, is_truncated_apart: bool = False) -> None:
    """Write rows by task and split, the smallest graphs first, and delete stale shards.

    Graphs that failed a check have their own config, which `all` excludes. With
    `is_truncated_apart`, truncated graphs have another. Equal rows result in equal files.
    """
    for task in CONFIGS:
        for split in SPLITS:
            chosen = [
                (row, group)
                for row, group in placed.rows
                if task == _config_of(row, is_truncated_apart) and split_of(group) == split
            ]
            chosen.sort(key=lambda pair: (pair[0].num_ops, pair[0].id))
            starts = range(0, len(chosen), ROWS_PER_SHARD)
            paths = [out / task / f"{split}-{number:04}.parquet" for number, _ in enumerate(starts)]
            for path, start in zip(paths, starts, strict=True):
                write_table(_loaded(chosen[start : start + ROWS_PER_SHARD]), path)
            for stale in set((out / task).glob(f"{split}-*.parquet")) - set(paths):
                stale.unlink()


def described(row: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return a captured row with its licence and the columns from its catalog entry."""
    columns = {**row, **(build_columns(entry, row) if entry is not None else {})}
    return {**columns, "license": license_of(columns)}


def analysed(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with derived columns computed again; its build columns do not change."""
    sample = Sample.from_row(row)
    built_columns = {name: row.get(name) for name in BUILD_COLUMNS}
    return sample_to_row(sample, {**built_columns, **derived_columns(sample)})


def renewed(row: Mapping[str, Any], entry: Entry | None) -> dict[str, Any]:
    """Return a row with the columns that need no capture: its entry, subtask, and costs.

    Calibration and outcomes of checks are kept, and so are build columns of another catalog line:
    a whole model and its first layers may have the same name in two lines.
    """
    if entry is not None and row.get("catalog_line") not in (None, entry.line):
        entry = None
    sample = Sample.from_row(row)
    columns = {**with_repeats(described(row, entry)), "subtask": subtask(sample)}
    if sample.framework == "torch" and _has_unknown_sizes(sample):
        columns |= cost_columns(sample)
    return columns


def portable(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row without the folders of the machine of the build in its messages.

    >>> portable({"break_reason": 'File "/opt/site-packages/torch/nn/init.py"', "validation": None})
    {'break_reason': 'File "torch/nn/init.py"', 'validation': None}
    """
    texts = {name: without_folders(row[name]) for name in _TEXTS if row.get(name)}
    checks = [
        {**check, "reason": without_folders(check["reason"] or "")}
        for check in row.get("validation") or ()
    ]
    return {**row, **texts, **({"validation": checks} if checks else {})}


def write_again(directory: Path, table: Table) -> None:
    """Write the files of one kind of rows again with all current columns, null where they are
    missing."""
    for name, config in ALL_CONFIGS.items():
        if config.table is not table:
            continue
        for path in sorted((directory / name).glob("*.parquet")):
            write_arrow(stored_groups(path, table), path, table)


def with_column(table: pa.Table, name: str, values: Sequence[Any]) -> pa.Table:
    """Return a table with other values in a column, which keeps its place and type."""
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(values, field.type))


def stored_groups(path: Path, table: Table) -> list[pa.Table]:
    """Return the row groups of a file unchanged, with all current columns.

    Missing columns are null.

    Raises:
        GraphNetError: the file is not a table.
    """
    check_file(path)
    with pq.ParquetFile(path) as file:
        groups = [file.read_row_group(index) for index in range(file.num_row_groups)]
    whole = [with_later_columns(group, table.schema, table.later) for group in groups]
    return [group.select(table.schema.names) for group in whole]


def read_columns(directory: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return some columns of all rows of a dataset."""
    return [
        row
        for path in tables_of(directory)
        for row in read_table(path, columns=list(columns)).to_pylist()
    ]


def _config_of(row: Pending, is_truncated_apart: bool) -> str:
    if row.is_excluded:
        return EXCLUDED
    return TRUNCATED if is_truncated_apart and row.is_truncated else row.task


def _loaded(rows: Sequence[tuple[Pending, str]]) -> Iterator[dict[str, Any]]:
    for row, group in rows:
        yield {**portable(row.load()), "split_group": group, "split": split_of(group)}


def _pending(
    keys: pa.Table, load: Callable[[], dict[str, Any]], is_truncated: bool, is_excluded: bool
) -> Pending:
    name = keys["id"][0].as_py()
    piece = PIECE.search(name)
    return Pending(
        id=name,
        signature=keys["signature_hash"][0].as_py(),
        is_dynamic=bool(keys["is_dynamic"][0].as_py()),
        model="" if piece is None else name[: piece.start()],
        is_truncated=is_truncated,
        is_excluded=is_excluded,
        task=keys["task"][0].as_py(),
        num_ops=keys["num_ops"][0].as_py(),
        graph=_graph(keys),
        load=load,
    )


def _graph(keys: pa.Table) -> pa.Table:
    """Return the columns that determine groups; operators have only their names and operands."""
    ops = keys["ops"].combine_chunks()
    flat = ops.flatten()
    fields = ["target", "operands"]
    slim = pa.StructArray.from_arrays([flat.field(name) for name in fields], fields)
    offsets = pa.array([0, len(flat)], pa.int32())
    place = COLUMNS.index("ops")
    return keys.select(list(COLUMNS)).set_column(
        place, "ops", pa.ListArray.from_arrays(offsets, slim)
    )


def _has_unknown_sizes(sample: Sample) -> bool:
    """Return whether a tensor has no recorded shape, because it depends on data."""
    results = (value for op in sample.ops for value in op.results or ())
    return any(value.dtype is not None and sample.shape_of(value) is None for value in results)


def tables_of(directory: Path) -> list[Path]:
    """Return the tables of whole graphs, and of pieces, of a dataset."""
    return [path for task in CONFIGS for path in sorted((directory / task).glob("*.parquet"))]
