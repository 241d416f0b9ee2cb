"""The Ray actor on a cluster node: one device and the runner of its samples."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...version import __version__
from ..judging.correctness import Output
from ..judging.output_files import describe_run, write_outputs
from ..records.environment import describe_environment, environment_id
from ..settings import Settings
from .collecting import COMPILER_ERRORS
from .executors import device_lock
from .job_bytes import Result, pack_results, unpack_job
from .sample_runner import SampleJob, SampleRunner


class DeviceWorker:
    """Hold one device and run jobs on it; `RayExecutor` turns this class into a Ray actor.

    Ray makes only the assigned GPU visible to an actor, so that `cuda` refers to it.
    """

    def __init__(
        self, device: str, settings: Settings, compilers: Sequence[str], has_outputs: bool
    ) -> None:
        # Ray sets this variable for every actor. Remove it, so that the environment matches a run
        # without Ray; the runner sets the number of threads itself.
        os.environ.pop("OMP_NUM_THREADS", None)
        self._device = device
        self._environment = describe_environment(device)
        self._directory = tempfile.TemporaryDirectory(prefix="graphnet-ray-")
        self._logs = Path(self._directory.name)
        self._outputs: dict[str, bytes] = {}
        environment = json.dumps(self._environment, sort_keys=True)
        self._runner = SampleRunner(
            device,
            settings,
            (environment_id(self._environment), environment),
            log_directory=self._logs,
            compilers=compilers,
            take_outputs=self._take_outputs if has_outputs else None,
        )

    def describe(self) -> str:
        """Return the versions and the environment of the node as JSON."""
        return json.dumps({"version": __version__, "environment": self._environment})

    def find_candidate(self, compiler: str, framework: str, options: str) -> str:
        """Return a candidate as JSON, or the error that prevented its creation."""
        try:
            candidate = self._runner.find_candidate(compiler, framework, json.loads(options))
        except COMPILER_ERRORS as error:
            return json.dumps({"error": type(error).__name__, "message": str(error)})
        return json.dumps(dataclasses.asdict(candidate) | {"options": dict(candidate.options)})

    def run(self, job: bytes) -> Iterator[bytes]:
        """Run a job and yield each of its records as it is made (see `pack_results`)."""
        with device_lock(self._device):
            for record in self._runner.records(unpack_job(job)):
                run_id = record["run_id"]
                result = Result(record, self._log(run_id), self._outputs.pop(run_id, None))
                yield pack_results([result])

    def close(self) -> None:
        """End all processes and remove their files."""
        self._runner.close()
        self._directory.cleanup()

    def _take_outputs(
        self, job: SampleJob, record: Mapping[str, Any], outputs: Sequence[Output]
    ) -> None:
        buffer = io.BytesIO()
        write_outputs(buffer, describe_run(job, record), outputs)
        self._outputs[record["run_id"]] = buffer.getvalue()

    def _log(self, run_id: str) -> str | None:
        path = self._logs / f"{run_id}.log"
        with contextlib.suppress(FileNotFoundError):
            text = path.read_text(errors="replace")
            path.unlink()
            return text
        return None
