"""Executors that run the samples of a run on the devices of this machine.

Timing needs exclusive use of a device, so an executor runs one sample at a time per device.
`ray_executor` does the same with the devices of a cluster.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import math
import os
import queue
import re
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ...errors import RunError
from ...frameworks.builds import DEVICE_PATTERN
from ...isolation import ForkServer
from ..records.environment import (
    describe_environment,
    environment_id,
    gpu_memory_bytes,
    physical_gpu,
)
from ..settings import Settings
from .jobs import CandidateCompiler, OnPhase, SampleJob, TakeOutputs
from .overlap import TimingGate
from .sample_runner import SampleRunner

Record = dict[str, Any]
_Done: TypeAlias = "queue.SimpleQueue[tuple[SampleJob, Record, threading.Event] | BaseException]"
MIN_OVERLAPPED = 4
"""The minimum number of samples for overlapping two of them."""
_JOIN_S = 30.0
"""Seconds to wait for a device's thread after its worker has ended."""


class Executor(Protocol):
    """Runs jobs and yields their records as they are finished."""

    @property
    def environment(self) -> Mapping[str, Any]:
        """The environment of all its devices (see `describe_environment`)."""
        ...

    on_phase: OnPhase

    def find_candidate(
        self, compiler: str, framework: str, options: Mapping[str, Any]
    ) -> CandidateCompiler:
        """Inspect a compiler where it will run, and return it with all its options."""
        ...

    def run(self, jobs: Iterable[SampleJob]) -> Iterator[tuple[SampleJob, list[Record]]]:
        """Yield jobs with some or all of their records; the order may differ from `jobs`."""
        ...

    def close(self) -> None:
        """End all processes."""
        ...


class LocalExecutor:
    """Run jobs on devices of this machine, holding the lock of each device meanwhile.

    Jobs start in order. With several devices, each takes the next job as soon as it is free. The
    devices must be identical, since times of different devices are not comparable. `num_jobs`
    samples overlap on each device, of which one is timed at a time (see `overlap`). The default is
    two on a CPU with at least two processors, and one on a GPU. With `num_jobs`, all
    workers are forks of one process that has imported everything.

    Raises:
        RunError: no device or a duplicate device is given, or the devices differ.
    """

    def __init__(
        self,
        devices: Sequence[str],
        settings: Settings,
        *,
        log_directory: Path | None = None,
        compilers: Sequence[str] = (),
        take_outputs: TakeOutputs | None = None,
        num_jobs: int | None = None,
    ) -> None:
        self._num_jobs = num_jobs
        self._gates: list[TimingGate] = []
        self._devices = tuple(devices)
        self.environment = _common_environment(self._devices)
        self._settings = settings
        self._log_directory, self._compilers = log_directory, tuple(compilers)
        self._take_outputs = take_outputs
        self._runners: dict[str, SampleRunner] = {}
        self._origins: dict[str, ForkServer] = {}
        self._threads: list[threading.Thread] = []
        self._is_closed = threading.Event()
        self.on_phase: OnPhase = lambda *_: None

    def find_candidate(
        self, compiler: str, framework: str, options: Mapping[str, Any]
    ) -> CandidateCompiler:
        """Inspect a compiler on the first device (see `SampleRunner.find_candidate`)."""
        return self._runner(self._devices[0]).find_candidate(compiler, framework, options)

    def run(self, jobs: Iterable[SampleJob]) -> Iterator[tuple[SampleJob, list[Record]]]:
        """Yield a job with each record as it is made, in order unless samples overlap."""
        jobs = list(jobs)
        num_lanes = self._count_lanes(jobs)
        if len(self._devices) * num_lanes == 1:
            (device,) = self._devices
            with device_lock(device):
                for job in jobs:
                    for record in self._runner(device).records(job):
                        yield job, [record]
            return
        with contextlib.ExitStack() as stack:
            for device in sorted(self._devices, key=physical_gpu):  # or two runs could deadlock
                stack.enter_context(device_lock(device))
            runners = [
                runner for device in self._devices for runner in self._make_lanes(device, num_lanes)
            ]
            yield from self._run_on_all(jobs, runners)

    def _count_lanes(self, jobs: Sequence[SampleJob]) -> int:
        """Return the number of samples that overlap on each device."""
        if self._num_jobs is None:
            return 2 if self._devices == ("cpu",) and _is_worth_overlapping(jobs) else 1
        return max(1, min(self._num_jobs, math.ceil(len(jobs) / len(self._devices))))

    def _make_lanes(self, device: str, num_lanes: int) -> list[SampleRunner]:
        """Return runners whose samples overlap on a device."""
        first = self._runner(device)
        if num_lanes == 1:
            return [first]
        ram_bytes = first.limits.memory_bytes or math.inf
        is_gpu = device != "cpu"
        capacity_bytes = min(ram_bytes, gpu_memory_bytes(self.environment) if is_gpu else math.inf)
        gate = TimingGate(capacity_bytes, is_of_gpu=is_gpu)
        self._gates.append(gate)
        first.join(gate)
        others = [self._runner(device, f" lane {number}") for number in range(1, num_lanes)]
        for runner in others:
            runner.join(gate, first)
        return [first, *others]

    def close(self) -> None:
        """End the workers."""
        self._is_closed.set()
        for gate in self._gates:
            gate.close()
        for runner in self._runners.values():
            runner.close()
        for server in self._origins.values():
            server.close()
        for thread in self._threads:
            thread.join(_JOIN_S)
        self._threads.clear()
        self._runners.clear()

    def _runner(self, device: str, role: str = "") -> SampleRunner:
        name = device + role
        if name not in self._runners:
            environment = (
                environment_id(self.environment),
                json.dumps(self.environment, sort_keys=True),
            )
            self._runners[name] = SampleRunner(
                device,
                self._settings,
                environment,
                log_directory=self._log_directory,
                compilers=self._compilers,
                take_outputs=self._take_outputs,
                origins=None if self._num_jobs is None else self._origins,
            )
        self._runners[name].on_phase = self.on_phase
        return self._runners[name]

    def _run_on_all(
        self, jobs: Iterable[SampleJob], runners: Sequence[SampleRunner]
    ) -> Iterator[tuple[SampleJob, list[Record]]]:
        waiting: queue.SimpleQueue[SampleJob] = queue.SimpleQueue()
        done: _Done = queue.SimpleQueue()
        num_records = 0
        for job in jobs:
            waiting.put(job)
            num_records += len(job.candidates)
        for runner in runners:
            thread = threading.Thread(target=self._serve, args=(runner, waiting, done), daemon=True)
            self._threads.append(thread)
            thread.start()
        for _ in range(num_records):
            finished = done.get()
            if isinstance(finished, BaseException):
                raise finished
            job, record, is_stored = finished
            yield job, [record]
            is_stored.set()

    def _serve(
        self,
        runner: SampleRunner,
        waiting: queue.SimpleQueue[SampleJob],
        done: _Done,
    ) -> None:
        """Run jobs in one lane until the queue is empty or a job raises an error."""
        try:
            with runner.at_work():
                while not self._is_closed.is_set():
                    try:
                        job = waiting.get_nowait()
                    except queue.Empty:
                        break
                    for record in runner.records(job):
                        is_stored = threading.Event()
                        done.put((job, record, is_stored))
                        # Nothing is timed while the record is stored.
                        while not is_stored.wait(1.0) and not self._is_closed.is_set():
                            pass
        except BaseException as error:
            done.put(error)
        finally:
            runner.close()


def _is_worth_overlapping(jobs: Sequence[SampleJob]) -> bool:
    """Return whether a second server, which also imports a framework, is worth its cost."""
    return len(jobs) >= MIN_OVERLAPPED and len(os.sched_getaffinity(0)) > 1


def parse_devices(device: str | Sequence[str]) -> tuple[str, ...]:
    """Return the devices named in a list or separated by commas.

    >>> parse_devices("cuda:0,cuda:1")
    ('cuda:0', 'cuda:1')

    Raises:
        RunError: there is no device, a device occurs twice, or a name is not a device.
    """
    words = device.split(",") if isinstance(device, str) else device
    devices = tuple(word.strip() for word in words)
    for name in devices:
        if not DEVICE_PATTERN.fullmatch(name):
            raise RunError(
                f"`{name}` is not a device. Use `cpu`, `cuda`, `cuda:1`, or several GPUs as "
                "`cuda:0,cuda:1`."
            )
    if not devices:
        raise RunError("No device is selected. Choose `cpu` or `cuda`.")
    if len(devices) > 1 and any(":" not in name for name in devices):
        raise RunError(
            "Several devices must be GPUs with their indices, as in `cuda:0,cuda:1`. All "
            "processors together are one device."
        )
    if len(set(devices)) < len(devices):
        raise RunError(f"`{','.join(devices)}` contains a device twice. Remove one of them.")
    return devices


def _common_environment(devices: Sequence[str]) -> dict[str, Any]:
    environment = describe_environment(devices[0])
    for device in devices[1:]:
        other = describe_environment(device)
        if environment_id(other) != environment_id(environment):
            raise RunError(
                f"The devices `{devices[0]}` and `{device}` differ ({environment['gpu']} and "
                f"{other['gpu']}), so their times cannot be compared. Run them one "
                "after another, each with a separate `out`."
            )
    return environment


@contextlib.contextmanager
def device_lock(device: str) -> Iterator[None]:
    """Hold a GPU for one run at a time on this machine; a CPU is not locked.

    Waits while another run holds the GPU. The kernel releases the lock when the process ends for
    any reason. The lock belongs to the physical GPU, independent of its index in
    `CUDA_VISIBLE_DEVICES`.

    Raises:
        RunError: the lock file cannot be opened.

    >>> with device_lock("cpu"):
    ...     pass
    """
    if device == "cpu":
        yield
        return
    kind = device.partition(":")[0]
    name = re.sub(r"[^A-Za-z0-9-]", "-", physical_gpu(device))
    path = Path(tempfile.gettempdir(), f"graphnet-datasets-{kind}-{name}.lock")
    try:
        # Do not follow links, which other users could create in the shared directory.
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise RunError(
            f"The lock `{path}` of the device `{device}` cannot be opened: {error.strerror}. "
            "Remove the file, or make it writable for all who use the device."
        ) from error
    try:
        with contextlib.suppress(PermissionError):
            os.fchmod(fd, 0o666)  # other users must be able to wait for it too
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
