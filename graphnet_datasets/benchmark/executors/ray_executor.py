"""Runs on a Ray cluster, with one job at a time on each device of each node.

A device is a GPU or the processors of a node. An actor holds the device and has a `SampleRunner`,
which runs each sample in separate processes as on a single machine. The actor never imports a
candidate.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...atomic import write_text
from ...errors import RunError
from ...isolation.ray_cluster import connect, import_ray, lost_outcome
from ...version import __version__
from ..judging import judging
from ..judging.output_files import OutputStore
from ..records.environment import environment_id
from ..settings import Settings
from .collecting import COMPILER_ERRORS
from .job_bytes import pack_job, unpack_results
from .sample_runner import CandidateCompiler, OnPhase, SampleJob, SampleRunner

Record = dict[str, Any]
START_TIMEOUT_S = 300.0
"""Seconds to wait for a worker; devices that other cluster jobs hold are skipped."""
_CLOSE_TIMEOUT_S = 10.0
_MAX_ATTEMPTS = 2
_log = logging.getLogger("graphnet_datasets")


@dataclasses.dataclass(frozen=True)
class _Place:
    """A device of the cluster: a node and the resources that a worker takes."""

    node_id: str
    address: str
    num_cpus: float
    num_gpus: float


@dataclasses.dataclass(frozen=True)
class _Worker:
    place: _Place
    actor: Any
    environment: Mapping[str, Any]


class RayExecutor:
    """Run jobs on all devices of one kind in a Ray cluster.

    Uses the connected cluster, else the cluster that `RAY_ADDRESS` names or that runs on this
    machine, else a new local cluster that ends with the run. A lost worker is replaced and its
    sample run again; a sample that loses two workers is recorded as `harness_failed`. Nodes must be
    identical: otherwise the largest group of identical nodes is used, and a warning names the
    others.

    Raises:
        MissingExtraError: Ray is not installed.
        RunError: there is no cluster, or none of its nodes can run the jobs.
    """

    def __init__(
        self,
        devices: Sequence[str],
        settings: Settings,
        *,
        log_directory: Path | None = None,
        compilers: Sequence[str] = (),
        outputs: OutputStore | None = None,
    ) -> None:
        if list(devices) not in (["cpu"], ["cuda"], ["gpu"]):
            raise RunError(
                f"On a Ray cluster the device must be `cpu` or `cuda`, not `{','.join(devices)}`, "
                "because Ray assigns nodes and GPUs."
            )
        (self._device,) = devices
        self.on_phase: OnPhase = lambda *_: None  # workers on other nodes report whole samples
        self._settings, self._compilers = settings, tuple(compilers)
        self._log_directory, self._outputs = log_directory, outputs
        self._ray = import_ray("Running on a Ray cluster")
        self._is_ours = connect(self._ray)
        self._workers: list[_Worker] = []
        try:
            self._workers = self._start_all()
        except BaseException:
            self.close()
            raise
        self.environment = self._workers[0].environment

    def find_candidate(
        self, compiler: str, framework: str, options: Mapping[str, Any]
    ) -> CandidateCompiler:
        """Inspect a compiler on one of the nodes (see `SampleRunner.find_candidate`)."""
        answer = self._ray.get(
            self._workers[0].actor.find_candidate.remote(
                compiler, framework, json.dumps(dict(options))
            )
        )
        fields = json.loads(answer)
        if "error" in fields:
            kinds = {kind.__name__: kind for kind in COMPILER_ERRORS}
            raise kinds.get(fields["error"], RunError)(fields["message"])
        return CandidateCompiler(**fields)

    def run(self, jobs: Iterable[SampleJob]) -> Iterator[tuple[SampleJob, list[Record]]]:
        """Yield a job with each of its records as it arrives.

        Raises:
            RunError: no device is left, or a worker cannot run jobs at all.
        """
        ray = self._ray
        waiting = collections.deque((job, 1) for job in jobs)
        idle = collections.deque(self._workers)
        busy: dict[Any, tuple[_Worker, SampleJob, int]] = {}
        while waiting or busy:
            while waiting and idle:
                worker, (job, attempt) = idle.popleft(), waiting.popleft()
                records = worker.actor.run.options(num_returns="streaming").remote(pack_job(job))
                busy[records] = (worker, job, attempt)
            if not busy:
                raise RunError(
                    f"No device of the cluster is left; {len(waiting)} samples were not run. Add "
                    "nodes, and repeat the command to continue."
                )
            (records, *_), _ = ray.wait(list(busy), num_returns=1)
            worker, job, attempt = busy.pop(records)
            try:
                answer = ray.get(next(records))
            except StopIteration:
                if job.candidates:
                    raise RunError(
                        f"A worker ended `{job.sample.id}` without a record of each run."
                    ) from None
                idle.append(worker)
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
                replacement = self._replace(worker)
                if replacement is not None:
                    idle.append(replacement)
                if not job.candidates:
                    continue
                if attempt < _MAX_ATTEMPTS:
                    waiting.appendleft((job, attempt + 1))
                else:
                    yield job, self._lost(job, worker, error, attempt)
            else:
                results = self._take(job, answer, attempt)
                done = {record["run_id"] for record in results}
                left = [candidate for candidate in job.candidates if candidate[0] not in done]
                busy[records] = (worker, job.with_candidates(left), attempt)
                yield job, results

    def close(self) -> None:
        """End all workers, and the cluster if it was started here."""
        ray = self._ray
        if not ray.is_initialized():
            return
        with contextlib.suppress(ray.exceptions.RayError):
            ray.wait(
                [worker.actor.close.remote() for worker in self._workers] or [ray.put(0)],
                num_returns=max(1, len(self._workers)),
                timeout=_CLOSE_TIMEOUT_S,
            )
        for worker in self._workers:
            with contextlib.suppress(ray.exceptions.RayError):
                ray.kill(worker.actor)
        self._workers.clear()
        if self._is_ours:
            ray.shutdown()

    def _take(self, job: SampleJob, answer: Any, attempt: int) -> list[Record]:
        """Return the records in a worker's answer, and store the data that came with them."""
        results = unpack_results(answer, {run_id: job.sample.id for run_id, _ in job.candidates})
        for result in results:
            run_id = result.record["run_id"]
            result.record["num_attempts"] = max(result.record["num_attempts"] or 1, attempt)
            if result.log and self._log_directory is not None:
                self._log_directory.mkdir(parents=True, exist_ok=True)
                write_text(self._log_directory / f"{run_id}.log", result.log)
            if result.outputs is not None and self._outputs is not None:
                self._outputs.put(run_id, result.outputs)
        return [result.record for result in results]

    def _lost(
        self, job: SampleJob, worker: _Worker, error: Exception, num_attempts: int
    ) -> list[Record]:
        """Return records of a job whose workers were lost; nothing is known about the sample."""
        message = (
            f"{num_attempts} workers were lost while they ran this sample, the last on the node "
            f"`{worker.place.address}`"
        )
        runner = SampleRunner(
            self._device,
            self._settings,
            (environment_id(worker.environment), json.dumps(worker.environment, sort_keys=True)),
        )
        records = []
        for run_id, candidate in job.candidates:
            outcome = lost_outcome("load", message, error)
            record = runner.begin_record(job, run_id, candidate) | {"num_attempts": num_attempts}
            records.append(judging.Run(record, outcome).record)
        return records

    def _start_all(self) -> list[_Worker]:
        """Start a worker on each device and return the identical ones."""
        places = self._places()
        started = self._start(places)
        if not started:
            raise RunError(
                f"None of the {len(places)} devices of the cluster was free within "
                f"{START_TIMEOUT_S:g} s. `ray status` lists their jobs."
            )
        groups: dict[str, list[_Worker]] = {}
        for worker in started:
            groups.setdefault(environment_id(worker.environment), []).append(worker)
        largest, *others = sorted(groups.values(), key=len, reverse=True)
        for group in others:
            reference = largest[0].environment
            odd = sorted(k for k, v in group[0].environment.items() if v != reference.get(k))
            _log.warning(
                "Nodes %s are not used: they differ from %s in %s, and times of different machines "
                "cannot be compared.",
                ", ".join(sorted({worker.place.address for worker in group})),
                ", ".join(sorted({worker.place.address for worker in largest})),
                ", ".join(odd),
            )
            for worker in group:
                self._ray.kill(worker.actor)
        return largest

    def _start(self, places: Sequence[_Place]) -> list[_Worker]:
        """Start a worker on each place; places that are not free in time are skipped."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        from .ray_worker import DeviceWorker

        ray = self._ray
        remote = ray.remote(DeviceWorker)
        actor_of = {}
        for place in places:
            actor = remote.options(
                num_cpus=place.num_cpus,
                num_gpus=place.num_gpus,
                max_restarts=0,
                scheduling_strategy=NodeAffinitySchedulingStrategy(place.node_id, soft=False),
            ).remote(self._device, self._settings, self._compilers, self._outputs is not None)
            actor_of[actor.describe.remote()] = place, actor
        ready, late = ray.wait(list(actor_of), num_returns=len(actor_of), timeout=START_TIMEOUT_S)
        for reference in late:
            place, actor = actor_of[reference]
            _log.warning("A device of the node %s is in use by other work.", place.address)
            ray.kill(actor)
        workers = []
        for reference in ready:
            place, actor = actor_of[reference]
            try:
                fields = json.loads(ray.get(reference))
            except ray.exceptions.RayActorError as error:
                _log.warning("No worker could be started on %s: %s", place.address, error)
                continue
            if fields["version"] != __version__:
                raise RunError(
                    f"The node {place.address} has version {fields['version']} of "
                    f"`graphnet-datasets`, but this machine has {__version__}. Install the same "
                    "version on all nodes."
                )
            workers.append(_Worker(place, actor, fields["environment"]))
        return workers

    def _replace(self, worker: _Worker) -> _Worker | None:
        """Start a worker in place of a lost one; return None if its node is gone as well."""
        self._workers.remove(worker)
        alive = {node["NodeID"] for node in self._ray.nodes() if node["Alive"]}
        if worker.place.node_id not in alive:
            _log.warning("The node %s is lost.", worker.place.address)
            return None
        _log.warning("A worker on the node %s was lost; starting another.", worker.place.address)
        for started in self._start([worker.place]):
            self._workers.append(started)
            return started
        return None

    def _places(self) -> list[_Place]:
        """Return the devices of the cluster."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        wanted = self._settings.num_threads
        places = []
        for node in nodes:
            cpus = node["Resources"].get("CPU", 0.0)
            if self._device == "cpu":
                if cpus >= (wanted or 1):  # without `num_threads`, use the whole node
                    place = _Place(node["NodeID"], node["NodeManagerAddress"], wanted or cpus, 0)
                    places.append(place)
                continue
            gpus = int(node["Resources"].get("GPU", 0))
            places += [_Place(node["NodeID"], node["NodeManagerAddress"], 1, 1)] * gpus
        if not places:
            resource = "a GPU" if self._device != "cpu" else f"{wanted or 1} CPUs"
            raise RunError(
                f"None of the {len(nodes)} nodes of the Ray cluster offers {resource}. Add nodes, "
                "or choose another `device` or fewer `threads`."
            )
        return places
