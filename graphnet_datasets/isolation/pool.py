"""Pools of fork servers that run many jobs in parallel on this machine."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from ..errors import RunError, UnsafePathError
from ..paths import open_file
from .client import ForkServer
from .limits import Limits
from .watch import Ending, Outcome

RESULT_FILE = "result"
"""The file in a job's directory for results that are too large for messages."""

_POLL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Work:
    """The configuration of a pool's workers: the `ForkServer` module and its limits."""

    module: str
    phases: tuple[str, ...]
    limits: Limits = dataclasses.field(default_factory=Limits)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_confined: bool = True

    def server(self) -> ForkServer:
        """Return a new server for these workers, not yet started."""
        return ForkServer(self.module, environment=self.environment, is_confined=self.is_confined)

    def worker(self) -> Worker:
        """Return a new worker, which starts its server with the first job."""
        return _ServerWorker(self)


@dataclasses.dataclass(frozen=True)
class PoolJob:
    """A job: a name for messages, the worker's payload as JSON, and the paths that it may use.

    `reads` and `writes` are passed to `ForkServer.run`.
    """

    name: str
    payload: Mapping[str, Any]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Finished:
    """A finished job: its outcome and the bytes of its result file, or None without a file."""

    job: PoolJob
    outcome: Outcome
    result: bytes | None

    @classmethod
    def returned(cls, job: PoolJob, result: bytes) -> Finished:
        """Return the outcome of a job that succeeded without a process of its own."""
        return cls(job, Outcome(Ending.FINISHED, "", [], None, 0, "", 0, 0.0, {}, 0, 0), result)

    @property
    def is_success(self) -> bool:
        """True if the job returned normally."""
        return self.outcome.ending is Ending.FINISHED

    @property
    def reason(self) -> str:
        """The reason why the job failed, in one line; "" if it succeeded."""
        if self.is_success:
            return ""
        error = self.outcome.error or {}
        message = error.get("message", "") or self.outcome.log[-300:].strip()
        words = f"{self.outcome.ending} in {self.outcome.phase}: {error.get('type', '')} {message}"
        return " ".join(words.split())


class Worker(Protocol):
    """Runs one job at a time."""

    def run(self, job: PoolJob) -> Finished:
        """Run a job; its failure is not raised."""
        ...

    def close(self) -> None:
        """End the current job and release the worker's processes. Any thread may call this."""
        ...


class _ServerWorker:
    """Runs each job in a fork of a server."""

    def __init__(self, work: Work) -> None:
        self._work, self._server = work, work.server()

    def run(self, job: PoolJob) -> Finished:
        return run_in(self._server, self._work, job)

    def close(self) -> None:
        self._server.close()


class Pool(Protocol):
    """Runs jobs and yields each result when it is ready."""

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        """Yield each job once, in order of completion; failures of jobs are not raised."""
        ...

    def close(self) -> None:
        """Stop all workers."""
        ...


class LocalPool:
    """Runs jobs on this machine, `num_workers` at a time, each worker in a thread.

    `work` describes workers that run every job in a process, or is a function that returns a new
    worker of another kind.

    Workers take jobs from the iterable when they become free and wait until their results are
    consumed, so neither jobs nor results need to fit into memory.

    Raises:
        RunError: From `run`, if no worker can be started or the pool is closed.
    """

    def __init__(self, work: Work | Callable[[], Worker], num_workers: int) -> None:
        self._make_worker = work.worker if isinstance(work, Work) else work
        self._num_workers = max(1, num_workers)
        self._workers: list[Worker] = []
        self._is_closed = threading.Event()

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        """Yield each job when it ends."""
        waiting, lock = iter(jobs), threading.Lock()
        results: queue.Queue[Finished | BaseException | None] = queue.Queue(2 * self._num_workers)
        while len(self._workers) < self._num_workers:
            self._workers.append(self._make_worker())

        def put(item: Finished | BaseException | None) -> None:
            while not self._is_closed.is_set():
                with contextlib.suppress(queue.Full):
                    results.put(item, timeout=_POLL_S)
                    return

        def serve(worker: Worker) -> None:
            try:
                while not self._is_closed.is_set():
                    with lock:
                        job = next(waiting, None)
                    if job is None:
                        break
                    put(worker.run(job))
                put(None)
            except BaseException as error:  # the consumer raises it
                put(error)

        threads = [
            threading.Thread(target=serve, args=(worker,), daemon=True) for worker in self._workers
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in threads:
                while (item := self._take(results)) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
        except BaseException:  # includes Ctrl-C and a closed generator: no worker may continue
            self.close()
            raise
        finally:
            for thread in threads:
                while thread.is_alive():
                    thread.join(_POLL_S)
                    if self._is_closed.is_set():  # the thread may have just started its server
                        self.close()

    def close(self) -> None:
        """Stop all workers and their jobs; a concurrent `run` in another thread raises."""
        self._is_closed.set()
        if self._workers:
            with concurrent.futures.ThreadPoolExecutor(len(self._workers)) as threads:
                list(threads.map(lambda worker: worker.close(), self._workers))

    def _take(
        self, done: queue.Queue[Finished | BaseException | None]
    ) -> Finished | BaseException | None:
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Empty):
                return done.get(timeout=_POLL_S)
        raise RunError("The pool of workers is closed. Create another pool for more jobs.")


def run_in(server: ForkServer, work: Work, job: PoolJob) -> Finished:
    """Run a job in a fork server and return its outcome and result file."""
    with server.directory() as directory:
        outcome = server.run(
            job.payload,
            directory,
            phases=work.phases,
            limits=work.limits,
            reads=job.reads,
            writes=job.writes,
        )
        result = None
        if outcome.ending is Ending.FINISHED:
            # The job may have replaced its file by a link to a file that it may not read itself.
            with (
                contextlib.suppress(FileNotFoundError, UnsafePathError),
                open_file(directory, RESULT_FILE) as file,
            ):
                size = os.fstat(file.fileno()).st_size
                if size <= work.limits.result_bytes:
                    result = file.read()
                else:
                    outcome = _with_large_result(outcome, size, work.limits.result_bytes)
        return Finished(job, outcome, result)


def _with_large_result(outcome: Outcome, size: int, limit: int) -> Outcome:
    message = f"The job's result takes {size:,} bytes; at most {limit:,} are accepted."
    error = {"type": "ProtocolError", "message": message}
    return dataclasses.replace(outcome, ending=Ending.PROTOCOL, error=error)


def num_processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))
