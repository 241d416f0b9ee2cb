"""Pools on a Ray cluster: the workers of `LocalPool` on any node."""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import json
import logging
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import RunError
from ..version import __version__
from .pool import Finished, PoolJob, Work, run_in
from .ray_cluster import connect, import_ray, lost_outcome
from .watch import Ending, Outcome

START_TIMEOUT_S = 300.0
"""Seconds to wait for the first worker or for the replacement of a lost worker."""
MAX_ATTEMPTS = 2
_CLOSE_TIMEOUT_S = 10.0
_log = logging.getLogger("graphnet_datasets")


class PoolWorker:
    """A fork server on one processor; `RayPool` turns this class into a Ray actor."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._server = work.server()

    def describe(self) -> str:
        """Return the version of this library on the node."""
        return __version__

    def run(self, job: str) -> tuple[str, bytes | None]:
        """Run a `PoolJob`, passed as JSON; return its outcome as JSON, and its result."""
        finished = run_in(self._server, self._work, PoolJob(**json.loads(job)))
        return json.dumps(dataclasses.asdict(finished.outcome)), finished.result

    def close(self) -> None:
        """Stop the fork server and its job."""
        self._server.close()


class RayPool:
    """Runs one job at a time on each processor of a Ray cluster.

    If a worker or its node is lost, the worker is replaced and its job runs again. If the job loses
    a second worker, it ends as a crash with an error of type `WorkerLost`. Paths in payloads refer
    to the nodes, so input trees must be on a shared file system.

    Args:
        work: The configuration of the workers.
        num_workers: Maximum number of workers; None uses every processor of the cluster.

    Raises:
        MissingExtraError: Ray is not installed.
        RunError: No cluster is available, no worker can be started on it, or a node has another
            version of this library.
    """

    def __init__(self, work: Work, num_workers: int | None = None) -> None:
        self._work = work
        self._ray = import_ray("Working on a Ray cluster")
        self._is_ours = connect(self._ray)
        self._actors: set[Any] = set()
        self._starting: dict[Any, Any] = {}
        self._idle: collections.deque[Any] = collections.deque()
        num_cpus = int(self._ray.cluster_resources().get("CPU", 0))
        self._num_workers = min(num_cpus, num_workers or num_cpus)
        if self._num_workers < 1:
            self.close()
            raise RunError("The Ray cluster has no processors. Add a node to it.")

    def run(self, jobs: Iterable[PoolJob]) -> Iterator[Finished]:
        """Yield each job when it ends; the workers remain for a later run."""
        busy: dict[Any, tuple[Any, PoolJob, int]] = {}
        try:
            yield from self._run(iter(jobs), busy)
        finally:
            for actor, _, _ in busy.values():  # the consumer stopped early
                self._kill(actor)

    def _run(
        self, fresh: Iterator[PoolJob], busy: dict[Any, tuple[Any, PoolJob, int]]
    ) -> Iterator[Finished]:
        ray, starting, idle = self._ray, self._starting, self._idle
        again: collections.deque[tuple[PoolJob, int]] = collections.deque()
        num_wanted, waiting = self._num_workers, None
        while True:
            waiting = waiting or _next(again, fresh)
            if waiting:
                self._start(num_wanted - len(self._actors))
            while idle and waiting:
                actor, (job, attempt) = idle.popleft(), waiting
                answer = actor.run.remote(json.dumps(dataclasses.asdict(job)))
                busy[answer] = actor, job, attempt
                waiting = _next(again, fresh)
            if not busy and not waiting:
                return
            ready, _ = ray.wait([*busy, *starting], num_returns=1, timeout=START_TIMEOUT_S)
            if not ready and not busy:
                raise RunError(
                    f"No processor of the Ray cluster was free within {START_TIMEOUT_S:g} s. `ray "
                    "status` lists the tasks that use them. Repeat the command to continue."
                )
            for answer in ready:
                if answer in starting:
                    actor = starting.pop(answer)
                    if self._is_started(answer, actor):
                        idle.append(actor)
                        continue
                    num_wanted -= 1
                    if not (starting or idle or busy):
                        raise RunError("No worker can be started on the Ray cluster; see its logs.")
                    continue
                actor, job, attempt = busy.pop(answer)
                try:
                    outcome, result = ray.get(answer)
                except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                    _log.warning("A worker was lost at `%s`; starting another.", job.name)
                    self._actors.discard(actor)
                    if attempt < MAX_ATTEMPTS:
                        again.append((job, attempt + 1))
                    else:
                        message = f"{attempt} workers were lost while they ran this job"
                        lost = lost_outcome(self._work.phases[0], message, error)
                        yield Finished(job, lost, None)
                else:
                    idle.append(actor)
                    yield Finished(job, _read_outcome(outcome), result)

    def close(self) -> None:
        """Stop all workers and their jobs, and the cluster if this pool started it."""
        ray = self._ray
        if not ray.is_initialized():
            return
        with contextlib.suppress(ray.exceptions.RayError):
            # Busy and starting workers cannot process `close`. They are killed below, which also
            # ends their fork servers.
            ended = [actor.close.remote() for actor in self._idle]
            if ended:
                ray.wait(ended, num_returns=len(ended), timeout=_CLOSE_TIMEOUT_S)
        for actor in [*self._actors]:
            self._kill(actor)
        self._starting.clear()
        self._idle.clear()
        if self._is_ours:
            ray.shutdown()

    def _start(self, count: int) -> None:
        remote = self._ray.remote(PoolWorker)
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        actors = [remote.options(**options).remote(self._work) for _ in range(count)]
        self._actors.update(actors)
        self._starting |= {actor.describe.remote(): actor for actor in actors}

    def _kill(self, actor: Any) -> None:
        self._actors.discard(actor)
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.kill(actor)

    def _is_started(self, answer: Any, actor: Any) -> bool:
        try:
            version = self._ray.get(answer)
        except self._ray.exceptions.RayActorError as error:
            _log.warning("A worker could not be started: %s", error)
            self._actors.discard(actor)
            return False
        if version != __version__:
            raise RunError(
                f"A node of the cluster has version {version} of `graphnet-datasets`, but this "
                f"machine has {__version__}. Install the same version on all nodes."
            )
        return True


def _next(
    again: collections.deque[tuple[PoolJob, int]], fresh: Iterator[PoolJob]
) -> tuple[PoolJob, int] | None:
    if again:
        return again.popleft()
    for job in itertools.islice(fresh, 1):
        return job, 1
    return None


def _read_outcome(text: str) -> Outcome:
    fields = json.loads(text)
    return Outcome(**{**fields, "ending": Ending(fields["ending"])})
