"""`run`: time a dataset under compilers, resume interrupted runs and return the records."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..atomic import temporary_directory
from ..compilers import compiler_of_object, resolve_name, resolve_paths
from ..errors import RunError, raises_only
from ..schema import Status, sample_from_row
from ..storage.filters import as_filters
from ..storage.selection import Chosen, is_path
from .executors.executors import Executor, LocalExecutor, parse_devices
from .executors.jobs import CandidateCompiler, SampleJob
from .judging.output_files import OutputStore
from .judging.reference import check_reference
from .matching import check_builds, match_compilers
from .progress import show_progress
from .records.earlier import ASKED_FOR, FOUND, describe_done, describe_others
from .records.environment import environment_id
from .records.records import (
    LOCK_NAME,
    PARTS_NAME,
    TABLE_NAME,
    RunStore,
    make_run_id,
    sample_digest,
)
from .settings import Settings
from .time_spent import TimeSpent

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

Compiler: TypeAlias = str | Callable[..., Any] | type
"""A compiler given by name or reference, or as a function or class."""

_logger = logging.getLogger(__name__)


@raises_only(RunError)
def run(
    dataset: Any,
    compiler: Compiler | Sequence[Compiler] = "inductor",
    device: str | Sequence[str] = "cpu",
    out: str | os.PathLike[str] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    filters: Any = None,
    source: str | os.PathLike[str] = "graphnet",
    settings: Settings | None = None,
    executor: str = "local",
    keep_outputs: bool = False,
    against: str | os.PathLike[str] | None = None,
    time_spent: TimeSpent | None = None,
    jobs: int | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    **changes: Any,
) -> datasets.Dataset:
    """Time samples under eager and under a compiler, judge the outputs, and return the records.

    Each sample under each compiler runs in a new process with empty compile caches. A crash, a hang
    or running out of memory only affects this run. Records are written to `out` one by one.
    Repeating an interrupted call resumes it: runs that `out` already contains for the same sample,
    compiler, version, options, settings and environment are skipped.

    Args:
        dataset: rows of `load_dataset`, samples, names, paths, or several (see `select_rows`).
        compiler: one or several names of compilers, `module:attribute`, functions
            `(module, example_inputs)` or `Compiler` classes. The source code of a function from a
            notebook or script is passed to the process that runs it.
        device: `cpu`, `cuda` (the first GPU), `cuda:1`, or several GPUs, `cuda:0,cuda:1`. Each of
            several GPUs takes the next sample when it is free. On a Ray cluster `cpu` is every node
            and `cuda` every GPU.
        out: directory of the records; with None they are discarded after the call.
        options: options of the compiler.
        filters: the samples to select: conditions as for `load_dataset`, or `Filters`.
        source: the dataset in which names are looked up.
        settings: how to run the samples; `changes` are settings by name, `run(…, seed=1)`.
        executor: `local`, or `ray` for the connected Ray cluster or one that can be found.
        keep_outputs: store the outputs of each run in `out`, for comparison with later runs.
        against: a directory of runs made with `keep_outputs`. Checked first: these runs must have
            the same samples, seed and input mode. `compare_with_reference` returns the verdicts.
        time_spent: receives each phase of each run; print it for a breakdown of the time. Workers
            of a Ray cluster do not report phases.
        jobs: number of samples that overlap on each device: while one is timed, others are
            compiled or judged. On a CPU nothing else runs while a sample is timed; the default is 2
            with at least two processors. On a GPU nothing else launches kernels meanwhile; the
            default is 1. Records are returned as they are finished.
        on_record: called with the record of each run as soon as it is stored, after those of an
            earlier call. Progress then prints no lines for runs.

    A compiler runs on the samples of its own framework, and samples without a compiler are
    excluded. The framework of a compiler named as `module:attribute` is only known once it is
    loaded. If there are samples of several frameworks, such a compiler is assumed to be for torch.

    Returns:
        A dataset with a row of `RUNS_SCHEMA` for each sample and compiler, in the order given.

    Raises:
        CompilerError: a compiler is unknown, unavailable or misconfigured.
        DatasetNotFoundError: there is no dataset or sample with this name.
        RunError: there is nothing to run, records cannot be stored, or `against` does not match.
        MissingExtraError: the executor's package is not installed.

    >>> from graphnet_datasets.sample.arguments import Ref
    >>> from graphnet_datasets.sample import Input, Op, Sample, Value
    >>> relu = Sample("example/relu", "torch", "other", (Input("input", Value("float32", (2, 3))),),
    ...     (Op("torch.relu", (Ref(0),)),), (Ref(1),))
    >>> runs = run(relu, compiler="eager")
    >>> runs[0]["status"], runs[0]["min_t"]
    ('ok', -inf)
    """
    return _as_dataset(
        run_records(
            dataset,
            compiler,
            device,
            out,
            options=options,
            filters=filters,
            source=source,
            settings=settings,
            executor=executor,
            keep_outputs=keep_outputs,
            against=against,
            time_spent=time_spent,
            jobs=jobs,
            on_record=on_record,
            **changes,
        )
    )


@raises_only(RunError)
def run_records(
    dataset: Any,
    compiler: Compiler | Sequence[Compiler] = "inductor",
    device: str | Sequence[str] = "cpu",
    out: str | os.PathLike[str] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    filters: Any = None,
    source: str | os.PathLike[str] = "graphnet",
    settings: Settings | None = None,
    executor: str = "local",
    keep_outputs: bool = False,
    against: str | os.PathLike[str] | None = None,
    time_spent: TimeSpent | None = None,
    jobs: int | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    seconds: float | None = None,
    **changes: Any,
) -> pa.Table:
    """Run like `run`, and return an Arrow table without importing `datasets`.

    After `seconds`, the run stops as soon as it has stored the next record; the table then lacks
    the remaining samples, and the same call continues with them.
    """
    stop_at_s = math.inf if seconds is None else time.monotonic() + seconds
    chosen = _settings(settings, changes)
    if jobs is not None and jobs < 1:
        raise RunError(f"`jobs` is {jobs}, but a run needs at least one job at a time.")
    devices = parse_devices(device)
    if chosen.launch_mode == "cuda_graph" and "cpu" in devices:
        raise RunError(
            "The launch mode `cuda_graph` replays kernels of a GPU, but the device is `cpu`. "
            "Choose `stream`, or another device."
        )
    several = compiler if isinstance(compiler, Sequence) else [compiler]
    named = list(
        dict.fromkeys(
            part if isinstance(part, str) else compiler_of_object(part)
            for part in ([compiler] if isinstance(compiler, str) else several)
        )
    )
    resolved = [resolve_name(name) for name in named]  # raises early if a file is missing
    compilers = resolved if executor == "ray" else named  # nodes have other directories
    resolved_options = resolve_paths(options or {})
    if executor == "local":  # cluster nodes may have other builds
        check_builds(compilers, filters, devices)
    filters = as_filters(filters)
    selected, compilers_of = match_compilers(dataset, filters, source, compilers)
    is_kept = keep_outputs or against is not None
    with contextlib.ExitStack() as stack:
        path = Path(out) if out is not None else Path(stack.enter_context(_temporary()))
        stack.enter_context(_nothing_left_behind(path))
        store = RunStore(path)
        outputs = OutputStore(path) if is_kept else None
        runs_on = _make_executor(
            executor,
            devices,
            chosen,
            log_directory=None if out is None else path / "logs",
            compilers=compilers,
            outputs=outputs,
            num_jobs=jobs,
        )
        stack.callback(runs_on.close)
        candidates = {
            framework: [runs_on.find_candidate(name, framework, resolved_options) for name in names]
            for framework, names in compilers_of.items()
        }
        selected = selected.of(compilers_of).limited(filters.limit)
        # Several devices are identical, so it does not matter which one ran a sample.
        place = devices[0] if len(devices) == 1 else devices[0].partition(":")[0]
        sample_jobs = _make_jobs(
            selected, candidates, place, chosen, environment_id(runs_on.environment)
        )
        if against is not None:
            check_reference(against, sample_jobs, chosen)
        _tell_earlier(sample_jobs, place, chosen, runs_on.environment, store)
        _run_jobs(
            sample_jobs,
            runs_on,
            store,
            outputs,
            _where(dataset, source),
            time_spent,
            on_record,
            stop_at_s,
        )
        return store.table(run_id for job in sample_jobs for run_id, _ in job.candidates)


def _make_executor(
    name: str,
    devices: Sequence[str],
    settings: Settings,
    *,
    log_directory: Path | None,
    compilers: Sequence[str],
    outputs: OutputStore | None,
    num_jobs: int | None,
) -> Executor:
    if name == "local":
        return LocalExecutor(
            devices,
            settings,
            log_directory=log_directory,
            compilers=compilers,
            take_outputs=None if outputs is None else outputs.save,
            num_jobs=num_jobs,
        )
    if name == "ray":
        if settings.compile_cache is not None:
            raise RunError(
                "`compile_cache` is a folder of this machine, which the nodes of a Ray cluster may "
                'lack. Omit it, or use `executor="local"`.'
            )
        if num_jobs is not None:
            raise RunError(
                "`jobs` is for the devices of this machine. A Ray cluster runs one sample at a "
                "time on each device. Omit `jobs`."
            )
        from .executors.ray_executor import RayExecutor

        return RayExecutor(
            devices, settings, log_directory=log_directory, compilers=compilers, outputs=outputs
        )
    raise RunError(f"There is no executor `{name}`. Choose `local` or `ray`.")


def _settings(settings: Settings | None, changes: Mapping[str, Any]) -> Settings:
    import dataclasses

    names = {field.name for field in dataclasses.fields(Settings)}
    for name in changes:
        if name not in names:
            raise RunError(
                f"There is no setting `{name}`. The settings are {', '.join(sorted(names))}."
            )
    return dataclasses.replace(settings or Settings(), **changes)


def _make_jobs(
    selected: Chosen,
    candidates: Mapping[str, Sequence[CandidateCompiler]],
    device: str,
    settings: Settings,
    environment: str,
) -> list[SampleJob]:
    """Return a job per sample, with the ids of its runs, in the order of the selection."""
    jobs: dict[tuple[str, str], SampleJob] = {}
    for row in selected.stream():
        sample = sample_from_row(row)
        identified = [
            (
                make_run_id(
                    sample,
                    compiler=candidate.compiler,
                    version=candidate.version,
                    **({"source": candidate.source} if candidate.source else {}),
                    options=dict(candidate.options),
                    device=device,
                    settings=settings.to_json(),
                    environment=environment,
                ),
                candidate,
            )
            for candidate in candidates[sample.framework]
        ]
        jobs[row["framework"], row["id"]] = SampleJob(sample, row, identified).packed()
    return [jobs[name] for name in selected.names]


def _tell_earlier(
    jobs: Sequence[SampleJob],
    device: str,
    settings: Settings,
    environment: Mapping[str, Any],
    store: RunStore,
) -> None:
    """Log how many runs are already done, and which records have another environment or source."""
    requested = [(job, run_id, candidate) for job in jobs for run_id, candidate in job.candidates]
    num_done = sum(run_id in store for _, run_id, _ in requested)
    if message := describe_done(num_done, len(requested)):
        _logger.warning("%s", message)
    if num_done == len(requested):
        return
    pending = (
        {
            "sample_id": job.sample.id,
            "compiler": candidate.compiler,
            "compiler_options": json.dumps(dict(candidate.options), sort_keys=True),
            "device": device,
            "settings": json.dumps(settings.to_json(), sort_keys=True),
            "compiler_version": candidate.version,
            "compiler_source": candidate.source or None,
            "sample_digest": sample_digest(job.sample),
            "environment": json.dumps(environment, sort_keys=True),
        }
        for job, run_id, candidate in requested
        if run_id not in store
    )
    for sentence in describe_others(pending, store.rows((*ASKED_FOR, *FOUND))):
        _logger.warning("%s", sentence)


def _run_jobs(
    jobs: Sequence[SampleJob],
    executor: Executor,
    store: RunStore,
    outputs: OutputStore | None,
    where: str | None,
    time_spent: TimeSpent | None = None,
    on_record: Callable[[Mapping[str, Any]], None] | None = None,
    stop_at_s: float = math.inf,
) -> None:
    """Run the jobs that the store lacks, and store each record as soon as it is available.

    No record follows the first one at or after `stop_at_s` on the monotonic clock.
    """
    lacking = set() if outputs is None else _without_outputs(jobs, store, outputs)
    pending = []
    for job in jobs:
        missing = [
            (run_id, candidate)
            for run_id, candidate in job.candidates
            if run_id not in store or run_id in lacking
        ]
        if missing:
            pending.append(job.with_candidates(missing))
    num_runs = sum(len(job.candidates) for job in jobs)
    num_pending = sum(len(job.candidates) for job in pending)
    is_pending = {run_id for job in pending for run_id, _ in job.candidates}
    done = store.table(
        run_id
        for job in jobs
        for run_id, _ in job.candidates
        if num_pending < num_runs and run_id not in is_pending
    ).to_pylist()
    try:
        with show_progress(num_runs, done, on_record) as progress:

            def enter(sample_id: str, compiler: str, phase: str) -> None:
                progress.enter(sample_id, compiler, phase)
                if time_spent is not None:
                    time_spent.enter(sample_id, compiler, phase)

            executor.on_phase = enter
            for _, records in executor.run(pending):
                for record in records:
                    record["dataset"] = where
                    store.append(record)
                    progress.add(record)
                    if time_spent is not None:
                        time_spent.add(record)
                if time.monotonic() >= stop_at_s:
                    break
    finally:
        executor.close()
        store.compact()


def _where(dataset: Any, source: str | os.PathLike[str]) -> str | None:
    """Return the dataset of named samples, or None if objects were passed."""
    places = set()
    for item in dataset if isinstance(dataset, list | tuple) else [dataset]:
        if not isinstance(item, str | os.PathLike):
            return None
        is_name = isinstance(item, str) and not is_path(item)
        path = Path(source if is_name else item).expanduser()
        places.add(str(path.resolve()) if path.exists() else str(source if is_name else item))
    return places.pop() if len(places) == 1 else None


def _without_outputs(jobs: Sequence[SampleJob], store: RunStore, outputs: OutputStore) -> set[str]:
    """Return the ids of finished runs whose outputs were not stored."""
    table = store.table(run_id for job in jobs for run_id, _ in job.candidates)
    return {
        run_id
        for run_id, status in zip(
            table["run_id"].to_pylist(), table["status"].to_pylist(), strict=True
        )
        if status == Status.OK and run_id not in outputs
    }


@contextlib.contextmanager
def _nothing_left_behind(path: Path) -> Iterator[None]:
    """Remove files and folders of a run that failed before its first record."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    try:
        yield
    except BaseException:
        if not (path / TABLE_NAME).exists():
            parts = path / PARTS_NAME
            if parts.is_dir() and not any(parts.glob("*.parquet")):
                (parts / LOCK_NAME).unlink(missing_ok=True)
            for place in (parts, path / "logs", *missing):
                with contextlib.suppress(OSError):  # a non-empty folder stays
                    place.rmdir()
        raise


@contextlib.contextmanager
def _temporary() -> Iterator[Path]:
    with temporary_directory("graphnet-runs-") as path:
        yield path


def _as_dataset(table: Any) -> datasets.Dataset:
    import datasets

    return datasets.Dataset(table)
