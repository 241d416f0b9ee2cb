"""What the process of a trial is told: written by the parent and read by the child, as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from ..benchmark.worker_job import WorkerJob
from .elements import FileOf

PHASES = ("load", "baseline", "compile", "run")
"""Phases of a trial."""
VALUES = "values"
"""The phase of the job that runs the whole graph and stores its values."""
NUM_CALLS = 3
"""Calls of the compiled graph: some compilers specialise in the second."""

EAGER_DRAWS = "eager_draws.bin"
"""The file of eager's outputs in repeated calls with other seeds."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrialJob:
    """One trial.

    `elements` has for each input of the sample where its elements lie, or None where they are
    drawn; an input that is smaller than what lies there takes the beginning of each axis.
    `is_timed` asks for the speedup.
    """

    worker: WorkerJob
    elements: tuple[FileOf | None, ...]
    is_timed: bool = False

    def to_payload(self) -> dict[str, Any]:
        """Return the job as an object that JSON can hold."""
        return {
            "kind": "trial",
            "worker": self.worker.to_payload(),
            "elements": [each and [each[0], list(each[1])] for each in self.elements],
            "is_timed": self.is_timed,
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> TrialJob:
        """Return the job that `to_payload` gave.

        >>> from graphnet_datasets.benchmark import Settings
        >>> worker = WorkerJob(kind="candidate", device="cpu", settings=Settings())
        >>> job = TrialJob(worker=worker, elements=(("0.bin", (2, 3)), None))
        >>> TrialJob.from_payload(job.to_payload()) == job
        True
        """
        return cls(
            worker=WorkerJob.from_payload(payload["worker"]),
            elements=tuple(each and (each[0], tuple(each[1])) for each in payload["elements"]),
            is_timed=payload["is_timed"],
        )
