"""Valid rows, records, traces, folders and files, for mutations to start from."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import graphnet_datasets
from graphnet_datasets import Sample, write_directory, write_table
from graphnet_datasets.benchmark.judging.correctness import Output
from graphnet_datasets.benchmark.judging.output_files import write_outputs
from graphnet_datasets.sample import Input, Op, Symbol, Value
from graphnet_datasets.sample.arguments import ListArg, Named, Ref
from graphnet_datasets.schema import sample_to_row
from graphnet_datasets.storage.table import read_table

from .verbs import Attempts

EMBEDDED = Path(graphnet_datasets.__file__).parent / "starter" / "graphnet"
MAX_OPS, NUM_ROWS, NUM_RECORDS = 40, 24, 60


def load_attempts(work: Path, counts: Mapping[str, int]) -> Iterator[tuple[str, Attempts]]:
    """Yield what makes mutations of each kind that is asked for."""
    rows = [*_small_rows(), *map(sample_to_row, _samples())]
    records = _records()
    folders = _write_folders(work, rows, records)
    for kind, count in counts.items():
        if count:
            seeds = records if kind == "records" else rows
            yield kind, Attempts(kind, seeds, folders, _archives())


def _small_rows() -> list[dict[str, Any]]:
    """Return embedded graphs of few operators, of torch and of paddle."""
    rows: list[dict[str, Any]] = []
    for framework in ("torch", "paddle"):
        for config in ("cv", "nlp", "other", "audio"):
            for path in sorted(EMBEDDED.glob(f"{config}/*.parquet")):
                filters = [("framework", "==", framework), ("num_ops", "<", MAX_OPS),
                           ("input_bytes", "<", 2_000_000)]  # fmt: skip
                rows += read_table(path, filters=filters).slice(0, 4).to_pylist()
    return rows[:NUM_ROWS]


def _samples() -> list[Sample]:
    """Return samples with symbols, constants, scalars and all kinds of arguments."""
    size = Symbol("s0", 4)
    matrix = Input("input", Value("float32", ("s0", 3)))
    half = Input("parameter", Value("bfloat16", (3, 2), (1, 3)))
    number = Input("constant", Value("int64", ()), data=(2).to_bytes(8, "little"))
    ops = (
        Op("torch.Tensor.to", (Ref(0), Named("dtype", "bfloat16"))),
        Op("torch.matmul", (Ref(3), Ref(1))),
        Op("torch.cat", (ListArg((Ref(4), Ref(4))), 0)),
        Op("operator.mul", (Ref(5), Ref(2))),
        Op("torch.Tensor.sum", (Ref(6),), (("dim", ListArg((0, 1))), ("keepdim", True))),
    )
    dynamic = Sample(
        "fuzz/dynamic", "torch", "other", (matrix, half, number), ops, (Ref(7), Ref(6)), (size,)
    )
    wide = Input("input", Value("float32", (64, 64), (0, 1)))
    expanded = Sample(
        "fuzz/expanded", "torch", "other", (wide,),
        (Op("torch.Tensor.split", (Ref(0), 32)), Op("operator.getitem", (Ref(1), 0)),
         Op("torch.softmax", (Ref(2), -1))), Ref(3),
    )  # fmt: skip
    return [dynamic, expanded]


def _records() -> list[dict[str, Any]]:
    """Return records of runs."""
    rows: list[dict[str, Any]] = []
    for path in sorted((EMBEDDED / "runs").rglob("*.parquet"))[:4]:
        rows += read_table(path).slice(0, NUM_RECORDS // 4).to_pylist()
    return rows[:NUM_RECORDS]


def _write_folders(
    work: Path, rows: list[dict[str, Any]], records: list[dict[str, Any]]
) -> dict[str, Path]:
    samples = [Sample.from_row(row) for row in rows[:3]]
    tree = work / "samples"
    for at, sample in enumerate(samples):
        write_directory(sample, tree / str(at))
    dataset = work / "dataset"
    (dataset / "cv").mkdir(parents=True)
    write_table(samples, dataset / "cv" / "train-00000-of-00001.parquet")
    (dataset / "runs").mkdir()
    table = pa.Table.from_pylist(records[:10])
    pq.write_table(table, dataset / "runs" / "train-00000-of-00001.parquet")
    traces = work / "traces"
    for name in ("tuning_records", "tuning_tasks"):
        for path in sorted((EMBEDDED / name).rglob("*.parquet"))[:1]:
            target = traces / path.relative_to(EMBEDDED)
            target.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pq.read_table(path).slice(0, 12), target)
    logs = work / "logs"
    logs.mkdir()
    (logs / "run.log").write_text(LOG)
    return {
        "read_directory": tree / "0", "load_dataset": dataset, "export_dataset": dataset,
        "traces": traces, "import_log": logs, "folders": tree,
    }  # fmt: skip


LOG = """[Processing] samples/timm/resnet18
[Config] seed: 123
[Config] compiler: inductor
[Config] device: cpu
[Result][status] success
[Performance][eager]: {"e2e": {"mean": 12.5, "std": 0.5}}
[Performance][compiled]: {"e2e": {"mean": 6.25, "std": 0.5}}
[Correctness][equal]: 0
[Correctness][all_close_atol_rtol]: 1
[Speedup][e2e]: 2.0
"""


def _archives() -> list[bytes]:
    """Return files of trained weights and of outputs."""
    header = np.frombuffer(json.dumps({"kind": "gbdt"}).encode(), np.uint8)
    weights, outputs = io.BytesIO(), io.BytesIO()
    np.savez_compressed(
        weights, __header__=header, weights=np.arange(12.0), bias=np.zeros(3, np.float32)
    )
    results = [Output("float32", np.ones((2, 3), np.float32)), Output("int64", np.arange(3))]
    write_outputs(outputs, {"run_id": "a"}, results)
    return [weights.getvalue(), outputs.getvalue()]
