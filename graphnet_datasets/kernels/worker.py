"""Worker that compiles the graph of one row and collects its kernels."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..analysis.splits import split_of_row
from ..benchmark.handover import COMPILERS_VARIABLE
from ..benchmark.records.environment import describe_environment
from ..errors import GraphNetError, TransformError
from ..frameworks import module
from ..frameworks.runtime import make_runtime
from ..inputs import prepare_blocks
from ..isolation import Reporter
from ..sample import Sample
from ..schema import SCHEMA_VERSION
from ..schema.tables import KERNELS
from ..storage.mapping import map_items, refusal_of
from ..storage.table import to_arrow
from ..timing.clocks import WallClock
from ..transforms.subgraphs import subgraph_hash
from .generated import Generation
from .generators import generator_of

PHASES = ("compile", "run")
MAX_SOURCE_CHARACTERS = 4 * 2**20
_MIN_CALLS, _MAX_CALLS, _BUDGET_S = 5, 100, 0.5


def prepare() -> Sequence[str]:
    """Import torch and the compiler; return the modules that only some jobs import."""
    from ..compilers.inductor import Inductor  # imports torch

    is_inductor = os.environ.get(COMPILERS_VARIABLE) == Inductor.name
    seldom = module("torch", "runtime").import_all(with_compiler=is_inductor)
    if is_inductor:
        module("torch", "fusion")
        Inductor.prepare()
    prepare_blocks()
    return seldom


def work(payload: Mapping[str, Any], reporter: Reporter, directory: Path) -> None:
    """Compile the graph of a row and collect its kernels."""
    from ..compilers.inductor import Inductor

    if os.environ.get(COMPILERS_VARIABLE) == Inductor.name:
        # The user's cache may lack compiled headers, and a job cannot write to it.
        Inductor().use_caches(directory / "caches")
    map_items(payload, directory, functools.partial(_collect, reporter))


def _collect(
    reporter: Reporter, row: Mapping[str, Any], job: Mapping[str, Any]
) -> tuple[list[pa.Table], dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    refused = None
    try:
        rows = list(_rows(row, job, reporter))
        if not rows:
            refused = "it generated nothing: all is left to libraries", ""
    except GraphNetError as error:
        refused = refusal_of(error)
    notes = {"split": split_of_row(row), "refused": refused}
    return [to_arrow([kernel_row], KERNELS) for kernel_row in rows], notes


def _rows(
    row: Mapping[str, Any], job: Mapping[str, Any], reporter: Reporter
) -> Iterator[dict[str, Any]]:
    sample = Sample.from_row(row)
    runtime = make_runtime(sample.framework, job["device"], job["threads"])
    started = time.perf_counter()
    generation = generator_of(job["compiler"])(sample, job["options"], job["device"])
    seconds = time.perf_counter() - started
    reporter.enter("run")
    latency_ms = _time(generation, None if job["device"] == "cpu" else runtime.synchronize)
    common = {
        "schema_version": SCHEMA_VERSION,
        "subgraph_hash": row.get("subgraph_hash") or subgraph_hash(sample),
        "sample_id": sample.id,
        "framework": sample.framework,
        "compiler": job["compiler"],
        "compiler_version": job["version"],
        "options": json.dumps(job["options"], sort_keys=True),
        "device": job["device"],
        "device_name": device_name(job["device"]),
        "threads": job["threads"],
        "num_kernels": len(generation.kernels),
        "library_calls": list(generation.library_calls),
        "compile_time_s": round(seconds, 3),
        "latency_ms": latency_ms,
    }
    for position, kernel in enumerate(generation.kernels):
        if len(kernel.source) > MAX_SOURCE_CHARACTERS:
            raise TransformError(
                f"A kernel of `{sample.id}` has {len(kernel.source):,} characters; at most "
                f"{MAX_SOURCE_CHARACTERS:,} are stored. Collect from a smaller graph.",
                reason="a kernel is too long",
            )
        yield {
            **common,
            "kernel_id": _identity(common, position, kernel.source),
            "language": kernel.language,
            "entry": kernel.entry,
            "source": kernel.source,
            "launch": json.dumps(kernel.launch),
            "operators": list(kernel.operators),
            "ops": None if kernel.ops is None else list(kernel.ops),
            "position": position,
        }


def _identity(common: Mapping[str, Any], position: int, source: str) -> str:
    names = ("subgraph_hash", "compiler", "compiler_version", "options", "device_name", "threads")
    text = json.dumps([*(common[name] for name in names), position, source])
    return hashlib.sha256(text.encode()).hexdigest()


def _time(generation: Generation, synchronize: Any) -> float:
    """Return the median latency of calls in milliseconds, after two warm-up calls."""
    clock = WallClock(synchronize)
    for _ in range(2):
        generation.run()
    times: list[float] = []
    end = clock.now_s() + _BUDGET_S
    while len(times) < _MIN_CALLS or (clock.now_s() < end and len(times) < _MAX_CALLS):
        times.append(clock.measure(generation.run).elapsed_ms)
    return statistics.median(times)


def device_name(device: str) -> str:
    """Return the model name of the CPU or GPU."""
    environment = describe_environment(device)
    hardware = environment.get("gpu") if device != "cpu" else environment.get("cpu")
    hardware = hardware or {}
    return str(hardware.get("model") or hardware.get("name") or device)
