"""Timing of the dataset's graphs under every CPU compiler: the config `runs`.

    python -m builder measure --out build/runs          # may be interrupted and repeated
    python -m builder runs build/runs --docs docs/compilers.md

An arm is a compiler with options, for the graphs of its framework. The same command continues after
an interruption: graphs with a record are not timed again. Arms whose compiler is not installed are
reported and left out. After a change of the graphs or the harness, `--anew` ignores the records of
the dataset.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from graphnet_datasets.benchmark import Settings, TimingSettings
from graphnet_datasets.benchmark.records.records import (
    TABLE_NAME,
    read_runs,
    sample_digest,
    write_runs,
)
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.isolation import keep_servers
from graphnet_datasets.paths import without_folders
from graphnet_datasets.sample import Sample
from graphnet_datasets.schema import Reason, Status
from graphnet_datasets.schema.tables import RUNS
from graphnet_datasets.scores import error_aware_speedup_score, speedup_score
from graphnet_datasets.scores.records import is_counted
from graphnet_datasets.scores.result import number
from graphnet_datasets.scores.run_sets import split_arms
from graphnet_datasets.scores.variants import find_variant
from graphnet_datasets.scores.verdicts import Verdict, verdicts
from graphnet_datasets.storage.layout import write_readme
from graphnet_datasets.storage.loading import DEFAULT_NAME
from graphnet_datasets.storage.table import read_table, write_arrow
from graphnet_datasets.terminal import counted

from .breaking import breaking, table
from .placing import read_columns, tables_of

pc: Any = pyarrow.compute

MAX_BYTES = 20 * 2**20
"""Size limit of the run records in the wheel."""

KEPT_CALLS = 8
"""Judged calls per record in the wheel, fully judged calls first; `graphnet run --again` repeats
them. Seeds and hashes of all judged calls would take two thirds of the records."""

ARMS_BEGIN, ARMS_END = "<!-- arms: begin -->", "<!-- arms: end -->"

_VARIANT = find_variant("report")
_SHOWN = (Verdict.FASTER, Verdict.EVEN, Verdict.SLOWER, Verdict.WRONG, Verdict.UNDECIDABLE)

ARMS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "eager": ("torch", "eager", {}),
    "torchscript": ("torch", "torchscript", {}),
    "onnxruntime": ("torch", "onnxruntime", {}),
    "openvino": ("torch", "openvino", {}),
    "openvino-f32": ("torch", "openvino", {"precision": "f32"}),
    "jax": ("torch", "jax", {}),
    "iree": ("torch", "iree", {}),
    "tvm": ("torch", "tvm", {}),
    "tc": ("torch", "tc", {}),
    "inductor": ("torch", "inductor", {}),
    "inductor-freezing": ("torch", "inductor", {"freezing": True}),
    "paddle-to-static": ("paddle", "paddle-to-static", {}),
    "paddle-inference": ("paddle", "paddle-inference", {}),
    "aotinductor": ("torch", "aotinductor", {}),
    "inductor-max-autotune": ("torch", "inductor", {"mode": "max-autotune"}),
}
"""Framework, compiler and options of each arm by name. Arms that compile quickly come first, so
that an interrupted run covers most of the table."""

MAX_BILLIONS = 50.0
"""Maximum floating-point operations of a timed graph, in billions. An eager call of such a graph
takes about a second on one core, so that a sample stays within its budget."""

MAX_CALL_S = 2.0
"""Maximum time of an eager call. Slower graphs only get a record of the first arm: ten pairs and
the warm-up take about 25 calls, which must end before the timeout."""

RUN_TIMEOUT_S = 60.0


def candidates(rows: Sequence[Mapping[str, Any]], max_flops: float) -> list[Mapping[str, Any]]:
    """Return the graphs to time: first the `small` graphs, the fastest first, then other graphs.

    The other graphs have at most `max_flops` operations and are in a fixed random order (SHA-256 of
    the id), so that any number of the first graphs is a fair sample of all.

    >>> rows = [{"id": "a", "tags": [], "flops": 9}, {"id": "b", "tags": ["small"], "flops": None},
    ...         {"id": "c", "tags": None, "flops": None}, {"id": "d", "tags": [], "flops": 8}]
    >>> [row["id"] for row in candidates(rows, 10)]
    ['b', 'd', 'a']
    """
    small, others = [], []
    for row in rows:
        if "small" in (row["tags"] or ()):
            small.append(row)
        elif row["flops"] is not None and row["flops"] <= max_flops:
            others.append(row)
    return [
        *sorted(small, key=lambda row: row["flops"] or 0),
        *sorted(others, key=lambda row: hashlib.sha256(row["id"].encode()).digest()),
    ]


def measure(
    source: Path,
    out: Path,
    arms: Sequence[str] = (),
    *,
    limit: int | None = None,
    max_flops: float = MAX_BILLIONS * 1e9,
    budget_s: float = 0.5,
    compile_timeout_s: float = 300.0,
    num_together: int | None = None,
    is_anew: bool = False,
) -> Iterator[tuple[str, Any]]:
    """Time the graphs of a dataset under each arm; yield the name and the records of each arm.

    Arms run one after another. With `num_together`, all arms time a batch of that many graphs
    before the next batch starts, so that an interrupted run covers the same graphs under every arm.
    Graphs with a slower eager call than `MAX_CALL_S` are skipped by later arms.

    If `out` has no records, it starts with those of the dataset, so that equal graphs, compilers
    and machines are not timed again. With `is_anew` it starts empty.

    Raises:
        GraphNetError: an arm is unknown.
    """
    from graphnet_datasets import load_dataset, run

    unknown = sorted(set(arms) - set(ARMS))
    if unknown:
        raise GraphNetError(f"There is no arm `{unknown[0]}`. Choose one of {', '.join(ARMS)}.")
    if not is_anew and not any(out.rglob("*.parquet")):
        _take_records(source, out)
    columns = ["id", "framework", "tags", "flops"]
    rows = load_dataset(source, split="all", columns=columns).to_list()
    settings = Settings(
        timing=TimingSettings(budget_s=budget_s),
        phase_timeouts_s={"compile": compile_timeout_s, "run": RUN_TIMEOUT_S},
    )
    chosen = arms or list(ARMS)
    ids: dict[str, list[str]] = {}
    for framework in {ARMS[name][0] for name in chosen}:
        of_framework = [row for row in rows if row["framework"] == framework]
        ids[framework] = [row["id"] for row in candidates(of_framework, max_flops)][:limit]
    count = max(map(len, ids.values()), default=0)
    step = num_together or max(count, 1)
    turns = [(start, name) for start in range(0, count, step) for name in chosen]
    failed: set[str] = set()
    slow: set[str] = set()
    with keep_servers(len(chosen)) if num_together else contextlib.nullcontext():
        for start, name in turns:
            framework, compiler, options = ARMS[name]
            part = [
                sample_id
                for sample_id in ids[framework][start : start + step]
                if sample_id not in slow
            ]
            if not part or name in failed:
                continue
            try:
                records = run(
                    part, compiler, out=out, options=options, settings=settings, source=source
                )
            except GraphNetError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed.add(name)
                continue
            slow.update(_too_slow(records))
            yield name, records


def _too_slow(records: Any) -> Iterator[str]:
    """Yield the ids of graphs whose eager call takes more than `MAX_CALL_S`.

    A timeout before eager was timed counts as well, whatever the status: if only the compiler was
    slow, the record has eager's times.

    >>> list(_too_slow({"sample_id": ["a", "b", "c"], "baseline_alone_ms": [[9.0], None, [3e3]],
    ...                 "status": ["run_failed", "run_failed", "ok"],
    ...                 "reason": ["timeout", "timeout", ""]}))
    ['b', 'c']
    """
    columns = ("sample_id", "status", "reason", "baseline_alone_ms")
    for name, status, reason, times_ms in zip(
        *(records[column] for column in columns), strict=True
    ):
        if times_ms:
            is_slow = statistics.median(times_ms) > MAX_CALL_S * 1e3
        else:
            is_slow = reason == Reason.TIMEOUT and status != Status.COMPILE_FAILED
        if is_slow:
            yield name


def _take_records(source: Path, out: Path) -> None:
    """Copy the records of a dataset, if it has any, to a directory of runs."""
    folder = source / RUNS.name
    if any(folder.glob("*.parquet")):
        out.mkdir(parents=True, exist_ok=True)
        write_runs(read_runs(folder), out / TABLE_NAME)


def ship_runs(pool: Path, out: Path) -> pa.Table:
    """Write the records of a directory of runs as the config `runs` of a dataset; return them.

    Equal records result in equal bytes in any order. Records contain the name of the dataset
    instead of its directory, and the first `KEPT_CALLS` judged calls. Records of graphs whose row
    has changed since are left out.

    Raises:
        DatasetNotFoundError: there are no records.
        GraphNetError: they take more than `MAX_BYTES`.
    """
    keys = ("framework", "compiler", "compiler_options", "sample_id", "run_id")
    runs = _of_rows(read_runs(pool), out).sort_by([(key, "ascending") for key in keys])
    messages = [text and without_folders(text) for text in runs["error_message"].to_pylist()]
    times_ms = {
        "dataset": pa.array([DEFAULT_NAME] * runs.num_rows),
        "error_message": pa.array(messages, pa.string()),
        "judged": pc.list_slice(runs["judged"], 0, KEPT_CALLS),
    }
    for name, values in times_ms.items():
        place = runs.schema.get_field_index(name)
        runs = runs.set_column(place, runs.schema.field(place), values)
    path = out / RUNS.name / "train-0000.parquet"
    with tempfile.TemporaryDirectory(dir=out, prefix=".runs-") as folder:
        staged = write_arrow(runs, Path(folder) / path.name, RUNS)
        size = staged.stat().st_size
        if size > MAX_BYTES:
            raise GraphNetError(
                f"The records of `{pool}` take {size} bytes; at most {MAX_BYTES} may be embedded."
            )
        path.parent.mkdir(exist_ok=True)
        staged.replace(path)
    write_readme(out)
    return runs


def _of_rows(runs: pa.Table, dataset: Path) -> pa.Table:
    """Return the records whose graphs have not changed since."""
    names = runs["sample_id"].unique().to_pylist()
    digests = {
        row["id"]: sample_digest(Sample.from_row(row))
        for path in tables_of(dataset)
        for row in read_table(path, filters=[("id", "in", names)]).to_pylist()
    }
    identities = zip(runs["sample_id"].to_pylist(), runs["sample_digest"].to_pylist(), strict=True)
    matching = runs.filter(
        pa.array([digest in (None, digests.get(name)) for name, digest in identities])
    )
    if left_out := runs.num_rows - matching.num_rows:
        print(
            f"{counted(left_out, 'record')} omitted, because their graphs have changed since. Run "
            "`python -m builder measure` to measure them again.",
            file=sys.stderr,
        )
    return matching


def _named_arms(runs: pa.Table) -> dict[str, pa.Table]:
    """Return the records of each arm by its name in `ARMS`, or else its name from `split_arms`."""
    options_of = {}
    for name, rows in split_arms(runs).items():
        given_options = json.loads(rows["compiler_options"][0].as_py() or "{}")
        fitting = [
            arm
            for arm, (_, compiler, options) in ARMS.items()
            if compiler == rows["compiler"][0].as_py() and options.items() <= given_options.items()
        ]
        arm = max(fitting, key=lambda arm_name: len(ARMS[arm_name][2]), default=name)
        options_of[name if arm in options_of else arm] = rows
    return options_of


def table_of_breaking(runs: pa.Table, dataset: Path) -> list[str]:
    """Return the table of operators that break compilers, as lines in Markdown.

    Records that say nothing about their compiler, such as a failure of eager, are omitted.
    """
    arms = {
        name: rows.filter(pa.array(is_counted(rows, _VARIANT))).to_pylist()
        for name, rows in _named_arms(runs).items()
    }
    records = [{**record, "arm": name} for name, rows in arms.items() for record in rows]
    histograms = read_columns(dataset, ("id", "op_histogram"))
    operators = {
        row["id"]: [operator["target"] for operator in row["op_histogram"] or ()]
        for row in histograms
    }
    failed = Counter(record["arm"] for record in records if record["status"] != Status.OK)
    return list(table(breaking(records, operators), failed))


def table_of_arms(runs: pa.Table) -> list[str]:
    """Return the table of outcomes and scores of each arm, as lines in Markdown."""
    lines = [
        f"| arm | graphs | {' | '.join(_SHOWN)} | failed | not counted | S(-3) | ES(3) |",
        f"|---|{'---|' * (len(_SHOWN) + 5)}",
    ]
    for name, rows in _named_arms(runs).items():
        counts = Counter(verdicts(rows, _VARIANT))
        shown = [counts.pop(verdict, 0) for verdict in _SHOWN]
        not_counted = counts.pop(Verdict.NOT_COUNTED, 0)
        cells = [rows.num_rows, *shown, counts.total(), not_counted]
        if not_counted < rows.num_rows:
            speedup = speedup_score(rows, has_intervals=False).at(-3)["S"]
            aware = error_aware_speedup_score(rows, has_intervals=False).at(3)["ES"]
            cells += [number(speedup), number(aware)]
        else:
            cells += ["", ""]
        lines.append(f"| {name} | {' | '.join(map(str, cells))} |")
    return lines
