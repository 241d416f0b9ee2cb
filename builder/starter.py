"""Writing of the embedded dataset from captures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from graphnet_datasets.atomic import write_text
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.sample.vocabulary import TASKS
from graphnet_datasets.schema import CONFIGS, TABLES
from graphnet_datasets.storage.calibrating import calibrate_tables
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.table import read_table

from . import card
from .capturing import Capture
from .measures import counted_rows, share_leaking
from .placing import captured, known_groups, place, tables_of, write_placed
from .tuning import provenance

CATALOGS = ("starter.txt", "chosen.txt", "paddle.txt")
"""The catalogs of the embedded dataset: written by hand, chosen from all sources, paddle's."""

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
    """Write the README and `eval.yaml` of the embedded dataset, with counts of its rows."""
    rows = [
        {"config": path.parent.name, **row}
        for path in tables_of(out)
        for row in read_table(path, columns=list(card.COUNTED)).to_pylist()
    ]
    present = {
        config.table.name for name, config in CONFIGS.items() if any(out.glob(f"{name}/*.parquet"))
    }
    text = card.text(table for table in TABLES.values() if table.name in present)
    parts = [card.overview(rows, share_leaking(counted_rows(out))), provenance(out), text]
    write_readme(out, "\n".join(part for part in parts if part), card.metadata(rows))
    write_text(out / "eval.yaml", card.evaluation())


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
