"""Choice of the embedded graphs from the full dataset: many kinds of graphs in few bytes.

The choice is greedy by the kinds that a graph adds: its family, operators that are new to its task,
its source, its way of capture and its size. Equal builds result in equal choices.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.storage.table import read_table

from .capturing import BUILDER, Capture
from .catalog import read_catalog
from .libraries import LIBRARIES

MAX_OPS = 2000
MAX_PARAMS = 10_000_000_000
LEFT_OUT_LICENSES = frozenset({"AGPL-3.0"})
"""Licences of models that may not be embedded in a package of another licence."""

_WEIGHTS = {"family": 6.0, "operator": 0.5, "source": 2.0, "way": 1.0, "size": 1.0, "model": 1.0}
"""Value of the first graph of a kind; the n-th graph adds 1/n of it."""

_COST_PER_KIB = 0.05
"""Cost of a KiB of the file, so that the smaller of two otherwise equal graphs is chosen."""

_COLUMNS = (
    "id", "task", "source", "license", "mode", "dtype", "is_dynamic", "num_ops", "num_params",
    "family", "signature_hash", "op_histogram",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One captured graph with the kinds that it represents."""

    line: str
    id: str
    task: str
    signature_hash: str
    kinds: tuple[tuple[str, Hashable], ...]
    kibibytes: float


def choose(captures: Sequence[Capture], count: int) -> list[str]:
    """Return the catalog lines of `count` graphs to embed in addition to those of `starter.txt`.

    Libraries whose catalogs are embedded completely are excluded. Half of the graphs are divided
    equally among the tasks, and the other half is chosen by value alone.
    """
    embedded = {entry.name for entry in read_catalog(BUILDER / "starter.txt")}
    candidates = [
        candidate for capture in captures if (candidate := _candidate(capture)) is not None
    ]
    seen: Counter[tuple[str, Hashable]] = Counter()
    signatures: set[str] = set()
    pending: list[Candidate] = []
    for candidate in sorted(candidates, key=lambda candidate: candidate.id):
        if candidate.id in embedded:
            seen.update(candidate.kinds)
            signatures.add(candidate.signature_hash)
        else:
            pending.append(candidate)
    tasks = sorted({candidate.task for candidate in pending})
    chosen: list[str] = []
    for number in range(count):
        is_shared = number < count // 2 and tasks
        task = tasks[number % len(tasks)] if is_shared else ""
        of_task = [candidate for candidate in pending if task in ("", candidate.task)]
        best = max(
            of_task or pending,
            key=lambda candidate: (_worth(candidate, seen), candidate.id),
            default=None,
        )
        if best is None:
            break
        pending.remove(best)
        if best.signature_hash not in signatures:
            chosen.append(best.line)
            seen.update(best.kinds)
            signatures.add(best.signature_hash)
    return sorted(chosen)


def _worth(candidate: Candidate, seen: Counter[tuple[str, Hashable]]) -> float:
    gain = sum(_WEIGHTS[kind[0]] / (1 + seen[kind]) for kind in candidate.kinds)
    return gain - _COST_PER_KIB * candidate.kibibytes


def _candidate(capture: Capture) -> Candidate | None:
    if capture.path is None or LIBRARIES[capture.entry.library].is_embedded_whole:
        return None
    rows = read_table(capture.path, columns=list(_COLUMNS)).to_pylist()
    if len(rows) != 1:  # models that break into several graphs are chosen by hand
        return None
    (row,) = rows
    if row["license"] in LEFT_OUT_LICENSES or not 3 <= row["num_ops"] <= MAX_OPS:
        return None
    if row["num_params"] > MAX_PARAMS:
        return None
    return Candidate(
        capture.entry.line,
        row["id"],
        row["task"],
        row["signature_hash"],
        tuple(_kinds(row, capture)),
        _kibibytes(capture.path),
    )


def _kinds(row: dict[str, Any], capture: Capture) -> list[tuple[str, Hashable]]:
    task, size = row["task"], row["num_ops"].bit_length()
    way = (capture.entry.library, row["mode"], row["dtype"], row["is_dynamic"])
    return [
        ("family", row["family"]),
        ("source", (task, row["source"])),
        ("way", (task, *way)),
        ("size", (task, size)),
        ("model", capture.entry.builder),
        *(("operator", (task, operator["target"])) for operator in row["op_histogram"]),
    ]


def _kibibytes(path: Path) -> float:
    return path.stat().st_size / 1024
