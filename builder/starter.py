"""Writing of the embedded dataset from captures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.analysis.splits import SPLITS
from graphnet_datasets.atomic import write_text
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import CONFIGS, TABLES
from graphnet_datasets.storage.calibrating import calibrate_tables
from graphnet_datasets.storage.layout import write_readme

from . import card
from .capturing import Capture
from .placing import captured, known_groups, place, read_columns, write_placed
from .tuning import provenance

CATALOGS = ("starter.txt", "chosen.txt", "paddle.txt")
"""The catalogs of the embedded dataset: written by hand, chosen from all sources, paddle's."""

_COUNTED = (
    "task", "num_ops", "split", "family", "split_group", "source", "is_truncated",
    "is_reimplementation", "license",
)  # fmt: skip

MAX_BYTES = 8 * 2**20
"""Size limit of the embedded dataset in the wheel."""


def write_dataset(captures: Iterable[Capture], out: Path) -> dict[str, int]:
    """Write a table per task and split and the README; return the number of graphs of each task.

    Rows are sorted by number of operators, then by id.

    Raises:
        GraphNetError: the dataset is larger than `MAX_BYTES`.
    """
    placed = place(captured(captures, is_analysed=True), known_groups(out))
    for name in placed.left_out:
        print(f"omitted, because it would link two splits: {name}")
    write_placed(placed, out)
    write_card(out)
    _check_size(out)
    return dict(Counter(row.task for row, _ in placed.rows))


def write_card(out: Path) -> None:
    """Write the README of the embedded dataset, with counts of its rows."""
    rows = read_columns(out, _COUNTED)
    present = {
        config.table.name for name, config in CONFIGS.items() if any(out.glob(f"{name}/*.parquet"))
    }
    text = card.text(table for table in TABLES.values() if table.name in present)
    parts = [_body(rows), provenance(out), text]
    write_readme(out, "\n".join(part for part in parts if part), card.metadata(rows))


def calibrate(out: Path, jobs: int) -> None:
    """Calibrate the rows of a dataset, and report the rows that were left out.

    All rows are calibrated again, so that equal rows result in equal files.

    Raises:
        GraphNetError: the dataset is larger than `MAX_BYTES` afterwards.
    """
    report = calibrate_tables(out, jobs=jobs, is_again=True)
    print(f"calibration: {report.counts}")
    for name, reason in sorted(report.failures.items()):
        print(f"not calibrated: {name}: {reason}")
    _check_size(out)


def _check_size(out: Path) -> None:
    size = sum(path.stat().st_size for task in TASKS for path in out.glob(f"{task}/*.parquet"))
    if size > MAX_BYTES:
        raise GraphNetError(
            f"The dataset in `{out}` takes {size} bytes; at most {MAX_BYTES} may be embedded. "
            "Remove large graphs from the catalog."
        )


def write_failures(captures: Iterable[Capture], path: Path) -> int:
    """Write the names and reasons of failed captures, and return their number."""
    failures = {capture.entry.name: capture.reason for capture in captures if capture.path is None}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(failures, indent=2, sort_keys=True) + "\n")
    return len(failures)


def _body(rows: Sequence[Mapping[str, Any]]) -> str:
    lines = []
    for task in TASKS:
        of_task = [row for row in rows if row["task"] == task]
        if of_task:
            sizes = [row["num_ops"] for row in of_task]
            splits = Counter(row["split"] for row in of_task)
            counts = " | ".join(str(splits[split]) for split in SPLITS)
            num_families = len({row["family"] for row in of_task})
            num_groups = len({row["split_group"] for row in of_task})
            lines.append(
                f"| {task} | {len(sizes)} | {num_families} | {num_groups} | {counts} "
                f"| {min(sizes)} to {max(sizes)} |"
            )
    table = "\n".join(lines)
    sources = Counter(row["source"] for row in rows)
    num_families = len({row["family"] for row in rows})
    num_truncated = sum(bool(row.get("is_truncated")) for row in rows)
    num_own = sum(bool(row.get("is_reimplementation")) for row in rows)
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(sources.items()))
    return f"""# GraphNet Datasets

{len(rows)} computational graphs of {num_families} families, captured from models
built from configs with random weights. One row is one graph; weights are not stored, their shapes
and statistics are. Sources: {listed}. {num_truncated} have the tag `truncated`: fewer layers than
published. {num_own} are of architectures that this project wrote itself (`is_reimplementation`).

| task | graphs | families | groups | {" | ".join(SPLITS)} | operators |
|---|---|---|---|{"---|" * len(SPLITS)}---|
{table}

Nearly equal graphs are of one group (`split_group`), and a group is in one split only. Graphs with
the tag `small` run in milliseconds on one CPU core.
The catalogs are in `builder/` of the source repository; `python -m builder catalog` captures what
they name, and `python -m builder ship` writes these files. The configs `sole_op`, `fusible` and
`typical` hold the different parts of these graphs; `python -m builder subgraphs` cuts them.

```python
from graphnet_datasets import Sample, load_dataset, materialize

row = load_dataset("graphnet", "cv")["train"][0]
module = materialize(Sample.from_row(row), weights="parameters")
```
"""
