"""`python -m builder gpu-cache`: fill the caches of a card for a list of samples."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from graphnet_datasets.benchmark import Settings
from graphnet_datasets.benchmark.handover import COMPILERS_VARIABLE, OPTIONS_VARIABLE
from graphnet_datasets.benchmark.records.records import hash_json, sample_digest
from graphnet_datasets.benchmark.worker_job import WorkerJob
from graphnet_datasets.compilers import parse_options
from graphnet_datasets.compilers.carrying import set_environment
from graphnet_datasets.errors import GraphNetError
from graphnet_datasets.frameworks import FRAMEWORK_VARIABLE
from graphnet_datasets.isolation import Finished, Limits, LocalPool, PoolJob, Work
from graphnet_datasets.schema import sample_from_row
from graphnet_datasets.schema.sample_files import write_row
from graphnet_datasets.storage.selection import select_rows
from graphnet_datasets.storage.table import read_table

from .cards import CARDS
from .filled import Filled
from .filling import CARD_VARIABLE, CPU, PHASES
from .stand_in import missing

_TIMING_OPTIONS = frozenset(
    {
        "autotune_at_compile_time", "autotune_in_subproc", "benchmark_combo_kernel",
        "benchmark_epilogue_fusion", "benchmark_fusion", "coordinate_descent_tuning",
        "max_autotune", "max_autotune_gemm", "max_autotune_pointwise",
    }
)  # fmt: skip
SERVER = "builder.gpu_cache.filling"


def add_gpu_cache(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpu-cache`."""
    parser.set_defaults(run=_run)
    parser.add_argument("--card", choices=[*CARDS, CPU], required=True)
    parser.add_argument(
        "--samples",
        type=Path,
        required=True,
        help="a Parquet file of rows, or a folder of such files",
    )
    parser.add_argument("--out", type=Path, default=Path("build/gpu_cache"))
    parser.add_argument("--weights", choices=("parameters", "inputs"), default="parameters")
    parser.add_argument(
        "--option", action="append", default=[], help="option of the compiler, as name=value"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--threads", type=int, default=16, help="threads of an arm in later runs")
    parser.add_argument("--limit", type=int, help="only the first samples")
    parser.add_argument("--timeout", type=float, default=900.0, help="seconds per sample")
    parser.add_argument("--memory", type=float, default=8.0, help="GiB per sample")
    parser.add_argument("--retry", action="store_true", help="try failed samples again")


def add_check(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `check-gpu-cache`."""
    parser.set_defaults(run=_check)
    parser.add_argument("directory", type=Path, help="the folder of a card")
    parser.add_argument("--count", type=int, default=1, help="samples to compile")
    parser.add_argument(
        "--pretend",
        choices=list(CARDS),
        default="",
        help="check without a GPU, without running kernels",
    )


def _check(options: argparse.Namespace) -> int:
    # In a new process, since torch must be imported before the modules of other commands.
    command = [sys.executable, "-m", "builder.gpu_cache.checking", str(options.directory)]
    command += ["--count", str(options.count), "--pretend", options.pretend]
    return subprocess.run(command).returncode  # noqa: S603 (our own module, no shell)


def _run(options: argparse.Namespace) -> int:
    if options.card != CPU and (reason := missing()):
        raise GraphNetError(reason)
    filled = Filled(options.out / options.card)
    settings = Settings(
        weights=options.weights,
        num_threads=options.threads,
        memory_limit_bytes=int(options.memory * 2**30),
    )
    compiler_options = parse_options(options.option)
    check_untimed(compiler_options)
    rows = read_in_order(options.samples)[: options.limit]
    fill(
        rows,
        options.card,
        filled,
        settings,
        compiler_options,
        num_jobs=options.jobs,
        timeout_s=options.timeout,
        is_retrying=options.retry,
    )
    print(filled.describe())
    return 0


def read_in_order(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a Parquet file, or of a folder of such files, in their stored order.

    Raises:
        GraphNetError: The path does not exist, or a file is not a table of samples.
    """
    files = sorted(path.rglob("*.parquet")) if path.is_dir() else [path]
    ids = [name for file in files for name in read_table(file, ["id"])["id"].to_pylist()]
    places = {name: place for place, name in enumerate(ids)}
    return sorted(select_rows(str(path.resolve())), key=lambda row: places[row["id"]])


def check_untimed(options: Mapping[str, Any]) -> None:
    """Raise an error if the compiler would time kernels while it compiles.

    Raises:
        GraphNetError: An option chooses among kernels by their times, which only a GPU has.
    """
    config = options.get("config", {})
    timing = [name for name in config if name.rpartition(".")[2] in _TIMING_OPTIONS]
    mode = str(options.get("mode", ""))
    if mode.startswith("max-autotune"):
        timing.append(f"mode={mode}")
    if timing:
        raise GraphNetError(
            f"The option `{timing[0]}` chooses kernels by their times on the card. Remove it, or "
            "compile on the GPU itself."
        )


def fill(
    rows: Sequence[Mapping[str, Any]],
    card: str,
    filled: Filled,
    settings: Settings,
    options: Mapping[str, Any],
    *,
    num_jobs: int = 1,
    timeout_s: float = 900.0,
    is_retrying: bool = False,
) -> None:
    """Compile rows for a card, and print a line for each.

    Raises:
        GraphNetError: The folder was filled with other versions, or no worker can be started.
    """
    job = WorkerJob(
        kind="candidate",
        device="cpu" if card == CPU else "cuda",
        settings=settings,
        framework="torch",
        compiler="inductor",
        options=options,
    )
    arm = hash_json({"weights": settings.weights, "options": dict(options)})
    pending = {}
    for row in rows:
        if row["framework"] == "torch":
            key = f"{sample_digest(sample_from_row(row))}-{arm}"
            if not filled.is_done(key, is_retrying=is_retrying):
                pending[key] = row
    print(f"{len(rows)} samples, {len(pending)} to compile", flush=True)
    if not pending:
        return
    environment = {
        FRAMEWORK_VARIABLE: "torch",
        COMPILERS_VARIABLE: "inductor",
        OPTIONS_VARIABLE: json.dumps(dict(options)),
        CARD_VARIABLE: card,
    }
    set_environment(environment)
    limits = Limits(
        phase_timeouts_s=dict.fromkeys(PHASES, timeout_s),
        memory_bytes=settings.memory_limit_bytes,
        is_memory_enforced=False,
    )
    work = Work(SERVER, PHASES, limits, environment, is_confined=False)
    with (
        tempfile.TemporaryDirectory(prefix="graphnet-") as folder,
        contextlib.closing(LocalPool(work, num_jobs)) as pool,
    ):
        started_s = time.monotonic()
        finished = pool.run(_jobs(pending, job, Path(folder)))
        for number, item in enumerate(finished, 1):
            shutil.rmtree(item.job.payload["folder"], ignore_errors=True)
            record = _record(item, pending, options, settings)
            if item.is_success:
                filled.check_manifest(item.outcome.merged())
            filled.add(record, item.result, pending[record["key"]])
            rest_s = (time.monotonic() - started_s) / number * (len(pending) - number)
            result = record["reason"] or f"{record['compile_s']:.1f} s"
            print(
                f"{number} of {len(pending)}: {item.job.name}: {result[:200]} "
                f"({rest_s / 60:.0f} minutes left)",
                flush=True,
            )


def _jobs(
    pending: Mapping[str, Mapping[str, Any]], job: WorkerJob, folder: Path
) -> Iterator[PoolJob]:
    """Yield a job per row, and write its row only when a worker takes it."""
    for key, row in pending.items():
        place = folder / key
        place.mkdir()
        write_row(row, place)
        payload = {"job": job.to_payload(), "folder": str(place), "key": key}
        yield PoolJob(str(row["id"]), payload, reads=(str(place),))


def _record(
    item: Finished,
    rows: Mapping[str, Mapping[str, Any]],
    options: Mapping[str, Any],
    settings: Settings,
) -> dict[str, Any]:
    key = item.job.payload["key"]
    figures = item.outcome.merged() if item.is_success else {}
    reason = item.reason
    if item.is_success and item.result is None:
        reason = "The worker ended without a result."
    return {
        "key": key,
        "id": rows[key]["id"],
        "options": dict(options),
        "weights": settings.weights,
        "reason": reason,
        "compile_s": figures.get("compile_s"),
        "load_s": figures.get("load_s"),
        "num_graphs": figures.get("num_graphs"),
        "num_bytes": None if item.result is None else len(item.result),
        "entries": [],
    }
