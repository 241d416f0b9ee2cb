"""Executors of captures: processes of this machine, or of the nodes of a Ray cluster.

Both use the same worker program: a job captures one model, in its own process with the same limits.
On a cluster the row is returned as bytes and stored in the same build directory under the same key,
so a build can continue with the other executor.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from graphnet_datasets.atomic import write_bytes, write_text
from graphnet_datasets.isolation import (
    RESULT_FILE,
    Finished,
    Limits,
    PoolJob,
    check_executor,
    open_pool,
)

from .capturing import FAILURE, LIMITS, Capture, Keys, known, work_of
from .catalog import Entry
from .effort import record
from .weights import path_of


def capture_all(
    entries: Iterable[Entry],
    build: Path,
    jobs: int = 1,
    *,
    executor: str = "local",
    keys: Keys | None = None,
    is_failure_kept: bool = False,
) -> Iterator[Capture]:
    """Capture entries, unless the build directory has them, and yield each when it ends.

    With `is_failure_kept`, earlier failures under the same key are not retried. On a Ray cluster
    there is one worker per processor, and `jobs` is ignored. A lost worker is replaced and its
    entry captured again; an entry that loses two workers counts as a failure.

    Raises:
        RunError: there is no such executor, no cluster, or no worker can be started.
        MissingExtraError: Ray is not installed.
    """
    check_executor(executor)
    keys = keys or Keys()
    build.mkdir(parents=True, exist_ok=True)
    waiting = []
    for entry in entries:
        capture = known(entry, keys.path(entry, build), is_failure_kept)
        if capture is None:
            waiting.append(entry)
        else:
            yield capture
    for entry, finished in run_jobs(waiting, _job, jobs, executor=executor):
        record(build, entry, finished)
        yield keep(entry, finished, keys.path(entry, build))


def measure_all(
    entries: Iterable[Entry], build: Path, keys: Keys, jobs: int = 1
) -> Iterator[tuple[Entry, str]]:
    """Measure the weights of entries; yield each with the reason of a failure, or "".

    Measurements are stored beside the row of the entry (`weights.path_of`).
    """
    for entry, finished in run_jobs(entries, lambda entry: _job(entry, is_measuring=True), jobs):
        if finished.result is not None:
            write_bytes(path_of(keys.path(entry, build)), finished.result)
        yield entry, finished.reason


def run_jobs(
    entries: Iterable[Entry],
    job_of: Callable[[Entry], PoolJob],
    jobs: int,
    *,
    executor: str = "local",
    limits: Limits = LIMITS,
    is_confined: bool = False,
) -> Iterator[tuple[Entry, Finished]]:
    """Run a job for each entry, one library after another; yield each entry with its outcome.

    Payloads contain the line of the entry.
    """
    by_library: dict[str, dict[str, Entry]] = {}
    for entry in entries:
        by_library.setdefault(entry.library, {})[entry.line] = entry
    for library, by_line in by_library.items():
        work = work_of(library, limits, is_confined=is_confined)
        num_workers = min(jobs, len(by_line)) if executor == "local" else None
        with contextlib.closing(open_pool(work, executor, num_workers)) as pool:
            for finished in pool.run(map(job_of, by_line.values())):
                yield by_line[finished.job.payload["line"]], finished


def _job(entry: Entry, **more: bool) -> PoolJob:
    # A job runs in its own directory, wherever that is.
    return PoolJob(entry.name, {"line": entry.line, "out": RESULT_FILE, **more})


def keep(entry: Entry, finished: Finished, path: Path) -> Capture:
    """Store the row of a finished job, or the reason of its failure, in the build directory."""
    failure = path.with_suffix(FAILURE)
    if finished.result is None:
        reason = finished.reason or "finished without a row"
        write_text(failure, reason)
        return Capture(entry, None, reason)
    write_bytes(path, finished.result)
    failure.unlink(missing_ok=True)
    return Capture(entry, path)
