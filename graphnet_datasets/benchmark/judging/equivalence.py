"""Equivalence of two samples: each runs in its own process on the same inputs."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import Self

from ...errors import GraphNetError
from ...frameworks import FRAMEWORK_VARIABLE
from ...inputs import Mode
from ...isolation import Ending, ForkServer, Limits
from ...sample import Sample
from ...schema import Reason
from ...schema.sample_files import write_sample
from ..handover import (
    FIRST,
    HandoverError,
    read_outputs,
)
from .correctness import Output, compare_outputs, find_mismatch, overall_min_t
from .equivalence_worker import PHASES, OneRun

LIMITS = Limits(phase_timeouts_s={"load": 120.0, "run": 300.0}, memory_bytes=16 * 2**30)


@dataclasses.dataclass(frozen=True, slots=True)
class Equivalence:
    """The result of comparing two samples on the same inputs.

    `min_t` is the smallest tolerance at which all outputs of the second sample agree with those of
    the first (-inf: bit for bit). It is None, with a `reason`, if they could not be compared.
    """

    min_t: float | None
    max_abs_error: float | None = None
    reason: str = ""


class Comparer:
    """Run pairs of samples and compare their outputs; a context manager that owns its processes.

    Each framework has a process that imports only this framework, and each run is a fork of it.
    """

    def __init__(
        self, *, seed: int = 0, mode: Mode = "replay", num_threads: int = 1, limits: Limits = LIMITS
    ) -> None:
        self._job = OneRun(seed=seed, mode=mode, num_threads=num_threads)
        self._limits = limits
        self._servers: dict[str, ForkServer] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all processes; a concurrent comparison in another thread ends."""
        for server in list(self._servers.values()):
            server.close()
        self._servers.clear()

    def compare(self, baseline: Sample, candidate: Sample) -> Equivalence:
        """Return how far the outputs of `candidate` are from those of `baseline`."""
        with contextlib.ExitStack() as stack:
            try:
                expected = self._outputs(baseline, stack)
                actual = self._outputs(candidate, stack)
            except _NoOutputsError as error:
                return Equivalence(None, reason=str(error))
            kind, sentence = find_mismatch(expected, actual)
            if kind is not Reason.NONE:
                return Equivalence(None, reason=sentence)
            rows = compare_outputs(expected, actual)
            errors = [row["max_abs_error"] for row in rows]
            return Equivalence(overall_min_t(rows), max(errors))

    def _outputs(self, sample: Sample, stack: contextlib.ExitStack) -> list[Output]:
        server = self._server(sample.framework)
        directory = stack.enter_context(server.directory())
        write_sample(sample, directory)
        payload = self._job.to_payload()
        outcome = server.run(payload, directory, phases=PHASES, limits=self._limits)
        if outcome.ending is not Ending.FINISHED:
            details = outcome.error or {}
            text = str(details.get("message", outcome.log[-300:])).strip()
            raise _NoOutputsError(
                f"The sample of {sample.framework} ended by {outcome.ending} in "
                f"{outcome.phase}: {details.get('type', '')} {text[:500]}"
            )
        try:
            return read_outputs(directory / FIRST, outcome.merged().get("outputs"))
        except HandoverError as error:
            raise _NoOutputsError(str(error)) from error

    def _server(self, framework: str) -> ForkServer:
        if framework not in self._servers:
            self._servers[framework] = ForkServer(
                "graphnet_datasets.benchmark.judging.equivalence_worker",
                environment={FRAMEWORK_VARIABLE: framework, "GLOG_minloglevel": "2"},
            )
        return self._servers[framework]


class _NoOutputsError(GraphNetError):
    """A sample produced no readable outputs."""
