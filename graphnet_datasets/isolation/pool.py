"""Many jobs in fork servers of this machine, several at a time, with results as bytes."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import os
import queue
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from ..errors import RunError
from .client import ForkServer
from .limits import Limits
from .watch import Ending, Outcome

RESULT_FILE = "result"
"""What a job of a pool writes in its directory if it has more to hand over than messages."""

_POLL_S = 0.2


@dataclasses.dataclass(frozen=True)
class Work:
    """What the workers of a pool are: the module that `ForkServer` is given, and its limits."""

    module: str
    phases: tuple[str, ...]
    limits: Limits = dataclasses.field(default_factory=Limits)
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    is_confined: bool = True

    def server(self) -> ForkServer:
        """Return a server for these workers, which is not started yet."""
        return ForkServer(self.module, environment=self.environment, is_confined=self.is_confined)


@dataclasses.dataclass(frozen=True)
class PoolJob:
    """One job: a name for messages, the worker's payload as JSON, and the paths that it may use.

    `reads` and `writes` are passed to `ForkServer.run`.
    """

    name: str
    payload: Mapping[str, Any]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Finished:
    """A job that has ended: how, and the bytes of its result file, None where it wrote none."""

    job: PoolJob
    outcome: Outcome
    result: bytes | None

    @property
    def is_success(self) -> bool:
        """Whether the job returned."""
        return self.outcome.ending is Ending.FINISHED

    @property
    def reason(self) -> str:
        """Why a job did not return, in one line; "" if it did."""
        if self.is_success:
            return ""
        error = self.outcome.error or {}
        said = error.get("message", "") or self.outcome.log[-300:].strip()
        words = f"{self.outcome.ending} in {self.outcome.phase}: {error.get('type', '')} {said}"
        return " ".join(words.split())


class Pool(Protocol):
    """Runs jobs somewhere and gives each as it ends."""

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        """Yield each job once, in the order in which they end; no job's failure raises."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


class LocalPool:
    """Runs jobs in processes of this machine, `num_workers` at a time.

    Jobs are taken from the iterable as workers become free, and a worker waits while results are
    not fetched, so neither need fit into memory.

    Raises:
        RunError: from `run`, if a worker cannot be started at all, or the pool is closed.
    """

    def __init__(self, work: Work, num_workers: int) -> None:
        self._work, self._num_workers = work, max(1, num_workers)
        self._servers: list[ForkServer] = []
        self._is_closed = threading.Event()

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        """Yield each job as it ends."""
        waiting, lock = iter(jobs), threading.Lock()
        done: queue.Queue[Finished | BaseException | None] = queue.Queue(2 * self._num_workers)
        while len(self._servers) < self._num_workers:
            self._servers.append(self._work.server())

        def put(item: Finished | BaseException | None) -> None:
            while not self._is_closed.is_set():
                with contextlib.suppress(queue.Full):
                    done.put(item, timeout=_POLL_S)
                    return

        def serve(server: ForkServer) -> None:
            try:
                while not self._is_closed.is_set():
                    with lock:
                        job = next(waiting, None)
                    if job is None:
                        break
                    put(run_in(server, self._work, job))
                put(None)
            except BaseException as error:  # what ends a thread must not be lost with it
                put(error)

        threads = [
            threading.Thread(target=serve, args=(server,), daemon=True) for server in self._servers
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in threads:
                while (item := self._take(done)) is not None:
                    if isinstance(item, BaseException):
                        raise item
                    yield item
        except BaseException:  # Ctrl-C and a reader that stops early: nothing may run on
            self.close()
            raise
        finally:
            for thread in threads:
                while thread.is_alive():
                    thread.join(_POLL_S)
                    if self._is_closed.is_set():  # it may just have started its server
                        self.close()

    def close(self) -> None:
        """End all workers, and with them what they are at; a `run` of another thread raises."""
        self._is_closed.set()
        if self._servers:
            with concurrent.futures.ThreadPoolExecutor(len(self._servers)) as threads:
                list(threads.map(ForkServer.close, self._servers))

    def _take(
        self, done: queue.Queue[Finished | BaseException | None]
    ) -> Finished | BaseException | None:
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Empty):
                return done.get(timeout=_POLL_S)
        raise RunError("The pool of workers is closed. Make another one for more jobs.")


def run_in(server: ForkServer, work: Work, job: PoolJob) -> Finished:
    """Run one job in a fork server and return how it ended, with its result file."""
    with server.directory() as directory:
        outcome = server.run(
            job.payload,
            directory,
            phases=work.phases,
            limits=work.limits,
            reads=job.reads,
            writes=job.writes,
        )
        path = Path(directory) / RESULT_FILE
        is_there = outcome.ending is Ending.FINISHED and path.is_file()
        return Finished(job, outcome, path.read_bytes() if is_there else None)


def num_processors() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0))
